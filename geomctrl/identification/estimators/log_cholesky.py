"""The physically consistent estimator without a semidefinite solver.

A body's pseudo-inertia stays positive definite by construction: P_i = U U^T with U upper triangular and exp(.) on its
diagonal (Rucker and Wensing 2022).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count
from geomctrl.errors import ArgumentError
from geomctrl.identification.compressed import Compressed
from geomctrl.identification.data import Dataset
from geomctrl.identification.errors import SolverError
from geomctrl.identification.model import RegressorModel
from geomctrl.mechanism import inertia

from .conditioning import check, compressed, excitation
from .estimate import Estimate
from .estimator import Estimator
from .least_squares import finish
from .physical import Penalties, Scaled, in_natural_units
from .solving import solving

SMALLEST, LARGEST = -15.0, 8.0  # logarithms: beyond, exp(.) over- or underflows and nothing changes any more


def manifold(
    model: RegressorModel,
    data: Dataset | Compressed,
    *,
    prior: ArrayLike | None = None,
    start: ArrayLike | None = None,
    entropic: float = 0.0,
    regularization: float = 1e-6,
    friction_signs: bool = True,
    margin: float = 1e-6,
    weights: ArrayLike | str | None = None,
    iterations: int = 1000,
) -> Estimate:
    """The objective and the cone of `consistent` without a semidefinite solver.

    P_i = margin 1 + U_i U_i^T in natural units, U_i in log-Cholesky coordinates. No covariance, as for `consistent`.

    Every iterate is strictly physical. start: first inertial parameters (nbodies, 10), strictly physical; default the
    prior where it is, else a ball of the robot's mean mass. Nonlinear least squares (trust region, exact Jacobian).

    How it ended is in `notes`: "converged", "status" ("converged" or "not converged"), "evaluations" (at most
    `iterations`), "objective" and "optimality", the largest entry of its scaled gradient. Raises SolverError where no
    estimate came out, ArgumentError, DataError.
    """
    from scipy.optimize import least_squares

    minimise: Any = least_squares
    penalties = Penalties(regularization, entropic, margin, friction_signs)
    iterations = count("iterations", iterations, 1)
    check(model, data)
    if start is not None:
        start = checked("start", start, ())
        if start.size != model.inertial:
            raise ArgumentError(f"start: expected shape ({model.robot.nbodies}, 10), got {start.shape}")
    c = compressed(model, data)
    problem = _Problem(in_natural_units(model, c, weights, prior), penalties)
    theta0, bounds = problem.first(start)
    with solving("log-Cholesky", "another start or more regularization"):
        solution = minimise(
            problem.residual, theta0, problem.jacobian, bounds=bounds, x_scale="jac", max_nfev=iterations,
            ftol=1e-9, xtol=1e-9, gtol=1e-12,
        )  # fmt: skip
    converged = bool(solution.status > 0)
    status = "converged" if converged else "not converged"
    if solution.status < 0 or not np.isfinite([*solution.x, solution.cost]).all():
        raise SolverError(
            f"log-Cholesky failed (status {status}): objective {2.0 * solution.cost:g} after {solution.nfev}"
            " evaluations; try another start or more regularization",
            status=status,
        )
    notes = {
        "status": status,
        "converged": converged,
        "evaluations": int(solution.nfev),
        "objective": 2.0 * float(solution.cost),
        "optimality": float(solution.optimality),
    }
    x, w = problem.scaled.scale * problem.expand(solution.x)[0], problem.scaled.weights
    return finish(model, c, x, w, "manifold", condition=excitation(model, c, w)[0], notes=notes)


MANIFOLD = Estimator(
    "manifold",
    manifold,
    "every link a body that can exist, without a semidefinite solver",
    prior_weight="regularization",
    physical=True,
    uncertainty="constraints and priors bias it",
)


class _Problem:
    """Residuals of the objective and their derivative by theta: log-Cholesky coordinates of the bodies, then the other
    parameters, all in natural units.
    """

    def __init__(self, scaled: Scaled, penalties: Penalties):
        self.scaled, self.penalties = scaled, penalties
        self.n, self.size = scaled.model.robot.nbodies, scaled.model.size
        self.least = inertia.from_pseudo(penalties.margin * np.eye(4))
        self.y0 = scaled.prior / scaled.scale
        if penalties.entropic:
            scaled.prior_bodies()  # strictly physical

    @cached_property
    def whitening(self) -> list[np.ndarray]:
        """Per body L with L P0 L^T = 1 at the prior; none without an entropic penalty."""
        if not self.penalties.entropic:
            return []
        bodies = self.y0[: 10 * self.n].reshape(-1, 10)
        return [np.linalg.inv(np.linalg.cholesky(P)) for P in inertia.pseudo(bodies)]

    def first(self, start: ArrayLike | None) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """(theta, (its lower, its upper bounds)) at the inertial parameters `start`, None: the prior's."""
        scaled, margin, n = self.scaled, self.penalties.margin, self.n
        model = scaled.model
        given = scaled.prior[: model.inertial] if start is None else np.ravel(np.asarray(start, float))
        bodies = given.reshape(-1, 10) / scaled.scale[:10]
        good = inertia.is_physical(bodies, strict=True)
        if start is not None and not good.all():
            name = model.robot.body_names[int(np.argmin(good))]
            raise ArgumentError(f"start: body {name!r} is not strictly physical")
        ball = inertia.from_com(1.0, np.zeros(3), 0.4 * np.eye(3))
        inside = good & (np.linalg.eigvalsh(inertia.pseudo(bodies))[:, 0] > 1.1 * margin)
        inertial = [log_cholesky(pi - self.least if ok else ball) for pi, ok in zip(bodies, inside)]
        theta = np.concatenate([*inertial, self.y0[model.inertial :]])
        lower, upper = np.full(self.size, -np.inf), np.full(self.size, np.inf)
        for i in range(n):
            logarithms = slice(10 * i, 10 * i + 4)
            lower[logarithms], upper[logarithms] = SMALLEST, LARGEST
            theta[logarithms] = np.clip(theta[logarithms], SMALLEST + 1.0, LARGEST - 1.0)
        if self.penalties.friction_signs:
            lower[model.positive] = 0.0
            theta[model.positive] = np.maximum(theta[model.positive], 1e-3)
        return theta, (lower, upper)

    def expand(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(y, its derivative by theta)."""
        y, dy = theta.copy(), np.eye(self.size)
        for i in range(self.n):
            at = slice(10 * i, 10 * i + 10)
            y[at], dy[at, at] = from_log_cholesky(theta[at])
            y[at] += self.least
        return y, dy

    def residual(self, theta: np.ndarray) -> np.ndarray:
        y, _ = self.expand(theta)
        rows = [self.scaled.A @ y - self.scaled.b, np.sqrt(self.penalties.regularization) * (y - self.y0)]
        for i, L in enumerate(self.whitening):  # D is a sum of four terms e - log e - 1 >= 0, each a square
            e = np.linalg.eigvalsh(L @ inertia.pseudo(y[10 * i : 10 * i + 10]) @ L.T)
            rows.append([np.sqrt(self.penalties.entropic / self.n * max(e.sum() - np.log(e).sum() - 4.0, 0.0))])
        return np.concatenate(rows)

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        y, dy = self.expand(theta)
        rows = [self.scaled.A @ dy, np.sqrt(self.penalties.regularization) * dy]
        for i, L in enumerate(self.whitening):
            at = slice(10 * i, 10 * i + 10)
            P = inertia.pseudo(y[at])
            value = max(float(inertia.divergence(y[at], self.y0[at])), 1e-24)
            gradient = np.einsum("ij,kij->k", L.T @ L - np.linalg.inv(P), inertia.pseudo(np.eye(10))) @ dy[at, at]
            row = np.zeros((1, self.size))
            row[0, at] = np.sqrt(self.penalties.entropic / self.n) * gradient / (2.0 * np.sqrt(value))
            rows.append(row)
        return np.vstack(rows)


UPPER_ROWS, UPPER_COLUMNS = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 2, 3, 2, 3, 3])


def log_cholesky(parameters: np.ndarray) -> np.ndarray:
    """theta (10,) with P = U U^T, U upper triangular: the logarithms of its diagonal, then the entries above it."""
    flip = np.eye(4)[::-1]
    U = flip @ np.linalg.cholesky(flip @ inertia.pseudo(parameters) @ flip) @ flip
    return np.concatenate((np.log(np.diag(U)), U[UPPER_ROWS, UPPER_COLUMNS]))


def from_log_cholesky(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(parameters (10,), their derivative (10, 10)) at theta."""
    U = np.diag(np.exp(theta[:4]))
    U[UPPER_ROWS, UPPER_COLUMNS] = theta[4:]
    dU = np.zeros((10, 4, 4))
    dU[range(4), range(4), range(4)] = np.diag(U)
    dU[range(4, 10), UPPER_ROWS, UPPER_COLUMNS] = 1.0
    dP = dU @ U.T
    return inertia.from_pseudo(U @ U.T), inertia.from_pseudo(dP + dP.swapaxes(-1, -2)).T
