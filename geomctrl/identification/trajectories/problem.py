"""Exciting trajectories: motions within a robot's limits that tell its base parameters apart.

q(t) is linear in its coefficients, a finite Fourier series or a quintic spline, at rest with zero acceleration at both
ends (the linear conditions are eliminated). The cost is the logarithm of the condition number of the base regressor
with columns of unit length, or minus the mean logarithm of the information matrix' determinant; limits are logarithmic
barriers, so that every iterate respects them.

The gradient is exact, and takes no derivative of the regressor's formulas: a revolute joint enters Y through sines and
cosines of q_k up to the second harmonic, so that dY/dq_k is a fixed combination of Y at four shifted angles ("parameter
shift rule": Wierichs, Izaac, Wang, Lin 2022, eq. 9); a prismatic one enters as a polynomial of degree two, like every
velocity, for which the central difference is exact; and accelerations enter linearly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, count, number
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import ExcitationError
from geomctrl.identification.model import RegressorModel
from geomctrl.robot import Robot

from .trajectory import Trajectory, basis_functions

# f'(0) = sum_k WEIGHTS_k f(SHIFTS_k) for f with harmonics up to the second: (-1)^(k-1) / (4 R sin^2(x_k / 2)), R = 2
SHIFTS = (2.0 * np.arange(1, 5) - 1.0) * np.pi / 4.0
WEIGHTS = np.array([1.0, -1.0, 1.0, -1.0]) / (8.0 * np.sin(0.5 * SHIFTS) ** 2)


@dataclass(frozen=True, eq=False)
class Limits:
    """Of positions, velocities, accelerations and efforts (nv,), the last three in both directions."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray


def limits_of(
    robot: Robot,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
) -> Limits:
    """The limits given, the robot's where not; see `optimize`. Raises ArgumentError."""
    if any(j.kind not in ("revolute", "prismatic") for j in robot.joints):
        raise ArgumentError("model: exact gradients are for revolute and prismatic joints")
    n, own = robot.nv, robot.limits
    reach = np.where([j.kind == "revolute" for j in robot.independent_joints], np.pi, 1.0)
    lower = _limit("lower", lower, np.where(np.isfinite(own.lower), own.lower, -reach), n)
    upper = _limit("upper", upper, np.where(np.isfinite(own.upper), own.upper, reach), n)
    velocity = _limit("velocity", velocity, own.velocity, n)
    if not np.isfinite(velocity).all():
        name = robot.dof_names[int(np.argmin(np.isfinite(velocity)))]
        raise ArgumentError(f"velocity: joint {name!r} has no limit in the model: give one")
    acceleration = _limit("acceleration", acceleration, velocity / 0.25, n)
    effort = _limit("effort", effort, own.effort, n)
    if not np.isfinite(upper - lower).all():
        raise ArgumentError("lower, upper: expected finite positions")
    for name, x in (("velocity", velocity), ("acceleration", acceleration), ("effort", effort)):
        if x.min() <= 0.0:
            raise ArgumentError(f"limits: {name}: expected positive numbers, got {x.min():g}")
    if (lower >= upper).any():
        raise ArgumentError("limits: lower, upper: expected lower < upper")
    return Limits(lower, upper, velocity, acceleration, effort)


def _limit(name, given, default, n):
    x = default if given is None else checked(name, given, (), finite=False)
    if x.shape not in ((), (n,)) or np.isnan(x).any():
        raise ArgumentError(f"{name}: expected a number or {n}, one a joint, got {given!r:.80}")
    return np.broadcast_to(x, (n,)).astype(float)


class Problem:
    """Cost and exact gradient in z: the coefficients in the null space of the conditions at rest, joint after joint."""

    def __init__(
        self,
        model: RegressorModel,
        limits: Limits,
        duration: float,
        kind: str,
        terms: int,
        objective: str,
        samples: int,
    ):
        robot = model.robot
        choice("kind", kind, ("fourier", "spline"))
        choice("objective", objective, ("condition", "log_det"))
        duration, terms, samples = number("duration", duration), count("terms", terms), count("samples", samples)
        if not duration > 0.0 or terms < 2 or samples < 20:
            raise ArgumentError(
                f"duration, terms, samples: expected > 0 s, >= 2, >= 20, got {duration}, {terms}, {samples}"
            )
        if model.curves or model.columns:
            raise ArgumentError("model: optimise the excitation without friction curves and columns of one's own")
        self.model, self.robot, self.objective, self.limits = model, robot, objective, limits
        self.kind, self.duration = kind, float(duration)
        self.revolute = [j.kind == "revolute" for j in robot.independent_joints]
        self.columns = model.base.columns
        self.nk = 2 * terms + 1 if kind == "fourier" else terms + 6
        self.t = np.linspace(0.0, self.duration, samples, endpoint=kind != "fourier")
        ends = basis_functions(kind, self.duration, self.nk, np.array([0.0, self.duration]))
        rest = np.concatenate((ends[1], ends[2]))  # velocities and accelerations at both ends
        _, s, Vt = np.linalg.svd(rest)
        self.Z = Vt[(s > 1e-9 * s[0]).sum() :].T  # (nk, free)
        self.B = basis_functions(kind, self.duration, self.nk, self.t) @ self.Z  # (3, N, free)
        self.pi = model.prior

    def trajectory(self, z) -> Trajectory:
        return Trajectory(self.kind, self.duration, self.Z @ z.reshape(self.robot.nv, -1).T)

    def states(self, z):
        return self.B @ z.reshape(self.robot.nv, -1).T

    def start(self, rng, q0):
        """A random motion that keeps half of every limit, about q0."""
        limits = self.limits
        middle = 0.5 * (limits.lower + limits.upper) if q0 is None else checked("q0", q0, ())
        if middle.shape != (self.robot.nv,) or (middle <= limits.lower).any() or (middle >= limits.upper).any():
            raise ArgumentError(f"q0: expected a configuration strictly within the limits, got {q0}")
        still = np.linalg.lstsq(self.B[0], np.ones((len(self.t), 1)), rcond=None)[0][:, 0]  # constant functions
        move = rng.normal(size=(self.robot.nv, self.B.shape[2]))
        q, v, a = self.B @ move.T
        q -= q.mean(0)
        move -= np.outer((self.B[0] @ move.T).mean(0), still)
        room = np.minimum(limits.upper - middle, middle - limits.lower)
        scale = 0.5 * np.minimum(
            np.minimum(room / np.abs(q).max(0), limits.velocity / np.abs(v).max(0)),
            limits.acceleration / np.abs(a).max(0),
        )
        for _ in range(40):
            z = (np.outer(middle, still) + scale[:, None] * move).ravel()
            if np.isfinite(self.cost(z, 1.0)[0]):
                return z
            scale *= 0.7
        raise ExcitationError(
            "no motion within the limits about q0: does holding still already take more than the effort limits?"
        )

    def regressor(self, q, v, a):
        return self.model.regressor(q, v, a)

    def value(self, z):
        W = self.regressor(*self.states(z))[..., self.columns]
        return self._criterion(W.reshape(-1, W.shape[-1]))[0]

    def cost(self, z, barrier) -> tuple[float, np.ndarray]:
        """(cost, gradient); (inf, nothing) outside the limits."""
        limits = self.limits
        q, v, a = self.states(z)
        pairs = [(q - limits.lower, 0, 1.0), (limits.upper - q, 0, -1.0)]
        pairs += [
            (lim + sign * x, k, sign)
            for lim, x, k in ((limits.velocity, v, 1), (limits.acceleration, a, 2))
            for sign in (1.0, -1.0)
        ]
        widths = [limits.upper - limits.lower] * 2 + [limits.velocity] * 2 + [limits.acceleration] * 2
        if any((room <= 0.0).any() for room, _, _ in pairs):
            return np.inf, np.zeros(0)
        Y = self.regressor(q, v, a)
        tau = Y @ self.pi + self.model.known_armature * a
        finite = np.isfinite(limits.effort)
        if (np.abs(tau) >= limits.effort).any():
            return np.inf, np.zeros(0)
        W = Y[..., self.columns]
        f, G = self._criterion(W.reshape(-1, W.shape[-1]))
        full = np.zeros_like(Y)
        full[..., self.columns] = G.reshape(W.shape)
        weight = barrier / q.size
        grad = np.zeros((3, *q.shape))
        for (room, k, sign), width in zip(pairs, widths):
            f -= weight * np.log(room / width).sum()
            grad[k] -= weight * sign / room
        if finite.any():
            for sign in (1.0, -1.0):
                room = (limits.effort + sign * tau)[:, finite]
                f -= weight * np.log(room / limits.effort[finite]).sum()
                full[:, finite] -= (weight * sign / room)[..., None] * self.pi
                grad[2][:, finite] -= weight * sign / room * self.model.known_armature[finite]
        grad += self.contract(full, q, v, a, Y)
        gradient = np.einsum("dtk,dtj->jk", self.B, grad).ravel()
        return float(f), gradient

    def contract(self, G, q, v, a, Y):
        """(3, N, nv): derivatives of sum G Y by q, v and a, exactly."""
        n, inertial = self.robot.nv, self.model.inertial
        out = np.zeros((3, *q.shape))
        Gi = np.ascontiguousarray(G[..., :inertial])

        def along(q, v, a):
            return np.einsum("tkp,tkp->t", Gi, self.robot.regressor(q, v, a))

        here = np.einsum("tkp,tkp->t", Gi, Y[..., :inertial])
        for k in range(n):
            e = np.zeros(n)
            e[k] = 1.0
            if self.revolute[k]:
                out[0, :, k] = sum(w * along(q + s * e, v, a) for s, w in zip(SHIFTS, WEIGHTS))
            else:
                out[0, :, k] = 0.5 * (along(q + e, v, a) - along(q - e, v, a))
            out[1, :, k] = 0.5 * (along(q, v + e, a) - along(q, v - e, a))
            out[2, :, k] = along(q, v, a + e) - here
        m = self.model
        T = m.transmission
        if m.smoothing > 0.0:
            slope = 1.0 / np.cosh(np.clip(v @ T.T / m.smoothing, -300.0, 300.0)) ** 2 / m.smoothing
        else:
            slope = np.zeros((len(q), len(T)))
        for kind, order in (("viscous", 1), ("coulomb", 1), ("rotor", 2)):
            for column, k in zip(m.indices(kind), m.acts[kind]):
                g = G[..., column] @ T[k]
                out[order] += (g * (slope[:, k] if kind == "coulomb" else 1.0))[:, None] * T[k]
        for column, k in zip(m.indices("stiffness"), m.springs):
            out[0, :, k] += G[:, k, column]
        return out

    def _criterion(self, W) -> tuple[float, np.ndarray]:
        """(cost, its derivative by W)."""
        if self.objective == "log_det":
            rows = len(W)
            Q, R = np.linalg.qr(W)
            diagonal = np.abs(np.diag(R))
            if diagonal.min() <= 1e-12 * diagonal.max():
                return np.inf, W
            nb = W.shape[1]
            f = -2.0 * np.log(diagonal / np.sqrt(rows)).sum() / nb
            return f, -(2.0 / nb) * np.linalg.solve(R, Q.T).T
        length = np.linalg.norm(W, axis=0)
        if length.min() <= 1e-12 * length.max():
            return np.inf, W
        U = W / length
        s, V = np.linalg.eigh(U.T @ U)
        if s[0] <= 1e-14 * s[-1]:
            return np.inf, W
        f = 0.5 * np.log(s[-1] / s[0])
        G = np.outer(U @ V[:, -1], V[:, -1]) / s[-1] - np.outer(U @ V[:, 0], V[:, 0]) / s[0]
        return f, (G - U * np.sum(U * G, axis=0)) / length

    def measures(self, trajectory):
        t = np.linspace(0.0, self.duration, 1000)
        W = self.regressor(*trajectory.at(t))[..., self.columns]
        W = W.reshape(-1, W.shape[-1])
        s = np.linalg.svd(W / np.linalg.norm(W, axis=0), compute_uv=False)
        diagonal = np.abs(np.diag(np.linalg.qr(W, mode="r")))
        return float(s[0] / s[-1]), float(2.0 * np.log(diagonal / np.sqrt(len(W))).mean())

    def margin(self, trajectory):
        """Smallest distance from a limit on a fine grid, as a fraction of it; negative outside."""
        limits = self.limits
        t = np.linspace(0.0, self.duration, 20 * len(self.t))
        q, v, a = trajectory.at(t)
        tau = self.model.torque(self.pi, q, v, a)
        width = 0.5 * (limits.upper - limits.lower)
        rooms = [(q - limits.lower) / width, (limits.upper - q) / width]
        rooms += [
            1.0 - np.abs(x) / limit
            for x, limit in ((v, limits.velocity), (a, limits.acceleration), (tau, limits.effort))
        ]
        return float(min(r.min() for r in rooms))

    def shrunk(self, z) -> Trajectory:
        """The motion, drawn together about its mean until it keeps its limits between the samples too."""
        out = self.trajectory(z)
        for _ in range(60):
            if self.margin(out) >= 0.0:
                return out
            c = out.coefficients
            mean = np.linalg.lstsq(
                out.basis(self.t)[0], np.broadcast_to(out.at(self.t)[0].mean(0), (len(self.t), c.shape[1])), rcond=None
            )[0]
            out = Trajectory(out.kind, out.duration, mean + 0.98 * (c - mean))
        raise ExcitationError("the motion leaves its limits between the samples: raise `samples`")
