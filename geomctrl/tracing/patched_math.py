"""Replacements of the functions of math and statistics while a law runs with symbols."""

from __future__ import annotations

import functools
import math
import operator
import statistics
import sys
from collections.abc import Callable
from typing import Any

from .arrays import holds_any
from .elementwise import BINARY, UNARY
from .numbers import scalar
from .requirements import require
from .symbols import (
    FLOAT,
    INT,
    NUMPY,
    Condition,
    UntraceableError,
    add,
    as_python,
    as_whole,
    binary,
    both,
    caller,
    certain,
    div,
    invert,
    is_finite,
    kind_of,
    mul,
    relation,
    sub,
    unary,
    where,
    with_kind,
)
from .untraceable import LISTED


def math_on_symbols(name: str) -> Callable[..., Any]:
    """The math function of that name, for numbers and symbols."""
    original, row = getattr(math, name), MATH.get(name)

    def function(*args, **kwargs):
        if name in OF_SEQUENCES:
            args = [list(x) for x in args]
        if not any(map(holds_any, (*args, *kwargs.values()))):
            return original(*args, **kwargs)
        if row is None:
            raise UntraceableError(f"math.{name} of a symbol can not be traced{caller()}: {LISTED}")
        try:
            result = row(*(args if name in OF_SEQUENCES else map(scalar, args)), **kwargs)
        except TypeError as error:
            raise UntraceableError(f"math.{name} of symbols can not be traced{caller()}: {error}") from None
        own = not sys._getframe(2).f_globals.get("__name__", "").startswith("geomctrl.")  # the package handles nan
        if own and name in WHOLE:
            require(is_finite(scalar(args[0])))
        elif own and name not in TOTAL and name != "prod":  # Python raises where numpy returns nan or inf
            require(is_finite(result))
        if isinstance(result, tuple):  # of modf
            return tuple(with_kind(x, FLOAT) for x in result)
        if isinstance(result, Condition):  # of isnan, isinf, isfinite
            return as_python(result)
        return result if name == "prod" else with_kind(result, INT if name in WHOLE else FLOAT)

    return function


TOTAL = {"fabs", "copysign", "atan", "atan2", "tanh", "asinh", "cbrt", "degrees", "radians"}  # these never raise
TOTAL |= {"modf", "isnan", "isinf", "isfinite", "isclose", "hypot", "dist"}
WHOLE = {"floor", "ceil", "trunc"}


def _logarithm(x: Any, base: Any = None) -> Any:
    if base is None:
        return unary("log", x)
    scale = unary("log", base)
    require(is_finite(div(1.0, scale)))
    require(is_finite(scale))
    return div(unary("log", x), scale)


def _is_close(a: Any, b: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> Any:
    for tolerance in (rel_tol, abs_tol):
        require(relation("le", 0.0, tolerance))  # otherwise Python raises
    distance = unary("abs", sub(b, a))
    limits = unary("abs", mul(rel_tol, a)), unary("abs", mul(rel_tol, b)), abs_tol
    beyond = functools.reduce(both, (invert(relation("le", distance, limit)) for limit in limits))
    close = both(invert(beyond), both(is_finite(a), is_finite(b)))
    return invert(both(invert(close), invert(relation("eq", a, b))))


def _whole(function: Callable[[Any], Any], x: Any) -> Any:
    return as_whole(function(x))


def _exact_sum(xs: Any) -> Any:
    """The sum in triple precision like math.fsum, which raises if the sum overflows."""
    xs = [scalar(x) for x in xs]
    total = functools.reduce(add, xs, 0.0)
    for _ in range(2):
        for k in range(1, len(xs)):
            high = add(xs[k], xs[k - 1])
            part = sub(high, xs[k])
            xs[k], xs[k - 1] = high, add(sub(xs[k], sub(high, part)), sub(xs[k - 1], part))
    require(is_finite(total))
    return functools.reduce(add, xs[::-1]) if len(xs) > 1 else total


def mean_on_symbols(name: str) -> Callable[..., Any]:
    """statistics.mean or fmean, for numbers and symbols."""

    def mean(data: Any, *args: Any, **kwargs: Any) -> Any:
        xs = list(data)
        if args or kwargs or not holds_any(xs):
            return getattr(statistics, name)(xs, *args, **kwargs)
        kinds = {certain(kind_of(x)) for x in xs}
        if name == "mean" and not kinds & {NUMPY, FLOAT}:
            raise UntraceableError(f"statistics.mean of integers can not be traced{caller()}: write statistics.fmean")
        return with_kind(div(_exact_sum(xs), float(len(xs))), NUMPY if name == "mean" and NUMPY in kinds else FLOAT)

    return mean


def _distance(p: Any, q: Any) -> Any:
    p, q = list(p), list(q)
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return _hypotenuse(*(sub(scalar(a), scalar(b)) for a, b in zip(p, q)))


def _parts(x: Any) -> tuple[Any, Any]:
    """The fractional and the integer part, with the sign of x."""
    whole = UNARY["trunc"](x)
    rest = where(UNARY["isinf"](x), 0.0, sub(x, whole))
    return binary("copysign", rest, x), whole


def _hypotenuse(x: Any, *others: Any) -> Any:
    return functools.reduce(lambda a, b: binary("hypot", a, b), others, x) if others else unary("abs", x)


MATH: dict[str, Callable[..., Any]] = {
    **{name: f for name, f in (UNARY | BINARY).items() if hasattr(math, name) and name != "remainder"},
    **{name: UNARY[f"arc{name[1:]}"] for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    **{name: functools.partial(_whole, UNARY[name]) for name in WHOLE},
    "atan2": BINARY["arctan2"],
    "pow": BINARY["power"],
    "remainder": lambda x, y: binary("remainder", x, y),
    "log": _logarithm,
    "modf": _parts,
    "hypot": _hypotenuse,
    "isclose": _is_close,
    "dist": _distance,
    "fsum": _exact_sum,
    "prod": lambda xs, start=1: functools.reduce(operator.mul, xs, start),
}
OF_SEQUENCES = {"dist", "fsum", "prod"}
