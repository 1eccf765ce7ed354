"""A closed loop that somebody watches while it runs: what goes from its record to a view."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from geomctrl.mechanism.configuration import difference

from .progress import shown
from .record import Record

if TYPE_CHECKING:
    from geomctrl.viewing.live import LiveView

    from .loop_runner import LoopRunner


@contextmanager
def reported(
    progress: bool | Callable[[float], Any] | LiveView, runner: LoopRunner
) -> Iterator[Callable[[float], Any]]:
    """The function that a loop calls with the fraction done; `progress` as for `simulate`."""
    if not _is_view(progress):
        with shown(progress) as report:
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
