"""numpy functions that order numbers: sort, argsort, median, quantiles."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .arrays import sum_from_zero
from .choices import each, entries, refused, symbolic
from .dtypes import CAST
from .requirements import require
from .symbols import INT64, add, both, invert, is_symbol, relation, where, with_kind


def sort(a: Any, axis: Any = -1, kind: str | None = None) -> Any:
    """Sort along one axis, nan last, by exchanging neighbours."""
    del kind  # equal numbers are equal in any order
    rows = entries(a).reshape(1, -1) if axis is None else np.moveaxis(entries(a), axis, -1)
    out = np.empty(rows.shape, object)
    for k in np.ndindex(rows.shape[:-1]):
        out[k] = _sorted(rows[k].tolist())
    return out[0] if axis is None else np.moveaxis(out, -1, axis)


def _sorted(x: list[Any]) -> np.ndarray:
    if len(x) > MAX_SORTED:
        refused(f"np.sort can be traced only along an axis of at most {MAX_SORTED} numbers")
    for last in range(len(x) - 1, 0, -1):
        for k in range(last):
            a, b = x[k], x[k + 1]
            first_is_nan = both(invert(relation("eq", a, a)), relation("eq", b, b))
            swap = invert(both(invert(relation("lt", b, a)), invert(first_is_nan)))
            x[k], x[k + 1] = where(swap, b, a), where(swap, a, b)
    return np.array(x, object)


def argsort(a: Any, axis: int = -1, kind: str | None = None, *, stable: bool | None = None) -> Any:
    """The indices that sort numbers along one axis.

    There is no result with nan. Equal numbers need kind="stable", since otherwise their order depends on the processor.
    """
    x = entries(a).tolist()
    if np.ndim(a) != 1 or len(x) > MAX_SORTED:
        refused(f"np.argsort can be traced only along one axis of at most {MAX_SORTED} numbers")
    places: list[Any] = [0.0] * len(x)
    for j, k in itertools.combinations(range(len(x)), 2):
        swapped, in_order = (
            relation("lt", x[k], x[j]),
            relation("lt" if kind != "stable" and not stable else "le", x[j], x[k]),
        )
        require(invert(both(invert(swapped), invert(in_order))))
        places[j], places[k] = add(places[j], where(swapped, 1.0, 0.0)), add(places[k], where(swapped, 0.0, 1.0))
    out = np.empty(len(x), object)
    for place in range(len(x)):
        index: Any = 0.0
        for k in range(1, len(x)):
            index = where(relation("eq", places[k], float(place)), float(k), index)
        out[place] = with_kind(index, INT64) if is_symbol(index) else int(index)
    return out


def median(a: Any, axis: Any = None) -> Any:
    if axis is not None:
        rows = np.moveaxis(entries(a), axis, -1)
        medians = [median(row) for row in rows.reshape(-1, rows.shape[-1])]
        return np.array(medians, object).reshape(rows.shape[:-1])
    x, n = sort(entries(a).ravel()), np.size(a)
    middle = x[n // 2] if n % 2 else np.divide(symbolic(sum_from_zero(x[n // 2 - 1] + x[n // 2])), 2.0)
    return where(relation("eq", x[-1], x[-1]), middle, x[-1])


MAX_SORTED = 16


def quantile(a: Any, q: Any, axis: Any = None, method: str = "linear") -> Any:
    """Quantiles of all numbers by numpy's linear interpolation between neighbours in their order."""
    if method != "linear" or (axis is not None and np.ndim(a) != 1) or any(map(is_symbol, entries(q).flat)):
        refused('np.quantile and np.percentile can be traced only for one axis, method="linear" and a constant q')
    x, q = sort(each(CAST[np.dtype(float)], entries(a).ravel())).tolist(), np.array(q, float)
    if not np.all((q >= 0.0) & (q <= 1.0)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    return each(lambda part: _interpolated(x, part), q)


def _interpolated(x: list[Any], part: float) -> Any:
    """numpy's rule for one quantile of ordered numbers: from the nearer neighbour; nan if the last number is nan."""
    place = (len(x) - 1) * part
    k = math.floor(place) if place < len(x) - 1 else -1
    a, b, weight = x[k], x[k + 1 if k >= 0 else k], place - k
    value = b - (b - a) * (1.0 - weight) if weight >= 0.5 else a + (b - a) * weight
    return where(relation("eq", x[-1], x[-1]), value, x[-1])
