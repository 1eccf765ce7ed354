"""Attributes that a sampled law changes, as discrete state of the compiled loop.

A law that is called once per sample may count, filter and latch. It may change numbers and arrays in its attributes,
or in objects, lists, tuples, dicts and deques of fixed length that it owns. Compiled code stores them with the held
command. A value that is no number (None, True, "swing") is stored as an index into the values seen while tracing; the
law is traced on a separate path for each of them.

Tracing finds which attributes change, and to which values. `MemoryGrowthError` requests another trace with more of
them.
"""

from __future__ import annotations

import copy
import enum
import math
import re
import types
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomctrl.tracing.arrays import SymbolArray, dtype_of, symbol_array
from geomctrl.tracing.containers import is_named_tuple, owner_of, underlying
from geomctrl.tracing.graph import CLASSES, truth_class
from geomctrl.tracing.operators import LARGEST_INT
from geomctrl.tracing.rotations import of_quaternion, quaternion, rotation_class
from geomctrl.tracing.symbols import (
    INT64,
    WHOLE,
    Condition,
    ConditionalKind,
    Graph,
    Symbol,
    UntraceableError,
    compare,
    is_symbol,
    kind_of,
    kinds_in,
    where,
    with_kind,
)

MAX_VALUES = 64  # non-numeric values per attribute
NAME = re.compile(r"\.([^.\[]+)")  # a step of a path to an attribute
INDEX = re.compile(r"\[(\d+)\]")
QUOTED = re.compile(r"\['([^'\\]*)'\]")
DTYPES = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(bool))  # supported arrays
ROTATION = np.dtype([("quaternion", float, 4)])  # of a rotation of scipy


class MemoryGrowthError(Exception):
    """The law changes more attributes, or takes more values, than the trace supports."""

    def __init__(self, cells: dict[str, Cell]):
        super().__init__()
        self.cells = cells


class MemoryLengthError(UntraceableError):
    """A call changes the length of a container, which may be constant later: a buffer that fills."""


class UnsupportedMemoryError(UntraceableError):
    """The law stores something that compiled code does not support."""


@dataclass(frozen=True)
class Cell:
    """The possible values of an attribute.

    values: the non-numeric ones. shape: that of the numeric value, None without one. kinds: the possible types of a
    number as indices into `CLASSES`; of arrays 1 for writable and 0 for read-only ones. dtype: that of an array,
    `ROTATION` for the quaternion of a rotation.
    """

    values: tuple[Any, ...] = ()
    shape: tuple[int, ...] | None = None
    kinds: frozenset[int] = frozenset()
    dtype: np.dtype | None = None
    replaced: bool = False  # the law assigns a new object instead of writing into the array

    @property
    def numbers(self) -> int:
        return 0 if self.shape is None else math.prod(self.shape)

    @property
    def mixed(self) -> bool:
        return len(self.kinds) > 1

    @property
    def branches(self) -> bool:
        """Whether the law is traced on a path for each of several values, or flags of an array."""
        return bool(self.values) or (self.mixed and self.dtype is not None)

    @property
    def may_be_whole(self) -> bool:
        """Whether a number may be an integer."""
        return self.dtype is None and not self.kinds.isdisjoint(WHOLE)

    @property
    def size(self) -> int:
        """Number of floats in memory: the index of a non-numeric value, the numbers, and their kind if it varies."""
        return bool(self.values) + self.numbers + self.mixed

    def with_value(self, path: str, x: Any, choices: bool) -> Cell:
        """The cell extended by the value x. choices: store an int as one of a few values, like non-numeric ones."""
        if isinstance(x, Condition):
            cell = self
            for kind in sorted(kinds_in(x.kind)):
                cell = cell.with_value(path, truth_class(kind)(True), choices)
                cell = cell.with_value(path, truth_class(kind)(False), choices)
            return cell
        if x is None or isinstance(x, (bool, np.bool_, str, enum.Enum)) or (choices and type(x) is int):
            if any(type(x) is type(y) and x == y for y in self.values):
                return self
            if len(self.values) == MAX_VALUES:
                raise UntraceableError(f"{path} takes more than {MAX_VALUES} different non-numeric values")
            return replace(self, values=(*self.values, x))
        if is_symbol(x) or type(x) in CLASSES:
            shape, kinds, dtype = (), kinds_in(kind_of(x)), None
        elif isinstance(x, np.ndarray) and (isinstance(x, SymbolArray) or x.dtype in DTYPES):
            shape, dtype = x.shape, dtype_of(x) if isinstance(x, SymbolArray) else x.dtype
            kinds = frozenset({int(x.flags.writeable)})
        elif quaternion(x) is not None:
            shape, kinds, dtype = (4,), frozenset(), ROTATION
        else:
            kind = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else f"a {type(x).__name__}"
            raise UnsupportedMemoryError(
                f"{path} becomes {kind}: a law can store numbers, arrays of floats, ints or bools, single rotations,"
                " strings, enums and None, in lists, tuples, dicts and deques of constant length"
            )
        if self.shape not in (None, shape):
            raise MemoryLengthError(f"{path} changes its shape from {self.shape} to {shape}: keep the shape constant")
        if self.dtype not in (None, dtype):
            raise UntraceableError(f"{path} changes from {self.dtype} to {dtype}: create it with dtype=float")
        return replace(self, shape=shape, kinds=self.kinds | kinds, dtype=dtype)

    def encoded(self, x: Any) -> np.ndarray | None:
        """Encode a value as numbers; None if the cell does not support it."""
        for k, y in enumerate(self.values):
            if type(x) is type(y) and x == y:
                return np.array([k, *[0.0] * (self.size - 1)], float)
        index = [len(self.values)] if self.values else []
        q = quaternion(x)
        if self.dtype == ROTATION or q is not None:
            return np.array([*index, *q], float) if self.dtype == ROTATION and q is not None else None
        if isinstance(x, np.ndarray):
            kind, fits = int(x.flags.writeable), x.dtype == self.dtype
        else:
            kind = CLASSES.index(type(x)) if type(x) in CLASSES else -1
            fits = self.dtype is None and not (kind in WHOLE and abs(x) > LARGEST_INT)
        if not fits or kind not in self.kinds or np.shape(x) != self.shape:
            return None
        return np.array([*index, *np.ravel(x), *([kind] if self.mixed else [])], float)

    def decoded(self, numbers: np.ndarray) -> Any:
        """Decode the value from its numbers."""
        index = int(numbers[0]) if self.values else 0
        if index < len(self.values):
            return self.values[index]
        x = numbers[bool(self.values) : bool(self.values) + self.numbers]
        if self.dtype == ROTATION:
            return rotation_class()(x, normalize=False)
        kind = int(numbers[-1]) if self.mixed else min(self.kinds)
        if self.dtype is not None:
            array = x.reshape(self.shape or ()).astype(self.dtype)
            array.flags.writeable = bool(kind)
            return array
        return CLASSES[kind](x[0])


class LawMemory:
    """The cells of a law by path, as numbers of input array `array` of a graph, starting at `first`."""

    def __init__(self, cells: Mapping[str, Cell], graph: Graph, array: int, first: int):
        self.cells = dict(sorted(cells.items()))
        self.graph, self.array = graph, array
        self.places, place = {}, first
        for path, cell in self.cells.items():
            self.places[path] = place
            place += cell.size
        self.first, self.size = first, place - first

    def split(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Divide the numbers by path; paths without numbers are omitted."""
        places = {path: place - self.first for path, place in self.places.items()}
        return {path: numbers[places[path] :][: cell.size] for path, cell in self.cells.items() if cell.size}

    def values(self, numbers: np.ndarray) -> dict[str, Any]:
        """Decode the value at each path."""
        return {path: self.cells[path].decoded(x) for path, x in self.split(numbers).items()}

    def symbols(self, path: str) -> list[Symbol]:
        return [self.graph.load(self.array, self.places[path] + k) for k in range(self.cells[path].size)]

    def value(self, path: str) -> Any:
        """The value of a path at the beginning of a call; branches if there are several."""
        cell, symbols = self.cells[path], self.symbols(path)
        for k, x in enumerate(cell.values):
            last = cell.shape is None and k == len(cell.values) - 1
            if last or compare("eq", symbols[0], float(k)):
                return x
        numbers = symbols[bool(cell.values) :][: cell.numbers]
        if cell.dtype == ROTATION:
            return of_quaternion(numbers)
        if cell.dtype is not None:
            entries = [compare("eq", x, 1.0) if cell.dtype.kind == "b" else with_kind(x, INT64) for x in numbers]
            array = symbol_array(numbers if cell.dtype.kind == "f" else entries, cell.shape or ())
            array.flags.writeable = bool(compare("eq", symbols[-1], 1.0)) if cell.mixed else 1 in cell.kinds
            return array
        *others, kind = sorted(cell.kinds)
        for k in others:
            kind = ConditionalKind(compare("eq", symbols[-1], float(k)), k, kind)
        return with_kind(numbers[0], kind)

    def numbers(self, path: str, x: Any) -> list[Any]:
        """The numbers of a path whose value after a call is x."""
        cell = self.cells[path]
        kind = float(x.flags.writeable) if isinstance(x, np.ndarray) else None
        x = x[()] if isinstance(x, np.ndarray) and not x.ndim else x
        if isinstance(x, Condition):
            return [_index_of_truth(cell, x, x.kind), *[0.0] * (cell.size - 1)]
        for k, y in enumerate(cell.values):
            if type(x) is type(y) and x == y:
                return [float(k), *[0.0] * (cell.size - 1)]
        index = [float(len(cell.values))] if cell.values else []
        flag = [_number_of_kind(kind_of(x)) if kind is None else kind] if cell.mixed else []
        values = quaternion(x) or np.asarray(x, object).ravel().tolist()
        entries = [where(y, 1.0, 0.0) if isinstance(y, Condition) else y for y in values]
        return [*index, *entries, *flag]


def _index_of_truth(cell: Cell, x: Condition, kind: Any) -> Any:
    """The index of a truth value, of Python's class or numpy's, among the values of a cell."""
    if type(kind) is ConditionalKind:
        return where(kind.condition, _index_of_truth(cell, x, kind.yes), _index_of_truth(cell, x, kind.no))
    cls = truth_class(kind)
    yes, no = (next(k for k, y in enumerate(cell.values) if type(y) is cls and y == truth) for truth in (True, False))
    return where(x, float(yes), float(no))


def _number_of_kind(kind: Any) -> Any:
    if type(kind) is not ConditionalKind:
        return float(kind)
    return where(kind.condition, _number_of_kind(kind.yes), _number_of_kind(kind.no))


def place_of(path: str, key: Any, item: bool) -> str:
    """The path of an item of a container, or of an attribute, of the object at a path."""
    if not item and not key.isidentifier():  # vars(law)["a.b"]
        path, item = f"{path}.__dict__", True
    return f"{path}[{key!r}]" if item else f"{path}.{key}"


def _walked(x: Any, path: str) -> tuple[list[tuple[bool, Any]], Any]:
    """The steps from an object to a path, (whether an attribute, its name or key), and the value there.

    A key of a dict is found by its text, because not every text can be read back: <Mode.A: 1>, nan.
    """
    steps: list[tuple[bool, Any]] = []
    while path:
        owner, step = underlying(x), NAME.match(path)
        if step is None and isinstance(owner, dict):
            key, text = _key(owner, path)
        elif (step := step or INDEX.match(path)) is not None:
            key, text = step[1] if path[0] == "." else int(step[1]), step[0]
        else:  # a path of another law of this class
            raise KeyError(path)
        steps.append((path[0] == ".", key))
        x, path = _entry(owner, *steps[-1]), path[len(text) :]
    return steps, x


def _key(x: dict, path: str) -> tuple[Any, str]:
    """The key of a dict with which a path begins, and its text."""
    quoted = QUOTED.match(path) if {*map(type, x)} == {str} else None  # found without a search
    asked = x.keys() & {quoted[1]} if quoted else x
    keys = [(key, text) for key in asked if path.startswith(text := place_of("", key, True))]
    if len(keys) != 1:
        text = keys[0][1] if keys else path
        raise UntraceableError(f"{len(keys)} keys of a dict of the law have the text {text}: use strings as keys")
    return keys[0]


def _entry(x: Any, attribute: bool, key: Any) -> Any:
    x = underlying(x)
    if not attribute:
        if not isinstance(x, (list, tuple, deque, dict)) or is_named_tuple(x):  # a path of another law of this class
            raise KeyError(key)
        return x[key]
    return getattr(x, key) if (cell := _closure_cell(x, key)) is None else cell.cell_contents


def _closure_cell(x: Any, name: str) -> types.CellType | None:
    cells = zip(x.__code__.co_freevars, x.__closure__ or ()) if isinstance(x, types.FunctionType) else ()
    return dict(cells).get(name)


def value_at(root: Any, path: str) -> Any:
    """The value of a root at a path."""
    return _walked(root, path)[1]


def holders(root: Any, cells: Mapping[str, Cell]) -> set[int]:
    """The objects, closure cells and arrays, by id, in which a law keeps its memory."""
    ids = set()
    for path, cell in cells.items():
        x = holder = root
        for attribute, key in _walked(root, path)[0]:
            owner = underlying(x)
            if not isinstance(owner, tuple):
                holder = _closure_cell(owner, key) or owner
            x = _entry(owner, attribute, key)
        ids.add(id(owner_of(x) if isinstance(x, np.ndarray) and not cell.replaced else holder))
    return ids


def put_at(root: Any, path: str, value: Any) -> None:
    """Set the value of a root at a path; tuples in between are created again."""
    _with(root, _walked(root, path)[0], value)


def _with(x: Any, steps: list[tuple[bool, Any]], value: Any) -> Any:
    if not steps:
        return value
    owner = underlying(x)
    (attribute, key), *rest = steps
    inner = _entry(owner, attribute, key)
    part = _with(inner, rest, value)
    if part is inner:
        return x
    if isinstance(owner, tuple):
        return owner._replace(**{key: part}) if attribute else (*owner[:key], part, *owner[key + 1 :])  # pyright: ignore[reportAttributeAccessIssue]
    if (cell := _closure_cell(owner, key)) is not None:
        cell.cell_contents = part
    elif attribute:
        object.__setattr__(owner, key, part)
    else:
        owner[key] = part  # pyright: ignore[reportIndexIssue]
    return x


def restore(root: Any, cells: Mapping[str, Cell], values: Mapping[str, Any]) -> None:
    """Write values of cells into a user's object, in place where the law writes in place."""
    for path, cell in cells.items():
        if cell.replaced and cell.shape is None and not cell.values:  # a container that the law creates again
            put_at(root, path, copy.copy(value_at(root, path)))
    for path, x in values.items():
        now = value_at(root, path)
        in_place = isinstance(x, np.ndarray) and isinstance(now, np.ndarray) and not cells[path].replaced
        if in_place and now.shape == x.shape and now.dtype == x.dtype:
            now.flags.writeable = True  # the law writes into it
            now[...] = x
            now.flags.writeable = x.flags.writeable
        else:
            put_at(root, path, x)


def changed_leaves(path: str, before: Any, now: Any, contents: Mapping[int, Any]) -> Iterator[tuple[str, Any, bool]]:
    """(path, value, True) of every replaced object; contents: earlier contents of containers, by id."""
    if before is now:
        return
    kind = type(now)
    if kind is type(before) and (kind in (list, tuple, deque, dict) or is_named_tuple(now)):
        old = contents.get(id(before), before)
        old = old if isinstance(old, dict) else _by_key(old)
        new = _by_key(now)
        if list(old) != list(new):
            change = length_or_order(new, old)
            raise MemoryLengthError(
                f"{path} changes {change} during a call: fill it in __init__, or return logged data as a signal"
            )
        yield path, now, True
        for key in new:
            place = place_of(path, key, not is_named_tuple(now))
            yield from changed_leaves(place, old[key], new[key], contents)
    elif isinstance(now, OTHERS) or (isinstance(before, OTHERS) and type(before) is not kind):
        raise UntraceableError(
            f"{path} changes from a {type(before).__name__} to a {kind.__name__} during a call: use a list, tuple,"
            " dict, deque or NamedTuple of constant length from the start"
        )
    else:
        yield path, now, True


def length_or_order(now: Mapping, before: Mapping) -> str:
    """The part of a message that says how the keys of a container have changed."""
    return "the order of its keys" if now.keys() == before.keys() else "its length"


OTHERS = (list, tuple, dict, deque, set, frozenset)  # containers


def _by_key(x: Any) -> dict[Any, Any]:
    """The contents of a list, tuple, deque, dict or NamedTuple."""
    if isinstance(x, dict):
        return x
    return dict(zip(type(x)._fields, x, strict=True)) if is_named_tuple(x) else dict(enumerate(x))


def covering(cells: Mapping[str, Cell], controller: Any) -> dict[str, Cell]:
    """The cells of a controller for the current values of its attributes."""
    covered = {}
    for path, cell in cells.items():
        try:
            x = value_at(controller, path)
            ints = any(type(y) is int for y in cell.values)
            covered[path] = cell.with_value(path, x, ints) if cell.size else cell
        except (AttributeError, KeyError, IndexError, TypeError, ValueError, UntraceableError):
            continue
    return covered
