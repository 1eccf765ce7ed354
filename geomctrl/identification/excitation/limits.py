"""What a motion must keep of positions, velocities, accelerations, jerks and torques."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, number
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

RAMP = 0.25  # s, in which the default acceleration reaches the greatest velocity


@dataclass(frozen=True, eq=False)
class Limits:
    """Of positions, velocities, accelerations, efforts and jerks (nv,), all but the first two in both directions;
    efforts and jerks may be infinite."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    jerk: np.ndarray


def limits_of(
    robot: Robot,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    jerk: ArrayLike | None = None,
    torque_margin: float = 0.0,
) -> Limits:
    """The limits given, the robot's where not; see `optimize`. Raises ArgumentError."""
    if any(j.kind not in ("revolute", "prismatic") for j in robot.joints):
        raise ArgumentError("model: exact gradients are for revolute and prismatic joints")
    n, own = robot.nv, robot.limits
    reach = np.where([j.kind == "revolute" for j in robot.coupling.independent_joints], np.pi, 1.0)
    lower = _limit("lower", lower, np.where(np.isfinite(own.lower), own.lower, -reach), n)
    upper = _limit("upper", upper, np.where(np.isfinite(own.upper), own.upper, reach), n)
    velocity = _limit("velocity", velocity, own.velocity, n)
    if not np.isfinite(velocity).all():
        name = robot.dof_names[int(np.argmin(np.isfinite(velocity)))]
        raise ArgumentError(f"velocity: joint {name!r} has no limit in the model: give one")
    acceleration = _limit("acceleration", acceleration, velocity / RAMP, n)
    share = 1.0 - number("torque_margin", torque_margin, "a part from 0 to below 1", lambda x: 0.0 <= x < 1.0)
    effort = share * _limit("effort", effort, own.effort, n)
    jerk = _limit("jerk", jerk, np.full(n, np.inf), n)
    if not np.isfinite(upper - lower).all():
        raise ArgumentError("lower, upper: expected finite positions")
    if 0 < np.isfinite(jerk).sum() < n:
        raise ArgumentError(f"jerk: expected a limit for every joint or none, got {jerk.tolist()}")
    for name, x in (("velocity", velocity), ("acceleration", acceleration), ("effort", effort), ("jerk", jerk)):
        if x.min() <= 0.0:
            joint = robot.dof_names[int(np.argmin(x))]
            raise ArgumentError(f"{name}: joint {joint!r}: expected a limit > 0, got {x.min():g}: give one")
    if (lower >= upper).any():
        k = int(np.argmax(lower >= upper))
        raise ArgumentError(
            f"lower, upper: joint {robot.dof_names[k]!r}: expected lower < upper, got {lower[k]:g} and {upper[k]:g}"
        )
    return Limits(lower, upper, velocity, acceleration, effort, jerk)


def noise_of(robot: Robot, noise: ArrayLike | None) -> np.ndarray:
    """Standard deviations of torque samples (nv,) [N m, N]: those given, else 1 % of the effort limits, else 1.

    Raises ArgumentError.
    """
    own = robot.limits.effort
    out = _limit("noise", noise, np.where(np.isfinite(own) & (own > 0.0), 0.01 * own, 1.0), robot.nv)
    if not (np.isfinite(out) & (out > 0.0)).all():
        raise ArgumentError(f"noise: expected positive numbers, got {noise!r:.80}")
    return out


def _limit(name: str, given: Any, default: np.ndarray, n: int) -> np.ndarray:
    x = default if given is None else checked(name, given, (), finite=False)
    if x.shape not in ((), (n,)) or np.isnan(x).any():
        raise ArgumentError(f"{name}: expected a number or {n}, one a joint, got {given!r:.80}")
    return np.broadcast_to(x, (n,)).astype(float)
