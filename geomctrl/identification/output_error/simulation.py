"""Simulate a robot model in the loop that moved a log's robot, by Runge-Kutta steps between samples, with derivatives.

Commands are held: the command of sample k acts from t_k + delay to t_{k+1} + delay. With delay = lag period + part,
0 <= part < period, a sampling interval has two pieces: `part` seconds under the command of sample k - lag - 1, then the
rest under that of k - lag. So the motion depends smoothly on any delay, not only on multiples of the period.

The model is a `RegressorModel` used for forward dynamics: M(q) a + h(q, v) + F(q, v) = u. M includes the rotors, T^T
diag(Ir) T through the transmission T, and the known armature; F are the torques of friction, offsets, curves and
springs. With tau = Y(q, v, a) x the derivatives of a with respect to the parameters are -M^-1 Y, so only derivatives of
the inverse dynamics are needed. User-defined columns and friction models add G(q, v, a), whose derivatives are central
differences; the acceleration is then the fixed point of M a + h + F + G(q, v, a) = u.

The derivatives of a simulated loop are exact: the chain rule is applied to its Runge-Kutta steps. The variational
equations are linear, so the derivatives of an interval with respect to its state, its two commands, the parameters and
the delay are computed for many samples at once, in arrays. Only a product of small matrices for each sample remains
sequential.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from geomctrl.arguments import exactly
from geomctrl.errors import ArgumentError, GeomctrlError, SimulationError
from geomctrl.identification.model.columns import coulomb
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.mechanism.states import require_vectors

from .loop import LoopSamples


class Slopes(NamedTuple):
    """Derivatives of accelerations (N, nv) with respect to q, v, torques (N, nv, nv) and base parameters (N, nv,
    nb)."""

    by_q: np.ndarray
    by_v: np.ndarray
    by_torque: np.ndarray
    by_parameters: np.ndarray


def require_forwards(model: RegressorModel) -> None:
    """Raise ArgumentError for a model that can not be simulated."""
    require_vectors("model", model.robot, "only joints with one degree of freedom are simulated")
    if model.smoothing == 0.0 and (len(model.acts["coulomb"]) or any(c.shape == "stribeck" for c in model.curves)):
        raise ArgumentError("model: smoothing: expected a speed > 0, as friction that jumps can not be integrated")


DIFFERENCE_STEP = 6e-6  # relative step of central differences, the cube root of the precision of doubles
MAX_ITERATIONS = 100  # of accelerations that user-defined columns depend on
MAX_ACCELERATION_ERROR = 1e-12  # relative change at which the iteration ends


class Dynamics:
    """The model with the parameters x (size,)."""

    def __init__(self, model: RegressorModel, x: np.ndarray):
        require_forwards(model)
        self.model, self.x = model, exactly("x", x, (model.size,))
        T = self.transmission = model.transmission
        value = {kind: np.zeros(len(T)) for kind in model.acts}
        for kind, actuators in model.acts.items():
            value[kind][actuators] = self.x[model.by_kind[kind]]
        self.viscous, self.coulomb, self.offset = value["viscous"], value["coulomb"], value["offset"]
        self.amplitudes = self.x[model.by_kind["curve"]]
        self.user = self.x[model.by_kind["user"]]
        self.stiffness, self.preload = np.zeros((2, model.robot.nv))
        self.stiffness[model.springs] = self.x[model.by_kind["stiffness"]]
        self.preload[model.springs] = self.x[model.by_kind["preload"]]
        self.extra = np.diag(model.known_armature) + (T.T * value["rotor"]) @ T
        own = np.diag(self.extra)
        inertial = self.x[: model.inertial]
        self.in_robot = bool((own >= 0.0).all()) and not (self.extra - np.diag(own)).any()
        robot = model.robot.with_armature(own) if self.in_robot else model.robot
        self.robot = robot.with_parameters(inertial, physical=False)
        # without rotors the mass matrix need not be positive definite, and this is not checked here
        self.bare = replace(self.robot, joints=tuple(replace(j, armature=0.0) for j in self.robot.joints))
        self.geared = not np.array_equal(T, np.eye(model.robot.nv))
        q, v, a = np.random.default_rng(0).normal(size=(3, model.robot.nv))
        self.implicit = not np.array_equal(self.user_torque(q, v, a), self.user_torque(q, v, np.zeros_like(a)))

    def taken(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """F (..., nv): the torques of friction, offsets, curves and springs."""
        smoothing, s = self.model.smoothing, v @ self.transmission.T if self.geared else v
        f = self.viscous * s + self.offset
        if len(self.model.acts["coulomb"]):
            f = f + self.coulomb * coulomb(s, smoothing)
        for curve, amplitude in zip(self.model.curves, self.amplitudes):
            f[..., curve.actuator] += amplitude * curve._torque(s[..., curve.actuator], smoothing)
        f = f @ self.transmission if self.geared else f
        return f + self.stiffness * q + self.preload if self.model.springs else f

    def damping(self, v: np.ndarray) -> np.ndarray:
        """dF/dv (..., nv, nv)."""
        smoothing, s = self.model.smoothing, v @ self.transmission.T
        slope = np.broadcast_to(self.viscous, s.shape).copy()
        if len(self.model.acts["coulomb"]):
            slope += self.coulomb * (1.0 - np.tanh(s / smoothing) ** 2) / smoothing
        for curve, amplitude in zip(self.model.curves, self.amplitudes):
            speed = s[..., curve.actuator]
            if curve.shape == "sigmoid":
                own = (1.0 - np.tanh(speed / curve.speed) ** 2) / curve.speed
            else:
                step, bell = np.tanh(speed / smoothing), np.exp(-((speed / curve.speed) ** 2))
                own = bell * ((1.0 - step**2) / smoothing - 2.0 * step * speed / curve.speed**2)
            slope[..., curve.actuator] += amplitude * own
        return self.transmission.T @ (slope[..., None] * self.transmission)

    def acceleration(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """a (..., nv) under the torques u."""
        net = u - self.taken(q, v)
        if not self.implicit:
            return self._solved(q, v, net - self.user_torque(q, v, net) if self.model.columns else net)
        a = np.zeros_like(net)
        for _ in range(MAX_ITERATIONS):
            last, a = a, self._solved(q, v, net - self.user_torque(q, v, a))
            if not np.abs(a - last).max() > MAX_ACCELERATION_ERROR * (1.0 + np.abs(a).max()):  # true for nan, too
                return a
        raise SimulationError("the user-defined columns depend so much on accelerations that these do not converge")

    def user_torque(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """G (..., nv): the torques of user-defined columns and friction models."""
        rows = [np.atleast_2d(x) for x in (q, v, a)]
        torques = [x * column.torque(*rows) for x, column in zip(self.user, self.model.columns)]
        return np.sum([np.zeros_like(rows[1]), *torques], axis=0).reshape(np.shape(v))

    def _user_slopes(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """dG/dq, dG/dv, dG/da (3, N, nv, nv)."""
        states, out = np.array((q, v, a)), np.zeros((3, *q.shape, q.shape[1]))
        for x, k in np.ndindex(3, q.shape[1] if self.model.columns else 0):
            step = np.zeros_like(states)
            step[x, :, k] = DIFFERENCE_STEP * np.maximum(1.0, np.abs(states[x, :, k]))
            rise = self.user_torque(*(states + step)) - self.user_torque(*(states - step))
            out[x, :, :, k] = rise / (2.0 * step[x, :, k, None])
        return out

    def _solved(self, q: np.ndarray, v: np.ndarray, net: np.ndarray) -> np.ndarray:
        if self.in_robot:
            return self.robot.forward_dynamics(q, v, net)
        bias = self.bare.inverse_dynamics(q, v, np.zeros_like(v))
        M = self.bare.mass_matrix(q) + self.extra
        return np.linalg.solve(M, (net - bias)[..., None])[..., 0]

    def slopes(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Slopes:
        """Derivatives at N states with these accelerations."""
        rigid = self.bare.inverse_dynamics_derivatives(q, v, a)
        own_q, own_v, own_a = self._user_slopes(q, v, a)
        inverse = np.linalg.inv(rigid.da + self.extra + own_a)
        Y = self.model.regressor(q, v, a)[..., self.model.base.columns]
        by_q = -inverse @ (rigid.dq + np.diag(self.stiffness) + own_q)
        return Slopes(by_q, -inverse @ (rigid.dv + self.damping(v) + own_v), inverse, -inverse @ Y)

    def fastest(self, q: np.ndarray) -> float:
        """The largest rate [1/s] at which friction alone can brake a joint at the states q (N, nv); it limits steps."""
        rest = np.zeros_like(q)
        steepest = self.damping(rest) + self._user_slopes(q, rest, rest)[1]
        return float(np.abs(np.linalg.eigvals(np.linalg.solve(self.bare.mass_matrix(q) + self.extra, steepest))).max())


# --- the simulation --------------------------------------------------------------------------------------------------


MAX_STATE = 1e6  # rad, rad/s: larger states mean that the simulation diverges
MAX_STEPS = 200  # steps for each sample


class Piece(NamedTuple):
    """`steps` steps of `h` seconds under the command of `lag` samples ago; `slope`: dh / d delay."""

    lag: int
    steps: int
    h: float
    slope: float


class Schedule(NamedTuple):
    """The pieces of a sampling interval; shown: age in samples of the command that acts at a sample."""

    period: float
    pieces: tuple[Piece, ...]
    shown: int

    @property
    def lag(self) -> int:
        """Lag of the last piece."""
        return self.pieces[-1].lag


def schedule(period: float, delay: float, steps: int, moving: bool = False) -> Schedule:
    """steps: about, for each sample. moving: with a first piece even of zero length, for derivatives with respect to
    the delay."""
    lag = int(delay / period + 1e-9)
    part = max(delay - lag * period, 0.0)
    part = 0.0 if part < 1e-9 * period else part
    pieces = []
    if part or moving:
        n = max(1, int(np.ceil(steps * part / period - 1e-9)))
        pieces.append(Piece(lag + 1, n, part / n, 1.0 / n))
    n = max(1, int(np.ceil(steps * (1.0 - part / period) - 1e-9)))
    pieces.append(Piece(lag, n, (period - part) / n, -1.0 / n))
    return Schedule(period, tuple(pieces), lag + 1 if part else lag)


def steps_for(dynamics: Dynamics, q: np.ndarray, period: float) -> int:
    """Number of steps for each sample with which RK4 follows friction near standstill at states q (N, nv)."""
    return int(np.clip(np.ceil(period * dynamics.fastest(q)), 1, MAX_STEPS))


class Trajectory(NamedTuple):
    """A simulation at N samples: q, v (N, nv), the loop's state z (N, m), its commands u (N, nv); starts: q and v
    (2, N, nv) at the start of each step of an interval; before: the command before the first sample.
    """

    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    u: np.ndarray
    starts: list[np.ndarray]
    before: np.ndarray

    def command(self, lag: int) -> np.ndarray:
        """u (N, nv) of `lag` samples ago."""
        N = len(self.u)
        early = np.broadcast_to(self.before, (min(lag, N), len(self.before)))
        return np.concatenate((early, self.u[: N - len(early)]))


def simulated(
    dynamics: Dynamics,
    loop: LoopSamples,
    plan: Schedule,
    samples: int,
    q0: np.ndarray,
    v0: np.ndarray,
    before: np.ndarray,
    z0: np.ndarray | None = None,
) -> Trajectory:
    """Simulate the loop from q0, v0 (nv,) at the first of this many samples; before: the command until the first one
    acts.

    Raises SimulationError if it does not stay finite.
    """
    n = len(q0)
    q, v, z = np.array(q0), np.array(v0), loop.start(q0, v0)[0] if z0 is None else z0
    out = Trajectory(
        np.empty((samples, n)), np.empty((samples, n)), np.empty((samples, len(z))), np.empty((samples, n)),
        [np.empty((2, samples, n)) for piece in plan.pieces for _ in range(piece.steps)], before,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        for k in range(samples):
            out.q[k], out.v[k], out.z[k] = q, v, z
            if not (np.abs(q).max() < MAX_STATE and np.abs(v).max() < MAX_STATE):
                raise SimulationError(f"the simulated loop is unstable after {k * plan.period:.4g} s")
            try:
                out.u[k], z = loop.command(k, q, v, z)
                j = 0
                for lag, steps, h, _ in plan.pieces:
                    u = out.u[k - lag] if k >= lag else before
                    for _ in range(steps):
                        out.starts[j][:, k] = q, v
                        q, v = step(dynamics, q, v, u, h)
                        j += 1
            except SimulationError:
                raise
            except (GeomctrlError, np.linalg.LinAlgError) as error:
                raise SimulationError(f"the simulated loop ends after {k * plan.period:.4g} s: {error}") from error
    return out


def step(dynamics: Dynamics, q: np.ndarray, v: np.ndarray, u: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """One step of the classical Runge-Kutta method."""
    half = 0.5 * h
    a = dynamics.acceleration(q, v, u)
    v2 = v + half * a
    a2 = dynamics.acceleration(q + half * v, v2, u)
    v3 = v + half * a2
    a3 = dynamics.acceleration(q + half * v2, v3, u)
    v4 = v + h * a3
    a4 = dynamics.acceleration(q + h * v3, v4, u)
    return q + h / 6.0 * (v + 2.0 * (v2 + v3) + v4), v + h / 6.0 * (a + 2.0 * (a2 + a3) + a4)


# --- derivatives of the simulation -----------------------------------------------------------------------------------


CHUNK = 256  # samples: their derivatives stay in cache


class Layout(NamedTuple):
    """The columns of derivatives: base parameters, gains, the delay (0 or 1), q0 and v0, the loop's first state."""

    base: int
    gains: int
    delay: int
    first: int
    state: int

    @property
    def size(self) -> int:
        return sum(self)

    def columns(self, name: str) -> slice:
        index = self._fields.index(name)
        return slice(sum(self[:index]), sum(self[: index + 1]))


class ObservedDerivatives(NamedTuple):
    """Derivatives (N, nv, columns) of positions and of the log's torques, from sample number `first` on."""

    first: int
    position: np.ndarray
    torque: np.ndarray


def sensitivities(
    dynamics: Dynamics, loop: LoopSamples, plan: Schedule, run: Trajectory, gains: Sequence[str], layout: Layout
) -> Iterator[ObservedDerivatives]:
    """The derivatives of a run of `simulated`, a chunk of samples at a time."""
    n, m, P = run.q.shape[1], run.z.shape[1], layout.size
    S, Z = np.zeros((2 * n, P)), np.zeros((m, P))
    S[:, layout.columns("first")] = np.eye(2 * n)
    Z[:, layout.columns("first")] = loop.start(run.q[0], run.v[0])[1]
    Z[:, layout.columns("state")] = np.eye(m, layout.state)
    oldest = max(piece.lag for piece in plan.pieces)
    past = [np.zeros((n, P))] * (oldest + 1)  # derivatives of commands, the latest first
    for first in range(0, len(run.q), CHUNK):
        samples = slice(first, min(first + CHUNK, len(run.q)))
        law = loop.slopes(first, run.q[samples], run.v[samples], run.z[samples], gains)
        pieces = interval_slopes(dynamics, plan, run, samples)
        out = ObservedDerivatives(first, *np.empty((2, samples.stop - first, n, P)))
        for k in range(samples.stop - first):
            both = np.concatenate((S, Z))
            U = law.command[k] @ both
            U[:, layout.columns("gains")] += law.command_by_gains[k]
            Z = law.state[k] @ both
            Z[:, layout.columns("gains")] += law.state_by_gains[k]
            past = [U, *past[:oldest]]
            out.position[k], out.torque[k] = S[:n], U
            for piece, D in zip(plan.pieces, pieces):
                S = D[k, :, : 2 * n] @ S + D[k, :, 2 * n : 3 * n] @ past[piece.lag]
                S[:, layout.columns("base")] += D[k, :, 3 * n : -1]
                if layout.delay:
                    S[:, layout.columns("delay")] += D[k, :, -1:]
        yield out


def interval_slopes(dynamics: Dynamics, plan: Schedule, run: Trajectory, samples: slice) -> list[np.ndarray]:
    """For each piece (N, 2 nv, 3 nv + nb + 1): derivatives of its end with respect to (q, v) at its start, its command,
    base parameters and the delay, for these samples."""
    out, j = [], 0
    for piece in plan.pieces:
        u, whole = run.command(piece.lag)[samples], None
        for _ in range(piece.steps):
            q, v = run.starts[j][:, samples]
            D = step_slopes(dynamics, q, v, u, piece)
            n = q.shape[1]
            if whole is None:
                whole = D
            else:
                whole = D[..., : 2 * n] @ whole
                whole[..., 2 * n :] += D[..., 2 * n :]
            j += 1
        assert whole is not None
        out.append(whole)
    return out


def step_slopes(dynamics: Dynamics, q: np.ndarray, v: np.ndarray, u: np.ndarray, piece: Piece) -> np.ndarray:
    """(N, 2 nv, 3 nv + nb + 1): derivatives of N Runge-Kutta steps, `step` differentiated line by line."""
    (N, n), h, half = q.shape, piece.h, 0.5 * piece.h
    size = 3 * n + dynamics.model.base.size + 1
    dq, dv = np.zeros((2, N, n, size))
    dq[:, range(n), range(n)] = dv[:, range(n), range(n, 2 * n)] = 1.0

    def by_delay(x: np.ndarray, share: float, dx: np.ndarray) -> np.ndarray:
        """dx, plus the effect of the step's length: d (share h x) / d delay = share slope x."""
        dx[..., -1] += share * piece.slope * x
        return dx

    def accelerated(q, v, dq, dv):
        a = dynamics.acceleration(q, v, u)
        by = dynamics.slopes(q, v, a)
        da = by.by_q @ dq + by.by_v @ dv
        da[..., 2 * n : 3 * n] += by.by_torque
        da[..., 3 * n : -1] += by.by_parameters
        return a, da

    a, da = accelerated(q, v, dq, dv)
    v2, dv2 = v + half * a, by_delay(a, 0.5, dv + half * da)
    a2, da2 = accelerated(q + half * v, v2, by_delay(v, 0.5, dq + half * dv), dv2)
    v3, dv3 = v + half * a2, by_delay(a2, 0.5, dv + half * da2)
    a3, da3 = accelerated(q + half * v2, v3, by_delay(v2, 0.5, dq + half * dv2), dv3)
    v4, dv4 = v + h * a3, by_delay(a3, 1.0, dv + h * da3)
    a4, da4 = accelerated(q + h * v3, v4, by_delay(v3, 1.0, dq + h * dv3), dv4)
    q_end = by_delay(v + 2.0 * (v2 + v3) + v4, 1.0 / 6.0, dq + h / 6.0 * (dv + 2.0 * (dv2 + dv3) + dv4))
    v_end = by_delay(a + 2.0 * (a2 + a3) + a4, 1.0 / 6.0, dv + h / 6.0 * (da + 2.0 * (da2 + da3) + da4))
    return np.concatenate((q_end, v_end), 1)
