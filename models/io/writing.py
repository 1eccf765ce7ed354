"""Write robots as URDF and MJCF files, and their parameters as a C header."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from geomctrl.arguments import instance, mapped, path_of
from geomctrl.errors import ModelError
from geomctrl.files import whole, write_text
from geomctrl.lie import se3
from geomctrl.lie.so3 import quaternion
from geomctrl.mechanism import inertia
from geomctrl.mechanism.coupling import Coupling
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import WORLD
from geomctrl.models.io.mjcf import UNLIMITED
from geomctrl.models.io.xml_text import number_text, unique_name
from geomctrl.robot import Robot
from geomctrl.tracing.backends.c_files import comment, prefix, prefix_of

FULL_INERTIA = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")  # the order in MJCF
USUAL_GRAVITY = (0.0, 0.0, -9.81)  # m/s^2: the gravity that readers of URDF files assume


def save_urdf(robot: Robot, path: str | Path) -> Path:
    """Write the robot as URDF. `models.load_urdf` reads it back to the same dynamics, up to rounding.

    Parameters
    ----------
    robot : Robot
        The robot.
    path : str or Path
        The file to write.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ModelError
        If URDF has no such joint (helical, cylindrical, spherical, planar, free, with a spring, following several
        others), or a body has inertia but no mass.

    Notes
    -----
    A URDF joint axis passes through the origin of its child. If a body's frame is off its axis, the link is shifted,
    and the frame is kept as a massless link with the name of the body and "_frame". Motors become transmissions: gear
    ratios are written as mechanicalReduction, armatures as Drake's rotor_inertia on the motor side.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    path = path_of("path", path)
    root = ElementTree.Element("robot", name=robot.name)
    if (note := gravity_elsewhere(robot)) is not None:
        root.append(ElementTree.Comment(f" {note} "))
    base = unique_name("base_link", {*robot.body_names, *(f.name for f in robot.frames)})
    ElementTree.SubElement(root, "link", name=base)
    shifts = [_on_axis(j) for j in robot.joints]  # T_body_link
    following = {c.joint: c for c in robot.couplings}
    for i, (body, joint, M) in enumerate(zip(robot.body_names, robot.joints, robot.placements)):
        p = robot.parents[i]
        pi = robot.parameters[i]
        if pi[0] <= 0.0 and pi.any():
            raise ModelError(f"body {body!r}: URDF can not hold a mass of {pi[0]:g} kg with a first moment or inertia")
        _link(root, body, inertia.transform(se3.inverse(shifts[i]), pi))
        element = ElementTree.SubElement(root, "joint", name=str(joint.name), type=_type(joint))
        ElementTree.SubElement(element, "parent", link=robot.body_names[p] if p >= 0 else base)
        ElementTree.SubElement(element, "child", link=body)
        _origin(element, (se3.inverse(shifts[p]) if p >= 0 else np.eye(4)) @ M @ shifts[i])
        if joint.name in following:
            ElementTree.SubElement(element, "mimic", _mimic(following[joint.name]))
        axis = joint.S[:3, 0] if joint.kind != "prismatic" else joint.S[3:, 0]
        ElementTree.SubElement(element, "axis", xyz=number_text(axis))
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
            _fixed(root, unique_name(robot.body_names[i] + "_frame", names), robot.body_names[i], se3.inverse(T))
    for f in robot.frames:
        if f.name not in names:
            on = robot.body_names[f.body] if f.body >= 0 else base
            _fixed(root, f.name, on, (se3.inverse(shifts[f.body]) if f.body >= 0 else np.eye(4)) @ f.placement)
    if robot.armature.any():
        root.set("xmlns:drake", "http://drake.mit.edu")
    for joint in robot.joints:
        _motor(root, joint)
    ElementTree.indent(root)
    with whole(path) as file:
        ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    return path


def gravity_elsewhere(robot: Robot) -> str | None:
    """Return a warning if the robot's gravity differs from the gravity that readers of URDF files assume, else None."""
    if np.allclose(robot.gravity, USUAL_GRAVITY, rtol=0.0, atol=0.02):
        return None
    g = ", ".join(f"{x:.6g}" for x in robot.gravity)
    return (
        f"gravity is ({g}) m/s^2 in the base's frame, but URDF can not store it: readers assume (0, 0, -9.81). Set it"
        " in the program that reads the file, or torques are wrong"
    )


def save_or_why(save: Callable[[Robot, Path], Path], robot: Robot, target: Path) -> Path:
    """Write the robot, or a text file next to the target that explains why the format can not represent it.

    If the other file remains from an earlier call, it is removed. Returns the path that was written.
    """
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
    """Return T_body_link, the shift to the point of the axis nearest to the body's origin."""
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
    com, mass, moments = central(pi)
    ElementTree.SubElement(inertial, "origin", xyz=com, rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=mass)
    ElementTree.SubElement(inertial, "inertia", {key: repr(x) for key, x in moments.items()})


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
    """Write roll, pitch, yaw of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R = T[:3, :3]
    flat = math.hypot(R[0, 0], R[1, 0])
    pitch = math.atan2(-R[2, 0], flat)
    if flat > 1e-9:
        roll, yaw = math.atan2(R[2, 1], R[2, 2]), math.atan2(R[1, 0], R[0, 0])
    else:  # gimbal lock: only yaw -+ roll is determined
        roll, yaw = 0.0, math.atan2(-R[0, 1], R[1, 1])
    ElementTree.SubElement(element, "origin", xyz=number_text(T[:3, 3]), rpy=number_text((roll, pitch, yaw)))


def save_mjcf(robot: Robot, path: str | Path) -> Path:
    """Write the robot as MJCF. `load_mjcf` and MuJoCo read it back to the same dynamics, up to rounding.

    Parameters
    ----------
    robot : Robot
        A robot with revolute, prismatic and spherical joints, and free ones on the world.
    path : str or Path
        The file to write. Its folder is created if it does not exist.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ModelError
        If MJCF has no such joint (helical, cylindrical, planar, free on a body that moves) or a body is not physically
        possible.

    Notes
    -----
    Gravity, damping, friction, springs, armature and limits of position and effort are written. So are couplings, which
    MuJoCo enforces as constraints, and frames, as sites. A massless body that carries one other becomes part of it,
    because MuJoCo has several joints in a body instead. MJCF has no limits of velocity, and limits of effort only at
    joints with one degree of freedom.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    path = path_of("path", path)
    text = mjcf_text(robot)
    with whole(path) as file:
        file.write(text.encode())
    return path


def mjcf_text(robot: Robot) -> str:
    """Return the robot as MJCF text; raises as `save_mjcf` does."""
    root = ElementTree.Element("mujoco", model=robot.name)
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    ElementTree.SubElement(root, "option", gravity=number_text(robot.gravity))
    elements: dict[int, ElementTree.Element] = {-1: ElementTree.SubElement(root, "worldbody")}
    merged: dict[int, tuple[int, list[tuple[Joint, np.ndarray]], np.ndarray]] = {}  # of massless bodies
    for i, (name, joint, M, pi) in enumerate(zip(robot.body_names, robot.joints, robot.placements, robot.parameters)):
        parent, joints, above = merged.get(robot.parents[i], (robot.parents[i], [], np.eye(4)))
        joints = [(x, se3.Ad(se3.inverse(M)) @ S) for x, S in joints] + [(joint, joint.S)]  # in the frame of this body
        if not pi.any() and robot.parents.count(i) == 1 and joint.kind != "free":
            merged[i] = parent, joints, above @ M
            continue
        if not inertia.is_physical(pi, strict=True):
            raise ModelError(f"body {name!r}: MuJoCo needs a physical inertia: {inertia.violation(pi)}")
        element = elements[i] = ElementTree.SubElement(elements[parent], "body", _placed(name, above @ M))
        ElementTree.SubElement(element, "inertial", mjcf_inertial(pi))
        for own, S in joints:
            ElementTree.SubElement(element, "joint", _joint(own, S, parent))
    for frame in robot.frames:
        if frame.name in (WORLD, *robot.body_names):
            continue
        if frame.body in merged:
            on = robot.body_names[frame.body]
            raise ModelError(f"frame {frame.name!r}: its body {on!r} has no mass and is not written as MJCF")
        ElementTree.SubElement(elements[frame.body], "site", _placed(frame.name, frame.placement))
    _write_couplings(root, robot.couplings)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode")


def _write_couplings(root: ElementTree.Element, couplings: Sequence[Coupling]) -> None:
    """Add constraints; a joint that follows several others is in a fixed tendon with them, whose length is constant."""
    several = any(len(c.follows) > 1 for c in couplings)
    tendons = ElementTree.SubElement(root, "tendon") if several else root
    equality = ElementTree.SubElement(root, "equality") if couplings else root
    for coupling in couplings:
        ratios = coupling.follows
        if len(ratios) > 1:
            tendon = ElementTree.SubElement(tendons, "fixed", name=f"{coupling.joint} follows")
            for joint, coefficient in ({coupling.joint: -1.0} | dict(ratios)).items():
                ElementTree.SubElement(tendon, "joint", joint=joint, coef=repr(-coefficient))
            polynomial = number_text((coupling.offset, 0.0, 0.0, 0.0, 0.0))
            ElementTree.SubElement(equality, "tendon", tendon1=f"{coupling.joint} follows", polycoef=polynomial)
        else:
            slope = sum(ratios.values())
            polynomial = number_text((coupling.offset, slope, 0.0, 0.0, 0.0))
            element = ElementTree.SubElement(equality, "joint", joint1=coupling.joint, polycoef=polynomial)
            for leader in ratios:
                element.set("joint2", leader)


def central(pi: np.ndarray) -> tuple[str, str, dict[str, float]]:
    """(centre of mass, mass, inertia about it as ixx, ixy, ...) as texts that read back to the same numbers."""
    I, axes = inertia.com_tensor(pi), "xyz"
    moments = {f"i{a}{b}": float(I[axes.index(a), axes.index(b)]) for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")}
    return number_text(pi[1:4] / pi[0]), repr(float(pi[0])), moments


def mjcf_inertial(pi: np.ndarray) -> dict[str, str]:
    """Return the attributes of MJCF's <inertial>."""
    com, mass, moments = central(pi)
    return {"pos": com, "mass": mass, "fullinertia": number_text(moments[key] for key in FULL_INERTIA)}


MJCF_JOINTS = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}


def _joint(joint: Joint, S: np.ndarray, parent: int) -> dict[str, str]:
    """Attributes of a joint whose screws in the frame of its body are S (6, dof)."""
    if joint.kind not in MJCF_JOINTS or (joint.kind == "free" and parent >= 0):
        on = " on a body that moves" if joint.kind == "free" else ""
        raise ModelError(f"joint {joint.name!r}: a {joint.kind} joint{on} is not written as MJCF")
    out = {"name": str(joint.name), "type": MJCF_JOINTS[joint.kind]}
    if joint.kind == "spherical":
        out["pos"] = number_text((S[5, 1], S[3, 2], S[4, 0]))
    elif joint.kind != "free":
        w, v = S[:3, 0], S[3:, 0]
        out |= {"axis": number_text(v)} if joint.kind == "prismatic" else {
            "axis": number_text(w), "pos": number_text(np.cross(w, v))}  # fmt: skip
    if joint.dof == 1 and (math.isfinite(joint.lower) or math.isfinite(joint.upper)):
        out["range"] = number_text(np.clip((joint.lower, joint.upper), -UNLIMITED, UNLIMITED))
    if joint.dof == 1 and math.isfinite(joint.effort) and joint.effort > 0.0:
        out["actuatorfrcrange"] = number_text((-joint.effort, joint.effort))
    numbers = {"damping": joint.damping, "frictionloss": joint.friction, "armature": joint.armature}
    numbers |= {"stiffness": joint.stiffness, "springref": joint.rest if joint.stiffness else 0.0}
    return out | {key: repr(float(x)) for key, x in numbers.items() if x}


def _placed(name: str, T: np.ndarray) -> dict[str, str]:
    return {"name": name, "pos": number_text(T[:3, 3]), "quat": number_text(quaternion(T[:3, :3]))}


def save_c_header(
    robot: Robot, path: str | Path, extra: Mapping[str, Any] | None = None, *, name: str | None = None
) -> Path:
    """Write the robot's parameters as constants in a C header (C99 and C++). `Robot.to_c` writes complete terms
    instead.

    Parameters
    ----------
    robot : Robot
        The robot.
    path : str or Path
        The file to write.
    extra : mapping, optional
        Data from `Result.extra` or `load_extra`: its "identified" becomes NAME_identified[], its "smoothing"
        NAME_smoothing.
    name : str, optional
        Prefix NAME of the constants. Default: the robot's name as a C identifier.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ArgumentError
        If an argument is invalid.

    Notes
    -----
    The constants are NAME_parameters[bodies][10] (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz in the body frame about
    its origin), NAME_damping and NAME_friction for each joint, and NAME_gravity, in SI units, written without loss.
    Comments name the bodies and joints.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    path = path_of("path", path)
    details = mapped("extra", {} if extra is None else extra, "a dict")
    name = prefix("name", prefix_of(robot.name, "robot") if name is None else name)
    guard = f"{name.upper()}_PARAMETERS_H"
    identified = instance("extra: identified", details.get("identified", {}), Mapping, "numbers by name")
    source = " by ".join(str(details[key]) for key in ("log", "method") if key in details)
    lines = [
        f"/* Parameters of {comment(robot.name)}{f', identified from {comment(source)}' if source else ''}.",
        " * SI units; a body: m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz in its frame, about the frame's origin. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f"#define {name.upper()}_BODIES {robot.nbodies}",
        f"#define {name.upper()}_JOINTS {robot.nv}",
        *_array(f"{name}_gravity[3]", [(robot.gravity, "")], flat=True),
        *_array(f"{name}_parameters[{robot.nbodies}][10]", list(zip(robot.parameters, robot.body_names))),
        *_array(f"{name}_damping[{robot.nv}]", [([x], n) for x, n in zip(robot.damping, robot.dof_names)], flat=True),
        *_array(f"{name}_friction[{robot.nv}]", [([x], n) for x, n in zip(robot.friction, robot.dof_names)], flat=True),
    ]
    if identified:
        rows = [([x], str(key)) for key, x in identified.items()]
        lines += _array(f"{name}_identified[{len(rows)}]", rows, flat=True)
    if "smoothing" in details:
        lines += [f"static const double {name}_smoothing = {float(details['smoothing'])!r};"]
    return write_text(path, "\n".join([*lines, "", "#endif", ""]))


def _array(declaration: str, rows: Sequence[tuple[Any, str]], flat: bool = False) -> list[str]:
    """Return lines of C that declare an array, with the names of rows as comments. flat: one-dimensional."""
    texts = [", ".join(repr(float(x)) for x in row) for row, _ in rows]
    body = [
        f"    {text if flat else f'{{{text}}}'},{f' /* {comment(name)} */' if name else ''}"
        for text, (_, name) in zip(texts, rows)
    ]
    return [f"static const double {declaration} = {{", *body, "};"]
