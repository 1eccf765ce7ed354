"""Data types of arrays of symbols: the dtype that the numeric array would have, and conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .operators import whole_number
from .symbols import (
    INT64,
    NUMPY,
    WHOLE,
    Condition,
    Symbol,
    UntraceableError,
    as_numpy,
    caller,
    is_symbol,
    truth,
    where,
    with_kind,
)


def is_whole(x: Any) -> bool:
    return x.kind in WHOLE if type(x) is Symbol else type(x) is int or isinstance(x, np.integer)


def is_truth(x: Any) -> bool:
    return isinstance(x, (Condition, bool, np.bool_))


def dtype_of(x: np.ndarray) -> np.dtype:
    """The dtype of the numeric array that an array of symbols represents."""
    entries = np.ndarray.tolist(np.ndarray.ravel(x.view(np.ndarray)))
    kinds = ((bool, is_truth), (np.int64, lambda x: is_whole(x) or is_truth(x)))
    return np.dtype(next((kind for kind, test in kinds if entries and all(map(test, entries))), np.float64))


def of_one_dtype(entries: list[Any]) -> list[Any]:
    """Entries of an array with numpy's common type: integers beside floats are floats."""
    if all(map(is_truth, entries)) or not any(is_whole(x) or is_truth(x) for x in entries):
        return entries
    cast = _as_int if all(is_whole(x) or is_truth(x) for x in entries) else _as_float
    return [cast(x) if isinstance(x, (Symbol, Condition, int, float, np.generic)) else x for x in entries]


def is_float(array: np.ndarray) -> bool:
    first = array.view(np.ndarray).flat[0] if array.size else 0.0
    return type(first) is float or (type(first) is Symbol and first.kind not in WHOLE)


def known_dtype(dtype: Any) -> np.dtype:
    dtype = np.dtype(np.float64 if dtype is object else dtype)
    if dtype not in CAST:
        raise UntraceableError(f"an array of symbols can not be converted to {dtype}{caller()}: use float, int or bool")
    return dtype


def _as_float(x: Any) -> Any:
    return where(x, 1.0, 0.0) if isinstance(x, Condition) else with_kind(x, NUMPY) if is_symbol(x) else float(x)


def _as_int(x: Any) -> Any:
    if isinstance(x, Condition):
        return with_kind(where(x, 1.0, 0.0), INT64)
    return whole_number(x, INT64) if is_symbol(x) else int(x)


CAST: dict[np.dtype, Callable[[Any], Any]] = {
    np.dtype(np.float64): _as_float,
    np.dtype(np.int64): _as_int,
    np.dtype(bool): lambda x: as_numpy(truth(x)),
}
FITS: dict[np.dtype, Callable[[Any], bool]] = {np.dtype(np.int64): is_whole, np.dtype(bool): is_truth}
