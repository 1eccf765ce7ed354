"""Robots to URDF files."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from geomctrl.arguments import instance, path_of
from geomctrl.errors import ModelError
from geomctrl.files import whole, write_text
from geomctrl.mechanism import inertia
from geomctrl.mechanism.coupling import Coupling
from geomctrl.mechanism.mechanism import WORLD
from geomctrl.robot import Robot

USUAL_GRAVITY = (0.0, 0.0, -9.81)  # m/s^2: what readers of URDF files take


def save_urdf(robot: Robot, path: str | Path) -> Path:
    """Write the robot as URDF, which `models.load_urdf` reads back to the same dynamics, to rounding.

    URDF wants a joint's axis through its child's origin: where a body's frame lies off its axis, the link is shifted
    and the frame kept as a massless link of the same name with "_frame". Motors become transmissions: gear ratios their
    mechanicalReduction, armatures Drake's rotor_inertia, before the gears. Raises ModelError for joints URDF does not
    have (helical, cylindrical, spherical, planar, free, with a spring, following several others) and for bodies without
    mass but with inertia.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    path = path_of("path", path)
    root = ElementTree.Element("robot", name=robot.name)
    if (words := gravity_elsewhere(robot)) is not None:
        root.append(ElementTree.Comment(f" {words} "))
    base = _unique("base_link", {*robot.body_names, *(f.name for f in robot.frames)})
    ElementTree.SubElement(root, "link", name=base)
    shifts = [_on_axis(j) for j in robot.joints]  # T_body_link
    following = {c.joint: c for c in robot.couplings}
    for i, (body, joint, M) in enumerate(zip(robot.body_names, robot.joints, robot.placements)):
        p = robot.parents[i]
        pi = robot.parameters[i]
        if pi[0] <= 0.0 and pi.any():
            raise ModelError(f"body {body!r}: URDF can not hold a mass of {pi[0]:g} kg with a first moment or inertia")
        _link(root, body, inertia.transform(_inverse(shifts[i]), pi))
        element = ElementTree.SubElement(root, "joint", name=str(joint.name), type=_type(joint))
        ElementTree.SubElement(element, "parent", link=robot.body_names[p] if p >= 0 else base)
        ElementTree.SubElement(element, "child", link=body)
        _origin(element, (_inverse(shifts[p]) if p >= 0 else np.eye(4)) @ M @ shifts[i])
        if joint.name in following:
            ElementTree.SubElement(element, "mimic", _mimic(following[joint.name]))
        axis = joint.S[:3, 0] if joint.kind != "prismatic" else joint.S[3:, 0]
        ElementTree.SubElement(element, "axis", xyz=_text(axis))
        limits = {key: repr(float(getattr(joint, key))) for key in ("lower", "upper", "velocity", "effort")
                  if math.isfinite(getattr(joint, key))}  # fmt: skip
        if limits:
            ElementTree.SubElement(element, "limit", limits)
        if joint.damping or joint.friction:
            ElementTree.SubElement(
                element, "dynamics", damping=repr(float(joint.damping)), friction=repr(float(joint.friction))
            )
    names = {*robot.body_names, WORLD, base}
    for i, T in enumerate(shifts):
        if not np.array_equal(T, np.eye(4)):
            _fixed(root, _unique(robot.body_names[i] + "_frame", names), robot.body_names[i], _inverse(T))
    for f in robot.frames:
        if f.name not in names:
            on = robot.body_names[f.body] if f.body >= 0 else base
            _fixed(root, f.name, on, (_inverse(shifts[f.body]) if f.body >= 0 else np.eye(4)) @ f.placement)
    if robot.armature.any():
        root.set("xmlns:drake", "http://drake.mit.edu")
    for joint in robot.joints:
        _motor(root, joint)
    ElementTree.indent(root)
    with whole(path) as file:
        ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    return path


def gravity_elsewhere(robot: Robot) -> str | None:
    """What a user of the robot's URDF file has to know where gravity is not what its readers take, or None."""
    if np.allclose(robot.gravity, USUAL_GRAVITY, rtol=0.0, atol=0.02):
        return None
    g = ", ".join(f"{x:.6g}" for x in robot.gravity)
    return (
        f"gravity is ({g}) m/s^2 in the base's frame, and URDF can not say so: readers take (0, 0, -9.81). Set it where"
        " the file is read, or torques are wrong"
    )


def save_or_why(save: Callable[[Robot, Path], Path], robot: Robot, target: Path) -> Path:
    """Write the robot, or beside the target a text file that says why its format can not hold it; the other one, of a
    robot that was there before, is removed. The path of what was written."""
    why = target.with_name(f"{target.name}.txt")
    try:
        written, old = save(robot, target), why
    except ModelError as error:
        written, old = write_text(why, f"not written: {error}\n"), target
    old.unlink(missing_ok=True)
    return written


def _mimic(coupling: Coupling) -> dict[str, str]:
    if len(coupling.follows) != 1:
        raise ModelError(f"joint {coupling.joint!r}: in URDF a joint follows one other, not {len(coupling.follows)}")
    ((leader, ratio),) = coupling.follows.items()
    return {"joint": leader, "multiplier": repr(ratio), "offset": repr(coupling.offset)}


def _type(joint):
    if joint.stiffness:
        raise ModelError(f"joint {joint.name!r}: URDF has no springs")
    if joint.kind == "prismatic":
        return "prismatic"
    if joint.kind != "revolute":
        raise ModelError(f"joint {joint.name!r}: URDF has no {joint.kind} joint")
    return "revolute" if math.isfinite(joint.lower) or math.isfinite(joint.upper) else "continuous"


def _on_axis(joint):
    """T_body_link: the shift to the axis' point nearest the body's origin."""
    T = np.eye(4)
    if joint.kind == "revolute":
        T[:3, 3] = np.cross(joint.S[:3, 0], joint.S[3:, 0])
    elif joint.kind != "prismatic":
        raise ModelError(f"joint {joint.name!r}: URDF has no {joint.kind} joint")
    return T


def _link(root, name, pi):
    link = ElementTree.SubElement(root, "link", name=name)
    if not pi.any():
        return
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=_text(pi[1:4] / pi[0]), rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=repr(float(pi[0])))
    I = inertia.com_tensor(pi)
    entries = {
        f"i{a}{b}": repr(float(I["xyz".index(a), "xyz".index(b)])) for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")
    }
    ElementTree.SubElement(inertial, "inertia", entries)


def _motor(root, joint):
    """The joint's motor as a transmission, as `load_urdf` and Drake read it."""
    if not joint.armature and joint.gear_ratio == 1.0:
        return
    transmission = ElementTree.SubElement(root, "transmission", name=f"{joint.name}_transmission")
    ElementTree.SubElement(transmission, "type").text = "transmission_interface/SimpleTransmission"
    ElementTree.SubElement(transmission, "joint", name=str(joint.name))
    actuator = ElementTree.SubElement(transmission, "actuator", name=f"{joint.name}_motor")
    ElementTree.SubElement(actuator, "mechanicalReduction").text = repr(joint.gear_ratio)
    if joint.armature:
        numbers = {"rotor_inertia": joint.armature / joint.gear_ratio**2, "gear_ratio": joint.gear_ratio}
        for key, value in numbers.items():
            ElementTree.SubElement(actuator, f"drake:{key}", value=repr(value))


def _fixed(root, name, parent, T):
    ElementTree.SubElement(root, "link", name=name)
    joint = ElementTree.SubElement(root, "joint", name=name + "_joint", type="fixed")
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=name)
    _origin(joint, T)


def _origin(element, T):
    """Roll, pitch, yaw of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R = T[:3, :3]
    flat = math.hypot(R[0, 0], R[1, 0])
    pitch = math.atan2(-R[2, 0], flat)
    if flat > 1e-9:
        roll, yaw = math.atan2(R[2, 1], R[2, 2]), math.atan2(R[1, 0], R[0, 0])
    else:  # gimbal: only yaw -+ roll is determined
        roll, yaw = 0.0, math.atan2(-R[0, 1], R[1, 1])
    ElementTree.SubElement(element, "origin", xyz=_text(T[:3, 3]), rpy=_text((roll, pitch, yaw)))


def _text(x):
    return " ".join(repr(float(a)) for a in x)


def _inverse(T):
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = T[:3, :3].T, -T[:3, :3].T @ T[:3, 3]
    return out


def _unique(name, taken):
    while name in taken:
        name += "_"
    return name
