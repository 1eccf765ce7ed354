"""`LoopTrace`: traces a closed loop for `compiler.loops` and records the meaning of its numbers.

Copies of the plant, the controller with its reference, monitors and measures are traced. Attributes that change between
samples are inputs and outputs of the trace, and so are the monitors' worst values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from geomctrl.compiler.loop_memory import HELD, NUMBERS, STATE, TIME, Equations, Pair, Sampled, Stage
from geomctrl.control.closed_loop import MAX_STEPS
from geomctrl.control.contracts import Command, evaluated_each_time
from geomctrl.control.sample import Sample, State
from geomctrl.control.sensing import sampled_actuator_sensors
from geomctrl.control.sensors.sensor import Truth, normals
from geomctrl.integrators.explicit import is_vector_space
from geomctrl.kernels.exponentials import LARGEST_ANGLE
from geomctrl.lie.contract import rotation
from geomctrl.tracing.arrays import SymbolArray, symbol_array
from geomctrl.tracing.lines_of_changes import line_of_change
from geomctrl.tracing.patched_numpy import numpy_on_symbols
from geomctrl.tracing.requirements import requirements
from geomctrl.tracing.selected import follows
from geomctrl.tracing.symbols import (
    Graph,
    UntraceableError,
    as_python,
    compare,
    is_symbol,
)
from geomctrl.tracing.traces import Trace

from .contents import ADVICE, BUFFERS, LAW, changes, check_sharing
from .law_memory import (
    Cell,
    LawMemory,
    MemoryGrowthError,
    MemoryLengthError,
    UnsupportedMemoryError,
    value_at,
)
from .law_trace import OF_STATE, named, outputs_of, require_compilable_size
from .loop_parts import law_of, loop_parts
from .symbolic_copies import SymbolicCopies
from .trace_of_monitors import TraceOfMonitors
from .trace_parts import (
    as_symbols,
    columns_of,
    entries_of,
    one_number,
    plant_rate,
    signals_of,
    trace_of,
)
from .traced_loop import Column, TracedLoop


class LoopTrace(TraceOfMonitors):
    """One pass over a loop with symbols."""

    def __init__(
        self,
        loop: Any,
        watchers: Sequence[Any],
        strict: bool,
        constant: bool,
        cells: dict[str, Cell],
        choices: frozenset[str],
        buffers: frozenset[str],
    ):
        super().__init__(loop, watchers, strict, Graph(finite=False, finite_arrays=(NUMBERS, TIME, STATE)))
        self.choices = choices
        first = 0 if loop.sensing is None else loop.sensing.size
        self.law_memory = LawMemory(cells, self.graph, HELD, first)
        self.copies = SymbolicCopies(
            lambda k: self.graph.load(NUMBERS, k),
            constant=constant,
            memory=self.law_memory,
            buffer=lambda k: self.graph.load(BUFFERS, k),
            buffers=buffers,
            advice=ADVICE["sampled" if loop.hold else "always"],
        )
        self.grown: dict[str, Cell] = {}

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
        outside = self.copies.external_state
        with (
            self.copies.used(),
            evaluated_each_time(),
            numpy_on_symbols(space, *outside.spaces.values(), roots=outside.reached),
        ):
            return self._equations()

    def _equations(self) -> TracedLoop:
        loop = self.loop
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
            outputs_by_name = {("memory", path): np.array(x, object) for path, x in remembered.items()}
            held, numbers = columns_of(
                {**outputs_by_name, ("tau", "tau"): tau, **of_state, **signals_of(outputs)}, first
            )
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
            values, watched, desired, applied = self._monitor_values(tau, at_work, signals)
        self._compare_with_worst(values, of_sample)
        outputs_by_name: dict[tuple[str, str], Any] = {}
        if not loop.hold:
            outputs_by_name |= {("tau", "tau"): tau, **signals_of(outputs)}
        if loop.plant.actuators:
            outputs_by_name["applied", "applied"] = applied
        outputs_by_name |= {("desired", name): x for name, x in zip("qva", desired or ())}
        outputs_by_name |= {("monitor", m.name): 0.0 if x is None else x for m, x in zip(self.watchers, values)}
        outputs_by_name |= {("watched", name): x for name, x in watched.items()}
        columns, numbers = columns_of(outputs_by_name, loop.group.dim)
        memory = [x for x, _ in self.renewed]
        sample = self._trace([rates, numbers, memory], [*of_law, *of_plant, *of_sample], n_held, self.size)
        remembered = loop.group.dim + len(numbers)
        rows = self.rows_of(columns, n_held, len(numbers))
        tableau = loop.tableau
        renewed = next(((c.first, loop.parts[2].start, c.size) for c in held if c.kind == "z_next"), None)
        equations = Equations(
            [Stage(float(c), base, rows.tolist(), classical.tolist()) for c, (base, rows), classical in zip(
                [*tableau.c, 1.0], tableau.stages, [*tableau.A_classical, tableau.b_classical])],
            field_, sample, law, *self._group(), tableau.family == "MK", len(loop.y), loop.group.dim, n_held, self.size,
            [(remembered + j, place) for j, (_, place) in enumerate(self.renewed)], self._pair(), rows, renewed,
            sampled, len(sampled) - (len(loop.sensing.links) if loop.driven else 0), self.law_memory.size,
        )  # fmt: skip
        self._require_finite()
        return TracedLoop(
            equations.without_unused(), columns, [*held, *seen], self.memory, self.worst,
            self.copies.constant, self.copies.buffers, self.law_memory,
        )  # fmt: skip

    def _require_finite(self) -> None:
        taken = [k for array, k in self.graph.relied_upon if array == NUMBERS]
        if not np.isfinite(self.copies.values[taken]).all():  # holds for all loops with this `SymbolicCopies.key`
            raise UntraceableError("an argument of a term of the robot is nan or infinite")

    def _pair(self) -> Pair | None:
        if not self.loop.adaptive:
            return None
        tableau = self.loop.tableau
        return Pair((tableau.b_hat - np.append(tableau.b, 0.0)).tolist(), tableau.order, MAX_STEPS)

    def _sampled(self) -> tuple[list[Sampled], list[Column], dict[str, Any]]:
        """Updates of sensors and actuators at their samples; position of the measurements; their values."""
        loop, sensing = self.loop, self.loop.sensing
        if sensing is None:
            return [], [], {}
        n = loop.inputs
        self.area = area = symbol_array([self.graph.load(HELD, k) for k in range(sensing.size)], (sensing.size,))
        behind = self.law_memory.first + self.law_memory.size
        command = symbol_array([self.graph.load(HELD, behind + k) for k in range(n)], (n,))
        (q, v, _), x = loop.split(self.y), loop.plant_state(self.y)
        truth = Truth(cast(Any, self.t), q, v, sensing.at_work(command, area), x, self.plant)
        traces = [self._one_sampled(place, self.plant.sensors[place.number], truth, n) for place in sensing.places]
        for place, link in zip(sensing.links, sampled_actuator_sensors(self.plant)):
            traces.append(self._one_sampled(place, link, truth._replace(command=command), n))
            command = area[place.received]
        seen = [Column("measured", name, *x) for place in sensing.places for name, x in place.names.items()]
        return traces, seen, sensing.received(area)

    def _one_sampled(self, place: Any, sensor: Any, truth: Truth, n: int) -> Sampled:
        part = self.area[place.part]
        with requirements() as required:
            draws = normals(sensor.keys, part[0], place.draws) if place.draws else np.zeros(0)
            after = self._joined(lambda: named(sensor, lambda: place.renewed(sensor, truth, part, draws)))
        trace = self._trace(
            [as_symbols(after).ravel().tolist()], required, self.law_memory.first + self.law_memory.size + n, 0
        )
        return Sampled(trace, place.first, place.size)

    def _law(self, state: tuple) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """The results of the law by name, and the new values of its memory."""
        if not self.loop.hold:
            return self._joined(lambda: self._law_results(state)), {}

        def grows() -> bool:
            return any(self.law_memory.cells.get(path) != cell for path, cell in self.grown.items())

        refused: list[UntraceableError] = []  # errors on one path, after which the memory would be undefined

        def called() -> tuple[dict[str, Any], dict[str, list[Any]]]:
            outputs = self._law_results(state)
            try:
                return outputs, self._remembered()
            except UnsupportedMemoryError as error:
                path = str(error).partition(" ")[0]
                owner = "" if path.startswith(LAW) else LAW
                refused.append(UntraceableError(f"{owner}{error}{line_of_change(path, self.copies.code)}"))
                raise refused[-1] from None

        try:
            result = self._joined(called, lambda: self.copies.reset(True))
            if refused and not grows():
                raise refused[0]
        finally:
            if grows():
                raise MemoryGrowthError(self.grown) from None
        return result

    def _law_results(self, state: tuple) -> dict[str, Any]:
        """The results of the law by name."""
        loop = self.loop
        command = named(self.controller, lambda: loop.call_law(self.controller, *state, self.measured))
        return outputs_of(
            self.controller, command, loop.inputs, loop.rate_shapes, loop.next_shapes if loop.hold else ()
        )

    def _remembered(self) -> dict[str, list[Any]]:
        """The numbers of the law's memory after a call."""
        memory, grows = self.law_memory, False
        for path, x, another in changes(self.copies.filled, self.copies.code, self.copies.shared):
            own = path.removeprefix(LAW)
            cell = self.grown.get(own) or memory.cells.get(own)
            values = [] if isinstance(x, (list, tuple, dict, deque)) else [x]
            if cell is None:
                cell, values = Cell(), [value_at(law_of(self.loop), own), *values] if values else []
            for value in values:
                value = value.copy() if id(value) in self.copies.protected else value
                try:
                    cell = cell.with_value(path, value, own in self.choices)
                except MemoryLengthError as error:
                    raise MemoryLengthError(f"{error}{line_of_change(path, self.copies.code)}") from None
            self.grown[own] = replace(cell, replaced=cell.replaced or (another and not is_symbol(x)))
            grows = grows or memory.cells.get(own) != self.grown[own]
        if grows:
            return {}
        values = {path: value_at(self.law, path) for path, cell in memory.cells.items() if cell.size}
        for path, x in values.items():
            if isinstance(x, np.ndarray) and follows(x):
                raise UnsupportedMemoryError(f"{path} is a part of another array after the call: copy it")
        check_sharing({f"{LAW}{p}": x for p, x in values.items() if isinstance(x, np.ndarray)}, self.copies.filled)
        return {path: memory.numbers(path, x) for path, x in values.items()}

    def _held(self, column: Column) -> SymbolArray:
        return self._loaded(HELD, column)

    def _rates(self, tau: Any, z_rate: Any) -> list[Any]:
        """(v, vdot, z_rate, x', power)."""
        loop, n = self.loop, 2 * self.loop.plant.robot.nv
        out = plant_rate(loop, self.plant, self.t, self.y, tau)
        rate = [0.0] * loop.z_group.dim if z_rate is None else as_symbols(z_rate).ravel().tolist()
        return [*out[:n], *rate, *out[n:]]

    def _monitor_values(
        self, tau: Any, at_work: Any, signals: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], Any, Any]:
        """Values and signals of monitors, the desired motion, and the joint torques."""
        loop = self.loop
        q, v, z = loop.split(self.y)
        x, tau = loop.plant_state(self.y), as_symbols(tau)
        drive = tau if at_work is None else at_work
        applied = self._joined(lambda: named(self.plant, lambda: self.plant._applied(self.t, q, v, drive, x)))
        state, command = State(q, v, z, x, self.y[-1], self.y), Command(tau, signals=signals)
        sample = Sample(
            cast(Any, self.t), state, command, self.plant, applied, reference=self.reference, measured=self.measured
        )
        values, watched = self.monitored(sample)
        desired = None
        if self.reference is not None:
            desired = self._joined(lambda: named(self.reference, lambda: tuple(sample.desired)))  # pyright: ignore[reportArgumentType]
        return values, watched, desired, applied

    def _group(self) -> tuple[Trace | None, Trace | None, Trace | None]:
        """y exp(u), dexp^-1_{-u} k, and log y for adaptive methods, if the state is no vector."""
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
        trace = trace_of(self.graph, (1, len(self.loop.y), held, memory), outputs, required)
        self.copies.traced.append((self.graph, trace.ends))
        return trace
