"""The properties a robot's terms must have, measured at random states: what `geomctrl check` prints.

Every property is one number, relative to the size of what it compares, that should not exceed its limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from geomctrl.arguments import count
from geomctrl.control.monitors import skew_residual
from geomctrl.mechanism import inertia
from geomctrl.papers import factored
from geomctrl.robot import Robot

from .sampling import derivative

NONPHYSICAL = "bodies whose inertia no rigid body has"


@dataclass(frozen=True)
class Check:
    """One property at all states: the worst value, the number of the state it was seen at, why it failed."""

    name: str
    worst: float
    limit: float
    state: int
    reason: str = ""

    @property
    def ok(self) -> bool:
        return bool(self.worst <= self.limit)


def check_robot(robot: Robot, states: int = 20, seed: int = 0) -> list[Check]:
    """All properties of `robot` at `states` random states, at least one (ArgumentError)."""
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
    yield "recursions equal the factored form: M", _relative(M, A.T @ factored.mass_matrix(robot.tree, x) @ A), 1e-11
    factored_C = A.T @ factored.coriolis_matrix(robot.tree, x, A @ v) @ A
    yield "recursions equal the factored form: C", _relative(C, factored_C, size), 1e-11
    back = robot.inverse_dynamics(q, v, robot.forward_dynamics(q, v, tau))
    yield "forward dynamics inverts inverse dynamics", _relative(back, tau, np.abs(bias).max() + 1.0), 1e-9
    change = derivative(lambda t: robot.energy(robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a))
    torque = robot.inverse_dynamics(q, v, a)
    size = np.abs(v * torque).sum() + abs(robot.energy(q, v))
    yield "d(energy)/dt = v . tau", _relative(change, v @ torque, size), 1e-8


def _relative(x, y, size: float | None = None) -> float:
    """|x - y|, by the largest entry, over `size`, by default that of the larger one; inf where it is not a number."""
    error = np.abs(x - y).max()
    if error == 0.0:
        return 0.0
    scale = max(np.abs(x).max(), np.abs(y).max()) if size is None else size
    return float(error / scale) if scale > 0.0 and error < np.inf else np.inf
