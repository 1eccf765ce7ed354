"""Rows of a log, and how explanations of an error change them.

Motion and torques are low-passed above the motion's bandwidth. Inertial columns of the regressor are smooth functions
of the motion; friction changes its sign within a sample, so its columns are low-passed like the torques.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np

from geomctrl.identification.logs import Dataset, filters
from geomctrl.identification.logs.parts import without_edges
from geomctrl.identification.logs.signals import motion_bandwidth
from geomctrl.identification.model.columns import coulomb
from geomctrl.identification.model.regressor_model import RegressorModel

MAX_ROWS = 500  # rows of a log in comparisons
SETTLING_PERIODS = 1.0  # periods of the low-pass that are left out at ends and gaps
MAX_KEPT = 64_000_000  # bytes of low-passed columns that are kept: most explanations change those of one or two joints


@dataclass(frozen=True, eq=False)
class Motion:
    """Every sample of a log: t (n,), q (n, nq), v, a (n, nv), its uninterrupted parts, and the low-pass (rate [Hz],
    cut-off [Hz]) applied to torques, or None.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    stretches: tuple[slice, ...]
    low_pass: tuple[float, float] | None
    _passed: dict[tuple, np.ndarray] = field(default_factory=dict)  # by low-pass and a hash of the columns

    def passed(self, x: np.ndarray) -> np.ndarray:
        """x (n, .) with the low-pass of the torques."""
        if self.low_pass is None or not x.size:
            return x
        key = self.low_pass, hashlib.sha256(x.tobytes()).digest()
        if key in self._passed:
            return self._passed[key]
        passed = np.concatenate([filters.low_pass(x[s], *self.low_pass) for s in self.stretches])
        if len(self._passed) * passed.nbytes < MAX_KEPT:
            self._passed[key] = passed
        return passed

    def at(self, times: np.ndarray, *signals: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """(mask of times within the log, signals (n, .) there, by cubics through four samples)."""
        after = np.clip(np.searchsorted(self.t, times), 2, len(self.t) - 2)
        four = after[:, None] + np.arange(-2, 2)
        steps = np.diff(self.t[four], axis=1)
        is_recorded = (
            (times >= self.t[0]) & (times <= self.t[-1]) & (steps.max(axis=1) < 1.5 * np.median(np.diff(self.t)))
        )
        share = (times - self.t[four[:, 1]]) / steps[:, 1]
        weigh = np.stack(
            [np.prod([(share - j) / (k - j) for j in range(-1, 3) if j != k], axis=0) for k in range(-1, 3)], -1
        )
        nearest = np.clip(np.round(share).astype(int) + 1, 0, 3)
        weigh = np.where(is_recorded[:, None], weigh, np.eye(4)[nearest])
        return is_recorded, [np.einsum("nk,nkj->nj", weigh, x[four]) for x in signals]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a log: t (n,), q (n, nq), v, a, tau (n, nv), which torques are used (n, nv), the motion of every sample,
    the period [s] of a motion that repeats, and the time [s] by which the rows' motion precedes their torques.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    used: np.ndarray
    motion: Motion | None = None
    period: float | None = None
    lag: float = 0.0
    _regressors: dict[int, np.ndarray] = field(default_factory=dict)  # of this motion, by the id of the model

    @property
    def order(self) -> np.ndarray:
        """Row numbers (n,) in the order of the motion: by time, or by phase if the motion repeats."""
        return in_order(self.t, self.period)

    @property
    def repeats(self) -> np.ndarray:
        """Phase interval of each row (n,), about one row of every period in each; each row alone without a period."""
        if self.period is None:
            return np.arange(len(self.t))
        intervals = max(1, round(len(self.t) / max(1.0, np.ceil((self.t[-1] - self.t[0]) / self.period))))
        return np.argsort(self.order) * intervals // len(self.t)

    def torques(self, model: RegressorModel) -> np.ndarray:
        """The torques (n, nv) that the model's columns explain: without those of the known armature."""
        return self.tau - self.a * model.known_armature

    def regressor(self, model: RegressorModel) -> np.ndarray:
        """Regressor of the base parameters (n, nv, nb)."""
        if id(model) not in self._regressors:
            Y = model.regressor(self.q, self.v, self.a)
            if self.motion is not None and self.motion.low_pass is not None:
                self._pass_friction(model, self.motion, Y)
            self._regressors[id(model)] = Y[..., model.base.columns]
        return self._regressors[id(model)]

    def _pass_friction(self, model: RegressorModel, motion: Motion, Y: np.ndarray) -> None:
        """Low-pass the columns after the inertial ones, which may change as fast as friction does."""
        for k, (parameters, own) in enumerate(zip(model.active, model._own_columns(motion.q, motion.v, motion.a))):
            _, (passed,) = motion.at(self.t - self.lag, motion.passed(own.T))
            Y[:, k, parameters[len(parameters) - len(own) :]] = passed

    def steps(self, smoothing: float) -> np.ndarray:
        """(n, nv): Coulomb friction of unit size, low-passed as the torques are."""
        if self.motion is None:
            return coulomb(self.v, smoothing)
        return self.motion.at(self.t - self.lag, self.motion.passed(coulomb(self.motion.v, smoothing)))[1][0]

    def with_motion(self, T: np.ndarray) -> Rows:
        """Rows with joint coordinates T q, T (nv, nv)."""
        m = self.motion
        m = None if m is None else replace(m, q=m.q @ T.T, v=m.v @ T.T, a=m.a @ T.T)
        return replace(self, q=self.q @ T.T, v=self.v @ T.T, a=self.a @ T.T, motion=m, _regressors={})

    def shifted(self, offset: np.ndarray) -> Rows:
        """Rows with positions q + offset (nv,)."""
        m = self.motion
        m = None if m is None else replace(m, q=m.q + offset)
        return replace(self, q=self.q + offset, motion=m, _regressors={})

    def with_torques(self, T: np.ndarray) -> Rows:
        """Rows with torques T tau, used if all torques that enter are used."""
        used = ~((~self.used).astype(float) @ (T != 0.0).T > 0.0)
        return replace(self, tau=self.tau @ T.T, used=used)

    def delayed(self, seconds: float) -> Rows:
        """Rows with the motion of `seconds` earlier. Torques are not used if the log has no motion there."""
        m, lag = self.motion, self.lag + seconds
        if m is None:
            return self
        is_recorded, (q, v, a) = m.at(self.t - lag, m.q, m.v, m.a)
        return replace(self, q=q, v=v, a=a, used=self.used & is_recorded[:, None], lag=lag, _regressors={})


def in_order(t: np.ndarray, period: float | None) -> np.ndarray:
    """Numbers of samples (n,) in the order of time, or of phase if the motion repeats."""
    return np.arange(len(t)) if period is None else np.argsort(t % period, kind="stable")


def cutoff_of(data: Dataset, positions: float = 0.0) -> float | None:
    """Cut-off [Hz] of rows of a filtered log, None to leave them as they are: the motion's bandwidth, unless positions
    have a lower cut-off. A model that explains little may have chosen a wrong cut-off for the torques."""
    if data.band is None:
        return None
    return max(data.band[0], min(max(positions, data.band[0]), motion_bandwidth(data), 0.4 * data.rate))


def rows_of(
    data: Dataset, among: np.ndarray, cutoff: float | None, positions: float = np.inf, period: float | None = None
) -> Rows:
    """At most MAX_ROWS rows, evenly spread over these samples of a filtered log; torques low-passed at a cut-off [Hz],
    and the motion too, if positions had a higher one; period [s]: of a motion that repeats."""
    samples = among[np.unique(np.linspace(0, len(among) - 1, min(len(among), MAX_ROWS)).astype(int))]
    q, v, a, tau = (np.asarray(x) for x in (data.q, data.v, data.a, data.tau))
    used, motion = data.used[samples], Motion(np.asarray(data.t), q, v, a, tuple(data.stretches), None)
    if cutoff is not None:
        motion = replace(motion, low_pass=(data.rate, cutoff))
        settled = used & without_edges(data, SETTLING_PERIODS / cutoff).used[samples]
        used = settled if 2 * settled.sum() > used.sum() else used
        tau = motion.passed(tau)
        if q.shape[1] == data.nv and cutoff < positions:
            motion = replace(motion, q=motion.passed(q), v=motion.passed(v), a=motion.passed(a))
    q, v, a = (np.array(x[samples]) for x in (motion.q, motion.v, motion.a))
    return Rows(motion.t[samples], q, v, a, np.array(tau[samples]), used, motion, period)
