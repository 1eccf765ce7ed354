"""Comparison of a compiled closed loop with the same loop in Python, before and after every run.

Before a run both compute a sample at the initial state and at 8 other states, at times spread over the run; after the
run they compute 32 of its stored samples. Monitors and measures, which take longer than a law, are compared at 3 and 4
of these samples. Of parallel runs with a common trace, the first is compared in this way and the others at fewer
states (see `Extent`). If compiled code has no result for a sample, Python computes it; a different result is an error.
Python calls copies of the user's objects.

Two numbers agree if they differ by less than `Rounding.agreement` times the largest entry of their array. If they
differ by more, Python repeats the sample at states displaced by `Rounding.perturbation`, relative to their size. A
difference of at most `MAX_AMPLIFICATION` times the resulting change is rounding that the law amplifies (a nearly
singular matrix, or a switch within rounding of the state).
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from geomctrl.control.contracts import desired_at
from geomctrl.control.monitors import Monitor
from geomctrl.control.sample import Sample, State
from geomctrl.control.samples import ROUNDING, ComparisonResult, Rounding
from geomctrl.control.sensors.sensor import Truth
from geomctrl.lie.groups import Rn
from geomctrl.tracing.untraceable import UntraceableError, reraise_untraceable
from geomctrl.tracing.untraceable_attribute import at_work

from .law_memory import restore, value_at
from .law_trace import OF_STATE
from .loop_parts import LoopParts, law_of
from .machine import Machine
from .sample_row import Place, SampleRow
from .traced_loop import TracedLoop


class Extent(NamedTuple):
    """Extent of a comparison: states besides the initial one before the run, stored samples after it."""

    states: int
    stored: int


CPU = "cpu", "double"
WHOLE, SIDE_BY_SIDE = Extent(8, 32), Extent(1, 4)  # for single runs, and for parallel runs with a common trace
INTERVAL_BEFORE, INTERVAL_AFTER = 3, 8  # one in so many of these samples is also compared for monitors and measures
MIN_SCALE = 1e-3  # [SI] arrays with smaller entries are compared as if the largest were this
MAX_AMPLIFICATION, REPEATS = 10.0, 24
RATES, TAU, DESIRED = ("rates", ""), ("tau", "tau"), [("desired", name) for name in "qva"]  # keys of a sample
NO_NUMBERS = np.zeros(0)
COMMANDED = ("tau", *OF_STATE)  # reported first, because other quantities follow from them


class NoResultError(UntraceableError):
    """The CPU's compiled code has no result where it is compared."""


class ComparedSample(NamedTuple):
    """A sample in Python and in compiled code, as views of `Comparison.numbers`, and what it was computed from."""

    expected: np.ndarray
    compiled: np.ndarray
    t: float
    y: np.ndarray
    area: np.ndarray | None
    remembered: np.ndarray
    watching: bool


class Comparison:
    """Comparison of a loop in a lane of a machine with copies of its objects in Python.

    loop: before its first step. parts: copies of its objects. where: device and precision of the stored
    samples, if not the machine's. `before` and `after` raise UntraceableError if Python has another result.
    """

    def __init__(self, loop: Any, machine: Machine, lane: int, parts: LoopParts, extent: Extent = WHOLE, where=CPU):
        self.extent, (self.device, self.precision) = extent, where
        self.loop, self.machine, self.lane = loop, machine, lane
        self.python, self.watchers = _copied(loop, parts), parts.watchers
        self.traced = machine.traced
        if self.traced.observed is None:
            self.traced.observed = SampleRow(self.traced, loop, len(self.watchers))
        self.layout: SampleRow = self.traced.observed
        self.numbers = np.zeros((2, 0))  # in Python and in compiled code, of all samples one after another
        self.used = 0
        self.memory = np.full(len(machine.remembered), np.inf)  # so that strict monitors accept every value
        self.memory[: self.traced.worst] = self.traced.memory_of(self.watchers)
        for watcher, memory in zip(self.watchers, self.layout.changing):
            for x in (vars(watcher)[name] for name, _, is_written in memory if not is_written):
                if type(x) is np.ndarray:  # compiled code does not write it: Python must not either
                    x.setflags(write=False)
        self.law = self.traced.law_memory
        self.remembered = self._remembered_by(law_of(loop))
        self.area = None if loop.sensing is None else loop.sensing.area
        self.command, self.initial = loop.command, loop.y.copy()
        self.samples, self.difference, self.watching = 0, 0.0, True

    @property
    def compared(self) -> ComparisonResult:
        return ComparisonResult(self.samples, self.difference, self.device, self.precision)

    def before(self, t: float, t_end: float, period: float) -> None:
        """Compare at time t in the initial state, and in others until t_end, half at multiples of the period."""
        count, samples = self.extent.states, []
        self._begin(count + 1, INTERVAL_BEFORE)
        with np.errstate(all="ignore"), at_work(), reraise_untraceable():
            for k in range(count + 1):
                time = t + (t_end - t) * k / count
                if k % 2:
                    time = max(round(time / period), 1) * period
                self.watching = k % INTERVAL_BEFORE == 0
                samples.append(self._at(min(time, t_end), self._state(k - 1) if k else self.initial, self.area))
            compared = [x for x in samples if x is not None]
            self._require_agreement(compared)
        if not compared:
            raise NoResultError(
                f"{self._where()}: compiled, the loop returns no result at any of {count + 1} states: its code"
                " raises or prints there, a `while` takes too many iterations, or an integer is beyond 2^53"
            )

    def after(self, rows: Sequence[np.ndarray], period: int, dt: float) -> None:
        """Compare stored samples as written by the machine. period: steps between calls of the law."""
        e, law, samples, compared = self.traced.equations, self.law, [], []
        self._begin(len(rows), INTERVAL_AFTER)
        with np.errstate(all="ignore"), at_work(), reraise_untraceable():
            for k, row in enumerate(rows):
                t, y, held = float(row[0]), row[1 : 1 + e.y].copy(), row[1 + e.y : 1 + e.y + e.held]
                if law.size:
                    self.remembered = held[law.first : law.first + law.size].copy()
                self.watching = k % INTERVAL_AFTER == 0
                sample = self._at(t, y, None if self.area is None else held[: e.commanded].copy())
                if sample is not None:
                    samples.append(sample)
                    compared.append(row)
                elif self.device != CPU[0]:
                    raise NoResultError(
                        f"{self._where()}: {self.device} has a sample at t = {t:g}, where the CPU's code has none"
                    )
            if not samples or self.area is not None or law.size:
                self._require_agreement(samples)
                return
            if self.precision != "double":
                self._require_agreement(samples)
                self.numbers[1, : self.used] = self.numbers[0, : self.used]
            stored = np.array(compared)
            steps = np.round(stored[:, 0] / dt)  # the last step may be shorter
            asked = (steps % period == 0) & (np.abs(stored[:, 0] - steps * dt) < 1e-6 * dt) if period else True
            watching = tuple([x.watching for x in samples])
            of_python, of_machine = self.numbers[:, : self.used]
            self.layout.insert_stored(of_python, of_machine, watching, stored[:, 1 + e.y :], asked)
            self._require_agreement(samples, ROUNDING[self.precision])

    def _begin(self, samples: int, interval: int) -> None:
        """Prepare the comparison of so many samples, of which one in `interval` is compared for monitors too."""
        self.machine.remembered[:, self.lane] = self.memory
        watching = -(-samples // interval)
        size = watching * self.layout.total + (samples - watching) * self.layout.own
        self.numbers, self.used = np.empty((2, size)), 0

    # --- one sample --------------------------------------------------------------------------------------------------

    def _at(self, t: float, y: np.ndarray, area: np.ndarray | None) -> ComparedSample | None:
        """A sample in Python and in compiled code; None if either has no result."""
        machine, lane = self.machine, self.lane
        machine.time[lane], machine.y[:, lane] = t, y
        if area is not None:
            machine.area[:, lane] = area
            torques = self.traced.commanded[0].first  # index of the torques
            machine.held[torques : torques + self.loop.inputs, lane] = self.command.tau
        if self.law.size:
            machine.held[self.law.first : self.law.first + self.law.size, lane] = self.remembered
        compiled = machine.look(lane, None if self.watching else self.layout.own)
        if compiled is None:  # a call in Python might change what the trace does not contain
            return None
        first, end = self.used, self.used + len(compiled)
        numbers = self.numbers[:, first:end]
        try:
            expected = self._in_python(t, y, area, numbers[0])
        except UntraceableError:
            raise
        except Exception as error:
            raise UntraceableError(
                f"{self._where()}: compiled, the loop returns a result at t = {t:g}, where Python raises"
                f" {type(error).__name__}: {error!s:.200}"
            ) from None
        self.samples, self.used = self.samples + 1, end
        numbers[1] = compiled
        return ComparedSample(expected, numbers[1], t, y, area, self.remembered, self.watching)

    def _in_python(self, t: float, y: np.ndarray, area: np.ndarray | None, out: np.ndarray | None = None) -> np.ndarray:
        """The numbers of a sample in Python, in `out` if there is one."""
        if area is not None:
            self.python.sensing.hold(area)
        law, controller = self.law, self.python.controller
        if law.cells:
            restore(controller, law.cells, law.values(self.remembered))
        watchers = zip(self.watchers if self.watching else (), self.layout.changing)
        sample, signals, remembered = _sample(self.python, watchers, t, y)
        if signals != self.layout.signals:
            raise UntraceableError(f"{self._where()}: compiled, its signals differ from those in Python at t = {t:g}")
        if law.cells:
            after = law.split(self._remembered_by(controller))
            sample |= {("memory", path): x for path, x in after.items()}
        memory = self.memory if self.watching else None
        numbers = np.empty(self.layout.total if self.watching else self.layout.own) if out is None else out
        return self.layout.flat(sample, remembered, self._where, memory, numbers)

    def _remembered_by(self, controller: Any) -> np.ndarray:
        """The memory of the law as numbers; nan for values that the trace does not know."""
        parts = [NO_NUMBERS]
        for path, cell in self.law.cells.items():
            numbers = cell.encoded(value_at(controller, path)) if cell.size else NO_NUMBERS
            parts.append(np.full(cell.size, np.nan) if numbers is None else numbers)
        return np.concatenate(parts) if len(parts) > 1 else NO_NUMBERS

    def _require_agreement(self, samples: list[ComparedSample], rounding: Rounding = ROUNDING["double"]) -> None:
        """Raise UntraceableError if Python differs by more than rounding from compiled code."""
        if not samples:
            return
        expected, compiled = self.numbers[:, : self.used] if len(samples) > 1 else samples[0][:2]
        starts, _ = self.layout.positions_of(tuple([x.watching for x in samples]))
        apart, size = self.layout.differences(expected, compiled)
        largest, size = np.maximum.reduceat(apart, starts), np.maximum.reduceat(size, starts)
        if (largest <= rounding.agreement * np.maximum(size, MIN_SCALE)).all():
            self.difference = max(self.difference, float((largest / np.maximum(size, 1.0)).max()))
        elif len(samples) > 1:
            for sample in samples:
                self._require_agreement([sample], rounding)
        else:
            allowed = np.maximum(size, MIN_SCALE).repeat(np.diff([*starts, len(apart)]))
            self._require_rounding(samples[0], apart / allowed, allowed, rounding)

    def _require_rounding(
        self, sample: ComparedSample, apart: np.ndarray, size: np.ndarray, rounding: Rounding
    ) -> None:
        """Raise UntraceableError unless the law amplifies rounding to the differences `apart`, relative to `size`."""
        expected, compiled, t, y, area, self.remembered, self.watching = sample
        rng, spread = np.random.default_rng(0), np.zeros(len(apart))
        repeated = np.array_equal(self._in_python(t, y, area), expected, equal_nan=True)
        beyond = np.flatnonzero(apart > rounding.agreement)
        for _ in range(REPEATS if repeated else 0):  # differences between calls are not rounding
            try:
                displaced = self._moved(y, rounding.perturbation * rng.normal(size=self.loop.group.dim))
                moved = self._in_python(t, displaced, area)
            except UntraceableError:
                raise
            except Exception:  # the displaced state may be outside the law's domain
                return
            spread = np.maximum(spread, self.layout.differences(expected, moved)[0] / size)
            beyond = beyond[~(apart[beyond] <= MAX_AMPLIFICATION * spread[beyond])]
            if not len(beyond):
                return
        k = min(map(int, beyond), key=lambda k: (self.layout.key(k)[0] not in COMMANDED, -apart[k]))
        name = " ".join(dict.fromkeys(self.layout.key(k))).strip()
        raise UntraceableError(
            f"{self._where()}: compiled, {name} differs from its value in Python at t = {t:g}:"
            f" {float(compiled[k])!r} instead of {float(expected[k])!r}; perhaps the code draws random numbers,"
            " depends on more than t, q, v and z, or later overwrites an array that it returned"
        )

    # --- states ------------------------------------------------------------------------------------------------------

    def _state(self, number: int) -> np.ndarray:
        """Random state `number`: with an arbitrary configuration if it is even, else near the initial one."""
        loop, y = self.loop, self.initial.copy()
        q, v, z = loop.parts
        configuration, normal = self.layout.drawn(number, loop)
        if number % 2 == 0:
            y[q], y[v] = configuration, normal[v]
            for part in (z if isinstance(loop.z_group, Rn) else None, loop.plants):
                if part is not None:
                    y[part] += 0.1 * (1.0 + np.abs(y[part])) * normal[part]
            return y
        return self._moved(y, 0.3 * normal[: loop.group.dim])

    def _moved(self, y: np.ndarray, u: np.ndarray) -> np.ndarray:
        """y displaced by u, relative to the size of the coordinates that form a vector space."""
        loop, u = self.loop, u.copy()
        nv = loop.plant.robot.nv
        u[nv : 2 * nv] *= 1.0 + np.abs(y[loop.parts[1]])
        if isinstance(loop.z_group, Rn):
            u[2 * nv : 2 * nv + loop.z_group.dim] *= 1.0 + np.abs(y[loop.parts[2]])
        return np.array(loop.group.advance(y, u), float)

    def _where(self) -> str:
        """The controller's class with file and line of its law."""
        return where_is(self.loop.controller)


@functools.lru_cache(maxsize=16)
def spread_rows(count: int, chosen: int) -> tuple[int, ...]:
    """Choose `chosen` of `count` rows (or all), one from each of equal parts of the run, by a hash."""
    if count <= chosen:
        return (*range(count),)
    edges = [k * count // chosen for k in range(chosen + 1)]
    return tuple(a + (k + 1) * 2654435761 % 2**32 % (b - a) for k, (a, b) in enumerate(pairwise(edges)))


def where_is(controller: Any) -> str:
    """A controller's class with the file and line of its law."""
    code = getattr(inspect.unwrap(type(controller).__call__), "__code__", None)
    name = type(controller).__name__
    return name if code is None else f"{name} ({code.co_filename}, line {code.co_firstlineno})"


def _copied(loop: Any, parts: LoopParts) -> Any:
    """The loop with copies of its objects, which have their own memory."""
    own = loop.copied()
    own.now, own.controller = parts.plant, parts.controller
    own.reference = getattr(parts.controller, "reference", None)
    own.sensing = None if loop.sensing is None else copy.copy(loop.sensing)
    return own


def fill_work_buffers(loop: Any, watchers: Sequence[Any], traced: TracedLoop, t: float) -> None:
    """Repeat a compiled loop's last sample in Python, which overwrites the work buffers of the user's objects."""
    if traced.buffers:
        own = _copied(loop, LoopParts(loop.now, loop.controller, []))
        if loop.hold:  # its law has no buffers but memory, which a call would change
            own.controller = lambda *_: loop.command
        if own.sensing is not None:  # has measured already
            own.sensing.measure = own.sensing.drive = lambda *_: None
        row = traced.observed or SampleRow(traced, loop, len(watchers))
        _sample(own, zip(watchers, row.changing), t, loop.y)


def _sample(
    own: Any, watchers: Iterable[tuple[Any, list[tuple[str, Place, bool]]]], t: float, y: np.ndarray
) -> tuple[dict[tuple[str, str], Any], set[str], list[tuple[Place, Any]]]:
    """The contents of a sample in Python, by the names of the compiled one, the names of its signals, and new memory.

    watchers: with their attributes `SampleRow.changing`; those that remain are not in the result.
    """
    y.setflags(write=False)
    q, v, z = own.split(y)
    if own.sensing is not None:
        at_work = own.sensing.at_work(own.command.tau)  # before this sample
        own.sensing.measure(Truth(t, q, v, at_work, own.plant_state(y), own.now), own.sensing.places)
    command = own.call_law(own.controller, t, q, v, z)
    tau, x = command.tau, own.plant_state(y)
    applied = own.now._applied(t, q, v, own.drive(t, q, v, tau, x), x)
    values: dict[tuple[str, str], Any] = {RATES: own.field(t, y, command), TAU: np.asarray(tau, float)}
    if own.hold:
        of_state = {(name, name): getattr(command, name) for name in OF_STATE}
        values |= {key: np.asarray(z_made, float) for key, z_made in of_state.items() if z_made is not None}
    for name, signal in command.signals.items():
        values["signal", name] = np.asarray(signal, float)
    if own.plant.actuators:
        values["applied", "applied"] = np.asarray(applied, float)
    measured = {} if own.sensing is None else own.sensing.measured
    sample: Any = None
    remembered: list[tuple[Place, Any]] = []
    for watcher, memory in watchers:
        if sample is None:
            state = State(q, v, z, x, float(y[-1]), y)
            sample = Sample(t, state, command, own.now, applied, reference=own.reference, measured=measured)
        attributes = vars(watcher)
        before = attributes.copy()
        arrays = {name: x.copy() for name, _, written in memory if written and type(x := before[name]) is np.ndarray}
        if isinstance(watcher, Monitor):
            values["monitor", watcher.name] = float(watcher.measure(sample))
            for name, x in watcher.signals.items():
                values["watched", name] = float(x)
        else:
            watcher.add(sample)
        for name, place, _ in memory:
            if (x := attributes[name]) is not before[name] or name in arrays:
                remembered.append((place, x))
        attributes.clear()
        attributes.update(before)
        attributes.update(arrays)
    if own.sensing is not None:
        values |= {("measured", name): x for name, x in own.sensing.measured.items()}
    if own.reference is not None:
        values |= zip(DESIRED, desired_at(own.reference, t) or ())
    return values, set(command.signals), remembered
