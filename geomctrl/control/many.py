"""`simulate_many`: many closed loops in parallel, in SIMD lanes and in several threads.

Loops that differ only in numbers share one compiled function; others run one by one. If a loop fails, the other lanes
continue, and Python repeats or explains the failed step.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count, instance, is_a, listed
from geomctrl.errors import ArgumentError
from geomctrl.motion.trajectory import step_count
from geomctrl.other_names import OF_SIMULATE, named_arguments
from geomctrl.robot import Robot
from geomctrl.tracing.untraceable import UntraceableError

from .compiled.contents import Snapshot
from .compiled.law import copy_of
from .contracts import Controller, require_controller
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
    """The result of one case: measures by name, why and whether it ended well, the last time reached [s], steps.

    A measure that raised an exception is not in `values`; then `reason` says why, and `success` is False.
    """

    values: dict[str, Any]
    reason: str
    success: bool
    t: float
    steps: int


# --- public ------------------------------------------------------------------------------------------------------


@named_arguments(OF_SIMULATE)
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
    """Simulate many closed loops.

    Loop k has plants[k] and controllers[k] and starts at (q0[k], v0[k]). An argument given once is shared by all loops.
    Loops that differ only in numbers (payloads, gains, amplitudes) share compiled code and run side by side.

    Parameters
    ----------
    plants : Plant, Robot or sequence of them
        The true robots.
    controllers : Controller or sequence of Controller
        The feedback laws. A user-defined law given once is copied for each loop, as its attributes may be memory.
    q0 : array (nq,) or (n, nq)
        Initial configurations.
    v0 : array (nv,) or (n, nv)
        Initial velocities [rad/s or m/s].
    t_end : float
        Duration of each run [s].
    dt : float
        Time between samples [s].
    control_dt : float or None
        Period of a zero-order hold [s], a multiple of dt; None, the default, evaluates the law in continuous time.
    monitors : "default", iterable of Monitor or None
        The properties to check at every sample, as for `simulate`.
    options : SimulationOptions
        Integration method, storage of samples, compilation and device, the same for all loops.
    threads : int
        Number of threads, default 1. Results do not depend on it.

    Returns
    -------
    list of Run
        One run per loop. If a loop fails, its Run has `success` False and the reason; the others continue.

    Raises
    ------
    ArgumentError
        If an argument is invalid; the message names the first such loop.
    UntraceableError
        With `compiled=True`, if a loop can not be traced.

    Notes
    -----
    KeyboardInterrupt (Ctrl-C), SystemExit and similar exceptions propagate. Their attribute `runs` holds one Run per
    loop, up to the interruption.

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
    arguments = t_end, dt, control_dt, monitor_list(monitors), options
    owned = [x for case in cases for x in (case.plant, case.controller)]
    restore = Snapshot(owned, names=True) if options.compiled is True else str
    runners = [_runner(case, arguments) for case in cases]
    try:
        return to_end(runners, options.compiled, threads, compared_each=True, gpu=options.gpu)
    except UntraceableError:
        restore()
        raise


def _cases(plants: Any, controllers: Any, q0: ArrayLike, v0: ArrayLike) -> list[Case]:
    many = {
        "plants": None if is_a(plants, (Plant, Robot)) else _plants(plants),
        "controllers": listed("controllers", controllers) if isinstance(controllers, Sequence) else None,
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
        require_controller(x, "controllers")
    columns = [[x] * n if many[name] is None else many[name] for name, x in zip(many, (plants, controllers, q0, v0))]
    return [Case(*row) for row in zip(*columns)]


def with_own_laws(cases: Sequence[Case], always: bool = False) -> list[Case]:
    """The cases, with a copy of the law for each case if a shared law may store memory in its attributes.

    Bundled laws keep their memory in the state z and are not copied. With `always`, every other law is copied if it can
    be. Raises ArgumentError if a shared law can not be copied.
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
    several = listed("plants", plants, "a geomctrl.Plant or a Robot, or one per loop")
    return [plant_of("plants", plant) for plant in several]


def _rows(x: Any) -> list | None:
    """The list of initial states; None for a single one."""
    try:
        rows = listed("states", x)
        return rows if rows and all(np.ndim(row) == 1 for row in rows) else None
    except Exception:  # of an object of another kind, whose own conversion may fail as well
        return None


# --- for sweeps --------------------------------------------------------------------------------------------------


def run_of(case: Case, t_end: float, dt: float, control_dt: Any, monitors: Any, options: SimulationOptions) -> Run:
    """The complete run that `outcomes` would measure, identical to the last bit; partial if it fails.

    It runs on the CPU; if `outcomes` would use a GPU, it differs by rounding.
    """
    runner = _runner(case, (t_end, dt, control_dt, monitor_list(monitors), options))
    return to_end([runner], options.compiled, 1)[0]


def outcomes(
    cases: Sequence[Case],
    measures: Mapping[str, Callable[[Run], Any]],
    t_end: float,
    dt: float,
    control_dt: float | None = None,
    monitors: Any = "default",
    options: SimulationOptions = SimulationOptions(),
) -> list[Outcome]:
    """One Outcome per case, in order. Arguments are those of `simulate`. A failure affects its own case only.

    No samples are stored if all measures accumulate while the loop runs. Findings of monitors are confirmed if a
    measure needs them or is a function of the Run.
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
            runners.append(_runner(case, (t_end, dt, control_dt, monitors, options), taken, confirming))
        except MemoryError:
            raise
        except Exception as error:  # invalid case
            refused[k] = Outcome({}, error_text(error), False, np.nan, 0)
    runs = iter(zip(runners, to_end(runners, options.compiled, 1, gpu=options.gpu)))
    return [refused[k] if k in refused else _outcome(*next(runs), measures) for k in range(len(cases))]


def _outcome(runner: LoopRunner, run: Run, measures: Mapping[str, Callable[[Run], Any]]) -> Outcome:
    values, reason, success = {}, run.reason, run.success
    if any(isinstance(m, Verdict) for m in measures.values()):
        beyond = (m for m in run.monitors.values() if m.explanation)
        reason = "; ".join([reason, *(f"{m.name} {m.verdict}: {m.explanation}" for m in beyond)])
    accumulated = iter(runner.record.watchers[len(runner.record.monitors) :])
    for name, measure in measures.items():
        try:
            values[name] = next(accumulated).value() if accumulates(measure) else measure(run)
        except MemoryError:
            raise
        except Exception as error:  # raised by a user's measure
            reason, success = f"{reason}; measure {name!r}: {error_text(error)}", False
    return Outcome(
        values, reason, success, runner.time(runner.record.steps) if runner.record.rows else np.nan, run.steps
    )


def error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


# --- lanes -------------------------------------------------------------------------------------------------------


# t_end, dt, control_dt, monitors, options
Arguments = tuple[float, float, float | None, list[Monitor], SimulationOptions]


def _runner(case: Case, arguments: Arguments, measures: Sequence[Measure] = (), confirming: bool = True) -> LoopRunner:
    """The runner of a case, with its own monitors and measures. Raises ArgumentError."""
    (t_end, dt, control_dt, monitors, options), plant = arguments, plant_of("plant", case.plant)
    case = Case(plant, case.controller, case.q0, case.v0)
    own = [copy.copy(measure) for measure in measures]
    for measure in own:
        measure.start(plant.at(0.0), case.controller)
    watching = [copy.copy(m) for m in monitors]
    runner = LoopRunner(case, t_end, dt, control_dt, watching, options, own, confirming)
    # a sampled law may have memory
    restore = Snapshot(plant, case.controller) if control_dt is not None else lambda: None

    def restarted_runner() -> LoopRunner:
        restore()
        return _runner(case, arguments, measures, confirming)

    runner.again = restarted_runner
    return runner
