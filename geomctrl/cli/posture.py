"""The posture about which robots are moved, and at which they are shown."""

from __future__ import annotations

import numpy as np

from geomctrl.robot import Robot


def middle(robot: Robot) -> np.ndarray:
    """The configuration (nq,) in the middle of the joints' ranges; without one near zero, poses at identity."""
    q = robot.neutral()
    for joint, s in zip(robot.joints, robot.q_slices):
        if joint.dof == 1:
            both = np.isfinite([joint.lower, joint.upper]).all()
            q[s] = 0.5 * (joint.lower + joint.upper) if both else np.clip(0.0, joint.lower, joint.upper)
    return q
