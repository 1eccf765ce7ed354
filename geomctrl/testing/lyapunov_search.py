"""`LyapunovSearch`: the search for a state where a Lyapunov function grows or is not positive.

It covers t, q, v and z in the domain: ascent on the promised rate, on dV/dt minus the promised rate, and on -V; descent
of V on shells about the equilibrium and in the whole domain; and V along lines, unless its continuity is proved.
Gradients are exact if the loop can be traced. The same checks as for random states decide about a candidate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from .certificates.validity import is_continuous_everywhere
from .counterexample import Counterexample, paste
from .domain import Point, State
from .lyapunov_checks import MIN_POSITIVE_DISTANCE, NEGLIGIBLE, Checks
from .lyapunov_zeros import Zeros
from .search import MAX_SECONDS, worst
from .shrinking import literal

LINE_PARTS = 24  # subdivisions of a line, and again of the remaining part
# order of differences, which vanish for smooth V; subdivisions kept around their maximum
ORDER, KEPT_SUBDIVISIONS = 6, 2
JUMP_TOLERANCE = 1e-8  # relative to V: smaller differences are no jump
MIN_JUMP_RATIO = 10.0  # ratio to the other changes from which a change is a jump
MIN_JUMP = 1e-6  # relative to V there and at typical states: smaller changes are no jump
EXTRA_VELOCITIES = 3  # velocities at which the loop may cross, besides the one found and its opposite
CROSSING_TIMES = np.logspace(-9, -5, 5)  # [s] in which the loop crosses


class Jumps:
    """Search for jumps of V along random lines. The loop may cross a jump downwards only.

    A V that is smaller on the side that the loop enters still decreases; a larger one grows, whatever its rate.
    """

    def __init__(self, checks: Checks, rng: np.random.Generator, deadline: float):
        self.checks, self.domain, self.promise = checks, checks.domain, checks.promise
        self.rng, self.deadline, self.evaluations, self.starts, self.cut_short = rng, deadline, 0, 0, False

    def run(self, budget: int) -> None:
        """Search with this many evaluations; raises Counterexample."""
        while self.evaluations < budget and not self.cut_short:
            self.cut_short = time.thread_time() > self.deadline
            self.starts += 1
            jump = self._jump(*self._ends())
            if jump is not None:
                self._assert_downwards(*jump)

    def _assert_downwards(self, low: State, size: float) -> None:
        """Raise Counterexample if the loop crosses the jump from its lower side, at this velocity or another."""
        others = [self.domain.rest(low.t).v - (low.v - self.domain.rest(low.t).v)]
        others += [self.domain.state(self.domain.random(self.rng, "within")).v for _ in range(EXTRA_VELOCITIES)]
        for x in (low, *(low._replace(v=v) for v in others)):
            self.evaluations += 1 + len(CROSSING_TIMES)
            after, V = self.promise.onward(x), self.promise.value(x)
            grown = max(after(float(h)) - V for h in CROSSING_TIMES)  # the largest increase of V within a short time
            if not grown <= 0.5 * size:
                message = f"V jumps along the motion, by {grown:.9g} within {CROSSING_TIMES[-1]:g} s"
                raise Counterexample(message, x, "continuous", paste(self.promise.plant, literal(x)), "searched")

    def _ends(self) -> tuple[Point, Point]:
        """The ends of a line: between two states, along one coordinate, or in time at a constant displacement."""
        a, b = (self.domain.random(self.rng, "within") for _ in range(2))
        x, kind = a.x.copy(), self.starts % 4
        if kind in (1, 2):
            k = self.domain.free[self.rng.integers(len(self.domain.free))]
            x[k] = b.x[k]
            if kind == 2:  # across the whole domain
                a.x[k], x[k] = self.domain.lower[k], self.domain.upper[k]
        else:
            x = b.x.copy()
            x[0] = a.x[0] if kind == 0 else x[0]
        return a, a._replace(x=x)

    def _state(self, a: Point, b: Point, s: float) -> State:
        return self.domain.state(a._replace(x=a.x + s * (b.x - a.x)))

    def _jump(self, a: Point, b: Point) -> tuple[State, float] | None:
        """(State on the lower side, height) of a jump between a and b; None if there is none."""
        s = np.linspace(0.0, 1.0, LINE_PARTS + 1)
        V = np.array([self._value(a, b, x) for x in s])
        while True:
            change, bent = np.abs(np.diff(V)), np.abs(np.diff(V, ORDER))
            k = int(np.argmax(change))
            if not bent.max() > JUMP_TOLERANCE * (np.abs(V).max() + self.checks.typical):
                return None
            if change[k] > MIN_JUMP_RATIO * np.median(change) or not (np.diff(s) > 0.0).all():
                break
            k = int(np.argmax(bent)) + ORDER // 2
            ends = max(k - KEPT_SUBDIVISIONS, 0), min(k + KEPT_SUBDIVISIONS, LINE_PARTS)
            s = np.linspace(s[ends[0]], s[ends[1]], LINE_PARTS + 1)
            V = np.array([V[ends[0]], *(self._value(a, b, x) for x in s[1:-1]), V[ends[1]]])
        low, high, V_low, V_high = s[k], s[k + 1], V[k], V[k + 1]
        while low < (middle := 0.5 * (low + high)) < high:
            V_middle = self._value(a, b, middle)
            if abs(V_middle - V_low) > abs(V_high - V_middle):
                high, V_high = middle, V_middle
            else:
                low, V_low = middle, V_middle
        if not abs(V_high - V_low) > MIN_JUMP * (abs(V_low) + abs(V_high) + self.checks.typical):
            return None
        return self._state(a, b, low if V_low < V_high else high), abs(V_high - V_low)

    def _value(self, a: Point, b: Point, s: float) -> float:
        self.evaluations += 1
        return self.promise.value(self._state(a, b, s))


# Fractions of the evaluations.
BUDGET_SHARES = {"rate": 0.2, "derivative": 0.35, "definite": 0.1, "zeros": 0.2, "jumps": 0.15}
START_KINDS = ("within", "about", "within", "corner", "within", "part", "within", "few")  # kinds of random starts
COMPARED_STATES = 20  # states at which exact rates are compared with differences
NOISE = 1e-11  # relative to |rate| + V / s: smaller errors of dV/dt are rounding


class LyapunovSearch:
    """One search with `budget` evaluations, reproducible for the generator's seed; `seconds` limits processor time."""

    def __init__(self, checks: Checks, rng: np.random.Generator, budget: int, seconds: float = MAX_SECONDS):
        self.checks, self.domain, self.promise = checks, checks.domain, checks.promise
        self.rng, self.budget, self.deadline = rng, budget, time.thread_time() + seconds
        self.evaluations = self.starts = self.zeros = self.lines = 0
        self.continuous = False  # whether V is proved to be continuous
        self.cut_short = False

    def run(self) -> None:
        """Run the search; raises Counterexample."""
        c, rtol = self.checks, self.checks.rtol
        for _ in range(min(COMPARED_STATES, self.budget)):  # throughout the domain: may exact rates be used?
            x = self.domain.state(self.domain.random(self.rng, "within"))
            c.hold(c.check_promised_rate, x, "searched")
        self._climb("rate", self._rate, c.not_growing, 1e-9)
        self._climb(
            "derivative", self._excess, c.check_promised_rate, 2.0 * rtol if c.bound else math.log10(2.0 * rtol + NOISE)
        )
        self._climb("definite", self._negative, c.positive, NEGLIGIBLE)
        zeros = Zeros(self.checks, self.rng, self.how == "exact", self.deadline)
        jumps = Jumps(self.checks, self.rng, self.deadline)
        exact, switches = self.promise.exact(float(self.domain.lower[0])), self.promise.plant.switches
        self.continuous = exact is not None and not switches and is_continuous_everywhere(exact.loop)
        for share, part in (("zeros", zeros), *[("jumps", jumps)] * (not self.continuous)):
            try:
                part.run(int(BUDGET_SHARES[share] * self.budget))
            finally:
                self.evaluations += part.evaluations
                self.starts += part.starts
                self.cut_short |= part.cut_short
        self.zeros, self.lines = zeros.zeros, jumps.starts

    @property
    def how(self) -> str:
        """How gradients were computed, as text."""
        exact = self.promise.exact(float(self.domain.lower[0]))
        return "differences" if exact is None or not exact.has_gradients else "exact"

    def _climb(self, share: str, objective: Callable, check: Callable[[State], None], enough: float) -> None:
        sloped = share != "definite" and self.how == "exact"
        result = worst(
            lambda x: objective(x, False)[0],
            self.domain,
            self.rng,
            max(1, int(BUDGET_SHARES[share] * self.budget)),
            slope=(lambda x: objective(x, True)) if sloped else None,
            ways=START_KINDS,
            enough=enough,
            seconds=max(0.0, self.deadline - time.thread_time()),
        )
        self.evaluations += result.evaluations
        self.starts += result.starts
        self.cut_short |= result.cut_short
        self.checks.hold(check, result.state, "searched")

    def _numbers(self, x: State, sloped: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """(V, promised rate, dV/dt), and their gradients if `sloped`."""
        exact = self.promise.exact(x.t)
        if exact is not None:
            numbers, gradients = exact.gradients(x) if sloped else (exact.numbers(x), None)
            if np.isfinite(numbers).all():
                return numbers, gradients
        rates = self.promise.along(x, 1e-2 * self.checks.rtol)
        doubt = min(rates.error, abs(rates.excess))  # errors of the differences must not count as excess
        actual = rates.promised + np.sign(rates.excess) * (abs(rates.excess) - doubt)
        return np.array([rates.value, rates.promised, actual]), np.zeros((3, self.domain.dim)) if sloped else None

    def _rate(self, x: State, sloped: bool):
        if self.promise.exact(x.t) is None:
            V, rate = self.promise.at(x)
            return rate / self.checks.size(V, rate), None
        (V, rate, _), d = self._numbers(x, sloped)
        return self._relative(rate, V, rate, d, 1)

    def _excess(self, x: State, sloped: bool):
        numbers, d = self._numbers(x, sloped)
        V, rate, actual = numbers
        if d is not None:
            d = np.array([d[0], d[1], d[2] - d[1]])
        value, gradient = self._relative(actual - rate, V, rate, d, 2)
        if self.checks.bound:
            return value, gradient
        size = abs(value) + NOISE
        return math.log10(size), None if gradient is None else np.sign(value) * gradient / (size * math.log(10.0))

    def _negative(self, x: State, sloped: bool):
        """-V divided by the squared distance from the equilibrium, which otherwise attracts every ascent."""
        exact, point = self.promise.exact(x.t), self.domain.point(x)
        V = np.nan if exact is None else float(exact.numbers(x)[0])
        V = V if np.isfinite(V) else self.promise.value(x)
        scale = np.where(self.domain.scale > 0.0, self.domain.scale, np.inf)
        return -V / (self.checks.typical * (MIN_POSITIVE_DISTANCE**2 + ((point.x / scale)[1:] ** 2).sum())), None

    def _relative(self, top: float, V: float, rate: float, d: np.ndarray | None, row: int):
        """top / (|rate| + V / s) with its gradient; rows of d are the gradients of V, of the rate, and of top."""
        size = self.checks.size(V, rate)
        if d is None:
            return top / size, None
        return top / size, (d[row] - top / size * (np.sign(V) * d[0] + np.sign(rate) * d[1])) / size
