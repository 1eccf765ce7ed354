"""Symbols as indices of arrays, where the entry is selected, and of other objects.

There the traced function runs on a separate path for each possible value of a small integer.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import dtype_of
from .requirements import require
from .symbols import WHOLE, Condition, Symbol, UntraceableError, both, caller, certain, relation
from .untraceable import UnknownValueError

MAX_INDICES = 64  # possible values of an integer used as an index; each makes a path


def _index(self: Symbol) -> int:
    """The value of an integer symbol with few possible values; each of them is a separate path."""
    kind = certain(self.kind)
    if kind not in WHOLE:
        raise UntraceableError(f"a symbol is used as an integer{caller()}, but it is a float: write int(x)")
    low, high = bounds(self.graph, self.index)
    if not high - max(low, 0.0) < MAX_INDICES:
        raise UnknownValueError(
            f"a symbol is used as an integer{caller()}, but its range is unknown: limit it, for example with"
            " min(max(i, 0), n - 1), or choose with np.where, np.select or np.interp"
        )
    lowest = int(low) if high - low < MAX_INDICES else 0
    for k in range(lowest, int(high)):
        if self == k:
            return k
    if low < lowest and self != int(high):
        raise UntraceableError(f"a negative index{caller()}")  # Python computes this path
    return int(high)


def bounds(graph: Any, index: int) -> tuple[float, float]:
    """Bounds of a node's value (unless it is nan); infinite if unknown."""
    intervals: dict[int, tuple[float, float]] = {}
    for k in graph.needed([index]):
        op, *ends = graph.nodes[k]
        if op == "const":
            intervals[k] = (ends[0], ends[0]) if ends[0] != "nan" else UNBOUNDED
            continue
        rule = BOUNDS.get(op)
        if op == "where" and graph.nodes[ends[0]] == ("eq", ends[2], ends[2]):  # otherwise nan
            own = intervals[ends[1]]
        else:
            own = rule(*(intervals[x] for x in ends)) if rule and op != "load" else UNBOUNDED
        intervals[k] = own if own[0] == own[0] and own[1] == own[1] else UNBOUNDED
    return intervals[index]


Range = tuple[float, float]
UNBOUNDED = -math.inf, math.inf


def _corners(operation: Callable[[float, float], float]) -> Callable[[Range, Range], Range]:
    """The range of a product or quotient of finite ranges."""

    def ranged(x: Range, y: Range) -> Range:
        if not all(map(math.isfinite, (*x, *y))) or (operation is not operator.mul and y[0] <= 0.0 <= y[1]):
            return UNBOUNDED
        corners = [operation(a, b) for a in x for b in y]
        return min(corners), max(corners)

    return ranged


def _of_monotone(f: Callable[[float], float]) -> Callable[[Range], Range]:
    return lambda x: tuple(f(a) if math.isfinite(a) else a for a in x)  # pyright: ignore[reportReturnType]


BOUNDS: dict[str, Callable[..., Range]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "mul": _corners(operator.mul),
    "div": _corners(operator.truediv),
    "where": lambda _, x, y: (min(x[0], y[0]), max(x[1], y[1])),
    "min": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "max": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "neg": lambda x: (-x[1], -x[0]),
    "abs": lambda x: (max(x[0], -x[1], 0.0), max(-x[0], x[1])),
    "floor": _of_monotone(math.floor),
    "rint": _of_monotone(round),
    "fmod": lambda x, y: (0.0 if x[0] >= 0.0 else -max(map(abs, y)), 0.0 if x[1] <= 0.0 else max(map(abs, y))),
    "copysign": lambda x, y: (
        0.0 if y[0] > 0.0 else -max(map(abs, x)),
        0.0 if y[1] < 0.0 else max(map(abs, x)),
    ),
    **dict.fromkeys(("lt", "le", "eq"), lambda x, y: (0.0, 1.0)),
    **dict.fromkeys(("and", "or", "not"), lambda *_: (0.0, 1.0)),
}


def _hash(self: Symbol) -> int:
    """The hash of an integer with few possible values, on separate paths, so that it can be a key."""
    return hash(_index(self)) if certain(self.kind) in WHOLE else _refuse_key(self)


_refuse_key = Symbol.__hash__
Symbol.__index__ = property(lambda self: functools.partial(int, _index(self)))  # pyright: ignore  (floats have none: refused)
Condition.__index__ = property(Condition.__index__)  # pyright: ignore
Symbol.__hash__ = _hash  # pyright: ignore[reportAttributeAccessIssue]


def known_index(key: Any) -> Any:
    """An index with numbers instead of symbols; an integer symbol with few possible values makes a path for each."""
    if isinstance(key, tuple):
        return tuple(map(known_index, key))
    if isinstance(key, slice):
        return slice(*map(known_index, (key.start, key.stop, key.step)))
    if isinstance(key, Symbol):
        return operator.index(key)  # pyright: ignore[reportArgumentType]
    if isinstance(key, Condition) or (
        isinstance(key, np.ndarray) and dtype_of(key).kind == "b" and key.dtype.hasobject
    ):
        raise UntraceableError(f"an index contains a condition{caller()}: use np.where")
    if isinstance(key, np.ndarray) and key.dtype.hasobject:
        return np.array([operator.index(x) for x in key.view(np.ndarray).ravel().tolist()], int).reshape(key.shape)
    return key


MAX_SELECTED = 4096  # entries of an array among which an index selects


def possible_keys(key: Any, shape: tuple[int, ...]) -> list[tuple[Any, Any]] | None:
    """(condition, key) for each key of numbers that an array's key of integer symbols may be; None for other keys.

    The conditions exclude each other. There is no result where numpy raises because an index is out of range.
    """
    parts = key if isinstance(key, tuple) else (key,)
    symbolic = [isinstance(x, Symbol) for x in parts]
    if not any(symbolic) or len(parts) > len(shape) or not all(map(operator.or_, symbolic, map(_is_plain, parts))):
        return None
    values = [_possible(x, n) if isinstance(x, Symbol) else [(True, x)] for x, n in zip(parts, shape)]
    if not all(values):
        raise IndexError(f"an index is out of range{caller()}")
    if math.prod(map(len, values)) * math.prod(shape[len(parts) :]) > MAX_SELECTED:
        return None
    for x, n in zip(parts, shape):
        if isinstance(x, Symbol):
            require(both(relation("le", float(-n), x), relation("lt", x, float(n))))
    return [
        (functools.reduce(both, (condition for condition, _ in chosen)), tuple(k for _, k in chosen))
        for chosen in itertools.product(*values)
    ]


def _is_plain(x: Any) -> bool:
    ends = (x.start, x.stop, x.step) if isinstance(x, slice) else ()
    return (type(x) is int or isinstance(x, (np.integer, slice))) and not any(
        isinstance(y, (Symbol, Condition)) for y in ends
    )


def _possible(i: Symbol, n: int) -> list[tuple[Any, int]]:
    """(condition, value) for each index of an axis of n entries; negative ones count from the end."""
    if certain(i.kind) not in WHOLE:
        raise UntraceableError(f"a symbol is used as an integer{caller()}, but it is a float: write int(x)")
    low, high = bounds(i.graph, i.index)
    return [(relation("eq", i, float(k)), k) for k in range(max(-n, int(max(low, -n))), int(min(high, n - 1)) + 1)]
