"""Matrix products, block matrices and the adjoint maps, for numpy arrays with leading axes.

Complex entries are allowed, so that derivatives can be computed by the complex step.
"""

import numpy as np


def mul(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return A x (..., m) of matrices (..., m, n) and vectors (..., n)."""
    return (A @ x[..., None])[..., 0]


def transpose(A: np.ndarray) -> np.ndarray:
    return A.swapaxes(-1, -2)


def blocks(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the block matrix [[a, b], [c, d]]."""
    return np.concatenate((np.concatenate((a, b), -1), np.concatenate((c, d), -1)), -2)


def hat(x: np.ndarray) -> np.ndarray:
    """Return the matrix [x] (..., 3, 3) of the cross product with x (..., 3)."""
    return np.cross(x[..., None, :], np.eye(3)).swapaxes(-1, -2)


def ad(X: np.ndarray) -> np.ndarray:
    """Return the matrix (..., 6, 6) of ad_X: Ploen 1999 (6)."""
    w, v = hat(X[..., :3]), hat(X[..., 3:])
    return blocks(w, np.zeros_like(w), v, w)


def Ad_inverse(f: np.ndarray) -> np.ndarray:
    """Return the matrix (..., 6, 6) of Ad_{f^-1}, which takes a parent's twist to the child at f: Ploen 1999 (4)."""
    Rt, p = transpose(f[..., :3, :3]), f[..., :3, 3]
    return blocks(Rt, np.zeros_like(Rt), -Rt @ hat(p), Rt)
