"""Load URDF files: yourdfpy parses them, and files that do not describe a robot are rejected with a reason.

yourdfpy is lenient: it retries malformed XML in recovery mode, reads a missing ixx as 1 and a missing mass as 0, skips
misspelt tags, and does not check the tree. Such a model would be wrong without a warning, so `urdf_document` checks the
XML first.
"""

import difflib
import io
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, flag, listed, path_of
from geomctrl.errors import GeomctrlError, InertiaError, ModelError
from geomctrl.lie import so3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.coupling import Coupling
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import WORLD
from geomctrl.mechanism.variants import TEST_CONFIGURATIONS, positive_bodies
from geomctrl.models.io.urdf_document import check_document, read_motors
from geomctrl.models.io.urdf_geometry import UrdfVisuals
from geomctrl.models.io.xml_text import locate, read_xml
from geomctrl.other_names import named_arguments
from geomctrl.output import UNWRITABLE
from geomctrl.robot import Robot

PHYSICAL = ("reported", "required", "unchecked")
PARSED = {
    "link": ("inertial",),
    "joint": ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic"),
}  # the elements that make up the robot
MAX_LISTED = 8  # entries that one warning lists


@named_arguments()
def load_urdf(
    source: str | Path,
    floating_base: bool = False,
    *,
    mimic: str = "coupled",
    physical: str = "reported",
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    package_dirs: Iterable[str | Path] = (),
) -> Robot:
    """Load a robot from a URDF file, or from a string of XML.

    Parameters
    ----------
    source : str or Path
        The file, "package://name/...", or the XML text itself.
    floating_base : bool
        Give the root link six degrees of freedom (joint "root_joint"). Default False: the root link is the world.
    mimic : {"coupled", "fixed", "independent", "error"}
        Treatment of mimic joints. "coupled" (default): they follow, q = multiplier q_joint + offset, and have no
        coordinate (`geomctrl.Coupling`). "fixed": they are locked at their offset. "independent": they have their own
        coordinate. "error": they raise ModelError.
    physical : {"reported", "required", "unchecked"}
        Treatment of inertias that no rigid body can have; a third of the URDF files in use contain some.

        - "reported" (default) keeps the numbers as long as M(q) is positive definite, and lists the links and their
          violations in one warning. The warning also states where M > 0 was verified: for all q if the 6x6 inertia of
          every moving body is positive, as with moments that only violate the triangle inequality; otherwise at the
          tested configurations.
        - "required" raises InertiaError.
        - "unchecked" also accepts links that move without mass. This suffices for kinematics and for identification,
          which only use the geometry; forward dynamics may divide by zero.

        Negative masses are always refused. "reported" and "required" also refuse motions that move no mass.
    gravity : array_like, shape (3,)
        Gravitational acceleration [m/s^2], default (0, 0, -9.81).
    package_dirs : iterable of str or Path
        Folders in which "package://name/..." is looked up, for the file and its meshes. Meshes are also looked up in
        ROS_PACKAGE_PATH, AMENT_PREFIX_PATH and next to the folders that contain the file.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        If the file is not a valid URDF of a tree; the message names the element and its line.
    InertiaError
        If inertias are impossible and `physical` refuses them.
    ArgumentError
        If an argument is invalid or the file does not exist.

    Notes
    -----
    - Bodies have the names of links, joints the names of joints. Links on fixed joints are merged into their parents
      and stay as frames. The normal of a planar joint is its `axis`.
    - A limit that the file does not state is infinite. A robot without a name gets the name of its file.
    - For a transmission between one joint and one actuator, mechanicalReduction is the joint's `gear_ratio`, and
      Drake's rotor_inertia with it gives the `armature`.
    - Meshes are opened when the robot is drawn.
    - One warning lists unknown elements and attributes of the tree, joints and inertias, with their lines. Appearance
      and settings of simulators and drives are not checked.

    Examples
    --------
    >>> import geomctrl as gc
    >>> text = '''<robot name="pendulum"><link name="base"/>
    ... <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    ... <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial></link>
    ... <joint name="pivot" type="continuous"><parent link="base"/><child link="rod"/>
    ... <axis xyz="0 1 0"/></joint></robot>'''
    >>> gc.load_urdf(text).mass_matrix([0.0])
    array([[0.35]])
    """
    flag("floating_base", floating_base)
    choice("mimic", mimic, ("coupled", "fixed", "independent", "error"))
    choice("physical", physical, PHYSICAL)
    package_dirs = [path_of("package_dirs", folder) for folder in listed("package_dirs", package_dirs)]
    located = locate(source, package_dirs)
    label = "URDF text" if isinstance(located, str) else str(located)
    try:
        document = read_xml(located)
        unread = check_document(document)
        motors, not_understood = read_motors(document)
        unread += not_understood
        if unread:
            warnings.warn(f"{label}: not read: {_first_messages(unread)}", stacklevel=3)
        if not document.get("name"):
            document.set("name", "robot" if isinstance(located, str) else UNWRITABLE.sub("_", located.stem))
        model = _parse(_stripped(document))
        root = _root(model)
        bodies = _bodies(model, root, motors, floating_base, mimic)
        visual = UrdfVisuals(located, tuple(package_dirs))
        options = {"name": model.name, "gravity": gravity, "couplings": _couplings(model) if mimic == "coupled" else ()}
        robot = build_reported(label, bodies, physical, level=4, **options)
        return replace(robot, origin=replace(robot.origin, visual=visual))
    except GeomctrlError as error:
        enough = "; if you only need the geometry, as for identification, use physical='unchecked'"
        hint = enough if "mass matrix" in str(error) else ""
        raise type(error)(f"{label}: {error}{hint}") from None


def build_reported(label: str, bodies: list[Body], physical: str, level: int = 3, **options: Any) -> Robot:
    """Build a robot whose inertias may be impossible, which `physical` reports, refuses or accepts as in `load_urdf`.

    level: the `stacklevel` of the warning.
    """
    if physical == "unchecked":
        return _unchecked(bodies, **options)
    impossible = _impossible(bodies)
    if impossible and physical == "required":
        raise InertiaError(f"{'; '.join(impossible)}; physical='reported' keeps these numbers")
    robot = Robot.build(bodies, **options, physical=False)
    if impossible:
        domain = (
            "at all q"
            if positive_bodies(robot)
            else f"at the {TEST_CONFIGURATIONS} tested configurations, which is no proof"
        )
        message = f"physically impossible inertias: {_first_messages(impossible)}. M(q) is positive definite {domain}"
        warnings.warn(f"{label}: {message}", stacklevel=level)
    return robot


def _first_messages(messages: list[str]) -> str:
    more = f"; and {len(messages) - MAX_LISTED} more" if len(messages) > MAX_LISTED else ""
    return "; ".join(messages[:MAX_LISTED]) + more


def _impossible(bodies: list[Body]) -> list[str]:
    """Return for each link with an impossible inertia the condition that it violates."""
    whys = ((b.name, inertia.violation(b.inertia)) for b in bodies if b.inertia is not None)
    return [f"link {name!r}: {why}" for name, why in whys if why]


def link_parameters(source: str | Path) -> dict[str, np.ndarray | None]:
    """The ten parameters of every link in its own frame, by name; None if it has no inertia. Raises ModelError."""
    document = read_xml(locate(source))
    check_document(document)
    return {link.name: _parameters(link) for link in _parse(_stripped(document)).links}


def _unchecked(bodies, **options):
    """Build the tree with substitute inertias that `Robot.build` accepts, then set those of the file."""
    ball = inertia.from_com(1.0, np.zeros(3), np.eye(3))
    robot = Robot.build([replace(b, inertia=ball if b.joint.dof else None) for b in bodies], **options)
    parameters = np.zeros((robot.nbodies, 10))
    for b in bodies:
        frame = robot.frame(b.name)
        if frame.body >= 0 and b.inertia is not None:
            parameters[frame.body] += inertia.transform(frame.placement, b.inertia)
    return robot.with_parameters(parameters, physical=False)


# --- text ------------------------------------------------------------------------------------------------------


def _stripped(root):
    """Return the document that yourdfpy parses: what the robot needs, without references to other files."""
    for element in list(root):
        if element.tag not in PARSED:
            root.remove(element)
            continue
        for child in list(element):
            if child.tag not in PARSED[element.tag]:
                element.remove(child)
    return root


def _parse(root):
    """Parse a stripped document with yourdfpy."""
    import lxml.etree as etree
    from yourdfpy import URDF

    document = io.BytesIO(etree.tostring(root, encoding="utf-8"))
    return URDF.load(document, build_scene_graph=False, load_meshes=False).robot


# --- tree ------------------------------------------------------------------------------------------------------


def _root(model):
    """Return the only link that is no joint's child; check that the joints form a tree of all links."""
    links = {link.name for link in model.links}
    parent = {}
    for joint in model.joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                near = difflib.get_close_matches(link, links, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ModelError(f"joint {joint.name!r}: its {role} link {link!r} does not exist{hint}")
        if joint.child in parent:
            other = parent[joint.child].name
            raise ModelError(
                f"link {joint.child!r} is the child of two joints, {other!r} and {joint.name!r}: a closed loop,"
                " which a tree can not represent (cut it and close it with a constraint)"
            )
        parent[joint.child] = joint
    for joint in model.joints:
        seen, link = {joint.child}, joint.parent
        while link in parent and link not in seen:
            seen.add(link)
            link = parent[link].parent
        if link in seen:
            raise ModelError(f"joint {joint.name!r}: its links form a loop through {link!r}")
    roots = [link.name for link in model.links if link.name not in parent]
    if len(roots) > 1:
        raise ModelError(f"{len(roots)} root links, expected one: no joint has {', '.join(map(repr, roots))} as child")
    return roots[0]


def _bodies(model, root, motors, floating_base, mimic):
    links = {link.name: link for link in model.links}
    if WORLD in links and (root != WORLD or floating_base):
        raise ModelError(
            "link 'world': the name is reserved for the world frame, and this link"
            + (" would float (floating_base=True)" if root == WORLD else f" is not the root ({root!r} is)")
        )
    parameters = {name: _parameters(link) for name, link in links.items()}
    followers = [f"{j.name!r} of {j.mimic.joint!r}" for j in model.joints if j.mimic is not None and j.type != "fixed"]
    if followers and mimic == "error":
        raise ModelError(
            f"mimic joint(s) {', '.join(followers)}; load with mimic='coupled', mimic='fixed' or mimic='independent'"
        )
    bodies = []
    if root != WORLD:
        base = Joint.free(name="root_joint") if floating_base else Joint.fixed()
        bodies.append(Body(root, None, base, None, parameters[root]))
    for j in model.joints:
        placement = np.eye(4) if j.origin is None else j.origin
        lock = j.mimic if mimic == "fixed" else None
        joint = _joint(j, motors.get(j.name, {}))
        if lock is not None and joint.dof:
            joint, placement = Joint.fixed(), placement @ _moved(j, lock.offset)
        bodies.append(Body(j.child, None if j.parent == WORLD else j.parent, joint, placement, parameters[j.child]))
    return bodies


def _couplings(model):
    """Return couplings from `mimic` elements of moving joints; those of fixed joints have no effect."""
    couplings = []
    for j in model.joints:
        if j.mimic is None or j.type == "fixed":
            continue
        try:
            couplings.append(Coupling(j.name, {j.mimic.joint: _or(j.mimic.multiplier, 1.0)}, _or(j.mimic.offset, 0.0)))
        except GeomctrlError as error:
            raise ModelError(str(error)) from None
    return couplings


def _or(x: float | None, default: float) -> float:
    return default if x is None else float(x)


def _joint(j, motor):
    if j.type == "fixed":
        return Joint.fixed(name=j.name)
    options = {"name": j.name, **motor}
    bounded = j.type in ("revolute", "prismatic")
    for key in ("lower", "upper", "velocity", "effort") if bounded else ("velocity", "effort"):
        if j.limit is not None and getattr(j.limit, key) is not None:
            options[key] = getattr(j.limit, key)
    for key in ("damping", "friction"):
        if j.dynamics is not None and getattr(j.dynamics, key) is not None:
            options[key] = float(getattr(j.dynamics, key))
    if j.type == "floating":
        return Joint.free(**options)
    make = {"prismatic": Joint.prismatic, "planar": Joint.planar}.get(j.type, Joint.revolute)
    try:
        return make(j.axis, **options)
    except GeomctrlError as error:
        label = f"joint {j.name!r}: "
        raise ModelError(label + str(error).removeprefix(label)) from None


def _moved(j, offset):
    """Return the displacement of a joint with one degree of freedom at coordinate `offset`."""
    if j.type not in ("revolute", "continuous", "prismatic"):
        raise ModelError(f"joint {j.name!r}: a {j.type} joint can not mimic another")
    T, axis = np.eye(4), j.axis / np.linalg.norm(j.axis)
    if j.type == "prismatic":
        T[:3, 3] = offset * axis
    else:
        T[:3, :3] = so3.exp(offset * axis)
    return T


def _parameters(link):
    """Return the ten parameters of a link about its origin in its axes; None if it is massless."""
    if link.inertial is None:
        return None
    T = np.eye(4) if link.inertial.origin is None else link.inertial.origin
    mass, I = link.inertial.mass, T[:3, :3] @ link.inertial.inertia @ T[:3, :3].T
    if mass < 0.0:
        raise InertiaError(f"link {link.name!r}: mass {mass} is negative")
    pi = inertia.from_com(mass, T[:3, 3], 0.5 * (I + I.T))
    return pi if pi.any() else None
