"""How far a run, or a sweep of runs, has come: a bar in the terminal, a caller's function, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from geomctrl.arguments import function


@contextmanager
def shown(progress: bool | Callable[[float], Any], what: str = "simulating") -> Iterator[Callable[[float], Any]]:
    """The function to call with the fraction done: `progress` itself, or one that draws a bar (True) or nothing."""
    if progress is not None and not isinstance(progress, bool):
        yield function("progress", progress, "of the fraction done, or True or False")
    elif not progress:
        yield lambda fraction: None
    else:
        from rich.progress import Progress

        with Progress(transient=True) as bar:
            task = bar.add_task(what, total=1.0)
            yield lambda fraction: bar.update(task, completed=fraction)


@contextmanager
def counted(progress: bool | Callable[[float], Any], total: int, done: int) -> Iterator[Callable[[int], Any]]:
    """The function to call with how many runs more are done, `done` of `total` being so before; `progress` as above.

    The bar shows the runs, how many a second, and the time left.
    """
    with _run_bar(total, done) if progress is True else shown(progress) as report:
        count = done

        def add(runs: int) -> None:
            nonlocal count
            count += runs
            report(count / total)

        yield add


@contextmanager
def _run_bar(total: int, done: int) -> Iterator[Callable[[float], Any]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate, started = TextColumn("{task.fields[rate]}"), time.perf_counter()
    with Progress("runs", BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn(), transient=True) as bar:
        task = bar.add_task("", total=total, completed=done, rate="")

        def report(fraction: float) -> None:
            now = round(fraction * total)
            bar.update(task, completed=now, rate=f"{(now - done) / (time.perf_counter() - started):.3g}/s")

        yield report
