"""Assertions of the properties of a robot's terms that control proofs rest on; each names the state that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import get_args

import numpy as np

from geomctrl.arguments import function, tolerance
from geomctrl.control.monitors import skew_residual
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form
from geomctrl.terms.skewness import mass_matrix_in_motion, residual_of_terms

from .evidence import record
from .sampling import at_state, derivative, random_states

Coriolis = Callable[[np.ndarray, np.ndarray], np.ndarray]
InverseDynamics = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def assert_skew_symmetric(
    robot: Robot,
    coriolis: Coriolis | None = None,
    *,
    mass_matrix_rate: Coriolis | None = None,
    states: int = 20,
    seed: int = 0,
    rtol: float = 1e-11,
) -> None:
    """Assert that N = Mdot - 2C is skew at random states: |N + N^T| <= rtol max(|Mdot|, 2 |C|, |M| |v|), by entries.

    `coriolis`: the C(q, v) under test, (nv, nv); None tests all of the robot's, its Mdot, and its recursion with a
    reference velocity. The message names a vector s with s . N s != 0: the term left over in a Lyapunov function's
    derivative. Skewness alone does not make C right (Mdot/2 passes): C v + g is also held against inverse dynamics, by
    Newton and Euler's recursion.

    `mass_matrix_rate`: Mdot(q, v) under test. By default it is the rate of M itself while the joints move, which shares
    no sum with C, and which is held against differences of `robot.mass_matrix` in turn.

    Raises ArgumentError for `states` below one and an `rtol` that is negative, infinite or nan.
    """
    rtol = tolerance("rtol", rtol)
    require_robot("robot", robot)
    for name, given in (("coriolis", coriolis), ("mass_matrix_rate", mass_matrix_rate)):
        if given is not None:
            function(name, given, f"{name}(q, v)")
    if coriolis is not None:
        _assert_skew(robot, coriolis, mass_matrix_rate, states, seed, rtol)
    else:
        for form in get_args(Form):
            C = partial(robot.coriolis_matrix, form=form)
            for rate in (mass_matrix_rate, robot.mass_matrix_rate):
                _assert_skew(robot, C, rate, states, seed, rtol)
            for q, v, s in random_states(robot, states, seed):
                _assert_recursions(robot, q, v, s, form, rtol)
    whose = "all of the robot's C" if coriolis is None else getattr(coriolis, "__name__", type(coriolis).__name__)
    record("sampled", f"Mdot - 2C is skew, {whose}, {robot.name}", states=states, seed=seed)


def _assert_skew(
    robot: Robot, coriolis: Coriolis, mass_matrix_rate: Coriolis | None, states: int, seed: int, rtol: float
) -> None:
    for q, v, _ in random_states(robot, states, seed):
        M, Mdot = mass_matrix_in_motion(robot, q, v)
        _assert_rate_of_mass_matrix(robot, q, v, M, Mdot)
        if mass_matrix_rate is not None:
            Mdot = np.asarray(mass_matrix_rate(q, v), float)
        C = np.asarray(coriolis(q, v), float)
        for name, A in (("Mdot", Mdot), ("C", C)):
            if A.shape != (robot.nv, robot.nv) or not np.isfinite(A).all():
                raise AssertionError(
                    f"{name}: expected a finite {robot.nv} x {robot.nv} matrix, got {A} {at_state(q, v)}"
                )
        residual = skew_residual(M, Mdot, C, v)
        if not residual <= rtol:
            N = Mdot - 2.0 * C
            error = np.abs(N + N.T)
            j, k = (int(x) for x in np.unravel_index(np.argmax(error), error.shape))
            values, vectors = np.linalg.eigh(N + N.T)
            s = vectors[:, np.argmax(np.abs(values))]
            raise AssertionError(
                f"Mdot - 2C is not skew: N + N^T has {N[j, k] + N[k, j]:.6g} at [{j}, {k}],"
                f" {residual:.3g} of max(|Mdot|, 2 |C|, |M| |v|), allowed {rtol:.3g};"
                f" s . N s = {s @ N @ s:.6g} for s = {np.array2string(s, separator=', ')} {at_state(q, v)}"
            )
        _assert_velocity_forces(robot, q, v, M, C, rtol)


def _assert_rate_of_mass_matrix(robot: Robot, q: np.ndarray, v: np.ndarray, M: np.ndarray, Mdot: np.ndarray) -> None:
    """M and Mdot against `robot.mass_matrix` along the motion, as exactly as differences allow."""
    rate = derivative(lambda t: robot.mass_matrix(robot.integrate(q, t * v)))
    size = np.abs(M).max() * max(np.abs(v).max(), 1.0)
    for name, x, y, allowed in (("M", M, robot.mass_matrix(q), 1e-13), ("Mdot", Mdot, rate, 1e-8)):
        error = np.abs(x - y).max()
        if not error <= allowed * size:
            raise AssertionError(
                f"{name}: the mass matrix in motion is not `robot.mass_matrix`: off by {error:.3g} of {size:.3g}"
                f" {at_state(q, v)}"
            )


def _assert_recursions(robot: Robot, q: np.ndarray, v: np.ndarray, s: np.ndarray, form: Form, rtol: float) -> None:
    """M, Mdot, C and g against the motion of M and the recursions, with a reference velocity s too."""
    residual = residual_of_terms(robot, q, v, s, form)
    if not residual <= rtol:
        raise AssertionError(
            f"M, Mdot, C and g, C in the form {form!r}, do not go with the mass matrix in motion and the recursions"
            f" M a + C v_ref + g: off by {residual:.3g}, allowed {rtol:.3g} {at_state(q, v)},"
            f" v_ref = a = {np.array2string(s, separator=', ')}"
        )


def _assert_velocity_forces(
    robot: Robot, q: np.ndarray, v: np.ndarray, M: np.ndarray, C: np.ndarray, rtol: float
) -> None:
    """C v + g against inverse dynamics."""
    zero = np.zeros(robot.nv)
    moving, rest = robot.inverse_dynamics(q, v, zero), robot.inverse_dynamics(q, zero, zero)
    error = C @ v + rest - moving
    size = np.abs(rest).max() + (np.abs(C).max() + np.abs(M).max() * np.abs(v).max()) * np.abs(v).max()
    if not np.abs(error).max() <= rtol * size:
        j = int(np.abs(error).argmax())
        raise AssertionError(
            f"C v + g is not the force of inverse dynamics: off by {error[j]:.6g} at [{j}], of {size:.3g}"
            f" {at_state(q, v)}"
        )


def assert_passive(
    robot: Robot,
    inverse_dynamics: InverseDynamics | None = None,
    *,
    states: int = 20,
    seed: int = 0,
    rtol: float = 1e-7,
) -> None:
    """Assert the power balance dE/dt = v . tau along short random motions q exp(v t), v + a t.

    `inverse_dynamics`: the tau(q, v, a) under test, M a + C v + g; None tests the robot's. The energy is the robot's,
    its derivative a sixth-order difference over 6 ms. Allowed error: rtol sum |v_k tau_k| and the energy's rounding.
    Raises ArgumentError for `states` below one and an `rtol` that is negative, infinite or nan.
    """
    rtol = tolerance("rtol", rtol)
    require_robot("robot", robot)
    if inverse_dynamics is not None:
        function("inverse_dynamics", inverse_dynamics, "inverse_dynamics(q, v, a)")
    torque = robot.inverse_dynamics if inverse_dynamics is None else inverse_dynamics
    for q, v, a in random_states(robot, states, seed):
        tau = np.asarray(torque(q, v, a), float)
        if tau.shape != (robot.nv,) or not np.isfinite(tau).all():
            raise AssertionError(f"tau: expected {robot.nv} finite numbers, got {tau} {at_state(q, v)}, a = {a}")

        def energy(t, q=q, v=v, a=a):
            return robot.energy(robot.integrate(q, t * v + 0.5 * t**2 * a), v + t * a)

        rate, power = float(derivative(energy)), float(v @ tau)
        rounding = 8e3 * np.finfo(float).eps * (abs(energy(0.0)) + robot.kinetic_energy(q, v))  # over steps of 1 ms
        if not abs(rate - power) <= rtol * np.abs(v * tau).sum() + rounding:
            raise AssertionError(
                f"energy is not balanced: dE/dt = {rate:.9g} W but v . tau = {power:.9g} W"
                f" {at_state(q, v)}, a = {np.array2string(a, separator=', ')}"
            )
    whose = "the robot's" if inverse_dynamics is None else getattr(torque, "__name__", type(torque).__name__)
    record("sampled", f"power is balanced, {whose} inverse dynamics, {robot.name}", states=states, seed=seed)
