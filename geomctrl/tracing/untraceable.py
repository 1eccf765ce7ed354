"""`UntraceableError`: raised for code that can not be traced, and raised again if user code catches it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, TypeVar

from geomctrl.errors import GeomctrlError

T = TypeVar("T")
LISTED = "write it with functions that geomctrl/tracing/README.md lists, or compute it before"
LEAKS = {
    "__hash__": "is a key of a dict or set",
    **dict.fromkeys(("__str__", "__repr__", "__format__", "hex"), "is written as text"),
    **dict.fromkeys(("__bytes__", "tobytes"), "is used as bytes"),  # not __buffer__, for which numpy asks (Python 3.12)
    "__int__": "is used as an integer",
    "__complex__": "is used as a complex number",
    "__reduce_ex__": "is stored",
    "__getstate__": "is stored",
    "is_integer": "is tested with is_integer",
    "as_integer_ratio": "is used as a fraction",
}
INSTEAD_OF_LEAKS = {
    "is a key of a dict or set": "write `if`, np.where, or an integer with few values as the key",
    "is written as text": "write texts after the run, from what the code returns",
    "is used as bytes": "compute with the numbers",
    "is used as an integer": "write int(x[k]) for one entry, x.astype(int) for all",
    "is used as a complex number": "write the real and the imaginary part as two numbers",
    "is stored": "copy arrays by x.copy()",
    "is tested with is_integer": "write x == np.floor(x)",
    "is used as a fraction": "compute with floats",
    "needs values": "write np.where or np.select",
}
asker: ContextVar[Callable[[Any], bool] | None] = ContextVar("asker", default=None)  # decides the truth of conditions
_raised: ContextVar[list[UntraceableError] | None] = ContextVar("raised", default=None)


class UntraceableError(GeomctrlError):
    """Code needs the numerical value of a symbol, which is unknown while tracing; the message has file and line."""

    def __init__(self, *args: object):
        super().__init__(*args)
        errors = _raised.get()
        if errors is not None:
            errors.append(self)


class UnknownValueError(UntraceableError):
    """Code uses a symbol as an index, a key, a text or another object that has one value."""


@contextmanager
def assigned(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Context in which a variable has this value, for the current thread."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


@contextmanager
def reraise_untraceable() -> Iterator[None]:
    """Context for user code that runs with symbols: an error that the code has caught is raised at the end.

    It is also raised instead of the SystemError that follows from it in loops of numpy that continue after an error.
    """
    errors: list[UntraceableError] = []
    with assigned(_raised, errors):
        try:
            yield
        except SystemError:
            if not errors:
                raise
    if errors:
        raise type(errors[0])(*errors[0].args)


def runs_on_symbols() -> bool:
    """Whether user code is currently running with symbols."""
    return _raised.get() is not None


def unrecorded_errors() -> AbstractContextManager[None]:
    """Context for attempts: errors inside are not recorded, because the caller tries something else."""
    return assigned(_raised, None)


_libraries = ["geomctrl.tracing", "geomctrl.arguments", "numpy", "scipy", "numba"]


def skip_frames_of(*packages: str) -> None:
    """Let `caller` skip the frames of these packages, which lie between user code and a symbol."""
    _libraries.extend(packages)


def caller() -> str:
    """Text ", in FILE, line N" for the current line of a kernel or law."""
    frame = calling_frame()
    return f", in {frame.f_code.co_filename}, line {frame.f_lineno}" if frame is not None else ""


def calling_frame() -> FrameType | None:
    """The innermost frame of a kernel or law."""
    frame = sys._getframe(1)
    packages = tuple(f"{name}." for name in _libraries)
    while frame is not None and _is_library(frame.f_globals.get("__name__", ""), packages):
        frame = frame.f_back
    return frame


def _is_library(module: str, packages: tuple[str, ...]) -> bool:
    return f"{module}.".startswith(packages) or module.partition(".")[0] in sys.stdlib_module_names - {"__main__"}
