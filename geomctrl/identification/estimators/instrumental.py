"""Instrumental variables: for noise in positions, velocities and accelerations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.errors import ArgumentError
from geomctrl.identification.data import Dataset
from geomctrl.identification.data.samples import derive
from geomctrl.identification.errors import DataError
from geomctrl.identification.model import RegressorModel

from .conditioning import POOR, check, excitation, require_excitation
from .estimate import Estimate
from .estimator import Estimator
from .least_squares import finish, weights_of
from .leave_out import STRETCHES, jackknife
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
    c = model.compress(data)
    w = weights_of(model, c, weights)
    require_excitation(model, model.compress(instruments))
    parts = _moments(model, data, instruments, w)
    whole = reduce(add, parts)
    values = whole.values()
    out = finish(model, c, model.base.lift(values, model.prior), w, "iv", condition=excitation(model, c, w)[0])
    correlation = autocorrelation_factor(model, out.x, data)
    estimator = _Instruments((w * out.noise) ** 2 * correlation)
    half = estimator.solve(whole)[1] @ estimator.noise(whole).T
    factor, dof = np.ones(len(values)), np.inf
    rests = [reduce(add, parts[:k] + parts[k + 1 :]) for k in range(len(parts))]
    if all(rest.determined for rest in rests):
        factor, dof = jackknife(whole, rests, estimator)
    covariance = half @ half.T * np.outer(factor, factor)
    return replace(out, covariance=covariance, dof=dof, correlation=correlation)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums over rows of a log: Z^T Y (nb, nb), Z^T tau (nb,), and of each joint's rows Z^T Z (nv, nb, nb)."""

    ZY: np.ndarray
    Zt: np.ndarray
    ZZ: np.ndarray

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(self.ZY + other.ZY, self.Zt + other.Zt, self.ZZ + other.ZZ)

    @property
    def scale(self) -> np.ndarray:
        """(nb,) lengths of the columns of Z."""
        return np.sqrt(np.einsum("kii->i", self.ZZ))

    @property
    def determined(self) -> bool:
        """Whether the rows tell all base parameters apart, by Z^T Y of columns of unit length."""
        d = self.scale
        if not (d > 0.0).all():
            return False
        s = np.linalg.svd(self.ZY / np.outer(d, d), compute_uv=False)
        return bool(s[-1] > POOR * s[0])

    def values(self) -> np.ndarray:
        d = self.scale
        return np.linalg.solve(self.ZY / np.outer(d, d), self.Zt / d) / d


@dataclass(frozen=True, eq=False)
class _Instruments:
    """`leave_out.Linear` of it; variance of each joint's weighted rows (nv,)."""

    variance: np.ndarray

    def solve(self, c: _Moments) -> tuple[np.ndarray, np.ndarray]:
        d = c.scale
        return c.values(), np.linalg.inv(c.ZY / np.outer(d, d)) / np.outer(d, d)

    def noise(self, c: _Moments) -> np.ndarray:
        d = c.scale
        power, directions = np.linalg.eigh(np.einsum("k,kij->ij", self.variance, c.ZZ) / np.outer(d, d))
        return (np.sqrt(power.clip(0.0)) * directions).T * d


def _moments(model: RegressorModel, data: Dataset, instruments: Dataset, w: np.ndarray) -> list[_Moments]:
    """Of each of STRETCHES[0] stretches of the log with as many used rows."""
    at, nb, n, K = model.base.columns, model.base.size, model.robot.nv, STRETCHES[0]
    rows = model.rows(data)
    used = np.cumsum(data.used[rows].any(axis=1))
    label = np.minimum((used - 1).clip(0) * K // max(int(used[-1]), 1), K - 1)
    out = [_Moments(np.zeros((nb, nb)), np.zeros(nb), np.zeros((n, nb, nb))) for _ in range(K)]
    done = 0
    for (Y, tau, mask, _), (Z, _, zmask, _) in zip(model.chunks(data), model.chunks(instruments)):
        use = (mask & zmask) * w
        Y, Z, tau = Y[..., at] * use[..., None], Z[..., at] * use[..., None], tau * use
        here = label[done : done + len(tau)]
        done += len(tau)
        for k in np.unique(here):
            y, z, b = Y[here == k], Z[here == k], tau[here == k]
            sums = (np.einsum("nki,nkj->ij", z, y), np.einsum("nki,nk->i", z, b), np.einsum("nki,nkj->kij", z, z))
            out[k] = out[k] + _Moments(*sums)
    return out


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
