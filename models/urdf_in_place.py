"""Inertias, friction and limits into a URDF's text; see `in_place`."""

import math
import warnings
from pathlib import Path

import numpy as np

from geomctrl.errors import GeomctrlError, ModelError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.joint import Joint
from geomctrl.models.inertials import central, require_arrived, require_body, require_same
from geomctrl.models.source import declared_encoding
from geomctrl.models.urdf import link_parameters, load_urdf
from geomctrl.models.xml_edits import Edits, Element, parsed, tag
from geomctrl.robot import Robot

__all__ = ["updated"]

LIMITS = ("lower", "upper", "velocity", "effort")


def updated(path: Path, text: bytes, robot: Robot, friction: bool, limits: bool) -> bytes:
    """The URDF's text with the robot's numbers. Raises ModelError, ArgumentError."""
    label = str(path)
    own = _loaded(path, robot)  # refuses xacro and whatever else is no URDF, with its line
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
        if joint.name in document.joints:  # a floating base's is none of the file's
            _set_joint(edits, document.joints[joint.name], before, joint, friction, limits)
    new = edits.result()
    back = _loaded(new.decode(declared_encoding(text)), robot)
    require_arrived(label, back, robot, "write to another file by geomctrl.models.save_urdf")
    return new


def _loaded(source: str | Path, robot: Robot) -> Robot:
    """As the robot was: with or without a floating base, mimic joints locked, following or free."""
    floats = robot.joints[0].kind == "free" and robot.joints[0].name == "root_joint"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when the robot was loaded
        for mimic in ("fixed", "coupled", "independent"):
            own = load_urdf(source, floats, mimic=mimic, physical="unchecked", gravity=robot.gravity)
            if own.joint_names == robot.joint_names and own.dof_names == robot.dof_names:
                return own
    return own  # another robot, as is said with its names


class _Document:
    """Links, joints and what hangs on what."""

    def __init__(self, label: str, root: Element, parameters: dict[str, np.ndarray | None]):
        self.label = label
        self.parameters = parameters  # of links
        self.links = {e.attributes["name"]: e for e in root.all("link")}
        self.joints = {e.attributes["name"]: e for e in root.all("joint")}
        self.above: dict[str, Element] = {}  # joints by their child link
        for joint in self.joints.values():
            child = joint.find("child")
            assert child is not None
            self.above[child.attributes["link"]] = joint

    def rigid(self, link: str, moving: str) -> bool:
        """Whether fixed joints alone lead from a link to the moving one that it is merged into."""
        while link != moving:
            joint = self.above[link]
            parent = joint.find("parent")
            assert parent is not None
            if joint.attributes["type"] != "fixed":
                return False
            link = parent.attributes["link"]
        return True

    def set_body(self, edits: Edits, own: Robot, k: int, name: str, pi: np.ndarray) -> None:
        """The body's inertia to its own link; links merged into it by fixed joints lose theirs."""
        locked, before = [], own.parameters[k]
        merged = [f for f in own.frames if f.body == k and f.name != name and f.name in self.links]
        for frame in merged:
            inertial, of_link = self.links[frame.name].find("inertial"), self.parameters[frame.name]
            if inertial is None or of_link is None:
                continue
            if self.rigid(frame.name, name):
                edits.replace(inertial.start, inertial.end, f"<!-- its inertia is part of link {_commented(name)} -->")
            else:
                locked.append(frame.name)
                pi = pi - inertia.transform(frame.placement, of_link)
        if locked and inertia.violation(pi) is not None and inertia.violation(before) is None:
            raise ModelError(
                f"{self.label}: body {name!r}: without {', '.join(locked)}, on locked mimic joints, no body can"
                f" have what is left: {inertia.violation(pi)}"
            )
        require_body(self.label, name, pi)
        _set_inertial(edits, self.links[name], pi)


def _commented(name: str) -> str:
    return repr(name).replace("--", "- -")


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
        if element is None:  # an origin, which may be left out
            edits.insert_first(inertial, [(1, lines[name])])
        else:
            edits.set(element, attributes)


def _set_joint(edits: Edits, element: Element, before: Joint, joint: Joint, friction: bool, limits: bool) -> None:
    new: list[tuple[int, str]] = []
    for name, keys, asked in (("dynamics", ("damping", "friction"), friction), ("limit", LIMITS, limits)):
        values = {}
        for key in keys if asked else ():
            x = float(getattr(joint, key))
            if x != getattr(before, key):
                if not math.isfinite(x):
                    raise ModelError(f"joint {joint.name!r}: {key}: URDF can not say {x}")
                values[key] = repr(x)
        found = element.find(name)
        if values and found is not None:
            edits.set(found, values)
        elif values:
            new.append((1, tag(name, values)))
    if new:
        edits.insert_first(element, new)
