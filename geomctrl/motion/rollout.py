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

from geomctrl.arguments import number
from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.integrators import tableaus
from geomctrl.integrators.tableaus import Tableau
from geomctrl.kernels import runge_kutta
from geomctrl.kernels.runge_kutta import DONE, NOT_CONVERGED, NOT_FINITE, SINGULAR, STAGE, TURNED
from geomctrl.mechanism.states import as_batch
from geomctrl.robot import Robot

CHUNK = 4096  # steps a kernel call, between which Ctrl-C, `progress` and a failure's report have their turn
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
        return runge_kutta.march(
            robot._model, plan_of(tableau, h, robot), torque, first, last, q, v, every, q_out, v_out
        )

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
    result, _ = runge_kutta.march(robot._model, plan_of(tableau, h, robot), torque, 0, 1, q, v, 2, *nowhere)
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
