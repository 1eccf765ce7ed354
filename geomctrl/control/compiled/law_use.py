"""Detects runs in two threads at the same time that use one object, although calls change it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.tracing.code_identity import MISSING, PLAIN
from geomctrl.tracing.patched_numpy import members_replaced

from .containers import space_of
from .contents import content, contents_of, difference
from .symbolic_copies import SymbolicCopies

Changed = Callable[[], bool]


class _Use:
    """The law, the plant and the monitors of a call of `simulate`, or those of `simulate_many`."""

    def __init__(self, objects: Iterable[Any]):
        self.objects = [*{id(x): x for x in objects}.values()]
        self.thread, self.conflict = threading.get_ident(), ""

    @functools.cached_property
    def watched(self) -> dict[Any, tuple[str, Changed]]:
        """What calls reach: its name, and a function that tells whether it has changed since."""
        for _ in range(100):
            with suppress(RuntimeError):  # the other thread changed a container at the same moment
                return _watched(self.objects)
        return {}


_running: list[_Use] = []
_shared: list[tuple[_Use, _Use, list[tuple[str, Changed]]]] = []  # what two uses in different threads have in common


def _watched(objects: list[Any]) -> dict[Any, tuple[str, Changed]]:
    names, reached = [], [*objects]
    with suppress(Exception):  # code that is not compiled
        copies = SymbolicCopies()
        for x in objects:
            copies.of(x)
        names = copies.external_state.named
        reached += (x for _, x, *_ in copies.external_state.held)
    of_names = {(id(owner), name): (name, functools.partial(_renamed, *x)) for x in names for owner, name, _ in [x]}
    contents = contents_of(*reached)
    return of_names | {id(x): (type(x).__name__, functools.partial(_changed, x, old)) for x, old in contents}


def _renamed(owner: Any, name: str, before: Any) -> bool:
    return not _same(space_of(owner).get(name, MISSING), before)


def _changed(x: Any, before: Any) -> bool:
    if isinstance(x, (np.ndarray, np.random.Generator)):
        return difference(x, before) is not None
    now = {name: y for name, y in content(x).items() if name in before or not _is_cached(x, name)}
    return now.keys() != before.keys() or not all(_same(now[name], before[name]) for name in now)


def _is_cached(x: Any, name: Any) -> bool:
    """Whether an attribute is the value of a `functools.cached_property`, which is computed when it is first read."""
    return isinstance(name, str) and isinstance(getattr(type(x), name, None), functools.cached_property)


def _same(a: Any, b: Any) -> bool:
    """Whether two values are one object, or equal constants."""
    if isinstance(a, tuple) and type(a) is type(b) and len(a) == len(b):
        return all(map(_same, a, b))
    return a is b or (type(a) is type(b) and isinstance(a, PLAIN) and a == b)


def _begin(use: _Use) -> None:
    for other in _running:
        if other.thread != use.thread:
            common = [use.watched[key] for key in use.watched.keys() & other.watched.keys()]
            _shared.append((use, other, common))
    _running.append(use)


def _end(use: _Use) -> None:
    for pair in [x for x in _shared if use in x]:
        _shared.remove(pair)
        changed = next((name for name, has_changed in pair[2] if has_changed()), "")
        for x in pair[:2]:
            x.conflict = x.conflict or changed
    if use in _running:  # else interrupted before
        _running.remove(use)


@contextmanager
def used_by_this_thread(objects: Iterable[Any]) -> Iterator[None]:
    """Context of a call that runs these laws, plants and monitors.

    Raises ArgumentError at its end if another thread ran one of them, or something that these lead to, at the same time
    and it changed meanwhile.
    """
    use = _Use(objects)
    try:
        with members_replaced:  # not while another thread traces: it replaces members for a moment
            _begin(use)
        yield
    finally:
        with members_replaced:
            _end(use)
    if use.conflict:
        kinds = dict.fromkeys(type(getattr(x, "__self__", x)).__name__ for x in use.objects)
        raise ArgumentError(
            f"{', '.join(kinds)}: {use.conflict} changes during calls, and two threads used it at the same time: give"
            " each call its own objects, such as copy.deepcopy(controller), or use simulate_many"
        )
