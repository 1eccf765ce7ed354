"""The operations of a graph on numbers: what each computes, as numpy does, with nan and infinities and no exception.

Constants are folded with these functions, and large expressions are evaluated with them without being compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

LIBRARY = {  # functions of the C library, by their names there: number of arguments
    **dict.fromkeys(("tan", "asin", "acos", "exp", "log", "tanh", "sinh", "cosh", "asinh", "acosh", "atanh"), 1),
    **dict.fromkeys(("expm1", "log1p", "exp2", "log2", "log10", "cbrt"), 1),
    **dict.fromkeys(("atan2", "hypot", "pow", "fmod", "remainder"), 2),
}
ODD = {"sin", "tan", "asin", "tanh", "sinh", "asinh", "atanh", "cbrt", "rint"}  # f(-x) = -f(x), also as computed
EVEN = {"cos", "cosh", "abs"}


def python_min(a: Any, b: Any) -> Any:
    """Python's min(a, b): the second where it is smaller, else the first, also beside nan."""
    return np.where(np.less(b, a), b, a)


def python_max(a: Any, b: Any) -> Any:
    return np.where(np.greater(b, a), b, a)


@np.vectorize
def ieee_remainder(a: float, b: float) -> float:
    """a - b n, n the whole number nearest to a / b, the even one of two: C's remainder, which numpy does not have."""
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


PYTHON: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max}  # whole numbers stay what they are


def value(op: str, *args: float) -> float:
    """The operation on Python's numbers, as one of them."""
    if op in PYTHON:
        return PYTHON[op](*args)
    with np.errstate(all="ignore"):
        return float(VALUES[op](*args))
