"""Integrators that preserve momentum, energy or the symplectic form, for a Robot under torques.

    method            preserves, for a floating robot without torques                cost of a step, relative to MK4
    momentum_form     spatial momentum, to round-off at any step and order           about 2
    variational       spatial momentum to round-off, and the symplectic form: energy
                      stays within a band without drift; order 2                     4 to 6
    energy_momentum   energy and spatial momentum, to round-off; order 2             6 to 13

Under gravity, the horizontal linear and the vertical angular momentum are preserved. A robot on a fixed base has no
such momentum; its energy is preserved all the same. A fixed-step method can not preserve all three (Ge and Marsden
1988), so there are two implicit methods. All cost O(n).

The torques `tau` [N m, N] are None, one array (nv,) for all steps, an array (steps, nv) held within each step, or a
function tau(t, q, v) -> (nv,), for example a controller without a state (`lambda t, q, v: controller(t, q, v,
None).tau`), friction or a drive. A function is evaluated within the step, so a smooth one keeps the method's order:

    method            tau(t, q, v) is evaluated                                      and the energy changes by
    momentum_form     at every stage, as in `simulate`; joint torques leave the      the work, to the method's order
                      spatial momentum unchanged, to round-off
    variational       at the midpoint (t + h/2, q0 exp(x/2), x/h), exp x = q0^-1 q1  the work, to second order; if
                                                                                     tau has a potential, no drift
    energy_momentum   at the midpoint                                                the work x . tau, to round-off

Midpoint torque and step are solved for together, in about 6 to 20 trial steps. A torque that jumps, like dry friction,
may have no solution there, which raises IntegrationError. Use `simulate` for the plant's friction, external wrenches,
sampled control and controllers with a state.

Sources: Mueller 2018 (36), (79) for the momentum form; Marsden and West, Discrete mechanics and variational
integrators, Acta Numerica 2001, sections 1.1 and 3.2 (forces); Lee, Leok and McClamroch 2007 for Lie groups; Lee, Liu,
Park and Srinivasa 2016 for O(n); Simo and Wong 1991 and Gonzalez 1996 for the discrete gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number
from geomctrl.errors import ArgumentError
from geomctrl.integrators.tableaus import Tableau
from geomctrl.kernels import marches as momentum_form_kernels
from geomctrl.kernels import structure_preserving
from geomctrl.kernels import structure_preserving as energy_momentum_kernels
from geomctrl.robot import Robot

from .rollout import plan_of
from .steppers import Midpoint, MomentumForm
from .trajectory import (
    Method,
    Trajectory,
    fixed_step,
    march_compiled,
    march_sampled,
    start_of,
    step_arguments,
    step_compiled,
)

__all__ = [
    "energy_momentum",
    "energy_momentum_step",
    "momentum_form",
    "momentum_form_step",
    "variational",
    "variational_step",
]

Torque = ArrayLike | Callable[[float, np.ndarray, np.ndarray], Any] | None


# --- the three methods -------------------------------------------------------------------------------------------


def momentum_form(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    tau: Torque,
    t_end: float,
    dt: float,
    method: str | Tableau = "MK4",
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """Integrate with the spatial momentum as a state: without external wrenches it is constant to round-off.

    Parameters
    ----------
    robot : Robot
        A robot with a free base.
    q0, v0, t_end, dt, method, every, progress
        As for `rollout`. Any fixed-step method of any order.
    tau : array_like, callable or None
        Joint torques [N m, N], or a function tau(t, q, v), see the module.

    Returns
    -------
    Trajectory

    Raises
    ------
    ArgumentError
        If the robot has no free base or an argument is invalid.
    IntegrationError
        If a step fails.

    Notes
    -----
    The momentum is that of the whole robot about the inertial origin (Mueller 2018 (36)). A torque on the coordinates
    of the free base, or gravity, changes it as its wrench does. The energy drifts with the order of the method.
    """
    tableau = fixed_step(method)
    if not callable(tau):
        return march_compiled(partial(_momentum_form, tableau), robot, q0, v0, tau, t_end, dt, every, progress)
    q, v, _, _ = start_of(robot, q0, v0, None, t_end, dt)
    _check_free_base(robot)
    stepper = MomentumForm(robot, tau, tableau)
    name = f"momentum form, {tableau.name}: "
    return march_sampled(stepper, stepper.momenta(q, v), t_end, dt, every, progress, stepper.state_of, name)


def variational(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    tau: Torque,
    t_end: float,
    dt: float,
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """Integrate with a symplectic, time-symmetric method of second order: the energy oscillates but does not drift.

    Parameters
    ----------
    robot : Robot
        The robot.
    q0, v0, t_end, dt, every, progress
        As for `rollout`.
    tau : array_like, callable or None
        Joint torques [N m, N], or a function tau(t, q, v), see the module.

    Returns
    -------
    Trajectory

    Raises
    ------
    ArgumentError
        If an argument is invalid.
    IntegrationError
        If the implicit equations have no solution nearby, because dt is too long for the motion.

    Notes
    -----
    Discrete mechanics on the group with the midpoint Lagrangian h L(q0 exp(x/2), x/h). Momentum maps are preserved to
    round-off (the spatial momentum of a free base, without gravity). v is M^-1 p with the discrete momentum p. Torques
    do the virtual work at the midpoint (forced discrete Euler-Lagrange equations).
    """
    return _implicit(_variational, robot, q0, v0, tau, t_end, dt, every, progress)


def energy_momentum(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    tau: Torque,
    t_end: float,
    dt: float,
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """Integrate with an implicit, time-symmetric method of second order that preserves the energy to round-off.

    Parameters
    ----------
    robot : Robot
        The robot.
    q0, v0, tau, t_end, dt, every, progress
        As for `variational`.

    Returns
    -------
    Trajectory

    Raises
    ------
    ArgumentError, IntegrationError
        As for `variational`.

    Notes
    -----
    The energy changes by the work x . tau of the torques, exp x = q0^-1 q1, to round-off. The momentum of a free base
    is preserved too, as far as gravity and torques on it permit. A single free body under gravity has no joints that
    could absorb the correction; it keeps its energy at the cost of horizontal momentum, to second order.
    """
    return _implicit(_energy_momentum, robot, q0, v0, tau, t_end, dt, every, progress)


# --- one step ----------------------------------------------------------------------------------------------------


def momentum_form_step(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: Torque,
    dt: float,
    method: str | Tableau = "MK4",
    t: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (q, v) after one step of `momentum_form` from time t; dt may be negative. Raises as it does."""
    tableau, t = fixed_step(method), number("t", t, "a finite number of seconds")
    if not callable(tau):
        return step_compiled(partial(_momentum_form, tableau), robot, q, v, tau, dt)
    q, v, _, h = step_arguments(robot, q, v, None, dt)
    _check_free_base(robot)
    stepper = MomentumForm(robot, tau, tableau)
    return stepper.state_of(stepper.step(t, stepper.momenta(q, v), h, t + h).y_next)


def variational_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: Torque, dt: float, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return (q, v) after one step of `variational` from time t; dt may be negative. Raises as it does."""
    return _implicit_step(_variational, robot, q, v, tau, dt, t)


def energy_momentum_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: Torque, dt: float, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return (q, v) after one step of `energy_momentum` from time t; dt may be negative. Raises as it does."""
    return _implicit_step(_energy_momentum, robot, q, v, tau, dt, t)


# --- the methods ---------------------------------------------------------------------------------------------------


def _momentum_form(tableau: Tableau, robot: Robot) -> Method:
    _check_free_base(robot)
    name = f"momentum form, {tableau.name}"
    return Method(name, momentum_form_kernels.march_momentum_form, lambda h: plan_of(tableau, h, robot))


def _variational(robot: Robot) -> Method:
    return Method("variational", structure_preserving.march_variational, lambda h: np.array([h]))


def _energy_momentum(robot: Robot) -> Method:
    """The energy correction does not change the coordinates of a free base that carries joints."""
    free = robot.joints[0].kind == "free" and robot.parents.count(-1) == 1 and robot.nv > 6
    march = energy_momentum_kernels.march_energy_momentum
    return Method("energy-momentum", march, lambda h: np.array([h, 6.0 if free else 0.0]))


def _implicit(method_of, robot, q0, v0, tau, t_end, dt, every, progress) -> Trajectory:
    if not callable(tau):
        return march_compiled(method_of, robot, q0, v0, tau, t_end, dt, every, progress)
    q, v, _, _ = start_of(robot, q0, v0, None, t_end, dt)
    stepper = Midpoint(method_of(robot), robot, tau)
    return march_sampled(stepper, np.concatenate((q, v)), t_end, dt, every, progress, stepper.state_of)


def _implicit_step(method_of, robot, q, v, tau, dt, t):
    t = number("t", t, "a finite number of seconds")
    if not callable(tau):
        return step_compiled(method_of, robot, q, v, tau, dt)
    q, v, _, h = step_arguments(robot, q, v, None, dt)
    stepper = Midpoint(method_of(robot), robot, tau)
    return stepper.state_of(stepper.step(t, np.concatenate((q, v)), h, t + h).y_next)


def _check_free_base(robot: Robot) -> None:
    if robot.joints[0].kind != "free" or robot.parents.count(-1) != 1:
        kind = robot.joints[0].kind
        raise ArgumentError(
            f"robot: momentum_form needs one free base that carries everything; {robot.name!r} begins with a {kind}"
            f" joint and has {robot.parents.count(-1)} bodies on the world"
        )
