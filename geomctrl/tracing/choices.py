"""numpy functions that select: by condition, from tables, maximum and minimum."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from .arrays import SymbolArray
from .dtypes import dtype_of, refuse_common
from .entries import refuse_dtype
from .operators import floor_divided, modulo, number_of
from .requirements import require
from .symbols import (
    INT64,
    UntraceableError,
    add,
    as_python,
    both,
    caller,
    div,
    invert,
    is_finite,
    is_symbol,
    relation,
    truth,
    unary,
    where,
    with_kind,
)

Elementwise = Callable[..., Any]


def entries(x: Any) -> np.ndarray:
    """x as a plain array of Python numbers, symbols and conditions."""
    if hasattr(x, "graph"):
        out = np.empty((), object)
        out[()] = x
        return out
    if isinstance(x, (tuple, list)):
        refuse_common(x)
    out = np.asarray(x)
    refuse_dtype(out)
    return out if out.dtype == object else out.astype(object)


def each(function: Elementwise, *arrays: Any) -> Any:
    return np.frompyfunc(function, len(arrays), 1)(*map(entries, arrays))


def symbolic(x: Any) -> Any:
    """The entries of x as an array for numpy's elementwise functions of symbols."""
    return entries(x).view(SymbolArray)


def refused(message: str) -> Any:
    raise UntraceableError(f"{message}{caller()}")


def where_(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None or y is None:
        return nonzero(condition)
    result, whole = each(where, condition, x, y), all(dtype_of(entries(a)).kind == "i" for a in (x, y))
    return each(lambda a: with_kind(a, INT64), result) if whole else result


def nonzero(a: Any) -> Any:
    """The indices of entries that are not zero: each entry is a branch."""
    return np.nonzero(np.asarray(np.frompyfunc(bool, 1, 1)(entries(a)), bool))


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    x = symbolic(x)
    conditions = [symbolic(c) for c in (condlist if isinstance(condlist, (list, tuple)) else [condlist])]
    if len(funclist) == len(conditions) + 1:
        conditions.append(np.logical_not(functools.reduce(np.logical_or, conditions)))
    elif len(funclist) != len(conditions):
        raise ValueError(f"with {len(conditions)} condition(s), either {len(conditions)} functions are expected")
    y = symbolic(np.zeros(x.shape))
    for condition, f in zip(conditions, funclist):
        y[condition] = f(x[condition], *args, **kw) if callable(f) else f
    return y


def first_of(worse: Elementwise) -> Callable[..., Any]:
    """argmax or argmin: the first extreme entry, or the first nan."""

    def first(a: Any, axis: Any = None) -> Any:
        a = entries(a)
        a = np.frompyfunc(number_of, 1, 1)(a) if a.ndim else a
        rows = a.reshape(1, -1) if axis is None else np.moveaxis(a, axis, -1)
        out = np.empty(rows.shape[:-1], object)
        for place in np.ndindex(out.shape):
            (best, *others), index = rows[place].tolist(), 0.0
            for k, x in enumerate(others, 1):
                wins = both(relation("eq", best, best), invert(worse(x, best)))
                best, index = where(wins, x, best), where(wins, float(k), index)
            out[place] = with_kind(index, INT64) if is_symbol(index) else int(index)
        return out[0] if axis is None else out

    return first


argmax = first_of(lambda x, best: both(invert(relation("lt", best, x)), relation("eq", x, x)))
argmin = first_of(lambda x, best: both(invert(relation("lt", x, best)), relation("eq", x, x)))


def searchsorted(a: Any, v: Any, side: str = "left") -> Any:
    knots = entries(a).tolist()
    if np.ndim(a) != 1 or any(map(is_symbol, knots)) or not all(x <= y for x, y in pairwise(knots)):
        refused("np.searchsorted and np.digitize can be traced only if the table is constant and increasing")
    return each(lambda x: _place(knots, x, side == "right"), v)


def _place(knots: list[float], x: Any, right: bool) -> Any:
    """Number of knots before x; nan comes last."""
    before = [relation("le", y, x) if right else relation("lt", y, x) for y in knots]
    count = functools.reduce(add, [where(y, 1.0, 0.0) for y in before], 0.0)
    count = where(relation("eq", x, x), count, float(len(knots)))
    return with_kind(count, INT64) if is_symbol(count) else int(count)


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    knots = entries(bins)
    if knots.size > 1 and knots[0] > knots[-1]:
        return len(knots) - symbolic(searchsorted(knots[::-1], x, "left" if right else "right"))
    return searchsorted(knots, x, "left" if right else "right")


def count_nonzero(a: Any) -> Any:
    return as_python(sum((number_of(truth(x)) for x in entries(a).ravel().tolist()), 0))


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    refuse_common((a, low, high), weak=True)
    a = symbolic(a) if low is None else np.maximum(symbolic(a), low)
    a = a if high is None else np.minimum(a, high)
    if out is None:
        return a
    out.view(SymbolArray)[...] = a
    return out


def select(condlist: Any, choicelist: Any, default: Any = 0.0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        default = where_(condition, choice, default)
    return default


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear interpolation."""
    if period is not None:
        return _interp_of_period(x, xp, fp, period)
    x, xp, fp = symbolic(x), entries(xp).ravel().tolist(), entries(fp).ravel().tolist()
    if any(map(is_symbol, xp)) or not all(a < b for a, b in pairwise(xp)):
        refused("np.interp can be traced only if xp is constant and increasing")
    if len(xp) != len(fp) or not xp or not all(math.isfinite(y) for y in (*xp, *fp) if not is_symbol(y)):
        refused("np.interp can be traced only if xp and fp are finite and of equal length")
    value: Any = entries(fp[0] if left is None else left)
    for k in range(len(xp) - 1):
        slope = div(fp[k + 1] - fp[k], xp[k + 1] - xp[k])
        value = where_(x >= xp[k], slope * (x - xp[k]) + fp[k], value)
    value = where_(x >= xp[-1], fp[-1], value)
    value = value if right is None else where_(x > xp[-1], right, value)
    return where_(np.isnan(x), x, value)


def _interp_of_period(x: Any, xp: Any, fp: Any, period: Any) -> Any:
    """Interpolation between knots that numpy moves into the first period; it ignores `left` and `right`."""
    xp, fp = entries(xp).ravel(), entries(fp).ravel().tolist()
    if any(map(is_symbol, [period, *xp.tolist()])):
        refused("np.interp can be traced only if xp and period are constant")
    if period == 0.0:
        raise ValueError("period must be a non-zero value")
    period = abs(float(period))
    knots = np.array(xp, float) % period
    order = np.argsort(knots).tolist()
    knots = [knots[order[-1]] - period, *knots[order].tolist(), knots[order[0]] + period]
    return interp(each(modulo, symbolic(x), period), knots, [fp[k] for k in (order[-1], *order, order[0])])


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x, largest = symbolic(x), float(np.finfo(float).max)
    x = where_(np.isnan(x), nan, x)
    x = where_(each(lambda y: relation("eq", y, math.inf), x), largest if posinf is None else posinf, x)
    return where_(each(lambda y: relation("eq", y, -math.inf), x), -largest if neginf is None else neginf, x)


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8) -> Any:
    def close(x: Any, y: Any) -> Any:
        near = relation("le", unary("abs", x - y), atol + rtol * unary("abs", y))
        return invert(both(invert(both(near, is_finite(y))), invert(relation("eq", x, y))))

    return each(close, a, b)


# --- by number -------------------------------------------------------------------------------------------------------


def choose(a: Any, choices: Any) -> Any:
    index, *options = np.broadcast_arrays(entries(a), *map(entries, choices))
    if dtype_of(index).kind == "f":
        raise TypeError("the indices are not integers")
    chosen = options[0]
    for k, option in enumerate(options):
        chosen = where_(each(lambda i, k=k: relation("eq", number_of(i), float(k)), index), option, chosen)
    for i in index.ravel().tolist():
        require(both(relation("le", 0.0, number_of(i)), relation("lt", number_of(i), float(len(options)))))
    return chosen


def compress(condition: Any, a: Any, axis: Any = None) -> Any:
    """The entries where a condition holds: their number is constant, or each entry is a branch."""
    (places,) = nonzero(np.ravel(entries(condition)))
    return np.take(entries(a), places, axis)


def isin(element: Any, test_elements: Any) -> Any:
    others = [number_of(y) for y in entries(test_elements).ravel().tolist()]

    def found(x: Any) -> Any:
        return invert(functools.reduce(both, (invert(relation("eq", number_of(x), y)) for y in others), True))

    return each(found, element)


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    a, places = (entries(x).ravel() if axis is None else np.moveaxis(entries(x), axis, -1) for x in (arr, indices))
    if a.shape[:-1] != places.shape[:-1]:
        refused("np.take_along_axis can be traced only for arrays and indices of the same shape")
    out = np.empty(places.shape, object)
    for k in np.ndindex(a.shape[:-1]):
        out[k] = a[k].view(SymbolArray)[places[k].view(SymbolArray)].view(np.ndarray)
    return out if axis is None else np.moveaxis(out, -1, axis)


def unravel_index(indices: Any, shape: Any) -> Any:
    places, remaining = [], entries(indices)
    for i in remaining.ravel().tolist():
        require(both(relation("le", 0.0, i), relation("lt", i, float(math.prod(np.atleast_1d(shape).tolist())))))
    for n in np.atleast_1d(shape).tolist()[::-1]:
        places.append(each(lambda i, n=n: with_kind(modulo(i, float(n)), INT64), remaining))
        remaining = each(lambda i, n=n: floor_divided(i, float(n)), remaining)
    return tuple(places[::-1])


# --- written entries -------------------------------------------------------------------------------------------------


def _write(array: np.ndarray, key: Any, value: Any) -> None:
    if not array.flags.writeable:
        refused("a function of numpy writes into an array that is read-only, or that an integer selects")
    (array.view(SymbolArray) if array.dtype == object else array)[key] = value


def place(arr: Any, mask: Any, vals: Any) -> None:
    if np.size(vals) != 1:
        refused("np.place can be traced only with one value: write x[mask] = value")
    putmask(arr, mask, vals)


def putmask(a: Any, mask: Any, values: Any) -> None:
    if np.shape(a) != np.shape(mask):
        raise ValueError("putmask: mask and data must be the same size")
    _write(a, ..., where_(each(truth, mask), np.resize(entries(values), np.shape(a)), a))


def put(a: Any, ind: Any, v: Any) -> None:
    places = entries(ind).ravel().tolist()
    for k, x in zip(places, np.resize(entries(v), len(places)).tolist()):
        if is_symbol(k):
            refused("np.put can be traced only with constant indices: write x[index] = value")
        _write(a, np.unravel_index(k % a.size if -a.size <= k < a.size else k, a.shape), x)
