"""A closed loop run once on symbols: the equations of `compiler.loops`, and what their numbers mean.

Traced are twins of the plant, of the controller with its reference, and of what watches: monitors and measures. Their
numbers, attributes that a sample changes, are inputs and outputs of it, as are the monitors' worst values so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from geomctrl.compiler.arrays import SymbolArray, require, requirements, symbol_array
from geomctrl.compiler.loop_memory import Equations, Pair, Sampled, Stage
from geomctrl.compiler.stand_ins import numpy_on_symbols
from geomctrl.compiler.symbols import (
    Condition,
    Graph,
    Symbol,
    UntraceableError,
    both,
    compare,
    invert,
    is_symbol,
    operands,
    where,
)
from geomctrl.compiler.tracing import Trace
from geomctrl.control.closed_loop import MOST_STEPS
from geomctrl.control.desired import evaluated_each_time
from geomctrl.control.monitors import Monitor, Sample
from geomctrl.control.sensing import made_by
from geomctrl.control.sensors.noise import normals
from geomctrl.control.sensors.sensor import Truth
from geomctrl.integrators.explicit import is_vector_space
from geomctrl.kernels.marches import LARGEST_ANGLE
from geomctrl.lie.groups import rotation

from .law import OF_STATE, named, outputs_of
from .loop_twins import twins_of
from .twins import Twins

NUMBERS, TIME, STATE, HELD, MEMORY = range(5)  # the graph's arrays


@dataclass(frozen=True, eq=False)
class Column:
    """Numbers that a sample leaves: what they are ("tau", "signal", ...), their name, first place and shape."""

    kind: str
    name: str
    first: int
    shape: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Remembered:
    """A number or array that lasts from sample to sample: an attribute of which watcher, where in the memory."""

    watcher: int
    name: str
    first: int
    shape: tuple[int, ...] | None  # None for a number

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape or ())


@dataclass
class TracedLoop:
    """Equations, the columns of a sample's outputs after the rates, and the memory of the monitors."""

    equations: Equations
    columns: list[Column]  # within the outputs of `sample`, or within a held command where `held`
    held: list[Column]
    memory: list[Remembered]
    worst: int  # where in the memory the monitors' worst values begin; their times follow
    twins: Twins  # whose words hold ids: what they are of lives as long as this

    @property
    def commanded(self) -> list[Column]:
        """Of a held command; the rest of `held` is what sensors tell."""
        return [c for c in self.held if c.kind != "measured"]

    codes: dict[Any, Any] = field(default_factory=dict)  # made of it, see `machine`


def trace_loop(
    loop: Any,
    watchers: Sequence[Any],
    *,
    strict: bool = False,
    constant: bool = False,
) -> TracedLoop:
    """The loop's trace. loop: a `Loop` whose first sample has been looked at. watchers: monitors, measures.

    constant: as for `Twins`. Raises UntraceableError.
    """
    return _Tracing(loop, watchers, strict, constant).traced()


class _Tracing:
    """One pass over a loop on symbols."""

    def __init__(self, loop: Any, watchers: Sequence[Any], strict: bool, constant: bool):
        self.loop, self.watchers, self.strict = loop, watchers, strict
        self.graph = Graph()
        self.twins = Twins(lambda k: self.graph.load(NUMBERS, k), constant=constant)
        self.memory: list[Remembered] = []
        self.renewed: list[tuple[Any, int]] = []  # what becomes of the memory: (symbol, place)
        self.of_time: list[bool | None] = []  # of nodes: whether time is in them, None where the state is too
        self.size = 0

    def traced(self) -> TracedLoop:
        loop, graph = self.loop, self.graph
        self.plant, self.controller, watching = twins_of(loop, self.watchers, self.twins, self._remember)
        self.watching = [(twin, {name: (x, _entries(x)) for name, x in vars(twin).items()}) for twin in watching]
        self.reference = getattr(self.controller, "reference", None)
        self.t = graph.load(TIME, 0)
        self.y = symbol_array([graph.load(STATE, k) for k in range(len(loop.y))], (len(loop.y),))
        self.y.setflags(write=False)
        space = getattr(type(self.controller).__call__, "__globals__", {})
        spaces = space, *self.twins.outside.spaces.values()
        with self.twins.used(), evaluated_each_time(), numpy_on_symbols(*spaces):
            return self._equations()

    # --- the law, the plant, the sample ----------------------------------------------------------------------------

    def _equations(self) -> TracedLoop:
        loop = self.loop
        dim, ny = loop.group.dim, len(loop.y)
        sampled, seen, self.measured = self._sampled()
        first = sum(x.size for x in sampled)
        with requirements() as of_law:
            state = self.t, *loop.split(self.y)
            command = named(self.controller, lambda: loop.asked(self.controller, *state, self.measured))
            self._divide()
        next_shapes = loop.next_shapes if loop.hold else ()
        outputs = outputs_of(self.controller, command, loop.inputs, loop.rate_shapes, next_shapes)
        held: list[Column] = []
        law = None
        tau, z_rate = outputs["tau"], outputs.get("z_rate")
        at_work = None
        if loop.hold:
            of_state = {(name, name): outputs[name] for name in OF_STATE if name in outputs}
            held, numbers = _columns({("tau", "tau"): tau, **of_state, **_signals(outputs)}, first)
            law = self._trace([numbers], of_law, first, 0)
            of_law = []
            tau = self._held(held[0])
            at_work = loop.sensing.at_work(tau, self.area) if loop.driven else None
            z_rate = None if z_rate is None else self._held(held[1])
        n_held = first + sum(c.size for c in held)
        with requirements() as of_plant:
            rates = self._rates(tau if at_work is None else at_work, z_rate)
            self._divide()
        field_ = self._trace([rates], [*of_law, *of_plant], n_held, 0)
        with requirements() as of_sample:
            signals = {name: x for (_, name), x in _signals(outputs).items()}
            signals |= {c.name: self._held(c) for c in held if c.kind == "signal"}
            values, watched, desired, applied = self._looked_at(tau, at_work, signals)
            self._divide()
        self._compare_with_worst(values, of_sample)
        found: dict[tuple[str, str], Any] = {}
        if not loop.hold:
            found |= {("tau", "tau"): tau, **_signals(outputs)}
        if loop.plant.actuators:
            found["applied", "applied"] = applied
        found |= {("desired", name): x for name, x in zip("qva", desired or ())}
        found |= {("monitor", m.name): x for m, x in zip(self.watchers, values)}
        found |= {("watched", name): x for name, x in watched.items()}
        columns, numbers = _columns(found, dim)
        memory = [x for x, _ in self.renewed]
        sample = self._trace([rates, numbers, memory], [*of_law, *of_plant, *of_sample], n_held, self.size)
        remembered = dim + len(numbers)
        tableau = loop.tableau
        pair = None
        if loop.adaptive:
            weights = tableau.b_hat - np.append(tableau.b, 0.0)
            pair = Pair(weights.tolist(), tableau.order, MOST_STEPS)
        renewed = next(((c.first, loop.parts[2].start, c.size) for c in held if c.kind == "z_next"), None)
        equations = Equations(
            [Stage(float(c), base, rows.tolist(), classical.tolist()) for c, (base, rows), classical in zip(
                [*tableau.c, 1.0], tableau.stages, [*tableau.A_classical, tableau.b_classical])],
            field_, sample, law, *self._group(), tableau.family == "MK", ny, dim, n_held, self.size,
            [(remembered + j, place) for j, (_, place) in enumerate(self.renewed)], pair, renewed, sampled,
            len(sampled) - (len(loop.sensing.links) if loop.driven else 0),
        )  # fmt: skip
        return TracedLoop(equations, columns, [*held, *seen], self.memory, self.worst, self.twins)

    def _sampled(self) -> tuple[list[Sampled], list[Column], dict[str, Any]]:
        """What sensors and actuators do at their samples; where what sensors tell lies; that itself."""
        loop, sensing = self.loop, self.loop.sensing
        if sensing is None:
            return [], [], {}
        n = loop.inputs
        self.area = area = symbol_array([self.graph.load(HELD, k) for k in range(sensing.size)], (sensing.size,))
        command = symbol_array([self.graph.load(HELD, sensing.size + k) for k in range(n)], (n,))  # comes first
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
            after = named(sensor, lambda: place.renewed(sensor, truth, part, draws))
            self._divide()
        trace = self._trace([as_symbols(after).ravel().tolist()], required, self.loop.sensing.size + n, 0)
        return Sampled(trace, place.first, place.size)

    def _divide(self) -> None:
        """By a time that is zero: t is Python's own float, which raises then, but for kernels, which look before."""
        nodes, known = self.graph.nodes, self.of_time
        for at in range(len(known), len(nodes)):
            node = nodes[at]
            ends = operands(node)
            state = node[0] == "load" and node[1] not in (NUMBERS, TIME)
            time = node[:2] == ("load", TIME)
            kinds = [known[x] for x in ends]
            known.append(None if state or None in kinds else time or any(kinds))
            if node[0] == "div" and known[ends[1]] and not any(at in made for made in self.graph.of_terms):
                require(invert(compare("eq", Symbol(self.graph, ends[1]), 0.0)))

    def _held(self, column: Column) -> SymbolArray:
        return symbol_array([self.graph.load(HELD, column.first + k) for k in range(column.size)], column.shape)

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
        applied = named(self.plant, lambda: self.plant.applied(self.t, q, v, tau if at_work is None else at_work, x))
        sample = Sample(
            cast(Any, self.t), q, v, z, tau, self.y[-1], self.plant, False, loop.group, self.y,
            self.reference, signals, x, applied, self.measured,
        )  # fmt: skip
        values, watched = [], {}
        for k, (m, before) in enumerate(self.watching):
            if isinstance(m, Monitor):
                values.append(one_number(named(m, lambda m=m: m.measure(sample))))
            else:
                named(m, lambda m=m: m.add(sample))
            self._renew(k, m, before, watched)
        desired = None if self.reference is None else tuple(sample.desired)  # pyright: ignore[reportArgumentType]
        return values, watched, desired, applied

    # --- monitors ----------------------------------------------------------------------------------------------------

    def _remember(self, watcher: int, name: str, x: Any) -> Any:
        """A monitor's number or array as a place in the loop's memory."""
        place = Remembered(watcher, name, self.size, None if np.ndim(x) == 0 else np.shape(x))
        symbols = [self.graph.load(MEMORY, self.size + j) for j in range(place.size)]
        self.memory.append(place)
        self.size += place.size
        return symbols[0] if place.shape is None else symbol_array(symbols, place.shape)

    def _renew(self, k: int, twin: Any, before: dict[str, tuple[Any, Any]], watched: dict[str, Any]) -> None:
        """What `measure` has changed becomes the memory's new content."""
        places = {place.name: place for place in self.memory if place.watcher == k}
        for name, now in vars(twin).items():
            was, entries = before.get(name, (None, None))
            if name == "signals":
                for signal, x in now.items():
                    watched.setdefault(signal, one_number(x))
            elif now is was and _same(_entries(now), entries):
                continue
            elif name not in places:
                raise UntraceableError(f"{twin.name!r} changes {name}, which is neither number nor array")
            else:
                place = places[name]
                numbers = [one_number(now)] if place.shape is None else list(np.asarray(now, object).ravel())
                if len(numbers) != place.size:
                    raise UntraceableError(f"{twin.name!r} changes the shape of {name}")
                self.renewed += zip(numbers, range(place.first, place.first + place.size))

    def _compare_with_worst(self, values: list[Any], required: list) -> None:
        """The worst values so far and when, as `Record.add` keeps them; strict: a sample that it accuses has none."""
        self.worst, n = self.size, len(values)
        self.size += 2 * n
        for j, (value, (monitor, _)) in enumerate(zip(values, self.watching)):
            worst, since = (self.graph.load(MEMORY, self.worst + k) for k in (j, n + j))
            x = value if is_symbol(value) else _as_symbol(self.graph, value)
            worse = both(invert(compare("le", x, worst)), compare("eq", worst, worst))  # nan exceeds all and stays
            self.renewed += [
                (where(worse, x, worst), self.worst + j),
                (where(worse, self.t, since), self.worst + n + j),
            ]
            if self.strict:
                again = both(compare("lt", monitor.limit, worst), compare("le", x, 2.0 * worst))
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
        move = _trace(graph, (ny, dim), [list(moved)], required)
        with requirements() as required:
            u, k = fresh(1, dim), fresh(2, dim)
            pulled = loop.group.dexp_inv_mul(-u, k)
            required.append(compare("lt", one_number(rotation(loop.group, u)), LARGEST_ANGLE))
        pull = _trace(graph, (dim, dim), [list(pulled)], required)
        if not loop.adaptive:
            return move, pull, None
        with requirements() as required:
            size = loop.group.log(fresh(1, ny))
        return move, pull, _trace(graph, (ny,), [list(size)], required)

    def _trace(self, outputs: list[list[Any]], required: list, held: int, memory: int) -> Trace:
        return _trace(self.graph, (1, len(self.loop.y), held, memory), outputs, required)


def _trace(graph: Graph, inputs: tuple[int, ...], outputs: list[list[Any]], required: list) -> Trace:
    good: Any = True
    for condition in required:
        good = both(good, condition)
    if good is False:
        raise UntraceableError("a term of a robot has no result")
    flag = graph.operand(good) if isinstance(good, Condition) else None
    ends = tuple(graph.operand(one_number(x)) for y in outputs for x in y)
    return Trace(graph, inputs, ends, tuple(map(len, outputs)), flag)


def plant_rate(loop: Any, plant: Any, t: Any, y: SymbolArray, tau: Any) -> list[Any]:
    """(v, vdot, x', power) of a plant, a twin, where the loop's state is y."""
    (q, v, _), x = loop.split(y), loop.plant_state(y)
    size = len(loop.plant_rates) if x is not None else 2 * loop.plant.robot.nv + 1
    out = symbol_array([0.0] * size, (size,))
    state = () if x is None else (x,)
    named(plant, lambda: plant.rate(t, q, v, as_symbols(tau), out, *state))
    return out.tolist()


def _signals(outputs: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {("signal", name): x for name, x in outputs.items() if name not in ("tau", *OF_STATE)}


def _columns(found: dict[tuple[str, str], Any], first: int) -> tuple[list[Column], list[Any]]:
    """Columns one after the other, and their numbers."""
    columns, numbers = [], []
    for (kind, name), x in found.items():
        columns.append(Column(kind, name, first + len(numbers), np.shape(x)))
        numbers += as_symbols(x).ravel().tolist()
    return columns, numbers


def _entries(x: Any) -> list | None:
    """What an array holds now: it may be written on."""
    return x.ravel().tolist() if isinstance(x, np.ndarray) else None


def _same(a: list | None, b: list | None) -> bool:
    return a is b or (a is not None and b is not None and all(x is y for x, y in zip(a, b, strict=True)))


def as_symbols(x: Any) -> Any:
    return x if isinstance(x, SymbolArray) else np.array(x, object).view(SymbolArray)


def one_number(x: Any) -> Any:
    """A number or symbol, also where it comes as an array of one; a condition as 1 or 0."""
    x = x.item() if isinstance(x, np.ndarray) else x
    if isinstance(x, Condition):
        return where(x, 1.0, 0.0)
    return x if is_symbol(x) else float(x)


def _as_symbol(graph: Graph, x: float) -> Symbol:
    return Symbol(graph, graph.constant(x))
