"""Data types of arrays of symbols: the dtype that the numeric array would have, and conversions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .entries import DTYPES
from .graph import CLASSES, FLOAT, INT
from .operators import whole_number
from .symbols import (
    INT64,
    NUMPY,
    TRUTHS,
    WHOLE,
    Condition,
    Symbol,
    UntraceableError,
    as_numpy,
    caller,
    is_symbol,
    kinds_in,
    truth,
    where,
    with_kind,
)


def is_whole(x: Any) -> bool:
    return x.kind in WHOLE if type(x) is Symbol else type(x) is int or isinstance(x, np.integer)


def is_truth(x: Any) -> bool:
    return type(x) in TRUTHS  # isinstance would call `__class__` of each symbol


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


def refuse_common(xs: Iterable[Any], weak: bool = False) -> None:
    """Raise UntraceableError if numpy's common type of xs is narrower than with double, int64 and bool arrays.

    weak: numbers of Python take the type of the arrays beside them.
    """
    entries = [y for x in xs for y in _leaves(x, weak)]
    narrow = [x.dtype for x, _ in entries if isinstance(x, (np.ndarray, np.generic)) and _usual(x.dtype) != x.dtype]
    if narrow:
        examples = [_example(x, weak) for x, weak in entries if isinstance(x, NUMBERS)]
        usual = [x.astype(_usual(x.dtype)) if hasattr(x, "dtype") else x for x in examples]
        if (result := np.result_type(*examples)) != np.result_type(*usual):
            raise UntraceableError(
                f"an array is combined with {narrow[0]} numbers{caller()}, so numpy computes in {result}: use float64"
                " or int64"
            )


NUMBERS = (Symbol, Condition, bool, int, float, np.generic, np.ndarray)


def _usual(dtype: np.dtype) -> np.dtype:
    return DTYPES.get(dtype.kind, dtype)  # dtypes of other kinds, as object, stay


def _leaves(x: Any, weak: bool) -> Iterator[tuple[Any, bool]]:
    """The arrays and numbers of a list, which are not weak, or x itself."""
    if isinstance(x, (tuple, list, deque)):
        for y in x:
            yield from _leaves(y, False)
    else:
        yield x, weak


def _example(x: Any, weak: bool) -> Any:
    """A number or array of the same type."""
    if isinstance(x, np.ndarray):
        return np.zeros(1, dtype_of(x) if x.dtype == object else x.dtype)
    y = np.bool_(False) if type(x) is Condition else CLASSES[max(kinds_in(x.kind))](0) if is_symbol(x) else x
    return y if weak else np.array([y])


def result_type(*arguments):
    """np.result_type of arrays and scalars of the same types, whose values do not matter."""
    examples: dict[Any, Any] = {NUMPY: np.float64(0.0), FLOAT: 0.0, INT: 0, INT64: np.int64(0)}

    def example(x):
        if isinstance(x, np.ndarray) and x.dtype == object:
            return np.zeros(x.ndim * (1,), dtype_of(x))
        if isinstance(x, Symbol) and x.kind in examples:
            return examples[x.kind]
        if is_symbol(x):
            raise UntraceableError(f"np.result_type of conditions can not be traced{caller()}")
        return x

    return np.result_type(*map(example, arguments))


def is_float(array: np.ndarray) -> bool:
    first = array.view(np.ndarray).flat[0] if array.size else 0.0
    return type(first) is float or (type(first) is Symbol and first.kind not in WHOLE)


def known_dtype(dtype: Any) -> np.dtype:
    dtype = np.dtype(np.float64 if dtype is object else dtype)
    if dtype not in CAST:
        raise UntraceableError(
            f"an array of symbols can not be converted to {dtype}{caller()}: write np.asarray(x, float), int or bool;"
            " numbers that are rounded to single precision are not traced"
        )
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


def in_known_order(name: str) -> Callable[..., Any]:
    """The method `ravel` or `flatten` without the orders that depend on how an array is stored."""

    def method(self: np.ndarray, order: Any = "C") -> Any:
        if order not in ("C", "F"):
            raise UntraceableError(f"order={order!r} depends on how an array is stored{caller()}: write 'C' or 'F'")
        return getattr(np.ndarray, name)(self, order)

    return method
