"""Simulate a robot in compiled code: many integration steps with torques that are constant within each step.

The state is in G x R^nv with the configuration group G: dq/dt = q v, dv/dt = forward dynamics (Park and Chung 2005
(44)). The kernel steps it with any fixed-step `Tableau`, Crouch-Grossman (46), commutator-free (39) or Munthe-Kaas
(47), and costs little more than the forward dynamics it evaluates. Use it for free motion, open-loop torques, long runs
and Monte Carlo studies; use `simulate` for closed loops with controllers written in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.integrators.tableaus import Tableau
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot

from .structure_preserving import METHODS, Torque, march_preserving
from .trajectory import Trajectory, explicit, fixed_step, march_compiled


@named_arguments()
def rollout(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    tau: Torque,
    t_end: float,
    dt: float,
    method: str | Tableau = "MK4",
    every: int = 1,
    progress: Callable[[float], None] | None = None,
    tableau: str | Tableau = "MK4",
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
    tau : array_like, shape (nv,) or (steps, nv), callable or None
        Joint torques [N m, N]: constant, or constant within each step. None is zero. The three conservative
        methods, see Notes, also take a function tau(t, q, v) -> (nv,), such as feedback without a state.
    t_end : float
        End time [s].
    dt : float
        Step [s]. The last step is shortened to end at t_end.
    method : str or Tableau
        A fixed-step method of `integrators.methods()`, a tableau, or "variational", "energy_momentum" or
        "momentum_form" (for a free base), which are conservative, see Notes. Default "MK4".
    every : int
        Store each every-th sample, the first and the last. Default 1.
    progress : callable, optional
        Called with the fraction done.
    tableau : str or Tableau
        For "momentum_form": any fixed-step method, which determines the order. Default "MK4".

    Returns
    -------
    Trajectory

    Raises
    ------
    ArgumentError
        If an argument is invalid, or "momentum_form" is chosen for a robot without a free base.
    IntegrationError
        If a step fails; with the implicit methods because dt is too long for the motion. Its `solution` is the
        Trajectory so far.

    Notes
    -----
    "variational"
        Discrete mechanics on the group with the midpoint Lagrangian h L(q0 exp(x/2), x/h). Momentum maps are preserved
        to round-off (the spatial momentum of a free base, without gravity). v is M^-1 p with the discrete momentum p.
        Torques do the virtual work at the midpoint (forced discrete Euler-Lagrange equations).
    "energy_momentum"
        The energy changes by the work x . tau of the torques, exp x = q0^-1 q1, to round-off. The momentum of a free
        base is preserved too, as far as gravity and torques on it permit. A single free body under gravity has no
        joints that could absorb the correction; it keeps its energy at the cost of horizontal momentum, to second
        order.
    "momentum_form"
        The state is the momentum of the whole robot about the inertial origin (Mueller 2018 (36)). A torque on the
        coordinates of the free base, or gravity, changes it as its wrench does. The energy drifts with the order of the
        tableau.

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> trajectory = gc.rollout(robot, [0.5, 0.0], [0.0, 0.0], None, t_end=1.0, dt=1e-3)
    >>> bool(abs(robot.energy(trajectory.q[-1], trajectory.v[-1]) - robot.energy([0.5, 0.0], [0.0, 0.0])) < 1e-8)
    True
    >>> path = gc.rollout(robot, [0.5, 0.0], [0.0, 0.0], None, t_end=1.0, dt=0.01, method="energy_momentum")
    >>> bool(abs(robot.energy(path.q[-1], path.v[-1]) - robot.energy([0.5, 0.0], [0.0, 0.0])) < 1e-10)
    True
    """
    if isinstance(method, str) and method in METHODS:
        return march_preserving(robot, q0, v0, tau, t_end, dt, method, every, progress, tableau)
    if callable(tau):
        raise ArgumentError(f"tau: expected an array or None: a function needs the method {' or '.join(METHODS)}")
    try:
        tableau = fixed_step(method)
    except NameNotFoundError as error:
        raise NameNotFoundError(f"{error}; or {', '.join(METHODS)}") from None
    return march_compiled(partial(explicit, tableau), robot, q0, v0, tau, t_end, dt, every, progress)
