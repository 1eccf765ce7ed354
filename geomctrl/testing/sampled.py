"""What a law can promise whose command is held between samples: V falls outside a level, and never leaves it.

A held command is off by what the law has changed since it was computed: of first order in control_dt. Where V'
vanishes, at the equilibrium and, for a semidefinite rate, at turning points, that error wins; hence a level, or a
horizon of more than one sample. This is practical stability, the most that is true of sampled laws in general (Nesic,
Teel and Kokotovic 1999; Nesic and Teel 2004). States are searched, not all of them: no proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import count, number, tolerance
from geomctrl.control.closed_loop import Loop
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError, GeomctrlError

from .domain import State, untouchable
from .loop_states import require_lyapunov
from .search import NEGLIGIBLE, Inquiry, Number, worst
from .settings import Region

MEASURED = "print(testing.held_for(controller, plant, {period!r}, t, q, v, z{options}))"
STEPS = 4  # of the integrator in a period
PROBES = 8  # shorter periods at which the longest is confirmed
HALVING = 1.02  # periods and levels are found to a factor of this
AT_REST = 3  # samples after which a loop at rest, V being nothing, stays there
AHEAD, MAX_STARTS = (
    100,
    4,
)  # samples without a larger V until a loop has settled; states on the way that a search begins at


class Held(NamedTuple):
    """V at a sample, and after the horizon."""

    before: float
    after: float


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
    """Assert V(after) <= max(V(now), level): now is any sample, after a horizon later, commands are held control_dt.

    So V falls, from sample to sample or over the horizon, where it is above `level` [V's unit], and where it is below
    it stays below. horizon: seconds, rounded up to samples, by default one. With a rate that is only semidefinite, as
    of a PD law, V grows by a little from a turning point on, however short the period: a horizon of some periods then,
    or a level. A law that follows a motion needs a level, as the motion goes on while its command is held.

    States are searched over the domain and with the arguments of `assert_lyapunov`; each is one simulation over the
    horizon, command and the rate of z held, in steps of control_dt / 4. The plant is the true one.

    Raises Counterexample with the simplest state found, and the level that would cover what was found; ArgumentError
    for bad arguments.
    """
    period = _seconds("control_dt", control_dt)
    level, rtol = number("level", level, "a number >= 0", lambda x: x >= 0.0), tolerance("rtol", rtol)
    inquiry, typical = _asked(controller, plant, region, search, seed)
    held = HeldLoop(inquiry.controller, inquiry.plant, period, _samples(horizon, period))

    def words(x: State) -> str:
        sample = held.at(x)
        over = f"level {level:.6g}, " if level else ""
        return (
            f"V grows while commands are held for {period:g} s: V = {sample.before:.9g}, {over}"
            f"{held.samples * period:g} s later {sample.after:.9g} (a level of that covers this state)"
        )

    options = f", horizon={horizon!r}" if horizon is not None else ""
    excess = held.excess(level, NEGLIGIBLE * typical, rtol)
    measured = MEASURED.format(period=period, options=options)
    inquiry.hold(excess, "sampled", words, measured, held.settling(inquiry, excess, NEGLIGIBLE * typical))


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
    """The least level for `assert_sampled` that no state found contradicts: the largest V that a growth ends at.

    An estimate from below: the search begins where the loop settles from rest, which is much nearer to the equilibrium
    than random states come, and goes up from level to level by 2 % and more. search: evaluations for each of them.
    Where the level is about the largest V of the domain, holding for so long keeps no promise there; infinite where
    the loop falls apart.
    """
    period = _seconds("control_dt", control_dt)
    inquiry, typical = _asked(controller, plant, region, search, seed)
    held = HeldLoop(inquiry.controller, inquiry.plant, period, _samples(horizon, period))

    level, broken = 0.0, []
    while True:  # from level to level: each search looks for states that grow beyond the last
        above = held.excess(HALVING * level, NEGLIGIBLE * typical, 1e-9)
        starts = [*broken[-4:], *held.settling(inquiry, above, NEGLIGIBLE * typical)]
        result = inquiry.largest(above, "level of a held law", starts)
        if result.value <= 0.0:
            return level
        broken.append(result.state)
        level = held.at(result.state).after
        if not level < np.inf:
            return np.inf


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
    """The longest control_dt [s] up to which `assert_sampled` finds nothing, to 2 %, between `shortest` and `longest`.

    Found by bisection, states that broke the promise at one period being looked at first at the next; then confirmed at
    eight shorter periods, spread evenly in the logarithm: if one of them fails, the search goes on below it. search:
    evaluations a period. An estimate from above, as what a search does not find is not proved.

    Raises ArgumentError for bad arguments, and where the promise does not hold at `shortest` either.
    """
    low, high = _seconds("shortest", shortest), _seconds("longest", longest)
    if not low < high:
        raise ArgumentError(f"shortest, longest: expected a shorter and a longer period, got {low:g} and {high:g}")
    level, rtol = number("level", level, "a number >= 0", lambda x: x >= 0.0), tolerance("rtol", rtol)
    search = count("search", search, 1)
    inquiry, typical = _asked(controller, plant, region, search, seed)
    broken: list[State] = []

    def holds(period: float) -> bool:
        held = HeldLoop(inquiry.controller, inquiry.plant, period, _samples(horizon, period))
        excess = held.excess(level, NEGLIGIBLE * typical, rtol)
        starts = [*broken[-4:], *held.settling(inquiry, excess, NEGLIGIBLE * typical)]
        result = worst(excess, inquiry.domain, inquiry.rng, search, starts=starts, enough=0.0)
        if result.value <= 0.0:
            return True
        broken.append(result.state)
        return False

    if not holds(low):
        raise ArgumentError(f"shortest: the promise does not hold at {low:g} s either, {broken[-1]}")
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
) -> Held:
    """What `assert_sampled` looks at, at one state: (V now, V after the horizon), commands held for control_dt."""
    period = _seconds("control_dt", control_dt)
    inquiry, _ = _asked(controller, plant, 0.5, 1, 0)
    x = inquiry.state(t, q, v, z)
    return HeldLoop(inquiry.controller, inquiry.plant, period, _samples(horizon, period)).at(x)


class HeldLoop:
    """A closed loop whose command is held, over some samples from any state and time."""

    def __init__(self, controller: Any, plant: Plant, period: float, samples: int):
        self.controller, self.plant, self.period, self.samples = controller, plant, period, samples
        self.visited: list[tuple[State, Held]] | None = None
        robot, dt = plant.robot, period / STEPS
        self.loop = Loop(plant, controller, robot.neutral(), np.zeros(robot.nv), dt, period)

    def value(self, t: float, q: Any, v: Any, z: Any) -> float:
        return float(self.controller.lyapunov(t, q, v, z, self.plant.at(t))[0])

    def settling(self, inquiry: Inquiry, excess: Number, nothing: float) -> list[State]:
        """States on the way from rest to where the held loop settles, those where `excess` is largest.

        It settles so near the equilibrium that random states do not come there.
        """
        if self.visited is None:
            self.visited = [y for x in inquiry.at_rest for y in self._way(x, nothing) if inquiry.domain.contains(y[0])]
        grown = sorted(self.visited, key=lambda pair: -_finite(pair[1].after - pair[1].before))[:MAX_STARTS]
        largest = sorted(self.visited, key=lambda pair: -_finite(pair[1].after))[:MAX_STARTS]
        return sorted((x for x, _ in (*grown, *largest)), key=lambda x: -_finite(excess(x)))

    def _way(self, x: State, nothing: float) -> Iterator[tuple[State, Held]]:
        """The samples from x on, until V has not reached another maximum for a while."""
        largest, since = 0.0, 0
        while since < (AHEAD if largest > nothing else AT_REST):
            sample = self.at(x)
            yield x, sample
            if not sample.after < np.inf:
                return
            since = 0 if sample.after > HALVING * largest else since + 1
            largest = max(largest, sample.after)
            q, v, z = self.loop.split(self.loop.y.copy())
            x = untouchable(State(x.t + self.samples * self.period, q, v, z))

    def at(self, x: State) -> Held:
        """V at a state, and after the samples, where `loop` is then; infinite where it falls apart on the way."""
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
        return Held(before, after)

    def excess(self, level: float, nothing: float, rtol: float) -> Number:
        """state -> by how much V after exceeds the larger of V before and the level, relative to that."""

        def excess(x: State) -> float:
            before, after = self.at(x)
            allowed = max(before, level, nothing)
            return (after - allowed) / allowed - rtol

        return excess


def _asked(controller, plant, region, search, seed) -> tuple[Inquiry, float]:
    """(the inquiry, a typical V)."""
    inquiry = Inquiry(controller, plant, region, search, seed)
    require_lyapunov(inquiry.controller)
    law: Any = inquiry.controller
    return inquiry, inquiry.typical(lambda x: float(law.lyapunov(*x, inquiry.plant.at(x.t))[0]))


def _seconds(name: str, x: Any) -> float:
    return number(name, x, "seconds > 0", lambda x: x > 0.0)


def _finite(x: float) -> float:
    """x, as something to sort by."""
    return x if abs(x) < np.inf else np.inf


def _samples(horizon: float | None, period: float) -> int:
    if horizon is None:
        return 1
    horizon = number("horizon", horizon, "seconds > 0, or None", lambda x: x > 0.0)
    return max(1, ceil(horizon / period - 1e-9))


def _bisected(holds, low: float, high: float) -> tuple[float, float]:
    """(a period that holds, one that does not), next to each other."""
    while high > HALVING * low:
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
