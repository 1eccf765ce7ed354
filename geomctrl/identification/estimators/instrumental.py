"""Instrumental variables: for noise in positions, velocities and accelerations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.errors import ArgumentError
from geomctrl.identification.data import Dataset
from geomctrl.identification.data.samples import derive
from geomctrl.identification.errors import DataError
from geomctrl.identification.model import RegressorModel

from .conditioning import check, excitation, require_excitation
from .estimate import Estimate
from .estimator import Estimator
from .least_squares import finish, weights_of
from .residuals import autocorrelation_factor


def iv(
    model: RegressorModel, data: Dataset, instruments: Dataset | None = None, weights: ArrayLike | None = None
) -> Estimate:
    """Instrumental variables: x from Z^T (tau - Y x) = 0, unbiased where noise in q, v, a makes Y itself wrong.

    instruments: a log on the same time stamps whose errors are independent of this one's: the commanded trajectory, a
    second encoder, the other periods of a periodic motion (`period_instruments`, the default). Z is the regressor on
    it.
    """
    check(model, data)
    if instruments is None and isinstance(data, Dataset):
        instruments = period_instruments(data)
    if not isinstance(data, Dataset) or not isinstance(instruments, Dataset):
        raise ArgumentError("data, instruments: expected two Datasets on the same time stamps")
    if len(data) != len(instruments) or not np.allclose(data.t, instruments.t, atol=1e-3 / data.rate):
        raise DataError("instruments: expected the time stamps of data")
    if (data.band, data.stride, data.gaps) != (instruments.band, instruments.stride, instruments.gaps):
        raise DataError("instruments: expected the filter, decimation and gaps of data")
    at, nb, n = model.base.columns, model.base.size, model.robot.nv
    c = model.compress(data)
    w = weights_of(model, c, weights)
    require_excitation(model, model.compress(instruments))
    ZY, Zt, ZZ = np.zeros((nb, nb)), np.zeros(nb), np.zeros((n, nb, nb))
    for (Y, tau, mask, _), (Z, _, zmask, _) in zip(model.chunks(data), model.chunks(instruments)):
        use = (mask & zmask) * w
        Y, Z = Y[..., at] * use[..., None], Z[..., at] * use[..., None]
        ZY += np.einsum("nki,nkj->ij", Z, Y)
        Zt += np.einsum("nki,nk->i", Z, tau * use)
        ZZ += np.einsum("nki,nkj->kij", Z, Z)
    scale = np.sqrt(np.diag(ZZ.sum(0)))
    values = np.linalg.solve(ZY / np.outer(scale, scale), Zt / scale) / scale
    out = finish(model, c, model.base.lift(values, model.prior), w, "iv", condition=excitation(model, c, w)[0])
    correlation = autocorrelation_factor(model, out.x, data)
    variance = (w * out.noise) ** 2 * correlation
    inverse = np.linalg.inv(ZY / np.outer(scale, scale)) / np.outer(scale, scale)
    covariance = inverse @ np.einsum("k,kij->ij", variance, ZZ) @ inverse.T
    return replace(out, covariance=covariance, correlation=correlation)


def period_instruments(data: Dataset, period: float | None = None) -> Dataset:
    """For a periodic log: at every sample the mean of q, v, a at the same phase in all the *other* periods.

    Samples whose phase is there once are masked. Raises DataError, ArgumentError.
    """
    instance("data", data, Dataset, "a Dataset")
    period = data.require_period(period)
    if data.v is None or data.a is None or data.q.shape[1] != data.nv:
        raise DataError(f"{data.label}: expected a filtered log of joints with one degree of freedom")
    n, span = round(period * data.rate), float(data.t[-1] - data.t[0])
    if n < 1 or span < period:
        raise DataError(f"{data.label}: expected more than one period of {period:.4g} s, got {span:.4g} s")
    if abs(period * data.rate - n) * span / period > 0.5:
        raise DataError(
            f"{data.label}: a period of {period:.6g} s is {period * data.rate:.6g} samples: expected a whole number, so"
            " that periods can be compared sample by sample; use resampled(rate)"
        )
    phase = np.round((data.t - data.t[0]) * data.rate).astype(int) % n
    others = np.bincount(phase, minlength=n)[phase] - 1
    if not others.any():
        raise DataError(f"{data.label}: no phase of the period of {period:.4g} s is there twice")
    out = {}
    for key in ("q", "v", "a"):
        x = getattr(data, key)
        total = np.zeros((n, x.shape[1]))
        np.add.at(total, phase, x)
        out[key] = np.where(others[:, None] > 0, (total[phase] - x) / np.maximum(others, 1)[:, None], x)
    mask = data.used & (others[:, None] > 0)
    return derive(data, **out, mask=mask, label=f"{data.label}, other periods")


IV = Estimator(
    "iv",
    iv,
    "instrumental variables, for trajectories that repeat",
    needs_samples=True,
    from_period={"instruments": period_instruments},
)
