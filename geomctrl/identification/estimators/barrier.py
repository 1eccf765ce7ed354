"""Physically consistent least squares by an interior-point method, for many weights of the prior on one log.

Minimises, in natural units (`semidefinite.Scaled`),

    |A y - b|^2 + regularization |y - y0|^2 + entropic sum_i D(P_i || P0_i) / n
    - mu (sum_i log det (P_i - margin 1) + sum_j log s_j),    s = d - C y > 0,

by Newton's method for mu -> 0. The objective is convex and the barrier self-concordant, so the result is within
mu (4 n + rows of C) of the optimum (Boyd and Vandenberghe 2004, section 11.2). With a hundred variables and no
modelling language a solve takes a few milliseconds, fast enough for cross-validation over a grid. `consistent` is the
estimator; this module chooses its weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.mechanism import inertia

BASIS = inertia.pseudo(np.eye(10))  # P = sum_j y_j BASIS[j]
BOUND_MARGIN = 1e-6  # natural units by which bounds are widened, so that equal bounds have an interior
FIRST_MU, LAST_MU, SHRINK = 1e-3, 1e-9, 0.1  # barrier weights, and their ratio
MAX_STEPS = 60  # Newton steps for each mu; two or three are usual


@dataclass(frozen=True, eq=False)
class Quadratic:
    """y^T G y - 2 g^T y + c: a log in natural units."""

    G: np.ndarray
    g: np.ndarray
    c: float

    @classmethod
    def of(cls, A: np.ndarray, b: np.ndarray) -> Quadratic:
        return cls(A.T @ A, A.T @ b, float(b @ b))


@dataclass(frozen=True, eq=False)
class Bounds:
    """C y <= d; `bodies` (n,): the free ones, the others stay at y0; `free` (size,): the same for parameters; total:
    None, or the sum of all masses in natural units, enforced by a steep quadratic penalty.
    """

    C: np.ndarray
    d: np.ndarray
    bodies: np.ndarray
    free: np.ndarray
    total: float | None = None


class Interior:
    """The problem without its log and weights. y0 (size,): the prior, bodies strictly physical."""

    def __init__(self, y0: np.ndarray, nbodies: int, bounds: Bounds, margin: float):
        self.y0, self.n, self.bounds, self.margin = y0, nbodies, bounds, margin
        free = np.flatnonzero(bounds.free)
        self.free, self.C = free, bounds.C[:, free]
        self.inertial = np.flatnonzero(bounds.bodies)
        self.columns = (10 * self.inertial[:, None] + np.arange(10)).ravel()
        self.place = np.searchsorted(free, self.columns).reshape(-1, 10)  # of free bodies' parameters, among all free
        P0 = inertia.pseudo(y0[: 10 * nbodies].reshape(-1, 10)[self.inertial]).reshape(-1, 4, 4)
        self.inverse = np.linalg.inv(P0)
        self.linear = np.einsum("nab,jba->nj", self.inverse, BASIS)  # tr(P0^-1 P) by y
        self.constant = -4.0 * len(P0) + float(np.linalg.slogdet(P0)[1].sum())

    def solve(
        self, log: Quadratic, regularization: float, entropic: float, start: np.ndarray, first: float = FIRST_MU
    ) -> tuple[np.ndarray, np.ndarray]:
        """(y, start for a similar weight) from a strictly feasible start."""
        y, near, mu = start.copy(), start, first
        smooth = _Smooth(self, log, regularization, entropic / max(self.n, 1))
        while True:
            y = self._centre(smooth, y, mu)
            if mu >= 1e-6 or near is start:
                near = y
            if mu <= LAST_MU:
                return y, near
            mu = max(mu * SHRINK, LAST_MU)

    def _centre(self, smooth: _Smooth, y: np.ndarray, mu: float) -> np.ndarray:
        value = self._value(smooth, y, mu)
        for _ in range(MAX_STEPS):
            gradient, H = smooth.derivatives(y)
            slack = self.bounds.d - self.bounds.C @ y
            gradient = gradient[self.free] + mu * self.C.T @ (1.0 / slack)
            H = H[np.ix_(self.free, self.free)]
            H += mu * (self.C / slack[:, None] ** 2).T @ self.C
            P = self._pseudo(y)
            barrier, curvature = _log_det(P - self.margin * np.eye(4))
            np.subtract.at(gradient, self.place, mu * barrier)
            _add_blocks(H, self.place, mu * curvature)
            step = -_solve(H, gradient)
            decrement = -float(gradient @ step)
            if not decrement > 1e-3 * mu:
                return y
            change = np.zeros_like(y)
            change[self.free] = step
            length = self._longest(P, change, slack)
            while length > 1e-12:
                trial = y + length * change
                after = self._value(smooth, trial, mu)
                if after <= value - 0.1 * length * decrement:
                    break
                length *= 0.5
            else:
                return y  # at rounding, no step improves the result
            y, value = trial, after
        return y

    def _pseudo(self, y: np.ndarray) -> np.ndarray:
        return np.tensordot(y[self.columns].reshape(-1, 10), BASIS, 1)

    def _longest(self, P: np.ndarray, change: np.ndarray, slack: np.ndarray) -> float:
        """The largest step, at most 1, that goes 99 % of the way to the boundary."""
        w, V = _eigen(P - self.margin * np.eye(4))
        L = V / np.sqrt(w)[:, None, :]
        worst = float(-np.linalg.eigvalsh(L.swapaxes(-1, -2) @ self._pseudo(change) @ L).min(initial=0.0))
        worst = max(worst, float((self.bounds.C @ change / slack).max(initial=0.0)))
        return min(1.0, 0.99 / worst) if worst > 0.0 else 1.0

    def _value(self, smooth: _Smooth, y: np.ndarray, mu: float) -> float:
        slack = self.bounds.d - self.bounds.C @ y
        P = self._pseudo(y)
        inner = np.linalg.eigvalsh(P - self.margin * np.eye(4))
        if (slack <= 0.0).any() or (inner <= 0.0).any():
            return np.inf
        return smooth.value(y, P) - mu * float(np.log(slack).sum() + np.log(inner).sum())


class _Smooth:
    """The objective without barriers: value, gradient, Hessian."""

    def __init__(self, problem: Interior, log: Quadratic, regularization: float, entropic: float):
        self.problem, self.log, self.regularization, self.entropic = problem, log, regularization, entropic
        size = len(problem.y0)
        self.G, self.g = log.G + regularization * np.eye(size), log.g + regularization * problem.y0
        self.c = log.c + regularization * float(problem.y0 @ problem.y0)
        if problem.bounds.total is not None:
            masses = np.zeros(size)
            masses[0 : 10 * problem.n : 10] = 1e3
            total = 1e3 * problem.bounds.total
            self.G, self.g, self.c = self.G + np.outer(masses, masses), self.g + masses * total, self.c + total**2

    def value(self, y: np.ndarray, P: np.ndarray) -> float:
        out = float(y @ (self.G @ y) - 2.0 * self.g @ y) + self.c
        if self.entropic:
            trace = float((self.problem.linear * y[self.problem.columns].reshape(-1, 10)).sum())
            out += self.entropic * (trace - float(np.linalg.slogdet(P)[1].sum()) + self.problem.constant)
        return out

    def derivatives(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, H = 2.0 * (self.G @ y - self.g), 2.0 * self.G
        if self.entropic:
            barrier, curvature = _log_det(self.problem._pseudo(y))
            rows = self.problem.columns.reshape(-1, 10)
            gradient[rows] += self.entropic * (self.problem.linear - barrier)
            _add_blocks(H, rows, self.entropic * curvature)
        return gradient, H


def _log_det(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For log det P (n, 4, 4): gradient (n, 10) and negative Hessian (n, 10, 10) in the ten parameters."""
    w, V = _eigen(P)
    QE = ((V / w[:, None, :]) @ V.swapaxes(-1, -2))[:, None] @ BASIS
    n = len(P)
    return np.trace(QE, axis1=-2, axis2=-1), QE.reshape(n, 10, 16) @ QE.swapaxes(-1, -2).reshape(n, 10, 16).swapaxes(
        1, 2
    )


def _eigen(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (n, 4), positive even if rounding makes them zero, and eigenvectors of P (n, 4, 4)."""
    w, V = np.linalg.eigh(P)
    return np.maximum(w, np.maximum(1e-15 * w[:, -1:], 1e-300)), V


def _add_blocks(H: np.ndarray, indices: np.ndarray, blocks: np.ndarray) -> None:
    H[indices[:, :, None], indices[:, None, :]] += blocks


def _solve(H: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """H^-1 gradient of a positive definite H, scaled to a unit diagonal first."""
    from scipy.linalg import get_lapack_funcs

    scale = 1.0 / np.sqrt(np.diag(H))
    scaled = H * scale * scale[:, None]
    posv: Any = get_lapack_funcs("posv", (scaled,))
    for shift in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        _, x, info = posv(scaled + shift * np.eye(len(scaled)), gradient * scale)
        if info == 0:
            return x * scale
    return gradient * scale**2  # a step downhill
