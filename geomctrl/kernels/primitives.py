"""Primitives, the plain Python functions that kernels call; their compiler flags, and fingerprints of their code."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from geomctrl.tracing.code_identity import codes, names_of

# contract, nsz and arcp are 15 % faster than strict IEEE; nan and inf keep their meaning, so guards still see them.
FLAGS = {"error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}
STRICT_FLAGS = {"error_model": "numpy"}  # of kernels that bound their rounding errors: each operation rounds once

F = TypeVar("F", bound=Callable[..., Any])
_primitives: set[Callable[..., Any]] = set()


class KernelTypeError(TypeError):
    """A kernel was called with other argument types than declared: (its name, declared types, arguments)."""

    def __str__(self):  # formatted lazily: public functions catch this error, and naming numba's types takes 50 us
        if len(self.args) != 3:
            return super().__str__()
        import numba

        name, declared, arguments = self.args
        return f"{name} is compiled for {declared}, got ({', '.join(str(numba.typeof(a)) for a in arguments)})"


def primitive(function: F) -> F:
    """Decorator for a function that kernels call. The function is unchanged; numba's loops inline it."""
    _primitives.add(function)
    return function


def is_primitive(x: object) -> bool:
    return isinstance(x, FunctionType) and x in _primitives


def python_function(x: Any) -> Callable[..., Any] | None:
    """The Python function behind a primitive, a `Kernel` or its replacement; None for other objects."""
    if is_primitive(x):
        return x
    function = getattr(x, "py_func", None)
    return function if isinstance(function, FunctionType) else None


# --- what a kernel depends on ------------------------------------------------------------------------------------


def references(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the globals that a function uses, including those of comprehensions and inner functions.

    Globals with the name of an attribute in the code are included, except the function itself. Telling them apart would
    need disassembly, a tenth of the time of a first run.
    """
    scope, code = function.__globals__, function.__code__
    used = {name: scope[name] for name in sorted({n for c in codes(code) for n in c.co_names}) if name in scope}
    if all(getattr(x, "py_func", x) is not function for x in used.values()):
        return used
    return {name: x for name, x in used.items() if name in names_of(code).loaded}


@functools.cache
def fingerprint(function: Callable[..., Any]) -> str:
    """Return a hash of the bytecode and constants of the function and of all functions that it calls.

    Compiled code is cached under this key, so it is recompiled when this code changes, but not when comments or other
    functions change. Raises TypeError if a kernel refers to an object without a fingerprint.
    """
    digest = hashlib.sha256()
    for code in codes(function.__code__):
        constants = [c for c in code.co_consts if not isinstance(c, CodeType) and c != function.__doc__]
        digest.update(code.co_code)
        digest.update(repr((code.co_names, code.co_varnames, code.co_freevars, constants)).encode())
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {**references(function), **{name: cell.cell_contents for name, cell in cells}}
    for name, value in sorted(values.items()):
        digest.update(f"{name} = {_described(function, name, value)};".encode())
    digest.update(repr(function.__defaults__).encode())
    return digest.hexdigest()


@functools.cache
def modules(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the modules of the function and of all functions and classes that it uses; pickles contain their names."""
    used = (*references(function).values(), *(cell.cell_contents for cell in function.__closure__ or ()))
    names = {str(x.__module__) for x in (function, *used) if x is function or isinstance(x, type)}
    called = (modules(inner) for x in used if (inner := python_function(x)) is not None)
    return tuple(sorted(names.union(*called)))


def _described(function, name: str, value: Any) -> str:
    inner = python_function(value)
    if inner is not None:
        return fingerprint(inner)
    if isinstance(value, ModuleType) and value.__name__ in ("numpy", "math"):
        return value.__name__
    if isinstance(value, type) and issubclass(value, (tuple, BaseException)):
        return f"{value.__name__}{getattr(value, '_fields', '')}"
    if isinstance(value, (bool, int, float, complex, str, tuple, np.generic, type(None))):
        return repr(value)
    if callable(value) and getattr(value, "__module__", None) in ("builtins", "math", "numpy"):
        return value.__name__
    raise TypeError(
        f"{function.__module__}.{function.__name__} uses {name} = {value!r:.60}: a kernel can only use numbers, tuples,"
        " primitives and functions of numpy and math"
    )
