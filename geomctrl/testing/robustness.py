"""Robustness: the worst behaviour of a closed loop over a box of parameters of plant and controller.

    def make(point):
        plant = gc.Plant(robot.with_payload(point["payload"], (0.0, 0.0, point["height"])))
        return plant, controllers.Passivity(robot, reference, K=point["K"])

    result = testing.worst_case(make, over={"payload": (0.0, 2.0), "height": (0.0, 0.2), "K": (10.0, 20.0)}, level=0.01)
    print(result.table)

`make` is a function as for `geomctrl.sweep`, evaluated over intervals. At each point of the box the states are
searched. The points are the middle, the corners, random ones, and those of a search along one parameter at a time. The
absence of violations is not proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from geomctrl.arguments import count, exactly, function, number, shown
from geomctrl.control.plant import plant_of
from geomctrl.control.sweeping.space import Point
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments
from geomctrl.output import transcript

from .counterexample import MEASURED, Counterexample
from .domain import State
from .flows import Flow, Rates
from .loop_states import require_lyapunov
from .search import NEGLIGIBLE, SearchProblem, worst
from .settings import Region, region_of

MAX_CORNERS = 64
ROUNDS = 3  # rounds of the search along one parameter at a time
FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)  # fractions of an interval

Measure = Callable[[Rates], float]


@dataclass(frozen=True, eq=False)
class Row:
    """The result at one point of the box: parameters, the worst value of the measure and its state."""

    label: str
    parameters: dict[str, float]
    worst: float
    state: State


@dataclass(frozen=True, eq=False)
class Robustness:
    """The result of `worst_case`: `rows` by point, `worst` the worst of them, `measured` the name of the measure.

    `table` is a text with the middle, each parameter alone at its ends, the worst corner and the overall worst.
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
        target.print(f"{self.points} points, {self.evaluations} states searched; this is not a proof")
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


@named_arguments()
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
    """Search the worst behaviour of closed loops over a box of parameters and over their states.

    Parameters
    ----------
    make : callable
        make(point) returns (plant, controller), or more as for `geomctrl.sweep`. `point` maps parameter names to
        numbers, and `point.rng` is a random generator.
    over : mapping
        (lowest, highest) by parameter name.
    measure : function, optional
        A number from the `Rates` of the controller's Lyapunov function at a state, large if bad. Default V' / V [1/s],
        which is positive if V grows.
    level : float
        Ignore states with V below it [unit of V], because a loop with a wrong model settles off its equilibrium.
    points : int
        Number of random points, in addition to the middle, the ends of each parameter, up to 64 corners and the search.
    region : Region or float
        States about the equilibrium, as for `assert_lyapunov`.
    search : int
        Evaluations of states per point.
    seed : int
        Seed of the random points and states.

    Returns
    -------
    Robustness
        The worst state of each point.

    Raises
    ------
    ArgumentError
        For invalid arguments, an interval that is empty or not finite, and a `make` that returns no loop.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> def make(point):
    ...     return arm.with_payload(point["payload"]), gc.controllers.PDGravity(arm, [0.5, 0.2])
    >>> result = gc.testing.worst_case(make, {"payload": (0.0, 1.0)}, points=1, search=50)
    >>> result.worst.worst > 0  # V grows near the goal: the law does not know the payload
    True
    """
    function("make", make, "make(point) of a mapping of parameters", 1)
    box, points, seed = _checked(over), count("points", points), count("seed", seed)
    level = number("level", level, "a number >= 0", lambda x: x >= 0.0)
    if measure is not None:
        function("measure", measure, "of Rates", 1)
    searcher = _ParameterSearch(make, box, measure, level, (region_of(region), count("search", search, 1), seed))
    lower, upper = np.array(list(box.values())).T
    middle = 0.5 * (lower + upper)
    searcher.row("middle", middle)
    for k, name in enumerate(box):
        for label, side in (("least", lower), ("largest", upper)):
            searcher.row(f"{label} {name}", np.where(np.arange(len(box)) == k, side, middle))
    rng = np.random.default_rng([seed, 3])
    for corner in _corners(lower, upper, rng):
        searcher.row("corner", corner)
    for _ in range(points):
        searcher.row("random", rng.uniform(lower, upper))
    searcher.climb(lower, upper)
    measured = "V' / V [1/s]" if measure is None else getattr(measure, "__name__", "measure")
    return Robustness(measured, searcher.rows, len(searcher.rows), searcher.evaluations)


@named_arguments()
def assert_robust(
    make: Callable[[Point], Any],
    over: Mapping[str, tuple[float, float]],
    measure: Measure | None = None,
    *,
    limit: float = 0.0,
    **options: Any,
) -> Robustness:
    """Assert that `worst_case` finds nothing above a limit.

    Parameters
    ----------
    make, over, measure
        As for `worst_case`. By default V must not grow at any state of the domain with V >= level, for any parameters
        in the box.
    limit : float
        Largest accepted value of the measure. Default: 0.
    **options
        As for `worst_case`.

    Returns
    -------
    Robustness
        The result of `worst_case`.

    Raises
    ------
    Counterexample
        With parameters, state and table.
    ArgumentError
        For invalid arguments.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> def make(point):
    ...     return gc.Plant(arm, gc.Friction(point["viscous"])), gc.controllers.PDGravity(arm, [0.5, 0.2])
    >>> result = gc.testing.assert_robust(make, {"viscous": (0.0, 0.5)}, points=1, search=50, limit=1e-6)
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
            f"{result.measured} is {bad.worst:.6g}, allowed {limit:.6g}, for {point}\n{result.table}",
            bad.state,
            "robustness",
            "\n".join(["import numpy as np", "from geomctrl import testing", code, state, own, MEASURED]),
            "searched",
        )
    return result


class _ParameterSearch:
    """Points of the box and the states searched at each; searches start at the worst states of other points."""

    def __init__(self, make, box, measure, level, problem):
        self.make, self.names, self.measure, self.level, self.problem = make, list(box), measure, level, problem
        self.rows: list[Row] = []
        self.evaluations = 0

    def row(self, label: str, values: np.ndarray) -> Row:
        parameters = dict(zip(self.names, map(float, values)))
        region, search, seed = self.problem
        plant, controller = self._made(parameters, seed)
        problem = SearchProblem(controller, plant, region, search, seed)
        require_lyapunov(problem.controller)
        flow = Flow(problem.controller, problem.plant)
        floor = max(self.level, NEGLIGIBLE * problem.typical(lambda x: flow.at(x).value))

        def bad(x: State) -> float:
            r = flow.at(x)
            if r.value < floor:
                return -np.inf
            if self.measure is None:
                return r.slope / r.value
            return float(exactly("measure(rates)", self.measure(r), (), finite=False))

        before = sorted(self.rows, key=lambda row: -_order(row.worst))[:3]
        starts = [row.state for row in before if problem.domain.draw is None]
        result = worst(bad, problem.domain, problem.rng, search, starts=starts)
        self.evaluations += result.evaluations
        self.rows.append(Row(label, parameters, result.value, result.state))
        return self.rows[-1]

    def climb(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """Search from the worst point along one parameter after the other, until no change makes it worse."""
        best = max(self.rows, key=lambda row: _order(row.worst))
        for _ in range(ROUNDS):
            before = best
            for k, name in enumerate(self.names):
                for part in FRACTIONS:
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
            raise ArgumentError(f"make: expected (plant, controller) or more, got {shown(loop)}") from None
        return plant_of("make: plant", plant), controller


def _order(x: float) -> float:
    """Sort key in which nan is the worst."""
    return np.inf if np.isnan(x) else x


def _checked(over: Any) -> dict[str, tuple[float, float]]:
    if not isinstance(over, Mapping) or not over or not all(isinstance(name, str) for name in over):
        raise ArgumentError(f"over: expected (lowest, highest) by parameter's name, got {shown(over)}")
    box = {}
    for name, interval in over.items():
        try:
            low, high = (float(x) for x in interval)
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise ArgumentError(f"over: {name!r}: expected (lowest, highest), finite, got {shown(interval)}")
        box[name] = (low, high)
    return box


def _corners(lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    n = len(lower)
    if 2**n <= MAX_CORNERS:
        yield from (np.where(sides, upper, lower) for sides in product((False, True), repeat=n))
        return
    for _ in range(MAX_CORNERS):
        yield np.where(rng.uniform(size=n) < 0.5, lower, upper)
