"""numpy's sums, extremes and statistics of arrays of symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import sum_from_zero
from .choices import argmax, argmin, each, entries, refused, symbolic, where_
from .dtypes import dtype_of
from .operators import number_of
from .requirements import require
from .symbols import as_numpy, invert, relation


def _numbers(a: Any) -> np.ndarray:
    """Conditions converted to 0 and 1."""
    return np.frompyfunc(lambda x: as_numpy(number_of(x)), 1, 1)(entries(a))


def _chosen(a: Any, where: Any, other: Any) -> Any:
    """The entries where a mask holds, and another number elsewhere."""
    if where is True:
        return a
    mask = entries(where)
    if dtype_of(mask).kind != "b":
        raise TypeError("the mask where= is not an array of bools")
    a = _numbers(a)
    return where_(mask, a, int(other) if other in (0, 1) and _is_whole(a) else other)


def _is_whole(a: Any) -> bool:
    return dtype_of(entries(_numbers(a))).kind == "i"


def _initial(a: Any, initial: Any) -> Any:
    """An initial value that does not change the type of a sum or extreme."""
    if _is_whole(a) and not _is_whole(initial):
        raise TypeError("the initial value is a float and the array is not")
    return initial


def _sum(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
    total = np.add.reduce(_numbers(_chosen(a, where, 0.0)), axis=axis, keepdims=bool(keepdims))
    return sum_from_zero(total + _initial(a, initial) if initial is not None else total)


def _prod(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.multiply.reduce(_numbers(a), axis=axis, keepdims=keepdims)


def mean(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    a = entries(a)
    total = symbolic(_sum(a, axis, keepdims))
    return np.divide(total, float(a.size // max(total.size, 1)))


def var(a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    a = symbolic(a)
    off = a - symbolic(mean(a, axis, True))
    total = symbolic(_sum(off * off, axis, keepdims))
    return np.divide(total, float(a.size // max(total.size, 1) - ddof))


def _root(variance: Callable[..., Any]) -> Callable[..., Any]:
    """The standard deviation by a variance."""
    return lambda a, axis=None, ddof=0, keepdims=False: np.sqrt(symbolic(variance(a, axis, ddof, keepdims)))


def average(a: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return mean(a, axis)
    if np.shape(weights) != np.shape(a):
        refused("np.average can be traced only if the weights have the shape of the array")
    return np.divide(symbolic(_sum(symbolic(a) * weights, axis)), symbolic(_sum(weights, axis)))


def _extreme(ufunc: np.ufunc) -> Callable[..., Any]:
    def extreme(a: Any, axis: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
        if initial is None and where is not True:
            raise TypeError("where= needs an initial value")
        a = symbolic(a if initial is None else _chosen(a, where, _initial(a, initial)))
        result = ufunc.reduce(a, axis=axis, keepdims=bool(keepdims))
        return result if initial is None else ufunc(symbolic(result), initial)

    return extreme


def _truth(ufunc: np.ufunc) -> Callable[..., Any]:
    return lambda a, axis=None, keepdims=False: ufunc.reduce(symbolic(a), axis=axis, keepdims=bool(keepdims))


def _ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return REDUCTIONS[np.max](a, axis, keepdims) - REDUCTIONS[np.min](a, axis, keepdims)


# --- without nan -----------------------------------------------------------------------------------------------------


def _without_nan(a: Any, other: float = 0.0) -> Any:
    return where_(_is_nan(a), other, a) if dtype_of(entries(a)).kind == "f" else a


def _is_nan(a: Any) -> Any:
    return np.isnan(symbolic(each(lambda x: x, a)))


def _count(a: Any, axis: Any, keepdims: Any) -> Any:
    return symbolic(_sum(where_(_is_nan(a), 0.0, 1.0), axis, keepdims))


def nanmean(a: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return np.divide(symbolic(_sum(_without_nan(a), axis, keepdims)), _count(a, axis, keepdims))


def nanvar(a: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    off = symbolic(a) - symbolic(nanmean(a, axis, True))
    off = symbolic(where_(_is_nan(a), 0.0, off))
    degrees = _count(a, axis, keepdims) - ddof
    variance = np.divide(symbolic(_sum(off * off, axis, keepdims)), symbolic(degrees))
    return where_(symbolic(degrees) <= 0.0, np.nan, variance)


def _first_without_nan(extreme: Callable[..., Any], other: float) -> Callable[..., Any]:
    def first(a: Any, axis: Any = None) -> Any:
        for count in entries(_count(a, axis, False)).ravel().tolist():
            require(invert(relation("eq", count, 0.0)))
        return extreme(_without_nan(a, other), axis)

    return first


# --- of several variables --------------------------------------------------------------------------------------------


def cov(m: Any, y: Any = None, bias: bool = False, ddof: Any = None) -> Any:
    x = np.atleast_2d(entries(m))
    x = x if y is None else np.concatenate([x, np.atleast_2d(entries(y))])
    samples = x.shape[1] - (ddof if ddof is not None else 0 if bias else 1)
    if not samples > 0:
        refused("np.cov and np.corrcoef can be traced only for more samples than ddof")
    off = symbolic(x) - symbolic(mean(x, 1, True))
    return np.squeeze(off @ off.T * (1.0 / samples))


def corrcoef(x: Any, y: Any = None) -> Any:
    c = symbolic(cov(x, y))
    if not c.ndim:
        return c / c
    deviations = np.sqrt(np.diag(c))
    return np.clip(c / deviations[:, None] / deviations, -1.0, 1.0)


REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _sum,
    np.prod: _prod,
    np.mean: mean,
    np.var: var,
    np.std: _root(var),
    np.average: average,
    np.max: _extreme(np.maximum),
    np.min: _extreme(np.minimum),
    np.ptp: _ptp,
    np.any: _truth(np.logical_or),
    np.all: _truth(np.logical_and),
    np.nansum: lambda a, axis=None, keepdims=False: _sum(_without_nan(a), axis, keepdims),
    np.nanprod: lambda a, axis=None, keepdims=False: _prod(_without_nan(a, 1.0), axis, keepdims),
    np.nanmax: lambda a, axis=None, keepdims=False: np.fmax.reduce(symbolic(a), axis=axis, keepdims=bool(keepdims)),
    np.nanmin: lambda a, axis=None, keepdims=False: np.fmin.reduce(symbolic(a), axis=axis, keepdims=bool(keepdims)),
    np.nanmean: nanmean,
    np.nanvar: nanvar,
    np.nanstd: _root(nanvar),
    np.nanargmax: _first_without_nan(argmax, -np.inf),
    np.nanargmin: _first_without_nan(argmin, np.inf),
    np.nancumsum: lambda a, axis=None: np.cumsum(symbolic(_without_nan(a)), axis=axis),
    np.cov: cov,
    np.corrcoef: corrcoef,
}
