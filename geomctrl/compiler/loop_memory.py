"""What a closed loop is made of, as traces, and where in memory it has what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geomctrl.tracing.traces import Trace

TAKEN = ("h", "grow", "before", "count")  # of the next step: its length, what that may grow by; of the last ones
BLOCK = 8  # doubles that what is done entry by entry takes at once


class Stage(NamedTuple):
    """A stage of a method, or its update: at time t + c h, y_base exp(h rows[0] K) exp(h rows[1] K) ...

    classical: the row of the same method on R^n.
    """

    c: float
    base: int
    rows: Sequence[Sequence[float]]
    classical: Sequence[float]


class Pair(NamedTuple):
    """What a method that chooses its steps has besides: the embedded solution's weights, less its own, the last of
    them for the slope at the end of a step; the pair's order; how many steps it may take from sample to sample.
    """

    weights: Sequence[float]
    order: int
    max_steps: int


class Sampled(NamedTuple):
    """Numbers of the held command that are renewed at samples of their own: the trace of what they become, the first of
    them, how many."""

    trace: Trace
    first: int
    size: int


class Rows(NamedTuple):
    """Numbers that depend on nothing but the row of their sample, for many samples at once: their trace, whose inputs
    are the row, and where in the row each of them belongs."""

    trace: Trace
    places: Sequence[int]


@dataclass(frozen=True, eq=False)
class Equations:
    """What a loop is made of.

    field: the rates of y at a stage. sample: what is looked at when a step begins: the rates, what a row keeps, what
    becomes of the memory.
    law: a command, where commands are held for some steps (None: a law at every stage). move, pull: y exp(u) and
    dexp^-1_{-u} k, where the state is no vector. size: log y there, where a `pair` chooses its steps.
    """

    stages: Sequence[Stage]
    field: Trace
    sample: Trace
    law: Trace | None
    move: Trace | None
    pull: Trace | None
    size: Trace | None
    munthe_kaas: bool
    y: int  # numbers of the state
    dim: int  # of its algebra
    held: int  # of a command that is held
    memory: int  # that monitors remember
    remembered: Sequence[tuple[int, int]]  # (output of `sample`, which number of that memory it renews)
    pair: Pair | None
    rows: Rows | None = None
    renewed: tuple[int, int, int] | None = None  # y after a sample: (from where in the command, to where, how many)
    sampled: Sequence[Sampled] = ()
    before: int = 0  # how many of these are renewed before a command is asked for; the others after it
    law_memory: int = 0  # numbers that the law remembers, the first of a command

    @property
    def commanded(self) -> int:
        """Where a command begins among what is held."""
        return sum(x.size for x in self.sampled)

    @property
    def restored(self) -> bool:
        """Whether what is held has to be what it was where a sample has no result, as the sample is taken again."""
        return bool(self.sampled or self.law_memory)

    @property
    def row(self) -> int:
        """Numbers of a stored sample: t, y, the held command, and what is looked at beside the rates."""
        return 1 + self.y + self.held + self.sample.sizes[1]

    @property
    def traces(self) -> dict[str, Trace]:
        """Those that a step or a sample runs through, by name."""
        names = ("field", "sample", "law", "move", "pull", "size")
        traces = {name: trace for name in names if (trace := getattr(self, name)) is not None}
        return traces | {f"sampled{k}": x.trace for k, x in enumerate(self.sampled)}

    @property
    def all_traces(self) -> list[Trace]:
        return [*self.traces.values(), *([] if self.rows is None else [self.rows.trace])]


class Layout:
    """Where what lies in a loop's memory, in doubles; each number for all lanes."""

    def __init__(self, equations: Equations, width: int, slots: int):
        e, self.width = equations, width
        self.size = 0
        stages, pair = len(e.stages) - 1, e.pair is not None
        self.x = self._area(1 + e.y + e.held + e.memory)  # t, y, held command, memory: what a sample is made of
        self.stage = self._area(1 + e.y + e.held)  # the same at a stage
        self.slope = -(-e.dim * width // BLOCK) * BLOCK  # of one of the slopes
        self.slopes = self._area(0)
        self.size += (stages + pair) * self.slope
        self.out = self._area(sum(e.sample.sizes))
        self.command = self._area(e.held)
        self.before = self._area(e.held if e.restored else 0)  # what was held before a sample
        self.moved = self._area(e.y + e.dim)
        self.pulled = self._area(2 * e.dim)
        self.kept = self._area(e.y * (stages if e.move else 0))
        self.scratch = self._area(slots)
        self.stopped = self._area(1)  # the lanes for which it stops, a whole number
        self.hold = self._area(1 + len(e.sampled))  # steps from command to command, and of what is sampled: whole
        self.pace = self._area(pair)  # the step that a pair tries first in the next interval
        self.tolerances = self._area(pair * (1 + e.dim))  # rtol, atol
        self.begun = self._area(pair * (1 + e.y + e.dim))  # t, y and its rates at the beginning of an interval
        self.taken = self._area(pair * len(TAKEN))
        self.ratios = self._area(pair * e.dim)  # of errors to what is allowed, squared
        self.sizes = self._area(2 * e.dim if e.size else 0)  # log y at the beginning and the end of a step
        self.row = width * e.row

        self.block: tuple[int, int, int] = (0, 0, 0)  # rows turned, what is computed of them, the memory for that
        self.rows, self.columns = e.rows, e.row

    def add_block(self, slots: int, lanes: int) -> None:
        """Memory for a block of rows."""
        assert self.rows is not None
        turned = self.columns if self.width < lanes else 0
        starts = []
        for numbers in (turned, len(self.rows.places), slots):
            starts.append(self.size)
            self.size += -(-numbers * lanes // BLOCK) * BLOCK
        self.block = starts[0], starts[1], starts[2]

    def _area(self, numbers: int) -> int:
        start = self.size
        self.size += -(-numbers * self.width // BLOCK) * BLOCK
        return start


class Numbers:
    """Where the loop finds the numbers of its model that it reads: in one lane's memory, or in every lane's own."""

    def __init__(self, used: Sequence[int], width: int):
        self.used, self.width = list(used), width
        self._of = {k: place for place, k in enumerate(used)}

    def place(self, index: int, width: int) -> tuple[int, bool]:
        """(where number `index` lies, in doubles; whether each lane has its own)."""
        return self._of[index] * self.width, self.width > 1

    def filled(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """The loop's numbers for lanes with these values, all numbers each."""
        return np.append(np.array([x[self.used] for x in values]).T, 0.0)


def used_numbers(equations: Equations) -> list[int]:
    """The numbers of the model that the traces read."""
    used = set()
    for trace in equations.all_traces:
        nodes = trace.graph.nodes
        used.update(nodes[index][2] for index in trace.graph.needed(trace.ends) if nodes[index][:2] == ("load", 0))
    return sorted(used)
