"""Twins: copies of a user's objects in which numbers are symbols, so that what an object computes can be traced.

A controller, a plant, a reference know numbers: gains, inertias, amplitudes. In a trace they are inputs, so that one
compilation serves objects that differ in numbers only, and nothing that is traced touches the objects themselves. What
remains of an object without its numbers are `words`: two objects with equal words have the same trace.

Zeros within arrays count as words: a diagonal gain is compiled as a diagonal.
"""

from __future__ import annotations

import enum
import functools
import pickle
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from geomctrl.compiler.arrays import SymbolArray
from geomctrl.compiler.code import Code
from geomctrl.compiler.symbols import UntraceableError
from geomctrl.compiler.tracing import structure
from geomctrl.kernels import tree
from geomctrl.mechanism.mechanism import Mechanism

from .memory import Outside

PLAIN = (bool, int, str, bytes, complex, type(None), type(...), np.generic, enum.Enum)
LARGEST = 20_000  # numbers of an array that become symbols; a larger one is a table, and a constant
OF_ROBOTS = {"_model", "_code", "_frames", "parameters", "placements", "gravity", "joints", "frames"}
MOST_KNOWN = 256
INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})

Load = Callable[[int], Any]


class Place(NamedTuple):
    """Where a number or an array of them was met: its path (".gains"), its first place in `values`, how many."""

    path: str
    first: int
    size: int


class Twins:
    """Makes twins, and keeps what it met on the way.

    load: the symbol for number k of `values`; None keeps the numbers: a twin is then a copy. constant: all numbers are
    constants of the trace, and words.
    """

    def __init__(self, load: Load | None = None, *, constant: bool = False):
        self.load, self.constant = None if constant else load, constant
        self.words: list[Any] = []
        self.places: list[Place] = []
        self._values: list[np.ndarray] = []
        self._count = 0
        self._twins: dict[int, tuple[int, Any]] = {}
        self._kept: list[Any] = []  # an id is an object's as long as it lives
        self._filled: list[tuple[Any, str, Any]] = []
        self._functions: list[types.FunctionType] = []
        self._classes: dict[type, None] = {}

    @contextmanager
    def used(self) -> Iterator[None]:
        """Twins are called in here. Raises UntraceableError where that changes them, or what else the code reaches;
        the latter is put back."""
        outside = Outside(self._functions, self._classes, _is_own)
        try:
            yield
        finally:
            place = outside.restored()
        place = place or self.changed()
        if place:
            raise UntraceableError(f"{place} changes during a call: it is a memory; keep it in the state z")

    @property
    def values(self) -> np.ndarray:
        """All numbers that were met."""
        return np.concatenate(self._values) if self._values else np.zeros(0)

    def of(self, x: Any, path: str = "") -> Any:
        """The twin of x."""
        kind = type(x)
        if kind is float or kind is np.float64:
            return self._scalar(x, path)
        if isinstance(x, PLAIN):
            self.words.append(x if kind in (int, str, bool) or x is None else (kind, x))
            return x
        known = self._twins.get(id(x))
        if known is not None:
            self.words.append(("again", known[0]))
            return known[1]
        make = MAKERS.get(kind)
        if make is None:
            make = Twins._robot if isinstance(x, Mechanism) else Twins._named if _is_named(x) else Twins._object
        return make(self, x, path)

    def changed(self) -> str:
        """What is not as it was made, in words: the path of what a call has written on; "" where nothing is."""
        for twin, path, before in self._filled:
            if isinstance(before, np.ndarray):
                same = twin.shape == before.shape and twin.tobytes() == before.tobytes()
            elif isinstance(twin, np.ndarray):
                same = all(a is b for a, b in zip(twin.ravel().tolist(), before, strict=True))
            elif isinstance(twin, np.random.Generator):
                same = repr(twin.bit_generator.state) == before
            else:
                now = _content(twin)
                same = now.keys() == before.keys() and all(now[name] is before[name] for name in now)
                if not same and not isinstance(twin, (list, dict)):
                    path += "." + next(n for n in [*before, *now] if now.get(n, now) is not before.get(n, before))
            if not same:
                return path.lstrip(".")
        return ""

    # --- what an object can be -----------------------------------------------------------------------------------

    def _begin(self, x: Any, twin: Any, *words: Any) -> Any:
        """Twin `twin` of x, from now on."""
        self._twins[id(x)] = len(self._twins), twin
        self._kept.append(x)
        self.words.append((type(x), *words))
        return twin

    def _numbers(self, x: np.ndarray, path: str) -> np.ndarray:
        """The symbols of an array's numbers, which get their places; a copy where they stay numbers."""
        first, flat = self._count, np.array(x, float).ravel()
        self._count += flat.size
        self._values.append(flat)
        self.places.append(Place(path, first, flat.size))
        if self.load is None:
            return flat.reshape(np.shape(x)).copy()
        out = np.empty(flat.size, object)
        out[:] = [self.load(k) for k in range(first, self._count)]
        return out.reshape(np.shape(x))

    def _scalar(self, x: float, path: str) -> Any:
        if self.constant:
            self.words.append(float(x).hex())
            return x
        self.words.append(float)
        return self._numbers(np.array([x]), path).item()

    def _array(self, x: np.ndarray, path: str) -> Any:
        if x.dtype != np.float64 or self.constant or x.size > LARGEST:
            twin = self._begin(x, x.copy(), x.shape, x.dtype.str, x.tobytes() if x.dtype != object else id(x))
        else:
            numbers, zero = self._numbers(x, path), x.ravel() == 0.0
            if self.load is not None:
                if x.size > 1:
                    numbers.ravel()[zero] = 0.0
                numbers = numbers.view(SymbolArray)
            twin = self._begin(x, numbers, x.shape, zero.tobytes())
        self._filled.append((twin, path, x if twin.dtype == x.dtype != object else twin.ravel().tolist()))
        return twin

    def _list(self, x: list, path: str) -> list:
        twin = self._begin(x, [], len(x))
        twin += [self.of(value, f"{path}[{k}]") for k, value in enumerate(x)]
        return self._done(twin, path)

    def _tuple(self, x: tuple, path: str) -> tuple:
        self.words.append(len(x))
        return self._begin(x, tuple([self.of(value, f"{path}[{k}]") for k, value in enumerate(x)]))

    def _named(self, x: Any, path: str) -> Any:
        return self._begin(x, type(x)(*(self.of(value, f"{path}.{n}") for n, value in zip(x._fields, x))))

    def _dict(self, x: Mapping, path: str) -> Any:
        twin = self._begin(x, {}, tuple(map(repr, x)))
        twin.update((key, self.of(value, f"{path}[{key!r}]")) for key, value in x.items())
        return self._done(twin, path)

    def _robot(self, x: Mechanism, path: str) -> Mechanism:
        """A robot whose model array, parameters and placements are symbols; its structure is words."""
        if self.constant:
            return self._begin(x, x, _constants(x))
        pattern = _pattern(x._model)
        twin = object.__new__(type(x)) if self.load else x
        constants = _constants(x.joints), _constants(x.frames), x.gravity.tobytes(), x.parents, x.body_names
        self._begin(x, twin, pattern.tobytes(), *constants)
        own = dict(vars(x)) if twin is x else twin.__dict__
        own.update(vars(x))
        open_places = np.isnan(pattern)
        numbers = self._numbers(x._model[open_places], f"{path}.model")
        for name in ("parameters", "placements"):
            own[name] = self._numbers(getattr(x, name), f"{path}.{name}").view(SymbolArray if self.load else np.ndarray)
        if self.load is None:
            return twin
        model = pattern.astype(object)
        model[open_places] = numbers
        own["_model"], own["_code"] = model, Code(model, pattern)
        for name in vars(x).keys() - OF_ROBOTS - set(Mechanism.__dataclass_fields__):  # a subclass's own
            own[name] = self.of(getattr(x, name), f"{path}.{name}")
        return twin

    def _function(self, x: types.FunctionType, path: str) -> Any:
        self._functions.append(x)
        if not _is_own(x.__module__) or not (x.__closure__ or x.__defaults__ or x.__kwdefaults__):
            return self._opaque(x, path)
        cells = tuple(types.CellType() for _ in x.__closure__ or ())
        twin = types.FunctionType(x.__code__, x.__globals__, x.__name__, None, cells or None)
        self._begin(x, twin, id(x.__code__))
        twin.__module__ = x.__module__
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
        self._functions.append(x.__func__)
        return types.MethodType(x.__func__, self.of(x.__self__, path))

    def _partial(self, x: functools.partial, path: str) -> Any:
        return functools.partial(
            self.of(x.func, path), *self.of(x.args, f"{path}.args"), **self.of(x.keywords, f"{path}.keywords")
        )

    def _generator(self, x: np.random.Generator, path: str) -> Any:
        twin = np.random.Generator(type(x.bit_generator)())
        twin.bit_generator.state = x.bit_generator.state
        self._begin(x, twin, repr(x.bit_generator.state))
        self._filled.append((twin, path, repr(x.bit_generator.state)))
        return twin

    def _object(self, x: Any, path: str) -> Any:
        kind = type(x)
        if not _is_own(kind.__module__) or isinstance(x, (list, dict, set, tuple, np.ndarray)):
            return self._opaque(x, path)
        try:
            twin = object.__new__(kind)
        except TypeError:
            return self._opaque(x, path)
        self._classes[kind] = None
        self._begin(x, twin)
        for name, value in list(_content(x).items()):
            self.words.append(name)
            object.__setattr__(twin, name, self.of(value, f"{path}.{name}"))
        return self._done(twin, path)

    def _opaque(self, x: Any, path: str) -> Any:
        self.words.append(id(x))
        self._kept.append(x)
        return x

    def _done(self, twin: Any, path: str) -> Any:
        self._filled.append((twin, path, _content(twin)))
        return twin


MAKERS: dict[type, Callable[[Twins, Any, str], Any]] = {
    np.ndarray: Twins._array,
    SymbolArray: Twins._opaque,
    list: Twins._list,
    tuple: Twins._tuple,
    dict: Twins._dict,
    types.MappingProxyType: Twins._dict,
    types.FunctionType: Twins._function,
    types.MethodType: Twins._method,
    functools.partial: Twins._partial,
    np.random.Generator: Twins._generator,
    type: Twins._opaque,
    types.ModuleType: Twins._opaque,
    types.BuiltinFunctionType: Twins._opaque,
}


def _is_named(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


@functools.lru_cache(maxsize=1024)
def _is_own(module: str | None) -> bool:
    """Whether a class or function is the user's or geomctrl's, not of an installed library."""
    if module is None or module == "builtins":
        return False
    if module.startswith("geomctrl."):
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or not file.startswith(INSTALLED)


def _content(x: Any) -> dict[Any, Any]:
    """What a container or an object holds, by key or name."""
    if isinstance(x, dict):
        return dict(x)
    if isinstance(x, list):
        return dict(enumerate(x))
    if isinstance(x, types.FunctionType):
        return {name: _cell(cell) for name, cell in zip(x.__code__.co_freevars, x.__closure__ or ())}
    slots = {n for c in type(x).__mro__ for n in _names(getattr(c, "__slots__", ())) if not n.startswith("__")}
    found = {name: getattr(x, name) for name in sorted(slots) if hasattr(x, name)}
    return found | getattr(x, "__dict__", {})


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return cell


_patterns: dict[bytes, np.ndarray] = {}


def _pattern(model: np.ndarray) -> np.ndarray:
    """The model's `structure`, remembered: robots that differ in their inertias have the same."""
    rest = model.reshape(-1, tree.WIDTH).copy()
    rest[:-1, tree.J : tree.S] = 0.0
    key = rest.tobytes()
    if key not in _patterns:
        if len(_patterns) > MOST_KNOWN:
            _patterns.clear()
        _patterns[key] = structure(model)
    return _patterns[key]


_known: dict[int, tuple[Any, bytes]] = {}


def _constants(x: Any) -> bytes:
    """What a robot, its joints or its frames say, as one word; robots of one model share the latter two."""
    known = _known.get(id(x))
    if known is None or known[0] is not x:
        if len(_known) > MOST_KNOWN:
            _known.clear()
        known = _known[id(x)] = x, pickle.dumps(x)
    return known[1]
