"""Iteratively reweighted least squares: robust to outliers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from geomctrl.arguments import choice, count, number
from geomctrl.errors import ArgumentError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.regressor_model import RegressorModel

from .conditioning import check, regressor_condition, require_excitation
from .estimate import Estimate
from .estimator import Estimator
from .least_squares import Normal, covariance_of, finish, solve
from .leave_out import scatter
from .residuals import autocorrelation_factor

CONVERGED = 1e-6
TAIL = 0.01  # the least derivative of psi: rows beyond the threshold keep their pull, and next to no weight


def irls(
    model: RegressorModel, data: Dataset, loss: str = "huber", threshold: float | None = None, iterations: int = 50
) -> Estimate:
    """Iteratively reweighted least squares: joints by their noise, samples by how far off they are.

    loss: "huber" (threshold 1.345 robust standard deviations) or "bisquare" (4.685, forgets far outliers altogether).
    Converged, as `notes` say: the last of so many iterations changed base parameters by less than 1e-6 of their norm.
    """
    check(model, data)
    if not isinstance(data, Dataset):
        raise ArgumentError("data: irls reads the samples again and again: expected a Dataset")
    choice("loss", loss, ("huber", "bisquare"))
    threshold = None if threshold is None else number("threshold", threshold, "a number > 0", lambda x: x > 0.0)
    iterations = count("iterations", iterations, 1)
    c = threshold if threshold is not None else {"huber": 1.345, "bisquare": 4.685}[loss]
    first = model.compress(data)
    require_excitation(model, first)
    x = solve(model, first, np.ones(model.robot.nv), "ols").x
    iteration, step = 0, np.inf
    for iteration in range(iterations):  # noqa: B007
        _, tau, predicted, mask = model.predict(x, data)
        residual = tau - predicted
        spread = np.array([1.4826 * np.median(np.abs(r[m])) if m.any() else 1.0 for r, m in zip(residual.T, mask.T)])
        u = np.abs(residual) / np.maximum(c * spread, 1e-300)
        root = np.sqrt(1.0 / np.maximum(u, 1.0)) if loss == "huber" else np.clip(1.0 - u**2, 0.0, None)
        weighted = model.compress(data, weights=root / np.maximum(spread, 1e-300))
        estimate = solve(model, weighted, np.ones(model.robot.nv), "irls")
        step = np.linalg.norm(model.base.projection @ (estimate.x - x)) / np.linalg.norm(model.base.projection @ x)
        x = estimate.x
        if step < CONVERGED:
            break
    w = 1.0 / np.maximum(spread, 1e-300)
    notes = {"loss": loss, "threshold": c, "iterations": iteration + 1, "converged": bool(step < CONVERGED)}
    out = finish(model, first, x, w, "irls", notes=notes)
    # Huber 1981, chapter 7: the covariance of an M-estimator is H^-1 (sum psi^2 y y^T) H^-1, H = sum psi' y y^T, row by
    # row: where noise is loud psi' is 0, and a mean over rows would count these as information. Least squares of
    # pseudo-observations Y x + psi / psi', weighted by psi', have the same x and H (section 7.8)
    psi = root**2 * residual / np.maximum(spread, 1e-300)
    exact: Any = u <= 1.0 if loss == "huber" else np.where(u < 1.0, (1.0 - u**2) * (1.0 - 5.0 * u**2), 0.0)
    slope = np.maximum(exact, TAIL)
    correlation = autocorrelation_factor(model, x, data)
    size = [np.mean(p[m] ** 2) / np.mean(s[m]) if m.any() else 1.0 for p, s, m in zip(psi.T, slope.T, mask.T)]
    variance, alike, rows = np.array(size) * correlation, np.ones(len(w)), w * np.sqrt(slope)
    covariance = covariance_of(model, model.compress(data, weights=rows), alike, variance)
    added = spread * psi / slope - residual
    factor, dof = scatter(model, data, Normal(model, alike, variance), added=added, weights=rows)
    condition = regressor_condition(model, first, w)[0]
    return replace(
        out, covariance=covariance * np.outer(factor, factor), dof=dof, correlation=correlation, condition=condition
    )


IRLS = Estimator("irls", irls, "least squares, robust to outliers", needs_samples=True)
