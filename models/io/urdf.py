"""URDF files: parsed by yourdfpy, turned into a Robot, and refused with a reason where they can not be.

yourdfpy is lenient: it retries malformed XML in recovery mode, reads a missing ixx as 1 and a missing mass as 0, skips
misspelt tags, and leaves the tree unchecked. A model read that way would be wrong in silence, so the XML
is checked first (`urdf_document`).
"""

import difflib
import io
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, flag, listed, path_of
from geomctrl.errors import GeomctrlError, InertiaError, ModelError
from geomctrl.lie import so3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import TRIED, Body, positive_bodies
from geomctrl.mechanism.checks import UNWRITABLE
from geomctrl.mechanism.coupling import Coupling
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import WORLD
from geomctrl.models.io.urdf_document import check_document, read_motors
from geomctrl.models.io.urdf_geometry import UrdfLooks
from geomctrl.models.io.xml_text import locate, read_xml
from geomctrl.robot import Robot

MENTIONED = 8  # of what is not read or can not be, in one warning


def load_urdf(
    source: str | Path,
    floating_base: bool = False,
    *,
    mimic: str = "coupled",
    physical: str = "reported",
    gravity: ArrayLike = (0.0, 0.0, -9.81),
    package_dirs: Iterable[str | Path] = (),
) -> Robot:
    """Load a robot from a URDF file.

    Parameters
    ----------
    source : str or Path
        The file, a package:// address, or a string of XML.
    floating_base : bool, default False
        Whether the root link gets six degrees of freedom, joint "root_joint"; otherwise it is the world.
    mimic : {"coupled", "fixed", "independent", "error"}, default "coupled"
        What to do with joints that follow others: "coupled" makes them follow, q = multiplier q_joint + offset, with no
        coordinate of their own (`geomctrl.Coupling`); "fixed" locks them at their offset; "independent" gives them a
        coordinate of their own; "error" refuses them.
    physical : {"reported", "required", "unchecked"}, default "reported"
        What to do with inertias that no rigid body has, which a third of the files in use carry. "reported" keeps their
        numbers as long as M(q) is positive definite, and one warning lists the links and what they violate. It also
        says how M > 0 is known: for all q where every moving body's 6x6 inertia is positive, else at configurations
        that were tried. "required" refuses such files. Both refuse negative masses, and motions that move no mass.
        "unchecked" keeps everything but negative masses: enough for kinematics and identification, but forward dynamics
        may divide by zero.
    gravity : array_like (3,), default (0, 0, -9.81)
        [m/s^2], in the world's axes.
    package_dirs : iterable of str or Path, optional
        Folders in which package://name/... is looked up. Meshes are also looked up where ROS_PACKAGE_PATH and
        AMENT_PREFIX_PATH say, and beside the folders that the file is in.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        The file is no URDF, or describes no robot.
    InertiaError, ArgumentError

    Notes
    -----
    Bodies are named after links, joints after joints; links on fixed joints are merged and stay as frames. A planar
    joint's normal is its `axis`. A limit the file does not state is infinite. Of a transmission between one joint and
    one actuator, mechanicalReduction is the joint's `gear_ratio`, and Drake's rotor_inertia with it the `armature`. A
    robot without a name has that of its file. Meshes are opened when the robot is drawn, not before. One warning lists,
    with their lines, the elements and attributes of links, inertias and joints that URDF does not have.

    Examples
    --------
    robot = gc.load_urdf("arm.urdf", package_dirs=["~/models"])
    """
    flag("floating_base", floating_base)
    choice("mimic", mimic, ("coupled", "fixed", "independent", "error"))
    choice("physical", physical, ("reported", "required", "unchecked"))
    package_dirs = [path_of("package_dirs", folder) for folder in listed("package_dirs", package_dirs)]
    located = locate(source, package_dirs)
    label = "URDF text" if isinstance(located, str) else str(located)
    try:
        document = read_xml(located)
        unread = check_document(document)
        motors, not_understood = read_motors(document)
        unread += not_understood
        if unread:
            warnings.warn(f"{label}: not read: {_some(unread)}", stacklevel=2)
        if not document.get("name"):
            document.set("name", "robot" if isinstance(located, str) else UNWRITABLE.sub("_", located.stem))
        model = _parse(_stripped(document))
        root = _root(model)
        bodies = _bodies(model, root, motors, floating_base, mimic)
        visual = UrdfLooks(located, tuple(package_dirs))
        options = {"name": model.name, "gravity": gravity, "couplings": _couplings(model) if mimic == "coupled" else ()}
        if physical == "unchecked":
            robot = _unchecked(bodies, **options)
            return replace(robot, origin=replace(robot.origin, visual=visual))
        impossible = _impossible(bodies)
        if impossible and physical == "required":
            raise InertiaError(f"{'; '.join(impossible)}; physical='reported' keeps these numbers")
        robot = Robot.build(bodies, **options, physical=False)
        robot = replace(robot, origin=replace(robot.origin, visual=visual))
    except GeomctrlError as error:
        enough = "; where only the geometry counts, as in identification: physical='unchecked'"
        hint = enough if "mass matrix" in str(error) else ""
        raise type(error)(f"{label}: {error}{hint}") from None
    if impossible:
        domain = "at all q" if positive_bodies(robot) else f"at the {TRIED} configurations tried, which proves nothing"
        said = f"no body has these inertias: {_some(impossible)}. M(q) is positive definite {domain}"
        warnings.warn(f"{label}: {said}", stacklevel=2)
    return robot


def _some(messages: list[str]) -> str:
    more = f"; and {len(messages) - MENTIONED} more" if len(messages) > MENTIONED else ""
    return "; ".join(messages[:MENTIONED]) + more


def _impossible(bodies: list[Body]) -> list[str]:
    """What links violate that no rigid body can have the inertia of."""
    whys = ((b.name, inertia.violation(b.inertia)) for b in bodies if b.inertia is not None)
    return [f"link {name!r}: {why}" for name, why in whys if why]


def link_parameters(source: str | Path) -> dict[str, np.ndarray | None]:
    """The ten parameters of every link in its own frame, by name; None where it has none. Raises ModelError."""
    document = read_xml(locate(source))
    check_document(document)
    return {link.name: _parameters(link) for link in _parse(_stripped(document)).links}


def _unchecked(bodies, **options):
    """The tree with stand-ins for all inertias, which `Robot.build` accepts; then with the file's own."""
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
    """What yourdfpy is to see: links with their inertias, joints, and nothing that it would try to open."""
    for element in list(root):
        if element.tag not in ("link", "joint"):
            root.remove(element)
    for element in root.findall("link"):
        for child in list(element):
            if child.tag != "inertial":
                element.remove(child)
    return root


def _parse(root):
    """yourdfpy's Robot of a stripped document."""
    import lxml.etree as etree
    from yourdfpy import URDF

    document = io.BytesIO(etree.tostring(root, encoding="utf-8"))
    return URDF.load(document, build_scene_graph=False, load_meshes=False).robot


# --- tree ------------------------------------------------------------------------------------------------------


def _root(model):
    """The one link that is no joint's child; checks that the joints make a tree of all links."""
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
            raise ModelError(f"joint {joint.name!r}: its links hang on each other in a loop through {link!r}")
    roots = [link.name for link in model.links if link.name not in parent]
    if len(roots) > 1:
        raise ModelError(f"{len(roots)} root links, expected one: {', '.join(map(repr, roots))} are no joint's child")
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
    """What `mimic` elements say of joints that move; on a fixed joint they say nothing."""
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
    """The displacement of a joint with one degree of freedom at coordinate `offset`."""
    if j.type not in ("revolute", "continuous", "prismatic"):
        raise ModelError(f"joint {j.name!r}: a {j.type} joint can not mimic another")
    T, axis = np.eye(4), j.axis / np.linalg.norm(j.axis)
    if j.type == "prismatic":
        T[:3, 3] = offset * axis
    else:
        T[:3, :3] = so3.exp(offset * axis)
    return T


def _parameters(link):
    """The ten parameters of a link in its own axes about its own origin; None if it is massless."""
    if link.inertial is None:
        return None
    T = np.eye(4) if link.inertial.origin is None else link.inertial.origin
    mass, I = link.inertial.mass, T[:3, :3] @ link.inertial.inertia @ T[:3, :3].T
    if mass < 0.0:
        raise InertiaError(f"link {link.name!r}: mass {mass} is negative")
    pi = inertia.from_com(mass, T[:3, 3], 0.5 * (I + I.T))
    return pi if pi.any() else None
