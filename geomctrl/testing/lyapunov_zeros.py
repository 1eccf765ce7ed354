"""`Zeros`: the search for zeros of a Lyapunov function other than its equilibrium.

They are sought on shells about the equilibrium, by descent from the whole domain, and at increasing times. The loop is
followed from each zero.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from geomctrl.control.closed_loop import Loop
from geomctrl.errors import GeomctrlError
from geomctrl.integrators.driver import steps
from geomctrl.integrators.step_control import Adaptive

from .counterexample import Counterexample, paste
from .domain import MAX_SPREADS, Domain, Point, State
from .lyapunov_checks import NEGLIGIBLE, Checks
from .lyapunov_rate import flat
from .search import DIFFERENCE_STEP, MAX_DIFFERENCES
from .shrinking import literal

SHELL_RADII = (0.2, 1.0, 2.0, MAX_SPREADS)  # of shells, in spreads; the last one touches the bounds of the domain
STARTS = 3  # per shell
DESCENTS = 12  # from the whole domain
MIN_DISTANCE = 0.1  # spreads: a descent that ends closer has found the equilibrium
DECADES, PER_DECADE, DECAY_DISPLACEMENTS = 8, 4, 5  # times after the domain's last, and displacements tested then
VANISHING_FRACTION = 1e-3  # of its earlier value: a V below that still halves per decade has no positive bound
SIMULATED_ZEROS = 3  # zeros of V from which the loop is simulated
MAX_SECONDS = 64.0  # [s] duration of that simulation
PATIENCE_SECONDS = 8.0  # [s] without approaching after which the loop does not return
RETURNED_RATIO, STAYED_RATIO = 0.05, 0.98  # ratios of distances in the second half of the time to those before
DIVERGED_RATIO = 100.0  # ratio of the distance to that of the start from which the loop does not return
MAX_STEPS = 2000


class Zeros:
    """Check that the loop returns from zeros of V to the equilibrium, and that V does not decay with time alone.

    A zero of V away from the equilibrium gives no information about the states there. If these states lead to the
    equilibrium, as s = 0 does in sliding laws, the proof still holds (Iggidr and Sallet 2003).
    """

    def __init__(self, checks: Checks, rng: np.random.Generator, sloped: bool, deadline: float):
        self.checks, self.domain, self.promise = checks, checks.domain, checks.promise
        self.rng, self.sloped, self.deadline = rng, sloped, deadline
        self.evaluations, self.starts, self.zeros, self.cut_short = 0, 0, 0, False
        self._returning: dict[tuple, bool] = {}

    def run(self, budget: int) -> None:
        """Search with this many evaluations; raises Counterexample."""
        active = self.domain.free[self.domain.free > 0]
        if not len(active) or budget < 1:
            return
        share = max(10, budget // (STARTS * len(SHELL_RADII) + DESCENTS))
        for radius in (*(r for r in SHELL_RADII for _ in range(STARTS)), *(None,) * DESCENTS):
            descent = _Descent(self, active) if radius is None else _Shell(self, radius, active)
            point, least = descent.least(share)
            self.evaluations += descent.evaluations
            self.starts += 1
            if least < 0.0:
                self.checks.hold(self.checks.positive, self.domain.state(point), "searched")
            tiny, off = NEGLIGIBLE * descent.typical, MIN_DISTANCE if radius is None else 0.5 * radius
            if (
                least <= tiny
                and self.zeros < SIMULATED_ZEROS
                and _distance(self.domain, self.domain.state(point)) >= off
            ):
                self.zeros += 1
                self._follow(point, tiny, off)
        if self.domain.all_times:
            self._fade()

    def _fade(self) -> None:
        """Check at increasing times that V has a lower bound independent of time."""
        first, last = self.domain.lower[0], self.domain.upper[0]
        times = [*np.linspace(first, last, PER_DECADE), *(last * np.logspace(0, DECADES, PER_DECADE * DECADES + 1)[1:])]
        for _ in range(DECAY_DISPLACEMENTS):
            point = self.domain.random(self.rng, "about")
            seen: list[tuple[float, State]] = []
            for t in times:
                x = point.x.copy()
                x[0] = t
                try:
                    state = self.domain.state(point._replace(x=x))
                except GeomctrlError:  # a reference may end
                    break
                self.evaluations += 1
                seen.append((self.promise.value(state), state))
            values = [value for value, _ in seen]
            if _fades(values):
                now, state = next(x for x in seen if x[0] <= VANISHING_FRACTION * min(values[:PER_DECADE]))
                message = (
                    "V has no positive bound below that does not depend on time: at this displacement from the"
                    f" equilibrium it was {max(values[:PER_DECADE]):.3g} at t <= {last:.3g} s, is {now:.3g}, and falls"
                )
                raise Counterexample(message, state, "definite", paste(self.promise.plant, literal(state)), "searched")

    def _follow(self, point: Point, tiny: float, off: float) -> None:
        """Raise the simplest Counterexample if the loop does not return from a zero of V."""
        check = self.returning(tiny, off)
        try:
            check(self.domain.state(point))
        except Counterexample:
            self.checks.hold(check, self.domain.state(self._simple_zero(point, tiny, off)), "searched")
            self.checks.hold(check, self.domain.state(point), "searched")

    def _simple_zero(self, point: Point, tiny: float, off: float) -> Point:
        """A simpler zero of V: coordinates are set to zero or rounded one by one, while the largest one compensates."""
        scale = np.where(self.domain.scale > 0.0, self.domain.scale, 1.0)
        kept: list[int] = []
        for k in self.domain.free[self.domain.free > 0]:
            for simple in (0.0, float(f"{point.x[k]:.0e}")):
                x = point.x.copy()
                x[k] = simple
                others = [j for j in self.domain.free if j > 0 and j != k and j not in kept]
                if not others:
                    break
                j = max(others, key=lambda j: abs(x[j] / scale[j]))
                candidate = self._zero_along(point._replace(x=x), j)
                state = self.domain.state(candidate)
                if self.promise.value(state) <= tiny and _distance(self.domain, state) >= off:
                    point = candidate
                    kept.append(int(k))
                    break
        return point

    def _zero_along(self, point: Point, j: int) -> Point:
        """The minimum of V if coordinate j changes by at most one spread."""
        from scipy.optimize import minimize_scalar

        low, high = max(self.domain.lower[j], point.x[j] - self.domain.scale[j]), self.domain.upper[j]
        high = min(high, point.x[j] + self.domain.scale[j])

        def at(s: float) -> Point:
            x = point.x.copy()
            x[j] = s
            return point._replace(x=x)

        def value(s: float) -> float:
            return self.promise.value(self.domain.state(at(s)))

        best = minimize_scalar(value, bounds=(low, high), method="bounded", options={"xatol": 1e-12 * (high - low)})
        return at(min((float(best.x), float(point.x[j])), key=value))  # pyright: ignore[reportAttributeAccessIssue]

    def returning(self, tiny: float, off: float) -> Callable[[State], None]:
        """Check that V is `tiny`, at states `off` or more spreads away, only if the loop returns to the equilibrium."""

        def check(x: State) -> None:
            value = self.promise.value(x)
            if value <= tiny and _distance(self.domain, x) >= off and not self._returns(x):
                message = "V is zero off the equilibrium, at a state from which the loop does not return to it"
                raise Counterexample(f"{message}: V = {value:.3g}", x, "definite")

        return check

    def _returns(self, x: State) -> bool:
        key = (x.t, x.q.tobytes(), x.v.tobytes(), None if x.z is None else x.z.tobytes())
        if key not in self._returning:
            self._returning[key] = self._does_return(x)
        return self._returning[key]

    def _does_return(self, x: State) -> bool:
        """Whether the loop from x reaches the equilibrium and stays near it as long as it took to get there.

        Also true if undecided: a stiff loop may need steps that are too short to simulate the whole return.
        """
        domain = replace(self.domain, rest=self.domain.held(x.t))  # without later changes of the plant
        times, distances, span = [x.t], [_distance(domain, x)], 1.0
        loop = Loop(self.promise.plant.at(x.t), self.promise.controller, x.q, x.v, 1e-3, method="MK54")
        exact = self.promise.exact(x.t)
        field = loop.field if exact is None else exact.field
        with contextlib.suppress(GeomctrlError):  # the simulation may end early
            walk = steps(field, flat(x), (x.t, x.t + MAX_SECONDS), None, Adaptive(rtol=1e-4, atol=1e-7), loop.group)
            for _, (t, y) in zip(range(MAX_STEPS), walk):
                q, v, z = loop.split(y)
                times.append(t)
                distances.append(_distance(domain, State(t, q, v, z)))
                if t - x.t > span:
                    left = _settled(times, distances)
                    if left < RETURNED_RATIO or (left > STAYED_RATIO and span >= PATIENCE_SECONDS):
                        return left < RETURNED_RATIO
                    span *= 2.0
        gone = not np.isfinite(distances[-1]) or distances[-1] > DIVERGED_RATIO * max(distances[0], 1.0)
        return not gone and _settled(times, distances) < (STAYED_RATIO if times[-1] < x.t + MAX_SECONDS else 0.5)


def _distance(domain: Domain, x: State) -> float:
    """Distance of x from the equilibrium, in spreads."""
    return float(np.linalg.norm((domain.point(x).x / np.where(domain.scale > 0.0, domain.scale, 1.0))[1:]))


def _settled(times: list[float], distances: list[float]) -> float:
    """The largest distance in the second half of the time, relative to that in the first."""
    t, d = np.array(times), np.array(distances)
    late = t > 0.5 * (t[0] + t[-1])
    if not late.any() or not np.isfinite(d).all():
        return np.inf
    return float(d[late].max() / max(d[~late].max(), 1e-300))


def _fades(values: list[float]) -> bool:
    """Whether V has become small and still halves in the last decade of times, which excludes a positive bound."""
    least = [min(values[k : k + PER_DECADE]) for k in range(0, len(values), PER_DECADE)]
    return len(least) > 1 and least[-1] <= VANISHING_FRACTION * least[0] and least[-1] <= 0.5 * least[-2]


class _Descent:
    """Minimisation of V at one time from random states of the domain; w are the coordinates in spreads."""

    def __init__(self, search: Zeros, active: np.ndarray):
        self.search, self.domain, self.sloped, rng = search, search.domain, search.sloped, search.rng
        start = self.domain.random(rng, "within")
        self.start = start if self.domain.draw is None else self.domain.only(start, "q", "v")
        self.active = active if self.sloped else rng.permutation(active)[:MAX_DIFFERENCES]
        self.evaluations = 0
        drawn = self._drawn(rng)
        values = [self._value(w) for w in drawn]
        self.typical = float(np.median(values))
        least = int(np.argmin(values))
        self.w, self.best = drawn[least], (values[least], drawn[least])

    def _drawn(self, rng: np.random.Generator) -> np.ndarray:
        """Initial states (m, active)."""
        return (self.start.x[self.active] / self.domain.scale[self.active])[None]

    def point(self, w: np.ndarray) -> Point:
        x = self.start.x.copy()
        x[self.active] = w * self.domain.scale[self.active]
        return self.domain.clipped(self.start._replace(x=x))

    def pulled_back(self, g: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The gradient with respect to w, from that with respect to the coordinates in spreads."""
        return g

    def bounds(self) -> list[tuple[float, float]] | None:
        """Bounds of w."""
        sides = (side[self.active] / self.domain.scale[self.active] for side in (self.domain.lower, self.domain.upper))
        return list(zip(*sides))

    def least(self, budget: int) -> tuple[Point, float]:
        """The minimum of V found with `budget` evaluations."""
        if not self.typical > 0.0:
            return self.point(self.best[1]), self.best[0]
        from scipy.optimize import minimize

        with contextlib.suppress(StopIteration):
            options = {"ftol": 0.0, "gtol": 0.0}
            minimize(self._scaled(budget), self.w, jac=True, method="L-BFGS-B", bounds=self.bounds(), options=options)
        return self.point(self.best[1]), self.best[0]

    def _scaled(self, budget: int):
        def downhill(w: np.ndarray) -> tuple[float, np.ndarray]:
            done = self.best[0] <= 1e-3 * NEGLIGIBLE * self.typical
            self.search.cut_short |= time.thread_time() > self.search.deadline
            if done or self.evaluations >= budget or self.search.cut_short:
                raise StopIteration
            V, gradient = self._with_gradient(w)
            return V / self.typical, gradient / self.typical

        return downhill

    def _value(self, w: np.ndarray) -> float:
        self.evaluations += 1
        return self.search.promise.value(self.domain.state(self.point(w)))

    def _with_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """V and its gradient with respect to w."""
        domain, size = self.domain, max(float(np.linalg.norm(w)), 1e-3)
        point = self.point(w)
        x = domain.state(point)
        exact = self.search.promise.exact(x.t) if self.sloped else None
        if exact is None:
            V, g = self._value(w), np.zeros(len(w))
            for k in range(len(w)):
                e = np.zeros(len(w))
                e[k] = DIFFERENCE_STEP * size
                g[k] = (self._value(w + e) - self._value(w - e)) / (2.0 * e[k])
        else:
            self.evaluations += 1
            numbers, gradients = exact.gradients(x)
            V = float(numbers[0])
            g = self.pulled_back(domain.pulled_back(point, gradients[0])[self.active] * domain.scale[self.active], w)
        if self.best[0] > V:
            self.best = V, w.copy()
        return V, g


class _Shell(_Descent):
    """Minimisation of V at one time over states at `radius` spreads from the equilibrium; w is a direction."""

    def __init__(self, search: Zeros, radius: float, active: np.ndarray):
        self.radius = radius
        super().__init__(search, active)

    def _drawn(self, rng: np.random.Generator) -> np.ndarray:
        self.start = self.domain.only(self.start)
        return rng.normal(size=(5, len(self.active)))

    def point(self, w: np.ndarray) -> Point:
        return super().point(self.radius / np.linalg.norm(w) * w)

    def pulled_back(self, g: np.ndarray, w: np.ndarray) -> np.ndarray:
        size = float(np.linalg.norm(w))
        g = g * self.radius / size
        return g - w * (w @ g) / size**2

    def bounds(self) -> None:
        return None
