"""Twins: copies of a user's objects in which numbers are symbols, so that what an object computes can be traced.

A controller, a plant, a reference know numbers: gains, inertias, amplitudes. In a trace they are inputs, so that one
compilation serves objects that differ in numbers only, and nothing that is traced touches the objects themselves. What
remains of an object without its numbers are `words`: two objects with equal words have the same trace.

Zeros within arrays count as words: a diagonal gain is compiled as a diagonal.
"""

from __future__ import annotations

import functools
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.tracing.arrays import SymbolArray
from geomctrl.tracing.code_identity import (
    PLAIN,
    attributes_of,
    is_own_class,
    is_own_function,
    plain_value,
    set_attributes,
)
from geomctrl.tracing.rebinding import empty_cells, rebind
from geomctrl.tracing.symbols import UntraceableError
from geomctrl.tracing.untraceable import heard
from geomctrl.tracing.untraceable_attribute import UntraceableAttribute, at_work

from .containers import array_word, is_named_tuple, key_word
from .contents import LAW, changes, check_sharing, content, difference, put_back
from .law_memory import Cell, LawMemory, line_of_change, put_at, value_at
from .memory import LIBRARY, MOST, PRINTED, Outside
from .robot_numbers import twin_of_robot

LARGEST = 20_000  # numbers of an array that become symbols; a larger one is a table, and a constant

Load = Callable[[int], Any]


class Twins:
    """Makes twins, and keeps what it met on the way.

    load: the symbol for number k of `values`; None keeps the numbers: a twin is then a copy. constant: all numbers are
    constants of the trace, and words. cells: what a law remembers, by path; memory: the same in a trace.
    """

    def __init__(
        self,
        load: Load | None = None,
        *,
        constant: bool = False,
        cells: Mapping[str, Cell] | None = None,
        memory: LawMemory | None = None,
    ):
        self.memory, self.cells = memory, memory.cells if memory else cells or {}
        self.load, self.constant = None if constant else load, constant
        self.words: list[Any] = []
        self._values: list[np.ndarray] = []
        self._count = 0
        self._twins: dict[int, tuple[int, Any]] = {}
        self._kept: list[Any] = []  # an id is an object's as long as it lives
        self._filled: list[tuple[Any, str, Any]] = []
        self._roots: list[tuple[Any, str]] = []  # functions, classes and modules
        self._kinds: dict[type, None] = {}  # of objects
        self._twinned: list[types.FunctionType] = []
        self._owners: dict[int, list[np.ndarray]] = {}  # twins of arrays by whose memory theirs is
        self._outside: Outside | None = None
        self._remembered_ids: set[int] = set()
        self._chosen: list[tuple[Any, str, Any, Any]] = []  # (law, path, what stands there, what a way has there)
        self._changed = ""  # the first place that a call has written on

    @contextmanager
    def used(self, *, remembering: bool = False) -> Iterator[None]:
        """Twins are called in here. Raises UntraceableError where that changes them, or what else the code reaches;
        the latter is put back. remembering: the law's may change."""
        outside = self.outside
        outside.begin()
        try:
            with at_work(), heard():
                yield
        finally:
            place = outside.restored()
        self.reset(remembering)
        place = place or self._changed
        if place:
            raise UntraceableError(
                f"{place} changes during a call{line_of_change(place, self._kinds)}: it is a memory, which would depend"
                " on how often an integrator calls; keep it in the state z, or sample the law (control_dt)"
            )

    @property
    def outside(self) -> Outside:
        """What the code of what was met reaches by names. Raises UntraceableError where that may be a memory."""
        if self._outside is None:
            self._outside = Outside(self._roots, self._kinds, self._twinned)
        return self._outside

    def key(self) -> tuple:
        """Equal for what has the same trace."""
        finite = np.isfinite(self.values)
        odd = () if finite.all() else tuple(map(repr, np.where(finite, 0.0, self.values).tolist()))
        return *self.words, *self.outside.words, odd

    @property
    def values(self) -> np.ndarray:
        """All numbers that were met."""
        return np.concatenate(self._values) if self._values else np.zeros(0)

    def of(self, x: Any, path: str = "") -> Any:
        """The twin of x."""
        kind, cell = type(x), self.cells.get(path.removeprefix(LAW)) if path.startswith(LAW) else None
        if cell is not None and cell.size:
            return self._remembered(x, path, cell)
        if kind in (list, tuple, dict, deque) and len(x) > MOST:
            return self._unknown(x, path)
        if kind is float or kind is np.float64:
            return self._scalar(x)
        if issubclass(kind, PLAIN):
            self.words.append(plain_value(x))
            self._kept.append(x)
            if kind.__module__ != "builtins" and is_own_class(kind):
                self._roots.append((x, path.lstrip(".")))
            return x
        known = self._twins.get(id(x))
        if known is not None:
            if id(x) in self._remembered_ids:
                raise UntraceableError(f"{path} is an array that a call changes by another name too: copy one of them")
            self.words.append(("again", known[0]))
            return known[1]
        make = MAKERS.get(kind)
        if make is None:
            make = Twins._robot if issubclass(kind, Mechanism) else Twins._named if is_named_tuple(x) else Twins._object
        return make(self, x, path)

    def of_kind(self, kind: type) -> Any:
        """An object of a class, with nothing in it."""
        self._kinds[kind] = None
        self.words.append(kind)
        return object.__new__(kind)

    def reset(self, remembering: bool = False) -> None:
        """Make all twins what they were; the place that a call has written on is remembered for `used`."""
        for law, path, before, x in self._chosen:
            if not remembering and value_at(law, path) is not x:
                self._changed = self._changed or f"{LAW}{path}"
            put_at(law, path, before)
        self._chosen.clear()
        for twin, path, before in self._filled:
            name = difference(twin, before)
            if name is not None:
                if not (remembering and path.startswith(LAW)):
                    self._changed = self._changed or f"{path}{name}".lstrip(".")
                put_back(twin, before)

    def choose(self, law: Any) -> None:
        """Let the law's twin, at the beginning of a way, have one of the values that are no numbers; asks which."""
        for path, cell in self.cells.items():
            if cell.values and self.memory is not None:
                before, x = value_at(law, path), self.memory.value(path)
                self._chosen.append((law, path, before, x))
                put_at(law, path, x)

    def check_sharing(self, arrays: dict[str, np.ndarray]) -> None:
        """Raise UntraceableError where arrays that are remembered share their memory with others."""
        check_sharing({f"{LAW}{path}": x for path, x in arrays.items()}, self._filled)

    def changes(self) -> Iterator[tuple[str, Any, bool]]:
        """(path, what it is now, whether as another object) of what a call has changed. Raises UntraceableError where
        that is no number, array or value."""
        return changes(self._filled, self._kinds)

    # --- what an object can be -----------------------------------------------------------------------------------

    def _begin(self, x: Any, twin: Any, *words: Any) -> Any:
        """Twin `twin` of x, from now on."""
        self._twins[id(x)] = len(self._twins), twin
        self._kept.append(x)
        self.words.append((type(x), *words))
        return twin

    def _numbers(self, x: np.ndarray) -> np.ndarray:
        """The symbols of an array's numbers, in their order; a copy where they stay numbers."""
        first, flat = self._count, np.array(x, float).ravel()
        self._count += flat.size
        self._values.append(flat)
        if self.load is None:
            return flat.reshape(np.shape(x)).copy()
        out = np.empty(flat.size, object)
        out[:] = [self.load(k) for k in range(first, self._count)]
        return out.reshape(np.shape(x))

    def _scalar(self, x: float) -> Any:
        if self.constant:
            self.words.append(float(x).hex())
            return x
        self.words.append(float)
        return self._numbers(np.array([x])).item()

    def _remembered(self, x: Any, path: str, cell: Cell) -> Any:
        """What a law remembers is neither a word nor one of the numbers: all loops have it as their state."""
        self.words.append((path, cell, tuple(map(type, cell.values))))
        words, twin = len(self.words), x
        if self.memory is not None:
            twin = x if cell.values else self.memory.value(path.removeprefix(LAW))
        if isinstance(x, np.ndarray):
            twin = x.copy() if isinstance(twin, np.ndarray) and twin is x else twin
            if id(x) in self._twins:
                raise UntraceableError(f"{path} is an array that a call changes by another name too: copy one of them")
            self._remembered_ids.add(id(x))
            self._begin(x, twin)
            entries = twin.copy() if twin.dtype != object else twin.view(np.ndarray).ravel().tolist()
            self._filled.append((twin, path, entries))
            self.is_twin(twin, x)
        del self.words[words:]
        return twin

    def _array(self, x: np.ndarray, path: str) -> Any:
        if x.dtype == object:
            return self._unknown(x, path)
        if x.dtype != np.float64 or self.constant or x.size > LARGEST:
            twin = self._begin(x, x.copy(), *array_word(x))
        else:
            numbers, zero = self._numbers(x), (x == 0.0).ravel() & ~np.signbit(x).ravel()
            if self.load is not None:
                if x.size > 1:
                    numbers.ravel()[zero] = 0.0
                numbers = numbers.view(SymbolArray)
            twin = self._begin(x, numbers, x.shape, zero.tobytes())
        self._filled.append(
            (twin, path, x if twin.dtype == x.dtype != object else twin.view(np.ndarray).ravel().tolist())
        )
        self.is_twin(twin, x)
        return twin

    def is_twin(self, twin: np.ndarray, x: np.ndarray) -> None:
        """Twins of arrays that share their memory do not: nothing may write on them."""
        owner: Any = x
        while owner.base is not None and (isinstance(owner, np.ndarray) or isinstance(owner.base, np.ndarray)):
            owner = owner.base
            if not isinstance(owner, np.ndarray):
                break
        self._kept.append(owner)
        twins = self._owners.setdefault(id(owner), [])
        twins.append(twin)
        if len(twins) > 1:
            for twin in twins:
                twin.flags.writeable = False

    def _list(self, x: list, path: str) -> list:
        twin = self._begin(x, [], len(x))
        twin += [self.of(value, f"{path}[{k}]") for k, value in enumerate(x)]
        return self._done(twin, path)

    def _deque(self, x: deque, path: str) -> deque:
        twin = self._begin(x, deque(maxlen=x.maxlen), len(x), x.maxlen)
        twin += [self.of(value, f"{path}[{k}]") for k, value in enumerate(x)]
        return self._done(twin, path)

    def _tuple(self, x: tuple, path: str) -> tuple:
        self.words.append(len(x))
        return self._begin(x, tuple([self.of(value, f"{path}[{k}]") for k, value in enumerate(x)]))

    def _named(self, x: Any, path: str) -> Any:
        kind, fields = type(x), type(x)._fields
        values = [self.of(value, f"{path}.{n}") for n, value in zip(fields, tuple.__iter__(x), strict=False)]
        twin = self._begin(x, tuple.__new__(kind, values), len(values))
        self._kinds[kind] = None
        set_attributes(twin, {n: self.of(value, f"{path}.{n}") for n, value in attributes_of(x).items()})
        return twin

    def _dict(self, x: Any, path: str) -> Any:
        keys = tuple(map(key_word, x))
        if None in keys:
            return self._unknown(x, path)
        kind = type(x)
        twin: Any = self._begin(x, kind() if kind in (OrderedDict, defaultdict, Counter) else {}, keys)
        if kind is defaultdict:
            twin.default_factory = self.of(x.default_factory, f"{path}.default_factory")
        for key, value in x.items():
            self._kept.append(key)
            twin[key] = self.of(value, f"{path}[{key!r}]")
        return self._done(twin, path)

    def _robot(self, x: Mechanism, path: str) -> Mechanism:
        return twin_of_robot(self, x, path)

    def _function(self, x: types.FunctionType, path: str) -> Any:
        self._roots.append((x, path))
        if not is_own_function(x) or not (x.__closure__ or x.__defaults__ or x.__kwdefaults__):
            return self._opaque(x, path)
        self._twinned.append(x)
        cells = empty_cells(x)
        twin = self._begin(x, rebind(x, closure=cells), id(x.__code__))
        twin.__defaults__, twin.__kwdefaults__ = (
            self.of(x.__defaults__, f"{path}.__defaults__"),
            self.of(x.__kwdefaults__, f"{path}.__kwdefaults__"),
        )
        for name, cell, original in zip(x.__code__.co_freevars, cells, x.__closure__ or ()):
            try:
                cell.cell_contents = self.of(original.cell_contents, f"{path}.{name}")
            except ValueError:  # not filled yet
                continue
        return self._done(twin, path)

    def _method(self, x: types.MethodType, path: str) -> Any:
        self._roots.append((x.__func__, path))
        return types.MethodType(x.__func__, self.of(x.__self__, path))

    def _partial(self, x: functools.partial, path: str) -> Any:
        return functools.partial(
            self.of(x.func, path), *self.of(x.args, f"{path}.args"), **self.of(x.keywords, f"{path}.keywords")
        )

    def _generator(self, x: np.random.Generator, path: str) -> Any:
        twin = np.random.Generator(type(x.bit_generator)())
        twin.bit_generator.state = x.bit_generator.state
        self._begin(x, twin)
        self._filled.append((twin, path, x.bit_generator.state))
        return twin

    def _object(self, x: Any, path: str) -> Any:
        kind = type(x)
        if issubclass(kind, LIBRARY) or kind.__module__ == "typing":
            return self._opaque(x, path)
        if not is_own_class(kind) or issubclass(type(x), (list, dict, set, tuple, np.ndarray)):
            return self._unknown(x, path)
        try:
            twin = kind() if kind is types.SimpleNamespace else object.__new__(kind)
        except TypeError:
            return self._unknown(x, path)
        self._kinds[kind] = None
        self._begin(x, twin)
        attributes = {}
        for name, value in attributes_of(x).items():
            self.words.append(name)
            attributes[name] = self.of(value, f"{path}.{name}")
        set_attributes(twin, attributes)
        return self._done(twin, path)

    def _opaque(self, x: Any, path: str) -> Any:
        self.words.append(id(x))
        self._kept.append(x)
        return x

    def _builtin(self, x: Any, path: str) -> Any:
        return self._unknown(x, path) if x in PRINTED else self._root(x, path)

    def _root(self, x: Any, path: str) -> Any:
        self._roots.append((x, path.lstrip(".")))
        return self._opaque(x, path)

    def _unknown(self, x: Any, path: str) -> Any:
        return self._begin(x, UntraceableAttribute(path, type(x)))

    def _done(self, twin: Any, path: str) -> Any:
        self._filled.append((twin, path, content(twin)))
        return twin


MAKERS: dict[type, Callable[[Twins, Any, str], Any]] = {
    np.ndarray: Twins._array,
    SymbolArray: Twins._opaque,
    list: Twins._list,
    deque: Twins._deque,
    tuple: Twins._tuple,
    dict: Twins._dict,
    types.MappingProxyType: Twins._dict,
    types.FunctionType: Twins._function,
    types.MethodType: Twins._method,
    functools.partial: Twins._partial,
    np.random.Generator: Twins._generator,
    type: Twins._root,
    types.ModuleType: Twins._root,
    types.BuiltinFunctionType: Twins._builtin,
    defaultdict: Twins._dict,
    OrderedDict: Twins._dict,
    Counter: Twins._dict,
}
