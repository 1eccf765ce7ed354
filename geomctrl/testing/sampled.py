"""Sampled control: with a zero-order hold, V decreases outside a level set and never leaves it.

A held command differs from the continuous law by its change since the sample, to first order in control_dt. Where V'
vanishes, at the equilibrium and, for a semidefinite rate, at turning points, this error dominates. Hence a level is
needed, or a horizon of several samples. This is practical stability, the strongest property of sampled control in
general (Nesic, Teel and Kokotovic 1999; Nesic and Teel 2004). States are searched; nothing is proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import MAX_COUNT, count, number, tolerance
from geomctrl.control.closed_loop import Loop
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.other_names import named_arguments

from .domain import State, with_read_only_arrays
from .loop_states import require_lyapunov
from .search import NEGLIGIBLE, Number, SearchProblem, worst
from .settings import Region

MEASURED = """from geomctrl.testing.sampled import held_for

print(held_for(controller, plant, {period!r}, t, q, v, z{options}))"""
STEPS = 4  # integrator steps per period
PROBES = 8  # shorter periods at which the result is confirmed
BISECTION_PRECISION = 1.02  # relative precision of periods and levels
AT_REST = 3  # samples with negligible V after which a loop counts as at rest
SETTLED_SAMPLES = 100  # samples without a larger V after which a loop has settled
MAX_STARTS = 4  # states before that from which a search starts


class LyapunovChange(NamedTuple):
    """V at a sample, and V after the horizon."""

    before: float
    after: float


@named_arguments()
def assert_sampled(
    controller: Any,
    plant: Plant | Any,
    control_dt: float,
    *,
    level: float = 0.0,
    horizon: float | None = None,
    region: Region | float = 0.5,
    search: int = 2000,
    seed: int = 0,
    rtol: float = 1e-9,
) -> None:
    """Test V(after) <= max(V(now), level) for any sample `now` and the time `after` one horizon later.

    Hence V decreases above `level` and remains below it otherwise.

    Parameters
    ----------
    controller, plant, region, search, seed
        As for `assert_lyapunov`.
    control_dt : float
        Hold time of a command [s].
    level : float
        Level [unit of V]. A tracking controller needs one, because the reference moves while the command is held.
    horizon : float, optional
        Horizon [s], rounded up to samples; default one sample. With a semidefinite rate, as of a PD law, V grows
        slightly at turning points for any period: use a horizon of some periods, or a level.
    rtol : float
        Relative tolerance.

    Raises
    ------
    Counterexample
        With the simplest violating state that was found, and a level that covers it.
    ArgumentError
        If an argument is invalid.

    Notes
    -----
    Each evaluation of the search simulates the true plant over the horizon, with constant command and z rate, in steps
    of control_dt / 4.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.5, 0.2], kp=50.0, kd=20.0, strict=True)
    >>> gc.testing.assert_sampled(law, arm, 0.001, search=100)
    """
    period = _seconds("control_dt", control_dt)
    level, rtol = number("level", level, "a number >= 0", lambda x: x >= 0.0), tolerance("rtol", rtol)
    problem, typical = _problem_of(controller, plant, region, search, seed)
    held = HeldLoop(problem.controller, problem.plant, period, _samples(horizon, period))

    def message_at(x: State) -> str:
        sample = held.at(x)
        over = f"level {level:.6g}, " if level else ""
        return (
            f"V grows while commands are held for {period:g} s: V = {sample.before:.9g}, {over}"
            f"{held.samples * period:g} s later {sample.after:.9g} (a level of that value covers this state)"
        )

    options = f", horizon={horizon!r}" if horizon is not None else ""
    excess = held.excess(level, NEGLIGIBLE * typical, rtol)
    measured = MEASURED.format(period=period, options=options)
    problem.hold(excess, "sampled", message_at, measured, held.settling(problem, excess, NEGLIGIBLE * typical))


@named_arguments()
def sampled_level(
    controller: Any,
    plant: Plant | Any,
    control_dt: float,
    *,
    horizon: float | None = None,
    region: Region | float = 0.5,
    search: int = 2000,
    seed: int = 0,
) -> float:
    """Estimate the smallest level for `assert_sampled` that the search does not contradict.

    Parameters
    ----------
    controller, plant, horizon, region, seed
        As for `assert_sampled`.
    control_dt : float
        Sampling period [s].
    search : int
        Evaluations per level. Default: 2000.

    Returns
    -------
    float
        The largest V to which V grows: a lower estimate. If it is about the largest V in the domain, this period
        guarantees nothing. It is infinite if the loop diverges.

    Notes
    -----
    The search starts where the loop settles from rest, much closer to the equilibrium than random states, and increases
    the level by at least 2 % each time.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.5, 0.2], kp=50.0, kd=20.0, strict=True)
    >>> gc.testing.sampled_level(law, arm, 0.001, search=50)
    0.0
    """
    period = _seconds("control_dt", control_dt)
    problem, typical = _problem_of(controller, plant, region, search, seed)
    held = HeldLoop(problem.controller, problem.plant, period, _samples(horizon, period))

    level, broken = 0.0, []
    while True:  # each search looks for states whose V grows beyond the last level
        above = held.excess(BISECTION_PRECISION * level, NEGLIGIBLE * typical, 1e-9)
        starts = [*broken[-4:], *held.settling(problem, above, NEGLIGIBLE * typical)]
        result = problem.largest(above, "level of a held law", starts)
        if result.value <= 0.0:
            return level
        broken.append(result.state)
        level = held.at(result.state).after
        if not level < np.inf:
            return np.inf


@named_arguments()
def largest_control_dt(
    controller: Any,
    plant: Plant | Any,
    *,
    level: float = 0.0,
    horizon: float | None = None,
    shortest: float = 1e-4,
    longest: float = 1.0,
    region: Region | float = 0.5,
    search: int = 500,
    seed: int = 0,
    rtol: float = 1e-9,
) -> float:
    """Estimate the longest sampling period for which `assert_sampled` finds no violation, to 2 %.

    Parameters
    ----------
    controller, plant, level, horizon, region, seed, rtol
        As for `assert_sampled`.
    shortest, longest : float
        Range of periods [s]. Defaults: 1e-4 and 1.
    search : int
        Evaluations per period. Default: 500.

    Returns
    -------
    float
        [s]. An upper estimate, because nothing is proved; `largest_certified_control_dt` is a lower one.

    Raises
    ------
    ArgumentError
        For invalid arguments, and if there is a violation at `shortest`.

    Notes
    -----
    The period is found by bisection. States that violate the claim at one period are tested first at the next. The
    result is confirmed at eight shorter periods, evenly spaced in the logarithm; if one fails, the search continues
    below it.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.5, 0.2], kp=50.0, kd=20.0, strict=True)
    >>> 0.001 < gc.testing.largest_control_dt(law, arm, search=50) < 0.2
    True
    """
    low, high = _seconds("shortest", shortest), _seconds("longest", longest)
    if not low < high:
        raise ArgumentError(f"shortest, longest: expected a shorter and a longer period, got {low:g} and {high:g}")
    level, rtol = number("level", level, "a number >= 0", lambda x: x >= 0.0), tolerance("rtol", rtol)
    search = count("search", search, 1)
    problem, typical = _problem_of(controller, plant, region, search, seed)
    broken: list[State] = []

    def holds(period: float) -> bool:
        held = HeldLoop(problem.controller, problem.plant, period, _samples(horizon, period))
        excess = held.excess(level, NEGLIGIBLE * typical, rtol)
        starts = [*broken[-4:], *held.settling(problem, excess, NEGLIGIBLE * typical)]
        result = worst(excess, problem.domain, problem.rng, search, starts=starts, enough=0.0)
        if result.value <= 0.0:
            return True
        broken.append(result.state)
        return False

    if not holds(low):
        raise ArgumentError(f"shortest: V does not decrease as promised at {low:g} s either, {broken[-1]}")
    if holds(high):
        below = high
    else:
        below, high = _bisected(holds, low, high)
    while failing := [T for T in np.geomspace(low, below, PROBES + 2)[1:-1].tolist() if not holds(T)]:
        below, high = _bisected(holds, low, min(failing))
    return below


def held_for(
    controller: Any,
    plant: Plant | Any,
    control_dt: float,
    t: float,
    q: Any,
    v: Any,
    z: Any = None,
    *,
    horizon: float | None = None,
) -> LyapunovChange:
    """The quantities that `assert_sampled` tests, at one state: (V now, V after the horizon), with held commands."""
    period = _seconds("control_dt", control_dt)
    problem, _ = _problem_of(controller, plant, 0.5, 1, 0)
    x = problem.state(t, q, v, z)
    return HeldLoop(problem.controller, problem.plant, period, _samples(horizon, period)).at(x)


class HeldLoop:
    """A sampled closed loop that can start at any state and time and runs for some samples."""

    def __init__(self, controller: Any, plant: Plant, period: float, samples: int):
        self.controller, self.plant, self.period, self.samples = controller, plant, period, samples
        self.visited: list[tuple[State, LyapunovChange]] | None = None
        robot, dt = plant.robot, period / STEPS
        self.loop = Loop(plant, controller, robot.neutral(), np.zeros(robot.nv), dt, period)

    def value(self, t: float, q: Any, v: Any, z: Any) -> float:
        return float(self.controller.lyapunov(t, q, v, z, self.plant.at(t))[0])

    def settling(self, problem: SearchProblem, excess: Number, nothing: float) -> list[State]:
        """States between rest and the steady state of the sampled loop with the largest `excess`.

        The steady state is so close to the equilibrium that random states do not reach it.
        """
        if self.visited is None:
            self.visited = [
                y for x in problem.at_rest for y in self._samples_from(x, nothing) if problem.domain.contains(y[0])
            ]
        grown = sorted(self.visited, key=lambda pair: -_finite(pair[1].after - pair[1].before))[:MAX_STARTS]
        largest = sorted(self.visited, key=lambda pair: -_finite(pair[1].after))[:MAX_STARTS]
        return sorted((x for x, _ in (*grown, *largest)), key=lambda x: -_finite(excess(x)))

    def _samples_from(self, x: State, nothing: float) -> Iterator[tuple[State, LyapunovChange]]:
        """Samples from x on, until V has reached no new maximum for some time."""
        largest, since = 0.0, 0
        while since < (SETTLED_SAMPLES if largest > nothing else AT_REST):
            sample = self.at(x)
            yield x, sample
            if not sample.after < np.inf:
                return
            since = 0 if sample.after > BISECTION_PRECISION * largest else since + 1
            largest = max(largest, sample.after)
            q, v, z = self.loop.split(self.loop.y.copy())
            x = with_read_only_arrays(State(x.t + self.samples * self.period, q, v, z))

    def at(self, x: State) -> LyapunovChange:
        """V at a state and after the horizon, infinite if the loop diverges; `loop` is then at the end."""
        loop, h = self.loop, self.period / STEPS
        own = [] if x.z is None else np.ravel(x.z)
        loop.y = np.concatenate((x.q, x.v, own, [0.0]))
        loop.now = self.plant.at(x.t)
        before = self.value(*x)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                for k in range(self.samples * STEPS):
                    t = x.t + k * h
                    _, _, k1 = loop.sample(k, t)
                    loop.renew(k)
                    loop.step(t, h, k1)
                after = self.value(x.t + self.samples * self.period, *loop.split(loop.y))
        except GeomctrlError:
            after = np.inf
        return LyapunovChange(before, after)

    def excess(self, level: float, nothing: float, rtol: float) -> Number:
        """A function of the state: the relative excess of V after the horizon over max(V before, level)."""

        def excess(x: State) -> float:
            before, after = self.at(x)
            allowed = max(before, level, nothing)
            return (after - allowed) / allowed - rtol

        return excess


def _problem_of(controller, plant, region, search, seed) -> tuple[SearchProblem, float]:
    """(The problem, a typical value of V)."""
    problem = SearchProblem(controller, plant, region, search, seed)
    require_lyapunov(problem.controller)
    law: Any = problem.controller
    return problem, problem.typical(lambda x: float(law.lyapunov(*x, problem.plant.at(x.t))[0]))


def _seconds(name: str, x: Any) -> float:
    return number(name, x, "seconds > 0", lambda x: x > 0.0)


def _finite(x: float) -> float:
    """x with nan replaced, as a sort key."""
    return x if abs(x) < np.inf else np.inf


def _samples(horizon: float | None, period: float) -> int:
    if horizon is None:
        return 1
    horizon = number("horizon", horizon, "seconds > 0, or None", lambda x: x > 0.0)
    if horizon / period > MAX_COUNT:
        raise ArgumentError(f"horizon: expected at most {MAX_COUNT} samples of {period:g} s, got {horizon:g} s")
    return max(1, ceil(horizon / period - 1e-9))


def _bisected(holds, low: float, high: float) -> tuple[float, float]:
    """(A period without violation, a longer one with), close to each other."""
    while high > BISECTION_PRECISION * low:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
