"""The grid of numbers for comparing functions with numpy and math, and the list of these functions."""

import itertools
import math
import operator

import numpy as np

from geomctrl.tracing.symbols import Condition, where

POSITIVE = [
    0.0,
    5e-324,
    1e-300,
    1e-12,
    0.1,
    0.2,
    0.3,
    0.5,
    0.9999,
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    3.7,
    19.0,
    22.5,
    36.9,
    700.0,
]
POSITIVE += [
    709.9,
    745.2,
    1e8 + 0.5,
    2.0**52 + 0.5,
    1e12,
    1e150,
    1e300,
    1.7e308,
    math.pi,
    0.5 * math.pi,
    40 * math.pi,
    math.inf,
]
GRID = [*POSITIVE, *(-x for x in POSITIVE), math.nan]
FEW = [
    0.0,
    -0.0,
    1e-300,
    0.1,
    0.2,
    0.3,
    -0.7,
    1.0,
    -1.0,
    2.0,
    2.5,
    -3.0,
    1e12,
    1e200,
    -1e300,
    math.inf,
    -math.inf,
    math.nan,
]
MULTIPLES = [(k * b, b) for b in (0.2, 0.1, 0.001, 1.0 / 3.0, -0.7, 1e-3, 7.0) for k in (*range(-7, 8), 1000, 30001)]
PAIRS = [*itertools.product(FEW, FEW), *MULTIPLES, *((k, 0.2) for k in (1.0, 3.0, 0.6)), (1e155, -2.0), (3.0, 7.0)]
CONSTANTS = (0.0, -0.0, 0.2, -1.0, 2.0, 3.0)
SIGNLESS = {"maximum", "minimum", "fmax", "fmin", "clip"}  # of 0.0 and -0.0 numpy takes either


def numbers(x):
    """Conditions as 0 and 1, on symbols and in numpy."""
    if isinstance(x, Condition):
        return where(x, 1.0, 0.0)
    return (
        np.where(x, 1.0, 0.0)
        if np.asarray(x).dtype == bool or any(isinstance(y, (Condition, bool)) for y in np.ravel(x))
        else x
    )


BOOLEAN = {
    "logical_not",
    "invert",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
}

ONE = ["sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp"]
ONE += [
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "exp2",
    "cbrt",
    "fabs",
    "floor",
    "ceil",
    "trunc",
    "degrees",
    "radians",
]
ONE += ["isnan", "isinf", "isfinite"]
TWO = ["atan2", "pow", "fmod", "copysign", "remainder", "hypot", "log", "isclose"]

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, "abs": lambda a, b: abs(a), "neg": lambda a, b: -a,
    "floor": lambda a, b: math.floor(a), "ceil": lambda a, b: math.ceil(a), "trunc": lambda a, b: math.trunc(a),
    "round": lambda a, b: round(a), "a - a": lambda a, b: a - a + b, "0 a": lambda a, b: 0.0 * a + b,
    "0 / a": lambda a, b: 0.0 / a, "2 ** b": lambda a, b: 2.0**b, "a ** 2": lambda a, b: a**2,
    "a ** 3": lambda a, b: a**3, "a ** -1": lambda a, b: a**-1, "a ** -2": lambda a, b: a**-2,
    "a ** 0.5": lambda a, b: a**0.5,
    "a ** 7": lambda a, b: a**7, "1 / b": lambda a, b: 1.0 / b, "-(a - b)": lambda a, b: -(a - b),
    "0 - a": lambda a, b: 0.0 - a,
    "a + 0": lambda a, b: a + 0.0, "-a - b": lambda a, b: -a - b, "-a + -b": lambda a, b: -a + -b,
    "sign": lambda a, b: (a > b) * 1.0, "a - 0": lambda a, b: a - 0, "-a 0": lambda a, b: -a * 0 + -0.0,
}  # fmt: skip
