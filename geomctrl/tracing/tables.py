"""Interpolation objects of scipy with known knots, evaluated on symbols.

`PPoly` (with `CubicSpline`, `PchipInterpolator`, `Akima1DInterpolator`), `BSpline`, `UnivariateSpline` and `interp1d`
call compiled code of scipy for numbers only. While a law is traced, the piece is selected by comparisons and its
polynomial evaluated.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from .arrays import SymbolArray, has_symbols, holds_symbols, operand, symbol_array, wrapped
from .choices import entries
from .entries import as_number
from .operators import modulo
from .requirements import require
from .rotations import SymbolicRotation, choose_quaternion, from_rotvec, of_quaternion
from .symbols import (
    WHOLE,
    Condition,
    UntraceableError,
    as_numpy,
    as_python,
    both,
    caller,
    certain,
    invert,
    is_symbol,
    relation,
    where,
)

MAX_CHOICES = 4096  # coefficients times pieces that may be selected


@contextmanager
def scipy_on_symbols() -> Iterator[None]:
    """Context in which interpolation objects of scipy accept symbols; numbers are handled as usual in all threads."""
    replaced: list[tuple[type, Any]] = []
    try:
        for path, on_symbols in CALLED.items():
            module, _, name = path.rpartition(".")
            kind = getattr(sys.modules.get(module), name, None)
            if kind is not None:
                replaced.append((kind, vars(kind).get("__call__")))
                kind.__call__ = _either(kind.__call__, on_symbols)
        yield
    finally:
        for kind, original in replaced:
            if original is None:
                del kind.__call__
            else:
                kind.__call__ = original


def _either(original: Callable[..., Any], on_symbols: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked = any(map(_depends, args if on_symbols is vectorized else args[:1]))
        return (on_symbols if asked else original)(self, *args, **kwargs)

    return call


def _depends(x: Any) -> bool:
    return holds_symbols(x) or any(map(has_symbols, x if isinstance(x, (list, tuple)) else ()))


def _polynomials(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    knots, c = _knots(self.x), np.asarray(self.c)
    if nu < 0 or np.iscomplexobj(c) or self.axis != 0:
        raise UntraceableError(
            f"{type(self).__name__} can be traced only for real values on axis 0 without integration{caller()}"
        )
    return _over(x, lambda y: _piece(y, knots, c, nu, extrapolate), c.shape[2:])


def _interpolated(self: Any, x: Any) -> Any:
    """A call of interp1d."""
    kind, y = getattr(self, "_kind", "linear"), np.moveaxis(np.asarray(self.y, float), self.axis, 0)
    if kind not in ("linear", "spline") or not np.isfinite(y).all() or (np.ndim(x) and y.ndim > 1 and self.axis):
        raise UntraceableError(f"interp1d can be traced only if it is linear or a spline, on axis 0{caller()}")
    knots = _knots(self.x)
    if kind == "linear":
        pieces = knots, np.array([(np.diff(y, axis=0).T / np.diff(knots)).T, y[:-1]])
    else:
        pieces = _pieces(self._spline.t, self._spline.c, self._spline.k)
    shape = y.shape[1:]

    def value(x: Any) -> list[Any]:
        values = _piece(x, *pieces, 0, True)
        if isinstance(self.fill_value, str):  # "extrapolate"
            return values
        below, above = relation("lt", x, knots[0]), relation("lt", knots[-1], x)
        if self.bounds_error:  # scipy raises
            require(both(invert(below), invert(above)))
            return values
        ends = (
            np.broadcast_to(np.reshape(z, np.shape(z) and shape), shape).ravel().tolist()
            for z in (self._fill_value_below, self._fill_value_above)
        )
        return [where(above, high, where(below, low, y)) for y, low, high in zip(values, *ends)]

    return _over(x, value, shape)


def _pieces(t: Any, c: Any, k: int) -> tuple[list[float], np.ndarray]:
    """The polynomials of a B-spline between its knots, like those of PPoly."""
    last = len(t) - k - 1
    knots = np.unique(np.asarray(t, float)[k : last + 1])
    spline = sys.modules["scipy.interpolate"].BSpline(t, np.asarray(c)[:last], k)
    return knots.tolist(), np.array([spline(knots[:-1], p) / math.factorial(p) for p in range(k, -1, -1)])


def _bspline(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    if np.iscomplexobj(self.c) or self.axis != 0:
        raise UntraceableError(f"BSpline can be traced only for real values on axis 0{caller()}")
    pieces = _pieces(self.t, self.c, self.k)
    return _over(x, lambda y: _piece(y, *pieces, nu, extrapolate), np.shape(self.c)[1:])


def splev(x, tck, der=0, ext=0):
    """scipy's splev of one spline or, as from splprep, several."""
    if ext != 0:
        raise TypeError("splev can be traced only with ext=0")
    t, c, k = (tck.t, tck.c, tck.k) if hasattr(tck, "tck") else tck
    if isinstance(c, (list, tuple)) or np.ndim(c) > 1:
        return [splev(x, (t, y, k), der) for y in c]
    pieces = _pieces(t, c, k)
    return _over(x, lambda y: _piece(y, *pieces, der, True), ())


def _univariate(self: Any, x: Any, nu: int = 0, ext: Any = None) -> Any:
    if (self.ext if ext is None else ext) not in (0, "extrapolate"):
        raise UntraceableError(f"UnivariateSpline can be traced only if it extrapolates{caller()}")
    return splev(x, self._eval_args, nu)


def _each(function: Callable[..., Any], *arrays: Any) -> Any:
    return np.frompyfunc(function, len(arrays), 1)(*map(operand, arrays))


def _on_grid(self: Any, xi: Any, method: Any = None) -> Any:
    """A call of RegularGridInterpolator: linear along one axis after the other."""
    if (method or self.method) != "linear" or np.size(self.values) > MAX_CHOICES:
        raise UntraceableError(
            f"RegularGridInterpolator can be traced only if it is linear, with at most {MAX_CHOICES} values{caller()}"
        )
    points = (
        np.stack(np.broadcast_arrays(*map(entries, xi)), -1) if isinstance(xi, tuple) else np.atleast_2d(entries(xi))
    )
    grid, values = [_knots(x) for x in self.grid], np.asarray(self.values, float)
    if points.shape[-1] != len(grid):
        raise ValueError(f"expected points of {len(grid)} coordinates, got shape {points.shape}")
    shape = values.shape[len(grid) :]

    def at(point: list[Any]) -> list[Any]:
        inside, table = True, values.astype(object)
        for x, knots in zip(point, grid):
            part, low, high = (x - knots[0]) / (knots[1] - knots[0]), table[0], table[1]
            for k in range(1, len(knots) - 1):
                later = relation("le", knots[k], x)
                part = where(later, (x - knots[k]) / (knots[k + 1] - knots[k]), part)
                low, high = (
                    _each(lambda a, b, later=later: where(later, a, b), *pair)
                    for pair in ((table[k], low), (table[k + 1], high))
                )
            table = _each(lambda a, b, part=part: a * (1.0 - part) + b * part, low, high)
            inside = both(inside, both(relation("le", knots[0], x), relation("le", x, knots[-1])))
        results = np.ravel(operand(table)).tolist()
        if self.bounds_error:  # scipy raises
            require(inside)
        elif self.fill_value is not None:
            missing = functools.reduce(both, (relation("eq", x, x) for x in point))
            results = [where(inside, y, where(missing, self.fill_value, np.nan)) for y in results]
        return results

    rows = points.reshape(-1, len(grid)).tolist()
    return symbol_array([y for row in rows for y in at(row)], (*points.shape[:-1], *shape)).view(SymbolArray)


def slerp(self: Any, times: Any) -> SymbolicRotation:
    """A call of scipy's Slerp while user code runs with symbols."""
    if np.ndim(times):
        raise UntraceableError(f"Slerp can be traced for single times only{caller()}")
    t, knots = entries(times).item(), self.times.tolist()
    start, delta = knots[0], knots[1] - knots[0]
    q, r = self.rotations.as_quat().tolist(), self.rotvecs.tolist()
    turn, first = r[0], q[0]
    for k in range(1, len(r)):
        later = relation("lt", knots[k], t)
        start, delta = where(later, knots[k], start), where(later, knots[k + 1] - knots[k], delta)
        turn, first = choose_quaternion(later, r[k], turn), choose_quaternion(later, q[k], first)
    require(both(relation("le", knots[0], t), relation("le", t, knots[-1])))  # otherwise scipy raises
    part = (t - start) / delta
    return of_quaternion(first) * of_quaternion(from_rotvec([part * x for x in turn]))


def vectorized(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The function of np.vectorize called for each entry; numpy casts all results to the type of the first one."""
    if kwargs or self.excluded or self.signature is not None or self.cache:
        raise UntraceableError(f"np.vectorize can be traced only for arrays and with otypes=[...]{caller()}")
    parts = np.broadcast_arrays(*map(entries, args))
    if not parts[0].size:
        raise UntraceableError(f"np.vectorize of an empty array can not be traced{caller()}")
    rows = [[*map(as_number, row)] for row in zip(*(x.ravel().tolist() for x in parts))]
    dtype = np.dtype(self.otypes[0]) if self.otypes else _type_of(self.pyfunc(*map(as_numpy, rows[0])))
    out = np.empty(len(rows), object)
    of_arrays = [isinstance(x, np.ndarray) for x in args]  # numpy gives Python's numbers to the function
    out[:] = [self.pyfunc(*(as_python(x) if own else x for x, own in zip(row, of_arrays))) for row in rows]
    return wrapped(out.reshape(parts[0].shape)).astype(dtype)


def _type_of(x: Any) -> np.dtype:
    if isinstance(x, (tuple, list, np.ndarray)):
        raise UntraceableError(f"np.vectorize can be traced only for functions that return one number{caller()}")
    if not is_symbol(x) and type(x) is not Condition:
        return np.asarray(x).dtype
    return np.dtype(bool if type(x) is Condition else np.int64 if certain(x.kind) in WHOLE else float)


CALLED = {
    "numpy.vectorize": vectorized,
    "scipy.interpolate.RegularGridInterpolator": _on_grid,
    "scipy.interpolate.PPoly": _polynomials,
    "scipy.interpolate.BSpline": _bspline,
    "scipy.interpolate.interp1d": _interpolated,
    "scipy.interpolate.UnivariateSpline": _univariate,
    "scipy.spatial.transform.Slerp": slerp,
}


def _knots(x: Any) -> list[float]:
    if has_symbols(x) and any(map(is_symbol, np.ravel(x).tolist())):
        raise UntraceableError(f"a table can be traced only if its knots are constant{caller()}")
    knots = np.asarray(x, float).tolist()
    if not all(a < b for a, b in pairwise(knots)):
        raise UntraceableError(f"a table can be traced only if its knots increase{caller()}")
    return knots


def _over(x: Any, value: Callable[[Any], list[Any]], shape: tuple[int, ...]) -> Any:
    """Values at each entry of x, whose axes come first."""
    x = entries(x)
    values = [y for one in x.ravel().tolist() for y in value(one)]
    return symbol_array(values, (*x.shape, *shape)).view(SymbolArray)


def _piece(x: Any, knots: list[float], c: np.ndarray, nu: int, extrapolate: Any) -> list[Any]:
    """The polynomials of the piece that contains x, or their derivatives of order nu: sums of powers as in scipy."""
    order, pieces = c.shape[:2]
    c = c.reshape(order, pieces, -1)
    if c.size > MAX_CHOICES:
        raise UntraceableError(f"a table of {c.size} coefficients is too large{caller()}: at most {MAX_CHOICES}")
    if extrapolate == "periodic":
        x, extrapolate = knots[0] + modulo(x - knots[0], knots[-1] - knots[0]), False
    start: Any = knots[0]
    chosen = c[:, 0].astype(object)
    for k in range(1, pieces):
        later = relation("le", knots[k], x)
        start = where(later, knots[k], start)
        chosen = np.frompyfunc(lambda a, b, later=later: where(later, a, b), 2, 1)(c[:, k].astype(object), chosen)
    s, values = x - start, [0.0] * c.shape[2]
    power: Any = 1.0
    for p in range(nu, order):
        factor = float(np.prod(np.arange(p - nu + 1, p + 1))) if nu else 1.0
        values = [y + a * power * factor for y, a in zip(values, chosen[order - 1 - p].tolist())]
        power = power * s
    inside = relation("eq", x, x)
    if not extrapolate:
        inside = both(inside, both(relation("le", knots[0], x), relation("le", x, knots[-1])))
    return [where(inside, y, np.nan) for y in values]
