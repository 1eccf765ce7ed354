"""Norms, ranks and logarithms of determinants of arrays of symbols."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import linear_algebra
from .choices import refused, symbolic, where_
from .requirements import require
from .symbols import is_finite, is_symbol, relation, unary


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = symbolic(x)
    vector = (axis is not None and np.ndim(axis) == 0) or (axis is None and x.ndim == 1)
    if ord is None or (ord == 2 and vector) or ord == "fro":
        if axis is None and not keepdims:
            x = x.ravel()
        return np.sqrt(symbolic(np.square(x).sum(axis=axis, keepdims=keepdims)))
    if vector and not isinstance(ord, str) and not is_symbol(ord):
        size = np.abs(x)
        if ord == 1:
            return np.add.reduce(size, axis=axis, keepdims=keepdims)
        if abs(ord) == math.inf:
            return _of_norm(ord)(size, axis, keepdims)
        if ord == 0:
            return np.sum(np.where(size == 0.0, 0.0, 1.0), axis=axis, keepdims=keepdims)
        return np.power(symbolic(np.power(size, ord).sum(axis=axis, keepdims=keepdims)), 1.0 / ord)
    if axis is None and not keepdims and not isinstance(ord, str) and abs(ord) in (1, 2, math.inf):
        if abs(ord) == 2:
            return linear_algebra.svd(x, compute_uv=False)[0 if ord > 0 else -1]
        return _of_norm(ord)(symbolic(np.abs(x).sum(axis=0 if abs(ord) == 1 else 1)))
    return refused(f"np.linalg.norm with ord={ord!r:.20} can not be traced")


def _of_norm(ord: float) -> Callable[..., Any]:
    return np.max if ord > 0 else np.min


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    x = symbolic(x)
    if np.ndim(axis) or (axis is None and keepdims):
        refused("np.linalg.vector_norm can be traced along one axis, or of all entries without keepdims")
    return norm(x.ravel() if axis is None else x, ord, axis, keepdims)


def slogdet(a: Any) -> Any:
    """Sign and logarithm of a determinant that is neither zero nor beyond the range of floating-point numbers."""
    d = linear_algebra.determinant(a)
    size = unary("log", unary("abs", d))
    require(is_finite(size))
    return where_(relation("lt", d, 0.0), -1.0, 1.0), size


def matrix_rank(A: Any) -> Any:
    """The full rank; requires that the matrix is far from singular."""
    linear_algebra.condition_number(A)
    return np.int64(min(np.shape(A)))
