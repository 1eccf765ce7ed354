"""The physically consistent estimator without a semidefinite solver.

A body's pseudo-inertia stays positive definite by construction: P_i = U U^T with U upper triangular and exp(.) on its
diagonal (Rucker and Wensing 2022).
"""

from __future__ import annotations

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
from .trust_region import Second, minimise

SMALLEST, LARGEST = -14.0, 7.0  # logarithms to start from: beyond, nothing changes any more
TOLERANCE = 1e-9  # decrease of the objective, in terms of it, that is no longer worth a step


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
    prior where it is, else a ball of the robot's mean mass. Newton's method in a trust region with exact Hessians, see
    `trust_region`: where the log pulls a body onto the edge of the cone the logarithms run away to minus infinity, and
    the curvature that tells how far lies in the second derivatives of P, which Gauss-Newton leaves out.

    How it ended is in `notes`: "converged" (a further step would lower the objective by less than 1e-9 of it), "status"
    ("converged" or "not converged"), "evaluations" (at most `iterations`), "objective" and "optimality", the largest
    entry of its gradient. Raises SolverError where no
    estimate came out, ArgumentError, DataError.
    """
    penalties = Penalties(regularization, entropic, margin, friction_signs)
    iterations = count("iterations", iterations, 1)
    check(model, data)
    if start is not None:
        start = checked("start", start, ())
        if start.size != model.inertial:
            raise ArgumentError(f"start: expected shape ({model.robot.nbodies}, 10), got {start.shape}")
    c = compressed(model, data)
    problem = _Problem(in_natural_units(model, c, weights, prior), penalties)
    with solving("log-Cholesky", "another start or more regularization"):
        solution = minimise(problem.value, problem.second, problem.first(start), iterations, TOLERANCE)
    status = "converged" if solution.converged else "not converged"
    if not np.isfinite([*solution.x, solution.value]).all():
        raise SolverError(
            f"log-Cholesky failed (status {status}): objective {solution.value:g} after {solution.evaluations}"
            " evaluations; try another start or more regularization",
            status=status,
        )
    notes = {
        "status": status,
        "converged": solution.converged,
        "evaluations": solution.evaluations,
        "objective": solution.value,
        "optimality": solution.optimality,
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
    """The objective and its derivatives by theta: log-Cholesky coordinates of the bodies, then the other parameters,
    all in natural units; where a parameter is not to be negative, its square root.
    """

    def __init__(self, scaled: Scaled, penalties: Penalties):
        self.scaled, self.penalties = scaled, penalties
        self.n, self.size = scaled.model.robot.nbodies, scaled.model.size
        self.roots = scaled.model.positive if penalties.friction_signs else np.zeros(0, int)
        self.least = inertia.from_pseudo(penalties.margin * np.eye(4))
        self.y0 = scaled.prior / scaled.scale
        self.squares = 2.0 * (scaled.A.T @ scaled.A + penalties.regularization * np.eye(self.size))
        if penalties.entropic:
            scaled.prior_bodies()  # strictly physical

    def first(self, start: ArrayLike | None) -> np.ndarray:
        """theta at the inertial parameters `start`, None: the prior's."""
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
        for i in range(n):
            logarithms = slice(10 * i, 10 * i + 4)
            theta[logarithms] = np.clip(theta[logarithms], SMALLEST, LARGEST)
        theta[self.roots] = np.sqrt(np.maximum(theta[self.roots], 1e-3))  # at 0 its derivative is 0
        return theta

    def expand(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(y, its derivative by theta)."""
        y, dy = theta.copy(), np.eye(self.size)
        for i in range(self.n):
            at = slice(10 * i, 10 * i + 10)
            y[at], dy[at, at] = from_log_cholesky(theta[at])
            y[at] += self.least
        y[self.roots] = theta[self.roots] ** 2
        dy[self.roots, self.roots] = 2.0 * theta[self.roots]
        return y, dy

    def value(self, theta: np.ndarray) -> float:
        return self._value(self.expand(theta)[0])

    def _value(self, y: np.ndarray) -> float:
        r, away = self.scaled.A @ y - self.scaled.b, y - self.y0
        value = float(r @ r + self.penalties.regularization * away @ away)
        if self.penalties.entropic:
            bodies, prior = (x[: 10 * self.n].reshape(-1, 10) for x in (y, self.y0))
            value += self.penalties.entropic * float(np.mean(inertia.divergence(bodies, prior)))
        return value

    def second(self, theta: np.ndarray) -> Second:
        """(value, gradient, Hessian) by theta: dy^T H dy + g d2y with g, H of the objective by y."""
        y, dy = self.expand(theta)
        g = self.squares @ y - 2.0 * (self.scaled.A.T @ self.scaled.b + self.penalties.regularization * self.y0)
        H = self.squares.copy()
        for i in range(self.n if self.penalties.entropic else 0):
            at = slice(10 * i, 10 * i + 10)
            slope, curvature = _divergence(y[at], self.y0[at])
            g[at] += self.penalties.entropic / self.n * slope
            H[at, at] += self.penalties.entropic / self.n * curvature
        H = dy.T @ H @ dy
        for i in range(self.n):
            at = slice(10 * i, 10 * i + 10)
            H[at, at] += curved(theta[at], g[at])
        H[self.roots, self.roots] += 2.0 * g[self.roots]
        return self._value(y), dy.T @ g, H


def _divergence(pi: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of D(P || P0) = tr(P P0^-1) - log det(P P0^-1) - 4 by the ten parameters."""
    units = inertia.pseudo(np.eye(10))
    inverse, other = (np.linalg.inv(inertia.pseudo(x)) for x in (pi, prior))
    X = inverse @ units
    return np.einsum("ab,kab->k", other - inverse, units), np.einsum("iab,jba->ij", X, X)


UPPER_ROWS, UPPER_COLUMNS = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 2, 3, 2, 3, 3])


def log_cholesky(parameters: np.ndarray) -> np.ndarray:
    """theta (10,) with P = U U^T, U upper triangular: the logarithms of its diagonal, then the entries above it."""
    flip = np.eye(4)[::-1]
    U = flip @ np.linalg.cholesky(flip @ inertia.pseudo(parameters) @ flip) @ flip
    return np.concatenate((np.log(np.diag(U)), U[UPPER_ROWS, UPPER_COLUMNS]))


def from_log_cholesky(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(parameters (10,), their derivative (10, 10)) at theta."""
    U, dU = _factor(theta)
    dP = dU @ U.T
    return inertia.from_pseudo(U @ U.T), inertia.from_pseudo(dP + dP.swapaxes(-1, -2)).T


def curved(theta: np.ndarray, g: np.ndarray) -> np.ndarray:
    """(10, 10) second derivative of g . parameters at theta: g . parameters = <B, U U^T>, of which B is the adjoint."""
    U, dU = _factor(theta)
    B = np.einsum("k,abk->ab", g, SYMMETRIC_UNITS)
    out = 2.0 * np.einsum("ab,iac,jbc->ij", B, dU, dU)
    logarithms = np.arange(4)
    out[logarithms, logarithms] += 2.0 * np.einsum("ab,iac,bc->i", B, dU[:4], U)  # d2U = dU for an exponential
    return out


def _factor(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(U (4, 4), its derivatives (10, 4, 4))."""
    U = np.diag(np.exp(theta[:4]))
    U[UPPER_ROWS, UPPER_COLUMNS] = theta[4:]
    dU = np.zeros((10, 4, 4))
    dU[range(4), range(4), range(4)] = np.diag(U)
    dU[range(4, 10), UPPER_ROWS, UPPER_COLUMNS] = 1.0
    return U, dU


def _symmetric_units() -> np.ndarray:
    """(4, 4, 10): the ten parameters of P with 1/2 at (a, b) and (b, a)."""
    E = np.eye(16).reshape(4, 4, 4, 4)
    return inertia.from_pseudo(0.5 * (E + E.swapaxes(-1, -2)))


SYMMETRIC_UNITS = _symmetric_units()
