"""Least squares: equal or noise-weighted joints, or with a prior (ridge)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, number, one_or_each, positive
from geomctrl.errors import ArgumentError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel

from .conditioning import (
    autocorrelation_factor,
    compressed,
    natural_scale,
    regressor_condition,
    require_excitation,
)
from .estimate import Estimate, Estimator, Uncertainty
from .folds import scatter


def ols(model: RegressorModel, data: Dataset | Compressed) -> Estimate:
    """Ordinary least squares: minimises |Y x - tau| with equal weights of all joints."""
    c = compressed(model, data)
    return linear(model, data, np.ones(model.robot.nv), "ols", c)


def wls(model: RegressorModel, data: Dataset | Compressed, iterations: int = 5) -> Estimate:
    """Least squares with each joint weighted by the inverse of its noise, estimated iteratively (Gautier 1997)."""
    iterations = count("iterations", iterations, 1)
    c = compressed(model, data)
    weights = np.ones(model.robot.nv)
    for _ in range(iterations):
        estimate = solve(model, c, weights, "wls")
        noise = np.maximum(estimate.noise, 1e-6 * max(estimate.noise.max(), 1e-300))  # a torque may never change
        weights = 1.0 / noise
    return linear(model, data, weights, "wls", c)


OLS = Estimator("ols", ols, "least squares", needs_samples=True)
WLS = Estimator("wls", wls, "least squares, joints weighted by their noise", needs_samples=True)


# --- pieces --------------------------------------------------------------------------------------------------------


def linear(
    model: RegressorModel, data: Dataset | Compressed, weights: np.ndarray, method: str, c: Compressed | None = None
) -> Estimate:
    """Least squares with a covariance; c: the factors of `data`, if already computed."""
    c = compressed(model, data) if c is None else c
    condition = require_excitation(model, c, weights)
    out = solve(model, c, weights, method)
    correlation = autocorrelation_factor(model, out.x, data) if isinstance(data, Dataset) else None
    inflation = np.ones(len(weights)) if correlation is None else correlation
    covariance, dof = covariance_of(model, c, out.weights, out.noise**2 * inflation), np.inf
    if isinstance(data, Dataset):
        factor, dof = scatter(model, data, Normal(model, weights, out.noise**2 * inflation))
        covariance = covariance * np.outer(factor, factor)
    return replace(out, uncertainty=Uncertainty(covariance, dof, correlation), condition=condition)


def solve(model, c, weights, method):
    require_excitation(model, c, weights)
    return finish(model, c, model.base.lift(base_values(model, c, weights), model.prior), weights, method)


def base_values(model, c, weights) -> np.ndarray:
    """Base parameters (nb,) of least squares."""
    A, b = c.system(weights)
    W = A[:, model.base.columns]
    length = np.linalg.norm(W, axis=0)
    return np.linalg.lstsq(W / length, b, rcond=None)[0] / length


@dataclass(frozen=True, eq=False)
class Normal:
    """`folds.Linear` of least squares; variance per joint (nv,)."""

    model: RegressorModel
    weights: np.ndarray
    variance: np.ndarray

    def solve(self, c: Compressed) -> tuple[np.ndarray, np.ndarray]:
        A, _ = c.system(self.weights)
        W = A[:, self.model.base.columns]
        length = np.linalg.norm(W, axis=0)
        R: Any = np.linalg.qr(W / length, mode="r")
        root = np.linalg.inv(R) / length[:, None]
        return base_values(self.model, c, self.weights), root @ root.T

    def noise(self, c: Compressed) -> np.ndarray:
        return c.system(self.weights**2 * np.sqrt(self.variance))[0][:, self.model.base.columns]


def finish(model, c, x, weights, method, **more) -> Estimate:
    dof = np.maximum(c.counts - model.base.size * c.counts / c.counts.sum(), 1.0)
    return Estimate(model, method, x, c, np.asarray(weights, float), c.residuals(x) / np.sqrt(dof), **more)


def covariance_of(model, c, weights, variance):
    """(A^T W A)^-1 A^T W diag(variance) W A (A^T W A)^-1 of the base parameters, weights and variance per joint."""
    columns = model.base.columns
    W, _ = c.system(weights)
    V, _ = c.system(weights**2 * np.sqrt(variance))
    W, V = W[:, columns], V[:, columns]
    length = np.linalg.norm(W, axis=0)
    R: Any = np.linalg.qr(W / length, mode="r")
    half = np.linalg.solve(R, np.linalg.solve(R.T, (V / length).T))  # (R^T R)^-1 V^T
    return (half @ half.T) / np.outer(length, length)


def weights_of(model, c, weights) -> np.ndarray:
    """None: 1; "noise": the inverse of the noise that weighted least squares estimate; or one number per joint."""
    n = model.robot.nv
    if weights is None:
        return np.ones(n)
    if isinstance(weights, str):
        if weights != "noise":
            raise ArgumentError(f"weights: expected None, 'noise' or {n} numbers, got {weights!r}")
        return wls(model, c).weights
    return one_or_each("weights", weights, n, "None, 'noise' or a number > 0", positive)


def prior_of(model, prior) -> np.ndarray:
    if prior is None:
        return model.prior
    x = checked("prior", prior, ())
    if x.shape in ((model.inertial,), (model.inertial // 10, 10)):  # the transpose has as many numbers
        x = np.concatenate((x.ravel(), model.prior[model.inertial :]))
    if x.shape != (model.size,):
        raise ArgumentError(
            f"prior: expected {model.size} finite parameters (or the {model.inertial} inertial ones, (nbodies, 10) or"
            f" one after the other), got {x.shape}"
        )
    return x


# --- ridge regression ------------------------------------------------------------------------------------------------


def ridge(
    model: RegressorModel,
    data: Dataset | Compressed,
    prior: ArrayLike | None = None,
    strength: float = 1e-3,
    weights: ArrayLike | None = None,
) -> Estimate:
    """Minimises |w (Y x - tau)|^2 / |w tau|^2 + strength |S^-1 (x - prior)|^2 over all parameters."""
    strength = number("strength", strength, "a positive number", lambda x: x > 0.0)
    c, x0 = compressed(model, data), prior_of(model, prior)
    w = weights_of(model, c, weights)
    size = np.linalg.norm(w * c.norms)
    scale = natural_scale(model, *c.system(w))
    x, rows = _solution(c, w, x0, scale, strength)
    out = finish(model, c, x, w, "ridge", condition=regressor_condition(model, c, w)[0], notes={"strength": strength})
    correlation = autocorrelation_factor(model, x, data) if isinstance(data, Dataset) else None
    variance = out.noise**2 * (1.0 if correlation is None else correlation)
    V, _ = c.system(w**2 * np.sqrt(variance))  # its square is A^T V A
    R: Any = np.linalg.qr(rows, mode="r")
    noise, bias = (
        model.base.projection @ (scale[:, None] * np.linalg.solve(R, np.linalg.solve(R.T, side)))
        for side in ((V * scale / size**2).T, strength * np.eye(model.size))
    )
    covariance, dof = noise @ noise.T, np.inf
    if isinstance(data, Dataset):
        factor, dof = scatter(model, data, _Ridge(model, w, x0, scale, strength, variance), prior=True)
        covariance = covariance * np.outer(factor, factor)
    return replace(out, uncertainty=Uncertainty(covariance + bias @ bias.T, dof, correlation))


def _solution(c, w, x0, scale, strength) -> tuple[np.ndarray, np.ndarray]:
    """(x (size,), the rows of its least squares problem) in units of S: the unknown is (x - prior) / S."""
    A, b = c.system(w)
    size = np.linalg.norm(w * c.norms)
    A, b = A * scale / size, (b - A @ x0) / size
    rows = np.vstack((A, np.sqrt(strength) * np.eye(len(x0))))
    return x0 + scale * np.linalg.lstsq(rows, np.concatenate((b, np.zeros(len(x0)))), rcond=None)[0], rows


@dataclass(frozen=True, eq=False)
class _Ridge:
    """`folds.Linear` of ridge."""

    model: RegressorModel
    weights: np.ndarray
    prior: np.ndarray
    scale: np.ndarray
    strength: float
    variance: np.ndarray

    def solve(self, c: Compressed) -> tuple[np.ndarray, np.ndarray]:
        x, rows = _solution(c, self.weights, self.prior, self.scale, self.strength)
        R: Any = np.linalg.qr(rows, mode="r")
        root = self.scale[:, None] * np.linalg.inv(R)
        base = self.model.base.projection
        return base @ x, base @ (root @ root.T) / np.linalg.norm(self.weights * c.norms) ** 2

    def noise(self, c: Compressed) -> np.ndarray:
        return c.system(self.weights**2 * np.sqrt(self.variance))[0]


RIDGE = Estimator(
    "ridge",
    ridge,
    "least squares, drawn towards the model's parameters",
    needs_samples=True,
    prior_weight="strength",
    uncertainty="std and intervals are of noise, and of a prior off by its natural units in every parameter",
)
