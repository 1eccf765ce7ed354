"""The true robot of a scenario: the model with what the model does not know, a load in its hand and friction."""

from __future__ import annotations

import math

import numpy as np

from geomctrl.control.friction import Friction
from geomctrl.control.tuning import Design
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

LOAD_DENSITY = 2700.0  # kg/m^3: a solid ball of aluminium
TOOL_NAMES = ("tcp", "tool", "tip", "ee_link", "end_effector", "gripper", "hand", "flange", "link8")


def tool_frame(robot: Robot) -> str:
    """Where a load goes unless told: the tool's frame, else the body a free base is, else the last body."""
    last = [f for f in robot.frames if f.body == robot.nbodies - 1]
    for word in TOOL_NAMES:
        for frame in last:
            if word in frame.name.lower():
                return frame.name
    return robot.body_names[0 if robot.joints[0].kind == "free" else -1]


def loaded(robot: Robot, mass: float, frame: str | None = None) -> Robot:
    """The robot with a solid aluminium ball of `mass` [kg] touching the origin of `frame`, along its z axis."""
    if not (math.isfinite(mass) and mass >= 0.0):
        raise ArgumentError(f"payload: expected a mass >= 0 in kg, got {mass:g}")
    if mass == 0.0:
        return robot
    radius = (3.0 * mass / (4.0 * math.pi * LOAD_DENSITY)) ** (1.0 / 3.0)
    return robot.with_payload(mass, (0.0, 0.0, radius), 0.4 * mass * radius**2 * np.eye(3), frame or tool_frame(robot))


def friction_of(robot: Robot, rule: Design) -> Friction:
    """The model file's friction where it states some, else 0.5 D viscous and 0.5 D Coulomb; free joints have none."""
    viscous, coulomb = robot.damping, robot.friction
    if not (viscous.any() or coulomb.any()):
        own = [np.full(j.dof, 0.5 * (j.kind != "free")) for j in robot.coupling.independent_joints]
        viscous = coulomb = np.concatenate(own) * rule.D
    return Friction(viscous, coulomb, rule.smoothing(coulomb))
