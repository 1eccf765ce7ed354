"""`Enclosure`: bounds of a traced function on boxes of inputs, with outward rounding.

    trace = traced(f, (n,)).trace          # a user's f(x), x of n numbers, or any other `traces.Trace`
    enclosure = Enclosure(trace)
    lo, hi = enclosure(lows, highs)        # (boxes, n) each -> (boxes, outputs) each

For every x with lows <= x <= highs, the exact real value of every output, with floating-point constants as exact
numbers, lies between lo and hi. These are never nan; they are -inf and inf if nothing is known, or if the function is
undefined somewhere in the box. A box may be a point, lows == highs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import exactly
from geomctrl.errors import ArgumentError
from geomctrl.tracing.backends.batches import Batch
from geomctrl.tracing.backends.machine_code import addresses_of_many
from geomctrl.tracing.fusion import fused
from geomctrl.tracing.symbols import Graph, both, where
from geomctrl.tracing.traces import Trace

from . import interval_functions, intervals
from .intervals import ENTIRE, INF, Interval, Truth, point

Input = tuple[int, int]  # (number of an input array, index in it)
LO, HI = 1, 2  # input arrays of an enclosure's trace; array 0 contains the numbers that are no intervals

TOTAL: dict[str, Callable[..., Any]] = {
    "add": intervals.plus,
    "sub": intervals.minus,
    "neg": intervals.negative,
    "mul": intervals.times,
    "abs": intervals.absolute,
    "min": intervals.smaller,
    "max": intervals.larger,
    "sin": intervals.sine,
    "cos": intervals.cosine,
    "exp": intervals.exponential,
    "tanh": intervals.hyperbolic_tangent,
    "cosh": interval_functions.hyperbolic_cosine,
    "exp2": interval_functions.two_to_the,
    "hypot": interval_functions.hypotenuse,
    **{op: interval_functions.increasing(op) for op in ("sinh", "asinh", "expm1", "cbrt")},
    "lt": intervals.is_less,
    "le": intervals.is_at_most,
    "eq": intervals.is_equal,
    "and": intervals.conjunction,
    "not": intervals.negation,
}
PARTIAL: dict[str, Callable[..., Any]] = {
    # Each returns (interval, whether the function is defined and continuous there). A function that can be defined but
    # discontinuous returns a third value, whether it is defined.
    "div": intervals.over,
    "sqrt": intervals.root,
    "tan": intervals.tangent,
    "log": intervals.logarithm,
    "asin": intervals.arcsine,
    "acos": intervals.arccosine,
    "atan2": intervals.angle,
    "floor": intervals.whole,
    "rint": interval_functions.nearest,
    "copysign": interval_functions.with_sign,
    "pow": interval_functions.raised,
    "fmod": interval_functions.cut_remainder,
    "remainder": interval_functions.nearest_remainder,
    **{op: interval_functions.increasing(op, lambda a: intervals.less(0.0, a.lo)) for op in ("log2", "log10")},
    "log1p": interval_functions.increasing("log1p", lambda a: intervals.less(-1.0, a.lo)),
    "acosh": interval_functions.increasing("acosh", lambda a: intervals.at_most(1.0, a.lo)),
    "atanh": interval_functions.increasing(
        "atanh", lambda a: both(intervals.less(-1.0, a.lo), intervals.less(a.hi, 1.0))
    ),
}
JUMPS = {"atan2", "floor", "rint", "copysign"}  # discontinuous, but defined everywhere


class NodeEnclosure(NamedTuple):
    """An Interval or a Truth of a node on a box, and the conditions, on the whole box, under which it is

    defined: has a value; smooth: is continuous, and almost everywhere differentiable according to
    `tracing.derivatives`. A mean value form needs the latter, even if slopes are finite. abs, min and max are smooth in
    this sense; an undecided `where` is not.
    """

    value: Any
    defined: Any = True
    smooth: Any = True


class Evaluation:
    """The nodes of a graph as intervals, whose ends are symbols of another graph or numbers.

    inputs: the interval of an input (array, index).
    """

    def __init__(self, graph: Graph, inputs: Callable[[int, int], Interval]):
        self.nodes, self.graph, self.inputs = graph.nodes, graph, inputs
        self.values: dict[int, NodeEnclosure] = {}
        self.powers: dict[int, tuple[int, int]] = {}  # node: (base, exponent)

    def of(self, ends: Iterable[int]) -> list[NodeEnclosure]:
        ends = list(ends)
        for index in self.graph.needed(ends):
            if index not in self.values:
                self.values[index] = self._enclosed(index, *self.nodes[index])
        return [self.values[index] for index in ends]

    def _enclosed(self, index: int, op: str, *rest: Any) -> NodeEnclosure:
        if op == "load":
            return NodeEnclosure(self.inputs(*rest))
        if op == "const":
            return _constant(rest[0])
        args = [self.values[x] for x in rest]
        if op == "where":
            return _chosen(*args)
        values = [x.value for x in args]
        defined, smooth = _all(x.defined for x in args), _all(x.smooth for x in args)
        if op in PARTIAL:
            value, continuous, *exists = PARTIAL[op](*values)
            exists = exists[0] if exists else True if op in JUMPS else continuous
            return NodeEnclosure(value, both(defined, exists), both(smooth, continuous))
        if op == "mul":
            value = self._product(index, *rest)
        elif op in ("lt", "le", "eq") and rest[0] == rest[1]:
            value = Truth(op != "lt", op == "lt")
        else:
            value = TOTAL[op](*values)
        return NodeEnclosure(value, defined, smooth)

    def _product(self, index: int, a: int, b: int) -> Interval:
        """A product, or a power if both factors are the same node."""
        (base, m), (other, n) = self.powers.get(a, (a, 1)), self.powers.get(b, (b, 1))
        if base != other:
            return intervals.times(self.values[a].value, self.values[b].value)
        self.powers[index] = base, m + n
        x = self.values[base].value
        return intervals.even_power(x, m + n) if (m + n) % 2 == 0 else intervals.odd_power(x, m + n)


def _all(conditions: Iterable[Any]) -> Any:
    return functools.reduce(both, conditions, True)


def _chosen(condition: NodeEnclosure, a: NodeEnclosure, b: NodeEnclosure) -> NodeEnclosure:
    """The selected branch; the union of both if that is undecided."""
    yes, no = condition.value
    both_defined = both(a.defined, b.defined)
    defined = intervals.either(both_defined, intervals.either(both(yes, a.defined), both(no, b.defined)))
    smooth = intervals.either(both(yes, a.smooth), both(no, b.smooth))
    return NodeEnclosure(intervals.chosen(condition.value, a.value, b.value), both(condition.defined, defined), smooth)


def _constant(x: Any) -> NodeEnclosure:
    if isinstance(x, bool):
        return NodeEnclosure(Truth(x, not x))
    return NodeEnclosure(ENTIRE, False, False) if isinstance(x, str) else NodeEnclosure(point(x))


def inputs_of(trace: Trace) -> list[Input]:
    """All numbers of a trace's input arrays, array by array."""
    return [(array + 1, k) for array, n in enumerate(trace.inputs) for k in range(n)]


class Enclosure:
    """The outputs of a trace on boxes of its inputs, compiled for several boxes in parallel.

    coordinates: the inputs (array, index) in the columns of a box; default all numbers of the arrays after array 0.
    numbers: array 0, whose elements are constant unless they are coordinates. Every input of the trace must be one or
    the other. If the trace has a flag, nothing is known unless the flag certainly holds. Raises ArgumentError for
    other inputs.
    """

    def __init__(self, trace: Trace, coordinates: Sequence[Input] | None = None, numbers: Any = None):
        self.coordinates = tuple(inputs_of(trace) if coordinates is None else coordinates)
        self.numbers = np.empty(0) if numbers is None else exactly("numbers", numbers, np.shape(numbers))
        graph = Graph()
        evaluation = Evaluation(trace.graph, boxed(graph, self.coordinates, len(self.numbers)))
        good = certain(evaluation, trace.flag)
        intervals = [interval_of(x, good) for x in evaluation.of(trace.outputs)]
        self.outputs = len(intervals)
        lows = [graph.operand(a.lo) for a in intervals]
        highs = [graph.operand(a.hi) for a in intervals]
        n = len(self.coordinates)
        self.trace = Trace(graph, (n, n), (*lows, *highs), (self.outputs, self.outputs), None)
        self._run = compiled(self.trace, self.numbers)

    def __call__(self, lo: Any, hi: Any, *, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """(lo, hi) of the outputs, (boxes, outputs) each, for boxes (boxes, n)."""
        lo, hi = (np.ascontiguousarray(x, float) for x in (lo, hi))
        if lo.shape != hi.shape or lo.ndim != 2 or lo.shape[1] != len(self.coordinates):
            expected = f"(boxes, {len(self.coordinates)})"
            raise ArgumentError(f"lo, hi: expected boxes of shape {expected}, got {lo.shape} and {hi.shape}")
        out = self._run(lo, hi, threads=threads)[0]
        return out[:, : self.outputs], out[:, self.outputs :]


def certain(evaluation: Evaluation, flag: int | None) -> Any:
    """The condition under which a trace certainly has a result."""
    if flag is None:
        return True
    flag_value = evaluation.of([flag])[0]
    return both(flag_value.defined, flag_value.value.yes)


def interval_of(x: NodeEnclosure, good: Any = True) -> Interval:
    """The interval of a number, unbounded if it may be undefined or `good` may be false."""
    good = both(good, x.defined)
    return Interval(where(good, x.value.lo, -INF), where(good, x.value.hi, INF), x.value.positive and good is True)


def boxed(graph: Graph, coordinates: Sequence[Input], numbers: int = 0) -> Callable[[int, int], Interval]:
    """Intervals of a trace's inputs, as inputs LO and HI of `graph`; the rest of array 0 as numbers."""
    column = {x: k for k, x in enumerate(coordinates)}

    def interval(array: int, index: int) -> Interval:
        k = column.get((array, index))
        if k is not None:
            return Interval(graph.load(LO, k), graph.load(HI, k))
        if array == 0 and index < numbers:
            return point(graph.load(0, index))
        raise ArgumentError(
            f"coordinates: expected number {index} of input array {array} among them, or among numbers, got neither"
        )

    return interval


def _require_arithmetic() -> None:
    """Raise RuntimeError if a library has changed the processor's rounding settings, which invalidates all bounds."""
    x = np.array([1.0, 1.0, -1.0, -1.0, 2.0**-1074])
    y = x * np.array([1.0, 1.0, 1.0, 1.0, 1.0]) + np.array(
        [2.0**-53, 1.5 * 2.0**-53, -(2.0**-53), -1.5 * 2.0**-53, 0.0]
    )
    if y.tolist() != [1.0, 1.0 + 2.0**-52, -1.0, -1.0 - 2.0**-52, 2.0**-1074]:
        raise RuntimeError(
            "this process does not compute as IEEE 754 says by default (rounding to nearest, gradual underflow): some"
            " library has changed its settings, and nothing can be proved"
        )


def compiled(trace: Trace, numbers: np.ndarray) -> Batch:
    """A trace for many rows with array 0 fixed; arithmetic exactly as written, except fused multiply-adds.

    Raises RuntimeError where this process does not round to nearest, or flushes small numbers to zero.
    """
    _require_arithmetic()
    trace = fused(trace)
    return Batch(numbers, addresses_of_many(trace), len(trace.outputs))
