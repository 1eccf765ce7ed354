"""Least squares, joints alike or weighted by their noise, and what other estimators take from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomctrl.arguments import checked, count
from geomctrl.errors import ArgumentError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.compressed import Compressed, per_joint
from geomctrl.identification.model.regressor_model import RegressorModel

from .conditioning import check, compressed, require_excitation
from .estimate import Estimate
from .estimator import Estimator
from .leave_out import scatter
from .residuals import autocorrelation_factor


def ols(model: RegressorModel, data: Dataset | Compressed) -> Estimate:
    """Ordinary least squares: minimises |Y x - tau| over all joints alike."""
    check(model, data)
    return linear(model, data, np.ones(model.robot.nv), "ols")


def wls(model: RegressorModel, data: Dataset | Compressed, iterations: int = 5) -> Estimate:
    """Least squares with each joint weighted by one over its own noise, which is estimated in turn (Gautier 1997)."""
    iterations = count("iterations", iterations, 1)
    c = compressed(model, data)
    weights = np.ones(model.robot.nv)
    for _ in range(iterations):
        estimate = solve(model, c, weights, "wls")
        weights = 1.0 / np.maximum(estimate.noise, 1e-12 * max(estimate.noise.max(), 1e-300))
    return linear(model, data, weights, "wls", c)


OLS = Estimator("ols", ols, "least squares", needs_samples=True)
WLS = Estimator("wls", wls, "least squares, joints weighted by their noise", needs_samples=True)


# --- pieces --------------------------------------------------------------------------------------------------------


def linear(
    model: RegressorModel, data: Dataset | Compressed, weights: np.ndarray, method: str, c: Compressed | None = None
) -> Estimate:
    """Least squares with a covariance; c: the factors of `data`, if at hand already."""
    c = compressed(model, data) if c is None else c
    condition = require_excitation(model, c, weights)
    out = solve(model, c, weights, method)
    correlation = autocorrelation_factor(model, out.x, data) if isinstance(data, Dataset) else None
    inflation = np.ones(len(weights)) if correlation is None else correlation
    covariance, dof = covariance_of(model, c, out.weights, out.noise**2 * inflation), np.inf
    if isinstance(data, Dataset):
        factor, dof = scatter(model, data, Normal(model, weights, out.noise**2 * inflation))
        covariance = covariance * np.outer(factor, factor)
    return replace(out, covariance=covariance, dof=dof, correlation=correlation, condition=condition)


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
    """`leave_out.Linear` of least squares; variance per joint (nv,)."""

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
    """None: 1; "noise": one over the noise that weighted least squares finds; or numbers, one a joint."""
    n = model.robot.nv
    if weights is None:
        return np.ones(n)
    if isinstance(weights, str):
        if weights != "noise":
            raise ArgumentError(f"weights: expected None, 'noise' or {n} numbers, got {weights!r}")
        return wls(model, c).weights
    w = per_joint("weights", weights, n)
    if (w <= 0.0).any():
        raise ArgumentError(f"weights: expected None, 'noise' or {n} positive numbers, got {weights!r}")
    return np.broadcast_to(w, (n,)).copy()


def prior_of(model, prior) -> np.ndarray:
    if prior is None:
        return model.prior
    x = checked("prior", prior, ()).ravel()
    if x.shape == (model.inertial,):
        x = np.concatenate((x, model.prior[model.inertial :]))
    if x.shape != (model.size,) or not np.isfinite(x).all():
        raise ArgumentError(
            f"prior: expected {model.size} finite parameters (or the {model.inertial} inertial ones), got"
            f" {np.shape(prior)}"
        )
    return x
