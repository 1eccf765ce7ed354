"""Mark kernels that Python calls, and compile them with numba at their first call.

`@primitive` marks a small function that kernels call: numba inlines it. `@kernel(signature)` marks an entry from
Python, a `Kernel`. Decorating is free: numba is imported at an entry's first call (`numba_loops`), and the function
remains callable with floats, complex numbers, intervals and symbols.

An entry is compiled for exactly the declared argument types, once, or loaded from disk, and raises `KernelTypeError`
for other types. The public function then validates, converts and calls again. The common call therefore needs no
validation in Python, and no call compiles a variant by accident.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from geomctrl.tracing.locks import numba_at_work

from .interrupts import interrupts_deferred

_watchers: list[Callable[[str], object]] = []


@contextlib.contextmanager
def watch_compiling(watcher: Callable[[str], object]) -> Iterator[None]:
    """In this context, call `watcher` with the name of each entry that is compiled; not for those loaded from disk."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def _announce(name: str) -> None:
    for watcher in tuple(_watchers):
        watcher(name)


class Kernel:
    """An entry from Python: `py_func` is the function as written, a call runs its compiled version.

    The first call replaces this object by numba's dispatcher in the module that defines it. Call entries as attributes
    of their modules, `so3.exp_many(...)`, so that further calls have no overhead.
    """

    def __init__(self, function: Callable[..., Any], signature: str, strict: bool = False):
        functools.update_wrapper(self, function)
        self.py_func, self.signature, self.strict = function, signature, strict

    def __call__(self, *args: Any) -> Any:
        return self.dispatcher(*args)

    @functools.cached_property
    def dispatcher(self) -> Callable[..., Any]:
        dispatcher = compiled(self.py_func, self.signature, self.strict)
        home = vars(sys.modules.get(self.py_func.__module__, sys))
        if home.get(self.py_func.__name__) is self:
            home[self.py_func.__name__] = dispatcher
        return dispatcher


def kernel(signature: str, strict: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Decorator for an entry from Python, compiled for exactly `signature` (numba's notation) at its first call.

    strict: every operation is rounded once, as IEEE 754 says; nothing is contracted or reordered.
    """
    return lambda function: Kernel(function, signature, strict)


def compiled(function: Callable[..., Any], signature: str, strict: bool = False) -> Any:
    """The function compiled by numba for exactly `signature`; with several threads, the first one compiles it."""
    with numba_at_work, interrupts_deferred():
        from .numba_loops import entry

        return entry(function, signature, _announce, strict)


def in_python(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """The function as it is, for the same arguments as when compiled."""
    from .numba_loops import uncompiled_entry

    return uncompiled_entry(function, signature)


def is_compiled(call: Any) -> bool:
    """Whether an entry that `compiled` returned need not be compiled when it is called."""
    from .numba_loops import needs_no_compilation

    return needs_no_compilation(call)
