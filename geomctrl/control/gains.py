"""Gains of controllers: symmetric positive definite matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, flag
from geomctrl.errors import ArgumentError


def gain_matrix(name: str, gain: ArrayLike, n: int, definite: bool = True) -> np.ndarray:
    """A symmetric positive definite (n, n) gain from a scalar, n diagonal entries or a matrix."""
    n, definite, K = count("n", n), flag("definite", definite), np.array(checked(name, gain, ()))
    if K.shape in ((), (n,)):
        K = np.diag(np.broadcast_to(K, n))
    if K.shape != (n, n):
        raise ArgumentError(f"{name}: expected a number, {n} numbers or a ({n}, {n}) matrix, got shape {K.shape}")
    if np.abs(K - K.T).max(initial=0.0) > 1e-9 * np.abs(K).max(initial=0.0):
        raise ArgumentError(f"{name}: expected a finite symmetric matrix")
    diagonal = np.diagonal(K)
    is_diagonal = np.count_nonzero(K) == np.count_nonzero(diagonal)
    smallest = (diagonal.min() if is_diagonal else np.linalg.eigvalsh(K)[0]) if n else 1.0
    if smallest < 0.0 or (definite and smallest <= 0.0):
        kind = "positive definite" if definite else "positive semidefinite"
        raise ArgumentError(f"{name}: expected a {kind} gain, got smallest eigenvalue {smallest:.6g}")
    return K
