"""The posture about which robots are moved, and at which they are shown."""

from __future__ import annotations

import numpy as np

from geomctrl.mechanism.configuration import single_coordinates
from geomctrl.robot import Robot


def middle(robot: Robot) -> np.ndarray:
    """The configuration (nq,) in the middle of the joints' ranges; without one near zero, poses at identity."""
    q = robot.neutral()
    limits = robot.limits
    for k, i in zip(*single_coordinates(robot)):
        low, high = limits.lower[i], limits.upper[i]
        q[k] = 0.5 * (low + high) if np.isfinite([low, high]).all() else np.clip(0.0, low, high)
    return q
