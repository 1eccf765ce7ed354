"""The error for what does not trace, which nobody's `except` hides."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from geomctrl.errors import GeomctrlError

_raised: ContextVar[list[UntraceableError] | None] = ContextVar("raised", default=None)


class UntraceableError(GeomctrlError):
    """A kernel or a controller asks a symbol what only a number knows; the message names file and line."""

    def __init__(self, *args: object):
        super().__init__(*args)
        found = _raised.get()
        if found is not None:
            found.append(self)


@contextmanager
def heard() -> Iterator[None]:
    """A user's code runs on symbols in here: what it has caught itself is raised at the end."""
    found: list[UntraceableError] = []
    token = _raised.set(found)
    try:
        yield
    finally:
        _raised.reset(token)
    if found:
        raise UntraceableError(*found[0].args)


@contextmanager
def tried() -> Iterator[None]:
    """What fails in here is tried in another way."""
    token = _raised.set(None)
    try:
        yield
    finally:
        _raised.reset(token)


SKIPPED = r"(geomctrl\.(compiler|lie|mechanism|terms|arguments)|numpy|scipy|numba)\b"  # between a law and a symbol


def caller() -> str:
    """, in FILE, line N: where a kernel or a law is."""
    frame = sys._getframe(1)
    while frame is not None and re.match(SKIPPED, frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f", in {frame.f_code.co_filename}, line {frame.f_lineno}" if frame is not None else ""
