"""Compiled kernels: numba with explicit types and an on-disk cache that can not go stale.

`@primitive` marks a small function that other kernels call and LLVM inlines; it is never called from Python.
`@kernel(signature)` marks an entry from Python. It is compiled for exactly the declared argument types, at its first
call or from the cache, and raises `KernelTypeError` for any other: the public function then validates, converts and
calls again, so the common call pays for no validation in Python and no call compiles a variant by accident.

Numba keys its cache by the file that defines a function and does not see edits to callees in other files. The stamp
here is a hash of every source that holds kernels, so an edit to any of them recompiles all that were cached before.
"""

import contextlib
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, sigutils

__all__ = ["KernelTypeError", "kernel", "primitive"]

# contract, nsz and arcp are 15 % faster than strict IEEE; nan and inf keep their meaning, so guards still see them.
FLAGS = {"error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}

primitive: Any = numba.njit(forceinline=True, **FLAGS)


class KernelTypeError(TypeError):
    """A kernel was called with argument types it was not declared for: (its name, what was declared, what came)."""

    def __str__(self):  # made when it is read: public functions catch this error, and to name numba's types takes 50 us
        if len(self.args) != 3:
            return super().__str__()
        name, declared, given = self.args
        return f"{name} is compiled for {declared}, got ({', '.join(str(numba.typeof(a)) for a in given)})"


@cache
def source_stamp() -> str:
    """Hash of all sources of the core that hold kernels, and of the compiler flags."""
    digest = hashlib.sha256(
        repr((FLAGS["error_model"], sorted(FLAGS["fastmath"]))).encode()
    )  # sets print in hash order
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_bytes()
        if b"@kernel" in text or b"@primitive" in text:
            digest.update(path.name.encode() + text)
    return digest.hexdigest()


def _stamped(locator: type) -> type:
    return type("Stamped" + locator.__name__, (locator,), {"get_source_stamp": lambda self: source_stamp()})


class _KernelCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [  # noqa: RUF012 (numba's own attribute)
        _stamped(caching.UserProvidedCacheLocator),
        _stamped(caching.InTreeCacheLocator),
        _stamped(caching.UserWideCacheLocator),
    ]


class _KernelCache(caching.FunctionCache):
    _impl_class = _KernelCacheImpl


def kernel(signature: str) -> Callable[[Callable], Any]:
    """Decorator: compile for exactly `signature` (numba's notation), lazily, cached on disk."""

    def wrap(function: Callable) -> Any:
        dispatcher: Any = numba.njit(**FLAGS)(function)
        with contextlib.suppress(RuntimeError):  # no writable place for a cache: kernels then live for one process
            dispatcher._cache = _KernelCache(function)
        declared, _ = sigutils.normalize_signature(signature)

        def compile_declared(*args, **kwargs):
            if dispatcher.overloads:
                raise KernelTypeError(function.__name__, declared, args)
            dispatcher.compile(declared)
            return dispatcher

        dispatcher._compile_for_args = compile_declared
        return dispatcher

    return wrap
