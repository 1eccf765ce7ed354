"""The search for a state at which a Lyapunov function breaks its promises: where it grows, where it is not positive.

Over t, q, v and z within the domain: ascent on the promised rate, on dV/dt less what is promised, on -V, and descent of V
on shells about the equilibrium. Gradients are exact where the loop traces. What is found is judged by the same checks as
a sample.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from geomctrl.control.closed_loop import Loop
from geomctrl.errors import GeomctrlError
from geomctrl.integrators.driver import steps

from .along import flat
from .counterexample import Counterexample
from .domain import Domain, Point, State
from .lyapunov_checks import NOTHING, Checks
from .search import MOST_DIFFERENCES, STEP, worst

SHARES = {"rate": 0.25, "derivative": 0.375, "definite": 0.125, "shells": 0.25}  # of the evaluations
WAYS = ("within", "about", "within", "corner", "within", "part", "within", "few")  # of drawing starts
NOISE = 1e-11  # of |rate| + V / s: an error of dV/dt below this is rounding, and leads nowhere
RADII = (0.2, 1.0, 2.0)  # of shells, in spreads
STARTS = 4  # on each shell
FOLLOWED = 3  # zeros of V from which the loop is followed
LONGEST = 64.0  # [s] that it is followed for
PATIENCE = 8.0  # [s] after which a loop that comes no nearer stays away
RETURNED, STAYED = 0.05, 0.98  # of the distance before, in the second half of the time
MOST_STEPS = 1500


class LyapunovSearch:
    """One search: `budget` evaluations, repeatable for the generator's seed."""

    def __init__(self, checks: Checks, rng: np.random.Generator, budget: int, seconds: float):
        self.checks, self.domain, self.promise = checks, checks.domain, checks.promise
        self.rng, self.budget, self.deadline = rng, budget, time.perf_counter() + seconds
        self.evaluations = self.starts = self.zeros = 0

    def run(self) -> None:
        """Raises Counterexample."""
        c, rtol = self.checks, self.checks.rtol
        self._climb("rate", self._rate, c.not_growing, 1e-9)
        self._climb(
            "derivative", self._excess, c.as_promised, 2.0 * rtol if c.bound else math.log10(2.0 * rtol + NOISE)
        )
        self._climb("definite", self._negative, c.positive, NOTHING)
        self._shells()

    @property
    def how(self) -> str:
        """What gradients were made of."""
        exact = self.promise.exact(float(self.domain.lower[0]))
        return "differences" if exact is None or not exact.has_gradients else "exact"

    def _climb(self, share: str, objective: Callable, check: Callable[[State], None], enough: float) -> None:
        sloped = self.how == "exact"
        found = worst(
            lambda x: objective(x, False)[0],
            self.domain,
            self.rng,
            max(1, int(SHARES[share] * self.budget)),
            slope=(lambda x: objective(x, True)) if sloped else None,
            ways=WAYS,
            enough=enough,
            seconds=max(0.0, self.deadline - time.perf_counter()),
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
        if self.promise.exact(x.t) is None:
            return -self.promise.value(x) / self.checks.typical, None
        (V, _, _), d = self._numbers(x, sloped)
        return -V / self.checks.typical, None if d is None else -d[0] / self.checks.typical

    def _relative(self, top: float, V: float, rate: float, d: np.ndarray | None, row: int):
        """top over |rate| + V / s, d's rows being the gradients of V, of the rate, and of top."""
        size = self.checks.size(V, rate)
        if d is None:
            return top / size, None
        return top / size, (d[row] - top / size * (np.sign(V) * d[0] + np.sign(rate) * d[1])) / size

    # --- shells ------------------------------------------------------------------------------------------------------

    def _shells(self) -> None:
        """V on |x - x_e| = r, in spreads, for several r: where it vanishes, the loop must return to the equilibrium.

        A V that is zero off the equilibrium says nothing about what happens there; that the set of such states leads to
        the equilibrium, as s = 0 does in sliding laws, keeps the proof (Iggidr and Sallet 2003).
        """
        active = self.domain.free[self.domain.free > 0]
        budget = int(SHARES["shells"] * self.budget)
        shares = max(10, budget // (STARTS * len(RADII)))
        if not len(active) or budget < 10:
            return
        for radius in RADII:
            for _ in range(STARTS):
                shell = _Shell(self, radius, active)
                point, V = shell.least(shares)
                self.evaluations += shell.evaluations
                self.starts += 1
                x = self.domain.state(point)
                if V < 0.0:
                    self.checks.hold(self.checks.positive, x, "searched")
                if V <= NOTHING * shell.typical and self.zeros < FOLLOWED:
                    self.zeros += 1
                    self.checks.hold(self.returning(NOTHING * shell.typical, 0.5 * radius), x, "searched")

    def returning(self, tiny: float, off: float) -> Callable[[State], None]:
        """V is `tiny`, at states `off` spreads away or more, only where the loop returns to the equilibrium from."""

        def check(x: State) -> None:
            V = self.promise.value(x)
            if V <= tiny and self._distance(x) >= off and not self._returns(x):
                words = "V is zero off the equilibrium, at a state from which the loop does not return to it"
                raise Counterexample(f"{words}: V = {V:.3g}", x, "definite")

        return check

    def _returns(self, x: State) -> bool:
        """Whether the closed loop, from x on, comes to the equilibrium: near it for as long as it took to come there."""
        times, distances, span = [x.t], [self._distance(x)], 1.0
        loop = Loop(self.promise.plant.at(x.t), self.promise.controller, x.q, x.v, "MK54", None, 1e-3, None, None)
        exact = self.promise.exact(x.t)
        field = loop.field if exact is None else exact.field
        with contextlib.suppress(GeomctrlError):  # a loop that can not be followed further
            walk = steps(field, flat(x), (x.t, x.t + LONGEST), None, "MK54", loop.group, rtol=1e-4, atol=1e-7)
            for _, (t, y) in zip(range(MOST_STEPS), walk):
                q, v, z = loop.split(y)
                times.append(t)
                distances.append(self._distance(State(t, q, v, z)))
                if t - x.t > span:
                    left = _settled(times, distances)
                    if left < RETURNED or (left > STAYED and span >= PATIENCE):
                        return left < RETURNED
                    span *= 2.0
        return _settled(times, distances) < 0.5

    def _distance(self, x: State) -> float:
        domain = self.domain
        return float(np.linalg.norm((domain.point(x).x / np.where(domain.scale > 0.0, domain.scale, 1.0))[1:]))


def _settled(times: list[float], distances: list[float]) -> float:
    """The largest distance in the second half of the time, over that in the first."""
    t, d = np.array(times), np.array(distances)
    late = t > 0.5 * (t[0] + t[-1])
    if not late.any() or not np.isfinite(d).all():
        return np.inf
    return float(d[late].max() / max(d[~late].max(), 1e-300))


class _Shell:
    """V at one time over the states `radius` spreads off the equilibrium."""

    def __init__(self, search: LyapunovSearch, radius: float, active: np.ndarray):
        self.search, self.domain, self.radius = search, search.domain, radius
        self.sloped, rng = search.how == "exact", search.rng
        start = self.domain.random(rng, "within")
        self.start = self.domain.only(start)
        self.active = active if self.sloped else rng.permutation(active)[:MOST_DIFFERENCES]
        self.evaluations = 0
        drawn = rng.normal(size=(5, len(self.active)))
        values = [self._value(w) for w in drawn]
        self.typical = float(np.median(values))
        least = int(np.argmin(values))
        self.w, self.best = drawn[least], (values[least], drawn[least])

    def point(self, w: np.ndarray) -> Point:
        x = self.start.x.copy()
        x[1:] = 0.0
        at = self.active
        x[at] = self.radius / np.linalg.norm(w) * w * self.domain.scale[at]
        return self.domain.clipped(self.start._replace(x=x))

    def least(self, budget: int) -> tuple[Point, float]:
        """Where V is least, as far as `budget` evaluations find it."""
        if not self.typical > 0.0:
            return self.point(self.best[1]), self.best[0]
        with contextlib.suppress(StopIteration):
            minimize(self._scaled(budget), self.w, jac=True, method="L-BFGS-B", options={"ftol": 0.0, "gtol": 0.0})
        return self.point(self.best[1]), self.best[0]

    def _scaled(self, budget: int):
        def downhill(w: np.ndarray) -> tuple[float, np.ndarray]:
            done = self.best[0] <= 1e-3 * NOTHING * self.typical
            if done or self.evaluations >= budget or time.perf_counter() > self.search.deadline:
                raise StopIteration
            V, gradient = self._with_gradient(w)
            return V / self.typical, gradient / self.typical

        return downhill

    def _value(self, w: np.ndarray) -> float:
        self.evaluations += 1
        return self.search.promise.value(self.domain.state(self.point(w)))

    def _with_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """V and its gradient with respect to w: that of a direction."""
        domain, size = self.domain, float(np.linalg.norm(w))
        point = self.point(w)
        x = domain.state(point)
        exact = self.search.promise.exact(x.t) if self.sloped else None
        if exact is None:
            V, g = self._value(w), np.zeros(len(w))
            for k in range(len(w)):
                e = np.zeros(len(w))
                e[k] = STEP * size
                g[k] = (self._value(w + e) - self._value(w - e)) / (2.0 * e[k])
        else:
            self.evaluations += 1
            numbers, gradients = exact.gradients(x)
            V = float(numbers[0])
            g = domain.pulled_back(point, gradients[0])[self.active] * domain.scale[self.active] * self.radius / size
            g -= w * (w @ g) / size**2
        if self.best[0] > V:
            self.best = V, w.copy()
        return V, g
