"""The square root of an information matrix: R upper triangular with R^T R the information, and d with R x = d.

Rows are added by orthogonal transformations (Bierman 1977, chapter IV), so R^T R stays positive over any number of
updates, unlike products of covariances. Forgetting acts on R too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.identification.model.compressed import triangle
from geomctrl.tracing.numbers import has_symbols

MIN_SIZE = 1e-300  # keeps divisions by the size of a zero vector finite
MIN_RELATIVE_SIZE = 1e-9  # relative size below which new rows share no direction with earlier ones


def taken_in(R: Any, d: Any, rows: Any, y: Any) -> tuple[Any, Any, Any]:
    """Add rows (N, n) with right-hand sides y (N,): the new (R, d), the diagonal of R not negative, and the increase of
    the least sum of squares, |R x - d|^2 being zero before.

    Numbers use Householder reflections; symbols use Givens rotations, with the same result.
    """
    if has_symbols(R) or has_symbols(rows) or has_symbols(y) or has_symbols(d):
        return _rotated(R, d, rows, y)
    n = R.shape[1]
    stack = np.zeros((len(R) + len(rows), n + 1))
    stack[: len(R), :n], stack[: len(R), n], stack[len(R) :, :n], stack[len(R) :, n] = R, d, rows, y
    T = triangle(np.asfortranarray(stack))
    left = float(T[n, n] * T[n, n]) if len(T) > n else 0.0
    T = np.vstack((T[:n], np.zeros((max(n - len(T), 0), n + 1))))
    T[np.diag(T[:, :n]) < 0.0] *= -1.0
    return T[:, :n], T[:, n], left


def _rotated(R: Any, d: Any, rows: Any, y: Any) -> tuple[Any, Any, Any]:
    """Add one row after the other, with one rotation for each entry; R (n, n) is upper triangular."""
    n = R.shape[1]
    own = [[R[i, j] for j in range(i, n)] + [d[i]] for i in range(n)]
    left: Any = 0.0
    for k in range(len(rows)):
        new = [*(rows[k, j] for j in range(n)), y[k]]
        for i in range(n):
            a, b = own[i][0], new[i]
            size = np.sqrt(a * a + b * b + MIN_SIZE)
            c, s = a / size, b / size
            rest = new[i:]
            own[i], new[i:] = (
                [c * x + s * w for x, w in zip(own[i], rest)],
                [c * w - s * x for x, w in zip(own[i], rest)],
            )
        left = left + new[n] * new[n]
    full = [[0.0] * i + own[i][:-1] for i in range(n)]
    return np.array(full), np.array([row[-1] for row in own]), left


def forgotten(R: np.ndarray, d: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Exponential forgetting: the information times `share`."""
    root = np.sqrt(share)
    return root * R, root * d


def forgotten_along(R: np.ndarray, d: np.ndarray, rows: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Directional forgetting (Cao and Schwartz 2000): the information times `share` in the directions of rows (N, n),

    Lambda - (1 - share) Lambda Phi (Phi^T Lambda Phi)^-1 Phi^T Lambda,   Phi = rows^T,

    and unchanged in all others, so that directions without excitation are not forgotten. The solution of R x = d stays.
    """
    seen = R @ rows.T
    U, s, _ = np.linalg.svd(seen, full_matrices=False)
    W = U[:, s > MIN_RELATIVE_SIZE * max(np.abs(R).max(initial=0.0) * np.abs(rows).max(initial=0.0), MIN_SIZE)]
    less = 1.0 - np.sqrt(share)
    return R - less * W @ (W.T @ R), d - less * W @ (W.T @ d)


def solved(R: Any, d: Any) -> Any:
    """x with R x = d, R (n, n) upper triangular and regular; for symbols by substitution."""
    if not (has_symbols(R) or has_symbols(d)):
        return np.linalg.solve(R, d)
    n = len(d)
    x: list[Any] = [0.0] * n
    for i in reversed(range(n)):
        total = d[i]
        for j in range(i + 1, n):
            total = total - R[i, j] * x[j]
        x[i] = total / R[i, i]
    return np.array(x)


def deviations(R: Any) -> Any:
    """The square roots of the diagonal of (R^T R)^-1, R as in `solved`."""
    if not has_symbols(R):
        return np.linalg.norm(np.linalg.inv(R), axis=1)
    n = R.shape[1]
    total: list[Any] = [0.0] * n
    for k in range(n):  # column k of R^-1 ends in row k
        column: list[Any] = [0.0] * n
        for i in reversed(range(k + 1)):
            rest: Any = 1.0 if i == k else 0.0
            for j in range(i + 1, k + 1):
                rest = rest - R[i, j] * column[j]
            column[i] = rest / R[i, i]
            total[i] = total[i] + column[i] * column[i]
    return np.array([np.sqrt(x) for x in total])
