"""Partition of a trace into parts that a code generator can handle."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate, pairwise

from .symbols import operands
from .traces import Trace

STRETCH = 600  # operations per part; any number from 400 to 1000 works equally well
STORE = 2  # cost of a stored output in operations, because the code generator compares neighbouring stores


class Plan:
    """The part in which each node of a trace is computed, and the memory of values that other parts need.

    The time of a code generator grows faster than the length of its input, and it handles thousands of live values
    badly. Long code is therefore split into functions that exchange numbers through memory. Sines and cosines of inputs
    come first. `slots` numbers hold their arguments, their values and everything that crosses a boundary. together:
    number of sines computed together. apart: each output is a separate array. stretch: approximate operations per part.
    """

    def __init__(self, trace: Trace, together: int = 1, *, apart: bool = False, stretch: int = STRETCH):
        self.trace, self.nodes, self.apart = trace, trace.graph.nodes, apart
        self.output_starts = [0, *accumulate(trace.sizes)]
        self.starts = [0, *accumulate(trace.inputs)]
        needed = trace.graph.needed(trace.ends)
        self.angles = list(dict.fromkeys(self.nodes[index][1] for index in needed if self.is_wave(index)))
        self.rows = -(-len(self.angles) // together) * together
        where = {index: self.rows + k for k, index in enumerate(self.angles)}
        self.slot = {index: where[x] + self.rows * (op == "cos") for index, op, x in self._waves(needed)}
        work = [index for index in needed if self.is_operation(index)]
        self.outputs: dict[int, list[int]] = {}
        for k, index in enumerate(trace.outputs):
            self.outputs.setdefault(index, []).append(k)
        self.stretches = self._cut(work, stretch)
        self.slots = 3 * self.rows + self._crossing()

    def _cut(self, work: list[int], stretch: int) -> list[list[int]]:
        """The nodes in parts of equal cost: one per operation, `STORE` for each output."""
        costs = [0, *accumulate(1 + STORE * len(self.outputs.get(index, ())) for index in work)]
        count = max(1, round(costs[-1] / stretch))
        ends = [bisect_left(costs, costs[-1] * k / count) for k in range(count + 1)]
        return [work[a:b] for a, b in pairwise(ends)]

    def is_wave(self, index: int) -> bool:
        """The sine or cosine of an input."""
        op, *args = self.nodes[index]
        return op in ("sin", "cos") and self.nodes[args[0]][0] == "load"

    def is_operation(self, index: int) -> bool:
        return self.nodes[index][0] not in ("const", "load") and not self.is_wave(index)

    def _waves(self, needed: list[int]) -> Iterator[tuple[int, str, int]]:
        return ((index, *self.nodes[index][:2]) for index in needed if self.is_wave(index))

    def _crossing(self) -> int:
        """Assign slots to values for later parts; a slot is reused after its last use. Returns the number of slots."""
        last: dict[int, int] = {}
        for k, stretch in enumerate(self.stretches):
            last.update((x, k) for index in stretch for x in operands(self.nodes[index]))
        if self.trace.flag is not None:
            last[self.trace.flag] = len(self.stretches)
        free: list[int] = []
        ending: list[list[int]] = [[] for _ in range(len(self.stretches) + 1)]
        count = 0
        for k, stretch in enumerate(self.stretches):
            for index in stretch:
                if last.get(index, k) > k and len(self.stretches) > 1:
                    if not free:
                        free, count = [count], count + 1
                    place = free.pop()
                    self.slot[index] = 3 * self.rows + place
                    ending[last[index]].append(place)
            free += ending[k]
        return count
