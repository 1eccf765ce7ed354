"""The numeric meaning of the graph's operations, as in numpy: nan and infinities instead of exceptions.

Constants are folded with these functions, and large expressions are evaluated with them without compilation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

LIBRARY = {  # functions of the C library by name, with their numbers of arguments
    **dict.fromkeys(("tan", "asin", "acos", "exp", "log", "tanh", "sinh", "cosh", "asinh", "acosh", "atanh"), 1),
    **dict.fromkeys(("expm1", "log1p", "exp2", "log2", "log10", "cbrt"), 1),
    **dict.fromkeys(("atan2", "hypot", "pow", "fmod", "remainder"), 2),
}
ODD = {"sin", "tan", "asin", "tanh", "sinh", "asinh", "atanh", "cbrt", "rint"}  # f(-x) = -f(x) exactly
EVEN = {"cos", "cosh", "abs"}


def python_min(a: Any, b: Any) -> Any:
    """Python's min(a, b): b if it is smaller, else a, also with nan."""
    return np.where(np.less(b, a), b, a)


def python_max(a: Any, b: Any) -> Any:
    return np.where(np.greater(b, a), b, a)


@np.vectorize
def ieee_remainder(a: float, b: float) -> float:
    """a - b n with the integer n closest to a / b (even for ties): C's remainder, which numpy lacks."""
    return math.remainder(a, b) if math.isfinite(a) and b != 0.0 else math.nan


UNARY: dict[str, Callable[[Any], Any]] = {
    **{op: getattr(np, op) for op in ("sqrt", "sin", "cos", "tan", "exp", "log", "tanh", "sinh", "cosh", "floor")},
    **{op: getattr(np, op) for op in ("expm1", "log1p", "exp2", "log2", "log10", "cbrt", "rint", "abs")},
    **{op: getattr(np, f"arc{op[1:]}") for op in ("asin", "acos", "asinh", "acosh", "atanh")},
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "pow": np.float_power,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "remainder": ieee_remainder,
    "min": python_min,
    "max": python_max,
}
VALUES: dict[str, Callable[..., Any]] = {
    **UNARY,
    **BINARY,
    "add": np.add,
    "sub": np.subtract,
    "neg": np.negative,
    "mul": np.multiply,
    "div": np.divide,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "square": np.square,
    "where": np.where,
    "either": np.where,
}


PYTHON: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max}  # preserve integers


def value(op: str, *args: float) -> float:
    """The operation on Python numbers, with a Python number as result."""
    if op in PYTHON:
        return PYTHON[op](*args)
    with np.errstate(all="ignore"):
        return float(VALUES[op](*args))
