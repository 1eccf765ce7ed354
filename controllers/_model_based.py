"""What the controllers share: their model, reference and error variables."""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import function
from geomctrl.control.contracts import Desired, Reference
from geomctrl.control.desired import desired_at
from geomctrl.control.friction import Friction
from geomctrl.control.plant import Plant
from geomctrl.control.tracking import Sliding, TrackingError, sliding_variables, tracking_error
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot


class ModelBased:
    """A controller built on a nominal model and a reference; stateless unless a subclass says otherwise."""

    Lambda: np.ndarray

    def __init__(self, robot: Robot, reference: Reference, friction: Friction | None = None):
        if not isinstance(robot, Robot):
            raise ArgumentError(f"robot: expected a geomctrl.Robot, got {robot!r:.60}")
        function("reference", reference, "t -> Desired(q, v, a)")
        if friction is not None:
            if not isinstance(friction, Friction):
                raise ArgumentError(f"friction: expected a geomctrl.Friction or None, got {friction!r:.60}")
            friction.check(robot.nv)
        self.robot, self.reference, self.friction = robot, reference, friction

    def start(self):
        return None

    def desired(self, t: float) -> Desired:
        """The reference at time t, evaluated once where several ask for it."""
        return desired_at(self.reference, t)

    def error(self, t: float, q: np.ndarray, v: np.ndarray) -> TrackingError:
        return tracking_error(self.robot, q, v, self.desired(t))

    def sliding(self, t: float, q: np.ndarray, v: np.ndarray) -> Sliding:
        return sliding_variables(self.robot, q, v, self.desired(t), self.Lambda)


def true_robot(plant: Plant) -> Robot:
    """A plant's robot as it is now: what a Lyapunov function is evaluated with."""
    try:
        return plant.robot
    except AttributeError:
        raise ArgumentError(f"plant: expected a geomctrl.Plant, got {plant!r:.60}") from None
