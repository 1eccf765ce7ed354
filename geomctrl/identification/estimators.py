"""Estimators: from a log and a model to parameters, their uncertainty, and a robot.

All but `irls` and `iv` work on the triangular factors of a log (`model.Compressed`), so that what they cost does not
depend on its length. `fit(model, data, method)` is the front door.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

from .base_parameters import BaseParameters, combinations
from .dataset import Dataset
from .errors import DataError, ExcitationError
from .model import Compressed, RegressorModel

DEAD = 1e-10  # length of a column, of the longest, up to which it holds rounding errors only: a joint stood still
POOR = 1e-7  # relative singular value of the scaled base regressor below which parameters count as not excited


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Parameters x (size,) of a model, with what is known about them.

    x is full: where only combinations are determined, it is the choice nearest to the model's own parameters (or what
    the estimator's constraints and prior made of it). `covariance` (nb, nb) is of the base parameters `values`, None
    where the estimator has none (tls, consistent, manifold: their docstrings say why); `noise` (nv,): root mean square
    residual per joint, degrees of freedom counted [N m]; `correlation` (nv,): by how much correlated residuals inflate
    a variance.
    """

    model: RegressorModel
    method: str
    x: np.ndarray
    training: Compressed
    weights: np.ndarray
    noise: np.ndarray
    covariance: np.ndarray | None = None
    correlation: np.ndarray | None = None
    condition: float = np.nan
    notes: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        what = "physical" if self.is_physical else "not physical"
        return (
            f"<Estimate of {self.model.robot.name!r} by {self.method}: {self.base.size} base parameters, {what},"
            f" training error {100.0 * self.relative_error():.3g} %>"
        )

    @property
    def base(self) -> BaseParameters:
        return self.model.base

    @property
    def values(self) -> np.ndarray:
        """Base parameters (nb,)."""
        return self.base.projection @ self.x

    @property
    def std(self) -> np.ndarray | None:
        """Standard deviations of `values`, None where there is no covariance."""
        return None if self.covariance is None else np.sqrt(np.diag(self.covariance).clip(0.0))

    def intervals(self, level: float = 0.95) -> np.ndarray | None:
        """(nb, 2) confidence intervals of `values` under Gaussian noise, None where there is no covariance."""
        if not 0.0 < level < 1.0:
            raise ArgumentError(f"level: expected a probability between 0 and 1, got {level}")
        if self.std is None:
            return None
        from scipy.stats import norm

        half = norm.ppf(0.5 + 0.5 * level) * self.std
        return np.stack((self.values - half, self.values + half), -1)

    @cached_property
    def robot(self) -> Robot:
        """The model's robot with these inertial parameters; with this damping and friction, if friction is the
        joints' own.
        """
        robot = self.model.robot.with_parameters(self.x[: self.model.inertial], physical=False)
        changes: list[dict[str, float]] = [{} for _ in robot.joints]
        joint_of = [i for i, j in enumerate(robot.joints) for _ in range(j.dof)]
        for kind, key in self.held_by_robot.items():
            for i, k in zip(self.model._of(kind), self.model.acts[kind]):
                changes[joint_of[k]][key] = max(float(self.x[i]), 0.0)
        return replace(robot, joints=tuple(replace(j, **c) for j, c in zip(robot.joints, changes)))

    @property
    def held_by_robot(self) -> dict[str, str]:
        """Which parameters beside the inertial ones `robot` holds, {"viscous": "damping", ...}: friction at the joints
        themselves, where these have one degree of freedom each (but for a free base). Rotor inertias, offsets, springs
        and curves: none.
        """
        robot = self.model.robot
        several = any(j.dof > 1 and j.kind != "free" for j in robot.joints)
        if several or not np.array_equal(self.model.transmission, np.eye(robot.nv)):
            return {}
        return {"viscous": "damping", "coulomb": "friction"}

    @property
    def verdicts(self) -> dict[str, str | None]:
        """Per body, why no rigid body can have its parameters; None if one can, with mass in all three directions."""
        out = {}
        for name, pi in zip(self.model.robot.body_names, self.x[: self.model.inertial].reshape(-1, 10)):
            why = inertia.violation(pi)
            if why is None and not inertia.is_physical(pi, strict=True):
                why = "only just: a point mass, a rod, or nothing at all (pseudo-inertia singular)"
            out[name] = why
        return out

    @property
    def is_physical(self) -> bool:
        """Whether every body's pseudo-inertia is positive definite."""
        return all(why is None for why in self.verdicts.values())

    def predict(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Torques (N, nv) [N m]."""
        return self.model.torque(self.x, q, v, a)

    def relative_error(self, data: Dataset | Compressed | None = None) -> float:
        """|tau - tau_hat| / |tau| over all joints and used samples; default: of the training data."""
        return self._compressed(data).relative_error(self.x)

    def rms(self, data: Dataset | Compressed | None = None) -> np.ndarray:
        """Root mean square residual per joint (nv,) [N m]."""
        return self._compressed(data).rms(self.x)

    def _compressed(self, data):
        if data is None:
            return self.training
        return data if isinstance(data, Compressed) else self.model.compress(data)


def fit(model: RegressorModel, data: Dataset | Compressed, method: str = "ols", **options: Any) -> Estimate:
    """Estimate the model's parameters from a log; see the function of the method's name for its options.

    method: "ols", "wls", "irls", "tls", "ridge", "iv", "consistent" (semidefinite, physically consistent) or "manifold"
    (log-Cholesky, physically consistent without a semidefinite solver).
    """
    from .consistent import consistent, manifold

    methods: dict[str, Callable[..., Estimate]] = {
        "ols": ols, "wls": wls, "irls": irls, "tls": tls, "ridge": ridge, "iv": iv,
        "consistent": consistent, "manifold": manifold,
    }  # fmt: skip
    if method not in methods:
        raise ArgumentError(f"method: expected one of {', '.join(methods)}, got {method!r}")
    known = list(signature(methods[method]).parameters)[2:]
    for name in options:
        if name not in known:
            raise ArgumentError(f"options: {method} has no option {name!r}; known: {', '.join(known) or 'none'}")
    return methods[method](model, data, **options)


def compressed(model: RegressorModel, data: Dataset | Compressed) -> Compressed:
    """The log's factors, or what was given if it is that already."""
    if isinstance(data, Compressed):
        if data.model is not model:
            raise ArgumentError("data: was compressed for another model")
        return data
    return model.compress(data)


def excitation(
    model: RegressorModel, data: Dataset | Compressed, weights: ArrayLike | None = None
) -> tuple[float, list[str]]:
    """(condition number, directions that the log does not excite) of the base regressor with columns of unit length.

    A direction is written as the combination of base parameters that can be changed without changing torques.
    """
    A, _ = compressed(model, data).system(weights)
    A = A[:, model.base.columns]
    A = np.vstack((A, np.zeros((max(0, A.shape[1] - len(A)), A.shape[1]))))  # fewer rows than parameters
    length = np.linalg.norm(A, axis=0)
    longest = length.max(initial=0.0)
    names = model.base_names
    dead = length <= DEAD * longest
    words = [f"{names[k]}: the log does not move what it acts on" for k in np.flatnonzero(dead)]
    live = np.flatnonzero(~dead)
    if not len(live):
        return np.inf, words
    _, s, Vt = np.linalg.svd(A[:, live] / length[live], full_matrices=False)
    symbols = [names[k] if " " not in names[k] else f"({names[k]})" for k in live]
    for direction in Vt[s <= POOR * s[0]]:
        change = direction / length[live]
        change = np.where(np.abs(direction) > 0.05, change, 0.0)
        lead = int(np.argmax(np.abs(direction)))
        words.append(combinations((change / change[lead])[None], [lead], symbols)[0])
    return (np.inf if dead.any() else float(s[0] / max(s[-1], 1e-300))), words


def require_excitation(model: RegressorModel, data: Compressed, weights: ArrayLike | None = None) -> float:
    """The condition number; raises ExcitationError naming the parameters that can not be told apart."""
    condition, words = excitation(model, data, weights)
    if words:
        raise ExcitationError(
            f"too little excitation: {len(words)} of {model.base.size} base parameters can not be told apart: "
            + "; ".join(words[:8])
            + ("; ..." if len(words) > 8 else "")
            + " (use a richer trajectory, leave those columns out, or use ridge or consistent, which have a prior)"
        )
    return condition


def cross_validate(
    model: RegressorModel, folds: Sequence[Dataset | Compressed], method: str = "ols", **options: Any
) -> float:
    """|tau - tau_hat| / |tau| over all folds, each predicted from the others; folds should be stretches of time."""
    if len(folds) < 2:
        raise DataError(f"folds: expected at least two parts of the log, got {len(folds)}")
    parts = [compressed(model, f) for f in folds]
    error = size = 0.0
    for k, held in enumerate(parts):
        rest = [p for i, p in enumerate(parts) if i != k]
        x = fit(model, sum(rest[1:], start=rest[0]), method, **options).x
        error += float((held.residuals(x) ** 2).sum())
        size += float((held.norms**2).sum())
    return float(np.sqrt(error / size))


# --- linear estimators -------------------------------------------------------------------------------------------


def ols(model: RegressorModel, data: Dataset | Compressed) -> Estimate:
    """Ordinary least squares: minimises |Y x - tau| over all joints alike."""
    return _linear(model, data, np.ones(model.robot.nv), "ols")


def wls(model: RegressorModel, data: Dataset | Compressed, iterations: int = 5) -> Estimate:
    """Least squares with each joint weighted by one over its own noise, which is estimated in turn (Gautier 1997)."""
    if iterations < 1:
        raise ArgumentError(f"iterations: expected at least 1, got {iterations}")
    c = compressed(model, data)
    weights = np.ones(model.robot.nv)
    for _ in range(iterations):
        estimate = _solve(model, c, weights, "wls")
        weights = 1.0 / np.maximum(estimate.noise, 1e-12 * max(estimate.noise.max(), 1e-300))
    return _linear(model, data, weights, "wls", c)


def ridge(
    model: RegressorModel,
    data: Dataset | Compressed,
    prior: ArrayLike | None = None,
    strength: float = 1e-3,
    weights: ArrayLike | None = None,
) -> Estimate:
    """Minimises |w (Y x - tau)|^2 / |w tau|^2 + strength |S^-1 (x - prior)|^2 over all parameters.

    prior (size,): default the model's own parameters. S: the natural units of each parameter, see `natural_scale`.
    The covariance is of noise and of a prior that is itself off by S in every parameter, whatever the strength: with
    H = A^T A + strength S^-2, H^-1 (A^T V A + strength^2 S^-2) H^-1, the mean square error of ridge regression (Hoerl
    and Kennard 1970) for parameters N(prior, S^2). A posterior's H^-1 would take the strength for knowledge.
    """
    if not (np.isfinite(strength) and strength > 0.0):
        raise ArgumentError(f"strength: expected a positive number, got {strength}")
    c, x0 = compressed(model, data), _prior(model, prior)
    w = _weights(model, c, weights)
    A, b = c.system(w)
    size = np.linalg.norm(w * c.norms)
    scale, root = natural_scale(model, A, b), np.sqrt(strength)
    # in units of S: the unknown is (x - prior) / S
    A, b = A * scale / size, (b - A @ x0) / size
    rows = np.vstack((A, root * np.eye(model.size)))
    x = x0 + scale * np.linalg.lstsq(rows, np.concatenate((b, np.zeros(model.size))), rcond=None)[0]
    out = _finish(model, c, x, w, "ridge", condition=excitation(model, c, w)[0], notes={"strength": strength})
    correlation = autocorrelation_factor(model, x, data) if isinstance(data, Dataset) else None
    variance = out.noise**2 * (1.0 if correlation is None else correlation)
    V, _ = c.system(w**2 * np.sqrt(variance))  # its square is A^T V A
    R: Any = np.linalg.qr(rows, mode="r")
    sides = np.hstack(((V * scale / size**2).T, strength * np.eye(model.size)))
    half = model.base.projection @ (scale[:, None] * np.linalg.solve(R, np.linalg.solve(R.T, sides)))
    return replace(out, covariance=half @ half.T, correlation=correlation)


def tls(model: RegressorModel, data: Dataset | Compressed, weights: ArrayLike | None = None) -> Estimate:
    """Total least squares: errors in the regressor too, equally large in all columns once those have unit length.

    Offset columns are known exactly and stay so (Golub, Hoffman, Stewart 1987). No covariance: what is known of it is
    for errors in Y that are independent and alike in all columns, which filtered kinematics never are.
    """
    c = compressed(model, data)
    w = _weights(model, c, weights)
    condition = require_excitation(model, c, w)
    A, b = c.system(w)
    at = model.base.columns
    exact = np.array([model.kinds[k] in ("offset", "preload") for k in at])
    order = np.concatenate((np.flatnonzero(exact), np.flatnonzero(~exact)))
    W = A[:, at[order]]
    length = np.linalg.norm(W, axis=0)
    R: Any = np.linalg.qr(np.column_stack((W / length, b / np.linalg.norm(b))), mode="r")
    k = int(exact.sum())
    _, _, Vt = np.linalg.svd(R[k:, k:])
    v = Vt[-1]
    if abs(v[-1]) < 1e-12:
        raise ExcitationError(
            "total least squares has no solution: the torques are orthogonal to what the model explains"
        )
    free = -v[:-1] / v[-1]
    fixed = np.linalg.solve(R[:k, :k], R[:k, -1] - R[:k, k:-1] @ free) if k else np.zeros(0)
    values = np.empty(len(at))
    values[order] = np.concatenate((fixed, free)) / length * np.linalg.norm(b)
    return _finish(model, c, model.base.lift(values, model.prior), w, "tls", condition=condition)


def irls(
    model: RegressorModel, data: Dataset, loss: str = "huber", threshold: float | None = None, iterations: int = 15
) -> Estimate:
    """Iteratively reweighted least squares: joints by their noise, samples by how far off they are.

    loss: "huber" (threshold 1.345 robust standard deviations) or "bisquare" (4.685, forgets far outliers altogether).
    """
    if not isinstance(data, Dataset):
        raise ArgumentError("data: irls reads the samples again and again: expected a Dataset")
    if loss not in ("huber", "bisquare"):
        raise ArgumentError(f"loss: expected 'huber' or 'bisquare', got {loss!r}")
    c = threshold if threshold is not None else {"huber": 1.345, "bisquare": 4.685}[loss]
    if not (np.isfinite(c) and c > 0.0) or iterations < 1:
        raise ArgumentError(f"threshold, iterations: expected > 0 and >= 1, got {threshold} and {iterations}")
    first = model.compress(data)
    require_excitation(model, first)
    x = _solve(model, first, np.ones(model.robot.nv), "ols").x
    iteration = 0
    for iteration in range(iterations):  # noqa: B007
        _, tau, predicted, mask = model.predict(x, data)
        residual = tau - predicted
        spread = np.array([1.4826 * np.median(np.abs(r[m])) if m.any() else 1.0 for r, m in zip(residual.T, mask.T)])
        u = np.abs(residual) / np.maximum(c * spread, 1e-300)
        root = np.sqrt(1.0 / np.maximum(u, 1.0)) if loss == "huber" else np.clip(1.0 - u**2, 0.0, None)
        weighted = model.compress(data, weights=root / np.maximum(spread, 1e-300))
        estimate = _solve(model, weighted, np.ones(model.robot.nv), "irls")
        step = np.linalg.norm(model.base.projection @ (estimate.x - x)) / np.linalg.norm(model.base.projection @ x)
        x = estimate.x
        if step < 1e-8:
            break
    w = 1.0 / np.maximum(spread, 1e-300)
    out = _finish(model, first, x, w, "irls", notes={"loss": loss, "threshold": c, "iterations": iteration + 1})
    # Huber 1981, chapter 7: the covariance of an M-estimator, (E psi^2 / (E psi')^2) (A^T A)^-1
    psi = root**2 * residual / spread
    slope: Any = u <= 1.0 if loss == "huber" else np.where(u < 1.0, (1.0 - u**2) * (1.0 - 5.0 * u**2), 0.0)
    size = np.array(
        [np.mean(p[m] ** 2) / np.mean(s[m]) ** 2 if m.any() else 1.0 for p, s, m in zip(psi.T, slope.T, mask.T)]
    )
    correlation = autocorrelation_factor(model, x, data)
    covariance = _covariance(model, first, w, spread**2 * size * correlation)
    return replace(out, covariance=covariance, correlation=correlation, condition=excitation(model, first, w)[0])


def iv(
    model: RegressorModel, data: Dataset, instruments: Dataset | None = None, weights: ArrayLike | None = None
) -> Estimate:
    """Instrumental variables: x from Z^T (tau - Y x) = 0, unbiased where noise in q, v, a makes Y itself wrong.

    instruments: a log on the same time stamps whose errors are independent of this one's: the commanded trajectory, a
    second encoder, the other periods of a periodic motion (`period_instruments`, the default). Z is the regressor on
    it.
    """
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
    w = _weights(model, c, weights)
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
    out = _finish(model, c, model.base.lift(values, model.prior), w, "iv", condition=excitation(model, c, w)[0])
    correlation = autocorrelation_factor(model, out.x, data)
    variance = (w * out.noise) ** 2 * correlation
    inverse = np.linalg.inv(ZY / np.outer(scale, scale)) / np.outer(scale, scale)
    covariance = inverse @ np.einsum("k,kij->ij", variance, ZZ) @ inverse.T
    return replace(out, covariance=covariance, correlation=correlation)


def period_instruments(data: Dataset, period: float | None = None) -> Dataset:
    """For a periodic log: at every sample the mean of q, v, a at the same phase in all the *other* periods.

    Samples whose phase is there once are masked. Raises DataError, ArgumentError.
    """
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
    mask = np.asarray(data.mask) & (others[:, None] > 0)
    return replace(data, **out, mask=mask, label=f"{data.label}, other periods")


# --- shared --------------------------------------------------------------------------------------------------------


def natural_scale(model: RegressorModel, A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(size,) typical magnitudes of parameters.

    Inertial: m, m l, m l^2 of the robot's mean mass (1 kg if it has none) and the mean distance l between joints. The
    rest: what would explain the torques of a log A x = b on its own; 1 where the log does not move it.
    """
    robot = model.robot
    steps = np.linalg.norm(robot.placements[:, :3, 3], axis=1)
    length = max(float(steps[steps > 1e-6].mean()) if (steps > 1e-6).any() else 0.0, 0.05)
    mass = float(robot.parameters[:, 0].mean())
    mass = mass if mass > 1e-6 else 1.0
    lengths = np.linalg.norm(A, axis=0)
    moved = lengths > DEAD * lengths.max()
    scale = np.where(moved, np.linalg.norm(b) / np.where(moved, lengths, 1.0), 1.0)
    scale[: model.inertial] = np.tile(mass * np.array([1.0] + [length] * 3 + [length**2] * 6), robot.nbodies)
    return scale


def autocorrelation_factor(model: RegressorModel, x: np.ndarray, data: Dataset) -> np.ndarray:
    """1 + 2 sum of the residuals' autocorrelations up to the first that is negative, per joint (nv,), at least 1."""
    _, tau, predicted, mask = model.predict(x, data)
    residual = np.where(mask, tau - predicted, 0.0)
    out = np.ones(residual.shape[1])
    for k, r in enumerate(residual.T):
        rho = autocorrelation(r)
        negative = np.flatnonzero(rho < 0.0)
        out[k] = max(1.0, 1.0 + 2.0 * rho[1 : negative[0] if len(negative) else len(rho)].sum())
    return out


def autocorrelation(r: np.ndarray) -> np.ndarray:
    """Autocorrelation of a residual about zero, lags 0 to a quarter of its length (at most 2000)."""
    n = len(r)
    power = np.abs(np.fft.rfft(r, 2 * n)) ** 2
    lags = np.fft.irfft(power)[: max(2, min(n // 4, 2000))]
    return lags / lags[0] if lags[0] > 0.0 else np.eye(1, len(lags))[0]


def _linear(model, data, weights, method, c=None):
    """Least squares with a covariance; c: the factors of `data`, if at hand already."""
    c = compressed(model, data) if c is None else c
    condition = require_excitation(model, c, weights)
    out = _solve(model, c, weights, method)
    correlation = autocorrelation_factor(model, out.x, data) if isinstance(data, Dataset) else None
    inflation = np.ones(len(weights)) if correlation is None else correlation
    covariance = _covariance(model, c, out.weights, out.noise**2 * inflation)
    return replace(out, covariance=covariance, correlation=correlation, condition=condition)


def _solve(model, c, weights, method):
    require_excitation(model, c, weights)
    A, b = c.system(weights)
    W = A[:, model.base.columns]
    length = np.linalg.norm(W, axis=0)
    values = np.linalg.lstsq(W / length, b, rcond=None)[0] / length
    return _finish(model, c, model.base.lift(values, model.prior), weights, method)


def _finish(model, c, x, weights, method, **more) -> Estimate:
    dof = np.maximum(c.counts - model.base.size * c.counts / c.counts.sum(), 1.0)
    return Estimate(model, method, x, c, np.asarray(weights, float), c.residuals(x) / np.sqrt(dof), **more)


def _covariance(model, c, weights, variance):
    """(A^T W A)^-1 A^T W diag(variance) W A (A^T W A)^-1 of the base parameters, weights and variance per joint."""
    columns = model.base.columns
    W, _ = c.system(weights)
    V, _ = c.system(weights**2 * np.sqrt(variance))
    W, V = W[:, columns], V[:, columns]
    length = np.linalg.norm(W, axis=0)
    R: Any = np.linalg.qr(W / length, mode="r")
    half = np.linalg.solve(R, np.linalg.solve(R.T, (V / length).T))  # (R^T R)^-1 V^T
    return (half @ half.T) / np.outer(length, length)


def _weights(model, c, weights) -> np.ndarray:
    """None: 1; "noise": one over the noise that weighted least squares finds; or numbers, one a joint."""
    n = model.robot.nv
    if weights is None:
        return np.ones(n)
    if isinstance(weights, str):
        if weights != "noise":
            raise ArgumentError(f"weights: expected None, 'noise' or {n} numbers, got {weights!r}")
        return wls(model, c).weights
    w = np.asarray(weights, float)
    if w.shape not in ((), (n,)) or not np.isfinite(w).all() or (w <= 0.0).any():
        raise ArgumentError(f"weights: expected None, 'noise' or {n} positive numbers, got {weights!r}")
    return np.broadcast_to(w, (n,)).copy()


def _prior(model, prior) -> np.ndarray:
    if prior is None:
        return model.prior
    x = np.asarray(prior, float).ravel()
    if x.shape == (model.inertial,):
        x = np.concatenate((x, model.prior[model.inertial :]))
    if x.shape != (model.size,) or not np.isfinite(x).all():
        raise ArgumentError(
            f"prior: expected {model.size} finite parameters (or the {model.inertial} inertial ones), got"
            f" {np.shape(prior)}"
        )
    return x
