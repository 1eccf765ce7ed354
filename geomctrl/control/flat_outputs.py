"""Motions of a body that is pushed along its own z axis, a quadrotor: from its flat outputs, position and heading.

With x(t) and the heading psi(t) the thrust m (x'' - g) fixes the third axis, psi the turn about it, and their
derivatives velocity and acceleration: x up to its fourth, psi up to its second (Mellinger and Kumar 2011).
"""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import function
from geomctrl.described import Described
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.robot import Robot

from .attitude import thrust_frame
from .contracts import Desired
from .desired import time
from .smooth_references import SmoothReference


def heading(psi: np.ndarray) -> np.ndarray:
    """(cos psi, sin psi, 0) and its first two derivatives, rows of (3, 3), from psi and two derivatives (3,)."""
    c, s = np.cos(psi[0]), np.sin(psi[0])
    first, second = psi[1], psi[1] ** 2
    return np.array(
        [
            [c, s, 0.0],
            [-s * first, c * first, 0.0],
            [-c * second - s * psi[2], -s * second + c * psi[2], 0.0],
        ]
    )


class FlatOutputs(Described):
    """A Reference of a robot that is one body on a free joint: `outputs`, t -> rows (5, 4), made a motion.

    outputs: x, y, z [m] of the body's origin and psi [rad], and four derivatives, as `smooth_references` gives them:
    `FlatOutputs(quadrotor, RestToRest((0, 0, 1, 0), (1, 2, 1, 0.5), 3.0))`. The body's third axis is along x'' - g,
    its first is as near as can be to (cos psi, sin psi, 0). Raises ArgumentError for another robot, and for outputs of
    another shape at t = 0; where x'' = g, in free fall, or thrust is along the heading there is no such frame.
    """

    def __init__(self, robot: Robot, outputs: SmoothReference):
        require_flying("robot", robot)
        function("outputs", outputs, "t -> (5, 4), x, y, z, psi and four derivatives")
        if np.shape(rows := outputs(0.0)) != (5, 4):
            raise ArgumentError(f"outputs: expected rows (5, 4), x, y, z, psi and derivatives, got {rows!r:.80}")
        self.robot, self.outputs = robot, outputs

    def __call__(self, t: float) -> Desired:
        rows = self.outputs(time(t))
        x, thrust = rows[:, :3], rows[2:, :3].copy()
        thrust[0] = thrust[0] - self.robot.gravity
        R, Omega, Omega_rate = thrust_frame(thrust, heading(rows[:3, 3]))
        velocity = R.T @ x[1]
        q = np.concatenate((R, x[0].reshape(3, 1)), axis=1).ravel()
        acceleration = R.T @ x[2] - np.cross(Omega, velocity)
        return Desired(q, np.concatenate((Omega, velocity)), np.concatenate((Omega_rate, acceleration)))


def require_flying(name: str, robot: Robot) -> None:
    """Raise ArgumentError unless a robot is one body on a free joint, with its centre of mass at its origin."""
    require_robot(name, robot)
    if [joint.kind for joint in robot.joints] != ["free"]:
        kinds = ", ".join(joint.kind for joint in robot.joints)
        raise ArgumentError(f"{name}: expected one body on a free joint, got {robot.name!r} with joints {kinds}")
    mass, h = robot.parameters[0, 0], robot.parameters[0, 1:4]
    if np.abs(h).max() > 1e-9 * mass:
        raise ArgumentError(f"{name}: expected the centre of mass at the body's origin, got it at {h / mass} m")
