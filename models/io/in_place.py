"""Update the numbers in a URDF or MJCF file from a robot, and leave the rest of the file unchanged.

A robot has fewer bodies than its file, because links on fixed joints are merged into the body that moves. The link of
that body receives the sum of the inertias. The inertias of the merged links are removed: a comment replaces them, or a
zero where the format requires an inertia. Every reader of the file then computes the right total; the split between
rigidly connected links has no effect on the motion and is not estimated. Before anything is written, the new text is
loaded again and compared with the robot.
"""

import math
import os
import stat
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import flag, instance, path_of
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError
from geomctrl.files import whole
from geomctrl.mechanism import inertia
from geomctrl.mechanism.joint import Joint
from geomctrl.models.io.mjcf import body_names, compile_mjcf, joint_names, require_mujoco, robot_of
from geomctrl.models.io.model_file import file_format
from geomctrl.models.io.urdf import link_parameters, load_urdf
from geomctrl.models.io.writing import central, mjcf_inertial
from geomctrl.models.io.xml_text import Edits, Element, declared_encoding, parsed, tag
from geomctrl.robot import Robot


def update_model_file(
    source: str | Path, robot: Robot, out: str | Path | None = None, *, friction: bool = False
) -> Path:
    """Write a robot's inertial parameters into the URDF or MJCF file it was loaded from; all other bytes stay.

    Parameters
    ----------
    source : str or Path
        The file that the robot was loaded from. Its bodies, joints and placements are compared with the robot's.
    robot : Robot
        The robot with the new parameters.
    out : str or Path, optional
        The file to write. Default: `source` itself.
    friction : bool
        Also write damping and friction of the joints. Default False.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ModelError
        If the file can not be edited: xacro, entities, included files, UTF-16, a <compiler> with inertiafromgeom, or a
        body that the format can not represent.
    ArgumentError
        If the file describes another robot or can not be written. The file is either written completely or not at all.

    Notes
    -----
    Links on fixed joints are merged into the body that moves. Its link receives the sum; theirs are removed (URDF) or
    set to zero (MJCF). A link on a locked mimic joint keeps its own inertia, and the moving link receives the rest.
    Bodies whose parameters are unchanged are not edited.
    """
    source, robot = path_of("source", source), instance("robot", robot, Robot, "a geomctrl.Robot")
    target = source if out is None else path_of("out", out)
    text, new = _updated(source, robot, target, flag("friction", friction))
    if new == text and target == source:
        return target
    real = target.resolve()  # a symbolic link stays one: the file that it points to is replaced
    mode = stat.S_IMODE((real if real.exists() else source).stat().st_mode)
    with whole(real) as file:
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        file.write(new)
    return target


def require_updatable(source: str | Path, robot: Robot, out: str | Path | None = None) -> None:
    """Raise the errors of `update_model_file` for this file, before the new parameters exist."""
    source = path_of("source", source)
    _updated(source, robot, source if out is None else path_of("out", out), False)


def _updated(source: Path, robot: Robot, target: Path, friction: bool) -> tuple[bytes, bytes]:
    """Return the file's bytes before and after the update."""
    if not source.is_file():
        raise ArgumentError(f"source: no such file: {str(source)!r}")
    require_writable(target)
    text = source.read_bytes()
    updated = _updated_mjcf if file_format(source) == "mjcf" else _updated_urdf
    return text, updated(source, text, robot, friction)


def require_writable(path: Path) -> None:
    """Raise ArgumentError if the path is a folder, is read-only, or lies in a read-only folder."""
    real = path.resolve()
    if real.is_dir():
        raise ArgumentError(f"out: {str(path)!r} is a folder, expected a file")
    if real.exists() and not (os.access(real, os.W_OK) and real.stat().st_mode & 0o222):
        raise ArgumentError(f"out: {str(path)!r} is read-only: write to another file, or make it writable")
    folder = next(p for p in real.parents if p.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ArgumentError(f"out: {str(path)!r}: no permission to write in {str(folder)!r}")


ROUNDING = 1e-9  # allowed difference, relative to the largest parameter of the body


def require_same(label: str, own: Robot, robot: Robot) -> None:
    """Raise ArgumentError unless the file's robot equals this one except for inertias, friction and limits."""
    for field in ("body_names", "joint_names", "parents"):
        a, b = getattr(own, field), getattr(robot, field)
        if a != b:
            raise ArgumentError(f"{label}: robot: does not belong to this file: expected {field} {a}, got {b}")
    for body, joint, theirs, M, expected in zip(
        own.body_names, own.joints, robot.joints, own.placements, robot.placements
    ):
        same = joint.kind == theirs.kind and np.allclose(joint.S, theirs.S, atol=ROUNDING)
        if not same or not np.allclose(M, expected, atol=ROUNDING):
            raise ArgumentError(f"{label}: robot: does not belong to this file: joint or placement of {body!r} differs")


def require_arrived(label: str, back: Robot, robot: Robot, hint: str) -> None:
    """Raise ModelError unless the new file yields the robot's inertias."""
    scale = np.abs(robot.parameters).max(1) + np.abs(back.parameters).max(1) + 1e-300
    off = np.abs(back.parameters - robot.parameters).max(1) / scale
    if (off > ROUNDING).any():
        k = int(np.argmax(off))
        raise ModelError(
            f"{label}: body {robot.body_names[k]!r}: reading the new file back gives other inertias than"
            f" were written, off by {off[k]:.3g}: {hint}"
        )


def require_body(label: str, name: str, pi: np.ndarray) -> None:
    """Raise ModelError for a massless body with a first moment or inertia, which neither format can represent."""
    if pi[0] <= 0.0 and pi.any():
        raise ModelError(f"{label}: body {name!r}: can not hold a mass of {pi[0]:g} kg with a first moment or inertia")


# --- URDF ----------------------------------------------------------------------------------------------------------


def _updated_urdf(path: Path, text: bytes, robot: Robot, friction: bool) -> bytes:
    """Return the URDF text with the robot's numbers. Raises ModelError, ArgumentError."""
    label = str(path)
    own = _loaded(path, robot)  # refuses xacro and invalid URDF, with the line
    require_same(label, own, robot)
    try:
        root = parsed(text)
    except GeomctrlError as error:
        raise type(error)(f"{label}: {error}") from None
    edits = Edits(text)
    document = _Document(label, root, link_parameters(path))
    for k, name in enumerate(robot.body_names):
        if not np.array_equal(own.parameters[k], robot.parameters[k]):
            document.set_body(edits, own, k, name, robot.parameters[k])
    for before, joint in zip(own.joints, robot.joints):
        if friction and joint.name in document.joints:  # the joint of a floating base is not in the file
            _set_dynamics(edits, document.joints[joint.name], before, joint)
    new = edits.result()
    back = _loaded(new.decode(declared_encoding(text)), robot)
    require_arrived(label, back, robot, "write to another file by geomctrl.models.save")
    return new


def _loaded(source: str | Path, robot: Robot) -> Robot:
    """Load the file with the options that match the robot: floating base or not, mimic joints locked, following or
    free.
    """
    floats = robot.joints[0].kind == "free" and robot.joints[0].name == "root_joint"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warnings appeared when the robot was loaded
        for mimic in ("fixed", "coupled", "independent"):
            own = load_urdf(source, floats, mimic=mimic, physical="unchecked", gravity=robot.gravity)
            if own.joint_names == robot.joint_names and own.dof_names == robot.dof_names:
                return own
    return own  # a different robot: `require_same` reports how it differs


class _Document:
    """Links, joints and their tree."""

    def __init__(self, label: str, root: Element, parameters: dict[str, np.ndarray | None]):
        self.label = label
        self.parameters = parameters  # of links
        self.links = {e.attributes["name"]: e for e in root.all("link")}
        self.joints = {e.attributes["name"]: e for e in root.all("joint")}
        self.above: dict[str, Element] = {}  # joint of each child link
        for joint in self.joints.values():
            child = joint.find("child")
            assert child is not None
            self.above[child.attributes["link"]] = joint

    def rigid(self, link: str, moving: str) -> bool:
        """Whether only fixed joints connect a link to the moving link that it is merged into."""
        while link != moving:
            joint = self.above[link]
            parent = joint.find("parent")
            assert parent is not None
            if joint.attributes["type"] != "fixed":
                return False
            link = parent.attributes["link"]
        return True

    def set_body(self, edits: Edits, own: Robot, k: int, name: str, pi: np.ndarray) -> None:
        """Write the body's inertia to its own link, and remove those of links merged into it by fixed joints."""
        locked, before = [], own.parameters[k]
        merged = [f for f in own.frames if f.body == k and f.name != name and f.name in self.links]
        for frame in merged:
            inertial, of_link = self.links[frame.name].find("inertial"), self.parameters[frame.name]
            if inertial is None or of_link is None:
                continue
            if self.rigid(frame.name, name):
                link = repr(name).replace("--", "- -")  # which XML forbids in comments
                edits.replace(inertial.start, inertial.end, f"<!-- its inertia is part of link {link} -->")
            else:
                locked.append(frame.name)
                pi = pi - inertia.transform(frame.placement, of_link)
        if locked and inertia.violation(pi) is not None and inertia.violation(before) is None:
            raise ModelError(
                f"{self.label}: body {name!r}: without {', '.join(locked)}, on locked mimic joints, the remaining"
                f" inertia is impossible: {inertia.violation(pi)}"
            )
        require_body(self.label, name, pi)
        _set_inertial(edits, self.links[name], pi)


def _set_inertial(edits: Edits, link: Element, pi: np.ndarray) -> None:
    inertial = link.find("inertial")
    if not pi.any():
        if inertial is not None:
            edits.replace(inertial.start, inertial.end, "<!-- no inertia -->")
        return
    xyz, mass, moments = central(pi)
    values = {
        "origin": {"xyz": xyz, "rpy": "0 0 0"},
        "mass": {"value": mass},
        "inertia": {key: repr(x) for key, x in moments.items()},
    }
    lines = {name: tag(name, x) for name, x in values.items()}
    if inertial is None:
        body = [(2, line) for line in lines.values()]
        edits.insert_first(link, [(1, "<inertial>"), *body, (1, "</inertial>")])
        return
    for name, attributes in values.items():
        element = inertial.find(name)
        if element is None:  # <origin> is optional
            edits.insert_first(inertial, [(1, lines[name])])
        else:
            edits.set(element, attributes)


def _set_dynamics(edits: Edits, element: Element, before: Joint, joint: Joint) -> None:
    pairs = ((key, float(getattr(joint, key))) for key in ("damping", "friction"))
    values = {key: repr(x) for key, x in pairs if x != getattr(before, key)}
    existing = element.find("dynamics")
    if values and existing is not None:
        edits.set(existing, values)
    elif values:
        edits.insert_first(element, [(1, tag("dynamics", values))])


TURNED = ("diaginertia", "quat", "axisangle", "xyaxes", "zaxis", "euler")  # attributes of a rotated or diagonal inertia
GENERATED = "from included files, <replicate>, <attach>, <composite> or <flexcomp>, or fused by fusestatic"
COMPILER = "its <compiler> changes inertias (inertiafromgeom, balanceinertia, boundmass, settotalmass)"


# --- MJCF ----------------------------------------------------------------------------------------------------------


def _updated_mjcf(path: Path, text: bytes, robot: Robot, friction: bool) -> bytes:
    """Return the MJCF text with the robot's numbers. Raises ModelError, ArgumentError."""
    mujoco = require_mujoco("update_model_file")
    label, _, m = compile_mjcf(mujoco, path)
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
                raise ModelError(
                    f"{label}: body {name!r}: represents one of several joints of a body and can not have an inertia"
                )
            merged = [f.name for f in own.frames if f.body == k and f.name != name and f.name in bodies]
            _set_body(label, edits, bodies, name, merged, robot.parameters[k])
    if friction:
        joints = _joints(bodies, m)
        for before, joint in zip(own.joints, robot.joints):
            _set_friction(label, edits, joints[str(joint.name)], before, joint)
    new = edits.result()
    require_arrived(label, _again(mujoco, label, path, new, robot), robot, COMPILER)
    return new


def _again(mujoco: Any, label: str, path: Path, text: bytes, robot: Robot) -> Robot:
    """Load the new text as if it were the file, so that its meshes are found."""
    try:
        spec = mujoco.MjSpec.from_string(text.decode(declared_encoding(text)))
        spec.modelfiledir = str(path.parent)
        return robot_of(mujoco, spec.compile(), gravity=robot.gravity)
    except ValueError as error:
        raise ModelError(f"{label}: MuJoCo rejects these inertias: {error}") from None


def _elements(label: str, root: Element, m: Any) -> dict[str, Element]:
    """Return the XML element of each MuJoCo body by name; MuJoCo's order is that of the text."""
    names = body_names(m)[1:]
    elements = [e for world in root.all("worldbody") for e in world.below() if e.tag == "body"]
    if len(elements) != len(names) or any(e.attributes.get("name", n) != n for e, n in zip(elements, names)):
        raise ModelError(
            f"{label}: the model has {len(names)} bodies, but the file has {len(elements)} <body> elements: those"
            f" {GENERATED} can not be edited in place"
        )
    return dict(zip(names, elements))


def _own(body: Element, tag: str) -> list[Element]:
    """Elements of a body, including those in its <frame>s, but not those of its child bodies."""
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
    """Write the inertia to the moving body and zeros to the bodies fixed to it.

    Without zeros MuJoCo computes inertias from geoms.
    """
    require_body(label, name, pi)
    zero = {"pos": "0 0 0", "mass": "0", "diaginertia": "0 0 0"}
    for other in merged:
        _set_inertial_mjcf(edits, bodies[other], zero)
    if not pi.any():
        _set_inertial_mjcf(edits, bodies[name], zero)
        return
    _set_inertial_mjcf(edits, bodies[name], mjcf_inertial(pi))


def _set_inertial_mjcf(edits: Edits, body: Element, values: dict[str, str]) -> None:
    inertials = _own(body, "inertial")
    if inertials:
        edits.set(inertials[0], values, without=tuple(x for x in (*TURNED, "fullinertia") if x not in values))
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
