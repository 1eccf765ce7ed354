"""Enclosures of large traces: node by node over many boxes at once, without compiling anything.

What `enclosure` compiles is faster by far where millions of boxes are looked at. Second derivatives of a robot of seven
joints are 20 000 operations, which take minutes to compile as intervals and half a second to walk through; a proof by
quadratic forms needs them on few boxes. The same walk in python-flint's balls checks such a proof again.

Ends are computed to nearest and moved outward by more than rounding: sums, products and quotients by |y| 2^-52, sine
and cosine, whatever numpy's are made of, by 2^-49. Zero times anything is zero, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from geomctrl.compiler.symbols import Graph

EPS = 2.0**-52
TINY = 1e-300
WAVE = 2.0**-49
SHARP = 1e4  # rad: beyond, where a sine's extremum lies is not known well enough

Array: TypeAlias = Any  # a number, or one for every box


class Ends(NamedTuple):
    lo: Array
    hi: Array


class Truth(NamedTuple):
    """Where a condition certainly holds, and where it certainly does not."""

    yes: Array
    no: Array


def enclosed(
    graph: Graph, ends: Sequence[Any], given: Mapping[int, tuple[Array, Array]], boxes: int
) -> tuple[np.ndarray, np.ndarray]:
    """(lo, hi), (boxes, ends) each, of expressions on boxes of their inputs.

    given: the interval of every input, by its node. An expression with a branch that is not decided all over a box is
    unbounded there, so that derivatives hold as they stand.
    """
    at = [graph.operand(x) for x in ends]
    with np.errstate(all="ignore"):
        known = walk(graph, at, {k: Ends(*x) for k, x in given.items()}, _operation)
    lo, hi = np.empty((boxes, len(at))), np.empty((boxes, len(at)))
    for k, x in enumerate(at):
        lo[:, k], hi[:, k] = known[x]
    bad = np.isnan(lo) | np.isnan(hi)
    lo[bad], hi[bad] = -np.inf, np.inf
    return lo, hi


def walk(graph: Graph, ends: Sequence[int], given: Mapping[int, Any], operation: Callable[..., Any]) -> dict[int, Any]:
    """The values of the nodes `ends`, operation(op, arguments, whether they are one node) being done at each."""
    known, wanted = dict(given), set(ends) | set(given)
    order = [at for at in graph.needed(ends) if at not in known]
    last = {x: at for at in order if graph.nodes[at][0] not in ("const", "load") for x in graph.nodes[at][1:]}
    for at in order:
        op, *rest = graph.nodes[at]
        if op == "const":
            known[at] = operation("const", rest[:1], False)
            continue
        if op == "load":
            raise KeyError(f"input {rest} has no value")
        known[at] = operation(op, [known[x] for x in rest], len(rest) == 2 and rest[0] == rest[1])
        for x in rest:
            if last[x] == at and x not in wanted:
                known.pop(x, None)
    return known


def _operation(op: str, a: list[Any], same: bool) -> Any:
    return OPERATIONS[op](*a) if not same or op not in SAME else SAME[op](a[0])


def _out(lo: Array, hi: Array) -> Ends:
    return Ends(lo - np.abs(lo) * EPS, hi + np.abs(hi) * EPS)


def _constant(x: Any) -> Any:
    if isinstance(x, bool):
        return Truth(np.bool_(x), np.bool_(not x))
    return Ends(-np.inf, np.inf) if x == "nan" else Ends(float(x), float(x))


def _some(a: Ends) -> Array:
    """Where an interval is not zero alone."""
    return (a.lo != 0.0) | (a.hi != 0.0)


def _times(a: Ends, b: Ends) -> Ends:
    p, q, r, s = a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi
    lo, hi = _out(np.minimum(np.minimum(p, q), np.minimum(r, s)), np.maximum(np.maximum(p, q), np.maximum(r, s)))
    some = TINY * (_some(a) & _some(b))
    return Ends(lo - some, hi + some)


def _square(a: Ends) -> Ends:
    x = _size(a)
    lo, hi = _out(x.lo * x.lo, x.hi * x.hi)
    return Ends(np.maximum(lo - TINY * (x.lo != 0.0), 0.0), hi + TINY * (x.hi != 0.0))


def _size(a: Ends) -> Ends:
    inside = (a.lo <= 0.0) & (a.hi >= 0.0)
    x, y = np.abs(a.lo), np.abs(a.hi)
    return Ends(np.where(inside, 0.0, np.minimum(x, y)), np.maximum(x, y))


def _over(a: Ends, b: Ends) -> Ends:
    p, q, r, s = a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi
    lo, hi = _out(np.minimum(np.minimum(p, q), np.minimum(r, s)), np.maximum(np.maximum(p, q), np.maximum(r, s)))
    some, bad = TINY * _some(a), (b.lo <= 0.0) & (b.hi >= 0.0)
    return Ends(np.where(bad, -np.inf, lo - some), np.where(bad, np.inf, hi + some))


def _root(a: Ends) -> Ends:
    lo, hi = _out(np.sqrt(np.maximum(a.lo, 0.0)), np.sqrt(np.maximum(a.hi, 0.0)))
    bad = ~(a.lo >= 0.0)
    return Ends(np.where(bad, -np.inf, np.maximum(lo, 0.0)), np.where(bad, np.inf, hi))


def _wave(f: Callable[[Array], Array], a: Ends, peak: float) -> Ends:
    """Sine or cosine, whose maxima are at `peak` and whole turns from it."""
    x, y = f(a.lo), f(a.hi)
    turn = 2.0 * np.pi

    def meets(where: float) -> Any:
        return np.floor((a.hi - where) / turn) > np.floor((a.lo - where) / turn)

    wide: Any = (a.hi - a.lo > 6.2) | (np.abs(a.lo) > SHARP) | (np.abs(a.hi) > SHARP)
    lo = np.where(wide | meets(peak + np.pi), -1.0, np.minimum(x, y) - WAVE)
    hi = np.where(wide | meets(peak), 1.0, np.maximum(x, y) + WAVE)
    zero = (a.lo == 0.0) & (a.hi == 0.0)
    return Ends(np.where(zero, x, np.maximum(lo, -1.0)), np.where(zero, y, np.minimum(hi, 1.0)))


def _tanh(a: Ends) -> Ends:
    x, y = np.tanh(a.lo), np.tanh(a.hi)
    return Ends(np.maximum(x - 8.0 * np.abs(x) * EPS - TINY * (x != 0.0), -1.0),
                np.minimum(y + 8.0 * np.abs(y) * EPS + TINY * (y != 0.0), 1.0))  # fmt: skip


def _exp(a: Ends) -> Ends:
    return Ends(np.maximum(np.exp(a.lo) * (1.0 - 8.0 * EPS), 0.0), np.exp(a.hi) * (1.0 + 8.0 * EPS) + TINY)


def _where(condition: Truth, a: Any, b: Any) -> Ends:
    yes: Any = condition.yes
    none = ~(yes | condition.no)
    lo, hi = np.where(yes, a.lo, b.lo), np.where(yes, a.hi, b.hi)
    return Ends(np.where(none, -np.inf, lo), np.where(none, np.inf, hi))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "const": _constant,
    "add": lambda a, b: _out(a.lo + b.lo, a.hi + b.hi),
    "sub": lambda a, b: _out(a.lo - b.hi, a.hi - b.lo),
    "neg": lambda a: Ends(-a.hi, -a.lo),
    "mul": _times,
    "div": _over,
    "abs": _size,
    "sqrt": _root,
    "sin": lambda a: _wave(np.sin, a, np.pi / 2.0),
    "cos": lambda a: _wave(np.cos, a, 0.0),
    "tanh": _tanh,
    "exp": _exp,
    "min": lambda a, b: Ends(np.minimum(a.lo, b.lo), np.minimum(a.hi, b.hi)),
    "max": lambda a, b: Ends(np.maximum(a.lo, b.lo), np.maximum(a.hi, b.hi)),
    "lt": lambda a, b: Truth(a.hi < b.lo, a.lo >= b.hi),
    "le": lambda a, b: Truth(a.hi <= b.lo, a.lo > b.hi),
    "eq": lambda a, b: Truth((a.lo == a.hi) & (b.lo == b.hi) & (a.lo == b.lo), (a.hi < b.lo) | (b.hi < a.lo)),
    "and": lambda a, b: Truth(a.yes & b.yes, a.no | b.no),
    "or": lambda a, b: Truth(a.yes | b.yes, a.no & b.no),
    "not": lambda a: Truth(a.no, a.yes),
    "where": _where,
}
SAME: dict[str, Callable[[Any], Any]] = {"mul": _square}


# --- numbers -----------------------------------------------------------------------------------------------------

NUMBERS: dict[str, Callable[..., Any]] = {
    "const": lambda x: np.nan if x == "nan" else x,
    "add": np.add, "sub": np.subtract, "neg": np.negative, "mul": np.multiply, "div": np.divide,
    "abs": np.abs, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "exp": np.exp,
    "log": np.log, "asin": np.arcsin, "acos": np.arccos, "atan2": np.arctan2, "min": np.minimum, "max": np.maximum,
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "and": np.logical_and, "or": np.logical_or,
    "not": np.logical_not, "where": np.where, "floor": np.floor,
}  # fmt: skip


def valued(graph: Graph, ends: Sequence[Any], given: Mapping[int, Any], states: int) -> np.ndarray:
    """(states, ends): the values of expressions, inputs being numbers or one for every state; not rigorous."""
    at = [graph.operand(x) for x in ends]
    with np.errstate(all="ignore"):
        known = walk(graph, at, given, lambda op, a, same: NUMBERS[op](*a))
    out = np.empty((states, len(at)))
    for k, x in enumerate(at):
        out[:, k] = known[x]
    return out
