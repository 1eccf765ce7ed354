"""Contents of symbolic copies: what a call has changed in them, and how to restore it."""

from __future__ import annotations

import functools
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.tracing.code_identity import CONSTRUCTORS, is_own_class, is_own_function
from geomctrl.tracing.containers import CONTAINERS, content, difference, other_keys, put_back, underlying
from geomctrl.tracing.lines_of_changes import line_of_change
from geomctrl.tracing.untraceable import UntraceableError

from .law_memory import MemoryLengthError, changed_leaves, length_or_order, place_of
from .object_kinds import LoopState

LAW = "controller"  # path of the loop's law

WITH_CONTENTS = (*CONTAINERS, tuple, np.random.Generator)  # classes of objects with contents besides attributes

Filled = Sequence[tuple[Any, str, Any]]  # (clone, path, original contents)


def check_sharing(arrays: Mapping[str, np.ndarray], filled: Filled) -> None:
    """Raise UntraceableError if arrays share memory with each other, or with a clone at another path."""
    own = [(path, x.view(np.ndarray)) for path, x in arrays.items()]
    others = [
        (path, clone.view(np.ndarray))
        for clone, path, _ in filled
        if issubclass(type(clone), np.ndarray) and path not in arrays
    ]
    for k, (path, x) in enumerate(own):
        for other, y in [*own[:k], *others]:
            if other != path and np.may_share_memory(x, y):
                raise UntraceableError(f"{path} and {other} share the same array after the call: copy one of them")


def changes(filled: Filled, kinds: Iterable[type], shared: Set[int]) -> Iterator[tuple[str, Any, bool]]:
    """(path, new value, whether it is another object) for everything that a call has changed.

    Raises UntraceableError if the new value is no number, array or constant, and for clones (by id) of objects that
    code also reaches by a name."""
    contents = {id(clone): before for clone, _, before in filled if isinstance(before, dict)}
    for clone, path, before in filled:
        name = difference(clone, before)
        if name is None:
            continue
        if id(clone) in shared:
            raise UntraceableError(
                f"{path}{name} changes during a call{line_of_change(path + name, kinds)}, and the code also reaches it"
                " as a global, a default argument or an attribute of a class: use one of the two"
            )
        if isinstance(clone, np.random.Generator):
            raise UntraceableError(
                f"{path} draws random numbers during a call{line_of_change(path, kinds)}: draw them in __init__, or"
                " give the noise to a sensor"
            )
        if not path.startswith(LAW):
            line = line_of_change(path + name, kinds)
            raise UntraceableError(f"{path}{name} changes during a call{line}, but does not belong to the law")
        if isinstance(clone, np.ndarray):
            yield path, clone, False
            continue
        now, items = content(clone), isinstance(clone, (list, dict, deque))
        if other_keys(clone, now, before):
            change = (
                f"{path} changes {length_or_order(now, before)}" if items else f"{path}{name} is created or deleted"
            )
            raise (MemoryLengthError if items else UntraceableError)(
                f"{change} during a call{line_of_change(path + name, kinds)}: create it with its final length in"
                " __init__, or return logged data as a signal"
            )
        for key in now:
            place = place_of(path, key, items) if items or key else path  # the value in a cell has no name
            yield from changed_leaves(place, before[key], now[key], contents)


def contents_of(*objects: Any, functions: list[Any] | None = None) -> list[tuple[Any, Any, bool]]:
    """These objects and all that they lead to, each with its contents or, if True, its attributes.

    Lists, tuples, dicts, deques, arrays, random generators, objects of users' and controllers' classes, closure cells,
    defaults and attributes of users' functions are followed; robots never change. functions: gets these functions,
    and users' classes, which have no contents of their own.
    """
    contents: list[tuple[Any, Any, bool]] = []
    seen: dict[int, Any] = {}
    ahead = list(objects)
    while ahead:
        x = ahead.pop()
        kind = type(x)
        if id(x) in seen or issubclass(kind, Mechanism):
            continue
        seen[id(x)] = x
        if issubclass(kind, type):
            if functions is not None and is_own_class(x):
                functions.append(x)
            continue
        if issubclass(kind, (np.ndarray, np.random.Generator)):
            contents.append((x, content(x), False))
        elif issubclass(kind, tuple):
            ahead += x
        elif issubclass(kind, types.MethodType):
            ahead += x.__self__, x.__func__
        elif issubclass(kind, functools.partial):
            ahead += x.func, x.args, x.keywords, x.__dict__
        elif issubclass(kind, types.MappingProxyType):
            ahead.append(underlying(x))
        elif issubclass(kind, types.FunctionType):
            if is_own_function(x):
                if functions is not None:
                    functions.append(x)
                ahead += x.__dict__, x.__defaults__, x.__kwdefaults__, *(x.__closure__ or ())
        elif issubclass(kind, (list, dict, deque, set, types.CellType)) or is_own_class(kind):
            contents.append((x, before := content(x), False))
            ahead += before.values()
        if issubclass(kind, WITH_CONTENTS) and is_own_class(kind):
            contents.append((x, before := content(x, True), True))
            ahead += before.values()
        keyed = next((base for base in (dict, set, frozenset) if issubclass(kind, base)), None)
        if functions is not None and keyed is not None:
            ahead += [key for key in keyed.__iter__(x) if isinstance(key, type)]
        if functions is not None and issubclass(kind, defaultdict):
            ahead.append(x.default_factory)
    return contents


class Snapshot:
    """`contents_of` objects at this time; a call restores them.

    names: also what their code reaches by names, such as globals and attributes of classes.
    """

    def __init__(self, *objects: Any, names: bool = False):
        functions: list[Any] = []
        self._contents, self._state = contents_of(*objects, functions=functions), None
        if not names:
            return
        kinds = dict.fromkeys(kind for x, *_ in self._contents if is_own_class(kind := type(x)))
        with suppress(UntraceableError):
            state = _Reached([(x, x.__name__) for x in functions], kinds)
            state.begin()
            self._state = state

    def __call__(self) -> None:
        if self._state is not None:
            self._state.restored()
        for x, *before in self._contents:
            if difference(x, *before) is not None:
                put_back(x, *before)


class _Reached(LoopState):
    """What code and constructors reach by names, without the objects that compiled code does not support."""

    def _search(self, roots: Iterable[tuple[Any, str]], kinds: Iterable[type]) -> None:
        self._attributes.update(CONSTRUCTORS)
        super()._search(roots, kinds)

    def _visit(self, x: Any, name: str, *, copied: bool = False) -> None:
        with suppress(UntraceableError):
            super()._visit(x, name, copied=copied)


BUFFERS = 99  # input array of a graph for the contents of work buffers before a call; no output may depend on it
MAX_BUFFERS = 16
STATE_ADVICE = (
    "keep it in the state z, with its first value from start() and the next one from Command(z_rate=...) or z_next"
)
ADVICE = {
    "compile": f"gc.compile makes functions of t, q, v and z: {STATE_ADVICE}; or let gc.simulate(..., control_dt=...)"
    " compile the loop, which supports attributes that change",
    "plant": "a plant and its parts can not store data: give a subclass of Plant a state x, by start() and state_rate",
    "monitor": "monitors and measures may change floats and arrays of floats, which start() sets",
    "sampled": "a sampled law may change its own attributes only: make it one of them",
    "always": f"the result would depend on how often the integrator calls the law; {STATE_ADVICE}, or call"
    " simulate(..., control_dt=...)",
}


class SideEffectError(UntraceableError):
    """A call changes something that it must not change; place: its path."""

    def __init__(self, place: str, message: str):
        super().__init__(message)
        self.place = place


T = TypeVar("T")


def with_work_buffers(trace: Callable[[frozenset[str]], T]) -> T:
    """Call `trace` with the paths of a law's work buffers: arrays that a call writes before it reads them."""
    buffers: frozenset[str] = frozenset()
    while True:
        try:
            return trace(buffers)
        except SideEffectError as error:
            if error.place in buffers or len(buffers) == MAX_BUFFERS:
                raise
            buffers |= {error.place}


def require_overwritten(
    traced: Iterable[tuple[Any, Sequence[int]]], place: str, kinds: Iterable[type], advice: str
) -> None:
    """Raise UntraceableError if an output, or what is written, depends on a work buffer's contents before the call."""
    for graph, outputs in traced:
        if any(graph.nodes[k][:2] == ("load", BUFFERS) for k in graph.needed(outputs)):
            raise UntraceableError(
                f"{place} changes during a call{line_of_change(place, kinds)}, and the next call reads it: {advice}"
            )
