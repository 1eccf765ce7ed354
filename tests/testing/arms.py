"""An arm of three joints for certificates."""

import numpy as np

import geomctrl as gc
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint


def three_joints():
    """A 3R arm in space: yaw, shoulder, elbow."""
    upper = inertia.from_com(1.0, (0.25, 0.0, 0.0), np.diag([0.002, 0.021, 0.021]))
    base = inertia.from_com(2.0, (0.0, 0.0, 0.2), np.diag([0.03, 0.03, 0.01]))
    shoulder, elbow = np.eye(4), np.eye(4)
    shoulder[2, 3], elbow[0, 3] = 0.4, 0.5
    return gc.Robot.build([
        Body("base", None, Joint.revolute((0, 0, 1), name="yaw"), None, base),
        Body("upper", "base", Joint.revolute((0, -1, 0), name="shoulder"), shoulder, upper),
        Body("fore", "upper", Joint.revolute((0, -1, 0), name="elbow"), elbow, upper),
    ], name="arm")  # fmt: skip
