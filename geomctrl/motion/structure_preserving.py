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
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, function, number
from geomctrl.errors import ArgumentError
from geomctrl.integrators.tableaus import Tableau
from geomctrl.kernels import marches as momentum_form_kernels
from geomctrl.kernels import structure_preserving as implicit_kernels
from geomctrl.robot import Robot

from .steppers import Midpoint, MomentumForm
from .trajectory import (
    Method,
    Trajectory,
    fixed_step,
    march_compiled,
    march_sampled,
    plan_of,
    start_of,
    step_arguments,
    step_compiled,
)

METHODS = ("momentum_form", "variational", "energy_momentum")
Name = Literal["momentum_form", "variational", "energy_momentum"]
Torque = ArrayLike | Callable[[float, np.ndarray, np.ndarray], Any] | None


def march_preserving(
    robot: Robot, q0, v0, tau: Torque, t_end, dt, method: str, every, progress, tableau: str | Tableau
) -> Trajectory:
    """The trajectory of `rollout` with one of METHODS."""
    name, method_of, tableau = _chosen(method, tableau)
    if not callable(tau):
        return march_compiled(method_of, robot, q0, v0, tau, t_end, dt, every, progress)
    q, v, _, _ = start_of(robot, q0, v0, None, t_end, dt)
    stepper, y = _start(method_of(robot), robot, tau, tableau, q, v)
    return march_sampled(stepper, y, t_end, dt, every, progress, stepper.state_of, name)


def step(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: Torque,
    dt: float,
    method: Name = "variational",
    tableau: str | Tableau = "MK4",
    t: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (q, v) after one step of `rollout` with this method from time t; dt may be negative. Raises as it does."""
    _, method_of, tableau = _chosen(method, tableau)
    t = number("t", t, "a finite number of seconds")
    if not callable(tau):
        return step_compiled(method_of, robot, q, v, tau, dt)
    q, v, _, h = step_arguments(robot, q, v, None, dt)
    stepper, y = _start(method_of(robot), robot, tau, tableau, q, v)
    return stepper.state_of(stepper.step(t, y, h, t + h).y_next)


# --- the methods ---------------------------------------------------------------------------------------------------


def _momentum_form(tableau: Tableau, robot: Robot) -> Method:
    _check_free_base(robot)
    name = f"momentum form, {tableau.name}"
    return Method(name, momentum_form_kernels.march_momentum_form, lambda h: plan_of(tableau, h, robot))


def _variational(robot: Robot) -> Method:
    return Method("variational", implicit_kernels.march_variational, lambda h: np.array([h]))


def _energy_momentum(robot: Robot) -> Method:
    """The energy correction does not change the coordinates of a free base that carries joints."""
    free = robot.joints[0].kind == "free" and robot.parents.count(-1) == 1 and robot.nv > 6
    march = implicit_kernels.march_energy_momentum
    return Method("energy-momentum", march, lambda h: np.array([h, 6.0 if free else 0.0]))


def _chosen(method: str, tableau: str | Tableau) -> tuple[str, Callable[[Robot], Method], Tableau]:
    """(prefix of messages, the method of a robot, the tableau)."""
    choice("method", method, METHODS)
    tableau = fixed_step(tableau, "tableau")
    if method == "momentum_form":
        return f"momentum form, {tableau.name}: ", partial(_momentum_form, tableau), tableau
    return "", _variational if method == "variational" else _energy_momentum, tableau


def _start(method: Method, robot: Robot, tau: Callable, tableau: Tableau, q, v) -> tuple[MomentumForm | Midpoint, Any]:
    """The stepper for a torque function, and its initial state."""
    function("tau", tau, "tau(t, q, v)", 3)
    if method.march is momentum_form_kernels.march_momentum_form:
        stepper = MomentumForm(robot, tau, tableau)
        return stepper, stepper.momenta(q, v)
    return Midpoint(method, robot, tau), np.concatenate((q, v))


def _check_free_base(robot: Robot) -> None:
    if robot.joints[0].kind != "free" or robot.parents.count(-1) != 1:
        kind = robot.joints[0].kind
        raise ArgumentError(
            f"robot: momentum_form needs one free base that carries everything; {robot.name!r} begins with a {kind}"
            f" joint and has {robot.parents.count(-1)} bodies on the world"
        )
