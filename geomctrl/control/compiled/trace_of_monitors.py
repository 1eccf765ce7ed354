"""The part of a loop's trace for monitors and measures, with their memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from geomctrl.compiler.loop_memory import MEMORY, ROW, Rows, worst_so_far
from geomctrl.control.contracts import Command
from geomctrl.control.monitors import Monitor
from geomctrl.control.sample import Sample
from geomctrl.tracing.arrays import SymbolArray, symbol_array
from geomctrl.tracing.branches import joined
from geomctrl.tracing.lines_of_changes import line_of_change
from geomctrl.tracing.requirements import requirements
from geomctrl.tracing.symbols import Graph, UntraceableError, add, both, compare, invert, is_symbol

from .law_trace import named
from .symbolic_copies import SymbolicCopies
from .trace_parts import as_symbol, columns_of, entries_of, one_number, same_entries, trace_of
from .traced_loop import Column, MemoryEntry

SETTINGS = {"limit", "held"}  # attributes of every monitor that are constant in a run


class TraceOfMonitors:
    """Results of watchers for a symbolic sample: outputs of the sample or of its row, and their memory."""

    copies: SymbolicCopies
    law: Any
    t: Any
    y: SymbolArray
    watching: list[tuple[Any, dict[str, tuple[Any, Any]]]]  # copies of the watchers with their initial attributes

    def __init__(self, loop: Any, watchers: Sequence[Any], strict: bool, graph: Graph):
        self.loop, self.watchers, self.strict, self.graph = loop, watchers, strict, graph
        self.memory: list[MemoryEntry] = []
        self.renewed: list[tuple[Any, int]] = []  # updates of the memory: (symbol, position)
        self.size = 0
        self.of_rows: list[tuple[int, Any]] = []  # (monitor, its value) if that depends on a sample's row alone
        self.required_of_rows: list[Any] = []

    def monitored(self, sample: Sample) -> tuple[list[Any], dict[str, Any]]:
        """The values of the monitors, None for those computed from rows; their signals."""
        row = sample if self.loop.hold else self._in_a_row(sample)
        values, watched = [], {}
        for k, (m, before) in enumerate(self.watching):
            if (value := self._of_row(k, m, before, row)) is not None:
                self.of_rows.append((k, value))
                values.append(None)
                continue
            value, signals, changed = self._joined(
                lambda k=k, m=m, before=before: self._watched(k, m, before, sample),
                lambda m=m, before=before: self._reset_watcher(m, before),
            )
            values += [value] if isinstance(m, Monitor) else []
            watched = signals | watched
            for place in self.memory:
                if place.watcher == k:
                    self.renewed += self._renewed(place, changed[place.name])
        return values, watched

    def _in_a_row(self, sample: Sample) -> Sample:
        """A sample whose command is read from its row, at the beginning."""
        arrays: dict[tuple[str, str], Any] = {("tau", ""): sample.tau}
        arrays |= {("signal", name): x for name, x in sample.signals.items()}
        if self.loop.plant.actuators:
            arrays["applied", ""] = sample.applied
        loaded = {(c.kind, c.name): self._loaded(ROW, c) for c in columns_of(arrays, 0)[0]}
        tau, signals = loaded["tau", ""], {name: x for (kind, name), x in loaded.items() if kind == "signal"}
        return sample._replace(command=Command(tau, signals=signals), applied=loaded.get(("applied", ""), tau))

    def _of_row(self, k: int, clone: Any, before: dict[str, tuple[Any, Any]], row: Sample) -> Any:
        """The value of a monitor if it depends only on the row of a sample; else None.

        It is computed later for many rows at once. With `strict` the sample itself needs it.
        """
        places = [place for place in self.memory if place.watcher == k]
        if self.strict or not isinstance(clone, Monitor) or not SETTINGS.issuperset(place.name for place in places):
            return None
        with requirements() as required:
            value, signals, changed = self._joined(
                lambda: self._watched(k, clone, before, row), lambda: self._reset_watcher(clone, before)
            )
        if signals or not is_symbol(value) or any(self._renewed(place, changed[place.name]) for place in places):
            return None
        graph = self.graph
        needed = graph.needed([graph.operand(value), *(graph.operand(x) for x in required if x is not True)])
        if any(graph.nodes[index][:2] == ("load", MEMORY) for index in needed):
            return None
        self.required_of_rows += required
        return value

    def _remember(self, watcher: int, name: str, x: Any) -> Any:
        """The position of a monitor's number or array in the loop's memory."""
        place = MemoryEntry(watcher, name, self.size, None if np.ndim(x) == 0 else np.shape(x))
        symbols = [self.graph.load(MEMORY, self.size + j) for j in range(place.size)]
        self.memory.append(place)
        self.size += place.size
        return symbols[0] if place.shape is None else symbol_array(symbols, place.shape)

    def _watched(self, k: int, clone: Any, before: dict[str, tuple[Any, Any]], sample: Sample) -> tuple[Any, Any, Any]:
        """(The value of a monitor, its signals, the updates of its memory)."""
        value = None
        if isinstance(clone, Monitor):
            value = one_number(named(clone, lambda: clone.measure(sample)))
        else:
            named(clone, lambda: clone.add(sample))
        places = {place.name: place for place in self.memory if place.watcher == k}
        changed, signals = {}, {}
        for name, now in vars(clone).items():
            was, entries = before.get(name, (None, None))
            if name == "signals":
                signals = {signal: one_number(x) for signal, x in now.items()}
            elif name in places:
                place = places[name]
                changed[name] = [one_number(now)] if place.shape is None else list(np.asarray(now, object).ravel())
                if len(changed[name]) != place.size:
                    raise UntraceableError(f"{clone.name!r} changes the shape of {name}")
            elif now is not was or not same_entries(entries_of(now), entries):
                line = line_of_change(f".{name}", [type(clone)])
                raise UntraceableError(
                    f"{clone.name!r} changes {name}{line}, which is neither a float nor an array of floats when the run"
                    " begins: set it to such a value in start()"
                )
        return value, signals, changed

    def _renewed(self, place: MemoryEntry, numbers: list[Any]) -> list[tuple[Any, int]]:
        """The numbers of an attribute that a sample changes, with their positions in memory."""
        graph, places = self.graph, range(place.first, place.first + place.size)
        return [(x, k) for x, k in zip(numbers, places) if graph.operand(x) != graph.operand(graph.load(MEMORY, k))]

    def _reset_watcher(self, clone: Any, before: dict[str, tuple[Any, Any]]) -> None:
        """Restore a monitor to its state before the measurement."""
        self.copies.reset()
        for name in vars(clone).keys() - before.keys():
            delattr(clone, name)
        for name, (x, entries) in before.items():
            if not same_entries(entries_of(x), entries):
                x.view(np.ndarray).ravel()[:] = entries
            clone.__dict__[name] = dict.fromkeys(x, np.nan) if name == "signals" else x

    def _compare_with_worst(self, values: list[Any], required: list) -> None:
        """The worst values so far and their times, as in `Record.add`; strict: a suspected violation has no result."""
        self.worst, n = self.size, len(values)
        self.size += 2 * n
        for j, (value, (monitor, _)) in enumerate(zip(values, self.watching)):
            if value is None:
                continue
            worst, since = (self.graph.load(MEMORY, self.worst + k) for k in (j, n + j))
            x = value if is_symbol(value) else as_symbol(self.graph, value)
            *renewed, worse = worst_so_far(x, self.t, worst, since)
            self.renewed += zip(renewed, (self.worst + j, self.worst + n + j))
            if self.strict:
                again = both(compare("lt", monitor.limit, worst), compare("le", x, add(worst, worst)))
                required.append(invert(both(both(worse, invert(compare("le", x, monitor.limit))), invert(again))))

    def rows_of(self, columns: list[Column], held: int, numbers: int) -> Rows | None:
        """The monitors computed from rows.

        A row contains t, y, the numbers of a held command, and further numbers described by columns.
        """
        if not self.of_rows:
            return None
        before = 1 + len(self.y) + held - self.loop.group.dim
        places = {c.name: c.first + before for c in columns if c.kind == "monitor"}
        monitors = [j for j, _ in self.of_rows]
        inputs = (1, len(self.y), held, 0, numbers)
        trace = trace_of(self.graph, inputs, [[x for _, x in self.of_rows]], self.required_of_rows)
        self.copies.traced.append((self.graph, trace.ends))
        worst, times = ([first + j for j in monitors] for first in (self.worst, (self.worst + self.size) // 2))
        return Rows(trace, [places[self.watchers[j].name] for j in monitors], worst, times)

    def _joined(self, call: Callable[[], Any], reset: Callable[[], Any] | None = None) -> Any:
        """The result of user code on all paths through it."""
        return joined(lambda: (self.copies.choose(self.law), call())[1], reset or self.copies.reset)

    def _loaded(self, array: int, column: Column) -> SymbolArray:
        return symbol_array([self.graph.load(array, column.first + k) for k in range(column.size)], column.shape)
