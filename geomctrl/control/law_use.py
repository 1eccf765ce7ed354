"""Detects two threads that run one law at the same time, although calls change the law."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.tracing.code_identity import PLAIN
from geomctrl.tracing.rotations import is_rotation

from .compiled.contents import content, contents_of, difference

_lock = threading.Lock()
_running: dict[int, list[_Use]] = {}  # by the id() of the law


class _Use:
    """A law in a call of `simulate` or `simulate_many`."""

    def __init__(self, law: Any):
        self.law, self.thread = getattr(law, "__self__", law), threading.get_ident()
        self.contents: list[tuple[Any, Any]] | None = None  # of the law when another thread began to run it
        self.conflict = False

    def begin(self) -> None:
        uses = _running.setdefault(id(self.law), [])
        if any(other.thread != self.thread for other in uses):
            self._compare(uses)
            contents = _contents(self.law)
            for use in (*uses, self):
                use.contents = contents
        uses.append(self)

    def end(self) -> None:
        uses = _running.get(id(self.law), [])
        if self in uses:  # else interrupted before
            self._compare(uses)
            uses.remove(self)
        if not uses:
            _running.pop(id(self.law), None)
        elif len({use.thread for use in uses}) == 1:
            for use in uses:
                use.contents = None

    def _compare(self, uses: list[_Use]) -> None:
        """Record a conflict in all uses if the law has changed since two threads run it."""
        contents = uses[0].contents
        if contents is not None and any(_changed(x, before) for x, before in contents):
            for use in uses:
                use.conflict = True


def _changed(x: Any, before: Any) -> bool:
    if isinstance(x, (np.ndarray, np.random.Generator)):
        return difference(x, before) is not None
    now = {name: y for name, y in content(x).items() if name in before or not _is_cached(x, name)}
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
    if is_rotation(a) and is_rotation(b):
        return np.array_equal(a.as_quat(), b.as_quat())
    return a is b or (type(a) is type(b) and isinstance(a, PLAIN) and a == b)


def _contents(law: Any) -> list[tuple[Any, Any]]:
    for _ in range(100):
        with suppress(RuntimeError):  # the other thread changed a container at the same moment
            return contents_of(law)
    return []


@contextmanager
def used_by_this_thread(laws: Iterable[Any]) -> Iterator[None]:
    """Context of a call that runs these laws.

    Raises ArgumentError at its end if another thread ran one of them at the same time and the law changed meanwhile.
    """
    uses = [_Use(law) for law in {id(law): law for law in laws}.values()]
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
                f"controller: {type(use.law).__name__} changes during its calls, and two threads ran the same object at"
                " the same time: give each call its own, such as copy.deepcopy(controller), or use simulate_many"
            )
