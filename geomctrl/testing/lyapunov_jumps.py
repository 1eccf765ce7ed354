"""Jumps of a Lyapunov function: on lines through the domain, cut at where V changes most until nothing lies between."""

from __future__ import annotations

import time

import numpy as np

from .counterexample import Counterexample, paste
from .domain import Point, State
from .lyapunov_checks import Checks
from .shrinking import literal

CUTS = 24  # of a line, and of what is left of it each time
ORDER, AROUND = 6, 2  # of differences, nothing for what is smooth; cuts kept on both sides of where they are largest
SMOOTH = 1e-8  # of V: differences of less are no jump
CLEAR = 10.0  # times the others: the change of a cut that has the jump in it
SMALLEST = 1e-6  # of V there and about the equilibrium: a change of less is no jump
OTHERS = 3  # velocities, besides the one found and the opposite one, at which the loop may come across
ACROSS = np.logspace(-9, -5, 5)  # [s] in which the loop comes from one side to the other


class Jumps:
    """V along random lines. Where it jumps the loop must come across downwards, or not at all.

    A V that is less on the side that the loop goes to falls all the same; one that is more grows, whatever its rate.
    """

    def __init__(self, checks: Checks, rng: np.random.Generator, deadline: float):
        self.checks, self.domain, self.promise = checks, checks.domain, checks.promise
        self.rng, self.deadline, self.evaluations, self.starts = rng, deadline, 0, 0

    def run(self, budget: int) -> None:
        """Raises Counterexample."""
        while self.evaluations < budget and time.thread_time() < self.deadline:
            self.starts += 1
            jump = self._jump(*self._ends())
            if jump is not None:
                self._assert_downwards(*jump)

    def _assert_downwards(self, low: State, size: float) -> None:
        """Raise Counterexample if the loop comes across the jump from its lower side, at this velocity or another."""
        others = [self.domain.rest(low.t).v - (low.v - self.domain.rest(low.t).v)]
        others += [self.domain.state(self.domain.random(self.rng, "within")).v for _ in range(OTHERS)]
        for x in (low, *(low._replace(v=v) for v in others)):
            grown = self._growth(x)
            if not grown <= 0.5 * size:
                words = f"V jumps where the loop comes across, by {grown:.9g} within {ACROSS[-1]:g} s"
                raise Counterexample(words, x, "continuous", paste(self.promise.plant, literal(x)), "searched")

    def _ends(self) -> tuple[Point, Point]:
        """A line: between two states, along one coordinate, or of time with all else at its displacement."""
        a, b = (self.domain.random(self.rng, "within") for _ in range(2))
        x, kind = a.x.copy(), self.starts % 4
        if kind in (1, 2):
            k = self.domain.free[self.rng.integers(len(self.domain.free))]
            x[k] = b.x[k]
            if kind == 2:  # from bound to bound
                a.x[k], x[k] = self.domain.lower[k], self.domain.upper[k]
        else:
            x = b.x.copy()
            x[0] = a.x[0] if kind == 0 else x[0]
        return a, a._replace(x=x)

    def _state(self, a: Point, b: Point, s: float) -> State:
        return self.domain.state(a._replace(x=a.x + s * (b.x - a.x)))

    def _jump(self, a: Point, b: Point) -> tuple[State, float] | None:
        """(the state on the lower side, by how much V is more on the other) of a jump between a and b, None without."""
        s = np.linspace(0.0, 1.0, CUTS + 1)
        V = np.array([self._value(a, b, x) for x in s])
        while True:
            change, bent = np.abs(np.diff(V)), np.abs(np.diff(V, ORDER))
            k = int(np.argmax(change))
            if not bent.max() > SMOOTH * (np.abs(V).max() + self.checks.typical):
                return None
            if change[k] > CLEAR * np.median(change) or not (np.diff(s) > 0.0).all():
                break
            k = int(np.argmax(bent)) + ORDER // 2
            ends = max(k - AROUND, 0), min(k + AROUND, CUTS)
            s = np.linspace(s[ends[0]], s[ends[1]], CUTS + 1)
            V = np.array([V[ends[0]], *(self._value(a, b, x) for x in s[1:-1]), V[ends[1]]])
        low, high, V_low, V_high = s[k], s[k + 1], V[k], V[k + 1]
        while low < (middle := 0.5 * (low + high)) < high:
            V_middle = self._value(a, b, middle)
            if abs(V_middle - V_low) > abs(V_high - V_middle):
                high, V_high = middle, V_middle
            else:
                low, V_low = middle, V_middle
        if not abs(V_high - V_low) > SMALLEST * (abs(V_low) + abs(V_high) + self.checks.typical):
            return None
        return self._state(a, b, low if V_low < V_high else high), abs(V_high - V_low)

    def _value(self, a: Point, b: Point, s: float) -> float:
        self.evaluations += 1
        return self.promise.value(self._state(a, b, s))

    def _growth(self, x: State) -> float:
        """By how much V is more than at x, the most, a moment later."""
        self.evaluations += 1 + len(ACROSS)
        after, V = self.promise.onward(x), self.promise.value(x)
        return max(after(float(h)) - V for h in ACROSS)
