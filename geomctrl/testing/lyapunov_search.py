"""The search for a state at which a Lyapunov function breaks its promises: where it grows, where it is not positive.

Over t, q, v and z within the domain: ascent on the promised rate, on dV/dt less what is promised, on -V; descent of V
on shells about the equilibrium and from all over the domain; V along lines, unless it is proved that it does not jump.
Gradients are exact where the loop traces. What is found is judged by the same checks as a sample.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from .certificates.continuity import is_continuous_everywhere
from .domain import State
from .lyapunov_checks import NOTHING, OFF, Checks
from .lyapunov_jumps import Jumps
from .lyapunov_zeros import Zeros
from .search import worst

SHARES = {"rate": 0.2, "derivative": 0.35, "definite": 0.1, "zeros": 0.2, "jumps": 0.15}  # of the evaluations
WAYS = ("within", "about", "within", "corner", "within", "part", "within", "few")  # of drawing starts
AGREEING = 20  # states at which what is exact is held against differences
NOISE = 1e-11  # of |rate| + V / s: an error of dV/dt below this is rounding, and leads nowhere


class LyapunovSearch:
    """One search: `budget` evaluations, repeatable for the generator's seed."""

    def __init__(self, checks: Checks, rng: np.random.Generator, budget: int, seconds: float):
        self.checks, self.domain, self.promise = checks, checks.domain, checks.promise
        self.rng, self.budget, self.deadline = rng, budget, time.thread_time() + seconds
        self.evaluations = self.starts = self.zeros = self.lines = 0
        self.continuous = False  # whether V is proved to be, in all states

    def run(self) -> None:
        """Raises Counterexample."""
        c, rtol = self.checks, self.checks.rtol
        for _ in range(min(AGREEING, self.budget)):  # all over the domain: is what is exact to be believed?
            x = self.domain.state(self.domain.random(self.rng, "within"))
            c.hold(c.as_promised, x, "searched")
        self._climb("rate", self._rate, c.not_growing, 1e-9)
        self._climb(
            "derivative", self._excess, c.as_promised, 2.0 * rtol if c.bound else math.log10(2.0 * rtol + NOISE)
        )
        self._climb("definite", self._negative, c.positive, NOTHING)
        zeros = Zeros(self.checks, self.rng, self.how == "exact", self.deadline)
        jumps = Jumps(self.checks, self.rng, self.deadline)
        self.continuous = self._is_continuous()
        for share, part in (("zeros", zeros), *[("jumps", jumps)] * (not self.continuous)):
            try:
                part.run(int(SHARES[share] * self.budget))
            finally:
                self.evaluations += part.evaluations
                self.starts += part.starts
        self.zeros, self.lines = zeros.zeros, jumps.starts

    def _is_continuous(self) -> bool:
        exact = self.promise.exact(float(self.domain.lower[0]))
        return exact is not None and not self.promise.plant.switches and is_continuous_everywhere(exact.loop)

    @property
    def how(self) -> str:
        """What gradients were made of."""
        exact = self.promise.exact(float(self.domain.lower[0]))
        return "differences" if exact is None or not exact.has_gradients else "exact"

    def _climb(self, share: str, objective: Callable, check: Callable[[State], None], enough: float) -> None:
        sloped = share != "definite" and self.how == "exact"
        found = worst(
            lambda x: objective(x, False)[0],
            self.domain,
            self.rng,
            max(1, int(SHARES[share] * self.budget)),
            slope=(lambda x: objective(x, True)) if sloped else None,
            ways=WAYS,
            enough=enough,
            seconds=max(0.0, self.deadline - time.thread_time()),
        )
        self.evaluations += found.evaluations
        self.starts += found.starts
        self.checks.hold(check, found.state, "searched")

    # --- objectives: (value, gradient or None) at a state, without units -------------------------------------------

    def _numbers(self, x: State, sloped: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """(V, promised rate, dV/dt), and their gradients."""
        exact = self.promise.exact(x.t)
        if exact is not None:
            numbers, gradients = exact.gradients(x) if sloped else (exact.numbers(x), None)
            if np.isfinite(numbers).all():
                return numbers, gradients
        found = self.promise.along(x, 1e-2 * self.checks.rtol)
        doubt = min(found.error, abs(found.excess))  # what may be an error of the differences is no excess
        actual = found.promised + np.sign(found.excess) * (abs(found.excess) - doubt)
        return np.array([found.value, found.promised, actual]), np.zeros((3, self.domain.dim)) if sloped else None

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
        """-V over the squared distance from the equilibrium: else all ways up lead there."""
        exact, point = self.promise.exact(x.t), self.domain.point(x)
        V = np.nan if exact is None else float(exact.numbers(x)[0])
        V = V if np.isfinite(V) else self.promise.value(x)
        scale = np.where(self.domain.scale > 0.0, self.domain.scale, np.inf)
        return -V / (self.checks.typical * (OFF**2 + ((point.x / scale)[1:] ** 2).sum())), None

    def _relative(self, top: float, V: float, rate: float, d: np.ndarray | None, row: int):
        """top over |rate| + V / s, d's rows being the gradients of V, of the rate, and of top."""
        size = self.checks.size(V, rate)
        if d is None:
            return top / size, None
        return top / size, (d[row] - top / size * (np.sign(V) * d[0] + np.sign(rate) * d[1])) / size
