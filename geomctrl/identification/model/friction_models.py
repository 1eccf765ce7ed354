"""Friction models of plants in identification: columns of the regressor, and fits by output error.

A model that is linear in its parameters joins the regressor: `friction_columns`. The parameters of any other, LuGre's
for instance, are found by `fit_friction`, which simulates the model's state along measured velocities and compares its
torque with what the robot's inverse dynamics leave of the measured torques.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, exactly, function, instance
from geomctrl.control.friction.model import FrictionModel
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from .columns import Column


def friction_columns(robot: Robot, friction: FrictionModel) -> list[Column]:
    """The columns of a linear friction model, for `RegressorModel(robot, viscous=False, coulomb=False, columns=...)`.

    Parameters
    ----------
    robot : Robot
        Its inverse dynamics are the load of load-dependent friction: what gears transmit is not measured apart.
    friction : FrictionModel
        Its parameters are the columns' prior.

    Returns
    -------
    list of Column
        One a parameter, friction1, friction2, ..., in the order of `friction.parameters`.

    Raises
    ------
    ArgumentError
        The model is not linear in its parameters: use `fit_friction`.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    instance("friction", friction, FrictionModel, "a geomctrl FrictionModel").check(robot.nv)
    prior = friction.parameters(robot.nv)

    def column(k: int) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        return lambda q, v, a: friction.columns(v, robot.inverse_dynamics(q, v, a))[..., k]

    return [
        Column(f"friction{k + 1}", column(k), positive=bool(x >= 0.0), initial=float(x)) for k, x in enumerate(prior)
    ]


def friction_torque(friction: FrictionModel, t: ArrayLike, v: ArrayLike, load: ArrayLike | None = None) -> np.ndarray:
    """The torques (N, nv) of a friction model along velocities v (N, nv) at times t (N,), by steps between samples.

    The state starts at `friction.start(v[0])` and moves by Runge-Kutta steps of second order, with velocities and loads
    interpolated, as many a sample as its rate needs.
    """
    t, v, load = _motion(t, v, load)
    instance("friction", friction, FrictionModel, "a geomctrl FrictionModel").check(v.shape[1])
    return _torques(friction, t, v, load)


def _torques(friction: FrictionModel, t: np.ndarray, v: np.ndarray, load: np.ndarray) -> np.ndarray:
    x, out = friction.start(v[0]), np.empty(v.shape)
    for k in range(len(t)):
        out[k] = friction.torque(v[k], load[k], x)
        if x is not None and k + 1 < len(t):
            x = _advanced(friction, x, t[k + 1] - t[k], v[k : k + 2], load[k : k + 2])
    return out


def _advanced(friction: FrictionModel, x: Any, dt: float, v: np.ndarray, load: np.ndarray) -> Any:
    """The state after a sample, in steps over which it changes by an eighth of itself at most."""
    fastest = 0.0
    for end in (0, 1):
        change = np.abs(friction.state_rate(v[end], load[end], x) - friction.state_rate(v[end], load[end], 0.0 * x))
        fastest = max(fastest, float((change / np.maximum(np.abs(x), 1e-300)).max()))
    steps = min(max(int(np.ceil(8.0 * dt * fastest)), 1), 100)
    h = dt / steps
    for j in range(steps):
        first, middle = ((1.0 - s) * v[0] + s * v[1] for s in (j / steps, (j + 0.5) / steps))
        loads = [(1.0 - s) * load[0] + s * load[1] for s in (j / steps, (j + 0.5) / steps)]
        half = x + 0.5 * h * np.asarray(friction.state_rate(first, loads[0], x))
        x = x + h * np.asarray(friction.state_rate(middle, loads[1], half))
    return x


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """`model` with the parameters x that were found; std, their standard deviations for white noise; error, the root
    mean square of the torques that are left [N m, N]; reason, why the search ended."""

    model: FrictionModel
    x: np.ndarray
    std: np.ndarray
    error: float
    reason: str


def fit_friction(
    make: Callable[[np.ndarray], FrictionModel],
    start: ArrayLike,
    t: ArrayLike,
    v: ArrayLike,
    torque: ArrayLike,
    load: ArrayLike | None = None,
) -> FrictionFit:
    """Find the positive parameters with which a friction model, with a state or not, gives the measured friction.

    Parameters
    ----------
    make : function
        The model with parameters x (p,), `lambda x: LuGre(*x)` for instance. ArgumentErrors of it end a trial only.
    start : (p,)
        First parameters, > 0; the search moves their logarithms.
    t, v : (N,), (N, nv)
        Times [s] and measured joint velocities [rad/s, m/s].
    torque : (N, nv)
        Friction torques [N m, N]: the measured torques less the inverse dynamics of the robot.
    load : (N, nv), optional
        What the actuators transmit, for models that depend on it; default zero.

    Returns
    -------
    FrictionFit

    Raises
    ------
    ArgumentError
        Bad arguments, or a start with which there is no model.
    """
    from scipy.optimize import least_squares  # slow to import

    function("make", make, "of the parameters (p,)")
    first = checked("start", start, ())
    if first.ndim != 1 or not first.size or (first <= 0.0).any():
        raise ArgumentError(f"start: expected parameters (p,) > 0, got {start!r:.80}")
    t, v, load = _motion(t, v, load)
    torque = exactly("torque", torque, v.shape)
    instance("make", make(first), FrictionModel, "a function that returns a FrictionModel").check(v.shape[1])
    worst = 1e3 * float(np.abs(torque).max()) + 1.0

    def residual(theta: np.ndarray) -> np.ndarray:
        try:
            error = _torques(make(np.exp(theta)), t, v, load) - torque
        except ArgumentError:
            return np.full(torque.size, worst)
        return np.clip(np.nan_to_num(error, nan=worst), -worst, worst).ravel()

    minimise: Any = least_squares
    solution = minimise(residual, np.log(first), x_scale="jac", max_nfev=100)
    x, J = np.exp(solution.x), solution.jac
    variance = 2.0 * solution.cost / max(torque.size - len(x), 1)
    std = x * np.sqrt(np.diag(np.linalg.pinv(J.T @ J)) * variance)
    error = float(np.sqrt(2.0 * solution.cost / torque.size))
    return FrictionFit(make(x), x, std, error, str(solution.message))


def _motion(t: ArrayLike, v: ArrayLike, load: ArrayLike | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """t (N,), v and load (N, nv), checked."""
    times = checked("t", t, ())
    if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0.0).all():
        raise ArgumentError(f"t: expected times (N,) that increase, got {t!r:.80}")
    velocities = checked("v", v, ())
    if velocities.ndim != 2 or len(velocities) != len(times):
        raise ArgumentError(f"v: expected shape ({len(times)}, nv), got {velocities.shape}")
    return times, velocities, np.zeros(velocities.shape) if load is None else exactly("load", load, velocities.shape)
