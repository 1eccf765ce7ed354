"""Evaluation of large expressions on many boxes or states without compilation, by groups of equal operations.

`enclosure` compiles and is much faster for millions of boxes. Second derivatives of a robot with seven joints have
20 000 operations, whose intervals take minutes to compile, while a proof by quadratic forms needs them on few boxes.
Independent operations of one kind are done in one call on all boxes. Each is the compiled operation of `intervals`, so
that ends, rounding and the treatment of infinity are the same.

An interval (nan, nan) means that nothing is known: for a quotient by a possible zero and everything that depends on it,
and for a branch that is not decided on the box. The latter keeps derivatives valid; in a program without derivatives,
`branches`, an undecided branch is the union of both sides.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from geomctrl.tracing.backends.batches import Batch
from geomctrl.tracing.operations import VALUES
from geomctrl.tracing.symbols import Graph, both, where
from geomctrl.tracing.traces import Trace

from . import intervals
from .enclosure import PARTIAL, TOTAL, compiled
from .intervals import INF, Interval, Truth
from .substitution import COMPARED

MEMORY = 2**22  # numbers in memory at a time, in blocks of boxes
BLOCK = 64  # smallest number of boxes per block

Array: TypeAlias = Any  # a number, or one for every box


class Group(NamedTuple):
    """Operations of one kind: the rows of their results and of their operands."""

    op: str
    rows: slice
    operands: list[np.ndarray]


class Program:
    """Expressions `ends` of a graph with an evaluation order. branches: treatment of undecided branches."""

    def __init__(self, graph: Graph, ends: Sequence[Any], branches: bool = False):
        indices = [graph.operand(x) for x in ends]
        self.inputs: list[int] = []
        self.constants: list[Any] = []
        constants, level, waiting = [], {}, {}
        for k in graph.needed(indices):
            op, *rest = graph.nodes[k]
            if op in ("load", "const"):
                level[k] = 0
                (self.inputs if op == "load" else constants).append(k)
                continue
            level[k] = 1 + max(level[x] for x in rest)
            kind = "square" if op == "mul" and rest[0] == rest[1] else op
            kind = "either" if op == "where" and branches else kind
            waiting.setdefault((level[k], kind), []).append(k)
        self.constants = [graph.nodes[k][1] for k in constants]
        row = {k: i for i, k in enumerate([*self.inputs, *constants])}
        self.groups: list[Group] = []
        for (_, kind), nodes in sorted(waiting.items()):
            first = len(row)
            row |= {k: first + i for i, k in enumerate(nodes)}
            operands = zip(*(graph.nodes[k][1:] if kind != "square" else graph.nodes[k][1:2] for k in nodes))
            self.groups.append(Group(kind, slice(first, len(row)), [np.array([row[x] for x in xs]) for xs in operands]))
        self.rows, self.ends = len(row), np.array([row[k] for k in indices], int)

    def enclosed(self, inputs_of: Mapping[int, tuple[Array, Array]], boxes: int) -> tuple[np.ndarray, np.ndarray]:
        """(lo, hi), (boxes, ends) each: the expressions on boxes, given the interval of each input node."""
        inputs = np.empty((len(self.inputs), boxes, 2))
        for row, index in zip(inputs, self.inputs):
            row[:, 0], row[:, 1] = inputs_of[index]
        bounds = np.empty((len(self.ends), boxes, 2))
        for block in self._blocks(boxes, 2):
            values = np.empty((self.rows, len(range(boxes)[block]), 2))
            self._start(values, inputs[:, block], [[_ends(x)] for x in self.constants])
            for op, rows, operands in self.groups:
                operation = on_intervals(op, len(operands))
                values[rows] = operation(*(values[k].reshape(-1, 2) for k in operands))[0].reshape(values[rows].shape)
            bounds[:, block] = values[self.ends]
        lo, hi = bounds[..., 0].T.copy(), bounds[..., 1].T.copy()
        unknown = np.isnan(lo) | np.isnan(hi)
        lo[unknown], hi[unknown] = -INF, INF
        return lo, hi

    def values(self, inputs_of: Mapping[int, Array], states: int) -> np.ndarray:
        """(states, ends): the expressions in floating point; inputs are numbers or one per state."""
        inputs = np.empty((len(self.inputs), states))
        for row, index in zip(inputs, self.inputs):
            row[:] = inputs_of[index]
        results = np.empty((states, len(self.ends)))
        with np.errstate(all="ignore"):
            for block in self._blocks(states, 1):
                values = np.empty((self.rows, len(range(states)[block])))
                self._start(values, inputs[:, block], [[math.nan if x == "nan" else x] for x in self.constants])
                for op, rows, operands in self.groups:
                    values[rows] = VALUES[op](*(values[k] for k in operands))
                results[block] = values[self.ends].T
        return results

    def _start(self, values: np.ndarray, inputs: np.ndarray, constants: Sequence[Any]) -> None:
        n = len(inputs)
        values[:n] = inputs
        if constants:
            values[n : n + len(constants)] = constants

    def _blocks(self, boxes: int, numbers: int) -> list[slice]:
        size = max(BLOCK, MEMORY // (numbers * max(self.rows, 1)))
        return [slice(k, k + size) for k in range(0, boxes, size)]


def enclosed(
    graph: Graph, ends: Sequence[Any], inputs_of: Mapping[int, tuple[Array, Array]], boxes: int
) -> tuple[np.ndarray, np.ndarray]:
    """See `Program.enclosed`."""
    return Program(graph, ends).enclosed(inputs_of, boxes)


def valued(graph: Graph, ends: Sequence[Any], inputs_of: Mapping[int, Any], states: int) -> np.ndarray:
    """See `Program.values`."""
    return Program(graph, ends).values(inputs_of, states)


CONDITIONS = (*COMPARED, "and", "not")  # operations whose result is a condition


def _ends(x: Any) -> tuple[float, float]:
    if isinstance(x, bool):
        return float(x), float(not x)
    return (math.nan, math.nan) if x == "nan" else (x, x)


@functools.cache
def on_intervals(op: str, count: int) -> Batch:
    """An operation on `count` arrays of intervals (k, 2) that returns another one.

    Conditions are pairs of 0 or 1: whether they certainly hold, and whether they certainly do not.
    """
    graph = Graph()
    pairs = [(graph.load(k, 0), graph.load(k, 1)) for k in range(1, count + 1)]
    conditional = 1 if op in ("where", "either") else count if op in ("and", "not") else 0
    conditions = [Truth(*(intervals.less(0.0, x) for x in pair)) for pair in pairs[:conditional]]
    numbers = [Interval(*pair) for pair in pairs[conditional:]]
    defined: Any = True
    for a in numbers if op not in ("where", "either") else []:
        defined = both(defined, intervals.at_most(a.lo, INF))  # false for nan
    if op in CONDITIONS:
        truth = TOTAL[op](*conditions, *numbers)
        ends = [where(both(defined, x), 1.0, 0.0) for x in truth]
    elif op == "where":
        (yes, no), (a, b) = conditions[0], numbers
        ends = [where(yes, x, where(no, y, math.nan)) for x, y in ((a.lo, b.lo), (a.hi, b.hi))]
    elif op == "either":
        (yes, no), (a, b) = conditions[0], numbers
        either = [(intervals.smallest(a.lo, b.lo), a.lo, b.lo), (intervals.largest(a.hi, b.hi), a.hi, b.hi)]
        good = both(intervals.at_most(a.lo, INF), intervals.at_most(b.lo, INF))  # false for nan
        ends = [where(yes, x, where(no, y, where(good, all_of, math.nan))) for all_of, x, y in either]
    else:
        if op in PARTIAL:
            value, continuous, *_ = PARTIAL[op](*numbers)
            defined = both(defined, continuous)
        else:
            value = intervals.square(*numbers) if op == "square" else TOTAL[op](*numbers)
        ends = [where(defined, x, math.nan) for x in (value.lo, value.hi)]
    indices = tuple(graph.operand(x) for x in ends)
    return compiled(Trace(graph, (2,) * count, indices, (2,), None), np.empty(0))
