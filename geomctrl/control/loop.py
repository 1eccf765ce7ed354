"""Close the loop: plant + controller + reference -> Run, integrated on the Lie group, with monitors watching."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.mechanism.configuration import difference
from geomctrl.robot import Robot
from geomctrl.tracing.untraceable import UntraceableError

from .compiled.choice import say
from .compiled.contents import kept
from .contracts import Controller
from .loop_runner import Case, LoopRunner, in_a_loop
from .monitors import Monitor
from .monitors.chosen import monitor_list
from .options import SimulationOptions
from .plant import Plant
from .progress import shown
from .record import Record
from .run import Run

if TYPE_CHECKING:
    from geomctrl.viewing.live import LiveView
if TYPE_CHECKING:
    from geomctrl.viewing.live import LiveView

    from .loop_runner import LoopRunner


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
    """Run a closed loop and check, while it runs, what the proof of its law relies on.

    Parameters
    ----------
    plant : Plant or Robot
        The true robot and what acts on it.
    controller : Controller
        The feedback law.
    q0 : array (nq,)
        The configuration at the start.
    v0 : array (nv,)
        The velocity at the start.
    t_end : float
        How long the run is [s].
    dt : float
        Time from one sample to the next, the step of a fixed-step method [s].
    control_dt : float or None
        None evaluates the controller continuously. A multiple of dt samples it, and holds its command in between [s].
    monitors : "default", iterable of Monitor or None
        What is checked at every sample.
    options : SimulationOptions
        Method and tolerances, which samples are stored, whether a violation ends the run, and compilation.
    progress : bool, callable or LiveView
        True draws a bar; a function is called with the fraction done. A `LiveView` shows the loop in a browser while
        it runs, no faster than its speed.

    Returns
    -------
    Run
        The stored samples and what the monitors have found.

    Raises
    ------
    ArgumentError
        For bad arguments.
    SimulationError
        When the state stops being finite, when the controller returns what no robot can use, when code of yours raises,
        `progress` included, or, with `strict`, where a monitor's violation is confirmed. Its `run` holds everything up
        to then.
    UntraceableError
        With `compiled=True`, for a loop that does not trace.

    Notes
    -----
    KeyboardInterrupt (Ctrl-C), SystemExit and the like pass as they are, with an attribute `run` that holds everything
    up to then. Controller, reference, plant and monitors get arrays that are read-only.

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
    choice = instance("options", options, SimulationOptions, "gc.SimulationOptions").compiled
    case, watching = Case(plant, controller, q0, v0), monitor_list(monitors)

    def run(choice: bool | str) -> Run:
        runner = LoopRunner(case, t_end, dt, control_dt, watching, options)
        with reported(progress, runner) as report, in_a_loop(), runner.interruptible():
            runner.begin(report)
            return runner.to_end(choice, report)

    remembers = choice and control_dt is not None  # then the law may have changed before the run is refused
    restore = kept(plant, controller, watching) if choice is True or remembers else lambda: None
    try:
        return run(choice)
    except UntraceableError as error:  # in "auto" of the finished run, which is not what Python computes
        restore()
        if choice is True:
            raise
        say(f"this loop runs in Python: {error}")
        return run(False)


@contextmanager
def reported(
    progress: bool | Callable[[float], Any] | LiveView, runner: LoopRunner
) -> Iterator[Callable[[float], Any]]:
    """The function that a loop calls with the fraction done; `progress` as for `simulate`."""
    if not _is_view(progress):
        with shown(cast("bool | Callable[[float], Any]", progress)) as report:
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
    """Whether it is a LiveView, without loading what draws."""
    module = sys.modules.get("geomctrl.viewing.live")
    return module is not None and isinstance(progress, module.LiveView)


def _show(live: LiveView, record: Record) -> None:
    """The last sample that is stored."""
    k, robot = record.rows - 1, record.plant.robot
    q, curves = record.q[k], {}
    desired = None if record.desired is None else record.desired.q[k]
    if desired is not None:
        curves["|e| [rad, m]"] = float(np.linalg.norm(difference(robot, desired, q)))
    if "lyapunov" in record.watched:
        curves["V"] = float(record.watched["lyapunov"][1][k])
    curves["largest torque [N m, N]"] = float(np.abs(record.applied[k]).max())
    seen = np.fmax(
        record.measured[: k + 1].max(axis=0, initial=-np.inf), record.worst
    )  # compiled code has its own worst
    verdicts = [f"{_markdown(m.name)}: {_verdict(worst, m.limit)}" for m, worst in zip(record.monitors, seen)]
    live._show(float(record.t[k]), q, desired, curves, verdicts)


def _markdown(text: str) -> str:
    """Markdown that reads as this text: the page would run expressions between braces."""
    return re.sub(r"([^\w\s])", r"\\\1", text)


def _verdict(worst: float, limit: float) -> str:
    return "held so far" if worst <= limit else "**beyond its limit**"
