"""Tolerances for comparing generated code with Python: the effect of rounding on the outputs of a trace.

The result of each operation is perturbed randomly by the rounding of the processor, and the computation continues with
it. An output that is a small difference of large numbers then has a large tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomctrl.tracing.operations import VALUES
from geomctrl.tracing.traces import Trace

SAMPLES = 16
MARGIN = 16.0  # times the largest deviation of the samples
ROUNDING = {"double": 2.0**-53, "float": 2.0**-24}
# relative to the largest number of an output: orders of summation differ
RELATIVE_TOLERANCE = {"double": 1e-13, "float": 1e-6}
EXACT = {"neg", "abs", "min", "max", "where", "floor", "lt", "le", "eq", "and", "or", "not"}
ROUNDED_ONCE = {"add", "sub", "mul", "div", "sqrt"}  # libraries' functions are off by a few units


def tolerances(
    trace: Trace, arguments: Sequence[np.ndarray], expected: Sequence[np.ndarray], real: str
) -> list[np.ndarray]:
    """The tolerance of each number of the outputs, for code that computes with `real` numbers."""
    with np.errstate(all="ignore"):
        values = _moved(trace, arguments, ROUNDING[real], constants=real == "float")
    allowed, first = [], 0
    for y, size in zip(expected, trace.sizes, strict=True):
        y, ends = np.ravel(y), trace.outputs[first : first + size]
        moved = np.stack([values[k] for k in ends]) if ends else np.zeros((0, 1))
        with np.errstate(invalid="ignore"):
            apart = np.abs(moved[:, 1:] - moved[:, :1])
        spread = np.nan_to_num(apart, nan=0.0, posinf=0.0).max(axis=1, initial=0.0)
        largest = np.abs(y[np.isfinite(y)]).max(initial=0.0)
        allowed.append(MARGIN * spread + RELATIVE_TOLERANCE[real] * largest + np.finfo(np.float32).tiny)
        first += size
    return allowed


def differing(
    trace: Trace, arguments: Sequence[np.ndarray], expected: Sequence[np.ndarray], actual: Sequence[np.ndarray]
) -> int | None:
    """The index of the first output that differs by more than rounding explains; None if there is none."""
    expected, actual = [np.ravel(x).astype(float) for x in expected], [np.ravel(y).astype(float) for y in actual]
    least = [RELATIVE_TOLERANCE["double"] * np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in expected]
    if _first_beyond(expected, actual, least) is None:
        return None
    return _first_beyond(expected, actual, tolerances(trace, arguments, expected, "double"))


def _first_beyond(expected: Sequence[np.ndarray], actual: Sequence[np.ndarray], allowed: Sequence[Any]) -> int | None:
    for k, (x, y, limit) in enumerate(zip(expected, actual, allowed, strict=True)):
        with np.errstate(invalid="ignore"):
            if not np.all((np.abs(x - y) <= limit) | (x == y) | (np.isnan(x) & np.isnan(y))):
                return k
    return None


def rounded(a: np.ndarray, real: str) -> np.ndarray:
    """The numbers of an array rounded to `real` numbers."""
    return np.asarray(a, np.float32).astype(float) if real == "float" else np.asarray(a, float)


def evaluated(trace: Trace, arguments: Sequence[np.ndarray], guarded: bool = False) -> list[np.ndarray]:
    """The outputs as flat arrays in double precision, evaluated operation by operation.

    guarded: they are nan if the flag of the trace does not hold.
    """
    with np.errstate(all="ignore"):
        values = _moved(trace, arguments, 0.0)
    ends = np.array([values[index][0] for index in trace.outputs], float)
    if guarded and trace.flag is not None and not values[trace.flag][0]:
        ends[:] = np.nan
    return np.split(ends, np.cumsum(trace.sizes)[:-1])


def has_result(trace: Trace, arguments: Sequence[np.ndarray]) -> bool:
    """Whether the trace's flag holds."""
    with np.errstate(all="ignore"):
        return trace.flag is None or bool(_moved(trace, arguments, 0.0)[trace.flag][0])


def _moved(
    trace: Trace, arguments: Sequence[np.ndarray], unit: float, constants: bool = False
) -> dict[int, np.ndarray]:
    """Values of the nodes: with Python's rounding in sample 0, perturbed in the others; none without a `unit`."""
    rng, nodes, count = np.random.default_rng(0), trace.graph.nodes, 1 + SAMPLES * (unit > 0.0)
    values: dict[int, np.ndarray] = {}

    def moved(x: Any, units: float) -> np.ndarray:
        move = units * unit * rng.uniform(-1.0, 1.0, count)
        move[0] = 0.0
        return x * (1.0 + move)

    for index in trace.graph.needed(trace.ends):
        op, *rest = nodes[index]
        if op == "load":
            values[index] = np.full(count, np.ravel(arguments[rest[0] - 1])[rest[1]], float)
        elif op == "const":
            x = np.full(count, rest[0] if isinstance(rest[0], bool) else float(rest[0]))
            values[index] = moved(x, 1.0) if constants and x.dtype == float and np.float32(x[0]) != x[0] else x
        else:
            x = VALUES[op](*(values[k] for k in rest))
            values[index] = x if op in EXACT else moved(x, 1.0 if op in ROUNDED_ONCE else 4.0)
    return values
