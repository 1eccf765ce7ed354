"""`QuadraticProgram`: a quadratic program of fixed structure, solved repeatedly by Clarabel with new numbers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from geomctrl.errors import SimulationError


class QuadraticProgram:
    """Minimise a . H a - 2 f . a + cost s . 1 + |s|^2 over a (n,) and s (soft,), s >= 0, subject to

    |M a + bias| <= effort,  lower - s <= a <= upper + s,  G a >= least - s,  E a = d  (with `equalities` rows).

    Each row of G has its own slack, and each pair of bounds on a shares one.
    """

    def __init__(self, n: int, soft: int, equalities: int, cost: float):
        self.n, self.soft, self.equalities, self.cost = n, soft, equalities, cost
        self.rows = equalities + 4 * n + (soft - n) + soft
        self.A, self.b, self.q = np.zeros((self.rows, n + soft)), np.zeros(self.rows), np.full(n + soft, cost)
        k, one, s = equalities + 2 * n, np.eye(n), np.eye(soft)
        self.index, self._solver = k, None
        self.A[k : k + n, :n], self.A[k : k + n, n : 2 * n] = one, -one
        self.A[k + n : k + 2 * n, :n], self.A[k + n : k + 2 * n, n : 2 * n] = -one, -one
        self.A[k + 2 * n : self.rows - soft, 2 * n :] = -np.eye(soft - n)
        self.A[self.rows - soft :, n:] = -s
        filled = self.A != 0.0
        filled[:k, :n] = True
        filled[k + 2 * n : self.rows - soft, :n] = True
        self.filled = filled.T.copy()  # transposed, because the solver stores columns
        self.upper = np.triu(np.ones((n, n), bool)).T  # upper triangle of H, transposed too

    def __getstate__(self):
        return vars(self) | {"_solver": None}  # the solver can not be pickled

    def solve(self, H, f, M, bias, effort, lower, upper, G, least, E=None, d=None) -> tuple[np.ndarray, float]:
        """(a, the largest slack). Raises SimulationError if the solver finds no solution."""
        n, m, k = self.n, self.equalities, self.index
        if m:
            self.A[:m, :n], self.b[:m] = E, d
        self.A[m : m + n, :n], self.A[m + n : k, :n] = M, -M
        self.A[k + 2 * n : self.rows - self.soft, :n] = -G
        self.b[m : m + n], self.b[m + n : k] = effort - bias, effort + bias
        self.b[k : k + n], self.b[k + n : k + 2 * n] = upper, -lower
        self.b[k + 2 * n : self.rows - self.soft] = -least
        none = np.isinf(self.b)  # an infinite limit becomes 0 <= 1, which keeps structure and scaling
        self.b[none] = 1.0
        self.q[:n] = -2.0 * f
        A = np.where(none[:, None], 0.0, self.A)
        values = np.concatenate((2.0 * H.T[self.upper], np.full(self.soft, 2.0))), A.T[self.filled]
        solution = None
        if self._solver is not None:
            self._solver.update(P=values[0], q=self.q, A=values[1], b=self.b)
            solution = self._solver.solve()
        if solution is None or not _solved(solution):  # create it again, because its scaling was for other numbers
            self._solver = self._made(*values)
            solution = self._solver.solve()
        if not _solved(solution):
            raise SimulationError(f"the quadratic program was not solved: {solution.status}")
        x = np.array(solution.x)
        return x[:n], float(x[n:].max(initial=0.0))

    def _made(self, P: np.ndarray, A: np.ndarray) -> Any:
        """A solver for this structure, scaled for these numbers."""
        from scipy import sparse  # imported here because it takes long

        clarabel: Any = import_module("clarabel")
        settings = clarabel.DefaultSettings()
        for name in ("verbose", "presolve_enable"):  # presolving could change the structure, which updates need
            setattr(settings, name, False)
        filled = np.eye(self.n + self.soft, dtype=bool)
        filled[: self.n, : self.n] = self.upper
        matrices = []
        for pattern, x in ((filled, P), (self.filled, A)):  # by columns
            column, row = np.nonzero(pattern)
            matrices.append(
                sparse.csc_matrix((x, row, np.searchsorted(column, np.arange(len(pattern) + 1))), pattern.shape[::-1])
            )
        cones = [clarabel.NonnegativeConeT(self.rows - self.equalities)]
        if self.equalities:
            cones.insert(0, clarabel.ZeroConeT(self.equalities))
        return clarabel.DefaultSolver(matrices[0], self.q, matrices[1], self.b, cones, settings)


def _solved(solution: Any) -> bool:
    return str(solution.status).endswith("Solved") and bool(np.isfinite(solution.x).all())
