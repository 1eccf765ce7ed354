"""All accelerations that satisfy the limits of a `QPInverseDynamics`: what a proof needs of its solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.control.contracts import Command
from geomctrl.errors import ArgumentError

TOLERANCE = 1e-6  # [rad/s^2 or m/s^2] by which a solution may violate a limit of the acceleration
MARGIN = 0.5  # [rad/s^2 or m/s^2] to these limits, of an acceleration that shows that they can be satisfied


class ProgramTorques:
    """The torques for an acceleration a(z) within its limits for |z| <= 1, and all limits as functions of state and z.

    Let a_f be an acceleration with admissible torques that satisfies the soft limits with a margin m, and a_w the
    wanted one. If |a_f - a_w|^2 < cost m, the solution has no slack: along the way from a solution with slack to a_f,
    the slack's cost falls at a rate of cost m or more, and the rest of the cost grows by |a_f - a_w|^2 at most.
    """

    tolerance = TOLERANCE

    def __init__(self, law: Any, slack_cost: float):
        self.law, self.robot, self.slack_cost = law, law.robot, slack_cost
        if law.tasks or law.clearances:
            raise ArgumentError("controller: expected a QPInverseDynamics without tasks and clearances for this proof")
        limits = law.robot.limits
        bounded = np.isfinite(limits.velocity) | (np.isfinite(limits.lower) & np.isfinite(limits.upper))
        if not (np.isfinite(law.effort).all() and bounded.all()):
            raise ArgumentError(
                "controller: expected finite limits of all efforts, and of the velocity or position of each joint, got"
                f" efforts {law.effort.tolist()}, velocities {limits.velocity.tolist()}"
            )

    def start(self) -> np.ndarray:
        return np.zeros(self.robot.nv)

    def __call__(self, t: Any, q: Any, v: Any, z: Any) -> Command:
        return Command(self.robot.inverse_dynamics(q, v, self.acceleration(q, v, z)), np.zeros(self.robot.nv))

    def acceleration(self, q: Any, v: Any, z: Any) -> Any:
        """a (nv,) between its last limits, those of the position if there are any; z = 1 is TOLERANCE beyond."""
        upper, lower = self.law._limits(q, v)
        ends = [(los[-1], his[-1]) for los, his in zip(lower, upper)]
        a = [0.5 * (lo + hi) + (0.5 * (hi - lo) + TOLERANCE) * z[i] for i, (lo, hi) in enumerate(ends)]
        return np.stack(a)

    def program(self, t: Any, q: Any, v: Any, z: Any) -> tuple[list[Any], list[Any]]:
        """(Numbers that are not negative for solutions, numbers that are positive if there is one without slack)."""
        law, robot = self.law, self.robot
        a = self.acceleration(q, v, z)
        upper, lower = law._limits(q, v)
        rows = [x - a[i] + TOLERANCE for i, bounds in enumerate(upper) for x in bounds[:-1]]
        rows += [a[i] - x + TOLERANCE for i, bounds in enumerate(lower) for x in bounds[:-1]]
        rows += self._left(robot.inverse_dynamics(q, v, a))
        error = law.error(t, q, v)
        wanted = error.a_d - law.kd.dot(error.w) - law.kp.dot(error.e)
        inside = np.stack([_between(x, lo, hi) for x, lo, hi in zip(wanted, lower, upper)])
        feasible = self._left(robot.inverse_dynamics(q, v, inside))
        feasible += [hi - lo - 2.0 * MARGIN for los, his in zip(lower, upper) for lo in los for hi in his]
        feasible.append(self.slack_cost * MARGIN - sum((x - y) ** 2 for x, y in zip(inside, wanted)))
        return rows, feasible

    def _left(self, torque: Any) -> list[Any]:
        """What is left of the efforts, in both directions."""
        return [limit - sign * x for limit, x in zip(self.law.effort, torque) for sign in (1.0, -1.0)]


def _between(x: Any, lower: list[Any], upper: list[Any]) -> Any:
    """x, moved to the inside of the limits by MARGIN or more; upper limits come first."""
    for y in lower:
        x = np.maximum(x, y + MARGIN)
    for y in upper:
        x = np.minimum(x, y - MARGIN)
    return x
