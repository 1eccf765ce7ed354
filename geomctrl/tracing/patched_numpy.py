"""What stands in the place of numpy, math, max, min and print while a law runs on symbols.

`arrays` is what numpy's own functions do on arrays of symbols; here is what has to be another function: new arrays of
numbers, which can hold symbols too, and functions of single numbers.
"""

from __future__ import annotations

import functools
import math
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np

from .arrays import SymbolArray, has_symbols, plain, require, scalar, wrapped
from .elementwise import BINARY, UNARY
from .symbols import (
    UntraceableError,
    as_python,
    as_whole,
    binary,
    caller,
    div,
    is_finite,
    is_python,
    perhaps_python,
    unary,
)
from .tables import scipy_on_symbols
from .type_tests import type_for
from .untraceable import tried

FILLED = ("zeros", "empty", "ones", "full", "zeros_like", "empty_like", "ones_like", "full_like", "eye", "identity")
CONVERTED = ("array", "asarray", "ascontiguousarray", "asanyarray")
ORIGINAL = {name: getattr(np, name) for name in (*FILLED, *CONVERTED)}

_lock = threading.RLock()


@contextmanager
def numpy_on_symbols(*spaces: dict[str, Any]) -> Iterator[None]:
    """While this lasts, in this thread, new arrays of numbers that a user's code and the rooms above make with numpy
    can hold symbols, math's functions, max and min take symbols, and print is refused.

    In the globals of these modules, and in `spaces`, numpy, math and their functions are replaced. They themselves stay
    what they are: compiled libraries call numpy's functions too and take what comes for numbers.
    """
    with _lock, scipy_on_symbols(), np.errstate(all="ignore"):  # what becomes of constants shows when the law runs
        twins, builtin = _twins(threading.get_ident())
        rooms = {id(space): space for space in (*_spaces(), *spaces)}.values()
        places = [
            (space, name, value)
            for space in rooms
            for name, value in list(space.items())
            if isinstance(value, REPLACED) and value in twins
        ]
        added = [
            (space, name)
            for space in rooms
            for name in builtin
            if name not in space and not (name == "type" and space.get("__name__", "").startswith("geomctrl."))
        ]
        try:
            for space, name, value in places:
                space[name] = twins[value]
            for space, name in added:
                space[name] = builtin[name]
            yield
        finally:
            for space, name, value in places:
                space[name] = value
            for space, name in added:
                space.pop(name, None)


REPLACED = (ModuleType, BuiltinFunctionType, type(np.full))


def _spaces() -> Iterator[dict[str, Any]]:
    """The globals of a user's modules and of the rooms whose functions a law may call."""
    installed = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType):
            own = name.startswith("geomctrl.")
            file = getattr(module, "__file__", None) or ""
            if name.startswith(ROOMS) if own else not file.startswith(installed):
                yield vars(module)


ROOMS = tuple(
    f"geomctrl.{room}" for room in ("arguments", "lie", "mechanism", "terms", "papers", "control", "controllers")
)


def _twins(owner: int) -> tuple[dict[Any, Any], dict[str, Any]]:
    """What stands in the place of numpy, math and their functions, and of Python's own by name, for that thread."""

    def own(original: Callable[..., Any], twin: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: (twin if threading.get_ident() == owner else original)(*args, **kwargs)

    of_numpy = {name: own(ORIGINAL[name], _array_maker(name)) for name in ORIGINAL}
    of_math = {name: own(f, _of_math(name)) for name, f in vars(math).items() if callable(f) and name[0] != "_"}
    builtin = {"max": own(max, _extreme(max)), "min": own(min, _extreme(min)), "print": own(print, _print)}
    builtin["type"] = type_for(owner)
    twins = {getattr(np, name): f for name, f in of_numpy.items()} | {
        getattr(math, name): f for name, f in of_math.items()
    }
    return {**twins, np: _Module(np, of_numpy), math: _Module(math, of_math)}, builtin


class _Module(ModuleType):
    """A module with others in the place of some of its functions."""

    def __init__(self, module: ModuleType, functions: dict[str, Any]):
        super().__init__(module.__name__)
        self.__dict__.update(functions, _module=module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _array_maker(name: str) -> Callable[..., Any]:
    """numpy's function of that name, whose arrays of numbers can hold symbols."""
    original = ORIGINAL[name]

    def filled(*args, **kwargs):
        array = original(*args, **kwargs)
        if array.dtype != np.float64:
            return wrapped(array)
        return (0.0 * ORIGINAL["ones"](array.shape) if "empty" in name else array).astype(object).view(SymbolArray)

    def converted(x, *args, **kwargs):
        x = plain(x) if isinstance(x, (tuple, list)) else x
        kind = args[0] if args else kwargs.get("dtype")
        if kind not in (None, float, np.float64, object, "float", "float64") and _holds_any(x):
            raise UntraceableError(f"symbols as {np.dtype(kind)} do not trace{caller()}")
        try:
            with tried():
                array = original(x, *args, **kwargs)
        except (UntraceableError, TypeError):  # with dtype=float: what it holds has none yet
            return original(x, dtype=object).view(SymbolArray)
        copied = name == "array" and array.dtype == np.float64  # to be written on
        return wrapped(array.astype(object) if copied else array)

    return filled if name in FILLED else converted


def _holds_any(x: Any) -> bool:
    return any(map(_holds_any, x)) if isinstance(x, (tuple, list)) else has_symbols(x)


def _of_math(name: str) -> Callable[..., Any]:
    """math's function of that name, on numbers and symbols."""
    original, row = getattr(math, name), MATH.get(name)

    def function(*args):
        if not any(map(has_symbols, args)):
            return original(*args)
        if row is None:
            raise UntraceableError(f"math.{name} of a symbol does not trace{caller()}")
        try:
            result = row(*map(scalar, args))
        except TypeError as error:
            raise UntraceableError(f"math.{name} of symbols does not trace{caller()}: {error}") from None
        own = not sys._getframe(2).f_globals.get("__name__", "").startswith("geomctrl.")  # where nothing is chosen from
        if own and name in WHOLE:
            require(is_finite(scalar(args[0])))
        elif own and name not in TOTAL:  # Python raises where numpy has nan or inf
            require(is_finite(result))
        return as_python(result)

    return function


TOTAL = {"fabs", "copysign", "atan", "atan2", "tanh", "asinh", "cbrt", "degrees", "radians"}  # these never raise
TOTAL |= {"isnan", "isinf", "isfinite", "hypot", "dist"}
WHOLE = {"floor", "ceil", "trunc"}


def _logarithm(x: Any, base: Any = None) -> Any:
    if base is None:
        return unary("log", x)
    scale = unary("log", base)
    require(is_finite(div(1.0, scale)))
    require(is_finite(scale))
    return div(unary("log", x), scale)


def _whole(function: Callable[[Any], Any], x: Any) -> Any:
    return as_whole(function(x))


def _hypotenuse(x: Any, *others: Any) -> Any:
    return functools.reduce(lambda a, b: binary("hypot", a, b), others, x) if others else unary("abs", x)


MATH: dict[str, Callable[..., Any]] = {
    **{name: f for name, f in (UNARY | BINARY).items() if hasattr(math, name) and name != "remainder"},
    **{name: UNARY[f"arc{name[1:]}"] for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    **{name: functools.partial(_whole, UNARY[name]) for name in WHOLE},
    "atan2": BINARY["arctan2"],
    "pow": BINARY["power"],
    "remainder": lambda x, y: binary("remainder", x, y),
    "log": _logarithm,
    "hypot": _hypotenuse,
}


def _extreme(original: Callable[..., Any]) -> Callable[..., Any]:
    """max or min, on numbers and symbols."""

    def chosen(*args, **kwargs):
        values = args if len(args) > 1 else list(*args)
        if not any(map(has_symbols, values)):
            return original(*args, **kwargs) if len(args) > 1 else original(values, **kwargs)
        if "key" in kwargs:
            raise UntraceableError(f"{original.__name__} of symbols by a key does not trace{caller()}")
        extreme = functools.reduce(lambda a, b: binary(original.__name__, a, b), map(scalar, values))
        kinds = {bool(is_python(x)) for x in values}
        return perhaps_python(extreme) if len(kinds) > 1 else as_python(extreme) if True in kinds else extreme

    return chosen


def _print(*_: Any, **__: Any) -> None:
    raise UntraceableError(f"print{caller()}: a compiled law prints nothing")
