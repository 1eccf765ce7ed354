"""By how much noise of encoders biases base parameters, found by adding as much again.

Noise of positions enters the regressor: friction changes its sign at wrong times, and accelerations, noise included,
make inertias smaller. Residuals do not show such a bias. Noise of the same size, added to positions (or to measured
velocities) before the filters, moves the estimate about as far again (simulation and extrapolation; Cook and Stefanski
1994). It is added and subtracted, so that what is linear in it, and scatter, cancels. Intervals are widened by the
shift: the covariance gains its square.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geomctrl.identification.errors import DataError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.logs.samples import derive

from . import Estimate
from .conditioning import regressor_condition
from .least_squares import base_values
from .log_filter import LogFilter

PAIRS = 1  # of noise added and subtracted
WORTH_SAYING = 0.5  # standard deviations of a base parameter


def white_noise(x: np.ndarray, rate: float, above: float) -> np.ndarray | None:
    """Standard deviation (n,) of white noise in columns of x (N, n), by their power above a frequency [Hz]; None where
    the sampling rate leaves none. The median of the power does not count what is louder in a few places.
    """
    f = np.fft.rfftfreq(len(x), 1.0 / rate)
    high = (f > above) & (f < 0.5 * rate)
    if high.sum() < 10:
        return None
    window = np.hanning(len(x))
    ends = np.linspace(x[0], x[-1], len(x))
    power = np.abs(np.fft.rfft((x - ends) * window[:, None], axis=0)[high]) ** 2
    return np.sqrt(np.median(power, axis=0) / np.log(2.0) / np.square(window).sum())


def with_bias_of_noise(
    estimate: Estimate, part: Dataset, training: Dataset, filter_: LogFilter
) -> tuple[Estimate, str | None]:
    """(the estimate with a covariance that holds the bias of noise in the motion, in words where that is worth saying).

    part: what trains, as it was before `filter_` made `training` of it.
    """
    field = "v" if part.v is not None and filter_.measured_velocities else "q"
    x = np.asarray(getattr(part, field))
    shift = None if estimate.covariance is None else _shift(estimate, part, training, filter_, field, x)
    if shift is None or estimate.std is None:
        return estimate, None
    assert estimate.covariance is not None
    share = np.abs(shift) / np.maximum(estimate.std, 1e-300)
    out = replace(estimate, covariance=estimate.covariance + np.outer(shift, shift))
    if not share.max() > WORTH_SAYING:
        return out, None
    signal = "velocities" if field == "v" else "positions"
    return out, (
        f"noise of {signal} moves base parameters by up to {share.max():.2g} standard deviations, by which intervals"
        " are wider; a lower cut-off (identify: --cutoff) takes it away"
    )


def _shift(
    estimate: Estimate, part: Dataset, training: Dataset, filter_: LogFilter, field: str, x: np.ndarray
) -> np.ndarray | None:
    s = part.longest_stretch()
    std = white_noise(x[s], part.rate, 2.0 * filter_.cutoff)
    if std is None or not std.any() or x.shape[1] != part.nv:
        return None
    model, weights, rng = estimate.model, estimate.weights, np.random.default_rng(0)
    if regressor_condition(model, estimate.training, weights)[1]:  # least squares have no answer, a prior has
        return None
    own = base_values(model, estimate.training, weights)
    shifts = []
    for _ in range(PAIRS):
        added = std * rng.normal(size=x.shape)
        for sign in (1.0, -1.0):
            noisy = filter_.filtered(derive(part, **{field: x + sign * added}))
            try:
                c = model.compress(derive(noisy, mask=training.used))
            except DataError:
                return None
            shifts.append(base_values(model, c, weights) - own)
    return np.mean(shifts, axis=0)
