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
        at = getattr(condition, "at", -1)
        if at < 0 or at not in self.nodes:
            super().append(condition)
            self.nodes.add(at)


_required: ContextVar[Requirements | None] = ContextVar("required", default=None)


def on_symbols() -> bool:
    """Whether a law runs on symbols now, with what numpy makes for it."""
    return _required.get() is not None


def require(condition: Any) -> None:
    """There is a result only where this holds; known to the innermost `requirements`."""
    if condition is not True and (found := _required.get()) is not None:
        found.append(condition)


@contextmanager
def requirements() -> Iterator[Requirements]:
    """The conditions that what is computed inside has asked for."""
    found = Requirements()
    token = _required.set(found)
    try:
        yield found
    finally:
        _required.reset(token)
