"""Locks for threads, of which a forked process inherits none that another thread holds.

A process is forked while no thread traces or compiles: the child would have modules whose members are replaced, and
libraries that wait for a thread that it does not have.
"""

from __future__ import annotations

import os
import threading
from typing import Any

members_replaced = threading.RLock()  # held while members of modules are replaced
numba_at_work, llvm_at_work = threading.RLock(), threading.RLock()  # their holders do not wait for the one above

_awaited = members_replaced, numba_at_work, llvm_at_work
_renewed: list[Any] = []


def renewed_lock() -> threading.RLock:  # pyright: ignore[reportInvalidTypeForm]
    """A lock that is free in a forked process."""
    _renewed.append(threading.RLock())
    return _renewed[-1]


def _acquire() -> None:
    for lock in _awaited:
        lock.acquire()


def _release() -> None:
    for lock in _awaited:
        lock.release()


def _in_child() -> None:
    _release()
    for lock in _renewed:
        lock._at_fork_reinit()  # as the locks of `threading` and `logging`


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_in_child)
