"""Simulate a robot in compiled code: many integration steps with torques that are constant within each step.

The state is in G x R^nv with the configuration group G: dq/dt = q v, dv/dt = forward dynamics (Park and Chung 2005
(44)). The kernel steps it with any fixed-step `Tableau`, Crouch-Grossman (46), commutator-free (39) or Munthe-Kaas
(47), and costs little more than the forward dynamics it evaluates. Use it for free motion, open-loop torques, long runs
and Monte Carlo studies; use `simulate` for closed loops with controllers written in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.integrators.tableaus import Tableau
from geomctrl.kernels import marches
from geomctrl.kernels.marches import STAGE
from geomctrl.robot import Robot

from .trajectory import Method, Trajectory, fixed_step, march_compiled

IDENTITY = np.eye(6)


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
    """Integrate a robot's motion from t = 0 to t_end without a controller.

    Parameters
    ----------
    robot : Robot
        The robot alone: no friction and no external wrenches (`simulate` has them).
    q0 : array_like, shape (nq,)
        Initial configuration [rad, m].
    v0 : array_like, shape (nv,)
        Initial velocity [rad/s, m/s].
    tau : array_like, shape (nv,) or (steps, nv), or None
        Joint torques [N m, N]: constant, or constant within each step. None is zero.
    t_end : float
        End time [s].
    dt : float
        Step [s]. The last step is shortened to end at t_end.
    method : str or Tableau
        A fixed-step method of `integrators.methods()` or a tableau. Default "MK4".
    every : int
        Store each every-th sample, the first and the last. Default 1.
    progress : callable, optional
        Called with the fraction done.

    Returns
    -------
    Trajectory

    Raises
    ------
    ArgumentError
        If an argument is invalid.
    IntegrationError
        If a step fails. Its `solution` is the Trajectory so far.

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> trajectory = gc.rollout(robot, [0.5, 0.0], [0.0, 0.0], None, t_end=1.0, dt=1e-3)
    >>> bool(abs(robot.energy(trajectory.q[-1], trajectory.v[-1]) - robot.energy([0.5, 0.0], [0.0, 0.0])) < 1e-8)
    True
    """
    return march_compiled(partial(explicit, fixed_step(method)), robot, q0, v0, tau, t_end, dt, every, progress)


# --- the method as numbers -------------------------------------------------------------------------------------------


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
