"""The Universal Robots UR10 (CB series).

Numbers: ur_description of ROS-Industrial's universal_robot (ur10.urdf.xacro; K. Hawkins and others): masses, centres
of mass and limits by the makers, inertias of solid cylinders of the links' size. Real ones differ: identify before
use on hardware.
"""

import numpy as np

from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["ur10"]

#    link            joint            axis  quarter turn about y, origin [m]            limit  velocity effort
JOINTS = (
    ("shoulder_link", "shoulder_pan_joint", "z", 0, (0.0, 0.0, 0.1273), 2 * np.pi, 2.16, 330.0),
    ("upper_arm_link", "shoulder_lift_joint", "y", 1, (0.0, 0.220941, 0.0), 2 * np.pi, 2.16, 330.0),
    ("forearm_link", "elbow_joint", "y", 0, (0.0, -0.1719, 0.612), np.pi, 3.15, 150.0),
    ("wrist_1_link", "wrist_1_joint", "y", 1, (0.0, 0.0, 0.5723), 2 * np.pi, 3.2, 54.0),
    ("wrist_2_link", "wrist_2_joint", "z", 0, (0.0, 0.1149, 0.0), 2 * np.pi, 3.2, 54.0),
    ("wrist_3_link", "wrist_3_joint", "y", 0, (0.0, 0.0, 0.1157), 2 * np.pi, 3.2, 54.0),
)
#     mass   COM along z  Ixx = Iyy        Izz about it
MASSES = (
    (7.778, 0.0, 0.0314743125769, 0.021875625),
    (12.93, 0.306, 0.421753803798, 0.036365625),
    (3.87, 0.28615, 0.111069694097, 0.010884375),
    (1.96, 0.0, 0.0051082479567, 0.0055125),
    (1.96, 0.0, 0.0051082479567, 0.0055125),
    (0.202, 0.0, 0.000526462289415, 0.000568125),
)
AXES = {"y": (0, 1, 0), "z": (0, 0, 1)}


def ur10() -> Robot:
    """UR10 arm, 6R, in the frames of its URDF, with the frames "ee_link" (x out of the flange) and "tool0" (z out)."""
    bodies, parent = [], None
    for (link, name, axis, turn, origin, limit, velocity, effort), (m, z, Ixx, Izz) in zip(JOINTS, MASSES):
        placement = np.array([[1 - turn, 0, turn, 0], [0, 1, 0, 0], [-turn, 0, 1 - turn, 0], [0, 0, 0, 1.0]])
        placement[:3, 3] = origin
        joint = Joint.revolute(AXES[axis], name=name, lower=-limit, upper=limit, velocity=velocity, effort=effort)
        bodies.append(Body(link, parent, joint, placement, inertia.from_com(m, (0, 0, z), np.diag([Ixx, Ixx, Izz]))))
        parent = link
    ee = np.array([[0, -1, 0, 0], [1, 0, 0, 0.0922], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    tool = np.array([[1, 0, 0, 0], [0, 0, 1, 0.0922], [0, -1, 0, 0], [0, 0, 0, 1.0]])
    return Robot.build(bodies, name="ur10", frames=[("ee_link", "wrist_3_link", ee), ("tool0", "wrist_3_link", tool)])
