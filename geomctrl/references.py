"""Desired motions on a robot's configurations: quintic point to point, sums of sinusoids, splines through waypoints.

All are products of exponentials q(t) = q0 exp(X_1 s_1(t)) ... exp(X_m s_m(t)) with constant X_k in the joints'
coordinates, so velocity and acceleration follow from the recursion of the papers' own kinematics,

    v_k = Ad_{exp(-X_k s_k)} v_{k-1} + X_k s_k',
    a_k = Ad_{exp(-X_k s_k)} a_{k-1} - ad_{X_k s_k'} Ad_{exp(-X_k s_k)} v_{k-1} + X_k s_k'',

and are consistent with q to round-off on every joint, spherical and free ones too. For joints with one degree of
freedom it is q0 + sum_k X_k s_k.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import make_interp_spline

from .arrays import checked
from .configuration import advance, difference
from .control import Desired, configuration_argument
from .errors import ArgumentError
from .jit import kernel
from .packed import IV, KIND, POSE, WIDTH, joint_coordinates, joint_twist, n_bodies, n_q, n_v
from .robot import Robot
from .screw import Ad_inv, Twist, ad, exp_se3, mul3, twist_add, twist_mul, twist_sub

__all__ = ["Quintic", "Sinusoids", "Spline", "hold"]


@kernel("Tuple((f8[::1], f8[::1], f8[::1]))(f8[::1], f8[::1], f8[:,::1], f8[:,::1])")
def product_motion(model, q0, X, s):
    """(q, v, a) of q0 exp(X[0] s[0]) exp(X[1] s[1]) ...; s (3, m): values and their first two derivatives."""
    q, v, a = q0.copy(), np.zeros(n_v(model)), np.zeros(n_v(model))
    nq = n_q(model)
    old = np.empty(nq)
    x = np.empty(n_v(model))
    for k in range(X.shape[0]):
        for j in range(x.shape[0]):
            x[j] = X[k, j] * s[0, k]
        old[:] = q
        advance(model, old, x, q)
        for i in range(n_bodies(model)):
            link = i * WIDTH
            j = int(model[link + IV])
            if int(model[link + KIND]) == POSE:
                S = joint_twist(model, link, X[k])
                T = exp_se3(Twist(mul3(s[0, k], S.w), mul3(s[0, k], S.v)))
                V, A = Ad_inv(T, joint_twist(model, link, v)), Ad_inv(T, joint_twist(model, link, a))
                dS = twist_mul(s[1, k], S)
                A = twist_add(twist_sub(A, ad(dS, V)), twist_mul(s[2, k], S))
                V = twist_add(V, dS)
                joint_coordinates(model, link, twist_sub(V, joint_twist(model, link, v)), v, 1.0)
                joint_coordinates(model, link, twist_sub(A, joint_twist(model, link, a)), a, 1.0)
            else:
                v[j] += X[k, j] * s[1, k]
                a[j] += X[k, j] * s[2, k]
    return q, v, a


class _Motion:
    """q0 and the directions X; a subclass gives s(t) (3, m)."""

    def __init__(self, robot: Robot, q0: np.ndarray, X: np.ndarray):
        self.robot, self.q0, self.X = robot, q0, np.ascontiguousarray(X)

    def scalars(self, t: float) -> np.ndarray:
        raise NotImplementedError

    def __call__(self, t: float) -> Desired:
        return Desired(*product_motion(self.robot._model, self.q0, self.X, self.scalars(t)))


class Quintic(_Motion):
    """Point to point along q0 exp(xi s(t)), at rest with zero acceleration before t0 and after t0 + duration [s].

    s = 10 u^3 - 15 u^4 + 6 u^5, u = (t - t0) / duration. Peak velocity 15/8 of the mean.
    """

    def __init__(self, robot: Robot, q0: ArrayLike, q1: ArrayLike, duration: float, t0: float = 0.0):
        if not (np.isfinite(duration) and duration > 0.0):
            raise ArgumentError(f"duration: expected a positive number of seconds, got {duration}")
        q0, q1 = configuration_argument(robot, "q0", q0), configuration_argument(robot, "q1", q1)
        super().__init__(robot, q0, difference(robot, q0, q1)[None])
        self.t0, self.duration = float(t0), float(duration)

    def scalars(self, t):
        T = self.duration
        u = min(max((t - self.t0) / T, 0.0), 1.0)
        return np.array(
            [
                [u**3 * (10.0 + u * (-15.0 + 6.0 * u))],
                [30.0 * u**2 * (1.0 - u) ** 2 / T],
                [60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / T**2],
            ]
        )


def hold(robot: Robot, q: ArrayLike) -> Quintic:
    """The reference that stays at q."""
    return Quintic(robot, q, q, 1.0)


class Sinusoids(_Motion):
    """Sums of sinusoids in each joint coordinate about q0: x_j(t) = sum_h amplitude[h, j] sin(2 pi f[h, j] t + phase[h, j]).

    Amplitudes [rad or m], frequencies [Hz], phases [rad]: (nv,) or (harmonics, nv) each, or numbers. On joints with
    several degrees of freedom the x_j are exponential coordinates of the second kind. With `start_at_rest` the motion
    is multiplied by a quintic blend over that many seconds, so that it starts at q0 at rest.
    """

    def __init__(
        self,
        robot: Robot,
        q0: ArrayLike,
        amplitude: ArrayLike,
        frequency: ArrayLike,
        phase: ArrayLike = 0.0,
        start_at_rest: float = 0.0,
    ):
        n = robot.nv
        super().__init__(robot, configuration_argument(robot, "q0", q0), np.eye(n))
        rows = []
        for name, x in (("amplitude", amplitude), ("frequency", frequency), ("phase", phase)):
            a = np.atleast_2d(np.asarray(x, dtype=float))
            if a.ndim != 2 or a.shape[1] not in (1, n) or not np.isfinite(a).all():
                raise ArgumentError(f"{name}: expected finite numbers of shape ({n},) or (harmonics, {n}), got {np.shape(x)}")
            rows.append(a)
        harmonics = max(len(a) for a in rows)
        for name, a in zip(("amplitude", "frequency", "phase"), rows):
            if len(a) not in (1, harmonics):
                raise ArgumentError(f"{name}: expected {harmonics} harmonics like the others, got {len(a)}")
        self.amplitude, frequency, self.phase = (np.broadcast_to(a, (harmonics, n)).copy() for a in rows)
        self.omega = 2.0 * np.pi * frequency
        if start_at_rest < 0.0:
            raise ArgumentError(f"start_at_rest: expected seconds >= 0, got {start_at_rest}")
        self.ramp = float(start_at_rest)

    def scalars(self, t):
        angle = self.omega * t + self.phase
        sine, rate = self.amplitude * np.sin(angle), self.omega * self.amplitude * np.cos(angle)
        x = np.stack((sine.sum(0), rate.sum(0), -(self.omega**2 * sine).sum(0)))
        if t < self.ramp:
            u, T = max(t, 0.0) / self.ramp, self.ramp
            b = u**3 * (10.0 + u * (-15.0 + 6.0 * u))
            db, ddb = 30.0 * u**2 * (1.0 - u) ** 2 / T, 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / T**2
            x = np.stack((b * x[0], b * x[1] + db * x[0], b * x[2] + 2.0 * db * x[1] + ddb * x[0]))
        return x


class Spline(_Motion):
    """The quintic spline through waypoints (m, nq) at increasing times (m,), at rest with zero acceleration at both ends.

    On the group it is the cumulative form: factor k moves by exp(log(q_{k-1}^-1 q_k) s_k(t)), s_k the spline through
    0 before waypoint k and 1 from it on. On joints with one degree of freedom that is the ordinary spline. It holds
    still before the first and after the last waypoint.
    """

    def __init__(self, robot: Robot, times: Sequence[float], waypoints: ArrayLike):
        t, q = np.asarray(times, dtype=float), checked("waypoints", waypoints, (robot.nq,))
        if q.ndim != 2 or len(q) < 2:
            raise ArgumentError(f"waypoints: expected shape (m, {robot.nq}) with m >= 2, got {q.shape}")
        if t.shape != (len(q),) or not np.isfinite(t).all() or (np.diff(t) <= 0.0).any():
            raise ArgumentError(f"times: expected {len(q)} increasing times, one a waypoint, got {times!r}")
        super().__init__(robot, configuration_argument(robot, "waypoints[0]", q[0]), difference(robot, q[:-1], q[1:]))
        steps = np.tril(np.ones((len(q), len(q) - 1)), -1)
        rest = [(1, np.zeros(len(q) - 1)), (2, np.zeros(len(q) - 1))]
        spline = make_interp_spline(t, steps, k=5, bc_type=(rest, rest))
        self.splines = [spline, spline.derivative(1), spline.derivative(2)]
        self.t0, self.t1 = t[0], t[-1]

    def scalars(self, t):
        if self.t0 < t < self.t1:
            return np.array([f(t) for f in self.splines])
        s = np.zeros((3, len(self.X)))
        s[0] = float(t >= self.t1)
        return s
