"""Whole models from and to Pinocchio."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import choice, choices, has_attributes, is_a, optional_package, shown
from geomctrl.errors import ArgumentError, GeomctrlError, InertiaError, ModelError
from geomctrl.lie import se3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.coupling import Coupling
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import WORLD, require_robot
from geomctrl.models.io.urdf import PHYSICAL, build_reported
from geomctrl.models.io.xml_text import unique_name
from geomctrl.robot import Robot

OLDEST_VERSION = "3.3"  # version of Pinocchio that has friction, damping and armature of joints
SWAP = [3, 4, 5, 0, 1, 2]  # Pinocchio's twists have the linear part first
SINGLE = ("R", "RUB", "P", "H", "RevoluteUnaligned", "RevoluteUnboundedUnaligned", "PrismaticUnaligned",
          "HelicalUnaligned")  # fmt: skip
UNLIMITED = np.finfo(float).max  # what Pinocchio has where there is no limit
CHAINS = ("Universal", "SphericalZYX", "Translation")  # a column of S at neutral is a joint with one degree of freedom
IDENTITY = np.eye(3)
MULTI_DOF_JOINTS = {"FreeFlyer": "free", "Spherical": "spherical", "Planar": "planar"}


def _the_package(caller: str) -> Any:
    return optional_package(caller, "pinocchio", "pinocchio", OLDEST_VERSION)


# --- the joints of a model -----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A lower pair of a model: one of its joints, or a part of one that is a chain."""

    name: str
    kind: str  # of Pinocchio's joint
    model: Any  # pinocchio.JointModel
    column: int | None  # of the joint's S, for a part of a chain
    placement: np.ndarray  # in the frame of the part before it, or of the joint
    q: slice
    v: slice


def parts(model: Any, j: int) -> list[Part]:
    """The lower pairs of joint j; those of a composite, universal, SphericalZYX or translation joint are called
    "name/1", "name/2", ...
    """
    return [*_parts(str(model.names[j]), model.joints[j], np.eye(4), model.idx_qs[j], model.idx_vs[j])]


def _parts(name: str, joint: Any, placement: np.ndarray, q: int, v: int) -> Iterator[Part]:
    kind = joint.shortname().removeprefix("JointModel")
    if kind == "Composite":
        inner = joint.extract()
        for k, (part, M) in enumerate(zip(inner.joints, inner.jointPlacements), 1):
            yield from _parts(f"{name}/{k}", part, placement @ M.homogeneous, q, v)
            placement, q, v = np.eye(4), q + part.nq, v + part.nv
    elif kind in CHAINS:
        for k in range(joint.nv):
            own = placement if k == 0 else np.eye(4)
            yield Part(f"{name}/{k + 1}", kind, joint, k, own, slice(q + k, q + k + 1), slice(v + k, v + k + 1))
    else:
        yield Part(name, kind, joint, None, placement, slice(q, q + joint.nq), slice(v, v + joint.nv))


def planar_axes(joint: Joint) -> np.ndarray:
    """Axes (3, 3) in the body frame of a planar joint as other libraries have it, with the normal z."""
    if joint.kind != "planar" or abs(joint.S[2, 2] - 1.0) <= 1e-12:
        return IDENTITY
    R = np.column_stack((joint.S[3:, :2], joint.S[:3, 2]))
    if np.abs(R.T @ R - np.eye(3)).max() > 1e-9 or np.linalg.det(R) < 0.0:
        raise ModelError(f"joint {joint.name!r}: expected a planar joint with two orthogonal unit directions")
    return R


# --- from Pinocchio ------------------------------------------------------------------------------------------------


def from_pinocchio_model(model: Any, *, ignore: Iterable[str] = (), physical: str = "reported") -> Robot:
    """See `geomctrl.Robot.from_pinocchio`."""
    pin, left_out = (
        _the_package("from_pinocchio"),
        choices("ignore", [ignore] if is_a(ignore, str) else ignore, ("armature",)),
    )
    choice("physical", physical, PHYSICAL)
    if not isinstance(model, pin.Model):
        hint = ": give its .model" if has_attributes(model, "model") else ""
        raise ArgumentError(f"model: expected a pinocchio.Model, got {shown(model)}{hint}")
    label = f"model {model.name!r}" if model.name else "model"
    try:
        if model.gravity.angular.any():
            raise ModelError(f"gravity: expected a linear acceleration, got angular {model.gravity.angular}")
        tree = _Tree(pin, model, armature=not left_out)
        options = {"name": model.name or "robot", "gravity": model.gravity.linear.copy(), "frames": tree.frames()}
        robot = build_reported(label, tree.bodies, physical, couplings=_couplings(model), **options)
    except GeomctrlError as error:
        raise type(error)(f"{label}: {error}") from None
    if tree.uneven:
        warnings.warn(f"{label}: not read, because they differ within a joint: {', '.join(tree.uneven)}",
                      stacklevel=2)  # fmt: skip
    return robot


def _couplings(model: Any) -> list[Coupling]:
    out = []
    for follower, leader in zip(getattr(model, "mimicking_joints", ()), getattr(model, "mimicked_joints", ())):
        mimic = model.joints[follower].extract()
        out.append(Coupling(str(model.names[follower]), {str(model.names[leader]): mimic.scaling}, mimic.offset))
    return out


class _Tree:
    """Reads a pinocchio.Model joint by joint."""

    def __init__(self, pin, model, armature):
        self.pin, self.model, self.armature, self.uneven = pin, model, armature, []
        self.neutral = pin.neutral(model)
        self.parts = [[], *(parts(model, j) for j in range(1, model.njoints))]
        self.own = [None, *(self.body_frame(j) for j in range(1, model.njoints))]  # frame of each joint's body
        self.shifts = [np.eye(4) if f is None else f.placement.homogeneous for f in self.own]  # T_joint_body
        taken = {WORLD, *(f.name for f in model.frames if f.type == pin.FrameType.BODY)}
        self.names = [
            f.name if f and f.name != WORLD else unique_name(str(n), taken) for f, n in zip(self.own, model.names)
        ]
        self.bodies = [body for j in range(1, model.njoints) for body in self.chain(j)]

    def body_frame(self, j):
        """The first body frame of the joint, unless the coordinates of the joint would be others in it."""
        kinds = [f for f in self.model.frames if f.parentJoint == j and f.type == self.pin.FrameType.BODY]
        if not kinds:
            return None
        kind, B = MULTI_DOF_JOINTS.get(self.parts[j][-1].kind), kinds[0].placement.homogeneous
        same = np.array_equal(B, np.eye(4)) or kind is None
        turned = kind == "planar" and abs(B[2, 2] - 1.0) > 1e-12
        shifted = kind == "spherical" and np.array_equal(B[:3, :3], np.eye(3))
        return kinds[0] if same or turned or shifted else None

    def chain(self, j):
        """Bodies of joint j: one for each part; the last one has the inertia."""
        up, Y, B = self.model.parents[j], self.model.inertias[j], self.shifts[j]
        placement = se3.inverse(self.shifts[up]) @ self.model.jointPlacements[j].homogeneous
        parent, bodies = self.names[up] if up else None, []
        if Y.mass < 0.0:
            raise InertiaError(f"body {self.names[j]!r}: mass {Y.mass} is negative")
        for k, part in enumerate(self.parts[j], 1):
            placement, last = placement @ part.placement, k == len(self.parts[j])
            S = self.screws(part)
            if not last:
                name, pi, T = f"{self.names[j]}/{k}", None, np.eye(4)
            else:
                R, arm = B[:3, :3], B[:3, :3].T @ (Y.lever - B[:3, 3])
                name, pi, T = self.names[j], inertia.from_com(Y.mass, arm, R.T @ Y.inertia @ R), B
            S = se3.Ad(se3.inverse(T)) @ S if T is B else S
            bodies.append(Body(name, parent, self.joint(part, S), placement @ T, pi))
            parent, placement = name, np.eye(4)
        return bodies

    def screws(self, part):
        """The screws (6, dof) of a part in its joint's frame; that of a mimic joint is scaled."""
        data = part.model.createData()
        part.model.calc(data, self.neutral)
        S = np.asarray(data.S).reshape(6, -1)[SWAP]
        if part.kind == "Mimic":
            scaling = part.model.extract().scaling
            if not scaling:
                raise ModelError(f"joint {part.name!r}: a mimic joint with scaling 0")
            return S / scaling
        return S if part.column is None else S[:, [part.column]]

    def joint(self, part, S):
        options = self.properties(part)
        if part.kind in MULTI_DOF_JOINTS:
            kind = MULTI_DOF_JOINTS[part.kind]
            return Joint(kind, np.eye(6) if kind == "free" else S, name=part.name, **options)
        if part.column is None and part.kind != "Mimic" and part.kind.rstrip("XYZ") not in SINGLE:
            raise ModelError(f"joint {part.name!r}: a JointModel{part.kind} is not represented")
        return Joint.from_screw(S[:, 0], name=part.name, **options)

    def properties(self, part):
        """Limits, losses and motor of a part."""
        model, out = self.model, {}
        if part.kind == "Mimic":
            return out
        for key, name in (("velocity", "velocityLimit"), ("effort", "effortLimit"), ("damping", "damping"),
                          ("friction", "friction")):  # fmt: skip
            values = np.asarray(getattr(model, name))[part.v]
            if (values == values[0]).all():
                out[key] = float(values[0])
            else:
                self.uneven.append(f"{key} of joint {part.name!r}")
        armature = np.asarray(model.armature)[part.v]
        if part.kind in MULTI_DOF_JOINTS:
            if self.armature and armature.any():
                raise ModelError(
                    f"joint {part.name!r}: armature: expected none at a joint with several degrees of freedom, got"
                    f" {armature.tolist()}; leave all armatures out with ignore='armature'"
                )
        else:
            out["armature"] = float(armature[0]) * self.armature
            out["gear_ratio"] = float(model.rotorGearRatio[part.v.start]) or 1.0
            if part.q.stop - part.q.start == 1:
                out["lower"] = float(model.lowerPositionLimit[part.q.start])
                out["upper"] = float(model.upperPositionLimit[part.q.start])
        limits = {key: np.copysign(np.inf, x) for key, x in out.items() if abs(x) == UNLIMITED}
        return out | limits

    def frames(self):
        """(name, body, placement) of all frames that are neither bodies nor joints."""
        out, taken = [], {WORLD, *(body.name for body in self.bodies)}
        for k, f in enumerate(self.model.frames):
            j, M = f.parentJoint, f.placement.homogeneous
            own = self.own[j] is not None and self.own[j].name == f.name and f.type == self.pin.FrameType.BODY
            at_origin = j == 0 and f.name == WORLD and np.array_equal(M, np.eye(4))
            if k and not own and not at_origin and f.type != self.pin.FrameType.JOINT:
                kind = {"fixed_joint": "joint", "op_frame": "frame"}.get(f.type.name.lower(), f.type.name.lower())
                name = f.name if f.name not in taken else unique_name(f"{f.name}_{kind}", taken)
                taken.add(name)
                out.append((name, self.names[j] if j else WORLD, se3.inverse(self.shifts[j]) @ M))
        return out


# --- to Pinocchio --------------------------------------------------------------------------------------------------


def to_pinocchio_model(robot: Robot) -> Any:
    """Return the robot as a pinocchio.Model with the same dynamics, up to rounding.

    Parameters
    ----------
    robot : Robot
        A robot whose joints Pinocchio has too.

    Returns
    -------
    pinocchio.Model
        `to_pinocchio` and `from_pinocchio` convert states between the robot and it.

    Raises
    ------
    ModelError
        If Pinocchio does not represent a part of the robot: cylindrical joints, springs, joints that follow none or
        several others or one that Pinocchio numbers after them.
    GeomctrlError
        If the package is not installed or too old.

    Notes
    -----
    - Joints are added depth-first, as Pinocchio's algorithms require, so its order of joints can be another than the
      robot's. A revolute joint without limits of position becomes a continuous one (JointModelRUBX, ...), as when
      Pinocchio reads a URDF file, unless it is in a coupling.
    - The frame of a joint in Pinocchio lies on its axis. Where that of the body does not, it is a body frame with the
      body's name.
    - Couplings become mimic joints (Pinocchio 3.5 or later). Damping, friction, armature and limits of joints that
      follow are those of the joint that they follow, as in `robot.damping`.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.interop.to_pinocchio_model(gc.models.panda()).nv
    7
    """
    require_robot("robot", robot)
    pin = _the_package("to_pinocchio_model")
    model, numbers = pin.Model(), {-1: 0}
    model.name, model.gravity.linear = robot.name, np.array(robot.gravity)
    shifts = {-1: np.eye(4)} | {i: _shift(robot, joint) for i, joint in enumerate(robot.joints)}  # T_body_joint
    for i in _depth_first(robot.parents):
        p, joint, T = robot.parents[i], robot.joints[i], shifts[i]
        placement = pin.SE3(se3.inverse(shifts[p]) @ robot.placements[i] @ T)
        j = numbers[i] = model.addJoint(numbers[p], _joint_model(pin, robot, joint, T), placement, str(joint.name))
        back = pin.SE3(se3.inverse(T))
        model.appendBodyToJoint(j, _inertia(pin, robot.body_names[i], robot.parameters[i]), back)
        model.addJointFrame(j)
        model.addBodyFrame(robot.body_names[i], j, back, -1)
    for name, body, M in robot.frames:
        if name not in (WORLD, *robot.body_names):
            T, on = se3.inverse(shifts[body]) @ M, model.names[numbers[body]]
            parent = model.getFrameId(on, pin.FrameType.JOINT) if body >= 0 else 0
            model.addFrame(pin.Frame(name, numbers[body], parent, pin.SE3(T), pin.FrameType.OP_FRAME))
    model = _with_mimics(pin, robot, model)
    _set_properties(robot, model)
    return model


def _depth_first(parents: tuple[int, ...]) -> list[int]:
    """Numbers of the bodies so that each subtree follows its root."""
    order, stack = [], [i for i, p in reversed([*enumerate(parents)]) if p < 0]
    while stack:
        order.append(stack.pop())
        stack += [i for i, p in reversed([*enumerate(parents)]) if p == order[-1]]
    return order


def _shift(robot: Robot, joint: Joint) -> np.ndarray:
    """T_body_joint: the frame of the joint, whose axis passes through its origin."""
    T = np.eye(4)
    T[:3, :3] = planar_axes(joint)
    if joint.kind in ("revolute", "helical"):
        T[:3, 3] = np.cross(joint.S[:3, 0], joint.S[3:, 0])
        if _continuous(robot, joint) and joint.S[:3].max() < 1.0:  # Python can only make those about x, y or z
            T[:3, :3] = planar_axes(Joint.planar(joint.S[:3, 0]))
    elif joint.kind == "spherical":
        T[:3, 3] = joint.S[5, 1], joint.S[3, 2], joint.S[4, 0]
    return T


def _continuous(robot: Robot, joint: Joint) -> bool:
    coupled = any(joint.name in (c.joint, *c.follows) for c in robot.couplings)
    return joint.kind == "revolute" and bool(np.isinf((joint.lower, joint.upper)).all()) and not coupled


def _joint_model(pin: Any, robot: Robot, joint: Joint, T: np.ndarray) -> Any:
    if joint.stiffness:
        raise ModelError(f"joint {joint.name!r}: Pinocchio has no springs")
    several = {ours: theirs for theirs, ours in MULTI_DOF_JOINTS.items()}
    if joint.kind in several:
        return getattr(pin, f"JointModel{several[joint.kind]}")()
    if joint.dof != 1:
        chain = "model it as a chain of joints with massless bodies between"
        raise ModelError(f"joint {joint.name!r}: Pinocchio has no {joint.kind} joint; {chain}")
    w, v = joint.S[:3, 0], joint.S[3:, 0]
    axis, letter = (v, "P") if joint.kind == "prismatic" else (w, {"helical": "H"}.get(joint.kind, "R"))
    pitch = [float(w @ v)] if joint.kind == "helical" else []
    if _continuous(robot, joint):
        letter, axis = "RUB", axis if axis.max() == 1.0 else IDENTITY[2]
    for name, unit in zip("XYZ", IDENTITY):
        if np.array_equal(axis, unit):
            return getattr(pin, f"JointModel{letter}{name}")(*pitch)
    name = {"P": "Prismatic", "H": "Helical", "R": "Revolute"}[letter]
    return getattr(pin, f"JointModel{name}Unaligned")(axis, *pitch)


def _inertia(pin: Any, name: str, pi: np.ndarray) -> Any:
    if not pi.any():
        return pin.Inertia.Zero()
    if pi[0] <= 0.0:
        raise ModelError(f"body {name!r}: Pinocchio can not hold a mass of {pi[0]:g} kg with a first moment or inertia")
    return pin.Inertia(float(pi[0]), pi[1:4] / pi[0], inertia.com_tensor(pi))


def _with_mimics(pin: Any, robot: Robot, model: Any) -> Any:
    """The model with mimic joints for the robot's couplings, which are resolved: a leader follows none."""
    if robot.couplings and not hasattr(pin, "transformJointIntoMimic"):
        raise ModelError(f"couplings: need Pinocchio 3.5 or later for mimic joints, {pin.__version__} is installed")
    q, tree, A = robot.neutral(), robot.coupling.tree, robot.coupling.matrix
    moved = robot.coupling.tree_configuration(q)
    for coupling in robot.couplings:
        i = robot.joint(coupling.joint)
        (columns,) = np.nonzero(A[tree.v_slices[i]][0])
        if len(columns) != 1:
            raise ModelError(f"joint {coupling.joint!r}: in Pinocchio a joint follows one other, not {len(columns)}")
        leader = next(k for k, rates in enumerate(robot.v_slices) if rates.start <= columns[0] < rates.stop)
        ratio = float(A[tree.v_slices[i].start, columns[0]])
        offset = float(moved[tree.q_slices[i]][0] - ratio * q[robot.q_slices[leader]][0])
        first, second = (model.getJointId(robot.joint_names[k]) for k in (leader, i))
        if first > second:
            raise ModelError(
                f"joint {coupling.joint!r}: it follows {robot.joint_names[leader]!r}, which Pinocchio numbers after it"
            )
        model = pin.transformJointIntoMimic(model, first, second, ratio, offset)
    return model


def _set_properties(robot: Robot, model: Any) -> None:
    """Set limits, losses and motors of the model's joints."""
    limits, gear = robot.limits, robot.gear_ratio
    values = {
        "effortLimit": limits.effort, "lowerEffortLimit": -limits.effort, "velocityLimit": limits.velocity,
        "lowerVelocityLimit": -limits.velocity, "damping": robot.damping, "friction": robot.friction,
        "lowerDryFrictionLimit": -robot.friction, "armature": robot.armature, "rotorGearRatio": gear,
        "rotorInertia": robot.armature / gear**2,
    }  # fmt: skip
    arrays = {key: np.array(getattr(model, key)) for key in values if hasattr(model, key)}
    lower, upper = np.array(model.lowerPositionLimit), np.array(model.upperPositionLimit)
    for joint, vs in zip(robot.joints, robot.v_slices):
        if vs.start < vs.stop:
            j = model.getJointId(str(joint.name))
            k, d = model.idx_qs[j], model.idx_vs[j]
            for key, array in arrays.items():
                array[d : d + model.nvs[j]] = values[key][vs]
            if joint.dof == 1 and model.nqs[j] == 1:
                lower[k], upper[k] = limits.lower[vs][0], limits.upper[vs][0]
    for key, array in (arrays | {"lowerPositionLimit": lower, "upperPositionLimit": upper}).items():
        setattr(model, key, np.clip(array, -UNLIMITED, UNLIMITED))
