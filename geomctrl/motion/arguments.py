"""What callers of this room say: a state, torques, a time and a step, checked and copied."""

from __future__ import annotations

import math

import numpy as np

from geomctrl.arguments import number
from geomctrl.errors import ArgumentError
from geomctrl.integrators import march, tableaus
from geomctrl.integrators.tableaus import Tableau
from geomctrl.mechanism.mechanism import require_free_joints, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.robot import Robot


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
    return march.step_count(t_end, dt)


def _state(robot: Robot, **state) -> list[np.ndarray]:
    """Checked copies of a configuration (nq,) and of velocities or torques (nv,)."""
    require_robot("robot", robot)
    require_free_joints("marches in compiled code (simulate takes such robots)", robot)
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
