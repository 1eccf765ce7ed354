"""Roll a robot out in compiled code: many integration steps, states (q, v), torques that are constant within a step.

The state lives on G x R^nv, G the robot's configurations: dq/dt = q v, dv/dt = forward dynamics (Park and Chung 2005
(44)). The kernel steps it by any fixed-step `Tableau`, Crouch-Grossman (46), commutator-free (39) or Munthe-Kaas (47),
and costs little more than the forward dynamics it evaluates. `simulate` closes loops around controllers written in
Python; this is for many steps without one: free motion, open-loop torques, long runs, Monte Carlo.
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

from .trajectory import Method, Trajectory, fixed_step, march_compiled, step_compiled

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
    """Integrate the robot's motion under given joint torques, on its configuration group.

    The robot moves alone, without friction and external wrenches; `simulate` has them.

    Parameters
    ----------
    robot : Robot
    q0 : array_like (nq,)
        Initial configuration.
    v0 : array_like (nv,)
        Initial joint velocities [rad/s, m/s].
    tau : array_like (nv,) or (steps, nv), or None
        Joint torques [N m, N], for all steps or one row a step; None is zero.
    t_end : float
        End time [s].
    dt : float
        Step [s]; the last one is shortened to end at `t_end`.
    method : str or Tableau, default "MK4"
        A fixed-step method of `integrators.methods()`.
    every : int, default 1
        Store each `every`-th sample, the first and the last.
    progress : callable, optional
        `progress(fraction)` is called now and then.

    Returns
    -------
    Trajectory
        With times t (N,), configurations q (N, nq) and velocities v (N, nv).

    Raises
    ------
    IntegrationError
        A step can not be made; `solution` is the Trajectory so far.
    ArgumentError

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import models, rollout
    >>> arm = models.two_link()
    >>> path = rollout(arm, [0.3, 0.0], [0.0, 0.0], None, 1.0, 1e-3)
    >>> bool(np.ptp(arm.energy(path.q, path.v)) < 1e-8)  # J
    True
    """
    return march_compiled(partial(explicit, fixed_step(method)), robot, q0, v0, tau, t_end, dt, every, progress)


def rollout_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None, dt: float, method: str | Tableau = "MK4"
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after one step of dt, of either sign: for people who write the loop themselves.

    Raises ArgumentError for bad arguments and IntegrationError when the step can not be made.
    """
    return step_compiled(partial(explicit, fixed_step(method)), robot, q, v, tau, dt)


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
    """The array a kernel takes for steps of h of the robot."""
    no_basis = robot.nq == robot.nv or all(j.dof < 6 or (j.S == IDENTITY).all() for j in robot.joints)
    return _numbers(tableau, h, no_basis)
