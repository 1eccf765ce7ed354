"""Linear algebra of small matrices of symbols, without a branch: pivots are chosen by selection."""

from __future__ import annotations

from typing import Any

import numpy as np

from .symbols import compare, is_symbol, unary, where


def _square(A: Any, name: str) -> np.ndarray:
    A = np.array(A, dtype=object)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise TypeError(f"{name}: one square matrix traces, got shape {A.shape}")
    return A


def _larger(a: Any, b: Any) -> Any:
    """|a| > |b|"""
    a, b = unary("abs", a), unary("abs", b)
    return compare("lt", b, a) if is_symbol(a) or is_symbol(b) else b < a


def _eliminated(A: np.ndarray, B: np.ndarray) -> Any:
    """Both after elimination with row pivoting, in place, and the sign of the rows' order."""
    n, sign = len(A), 1.0
    for k in range(n):
        for i in range(k + 1, n):  # the larger of both pivots moves up
            swap = _larger(A[i, k], A[k, k])
            if swap is not False:
                for X in (A, B):
                    for j in range(k if X is A else 0, X.shape[1]):
                        X[k, j], X[i, j] = where(swap, X[i, j], X[k, j]), where(swap, X[k, j], X[i, j])
                sign = where(swap, -1.0 * sign, sign)
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
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
            X[k, j] = X[k, j] / A[k, k]
    return X.reshape(B.shape)


def inverse(a: Any) -> np.ndarray:
    return solve(a, np.eye(len(a)).astype(object))


def determinant(a: Any) -> Any:
    A = _square(a, "det")
    if len(A) == 3:
        x, y, z = A
        return x.dot([y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2], y[0] * z[1] - y[1] * z[0]])
    product = _eliminated(A, np.empty((len(A), 0), object))
    for k in range(len(A)):
        product = product * A[k, k]
    return product


def cholesky(a: Any, **_: Any) -> np.ndarray:
    """L with L L^T = a; nan where a is not positive definite."""
    A = _square(a, "cholesky")
    L = np.zeros(A.shape).astype(object)
    for j in range(len(A)):
        for i in range(j, len(A)):
            x = A[i, j]
            for k in range(j):
                x = x - L[i, k] * L[j, k]
            L[i, j] = unary("sqrt", x) if i == j else x / L[j, j]
    return L
