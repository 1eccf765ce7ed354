"""Robots with elastic joints: the plant, smooth references, and control by feedback linearisation (Spong 1987).

Between the motor and the link of joint i there is a spring. With q the links', theta the motors' coordinates (after the
gears), stiffness K and rotor inertia B per joint

    M(q) a + C(q, v) v + g(q) = K (theta - q),        B theta'' + K (theta - q) = tau_m.

q is a flat output: with tau = K (theta - q) the rigid robot's inverse dynamics, theta = q + K^-1 tau, and the motor
torque B theta'' + tau needs tau'' and with it q up to its fourth derivative, which `inverse_dynamics_rates` gives in
O(n) (Mueller 2018 section 6.3; De Luca 1998). Joints have one degree of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.control.contracts import Command, Desired, Lyapunov
from geomctrl.control.plant import Friction, Plant
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot
from geomctrl.terms.derivatives import inverse_dynamics_derivatives
from geomctrl.terms.time_derivatives import inverse_dynamics_rates

__all__ = ["ElasticJoint", "ElasticPlant", "Harmonic", "RestToRest", "SmoothReference", "with_rotors"]


def _per_joint(name: str, x: ArrayLike, n: int) -> np.ndarray:
    a = checked(name, x, ())
    if a.shape not in ((), (n,)) or (a <= 0.0).any():
        raise ArgumentError(f"{name}: expected a positive number or {n} of them, one a joint, got {x!r:.80}")
    return np.broadcast_to(a, n).copy()


def with_rotors(robot: Robot, rotor: ArrayLike) -> Robot:
    """The robot and its n rotors as 2n bodies: configuration (q, theta), mass matrix diag(M(q), B).

    rotor: inertia B per joint after the gears [kg m^2, kg], a number or (nv,). Rotors turn about axes fixed in the
    world: that their housings move with the links is Spong's usual neglect, right for high gear ratios.
    """
    if robot.nq != robot.nv or any(joint.dof != 1 for joint in robot.joints):
        wide = next(joint.name for joint in robot.joints if joint.dof != 1)
        raise ArgumentError(
            f"robot: elastic joints must have one degree of freedom, {wide!r} of {robot.name!r} has more"
        )
    B = _per_joint("rotor", rotor, robot.nv)
    names = [robot.body_names[p] if p >= 0 else None for p in robot.parents]
    bodies = [Body(*x) for x in zip(robot.body_names, names, robot.joints, robot.placements, robot.parameters)]
    for joint, b in zip(robot.joints, B):
        spin = Joint.revolute((0, 0, 1), name=f"{joint.name}_rotor")
        load = inertia.from_com(b, (0, 0, 0), b * np.eye(3))  # its mass moves nothing: on the axis, at height zero
        bodies.append(Body(f"{joint.name}_rotor", None, spin, None, load))
    own = (*robot.body_names, "world")
    frames = [
        (f.name, robot.body_names[f.body] if f.body >= 0 else "world", f.placement)
        for f in robot.frames
        if f.name not in own
    ]
    return Robot.build(
        bodies, name=f"{robot.name} with elastic joints", gravity=robot.gravity, frames=frames, physical=False
    )


class ElasticPlant(Plant):
    """The true robot with elastic joints, for `simulate`: state (q, theta) and its rates, torques (2 nv,).

    Torques act on links (the first nv, as a rule zero) and motors. stiffness K [N m/rad, N/m], rotor B [kg m^2, kg]:
    numbers or (nv,). friction, f_ext: as for `Plant`, of the 2 nv coordinates and of `with_rotors`' bodies.
    """

    links: Robot
    stiffness: np.ndarray

    def __init__(
        self, robot: Robot, stiffness: ArrayLike, rotor: ArrayLike, friction: Friction | str | None = None, f_ext=None
    ):
        super().__init__(with_rotors(robot, rotor), friction, f_ext)
        object.__setattr__(self, "links", robot)
        object.__setattr__(self, "stiffness", _per_joint("stiffness", stiffness, robot.nv))

    def with_springs(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """The torques (2 nv,) on links and motors, springs included."""
        n = len(self.stiffness)
        spring = self.stiffness * (q[n:] - q[:n])
        return tau + np.concatenate((spring, -spring))

    def acceleration(self, t, q, v, tau):
        return super().acceleration(t, q, v, self.with_springs(q, tau))

    def power(self, t, q, v, tau):
        return super().power(t, q, v, self.with_springs(q, tau))

    def rate(self, t, q, v, tau, out):
        self._rate(t, q, v, tau, out)

    def spring_energy(self, q: np.ndarray) -> np.ndarray:
        """1/2 (theta - q) . K (theta - q) (...,) [J]."""
        n = len(self.stiffness)
        return 0.5 * ((q[..., n:] - q[..., :n]) ** 2 * self.stiffness).sum(axis=-1)


# --- references that are smooth enough ---------------------------------------------------------------------------


class SmoothReference(Protocol):
    """A desired motion of the links: t -> q and its first four time derivatives, rows of (5, nv)."""

    def __call__(self, t: float) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Harmonic:
    """q0 + amplitude sin(2 pi frequency t + phase), (nv,) or numbers each [rad or m, Hz, rad]."""

    q0: ArrayLike
    amplitude: ArrayLike
    frequency: ArrayLike
    phase: ArrayLike = 0.0

    def __post_init__(self):
        n = checked("q0", self.q0, ()).shape
        for name in ("amplitude", "frequency", "phase"):
            if checked(name, getattr(self, name), ()).shape not in ((), n):
                raise ArgumentError(f"{name}: expected a number or {n[0] if n else 1}, as many as q0 has")

    def __call__(self, t: float) -> np.ndarray:
        w = 2.0 * np.pi * np.asarray(self.frequency, float)
        angle = w * t + np.asarray(self.phase, float)
        k = np.arange(5)[:, None]
        sine = np.sin(angle + 0.5 * np.pi * k)  # each derivative leads by a quarter turn
        out = np.zeros((5, np.size(self.q0))) + np.asarray(self.amplitude, float) * w**k * sine
        out[0] += self.q0
        return out


@dataclass(frozen=True, eq=False)
class RestToRest:
    """From q0 to q1 in `duration` seconds by the polynomial of degree nine, four derivatives zero at both ends."""

    q0: ArrayLike
    q1: ArrayLike
    duration: float

    def __post_init__(self):
        if checked("q1", self.q1, ()).shape != (shape := checked("q0", self.q0, ()).shape):
            raise ArgumentError(f"q1: expected shape {shape}, that of q0, got {np.shape(self.q1)}")
        if checked("duration", self.duration, ()).shape != () or self.duration <= 0.0:
            raise ArgumentError(f"duration: expected a positive number of seconds, got {self.duration!r:.80}")

    def __call__(self, t: float) -> np.ndarray:
        u = min(max(t / self.duration, 0.0), 1.0)
        s = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
        blend = np.array([(s.deriv(k) if k else s)(u) / self.duration**k for k in range(5)])
        out = np.outer(blend, np.subtract(self.q1, self.q0))
        out[0] += self.q0
        return out


# --- the controller ----------------------------------------------------------------------------------------------


class ElasticJoint:
    """tau_m = B theta'' + K (theta - q) for the theta'' that makes e'''' + 4 w e''' + 6 w^2 e'' + 4 w^3 e' + w^4 e = 0.

    e = q - q_d, w the bandwidth [1/s], a number or (nv,): all four poles of a joint are at -w. The state (q, theta) and
    its rates is measured; acceleration and jerk follow from the model,

        M a = K (theta - q) - C v - g,      M a' = K (theta' - v) - (tau' at a' = 0),

    and theta'' = a + K^-1 tau'' from the fourth derivative that is wanted. With x = (e, e'/w, e''/w^2, e'''/w^3) and
    w N x = x' the Lyapunov function of the proof is V = sum_joints x . P x / w, N^T P + P N = -1, V' = - |x|^2.
    """

    def __init__(
        self,
        robot: Robot,
        reference: SmoothReference,
        stiffness: ArrayLike,
        rotor: ArrayLike,
        bandwidth: ArrayLike = 10.0,
    ):
        n = robot.nv
        self.links, self.robot = robot, with_rotors(robot, rotor)
        self.K, self.B = _per_joint("stiffness", stiffness, n), _per_joint("rotor", rotor, n)
        self.w = _per_joint("bandwidth", bandwidth, n)
        if not callable(reference) or np.shape(reference(0.0)) != (5, n):
            raise ArgumentError(f"reference: expected a function t -> (5, {n}), q_d and its four derivatives")
        self.smooth = reference
        N = np.diag(np.ones(3), 1)
        N[3] = -1.0, -4.0, -6.0, -4.0
        from scipy.linalg import solve_continuous_lyapunov

        self.P = solve_continuous_lyapunov(N.T, -np.eye(4))

    def start(self):
        return None

    def reference(self, t: float) -> Desired:
        """The desired motion of links and motors, theta = q + K^-1 tau and two derivatives from the flat output."""
        d = self.smooth(t)
        theta = d[:3] + inverse_dynamics_rates(self.links, d[0].copy(), d[1:].copy()) / self.K
        return Desired(*np.hstack((d[:3], theta)))

    def motion(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(5, nv): q, v, a, a' of the links from the state (2 nv,) twice; the last row is left at zero."""
        n = len(self.K)
        out = np.zeros((5, n))
        out[0], out[1] = q[:n], v[:n]
        out[2] = self.links.forward_dynamics(out[0], out[1], self.K * (q[n:] - q[:n]))
        d = inverse_dynamics_derivatives(self.links, *out[:3])
        out[3] = np.linalg.solve(d.da, self.K * (v[n:] - v[:n]) - d.dq @ out[1] - d.dv @ out[2])
        return out

    def errors(self, t: float, motion: np.ndarray, desired: np.ndarray) -> np.ndarray:
        """x (4, nv): e and its derivatives over powers of the bandwidth."""
        return (motion[:4] - desired[:4]) / self.w ** np.arange(4)[:, None]

    def __call__(self, t, q, v, z):
        n, motion, desired = len(self.K), self.motion(q, v), self.smooth(t)
        x = self.errors(t, motion, desired)
        motion[4] = desired[4] - self.w**4 * (x[0] + 4.0 * x[1] + 6.0 * x[2] + 4.0 * x[3])
        tau, _, tau_ddot = inverse_dynamics_rates(self.links, motion[0], motion[1:])
        motor = self.B * (motion[2] + tau_ddot / self.K) + tau
        return Command(np.concatenate((np.zeros(n), motor)), None, {"e": x[0]})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        x = self.errors(t, self.motion(q, v), self.smooth(t))
        return Lyapunov(float(np.einsum("ak,ab,bk,k->", x, self.P, x, 1.0 / self.w)), -float((x * x).sum()))
