"""Intervals whose ends are symbols or numbers: enclosures of operations as further operations of a graph.

Every function here takes intervals and returns one that contains the exact real result for all numbers in them. With
symbolic ends the enclosure of a traced function is itself a traced function and can be compiled.

**Rounding.** Ends are rounded to nearest and then moved outward. For a rounded y, |y| 2^-52 is at least the distance to
the neighbouring number of smaller magnitude and at most twice that, also for ties and at powers of two. Since rounding
is monotonic, y - |y| 2^-52, rounded, is at most the predecessor of y, and the exact result lies above it. Products and
quotients that underflow have an error up to 2^-1075, hence `_least`, which is zero if a factor is exactly zero. Sums do
not underflow. The argument also holds with fused multiply-adds. Functions of libm, and our own sine and cosine, are not
correctly rounded: `ULPS` and `WAVE` are several times their largest known errors.

**Infinity.** The ends satisfy lo < inf and hi > -inf and are never nan. A result that overflows, or is undefined
somewhere in an interval (division by zero, root of a negative number), has the ends -inf and inf, so that nothing is
proved about it. 0 times infinity is nan, which either drops out of the four candidates of a product or widens it to
infinity: if one end is 0 and another infinite, the other candidates include 0 in between or are all nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from geomctrl.tracing import symbols
from geomctrl.tracing.symbols import add, both, compare, div, invert, is_symbol, mul, neg, sub, unary, where

INF = math.inf
EPS = 2.0**-52
SMALLEST_NORMAL = 2.0**-1022
# Errors allowed for, in units of |y| 2^-52. glibc documents up to 1 (tanh: 2.2) ulp, measured here: tests/proofs
ULPS = {
    **dict.fromkeys(("exp", "log", "tan", "asin", "acos", "atan2"), 4.0),
    **dict.fromkeys(("tanh", "sinh", "cosh", "asinh", "acosh", "atanh", "expm1", "log1p", "cbrt"), 8.0),
    **dict.fromkeys(("exp2", "log2", "log10", "pow"), 8.0),
}
WAVE = 2.0**-51  # absolute error of sine and cosine: four times the largest known one, below 1 ulp
HALF_TURN = 3.0  # below pi: a shorter interval of angles contains at most one extremum of the sine
PI = math.pi


class Interval(NamedTuple):
    """All numbers from lo to hi. positive: whether it is known in advance that none is negative."""

    lo: Any
    hi: Any
    positive: bool = False

    @property
    def thin(self) -> bool:
        """Whether it is known in advance to be a single number."""
        lo, hi = self.lo, self.hi
        return lo.index == hi.index if is_symbol(lo) and is_symbol(hi) else not is_symbol(lo) and lo is hi


class Truth(NamedTuple):
    """Knowledge about a comparison: it certainly holds, it certainly does not, or neither."""

    yes: Any
    no: Any


ENTIRE = Interval(-INF, INF)


def point(x: Any) -> Interval:
    return Interval(x, x, not is_symbol(x) and x >= 0.0)


def less(a: Any, b: Any) -> Any:
    return compare("lt", a, b) if is_symbol(a) or is_symbol(b) else a < b


def at_most(a: Any, b: Any) -> Any:
    return compare("le", a, b) if is_symbol(a) or is_symbol(b) else a <= b


def either(a: Any, b: Any) -> Any:
    return invert(both(invert(a), invert(b)))


def smallest(first: Any, *others: Any) -> Any:
    """The smallest of some numbers; nan among the others is ignored."""
    for x in others:
        first = where(less(x, first), x, first)
    return first


def largest(first: Any, *others: Any) -> Any:
    for x in others:
        first = where(less(first, x), x, first)
    return first


def size(x: Any) -> Any:
    return unary("abs", x)


def down(x: Any, ulps: float = 1.0, least: Any = 0.0, floor: float = -INF) -> Any:
    """A lower bound of all exact values that x may represent, at least `floor`, also if x is nan."""
    x = sub(x, add(mul(size(x), ulps * EPS), least))
    return where(less(floor, x), x, floor)


def up(x: Any, ulps: float = 1.0, least: Any = 0.0, ceiling: float = INF) -> Any:
    x = add(x, add(mul(size(x), ulps * EPS), least))
    return where(less(x, ceiling), x, ceiling)


def magnitude(a: Interval) -> Any:
    """The largest |x|."""
    return size(a.lo) if a.thin else a.hi if a.positive else largest(a.hi, neg(a.lo))


def _least(*factors: Interval) -> Any:
    """A bound on the underflow of a product, zero if a factor is exactly zero."""
    return smallest(SMALLEST_NORMAL, *map(magnitude, factors))


def where_defined(defined: Any, a: Interval) -> Interval:
    if defined is True:
        return a
    return Interval(where(defined, a.lo, -INF), where(defined, a.hi, INF))


def plus(a: Interval, b: Interval) -> Interval:
    positive = a.positive and b.positive
    return Interval(down(add(a.lo, b.lo), floor=0.0 if positive else -INF), up(add(a.hi, b.hi)), positive)


def minus(a: Interval, b: Interval) -> Interval:
    return Interval(down(sub(a.lo, b.hi)), up(sub(a.hi, b.lo)))


def negative(a: Interval) -> Interval:
    return Interval(neg(a.hi), neg(a.lo))


def times(a: Interval, b: Interval) -> Interval:
    if b.positive and not a.positive:
        a, b = b, a
    least = _least(a, b)
    if a.positive:
        if b.positive:
            return Interval(down(mul(a.lo, b.lo), 1.0, least, 0.0), up(mul(a.hi, b.hi), 1.0, least), True)
        lo = mul(b.lo, a.lo if a.thin else where(less(b.lo, 0.0), a.hi, a.lo))
        hi = mul(b.hi, a.lo if a.thin else where(less(b.hi, 0.0), a.lo, a.hi))
        return Interval(down(lo, 1.0, least), up(hi, 1.0, least))
    return _hull_of(mul, a, b, least)


def _hull_of(op: Callable[[Any, Any], Any], a: Interval, b: Interval, least: Any) -> Interval:
    """For an operation that is monotonic in each end."""
    corners = [op(x, y) for x in ends_of(a) for y in ends_of(b)]
    return Interval(down(smallest(*corners), 1.0, least), up(largest(*corners), 1.0, least))


def ends_of(a: Interval) -> tuple[Any, ...]:
    return (a.lo,) if a.thin else (a.lo, a.hi)


def square(a: Interval) -> Interval:
    below, above = mignitude(a), magnitude(a)
    least = _least(a)
    return Interval(down(mul(below, below), 1.0, least, 0.0), up(mul(above, above), 1.0, least), True)


def mignitude(a: Interval) -> Any:
    """The smallest |x|."""
    return size(a.lo) if a.thin else a.lo if a.positive else largest(0.0, a.lo, neg(a.hi))


def even_power(a: Interval, n: int) -> Interval:
    power = squared = square(a)
    for _ in range(n // 2 - 1):
        power = times(power, squared)
    return power


def odd_power(a: Interval, n: int) -> Interval:
    """a^n for an odd n: increasing."""
    if n == 1:
        return a
    if a.positive or a.thin:
        return times(a, even_power(a, n - 1))
    lo, hi = point(a.lo), point(a.hi)
    return Interval(times(lo, even_power(lo, n - 1)).lo, times(hi, even_power(hi, n - 1)).hi)


def over(a: Interval, b: Interval) -> tuple[Interval, Any]:
    """(a / b, whether b excludes zero)."""
    defined = either(less(0.0, b.lo), less(b.hi, 0.0))
    return where_defined(defined, _hull_of(_quotient, a, b, _least(a))), defined


def _quotient(x: Any, y: Any) -> Any:
    return div(x, y) if is_symbol(x) or is_symbol(y) or y != 0.0 else math.nan


def root(a: Interval) -> tuple[Interval, Any]:
    """(square root, whether it is defined)."""
    lo, hi = unary("sqrt", a.lo if a.positive else largest(a.lo, 0.0)), unary("sqrt", a.hi)
    roots = Interval(down(lo, floor=0.0), up(hi), a.positive)
    return (roots, True) if a.positive else (where_defined(at_most(0.0, a.lo), roots), at_most(0.0, a.lo))


def absolute(a: Interval) -> Interval:
    return Interval(mignitude(a), magnitude(a), True)


def whole(a: Interval) -> tuple[Interval, Any]:
    """(floor a, whether it is constant on a)."""
    lo, hi = unary("floor", a.lo), unary("floor", a.hi)
    return Interval(lo, hi, a.positive), True if a.thin else both(at_most(lo, hi), at_most(hi, lo))


def smaller(a: Interval, b: Interval) -> Interval:
    return Interval(smallest(a.lo, b.lo), smallest(a.hi, b.hi), a.positive and b.positive)


def larger(a: Interval, b: Interval) -> Interval:
    return Interval(largest(a.lo, b.lo), largest(a.hi, b.hi), a.positive or b.positive)


def sine(a: Interval) -> Interval:
    """From the sines at the ends and, if the cosine changes sign, an extremum in between.

    An interval shorter than half a turn has at most one extremum. The sign of a very small cosine may be wrong or 0.
    The sine at that end then differs from 1 by the square of the cosine, which is far below WAVE.
    """
    lo, hi = a.lo, a.hi
    s, c = (unary("sin", lo), unary("sin", hi)), (unary("cos", lo), unary("cos", hi))
    error = [add(mul(smallest(1.0, size(x)), WAVE), smallest(SMALLEST_NORMAL, size(x))) for x in (lo, hi)]
    return _wave(a, s, c, error)


def cosine(a: Interval) -> Interval:
    """Like `sine`; the derivative of the cosine is minus the sine."""
    lo, hi = a.lo, a.hi
    s, c = (unary("cos", lo), unary("cos", hi)), (neg(unary("sin", lo)), neg(unary("sin", hi)))
    error = [mul(_off_zero(x), WAVE) for x in (lo, hi)]
    return _wave(a, s, c, error)


def _off_zero(x: Any) -> Any:
    """1, and 0 for x = 0, where sine, cosine and exponential are exact."""
    return where(compare("eq", x, 0.0) if is_symbol(x) else x == 0.0, 0.0, 1.0)


def _wave(a: Interval, value: tuple[Any, Any], slope: tuple[Any, Any], error: list[Any]) -> Interval:
    low, high = (sub(x, e) for x, e in zip(value, error)), (add(x, e) for x, e in zip(value, error))
    lo, hi = smallest(*low), largest(*high)
    if not a.thin:
        short = less(up(sub(a.hi, a.lo)), HALF_TURN)
        top = both(less(0.0, slope[0]), less(slope[1], 0.0))
        bottom = both(less(slope[0], 0.0), less(0.0, slope[1]))
        lo = where(both(short, invert(bottom)), lo, -1.0)
        hi = where(both(short, invert(top)), hi, 1.0)
    return Interval(where(less(-1.0, lo), lo, -1.0), where(less(hi, 1.0), hi, 1.0))


def tangent(a: Interval) -> tuple[Interval, Any]:
    """(tan, whether there is no pole in a)."""
    c = unary("cos", a.lo), unary("cos", a.hi)
    same = either(both(less(WAVE, c[0]), less(WAVE, c[1])), both(less(c[0], -WAVE), less(c[1], -WAVE)))
    defined = both(less(up(sub(a.hi, a.lo)), HALF_TURN), same)
    return where_defined(defined, monotonic("tan", a)), defined


def monotonic(op: str, a: Interval) -> Interval:
    least = _least(a)
    return Interval(down(unary(op, a.lo), ULPS[op], least), up(unary(op, a.hi), ULPS[op], least))


def exponential(a: Interval) -> Interval:
    lo, hi = unary("exp", a.lo), unary("exp", a.hi)
    lo = down(lo, 0.0, add(mul(mul(lo, ULPS["exp"] * EPS), _off_zero(a.lo)), _least(a)), 0.0)
    return Interval(lo, up(hi, 0.0, add(mul(mul(hi, ULPS["exp"] * EPS), _off_zero(a.hi)), _least(a))), True)


def logarithm(a: Interval) -> tuple[Interval, Any]:
    defined = less(0.0, a.lo)
    lo, hi = down(unary("log", a.lo), ULPS["log"]), up(unary("log", a.hi), ULPS["log"])
    return where_defined(defined, Interval(lo, hi)), defined


def hyperbolic_tangent(a: Interval) -> Interval:
    least = _least(a)
    lo, hi = (unary("tanh", x) for x in (a.lo, a.hi))
    return Interval(down(lo, ULPS["tanh"], least, -1.0), up(hi, ULPS["tanh"], least, 1.0))


def _within_one(a: Interval) -> Any:
    return both(at_most(-1.0, a.lo), at_most(a.hi, 1.0))


def arcsine(a: Interval) -> tuple[Interval, Any]:
    return where_defined(_within_one(a), monotonic("asin", a)), _within_one(a)


def arccosine(a: Interval) -> tuple[Interval, Any]:
    lo, hi = down(unary("acos", a.hi), ULPS["acos"], 0.0, 0.0), up(unary("acos", a.lo), ULPS["acos"])
    return where_defined(_within_one(a), Interval(lo, hi)), _within_one(a)


def angle(y: Interval, x: Interval) -> tuple[Interval, Any]:
    """(atan2(y, x), whether it is continuous): extreme at a corner, unless the box meets the cut y = 0 >= x."""
    continuous = either(less(0.0, x.lo), either(less(0.0, y.lo), less(y.hi, 0.0)))
    corners = [symbols.binary("atan2", b, a) for b in ends_of(y) for a in ends_of(x)]
    least = _least(y)
    lo, hi = down(smallest(*corners), ULPS["atan2"], least), up(largest(*corners), ULPS["atan2"], least)
    turn = 4.0 * EPS + PI
    return Interval(where(continuous, lo, -turn), where(continuous, hi, turn)), continuous


def is_less(a: Interval, b: Interval) -> Truth:
    return Truth(less(a.hi, b.lo), at_most(b.hi, a.lo))


def is_at_most(a: Interval, b: Interval) -> Truth:
    return Truth(at_most(a.hi, b.lo), less(b.hi, a.lo))


def is_equal(a: Interval, b: Interval) -> Truth:
    apart = either(less(a.hi, b.lo), less(b.hi, a.lo))
    return Truth(both(at_most(a.hi, b.lo), at_most(b.hi, a.lo)), apart)


def conjunction(a: Truth, b: Truth) -> Truth:
    return Truth(both(a.yes, b.yes), either(a.no, b.no))


def negation(a: Truth) -> Truth:
    return Truth(a.no, a.yes)


def chosen(condition: Truth, a: Interval, b: Interval) -> Interval:
    """a if the condition certainly holds, b if it certainly does not, else the union of both."""
    lo = where(condition.yes, a.lo, where(condition.no, b.lo, smallest(a.lo, b.lo)))
    hi = where(condition.yes, a.hi, where(condition.no, b.hi, largest(a.hi, b.hi)))
    return Interval(lo, hi, a.positive and b.positive)
