"""Which torque samples not to trust: at the actuators' limits, spikes, joints that stand."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, number
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

from .samples import Log, derive


def without_saturation(data: Log, effort: ArrayLike, margin: float = 0.99, widen: float = 0.0) -> Log:
    """Torque samples at or above `margin` times `effort` (nv,) [N m] masked, `widen` seconds around them too."""
    limit, margin = _per_joint(data, "effort", effort), number("margin", margin, "a number > 0", lambda x: x > 0.0)
    return _masked(data, np.abs(data.tau) >= margin * limit, widen, "saturated")


def without_outliers(data: Log, threshold: float = 6.0, window: float = 0.05, widen: float = 0.0) -> Log:
    """Torque spikes masked: further than `threshold` robust standard deviations from a running median [s]."""
    from scipy.ndimage import median_filter

    threshold = number("threshold", threshold, "a number > 0", lambda x: x > 0.0)
    window = number("window", window, "a number > 0", lambda x: x > 0.0)
    size = 2 * max(1, round(0.5 * window * data.rate)) + 1
    bad = np.zeros_like(data.used)
    for s in data.stretches():
        off = np.abs(data.tau[s] - median_filter(data.tau[s], size=(size, 1), mode="nearest"))
        # on a steep slope the running median is the sample itself: noise shows in second differences too
        spread = 1.4826 * np.maximum(
            np.median(off, axis=0), np.median(np.abs(np.diff(data.tau[s], 2, axis=0)), axis=0) / np.sqrt(6.0)
        )
        floor = 1e-9 * np.maximum(np.abs(data.tau[s]).max(0), 1e-300)
        bad[s] = off > threshold * np.maximum(spread, floor)
    return _masked(data, bad, widen, "outlying")


def without_standstill(data: Log, speed: ArrayLike, widen: float = 0.0) -> Log:
    """Mask, per joint, samples at which it is slower than `speed` [rad/s]: stiction is not Coulomb friction."""
    if data.v is None:
        raise DataError(f"{data.label}: velocities are needed: filter the log first")
    return _masked(data, np.abs(data.v) < _per_joint(data, "speed", speed), widen, "standing")


def _per_joint(data, name, given):
    x = checked(name, given, (), finite=False)
    if x.shape not in ((), (data.nv,)) or np.isnan(x).any() or (x < 0.0).any():
        raise ArgumentError(f"{name}: expected a number >= 0 or {data.nv}, one a joint, got {given!r}")
    return np.broadcast_to(x, (data.nv,))


def _masked(data, bad, widen, word):
    widen = number("widen", widen, "seconds >= 0", lambda x: x >= 0.0)
    reach = round(widen * data.rate) if widen else 0  # samples
    if reach:
        from scipy.ndimage import binary_dilation

        for s in data.stretches():
            bad[s] = binary_dilation(bad[s], np.ones((2 * reach + 1, 1), bool))
    note = f"{int((bad & data.used).sum())} {word} torque samples masked"
    return derive(data, mask=data.used & ~bad, history=(*data.history, note))
