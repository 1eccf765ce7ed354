"""What must hold for there to be a result: where it does not, compiled code answers none, and Python is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class Requirements(list):
    """Conditions, each of them once."""

    def __init__(self):
        super().__init__()
        self.nodes: set[int] = set()

    def append(self, condition: Any) -> None:
        index = getattr(condition, "index", -1)
        if index < 0 or index not in self.nodes:
            super().append(condition)
            self.nodes.add(index)


_required: ContextVar[Requirements | None] = ContextVar("required", default=None)


def on_symbols() -> bool:
    """Whether a law runs on symbols now, with what numpy makes for it."""
    return _required.get() is not None


def require(condition: Any) -> None:
    """There is a result only where this holds; known to the innermost `requirements`."""
    if condition is not True and (collected := _required.get()) is not None:
        collected.append(condition)


@contextmanager
def requirements() -> Iterator[Requirements]:
    """The conditions that what is computed inside has asked for."""
    collected = Requirements()
    token = _required.set(collected)
    try:
        yield collected
    finally:
        _required.reset(token)
