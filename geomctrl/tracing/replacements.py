"""`Replacements`: members of modules, classes and functions of packages that have been replaced (monkeypatching)."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from operator import attrgetter, is_, itemgetter
from typing import Any, NamedTuple

from .code_identity import CREATED, functions_in
from .locks import members_replaced

CODE, DEFAULTS, BASES = attrgetter("__code__"), attrgetter("__defaults__"), attrgetter("__bases__")
EQUAL_TO_OTHERS = (int, float, complex, tuple, frozenset)
MEMBERS = (types.FunctionType, types.BuiltinFunctionType, type, int, float, str, tuple)


class Replacements:
    """Members of modules, classes and functions of packages that have been replaced since import (monkeypatching).

    The packages are in the same state if `now` returns equal values. A module is inspected for the first time after its
    import.
    """

    def __init__(self, *packages: str, without: tuple[str, ...] = ()):
        self._packages, self._without = tuple(f"{name}." for name in packages), without
        self._imported, self._modules = 0, set[str]()
        self._spaces: dict[str, _Space] = {}  # modules and classes by location
        self._views: list[Iterable[Any]] = []  # their members, which the views follow
        self._functions: list[types.FunctionType] = []
        self._classes: list[type] = []
        self._first: list[list[Any]] = []  # the first result of `_read`
        self._all: list[Any] = []  # the entries of these lists
        self._numbers: Callable[[list[Any]], Iterable[Any]] = (
            tuple  # those to which others may be equal, as -0.0 to 0.0
        )
        self._result: list[tuple[str, list[Any]]] | None = None

    @contextmanager
    def with_cached_result(self) -> Iterator[None]:
        """Context in which `now` returns its initial value."""
        self._result = self.now()
        try:
            yield
        finally:
            self._result = None

    def now(self) -> list[tuple[str, list[Any]]]:
        """Return the changed locations with their members; [] if there are none."""
        result = self._result  # another thread may reset it
        if result is not None:
            return result
        with members_replaced:  # not while another thread traces: it replaces members for a moment
            return self._now()

    def _now(self) -> list[tuple[str, list[Any]]]:
        if len(sys.modules) != self._imported:
            self._watch_new_modules()
        if self._is_unchanged():
            return []
        changed, first = [], [*self._first]
        for k, (name, members) in enumerate(
            zip([*self._spaces, "code", "defaults", "bases"], self._read(), strict=True)
        ):
            if len(members) != len(self._first[k]) or not all(map(is_, members, self._first[k])):
                others = self._replaced(name, self._first[k]) if name in self._spaces else members
                if others is None:
                    self._first[k] = members
                else:
                    changed.append((name, others))
        if not all(map(is_, first, self._first)):
            self._find_numbers()
        return changed

    def _replaced(self, name: str, first: list[Any]) -> list[Any] | None:
        """The watched members of a module or class; None if they are the earlier ones."""
        space = self._spaces[name]
        before, members = dict(zip(space.names, first)), dict(space.members)
        watched = {*before, *members} - CREATED if space.watched is None else space.watched
        if any(members.get(k) is not before.get(k) for k in watched):
            return [members.get(k) for k in sorted(watched)]
        self._spaces[name] = space._replace(names=tuple(members))
        return None

    def _read(self) -> list[list[Any]]:
        """The members of modules and classes, and the code, defaults and bases of functions and classes."""
        attributes = (CODE, self._functions), (DEFAULTS, self._functions), (BASES, self._classes)
        return [*map(list, self._views), *([*map(of, owners)] for of, owners in attributes)]

    def _watch_new_modules(self) -> None:
        self._imported, count = len(sys.modules), len(self._views)
        for name, module in list(sys.modules.items()):
            new = name not in self._modules and f"{name}.".startswith(self._packages)
            if new and not name.startswith(self._without) and isinstance(module, types.ModuleType):
                self._modules.add(name)
                self._watch_module(name, module)
        read, first = self._read(), self._first or [[], [], []]
        attributes = [[*old, *now[len(old) :]] for old, now in zip(first[-3:], read[-3:])]
        self._first = [*first[:-3], *read[count:-3], *attributes]
        self._find_numbers()

    def _find_numbers(self) -> None:
        self._all = [*chain.from_iterable(self._first)]
        places = [j for j, x in enumerate(self._all) if isinstance(x, EQUAL_TO_OTHERS)]
        self._numbers = itemgetter(*places, places[0]) if places else lambda _: ()  # a tuple, also of one place

    def _is_unchanged(self) -> bool:
        """Whether all entries are the earlier ones. Lists compare identical entries without calling them."""
        entries = [*chain.from_iterable(self._views), *map(CODE, self._functions), *map(DEFAULTS, self._functions)]
        entries += map(BASES, self._classes)
        try:
            return entries == self._all and all(map(is_, self._numbers(entries), self._numbers(self._all)))
        except Exception:  # of an array, or of a user's class
            return False

    def _watch_module(self, name: str, module: types.ModuleType) -> None:
        members = {k: x for k, x in vars(module).items() if isinstance(x, MEMBERS) and not k.startswith("__")}
        self._watch(name, vars(module), frozenset(members))
        classes = [x for x in members.values() if isinstance(x, type) and x.__module__ == name]
        for kind in classes:
            self._watch(f"{name}.{kind.__qualname__}", vars(kind))
        held = [*members.values(), *(x for kind in classes for x in vars(kind).values())]
        self._functions += {id(f): f for x in held for f in functions_in(x) if f.__module__ == name}.values()
        self._classes += classes

    def _watch(self, name: str, members: Mapping[str, Any], watched: frozenset[str] | None = None) -> None:
        if name not in self._spaces:
            self._spaces[name] = _Space(members, tuple(members), watched)
            self._views.append(members.values())


class _Space(NamedTuple):
    """The members of a module or class, their names when they were read, and those that are watched (None: all)."""

    members: Mapping[str, Any]
    names: tuple[str, ...]
    watched: frozenset[str] | None
