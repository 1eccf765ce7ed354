"""Functions for controllers that wrap another controller and add an observer, an estimator or a further torque."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.arguments import is_a, one_state, shown
from geomctrl.control.contracts import require_controller, started
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import one_configuration
from geomctrl.robot import Robot


def wrapped_law(name: str, law: Any, robot: Robot | None = None) -> Any:
    """Return law. Raises ArgumentError, naming the argument `name`, unless it is a controller with a vector state or
    no state, and with a model unless the model `robot` is given."""
    require_controller(law, name)
    robot = getattr(law, "robot", robot)
    if not is_a(robot, Robot):
        raise ArgumentError(f"{name}: expected a controller with its model as an attribute `robot`, got {shown(law)}")
    start = started(law, robot)
    if getattr(law, "group", None) is not None or (start is not None and np.ndim(start) != 1):
        raise ArgumentError(f"{name}: expected a controller whose state is a vector, got {shown(law)}")
    return law


def goal(target: Any, law: Any) -> None:
    """Copy the law's reference or q_d to the wrapping controller `target`."""
    for name in ("reference", "q_d"):
        if hasattr(law, name):
            setattr(target, name, getattr(law, name))


def size_of(law: Any, robot: Robot | None = None) -> int:
    return len(start_of(law, robot=robot))


def state_at_start(robot: Robot, q0: Any, v0: Any) -> tuple[Any, Any]:
    """q0 (nq,) and v0 (nv,), checked; None remains None."""
    q0 = None if q0 is None else one_configuration(robot, "q0", q0)
    return q0, None if v0 is None else one_state("v0", v0, robot.nv)


def start_of(law: Any, q0: Any = None, v0: Any = None, robot: Robot | None = None) -> np.ndarray:
    """The initial state of a wrapped law for a robot at q0, v0 (default: neutral and at rest); empty without state."""
    start = started(law, getattr(law, "robot", robot), q0, v0)
    return np.zeros(0) if start is None else np.asarray(start, float)


def rest_of(law: Any, plant: Any) -> np.ndarray:
    """The state of a wrapped law at which its V vanishes."""
    return np.asarray(law.true_parameters(plant), float) if hasattr(law, "true_parameters") else start_of(law)


def sampled(law: Any, rng: np.random.Generator, plant: Any) -> np.ndarray | None:
    """A random state from the law's `sample_state`; None if every state is admissible."""
    return law.sample_state(rng, plant) if hasattr(law, "sample_state") else None


def rate_of(command: Any) -> Any:
    """The rate of a wrapped law's state; empty without state."""
    return np.zeros(0) if command.z_rate is None else command.z_rate
