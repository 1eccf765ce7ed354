"""Ridge regression: least squares that stay near a prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel

from .conditioning import compressed, natural_scale, regressor_condition
from .estimate import Estimate
from .estimator import Estimator
from .least_squares import finish, prior_of, weights_of
from .leave_out import scatter
from .residuals import autocorrelation_factor


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
    and Kennard 1970) for parameters N(prior, S^2); the first part as `leave_out` corrects it. A posterior's H^-1 would
    take the strength for knowledge.
    """
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
    return replace(out, covariance=covariance + bias @ bias.T, dof=dof, correlation=correlation)


def _solution(c, w, x0, scale, strength) -> tuple[np.ndarray, np.ndarray]:
    """(x (size,), the rows whose least squares it is) in units of S: the unknown is (x - prior) / S."""
    A, b = c.system(w)
    size = np.linalg.norm(w * c.norms)
    A, b = A * scale / size, (b - A @ x0) / size
    rows = np.vstack((A, np.sqrt(strength) * np.eye(len(x0))))
    return x0 + scale * np.linalg.lstsq(rows, np.concatenate((b, np.zeros(len(x0)))), rcond=None)[0], rows


@dataclass(frozen=True, eq=False)
class _Ridge:
    """`leave_out.Linear` of it."""

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
