"""Interval versions of functions that are not in `intervals`: hyperbolic functions, powers, remainders, rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from geomctrl.tracing.operators import truncated
from geomctrl.tracing.symbols import binary, both, is_symbol, mul, neg, unary, where

from .intervals import (
    EPS,
    SMALLEST_NORMAL,
    ULPS,
    Interval,
    at_most,
    down,
    either,
    ends_of,
    even_power,
    largest,
    less,
    magnitude,
    mignitude,
    minus,
    monotonic,
    odd_power,
    over,
    plus,
    point,
    root,
    smallest,
    square,
    times,
    up,
    where_defined,
)


def increasing(op: str, domain: Callable[[Interval], Any] | None = None) -> Callable[[Interval], Any]:
    """An increasing function; with a domain, (interval, whether it is defined on the whole interval)."""
    if domain is None:
        return lambda a: monotonic(op, a)

    def enclosed(a: Interval) -> tuple[Interval, Any]:
        return where_defined(domain(a), monotonic(op, a)), domain(a)

    return enclosed


def hyperbolic_cosine(a: Interval) -> Interval:
    lo, hi = unary("cosh", mignitude(a)), unary("cosh", magnitude(a))
    return Interval(down(lo, ULPS["cosh"], 0.0, 1.0), up(hi, ULPS["cosh"]), True)


def two_to_the(a: Interval) -> Interval:
    lo, hi = unary("exp2", a.lo), unary("exp2", a.hi)
    return Interval(down(lo, ULPS["exp2"], SMALLEST_NORMAL, 0.0), up(hi, ULPS["exp2"], SMALLEST_NORMAL), True)


def hypotenuse(a: Interval, b: Interval) -> Interval:
    return root(plus(square(a), square(b)))[0]


def raised(a: Interval, b: Interval) -> tuple[Interval, Any, Any]:
    """(a^b, whether it is smooth, whether it is defined).

    For an integer b it is a product; otherwise a is nonnegative, and the power is monotonic in both arguments."""
    if b.thin and not is_symbol(b.lo) and b.lo == int(b.lo) and 1.0 <= abs(b.lo) <= 64.0:
        n = abs(int(b.lo))
        power = even_power(a, n) if n % 2 == 0 else odd_power(a, n)
        if b.lo > 0.0:
            return power, True, True
        value, defined = over(point(1.0), power)
        return value, defined, defined
    smooth = less(0.0, a.lo)
    defined = either(smooth, both(at_most(0.0, a.lo), less(0.0, b.lo)))
    corners = [binary("pow", x, y) for x in ends_of(a) for y in ends_of(b)]
    value = Interval(
        down(smallest(*corners), ULPS["pow"], SMALLEST_NORMAL, 0.0),
        up(largest(*corners), ULPS["pow"], SMALLEST_NORMAL),
        smooth is True,
    )
    return where_defined(defined, value), smooth, defined


def with_sign(a: Interval, b: Interval) -> tuple[Interval, Any]:
    """(|a| with the sign of b, whether that sign is known)."""
    yes, no = less(0.0, b.lo), less(b.hi, 0.0)
    below, above = mignitude(a), magnitude(a)
    lo, hi = where(yes, below, neg(above)), where(no, neg(below), above)
    return Interval(lo, hi), either(yes, no)


def nearest(a: Interval) -> tuple[Interval, Any]:
    """(a rounded to integers, whether the result is constant on a)."""
    lo, hi = unary("rint", a.lo), unary("rint", a.hi)
    return Interval(lo, hi, a.positive), True if a.thin else both(at_most(lo, hi), at_most(hi, lo))


def remainder_of(whole_number: Callable[[Any], Any], bound: Callable[[Interval, Interval], Interval]) -> Any:
    """a - b n, with a / b truncated or rounded to n: (interval, whether n is unique, whether b is not 0).

    If n is not unique, the interval is that of `bound`.
    """

    def enclosed(a: Interval, b: Interval) -> tuple[Interval, Any, Any]:
        quotient, defined = over(a, b)
        first, last = whole_number(quotient.lo), whole_number(quotient.hi)
        one = both(defined, both(at_most(first, last), at_most(last, first)))
        inside, outside = minus(a, times(b, point(first))), bound(a, b)
        lo = where(one, largest(outside.lo, inside.lo), outside.lo)
        hi = where(one, smallest(outside.hi, inside.hi), outside.hi)
        return where_defined(defined, Interval(lo, hi)), one, defined

    return enclosed


def _cut(a: Interval, b: Interval) -> Interval:
    """At most |a| and |b| in size, with the sign of a."""
    size_ = smallest(magnitude(a), magnitude(b))
    lo, hi = where(at_most(0.0, a.lo), 0.0, neg(size_)), where(at_most(a.hi, 0.0), 0.0, size_)
    return Interval(lo, hi)


def _halved(a: Interval, b: Interval) -> Interval:
    size_ = smallest(magnitude(a), mul(0.5 + EPS, magnitude(b)))
    return Interval(neg(size_), size_)


cut_remainder = remainder_of(truncated, _cut)
nearest_remainder = remainder_of(lambda x: unary("rint", x), _halved)
