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

from geomctrl import integrators
from geomctrl.arguments import checked, number
from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.integrators.tableaus import Tableau
from geomctrl.kernels import discrete_mechanics, spatial_momentum
from geomctrl.kernels.discrete_mechanics import ITERATIONS, PATIENCE
from geomctrl.kernels.runge_kutta import DONE, NOT_CONVERGED, SINGULAR
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.robot import Robot

from .rollout import REASONS, Trajectory, drive, fixed_step, plan_of, start_of, step_arguments

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
    q, v, torque, steps = start_of(robot, q0, v0, None if callable(tau) else tau, t_end, dt)
    _check_free_base(robot)
    name = f"momentum form, {tableau.name}"
    if callable(tau):
        return _sampled_momentum_form(robot, q, v, tau, t_end, dt, tableau, every, progress)

    def chunk(h, first, last, q_out, v_out):
        return spatial_momentum.march_momentum_form(
            robot._model, plan_of(tableau, h, robot), torque, first, last, q, v, every, q_out, v_out
        )

    return drive(chunk, name, q, v, steps, t_end, dt, every, progress)


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
    return _implicit("variational", _variational, robot, q0, v0, tau, t_end, dt, every, progress)


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
    return _implicit("energy-momentum", _energy_momentum, robot, q0, v0, tau, t_end, dt, every, progress)


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
    tableau = fixed_step(method)
    q, v, torque, h = step_arguments(robot, q, v, None if callable(tau) else tau, dt)
    t = number("t", t, "a finite number of seconds")
    _check_free_base(robot)
    if callable(tau):
        y = integrators.rk_step(
            _momentum_field(robot, tau), t, _momenta(robot, q, v), h, tableau, _momenta_group(robot)
        )
        return _velocities(robot, y[0])
    nowhere = np.empty((1, robot.nq)), np.empty((1, robot.nv))
    result, _ = spatial_momentum.march_momentum_form(
        robot._model, plan_of(tableau, h, robot), torque, 0, 1, q, v, 2, *nowhere
    )
    return _made(result, f"momentum form, {tableau.name}", h, q, v)


def variational_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: Torque, dt: float, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after one step of `variational` from time t, dt of either sign. Raises as it does."""
    return _implicit_step("variational", _variational, robot, q, v, tau, dt, t)


def energy_momentum_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: Torque, dt: float, t: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after one step of `energy_momentum` from time t, dt of either sign. Raises as it does."""
    return _implicit_step("energy-momentum", _energy_momentum, robot, q, v, tau, dt, t)


def _made(result, name, h, q, v):
    if result != DONE:
        raise IntegrationError(f"{name}: the step of dt = {h:g} can not be made: {REASONS[result]}")
    return q, v


# --- the implicit methods: march(h, taus, first, last, q, v, every, q_out, v_out) as `rollout.march` -------------


def _variational(robot: Robot) -> Callable:
    return partial(discrete_mechanics.march_variational, robot._model)


def _energy_momentum(robot: Robot) -> Callable:
    """The correction of the energy spares the coordinates of a free base that carries joints."""
    free = robot.joints[0].kind == "free" and robot.parents.count(-1) == 1 and robot.nv > 6
    return partial(discrete_mechanics.march_energy_momentum, robot._model, 6 if free else 0)


def _implicit(name, march_of, robot, q0, v0, tau, t_end, dt, every, progress) -> Trajectory:
    q, v, torque, steps = start_of(robot, q0, v0, None if callable(tau) else tau, t_end, dt)
    march = march_of(robot)
    midpoint, failures = _Midpoint(march, robot, tau), []

    def held(h, first, last, q_out, v_out):
        return march(h, torque, first, last, q, v, every, q_out, v_out)

    def sampled(h, first, last, q_out, v_out):
        for k in range(first, last):
            try:
                result = midpoint.step(k * dt, h, q, v)
            except ArgumentError as error:
                failures.append(str(error))
                return NOT_CONVERGED, k
            if result != DONE:
                return result, k
            if (k + 1) % every == 0:
                q_out[(k + 1) // every], v_out[(k + 1) // every] = q, v
        return DONE, last

    try:
        return drive(sampled if callable(tau) else held, name, q, v, steps, t_end, dt, every, progress)
    except IntegrationError as error:
        if not failures:
            raise
        raise IntegrationError(failures[0], error.solution) from None


def _implicit_step(name, march_of, robot, q, v, tau, dt, t):
    q, v, torque, h = step_arguments(robot, q, v, None if callable(tau) else tau, dt)
    t = number("t", t, "a finite number of seconds")
    march = march_of(robot)
    if callable(tau):
        result = _Midpoint(march, robot, tau).step(t, h, q, v)
    else:
        result, _ = march(h, torque, 0, 1, q, v, 2, np.empty((1, robot.nq)), np.empty((1, robot.nv)))
    return _made(result, name, h, q, v)


class _Midpoint:
    """Steps of an implicit method under torque(t + h/2, q0 exp(x/2), x/h), exp x = q0^-1 q1.

    F(tau) = tau - torque(... x(tau)) = 0 by a damped quasi-Newton method. The derivative comes from differences of the
    torque, and of x = h v + h^2/2 M^-1 (tau + ...), and is kept from step to step while it serves (Broyden's updates).
    """

    def __init__(self, march, robot, torque):
        self.march, self.robot, self.torque = march, robot, torque
        self.nowhere = np.empty((1, robot.nq)), np.empty((1, robot.nv))
        self.H: Any = None  # the inverse of F's derivative

    def step(self, t, h, q, v) -> int:
        """(q, v) at t to those at t + h, in place: how it went. Ends when a full Newton step no longer changes x."""
        tau = change = F0 = tau0 = _torque_at(self.torque, t + 0.5 * h, q, v)
        x0, size = h * v, max(1.0, np.abs(q).max())
        best, full, fresh, reach = np.inf, False, False, np.inf  # |F| at tau0; was the last step full; is H of tau0
        for i in range(ITERATIONS):
            q1, v1, error = q.copy(), v.copy(), np.inf
            result, _ = self.march(h, tau[None], 0, 1, q1, v1, 2, *self.nowhere)
            if result == DONE:
                x = self.robot.difference(q, q1)
                F = tau - self.wanted(t, h, q, x)
                error = np.linalg.norm(F)
                reach = np.abs(x - x0).max() if full else reach
                if reach <= (1e-15 if i < PATIENCE else 1e-11) * size or error <= 1e-15 * np.linalg.norm(tau):
                    q[:], v[:] = q1, v1
                    return DONE
            elif best == np.inf:
                return result
            nearer, serves = error < best, error < 0.3 * best
            if nearer:
                if best < np.inf:
                    self.learn(change, F - F0)
                best, fresh, tau0, F0, x0 = error, False, tau, F, x
            if self.H is None or not (serves or fresh):
                self.H, fresh, nearer = self.inverse_derivative(t, h, q, x0), True, True
            change, full = (-self.H @ F0, True) if nearer else (0.5 * change, False)
            tau = tau0 + change
        return NOT_CONVERGED

    def learn(self, change, dF):
        """Broyden's update: H dF = change."""
        y = self.H @ dF
        if (along := change @ y) > 0.1 * (change @ change):
            self.H += np.outer(change - y, change @ self.H) / along

    def wanted(self, t, h, q, x):
        return _torque_at(self.torque, t + 0.5 * h, self.robot.integrate(q, 0.5 * x), x / h)

    def inverse_derivative(self, t, h, q, x):
        e = 1e-7 * max(np.abs(x).max(), 1e-3 * abs(h))
        here = self.wanted(t, h, q, x)
        slopes = np.array([self.wanted(t, h, q, x + e * d) - here for d in np.eye(len(x))]).T / e
        M = self.robot.mass_matrix(self.robot.integrate(q, 0.5 * x))
        return np.linalg.pinv(np.eye(len(x)) - 0.5 * h * h * np.linalg.solve(M, slopes.T).T)


def _torque_at(torque, t, q, v) -> np.ndarray:
    try:
        tau = checked("tau(t, q, v)", torque(t, q.copy(), v.copy()), v.shape)
    except ArgumentError as error:
        raise ArgumentError(f"{error}, at t = {t:.9g}") from None
    if tau.shape != v.shape:
        raise ArgumentError(f"tau(t, q, v): expected shape {v.shape}, got {tau.shape}, at t = {t:.9g}")
    return tau.copy()  # the function may reuse its buffer


# --- the momentum form under a torque function: the same equations, stepped by `integrators` ---------------------


def _momenta_group(robot: Robot) -> Product:
    """Of y = (q, spatial momentum Pi, the joints' momenta)."""
    return Product(configuration_group(robot), Rn(robot.nv))


def _momenta(robot: Robot, q, v) -> np.ndarray:
    return np.concatenate((q, robot.momentum(q, v), (robot.mass_matrix(q) @ v)[6:]))


def _velocities(robot: Robot, y) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) of y."""
    q, v = y[: robot.nq].copy(), np.empty(robot.nv)
    if not spatial_momentum.momentum_rates(
        robot._model, q, y[robot.nq :].copy(), np.zeros(robot.nv), v, np.empty(robot.nv)
    ):
        raise IntegrationError(f"momentum form: {REASONS[SINGULAR]}")
    return q, v


def _momentum_field(robot: Robot, torque: Callable) -> Callable:
    def field(t, y):
        q, v = _velocities(robot, y)
        rate = np.empty(robot.nv)
        try:
            tau = _torque_at(torque, t, q, v)
        except ArgumentError as error:
            raise IntegrationError(str(error)) from None
        spatial_momentum.momentum_rates(robot._model, q, y[robot.nq :].copy(), tau.copy(), v, rate)
        return np.concatenate((v, rate))

    return field


def _sampled_momentum_form(robot, q, v, torque, t_end, dt, tableau, every, progress) -> Trajectory:
    def trajectory(solution):
        states = [_velocities(robot, y) for y in solution.y]
        q, v = (np.array(column) for column in zip(*states))
        return Trajectory(solution.t, q, v, solution.n_steps, solution.success, solution.reason)

    try:
        solution = integrators.integrate(
            _momentum_field(robot, torque), _momenta(robot, q, v), (0.0, t_end), dt, tableau, _momenta_group(robot),
            every=every, progress=progress,
        )  # fmt: skip
    except IntegrationError as error:
        raise IntegrationError(f"momentum form, {tableau.name}: {error}", trajectory(error.solution)) from None
    return trajectory(solution)


def _check_free_base(robot: Robot) -> None:
    if robot.joints[0].kind != "free" or robot.parents.count(-1) != 1:
        kind = robot.joints[0].kind
        raise ArgumentError(
            f"robot: momentum_form needs one free base that carries everything; {robot.name!r} begins with a {kind}"
            f" joint and has {robot.parents.count(-1)} bodies on the world"
        )
