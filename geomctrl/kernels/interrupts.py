"""Ctrl-C while numba works."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """In this context, Ctrl-C takes effect at the end, a second one at once.

    After an interrupted import or compilation, numba raises errors for the rest of the process.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():  # which alone receives it
        yield
        return
    pressed: list[Any] = []

    def press(*arguments: Any) -> None:
        pressed.append(arguments)
        if len(pressed) > 1:
            handler(*arguments)

    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if len(pressed) == 1:
            handler(*pressed[0])
