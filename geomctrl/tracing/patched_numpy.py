"""Replacements of numpy, math, max, min and print while a law runs with symbols.

`arrays` defines numpy's own functions on arrays of symbols. This module contains functions that must be replaced: those
that create arrays, which may later hold symbols, and those of single numbers.
"""

from __future__ import annotations

import functools
import math
import statistics
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from .arrays import SEQUENCES, SymbolArray, entered, has_symbols, holds_any, plain, row_of, wrapped
from .code_identity import CACHE, PLAIN, origin
from .constant_arrays import ConstantArray, array_of_list, holds_hidden_symbols, visible, visible_arrays
from .dtypes import dtype_of, refuse_common
from .entries import refuse_dtype
from .floating_point_errors import raised_errors_refused, refuse_raised_errors, warning_filter
from .graph import called_by_user
from .locks import members_replaced
from .numbers import scalar
from .patched_math import math_on_symbols, mean_on_symbols
from .scipy_functions import replacement_in_scipy
from .symbols import (
    Condition,
    ConditionalKind,
    UntraceableError,
    binary,
    caller,
    is_symbol,
    kind_of,
    relation,
    with_kind,
)
from .tables import scipy_on_symbols
from .type_tests import compares_types, has_attribute, type_replacements
from .untraceable import unrecorded_errors

FILLED = ("zeros", "empty", "ones", "full", "zeros_like", "empty_like", "ones_like", "full_like", "eye", "identity")
CONVERTED = ("array", "asarray", "ascontiguousarray", "asanyarray")
ORIGINAL = {name: getattr(np, name) for name in (*FILLED, *CONVERTED)}


@contextmanager
def numpy_on_symbols(*spaces: dict[str, Any], roots: Iterable[Any] = ()) -> Iterator[None]:
    """Context in which numpy, math, max and min accept symbols in this thread, and print is refused.

    New arrays of numbers created by user code and by the packages above can hold symbols. The names are replaced in the
    globals of these modules and in `spaces`. numpy and math themselves remain unchanged, because compiled libraries
    call them with numbers. The arrays that the functions and classes `roots` reach by name are `visible_arrays`.
    """
    refuse_raised_errors()
    with (
        members_replaced,
        scipy_on_symbols(),
        raised_errors_refused(),
        np.errstate(all="ignore"),
    ):  # warnings about constants belong to the real run
        owner = threading.get_ident()
        replacements, builtin = _replacements(owner)
        extremes = {max: builtin["max"], min: builtin["min"]}
        replaced = {id(x) for x in replacements}
        namespaces = [*{id(space): space for space in (*_spaces(), *spaces)}.values()]
        places = [
            (space, name, value, replacements[value])
            for space in namespaces
            for name, value in list(space.items())
            if id(value) in replaced
        ]
        places += [
            (space, name, value, replacement)
            for space in namespaces
            for name, value in (() if _is_own_namespace(space) else list(space.items()))
            if (replacement := _cached(value) if type(value) is CACHE else replacement_in_scipy(value, owner))
        ]
        added = [(space, name) for space in namespaces for name in _names_for(space, builtin) if name not in space]
        try:
            for space, name, _, replacement in places:
                space[name] = replacement
            for space, name in added:
                space[name] = builtin[name]
            with visible_arrays(roots, {f: y for f, y in replacements.items() if f in OF_MATH} | extremes):
                yield
        finally:
            for space, name, value, replacement in places:
                if space.get(name) is replacement:  # otherwise another thread has replaced it
                    space[name] = value
            for space, name in added:
                if space.get(name) is builtin[name]:
                    del space[name]


OF_MATH = {f for f in vars(math).values() if callable(f)}
OF_TYPES = {"type", "float", "int", "hasattr"}
REPLACED = (ModuleType, BuiltinFunctionType, FunctionType, CACHE, type(np.sum), np.ufunc, type(np.r_), type(np.c_))


def _names_for(space: dict[str, Any], builtin: dict[str, Any]) -> list[str]:
    """The builtins that are replaced in a module."""
    left = OF_TYPES if _is_own_namespace(space) else {"float", "int"} if compares_types(space) else set()
    return [name for name in builtin if name not in left]


def _is_own_namespace(space: dict[str, Any]) -> bool:
    return space.get("__name__", "").startswith("geomctrl.")


def replacement_of(x: Any) -> Any:
    """The replacement, in this thread's trace, of a function or module that an object or a closure contains."""
    owner = threading.get_ident()
    own = _replacements(owner)[0].get(x) if isinstance(x, REPLACED) else None
    return own or replacement_in_scipy(x, owner) or x


def _cached(function: Any) -> Callable[..., Any]:
    """A function under functools.cache: computed for symbols, cached for numbers."""
    owner = threading.get_ident()

    def call(*args: Any, **kwargs: Any) -> Any:
        symbols = threading.get_ident() == owner and holds_any([*args, *kwargs.values()])
        result = (function.__wrapped__ if symbols else function)(*args, **kwargs)
        if threading.get_ident() == owner and not _never_changes(result):
            raise UntraceableError(
                f"{function.__name__} is cached and returns a {type(result).__name__}{caller()}, which its callers may"
                " modify: return numbers or tuples"
            )
        return result

    return functools.update_wrapper(call, function.__wrapped__)


def _never_changes(x: Any) -> bool:
    return all(map(_never_changes, x)) if type(x) is tuple else isinstance(x, PLAIN) or has_symbols(x)


def _spaces() -> Iterator[dict[str, Any]]:
    """The globals of user modules and of the packages whose functions a law may call."""
    for name, module in list(sys.modules.items()):
        if _without_laws.get(name) == id(module) or not isinstance(module, ModuleType):
            continue
        if name.startswith(TRACED_PACKAGES) if name.startswith("geomctrl.") else origin(name) == "user":
            yield vars(module)
        else:
            _without_laws[name] = id(module)


_without_laws: dict[str, int] = {}  # modules by name: every trace asks for them, and a process may have thousands
TRACED_PACKAGES = tuple(
    f"geomctrl.{package}" for package in ("arguments", "lie", "mechanism", "terms", "papers", "control", "controllers")
)


def _replacements(owner: int) -> tuple[dict[Any, Any], dict[str, Any]]:
    """The replacements of numpy, math, their functions and builtins by name, for that thread."""

    own = functools.partial(_InThread, owner)
    of_numpy: dict[str, Any] = {name: _TakesLists(f, owner) for name, f in _functions_of(np)}
    of_linalg: dict[str, Any] = {name: _TakesLists(f, owner) for name, f in _functions_of(np.linalg)}
    of_numpy |= {name: own(ORIGINAL[name], _array_maker(name)) for name in ORIGINAL}
    of_numpy |= {"r_": _Joiner(np.r_, owner, 1), "c_": _Joiner(np.c_, owner, 2)}
    of_numpy["ndenumerate"] = own(np.ndenumerate, lambda a: ((k, _array(a)[k]) for k in np.ndindex(np.shape(a))))
    of_numpy["fromiter"] = own(np.fromiter, _from_iterable)
    of_numpy["arange"] = own(np.arange, lambda *args, **kwargs: visible(np.arange(*args, **kwargs)))
    of_numpy["linalg"] = _Module(np.linalg, of_linalg)
    of_math = {name: own(f, math_on_symbols(name)) for name, f in vars(math).items() if callable(f) and name[0] != "_"}
    builtin = {"max": own(max, _extreme(max)), "min": own(min, _extreme(min)), "print": own(print, _print)}
    builtin |= {f.__name__: own(f, _bytes_of(f)) for f in (memoryview, bytearray)}
    builtin["hasattr"] = own(hasattr, has_attribute)
    of_numpy["frombuffer"] = own(np.frombuffer, _bytes_of(np.frombuffer))
    builtin |= type_replacements(owner)
    of_statistics = {name: own(getattr(statistics, name), mean_on_symbols(name)) for name in ("mean", "fmean")}
    filters = (warnings.simplefilter, warnings.filterwarnings)
    of_warnings = {f.__name__: own(f, warning_filter(f)) for f in filters}
    replacements: dict[Any, Any] = {}
    modules = (
        (np.linalg, of_linalg),
        (np, of_numpy),
        (math, of_math),
        (statistics, of_statistics),
        (warnings, of_warnings),
    )
    for module, functions in modules:
        replacements |= {getattr(module, name): f for name, f in functions.items()}
        replacements[module] = _Module(module, functions)
    return replacements, builtin


def _functions_of(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """numpy's functions of arrays in one of its modules."""
    functions = ((name, f) for name, f in vars(module).items() if isinstance(f, (np.ufunc, type(np.sum))))
    return ((name, f) for name, f in functions if name not in ("may_share_memory", "shares_memory"))


class _Replaced:
    """A replacement that is equal to the original function, as a key of a dict and in comparisons."""

    _function: Any

    def __eq__(self, other: object) -> bool:
        return self is other or getattr(other, "_function", other) is self._function

    def __hash__(self) -> int:
        return hash(self._function)

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self._function) if called_by_user() else type(self)


class _InThread(_Replaced):
    """A function that has a replacement in one thread."""

    def __init__(self, owner: int, original: Callable[..., Any], replacement: Callable[..., Any]):
        self._function, self._owner, self._replacement = original, owner, replacement

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._replacement if threading.get_ident() == self._owner else self._function)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


class _TakesLists(_Replaced):
    """A numpy function, or a method of one, that accepts lists of symbols like arrays of symbols.

    numpy dispatches on arrays and symbols (`__array_function__`), but not on the entries of lists.
    """

    def __init__(self, function: Any, owner: int, method: str = "__call__"):
        self._function, self._owner, self._method = function, owner, method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != self._owner:
            return getattr(self._function, self._method)(*args, **kwargs)
        if not any(map(holds_hidden_symbols, (*args, *kwargs.values()))):
            return visible(getattr(self._function, self._method)(*args, **kwargs))
        if isinstance(self._function, np.ufunc):
            return getattr(self._function, self._method)(*map(array_of_list, args), **kwargs)
        return row_of(self._function, plain(args), plain(kwargs))

    def __getattr__(self, name: str) -> Any:
        x = getattr(self._function, name)
        return _TakesLists(self._function, self._owner, name) if name in METHODS else x


METHODS = {"reduce", "accumulate", "outer"}  # of ufuncs


class _Joiner:
    """np.r_ (ndim 1) or np.c_ (ndim 2), which also joins symbols."""

    def __init__(self, original: Any, owner: int, ndim: int):
        self._original, self._owner, self._ndim = original, owner, ndim

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if threading.get_ident() != self._owner or not holds_any(parts):
            return self._original[key]
        refuse_common(parts, weak=True)
        if isinstance(parts[0], str):
            raise UntraceableError(f"np.r_[{parts[0]!r}, ...] can not be traced{caller()}: call np.stack")
        return row_of(np.concatenate, ([*map(self._part, parts)], 1 - self._ndim), {})

    def _part(self, x: Any) -> np.ndarray:
        x = ORIGINAL["array"](self._original[x] if isinstance(x, slice) else plain(x), object, ndmin=1)
        return x[:, None] if x.ndim < self._ndim else x


class _Module(ModuleType):
    """A module with some functions replaced."""

    def __init__(self, module: ModuleType, functions: dict[str, Any]):
        super().__init__(module.__name__)
        self.__dict__.update(functions, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _array_maker(name: str) -> Callable[..., Any]:
    """The numpy function of that name, whose arrays can hold symbols."""
    original = ORIGINAL[name]

    def filled(*args, **kwargs):
        array = original(*map(array_of_list, args), **kwargs)
        if array.dtype != np.float64:
            return visible(wrapped(array))
        return (0.0 * ORIGINAL["ones"](array.shape) if "empty" in name else array).astype(object).view(SymbolArray)

    def converted(x, *args, **kwargs):
        x = plain(x) if isinstance(x, SEQUENCES) else x
        kind = args[0] if args else kwargs.get("dtype")
        alone = len(args) + len(kwargs) == (kind is not None)
        if name == "asarray" and type(x) is SymbolArray and alone and (kind is None or np.dtype(kind) == dtype_of(x)):
            return x
        if kind is None and isinstance(x, SEQUENCES) and holds_any(x):
            refuse_common(x)
        if kind is not None and kind is not object and holds_any(x):
            return original(x, object).view(SymbolArray).astype(kind)
        if type(x) is ConstantArray and name in ("asarray", "asanyarray"):
            return np.asanyarray(x, *args, **kwargs)
        try:
            with unrecorded_errors():
                array = original(x, *args, **kwargs)
        except (UntraceableError, TypeError):  # the argument holds symbols in spite of dtype=float
            further = {key: value for key, value in kwargs.items() if key != "dtype"}
            return entered(original(x, object, *args[1:], **further))
        copied = name == "array" and array.dtype == np.float64  # a copy that may be modified
        return wrapped(array.astype(object)) if copied else visible(wrapped(array))

    return filled if name in FILLED else converted


_array = _array_maker("asarray")


def _from_iterable(iterable: Any, dtype: Any, count: int = -1) -> Any:
    """np.fromiter, whose array can hold symbols."""
    entries = list(iterable)
    original = not holds_any(entries) or count not in (-1, len(entries))
    return np.fromiter(entries, dtype, count) if original else _array_maker("array")(entries, dtype)


def _extreme(original: Callable[..., Any]) -> Callable[..., Any]:
    """max or min, for numbers and symbols."""

    def chosen(*args, **kwargs):
        values = args if len(args) > 1 else list(*args)
        if kwargs.keys() - ({"default"} if len(args) == 1 else ()) or not any(map(has_symbols, values)):
            return original(*args, **kwargs) if len(args) > 1 else original(values, **kwargs)
        return functools.reduce(functools.partial(_more_extreme, original.__name__), map(_one, values))

    return chosen


def _one(x: Any) -> Any:
    """A number or symbol, also from an array of one."""
    x = x.item() if type(x) is SymbolArray else x
    refuse_dtype(x)
    if type(x) is Condition:
        raise UntraceableError(f"min and max of conditions can not be traced{caller()}: write int(condition)")
    return x


def _more_extreme(name: str, a: Any, b: Any) -> Any:
    """The larger or smaller of two with its own kind; the first if they are equal."""
    x, y = (z if type(z) is int or isinstance(z, np.integer) else scalar(z) for z in (a, b))
    extreme, kinds = binary(name, x, y), (kind_of(a), kind_of(b))
    if not is_symbol(extreme):
        return (max if name == "max" else min)(a, b)
    if kinds[0] is kinds[1]:
        return with_kind(extreme, kinds[0])
    second = relation("lt", x, y) if name == "max" else relation("lt", y, x)
    kind = (
        ConditionalKind(second, kinds[1], kinds[0]) if isinstance(second, Condition) else kinds[0 if not second else 1]
    )
    return with_kind(extreme, kind)


def _bytes_of(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that reads the memory of an object, which holds no numbers in an array of symbols."""

    def read(*args: Any, **kwargs: Any) -> Any:
        if any(map(holds_any, (*args, *kwargs.values()))):
            raise UntraceableError(f"the bytes of a symbol are read by {original.__name__}{caller()}")
        return original(*args, **kwargs)

    return read


def _print(*_: Any, **__: Any) -> None:
    raise UntraceableError(
        f"print is called{caller()}: compiled code can not print;"
        " return the value, or make it a signal, and print it after the run"
    )
