"""Exciting trajectories: motions within a robot's limits that separate its base parameters.

q(t) is a finite Fourier series that starts and ends at rest with zero acceleration in the same posture (these linear
conditions are eliminated). The cost is a criterion of the base
regressor; limits and clearances are logarithmic barriers, so that every iterate respects them.

The gradient is exact without derivatives of the regressor's formulas. A revolute joint enters Y through sines and
cosines of q_k up to the second harmonic, so dY/dq_k is a fixed combination of Y at four shifted angles ("parameter
shift rule": Wierichs, Izaac, Wang, Lin 2022, eq. 9). A prismatic one enters as a polynomial of degree two, like every
velocity, for which the central difference is exact. Accelerations enter linearly.

The criterion measures how well a motion separates base parameters. Rows are divided by the standard deviation of their
joint's torque noise. With W the rows of one period,

    condition   half the logarithm of the condition number of W^T W
    log_det     minus the mean logarithm of the eigenvalues of the information W^T W, averaged over the rows

Columns have unit length for the condition number; the optimum of the determinant needs no scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, count, instance, number, one_or_each, positive
from geomctrl.errors import ArgumentError
from geomctrl.identification.estimators.conditioning import inertial_scale
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.robot import Robot

from .clearance import Clearances
from .trajectory import Trajectory, basis_functions

RAMP_SECONDS = 0.25  # s: time in which the default acceleration reaches the maximum velocity


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of positions, velocities, accelerations, efforts and jerks (nv,), all but the first two in both
    directions; efforts and jerks may be infinite."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    jerk: np.ndarray


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits that a motion has to keep: given ones, and the robot's for those that are None.

    Parameters
    ----------
    lower, upper : float or array_like (nv,), optional
        Positions [rad, m]; where the robot has no limit, pi or 1 m in either direction.
    velocity : float or array_like (nv,), optional
        [rad/s, m/s].
    acceleration : float or array_like (nv,), optional
        [rad/s^2, m/s^2]; default velocity / 0.25 s.
    effort : float or array_like (nv,), optional
        Torques and forces [N m, N].
    jerk : float or array_like (nv,), optional
        [rad/s^3, m/s^3]; default no limit.
    torque_margin : float, default 0.2
        Fraction of the effort limits kept in reserve, because the robot's torques differ from the model's.

    Examples
    --------
    >>> import geomctrl as gc
    >>> from geomctrl.identification.excitation import MotionLimits
    >>> MotionLimits(velocity=1.0, effort=50.0).of(gc.models.two_link()).effort
    array([40., 40.])
    """

    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    velocity: ArrayLike | None = None
    acceleration: ArrayLike | None = None
    effort: ArrayLike | None = None
    jerk: ArrayLike | None = None
    torque_margin: float = 0.2

    def of(self, robot: Robot) -> Limits:
        """The limits of each joint of a robot.

        Raises
        ------
        ArgumentError
            For limits that are missing, or that no motion keeps; the message names the joint.
        """
        robot = instance("robot", robot, Robot, "a Robot")
        if any(j.kind not in ("revolute", "prismatic") for j in robot.joints):
            raise ArgumentError("model: exact gradients are for revolute and prismatic joints")
        n, own = robot.nv, robot.limits
        reach = np.where([j.kind == "revolute" for j in robot.coupling.independent_joints], np.pi, 1.0)
        lower = self._each("lower", np.where(np.isfinite(own.lower), own.lower, -reach))
        upper = self._each("upper", np.where(np.isfinite(own.upper), own.upper, reach))
        velocity = self._each("velocity", own.velocity)
        if not np.isfinite(velocity).all():
            name = robot.dof_names[int(np.argmin(np.isfinite(velocity)))]
            raise ArgumentError(f"velocity: joint {name!r} has no limit in the model: give one")
        acceleration = self._each("acceleration", velocity / RAMP_SECONDS)
        share = 1.0 - number("torque_margin", self.torque_margin, "a part from 0 to below 1", lambda x: 0.0 <= x < 1.0)
        effort = share * self._each("effort", own.effort)
        jerk = self._each("jerk", np.full(n, np.inf))
        if not np.isfinite(upper - lower).all():
            raise ArgumentError("lower, upper: expected finite positions")
        if 0 < np.isfinite(jerk).sum() < n:
            raise ArgumentError(f"jerk: expected a limit for every joint or none, got {jerk.tolist()}")
        for name, x in (("velocity", velocity), ("acceleration", acceleration), ("effort", effort), ("jerk", jerk)):
            if x.min() <= 0.0:
                joint = robot.dof_names[int(np.argmin(x))]
                raise ArgumentError(f"{name}: joint {joint!r}: expected a limit > 0, got {x.min():g}: give one")
        if (lower >= upper).any():
            k = int(np.argmax(lower >= upper))
            raise ArgumentError(
                f"lower, upper: joint {robot.dof_names[k]!r}: expected lower < upper, got {lower[k]:g} and {upper[k]:g}"
            )
        return Limits(lower, upper, velocity, acceleration, effort, jerk)

    def _each(self, name: str, default: np.ndarray) -> np.ndarray:
        value = getattr(self, name)
        return one_or_each(name, default if value is None else value, len(default), good=lambda x: ~np.isnan(x))


def noise_of(robot: Robot, noise: ArrayLike | None) -> np.ndarray:
    """Standard deviations of torque samples (nv,) [N m, N]: as given, else 1 % of the effort limits, else 1."""
    own = robot.limits.effort
    default = np.where(np.isfinite(own) & (own > 0.0), 0.01 * own, 1.0)
    noise = default if noise is None else noise
    return one_or_each("noise", noise, robot.nv, "a number > 0, above 1e-100", lambda x: positive(x - 1e-100))


# --- criteria --------------------------------------------------------------------------------------------------------


FRICTION_SHARE = 0.05  # of the effort limit: a typical friction torque

Graded = tuple[float, np.ndarray]


def typical(model: RegressorModel, effort: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """(base parameters,) typical magnitudes: from masses and lengths of the robot, friction of 5 % of the efforts, and
    rotors that need the efforts to reach the maximum velocity in a second."""
    scale = np.ones(model.size)
    scale[: model.inertial] = np.tile(inertial_scale(model.robot), model.robot.nbodies)
    torque = FRICTION_SHARE * np.where(np.isfinite(effort), effort, 20.0)
    at_joints = np.abs(model.transmission)
    torque, speed = at_joints @ torque, at_joints @ velocity
    for kind, size in (("viscous", torque / speed), ("coulomb", torque), ("offset", torque), ("rotor", torque / speed)):
        scale[model.by_kind[kind]] = size[model.acts[kind]]
    return np.linalg.norm(model.base.projection * scale, axis=1)


def _log_det(W: np.ndarray) -> Graded:
    nb = W.shape[1]
    R = np.linalg.qr(W, mode="r")
    diagonal = np.abs(np.diag(R))
    if diagonal.min() <= 1e-12 * diagonal.max():
        return np.inf, W
    inverse = np.linalg.inv(R)
    return -2.0 * np.log(diagonal / np.sqrt(len(W))).sum() / nb, -(2.0 / nb) * (W @ inverse) @ inverse.T


def _condition(W: np.ndarray) -> Graded:
    length = np.linalg.norm(W, axis=0)
    if length.min() <= 1e-12 * length.max():
        return np.inf, W
    U = W / length
    _, s, V = np.linalg.svd(np.linalg.qr(U, mode="r"))  # eigenvalues of U^T U would lose half of the digits
    if s[-1] <= 1e-10 * s[0]:
        return np.inf, W
    G = np.outer(U @ V[0], V[0]) / s[0] ** 2 - np.outer(U @ V[-1], V[-1]) / s[-1] ** 2
    return np.log(s[0] / s[-1]), (G - U * np.sum(U * G, axis=0)) / length


def measures(W: np.ndarray) -> tuple[float, float]:
    """(condition number with columns of unit length, mean log of the eigenvalues of the information, averaged over the
    rows), for whitened rows."""
    s = np.linalg.svd(W / np.maximum(np.linalg.norm(W, axis=0), 1e-300), compute_uv=False)
    diagonal = np.abs(np.diag(np.linalg.qr(W, mode="r")))
    with np.errstate(divide="ignore"):
        return float(s[0] / max(s[-1], 1e-300)), float(2.0 * np.log(diagonal / np.sqrt(len(W))).mean())


def deviations(W: np.ndarray, rows: float) -> np.ndarray:
    """Standard deviations (nb,) of least squares with `rows` rows of a log for every whitened row of W: the roots of
    the diagonal of (W^T W)^-1."""
    length = np.linalg.norm(W, axis=0)
    inverse = np.linalg.inv(np.linalg.qr(W / length, mode="r"))
    return np.linalg.norm(inverse, axis=1) / length / np.sqrt(rows)


# --- cost and gradient -----------------------------------------------------------------------------------------------


# f'(0) = sum_k WEIGHTS_k f(SHIFTS_k) for f with harmonics up to the second: (-1)^(k-1) / (4 R sin^2(x_k / 2)), R = 2
SHIFTS = (2.0 * np.arange(1, 5) - 1.0) * np.pi / 4.0
WEIGHTS = np.array([1.0, -1.0, 1.0, -1.0]) / (8.0 * np.sin(0.5 * SHIFTS) ** 2)
FELT_CLEARANCE = 0.15  # m: range of the barrier of a clearance


class Cost(NamedTuple):
    """The cost with barriers, its gradient with respect to z, and the criterion alone; infinite outside the limits."""

    total: float
    gradient: np.ndarray
    criterion: float


OUTSIDE = Cost(np.inf, np.zeros(0), np.inf)


class Problem:
    """Cost and exact gradient in z: the coefficients in the null space of the conditions at rest, joint after joint."""

    def __init__(
        self,
        model: RegressorModel,
        limits: Limits,
        duration: float,
        terms: int,
        objective: str,
        samples: int,
        *,
        clearances: Clearances | None = None,
        noise: ArrayLike | None = None,
        rate: float = 100.0,
    ):
        robot = model.robot
        choice("objective", objective, ("condition", "log_det"))
        duration = number("duration", duration, "seconds, at least 0.001", lambda x: x >= 1e-3)
        terms = count("terms", terms, 2, 1000)
        if model.curves or model.columns:
            raise ArgumentError("model: optimise the excitation without friction curves and user-defined columns")
        self.model, self.robot, self.objective, self.limits = model, robot, objective, limits
        self.duration, self.clearances = float(duration), clearances
        self.rate = number("rate", rate, "a rate > 0", lambda x: x > 0.0)
        self.revolute = [j.kind == "revolute" for j in robot.coupling.independent_joints]
        self.columns = model.base.columns
        self.nk = 2 * terms + 1
        self.t = np.linspace(0.0, self.duration, samples, endpoint=False)
        ends = basis_functions(self.duration, self.nk, np.array([0.0, self.duration]))
        rest = np.concatenate((ends[1], ends[2], ends[0, :1] - ends[0, 1:]))  # v, a at both ends; the same place
        _, s, Vt = np.linalg.svd(rest)
        self.Z = Vt[(s > 1e-9 * s[0]).sum() :].T  # (nk, free)
        self.B = basis_functions(self.duration, self.nk, self.t, 4) @ self.Z  # (4, N, free)
        self.still = np.linalg.lstsq(self.B[0], np.ones((samples, 1)), rcond=None)[0][:, 0]  # constant functions
        self.pi = model.prior
        self.noise = noise_of(robot, noise)

    def trajectory(self, z: np.ndarray) -> Trajectory:
        return Trajectory(self.duration, self.Z @ z.reshape(self.robot.nv, -1).T)

    def states(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q, v, a = self.B[:3] @ z.reshape(self.robot.nv, -1).T
        return q, v, a

    def constant(self, q: np.ndarray) -> np.ndarray:
        """The z of a constant posture q."""
        return np.outer(q, self.still).ravel()

    def _over_noise(self, W: np.ndarray) -> np.ndarray:
        """(N nv, nb) from W (N, nv, nb)."""
        return (W / self.noise[:, None]).reshape(-1, W.shape[-1])

    def criterion(self, W: np.ndarray) -> Graded:
        """(criterion, its derivative by W (N, nv, nb)); infinite if parameters are not separated."""
        f, G = (_log_det if self.objective == "log_det" else _condition)(self._over_noise(W))
        return f, G.reshape(W.shape) / self.noise[:, None]

    def value(self, z: np.ndarray) -> float:
        return self.criterion(self.model.regressor(*self.states(z))[..., self.columns])[0]

    def whitened(self, trajectory: Trajectory, samples: int = 1000) -> tuple[np.ndarray, float]:
        """(rows over their noise (samples nv, base parameters), number of independent log rows for each of them)."""
        t = np.linspace(0.0, self.duration, samples, endpoint=False)
        W = self.model.regressor(*trajectory.at(t))[..., self.columns]
        return self._over_noise(W), self.rate * self.duration / samples

    def measured(self, trajectory: Trajectory) -> tuple[float, float]:
        """(condition, mean log det), see `measures`."""
        return measures(self.whitened(trajectory, len(self.t))[0])

    def cost(self, z: np.ndarray, barrier: float) -> Cost:
        """Cost of z; `OUTSIDE` outside the limits."""
        x = self.B @ z.reshape(self.robot.nv, -1).T
        q, v, a = x[:3]
        slacks = list(self._bound_slacks(x))
        if any((slack <= 0.0).any() for _, slack, _, _ in slacks):
            return OUTSIDE
        clear, pulled = self._clear(q)
        if (clear <= 0.0).any():
            return OUTSIDE
        Y = self.model.regressor(q, v, a)
        tau = Y @ self.pi + self.model.known_armature * a
        finite = np.isfinite(self.limits.effort)
        if (np.abs(tau) >= self.limits.effort).any():
            return OUTSIDE
        f, G = criterion, _ = self.criterion(Y[..., self.columns])
        if not np.isfinite(criterion):
            return OUTSIDE
        full = np.zeros_like(Y)
        full[..., self.columns] = G
        weight = barrier / q.size
        grad = np.zeros_like(x)
        for order, slack, sign, width in slacks:
            f -= weight * np.log(slack / width).sum()
            grad[order] -= weight * sign / slack
        for sign in (1.0, -1.0) if finite.any() else ():
            slack = (self.limits.effort + sign * tau)[:, finite]
            f -= weight * np.log(slack / self.limits.effort[finite]).sum()
            full[:, finite] -= (weight * sign / slack)[..., None] * self.pi
            grad[2][:, finite] -= weight * sign / slack * self.model.known_armature[finite]
        value, slope = soft_barrier(clear / FELT_CLEARANCE)
        f += weight * value.sum()
        grad[0] += pulled(weight / FELT_CLEARANCE * slope)
        grad[:3] += self.contract(full, q, v, a, Y)
        return Cost(float(f), np.einsum("dtk,dtj->jk", self.B, grad).ravel(), criterion)

    def _bound_slacks(self, x: np.ndarray) -> Iterator[tuple[int, np.ndarray, float, np.ndarray]]:
        """(order of the derivative, slack, sign of the derivative in it, full width) of every bound on x (4, N, nv)."""
        limits = self.limits
        width = limits.upper - limits.lower
        yield 0, x[0] - limits.lower, 1.0, width
        yield 0, limits.upper - x[0], -1.0, width
        for order, limit in ((1, limits.velocity), (2, limits.acceleration), (3, limits.jerk)):
            if np.isfinite(limit).all():
                yield order, limit + x[order], 1.0, limit
                yield order, limit - x[order], -1.0, limit

    def _clear(self, q: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """(distances minus the required clearance (N, C), the map of their gradients to q)."""
        if self.clearances is None:
            return np.zeros((len(q), 0)), lambda G: np.zeros_like(q)
        values, pulled = self.clearances.with_gradient(q)
        return values - self.clearances.surroundings.clearance, pulled

    def contract(self, G: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """(3, N, nv): exact derivatives of sum G Y with respect to q, v and a."""
        n, inertial = self.robot.nv, self.model.inertial
        out = np.zeros((3, *q.shape))
        Gi = np.ascontiguousarray(G[..., :inertial]).reshape(len(q), -1)
        here = np.einsum("ti,ti->t", Gi, Y[..., :inertial].reshape(len(q), -1))
        for k in range(n):
            e = np.zeros(n)
            e[k] = 1.0
            shifts = SHIFTS if self.revolute[k] else np.array([1.0, -1.0])
            weights = WEIGHTS if self.revolute[k] else np.array([0.5, -0.5])
            m = len(shifts)  # all shifted states in one call, which is faster
            Q = np.stack([*(q + s * e for s in shifts), q, q, q])
            V = np.stack([*[v] * m, v + e, v - e, v])
            A = np.stack([*[a] * (m + 2), a + e])
            shifted = self.robot.regressor(Q, V, A).reshape(m + 3, len(q), -1)
            along = np.einsum("sti,ti->st", shifted, Gi)
            out[0, :, k] = weights @ along[:m]
            out[1, :, k] = 0.5 * (along[m] - along[m + 1])
            out[2, :, k] = along[m + 2] - here
        return self._friction(G, v, out)

    def _friction(self, G: np.ndarray, v: np.ndarray, out: np.ndarray) -> np.ndarray:
        """`contract` of the columns of friction, rotors and springs, added to `out`."""
        m = self.model
        T = m.transmission
        if m.smoothing > 0.0:
            slope = 1.0 / np.cosh(np.clip(v @ T.T / m.smoothing, -300.0, 300.0)) ** 2 / m.smoothing
        else:
            slope = np.zeros((len(v), len(T)))
        for kind, order in (("viscous", 1), ("coulomb", 1), ("rotor", 2)):
            for column, k in zip(m.by_kind[kind], m.acts[kind]):
                g = G[..., column] @ T[k]
                out[order] += (g * (slope[:, k] if kind == "coulomb" else 1.0))[:, None] * T[k]
        for column, k in zip(m.by_kind["stiffness"], m.springs):
            out[0, :, k] += G[:, k, column]
        return out


def soft_barrier(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(-log x + (x - 1) - (x - 1)^2 / 2, its derivative), 0 for x > 1: a logarithmic barrier of finite range, twice
    differentiable."""
    near = np.minimum(x, 1.0)
    return -np.log(near) + (near - 1.0) - 0.5 * (near - 1.0) ** 2, 2.0 - near - 1.0 / near
