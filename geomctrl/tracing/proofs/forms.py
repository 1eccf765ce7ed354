"""Upper bounds of f and the constraints on a box, as one trace.

Two bounds of f on a box X, with slopes G that enclose its gradient there (Moore, Interval Analysis, 1966; Baumann,
BIT 28, 1988):

    natural       the enclosure of f itself
    mean value    f(c) + max over x in X of G (x - c),     c = (G_hi hi - G_lo lo) / (G_hi - G_lo) within X

Baumann's centre c minimises the second bound as far as its linear part allows. If the sign of a slope is known, c is
the end where f is largest, so that a function that is monotonic in all inputs is bounded by its value at a corner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from geomctrl.tracing.branch_and_bound import Decision, Divisible
from geomctrl.tracing.derivatives import pullback
from geomctrl.tracing.symbols import Graph, Symbol, add, both, div, mul, neg, sub, where
from geomctrl.tracing.traces import Trace

from .claims import Claim
from .enclosure import HI, LO, Evaluation, boxed, certain, compiled, interval_of
from .intervals import INF, Interval, at_most, largest, less, plus, point, size, smallest, times

NATURAL, MEAN_VALUE = 1, 2  # which form gave a bound
FIXED = 6  # number of outputs before the point
CHUNK = 32_768  # largest number of boxes per evaluation; the stack contains up to as many per level
CHUNK_NUMBERS = 2**20
CHUNK_OPERATIONS = 2**26  # per chunk, about 0.1 s, for progress and interrupts
EXCLUDED = 9  # kind of settled box, in addition to the forms: a constraint can not hold in it


class Bounds(NamedTuple):
    """Bounds on boxes: `upper` (boxes,) is an upper bound of f, from the form `how`.

    `excluded`: a constraint is violated on the whole box if this is positive. `split`: the coordinate that contributes
    most to the width. `point` (boxes, n): a point of the box with f >= `value` and constraints <= `admitted`."""

    upper: np.ndarray
    how: np.ndarray
    excluded: np.ndarray
    split: np.ndarray
    value: np.ndarray
    admitted: np.ndarray
    point: np.ndarray


class Forms:
    """The bounds of a claim's f on many boxes, compiled."""

    def __init__(self, claim: Claim):
        self.trace = bounds_of(claim)
        self._run = compiled(self.trace, claim.numbers)

    def __call__(self, lo: np.ndarray, hi: np.ndarray, threads: int = 1) -> Bounds:
        out = self._run(lo, hi, threads=threads)[0]
        upper, how, excluded, split, value, admitted = out[:, :FIXED].T
        return Bounds(upper, how.astype(np.uint8), excluded, split.astype(np.intp), value, admitted, out[:, FIXED:])


class BoundedClaim(Divisible):
    """A claim on boxes, decided by `Forms` in SIMD lanes and several threads.

    A box is halved in the coordinate along which f varies most, |slope| times width.
    """

    pilot = 20_000

    def __init__(self, claim: Claim, threads: int = 1):
        self.claim, self.forms, self.threads = claim, Forms(claim), threads
        self.starts = claim.lo[None], claim.hi[None]
        largest = min(CHUNK, CHUNK_NUMBERS // (2 * claim.n), CHUNK_OPERATIONS // max(self.forms.trace.operations, 1))
        self.chunk = max(largest, 64)

    def statements(self, level: float | None = None) -> dict[str, BoundedClaim]:
        return {"f": self}

    def split(self, lo: np.ndarray, hi: np.ndarray, count: int) -> Decision:
        bounds = self.forms(lo, hi, self.threads)
        excluded = bounds.excluded > 0.0
        decided, refuting = excluded | self.claim.decided(bounds.upper), self.refuting(bounds)
        worst = bounds.point[np.argmax(np.where(refuting, bounds.value, -np.inf))] if refuting.any() else None
        upper, how = np.where(excluded, -np.inf, bounds.upper), np.where(excluded, EXCLUDED, bounds.how)
        return Decision(decided, bounds.split, worst, upper, how)

    def refuting(self, bounds: Bounds) -> np.ndarray:
        """Whether the claim is certainly violated at the boxes' points."""
        wrong = bounds.value >= 0.0 if self.claim.strict else bounds.value > 0.0
        return wrong & (bounds.admitted <= 0.0)

    def worst(self, lo: np.ndarray, hi: np.ndarray) -> float:
        """An upper bound of f on boxes."""
        parts = range(0, len(lo), CHUNK)
        return max(self.forms(lo[k : k + CHUNK], hi[k : k + CHUNK], self.threads).upper.max() for k in parts)


def slopes_of(claim: Claim, end: int) -> list[int]:
    """Nodes of the derivatives of a node with respect to the coordinates, in the claim's graph."""
    graph = claim.trace.graph
    inputs = [graph.node("load", *x) for x in claim.coordinates]
    return [graph.operand(x) for x in pullback(graph, [Symbol(graph, end)], [1.0], inputs)]


def bounds_of(claim: Claim) -> Trace:
    """The trace of `Bounds` with inputs LO and HI."""
    box = _Box(claim)
    own, (first, *others) = claim.trace.graph, claim.trace.outputs
    f = box.above(first)
    better = less(f.mean_value, f.natural)
    excluded = [neg(_better(box.above(own.operand(neg(Symbol(own, index)))))) for index in others]
    value, *values = box.at(f.centre, claim.trace.outputs)
    widths = [sub(b, a) for a, b in zip(box.lo, box.hi)]
    outputs = [
        where(better, f.mean_value, f.natural),
        where(better, float(MEAN_VALUE), float(NATURAL)),
        largest(-INF, *excluded),
        _most([mul(smallest(largest(size(g.lo), size(g.hi)), 1e150), w) for g, w in zip(f.slopes, widths)]),
        value.lo,
        largest(-INF, *(x.hi for x in values)),
        *f.centre,
    ]
    ends = tuple(box.graph.operand(x) for x in outputs)
    return Trace(box.graph, (claim.n, claim.n), ends, (len(ends),), None)


class _UpperBounds(NamedTuple):
    """Two upper bounds of a number, and their components."""

    natural: Any
    mean_value: Any
    slopes: list[Interval]
    centre: list[Any]


def _better(x: _UpperBounds) -> Any:
    return smallest(x.natural, x.mean_value)


class _Box:
    """A box of a claim's coordinates, with ends as inputs LO and HI of a new graph."""

    def __init__(self, claim: Claim):
        self.claim, self.graph = claim, Graph()
        self.lo, self.hi = ([self.graph.load(array, k) for k in range(claim.n)] for array in (LO, HI))
        self.inputs = boxed(self.graph, claim.coordinates, len(claim.numbers))
        self.whole = Evaluation(claim.trace.graph, self.inputs)
        self.good = certain(self.whole, claim.trace.flag)

    def above(self, end: int) -> _UpperBounds:
        """Upper bounds of a node of the claim's graph."""
        x = self.whole.of([end])[0]
        slopes = [interval_of(slope, self.good) for slope in self.whole.of(slopes_of(self.claim, end))]
        centre = [_centre(*ends) for ends in zip(self.lo, self.hi, slopes)]
        mean = self.at(centre, [end])[0].hi
        for a, b, c, slope in zip(self.lo, self.hi, centre, slopes):
            mean = plus(point(mean), point(_excess(a, b, c, slope))).hi
        smooth = both(self.good, both(x.defined, x.smooth))
        return _UpperBounds(interval_of(x, self.good).hi, where(smooth, mean, INF), slopes, centre)

    def at(self, x: Sequence[Any], ends: Sequence[int]) -> list[Interval]:
        """Nodes of the claim's graph at a point of the box."""
        column = dict(zip(self.claim.coordinates, map(point, x)))
        there = Evaluation(self.claim.trace.graph, lambda *key: column[key] if key in column else self.inputs(*key))
        good = certain(there, self.claim.trace.flag)
        return [interval_of(y, good) for y in there.of(ends)]


def _middle(lo: Any, hi: Any) -> Any:
    """A number between lo and hi, approximately in the middle; any choice is valid."""
    return smallest(largest(mul(add(lo, hi), 0.5), lo), hi)


def _centre(lo: Any, hi: Any, slope: Interval) -> Any:
    """Baumann's centre; the middle if the slopes are uninformative."""
    c = _middle(lo, hi)
    if not slope.thin:
        best = div(sub(mul(slope.hi, hi), mul(slope.lo, lo)), sub(slope.hi, slope.lo))
        c = where(both(less(lo, best), less(best, hi)), best, c)
    return where(at_most(slope.hi, 0.0), lo, where(at_most(0.0, slope.lo), hi, c))


def _excess(lo: Any, hi: Any, c: Any, slope: Interval) -> Any:
    """Upper bound of slope (x - c) for lo <= x <= hi; exactly zero if it is never positive, as at a monotonic end."""
    above, below = plus(point(hi), point(neg(c))).hi, plus(point(c), point(neg(lo))).hi
    rise = times(Interval(0.0, slope.hi, True), Interval(0.0, above, True)).hi
    fall = times(Interval(0.0, neg(slope.lo), True), Interval(0.0, below, True)).hi
    return largest(0.0, where(less(0.0, slope.hi), rise, 0.0), where(less(slope.lo, 0.0), fall, 0.0))


def _most(xs: Sequence[Any]) -> Any:
    """The index of the largest number."""
    best, which = xs[0], 0.0
    for k, x in enumerate(xs[1:], 1):
        better = less(best, x)
        best, which = where(better, x, best), where(better, float(k), which)
    return which
