"""The error for what does not trace, which nobody's `except` hides."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

from geomctrl.errors import GeomctrlError

asker: ContextVar[Callable[[Any], bool] | None] = ContextVar("asker", default=None)  # of what a condition's truth is
_raised: ContextVar[list[UntraceableError] | None] = ContextVar("raised", default=None)


class UntraceableError(GeomctrlError):
    """A kernel or a controller asks a symbol what only a number knows; the message names file and line."""

    def __init__(self, *args: object):
        super().__init__(*args)
        errors = _raised.get()
        if errors is not None:
            errors.append(self)


@contextmanager
def heard() -> Iterator[None]:
    """A user's code runs on symbols in here: what it has caught itself is raised at the end."""
    errors: list[UntraceableError] = []
    token = _raised.set(errors)
    try:
        yield
    finally:
        _raised.reset(token)
    if errors:
        raise UntraceableError(*errors[0].args)


@contextmanager
def tried() -> Iterator[None]:
    """What fails in here is tried in another way."""
    token = _raised.set(None)
    try:
        yield
    finally:
        _raised.reset(token)


_libraries = ["geomctrl.tracing", "geomctrl.arguments", "numpy", "scipy", "numba"]


def skip_frames_of(*packages: str) -> None:
    """Let `caller` skip the frames of these packages, which stand between a user's function and a symbol."""
    _libraries.extend(packages)


def caller() -> str:
    """, in FILE, line N: where a kernel or a law is."""
    frame = calling_frame()
    return f", in {frame.f_code.co_filename}, line {frame.f_lineno}" if frame is not None else ""


def calling_frame() -> FrameType | None:
    """The innermost frame that is a kernel's or a law's."""
    frame = sys._getframe(1)
    packages = tuple(f"{name}." for name in _libraries)
    while frame is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(packages):
        frame = frame.f_back
    return frame
