"""Copies of a user's objects in which numbers are symbols, so that tracing runs the user's code on the copies.

The numbers of a controller, plant or reference (gains, inertias, amplitudes) are inputs of the trace. One compilation
therefore serves all objects that differ in numbers only, and tracing never changes the objects themselves. The
`signature` is the rest of an object: two objects with equal signatures have the same trace.

Zeros within arrays belong to the signature: a diagonal gain is compiled as a diagonal.
"""

from __future__ import annotations

import functools
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.tracing.arrays import SymbolArray, entered, symbol_array
from geomctrl.tracing.code_identity import (
    PLAIN,
    attributes_of,
    identity,
    is_own_class,
    plain_value,
    set_attributes,
)
from geomctrl.tracing.constant_arrays import visible
from geomctrl.tracing.containers import (
    GETTERS,
    TABLES,
    array_signature,
    content,
    difference,
    is_named_tuple,
    owner_of,
    put_back,
    shared_array,
    storage,
    table_signature,
)
from geomctrl.tracing.lines_of_changes import line_of_change
from geomctrl.tracing.object_kinds import LIBRARY, MAX_THINGS, POLYNOMIALS
from geomctrl.tracing.patched_numpy import replacement_of
from geomctrl.tracing.rotations import is_single_rotation, of_quaternion
from geomctrl.tracing.symbols import UntraceableError, as_numpy, as_python, is_symbol
from geomctrl.tracing.type_tests import refuse_identity
from geomctrl.tracing.untraceable import reraise_untraceable
from geomctrl.tracing.untraceable_attribute import UntraceableAttribute, at_work

from .contents import ADVICE, LAW, SideEffectError, require_overwritten
from .copies_of_containers import copy_of_dict, copy_of_frozenset, copy_of_generator, copy_of_proxy
from .copies_of_functions import copy_of_cell, copy_of_function, copy_of_method, copy_of_named, copy_of_partial
from .law_memory import Cell, LawMemory, place_of, put_at, value_at
from .object_kinds import LoopState
from .robot_numbers import copy_of_robot

CONTAINERS = {list, tuple, dict, deque}
MAX_SYMBOLIC_SIZE = 20_000  # largest array whose numbers become symbols; larger ones are constant tables


class SymbolicCopies:
    """Creates the copies and records every copied object.

    load: the symbol for number k of `values`; None keeps the numbers, so that clones are plain copies. constant:
    numbers are constants of the trace and part of the signature. cells: the law's memory by path; memory: its symbols.
    buffers: paths of work buffers, whose entries before a call are `buffer(k)`; advice: how to avoid a change during a
    call.
    """

    def __init__(
        self,
        load: Callable[[int], Any] | None = None,
        *,
        constant: bool = False,
        cells: Mapping[str, Cell] | None = None,
        memory: LawMemory | None = None,
        buffer: Callable[[int], Any] | None = None,
        buffers: frozenset[str] = frozenset(),
        advice: str = "",
        writable: bool = False,
    ):
        self.writable = writable  # whether constant arrays of numbers accept symbols
        self.buffer, self.buffers, self.advice = buffer, buffers, advice
        self.traced: list[tuple[Any, Sequence[int]]] = []  # graphs and their outputs, which must not depend on buffers
        self.memory, self.cells = memory, memory.cells if memory else cells or {}
        self.symbolic = load is not None or buffer is not None
        self.load, self.constant = None if constant else load, constant
        self.signature: list[Any] = []
        self._values, self._latest_values = np.zeros(0), []  # all numbers, and arrays that are not copied to them yet
        self._count = 0
        self._copies: dict[int, tuple[int, Any]] = {}
        self._kept: list[Any] = []  # keeps objects alive, so that their id() is not reused
        self.filled: list[tuple[Any, str, Any]] = []
        self._written: list[tuple[np.ndarray, str, list]] = []  # work buffers, their paths and previous contents
        self._overwriting: list[Any] = []  # symbols that calls write into work buffers
        self._roots: list[tuple[Any, str]] = []  # functions, classes and modules
        self.kinds: dict[type, None] = {}  # classes of objects
        self._line_of_law = ""  # file and line of its __call__
        self._copied_functions: list[types.FunctionType] = []
        # copies of arrays, and their contents in `filled`, by the owner of their memory
        self._owners: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        self.protected: set[int] = set()  # copies, by id, that are read-only although the user's arrays are not
        self._external_state: LoopState | None = None
        self._remembered_ids: set[int] = set()
        self._chosen: list[tuple[Any, str, Any, Any]] = []  # (law, path, current value, value on this path)
        self._repeated = ""  # path of a list or deque with one array in several places
        self._changed = ""  # the first place that a call has modified

    @contextmanager
    def used(self, *, remembering: bool = False) -> Iterator[None]:
        """Context for calls of copies.

        Raises UntraceableError if a call changes them or other reachable state, and restores both. remembering: the
        law's own attributes may change.
        """
        state = self.external_state
        state.begin()
        try:
            with at_work(), reraise_untraceable():
                yield
        finally:
            place = state.restored()
        self.reset(remembering)
        if place := place or self._changed:
            advice = ADVICE.get(place.replace(" ", ".").partition(".")[0], self.advice)
            line = line_of_change(place, self.code) or self._line_of_law
            raise SideEffectError(place, f"{place} changes during a call{line}: {advice}")
        contents = [(x.graph, [y.index for y in self._overwriting]) for x in self._overwriting[:1]]
        require_overwritten([*self.traced, *contents], min(self.buffers, default=""), self.kinds, self.advice)

    @functools.cached_property
    def code(self) -> list[Any]:
        """The classes of copied objects, and the functions that the code reaches."""
        return [*self.kinds, *(x for x in self.external_state.reached if type(x) is types.FunctionType)]

    @property
    def external_state(self) -> LoopState:
        """The external state that the code reaches by names. Raises UntraceableError if that may be memory."""
        if self._external_state is None:
            self._external_state = LoopState(self._roots, self.kinds, self._copied_functions)
            reached = self._external_state.reached
            if place := self._repeated or shared_array(reached, self._copies, self.filled):
                refuse_identity(reached, place)
        return self._external_state

    @functools.cached_property
    def shared(self) -> set[int]:
        """The copies, by id, of objects and closure cells that code also reaches by a name."""
        outside = self.external_state
        ids = {id(x) for x in outside.reached} | {id(x) for _, x, *_ in outside.held}
        owners = [id(owner_of(x)) for x in outside.reached if isinstance(x, np.ndarray)]
        views = [y for owner in owners for y, _ in self._owners.get(owner, ())]
        return {id(clone) for number, (_, clone) in self._copies.items() if number in ids} | set(map(id, views))

    def key(self) -> tuple:
        """Equal for objects with the same trace."""
        finite = np.isfinite(values := self.values)
        odd = () if finite.all() else tuple(map(repr, np.where(finite, 0.0, values).tolist()))
        return *self.signature, *self.external_state.signature, odd

    @property
    def values(self) -> np.ndarray:
        """All recorded numbers."""
        if self._latest_values:
            self._values, self._latest_values = np.concatenate([self._values, *self._latest_values]), []
        return self._values

    def of(self, x: Any, path: str = "") -> Any:
        """The clone of x."""
        kind = type(x)
        cell = self.cells.get(path.removeprefix(LAW)) if self.cells and path.startswith(LAW) else None
        if cell is not None and cell.size:
            return self._remembered(x, path, cell)
        if kind is float or kind is np.float64:
            return self._scalar(x)
        if kind in CONTAINERS and len(x) > MAX_THINGS:
            return self._unknown(x, path)
        if issubclass(kind, PLAIN):
            self.signature.append(plain_value(x))
            if kind.__module__ != "builtins" and is_own_class(kind):
                self._roots.append((x, path.lstrip(".")))
            return x
        entry = self._copies.get(id(x))
        if entry is not None:
            if id(x) in self._remembered_ids:
                raise self._changed_twice(path)
            self.signature.append(("again", entry[0]))
            return entry[1]
        make = MAKERS.get(kind) or (copy_of_robot if issubclass(kind, Mechanism) else SymbolicCopies._object)
        return make(self, x, path)

    def of_kind(self, kind: type) -> Any:
        """An empty object of a class."""
        self.kinds[kind] = None
        self.signature.append(kind)
        return object.__new__(kind)

    def reset(self, remembering: bool = False) -> None:
        """Restore all copies; a modified place is recorded for `used`."""
        for law, path, before, x in self._chosen:
            if not remembering and value_at(law, path) is not x:
                self._changed = self._changed or f"{LAW}{path}"
            put_at(law, path, before)
        self._chosen.clear()
        for clone, path, entries in self._written:
            if not clone.flags.writeable:
                self._changed = self._changed or f"{path.lstrip('.')}.flags.writeable"
                clone.flags.writeable = True
            now = clone.view(np.ndarray).ravel().tolist()
            self._overwriting += [y for x, y in zip(entries, now) if is_symbol(y) and y.index != x.index]
            clone.view(np.ndarray).ravel()[:] = entries
        for clone, path, before in self.filled:
            name = difference(clone, before)
            if name is not None:
                if not (remembering and path.startswith(LAW)):
                    self._changed = self._changed or f"{path}{name}".lstrip(".")
                put_back(clone, before)

    def choose(self, law: Any) -> None:
        """Give the law's clone one of several values or flags at the beginning of a path; branches on the choice."""
        for path, cell in self.cells.items():
            if cell.branches and self.memory is not None:
                before, x = value_at(law, path), self.memory.value(path)
                if id(before) in self.protected:
                    raise self._changed_twice(f"{LAW}{path}")
                self._chosen.append((law, path, before, x))
                put_at(law, path, x)

    def _begin(self, x: Any, clone: Any, *marks: Any) -> Any:
        """Register `clone` as the copy of x and return it."""
        self._copies[id(x)] = len(self._copies), clone
        self._kept.append(x)
        self.signature.append((type(x), *marks))
        return clone

    def _numbers(self, x: np.ndarray) -> np.ndarray:
        """The symbols of an array's numbers in order; a copy if they remain numbers."""
        first, flat = self._count, x.ravel() if self.load is None else x.flatten()
        self._count += flat.size
        self._latest_values.append(flat)
        if self.load is None:
            return x.astype(float)
        symbols = (as_numpy(self.load(k)) for k in range(first, self._count))
        return np.fromiter(symbols, object, flat.size).reshape(np.shape(x))

    def _scalar(self, x: float) -> Any:
        if self.constant:
            self.signature.append(float(x).hex())
            return x
        self.signature.append(type(x))
        number = self._numbers(np.array([x])).item()
        if self.load is None:
            return x
        return as_python(number) if type(x) is float else as_numpy(number)

    def _remembered(self, x: Any, path: str, cell: Cell) -> Any:
        """The memory of a law is part of the state, not of the signature or the numbers."""
        self.signature.append((path, cell, tuple(map(type, cell.values))))
        mark, clone = len(self.signature), x
        if self.memory is not None and not cell.branches:
            clone = self.memory.value(path.removeprefix(LAW))
        if isinstance(x, np.ndarray):
            clone = x.copy() if isinstance(clone, np.ndarray) and clone is x else clone
            if id(x) in self._copies:
                raise self._changed_twice(path)
            self._remembered_ids.add(id(x))
            self._begin(x, clone)
            self.filled.append((clone, path, before := content(clone)))
            self.is_copy(clone, x, before)
        del self.signature[mark:]
        return clone

    def _changed_twice(self, path: str) -> UntraceableError:
        line = line_of_change(path, self.kinds) or self._line_of_law
        return UntraceableError(f"{path} is an array that a call changes under another name too{line}: copy it")

    def _array(self, x: np.ndarray, path: str) -> Any:
        if x.dtype.kind == "O":
            return self._unknown(x, path)
        if self.buffer is not None and x.dtype == np.float64 and path.lstrip(".") in self.buffers:
            clone = symbol_array([self.buffer(k) for k in range(x.size)], x.shape)
            self._begin(x, clone, x.shape)
            self._written.append((clone, path, clone.view(np.ndarray).ravel().tolist()))
            self.is_copy(clone, x, clone)
            return clone
        if x.dtype != np.float64 or self.constant or self.writable or x.size > MAX_SYMBOLIC_SIZE:
            writable = self.writable and x.dtype == np.float64 and x.size <= MAX_SYMBOLIC_SIZE
            clone = x.astype(object).view(SymbolArray) if writable else x.copy(order="K")
            clone = visible(clone) if self.symbolic else clone
            self._begin(x, clone, *array_signature(x))
        else:
            numbers = self._numbers(x)
            zero = self._latest_values[-1].view(np.int64) == 0  # but not -0.0
            if self.load is not None:
                if x.size > 1:
                    numbers.ravel()[zero] = 0.0
                numbers = entered(numbers)
            clone = self._begin(x, numbers, x.shape, storage(x), zero.tobytes())
        clone.flags.writeable = x.flags.writeable
        self.filled.append((clone, path, before := x.view() if clone.dtype == x.dtype else content(clone)))
        self.is_copy(clone, x, before)
        return clone

    def is_copy(self, clone: np.ndarray, x: np.ndarray, before: np.ndarray) -> None:
        """Record a copy. Copies of arrays with common memory do not share it: such arrays must not be modified."""
        self._kept.append(owner := owner_of(x))
        copies = self._owners.setdefault(id(owner), [])
        copies.append((clone, before))
        for pair in copies if len(copies) > 1 else ():
            for array in pair:
                if array.flags.writeable:
                    self.protected.add(id(array))
                array.flags.writeable = False

    def _list(self, x: list | deque, path: str) -> Any:
        """A copy with copies of the entries. An array in several places, as in [zeros] * 3, has symbols for each."""
        maxlen = x.maxlen if isinstance(x, deque) else None
        clone = self._begin(x, deque(maxlen=maxlen) if isinstance(x, deque) else [], len(x), maxlen)
        copies: dict[int, Any] = {}
        for k, value in enumerate(x):
            if again := type(value) is np.ndarray and id(value) in copies:
                self._repeated = path
                self.signature.append(("again", self._copies.pop(id(value))[0]))
            entry = self.of(value, f"{path}[{k}]")
            clone.append(copies[id(value)] if again and not self.symbolic else entry)
            copies.setdefault(id(value), entry)
        return self._done(clone, path)

    def _tuple(self, x: tuple, path: str) -> tuple:
        """A copy for each path, because the entries may be different memory."""
        self.signature.append((tuple, len(x)))
        return tuple([self.of(value, f"{path}[{k}]") for k, value in enumerate(x)])

    def _named(self, x: Any, path: str) -> Any:
        kind, fields = type(x), type(x)._fields
        values = [self.of(value, f"{path}.{n}") for n, value in zip(fields, tuple.__iter__(x), strict=False)]
        clone = tuple.__new__(kind, values)
        self.signature.append((kind, len(values)))
        self.kinds[kind] = None
        set_attributes(clone, {n: self.of(value, f"{path}.{n}") for n, value in attributes_of(x).items()})
        return clone

    def _object(self, x: Any, path: str) -> Any:
        kind = type(x)
        if is_named_tuple(x):
            return self._named(x, path)
        if kind is object or issubclass(kind, LIBRARY) or kind.__module__ == "typing":
            return self._opaque(x, path)
        if is_single_rotation(x):
            return self._rotation(x, path)
        if kind.__module__.startswith(TABLES):
            self.signature.append(table_signature(x))  # calls do not change a table of scipy; its numbers are constants
            return self._begin(x, x)
        if not (is_own_class(kind) or kind in POLYNOMIALS) or issubclass(type(x), (list, dict, set, tuple, np.ndarray)):
            return self._unknown(x, path)
        try:
            clone = kind() if kind is types.SimpleNamespace else object.__new__(kind)
        except TypeError:
            return self._unknown(x, path)
        self.kinds[kind] = None
        if path == LAW:
            calls = (getattr(vars(base).get("__call__"), "__code__", None) for base in kind.__mro__)
            lines = (f", in {code.co_filename}, line {code.co_firstlineno}" for code in calls if code)
            self._line_of_law = next(lines, "")
        self._begin(x, clone)
        attributes = {}
        for name, value in attributes_of(x).items():
            self.signature.append(name)
            attributes[name] = self.of(value, place_of(path, name, False))
        set_attributes(clone, attributes)
        return self._done(clone, path)

    def _rotation(self, x: Any, path: str) -> Any:
        """A rotation of scipy, which does not change; its quaternion's numbers are symbols like those of an array."""
        self._kept.append(q := x.as_quat())
        numbers = self.of(q, f"{path}.as_quat()")
        return self._begin(x, of_quaternion(numbers.tolist()) if self.symbolic else x)

    def _opaque(self, x: Any, path: str) -> Any:
        self.signature.append(identity(x))
        return replacement_of(x) if self.symbolic else x

    def _unknown(self, x: Any, path: str) -> Any:
        return self._begin(x, UntraceableAttribute(path, type(x)))

    def _done(self, clone: Any, path: str) -> Any:
        self.filled.append((clone, path, content(clone)))
        return clone


MAKERS: dict[type, Callable[[SymbolicCopies, Any, str], Any]] = {
    np.ndarray: SymbolicCopies._array,
    SymbolArray: SymbolicCopies._opaque,
    list: SymbolicCopies._list,
    deque: SymbolicCopies._list,
    tuple: SymbolicCopies._tuple,
    frozenset: copy_of_frozenset,
    types.FunctionType: copy_of_function,
    types.CellType: copy_of_cell,
    types.MethodType: copy_of_method,
    functools.partial: copy_of_partial,
    types.MappingProxyType: copy_of_proxy,
    np.random.Generator: copy_of_generator,
    **dict.fromkeys((dict, defaultdict, OrderedDict, Counter), copy_of_dict),
    **dict.fromkeys((type, types.ModuleType, types.BuiltinFunctionType, type(np.where), *GETTERS), copy_of_named),
}
