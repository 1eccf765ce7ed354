"""Many closed loops: side by side in the processor's lanes, and in several threads.

Loops whose objects differ in numbers only share one compiled function; the others run one by one. A lane that has no
result leaves the others and ends, or goes on, alone.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count, instance
from geomctrl.errors import ArgumentError
from geomctrl.motion.trajectory import step_count
from geomctrl.robot import Robot
from geomctrl.tracing.untraceable import UntraceableError

from .compiled.contents import kept
from .compiled.law import copy_of
from .contracts import Controller
from .loop_runner import Case, LoopRunner
from .measures import Measure, Verdict, accumulates
from .monitors import Monitor
from .monitors.chosen import monitor_list
from .options import SimulationOptions
from .plant import Plant, plant_of
from .run import Run
from .side_by_side import to_end


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
    control_dt: float | None = None,
    monitors: str | Iterable[Monitor] | None = "default",
    options: SimulationOptions = SimulationOptions(),
    threads: int = 1,
) -> list[Run]:
    """Run many closed loops as `simulate` runs one.

    Loop k has plants[k] and controllers[k] and begins at (q0[k], v0[k]). What is given once is the same for all. Loops
    that differ in numbers only (payloads, gains, amplitudes) share compiled code and run side by side.

    Parameters
    ----------
    plants : Plant, Robot or sequence of them
        The true robots.
    controllers : Controller or sequence of Controller
        The laws. One of yours that is given once is copied for each loop, as it may remember something.
    q0, v0 : array (nq,), (nv,) or (n, nq), (n, nv)
        The states at the start.
    t_end, dt, control_dt, monitors, options
        As for `simulate`, the same for all loops.
    threads : int
        How many threads share the loops. Results do not depend on it.

    Returns
    -------
    list of Run
        One a loop. A loop that fails ends alone: its Run has `success` False and the reason.

    Raises
    ------
    ArgumentError
        For bad arguments, of the first loop that has some.
    UntraceableError
        With `compiled=True`, if a loop does not trace.

    Notes
    -----
    KeyboardInterrupt (Ctrl-C), SystemExit and the like pass as they are, with an attribute `runs`: a Run each, up to
    then.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> laws = [gc.controllers.PDGravity(robot, [0.5, 0.2], kp=kp) for kp in (50.0, 100.0)]
    >>> runs = gc.simulate_many(robot, laws, np.zeros(2), np.zeros(2), t_end=0.5, dt=1e-3)
    >>> [run.ok for run in runs]
    [True, True]
    """
    cases, threads = with_own_laws(_cases(plants, controllers, q0, v0)), count("threads", threads, 1)
    instance("options", options, SimulationOptions, "gc.SimulationOptions")
    runners = [_runner(case, t_end, dt, control_dt, monitors, options) for case in cases]
    return to_end(runners, options.compiled, threads, compared_each=True)


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


def with_own_laws(cases: Sequence[Case], always: bool = False) -> list[Case]:
    """The cases, each with its own copy of a law that may remember and that other cases have too.

    A law of geomctrl keeps what it remembers in its state z. always: copy what can be copied of the others as well.
    Raises ArgumentError for a law of several cases that can not be copied.
    """
    times = Counter(id(case.controller) for case in cases)
    out = []
    for case in cases:
        law = case.controller
        if (always or times[id(law)] > 1) and not type(law).__module__.startswith("geomctrl."):
            try:
                case = replace(case, controller=copy_of(law, plant_of("plants", case.plant).robot))
            except UntraceableError as error:
                if times[id(law)] > 1:
                    raise ArgumentError(f"controllers: expected one for each loop: {error}") from error
        out.append(case)
    return out


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


def run_of(case: Case, t_end: float, dt: float, control_dt: Any, monitors: Any, options: SimulationOptions) -> Run:
    """The whole run that `outcomes` measures, equal to the bit; up to where it failed if it does."""
    return to_end([_runner(case, t_end, dt, control_dt, monitors, options)], options.compiled, 1)[0]


def outcomes(
    cases: Sequence[Case],
    measures: Mapping[str, Callable[[Run], Any]],
    t_end: float,
    dt: float,
    control_dt: float | None = None,
    monitors: Any = "default",
    options: SimulationOptions = SimulationOptions(),
) -> list[Outcome]:
    """An Outcome a case, in their order; arguments as for `simulate`. What fails in one case leaves the others alone.

    Where all measures accumulate while the loop runs, no samples are stored. Verdicts are confirmed where a measure
    asks for one, or is a function of the Run.
    """
    taken = [m for m in measures.values() if isinstance(m, Measure) and accumulates(m)]
    if all(isinstance(m, Measure) for m in measures.values()):
        options = replace(options, every=step_count(t_end, dt))
    confirming = options.strict or any(isinstance(m, Verdict) or not isinstance(m, Measure) for m in measures.values())
    monitors = monitor_list(monitors)
    runners: list[LoopRunner] = []
    refused: dict[int, Outcome] = {}
    for k, case in enumerate(with_own_laws(cases, always=control_dt is not None)):
        try:
            runners.append(_runner(case, t_end, dt, control_dt, monitors, options, taken, confirming))
        except MemoryError:
            raise
        except Exception as error:  # of a case that `simulate` refuses
            refused[k] = Outcome({}, said(error), False, np.nan, 0)
    runs = iter(zip(runners, to_end(runners, options.compiled, 1)))
    return [refused[k] if k in refused else _outcome(*next(runs), measures) for k in range(len(cases))]


def _outcome(runner: LoopRunner, run: Run, measures: Mapping[str, Callable[[Run], Any]]) -> Outcome:
    values, reason, success = {}, run.reason, run.success
    if any(isinstance(m, Verdict) for m in measures.values()):
        reason = "; ".join([reason, *(f"{m.name} {m.verdict}: {m.explanation}" for m in _doubtful(run))])
    accumulated = iter(runner.record.watchers[len(runner.record.monitors) :])
    for name, measure in measures.items():
        try:
            values[name] = next(accumulated).value() if accumulates(measure) else measure(run)
        except MemoryError:
            raise
        except Exception as error:  # of a caller's measure
            reason, success = f"{reason}; measure {name!r}: {said(error)}", False
    return Outcome(
        values, reason, success, runner.time(runner.record.steps) if runner.record.rows else np.nan, run.steps
    )


def _doubtful(run: Run) -> Iterator[Any]:
    """Results of monitors that accuse."""
    return (m for m in run.monitors.values() if m.explanation)


def said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


# --- lanes -------------------------------------------------------------------------------------------------------


def _runner(
    case: Case,
    t_end: float,
    dt: float,
    control_dt: float | None,
    monitors: Any,
    options: SimulationOptions,
    measures: Sequence[Measure] = (),
    confirming: bool = True,
) -> LoopRunner:
    """The runner of a case, with its own monitors and measures. Raises ArgumentError."""
    plant = plant_of("plant", case.plant)
    own = [copy.copy(measure) for measure in measures]
    for measure in own:
        measure.start(plant.at(0.0), case.controller)
    watching = [copy.copy(m) for m in monitor_list(monitors)]
    runner = LoopRunner(case, t_end, dt, control_dt, watching, options, own, confirming)
    restore = kept(plant, case.controller) if control_dt is not None else lambda: None  # a sampled law may remember

    def begun_again() -> LoopRunner:
        restore()
        return _runner(case, t_end, dt, control_dt, monitors, options, measures, confirming)

    runner.again = begun_again
    return runner
