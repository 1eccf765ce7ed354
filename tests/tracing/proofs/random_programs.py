"""Hypothesis strategies for random traced functions of all operations and random boxes."""

import math

import numpy as np
from hypothesis import strategies as st

from geomctrl.tracing.operators import power
from geomctrl.tracing.symbols import (
    Graph,
    add,
    binary,
    both,
    compare,
    div,
    invert,
    mul,
    neg,
    sub,
    unary,
    where,
)
from geomctrl.tracing.traces import Trace

UNARY = (
    "neg",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "exp",
    "log",
    "tanh",
    "abs",
    "floor",
    "square",
    "cube",
    "fifth",
    *("sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "log1p", "exp2", "log2", "log10", "cbrt", "rint"),
)
BINARY = ("add", "sub", "mul", "div", "atan2", "min", "max", "where")
BINARY += ("hypot", "pow", "fmod", "remainder", "copysign")
SPECIAL = [
    *(0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-3, math.pi, -math.pi / 2, math.pi / 4, 2 * math.pi, 7.0, -25.0, 1e3, 1e6),
    *(1e-160, -1e-200, 5e-324, -5e-324, 2.0**-1022, 1e150, -1e200, 1e308, -1.7e308, 1.0 + 2.0**-52, 1.0 - 2.0**-53),
]
ARITHMETIC = ("neg", "sqrt", "abs", "square", "cube", "fifth", "add", "sub", "mul", "div", "min", "max", "where")
INPUTS = 3
numbers = st.one_of(st.sampled_from(SPECIAL), st.floats(-4.0, 4.0), st.floats(allow_nan=False, allow_infinity=False))
at = st.integers(0, 99)


def made(op, a, b, c):
    if op == "where":
        condition = both(compare("lt", a, b), invert(compare("le", c, 0.5)))
        return where(condition, b, c)
    if op in ("add", "sub", "mul", "div"):
        return {"add": add, "sub": sub, "mul": mul, "div": div}[op](a, b)
    if op in BINARY:
        return binary(op, a, b)
    powers = {"square": 2, "cube": 3, "fifth": 5}
    return power(a, powers[op]) if op in powers else neg(a) if op == "neg" else unary(op, a)


def function_of(program, constants):
    """A trace whose outputs are all that the program computes."""
    graph = Graph()
    reference = [graph.load(1, k) for k in range(INPUTS)]
    for op, *at in program:
        i, j, k = (n % len(reference) for n in at)
        second = (
            constants[at[1] % len(constants)] if at[2] % 3 == 0 and op in BINARY and op != "where" else reference[j]
        )
        try:
            y = made(op, reference[i], second, reference[k])
        except ZeroDivisionError:
            continue
        if not isinstance(y, float):
            reference.append(y)
    outputs = tuple(y.index for y in reference)
    return Trace(graph, (INPUTS,), outputs, (len(outputs),), None)


def boxes(draw, count):
    ends = np.array(draw(st.lists(numbers, min_size=2 * INPUTS * count, max_size=2 * INPUTS * count)))
    ends = np.sort(ends.reshape(count, INPUTS, 2), axis=2)
    for k in range(0, count, 3):  # points
        ends[k, :, 1] = ends[k, :, 0]
    for k in range(1, count, 3):  # small boxes
        ends[k, :, 1] = np.clip(ends[k, :, 0], -1.7e308, 1.7e308) + np.abs(np.clip(ends[k, :, 0], -1e300, 1e300)) * 1e-3
    return np.clip(ends, -1.7e308, 1.7e308)


@st.composite
def cases(draw, operations=UNARY + BINARY):
    program = draw(st.lists(st.tuples(st.sampled_from(operations), at, at, at), min_size=4, max_size=14))
    constants = draw(st.lists(numbers, min_size=2, max_size=4))
    weights = np.array(draw(st.lists(st.floats(0.0, 1.0), min_size=INPUTS, max_size=INPUTS)))
    return function_of(program, constants), boxes(draw, 9), weights


def points_in(lo, hi, weights):
    inner = np.clip(lo + weights * (hi / 2 - lo / 2) * 2, lo, hi)
    return np.array([lo, hi, lo / 2 + hi / 2, inner, np.where(weights < 0.5, lo, hi)])
