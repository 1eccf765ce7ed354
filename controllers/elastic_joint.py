"""Control of robots with elastic joints by feedback linearisation (Spong 1987).

On the plant of `geomctrl.control.elastic_joints`,

    M(q) a + C(q, v) v + g(q) = K (theta - q),        B theta'' + K (theta - q) = tau_m,

q is a flat output: tau = K (theta - q) is the inverse dynamics of the rigid robot, theta = q + K^-1 tau, and the motor
torque B theta'' + tau needs tau'' and thus q up to its fourth derivative. `inverse_dynamics_rates` computes it in O(n)
(Mueller 2018 section 6.3; De Luca 1998). Joints have one degree of freedom.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import is_a, one_state, shown
from geomctrl.control.contracts import Command, Desired, Lyapunov, time
from geomctrl.control.elastic_joints import per_joint, with_rotors
from geomctrl.control.references import SmoothReference
from geomctrl.controllers._model_based import Law
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.robot import Robot
from geomctrl.terms.derivatives import inverse_dynamics_derivatives, inverse_dynamics_rates
from geomctrl.tracing.numbers import scalar


class ElasticJoint(Law):
    """Feedback linearisation: tau_m = B theta'' + K (theta - q), e'''' + 4 w e''' + 6 w^2 e'' + 4 w^3 e' + w^4 e = 0.

    Parameters
    ----------
    robot : Robot
        The rigid robot.
    reference : SmoothReference
        A function t -> (5, nv), the desired link motion q_d and its first four derivatives.
    stiffness : float or (nv,)
        K [N m/rad, N/m].
    rotor : float or (nv,)
        Rotor inertia B after the gears [kg m^2, kg].
    bandwidth : float or (nv,)
        w [1/s]; all four poles of a joint are at -w. Default 10.

    Raises
    ------
    ArgumentError
        If a number has the wrong shape or sign, or if `reference` does not have four derivatives.

    Notes
    -----
    (Spong 1987; De Luca 1998.) e = q - q_d. The law measures (q, theta) and their rates and has no state. Acceleration
    and jerk follow from the model,

        M a = K (theta - q) - C v - g,      M a' = K (theta' - v) - (tau' at a' = 0),

    and theta'' = a + K^-1 tau'' from the desired fourth derivative. With x = (e, e'/w, e''/w^2, e'''/w^3) and
    x' = w N x the Lyapunov function is V = sum_joints x . P x / w, N^T P + P N = -1, V' = - |x|^2.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> motion = gc.references.Harmonic([0.3, 0.6], amplitude=0.4, frequency=0.7)
    >>> law = gc.controllers.ElasticJoint(arm, motion, 2000.0, 0.1, bandwidth=10.0)
    >>> start = law.reference(0.0)  # links and motors
    >>> bool(np.abs(law.errors(0.0, start.q, start.v)).max() < 1e-9)
    True
    """

    def __init__(
        self,
        robot: Robot,
        reference: SmoothReference,
        stiffness: ArrayLike,
        rotor: ArrayLike,
        bandwidth: ArrayLike = 10.0,
    ):
        require_robot("robot", robot)
        n = robot.nv
        self.links, self.robot = robot.with_armature(0.0), with_rotors(robot, rotor)
        self.K, self.B = per_joint("stiffness", stiffness, n), per_joint("rotor", rotor, n)
        self.w = per_joint("bandwidth", bandwidth, n)
        if (
            isinstance(reference, type)
            or not callable(reference)
            or not bool(is_a(reference, object))
            or np.shape(reference(0.0)) != (5, n)
        ):
            expected = (
                f"a function t -> (5, {n}), q_d and four derivatives, as Harmonic(...) and RestToRest(...) return"
            )
            raise ArgumentError(f"reference: expected {expected}, got {shown(reference)}")
        self.smooth = reference
        N = np.diag(np.ones(3), 1)
        N[3] = -1.0, -4.0, -6.0, -4.0
        from scipy.linalg import solve_continuous_lyapunov

        self.P = solve_continuous_lyapunov(N.T, -np.eye(4))

    def start(self):
        return None

    def reference(self, t: float) -> Desired:
        """Return the desired motion of links and motors.

        The motors follow from the flat output: theta = q + K^-1 tau, with its time derivatives.

        Parameters
        ----------
        t : float
            Time [s].

        Returns
        -------
        Desired
            q, v, a of the links, then of the motors, (2 nv,) each.
        """
        d = self.smooth(time(t))
        theta = d[:3] + inverse_dynamics_rates(self.links, d[0].copy(), d[1:].copy()) / self.K
        return Desired(*np.hstack((d[:3], theta)))

    def _motion(self, q, v):
        """(5, nv): q, v, a, a' of the links; the last row is zero."""
        n = len(self.K)
        q, v = one_state("q", q, 2 * n), one_state("v", v, 2 * n)
        out = np.zeros((5, n))
        out[0], out[1] = q[:n], v[:n]
        out[2] = self.links.forward_dynamics(out[0], out[1], self.K * (q[n:] - q[:n]))
        d = inverse_dynamics_derivatives(self.links, *out[:3])
        out[3] = np.linalg.solve(d.da, self.K * (v[n:] - v[:n]) - d.dq @ out[1] - d.dv @ out[2])
        return out

    def errors(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the scaled tracking errors of the links, of which V is the square.

        Parameters
        ----------
        t : float
            Time [s].
        q, v : array_like, shape (2 nv,)
            State of links and motors.

        Returns
        -------
        ndarray, shape (4, nv)
            e and its first three time derivatives, divided by powers of the bandwidth.
        """
        return self._errors(self._motion(q, v), self.smooth(time(t)))

    def _errors(self, motion, desired):
        return (motion[:4] - desired[:4]) / self.w ** np.arange(4)[:, None]

    def __call__(self, t, q, v, z):
        n, motion, desired = len(self.K), self._motion(q, v), self.smooth(time(t))
        x = self._errors(motion, desired)
        motion[4] = desired[4] - self.w**4 * (x[0] + 4.0 * x[1] + 6.0 * x[2] + 4.0 * x[3])
        tau, _, tau_ddot = inverse_dynamics_rates(self.links, motion[0], motion[1:])
        motor = self.B * (motion[2] + tau_ddot / self.K) + tau
        return Command(np.concatenate((np.zeros(n), motor)), None, {"e": x[0]})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        x = self.errors(t, q, v)
        return Lyapunov(scalar(np.einsum("ak,ab,bk,k->", x, self.P, x, 1.0 / self.w)), -scalar((x * x).sum()))
