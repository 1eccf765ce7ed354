"""Integrators that keep what the motion keeps, for a Robot under torques.

    method            keeps, of a floating robot without torques                     a step costs, of rollout's MK4
    momentum_form     spatial momentum, to round-off at any step and order           about 2
    variational       spatial momentum to round-off, and the symplectic form: energy
                      stays within a band for ever, without drift; order 2           4 to 6
    energy_momentum   energy and spatial momentum, to round-off; order 2             6 to 13

With gravity, momentum keeps the components gravity leaves: horizontal linear and vertical angular. A robot on a fixed
base has no such momentum; energy is kept all the same. A fixed-step method can not keep all three (Ge and Marsden
1988), so there are two implicit ones. All cost O(n).

Torques `tau` [N m, N] are None, one (nv,) for all steps, (steps, nv), each held for its step, or a function
tau(t, q, v) -> (nv,): a controller (`lambda t, q, v: controller(t, q, v, None).tau` for one without a state), friction,
a drive. A function closes the loop within the step, so that a smooth one keeps the method's order:

    method            tau(t, q, v) is taken                                          and the energy changes by
    momentum_form     at every stage, as `simulate` does; torques on the joints      the work, to the method's order
                      leave the spatial momentum what it is, to round-off
    variational       at the midpoint (t + h/2, q0 exp(x/2), x/h), exp x = q0^-1 q1  the work, to second order; if
                                                                                     tau has a potential, no drift
    energy_momentum   at the midpoint                                                the work x . tau, to round-off

The midpoint's torque and the step are solved for together, in some 6 to 20 trial steps; a torque that jumps, as dry
friction does, may have no solution there, which is an IntegrationError. `simulate` has the plant's friction, external
wrenches, sampled control and controllers with a state.

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
    """`rollout` with momenta for velocities: spatial momentum is a state, and without a wrench it does not change.

    Any fixed-step method of any order; arguments and errors as for `rollout`, tau also a function (see above). The
    momentum kept is the whole robot's about the inertial origin (Mueller 2018 (36)); a torque on the free base's
    coordinates or gravity changes it as its wrench does. Energy drifts as the method's order lets it. Raises
    ArgumentError for a robot that has no free base.
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
    """Discrete mechanics on the group, second order: the midpoint Lagrangian h L(q0 exp(x/2), x/h).

    Symplectic and symmetric in time: energy oscillates but does not drift, for ever, and momentum maps are kept to
    round-off (a free base's spatial momentum, without gravity). v is M^-1 p, p the discrete momentum. Torques do the
    midpoint's virtual work (forced discrete Euler-Lagrange equations). Arguments and errors as for `rollout`, tau also
    a function (see above); IntegrationError too where the implicit equations have no solution near, dt being too long
    for the motion.
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
    """Implicit, second order, symmetric in time: energy changes by the torques' work x . tau, exp x = q0^-1 q1, to
    round-off.

    A free base's momentum is kept too, as far as gravity and torques on it let it. (One free body alone under gravity
    has no joints to take the correction, and keeps its energy at the price of horizontal momentum, to second order.)
    Arguments and errors as for `variational`.
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
    """(q, v) after one step of `momentum_form` from time t, dt of either sign. Raises as it does."""
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
    """(q, v) after one step of `variational` from time t, dt of either sign. Raises as it does."""
    return _implicit_step(_variational, robot, q, v, tau, dt, t)


def energy_momentum_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: Torque, dt: float, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after one step of `energy_momentum` from time t, dt of either sign. Raises as it does."""
    return _implicit_step(_energy_momentum, robot, q, v, tau, dt, t)


# --- the methods ---------------------------------------------------------------------------------------------------


def _momentum_form(tableau: Tableau, robot: Robot) -> Method:
    _check_free_base(robot)
    name = f"momentum form, {tableau.name}"
    return Method(name, momentum_form_kernels.march_momentum_form, lambda h: plan_of(tableau, h, robot))


def _variational(robot: Robot) -> Method:
    return Method("variational", structure_preserving.march_variational, lambda h: np.array([h]))


def _energy_momentum(robot: Robot) -> Method:
    """The correction of the energy spares the coordinates of a free base that carries joints."""
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
