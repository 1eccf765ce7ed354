"""The `Trajectory` of a rollout: compiled integration in chunks, and steps in Python if the torque is a function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from geomctrl.arguments import number, shown
from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.integrators import march, tableaus
from geomctrl.integrators.march import March, check_storing, collect
from geomctrl.integrators.tableaus import Tableau
from geomctrl.kernels import marches
from geomctrl.kernels.marches import DONE, NOT_CONVERGED, NOT_FINITE, SINGULAR, STAGE, TURNED
from geomctrl.mechanism.mechanism import require_free_joints, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.robot import Robot

IDENTITY = np.eye(6)
STEPS_PER_CALL = 4096  # steps for each kernel call; in between, Ctrl-C, `progress` and errors are handled
REASONS = {
    NOT_FINITE: "the state overflows: halve dt",
    TURNED: "a joint turns by 2 pi within the step, where dexp^-1 is singular: halve dt",
    SINGULAR: "the mass matrix is not positive definite",
    NOT_CONVERGED: "its implicit equations could not be solved: halve dt",
}


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The result of a rollout.

    Attributes
    ----------
    t : ndarray, shape (n,)
        Times of the stored samples [s].
    q : ndarray, shape (n, nq)
        Configurations [rad, m].
    v : ndarray, shape (n, nv)
        Velocities [rad/s, m/s].
    steps : int
        Number of steps.
    reason : str
        Why the rollout ended.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    steps: int
    success: bool
    reason: str


class Method(NamedTuple):
    """A method with compiled steps: its name, kernel (`kernels.marches`), and the numbers that the kernel needs for
    step h.
    """

    name: str
    march: Callable
    numbers: Callable[[float], np.ndarray]


# --- constant torques: compiled --------------------------------------------------------------------------------------


def march_compiled(
    method_of: Callable[[Robot], Method], robot: Robot, q0, v0, tau, t_end, dt, every, progress
) -> Trajectory:
    """The trajectory of `rollout`, computed by any method."""
    q, v, torque, steps = start_of(robot, q0, v0, tau, t_end, dt)
    check_storing(every, progress)
    every = int(every)  # numpy integers too
    method = method_of(robot)
    shortened = steps * dt > t_end * (1.0 + 1e-12)  # whether the last step is shorter than dt, to end at t_end
    rows = steps // every + 1
    t_out, q_out, v_out = np.arange(rows) * (every * dt), np.empty((rows, len(q))), np.empty((rows, len(v)))
    q_out[0], v_out[0] = q, v

    def trajectory(k, t, reason, success):
        stored = k // every + 1
        samples = [t_out[:stored], q_out[:stored], v_out[:stored]]
        if k % every:
            samples = [np.concatenate((a, [x])) for a, x in zip(samples, (t, q, v))]
        times, configurations, velocities = samples
        times[-1] = t  # exactly t_end, even if the multiple of dt is rounded or the last step shortened
        return Trajectory(times, configurations, velocities, k, success, reason)

    k = 0
    while k < steps:
        if shortened and k == steps - 1:
            last, h = steps, t_end - k * dt
        else:
            last, h = min(k + STEPS_PER_CALL, steps - shortened), float(dt)
        result, k = method.march(robot._model, method.numbers(h), torque, k, last, q, v, every, q_out, v_out)
        if result != DONE:
            reason = failure(method.name, result, h, k * dt)
            raise IntegrationError(reason, trajectory(k, k * dt, reason, False))
        if progress is not None:
            progress(k / steps)
    return trajectory(steps, t_end, f"reached t = {t_end:g} s", True)


def step_compiled(method_of: Callable[[Robot], Method], robot: Robot, q, v, tau, dt) -> tuple[np.ndarray, np.ndarray]:
    """The state after one step of any method."""
    q, v, torque, h = step_arguments(robot, q, v, tau, dt)
    method = method_of(robot)
    result = step_in_place(method, robot, torque, h, q, v)
    if result != DONE:
        raise IntegrationError(failure(method.name, result, h))
    return q, v


def step_in_place(method: Method, robot: Robot, torque, h, q, v) -> int:
    """Advance (q, v) by one step under torque (1, nv) and return a status."""
    nowhere = np.empty((1, robot.nq)), np.empty((1, robot.nv))
    return method.march(robot._model, method.numbers(h), torque, 0, 1, q, v, 2, *nowhere)[0]


def failure(name: str, result: int, h: float, t: float | None = None) -> str:
    when = "" if t is None else f" at t = {t:.9g} s"
    return f"{name}: the step of dt = {h:g}{when} can not be made: {REASONS[result]}"


# --- torque functions: steps in Python -------------------------------------------------------------------------------


def march_sampled(stepper, y0, t_end, dt, every, progress, state_of: Callable, prefix: str = "") -> Trajectory:
    """The trajectory of a `march.Stepper`; state_of(y) is (q, v)."""

    def trajectory(solution, reason):
        q, v = (np.array(column) for column in zip(*map(state_of, solution.y)))
        return Trajectory(solution.t, q, v, solution.n_steps, solution.success, reason)

    try:
        solution = collect(March(stepper, y0, (0.0, t_end), dt), every=every, progress=progress)
    except IntegrationError as error:
        reason = f"{prefix}{error}"
        raise IntegrationError(reason, trajectory(error.solution, reason)) from None
    return trajectory(solution, f"reached t = {t_end:g} s")


def fixed_step(method: str | Tableau, argument: str = "method") -> Tableau:
    tableau = tableaus.method(method, argument)
    if tableau.b_hat is not None:
        raise ArgumentError(f"{argument}: expected a fixed-step method, got the adaptive {tableau.name}")
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
        raise ArgumentError(f"dt: expected a step that is not lost in rounding at t = {t_end:g} s, got {dt:g}")
    return march.step_count(t_end, dt)


def _state(robot: Robot, **state) -> list[np.ndarray]:
    """Checked copies of a configuration (nq,) and of velocities or torques (nv,)."""
    require_robot("robot", robot)
    require_free_joints("compiled rollouts (simulate supports such robots)", robot)
    for name, x in state.items():
        wanted = (robot.nq,) if name.startswith("q") else (robot.nv,)
        if (shape := _shape(name, x)) != wanted:
            raise ArgumentError(f"{name}: expected shape {wanted}, got {shape}")
    return [x[0].copy() for x in as_batch(robot, **state)[1]]


def _shape(name: str, x) -> tuple[int, ...]:
    try:
        return np.shape(x)
    except Exception:  # rows of different lengths, or an object whose own conversion fails
        raise ArgumentError(f"{name}: expected an array of numbers, got {shown(x)}") from None


def start_of(robot: Robot, q0, v0, tau, t_end, dt) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """q0 (nq,), v0 (nv,), tau (1 or steps, nv), checked and copied, and the number of steps. Raises ArgumentError."""
    steps = step_count(t_end, dt)
    q, v = _state(robot, q0=q0, v0=v0)
    if tau is None:
        return q, v, np.zeros((1, robot.nv)), steps
    if len(shape := _shape("tau", tau)) == 1:
        return q, v, _state(robot, tau=tau)[0][None], steps
    if shape != (steps, robot.nv):
        wanted = f"shape ({robot.nv},), or ({steps}, {robot.nv}) for one per step"
        raise ArgumentError(f"tau: expected {wanted}, got {shape}")
    return q, v, as_batch(robot, tau=tau)[1][0].copy(), steps


def step_arguments(robot: Robot, q, v, tau, dt) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """q (nq,), v (nv,), tau (1, nv), checked and copied, and dt, of either sign. Raises ArgumentError."""
    if number("dt", dt) == 0.0:
        raise ArgumentError("dt: expected a number other than zero, got 0")
    q, v = _state(robot, q=q, v=v)
    return q, v, np.zeros((1, robot.nv)) if tau is None else _state(robot, tau=tau)[0][None], float(dt)


# --- explicit methods as numbers -------------------------------------------------------------------------------------


def explicit(tableau: Tableau, robot: Robot) -> Method:
    return Method(tableau.name, marches.march, lambda h: plan_of(tableau, h, robot))


@lru_cache(maxsize=64)
def _numbers(tableau: Tableau, h: float, identity: bool) -> np.ndarray:
    s = len(tableau.c)
    max_rows = max(len(rows) for _, rows in tableau.stages)
    table = np.zeros((s + 1, STAGE + s * (1 + max_rows)))
    for i, (base, rows) in enumerate(tableau.stages):
        table[i, :STAGE] = base, len(rows), 0
        table[base, 2] = base > 0
        table[i, STAGE : STAGE + s] = h * (tableau.A_classical[i] if i < s else tableau.b_classical)
        for r, row in enumerate(rows):
            start = STAGE + s * (1 + r)
            table[i, start : start + len(row)] = h * row
    return np.concatenate(([s, max_rows, float(tableau.family == "MK"), identity], table.ravel()))


def plan_of(tableau: Tableau, h: float, robot: Robot) -> np.ndarray:
    """Return the array that encodes steps of length h of the robot for the kernel."""
    no_basis = robot.nq == robot.nv or all(j.dof < 6 or (j.S == IDENTITY).all() for j in robot.joints)
    return _numbers(tableau, h, no_basis)
