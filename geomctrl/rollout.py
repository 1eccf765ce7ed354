"""Roll a robot out in compiled code: many integration steps, states (q, v), torques that are constant within a step.

The state lives on G x R^nv, G the robot's configurations: dq/dt = q v, dv/dt = forward dynamics (Park and Chung 2005
(44)). The kernel steps it by any fixed-step `Tableau`, Crouch-Grossman (46), commutator-free (39) or Munthe-Kaas (47),
and costs little more than the forward dynamics it evaluates. `simulate` closes loops around controllers written in
Python; this is for many steps without one: free motion, open-loop torques, long runs, Monte Carlo.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from . import tableaus
from .arrays import number
from .configuration import polish
from .errors import ArgumentError, IntegrationError
from .jit import kernel, primitive
from .packed import IQ, IV, KIND, NDOF, POSE, S_PINV, WIDTH, finite, joint_twist, n_bodies, n_q, n_v
from .recursions import BODY, DOF, forward_dynamics
from .robot import Robot, as_batch
from .screw import (
    compose,
    dexp_inv_se3,
    dot,
    exp_se3,
    get_frame,
    get_twist,
    put6,
    put_frame,
    twist_mul,
    vec,
)
from .tableaus import Tableau

__all__ = ["Trajectory", "rollout", "rollout_step"]

LARGEST_ANGLE = 2.0 * math.pi - 0.1  # rad a joint may turn within a Munthe-Kaas step: dexp^-1 is singular at 2 pi
POLISH = 64  # steps after which rotations are brought back to SO(3) to the last bit: without it, 1e-18 a step off
CHUNK = 4096  # steps a kernel call, between which Ctrl-C, `progress` and a failure's report have their turn

DONE, NOT_FINITE, TURNED, SINGULAR, NOT_CONVERGED = range(5)  # how a step went
REASONS = {
    NOT_FINITE: "the state overflows: halve dt",
    TURNED: "a joint turns by 2 pi within the step, where dexp^-1 is singular: halve dt",
    SINGULAR: "the mass matrix is not positive definite",
    NOT_CONVERGED: "its implicit equations could not be solved: halve dt",
}


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a rollout returns: t (n,) [s], q (n, nq), v (n, nv) at the stored samples; steps taken; why it ended."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    steps: int
    success: bool
    reason: str


# --- a method as one array of numbers ----------------------------------------------------------------------------
#
# [s, rows, Munthe-Kaas?, is the basis of every free joint the identity?] [stage 0] ... [stage s], the last being the
# update. A stage is, with h multiplied in,
# [the stage whose pose it starts from, number of exponentials, does a later stage start here?] [classical row (s)]
# [exponentials (rows, s)].

HEADER, STAGE = 4, 3


@lru_cache(maxsize=64)
def _numbers(tableau: Tableau, h: float, identity: bool) -> np.ndarray:
    s = len(tableau.c)
    most = max(len(rows) for _, rows in tableau.stages)
    table = np.zeros((s + 1, STAGE + s * (1 + most)))
    for i, (base, rows) in enumerate(tableau.stages):
        table[i, :STAGE] = base, len(rows), 0
        table[base, 2] = base > 0
        table[i, STAGE : STAGE + s] = h * (tableau.A_classical[i] if i < s else tableau.b_classical)
        for r, row in enumerate(rows):
            start = STAGE + s * (1 + r)
            table[i, start : start + len(row)] = h * row
    return np.concatenate(([s, most, float(tableau.family == "MK"), identity], table.ravel()))


def plan_of(tableau: Tableau, h: float, robot: Robot) -> np.ndarray:
    """The array a kernel takes for steps of h of the robot."""
    return _numbers(tableau, h, all(j.dof < 6 or np.array_equal(j.S, np.eye(6)) for j in robot.joints))


@primitive
def increment(plan, row, K, count, n, u):
    """u = sum_j plan[row + j] K_j over the first `count` slopes of n numbers."""
    for k in range(n):
        u[k] = 0.0
    for j in range(count):
        c = plan[row + j]
        if c != 0.0:
            for k in range(n):
                u[k] += c * K[j * n + k]


@primitive
def twist_of(model, link, x, identity):
    """S x of a joint stored as a pose; a free joint's basis is the identity, and 36 products with it take time."""
    if identity and int(model[link + NDOF]) == 6:
        return get_twist(x, int(model[link + IV]))
    return joint_twist(model, link, x)


@primitive
def move(model, x, q, identity):
    """q <- q exp(x), joint by joint."""
    for i in range(n_bodies(model)):
        link = i * WIDTH
        k = int(model[link + IQ])
        if int(model[link + KIND]) == POSE:
            put_frame(q, k, compose(get_frame(q, k), exp_se3(twist_of(model, link, x, identity))))
        else:
            q[k] += x[int(model[link + IV])]


@primitive
def pull_back(model, u, v, K, at, identity):
    """K[at:] = dexp^-1_{-u} v (47e), joint by joint; False where u turns a joint by 2 pi."""
    for i in range(n_bodies(model)):
        link = i * WIDTH
        k = int(model[link + IV])
        if int(model[link + KIND]) == POSE:
            U, V = twist_of(model, link, u, identity), twist_of(model, link, v, identity)
            if not dot(U.w, U.w) < LARGEST_ANGLE * LARGEST_ANGLE:
                return False
            X = dexp_inv_se3(twist_mul(-1.0, U), V)
            if identity and int(model[link + NDOF]) == 6:
                put6(K, at + k, X)
                continue
            for c in range(int(model[link + NDOF])):
                row = link + S_PINV + 6 * c
                K[at + k + c] = dot(vec(model, row), X.w) + dot(vec(model, row + 3), X.v)
        else:
            K[at + k] = v[k]
    return True


@primitive
def rk_step(field, model, plan, tau, q, y, Q, Kq, Ky, u, qi, yi, vi, ai, context, body, dof):
    """One step of (q, y), in place. field(model, q, y, tau, context, body, dof, a) writes ydot to a; q turns at y, or
    at what the field, having vi in its context, writes there. `forward_dynamics` is one (44), with its external
    wrenches for context. Work memory: the stages' configurations Q (s, nq) and slopes Kq, Ky (s, nv), and the stage at
    hand, its exponent u, qi, yi, vi, ai."""
    s, most, munthe_kaas, identity = int(plan[0]), int(plan[1]), plan[2] == 1.0, plan[3] == 1.0
    nq, nv = n_q(model), n_v(model)
    for i in range(s + 1):
        at = HEADER + i * (STAGE + s * (1 + most))
        base, rows, keep = int(plan[at]), int(plan[at + 1]), plan[at + 2] == 1.0
        for k in range(nq):
            qi[k] = Q[base * nq + k] if base > 0 else q[k]
        for r in range(rows):  # (46i), (39b), (47d)
            increment(plan, at + STAGE + s * (1 + r), Kq, i, nv, u)
            move(model, u, qi, identity)
        increment(plan, at + STAGE, Ky, i, nv, yi)  # (46g), (46h)
        for k in range(nv):
            yi[k] += y[k]
        if i == s:
            break
        if keep:
            for k in range(nq):
                Q[i * nq + k] = qi[k]
        for k in range(nv):
            vi[k] = yi[k]
        if not field(model, qi, yi, tau, context, body, dof, ai):
            return SINGULAR if finite(qi) and finite(yi) else NOT_FINITE
        if munthe_kaas and rows > 0:
            if not pull_back(model, u, vi, Kq, i * nv, identity):
                return TURNED
        else:
            for k in range(nv):
                Kq[i * nv + k] = vi[k]
        for k in range(nv):
            Ky[i * nv + k] = ai[k]
    for k in range(nq):
        q[k] = qi[k]
    for k in range(nv):
        y[k] = yi[k]
    return DONE


@primitive
def store(q, v, row, q_out, v_out):
    for j in range(q.shape[0]):
        q_out[row, j] = q[j]
    for j in range(v.shape[0]):
        v_out[row, j] = v[j]


@kernel("Tuple((i8, i8))(f8[::1], f8[::1], f8[:,::1], i8, i8, f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1])")
def march(model, plan, taus, first, last, q, v, every, q_out, v_out):
    """Steps `first` to `last` (exclusive) of (q, v), in place: (how it went, the step that went wrong, or `last`).

    taus: one row for all steps, or one a step. After step k, a multiple of `every`, row k / every gets the state.
    """
    s, nq, nv = int(plan[0]), n_q(model), n_v(model)
    Q, Kq, Kv = np.empty(s * nq), np.empty(s * nv), np.empty(s * nv)
    u, qi, yi, vi, ai, tau = np.empty(nv), np.empty(nq), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    body, dof, none = np.empty(n_bodies(model) * BODY), np.empty(nv * DOF), np.empty(0)
    for k in range(first, last):
        if k == first or taus.shape[0] > 1:
            for j in range(nv):
                tau[j] = taus[k if taus.shape[0] > 1 else 0, j]
        result = rk_step(forward_dynamics, model, plan, tau, q, v, Q, Kq, Kv, u, qi, yi, vi, ai, none, body, dof)
        if (k + 1) % POLISH == 0:
            polish(model, q)
        stored = (k + 1) % every == 0
        if result == DONE and not (finite(v) and (not (stored or k + 1 == last) or finite(q))):
            result = NOT_FINITE  # velocities tell at once, for q looks at them next
        if result != DONE:
            return result, k
        if stored:
            store(q, v, (k + 1) // every, q_out, v_out)
    return DONE, last


# --- public ----------------------------------------------------------------------------------------------------


def rollout(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    tau: ArrayLike | None,
    t_end: float,
    dt: float,
    method: str | Tableau = "MK4",
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """Step (q0, v0) from 0 to t_end seconds in steps of dt, the last one shortened to end there.

    tau: joint torques [N m, N], None for zero, (nv,) for all steps, or (steps, nv), each held for its step.
    method: a fixed-step method of `integrators.methods()` or a Tableau. every: store each every-th sample, the first
    and the last. progress: called with the fraction done.

    The robot alone: no friction and no external wrenches (`simulate` has them). Raises ArgumentError for bad
    arguments, and IntegrationError, whose `solution` is the Trajectory so far, when a step can not be made.
    """
    tableau = fixed_step(method)
    q, v, torque, steps = start_of(robot, q0, v0, tau, t_end, dt)

    def chunk(h, first, last, q_out, v_out):
        return march(robot._model, plan_of(tableau, h, robot), torque, first, last, q, v, every, q_out, v_out)

    return drive(chunk, tableau.name, q, v, steps, t_end, dt, every, progress)


def drive(chunk, name, q, v, steps, t_end, dt, every, progress) -> Trajectory:
    """The loop of `rollout`: chunk(h, first, last, q_out, v_out) makes steps of h and stores samples, as `march` does.

    q, v: the first sample; `chunk` leaves the state of the last step there.
    """
    if isinstance(every, (bool, np.bool_)) or not isinstance(every, (int, np.integer)) or every < 1:
        raise ArgumentError(f"every: expected a positive integer, got {every!r}")
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress: expected a function progress(fraction) or None, got {progress!r:.80}")
    shortened = steps * dt > t_end * (1.0 + 1e-12)  # the last step, to end at t_end
    rows = steps // every + 1
    t_out, q_out, v_out = np.arange(rows) * (every * dt), np.empty((rows, len(q))), np.empty((rows, len(v)))
    q_out[0], v_out[0] = q, v

    def trajectory(k, t, reason, success):
        stored = k // every + 1
        samples = [t_out[:stored], q_out[:stored], v_out[:stored]]
        if k % every:
            samples = [np.concatenate((a, [x])) for a, x in zip(samples, (t, q, v))]
        times, configurations, velocities = samples
        times[-1] = t  # t_end exactly, where the multiple of dt is rounded or the last step shortened
        return Trajectory(times, configurations, velocities, k, success, reason)

    k = 0
    while k < steps:
        if shortened and k == steps - 1:
            last, h = steps, t_end - k * dt
        else:
            last, h = min(k + CHUNK, steps - shortened), float(dt)
        result, k = chunk(h, k, last, q_out, v_out)
        if result != DONE:
            reason = f"{name}: the step of dt = {h:g} at t = {k * dt:.9g} s can not be made: {REASONS[result]}"
            raise IntegrationError(reason, trajectory(k, k * dt, reason, False))
        if progress is not None:
            progress(k / steps)
    return trajectory(steps, t_end, f"reached t = {t_end:g} s", True)


def rollout_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None, dt: float, method: str | Tableau = "MK4"
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after one step of dt, of either sign: for people who write the loop themselves.

    Raises ArgumentError for bad arguments and IntegrationError when the step can not be made.
    """
    tableau = fixed_step(method)
    q, v, torque, h = step_arguments(robot, q, v, tau, dt)
    nowhere = np.empty((1, robot.nq)), np.empty((1, robot.nv))
    result, _ = march(robot._model, plan_of(tableau, h, robot), torque, 0, 1, q, v, 2, *nowhere)
    if result != DONE:
        raise IntegrationError(f"{tableau.name}: the step of dt = {h:g} can not be made: {REASONS[result]}")
    return q, v


# --- arguments ---------------------------------------------------------------------------------------------------


def fixed_step(method: str | Tableau) -> Tableau:
    tableau = tableaus.method(method)
    if tableau.b_hat is not None:
        raise ArgumentError(f"method: expected a fixed-step method, got the adaptive {tableau.name}")
    return tableau


def duration(name: str, x: object) -> float:
    """x as a float; raises ArgumentError unless it is a positive number of seconds."""
    return number(name, x, "a positive number of seconds", lambda s: s > 0.0)


def step_count(t_end: float, dt: float) -> int:
    """Steps of dt up to t_end, the last one possibly shorter."""
    t_end, dt = duration("t_end", t_end), duration("dt", dt)
    if dt > t_end * (1.0 + 1e-9):
        raise ArgumentError(f"dt: expected a step no longer than t_end = {t_end:g} s, got {dt:g}")
    if dt < 10.0 * math.ulp(t_end):
        raise ArgumentError(f"dt: expected a step that can be told from zero beside t = {t_end:g} s, got {dt:g}")
    whole = t_end / dt
    return round(whole) if abs(whole - round(whole)) < 1e-9 * max(whole, 1.0) else math.ceil(whole)


def _state(robot: Robot, **state) -> list[np.ndarray]:
    """Checked copies of a configuration (nq,) and of velocities or torques (nv,)."""
    if not isinstance(robot, Robot):
        raise ArgumentError(f"robot: expected a Robot, got {robot!r:.80}")
    for name, x in state.items():
        wanted = (robot.nq,) if name.startswith("q") else (robot.nv,)
        if (shape := _shape(name, x)) != wanted:
            raise ArgumentError(f"{name}: expected shape {wanted}, got {shape}")
    return [x[0].copy() for x in as_batch(robot, **state)[1]]


def _shape(name: str, x) -> tuple[int, ...]:
    try:
        return np.shape(x)
    except ValueError:
        raise ArgumentError(f"{name}: expected an array of numbers, got {x!r:.80}") from None


def start_of(robot: Robot, q0, v0, tau, t_end, dt) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """q0 (nq,), v0 (nv,), tau (1 or steps, nv), checked and copied, and the number of steps. Raises ArgumentError."""
    steps = step_count(t_end, dt)
    q, v = _state(robot, q0=q0, v0=v0)
    if tau is None:
        return q, v, np.zeros((1, robot.nv)), steps
    if len(shape := _shape("tau", tau)) == 1:
        return q, v, _state(robot, tau=tau)[0][None], steps
    if shape != (steps, robot.nv):
        wanted = f"shape ({robot.nv},), or ({steps}, {robot.nv}) for one a step"
        raise ArgumentError(f"tau: expected {wanted}, got {shape}")
    return q, v, as_batch(robot, tau=tau)[1][0].copy(), steps


def step_arguments(robot: Robot, q, v, tau, dt) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """q (nq,), v (nv,), tau (1, nv), checked and copied, and dt, of either sign. Raises ArgumentError."""
    if number("dt", dt) == 0.0:
        raise ArgumentError("dt: expected a number other than zero, got 0")
    q, v = _state(robot, q=q, v=v)
    return q, v, np.zeros((1, robot.nv)) if tau is None else _state(robot, tau=tau)[0][None], float(dt)
