"""Attitude errors on SO(3), and the attitude that follows from a thrust direction and a heading (quadrotors).

Source: T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)", CDC 2010, and the
extended version arXiv:1003.2005.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import function, shown
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar

from .contracts import Desired, time
from .references import SmoothReference


class AttitudeError(NamedTuple):
    """The error of (R, Omega) with respect to (R_d, Omega_d), with Q = R_d^T R.

    Attributes
    ----------
    Psi : float
        1/2 tr(1 - Q), between 0 and 2 (a rotation by pi).
    e_R : array (3,)
        1/2 vee(Q - Q^T), the gradient of Psi: Psi' = e_R . e_Omega, |e_R|^2 = Psi (2 - Psi).
    e_Omega : array (3,)
        Omega - Q^T Omega_d.
    e_R_rate : array (3,)
        Time derivative of e_R, 1/2 (tr(Q) - Q^T) e_Omega.
    a_d : array (3,)
        Desired acceleration in the actual attitude, Q^T Omega_d' - Omega x Q^T Omega_d.
    """

    Psi: Any
    e_R: np.ndarray
    e_Omega: np.ndarray
    e_R_rate: np.ndarray
    a_d: np.ndarray


def attitude_error(R, Omega, R_d, Omega_d, a_d) -> AttitudeError:
    """The AttitudeError of R (3, 3), Omega (3,) for R_d, the body-fixed Omega_d and its time derivative a_d."""
    Q = R_d.T @ R
    seen, e_R = Q.T @ Omega_d, 0.5 * np.array([Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1]])
    e_Omega, trace = Omega - seen, Q[0, 0] + Q[1, 1] + Q[2, 2]
    e_R_rate = 0.5 * (trace * e_Omega - Q.T @ e_Omega)
    small = 2.0 * e_R.dot(e_R) / np.maximum(1.0 + trace, 1.0)  # avoids the cancellation in Psi for trace > 0
    Psi = scalar(np.where(trace > 0.0, small, 0.5 * (3.0 - trace)))
    return AttitudeError(Psi, e_R, e_Omega, e_R_rate, Q.T @ a_d - np.cross(Omega, seen))


class Frame(NamedTuple):
    """A moving frame: R (3, 3), its body-fixed angular velocity Omega (3,) and the time derivative of Omega (3,)."""

    R: np.ndarray
    Omega: np.ndarray
    Omega_rate: np.ndarray


def thrust_frame(thrust: np.ndarray, heading: np.ndarray) -> Frame:
    """The Frame with the third axis along `thrust` and the first axis as close as possible to `heading`.

    thrust, heading: (3, 3), rows are a world vector and its first two derivatives. The vectors are not zero and not
    parallel.
    """
    b3 = _direction(*thrust)
    b2 = _direction(*_product(b3, heading))
    b1 = _product(b2, b3)
    Omega = np.array([b3[0].dot(b2[1]), b1[0].dot(b3[1]), b2[0].dot(b1[1])])
    rate = np.array([x[1].dot(y[1]) + x[0].dot(y[2]) for x, y in ((b3, b2), (b1, b3), (b2, b1))])
    return Frame(np.array([b1[0], b2[0], b3[0]]).T, Omega, rate)


def _direction(u, du, ddu):
    """u / |u| and its first two derivatives."""
    n = np.sqrt(u.dot(u))
    b = u / n
    dn = b.dot(du)
    db = (du - b * dn) / n
    return b, db, (ddu - 2.0 * db * dn - b * (db.dot(du) + b.dot(ddu))) / n


def _product(a, b):
    """a x b and its first two derivatives."""
    second = np.cross(a[2], b[0]) + 2.0 * np.cross(a[1], b[1]) + np.cross(a[0], b[2])
    return np.cross(a[0], b[0]), np.cross(a[1], b[0]) + np.cross(a[0], b[1]), second


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


class FlatOutputs(ReadableRepr):
    """A Reference for a robot that is one body on a free joint, from its flat outputs.

    Parameters
    ----------
    robot : Robot
        One body on a free joint, with its centre of mass at its origin.
    outputs : SmoothReference
        A function t -> (5, 4): x, y, z [m] of the body's origin and the yaw angle psi [rad], and four derivatives.

    Raises
    ------
    ArgumentError
        For another robot, or if the outputs at t = 0 have another shape.

    Notes
    -----
    The third body axis is along x'' - g, and the first is as close as possible to (cos psi, sin psi, 0). The attitude
    is undefined in free fall, x'' = g, and if the thrust is parallel to the heading.

    Examples
    --------
    >>> import geomctrl as gc
    >>> outputs = gc.references.RestToRest((0, 0, 1, 0), (1, 2, 1, 0.5), 3.0)
    >>> motion = gc.control.FlatOutputs(gc.models.quadrotor(), outputs)
    >>> motion(3.0).v.shape
    (6,)
    """

    def __init__(self, robot: Robot, outputs: SmoothReference):
        require_flying("robot", robot)
        function("outputs", outputs, "t -> (5, 4), x, y, z, psi and four derivatives", 1)
        rows = outputs(0.0)
        if not isinstance(rows, np.ndarray) or rows.shape != (5, 4):
            expected = "an array (5, 4), x, y, z, psi and derivatives, as RestToRest and Harmonic return"
            raise ArgumentError(f"outputs: expected {expected}, got {shown(rows)}")
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
