"""The equations of a closed loop as traces, and the layout of its memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from geomctrl.tracing.fusion import fused
from geomctrl.tracing.graph import Condition, Graph, Symbol, operands
from geomctrl.tracing.symbols import both, compare, invert, where
from geomctrl.tracing.traces import Trace, without_unused

# the arrays of a trace; the last one contains the part of a row after the held command
NUMBERS, TIME, STATE, HELD, MEMORY, ROW = range(6)
TAKEN = ("h", "grow", "before", "count")  # next step, its largest growth; error of the last step, number of steps
BLOCK = 8  # doubles per elementwise operation


class Stage(NamedTuple):
    """A stage of a method, or its update: at time t + c h, y_base exp(h rows[0] K) exp(h rows[1] K) ...

    classical: the row of the same method on R^n.
    """

    c: float
    base: int
    rows: Sequence[Sequence[float]]
    classical: Sequence[float]


class Pair(NamedTuple):
    """Additional data of an adaptive method.

    Weights of the embedded solution minus its own, the last for the slope at the end of a step; order; largest number
    of steps between samples.
    """

    weights: Sequence[float]
    order: int
    max_steps: int


class Sampled(NamedTuple):
    """Part of the held command that is updated at its own samples: trace of the update, first index, length."""

    trace: Trace
    first: int
    size: int


class Rows(NamedTuple):
    """Values of monitors that depend only on the row of their sample, computed for many samples at once.

    Their trace, whose inputs are the row; their positions in the row; the positions in the monitors' memory of the
    worst value of each and of its time.
    """

    trace: Trace
    places: Sequence[int]
    worst: Sequence[int]
    times: Sequence[int]


@dataclass(frozen=True, eq=False)
class Equations:
    """The traces of a loop.

    field: rates of y at a stage. sample: evaluated at the beginning of a step: rates, contents of a row, new memory.
    law: the command, if it is held (None: the law is part of field). move, pull: y exp(u) and dexp^-1_{-u} k, if the
    state is no vector. size: log y in that case, for adaptive methods.
    """

    stages: Sequence[Stage]
    field: Trace
    sample: Trace
    law: Trace | None
    move: Trace | None
    pull: Trace | None
    size: Trace | None
    munthe_kaas: bool
    y: int  # size of the state
    dim: int  # dimension of its algebra
    held: int  # size of the held command
    memory: int  # size of the monitors' memory
    remembered: Sequence[tuple[int, int]]  # (output of `sample`, index in that memory)
    pair: Pair | None
    rows: Rows | None = None
    renewed: tuple[int, int, int] | None = None  # update of y after a sample: (from in the command, to in y, length)
    sampled: Sequence[Sampled] = ()
    before: int = 0  # how many parts are updated before the law is called; the others after it
    law_memory: int = 0  # size of the law's memory, at the beginning of the held command

    @property
    def commanded(self) -> int:
        """Index of the command in the held numbers."""
        return sum(x.size for x in self.sampled)

    @property
    def restored(self) -> bool:
        """Whether held numbers must be restored if a sample has no result, because it is taken again."""
        return bool(self.sampled or self.law_memory)

    @property
    def row(self) -> int:
        """Numbers of a stored sample: t, y, the held command, and outputs of `sample` except rates."""
        return 1 + self.y + self.held + self.sample.sizes[1]

    @property
    def traces(self) -> dict[str, Trace]:
        """The traces that a step or a sample executes, by name."""
        names = ("field", "sample", "law", "move", "pull", "size")
        traces = {name: trace for name in names if (trace := getattr(self, name)) is not None}
        return traces | {f"sampled{k}": x.trace for k, x in enumerate(self.sampled)}

    @property
    def all_traces(self) -> list[Trace]:
        return [*self.traces.values(), *([] if self.rows is None else [self.rows.trace])]

    @cached_property
    def with_rows_in_samples(self) -> Equations:
        """The same equations in which `sample` computes what `rows` does, with the same bits."""
        if self.rows is None:
            return self
        graph, rates, numbers = Graph(finite=False), self.dim, self.sample.sizes[1]
        outputs, good = _appended(graph, fused(self.sample), ())
        values, good_rows = _appended(graph, fused(self.rows.trace), outputs[rates : rates + numbers])
        added, remembered = [], [*self.remembered]
        for x, place, worst, time in zip(values, *self.rows[1:], strict=True):
            outputs[place - (1 + self.y + self.held) + rates] = x
            memory = graph.load(MEMORY, worst), graph.load(MEMORY, time)
            added += [graph.operand(y) for y in worst_so_far(Symbol(graph, x), graph.load(TIME, 0), *memory)[:2]]
            remembered += [(len(outputs) + len(added) - 2 + k, y) for k, y in enumerate((worst, time))]
        flag = both(good, good_rows)
        sizes = (rates, numbers, self.sample.sizes[2] + len(added))
        sample = Trace(
            graph, self.sample.inputs, (*outputs, *added), sizes, flag.index if isinstance(flag, Condition) else None
        )
        return replace(self, sample=sample, rows=None, remembered=remembered)

    def without_unused(self) -> Equations:
        """The same equations without operations that no result needs."""
        new = dict(zip(map(id, self.all_traces), without_unused(self.all_traces), strict=True))
        names = [name for name in self.traces if name in vars(self)]
        return replace(
            self,
            **{name: new[id(getattr(self, name))] for name in names},
            sampled=[x._replace(trace=new[id(x.trace)]) for x in self.sampled],
            rows=None if self.rows is None else self.rows._replace(trace=new[id(self.rows.trace)]),
        )


def worst_so_far(x: Any, t: Any, worst: Any, time: Any) -> tuple[Any, Any, Any]:
    """(The worst value after value x of a monitor at time t, its time, whether it is x); nan is worse than numbers."""
    worse = both(invert(compare("le", x, worst)), compare("eq", worst, worst))
    return where(worse, x, worst), where(worse, t, time), worse


def _appended(graph: Graph, trace: Trace, row: Sequence[int]) -> tuple[list[int], Any]:
    """(The outputs of a trace after its operations have been added to a graph, the condition for a result).

    row: the nodes of the numbers that the trace loads as `ROW`.
    """
    new: dict[int, int] = {}
    for index in trace.graph.needed(trace.ends):
        op, *rest = node = trace.graph.nodes[index]
        if op == "load" and rest[0] == ROW:
            new[index] = row[rest[1]]
        else:
            new[index] = graph.node(op, *(map(new.__getitem__, rest) if operands(node) else rest))
    graph.exact.update(new[index] for index in trace.graph.exact & new.keys())
    good = True if trace.flag is None else Condition(graph, new[trace.flag])
    return [new[index] for index in trace.outputs], good


class Layout:
    """Positions in a loop's memory, in doubles; each number for all lanes.

    slots: of the plans of the traces. rows: slots of the plan of `Equations.rows`, whose block has `lanes` rows.
    """

    def __init__(self, equations: Equations, width: int, slots: int, rows: int = 0, lanes: int = 1):
        e, self.width = equations, width
        self.size = 0
        stages, pair = len(e.stages) - 1, e.pair is not None
        self.x = self._area(1 + e.y + e.held + e.memory)  # t, y, held command, memory: what a sample is made of
        self.stage = self._area(1 + e.y + e.held)  # the same at a stage
        self.slope = -(-e.dim * width // BLOCK) * BLOCK  # of one of the slopes
        self.out = self.slopes = self._area(sum(e.sample.sizes))  # rates, the first slope of the next step, and others
        self.further_slopes = self._area(0)
        self.size += (stages + pair - 1) * self.slope
        self.command = self._area(e.held)
        self.before = self._area(e.held if e.restored else 0)  # what was held before a sample
        self.moved = self._area(e.y + e.dim)
        self.pulled = self._area(2 * e.dim)
        self.kept = self._area(e.y * (stages if e.move else 0))
        self.scratch = self._area(slots)
        self.stopped = self._area(1)  # the lanes for which it stops, a whole number
        self.start = self._area(1)  # added to the time of each lane
        self.hold = self._area(1 + len(e.sampled))  # steps from command to command, and of what is sampled: whole
        self.pace = self._area(pair)  # the step that a pair tries first in the next interval
        self.tolerances = self._area(pair * (1 + e.dim))  # rtol, atol
        self.begun = self._area(pair * (1 + e.y + e.dim))  # t, y and its rates at the beginning of an interval
        self.taken = self._area(pair * len(TAKEN))
        self.ratios = self._area(pair * e.dim)  # of errors to what is allowed, squared
        self.sizes = self._area(2 * e.dim if e.size else 0)  # log y at the beginning and the end of a step
        self.row = width * e.row

        self.slots = slots, rows, lanes
        self.block: tuple[int, ...] = (0, 0, 0)  # rows turned, what is computed of them, the memory for that
        if e.rows is not None:
            self.block = tuple(self._area(n, lanes) for n in (e.row, len(e.rows.places), rows))

    def _area(self, numbers: int, width: int | None = None) -> int:
        start = self.size
        self.size += -(-numbers * (width or self.width) // BLOCK) * BLOCK
        return start


class Numbers:
    """Positions of the model's numbers that the loop reads: shared by all lanes, or separate for each."""

    def __init__(self, used: Sequence[int], width: int):
        self.used, self.width = list(used), width
        self._of = {k: place for place, k in enumerate(used)}

    def place(self, index: int, width: int) -> tuple[int, bool]:
        """(Position of number `index`, in doubles; whether each lane has its own)."""
        return self._of[index] * self.width, self.width > 1

    def filled(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """The loop's numbers for lanes with these values."""
        return np.append(np.array([x[self.used] for x in values]).T, 0.0)


def used_numbers(equations: Equations) -> list[int]:
    """The numbers of the model that the traces read."""
    used = set()
    for trace in equations.all_traces:
        nodes = trace.graph.nodes
        used.update(nodes[index][2] for index in trace.graph.needed(trace.ends) if nodes[index][:2] == ("load", 0))
    return sorted(used)
