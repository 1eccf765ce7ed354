"""Interval arithmetic for checking saved proofs, with python-flint (arb) in higher precision than double.

An interval is a pair (lo, hi) of exact arbs, or None if unbounded or undefined. The code is independent of `intervals`
and uses other case distinctions (products by signs, extrema of sine and cosine by counting turns), so that it does not
repeat a mistake there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Ends = tuple[Any, Any] | None


def flint() -> Any:
    """The library python-flint. Raises ImportError with installation instructions."""
    try:
        import flint
    except ImportError as error:
        raise ImportError("checking a proof again needs python-flint: pip install 'geomctrl[certify]'") from error
    return flint


class Arithmetic:
    """Operations on intervals by their names in a trace; digits: precision of the arbs' midpoints in bits."""

    def __init__(self, bits: int = 96):
        self.flint = flint()
        self.arb, self.bits = self.flint.arb, bits
        self.zero, self.one = self.arb(0), self.arb(1)
        with self.precision():
            self.pi = self.arb.pi()
        self.operations: dict[str, Callable[..., Ends]] = {
            "neg": lambda a: (-a[1], -a[0]),
            "add": lambda a, b: _outward(a[0] + b[0], a[1] + b[1]),
            "sub": lambda a, b: _outward(a[0] - b[1], a[1] - b[0]),
            "mul": self.product,
            "div": self.quotient,
            "abs": self.absolute,
            "min": lambda a, b: (_least(a[0], b[0]), _least(a[1], b[1])),
            "max": lambda a, b: (_most(a[0], b[0]), _most(a[1], b[1])),
            "floor": lambda a: (a[0].floor(), a[1].floor()),
            "sin": lambda a: self.wave(a, self.arb.sin, self.one / 4),
            "cos": lambda a: self.wave(a, self.arb.cos, self.zero),
            "exp": lambda a: self.hull(a[0].exp(), a[1].exp()),
            "tanh": lambda a: self.hull(a[0].tanh(), a[1].tanh()),
            "sqrt": lambda a: self.hull(a[0].sqrt(), a[1].sqrt()) if a[0] >= 0 else None,
            "log": lambda a: self.hull(a[0].log(), a[1].log()) if a[0] > 0 else None,
            "asin": lambda a: self.hull(a[0].asin(), a[1].asin()) if self.within_one(a) else None,
            "acos": lambda a: self.hull(a[1].acos(), a[0].acos()) if self.within_one(a) else None,
            "tan": self.tangent,
            "atan2": self.angle,
            "hypot": lambda a, b: self.operations["sqrt"](self.both("add", self.power(a, 2), self.power(b, 2))),
            "rint": lambda a: (self.nearest(a[0]), self.nearest(a[1])),
            "cosh": lambda a: self.increasing(self.arb.cosh)(self.absolute(a)),
            "exp2": self.increasing(lambda x: self.arb(2) ** x),
            "cbrt": self.increasing(self.cube_root),
            **{op: self.increasing(getattr(self.arb, op)) for op in ("sinh", "asinh", "expm1")},
            "log1p": self.increasing(self.arb.log1p, lambda a: a[0] > -1),
            "log2": self.increasing(lambda x: x.log() / self.arb(2).log(), lambda a: a[0] > 0),
            "log10": self.increasing(lambda x: x.log() / self.arb(10).log(), lambda a: a[0] > 0),
            "acosh": self.increasing(self.arb.acosh, lambda a: a[0] >= 1),
            "atanh": self.increasing(self.arb.atanh, lambda a: a[0] > -1 and a[1] < 1),
            "copysign": self.with_sign,
            "pow": self.raised,
            "fmod": lambda a, b: self.remainder(a, b, self.cut),
            "remainder": lambda a, b: self.remainder(a, b, self.nearest),
        }

    def precision(self) -> Any:
        return self.flint.ctx.workprec(self.bits)

    def point(self, x: float) -> Ends:
        return self.arb(x), self.arb(x)

    def interval(self, lo: float, hi: float) -> Ends:
        return self.arb(lo), self.arb(hi)

    def hull(self, *xs: Any) -> Ends:
        """The smallest interval that contains some arbs."""
        if not all(x.is_finite() for x in xs):
            return None
        lo, hi = xs[0].lower(), xs[0].upper()
        for x in xs[1:]:
            lo, hi = _least(lo, x.lower()), _most(hi, x.upper())
        return lo, hi

    def both(self, op: str, a: Ends, b: Ends) -> Any:
        return None if a is None or b is None else self.operations[op](a, b)

    def increasing(self, function: Any, domain: Callable[[Any], Any] = lambda a: True) -> Callable[..., Ends]:
        return lambda a: self.hull(function(a[0]), function(a[1])) if domain(a) else None

    def cube_root(self, x: Any) -> Any:
        return x.root(3) if x >= 0 else -(-x).root(3)

    def nearest(self, x: Any) -> Any:
        """An integer at distance at most 1 / 2; an arb that contains both candidates if it is ambiguous."""
        down = (x + self.one / 2).floor()
        return down - 1 if down - x == self.one / 2 and not (down / 2).is_integer() else down

    def cut(self, x: Any) -> Any:
        return x.floor() if x >= 0 else x.ceil()

    def with_sign(self, a: Any, b: Any) -> Ends:
        size = self.absolute(a)
        if b[0] > 0:
            return size
        return (-size[1], -size[0]) if b[1] < 0 else (-size[1], size[1])

    def raised(self, a: Any, b: Any) -> Ends:
        """A power: a product for integers, else of a nonnegative base."""
        n = b[0]
        if n == b[1] and n.is_integer() and 1 <= abs(n) <= 64:
            n = int(float(n))
            power = self.power(a, abs(n))
            return power if n > 0 or power is None else self.quotient((self.one, self.one), power)
        if not (a[0] > 0 or (a[0] >= 0 and b[0] > 0)):
            return None
        return self.hull(*(self.zero if x == 0 else x**y for x in a for y in b))

    def remainder(self, a: Any, b: Any, whole: Any) -> Ends:
        """a - b n with the integer n from a / b; within b, or half of it, if n is ambiguous."""
        ratio = self.quotient(a, b)
        if ratio is None:
            return None
        first, last = whole(ratio[0]), whole(ratio[1])
        if first.is_exact() and first == last:
            return self.both("sub", a, self.product(b, (first, first)))
        size = self.absolute(b)[1]
        return -size, size

    def product(self, a: Any, b: Any) -> Ends:
        zero = self.zero
        if a[0] < zero < a[1]:
            if b[0] < zero < b[1]:
                return self.hull(a[0] * b[1], a[1] * b[0], a[0] * b[0], a[1] * b[1])
            a, b = b, a
        (p, q), (r, s) = a, b
        if p >= zero:
            return _outward(p * r if r >= zero else q * r, q * s if s >= zero else p * s)
        return _outward(p * s if s >= zero else q * s, q * r if r >= zero else p * r)

    def power(self, a: Any, n: int) -> Ends:
        if n % 2 == 0:
            a = self.absolute(a)
        return self.hull(a[0] ** n, a[1] ** n)

    def quotient(self, a: Any, b: Any) -> Ends:
        return self.product(a, self.hull(1 / b[1], 1 / b[0])) if b[0] > 0 or b[1] < 0 else None

    def absolute(self, a: Any) -> Any:
        if a[0] >= 0:
            return a
        return (-a[1], -a[0]) if a[1] <= 0 else (self.zero, _most(-a[0], a[1]))

    def wave(self, a: Any, function: Any, phase: Any) -> Ends:
        """A sine with maxima at whole turns + phase and minima half a turn later."""
        low, high = function(a[0]), function(a[1])
        lo, hi = _least(low.lower(), high.lower()), _most(low.upper(), high.upper())
        turns = [x / (2 * self.pi) - phase for x in a]
        if self.may_pass(turns, 0):
            hi = self.one
        if self.may_pass(turns, self.one / 2):
            lo = -self.one
        return _most(lo, -self.one), _least(hi, self.one)

    def may_pass(self, turns: list[Any], offset: Any) -> bool:
        """Whether an integer may lie between the two, after a shift."""
        first, last = ((x - offset).floor() for x in turns)
        return not (first.is_exact() and last.is_exact() and first == last and not (turns[0] - offset).contains(first))

    def tangent(self, a: Any) -> Ends:
        if self.may_pass([x / self.pi for x in a], self.one / 2):
            return None
        return self.hull(a[0].tan(), a[1].tan())

    def within_one(self, a: Any) -> bool:
        return bool(a[0] >= -1 and a[1] <= 1)

    def angle(self, y: Any, x: Any) -> Ends:
        if not continuous_angle(y, x):
            return self.hull(-self.pi, self.pi)
        return self.hull(*(self.arb.atan2(b, a) for b in y for a in x))


def _outward(lo: Any, hi: Any) -> Ends:
    """The interval from one arb to a larger one."""
    return (lo.lower(), hi.upper()) if lo.is_finite() and hi.is_finite() else None


def continuous_angle(y: Any, x: Any) -> bool:
    """Whether atan2(y, x) is continuous there."""
    return bool(x[0] > 0 or y[0] > 0 or y[1] < 0)


def _least(a: Any, b: Any) -> Any:
    return a if a <= b else b


def _most(a: Any, b: Any) -> Any:
    return a if a >= b else b
