"""Symbols in arrays, and the refusal of what numpy computes with them where tracing does not see it.

numpy asks arrays and single symbols for their own functions, but not lists. A list that it converts becomes a plain
array of objects. Its loops over objects compute and compare as Python does, without numpy's rules for nan and types.
"""

from __future__ import annotations

import dis
import sys
from types import FrameType
from typing import Any

import numpy as np

from .graph import FLOAT, INT, INT64, NUMPY, Condition, Symbol, kinds_in
from .untraceable import UntraceableError, caller, runs_on_symbols

NUMBERS = {NUMPY: np.float64, FLOAT: 0.0, INT: 0, INT64: np.int64}  # numpy's types of kinds; for Python's, numbers
DTYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "u": np.dtype(np.int64), "b": np.dtype(bool)}


def as_entry(x: Any) -> Any:
    """A symbol or condition as the entry of an array.

    User code computes with an entry only in numpy's loops over objects, which `refuse_loops` refuses: a number that it
    reads from an array is none (`as_number`).
    """
    return x if type(x) not in (Symbol, Condition) or x.in_array else _copied(x, True)


def as_number(x: Any) -> Any:
    """A symbol or condition that user code reads from an array."""
    return _copied(x, False) if type(x) in (Symbol, Condition) and x.in_array else x


def _copied(x: Any, in_array: bool) -> Any:
    copy = type(x)(x.graph, x.index, x.kind)
    copy.in_array = in_array
    return copy


def refuse_loops(*xs: Any) -> Any:
    """The first number. Raises UntraceableError if numpy's loops over objects compute with the entry of an array."""
    for x in xs:
        if (type(x) is Symbol or type(x) is Condition) and x.in_array and not _is_own(_caller_of_numpy(2)):
            _refuse_calls_of_numpy()
            raise UntraceableError(
                f"numpy's loops over objects get a list of arrays that depend on the state{caller()}: convert the list"
                " with np.array"
            )
    return xs[0]


CALLING = {"_vectorize_call": "np.vectorize", "apply_along_axis": "np.apply_along_axis"}  # by name of numpy's function


def _refuse_calls_of_numpy() -> None:
    """Raise UntraceableError if a function of numpy that calls the user's function for each entry is at work."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        of_numpy = frame.f_globals.get("__name__", "").startswith("numpy.")
        if of_numpy and frame.f_code.co_name in CALLING:
            raise UntraceableError(
                f"{CALLING[frame.f_code.co_name]} calls a function with parts of an array{caller()}: write a loop, as"
                " in np.array([f(y) for y in x])"
            )
        frame = frame.f_back


def refuse_scipy() -> None:
    """Raise UntraceableError if a function of scipy, which user code calls, needs the value of a symbol."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (module := frame.f_globals.get("__name__", "")).startswith(("numpy.", "scipy.")):
        if module.startswith("scipy."):
            raise UntraceableError(
                f"scipy gets a number that depends on the state{caller()}: only what tracing/README.md lists of scipy"
                " can be traced, if the law's module imports it at the top"
            )
        frame = frame.f_back


def _converted(self: Any, dtype: Any = None, copy: Any = None) -> np.ndarray:
    """A symbol in a list that numpy converts: refused except in tracing's own code."""
    frame = _caller_of_numpy(1)
    if runs_on_symbols() and not _is_own(frame):
        refuse_scipy()
        if dis.opname[frame.f_code.co_code[frame.f_lasti]] in ("BINARY_OP", "COMPARE_OP"):
            raise UntraceableError(
                f"an array or number of numpy is combined with a list that depends on the state{caller()}: convert the"
                " list with np.array"
            )
        raise UntraceableError(
            f"a library gets a list or number that depends on the state{caller()}: call numpy's functions as"
            " np.name(...), with numpy imported at the top of the module, and float(x) instead of np.float32(x)"
        )
    return np.fromiter((self,), object, 1).reshape(())


Symbol.__array__ = Condition.__array__ = _converted


def _caller_of_numpy(depth: int) -> FrameType:
    """The frame at a depth, or the one that called numpy there."""
    frame = sys._getframe(depth + 1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("numpy."):
        frame = frame.f_back
    return frame


def _is_own(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").startswith("geomctrl.")


def refuse_dtype(x: Any) -> None:
    """Raise UntraceableError for numbers of another type than double, int64 or bool."""
    dtype = getattr(x, "dtype", None) if isinstance(x, (np.ndarray, np.generic)) else None
    if dtype is not None and dtype.kind in DTYPES and dtype != DTYPES[dtype.kind]:
        raise UntraceableError(f"a number is combined with {dtype} numbers{caller()}: use float64 or int64")


USUAL = {Symbol, Condition, float, int, bool, np.float64, np.int64, np.bool_}


def refuse_narrow(x: Any, other: Any) -> None:
    """Raise UntraceableError if numpy would compute with x and `other` in another type than double, int64 or bool."""
    if type(other) in USUAL:
        return
    dtype = getattr(other, "dtype", None) if isinstance(other, (np.ndarray, np.generic)) else None
    if dtype is None or dtype.kind not in DTYPES or dtype == DTYPES[dtype.kind]:
        return
    types = [np.bool_] if type(x) is Condition else [NUMBERS[kind] for kind in kinds_in(x.kind)]
    for y in types:
        if (result := np.result_type(y, dtype)) != np.result_type(y, DTYPES[dtype.kind]):
            raise UntraceableError(
                f"a number is combined with {dtype} numbers{caller()}, so numpy computes in {result}: use float64 or"
                " int64"
            )
