"""Robustness: the worst that a closed loop does over a box of parameters of plant and controller.

    def make(point):
        plant = gc.Plant(robot.with_payload(point["payload"], (0.0, 0.0, point["height"])))
        return plant, controllers.Passivity(robot, reference, K=point["K"])

    found = testing.worst_case(make, over={"payload": (0.0, 2.0), "height": (0.0, 0.2), "K": (10.0, 20.0)}, level=0.01)
    print(found.table)

`make` is what `geomctrl.sweep` takes, over intervals. For each point of the box tried the states are searched; the
points are the middle, the corners, random ones, and then those that a search along one parameter after the other leads
to. What is not found is not proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from geomctrl.arguments import count, function, number
from geomctrl.control.plant import plant_of
from geomctrl.control.sweeping.space import Point
from geomctrl.errors import ArgumentError
from geomctrl.output import transcript

from .counterexample import MEASURED, Counterexample
from .domain import State
from .flows import Flow, Rates
from .loop_states import require_lyapunov
from .search import NEGLIGIBLE, Inquiry, worst
from .settings import Region, region_of

MAX_CORNERS = 64
ROUNDS = 3  # of the search along the parameters, one after the other
ALONG = (0.0, 0.25, 0.5, 0.75, 1.0)  # of an interval

Measure = Callable[[Rates], float]


@dataclass(frozen=True, eq=False)
class Row:
    """What was found at one point of the box: the parameters, the worst of the measure, at which state."""

    label: str
    parameters: dict[str, float]
    worst: float
    state: State


@dataclass(frozen=True, eq=False)
class Robustness:
    """The worst found over a box: `rows` by point, `worst` the worst of them; `measured` says what was measured.

    `table`: the middle, each parameter alone at its ends, the worst corner and the worst of all, as text.
    """

    measured: str
    rows: list[Row]
    points: int
    evaluations: int

    @property
    def worst(self) -> Row:
        return max(self.rows, key=lambda row: _order(row.worst))

    @property
    def table(self) -> str:
        from rich.table import Table

        table = Table(title=f"worst case: {self.measured}", title_justify="left")
        names = list(self.worst.parameters)
        table.add_column("where")
        for name in (*names, "worst"):
            table.add_column(name, justify="right")
        for label, row in self._told():
            table.add_row(label, *(f"{row.parameters[name]:.4g}" for name in names), f"{row.worst:.4g}")
        target, text = transcript(40 + 14 * (len(names) + 2))
        target.print(table)
        target.print(f"{self.points} points, {self.evaluations} states searched, none of it a proof")
        return text()

    def _told(self) -> Iterator[tuple[str, Row]]:
        for row in self.rows:
            if row.label not in ("corner", "random", "along"):
                yield row.label, row
        yield (
            "worst corner",
            max((row for row in self.rows if row.label == "corner"), key=lambda row: _order(row.worst)),
        )
        yield "worst found", self.worst

    def __str__(self):
        return self.table


def worst_case(
    make: Callable[[Point], Any],
    over: Mapping[str, tuple[float, float]],
    measure: Measure | None = None,
    *,
    level: float = 0.0,
    points: int = 16,
    region: Region | float = 0.5,
    search: int = 1500,
    seed: int = 0,
) -> Robustness:
    """The worst that closed loops do over a box of parameters, by search over parameters and states.

    make(point) returns (plant, controller), or more as for `geomctrl.sweep`, of which the rest is left alone; `point`
    maps the parameters' names to numbers, `point.rng` is a generator. over: (lowest, highest) by name. measure: of the
    `Rates` of the controller's Lyapunov function at a state, a number that is bad where it is large; by default V' / V
    [1/s], which is positive where V grows. level: states with V below it do not count, as a loop with a wrong model
    settles off its equilibrium; V's unit. points: random ones, besides the middle, the ends of each parameter alone, up
    to 64 corners, and what the search along the parameters tries. search: evaluations of states a point.

    Raises ArgumentError for bad arguments, an interval that is empty or not finite, and a `make` that returns no loop.
    """
    function("make", make, "make(point) of a mapping of parameters")
    box, points, seed = _checked(over), count("points", points), count("seed", seed)
    level = number("level", level, "a number >= 0", lambda x: x >= 0.0)
    if measure is not None:
        function("measure", measure, "of Rates")
    hunt = _Hunt(make, box, measure, level, (region_of(region), count("search", search, 1), seed))
    lower, upper = np.array(list(box.values())).T
    middle = 0.5 * (lower + upper)
    hunt.row("middle", middle)
    for k, name in enumerate(box):
        for label, side in (("least", lower), ("largest", upper)):
            hunt.row(f"{label} {name}", np.where(np.arange(len(box)) == k, side, middle))
    rng = np.random.default_rng([seed, 3])
    for corner in _corners(lower, upper, rng):
        hunt.row("corner", corner)
    for _ in range(points):
        hunt.row("random", rng.uniform(lower, upper))
    hunt.climb(lower, upper)
    measured = "V' / V [1/s]" if measure is None else getattr(measure, "__name__", "measure")
    return Robustness(measured, hunt.rows, len(hunt.rows), hunt.evaluations)


def assert_robust(
    make: Callable[[Point], Any],
    over: Mapping[str, tuple[float, float]],
    measure: Measure | None = None,
    *,
    limit: float = 0.0,
    **options: Any,
) -> Robustness:
    """Assert that `worst_case` finds nothing above `limit`; returns what it found.

    By default: V does not grow anywhere in the domain with V >= level, whatever the parameters in the box. Options as
    for `worst_case`.

    Raises Counterexample with the parameters, the state and the table; ArgumentError for bad arguments.
    """
    limit = number("limit", limit)
    result = worst_case(make, over, measure, **options)
    bad = result.worst
    if not bad.worst <= limit:
        point = ", ".join(f"{name} = {x:.6g}" for name, x in bad.parameters.items())
        code = f"plant, controller = make({bad.parameters!r})[:2]"
        state = f"t = {bad.state.t!r}\nq = np.array({bad.state.q.tolist()})\nv = np.array({bad.state.v.tolist()})"
        own = "z = None" if bad.state.z is None else f"z = np.array({bad.state.z.tolist()})"
        raise Counterexample(
            f"{result.measured} is {bad.worst:.6g}, allowed {limit:.6g}, with {point}\n{result.table}",
            bad.state,
            "robustness",
            "\n".join(["import numpy as np", "from geomctrl import testing", code, state, own, MEASURED]),
            "searched",
        )
    return result


class _Hunt:
    """Points of the box, the states searched at each; the worst states of some are where others begin."""

    def __init__(self, make, box, measure, level, inquiry):
        self.make, self.names, self.measure, self.level, self.inquiry = make, list(box), measure, level, inquiry
        self.rows: list[Row] = []
        self.evaluations = 0

    def row(self, label: str, values: np.ndarray) -> Row:
        parameters = dict(zip(self.names, map(float, values)))
        region, search, seed = self.inquiry
        plant, controller = self._made(parameters, seed)
        inquiry = Inquiry(controller, plant, region, search, seed)
        require_lyapunov(inquiry.controller)
        flow = Flow(inquiry.controller, inquiry.plant)
        floor = max(self.level, NEGLIGIBLE * inquiry.typical(lambda x: flow.at(x).value))

        def bad(x: State) -> float:
            r = flow.at(x)
            if r.value < floor:
                return -np.inf
            return float(self.measure(r)) if self.measure is not None else r.slope / r.value

        before = sorted(self.rows, key=lambda row: -_order(row.worst))[:3]
        starts = [row.state for row in before if inquiry.domain.draw is None]
        result = worst(bad, inquiry.domain, inquiry.rng, search, starts=starts)
        self.evaluations += result.evaluations
        self.rows.append(Row(label, parameters, result.value, result.state))
        return self.rows[-1]

    def climb(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """From the worst point along one parameter after the other, to where none makes it worse."""
        best = max(self.rows, key=lambda row: _order(row.worst))
        for _ in range(ROUNDS):
            before = best
            for k, name in enumerate(self.names):
                for part in ALONG:
                    values = np.array(list(best.parameters.values()))
                    values[k] = lower[k] + part * (upper[k] - lower[k])
                    if values[k] != best.parameters[name]:
                        candidate = self.row("along", values)
                        best = candidate if _order(candidate.worst) > _order(best.worst) else best
            if best is before:
                return

    def _made(self, parameters: dict[str, float], seed: int) -> tuple[Any, Any]:
        loop = self.make(Point(len(self.rows), parameters, seed))
        try:
            plant, controller = tuple(loop)[:2]
        except (TypeError, ValueError):
            raise ArgumentError(f"make: expected (plant, controller) or more, got {loop!r:.80}") from None
        return plant_of("make: plant", plant), controller


def _order(x: float) -> float:
    """nan is worst of all."""
    return np.inf if np.isnan(x) else x


def _checked(over: Any) -> dict[str, tuple[float, float]]:
    if not isinstance(over, Mapping) or not over or not all(isinstance(name, str) for name in over):
        raise ArgumentError(f"over: expected (lowest, highest) by parameter's name, got {over!r:.80}")
    box = {}
    for name, interval in over.items():
        try:
            low, high = (float(x) for x in interval)
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise ArgumentError(f"over: {name!r}: expected (lowest, highest), finite, got {interval!r:.80}")
        box[name] = (low, high)
    return box


def _corners(lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    n = len(lower)
    if 2**n <= MAX_CORNERS:
        yield from (np.where(sides, upper, lower) for sides in product((False, True), repeat=n))
        return
    for _ in range(MAX_CORNERS):
        yield np.where(rng.uniform(size=n) < 0.5, lower, upper)
