"""numpy's floating-point errors as exceptions: the exception depends on numbers, which are unknown while tracing."""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .code_identity import in_cell, is_followed, origin
from .untraceable import UntraceableError

INSTEAD = "write a test, as in np.where(x == 0.0, y, 1.0 / x) or `if x < 0.0:`"
REFUSED = {
    "raise": "raises an exception",
    "call": "calls a function",
    "print": "prints",
    "log": "writes messages",
    "error": "raises an exception",
}
# numpy's function behind errstate, also as a decorator, and seterr: `_make_extobj`, before numpy 2 `seterr`
_SPACE: dict[str, Any] = np.errstate.__enter__.__globals__
_SETTER = "_make_extobj" if "_make_extobj" in _SPACE else "seterr"
DECORATED = np.errstate()(lambda: None).__code__


def refuse_raised_errors() -> None:
    """Raise UntraceableError if numpy's settings make floating-point errors exceptions or calls."""
    for error, how in np.geterr().items():
        if how in ("raise", "call"):
            raise UntraceableError(
                f"np.geterr()[{error!r}] is {how!r}: compiled code and proofs have no exceptions or calls at"
                f" floating-point errors; call np.seterr({error}='warn') before, and {INSTEAD}"
            )


@contextmanager
def raised_errors_refused() -> Iterator[None]:
    """Context for user code with symbols: in this thread it can not make floating-point errors exceptions or calls."""
    original, owner = _SPACE[_SETTER], threading.get_ident()

    def checked(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == owner and (frame := _user_frame()) is not None:
            for how in (*args, *kwargs.values()):
                _refuse(how, frame, "numpy's errors")
        return original(*args, **kwargs)

    _SPACE[_SETTER] = checked
    try:
        yield
    finally:
        _SPACE[_SETTER] = original


def warning_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    """warnings.simplefilter or filterwarnings for code with symbols, without exceptions."""

    @functools.wraps(function)
    def checked(action: Any, *args: Any, **kwargs: Any) -> Any:
        frame = _user_frame()
        if frame is not None:
            _refuse(action, frame, "warnings")
        return function(action, *args, **kwargs)

    return checked


def _refuse(how: Any, frame: types.FrameType, subject: str) -> None:
    if how == "warn" and any(x[0] == "error" and issubclass(RuntimeWarning, x[2]) for x in warnings.filters):
        how = "error"
    if isinstance(how, str) and how in REFUSED:
        raise UntraceableError(
            f"{subject} are set to {how!r}, which {REFUSED[how]}, in {frame.f_code.co_filename}, line {frame.f_lineno}:"
            f" {INSTEAD}"
        )


def _user_frame() -> types.FrameType | None:
    """The frame of user code that calls this, also through numpy and Python's library; None for other callers."""
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if is_followed(module):
            return frame
        if module.startswith("numpy.linalg"):  # reports failures by a call of its own
            return None
        passed = origin(module) == "python" or module.partition(".")[0] == "numpy" or module.startswith(__package__)
        if not passed:
            return None
        frame = frame.f_back
    return None


def refuse_decorated(function: types.FunctionType) -> None:
    """Raise UntraceableError for a function under `@np.errstate(...)`, whose copy would share numpy's settings."""
    if function.__code__ is DECORATED and any(type(in_cell(x)) is np.errstate for x in function.__closure__ or ()):
        code = getattr(vars(function).get("__wrapped__"), "__code__", function.__code__)
        raise UntraceableError(
            f"{function.__name__} is decorated with np.errstate, in {code.co_filename}, line {code.co_firstlineno}:"
            f" write `with np.errstate(all='ignore'):` inside, and for errors as exceptions {INSTEAD}"
        )
