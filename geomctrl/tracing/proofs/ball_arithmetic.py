"""Intervals for checking saved proofs: every rounding is python-flint's (arb), in more digits than doubles have.

An interval is a pair (lo, hi) of exact arbs, or None: not bounded, or not defined. Written apart from `intervals`, with
other case distinctions, so that a mistake there is not repeated here: products by signs, extrema of sine and cosine by
counting turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Ends = tuple[Any, Any] | None


def flint() -> Any:
    """The library; raises ImportError that says how to install it."""
    try:
        import flint
    except ImportError as error:
        raise ImportError("checking a proof again needs python-flint: pip install 'geomctrl[certify]'") from error
    return flint


class Arithmetic:
    """Operations on intervals by their names in a trace; digits: bits of the arbs' midpoints."""

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
        }

    def precision(self) -> Any:
        return self.flint.ctx.workprec(self.bits)

    def point(self, x: float) -> Ends:
        return self.arb(x), self.arb(x)

    def interval(self, lo: float, hi: float) -> Ends:
        return self.arb(lo), self.arb(hi)

    def hull(self, *xs: Any) -> Ends:
        """The smallest interval that holds all of some arbs."""
        if not all(x.is_finite() for x in xs):
            return None
        lo, hi = xs[0].lower(), xs[0].upper()
        for x in xs[1:]:
            lo, hi = _least(lo, x.lower()), _most(hi, x.upper())
        return lo, hi

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
        """A sine whose tops are at whole turns + phase, its bottoms half a turn on."""
        low, high = function(a[0]), function(a[1])
        lo, hi = _least(low.lower(), high.lower()), _most(low.upper(), high.upper())
        turns = [x / (2 * self.pi) - phase for x in a]
        if self.may_pass(turns, 0):
            hi = self.one
        if self.may_pass(turns, self.one / 2):
            lo = -self.one
        return _most(lo, -self.one), _least(hi, self.one)

    def may_pass(self, turns: list[Any], offset: Any) -> bool:
        """Whether a whole number may lie between the two, shifted."""
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
    """The interval from one arb to another that is not below it."""
    return (lo.lower(), hi.upper()) if lo.is_finite() and hi.is_finite() else None


def continuous_angle(y: Any, x: Any) -> bool:
    """Whether atan2(y, x) has no jump there."""
    return bool(x[0] > 0 or y[0] > 0 or y[1] < 0)


def _least(a: Any, b: Any) -> Any:
    return a if a <= b else b


def _most(a: Any, b: Any) -> Any:
    return a if a >= b else b
