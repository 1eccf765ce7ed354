"""Geometric attitude tracking on SO(3) (Lee, Leok, McClamroch 2010) for satellites with or without reaction wheels."""

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
    """Attitude tracking: tau = -kR e_R - kOmega e_Omega + J a_d + Omega x J Omega, errors of `AttitudeError`.

    Parameters
    ----------
    robot : Robot
        One body on a spherical joint, alone or with at least three reaction wheels: revolute joints, symmetric about
        axes that span space. With wheels only they are driven.
    reference : Reference
        The desired motion, of which only the attitude is used.
    kR : float, optional
        Attitude gain [N m]; default w^2 times the largest moment of inertia. w is 3/s, or less if an attitude error
        would require more than half of a wheel's effort.
    kOmega : float, optional
        Angular velocity gain [N m s]; default 2 w times the largest moment of inertia.
    c : float, optional
        Cross term of the Lyapunov function [1/s]; default half of its upper limit.

    Raises
    ------
    ArgumentError
        For another robot, a gain that is not positive, or a c above its limit.

    Notes
    -----
    (T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)", CDC 2010, attitude
    law; the cross term with J is that of Goodarzi, Lee, Lee, ECC 2013.)

    V = 1/2 e_Omega . J e_Omega + kR Psi + c e_R . J e_Omega,
    V' = -kOmega |e_Omega|^2 - c kR |e_R|^2 - c kOmega e_R . e_Omega + c e_R' . J e_Omega

    Because |e_R'| <= |e_Omega|, V is positive definite for Psi < 2 and V' is negative except at the equilibrium, if

    c < sqrt(kR lambda_min(J)) / lambda_max(J)   and   c < 4 kR kOmega / (kOmega^2 + 4 kR lambda_max(J)).

    Errors decrease exponentially from all states with `in_domain`. Elsewhere, in particular for rotations by pi, the
    law is defined but e_R may be 0. With wheels J is the inertia without their spin, Omega x J Omega includes their
    momentum, and tau = -A^+ times the torque above, with the axes A (3, wheels).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> body = gc.models.satellite()
    >>> law = gc.controllers.AttitudeTracking(body, gc.references.hold(body, body.neutral()))
    >>> law(0.0, body.neutral(), np.zeros(3), None).tau
    array([0., 0., 0.])
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
        """J (3, 3), the inertia that a torque on the hub accelerates while the wheels are not driven."""
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
        """Return V and the rate of the proof, evaluated with the plant's robot.

        Parameters
        ----------
        t : float
            Time [s].
        q, v : array (nq,), (nv,)
            State of the robot.
        z : array or None
            State of the controller.
        plant : Plant
            The true plant.

        Returns
        -------
        Lyapunov

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> body = gc.models.satellite()
        >>> law = gc.controllers.AttitudeTracking(body, gc.references.hold(body, body.neutral()))
        >>> V, rate = law.lyapunov(0.0, body.neutral(), np.array([0.1, 0.0, 0.0]), None, gc.Plant(body))
        >>> bool(V > 0.0), bool(rate < 0.0)
        (True, True)
        """
        x, c = self._attitude_error(t, q, v), self.c
        momentum = self._inertia(true_robot(plant), q) @ x.e_Omega
        V = 0.5 * x.e_Omega.dot(momentum) + self.kR * x.Psi + c * x.e_R.dot(momentum)
        return Lyapunov(scalar(V), scalar(c * x.e_R_rate.dot(momentum) - attitude_loss(x, self.kR, self.kOmega, c)))

    def in_domain(self, t: float, q: np.ndarray, v: np.ndarray) -> bool:
        """Return whether the proof holds from a state on.

        Parameters
        ----------
        t : float
            Time [s].
        q, v : array (nq,), (nv,)
            State of the robot.

        Returns
        -------
        bool
            Whether 1/2 e_Omega . J e_Omega + kR Psi < 2 kR. This energy does not grow, so Psi stays below 2.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> body = gc.models.satellite()
        >>> law = gc.controllers.AttitudeTracking(body, gc.references.hold(body, body.neutral()))
        >>> law.in_domain(0.0, body.neutral(), np.zeros(3))
        True
        """
        x = self._attitude_error(t, q, v)
        return bool(0.5 * x.e_Omega @ self._inertia(self.robot, q) @ x.e_Omega + self.kR * x.Psi < 2.0 * self.kR)


def cross_limit(kR: float, kOmega: float, least: float, largest: float) -> float:
    """The upper limit of c for the smallest and the largest moment of inertia."""
    return min(np.sqrt(kR * least) / largest, 4.0 * kR * kOmega / (kOmega**2 + 4.0 * kR * largest))


def attitude_loss(x: AttitudeError, kR: float, kOmega: float, c: float):
    """kOmega |e_Omega|^2 + c kR |e_R|^2 + c kOmega e_R . e_Omega."""
    return kOmega * x.e_Omega.dot(x.e_Omega) + c * x.e_R.dot(kR * x.e_R + kOmega * x.e_Omega)


def _rotation(q):
    return q[:12].reshape(3, 4)[:, :3]


def _positive(name: str, x: float) -> float:
    return number(name, x, "a positive number from 1e-50 to 1e50", lambda x: 1e-50 <= x <= 1e50)


def _default_speed(robot: Robot, distribution: np.ndarray, largest: float) -> float:
    """3 [1/s], or less if kR e_R with |e_R| <= 1 would require more than half of a joint's effort."""
    shares = np.linalg.norm(distribution, axis=1)
    driven = shares > 0.0
    torque = float((robot.limits.effort[driven] / shares[driven]).min())  # available on the hub in every direction
    return min(3.0, float(np.sqrt(0.5 * torque / largest)))


def _actuation(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """(3, nv) and (nv, 3): torque on the hub from joint torques that accelerate no wheel, and the inverse map."""
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
