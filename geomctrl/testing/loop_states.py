"""Which states of a closed loop a promise is about: those of its plant and controller, about its equilibrium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from geomctrl.arguments import ROTATION_TOLERANCE, checked, function, number, one_state
from geomctrl.control.contracts import Controller
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.lie.contract import require_group
from geomctrl.mechanism.states import one_configuration

from . import evidence
from .domain import Domain, State, box, untouchable
from .equilibria import equilibria, sources, start_of, typical_size
from .settings import Region


def require_controller(x: Any) -> None:
    """Raise ArgumentError unless x is a controller; a class of them is none."""
    if isinstance(x, type) or not isinstance(x, Controller):
        raise ArgumentError(f"controller: expected a geomctrl.Controller, got {x!r:.60}")


def require_lyapunov(controller: Any) -> None:
    """Raise ArgumentError unless the controller says what its Lyapunov function is."""
    if not hasattr(controller, "lyapunov"):
        raise ArgumentError(f"controller: expected one with lyapunov(t, q, v, z, plant), got {controller!r:.60}")


def state_of(controller: Any, plant: Plant, t: Any, q: Any, v: Any, z: Any) -> State:
    """One state of the loop; raises ArgumentError, naming t, q, v or z, where it is none."""
    robot, start = plant.robot, start_of(controller, plant)
    t = number("t", t, "a time that is not negative", lambda t: t >= 0.0)
    q, v = one_configuration(robot, "q", q), one_state("v", v, robot.nv)
    if (start is None) != (z is None):
        raise ArgumentError(f"z: expected it as the controller's start() gives it, {start}, got {z!r:.80}")
    if start is not None:
        z = checked("z", z, start.shape)
        if z.shape != start.shape:
            raise ArgumentError(f"z: expected shape {start.shape}, got {z.shape}")
    return untouchable(State(t, q, v, z))


def start_of_run(controller: Any, plant: Plant, domain: Domain, rng: np.random.Generator) -> State:
    """Where a run starts: somewhere in the domain at t = 0, the controller in the state it starts with."""
    point = domain.random(rng, "about")
    point.x[0] = 0.0
    x = domain.state(point)
    return untouchable(State(0.0, x.q, x.v, start_of(controller, plant, x.q, x.v)))


def failed_before(controller: Any, plant: Plant, domain: Domain) -> list[State]:
    """The states of the domain at which something has failed before in this test."""
    robot, start = plant.robot, start_of(controller, plant)
    shape = None if start is None else start.shape
    known = (untouchable(State(*x)) for x in evidence.known(robot.nq, robot.nv, shape))
    return [x for x in known if domain.contains(x)]


def states_about(controller: Any, plant: Plant, region: Region) -> Domain:
    equilibrium = region.equilibrium
    group = getattr(controller, "group", None)
    if group is not None:
        require_group("controller.group", group)
    rest = equilibria(controller, plant, equilibrium)
    end = 3.0 + max(plant.switches, default=0.0)
    zero = rest(0.01)
    n, own = plant.robot.nv, np.zeros(0)
    draw = None if zero.z is None else _drawn(controller, plant, zero.z)
    if zero.z is not None and draw is None:
        own = np.ones(group.dim) if group is not None else typical_size(np.ravel(zero.z))
    times = (0.01, end)  # not from 0 on: a difference looks back
    lower, upper = box({"q": n, "v": n, "z": len(own)}, region, times, own)
    domain = Domain(
        plant.robot, rest, lower, upper, group, draw, sources(controller, equilibrium, rest),
        lambda t: equilibria(controller, plant.at(t), equilibrium), region.domain is None or "t" not in region.domain,
    )  # fmt: skip
    if not domain.names:
        raise ArgumentError("domain: expected states besides the equilibrium, got spreads or sides that are all zero")
    return domain


def _drawn(controller: Any, plant: Plant, z: np.ndarray) -> Callable[[np.random.Generator, float], np.ndarray] | None:
    """(rng, t) -> what the controller's `sample_state` draws; None where it has none, or any z is one of its states."""
    sample = getattr(controller, "sample_state", None)
    if sample is not None:
        function("controller.sample_state", sample, "(rng, plant) -> z")
    if sample is None or sample(np.random.default_rng(0), plant.at(0.0)) is None:
        return None

    group = getattr(controller, "group", None)

    def draw(rng: np.random.Generator, t: float) -> np.ndarray:
        drawn = sample(rng, plant.at(t))
        expected = f"finite numbers of shape {z.shape} as start() gives them"
        if not isinstance(drawn, np.ndarray) or drawn.shape != z.shape or drawn.dtype.kind not in "fiu":
            raise ArgumentError(f"controller.sample_state(rng, plant): expected {expected}, got {drawn!r:.80}")
        if not np.isfinite(drawn).all() or (group is not None and not group.residual(drawn) < ROTATION_TOLERANCE):
            on = "" if group is None else f", an element of {group!r}"
            raise ArgumentError(f"controller.sample_state(rng, plant): expected {expected}{on}, got {drawn!r:.80}")
        return np.array(drawn, float)

    draw(np.random.default_rng(0), 0.0)
    return draw
