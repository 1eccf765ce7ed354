"""Geometric tracking control of a quadrotor on SE(3) (Lee, Leok, McClamroch 2010): position and heading."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import is_a, number, shown
from geomctrl.control.attitude import AttitudeError, FlatOutputs, attitude_error, heading, require_flying, thrust_frame
from geomctrl.control.contracts import Command, Lyapunov, time
from geomctrl.control.plant import Plant
from geomctrl.controllers._model_based import Law
from geomctrl.controllers.attitude_tracking import attitude_loss, cross_limit
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class Flight(NamedTuple):
    """Errors of a state: e_x and e_v (3,) in the world, thrust f along b3 (3,), desired force A (3,), and the
    AttitudeError with respect to the frame whose third axis is along A."""

    e_x: np.ndarray
    e_v: np.ndarray
    f: Any
    b3: np.ndarray
    A: np.ndarray
    attitude: AttitudeError


class QuadrotorTracking(Law):
    """Tracking of position and heading: f = A . R e_3,  M = -kR e_R - kOmega e_Omega + J a_c + Omega x J Omega.

    A = -kx e_x - kv e_v + m (x_d'' - g) is the desired force, and tau = (M, (0, 0, f)) the wrench of four thrusts in
    body axes.

    Parameters
    ----------
    robot : Robot
        One body on a free joint, with its centre of mass at the origin.
    reference : FlatOutputs
        The desired motion.
    kx, kv : float, optional
        Position gains; default 16 m [N/m] and 5.6 m [N s/m], with the mass m.
    kR, kOmega : float, optional
        Attitude gains; default 64/s^2 [N m] and 18.4/s [N m s] times the largest moment of inertia: the values of the
        paper, 8.81 N m and 2.53 N m s for the bundled model.
    reach : float
        Largest position error of the domain [m]. Default 1.
    acceleration : float
        Largest desired acceleration of the domain [m/s^2]. Default 5.
    psi : float
        Largest attitude error Psi of the domain, below 1. Default 0.5.

    Raises
    ------
    ArgumentError
        For another robot or reference, for gains or bounds that are not positive, and for psi >= 1.

    Notes
    -----
    e_x = x - x_d and its rate e_v are in world axes. The attitude errors, `control.attitude.AttitudeError`, refer to
    the frame R_c with the third axis along A and the first axis closest to the heading. Its rates Omega_c,
    Omega_c' follow from A', A'' with acceleration and jerk of the model, without differences. With X = f R e_3 - A

    V  = 1/2 kx |e_x|^2 + 1/2 m |e_v|^2 + c1 m e_x . e_v + mu (1/2 e_Omega . J e_Omega + kR Psi + c2 e_R . J e_Omega)
    V' = -(kv - c1 m) |e_v|^2 - c1 kx |e_x|^2 - c1 kv e_x . e_v + X . (c1 e_x + e_v)
         + mu (-kOmega |e_Omega|^2 - c2 kR |e_R|^2 - c2 kOmega e_R . e_Omega + c2 e_R' . J e_Omega)

    Because |X| <= (kx |e_x| + kv |e_v| + m |x_d'' - g|) |e_R| for Psi < 1, V is positive definite and V' negative
    except at the equilibrium for Psi <= psi, |e_x| <= reach, |x_d''| <= acceleration. With alpha^2 = psi (2 - psi) this
    requires

    c1 < kx kv (1 - alpha)^2 / (m kx (1 - alpha) + kv^2 (1 + alpha)^2 / 4),    c1 < sqrt(kx / m),

    c2 below the limit of c in `AttitudeTracking`, and a sufficiently large mu. c1 and c2 (half of their limits) and mu
    are computed for any gains. From states with `in_domain` errors decrease exponentially, and Psi and e_x stay within
    the domain. From other states with Psi < 2 and small e_Omega the attitude enters the domain first (see the paper). A
    must not vanish on the way, as it does in free fall.

    (T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)", CDC 2010,
    position-tracking law, with z up. The cross term with J is that of Goodarzi, Lee, Lee, ECC 2013. The weight mu,
    which removes conditions on kR and kOmega, is our addition.)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> body = gc.models.quadrotor()
    >>> path = gc.references.RestToRest((0, 0, 1, 0), (1, 0, 1, 0), 4.0)  # x, y, z [m], heading [rad]
    >>> law = gc.controllers.QuadrotorTracking(body, gc.control.FlatOutputs(body, path))
    >>> start = law.reference(0.0)
    >>> bool(law.in_domain(0.0, start.q, start.v))
    True
    """

    def __init__(
        self,
        robot: Robot,
        reference: FlatOutputs,
        kx: float | None = None,
        kv: float | None = None,
        kR: float | None = None,
        kOmega: float | None = None,
        *,
        psi: float = 0.5,
        reach: float = 1.0,
        acceleration: float = 5.0,
    ):
        require_flying("robot", robot)
        if not is_a(reference, FlatOutputs):
            raise ArgumentError(f"reference: expected a geomctrl.control.FlatOutputs, got {shown(reference)}")
        self.robot, self.reference = robot, reference
        self.mass, self.J = inertia_of(robot)
        moments = np.linalg.eigvalsh(self.J)
        least, largest = float(moments[0]), float(moments[-1])
        self.kx, self.kv = _positive("kx", 16.0 * self.mass, kx), _positive("kv", 5.6 * self.mass, kv)
        self.kR, self.kOmega = _positive("kR", 64.0 * largest, kR), _positive("kOmega", 18.4 * largest, kOmega)
        self.psi = number("psi", psi, "a number between 0 and 1", lambda x: 0.0 < x < 1.0)
        self.reach = _positive("reach", 0.0, reach)
        self.acceleration = number("acceleration", acceleration, "a number >= 0", lambda x: x >= 0.0)
        self.c2 = 0.5 * cross_limit(self.kR, self.kOmega, least, largest)
        self.c1, self.mu = self._weights(largest)

    def _weights(self, largest: float) -> tuple[float, float]:
        """c1 and mu: with z = (|e_x|, |e_v|, |e_R|, |e_Omega|) V' <= - z . [[W1, -B], [-B^T, mu W2]] z."""
        m, kx, kv = self.mass, self.kx, self.kv
        alpha = np.sqrt(self.psi * (2.0 - self.psi))
        limit = kx * kv * (1.0 - alpha) ** 2 / (m * kx * (1.0 - alpha) + 0.25 * kv**2 * (1.0 + alpha) ** 2)
        c1 = 0.5 * min(limit, np.sqrt(kx / m))
        mixed = -0.5 * c1 * kv * (1.0 + alpha)
        W1 = np.array([[c1 * kx * (1.0 - alpha), mixed], [mixed, kv * (1.0 - alpha) - c1 * m]])
        weight = m * (float(np.linalg.norm(self.robot.gravity)) + self.acceleration)
        b = 0.5 * np.array([c1 * weight, weight + kx * self.reach])  # B = (b, 0)
        left = self.c2 * self.kR - (0.5 * self.c2 * self.kOmega) ** 2 / (self.kOmega - self.c2 * largest)
        return c1, 2.0 * float(b @ np.linalg.solve(W1, b)) / left

    def start(self):
        return None

    def _flight(self, t: float, q: np.ndarray, v: np.ndarray) -> Flight:
        """The Flight of the state (q, v) at time t."""
        m, g, rows = self.mass, self.robot.gravity, self.reference.outputs(time(t))
        pose, x_d = q.reshape(3, 4), rows[:, :3]
        R, Omega = pose[:, :3], v[:3]
        b3, b3_rate = R[:, 2], R @ np.array([Omega[1], -Omega[0], 0.0])
        e_x, e_v = pose[:, 3] - x_d[0], R @ v[3:] - x_d[1]
        A = m * (x_d[2] - g) - self.kx * e_x - self.kv * e_v
        f = A.dot(b3)
        e_a = f / m * b3 + g - x_d[2]
        A_rate = m * x_d[3] - self.kx * e_v - self.kv * e_a
        e_j = ((A_rate.dot(b3) + A.dot(b3_rate)) * b3 + f * b3_rate) / m - x_d[3]
        A_second = m * x_d[4] - self.kx * e_a - self.kv * e_j
        frame = thrust_frame(np.array([A, A_rate, A_second]), heading(rows[:3, 3]))
        return Flight(e_x, e_v, f, b3, A, attitude_error(R, Omega, *frame))

    def __call__(self, t, q, v, z):
        x, Omega = self._flight(t, q, v), v[:3]
        a = x.attitude
        M = self.J @ a.a_d + np.cross(Omega, self.J @ Omega) - self.kR * a.e_R - self.kOmega * a.e_Omega
        tau = np.concatenate((M, np.array([0.0, 0.0, scalar(x.f)])))
        return Command(tau, None, {"e": x.e_x, "Psi": a.Psi, "thrust": scalar(x.f)})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        m, J = inertia_of(plant.robot)
        e_x, e_v, f, b3, A, a = self._flight(t, q, v)
        momentum, c1, c2 = J @ a.e_Omega, self.c1, self.c2
        attitude = 0.5 * a.e_Omega.dot(momentum) + self.kR * a.Psi + c2 * a.e_R.dot(momentum)
        V = 0.5 * self.kx * e_x.dot(e_x) + m * e_v.dot(0.5 * e_v + c1 * e_x) + self.mu * attitude
        damped = (self.kv - c1 * m) * e_v.dot(e_v) + c1 * e_x.dot(self.kx * e_x + self.kv * e_v)
        turned = c2 * a.e_R_rate.dot(momentum) - attitude_loss(a, self.kR, self.kOmega, c2)
        return Lyapunov(scalar(V), scalar((f * b3 - A).dot(c1 * e_x + e_v) - damped + self.mu * turned))

    def in_domain(self, t: float, q: np.ndarray, v: np.ndarray) -> bool:
        """Whether the proof holds from this state on, so that Psi <= psi and |e_x| <= reach for all times.

        The test is 1/2 e_Omega . J e_Omega + kR Psi <= kR psi and V <= 1/2 (kx - c1^2 m) reach^2; neither grows."""
        a = self._flight(t, q, v).attitude
        V = self.lyapunov(t, q, v, None, Plant(self.robot)).value
        turning = 0.5 * a.e_Omega @ self.J @ a.e_Omega + self.kR * a.Psi
        near = 0.5 * (self.kx - self.c1**2 * self.mass) * self.reach**2 >= V
        return bool(turning <= self.kR * self.psi and near)


def inertia_of(robot: Robot) -> tuple[Any, np.ndarray]:
    """The mass and the inertia (3, 3) of the only body."""
    p = robot.parameters[0]
    return p[0], np.array([[p[4], p[5], p[7]], [p[5], p[6], p[8]], [p[7], p[8], p[9]]])


def _positive(name: str, default: float, x: float | None) -> float:
    return number(
        name, default if x is None else x, "a positive number from 1e-50 to 1e50", lambda x: 1e-50 <= x <= 1e50
    )
