"""Progress of runs and sweeps: a bar in a terminal or notebook, a user's function, or nothing.

No bar is drawn if standard output is a file, which would store every update.
"""

from __future__ import annotations

import functools
import html
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from geomctrl.arguments import function
from geomctrl.output import moves

REDRAW_PERIOD = 0.1  # s between updates of a notebook's bar
F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def progress_function(
    progress: bool | Callable[[float], Any], activity: str = "simulating"
) -> Iterator[Callable[[float], Any]]:
    """Yield the function to call with the fraction done: `progress` itself, or one that draws a bar or nothing."""
    if progress is not None and not isinstance(progress, bool):
        yield function(
            "progress", progress, "of the fraction done, True, False or, of one loop, a geomctrl.LiveView", 1
        )
    elif not progress:
        yield lambda fraction: None
    else:
        with _bar(activity) as report:
            yield lambda fraction: report(activity, fraction)


@contextmanager
def progress_with_cost(progress: bool | Callable[[float], Any], activity: str) -> Iterator[Callable[[float, str], Any]]:
    """The same, for a function of the fraction done and the expected cost as text, which a bar shows."""
    if progress is True:
        with _bar(activity) as draw:
            yield lambda fraction, cost: draw(f"{activity}, {cost}" if cost else activity, fraction)
    else:
        with progress_function(progress, activity) as report:
            yield lambda fraction, cost: report(fraction)


@contextmanager
def counted(progress: bool | Callable[[float], Any], total: int, done: int) -> Iterator[Callable[[int], Any]]:
    """Yield the function to call with the number of further runs done; `done` of `total` were complete before.

    The bar shows the runs, the rate per second and the remaining time.
    """
    with _run_bar(total, done) if progress is True else progress_function(progress) as report:
        count = done

        def add(runs: int) -> None:
            nonlocal count
            count += runs
            report(count / total)

        yield add


def with_progress_bar(f: F) -> F:
    """Decorator for functions whose `progress` is a function of (activity, fraction): True becomes a bar."""

    @functools.wraps(f)
    def wrapped(*args: Any, **options: Any) -> Any:
        progress = options.get("progress")
        if not isinstance(progress, (bool, np.bool_)):
            return f(*args, **options)
        if not progress:
            return f(*args, **options | {"progress": None})
        with _bar("") as report:
            return f(*args, **options | {"progress": report})

    return wrapped  # pyright: ignore[reportReturnType]


# --- bars --------------------------------------------------------------------------------------------------------


@contextmanager
def _bar(activity: str) -> Iterator[Callable[[str, float], Any]]:
    """Yield the function to call with the activity and its fraction."""
    from rich.console import Console
    from rich.progress import Progress

    if Console().is_jupyter:  # rich's own bar needs ipywidgets, which is rarely installed
        with _notebook_bar() as report:
            yield lambda activity, fraction: report(activity, fraction, _left(fraction, report.started))
        return
    if not moves():
        yield lambda activity, fraction: None
        return
    with Progress(transient=True) as bar:
        task = bar.add_task(activity, total=1.0)
        yield lambda activity, fraction: bar.update(task, description=activity, completed=fraction)


@contextmanager
def _run_bar(total: int, done: int) -> Iterator[Callable[[float], Any]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    started = time.perf_counter()

    def rate(now: int) -> str:
        return f"{(now - done) / (time.perf_counter() - started):.3g}/s"

    if Console().is_jupyter:
        with _notebook_bar() as draw:
            first = done / total

            def report(fraction: float) -> None:
                now, own = round(fraction * total), (fraction - first) / max(1.0 - first, 1e-12)
                draw("runs", fraction, f"{now} of {total}, {rate(now)}, {_left(own, draw.started)}")

            yield report
        return
    if not moves():
        yield lambda fraction: None
        return
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}", markup=False), TimeRemainingColumn()
    with Progress("runs", *columns, transient=True) as bar:
        task = bar.add_task("", total=total, completed=done, rate="")
        yield lambda fraction: bar.update(task, completed=(now := round(fraction * total)), rate=rate(now))


def _left(fraction: float, started: float) -> str:
    if fraction <= 0.0:
        return ""
    seconds = (time.perf_counter() - started) * (1.0 - fraction) / fraction
    return f"{seconds:.0f} s left" if seconds < 100.0 else f"{seconds / 60.0:.0f} min left"


class _NotebookBar:
    """A progress bar in a notebook, redrawn at most every `REDRAW_PERIOD`."""

    def __init__(self):
        from IPython.display import HTML, display

        self.html, self.started, self.last = HTML, time.perf_counter(), -np.inf
        self.handle: Any = display(HTML(""), display_id=True)

    def __call__(self, activity: str, fraction: float, remaining: str) -> None:
        now = time.perf_counter()
        if now - self.last >= REDRAW_PERIOD:
            self.last = now
            text = html.escape(f"{activity} {fraction:.0%} {remaining}")
            self.handle.update(
                self.html(f'<progress max="1" value="{fraction:.4f}" style="width:20em"></progress> {text}')
            )

    def clear(self) -> None:
        self.handle.update(self.html(""))


@contextmanager
def _notebook_bar() -> Iterator[_NotebookBar]:
    bar = _NotebookBar()
    try:
        yield bar
    finally:
        bar.clear()
