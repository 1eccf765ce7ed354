"""`LaneMemory`: exchange of runs between Python objects and the memory of compiled code, a lane for each run.

A run is a `Loop` with a `Record`. `put` copies its state and its monitors into a lane, `take` copies them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from geomctrl.arguments import shown
from geomctrl.compiler.gpu_loops import Image
from geomctrl.compiler.loop_memory import Layout, Numbers
from geomctrl.tracing.untraceable import UntraceableError

from .law_memory import restore, value_at
from .loop_parts import law_of
from .traced_loop import Column, TracedLoop

LINE = 8  # doubles per cache line
Positions = TypeVar("Positions", Layout, Image)


class LaneMemory(Generic[Positions]):
    """The numbers of `width` runs of a traced loop."""

    def __init__(self, traced: TracedLoop, width: int, numbers: Numbers, layout: Positions):
        self.traced, self.width, self.numbers, self.layout = traced, width, numbers, layout
        self.memory, self.values = _aligned(layout.size), np.zeros(1)
        e, l, w = traced.equations, layout, width
        self.x = self._area(l.x, 1 + e.y + e.held + e.memory)
        self.stage_held = self._area(l.stage + w * (1 + e.y), e.held)
        self.slopes = self._area(l.slopes, e.dim)
        self.time, self.y = self.x[0], self.x[1 : 1 + e.y]
        pair = int(e.pair is not None)
        self.pace, self.tolerances = self._area(l.pace, pair), self._area(l.tolerances, pair * (1 + e.dim))
        self.area = self.x[1 + e.y : 1 + e.y + e.commanded]  # of sensors
        self.held, self.remembered = self.x[1 + e.y : 1 + e.y + e.held], self.x[1 + e.y + e.held :]

    def _area(self, start: int, count: int) -> np.ndarray:
        """(count, lanes): an area of the memory."""
        return self.memory[start : start + count * self.width].reshape(count, self.width)

    def set_numbers(self, values: Sequence[np.ndarray]) -> None:
        """The model's numbers of each lane, in the order of `SymbolicCopies`."""
        filled = self.numbers.filled(values)
        self.values = _aligned(len(filled))
        self.values[:] = filled

    def put(self, lane: int, loop: Any, record: Any, t: float, k1: np.ndarray) -> None:
        """Copy a loop and its monitors into a lane, after a sample at time t."""
        self.time[lane], self.y[:, lane], self.slopes[:, lane] = t, loop.y, k1
        if loop.adaptive:
            rtol, atol = loop.tolerances
            self.pace[:, lane], self.tolerances[0, lane], self.tolerances[1:, lane] = loop.h, rtol, atol
        periods = [loop.hold] if loop.sensing is None else [loop.hold, *loop.sensing.periods]
        self.memory[self.layout.hold : self.layout.hold + len(periods)].view(np.int64)[:] = periods
        if loop.sensing is not None:
            self.area[:, lane] = loop.sensing.area
        if loop.hold:
            self.traced.require_signals(loop.command)
            for c in self.traced.commanded:
                x = loop.command.signals[c.name] if c.kind == "signal" else getattr(loop.command, c.name)
                self.held[c.first : c.first + c.size, lane] = np.ravel(x)
            self.remember(lane, law_of(loop))
            self.stage_held[:, lane] = self.held[:, lane]
        self.remembered[:, lane] = [*self.traced.memory_of(record.watchers), *record.worst, *record.t_worst]

    def remember(self, lane: int, law: Any) -> None:
        """Copy the memory of a law into a lane. Raises UntraceableError for a value that did not occur in the trace."""
        memory = self.traced.law_memory
        for path, cell in memory.cells.items():
            if cell.size:
                x = value_at(law, path)
                numbers = cell.encoded(x)
                if numbers is None:
                    raise UntraceableError(
                        f"{path.lstrip('.')} has become {shown(x)}, a value that it did not take while it was traced"
                    )
                self.held[memory.places[path] : memory.places[path] + cell.size, lane] = numbers

    def take(self, lane: int, loop: Any, record: Any) -> np.ndarray:
        """Copy a lane back; returns the rates at the beginning of the step."""
        loop.y = self.y[:, lane].copy()
        if loop.adaptive:
            loop.h = float(self.pace[0, lane])
        if loop.sensing is not None:
            loop.sensing.hold(self.area[:, lane].copy())
            loop.u = loop.sensing.at_work(loop.u)
        if loop.hold:
            loop.command = self._command(lane, loop.command)
            law = self.traced.law_memory
            restore(law_of(loop), law.cells, law.values(self.held[law.first : law.first + law.size, lane]))
        for place in self.traced.memory:
            x = self.remembered[place.first : place.first + place.size, lane]
            now = float(x[0]) if place.shape is None else x.reshape(place.shape).copy()
            setattr(record.watchers[place.watcher], place.name, now)
        n, first = len(record.monitors), self.traced.worst
        record.worst = self.remembered[first : first + n, lane].tolist()
        record.t_worst = self.remembered[first + n : first + 2 * n, lane].tolist()
        return self.slopes[:, lane].copy()

    def _command(self, lane: int, command: Any) -> Any:
        """The held command."""
        parts = {
            (c.kind, c.name): self.held[c.first : c.first + c.size, lane].reshape(c.shape).copy()
            for c in self.traced.commanded
        }
        signals = {name: x for (kind, name), x in parts.items() if kind == "signal"}
        of_state = parts.get(("z_rate", "z_rate")), parts.get(("z_next", "z_next"))
        return type(command)(parts["tau", "tau"], of_state[0], signals, of_state[1])

    def columns(self, rows: np.ndarray, lane: int) -> dict[tuple[str, str], np.ndarray]:
        """The contents of stored rows for a lane, by kind and name: ("t", ""), ("y", ""), and the loop's columns."""
        e = self.traced.equations
        arrays = {("t", ""): rows[:, 0, lane], ("y", ""): rows[:, 1 : 1 + e.y, lane]}
        for columns, start in ((self.traced.held, 1 + e.y), (self.traced.columns, 1 + e.y + e.held - e.dim)):
            arrays |= {(c.kind, c.name): _of(c, rows, start, lane) for c in columns}
        return arrays


def _of(column: Column, rows: np.ndarray, start: int, lane: int) -> np.ndarray:
    first = start + column.first
    return rows[:, first : first + column.size, lane].reshape(len(rows), *column.shape)


def _aligned(size: int) -> np.ndarray:
    """Zeros aligned to a cache line."""
    memory = np.zeros(size + LINE)
    return memory[-memory.ctypes.data // 8 % LINE :][:size]
