"""Tests of a robot's terms: skew symmetry, passivity and consistency of M, C, g and the recursions.

They are available as assertions, which report a violating state, and as residuals at random states (`geomctrl check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np

from geomctrl.arguments import checked, count, function, tolerance
from geomctrl.control.monitors.skew import skew_residual
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.other_names import named_arguments
from geomctrl.papers import factored
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form
from geomctrl.terms.skewness import mass_matrix_in_motion, residual_of_terms

from .domain import at_state
from .evidence import record


def random_states(robot: Robot, states: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield `states` random (q, v, a), reproducible for a seed."""
    require_robot("robot", robot)
    states, rng = count("states", states, 1), np.random.default_rng(count("seed", seed))
    for _ in range(states):
        yield robot.random_configuration(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)


def derivative(f: Callable[[float], Any], h: float = 1e-3) -> Any:
    """df/dt at t = 0 of a smooth f(t), a number or an array: sixth-order central difference over +-3h."""
    return sum(w * (f(k * h) - f(-k * h)) for k, w in ((1, 45.0), (2, -9.0), (3, 1.0))) / (60.0 * h)


Coriolis = Callable[[np.ndarray, np.ndarray], np.ndarray]


@named_arguments()
def assert_skew_symmetric(
    robot: Robot,
    coriolis: Coriolis | None = None,
    *,
    mass_matrix_rate: Coriolis | None = None,
    states: int = 20,
    seed: int = 0,
    rtol: float = 1e-11,
) -> None:
    """Test that N = Mdot - 2C is skew-symmetric at random states: |N + N^T| <= rtol max(|Mdot|, 2 |C|, |M| |v|).

    Parameters
    ----------
    robot : Robot
        The robot.
    coriolis : callable, optional
        C(q, v) (nv, nv) to test. None tests all forms of the robot, its Mdot, and its recursion with a reference
        velocity.
    mass_matrix_rate : callable, optional
        Mdot(q, v) to test. The default is the rate of M along the motion, computed independently of C and compared with
        differences of `robot.mass_matrix`.
    states, seed : int
        Number of random states, at least one, and their seed.
    rtol : float
        Relative tolerance, by entries.

    Raises
    ------
    AssertionError
        With a state, and a vector s with s . N s != 0: the term that remains in V'.
    ArgumentError
        For `states` below one and an `rtol` that is negative, infinite or nan.

    Notes
    -----
    Skew symmetry does not imply that C is correct (Mdot/2 passes). C v + g is therefore compared with inverse dynamics
    by the Newton-Euler recursion.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.testing.assert_skew_symmetric(gc.models.two_link())
    """
    rtol = tolerance("rtol", rtol)
    require_robot("robot", robot)
    for name, callback in (("coriolis", coriolis), ("mass_matrix_rate", mass_matrix_rate)):
        if callback is not None:
            function(name, callback, f"{name}(q, v)", 2)
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
            Mdot = checked("mass_matrix_rate(q, v)", mass_matrix_rate(q, v), (), finite=False)
        C = checked("coriolis(q, v)", coriolis(q, v), (), finite=False)
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
    """Compare M and Mdot with `robot.mass_matrix` along the motion, as exactly as differences allow."""
    rate = derivative(lambda t: robot.mass_matrix(robot.integrate(q, t * v)))
    size = np.abs(M).max() * max(np.abs(v).max(), 1.0)
    for name, x, y, allowed in (("M", M, robot.mass_matrix(q), 1e-13), ("Mdot", Mdot, rate, 1e-8)):
        error = np.abs(x - y).max()
        if not error <= allowed * size:
            raise AssertionError(
                f"{name}: the mass matrix for v != 0 differs from `robot.mass_matrix` by {error:.3g} of {size:.3g}"
                f" {at_state(q, v)}"
            )


def _assert_recursions(robot: Robot, q: np.ndarray, v: np.ndarray, s: np.ndarray, form: Form, rtol: float) -> None:
    """Compare M, Mdot, C and g with the motion of M and the recursions, also with a reference velocity s."""
    residual = residual_of_terms(robot, q, v, s, form)
    if not residual <= rtol:
        raise AssertionError(
            f"M, Mdot, C and g, C in the form {form!r}, do not agree with the mass matrix for v != 0 and the recursion"
            f" for M a + C v_ref + g: difference {residual:.3g}, allowed {rtol:.3g} {at_state(q, v)},"
            f" v_ref = a = {np.array2string(s, separator=', ')}"
        )


def _assert_velocity_forces(
    robot: Robot, q: np.ndarray, v: np.ndarray, M: np.ndarray, C: np.ndarray, rtol: float
) -> None:
    """Compare C v + g with inverse dynamics."""
    zero = np.zeros(robot.nv)
    moving, rest = robot.inverse_dynamics(q, v, zero), robot.inverse_dynamics(q, zero, zero)
    error = C @ v + rest - moving
    size = np.abs(rest).max() + (np.abs(C).max() + np.abs(M).max() * np.abs(v).max()) * np.abs(v).max()
    if not np.abs(error).max() <= rtol * size:
        j = int(np.abs(error).argmax())
        raise AssertionError(
            f"C v + g is not the force of inverse dynamics: difference {error[j]:.6g} at [{j}], of {size:.3g}"
            f" {at_state(q, v)}"
        )


NONPHYSICAL = "bodies with an inertia that no rigid body can have"


@dataclass(frozen=True)
class Check:
    """One property at all states: the worst value, the index of its state, and the reason of a failure."""

    name: str
    worst: float
    limit: float
    state: int
    reason: str = ""

    @property
    def ok(self) -> bool:
        return bool(self.worst <= self.limit)


def check_robot(robot: Robot, states: int = 20, seed: int = 0) -> list[Check]:
    """Residuals of all properties of `robot` at `states` random states (at least one, else ArgumentError)."""
    states = count("states", states, 1)
    rng = np.random.default_rng(seed)
    worst: dict[str, tuple[float, float, int]] = {}
    for k in range(states):
        q = robot.random_configuration(rng)
        v, a, v_ref, tau = rng.normal(size=(4, robot.nv))
        for name, value, limit in _residuals(robot, q, v, a, v_ref, tau):
            if name not in worst or not value <= worst[name][0]:
                worst[name] = (value, limit, k)
    return [_inertias(robot)] + [Check(name, *rest) for name, rest in worst.items()]


def _inertias(robot: Robot) -> Check:
    bad = [(b, inertia.violation(pi)) for b, pi in zip(robot.body_names, robot.parameters)]
    reasons = [f"body {b!r}: {why}" for b, why in bad if why is not None]
    return Check(NONPHYSICAL, float(len(reasons)), 0.0, 0, "; ".join(reasons))


def _residuals(robot: Robot, q, v, a, v_ref, tau) -> Iterator[tuple[str, float, float]]:
    M, Mdot, C, g = robot.terms(q, v)
    chris, adjoint = robot.coriolis_matrix(q, v, "christoffel"), robot.coriolis_matrix(q, v, "adjoint")
    root = np.sqrt(np.abs(np.diagonal(M)))
    bias = robot.inverse_dynamics(q, v, np.zeros(robot.nv))
    reference = robot.inverse_dynamics(q, v, a, v_ref)
    size = max(np.abs(Mdot).max(), 2.0 * np.abs(C).max(), np.abs(M).max() * np.abs(v).max())
    yield "M = M^T", _relative(M, M.T), 1e-13
    smallest = float(np.linalg.eigvalsh(M / np.outer(root, root))[0]) if np.isfinite(M).all() else np.nan
    yield "M > 0: 1 / smallest eigenvalue, scaled", 1.0 / smallest if smallest > 0.0 else np.inf, 1e12
    yield "Mdot - 2C skew, Ploen's C", skew_residual(M, Mdot, C, v), 1e-12
    yield "Mdot - 2C skew, Christoffel's C", skew_residual(M, Mdot, chris, v), 1e-12
    yield "Mdot - 2C skew, the adjoint C", skew_residual(M, Mdot, adjoint, v), 1e-12
    rate = derivative(lambda t: robot.mass_matrix(robot.integrate(q, t * v)))
    yield "Mdot is the derivative of M", _relative(Mdot, rate, size), 1e-8
    yield "C v + g is the bias force, Ploen's C", _relative(C @ v + g, bias), 1e-10
    yield "C v + g is the bias force, Christoffel's C", _relative(chris @ v + g, bias), 1e-10
    yield "C v + g is the bias force, the adjoint C", _relative(adjoint @ v + g, bias), 1e-10
    yield "M a + C v_ref + g is inverse dynamics", _relative(M @ a + C @ v_ref + g, reference), 1e-10
    linear = robot.regressor(q, v, a, v_ref) @ robot.parameters.ravel() + robot.armature * a
    yield "regressor times parameters, and armature a, is inverse dynamics", _relative(linear, reference), 1e-10
    A, x = robot.coupling.matrix, robot.coupling.tree_configuration(q)
    yield (
        "recursions equal the factored form: M",
        _relative(M, A.T @ factored.mass_matrix(robot.coupling.tree, x) @ A),
        1e-11,
    )
    factored_C = A.T @ factored.coriolis_matrix(robot.coupling.tree, x, A @ v) @ A
    yield "recursions equal the factored form: C", _relative(C, factored_C, size), 1e-11
    back = robot.inverse_dynamics(q, v, robot.forward_dynamics(q, v, tau))
    yield "forward dynamics inverts inverse dynamics", _relative(back, tau, np.abs(bias).max() + 1.0), 1e-9
    change = derivative(lambda t: robot.energy(robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a))
    torque = robot.inverse_dynamics(q, v, a)
    size = np.abs(v * torque).sum() + abs(robot.energy(q, v))
    yield "d(energy)/dt = v . tau", _relative(change, v @ torque, size), 1e-8


def _relative(x, y, size: float | None = None) -> float:
    """Largest entry of |x - y| relative to `size`, default the larger of both; inf if it is not finite."""
    error = np.abs(x - y).max()
    if error == 0.0:
        return 0.0
    scale = max(np.abs(x).max(), np.abs(y).max()) if size is None else size
    return float(error / scale) if scale > 0.0 and error < np.inf else np.inf
