"""A log reduced to triangular factors: sufficient for most estimators, and small whatever its length.

With [Y_k tau_k] = Q_k R_k over all samples of joint k, |Y_k x - tau_k| = |R_k (x, -1)| for every x. There is one factor
for each joint: a joint's torque depends only on the bodies beyond it (fewer columns), and weights and errors per joint
can be changed without reading the log again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly, one_or_each, without_overflow_warnings


class Columns(Protocol):
    """The properties of a model used here: its number of parameters, and those that each joint torque depends on."""

    size: int
    active: list[np.ndarray]


@dataclass(frozen=True, eq=False)
class Compressed:
    """A log for estimators: for each joint k the triangular factor of [Y_k tau_k] over its `counts[k]` rows."""

    model: Columns
    factors: tuple[np.ndarray, ...]
    counts: np.ndarray

    @without_overflow_warnings
    def system(self, weights: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(A, b), A (rows, size) with few rows: |A x - b|^2 = sum_k weights_k^2 |Y_k x - tau_k|^2 for every x."""
        w = one_or_each("weights", 1.0 if weights is None else weights, len(self.factors))
        rows = []
        for columns, R, wk in zip(self.model.active, self.factors, w):
            block = np.zeros((len(R), self.model.size + 1))
            block[:, columns], block[:, -1] = wk * R[:, :-1], wk * R[:, -1]
            rows.append(block)
        R = triangle(np.asfortranarray(np.vstack(rows)))
        return R[:, :-1], R[:, -1]

    @without_overflow_warnings
    def residuals(self, x: np.ndarray) -> np.ndarray:
        """|Y_k x - tau_k| per joint (nv,) [N m]."""
        x = exactly("x", x, (self.model.size,))
        return np.array(
            [np.linalg.norm(R[:, :-1] @ x[columns] - R[:, -1]) for columns, R in zip(self.model.active, self.factors)]
        )

    @property
    def norms(self) -> np.ndarray:
        """|tau_k| per joint (nv,) [N m]."""
        return np.array([np.linalg.norm(R[:, -1]) for R in self.factors])

    def rms(self, x: np.ndarray) -> np.ndarray:
        """Root mean square residual per joint (nv,) [N m]."""
        return self.residuals(x) / np.sqrt(np.maximum(self.counts, 1))

    def relative_error(self, x: np.ndarray) -> float:
        """|tau - Y x| / |tau| over all joints and samples."""
        return float(np.linalg.norm(self.residuals(x)) / np.linalg.norm(self.norms))

    def __add__(self, other: Compressed) -> Compressed:
        """The factors of both logs together."""
        for one, rows in ((other, self.counts), (self, other.counts)):
            if not rows.any():
                return one
        factors = tuple(triangle(np.asfortranarray(np.vstack(pair))) for pair in zip(self.factors, other.factors))
        return Compressed(self.model, factors, self.counts + other.counts)


class Factors:
    """Triangular factors that grow by a chunk of rows at a time, in constant memory."""

    def __init__(self, model: Columns):
        self.model = model
        self.factors = [np.zeros((0, len(columns) + 1)) for columns in model.active]
        self.counts = np.zeros(len(model.active), dtype=int)

    def add(self, blocks: Sequence[np.ndarray], tau: np.ndarray, mask: np.ndarray) -> None:
        """blocks: from `RegressorModel._blocks`."""
        for k, columns in enumerate(self.model.active):
            inertial, own = blocks[2 * k], blocks[2 * k + 1]
            split = inertial.shape[1]
            use = mask[:, k]
            everything = bool(use.all())
            n = len(use) if everything else int(use.sum())
            R, rows = self.factors[k], len(self.factors[k]) + n
            A = np.empty((rows, len(columns) + 1), order="F")
            A[: len(R)] = R
            rest = slice(None) if everything else use
            A[len(R) :, :split], A[len(R) :, split:-1] = inertial[rest], own[rest]
            A[len(R) :, -1] = tau[rest, k]
            self.factors[k] = triangle(A)
            self.counts[k] += n

    def result(self) -> Compressed:
        return Compressed(self.model, tuple(self.factors), self.counts)


def triangle(A: np.ndarray) -> np.ndarray:
    """R of A = Q R; A (Fortran order) is overwritten."""
    if len(A) == 0:
        return A.copy()
    from scipy.linalg import get_lapack_funcs

    geqrf: Any = get_lapack_funcs("geqrf", (A,))
    factored, _, _, info = geqrf(A, overwrite_a=1)
    assert info == 0
    return np.triu(factored[: A.shape[1]])
