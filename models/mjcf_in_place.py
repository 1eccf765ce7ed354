"""Inertias and friction into an MJCF file's text; see `in_place`."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.errors import GeomctrlError, ModelError
from geomctrl.mechanism.joint import Joint
from geomctrl.models.inertials import central, require_arrived, require_body, require_same
from geomctrl.models.mjcf import body_names, compile_mjcf, joint_names, robot_of, the_package
from geomctrl.models.source import declared_encoding
from geomctrl.models.xml_edits import Edits, Element, parsed, tag
from geomctrl.robot import Robot

__all__ = ["updated"]

ORDER = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")  # of fullinertia
TURNED = ("diaginertia", "quat", "axisangle", "xyaxes", "zaxis", "euler")  # of an inertial given in axes of its own
GENERATED = "from included files, <replicate>, <attach>, <composite> or <flexcomp>, or fused by fusestatic"
COMPILER = "its <compiler> makes inertias of its own (inertiafromgeom, balanceinertia, boundmass, settotalmass)"


def updated(path: Path, text: bytes, robot: Robot, friction: bool, limits: bool) -> bytes:
    """The MJCF's text with the robot's numbers. Raises ModelError, ArgumentError."""
    mujoco = the_package("update_model_file")
    label, _, _, m = compile_mjcf(mujoco, path)
    try:
        own = robot_of(mujoco, m, gravity=robot.gravity)
        root = parsed(text)
    except GeomctrlError as error:
        raise type(error)(f"{label}: {error}") from None
    require_same(label, own, robot)
    edits = Edits(text)
    bodies = _elements(label, root, m)
    for k, name in enumerate(robot.body_names):
        if not np.array_equal(own.parameters[k], robot.parameters[k]):
            if name not in bodies:
                raise ModelError(f"{label}: body {name!r}: stands for one of several joints, and can hold no inertia")
            merged = [f.name for f in own.frames if f.body == k and f.name != name and f.name in bodies]
            _set_body(label, edits, bodies, name, merged, robot.parameters[k])
    if limits and any(getattr(own.limits, x).tolist() != getattr(robot.limits, x).tolist() for x in ("lower", "upper")):
        raise ModelError(f"{label}: limits: are not written to MJCF files, whose ranges may be in degrees")
    if friction:
        joints = _joints(bodies, m)
        for before, joint in zip(own.joints, robot.joints):
            _set_friction(label, edits, joints[str(joint.name)], before, joint)
    new = edits.result()
    require_arrived(label, _again(mujoco, label, path, new, robot), robot, COMPILER)
    return new


def _again(mujoco: Any, label: str, path: Path, text: bytes, robot: Robot) -> Robot:
    """The robot of a text in the place of the file, whose meshes lie beside it."""
    try:
        spec = mujoco.MjSpec.from_string(text.decode(declared_encoding(text)))
        spec.modelfiledir = str(path.parent)
        return robot_of(mujoco, spec.compile(), gravity=robot.gravity)
    except ValueError as error:
        raise ModelError(f"{label}: MuJoCo does not take these inertias: {error}") from None


def _elements(label: str, root: Element, m: Any) -> dict[str, Element]:
    """The elements of MuJoCo's bodies by name, in its order, which is the text's."""
    names = body_names(m)[1:]
    found = [e for world in root.all("worldbody") for e in world.below() if e.tag == "body"]
    if len(found) != len(names) or any(e.attributes.get("name", n) != n for e, n in zip(found, names)):
        raise ModelError(
            f"{label}: the model has {len(names)} bodies, {len(found)} <body> elements stand in the file: those"
            f" {GENERATED} can not be edited in place"
        )
    return dict(zip(names, found))


def _own(body: Element, tag: str) -> list[Element]:
    """Elements of a body, also those in its frames, but not of bodies in it."""
    out = []
    for child in body.children:
        if child.tag == tag or (tag == "joint" and child.tag == "freejoint"):
            out.append(child)
        elif child.tag == "frame":
            out += _own(child, tag)
    return out


def _joints(bodies: dict[str, Element], m: Any) -> dict[str, Element]:
    names, out = joint_names(m), {}
    for i, body in enumerate(bodies.values(), 1):
        first = int(m.body_jntadr[i])
        out |= {names[first + j]: e for j, e in enumerate(_own(body, "joint"))}
    return out


def _set_body(
    label: str, edits: Edits, bodies: dict[str, Element], name: str, merged: list[str], pi: np.ndarray
) -> None:
    """The inertia to the body that moves, zeros to those fixed to it: without any, geoms would give them one."""
    require_body(label, name, pi)
    zero = {"pos": "0 0 0", "mass": "0", "diaginertia": "0 0 0"}
    for other in merged:
        _set_inertial(edits, bodies[other], zero)
    if not pi.any():
        _set_inertial(edits, bodies[name], zero)
        return
    pos, mass, moments = central(pi)
    full = " ".join(repr(moments[key]) for key in ORDER)
    _set_inertial(edits, bodies[name], {"pos": pos, "mass": mass, "fullinertia": full})


def _set_inertial(edits: Edits, body: Element, values: dict[str, str]) -> None:
    found = _own(body, "inertial")
    if found:
        edits.set(found[0], values, without=tuple(x for x in (*TURNED, "fullinertia") if x not in values))
    else:
        edits.insert_first(body, [(1, tag("inertial", values))])


def _set_friction(label: str, edits: Edits, element: Element, before: Joint, joint: Joint) -> None:
    values = {}
    for key, attribute in (("damping", "damping"), ("friction", "frictionloss")):
        x = float(getattr(joint, key))
        if x != getattr(before, key):
            if not math.isfinite(x) or element.tag == "freejoint":
                raise ModelError(f"{label}: joint {joint.name!r}: {key}: can not be {x}")
            values[attribute] = repr(x)
    if values:
        edits.set(element, values)
