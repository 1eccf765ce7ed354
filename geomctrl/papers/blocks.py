"""Matrices with leading axes: what the terms written in numpy share. Complex entries go through, for complex steps."""

import numpy as np


def mul(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x (..., m) of matrices (..., m, n) and vectors (..., n)."""
    return (A @ x[..., None])[..., 0]


def transpose(A: np.ndarray) -> np.ndarray:
    return A.swapaxes(-1, -2)


def blocks(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """[[a, b], [c, d]]."""
    return np.concatenate((np.concatenate((a, b), -1), np.concatenate((c, d), -1)), -2)
