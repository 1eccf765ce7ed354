"""`JointLimits`: position, velocity and effort limits of the joints."""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import choice, tolerance
from geomctrl.control.stops import bounded
from geomctrl.tracing.numbers import scalar

from .monitor import HELD, UNRESOLVED, VIOLATED, Finding, Monitor

LIMITED_QUANTITIES = {
    "position": ("q", "rad or m"),
    "velocity": ("v", "rad/s or m/s"),
    "effort": ("applied", "N m or N"),
}
ROUNDING = 64.0 * np.finfo(float).eps


class JointLimits(Monitor):
    """Largest excess over a joint limit of the robot model; negative if all joints are within their limits.

    Limits are reported and not enforced: `JointStops` enforce positions (this monitor then skips them),
    `actuators.Saturation` enforces torques.

    Parameters
    ----------
    limit : float
        Largest excess that counts as held, in the unit of `of`. Default: 0.
    of : {"position", "velocity", "effort"}
        [rad, m], [rad/s, m/s], or the applied torque [N m, N]. Default: "position".

    Raises
    ------
    ArgumentError
        If `of` is unknown, or if `limit` is negative or not finite.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.monitors.JointLimits(of="effort").name
    'effort_limits'
    """

    def __init__(self, limit: float = 0.0, of: str = "position"):
        self.of, self.limit = choice("of", of, LIMITED_QUANTITIES), tolerance("limit", limit)
        self.field, unit = LIMITED_QUANTITIES[of]
        self.name, self.description = f"{of}_limits", f"{of} beyond a joint's limit, {unit}"

    def start(self, plant, controller):
        if self.of == "position":
            _, self.places, self.lower, self.upper = bounded(plant.robot)
            return plant.stops is None and len(self.places) > 0
        limits = getattr(plant.robot.limits, self.of)
        self.places = np.flatnonzero(np.isfinite(limits))
        self.lower, self.upper = -limits[self.places], limits[self.places]
        return len(self.places) > 0

    def measure(self, sample):
        x = getattr(sample, self.field)[self.places]
        return scalar(np.maximum(self.lower - x, x - self.upper).max())

    def confirm(self, replay):
        """Report a violation if the excess is larger than rounding of the limit and possible truncation."""
        result = replay.run.monitors[self.name]
        excess, bound = result.worst - self.limit, np.abs([*self.lower, *self.upper])
        if excess <= ROUNDING * bound[np.isfinite(bound)].max(initial=0.0):
            return Finding(HELD, "at the limit, within rounding")
        if self.of != "effort" and np.isfinite(excess):
            place = {"position": 1, "velocity": 2}[self.of]
            last = int(np.searchsorted(replay.run.t, result.t_worst - 1e-9).clip(0, len(replay.run.t) - 1))
            error = replay._step_error(lambda t, y: replay.split(t, y)[place][self.places], last)
            if excess <= 4.0 * np.max(error):
                return Finding(
                    UNRESOLVED, "the excess is no larger than the integration error", "halve dt", 0.5 * replay.dt
                )
        return Finding(VIOLATED, "more than rounding and truncation explain")
