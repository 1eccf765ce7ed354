"""Close the loop: plant + controller + reference -> Run, integrated on the Lie group, with monitors watching."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from geomctrl.arguments import flag
from geomctrl.integrators.march import check_storing
from geomctrl.robot import Robot
from geomctrl.tracing.untraceable import UntraceableError

from .compiled.choice import checked_choice, say
from .compiled.contents import kept
from .contracts import Controller
from .loop_runner import LoopRunner, in_a_loop
from .monitors import Monitor, monitor_list
from .plant import Plant
from .progress import shown
from .run import Run
from .watching import check_view, watched

if TYPE_CHECKING:
    from geomctrl.viewing.live import LiveView


def simulate(
    plant: Plant | Robot,
    controller: Controller,
    q0: ArrayLike,
    v0: ArrayLike,
    t_end: float,
    dt: float,
    method: str = "MK4",
    control_dt: float | None = None,
    monitors: str | Iterable[Monitor] | None = "default",
    progress: bool | Callable[[float], None] = False,
    *,
    strict: bool = False,
    every: int = 1,
    rtol: float | None = None,
    atol: ArrayLike | None = None,
    compiled: bool | str = "auto",
    view: bool | LiveView = False,
) -> Run:
    """Run the closed loop from (q0, v0) for t_end seconds in steps of dt.

    method: of `integrators`; an adaptive one ("MK54") takes steps of its own from sample to sample, dt apart, with an
    error of at most atol + rtol |x| each, x the coordinates of q, v, the controller's state and the work.
    control_dt: None, or a multiple of dt at which the controller is sampled. monitors: "default", None or
    `monitors.Monitor`s. progress: True for a bar, or a function of the fraction done. every: store each every-th
    sample (and the last); monitors see every one. compiled: "auto" runs what traces in compiled code, where the run is
    long enough for that to pay, and says once why a long one runs in Python; True raises UntraceableError then, with
    file and line; False is Python. The results differ by rounding. view: True shows the loop while it runs, in a
    browser at an address that is printed, no faster than time; the page ends with the run. A `LiveView` says how fast,
    and stays. Both need the extra `view` (viser), without which ImportError is raised.

    Raises ArgumentError for bad arguments; SimulationError, whose `run` holds everything up to then, when the state
    stops being finite, the controller returns what no robot can use, or, with strict=True, where a monitor's
    violation is confirmed, or when code of yours raises, `progress` included. KeyboardInterrupt (Ctrl-C),
    SystemExit and the like pass as they are, with an attribute `run` that holds the same.

    Controller, reference, plant and monitors are handed arrays that are read-only.
    """
    choice, strict = checked_choice(compiled), flag("strict", strict)
    check_view(view)
    check_storing(every, None if isinstance(progress, bool) else progress)
    watching = monitor_list(monitors)

    def run(choice: bool | str) -> Run:
        runner = LoopRunner(
            plant, controller, q0, v0, t_end, dt, method, control_dt, watching,
            strict=strict, every=every, rtol=rtol, atol=atol,
        )  # fmt: skip
        with shown(progress) as told, watched(view, runner, told) as report, in_a_loop(), runner.interruptible():
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
