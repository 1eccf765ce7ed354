"""numpy's elementwise functions on symbols and numbers, with numpy's treatment of nan."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import is_truth
from .operators import floor_divided, modulo, number_of, truncated
from .symbols import (
    WHOLE,
    Condition,
    add,
    binary,
    both,
    differ,
    div,
    invert,
    is_finite,
    is_symbol,
    kind_of,
    mul,
    neg,
    relation,
    sub,
    unary,
    where,
)


def _sign(x: Any) -> Any:
    sign = where(relation("lt", 0.0, x), 1.0, where(relation("lt", x, 0.0), -1.0, 0.0))
    return where(relation("eq", x, x), sign, x)


def maximum(a: Any, b: Any) -> Any:
    """numpy's maximum: nan if either is nan; of two truth values, whether any is true."""
    return _any(a, b) if is_truth(a) and is_truth(b) else _extreme("max", number_of(a), number_of(b))


def minimum(a: Any, b: Any) -> Any:
    return both(a, b) if is_truth(a) and is_truth(b) else _extreme("min", number_of(a), number_of(b))


def _extreme(op: str, a: Any, b: Any) -> Any:
    if is_symbol(b) and not is_symbol(a):
        a, b = b, a
    return where(_number(b), binary(op, a, b), b)


def _number(x: Any) -> Any:
    """Whether x is not nan; integers never are."""
    return kind_of(x) in WHOLE or relation("eq", x, x)


def _ignoring_nan(op: str) -> Callable[[Any, Any], Any]:
    """fmax and fmin: the other operand if one is nan."""
    return lambda a, b: where(relation("eq", a, a), where(relation("eq", b, b), binary(op, a, b), a), b)


def _heaviside(x: Any, at_zero: Any) -> Any:
    step = where(relation("lt", 0.0, x), 1.0, where(relation("eq", x, 0.0), at_zero, 0.0))
    return where(relation("eq", x, x), step, x)


def _any(a: Any, b: Any) -> Any:
    return invert(both(invert(a), invert(b)))


def _isinf(x: Any) -> Any:
    return relation("eq", unary("abs", x), math.inf)


def _log_of_sum(a: Any, b: Any, exponential: str = "exp", unit: float = 1.0) -> Any:
    """log(exp(a) + exp(b)), or to another base: `exponential` is its power, and its logarithm is 1 / unit."""
    apart = sub(a, b)
    larger = where(relation("lt", 0.0, apart), a, b)
    beyond = mul(unit, unary("log1p", unary(exponential, neg(unary("abs", apart)))))
    return where(relation("eq", a, b), add(a, math.log(2.0) * unit), add(larger, beyond))


def _of_python(op: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: binary(op, a, b)


def _equal(a: Any, b: Any) -> Any:
    conditions = isinstance(a, Condition) or isinstance(b, Condition)
    return invert(differ(a, b)) if conditions else relation("eq", a, b)


UNARY: dict[str, Callable[[Any], Any]] = {
    **{name: functools.partial(unary, name) for name in ("sin", "cos", "tan", "exp", "log", "tanh", "sqrt", "floor")},
    **{name: functools.partial(unary, name) for name in ("sinh", "cosh", "expm1", "log1p", "exp2", "log2", "log10")},
    **{name: functools.partial(unary, name) for name in ("cbrt", "rint")},
    **{f"arc{name}": functools.partial(unary, f"a{name}") for name in ("sin", "cos", "sinh", "cosh", "tanh")},
    "absolute": functools.partial(unary, "abs"),
    "fabs": functools.partial(unary, "abs"),
    "ceil": lambda x: neg(unary("floor", neg(x))),
    "trunc": truncated,
    "arctan": lambda x: binary("atan2", x, 1.0),
    "square": lambda x: mul(x, x),
    "reciprocal": lambda x: div(1.0, x),
    "negative": neg,
    "positive": lambda x: x,
    "sign": _sign,
    "conjugate": lambda x: x,
    "deg2rad": lambda x: mul(x, np.pi / 180.0),
    "radians": lambda x: mul(x, np.pi / 180.0),
    "rad2deg": lambda x: mul(x, 180.0 / np.pi),
    "degrees": lambda x: mul(x, 180.0 / np.pi),
    "isfinite": is_finite,
    "isinf": _isinf,
    "isnan": lambda x: invert(relation("eq", x, x)),
    "signbit": lambda x: relation("lt", binary("copysign", 1.0, x), 0.0),
    "logical_not": invert,
    "invert": invert,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": maximum,
    "minimum": minimum,
    "fmax": _ignoring_nan("max"),
    "fmin": _ignoring_nan("min"),
    "divide": div,
    "arctan2": _of_python("atan2"),
    "hypot": _of_python("hypot"),
    "copysign": _of_python("copysign"),
    "fmod": _of_python("fmod"),
    "heaviside": _heaviside,
    "logaddexp": _log_of_sum,
    "logaddexp2": lambda a, b: _log_of_sum(a, b, "exp2", math.log2(math.e)),
    "floor_divide": floor_divided,
    "remainder": modulo,
    "power": _of_python("pow"),
    "float_power": _of_python("pow"),
    "less": lambda a, b: relation("lt", a, b),
    "less_equal": lambda a, b: relation("le", a, b),
    "greater": lambda a, b: relation("lt", b, a),
    "greater_equal": lambda a, b: relation("le", b, a),
    "equal": lambda a, b: _equal(a, b),
    "not_equal": lambda a, b: invert(_equal(a, b)),
    "logical_and": both,
    "bitwise_and": both,
    "logical_or": _any,
    "bitwise_or": _any,
    "logical_xor": differ,
    "bitwise_xor": differ,
}
TERNARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "clip": lambda x, low, high: minimum(maximum(x, low), high),
}
