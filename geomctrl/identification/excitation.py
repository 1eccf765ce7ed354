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

from geomctrl.control.contracts import Desired
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from .errors import ExcitationError
from .model import RegressorModel

# f'(0) = sum_k WEIGHTS_k f(SHIFTS_k) for f with harmonics up to the second: (-1)^(k-1) / (4 R sin^2(x_k / 2)), R = 2
SHIFTS = (2.0 * np.arange(1, 5) - 1.0) * np.pi / 4.0
WEIGHTS = np.array([1.0, -1.0, 1.0, -1.0]) / (8.0 * np.sin(0.5 * SHIFTS) ** 2)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """q(t) = sum_k basis_k(t) coefficients[k] (nk, nv) on [0, duration]; it holds still before and after.

    A `Reference`: call it with a time for Desired(q, v, a). kind: "fourier" (periodic) or "spline".
    """

    kind: str
    duration: float
    coefficients: np.ndarray

    def basis(self, t: ArrayLike) -> np.ndarray:
        """(3, N, nk): the basis and its first two time derivatives."""
        return _basis(self.kind, self.duration, len(self.coefficients), np.atleast_1d(np.asarray(t, float)))

    def at(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a (N, nv) at times t (N,)."""
        q, v, a = self.basis(t) @ self.coefficients
        return q, v, a

    def __call__(self, t: float) -> Desired:
        inside = 0.0 <= t <= self.duration
        q, v, a = (x[0] for x in self.at(min(max(t, 0.0), self.duration)))
        return Desired(q, v, a) if inside else Desired(q, np.zeros_like(q), np.zeros_like(q))


@dataclass(frozen=True, eq=False)
class Excitation:
    """An optimised trajectory beside the random one it started from.

    `condition`, `log_det` (mean log of the information's eigenvalues, columns in SI units, a row's average), and the
    same of the random start, within the same limits; `cost`: per iteration; `margin`: the smallest distance from a
    limit, as a fraction of it.
    """

    trajectory: Trajectory
    random: Trajectory
    condition: float
    log_det: float
    random_condition: float
    random_log_det: float
    cost: np.ndarray
    margin: float

    def text(self) -> str:
        return (
            f"{self.trajectory.kind} trajectory of {self.trajectory.duration:g} s, {len(self.cost) - 1} iterations\n"
            f"{'':24}{'condition':>12}{'mean log det':>14}\n"
            f"{'random, same limits':24}{self.random_condition:12.4g}{self.random_log_det:14.3f}\n"
            f"{'optimised':24}{self.condition:12.4g}{self.log_det:14.3f}\n"
            f"closest to a limit: {100 * self.margin:.1f} % of it left"
        )


def optimize(
    model: RegressorModel | Robot,
    duration: float = 10.0,
    *,
    kind: str = "fourier",
    terms: int = 5,
    objective: str = "condition",
    q0: ArrayLike | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    samples: int = 120,
    iterations: int = 120,
    seed: int = 0,
) -> Excitation:
    """A trajectory that excites the model's base parameters.

    kind="fourier": `terms` harmonics of 1 / duration; "spline": `terms` free quintic control points a joint.
    objective: "condition" or "log_det". Limits default to the robot's (position pi where it has none); acceleration
    [rad/s^2] to velocity / 0.25 s. q0: about which configuration to start, default the middle of the ranges. seed: of
    the random start. Raises ArgumentError for limits that are missing, ExcitationError if no start within the limits is
    found.
    """
    model = (
        model
        if isinstance(model, RegressorModel)
        else RegressorModel(model, viscous=False, coulomb=False, offset=False)
    )
    problem = _Problem(model, duration, kind, terms, objective, samples, lower, upper, velocity, acceleration, effort)
    rng = np.random.default_rng(seed)
    z = problem.start(rng, q0)
    first = problem.trajectory(z)
    H, costs = np.eye(len(z)), []
    barriers = (1e-1, 1e-2, 1e-3)
    for barrier in barriers:
        f, g = problem.cost(z, barrier)
        H = np.eye(len(z)) * (0.05 * np.linalg.norm(z) / max(np.linalg.norm(g), 1e-300))
        for _ in range(max(1, iterations // len(barriers))):
            costs.append(problem.value(z))
            step = -H @ g
            slope = float(g @ step)
            if slope >= 0.0:
                H = np.eye(len(z)) * 1e-3
                step, slope = -H @ g, -float(g @ H @ g)
            length = 1.0
            for _ in range(30):
                trial = problem.cost(z + length * step, barrier)
                if trial[0] <= f + 1e-4 * length * slope:
                    break
                length *= 0.4
            else:
                break
            s, y = length * step, trial[1] - g
            z, f, g = z + s, trial[0], trial[1]
            sy = float(s @ y)
            if sy > 1e-12:
                rho, Hy = 1.0 / sy, H @ y
                H += (1.0 + rho * float(y @ Hy)) * rho * np.outer(s, s) - rho * (np.outer(Hy, s) + np.outer(s, Hy))
            if -slope < 1e-9:
                break
    costs.append(problem.value(z))
    best = problem.shrunk(z)
    after, before = problem.measures(best), problem.measures(first)
    return Excitation(best, first, *after, *before, cost=np.array(costs), margin=problem.margin(best))


class _Problem:
    """Cost and exact gradient in z: the coefficients in the null space of the conditions at rest, joint after joint."""

    def __init__(self, model, duration, kind, terms, objective, samples, lower, upper, velocity, acceleration, effort):
        robot = model.robot
        if kind not in ("fourier", "spline"):
            raise ArgumentError(f"kind: expected 'fourier' or 'spline', got {kind!r}")
        if objective not in ("condition", "log_det"):
            raise ArgumentError(f"objective: expected 'condition' or 'log_det', got {objective!r}")
        whole = all(isinstance(x, (int, np.integer)) for x in (terms, samples))
        if not (np.isfinite(duration) and duration > 0.0) or not whole or terms < 2 or samples < 20:
            raise ArgumentError(
                f"duration, terms, samples: expected > 0 s, >= 2, >= 20, got {duration}, {terms}, {samples}"
            )
        if any(j.kind not in ("revolute", "prismatic") for j in robot.joints):
            raise ArgumentError("model: exact gradients are for revolute and prismatic joints")
        if model.curves or model.columns:
            raise ArgumentError("model: optimise the excitation without friction curves and columns of one's own")
        self.model, self.robot, self.objective = model, robot, objective
        self.kind, self.duration = kind, float(duration)
        self.revolute = [j.kind == "revolute" for j in robot.joints]
        self.columns = model.base.columns
        n = robot.nv
        reach = np.where(self.revolute, np.pi, 1.0)
        limits = robot.limits
        lo = np.where(np.isfinite(limits.lower), limits.lower, -reach)
        hi = np.where(np.isfinite(limits.upper), limits.upper, reach)
        self.lower, self.upper = _limit("lower", lower, lo, n), _limit("upper", upper, hi, n)
        self.velocity = _limit("velocity", velocity, limits.velocity, n)
        if not np.isfinite(self.velocity).all():
            name = robot.dof_names[int(np.argmin(np.isfinite(self.velocity)))]
            raise ArgumentError(f"velocity: joint {name!r} has no limit in the model: give one")
        self.acceleration = _limit("acceleration", acceleration, self.velocity / 0.25, n)
        self.effort = _limit("effort", effort, limits.effort, n)
        if not np.isfinite(self.upper - self.lower).all():
            raise ArgumentError("lower, upper: expected finite positions")
        if (self.lower >= self.upper).any() or min(
            self.velocity.min(), self.acceleration.min(), self.effort.min()
        ) <= 0.0:
            raise ArgumentError("limits: expected lower < upper and positive velocities, accelerations and efforts")
        self.nk = 2 * terms + 1 if kind == "fourier" else terms + 6
        self.t = (
            np.linspace(0.0, self.duration, samples, endpoint=False)
            if kind == "fourier"
            else np.linspace(0.0, self.duration, samples)
        )
        ends = _basis(kind, self.duration, self.nk, np.array([0.0, self.duration]))
        rest = np.concatenate((ends[1], ends[2]))  # velocities and accelerations at both ends
        _, s, Vt = np.linalg.svd(rest)
        self.Z = Vt[(s > 1e-9 * s[0]).sum() :].T  # (nk, free)
        self.B = _basis(kind, self.duration, self.nk, self.t) @ self.Z  # (3, N, free)
        self.pi = model.prior

    def trajectory(self, z) -> Trajectory:
        return Trajectory(self.kind, self.duration, self.Z @ z.reshape(self.robot.nv, -1).T)

    def states(self, z):
        return self.B @ z.reshape(self.robot.nv, -1).T

    def start(self, rng, q0):
        """A random motion that keeps half of every limit, about q0."""
        middle = 0.5 * (self.lower + self.upper) if q0 is None else np.asarray(q0, float)
        if middle.shape != (self.robot.nv,) or (middle <= self.lower).any() or (middle >= self.upper).any():
            raise ArgumentError(f"q0: expected a configuration strictly within the limits, got {q0}")
        still = np.linalg.lstsq(self.B[0], np.ones((len(self.t), 1)), rcond=None)[0][:, 0]  # constant functions
        move = rng.normal(size=(self.robot.nv, self.B.shape[2]))
        q, v, a = self.B @ move.T
        q -= q.mean(0)
        move -= np.outer((self.B[0] @ move.T).mean(0), still)
        room = np.minimum(self.upper - middle, middle - self.lower)
        scale = 0.5 * np.minimum(
            np.minimum(room / np.abs(q).max(0), self.velocity / np.abs(v).max(0)), self.acceleration / np.abs(a).max(0)
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
        q, v, a = self.states(z)
        pairs = [(q - self.lower, 0, 1.0), (self.upper - q, 0, -1.0)]
        pairs += [
            (lim + sign * x, k, sign)
            for lim, x, k in ((self.velocity, v, 1), (self.acceleration, a, 2))
            for sign in (1.0, -1.0)
        ]
        widths = [self.upper - self.lower] * 2 + [self.velocity] * 2 + [self.acceleration] * 2
        if any((room <= 0.0).any() for room, _, _ in pairs):
            return np.inf, np.zeros(0)
        Y = self.regressor(q, v, a)
        tau = Y @ self.pi
        finite = np.isfinite(self.effort)
        if (np.abs(tau) >= self.effort).any():
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
                room = (self.effort + sign * tau)[:, finite]
                f -= weight * np.log(room / self.effort[finite]).sum()
                full[:, finite] -= (weight * sign / room)[..., None] * self.pi
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
            for column, k in zip(m._of(kind), m.acts[kind]):
                g = G[..., column] @ T[k]
                out[order] += (g * (slope[:, k] if kind == "coulomb" else 1.0))[:, None] * T[k]
        for column, k in zip(m._of("stiffness"), m.springs):
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
        t = np.linspace(0.0, self.duration, 20 * len(self.t))
        q, v, a = trajectory.at(t)
        tau = self.model.torque(self.pi, q, v, a)
        width = 0.5 * (self.upper - self.lower)
        rooms = [(q - self.lower) / width, (self.upper - q) / width]
        rooms += [
            1.0 - np.abs(x) / limit for x, limit in ((v, self.velocity), (a, self.acceleration), (tau, self.effort))
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


def _basis(kind, duration, nk, t):
    """(3, N, nk): basis functions, first and second derivatives."""
    if kind == "fourier":
        harmonics = np.arange(1, (nk - 1) // 2 + 1)
        w = 2.0 * np.pi * harmonics / duration
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        one, zero = np.ones((len(t), 1)), np.zeros((len(t), 1))
        rows = [np.hstack((one, s, c)), np.hstack((zero, w * c, -w * s)), np.hstack((zero, -(w**2) * s, -(w**2) * c))]
        return np.stack(rows)
    from scipy.interpolate import BSpline

    inner = np.linspace(0.0, duration, nk - 4)[1:-1]
    knots = np.concatenate((np.zeros(6), inner, np.full(6, duration)))
    spline = BSpline(knots, np.eye(nk), 5)
    return np.stack([spline(t), spline.derivative(1)(t), spline.derivative(2)(t)])


def _limit(name, given, default, n):
    x = np.asarray(default if given is None else given, float)
    if x.shape not in ((), (n,)) or np.isnan(x).any():
        raise ArgumentError(f"{name}: expected a number or {n}, one a joint, got {given!r}")
    return np.broadcast_to(x, (n,)).astype(float)
