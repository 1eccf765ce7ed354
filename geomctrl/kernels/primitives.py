"""Kernels are plain Python functions; this module marks primitives and entries, and lets numba run them when called.

`@primitive` marks a small function that kernels call: numba inlines it. `@kernel(signature)` marks an entry from
Python, a `Kernel`. Decorating costs nothing: numba is imported at an entry's first call (`numba_loops`), and what is
decorated stays callable on whatever Python computes with: floats, complex numbers, intervals, symbols.

An entry is compiled for exactly the declared argument types, once, or loaded from the disk, and raises
`KernelTypeError` for any other: the public function then validates, converts and calls again, so that the common call
pays for no validation in Python and no call compiles a variant by accident.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from geomctrl.tracing.code_identity import codes, names_of

# contract, nsz and arcp are 15 % faster than strict IEEE; nan and inf keep their meaning, so guards still see them.
FLAGS = {"error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}

F = TypeVar("F", bound=Callable[..., Any])
_primitives: set[Callable[..., Any]] = set()


class KernelTypeError(TypeError):
    """A kernel was called with argument types it was not declared for: (its name, what was declared, what came)."""

    def __str__(self):  # made when it is read: public functions catch this error, and to name numba's types takes 50 us
        if len(self.args) != 3:
            return super().__str__()
        import numba

        name, declared, arguments = self.args
        return f"{name} is compiled for {declared}, got ({', '.join(str(numba.typeof(a)) for a in arguments)})"


def primitive(function: F) -> F:
    """Decorator: a function that kernels call. It stays what it is; in numba's loops it is inlined."""
    _primitives.add(function)
    return function


def is_primitive(x: object) -> bool:
    return isinstance(x, FunctionType) and x in _primitives


def python_function(x: Any) -> Callable[..., Any] | None:
    """The Python function behind a primitive, a `Kernel` or what took its place; None for anything else."""
    if is_primitive(x):
        return x
    function = getattr(x, "py_func", None)
    return function if isinstance(function, FunctionType) else None


# --- what a kernel depends on ------------------------------------------------------------------------------------


def references(function: Callable[..., Any]) -> dict[str, Any]:
    """The globals that the function uses, those of comprehensions and inner functions included."""
    scope = function.__globals__
    return {name: scope[name] for name in sorted(names_of(function.__code__).loaded) if name in scope}


@functools.cache
def fingerprint(function: Callable[..., Any]) -> str:
    """A hash of what the function computes: its bytecode and constants, and those of all that it calls.

    What is compiled is kept under this key, so that no edit leaves anything stale, and no edit elsewhere (or of a
    comment) recompiles anything. Raises TypeError where a kernel refers to what can not be fingerprinted.
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
    """The modules of the function and of all functions and classes that it uses, which pickles of its code name."""
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
        f"{function.__module__}.{function.__name__} uses {name} = {value!r:.60}: a kernel knows numbers, tuples,"
        " primitives and the functions of numpy and math alone"
    )


_compiling = threading.RLock()
_watchers: list[Callable[[str], object]] = []


@contextlib.contextmanager
def watch_compiling(watcher: Callable[[str], object]) -> Iterator[None]:
    """Inside `with`, `watcher` is called with an entry's name before it is compiled, not before it is loaded."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def _announce(name: str) -> None:
    for watcher in tuple(_watchers):
        watcher(name)


class Kernel:
    """An entry from Python: `py_func` is the function as written, a call runs what numba makes of it.

    The first call puts numba's dispatcher in the place of this object in the module that defines it: entries are best
    called as attributes of their modules, `so3.exp_many(...)`, which then costs nothing extra.
    """

    def __init__(self, function: Callable[..., Any], signature: str):
        functools.update_wrapper(self, function)
        self.py_func, self.signature = function, signature

    def __call__(self, *args: Any) -> Any:
        return self.dispatcher(*args)

    @functools.cached_property
    def dispatcher(self) -> Callable[..., Any]:
        dispatcher = compiled(self.py_func, self.signature)
        home = vars(sys.modules.get(self.py_func.__module__, sys))
        if home.get(self.py_func.__name__) is self:
            home[self.py_func.__name__] = dispatcher
        return dispatcher


def kernel(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: an entry from Python, compiled for exactly `signature` (numba's notation) at its first call."""
    return lambda function: Kernel(function, signature)


def compiled(function: Callable[..., Any], signature: str) -> Any:
    """The function as numba runs it from Python, for exactly `signature`; the first of several threads makes it."""
    from .numba_loops import entry

    with _compiling:
        return entry(function, signature, _announce)
