"""What is computed of each box: bounds of f and of the constraints, as one trace.

Two bounds of f over a box X with slopes G, an enclosure of its gradient there (Moore, Interval Analysis, 1966; Baumann,
BIT 28, 1988):

    natural       the enclosure of f itself
    mean value    f(c) + max over x in X of G (x - c),     c = (G_hi hi - G_lo lo) / (G_hi - G_lo) within X

Baumann's centre c makes the second as small as its linear part allows; where the sign of a slope is known it is the end
at which f is largest, so that a function that is monotonic in all of its inputs is bounded by its value at a corner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from geomctrl.compiler.derivatives import pullback
from geomctrl.compiler.symbols import Graph, Symbol, add, both, div, mul, neg, sub, where
from geomctrl.compiler.tracing import Trace

from .claims import Claim
from .enclosure import HI, LO, Evaluation, boxed, certain, compiled, known
from .intervals import INF, Interval, at_most, largest, less, plus, point, size, smallest, times

NATURAL, MEAN_VALUE = 1, 2  # how a bound came about
FIXED = 6  # outputs before the point


class Bounds(NamedTuple):
    """Of boxes: `upper` (boxes,) bounds f from above; `how` says by which form. `excluded`: somewhere a constraint can
    not hold if this is positive. `split`: the coordinate that widens the bounds most. `point` (boxes, n): within the
    box, where f is at least `value` and the constraints are at most `admitted`."""

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


def slopes_of(claim: Claim, output: int) -> list[int]:
    """The nodes of an output's derivatives with respect to the coordinates, in the claim's own graph."""
    graph = claim.trace.graph
    inputs = [graph.node("load", *x) for x in claim.coordinates]
    end = Symbol(graph, claim.trace.outputs[output])
    return [graph.operand(x) for x in pullback(graph, [end], [1.0], inputs)]


def bounds_of(claim: Claim) -> Trace:
    """The trace of `Bounds`, inputs LO and HI."""
    graph, n = Graph(), claim.n
    lo, hi = ([graph.load(array, k) for k in range(n)] for array in (LO, HI))
    given = boxed(graph, claim.coordinates, len(claim.numbers))
    whole = Evaluation(claim.trace.graph, given)
    good = certain(whole, claim.trace.flag)
    f, *constraints = whole.of(claim.trace.outputs)
    slopes = [known(x, good) for x in whole.of(slopes_of(claim, 0))]
    smooth = both(both(good, f.defined), f.smooth)

    centre = [_centre(a, b, g) for a, b, g in zip(lo, hi, slopes)]
    at_centre = Evaluation(claim.trace.graph, _at(claim, centre, given))
    certainly = certain(at_centre, claim.trace.flag)
    value, *values = (known(x, certainly) for x in at_centre.of(claim.trace.outputs))
    natural = known(f, good).hi
    mean = value.hi
    for a, b, c, g in zip(lo, hi, centre, slopes):
        mean = plus(point(mean), point(_excess(a, b, c, g))).hi
    mean = where(smooth, mean, INF)
    better = less(mean, natural)

    excluded = [_least_of(claim, k + 1, x, whole, good, lo, hi, given) for k, x in enumerate(constraints)]
    outputs = [
        where(better, mean, natural),
        where(better, float(MEAN_VALUE), float(NATURAL)),
        largest(-INF, *excluded),
        _most([mul(smallest(largest(size(g.lo), size(g.hi)), 1e150), sub(b, a)) for a, b, g in zip(lo, hi, slopes)]),
        value.lo,
        largest(-INF, *(x.hi for x in values)),
        *centre,
    ]
    return Trace(graph, (n, n), tuple(graph.operand(x) for x in outputs), (len(outputs),), None)


def _least_of(
    claim: Claim, output: int, natural: Any, whole: Evaluation, good: Any, lo: list[Any], hi: list[Any], given: Any
) -> Any:
    """A lower bound of an output, natural or mean value about the middle."""
    slopes = [known(x, good) for x in whole.of(slopes_of(claim, output))]
    centre = [_middle(a, b) for a, b in zip(lo, hi)]
    inner = Evaluation(claim.trace.graph, _at(claim, centre, given))
    value = known(inner.of([claim.trace.outputs[output]])[0], certain(inner, claim.trace.flag))
    mean = neg(value.lo)
    for a, b, c, g in zip(lo, hi, centre, slopes):
        mean = plus(point(mean), point(_excess(a, b, c, Interval(neg(g.hi), neg(g.lo))))).hi
    mean = where(both(both(good, natural.defined), natural.smooth), neg(mean), -INF)
    return largest(known(natural, good).lo, mean)


def _at(claim: Claim, centre: Sequence[Any], given: Any) -> Any:
    column = {x: point(centre[k]) for k, x in enumerate(claim.coordinates)}
    return lambda array, index: column[array, index] if (array, index) in column else given(array, index)


def _middle(lo: Any, hi: Any) -> Any:
    """A number between lo and hi, about half way; any would do."""
    return smallest(largest(mul(add(lo, hi), 0.5), lo), hi)


def _centre(lo: Any, hi: Any, slope: Interval) -> Any:
    """Baumann's; the middle where the slopes say nothing."""
    c = _middle(lo, hi)
    if not slope.thin:
        best = div(sub(mul(slope.hi, hi), mul(slope.lo, lo)), sub(slope.hi, slope.lo))
        c = where(both(less(lo, best), less(best, hi)), best, c)
    return where(at_most(slope.hi, 0.0), lo, where(at_most(0.0, slope.lo), hi, c))


def _excess(lo: Any, hi: Any, c: Any, slope: Interval) -> Any:
    """An upper bound of slope (x - c) for x from lo to hi; exactly zero where no x is above, as at a monotonic end."""
    above, below = plus(point(hi), point(neg(c))).hi, plus(point(c), point(neg(lo))).hi
    rise = times(Interval(0.0, slope.hi, True), Interval(0.0, above, True)).hi
    fall = times(Interval(0.0, neg(slope.lo), True), Interval(0.0, below, True)).hi
    return largest(0.0, where(less(0.0, slope.hi), rise, 0.0), where(less(slope.lo, 0.0), fall, 0.0))


def _most(xs: Sequence[Any]) -> Any:
    """The number of the largest."""
    best, which = xs[0], 0.0
    for k, x in enumerate(xs[1:], 1):
        better = less(best, x)
        best, which = where(better, x, best), where(better, float(k), which)
    return which
