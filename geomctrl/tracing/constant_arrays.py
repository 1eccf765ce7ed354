"""`ConstantArray`: views of a user's arrays of numbers that recognize lists of symbols.

`K @ [e, de]` with a plain array K would be computed by numpy's loops over objects, which follow Python's rules. While a
law is traced, the arrays that its code reaches by name are therefore replaced by views of this class: globals, class
attributes, default arguments, closures, and the entries of lists, tuples, dicts and objects that these hold. Nothing
else is written, because other threads may use it.
"""

from __future__ import annotations

import itertools
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .arrays import SEQUENCES, SymbolArray, TracedArray, holds_symbols, plain, row_of, wrapped
from .code_identity import (
    CONSTRUCTORS,
    DYNAMIC_LOOKUPS,
    MISSING,
    PLAIN,
    dict_of,
    in_cell,
    names_of,
    origin,
    parts_of,
    without_recording,
)
from .graph import called_by_user
from .rotations import constant_rotation, is_single_rotation
from .selected import refresh
from .symbols import UntraceableError, caller
from .type_tests import refuse_identity_with_truth

DTYPES = {np.dtype(float), np.dtype(np.int64), np.dtype(bool)}
MAX_ENTRIES = 1000  # length of the longest container that is searched for arrays
MAX_SEARCHED = 20_000  # number of objects that are searched for arrays


class ConstantArray(TracedArray):
    """A view of an array of numbers. It shares the array's memory, so that writing has the same effect.

    For threads that do not trace, results are plain arrays.
    """

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if _another_thread_traces():
            plain_out = {} if out is None else {"out": tuple(map(_as_plain, out))}
            result = getattr(ufunc, method)(*map(_as_plain, inputs), **plain_out, **kwargs)
            return result if out is None else out[0] if len(out) == 1 else out
        if out is not None:
            kwargs["out"] = tuple(map(_as_plain, out))
        result = getattr(ufunc, method)(*(array_of_list(_as_plain(x)) for x in inputs), **kwargs)
        for x in out or ():
            refresh(x)
        return visible(result) if out is None else out[0] if len(out) == 1 else out

    def __array_function__(self, func, types, args, kwargs):
        if _another_thread_traces():
            return func(*_as_plain(args), **_as_plain(kwargs))
        if any(map(_reveals, (args, kwargs))):
            return row_of(func, plain(args), plain(kwargs))
        return visible(func(*_as_plain(args), **_as_plain(kwargs)))

    def __getitem__(self, key):
        return self.view(np.ndarray)[key] if _another_thread_traces() else super().__getitem__(key)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        refresh(self)

    def __repr__(self):
        return repr(self.view(np.ndarray))

    @property
    def base(self) -> Any:
        if called_by_user():
            raise UntraceableError(
                f"the attribute base of an array can not be traced{caller()}: write np.shares_memory for arrays"
                " of numbers"
            )
        return np.ndarray.base.__get__(self)


def visible(x: Any) -> Any:
    """An array of numbers as a ConstantArray, also within a tuple or list of results; anything else unchanged."""
    if type(x) is np.ndarray:
        return x.view(ConstantArray) if x.dtype in DTYPES else x
    if type(x) in (tuple, list):
        return type(x)(map(visible, x))
    return x


def holds_hidden_symbols(x: Any) -> bool:
    """Whether x holds symbols on which numpy does not dispatch: in a list or similar, or in an array of objects."""
    if isinstance(x, SEQUENCES):
        return any(map(_reveals, x))
    return isinstance(x, np.ndarray) and type(x) is not SymbolArray and holds_symbols(x)


def _reveals(x: Any) -> bool:
    """Whether an argument is or holds a symbol."""
    if isinstance(x, dict):
        return any(map(_reveals, x.values()))
    return any(map(_reveals, x)) if isinstance(x, SEQUENCES) else holds_symbols(x)


def array_of_list(x: Any) -> Any:
    """A list with symbols as the array that numpy creates from it; anything else unchanged."""
    return wrapped(np.array(plain(x), object)) if holds_hidden_symbols(x) else x


def _as_plain(x: Any) -> Any:
    """Arguments with plain arrays in place of constant ones."""
    if type(x) is ConstantArray:
        return x.view(np.ndarray)
    if type(x) in (tuple, list):
        return type(x)(map(_as_plain, x))
    return {key: _as_plain(value) for key, value in x.items()} if type(x) is dict else x


# --- the arrays that code reaches by name ------------------------------------------------------------------------


_tracing: list[int] = []  # threads in `visible_arrays`: one, because of the lock of `numpy_on_symbols`


def _another_thread_traces() -> bool:
    return bool(_tracing) and threading.get_ident() not in _tracing


class _Place(NamedTuple):
    """Where user code holds an array, or a tuple with arrays."""

    put: Callable[[Any], Any]
    get: Callable[[], Any]
    original: Any
    replacement: Any


@contextmanager
def visible_arrays(roots: Iterable[Any], functions: Mapping[Any, Any] = MappingProxyType({})) -> Iterator[None]:
    """Context in which the arrays that the code of these functions and classes reaches by name are constant arrays.

    functions: replacements of functions in the containers that the code reaches.
    """
    search = _Search(roots, functions)
    _tracing.append(threading.get_ident())
    try:
        for place in search.places:
            if place.get() is place.original:  # otherwise another thread has replaced it
                place.put(place.replacement)
        yield
    finally:
        for place in search.places:
            if place.get() is place.replacement:  # otherwise user code has replaced it
                place.put(place.original)
        _tracing.pop()
    for x, replacement in search.arrays.values():
        if (x.shape, x.strides, x.dtype) != (replacement.shape, replacement.strides, replacement.dtype):
            raise UntraceableError(
                f"the shape, the strides or the type of an array of shape {x.shape} outside of the function changes:"
                " write x.reshape, x.T or x.view"
            )


class _Search:
    """Finds the places; equal objects have equal replacements, so that `is` has the same result.

    Globals, and attributes of classes and modules, are searched if code names them.
    """

    def __init__(self, roots: Iterable[Any], functions: Mapping[Any, Any]):
        self.functions = functions
        self.places: list[_Place] = []
        self.arrays: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.tuples: dict[int, tuple[tuple, tuple]] = {}
        self.rotations: dict[int, tuple[Any, Any]] = {}
        self.seen: dict[int, Any] = {}
        self.names: set[str] = set()  # of attributes in the code found so far
        self.owners: dict[int, type | types.ModuleType] = {}
        self.searched: set[tuple[int, str]] = set()  # globals and attributes
        self.waiting = deque(roots)  # without recursion, because lists may be nested deeper than Python's stack
        while self.waiting and len(self.seen) < MAX_SEARCHED:
            x = self.waiting.popleft()
            if not issubclass(type(x), (*PLAIN, np.ndarray)) and id(x) not in self.seen:
                self.seen[id(x)] = x
                self._search(x)
            if not self.waiting:
                self._attributes_named()

    def visit(self, x: Any) -> None:
        self.waiting.append(x)

    def _search(self, x: Any) -> None:
        kind = type(x)
        if kind is dict or kind is list:
            if len(x) <= MAX_ENTRIES:
                for key, value in list(x.items() if kind is dict else enumerate(x)):
                    self._entry(x, key, value)
        elif kind is tuple:
            if x and isinstance(x[0], type) and x is x[0].__mro__:  # of an object's class, which no code calls
                self._owns(x)
            else:
                for value in x:
                    self.visit(value)
        elif kind is types.FunctionType:
            if _is_users(x):
                self._function(without_recording(x))
        elif issubclass(kind, type):
            self._owns(x.__mro__)
            for cls, name in itertools.product(x.__mro__, CONSTRUCTORS):
                if id(cls) in self.owners and name in vars(cls):
                    self._attribute(cls, name, vars(cls)[name])
        elif issubclass(kind, types.ModuleType):
            if origin(x.__name__) == "user":
                self.owners[id(x)] = x
        elif (parts := parts_of(x)) is not None:
            for value in parts:
                self.visit(value)
        elif kind is types.SimpleNamespace or _is_users(kind):
            self._owns(kind.__mro__)
            self.visit(dict_of(x))

    def _owns(self, classes: tuple[type, ...]) -> None:
        self.owners |= {id(cls): cls for cls in classes if _is_users(cls)}

    def _attributes_named(self) -> None:
        """Search attributes of classes and modules that code names, or may look up without a name."""
        all_of_them = not self.names.isdisjoint(DYNAMIC_LOOKUPS)
        for owner in self.owners.values():
            for name, value in list(vars(owner).items()):
                special = name[:2] == "__"
                method = isinstance(owner, type) and (type(value) is types.FunctionType or parts_of(value) is not None)
                used = name in self.names or (special and method and name not in CONSTRUCTORS)
                used = used or (all_of_them and not special)
                if used and (id(owner), name) not in self.searched:
                    self.searched.add((id(owner), name))
                    self._attribute(owner, name, value)

    def _function(self, f: types.FunctionType) -> None:
        refuse_identity_with_truth(f.__code__)
        space, names = f.__globals__, names_of(f.__code__)
        self.names |= names.attributes | (DYNAMIC_LOOKUPS & {*names.loaded})
        for name in names.loaded:
            if name in space and (id(space), name) not in self.searched:
                self.searched.add((id(space), name))
                self._entry(space, name, space[name])
        for name in names.modules:
            self.visit(sys.modules.get(name) or sys.modules.get(f"{space.get('__package__')}.{name}"))
        self._attribute(f, "__defaults__", f.__defaults__)
        self.visit(f.__kwdefaults__)
        for cell in f.__closure__ or ():
            if (value := in_cell(cell)) is not MISSING:
                self._attribute(cell, "cell_contents", value)

    def _entry(self, owner: Any, key: Any, value: Any) -> None:
        replacement = self._replaced(value)
        if replacement is value:
            return self.visit(value)
        get = owner.get if type(owner) is dict else lambda k: owner[k] if k < len(owner) else None
        self.places.append(_Place(lambda y: owner.__setitem__(key, y), lambda: get(key), value, replacement))
        return None

    def _attribute(self, owner: Any, name: str, value: Any) -> None:
        replacement = self._replaced(value)
        if replacement is value:
            return self.visit(value)
        put = type.__setattr__ if isinstance(owner, type) else setattr
        get = (lambda: vars(owner).get(name)) if isinstance(owner, type) else (lambda: getattr(owner, name))
        self.places.append(_Place(lambda y: put(owner, name, y), get, value, replacement))
        return None

    def _replaced(self, x: Any) -> Any:
        if type(x) is np.ndarray and x.dtype in DTYPES:
            return self.arrays.setdefault(id(x), (x, x.view(ConstantArray)))[1]
        if type(x) is types.BuiltinFunctionType:
            return self.functions.get(x, x)
        if is_single_rotation(x):
            return self.rotations.setdefault(id(x), (x, constant_rotation(x)))[1]
        if isinstance(x, tuple) and len(x) <= MAX_ENTRIES and (type(x) is tuple or hasattr(x, "_fields")):
            return self._tuple(x)
        return x

    def _tuple(self, x: tuple) -> tuple:
        if id(x) not in self.tuples:
            entries = [self._replaced(y) for y in tuple.__iter__(x)]
            replacement = x
            if any(a is not b for a, b in zip(entries, x)):
                for y in entries:
                    self.visit(y)
                replacement = tuple.__new__(type(x), entries)
            self.tuples[id(x)] = x, replacement
        return self.tuples[id(x)][1]


def _is_users(x: Any) -> bool:
    """Whether a function or class is the user's own."""
    module = x.__module__
    return (module is None or isinstance(module, str)) and origin(module) == "user"
