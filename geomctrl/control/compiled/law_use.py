"""Detects two threads that use one law, plant or monitor at the same time, although calls change it."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.tracing.code_identity import MISSING, PLAIN
from geomctrl.tracing.containers import content, difference, space_of

from .contents import contents_of
from .symbolic_copies import SymbolicCopies

_lock = threading.Lock()
_running: dict[int, list[_Use]] = {}  # by the id() of the object


class _Use:
    """A law, a plant or a monitor in a call of `simulate` or `simulate_many`."""

    def __init__(self, used: Any):
        self.used, self.thread = getattr(used, "__self__", used), threading.get_ident()
        self.contents: list[tuple[Any, Any, bool]] | None = None  # of the object when another thread began to use it
        self.conflict = False

    def begin(self) -> None:
        uses = _running.setdefault(id(self.used), [])
        if any(other.thread != self.thread for other in uses):
            self._compare(uses)
            contents = _contents(self.used)
            for use in (*uses, self):
                use.contents = contents
        uses.append(self)

    def end(self) -> None:
        uses = _running.get(id(self.used), [])
        try:
            if self in uses:  # else interrupted before
                self._compare(uses)
        finally:
            if self in uses:
                uses.remove(self)
            if not uses:
                _running.pop(id(self.used), None)
            elif len({use.thread for use in uses}) == 1:
                for use in uses:
                    use.contents = None

    def _compare(self, uses: list[_Use]) -> None:
        """Record a conflict in all uses if the object has changed since two threads use it."""
        contents = uses[0].contents
        if contents is not None and any(_changed(*x) for x in contents):
            for use in uses:
                use.conflict = True


def watched(*objects: Any) -> Callable[[], bool]:
    """A function that tells whether anything that calls of these objects reach, also by a name, has changed since."""
    names, reached = [], [*objects]
    with suppress(Exception):  # code that is not compiled
        copies = SymbolicCopies()
        for x in objects:
            copies.of(x)
        names = copies.external_state.named
        reached += (x for _, x, *_ in copies.external_state.held)
    contents = contents_of(*reached)

    def has_changed() -> bool:
        renamed = any(not _same(space_of(owner).get(name, MISSING), before) for owner, name, before in names)
        return renamed or any(_changed(*x) for x in contents)

    return has_changed


def _changed(x: Any, before: Any, attributes: bool) -> bool:
    if isinstance(x, (np.ndarray, np.random.Generator)) and not attributes:
        return difference(x, before) is not None
    now = {name: y for name, y in content(x, attributes).items() if name in before or not _is_cached(x, name)}
    return now.keys() != before.keys() or not all(_same(now[name], before[name]) for name in now)


def _is_cached(x: Any, name: Any) -> bool:
    """Whether an attribute is the value of a `functools.cached_property`, which is computed when it is first read."""
    return isinstance(name, str) and isinstance(getattr(type(x), name, None), functools.cached_property)


def _same(a: Any, b: Any) -> bool:
    """Whether two values are one object; a thread that traces replaces arrays by views for a moment."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return (a.ctypes.data, a.shape, a.strides) == (b.ctypes.data, b.shape, b.strides)
    if isinstance(a, tuple) and type(a) is type(b) and len(a) == len(b):
        return all(map(_same, a, b))
    return a is b or (type(a) is type(b) and isinstance(a, PLAIN) and a == b)


def _contents(used: Any) -> list[tuple[Any, Any, bool]]:
    for _ in range(100):
        with suppress(RuntimeError):  # the other thread changed a container at the same moment
            return contents_of(used)
    return []


@contextmanager
def used_by_this_thread(objects: Iterable[Any]) -> Iterator[None]:
    """Context of a call that uses these laws, plants and monitors.

    Raises ArgumentError at its end if another thread used one of them at the same time and it changed meanwhile.
    """
    uses = [_Use(x) for x in {id(x): x for x in objects}.values()]
    try:
        with _lock:
            for use in uses:
                use.begin()
        yield
    finally:
        with _lock:
            for use in uses:
                use.end()
    for use in uses:
        if use.conflict:
            raise ArgumentError(
                f"{type(use.used).__name__} changes during its calls, and two threads used the same object at the same"
                " time: give each call its own, such as copy.deepcopy(controller), or use simulate_many"
            )


def _forget() -> None:
    """Other threads, and what they hold, are not in a child process."""
    global _lock
    _lock = threading.Lock()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
