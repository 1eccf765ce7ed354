"""Bodies and joints for the robots of these tests."""

import numpy as np

import geomctrl as gc
from geomctrl import inertia, se3

Z = (0, 0, 1)
SPHERE = inertia.from_com(2.0, (0.1, 0.2, 0.3), 0.05 * np.eye(3))


def body(name, parent=None, joint=None, placement=None, pi=SPHERE):
    return gc.Body(name, parent, gc.Joint.revolute(Z) if joint is None else joint, placement, pi)


def translation(*p):
    return se3.exp(np.array([0, 0, 0, *p], dtype=float))
