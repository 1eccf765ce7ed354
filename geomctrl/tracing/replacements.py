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

ATTRIBUTES = {name: attrgetter(f"__{name}__") for name in ("code", "defaults", "kwdefaults", "bases")}
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
        # what has code, defaults, defaults of keywords and bases, in the order of `ATTRIBUTES`
        self._owners: tuple[list[Any], ...] = tuple([] for _ in ATTRIBUTES)
        self._first: list[list[Any]] = []  # the first result of `_read`
        self._all: list[Any] = []  # the entries of these lists
        # those to which others may be equal, as -0.0 to 0.0
        self._numbers: Callable[[list[Any]], Iterable[Any]] = tuple
        self._first_numbers: Iterable[Any] = ()
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
        for k, (name, members) in enumerate(zip([*self._spaces, *ATTRIBUTES], self._read(), strict=True)):
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
        """The members of modules and classes, and the attributes of functions and classes."""
        return [*map(list, self._views), *map(list, self._attributes())]

    def _attributes(self) -> Iterator[Iterator[Any]]:
        return map(map, ATTRIBUTES.values(), self._owners)

    def _watch_new_modules(self) -> None:
        self._imported, count = len(sys.modules), len(self._views)
        for name, module in list(sys.modules.items()):
            new = name not in self._modules and f"{name}.".startswith(self._packages)
            if new and not name.startswith(self._without) and isinstance(module, types.ModuleType):
                self._modules.add(name)
                self._watch_module(name, module)
        n = len(ATTRIBUTES)
        read, first = self._read(), self._first or [[] for _ in ATTRIBUTES]
        attributes = [[*old, *now[len(old) :]] for old, now in zip(first[-n:], read[-n:])]
        self._first = [*first[:-n], *read[count:-n], *attributes]
        self._find_numbers()

    def _find_numbers(self) -> None:
        self._all = [*chain.from_iterable(self._first)]
        places = [j for j, x in enumerate(self._all) if isinstance(x, EQUAL_TO_OTHERS)]
        self._numbers = itemgetter(*places, places[0]) if places else lambda _: ()  # a tuple, also of one place
        self._first_numbers = self._numbers(self._all)

    def _is_unchanged(self) -> bool:
        """Whether all entries are the earlier ones. Lists compare identical entries without calling them."""
        self._all.copy()  # reads all objects in one tight loop: cache misses, which cost most of the time, overlap
        entries = [*chain.from_iterable(self._views), *chain.from_iterable(self._attributes())]
        try:
            return entries == self._all and all(map(is_, self._numbers(entries), self._first_numbers))
        except Exception:  # of an array, or of a user's class
            return False

    def _watch_module(self, name: str, module: types.ModuleType) -> None:
        members = {k: x for k, x in vars(module).items() if isinstance(x, MEMBERS) and not k.startswith("__")}
        self._watch(name, vars(module), frozenset(members))
        classes = [x for x in members.values() if isinstance(x, type) and x.__module__ == name]
        for kind in classes:
            self._watch(f"{name}.{kind.__qualname__}", vars(kind))
        held = [*members.values(), *(x for kind in classes for x in vars(kind).values())]
        functions = {id(f): f for x in held for f in functions_in(x) if f.__module__ == name}.values()
        for f in functions:
            if f.__kwdefaults__:
                self._watch(f"{name}.{f.__qualname__}", f.__kwdefaults__)
        # a default has a meaning for a parameter only, and another code is seen; many functions have no such parameters
        positional = [f for f in functions if f.__code__.co_argcount]
        by_keyword = [f for f in functions if f.__code__.co_kwonlyargcount]
        for owners, new in zip(self._owners, (functions, positional, by_keyword, classes), strict=True):
            owners += new

    def _watch(self, name: str, members: Mapping[str, Any], watched: frozenset[str] | None = None) -> None:
        if name not in self._spaces:
            self._spaces[name] = _Space(members, tuple(members), watched)
            self._views.append(members.values())


class _Space(NamedTuple):
    """The members of a module or class, their names when they were read, and those that are watched (None: all)."""

    members: Mapping[str, Any]
    names: tuple[str, ...]
    watched: frozenset[str] | None
