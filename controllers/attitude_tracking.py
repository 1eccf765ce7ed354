"""Attitude tracking on SO(3) without coordinates (Lee, Leok, McClamroch 2010), for satellites and their wheels."""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import number
from geomctrl.control.attitude import AttitudeError, attitude_error
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class AttitudeTracking(ModelBased):
    """tau = -kR e_R - kOmega e_Omega + J a_d + Omega x J Omega, by the errors of `control.attitude.AttitudeError`.

    V = 1/2 e_Omega . J e_Omega + kR Psi + c e_R . J e_Omega,
    V' = -kOmega |e_Omega|^2 - c kR |e_R|^2 - c kOmega e_R . e_Omega + c e_R' . J e_Omega

    Positive definite where Psi < 2, and V' negative there but at the equilibrium, as |e_R'| <= |e_Omega|, for

    c < sqrt(kR lambda_min(J)) / lambda_max(J)   and   c < 4 kR kOmega / (kOmega^2 + 4 kR lambda_max(J)).

    Errors fall exponentially from all states of which `in_domain` is true; on the rest, errors by pi in particular,
    the law is defined, but e_R = 0 there. (The attitude law of T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking
    control of a quadrotor UAV on SE(3)", CDC 2010; the cross term with J is that of Goodarzi, Lee, Lee, ECC 2013.)

    robot: one body on a spherical joint, alone or with revolute joints on it, its reaction wheels: at least three,
    symmetric about axes that span space. Then only they are driven: J is the inertia without their spin, Omega x J
    Omega has their momentum, and tau = -A^+ of the above with the wheels' axes A (3, wheels). kR [N m], kOmega [N m s]:
    by default w^2 and 2 w times the largest moment of inertia, where w is 3/s, or less where an error of the attitude
    would ask for more than half of a wheel's effort; c [1/s] by default half of what is allowed. Of the reference the
    attitude is used alone. No state. Raises ArgumentError for another robot and for gains that are not
    positive or a c that is too large.
    """

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        kR: float | None = None,
        kOmega: float | None = None,
        c: float | None = None,
    ):
        super().__init__(robot, reference)
        self.reduction, self.distribution = _actuation(robot)
        moments = np.linalg.eigvalsh(self._inertia(robot, robot.neutral()))
        least, largest = float(moments[0]), float(moments[-1])
        speed = _default_speed(robot, self.distribution, largest)
        self.kR = _positive("kR", speed**2 * largest if kR is None else kR)
        self.kOmega = _positive("kOmega", 2.0 * speed * largest if kOmega is None else kOmega)
        limit = cross_limit(self.kR, self.kOmega, least, largest)
        self.c = number(
            "c", 0.5 * limit if c is None else c, f"a number from 0 to {limit:.6g}", lambda c: 0 < c < limit
        )

    def _inertia(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        """J (3, 3): what a torque on the hub turns, wheels not driven."""
        return (self.reduction @ robot.mass_matrix(q))[:, :3]

    def _attitude_error(self, t: float, q: np.ndarray, v: np.ndarray) -> AttitudeError:
        desired = self._desired(t)
        return attitude_error(_rotation(q), v[:3], _rotation(desired.q), desired.v[:3], desired.a[:3])

    def __call__(self, t, q, v, z):
        x = self._attitude_error(t, q, v)
        free = np.concatenate((x.a_d, np.zeros(len(v) - 3)))
        torque = self.reduction @ self.robot.inverse_dynamics(q, v, free) - self.kR * x.e_R - self.kOmega * x.e_Omega
        return Command(self.distribution @ torque, None, {"e": x.e_R, "Psi": x.Psi})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        """V and the rate of the proof at a state, with the true robot of the plant."""
        x, c = self._attitude_error(t, q, v), self.c
        momentum = self._inertia(true_robot(plant), q) @ x.e_Omega
        V = 0.5 * x.e_Omega.dot(momentum) + self.kR * x.Psi + c * x.e_R.dot(momentum)
        return Lyapunov(scalar(V), scalar(c * x.e_R_rate.dot(momentum) - attitude_loss(x, self.kR, self.kOmega, c)))

    def in_domain(self, t: float, q: np.ndarray, v: np.ndarray) -> bool:
        """Whether 1/2 e_Omega . J e_Omega + kR Psi < 2 kR: it does not grow, so Psi < 2 stays, and the proof holds."""
        x = self._attitude_error(t, q, v)
        return bool(0.5 * x.e_Omega @ self._inertia(self.robot, q) @ x.e_Omega + self.kR * x.Psi < 2.0 * self.kR)


def cross_limit(kR: float, kOmega: float, least: float, largest: float) -> float:
    """What c must be below, by the least and the largest moment of inertia."""
    return min(np.sqrt(kR * least) / largest, 4.0 * kR * kOmega / (kOmega**2 + 4.0 * kR * largest))


def attitude_loss(x: AttitudeError, kR: float, kOmega: float, c: float):
    """kOmega |e_Omega|^2 + c kR |e_R|^2 + c kOmega e_R . e_Omega."""
    return kOmega * x.e_Omega.dot(x.e_Omega) + c * x.e_R.dot(kR * x.e_R + kOmega * x.e_Omega)


def _rotation(q):
    return q[:12].reshape(3, 4)[:, :3]


def _positive(name: str, x: float) -> float:
    return number(name, x, "a positive number", lambda x: x > 0.0)


def _default_speed(robot: Robot, distribution: np.ndarray, largest: float) -> float:
    """[1/s]: 3, or less where kR e_R, |e_R| <= 1, would ask for more than half of what a joint can do."""
    shares = np.linalg.norm(distribution, axis=1)
    driven = shares > 0.0
    torque = float((robot.limits.effort[driven] / shares[driven]).min())  # that the hub gets in any direction
    return min(3.0, float(np.sqrt(0.5 * torque / largest)))


def _actuation(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """(3, nv) and (nv, 3): the torque on the hub of joint torques that no wheel accelerates under, and the inverse."""
    base, *wheels = robot.joints
    if base.kind != "spherical" or any(j.dof != 1 for j in wheels) or any(robot.parents[1:]):
        kinds = ", ".join(j.kind for j in robot.joints)
        raise ArgumentError(f"robot: expected a spherical joint, alone or with wheels on it, got {kinds}")
    if not wheels:
        return np.eye(3), np.eye(3)
    q = robot.neutral()
    M = robot.mass_matrix(q)
    q[12:] = 1.0 + np.arange(len(wheels))
    axes = np.linalg.solve(M[3:, 3:], M[3:, :3]).T
    if not np.allclose(robot.mass_matrix(q), M, rtol=0.0, atol=1e-9 * M.max()) or np.linalg.matrix_rank(axes) < 3:
        raise ArgumentError("robot: expected wheels that are symmetric about their axes, and axes that span space")
    return np.hstack((np.eye(3), -axes)), np.vstack((np.zeros((3, 3)), -np.linalg.pinv(axes)))
