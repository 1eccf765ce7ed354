"""A closed loop run once on symbols: the equations of `compiler.loops`, and what their numbers mean.

Traced are copies of the plant, of the controller with its reference, and of what watches: monitors and measures. Their
numbers, attributes that a sample changes, are inputs and outputs of it, as are the monitors' worst values so far.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import numpy as np

from geomctrl.compiler.loop_memory import Equations, Pair, Rows, Sampled, Stage
from geomctrl.control.closed_loop import MAX_STEPS
from geomctrl.control.contracts import Command, evaluated_each_time
from geomctrl.control.monitors import Monitor
from geomctrl.control.sample import Sample, State
from geomctrl.control.sensing import made_by
from geomctrl.control.sensors.sensor import Truth, normals
from geomctrl.integrators.explicit import is_vector_space
from geomctrl.kernels.marches import LARGEST_ANGLE
from geomctrl.lie.groups import rotation
from geomctrl.tracing.arrays import SymbolArray, requirements, symbol_array
from geomctrl.tracing.branches import joined
from geomctrl.tracing.patched_numpy import numpy_on_symbols
from geomctrl.tracing.symbols import (
    Graph,
    UntraceableError,
    add,
    as_python,
    both,
    compare,
    invert,
    is_symbol,
    where,
)
from geomctrl.tracing.traces import Trace

from .law_memory import Cell, LawMemory, MemoryGrows, value_at
from .law_trace import OF_STATE, named, outputs_of, require_compilable_size
from .loop_parts import law_of, loop_parts
from .symbolic_copies import LAW, SymbolicCopies
from .trace_parts import (
    as_symbol,
    as_symbols,
    columns_of,
    entries_of,
    one_number,
    plant_rate,
    same_entries,
    signals_of,
    trace_of,
)
from .traced_loop import Column, Remembered, TracedLoop

NUMBERS, TIME, STATE, HELD, MEMORY, ROW = range(6)  # the graph's arrays; of a row what follows the held command

SETTINGS = {"limit", "held"}  # numbers of every monitor, which do not change in a run


def trace_loop(
    loop: Any,
    watchers: Sequence[Any],
    *,
    strict: bool = False,
    constant: bool = False,
    cells: Mapping[str, Cell] | None = None,
) -> TracedLoop:
    """The loop's trace. loop: a `Loop` whose first sample has been looked at. watchers: monitors, measures.

    constant: as for `SymbolicCopies`. cells: what the law is known to remember. Raises UntraceableError.
    """
    cells = dict(cells or {})
    try:
        return _settled(loop, watchers, strict, constant, cells, frozenset())
    except UntraceableError as error:  # perhaps an int that indexes: then each of its values is a way
        ints = [path for path, cell in cells.items() if cell.whole and cell.shape == ()]
        for path in ints if " is used as a " in str(error) else ():
            known = {other: cell for other, cell in cells.items() if other != path}
            with suppress(UntraceableError):
                return _settled(loop, watchers, strict, constant, known, frozenset([path]))
        raise


def _settled(
    loop: Any, watchers: Sequence[Any], strict: bool, constant: bool, cells: dict[str, Cell], choices: frozenset[str]
) -> TracedLoop:
    """The trace that knows all that the law remembers, which `cells` tells then."""
    while True:
        try:
            return _Tracing(loop, watchers, strict, constant, cells, choices).traced()
        except MemoryGrows as grown:
            cells |= grown.cells


class _Tracing:
    """One pass over a loop on symbols."""

    def __init__(
        self, loop: Any, watchers: Sequence[Any], strict: bool, constant: bool, cells: dict[str, Cell], choices: Any
    ):
        self.loop, self.watchers, self.strict, self.choices = loop, watchers, strict, choices
        self.graph = Graph(finite=False, finite_arrays=(NUMBERS, TIME, STATE))
        first = 0 if loop.sensing is None else loop.sensing.size
        self.law_memory = LawMemory(cells, self.graph, HELD, first)
        self.copies = SymbolicCopies(lambda k: self.graph.load(NUMBERS, k), constant=constant, memory=self.law_memory)
        self.grown: dict[str, Cell] = {}
        self.memory: list[Remembered] = []
        self.renewed: list[tuple[Any, int]] = []  # what becomes of the memory: (symbol, place)
        self.size = 0
        self.of_rows: list[tuple[int, Any]] = []  # (monitor, its value), where that depends on a sample's row alone
        self.required_of_rows: list[Any] = []

    def traced(self) -> TracedLoop:
        loop, graph = self.loop, self.graph
        sensed = 0 if loop.sensing is None else loop.sensing.size
        require_compilable_size("the loop", len(loop.y) + sensed)
        self.plant, self.controller, watching = loop_parts(loop, self.watchers, self.copies, self._remember)
        self.watching = [(clone, {name: (x, entries_of(x)) for name, x in vars(clone).items()}) for clone in watching]
        self.law = self.controller
        self.reference = getattr(self.controller, "reference", None)
        self.t = as_python(graph.load(TIME, 0))
        self.y = symbol_array([graph.load(STATE, k) for k in range(len(loop.y))], (len(loop.y),))
        self.y.setflags(write=False)
        space = getattr(type(self.controller).__call__, "__globals__", {})
        spaces = space, *self.copies.external_state.spaces.values()
        with self.copies.used(), evaluated_each_time(), numpy_on_symbols(*spaces):
            return self._equations()

    # --- the law, the plant, the sample ----------------------------------------------------------------------------

    def _equations(self) -> TracedLoop:
        loop = self.loop
        dim, ny = loop.group.dim, len(loop.y)
        sampled, seen, self.measured = self._sampled()
        first = sum(x.size for x in sampled)
        with requirements() as of_law:
            state = self.t, *loop.split(self.y)
            outputs, remembered = self._law(state)
        held: list[Column] = []
        law = None
        tau, z_rate = outputs["tau"], outputs.get("z_rate")
        at_work = None
        if loop.hold:
            of_state = {(name, name): outputs[name] for name in OF_STATE if name in outputs}
            found = {("memory", path): np.array(x, object) for path, x in remembered.items()}
            held, numbers = columns_of({**found, ("tau", "tau"): tau, **of_state, **signals_of(outputs)}, first)
            column = {c.kind: c for c in held}
            law = self._trace([numbers], of_law, first + self.law_memory.size, 0)
            of_law = []
            tau = self._held(column["tau"])
            at_work = loop.sensing.at_work(tau, self.area) if loop.driven else None
            z_rate = None if z_rate is None else self._held(column["z_rate"])
        n_held = first + sum(c.size for c in held)
        with requirements() as of_plant:
            rates = self._joined(lambda: self._rates(tau if at_work is None else at_work, z_rate))
        field_ = self._trace([rates], [*of_law, *of_plant], n_held, 0)
        with requirements() as of_sample:
            signals = {name: x for (_, name), x in signals_of(outputs).items()}
            signals |= {c.name: self._held(c) for c in held if c.kind == "signal"}
            values, watched, desired, applied = self._looked_at(tau, at_work, signals)
        self._compare_with_worst(values, of_sample)
        found: dict[tuple[str, str], Any] = {}
        if not loop.hold:
            found |= {("tau", "tau"): tau, **signals_of(outputs)}
        if loop.plant.actuators:
            found["applied", "applied"] = applied
        found |= {("desired", name): x for name, x in zip("qva", desired or ())}
        found |= {("monitor", m.name): 0.0 if x is None else x for m, x in zip(self.watchers, values)}
        found |= {("watched", name): x for name, x in watched.items()}
        columns, numbers = columns_of(found, dim)
        memory = [x for x, _ in self.renewed]
        sample = self._trace([rates, numbers, memory], [*of_law, *of_plant, *of_sample], n_held, self.size)
        remembered = dim + len(numbers)
        behind = 1 + ny + n_held  # in a row
        first_of = {c.name: c.first - dim + behind for c in columns if c.kind == "monitor"}
        of_rows = [(j, first_of[self.watchers[j].name]) for j, _ in self.of_rows]
        rows = None
        if of_rows:
            inputs = (1, ny, n_held, 0, len(numbers))
            later = trace_of(self.graph, inputs, [[x for _, x in self.of_rows]], self.required_of_rows)
            rows = Rows(later, [place for _, place in of_rows])
        tableau = loop.tableau
        pair = None
        if loop.adaptive:
            weights = tableau.b_hat - np.append(tableau.b, 0.0)
            pair = Pair(weights.tolist(), tableau.order, MAX_STEPS)
        renewed = next(((c.first, loop.parts[2].start, c.size) for c in held if c.kind == "z_next"), None)
        equations = Equations(
            [Stage(float(c), base, rows.tolist(), classical.tolist()) for c, (base, rows), classical in zip(
                [*tableau.c, 1.0], tableau.stages, [*tableau.A_classical, tableau.b_classical])],
            field_, sample, law, *self._group(), tableau.family == "MK", ny, dim, n_held, self.size,
            [(remembered + j, place) for j, (_, place) in enumerate(self.renewed)], pair, rows, renewed, sampled,
            len(sampled) - (len(loop.sensing.links) if loop.driven else 0), self.law_memory.size,
        )  # fmt: skip
        taken = [k for array, k in self.graph.relied_upon if array == NUMBERS]
        if not np.isfinite(self.copies.values[taken]).all():  # as in all loops of one `SymbolicCopies.key`
            raise UntraceableError("a term of a robot takes a number that is nan or infinite")
        return TracedLoop(
            equations, columns, [*held, *seen], self.memory, self.worst, self.copies, self.law_memory, of_rows
        )

    def _sampled(self) -> tuple[list[Sampled], list[Column], dict[str, Any]]:
        """What sensors and actuators do at their samples; where what sensors tell lies; that itself."""
        loop, sensing = self.loop, self.loop.sensing
        if sensing is None:
            return [], [], {}
        n = loop.inputs
        self.area = area = symbol_array([self.graph.load(HELD, k) for k in range(sensing.size)], (sensing.size,))
        behind = self.law_memory.first + self.law_memory.size
        command = symbol_array([self.graph.load(HELD, behind + k) for k in range(n)], (n,))
        (q, v, _), x = loop.split(self.y), loop.plant_state(self.y)
        truth = Truth(cast(Any, self.t), q, v, sensing.at_work(command, area), x, self.plant)
        found = [self._one_sampled(place, self.plant.sensors[place.number], truth, n) for place in sensing.places]
        for place, link in zip(sensing.links, made_by(self.plant)):
            found.append(self._one_sampled(place, link, truth._replace(command=command), n))
            command = area[place.told]
        seen = [Column("measured", name, *x) for place in sensing.places for name, x in place.names.items()]
        return found, seen, sensing.told(area)

    def _one_sampled(self, place: Any, sensor: Any, truth: Truth, n: int) -> Sampled:
        part = self.area[place.part]
        with requirements() as required:
            draws = normals(sensor.keys, part[0], place.draws) if place.draws else np.zeros(0)
            after = self._joined(lambda: named(sensor, lambda: place.renewed(sensor, truth, part, draws)))
        trace = self._trace(
            [as_symbols(after).ravel().tolist()], required, self.law_memory.first + self.law_memory.size + n, 0
        )
        return Sampled(trace, place.first, place.size)

    def _joined(self, call: Callable[[], Any], reset: Callable[[], Any] | None = None) -> Any:
        """What user's code returns, for all ways through it."""
        return joined(lambda: (self.copies.choose(self.law), call())[1], reset or self.copies.reset)

    def _law(self, state: tuple) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """What the law returns, by name, and what becomes of what it remembers."""
        if not self.loop.hold:
            return self._joined(lambda: self._asked(state)), {}
        try:
            found = self._joined(lambda: (self._asked(state), self._remembered()), lambda: self.copies.reset(True))
        finally:
            if any(self.law_memory.cells.get(path) != cell for path, cell in self.grown.items()):
                raise MemoryGrows(self.grown) from None
        return found

    def _asked(self, state: tuple) -> dict[str, Any]:
        """What the law returns, by name."""
        loop = self.loop
        command = named(self.controller, lambda: loop.asked(self.controller, *state, self.measured))
        return outputs_of(
            self.controller, command, loop.inputs, loop.rate_shapes, loop.next_shapes if loop.hold else ()
        )

    def _remembered(self) -> dict[str, list[Any]]:
        """The numbers of what the law remembers, after a call."""
        memory, grows = self.law_memory, False
        for path, x, another in self.copies.changes():
            own = path.removeprefix(LAW)
            cell = self.grown.get(own) or memory.cells.get(own)
            if cell is None:
                cell = Cell()
                if not isinstance(x, (list, tuple, dict, deque)):
                    cell = cell.with_value(own, value_at(law_of(self.loop), own), own in self.choices)
            if not isinstance(x, (list, tuple, dict, deque)):
                whole = memory.is_whole(x) is not False if is_symbol(x) else None
                cell = cell.with_value(own, x, own in self.choices, whole)
            self.grown[own] = replace(cell, replaced=cell.replaced or (another and not is_symbol(x)))
            grows = grows or memory.cells.get(own) != self.grown[own]
        if grows:
            return {}
        values = {path: value_at(self.law, path) for path, cell in memory.cells.items() if cell.size}
        self.copies.check_sharing({path: x for path, x in values.items() if isinstance(x, np.ndarray)})
        return {path: memory.numbers(path, x) for path, x in values.items()}

    def _held(self, column: Column) -> SymbolArray:
        return self._loaded(HELD, column)

    def _loaded(self, array: int, column: Column) -> SymbolArray:
        return symbol_array([self.graph.load(array, column.first + k) for k in range(column.size)], column.shape)

    def _rates(self, tau: Any, z_rate: Any) -> list[Any]:
        """(v, vdot, z_rate, x', power)."""
        loop, n = self.loop, 2 * self.loop.plant.robot.nv
        out = plant_rate(loop, self.plant, self.t, self.y, tau)
        rate = [0.0] * loop.z_group.dim if z_rate is None else as_symbols(z_rate).ravel().tolist()
        return [*out[:n], *rate, *out[n:]]

    def _looked_at(self, tau: Any, at_work: Any, signals: dict[str, Any]) -> tuple[list[Any], dict[str, Any], Any, Any]:
        """What the monitors measure, their signals, the desired motion, and the joint torques."""
        loop = self.loop
        q, v, z = loop.split(self.y)
        x, tau = loop.plant_state(self.y), as_symbols(tau)
        drive = tau if at_work is None else at_work
        applied = self._joined(lambda: named(self.plant, lambda: self.plant._applied(self.t, q, v, drive, x)))
        state, command = State(q, v, z, x, self.y[-1], self.y), Command(tau, signals=signals)
        sample = Sample(
            cast(Any, self.t), state, command, self.plant, applied, reference=self.reference, measured=self.measured
        )
        row = sample
        if not loop.hold:
            applied_there = {("applied", ""): applied} if loop.plant.actuators else {}
            front, _ = columns_of(
                {("tau", ""): tau, **{("signal", n): x for n, x in signals.items()}, **applied_there}, 0
            )
            loaded = {(c.kind, c.name): self._loaded(ROW, c) for c in front}
            told = {name: x for (kind, name), x in loaded.items() if kind == "signal"}
            row = row._replace(
                command=Command(loaded["tau", ""], signals=told),
                applied=loaded.get(("applied", ""), loaded["tau", ""]),
            )
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
        desired = None
        if self.reference is not None:
            desired = self._joined(lambda: named(self.reference, lambda: tuple(sample.desired)))  # pyright: ignore[reportArgumentType]
        return values, watched, desired, applied

    # --- monitors ----------------------------------------------------------------------------------------------------

    def _of_row(self, k: int, clone: Any, before: dict[str, tuple[Any, Any]], row: Sample) -> Any:
        """What a monitor measures, where that depends on nothing but the row of a sample; else None.

        It is computed later, for many rows at once. A strict loop needs it in its sample.
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
        """A monitor's number or array as a place in the loop's memory."""
        place = Remembered(watcher, name, self.size, None if np.ndim(x) == 0 else np.shape(x))
        symbols = [self.graph.load(MEMORY, self.size + j) for j in range(place.size)]
        self.memory.append(place)
        self.size += place.size
        return symbols[0] if place.shape is None else symbol_array(symbols, place.shape)

    def _watched(self, k: int, clone: Any, before: dict[str, tuple[Any, Any]], sample: Sample) -> tuple[Any, Any, Any]:
        """(what a monitor measures, its signals, the new content of the memory that this changes)."""
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
                raise UntraceableError(f"{clone.name!r} changes {name}, which is neither number nor array")
        return value, signals, changed

    def _renewed(self, place: Remembered, numbers: list[Any]) -> list[tuple[Any, int]]:
        """Those of an attribute's numbers that are other ones after a sample, each with its place in the memory."""
        graph, places = self.graph, range(place.first, place.first + place.size)
        return [(x, k) for x, k in zip(numbers, places) if graph.operand(x) != graph.operand(graph.load(MEMORY, k))]

    def _reset_watcher(self, clone: Any, before: dict[str, tuple[Any, Any]]) -> None:
        """Make a monitor what it was before it measured."""
        self.copies.reset()
        for name in vars(clone).keys() - before.keys():
            delattr(clone, name)
        for name, (x, entries) in before.items():
            if not same_entries(entries_of(x), entries):
                x.ravel()[:] = entries
            clone.__dict__[name] = dict.fromkeys(x, np.nan) if name == "signals" else x

    def _compare_with_worst(self, values: list[Any], required: list) -> None:
        """The worst values so far and when, as `Record.add` keeps them; strict: a sample that it accuses has none."""
        self.worst, n = self.size, len(values)
        self.size += 2 * n
        for j, (value, (monitor, _)) in enumerate(zip(values, self.watching)):
            if value is None:
                continue
            worst, since = (self.graph.load(MEMORY, self.worst + k) for k in (j, n + j))
            x = value if is_symbol(value) else as_symbol(self.graph, value)
            worse = both(invert(compare("le", x, worst)), compare("eq", worst, worst))  # nan exceeds all and stays
            self.renewed += [
                (where(worse, x, worst), self.worst + j),
                (where(worse, self.t, since), self.worst + n + j),
            ]
            if self.strict:
                again = both(compare("lt", monitor.limit, worst), compare("le", x, add(worst, worst)))
                required.append(invert(both(both(worse, invert(compare("le", x, monitor.limit))), invert(again))))

    # --- the group ---------------------------------------------------------------------------------------------------

    def _group(self) -> tuple[Trace | None, Trace | None, Trace | None]:
        """y exp(u), dexp^-1_{-u} k, and log y where steps are chosen, of a state that is no vector."""
        loop, graph = self.loop, Graph()
        if is_vector_space(loop.group):
            return None, None, None
        ny, dim = len(loop.y), loop.group.dim

        def fresh(array: int, n: int) -> SymbolArray:
            return symbol_array([graph.load(array, k) for k in range(n)], (n,))

        with requirements() as required:
            y, u = fresh(1, ny), fresh(2, dim)
            moved = loop.group.advance(y, u)
        move = trace_of(graph, (ny, dim), [list(moved)], required)
        with requirements() as required:
            u, k = fresh(1, dim), fresh(2, dim)
            pulled = loop.group.dexp_inv_mul(-u, k)
            required.append(compare("lt", one_number(rotation(loop.group, u)), LARGEST_ANGLE))
        pull = trace_of(graph, (dim, dim), [list(pulled)], required)
        if not loop.adaptive:
            return move, pull, None
        with requirements() as required:
            size = loop.group.log(fresh(1, ny))
        return move, pull, trace_of(graph, (ny,), [list(size)], required)

    def _trace(self, outputs: list[list[Any]], required: list, held: int, memory: int) -> Trace:
        return trace_of(self.graph, (1, len(self.loop.y), held, memory), outputs, required)
