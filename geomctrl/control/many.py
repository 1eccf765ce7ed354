"""Many closed loops: side by side in the processor's lanes, and in several threads.

Loops whose objects differ in numbers only share one compiled function; the others run one by one. A lane that has no
result leaves the others and ends, or goes on, alone.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count, flag, instance
from geomctrl.compiler.code import enabled
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.integrators.march import check_storing
from geomctrl.integrators.tableaus import method as method_named
from geomctrl.motion.arguments import step_count
from geomctrl.robot import Robot
from geomctrl.tracing.backends import host
from geomctrl.tracing.symbols import UntraceableError

from .closed_loop import hold_count
from .compiled.choice import Known, checked_choice, known_trace, say
from .compiled.comparison import Comparison
from .compiled.machine import SAMPLE, STEP, Machine
from .compiled.traced_loop import TracedLoop
from .contracts import Controller
from .measures import Measure, Verdict, accumulates
from .monitors import monitor_list
from .plant import Plant, plant_of
from .run import Run
from .way import CHUNK, Way, in_a_loop

LONG = 32_768  # steps of eight lanes without a look around, a quarter of a second
FEW = 2  # loops that take longer side by side than one after the other
SHORT = 250  # steps that are not worth compiling for, however many loops take them


@dataclass(frozen=True, eq=False)
class Case:
    """A closed loop and where it starts: q0 (nq,), v0 (nv,)."""

    plant: Plant | Robot
    controller: Controller
    q0: ArrayLike
    v0: ArrayLike


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a case: measures by name, why it ended, whether well, the last time reached [s], steps.

    A measure that could not be taken is not in `values`; then `reason` says why, and `success` is False.
    """

    values: dict[str, Any]
    reason: str
    success: bool
    t: float
    steps: int


# --- public ------------------------------------------------------------------------------------------------------


def simulate_many(
    plants: Plant | Robot | Sequence[Plant | Robot],
    controllers: Controller | Sequence[Controller],
    q0: ArrayLike,
    v0: ArrayLike,
    t_end: float,
    dt: float,
    method: str = "MK4",
    control_dt: float | None = None,
    monitors: Any = "default",
    *,
    strict: bool = False,
    every: int = 1,
    rtol: float | None = None,
    atol: ArrayLike | None = None,
    threads: int = 1,
    compiled: bool | str = "auto",
) -> list[Run]:
    """Run many closed loops as `simulate` runs one: (plants[k], controllers[k]) from (q0[k], v0[k]), a Run each.

    What is given once is the same for all: a plant, a controller, q0 (nq,), v0 (nv,). Loops that differ in numbers only
    (payloads, gains, amplitudes) share compiled code and run side by side. A loop that fails ends alone: its Run has
    `success` False and the reason. threads: how many share the loops; results do not depend on it.

    Raises ArgumentError for bad arguments, of the first loop that has some; UntraceableError where `compiled` is True
    and a loop does not trace. KeyboardInterrupt (Ctrl-C), SystemExit and the like pass as they are, with an attribute
    `runs`: a Run each, up to then.
    """
    cases = _cases(plants, controllers, q0, v0)
    threads, strict, choice = count("threads", threads, 1), flag("strict", strict), checked_choice(compiled)
    check_storing(every, None)
    options: dict[str, Any] = {"method": method, "control_dt": control_dt, "monitors": monitors, "strict": strict}
    options |= {"every": every, "rtol": rtol, "atol": atol}
    ways = [_way(case, t_end, dt, **options) for case in cases]
    return _to_end(ways, choice, threads, compared_each=True)


def _cases(plants: Any, controllers: Any, q0: ArrayLike, v0: ArrayLike) -> list[Case]:
    many = {
        "plants": None if isinstance(plants, (Plant, Robot)) else _plants(plants),
        "controllers": list(controllers) if isinstance(controllers, Sequence) else None,
        "q0": _rows(q0),
        "v0": _rows(v0),
    }
    counts = {name: len(x) for name, x in many.items() if x is not None}
    if len(set(counts.values())) > 1:
        raise ArgumentError(
            f"{', '.join(counts)}: expected as many of each, got {', '.join(map(str, counts.values()))}"
        )
    n = next(iter(counts.values()), 1)
    for x in many["controllers"] or [controllers]:
        instance("controllers", x, Controller, "a Controller, or one a loop")
    columns = [[x] * n if many[name] is None else many[name] for name, x in zip(many, (plants, controllers, q0, v0))]
    return [Case(*row) for row in zip(*columns)]


def _plants(plants: Any) -> list[Plant]:
    if not isinstance(plants, Iterable):
        raise ArgumentError(f"plants: expected a geomctrl.Plant or a Robot, or one a loop, got {plants!r:.60}")
    return [plant_of("plants", plant) for plant in plants]


def _rows(x: Any) -> list | None:
    """The starts that x lists; None where it is one."""
    try:
        rows = list(x)
    except TypeError:
        return None
    return rows if rows and all(np.ndim(row) == 1 for row in rows) else None


# --- for sweeps --------------------------------------------------------------------------------------------------


def check_options(t_end: float, dt: float, method: str, control_dt: float | None, every: int) -> None:
    """Raise ArgumentError for options that `simulate` refuses whatever the case."""
    step_count(t_end, dt)
    method_named(method)
    hold_count(control_dt, dt)
    check_storing(every, None)


def run_of(case: Case, t_end: float, dt: float, **options: Any) -> Run:
    """The whole run that `outcomes` measures, equal to the bit; up to where it failed if it does."""
    return _to_end([_way(case, t_end, dt, **options)], "auto", 1)[0]


def outcomes(
    cases: Sequence[Case],
    measures: Mapping[str, Callable[[Run], Any]],
    t_end: float,
    dt: float,
    **options: Any,
) -> list[Outcome]:
    """An Outcome a case, in their order; options as for `simulate`. What fails in one case leaves the others alone.

    Where all measures accumulate while the loop runs, no samples are stored. Verdicts are confirmed where a measure
    asks for one, or is a function of the Run.
    """
    taken = [m for m in measures.values() if isinstance(m, Measure) and accumulates(m)]
    if all(isinstance(m, Measure) for m in measures.values()):
        options["every"] = step_count(t_end, dt)
    options["confirming"] = any(isinstance(m, Verdict) or not isinstance(m, Measure) for m in measures.values())
    options["monitors"] = [*monitor_list(options.get("monitors", "default"))]
    ways: list[Way] = []
    found: dict[int, Outcome] = {}
    for k, case in enumerate(cases):
        try:
            ways.append(_way(case, t_end, dt, **options, measures=taken))
        except MemoryError:
            raise
        except Exception as error:  # of a case that `simulate` refuses
            found[k] = Outcome({}, said(error), False, np.nan, 0)
    runs = iter(zip(ways, _to_end(ways, "auto", 1)))
    return [found[k] if k in found else _outcome(*next(runs), measures) for k in range(len(cases))]


def _outcome(way: Way, run: Run, measures: Mapping[str, Callable[[Run], Any]]) -> Outcome:
    values, reason, success = {}, run.reason, run.success
    if any(isinstance(m, Verdict) for m in measures.values()):
        reason = "; ".join([reason, *(f"{m.name} {m.verdict}: {m.explanation}" for m in _doubtful(run))])
    accumulated = iter(way.record.watchers[len(way.record.monitors) :])
    for name, measure in measures.items():
        try:
            values[name] = next(accumulated).value() if accumulates(measure) else measure(run)
        except MemoryError:
            raise
        except Exception as error:  # of a caller's measure
            reason, success = f"{reason}; measure {name!r}: {said(error)}", False
    return Outcome(values, reason, success, way.time(way.record.steps) if way.record.rows else np.nan, run.steps)


def _doubtful(run: Run) -> Iterator[Any]:
    """Results of monitors that accuse."""
    return (m for m in run.monitors.values() if m.explanation)


def said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


# --- lanes -------------------------------------------------------------------------------------------------------


def _way(
    case: Case,
    t_end: float,
    dt: float,
    *,
    method: str = "MK4",
    control_dt: float | None = None,
    monitors: Any = "default",
    measures: Sequence[Measure] = (),
    **options: Any,
) -> Way:
    """A case before its first sample, with monitors and measures of its own; options of `Way`. Raises ArgumentError."""
    plant = plant_of("plant", case.plant)
    own = [copy.copy(measure) for measure in measures]
    for measure in own:
        measure.start(plant.at(0.0), case.controller)
    watching = [copy.copy(m) for m in monitor_list(monitors)]
    way = Way(
        plant, case.controller, case.q0, case.v0, t_end, dt, method, control_dt, watching, measures=own, **options
    )
    again = {"method": method, "control_dt": control_dt, "monitors": monitors, "measures": measures, **options}
    way.again = partial(_way, case, t_end, dt, **again)
    return way


def _to_end(ways: Sequence[Way], choice: bool | str, threads: int, *, compared_each: bool = False) -> list[Run]:
    """The runs of ways that have not begun, in their order; those that fail up to there.

    compared_each: compare every compiled loop with Python, not only one for each trace.

    A thread begins as many ways as there are lanes and, where they have one trace, takes them to their end together;
    ways that find too few like them wait for others.
    """
    runs: dict[int, Run] = {}
    waiting: dict[int, list[_Begun]] = {}
    lanes, interrupted = host.lanes(), threading.Event()
    compared: set[int] = set()  # traces

    def report(fraction: float) -> None:
        if interrupted.is_set():  # in another thread than this
            raise KeyboardInterrupt

    def go_on(group: list[_Begun]) -> None:
        traced = group[0].traced
        laws = {id(ways[x.number].loop.controller) for x in group}
        shared = traced is not None and bool(traced.law_memory.cells) and len(laws) < len(group)  # one memory for all
        if traced is not None and len(group) > FEW and not shared:
            first = id(traced) not in compared
            compared.add(id(traced))
            members = [(ways[x.number], x.known) for x in group if x.known is not None]
            lanes_compared = len(group) if compared_each else int(first)
            runs.update(zip((x.number for x in group), _Lanes(members, choice, report).to_end(lanes_compared)))
        else:
            runs.update((x.number, _alone(ways[x.number], choice, report)) for x in group)

    def begin(first: int) -> None:
        groups: dict[int, list[_Begun]] = {}
        for k in range(first, min(first + lanes, len(ways))):
            with in_a_loop():
                try:
                    ways[k].begin()
                except SimulationError as error:
                    runs[k] = _run_of(error)
                    continue
                begun = _Begun(k, _traced(ways[k], choice))
            groups.setdefault(id(begun.traced), []).append(begun)
        for key, group in groups.items():
            if len(group) == lanes or group[0].traced is None:
                go_on(group)
            else:
                waiting.setdefault(key, []).extend(group)

    with _runs_kept(ways, runs), _workers(threads, interrupted) as each:
        each(begin, range(0, len(ways), lanes))
        rest = [group[k : k + lanes] for group in waiting.values() for k in range(0, len(group), lanes)]
        each(go_on, rest)
    return [runs[k] for k in range(len(ways))]


@contextmanager
def _runs_kept(ways: Sequence[Way], runs: Mapping[int, Run]) -> Iterator[None]:
    """Ctrl-C, SystemExit and the like pass, with an attribute `runs`: of each way everything up to then."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        kept = [runs[k] if k in runs else way.interrupted(error) for k, way in enumerate(ways)]
        error.runs = kept  # pyright: ignore[reportAttributeAccessIssue]
        error.add_note(f"geomctrl: the {len(kept)} runs so far are this exception's attribute `runs`")
        raise


class _Begun(NamedTuple):
    """A way whose first sample has been taken: its number, the trace that fits it."""

    number: int
    known: Known | None

    @property
    def traced(self) -> TracedLoop | None:
        return None if self.known is None else self.known.traced


@contextmanager
def _workers(
    threads: int, interrupted: threading.Event
) -> Iterator[Callable[[Callable[[Any], None], Iterable[Any]], Any]]:
    """each(function, arguments): in this thread, or shared among several; returns when all is done.

    Once this thread is interrupted, or something is raised in one of the others, `interrupted` is set.
    """
    if threads == 1:
        yield lambda function, arguments: deque(map(function, arguments), maxlen=0)
        return
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield lambda function, arguments: deque(pool.map(function, arguments), maxlen=0)
        except BaseException:
            interrupted.set()
            raise


def _traced(way: Way, choice: bool | str) -> Known | None:
    """The trace that a way shares with others like it; None where it goes on by itself."""
    if choice is False or not enabled() or way.n_steps * way.pieces < SHORT or way.loop.plant.switches:
        return None
    try:
        return known_trace(way.loop, way.record.watchers, way.strict)
    except UntraceableError as error:
        if choice is True:
            raise
        say(f"these loops run in Python: {error}")
        return None


def _alone(way: Way, choice: bool | str, report: Callable[[float], None], *, stopped: bool = False) -> Run:
    with in_a_loop():
        try:
            way.compare()  # of a lane that it has left
            here = True if choice == "auto" and _traced(way, choice) else choice
            return way.to_end(here, report, stopped=stopped)
        except SimulationError as error:
            return _run_of(error)
        except UntraceableError as error:
            return _in_python(way, choice, report, error)


def _in_python(way: Way, choice: bool | str, report: Callable[[float], None], error: UntraceableError) -> Run:
    """The whole run in Python, as compiled code has another result; raises the error where `choice` is True."""
    if choice is True:
        raise error
    say(f"these loops run in Python: {error}")
    remembers = way.comparison is not None and way.comparison.law.size  # then the first sample is not taken again
    fresh = way if remembers else way.again()
    way.comparison = None
    with in_a_loop():
        try:
            if not remembers:
                fresh.begin()
            run = fresh.to_end(False, report)
        except SimulationError as failed:
            run = _run_of(failed)
    way.record = fresh.record  # with what its measures have accumulated
    return run


def _run_of(error: SimulationError) -> Run:
    if error.run is None:
        raise error
    return error.run


class _Lanes:
    """Ways with one trace, side by side in a machine."""

    def __init__(self, members: list[tuple[Way, Known]], choice: bool | str, report: Callable[[float], None]):
        self.ways, self.known = [way for way, _ in members], [known for _, known in members]
        self.choice, self.report, width = choice, report, host.lanes()
        self.machine = Machine(self.known[0].traced, width)
        spare = width - len(members)  # lanes that nobody wants run as the first does
        values = [known.twins.values for known in self.known]
        self.machine.numbers_are([*values, *[values[0]] * spare])
        self.filled = [*self.ways, *[self.ways[0]] * spare]
        self.alive = (1 << len(members)) - 1

    def to_end(self, compared: int) -> list[Run]:
        """The runs; the first `compared` are compared with Python."""
        first, runs, phase = self.ways[0], {}, STEP
        for lane, way in enumerate(self.filled):
            way.enter(self.machine, lane)
        for lane, way in enumerate(self.ways[:compared]):
            way.comparison = Comparison(way.loop, self.machine, lane, self.known[lane].copies)
            try:
                way.comparison.before(*way.times)
            except UntraceableError as error:
                self.alive &= ~(1 << lane)
                runs[lane] = _in_python(way, self.choice, self.report, error)
        for lane, way in enumerate(self.filled if compared else ()):  # comparing has changed what all lanes hold
            way.enter(self.machine, lane)
        k, pieces = first.k, max(way.pieces for way in self.ways)
        chunk = ceil(min(LONG, CHUNK * first.every) / pieces)  # rows are taken to their records while they are near
        while (self.alive and k < first.n_steps) or (phase == SAMPLE and self.alive):
            last = min(k + chunk, first.n_steps)
            k, phase, stopped, rows = self.machine.run(
                k, last, first.every, first.n_steps, first.dt, first.t_end, self.alive, phase
            )
            for lane, way in enumerate(self.ways):
                if self.alive >> lane & 1:
                    way.stored(self.machine, lane, rows)
                if (self.alive & stopped) >> lane & 1:
                    way.leave(self.machine, lane, k, phase)
                    way.count_stop()
                    runs[lane] = _alone(way, self.choice, self.report, stopped=True)
            self.alive &= ~stopped
            self.report(k / first.n_steps)
        rest = [lane for lane in range(len(self.ways)) if lane not in runs]
        for lane in rest:
            self.ways[lane].leave(self.machine, lane, k, phase)
        runs |= {lane: self._compared(self.ways[lane]) for lane in rest}
        return [runs[lane] for lane in range(len(self.ways))]

    def _compared(self, way: Way) -> Run:
        try:
            with in_a_loop():
                way.compare()
        except UntraceableError as error:
            return _in_python(way, self.choice, self.report, error)
        except SimulationError as error:
            return _run_of(error)
        return way.run()
