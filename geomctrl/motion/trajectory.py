"""From steps to a `Trajectory`: compiled marches, chunk by chunk, and steps in Python where torque is a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geomctrl.errors import IntegrationError
from geomctrl.integrators.march import March, check_storing, collect
from geomctrl.kernels.marches import DONE, NOT_CONVERGED, NOT_FINITE, SINGULAR, TURNED
from geomctrl.robot import Robot

from .arguments import start_of, step_arguments

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


class Method(NamedTuple):
    """A method whose steps are compiled: name, march (`kernels.marches`), and the numbers it takes for steps of h."""

    name: str
    march: Callable
    numbers: Callable[[float], np.ndarray]


# --- torques that are held: compiled ---------------------------------------------------------------------------------


def march_compiled(
    method_of: Callable[[Robot], Method], robot: Robot, q0, v0, tau, t_end, dt, every, progress
) -> Trajectory:
    """The trajectory of `rollout`, made by any method."""
    q, v, torque, steps = start_of(robot, q0, v0, tau, t_end, dt)
    check_storing(every, progress)
    every = int(every)  # of any dtype
    method = method_of(robot)
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
        result, k = method.march(robot._model, method.numbers(h), torque, k, last, q, v, every, q_out, v_out)
        if result != DONE:
            reason = failure(method.name, result, h, k * dt)
            raise IntegrationError(reason, trajectory(k, k * dt, reason, False))
        if progress is not None:
            progress(k / steps)
    return trajectory(steps, t_end, f"reached t = {t_end:g} s", True)


def step_compiled(method_of: Callable[[Robot], Method], robot: Robot, q, v, tau, dt) -> tuple[np.ndarray, np.ndarray]:
    """The state of `rollout_step`, made by any method."""
    q, v, torque, h = step_arguments(robot, q, v, tau, dt)
    method = method_of(robot)
    result = step_in_place(method, robot, torque, h, q, v)
    if result != DONE:
        raise IntegrationError(failure(method.name, result, h))
    return q, v


def step_in_place(method: Method, robot: Robot, torque, h, q, v) -> int:
    """One step of (q, v) under torque (1, nv): how it went."""
    nowhere = np.empty((1, robot.nq)), np.empty((1, robot.nv))
    return method.march(robot._model, method.numbers(h), torque, 0, 1, q, v, 2, *nowhere)[0]


def failure(name: str, result: int, h: float, t: float | None = None) -> str:
    at = "" if t is None else f" at t = {t:.9g} s"
    return f"{name}: the step of dt = {h:g}{at} can not be made: {REASONS[result]}"


# --- torques that are functions: steps in Python ---------------------------------------------------------------------


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
