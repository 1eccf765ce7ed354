"""Robots to MJCF files, gravity included."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from geomctrl.arguments import instance, path_of
from geomctrl.errors import ModelError
from geomctrl.files import whole
from geomctrl.lie import so3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot


def save_mjcf(robot: Robot, path: str | Path) -> Path:
    """Write the robot as MJCF, which `load_mjcf` and MuJoCo read back to the same dynamics, to rounding.

    Gravity, joints' damping, friction, springs, limits and armature are written; so are couplings, which MuJoCo holds
    by a constraint, and frames, as sites.

    Parameters
    ----------
    robot : Robot
        Of revolute and prismatic joints; every body physical, as MuJoCo requires of bodies that move.
    path : str or Path
        The file; its folder is made where there is none.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ModelError
        For joints of several degrees of freedom or with a pitch, for bodies that are not physical, and for joints that
        follow several others.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    path = path_of("path", path)
    root = ElementTree.Element("mujoco", model=robot.name)
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    ElementTree.SubElement(root, "option", gravity=_text(robot.gravity))
    world = ElementTree.SubElement(root, "worldbody")
    elements: list[ElementTree.Element] = []
    for name, parent, joint, M, pi in zip(
        robot.body_names, robot.parents, robot.joints, robot.placements, robot.parameters
    ):
        if not inertia.is_physical(pi, strict=True):
            raise ModelError(f"body {name!r}: MuJoCo needs a physical inertia: {inertia.violation(pi)}")
        element = ElementTree.SubElement(elements[parent] if parent >= 0 else world, "body", _placed(name, M))
        I = inertia.com_tensor(pi)
        entries = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        inertial = {"pos": _text(inertia.com(pi)), "mass": repr(float(pi[0])), "fullinertia": _text(entries)}
        ElementTree.SubElement(element, "inertial", inertial)
        ElementTree.SubElement(element, "joint", _joint(joint))
        elements.append(element)
    for frame in robot.frames:
        on = elements[frame.body] if frame.body >= 0 else world
        if frame.name not in robot.body_names:
            ElementTree.SubElement(on, "site", _placed(frame.name, frame.placement))
    if robot.couplings:
        equality = ElementTree.SubElement(root, "equality")
        for coupling in robot.couplings:
            if len(coupling.follows) != 1:
                raise ModelError(f"joint {coupling.joint!r}: follows several joints, which needs a tendon in MJCF")
            ((leader, ratio),) = coupling.follows.items()
            polynomial = _text((coupling.offset, ratio, 0.0, 0.0, 0.0))
            ElementTree.SubElement(equality, "joint", joint1=coupling.joint, joint2=leader, polycoef=polynomial)
    ElementTree.indent(root)
    with whole(path) as file:
        ElementTree.ElementTree(root).write(file, encoding="utf-8")
    return path


def _joint(joint: Joint) -> dict[str, str]:
    if joint.kind not in ("revolute", "prismatic"):
        raise ModelError(f"joint {joint.name!r}: a {joint.kind} joint is not written as MJCF")
    slides = joint.kind == "prismatic"
    w, v = joint.S[:3, 0], joint.S[3:, 0]
    out = {"name": str(joint.name), "type": "slide" if slides else "hinge", "axis": _text(v if slides else w)}
    out |= {} if slides else {"pos": _text(np.cross(w, v))}
    if math.isfinite(joint.lower) and math.isfinite(joint.upper):
        out["range"] = _text((joint.lower, joint.upper))
    if math.isfinite(joint.effort) and joint.effort > 0.0:
        out["actuatorfrcrange"] = _text((-joint.effort, joint.effort))
    numbers = {"damping": joint.damping, "frictionloss": joint.friction, "armature": joint.armature}
    numbers |= {"stiffness": joint.stiffness, "springref": joint.rest if joint.stiffness else 0.0}
    return out | {key: repr(float(x)) for key, x in numbers.items() if x}


def _placed(name: str, T: np.ndarray) -> dict[str, str]:
    return {"name": name, "pos": _text(T[:3, 3]), "quat": _text(so3.to_quaternion(T[:3, :3], "wxyz"))}


def _text(x) -> str:
    return " ".join(repr(float(a)) for a in x)
