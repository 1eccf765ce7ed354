"""`simulate`: integrate a closed loop of plant and controller on the Lie group and check it with monitors."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import difference
from geomctrl.other_names import OF_SIMULATE, named_arguments
from geomctrl.robot import Robot
from geomctrl.tracing.untraceable import UntraceableError

from .compiled.choice import say
from .compiled.contents import Snapshot
from .compiled.law_use import used_by_this_thread
from .contracts import Controller
from .loop_runner import LONGER_CHUNKS, Case, LoopRunner, in_a_loop
from .monitors import Monitor
from .monitors.chosen import monitor_list
from .options import ONLY_LOOPS, SimulationOptions
from .plant import Plant
from .progress import progress_function
from .record import Record
from .run import Run

if TYPE_CHECKING:
    from geomctrl.viewing.live import LiveView


@named_arguments(OF_SIMULATE)
def simulate(
    plant: Plant | Robot,
    controller: Controller,
    q0: ArrayLike,
    v0: ArrayLike,
    t_end: float,
    dt: float,
    control_dt: float | None = None,
    monitors: str | Iterable[Monitor] | None = "default",
    options: SimulationOptions = SimulationOptions(),
    progress: bool | Callable[[float], None] | LiveView = False,
) -> Run:
    """Simulate a closed loop and check, at every sample, the properties that a proof of its controller relies on.

    Parameters
    ----------
    plant : Plant or Robot
        The true robot with its friction, actuators, sensors and external forces. A `Robot` stands for `Plant(robot)`.
    controller : Controller
        The feedback law.
    q0 : array (nq,)
        Initial configuration [rad or m].
    v0 : array (nv,)
        Initial velocity [rad/s or m/s].
    t_end : float
        Duration of the run [s].
    dt : float
        Time between samples [s]. A fixed-step method takes steps of this size.
    control_dt : float or None
        None, the default, evaluates the controller in continuous time, at every stage of the integrator. A multiple of
        dt [s] adds a zero-order hold: the controller is called every `control_dt` seconds, and its command is constant
        in between.
    monitors : "default", iterable of Monitor or None
        The properties to check at every sample. "default" takes all bundled monitors that apply; None takes none.
    options : SimulationOptions
        Integration method, storage of samples, compilation, and whether a violation ends the run.
    progress : bool, callable or LiveView
        True draws a progress bar; default False. A function is called with the fraction done, between 0 and 1; what it
        changes in the law or the plant applies from then on. A `LiveView` shows the robot in a browser while the loop
        runs, at most at the view's speed.

    Returns
    -------
    Run
        The stored samples and the result of each monitor.

    Raises
    ------
    ArgumentError
        If an argument is invalid.
    SimulationError
        If the state becomes infinite or nan, if the controller returns an invalid command, if user code raises an
        exception (`progress` included), or, with `strict=True`, if a monitor confirms a violation. The exception's
        attribute `run` holds the samples up to that time.
    UntraceableError
        With `compiled=True`, if the loop can not be traced.

    Notes
    -----
    KeyboardInterrupt (Ctrl-C), SystemExit and similar exceptions propagate unchanged. Their attribute `run` holds the
    samples up to the interruption. Controllers, references, plants and monitors receive read-only arrays. A law that
    changes its attributes belongs to one call at a time, and so do plants and monitors: threads that call `simulate`
    need a copy each, and those that share one get an ArgumentError at the end of the run. What is shared in another
    way, such as a global or a reference of two laws, is not watched.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(robot, [0.5, 0.2], kp=50.0, kd=10.0)
    >>> run = gc.simulate(robot, law, np.zeros(2), np.zeros(2), t_end=1.0, dt=1e-3)
    >>> run.ok
    True
    """
    return run_loop(Case(plant, controller, q0, v0), t_end, dt, control_dt, monitors, options, progress)


def run_loop(
    case: Case,
    t_end: float,
    dt: float,
    control_dt: float | None = None,
    monitors: str | Iterable[Monitor] | None = "default",
    options: SimulationOptions = SimulationOptions(),
    progress: bool | Callable[[float], None] | LiveView = False,
    confirming: bool = True,
) -> Run:
    """`simulate`; without `confirming`, monitors beyond their limits remain unresolved."""
    choice = instance("options", options, SimulationOptions, "gc.SimulationOptions").compiled
    if options.gpu is not None:
        raise ArgumentError(f"device: expected 'cpu', {ONLY_LOOPS}, got {options.device!r}")
    watching = monitor_list(monitors)

    def run(choice: bool | str) -> Run:
        runner = LoopRunner(case, t_end, dt, control_dt, watching, options, confirming=confirming)
        runner.chunk *= LONGER_CHUNKS if progress is None or progress is False else 1
        with reported(progress, runner) as report, in_a_loop(), runner.interruptible():
            runner.begin(report)
            return runner.to_end(choice, report)

    remembers = choice and control_dt is not None  # the law may have changed itself before compilation is refused
    owned = case.plant, case.controller, watching
    before = Snapshot(*owned, names=True) if choice is True or remembers else Snapshot()
    with used_by_this_thread([case.controller, case.plant, *watching]):
        try:
            return run(choice)
        except UntraceableError as error:  # with "auto" also after the run, if compiled code and Python disagree
            before()
            if choice is True:
                raise
            say(f"this loop runs in Python: {error}")
            return run(False)


@contextmanager
def reported(
    progress: bool | Callable[[float], Any] | LiveView, runner: LoopRunner
) -> Iterator[Callable[[float], Any]]:
    """Yield the function that the loop calls with the fraction done. `progress` is the argument of `simulate`."""
    if not _is_view(progress):
        with progress_function(cast("bool | Callable[[float], Any]", progress)) as report:
            runner.calls_user = report is progress
            yield report
        return
    live, record = cast("LiveView", progress), runner.record
    live._begin(record.plant.robot, runner.loop.split(runner.loop.y)[0], record.desired is not None)
    runner.chunk = live._steps(runner.dt) or runner.chunk

    def show(fraction: float) -> None:
        if record.rows and live._due(runner.time(runner.k), runner.done):
            _show(live, record)

    yield show


def _is_view(progress: Any) -> bool:
    """Whether `progress` is a LiveView, without importing the viewer."""
    module = sys.modules.get("geomctrl.viewing.live")
    return module is not None and isinstance(progress, module.LiveView)


def _show(live: LiveView, record: Record) -> None:
    """Send the last stored sample to the live view."""
    k, robot = record.rows - 1, record.plant.robot
    q, curves = record.q[k], {}
    desired = None if record.desired is None else record.desired.q[k]
    if desired is not None:
        curves["|e| [rad, m]"] = float(np.linalg.norm(difference(robot, desired, q)))
    if "lyapunov" in record.watched:
        curves["V"] = float(record.watched["lyapunov"][1][k])
    curves["largest torque [N m, N]"] = float(np.abs(record.applied[k]).max())
    # compiled code updates `record.worst` only
    seen = np.fmax(record.measured[: k + 1].max(axis=0, initial=-np.inf), record.worst)
    verdicts = [f"{_markdown(m.name)}: {_verdict(worst, m.limit)}" for m, worst in zip(record.monitors, seen)]
    live._show(float(record.t[k]), q, desired, curves, verdicts)


def _markdown(text: str) -> str:
    """Escape `text` for Markdown, because the page would evaluate expressions between braces."""
    return re.sub(r"([^\w\s])", r"\\\1", " ".join(text.split()))


def _verdict(worst: float, limit: float) -> str:
    return "held so far" if worst <= limit else "**beyond its limit**"
