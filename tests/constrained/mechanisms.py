"""Mechanisms of several tests, in maximal coordinates."""

import numpy as np
from lib.mueller_terze import place

from geomctrl import inertia, so3
from geomctrl.papers.constrained.joints import ConstrainedBody, Constraint
from geomctrl.papers.constrained.maximal import ConstrainedSystem


def four_bar(group=None, loop="revolute"):
    """A planar four-bar linkage of revolute joints, a sheared parallelogram: 20 rows, of which 17 are independent."""
    points = np.array([[0, 0, 0], [0.3, 0, 1.0], [1.5, 0, 1.2], [1.4, 0, 0]])
    bodies, joints = [], []
    for i in range(3):
        centre, along = 0.5 * (points[i] + points[i + 1]), points[i + 1] - points[i]
        turn = so3.exp((0.0, -np.arctan2(along[2], along[0]), 0.0))
        bodies.append(
            ConstrainedBody(
                f"bar {i}", inertia.from_com(1.0, (0, 0, 0), np.diag([0.01, 0.1, 0.1])), place(turn, centre)
            )
        )
    names = ["world", "bar 0", "bar 1", "bar 2"]
    poses = {"world": np.eye(4), **{b.name: b.pose for b in bodies}}
    for i in range(4):
        a, b = (names[i], names[i + 1]) if i < 3 else ("world", "bar 2")
        R, p = poses[a][:3, :3], poses[a][:3, 3]
        here, axis = R.T @ (points[i] - p), R.T @ (0.0, 1.0, 0.0)
        kind = "revolute" if i < 3 else loop
        joints.append(
            Constraint("revolute", f"joint {i}", (a, b), point=here, axis=axis)
            if kind == "revolute"
            else Constraint("spherical", f"joint {i}", (a, b), point=here)
        )
    return ConstrainedSystem(bodies, joints, group=group)


def swinging(system):
    return system.consistent(None, [[0, 3.0, 0, 0, 0, 0]] * len(system.bodies))
