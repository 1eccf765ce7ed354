"""Where V must vanish: the reference or q_d of a law, and the law's own state there, solved for if need be."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from geomctrl.arguments import checked
from geomctrl.control.contracts import displaced, started
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import one_configuration

from .domain import State, untouchable
from .lyapunov_rate import Promise

ZERO = 1e-12  # of V where z is off by its own size: below this V is zero
STEP = 1e-6  # of the size of z: of differences


def start_of(
    controller: Any, plant: Plant, q0: np.ndarray | None = None, v0: np.ndarray | None = None
) -> np.ndarray | None:
    """The state z that the controller starts with where the robot does with q0, v0, default neutral and at rest."""
    start = started(controller, plant.robot, q0, v0)
    return None if start is None else np.asarray(start, float)


class Equilibria:
    """t -> the State in which V must vanish; `given` is assert_lyapunov's `equilibrium`.

    z is what is given, or the law's `settled(t, plant)`, `true_parameters(plant)` or `start()`, the first there is. If
    V is not zero with that, z is solved for from there on: where V is least over z, if it vanishes there.
    """

    def __init__(self, controller: Any, plant: Plant, given: Any):
        self.controller, self.plant = controller, plant
        self.motion, self.start = motion_of(controller, plant.robot.nv, given), start_of(controller, plant)
        self.known, self.solved, self.promise = False, False, Promise(controller, plant)
        self.at = lru_cache(maxsize=64)(self._at)

    def __call__(self, t: float) -> State:
        return self.at(float(t))

    def _at(self, t: float) -> State:
        q, v, z = self.motion(t)
        given, shape = z is not None, None if self.start is None else self.start.shape
        z = z if given else own_state(self.controller, self.plant, self.start, t)
        z = None if z is None else np.asarray(z, float)
        if (None if z is None else z.shape) != shape:
            raise ArgumentError(f"equilibrium: expected z as the controller's start() gives it, {self.start}, got {z}")
        if not self.known:  # what fits once does so later
            one_configuration(self.plant.robot, "equilibrium", q)
            checked("equilibrium", v, (self.plant.robot.nv,))
            self.known = True
        x = untouchable(State(t, np.asarray(q, float), np.asarray(v, float), z))
        if z is None or given or not hasattr(self.controller, "lyapunov"):
            return x
        return self._where_zero(x)

    def _where_zero(self, x: State) -> State:
        """x with its z moved to where V is zero, x itself where it is zero there already, or nowhere that is found."""
        group, value = getattr(self.controller, "group", None), self.promise.value
        size = np.ones(group.dim) if group is not None else typical_size(np.ravel(np.asarray(x.z)))

        def moved(w: np.ndarray) -> State:
            return untouchable(x._replace(z=displaced(group, x.z, w * size)))

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
            steps = STEP * np.eye(len(w))
            return np.array([(value(moved(w + e)) - value(moved(w - e))) / (2.0 * STEP * V) for e in steps])

        w, least = np.zeros(len(size)), V
        for _ in range(4):  # once more from where it ends: near zero V is the square of what is left
            with np.errstate(all="ignore"):  # a V without a bound below has no zero to be found
                found = minimize(height, w, jac=slope, method="BFGS", options={"gtol": 0.0})
            if not found.fun * V < 0.5 * least:
                break
            w, least = found.x, found.fun * V
            if abs(least) <= ZERO * off:
                self.solved = True
                return moved(w)
        return x


def equilibria(controller: Any, plant: Plant, given: Any) -> Equilibria:
    """The equilibria of a law in closed loop with a plant, see `Equilibria`."""
    return Equilibria(controller, plant, given)


def own_state(controller: Any, plant: Plant, start: np.ndarray | None, t: float) -> Any:
    """The law's state at its equilibrium at time t, as the law says."""
    if hasattr(controller, "settled"):
        return controller.settled(t, plant.at(t))
    return controller.true_parameters(plant.at(t)) if hasattr(controller, "true_parameters") else start


def sources(controller: Any, equilibrium: Any, rest: Equilibria) -> dict[str, str]:
    """Code for the parts of the equilibrium."""
    found = {}
    if equilibrium is None and getattr(controller, "reference", None) is not None:
        found = {"q": "controller.reference(t).q", "v": "controller.reference(t).v"}
    if equilibrium is None and not rest.solved:
        calls = {"settled": "settled(t, plant.at(t))", "true_parameters": "true_parameters(plant.at(t))"}
        found["z"] = "controller." + next((calls[k] for k in calls if hasattr(controller, k)), "start()")
    return found


def typical_size(z: np.ndarray) -> np.ndarray:
    """The size of each entry; of those that are zero, the median one's."""
    size = np.abs(z)
    some = size > 1e-12
    return np.where(some, size, np.median(size[some]) if some.any() else 1.0)


def motion_of(controller: Any, nv: int, given: Any) -> Callable[[float], Any]:
    """t -> (q, v, z) of the equilibrium, z None if it is not given."""
    if callable(given):
        return given
    if given is None:
        reference = getattr(controller, "reference", None)
        if reference is not None:
            return lambda t: (*reference(t)[:2], None)
        given = getattr(controller, "q_d", None)
    if given is None:
        name = type(controller).__name__
        raise ArgumentError(f"equilibrium: {name} has neither a reference nor q_d; expected the q at which V = 0")
    pair = isinstance(given, tuple) and len(given) == 2 and np.ndim(given[0]) == 1
    q, z = given if pair else (given, None)
    return lambda t: (q, np.zeros(nv), z)
