"""The states of a closed loop at which properties are tested, and the equilibrium where V must vanish.

The equilibrium is at the law's reference or q_d. The law's own state there is given by the law or solved for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from geomctrl.arguments import ROTATION_TOLERANCE, checked, function, number, one_state, shown
from geomctrl.control.contracts import displaced, started
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.lie.contract import require_group
from geomctrl.mechanism.states import one_configuration

from . import evidence
from .domain import Domain, State, box, with_read_only_arrays
from .lyapunov_rate import LyapunovClaim
from .settings import Region

ZERO = 1e-12  # relative to V where z is displaced by its own size; smaller values of V are zero
DIFFERENCE_STEP = 1e-6  # of differences, relative to the size of z


def start_of(
    controller: Any, plant: Plant, q0: np.ndarray | None = None, v0: np.ndarray | None = None
) -> np.ndarray | None:
    """The initial state z of the controller for a robot at q0, v0 (default: neutral and at rest)."""
    start = started(controller, plant.robot, q0, v0)
    return None if start is None else np.asarray(start, float)


class Equilibria:
    """The equilibrium as a function of time; `given` is `Region.equilibrium`.

    z is the given one, or `settled(t, plant)`, `true_parameters(plant)` or `start()`, the first that exists. If V is
    not zero there, V is minimised over z, and the minimum is used if V vanishes there.
    """

    def __init__(self, controller: Any, plant: Plant, equilibrium: Any):
        self.controller, self.plant = controller, plant
        self.motion, self.start = motion_of(controller, plant.robot.nv, equilibrium), start_of(controller, plant)
        self.fits, self.solved, self.promise = False, False, LyapunovClaim(controller, plant)
        self.cached = lru_cache(maxsize=64)(self._at)

    def __call__(self, t: float) -> State:
        return self.cached(float(t))

    def _at(self, t: float) -> State:
        q, v, z = self.motion(t)
        explicit, shape = z is not None, None if self.start is None else self.start.shape
        z = z if explicit else own_state(self.controller, self.plant, self.start, t)
        z = None if z is None else np.asarray(z, float)
        if (None if z is None else z.shape) != shape:
            raise ArgumentError(
                f"equilibrium: expected a z of the shape of the controller's start(), {self.start}, got {z}"
            )
        if not self.fits:  # checked once
            one_configuration(self.plant.robot, "equilibrium", q)
            checked("equilibrium", v, (self.plant.robot.nv,))
            self.fits = True
        x = with_read_only_arrays(State(t, np.asarray(q, float), np.asarray(v, float), z))
        if z is None or explicit or not hasattr(self.controller, "lyapunov"):
            return x
        return self._where_zero(x)

    def _where_zero(self, x: State) -> State:
        """x with z moved to where V is zero; x itself if V is zero already, or if no zero is found."""
        group, value = getattr(self.controller, "group", None), self.promise.value
        size = np.ones(group.dim) if group is not None else typical_size(np.ravel(np.asarray(x.z)))

        def moved(w: np.ndarray) -> State:
            return with_read_only_arrays(x._replace(z=displaced(group, x.z, w * size)))

        V, off = value(x), value(moved(np.ones(len(size))))
        if not ZERO * off < V < np.inf:
            return x
        from scipy.optimize import minimize

        exact = self.promise.exact(x.t) if group is None else None
        at_z = slice(1 + 2 * self.plant.robot.nv, None)

        def height(w: np.ndarray) -> float:
            there = moved(w)
            return value(there) / V if np.isfinite(np.asarray(there.z)).all() else np.inf

        def slope(w: np.ndarray) -> np.ndarray:
            if not np.isfinite(np.asarray(moved(w).z)).all():
                return np.zeros(len(w))
            if exact is not None and exact.has_gradients:
                return exact.gradients(moved(w))[1][0][at_z] * size / V
            steps = DIFFERENCE_STEP * np.eye(len(w))
            return np.array([(value(moved(w + e)) - value(moved(w - e))) / (2.0 * DIFFERENCE_STEP * V) for e in steps])

        w, least = np.zeros(len(size)), V
        for _ in range(4):  # restarts, because near zero V is the square of the remaining error
            with np.errstate(all="ignore"):  # an unbounded V may overflow
                minimum = minimize(height, w, jac=slope, method="BFGS", options={"gtol": 0.0})
            if not minimum.fun * V < 0.5 * least:
                break
            w, least = minimum.x, minimum.fun * V
            if abs(least) <= ZERO * off:
                self.solved = True
                return moved(w)
        return x


def own_state(controller: Any, plant: Plant, start: np.ndarray | None, t: float) -> Any:
    """The law's state at its equilibrium at time t, as the law defines it."""
    if hasattr(controller, "settled"):
        return controller.settled(t, plant.at(t))
    return controller.true_parameters(plant.at(t)) if hasattr(controller, "true_parameters") else start


def sources(controller: Any, equilibrium: Any, rest: Equilibria) -> dict[str, str]:
    """Code for the parts of the equilibrium."""
    code = {}
    if equilibrium is None and getattr(controller, "reference", None) is not None:
        code = {"q": "controller.reference(t).q", "v": "controller.reference(t).v"}
    if equilibrium is None and not rest.solved:
        calls = {"settled": "settled(t, plant.at(t))", "true_parameters": "true_parameters(plant.at(t))"}
        code["z"] = "controller." + next((calls[k] for k in calls if hasattr(controller, k)), "start()")
    return code


def typical_size(z: np.ndarray) -> np.ndarray:
    """Typical size of each entry; the median for entries that are zero."""
    size = np.abs(z)
    some = size > 1e-12
    return np.where(some, size, np.median(size[some]) if some.any() else 1.0)


def motion_of(controller: Any, nv: int, equilibrium: Any) -> Callable[[float], Any]:
    """The equilibrium (q, v, z) as a function of time; z is None if unknown."""
    if callable(equilibrium):
        return equilibrium
    if equilibrium is None:
        reference = getattr(controller, "reference", None)
        if reference is not None:
            return lambda t: (*reference(t)[:2], None)
        equilibrium = getattr(controller, "q_d", None)
    if equilibrium is None:
        name = type(controller).__name__
        raise ArgumentError(
            f"controller: {name} has neither a reference nor q_d: pass the q at which V = 0"
            " as `equilibrium`, or in a `Box`"
        )
    pair = isinstance(equilibrium, tuple) and len(equilibrium) == 2 and np.ndim(equilibrium[0]) == 1
    q, z = equilibrium if pair else (equilibrium, None)
    return lambda t: (q, np.zeros(nv), z)


def require_lyapunov(controller: Any) -> None:
    """Raise ArgumentError unless the controller has a Lyapunov function."""
    if not hasattr(controller, "lyapunov"):
        raise ArgumentError(f"controller: expected one with lyapunov(t, q, v, z, plant), got {shown(controller)}")


def state_of(controller: Any, plant: Plant, t: Any, q: Any, v: Any, z: Any) -> State:
    """One state of the loop. Raises ArgumentError for t, q, v or z."""
    robot, start = plant.robot, start_of(controller, plant)
    t = number("t", t, "a time >= 0", lambda t: t >= 0.0)
    q, v = one_configuration(robot, "q", q), one_state("v", v, robot.nv)
    if (start is None) != (z is None):
        raise ArgumentError(f"z: expected a z of the shape of the controller's start(), {start}, got {shown(z)}")
    if start is not None:
        z = checked("z", z, start.shape)
        if z.shape != start.shape:
            raise ArgumentError(f"z: expected shape {start.shape}, got {z.shape}")
    return with_read_only_arrays(State(t, q, v, z))


def start_of_run(controller: Any, plant: Plant, domain: Domain, rng: np.random.Generator) -> State:
    """The initial state of a run: random in the domain at t = 0, with the controller's initial state."""
    point = domain.random(rng, "about")
    point.x[0] = 0.0
    x = domain.state(point)
    return with_read_only_arrays(State(0.0, x.q, x.v, start_of(controller, plant, x.q, x.v)))


def failed_before(controller: Any, plant: Plant, domain: Domain) -> list[State]:
    """The states of the domain at which this test has failed before."""
    robot, start = plant.robot, start_of(controller, plant)
    shape = None if start is None else start.shape
    states = (with_read_only_arrays(State(*x)) for x in evidence.known(robot.nq, robot.nv, shape))
    return [x for x in states if domain.contains(x)]


def states_about(controller: Any, plant: Plant, region: Region) -> Domain:
    equilibrium = region.equilibrium
    group = getattr(controller, "group", None)
    if group is not None:
        require_group("controller.group", group)
    rest = Equilibria(controller, plant, equilibrium)
    end = 3.0 + max(plant.switches, default=0.0)
    zero = rest(0.01)
    n, own = plant.robot.nv, np.zeros(0)
    draw = None if zero.z is None else _drawn(controller, plant, zero.z)
    if zero.z is not None and draw is None:
        own = np.ones(group.dim) if group is not None else typical_size(np.ravel(zero.z))
    times = (0.01, end)  # not from 0, because differences use earlier times
    lower, upper = box({"q": n, "v": n, "z": len(own)}, region, times, own)
    domain = Domain(
        plant.robot, rest, lower, upper, group, draw, sources(controller, equilibrium, rest),
        lambda t: Equilibria(controller, plant.at(t), equilibrium), region.domain is None or "t" not in region.domain,
    )  # fmt: skip
    if not domain.names:
        raise ArgumentError(
            "domain: expected a domain larger than the equilibrium, got spreads or sides that are all zero"
        )
    return domain


def _drawn(controller: Any, plant: Plant, z: np.ndarray) -> Callable[[np.random.Generator, float], np.ndarray] | None:
    """(rng, t) -> z by the controller's `sample_state`; None if it has none or if every z is admissible."""
    sample = getattr(controller, "sample_state", None)
    if sample is not None:
        function("controller.sample_state", sample, "(rng, plant) -> z", 2)
    if sample is None or sample(np.random.default_rng(0), plant.at(0.0)) is None:
        return None

    group = getattr(controller, "group", None)

    def draw(rng: np.random.Generator, t: float) -> np.ndarray:
        drawn = sample(rng, plant.at(t))
        expected = f"finite numbers of shape {z.shape} as returned by start()"
        if not isinstance(drawn, np.ndarray) or drawn.shape != z.shape or drawn.dtype.kind not in "fiu":
            raise ArgumentError(f"controller.sample_state(rng, plant): expected {expected}, got {shown(drawn)}")
        if not np.isfinite(drawn).all() or (group is not None and not group.residual(drawn) < ROTATION_TOLERANCE):
            on = "" if group is None else f", an element of {group!r}"
            raise ArgumentError(f"controller.sample_state(rng, plant): expected {expected}{on}, got {shown(drawn)}")
        return np.array(drawn, float)

    draw(np.random.default_rng(0), 0.0)
    return draw
