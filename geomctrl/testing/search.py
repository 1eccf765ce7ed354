"""Search for the state with the worst value of an objective: random starts, then ascent from the worst of them.

A search is reproducible for a seed of the generator on every machine, because the number of evaluations limits it. A
limit of processor time ends the search if the evaluations take too long; the evidence reports this. A search proves
nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import count
from geomctrl.control.closed_loop import require_controller_of
from geomctrl.control.contracts import Command
from geomctrl.control.plant import Plant, plant_of

from . import evidence
from .counterexample import Counterexample, paste
from .domain import Domain, Point, State
from .loop_states import failed_before, state_of, states_about
from .settings import region_of
from .shrinking import shrunk

Answer = dict[str, np.ndarray]
# Two computations of a robot's terms differ by 1e-13 of a law's largest number; cancellation costs some further digits.
ROUNDING = 1e-10


class Repeatable:
    """Repeated calls of a controller and its `lyapunov` at the same state: immediately and again later."""

    def __init__(self, controller: Any, plant: Plant):
        self.controller, self.plant = controller, plant
        self.first: tuple[State, Answer] | None = None

    def check(self, x: State, other: State) -> None:
        """Raise Counterexample if results at x or at the other state change after calls at these states."""
        attributes, answers = [_attributes(self.controller)], []
        for y in (asked := (other, x, x, other, x)):
            answers.append(self._answer(y))
            attributes.append(_attributes(self.controller))
        names = dict.fromkeys(name for each in attributes for name in each)
        changing = [k for k in names if len({each.get(k) for each in attributes}) > 1]
        for k in (2, 3, 4):
            self._compare(asked[k], answers[next(j for j in range(k) if asked[j] is asked[k])], answers[k], changing)
        if self.first is None:
            self.first = x, answers[1]

    def check_first(self) -> None:
        """Raise Counterexample if the result at the first tested state has changed since."""
        if self.first is not None:
            x, answer = self.first
            self._compare(x, answer, self._answer(x), [])

    def _answer(self, x: State) -> Answer:
        command = self.controller(*x)
        if not isinstance(command, Command):
            return {}
        parts = {name: getattr(command, name) for name in ("tau", "z_rate", "z_next")}
        if hasattr(self.controller, "lyapunov"):
            value_and_rate = self.controller.lyapunov(*x, self.plant.at(x.t))
            if isinstance(value_and_rate, tuple | list) and len(value_and_rate) == 2:
                parts |= {"V": value_and_rate[0], "its rate": value_and_rate[1]}
        return {name: np.array(value) for name, value in parts.items() if value is not None}

    def _compare(self, x: State, a: Answer, b: Answer, changing: list[str]) -> None:
        for name in a.keys() & b.keys():
            if not (_same(a[name], b[name]) or self._compiled_since(x, name, a[name])):
                attributes = f" (attributes that change: {', '.join(changing)})" if changing else ""
                raise Counterexample(
                    f"the law depends on earlier calls{attributes}: at the same state {name} = {a[name]}, then"
                    f" {b[name]}. It may depend on t, q, v and z alone, because an integrator calls it in any order:"
                    " keep memory in z, with start() and z_rate or z_next",
                    x,
                    "state",
                )

    def _compiled_since(self, x: State, name: str, before: np.ndarray) -> bool:
        """Whether a result changed once by rounding and is constant now, because frequently used terms get compiled."""
        now, again = self._answer(x).get(name), self._answer(x).get(name)
        if now is None or again is None or now.shape != before.shape or not _same(now, again):
            return False
        try:
            return bool(np.all(np.abs(now - before) <= ROUNDING * np.max(np.abs(before), initial=0.0)))
        except TypeError:  # object arrays
            return False


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    try:
        return np.array_equal(a, b, equal_nan=True)
    except TypeError:  # object arrays
        return np.array_equal(a, b)


def _attributes(x: Any) -> dict[str, str]:
    return {name: repr(value) for name, value in getattr(x, "__dict__", {}).items() if not hasattr(value, "__dict__")}


Value = Callable[[State], float]
Slope = Callable[[State], tuple[float, np.ndarray]]

ASCENTS = 8  # number of starts for ascents
MAX_DIFFERENCES = 12  # coordinates per gradient by differences
DIFFERENCE_STEP = 1e-4  # of differences, in spreads
STEPS = 60  # per ascent
MIN_GAIN = 1e-6  # smallest relative gain for which an ascent by differences continues
MAX_SECONDS = 600.0  # processor time after which any search ends


class SearchResult(NamedTuple):
    """The worst state, the objective there (nan is the worst), evaluations, and whether time cut the search short."""

    state: State
    value: float
    evaluations: int
    starts: int
    cut_short: bool = False


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
    seconds: float = MAX_SECONDS,
) -> SearchResult:
    """Maximise `objective` over the states of `domain` with `budget` evaluations.

    Half of them test `starts` and random states of all kinds (see `Domain.random`). The rest ascends from the best of
    these by L-BFGS inside the box. slope: state -> (objective, gradient with respect to t and the displacement of the
    state in its algebra, (1 + dim,)); default differences of a few random coordinates at a time. The search ends if the
    objective exceeds `enough` or is nan. It is cut short after `seconds` of processor time.
    """
    search = _Search(objective, domain, budget, slope, enough, time.thread_time() + seconds)
    try:
        search.look([domain.clipped(domain.point(x)) for x in starts])
        search.draw(rng, budget // 2, ways)
        search.climb(rng)
    except _SearchEndError:
        pass
    return SearchResult(domain.state(search.best), search.value, search.evaluations, search.started, search.cut_short)


def cut_short(happened: bool, seconds: float = MAX_SECONDS) -> dict[str, str]:
    """The fact for `evidence` that time cut a search short, nothing where it did not."""
    return {"cut short": f"after {seconds:g} s of processor time"} if happened else {}


class _SearchEndError(Exception):
    """Ends the search: the objective is high enough, or the budget is used up."""


class _Search:
    def __init__(self, objective, domain, budget, slope, enough, deadline):
        self.objective, self.domain, self.slope = objective, domain, slope
        self.budget, self.enough, self.deadline = budget, enough, deadline
        self.value, self.best = -np.inf, Point(domain.lower)
        self.evaluations, self.started, self.cut_short = 0, 0, False
        self.seen: list[tuple[float, Point]] = []

    def note(self, value: float, point: Point) -> float:
        """Record `value` at `point`."""
        value = float(value)
        self.evaluations += 1
        if not value <= self.value:
            self.value, self.best = value, point
        if not value <= self.enough or self.evaluations >= self.budget:
            raise _SearchEndError
        if time.thread_time() > self.deadline:
            self.cut_short = True
            raise _SearchEndError
        return value

    def at(self, point: Point) -> float:
        return self.note(self.objective(self.domain.state(point)), point)

    def look(self, points: list[Point]) -> None:
        for point in points:
            self.started += 1
            self.seen.append((self.at(point), point))

    def draw(self, rng: np.random.Generator, count: int, ways: tuple[str, ...] | None) -> None:
        while self.started < max(count, 1):
            self.look([self.domain.random(rng, None if ways is None else ways[self.started % len(ways)])])

    def climb(self, rng: np.random.Generator) -> None:
        """Ascend from the best starts, which share the rest of the budget."""
        self.seen.sort(key=lambda pair: -pair[0])
        chosen = self.seen[:ASCENTS]
        for k, (value, start) in enumerate(chosen):
            share = (self.budget - self.evaluations) // (len(chosen) - k)
            until = self.evaluations + share
            if self.slope is not None:
                self._climbed(value, start, self.domain.free, until)
                continue
            stuck = 0
            while self.evaluations < until and stuck < 2:
                active, before = rng.permutation(self.domain.free)[:MAX_DIFFERENCES], value
                value, start = self._climbed(value, start, active, until)
                stuck = 0 if value > before + MIN_GAIN * abs(before) else stuck + 1

    def _climbed(self, value: float, start: Point, active: np.ndarray, until: int) -> tuple[float, Point]:
        """The best (value, point) of L-BFGS over the coordinates `active`."""
        from scipy.optimize import minimize  # imported here because it takes long

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
        """The gradient in spreads, by central differences that stay inside the box."""
        out = np.zeros(len(active))
        for j, k in enumerate(active):
            h = DIFFERENCE_STEP * self.domain.scale[k]
            sides = []
            for step in (h, -h):
                x = point.x.copy()
                x[k] = min(max(x[k] + step, self.domain.lower[k]), self.domain.upper[k])
                sides.append((x[k], self.at(point._replace(x=x))))
            (b, high), (a, low) = sides
            out[j] = (high - low) / (b - a) * self.domain.scale[k]
        return out


NEGLIGIBLE = 1e-10  # relative to a typical value
Number = Callable[[State], float]


class NoController:
    """A controller with zero torque: the plant alone."""

    def __init__(self, nv: int):
        self.zero = np.zeros(nv)

    def __call__(self, t, q, v, z) -> Command:
        return Command(self.zero)


class SearchProblem:
    """A closed loop and the domain in which it is tested; arguments as for `assert_lyapunov`.

    alone: whether the controller may be None, for the plant alone.
    """

    def __init__(
        self,
        controller: Any,
        plant: Any,
        region: Any = 0.5,
        search: int = 1,
        seed: int = 0,
        *,
        alone: bool = False,
    ):
        self.plant = plant_of("plant", plant, state=False)
        self.controller = NoController(self.plant.robot.nv) if controller is None and alone else controller
        require_controller_of(self.controller, self.plant.robot)
        self.search, self.seed = count("search", search, 1), count("seed", seed)
        self.domain: Domain = states_about(self.controller, self.plant, region_of(region))
        self.repeatable = Repeatable(self.controller, self.plant)
        x = self.domain.state(self.domain.random(self.rng, "about"))
        self.repeatable.check(x, self.domain.rest(x.t))

    def state(self, t: Any, q: Any, v: Any, z: Any) -> State:
        """One state of the loop, checked."""
        return state_of(self.controller, self.plant, t, q, v, z)

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    @property
    def at_rest(self) -> list[State]:
        """The equilibrium at some times, because random states miss errors in a small neighbourhood of it."""
        lower, upper = self.domain.lower[0], self.domain.upper[0]
        return [self.domain.rest(float(t)) for t in np.linspace(lower, upper, 5)]

    @property
    def names(self) -> str:
        return f"{type(self.controller).__name__} on {self.plant.robot.name}"

    def typical(self, value: Number) -> float:
        """The median of a function at random states."""
        rng = self.rng
        return float(np.median([abs(value(self.domain.state(self.domain.random(rng, "about")))) for _ in range(15)]))

    def largest(self, value: Number, subject: str, starts: Sequence[State] = ()) -> SearchResult:
        """The maximum of a function according to a search that begins with `starts`."""
        result = worst(value, self.domain, self.rng, self.search, starts=[*starts, *self.at_rest])
        facts = {"evaluations": result.evaluations, "seed": self.seed, **cut_short(result.cut_short)}
        evidence.record("searched", f"{subject} of {self.names}", **facts)
        return result

    def hold(
        self,
        excess: Number,
        promise: str,
        message: Callable[[State], str],
        measured: str,
        starts: Sequence[State] = (),
    ) -> None:
        """Raise Counterexample with the simplest state found at which `excess` is positive or nan.

        promise: name of the property. message: state -> text. measured: code that prints the numbers at t, q, v, z.
        starts: states that are tested first.
        """
        result = worst(
            excess, self.domain, self.rng, self.search, enough=0.0,
            starts=[*failed_before(self.controller, self.plant, self.domain), *starts, *self.at_rest],
        )  # fmt: skip
        facts = {"starts": result.starts, "evaluations": result.evaluations, "seed": self.seed}
        facts |= cut_short(result.cut_short)
        evidence.record("searched", f"{promise} of {self.names}", **facts)
        self.repeatable.check_first()
        if result.value <= 0.0:
            return
        self.repeatable.check(result.state, self.domain.rest(result.state.t))
        simple = shrunk(lambda x: not excess(x) <= 0.0, result.state, self.domain)
        raise Counterexample(
            message(simple.state), simple.state, promise, paste(self.plant, simple.code, measured), "searched"
        )
