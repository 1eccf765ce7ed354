"""The Unitree A1: a floating trunk and four legs of three joints.

Numbers: Unitree's a1_description (unitree_ros, a1.urdf; BSD-3), as distributed in example-robot-data; reductions' rotor
inertias are not in it. The foot is fixed to the calf and merged into it.
"""

import numpy as np

from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["quadruped"]

HIP_X, HIP_Y, THIGH_Y, LEG = 0.1805, 0.047, 0.0838, 0.2  # m
EFFORT, VELOCITY = 33.5, 21.0  # N m, rad/s
RANGES = {  # rad
    "hip": (-0.8028514559173915, 0.8028514559173915),
    "thigh": (-1.0471975511965976, 4.1887902047863905),
    "calf": (-2.6965336943312392, -0.9162978572970231),
}
LEGS = {"FR": (1, -1), "FL": (1, 1), "RR": (-1, -1), "RL": (-1, 1)}  # front or rear, left or right


def quadruped() -> Robot:
    """A1 quadruped, 6 + 12 degrees of freedom, with the frames "FR_foot", "FL_foot", "RR_foot" and "RL_foot"."""
    trunk = _inertia(6.0, (0.0, 0.0041, -0.0005), (0.0158533, -3.66e-5, 0.0377999, -6.11e-5, -2.75e-5, 0.0456542))
    imu = _inertia(0.001, (0.0, 0.0, 0.0), (1e-4, 0.0, 1e-4, 0.0, 0.0, 1e-4))
    bodies = [
        Body("trunk", None, Joint.free(name="root_joint"), None, trunk),
        Body("imu_link", "trunk", Joint.fixed(), None, imu),
    ]
    for leg, (x, y) in LEGS.items():
        bodies += _leg(leg, x, y)
    return Robot.build(bodies, name="quadruped")


def _leg(leg, x, y):
    hip = _inertia(
        0.696, (-0.003311 * x, 0.000635 * y, 3.1e-5),
        (0.000469246, -9.409e-6 * x * y, 0.00080749, -3.42e-7 * x, -4.66e-7 * y, 0.000552929),
    )  # fmt: skip
    thigh = _inertia(
        1.013, (-0.003237, -0.022327 * y, -0.027326),
        (0.005529065, 4.825e-6 * y, 0.005139339, 0.000343869, 2.2448e-5 * y, 0.001367788),
    )  # fmt: skip
    calf = _inertia(
        0.166, (0.006435, 0.0, -0.107388), (0.002997972, 0.0, 0.003014022, -0.000141163, 0.0, 3.2426e-5)
    )  # fmt: skip
    foot = _inertia(0.06, (0.0, 0.0, 0.0), (9.6e-6, 0.0, 9.6e-6, 0.0, 0.0, 9.6e-6))
    pitch = (0, 1, 0)
    return [
        Body(f"{leg}_hip", "trunk", _joint(leg, "hip", (1, 0, 0)), _at(HIP_X * x, HIP_Y * y, 0.0), hip),
        Body(f"{leg}_thigh", f"{leg}_hip", _joint(leg, "thigh", pitch), _at(0.0, THIGH_Y * y, 0.0), thigh),
        Body(f"{leg}_calf", f"{leg}_thigh", _joint(leg, "calf", pitch), _at(0.0, 0.0, -LEG), calf),
        Body(f"{leg}_foot", f"{leg}_calf", Joint.fixed(), _at(0.0, 0.0, -LEG), foot),
    ]


def _joint(leg, part, axis):
    lower, upper = RANGES[part]
    name = f"{leg}_{part}_joint"
    return Joint.revolute(axis, name=name, lower=lower, upper=upper, velocity=VELOCITY, effort=EFFORT)


def _at(*position):
    T = np.eye(4)
    T[:3, 3] = position
    return T


def _inertia(mass, com, I):
    """I: (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the centre of mass."""
    return inertia.from_com(mass, com, np.array(I)[inertia.SYMMETRIC])
