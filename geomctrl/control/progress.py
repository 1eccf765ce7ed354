"""How far a run has come: a bar in the terminal, a caller's function, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def shown(progress: bool | Callable[[float], Any]) -> Iterator[Callable[[float], Any]]:
    """The function to call with the fraction done: `progress` itself, or one that draws a bar (True) or nothing."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda fraction: None
    else:
        from rich.progress import Progress

        with Progress(transient=True) as bar:
            task = bar.add_task("simulating", total=1.0)
            yield lambda fraction: bar.update(task, completed=fraction)
