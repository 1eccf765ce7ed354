"""Fit of the coefficients of V by semidefinite programs on samples.

The programs ask for V' < 0 where V < 1, for V > 1 where motions fail to converge inside the box and on its faces, and
for as many converging states as possible with V < 1. Near the equilibrium, linear matrix inequalities replace samples.
States that violate V' < 0 are added from round to round.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from .candidates import CandidateLoop, simulated

# states of a program, of the test of V' < 0, on faces of the box
FITTED_STATES, EXAMINED_STATES, FACE_STATES = 2_000, 20_000, 4_000
SHRINK_FACTORS = (1.0, 0.5, 0.2, 0.05, 0.01)  # factors of examined states, for those near the equilibrium
MARGIN = 0.02  # of V, relative to |x|^2 in units of the box
DECAY, INNER_DECAY = 0.02, 0.5  # V' < -d r V with the loop's slowest rate r, on V = 1 and at the equilibrium
MAX_ROUNDS = 6
OUTSIDE_WIDTH = 0.05  # of V - 1: states this far outside of the level set keep their weight
MAX_ADDED_STATES, ADDED_DECAY = 200, 0.06  # violating states that a round adds at most, and their d
DESCENTS, KEPT_STATES, TRIED_NEIGHBOURS = 8, 40, 8  # of the search for the smallest V on faces
PENALTY = 50.0  # weight of violations of V' < 0 where V < 1
RELATIVE_STEP, RELATIVE_DURATION = 0.2, 20.0  # of simulations, relative to the fastest and the slowest rate


@dataclass(frozen=True)
class Fit:
    """Coefficients of V, a level below which no sample violates V' < 0, and the share of converging samples in it."""

    coefficients: np.ndarray
    level: float
    share: float


class Fitting:
    """Samples of a loop, and programs for V on them."""

    def __init__(self, loop: CandidateLoop, A: np.ndarray, half: np.ndarray, seed: int):
        self.loop, self.half, self.n = loop, half, len(half)
        rng = np.random.default_rng(seed)
        eigenvalues = np.linalg.eigvals(A)
        self.slowest = float(-eigenvalues.real.max())
        self.A = A * half / half[:, None]  # in units of the box
        self.hessians = loop.hessians() * half[:, None] * half
        step, duration = RELATIVE_STEP / np.abs(eigenvalues).max(), RELATIVE_DURATION / self.slowest
        spread = rng.uniform(-half, half, (EXAMINED_STATES, self.n))
        self.examined = np.concatenate([spread * factor for factor in SHRINK_FACTORS])
        self.faces = rng.uniform(-half, half, (FACE_STATES, self.n))
        side = rng.integers(self.n, size=FACE_STATES)
        self.faces[np.arange(FACE_STATES), side] = np.where(rng.random(FACE_STATES) < 0.5, -1.0, 1.0) * half[side]
        self.on_faces, self.on_examined = loop.terms(self.faces)[0], loop.terms(self.examined)
        P = solve_continuous_lyapunov(self.A.T, -np.eye(self.n))
        self.first = np.linalg.lstsq(self.hessians.reshape(len(loop.names), -1).T, 2.0 * P.ravel(), rcond=None)[0]

        def quadratic(x: np.ndarray) -> np.ndarray:
            return np.einsum("bi,ij,bj->b", x / half, P, x / half)

        rates = 2.0 * np.einsum("bi,ij,bj->b", self.examined / half, P, loop.field(self.examined) / half)
        unproved = quadratic(self.examined)[~(rates < 0.0)].min(initial=np.inf)
        goal = 0.5 * min(float(unproved), float(quadratic(self.faces).min()))
        x = rng.uniform(-half, half, (2 * FITTED_STATES, self.n))
        self.converges = simulated(loop.field, x, half, lambda x: quadratic(x) < goal, step, duration)
        self.x, self.values, self.rates = x, *loop.terms(x)
        good = np.flatnonzero(self.converges[:FITTED_STATES])
        self.good, self.bad = good, np.flatnonzero(~self.converges[:FITTED_STATES])
        self.added = np.zeros((0, self.n))

    def fit(self, coefficients: np.ndarray) -> Fit:
        """A fit with its level and share, by samples."""
        values, rates = (x @ coefficients for x in self.on_examined)
        violating = values[~(rates < 0.0)]
        level = min(float(violating.min(initial=np.inf)), self.least_on_faces(coefficients))
        return Fit(coefficients, level, self.share(coefficients, level))

    def least_on_faces(self, coefficients: np.ndarray) -> float:
        """The smallest V found on the faces of the box; states with a small V are added to those on faces."""
        rng, x, values = np.random.default_rng(0), self.faces, self.on_faces @ coefficients
        for k in range(DESCENTS):
            best = np.argsort(values)[:KEPT_STATES]
            x, values = x[best], values[best]
            near = np.repeat(x, TRIED_NEIGHBOURS, 0)
            moved = near + 0.3 * 0.5**k * self.half * rng.normal(size=near.shape)
            near = np.where(np.abs(near) == self.half, near, np.clip(moved, -self.half, self.half))
            x, values = np.concatenate([x, near]), np.append(values, self.loop.terms(near)[0] @ coefficients)
        lowest = x[np.argsort(values)[:KEPT_STATES]]
        self.faces = np.concatenate([self.faces, lowest])
        self.on_faces = np.concatenate([self.on_faces, self.loop.terms(lowest)[0]])
        return float(values.min())

    def share(self, coefficients: np.ndarray, level: float) -> float:
        """The share of V <= level of the samples that converge."""
        values = self.values[self.converges] @ coefficients
        return float((values <= level).mean()) if len(values) else 0.0

    def fits(self, report: Callable[[float], Any]) -> list[Fit]:
        """Fits, the one with the largest share first."""
        results, weights = [self.fit(self.first)], None
        for k in range(MAX_ROUNDS):
            coefficients = self.solved(weights)
            report((k + 1) / MAX_ROUNDS)
            if coefficients is None:
                break
            results.append(self.fit(coefficients))
            weights = self.weights(coefficients)
            self.add(coefficients)
        return sorted((x for x in results if x.level > 0.0), key=lambda x: -x.share)

    def weights(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights of converging samples outside of V <= 1, those of their violations of V' < 0, and their decay."""
        values = self.values[self.good] @ coefficients
        violation = np.where(values < 1.0 + 2.0 * OUTSIDE_WIDTH, PENALTY, 0.5)
        return OUTSIDE_WIDTH / (np.maximum(values - 1.0, 0.0) + OUTSIDE_WIDTH), violation, self.decay(values)

    def decay(self, values: Any) -> Any:
        """The required d of V' < -d V where V has these values: an inner margin makes proofs short."""
        share = np.clip(1.0 - values, 0.0, 1.0) * np.ones(len(self.good) if np.ndim(values) == 0 else len(values))
        return self.slowest * (DECAY + (INNER_DECAY - DECAY) * share)

    def add(self, coefficients: np.ndarray) -> None:
        """Add the examined states with V < 1 that violate V' < 0 most, in units of |x|^2."""
        values, rates = (x @ coefficients for x in self.on_examined)
        excess = (rates + 0.5 * DECAY * self.slowest * values) / ((self.examined / self.half) ** 2).sum(1)
        violating = np.flatnonzero((values < 1.0) & (excess > 0.0))
        self.added = np.concatenate(
            [self.added, self.examined[violating[np.argsort(-excess[violating])][:MAX_ADDED_STATES]]]
        )

    def refuted(self, states: np.ndarray, coefficients: np.ndarray) -> None:
        """Add the states with V < 1 at which a proof has failed by the smallest margin."""
        values, rates = (x @ coefficients for x in self.loop.terms(states))
        order = np.argsort(-rates / np.maximum(np.abs(values), 1e-300))
        self.added = np.concatenate([self.added, states[order][values[order] < 1.0][:MAX_ADDED_STATES]])

    def solved(self, weights: tuple[np.ndarray, np.ndarray, np.ndarray] | None) -> np.ndarray | None:
        """The coefficients of one program; None if it has no solution."""
        import cvxpy

        good, n = self.good, self.n
        outside, violation, decay = weights or (*np.outer((1.0, 10.0), np.ones(len(good))), self.decay(0.5))
        scale = 1.0 / np.maximum(np.abs(self.values).max(0), 1e-12)
        c: Any = cvxpy.Variable(len(scale))
        above, growth = cvxpy.Variable(len(good), nonneg=True), cvxpy.Variable(len(good), nonneg=True)
        H: Any = sum(c[k] * (scale[k] * h) for k, h in enumerate(self.hessians))
        size = MARGIN * ((self.x[good] / self.half) ** 2).sum(1)
        rows = self.values * scale
        constraints = [
            H >> 2.0 * MARGIN * np.eye(n), self.A.T @ H + H @ self.A << -INNER_DECAY * self.slowest * H,
            (self.on_faces * scale) @ c >= 1.0, rows[good] @ c >= size, rows[good] @ c <= 1.0 + above,
            (self.rates[good] * scale + decay[:, None] * rows[good]) @ c <= growth,
        ]  # fmt: skip
        cost = outside @ above + violation @ growth / self.slowest
        if len(self.bad):
            constraints.append(rows[self.bad] @ c >= 1.0)
        if len(self.added):
            values, rates = (x * scale for x in self.loop.terms(self.added))
            size = MARGIN * ((self.added / self.half) ** 2).sum(1)
            more = cvxpy.Variable(len(self.added), nonneg=True)
            constraints += [
                values @ c >= size,
                (rates + self.slowest * ADDED_DECAY * values) @ c <= cvxpy.multiply(size, more),
            ]
            cost = cost + PENALTY / self.slowest * cvxpy.sum(more)
        problem = cvxpy.Problem(cvxpy.Minimize(cost), constraints)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # inaccurate: samples and the proof decide
                problem.solve(solver="CLARABEL")
        except cvxpy.SolverError:
            return None
        return None if c.value is None else c.value * scale
