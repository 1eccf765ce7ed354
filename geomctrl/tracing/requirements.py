"""Conditions for a result: where they do not hold, compiled code has no result and Python computes instead."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from .untraceable import assigned


class Requirements(list):
    """A list of conditions without duplicates."""

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
    """Whether code currently runs with symbols."""
    return _required.get() is not None


def require(condition: Any) -> None:
    """Add a condition for a result to the innermost `requirements`."""
    if condition is not True and (collected := _required.get()) is not None:
        collected.append(condition)


def requirements() -> AbstractContextManager[Requirements]:
    """Context that collects the conditions of the code inside."""
    return assigned(_required, Requirements())
