"""Search for the state at which a promise is worst: many starts, then ascent from the worst of them.

Repeatable for a generator's seed: what limits a search is how often it evaluates; seconds only come second.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from .domain import Domain, Point, State

Value = Callable[[State], float]
Slope = Callable[[State], tuple[float, np.ndarray]]

CLIMBS = 8  # from so many starts
MOST_DIFFERENCES = 12  # coordinates at a time, of a gradient by differences
STEP = 1e-4  # of differences, in spreads
STEPS = 60  # of one climb
LEAST_GAIN = 1e-6  # relative, below which a climb by differences has not moved


class Found(NamedTuple):
    """The worst state found, the objective there (nan is worst of all), and what it took."""

    state: State
    value: float
    evaluations: int
    starts: int


def worst(
    objective: Value,
    domain: Domain,
    rng: np.random.Generator,
    budget: int = 2000,
    *,
    slope: Slope | None = None,
    starts: Iterable[State] = (),
    ways: tuple[str, ...] | None = None,
    enough: float = np.inf,
    seconds: float = 20.0,
) -> Found:
    """The state of `domain` at which `objective` is largest, as far as `budget` evaluations find it.

    Half of them look at `starts` and at random states of all kinds (see `Domain.random`); the rest climb from the best
    of these by L-BFGS within the box. slope: state -> (objective, its gradient with respect to t and the displacement
    of the state in its algebra, (1 + dim,)); without it differences, of a few random coordinates at a time. The search
    ends where the objective is above `enough`, or is nan.
    """
    search = _Search(objective, domain, budget, slope, enough, time.perf_counter() + seconds)
    try:
        search.look([domain.clipped(domain.point(x)) for x in starts])
        search.draw(rng, budget // 2, ways)
        search.climb(rng)
    except _EnoughError:
        pass
    return Found(domain.state(search.best), search.value, search.evaluations, search.started)


class _EnoughError(Exception):
    """There is no need, or no budget, to go on."""


class _Search:
    def __init__(self, objective, domain, budget, slope, enough, deadline):
        self.objective, self.domain, self.slope = objective, domain, slope
        self.budget, self.enough, self.deadline = budget, enough, deadline
        self.value, self.best = -np.inf, Point(domain.lower)
        self.evaluations = self.started = 0
        self.seen: list[tuple[float, Point]] = []

    # --- evaluations ---------------------------------------------------------------------------------------------

    def note(self, value: float, point: Point) -> float:
        """`value` was found at `point`."""
        value = float(value)
        self.evaluations += 1
        if not value <= self.value:
            self.value, self.best = value, point
        if not value <= self.enough or self.evaluations >= self.budget or time.perf_counter() > self.deadline:
            raise _EnoughError
        return value

    def at(self, point: Point) -> float:
        return self.note(self.objective(self.domain.state(point)), point)

    # --- starts --------------------------------------------------------------------------------------------------

    def look(self, points: list[Point]) -> None:
        for point in points:
            self.started += 1
            self.seen.append((self.at(point), point))

    def draw(self, rng: np.random.Generator, count: int, ways: tuple[str, ...] | None) -> None:
        while self.started < max(count, 1):
            self.look([self.domain.random(rng, None if ways is None else ways[self.started % len(ways)])])

    # --- ascent --------------------------------------------------------------------------------------------------

    def climb(self, rng: np.random.Generator) -> None:
        """From the best starts, the rest of the budget shared among them."""
        self.seen.sort(key=lambda pair: -pair[0])
        chosen = self.seen[:CLIMBS]
        for k, (value, start) in enumerate(chosen):
            share = (self.budget - self.evaluations) // (len(chosen) - k)
            until = self.evaluations + share
            if self.slope is not None:
                self._climbed(value, start, self.domain.free, until)
                continue
            stuck = 0
            while self.evaluations < until and stuck < 2:
                active, before = rng.permutation(self.domain.free)[:MOST_DIFFERENCES], value
                value, start = self._climbed(value, start, active, until)
                stuck = 0 if value > before + LEAST_GAIN * abs(before) else stuck + 1

    def _climbed(self, value: float, start: Point, active: np.ndarray, until: int) -> tuple[float, Point]:
        """L-BFGS over the coordinates `active`; the best (value, point) on the way."""
        from scipy.optimize import minimize  # here, as importing it takes long

        domain, best = self.domain, (value, start)
        scale = domain.scale[active]
        low, high = (side[active] / scale for side in (domain.lower, domain.upper))

        def point(u: np.ndarray) -> Point:
            x = start.x.copy()
            x[active] = np.clip(u * scale, domain.lower[active], domain.upper[active])
            return start._replace(x=x)

        def downhill(u: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best
            if self.evaluations >= until:
                raise StopIteration
            here = point(u)
            if self.slope is None:
                value, gradient = self.at(here), self._differences(here, active)
            else:
                value, of_state = self.slope(domain.state(here))
                self.note(value, here)
                gradient = domain.pulled_back(here, of_state)[active] * scale
            if value > best[0]:
                best = value, here
            return -value, -np.nan_to_num(gradient)

        with contextlib.suppress(StopIteration):
            minimize(
                downhill, start.x[active] / scale, jac=True, method="L-BFGS-B", bounds=list(zip(low, high)),
                options={"maxiter": STEPS, "maxfun": max(until - self.evaluations, 1)},
            )  # fmt: skip
        return best

    def _differences(self, point: Point, active: np.ndarray) -> np.ndarray:
        """The gradient over coordinates in spreads, by central differences that stay within the box."""
        out = np.zeros(len(active))
        for j, k in enumerate(active):
            h = STEP * self.domain.scale[k]
            sides = []
            for step in (h, -h):
                x = point.x.copy()
                x[k] = min(max(x[k] + step, self.domain.lower[k]), self.domain.upper[k])
                sides.append((x[k], self.at(point._replace(x=x))))
            (b, high), (a, low) = sides
            out[j] = (high - low) / (b - a) * self.domain.scale[k]
        return out
