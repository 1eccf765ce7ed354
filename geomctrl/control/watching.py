"""A closed loop that somebody watches while it runs: what goes from its record to a view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import difference

from .record import Record

if TYPE_CHECKING:
    from geomctrl.viewing.live import LiveView

    from .loop_runner import LoopRunner


def check_view(view: bool | LiveView) -> None:
    """Raise ArgumentError for what is no view."""
    if not isinstance(view, (bool, np.bool_)):
        from geomctrl.viewing.live import LiveView

        if not isinstance(view, LiveView):
            raise ArgumentError(f"view: expected True, False or a geomctrl.LiveView, got {view!r:.80}")


@contextmanager
def watched(
    view: bool | LiveView, runner: LoopRunner, report: Callable[[float], Any]
) -> Iterator[Callable[[float], Any]]:
    """The function to call with the fraction done, `report` and a picture of what is done; `view` as for `simulate`."""
    if isinstance(view, (bool, np.bool_)) and not view:
        yield report
        return
    from geomctrl.viewing.live import LiveView

    live = view if isinstance(view, LiveView) else LiveView()
    try:
        record = runner.record
        live.begin(record.plant.robot, runner.loop.split(runner.loop.y)[0], record.desired is not None)
        runner.chunk = live.steps(runner.dt) or runner.chunk

        def both(fraction: float) -> None:
            report(fraction)
            if record.rows and live.due(runner.time(runner.k), runner.done):
                _show(live, record)

        yield both
    finally:
        if live is not view:
            live.close()


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
    live.show(float(record.t[k]), q, desired, curves, verdicts)


def _markdown(text: str) -> str:
    """Markdown that reads as this text: the page would run expressions between braces."""
    return re.sub(r"([^\w\s])", r"\\\1", text)


def _verdict(worst: float, limit: float) -> str:
    return "held so far" if worst <= limit else "**beyond its limit**"
