"""MJCF files: compiled by the optional `mujoco` package, whose compiled model is then read body by body."""

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance, listed
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError
from geomctrl.lie import so3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.models.source import locate
from geomctrl.robot import Robot

__all__ = ["load_mjcf"]


def load_mjcf(source: str | Path, *, ignore: Iterable[str] = (), gravity: ArrayLike | None = None) -> Robot:
    """A robot from an MJCF file, or from a string of XML; needs `mujoco` (pip install 'geomctrl[mjcf]').

    Coordinates are MuJoCo's (a joint's `ref` included), but for multi-DOF joints: a free joint holds the body's pose in
    the world, a ball joint its relative pose, both as [R | p], and a free joint's velocity is its body twist (MuJoCo's
    linear part is in world axes). A body with several joints becomes a chain: its first joints carry massless bodies
    "body/joint". Named sites become frames ("name_site" where a body has the name).

    What a rigid-body tree does not represent is refused unless named in `ignore`: "armature", "stiffness" (springs),
    "damping" (its nonlinear part), "equality", "tendon", "gravcomp", "fluid", "flex". Geometry, contacts, actuators and
    sensors are no part of a robot and are not read; joint damping and frictionloss stay as `damping` and `friction`.
    gravity: the file's unless given.
    """
    try:
        import mujoco
    except ImportError:
        raise ModelError("load_mjcf needs the optional package mujoco: pip install 'geomctrl[mjcf]'") from None
    ignore = [instance("ignore", word, str, "words") for word in listed("ignore", ignore)]
    label, m = _compile(mujoco, source)
    try:
        _check_represented(mujoco, m, ignore)
        bodies = [body for i in range(1, m.nbody) for body in _chain(mujoco, m, i)]
        off = m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
        g = gravity if gravity is not None else np.zeros(3) if off else m.opt.gravity.copy()
        frames = _frames(mujoco, m, {b.name for b in bodies})
        return Robot.build(bodies, name=_model_name(m), gravity=g, frames=frames)
    except GeomctrlError as error:
        raise type(error)(f"{label}: {error}") from None


def _compile(mujoco, source):
    found = locate(source)
    is_text = isinstance(found, str)
    label = "MJCF text" if is_text else str(found)
    try:
        root = ElementTree.fromstring(found if is_text else found.read_bytes())
    except ElementTree.ParseError as error:
        raise ModelError(f"{label}: malformed XML: {error}") from None
    if root.tag != "mujoco":
        hint = ": use load_urdf" if root.tag == "robot" else ""
        raise ModelError(f"{label}: not an MJCF: expected the root element <mujoco>, got <{root.tag}>{hint}")
    load = mujoco.MjModel.from_xml_string if is_text else mujoco.MjModel.from_xml_path
    try:
        return label, load(str(found))
    except ValueError as error:
        raise ModelError(f"{label}: {error}") from None


def _model_name(m):
    return m.names[: m.names.index(b"\0")].decode() or "robot"


def _name(mujoco, m, kind, i):
    return mujoco.mj_id2name(m, kind, i)


def _check_represented(mujoco, m, ignore):
    body, joint = mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_JOINT

    def names(kind, flags):
        return [_name(mujoco, m, kind, int(i)) or f"#{i}" for i in np.flatnonzero(flags)]

    armature = np.zeros(m.njnt)
    np.maximum.at(armature, m.dof_jntid, m.dof_armature)
    geared = getattr(m, "actuator_armature", np.zeros(m.nu))
    drag = np.zeros(m.njnt)
    np.maximum.at(drag, m.dof_jntid, np.abs(getattr(m, "dof_dampingpoly", np.zeros((m.nv, 1)))).max(axis=1))
    springs = np.hstack((m.jnt_stiffness[:, None], getattr(m, "jnt_stiffnesspoly", np.zeros((m.njnt, 1))))).any(axis=1)
    found = {
        "armature": names(joint, armature) + names(mujoco.mjtObj.mjOBJ_ACTUATOR, geared),
        "stiffness": names(joint, springs),
        "damping": names(joint, drag),
        "equality": names(mujoco.mjtObj.mjOBJ_EQUALITY, m.eq_active0),
        "tendon": names(mujoco.mjtObj.mjOBJ_TENDON, np.ones(m.ntendon)),
        "gravcomp": names(body, m.body_gravcomp),
        "fluid": ["option"] if m.opt.density or m.opt.viscosity else [],
        "flex": [f"#{i}" for i in range(m.nflex)],
    }
    ignore = set([ignore] if isinstance(ignore, str) else ignore)
    if not ignore <= found.keys():
        raise ArgumentError(f"ignore: expected some of {', '.join(found)}, got {sorted(ignore - found.keys())}")
    refused = {key: where for key, where in found.items() if where and key not in ignore}
    if refused:
        what = "; ".join(f"{key} of {', '.join(map(repr, where[:6]))}" for key, where in refused.items())
        raise ModelError(f"can not be represented: {what}. Load with ignore={tuple(refused)} to leave it out")


def _transform(mujoco, position, quaternion):
    T, R = np.eye(4), np.empty(9)
    mujoco.mju_quat2Mat(R, quaternion)
    T[:3, :3], T[:3, 3] = R.reshape(3, 3), position
    return T


def _body_name(mujoco, m, i):
    return _name(mujoco, m, mujoco.mjtObj.mjOBJ_BODY, i) or f"body{i}"


def _chain(mujoco, m, i):
    """MuJoCo's body i as Bodies: one a joint, the last of them with its name and its inertia."""
    name, parent = _body_name(mujoco, m, i), int(m.body_parentid[i])
    parent = _body_name(mujoco, m, parent) if parent else None
    placement = _transform(mujoco, m.body_pos[i], m.body_quat[i])
    R = _transform(mujoco, np.zeros(3), m.body_iquat[i])[:3, :3]
    I = R @ np.diag(m.body_inertia[i]) @ R.T
    parameters = inertia.from_com(m.body_mass[i], m.body_ipos[i], 0.5 * (I + I.T))
    first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
    if count == 0:
        return [Body(name, parent, Joint.fixed(), placement, parameters)]
    bodies = []
    for j in range(first, first + count):
        joint, rest = _joint(mujoco, m, j)
        if joint.kind == "free":
            placement = np.eye(4)  # its coordinates are the pose in the world
        last = j == first + count - 1
        body = name if last else f"{name}/{joint.name}"
        bodies.append(Body(body, parent, joint, placement @ rest, parameters if last else None))
        parent, placement = body, np.eye(4)
    return bodies


def _joint(mujoco, m, j):
    """Joint j and the displacement that makes its coordinate zero where MuJoCo's is."""
    dof, kind, point = int(m.jnt_dofadr[j]), m.jnt_type[j], m.jnt_pos[j]
    name = _name(mujoco, m, mujoco.mjtObj.mjOBJ_JOINT, j) or f"joint{j}"
    options = {"name": name, "damping": float(m.dof_damping[dof]), "friction": float(m.dof_frictionloss[dof])}
    types = mujoco.mjtJoint
    if kind == types.mjJNT_FREE:
        return Joint.free(**options), np.eye(4)
    if kind == types.mjJNT_BALL:
        return Joint.spherical(point, **options), np.eye(4)
    if m.jnt_limited[j]:
        options["lower"], options["upper"] = map(float, m.jnt_range[j])
    if m.jnt_actfrclimited[j]:
        options["effort"] = float(np.abs(m.jnt_actfrcrange[j]).max())
    rest, axis, q0 = np.eye(4), m.jnt_axis[j], float(m.qpos0[m.jnt_qposadr[j]])
    if kind == types.mjJNT_SLIDE:
        rest[:3, 3] = -q0 * axis
        return Joint.prismatic(axis, **options), rest
    rest[:3, :3] = so3.exp(-q0 * axis)
    rest[:3, 3] = point - rest[:3, :3] @ point
    return Joint.revolute(axis, point, **options), rest


def _frames(mujoco, m, taken):
    frames = []
    for i in range(m.nsite):
        name = _name(mujoco, m, mujoco.mjtObj.mjOBJ_SITE, i)
        if name:
            body = int(m.site_bodyid[i])
            on = _body_name(mujoco, m, body) if body else "world"
            frames.append(
                (f"{name}_site" if name in taken else name, on, _transform(mujoco, m.site_pos[i], m.site_quat[i]))
            )
    return frames
