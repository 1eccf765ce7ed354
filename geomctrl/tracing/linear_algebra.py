"""Linear algebra of small symbolic matrices without branches: pivots are selected by `where`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .requirements import require
from .symbols import UntraceableError, binary, caller, compare, div, is_finite, is_symbol, relation, unary, where
from .untraceable_attribute import Unavailable


def _square(A: Any, name: str) -> np.ndarray:
    A = np.array(A, dtype=object)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise TypeError(f"{name}: expected one square matrix, got shape {A.shape}")
    return A


def _larger(a: Any, b: Any) -> Any:
    """|a| > |b|"""
    a, b = unary("abs", a), unary("abs", b)
    return compare("lt", b, a) if is_symbol(a) or is_symbol(b) else b < a


def _eliminated(A: np.ndarray, B: np.ndarray, determinant: bool = False) -> Any:
    """Eliminate in A and B with row pivoting, in place; returns both and the sign of the row permutation."""
    n, sign = len(A), 1.0
    for k in range(n):
        for i in range(k + 1, n):  # moves the larger pivot up
            swap = _larger(A[i, k], A[k, k])
            if swap is not False:
                for X in (A, B):
                    for j in range(k if X is A else 0, X.shape[1]):
                        X[k, j], X[i, j] = where(swap, X[i, j], X[k, j]), where(swap, X[k, j], X[i, j])
                sign = where(swap, -1.0 * sign, sign)
        for i in range(k + 1, n):
            factor = div(A[i, k], A[k, k])
            if determinant:  # a column of zeros: the product of the pivots is 0
                factor = where(relation("eq", A[k, k], 0.0), 0.0, factor)
            for j in range(k + 1, n):
                A[i, j] = A[i, j] - factor * A[k, j]
            for j in range(B.shape[1]):
                B[i, j] = B[i, j] - factor * B[k, j]
    return sign


def solve(a: Any, b: Any) -> np.ndarray:
    A, B = _square(a, "solve"), np.array(b, dtype=object)
    X = B.reshape(len(A), -1).copy()
    _eliminated(A, X)
    for k in range(len(A) - 1, -1, -1):
        for j in range(X.shape[1]):
            for i in range(k + 1, len(A)):
                X[k, j] = X[k, j] - A[k, i] * X[i, j]
            X[k, j] = div(X[k, j], A[k, k])
    return X.reshape(B.shape)


def inverse(a: Any) -> np.ndarray:
    return solve(a, np.eye(len(a)).astype(object))


def determinant(a: Any) -> Any:
    A = _square(a, "det")
    if len(A) == 3:
        x, y, z = A
        return x.dot([y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2], y[0] * z[1] - y[1] * z[0]])
    product = _eliminated(A, np.empty((len(A), 0), object), determinant=True)
    for k in range(len(A)):
        product = product * A[k, k]
    return product


def cholesky(a: Any) -> np.ndarray:
    """L with L L^T = a; requires that a is positive definite."""
    A = _square(a, "cholesky")
    L = np.zeros(A.shape).astype(object)
    for j in range(len(A)):
        for i in range(j, len(A)):
            x = A[i, j]
            for k in range(j):
                x = x - L[i, k] * L[j, k]
            if i == j:
                require(relation("lt", 0.0, x))
            L[i, j] = unary("sqrt", x) if i == j else div(x, L[j, j])
    return L


def pseudo_inverse(a: Any) -> np.ndarray:
    """The pseudo-inverse of a matrix of full rank by Householder reflections; requires that it is far from singular."""
    A = np.array(a, dtype=object)
    if A.ndim != 2:
        raise TypeError(f"pinv: expected one matrix, got shape {A.shape}")
    if A.shape[0] < A.shape[1]:
        return pseudo_inverse(A.T).T
    m, n = A.shape
    R, Q = A.copy(), np.eye(m).astype(object)  # Q^T A = R
    for k in range(n):
        x = R[k:, k]
        length = unary("sqrt", sum(y * y for y in x))
        u = x.copy()
        u[0] = u[0] + where(relation("lt", u[0], 0.0), -1.0, 1.0) * length
        scale = div(2.0, sum(y * y for y in u))
        R[k:] = R[k:] - np.outer(u, scale * u.dot(R[k:]))
        Q[k:] = Q[k:] - np.outer(u, scale * u.dot(Q[k:]))
    sizes = [unary("abs", R[k, k]) for k in range(n)]
    for x in sizes:
        for y in sizes:
            require(relation("lt", FULL_RANK * y, x))
    X = Q[:n].copy()
    for k in range(n - 1, -1, -1):
        for i in range(k + 1, n):
            X[k] = X[k] - R[k, i] * X[i]
        X[k] = [div(x, R[k, k]) for x in X[k].tolist()]
    return X


FULL_RANK = 1e-7  # relative to the largest pivot (numpy: 1e-15 of the largest singular value)


def least_squares(a: Any, b: Any, rcond: Any = None, scalar_residual: bool = False) -> tuple:
    """x, residuals, rank and singular values of a least squares problem of full rank."""
    if is_symbol(rcond) or (rcond is not None and rcond > FULL_RANK**2):
        raise UntraceableError(f"lstsq can be traced only with rcond=None{caller()}")
    A, B = np.array(a, dtype=object), np.array(b, dtype=object)
    x = pseudo_inverse(A).dot(B)
    for y in x.ravel().tolist():
        require(is_finite(y))
    residuals: Any = np.zeros(0)
    if A.shape[0] > A.shape[1]:
        off = B - A.dot(x)
        residuals = np.atleast_1d((off * off).sum(axis=0))
        residuals = residuals[0] if scalar_residual and B.ndim == 1 else residuals
    unknown = Unavailable("the singular values of lstsq are used", "call np.linalg.svd(a, compute_uv=False)")
    return x, residuals, np.int32(min(A.shape)), unknown


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Singular values; the signs of singular vectors depend on the implementation."""
    del full_matrices
    vectors = Unavailable(
        "singular vectors of np.linalg.svd can not be traced, because their signs are arbitrary",
        "for a damped inverse write J.T @ np.linalg.inv(J @ J.T + damping**2 * np.eye(m))",
    )
    values = singular_values(a)
    for x in values.tolist():
        require(is_finite(x))  # otherwise numpy raises
    return (vectors, values, vectors) if compute_uv else values


def singular_values(a: Any) -> np.ndarray:
    """Singular values of a small matrix in decreasing order, by one-sided Jacobi rotations."""
    A = np.array(a, dtype=object)
    if A.ndim != 2 or min(A.shape) > MAX_SINGULAR:
        raise TypeError(f"expected one matrix with at most {MAX_SINGULAR} rows or columns, got shape {A.shape}")
    rows = A if A.shape[0] <= A.shape[1] else A.T.copy()
    pairs = [(p, q) for p in range(len(rows)) for q in range(p + 1, len(rows))]
    for _ in range(SWEEPS if len(rows) > 2 else len(pairs)):
        for p, q in pairs:
            x, y = rows[p], rows[q]
            c, s = _rotation(x.dot(x), y.dot(y), x.dot(y))
            rows[p], rows[q] = c * x - s * y, s * x + c * y
    squares = [x.dot(x) for x in rows]
    for p, q in pairs:
        product = rows[p].dot(rows[q])
        require(relation("le", product * product, ORTHOGONAL**2 * squares[p] * squares[q]))
    return np.array(_increasing([unary("sqrt", x) for x in squares])[::-1], object)


def condition_number(x: Any, p: Any = None) -> Any:
    """The largest over the smallest singular value; requires that the matrix is far from singular."""
    if p not in (None, 2):
        raise UntraceableError(f"np.linalg.cond can be traced only with p=None{caller()}, got {p!r:.20}")
    s = singular_values(x)
    require(relation("lt", FULL_RANK * s[0], s[-1]))
    return div(s[0], s[-1])


VECTORS = Unavailable(
    "eigenvectors can not be traced, because their signs and order are arbitrary",
    "np.linalg.inv, solve and cholesky replace most uses",
)
ORTHOGONAL = 1e-13  # largest cosine of the angle between rows after the rotations
MAX_SINGULAR = 6
SWEEPS = 7  # of Jacobi rotations, which converge quadratically for up to MAX_EIGEN rows


def symmetric_eigenvalues(a: Any) -> np.ndarray:
    """Eigenvalues of a small symmetric matrix in increasing order; only the lower triangle is used."""
    A = _square(a, "eigvalsh")
    n = len(A)
    if n > MAX_EIGEN:
        raise TypeError(f"eigvalsh: expected at most {MAX_EIGEN} rows, got {n}")
    for i in range(n):
        for j in range(i):
            A[j, i] = A[i, j]
    for _ in range(SWEEPS if n > 2 else 1):
        for p in range(n):
            for q in range(p + 1, n):
                _rotate(A, p, q)
    values = [A[k, k] for k in range(n)]
    return np.array(_increasing(values), object)


def _increasing(values: list[Any]) -> list[Any]:
    for last in range(len(values) - 1, 0, -1):
        for k in range(last):
            a, b = values[k], values[k + 1]
            values[k], values[k + 1] = binary("min", a, b), binary("max", a, b)
    return values


MAX_EIGEN = 4


def _rotation(a: Any, b: Any, product: Any) -> tuple[Any, Any]:
    """Cosine and sine of the Jacobi rotation that makes the symmetric matrix [[a, product], [product, b]] diagonal."""
    small = relation("eq", product, 0.0)
    theta = div(b - a, 2.0 * product)
    sign = where(relation("lt", theta, 0.0), -1.0, 1.0)
    t = div(sign, unary("abs", theta) + unary("sqrt", theta * theta + 1.0))
    t = where(small, 0.0, t)
    c = div(1.0, unary("sqrt", t * t + 1.0))
    return c, t * c


def _rotate(A: np.ndarray, p: int, q: int) -> None:
    """Apply the Jacobi rotation that makes A[p, q] zero."""
    c, s = _rotation(A[p, p], A[q, q], A[p, q])
    for k in range(len(A)):
        A[k, p], A[k, q] = c * A[k, p] - s * A[k, q], s * A[k, p] + c * A[k, q]
    for k in range(len(A)):
        A[p, k], A[q, k] = c * A[p, k] - s * A[q, k], s * A[p, k] + c * A[q, k]
    A[p, q] = A[q, p] = 0.0
