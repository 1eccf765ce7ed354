"""Convert states between geomctrl and Pinocchio or MuJoCo."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from geomctrl.arguments import ROTATION_TOLERANCE, checked, has_attributes, same_batch, shown, without_overflow_warnings
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.models.io.mjcf import joint_names
from geomctrl.robot import Robot

from .pinocchio_model import IDENTITY, parts, planar_axes


def to_pinocchio(robot: Robot, model, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Convert a state to the coordinates of a pinocchio.Model of the same robot.

    Joints are matched by name. Pinocchio uses quaternions (x, y, z, w), linear velocity before angular, (cos, sin) for
    a continuous joint and (x, y, cos, sin) for a planar joint. Accelerations and torques are ordered like velocities.

    Parameters
    ----------
    robot : Robot
        The robot.
    model : pinocchio.Model
        The same robot.
    q, v : array_like, shape (..., nq), (..., nv)
        Configuration [rad, m] and velocity [rad/s, m/s].

    Returns
    -------
    q : ndarray, shape (..., model.nq)
    v : ndarray, shape (..., model.nv)

    Raises
    ------
    NameNotFoundError
        If `model` lacks a joint.
    ArgumentError
        If only `model` has a joint, or a joint is of another kind.

    Examples
    --------
    >>> import numpy as np
    >>> import pinocchio
    >>> import geomctrl as gc
    >>> model = pinocchio.buildSampleModelManipulator()
    >>> robot = gc.Robot.from_pinocchio(model)
    >>> q, v = gc.interop.to_pinocchio(robot, model, robot.neutral(), np.zeros(robot.nv))
    >>> bool(np.allclose(q, pinocchio.neutral(model)))
    True
    """
    _require_model(robot, model, "pinocchio.Model", PINOCCHIO)
    lead, (q, v) = as_batch(robot, q=q, v=v)
    x, u = np.empty((len(q), model.nq)), np.empty((len(q), model.nv))
    for joint, qs, vs, theirs, rates in _pinocchio_joints(robot, model):
        x[:, theirs] = _their_coordinates(joint, q[:, qs], theirs.stop - theirs.start, scalar_first=False)
        u[:, rates] = v[:, vs] @ _linear_first(joint).T
    return x.reshape(*lead, model.nq), u.reshape(*lead, model.nv)


def from_pinocchio(robot: Robot, model, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Convert a state of Pinocchio: the inverse of `to_pinocchio`.

    Parameters
    ----------
    robot : Robot
        The robot.
    model : pinocchio.Model
        Model of the same robot.
    q, v : array_like, shape (..., model.nq), (..., model.nv)
        Its configuration and velocity.

    Returns
    -------
    q : ndarray, shape (..., nq)
        Configuration [rad, m]; the angle of a continuous joint is within [-pi, pi].
    v : ndarray, shape (..., nv)
        Velocity [rad/s, m/s].

    Examples
    --------
    >>> import numpy as np
    >>> import pinocchio
    >>> import geomctrl as gc
    >>> model = pinocchio.buildSampleModelManipulator()
    >>> robot = gc.Robot.from_pinocchio(model)
    >>> q, v = gc.interop.from_pinocchio(robot, model, pinocchio.neutral(model), np.zeros(model.nv))
    >>> bool(np.allclose(q, robot.neutral()))
    True
    """
    _require_model(robot, model, "pinocchio.Model", PINOCCHIO)
    lead, x, u = _their_state(model, q=q, v=v)
    ours, rates_of = np.empty((len(x), robot.nq)), np.empty((len(x), robot.nv))
    for joint, qs, vs, theirs, rates in _pinocchio_joints(robot, model):
        ours[:, qs] = _our_coordinates(joint, x[:, theirs], scalar_first=False)
        rates_of[:, vs] = u[:, rates] @ np.linalg.inv(_linear_first(joint)).T
    return ours.reshape(*lead, robot.nq), rates_of.reshape(*lead, robot.nv)


def to_mujoco(robot: Robot, model, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Convert a state to (qpos, qvel) of a mujoco.MjModel of the same robot.

    Joints are matched by name; "joint5" is MuJoCo's joint number 5 if it has no name, as in `models.load_mjcf`. MuJoCo
    uses quaternions (w, x, y, z); the linear velocity of a free joint comes first and is in world axes.

    Parameters
    ----------
    robot : Robot
        The robot.
    model : mujoco.MjModel
        The same robot.
    q, v : array_like, shape (..., nq), (..., nv)
        Configuration [rad, m] and velocity [rad/s, m/s].

    Returns
    -------
    qpos : ndarray, shape (..., model.nq)
    qvel : ndarray, shape (..., model.nv)

    Raises
    ------
    NameNotFoundError
        If `model` lacks a joint.
    ArgumentError
        If only `model` has a joint, or a joint is of another kind.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> body = gc.models.quadrotor()
    >>> model = gc.interop.to_mujoco_model(body)
    >>> qpos, qvel = gc.interop.to_mujoco(body, model, body.neutral(), np.zeros(6))
    >>> qpos  # position and quaternion (w, x, y, z)
    array([0., 0., 0., 1., 0., 0., 0.])
    """
    _require_model(robot, model, "mujoco.MjModel", MUJOCO)
    lead, (q, v) = as_batch(robot, q=q, v=v)
    q, v, tree = robot.coupling.tree_configuration(q), v @ robot.coupling.matrix.T, robot.coupling.tree
    x, u = np.empty((len(q), model.nq)), np.empty((len(q), model.nv))
    put_mujoco(mujoco_joints(tree, model), q, v, x, u)
    return x.reshape(*lead, model.nq), u.reshape(*lead, model.nv)


def put_mujoco(joints: list[MatchedJoint], q: np.ndarray, v: np.ndarray, x: np.ndarray, u: np.ndarray) -> None:
    """Write MuJoCo's coordinates x and velocities u for our q and v, (states, n) each.

    Forces are converted like velocities, because the velocity maps are orthogonal.
    """
    for match in joints:
        joint, own = match.joint, _in_world(match, q)
        x[:, match.their_q] = _their_coordinates(
            joint, own, match.their_q.stop - match.their_q.start, scalar_first=True
        )
        moved = v[:, match.v] @ _linear_first(joint).T
        if joint.kind == "free":
            moved[:, :3] = np.einsum("bij,bj->bi", _rotations(own), moved[:, :3])
        u[:, match.their_v] = moved


def velocities_from_mujoco(joints: list[MatchedJoint], q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Convert MuJoCo's velocities, or forces, to ours (states, nv) at our configurations q."""
    v = np.empty_like(u)
    for match in joints:
        moved = u[:, match.their_v].copy()
        if match.joint.kind == "free":
            moved[:, :3] = np.einsum("bji,bj->bi", _rotations(_in_world(match, q)), moved[:, :3])
        v[:, match.v] = moved @ np.linalg.inv(_linear_first(match.joint)).T
    return v


def _in_world(match: MatchedJoint, q: np.ndarray) -> np.ndarray:
    """The coordinates (b, n) of a joint; for a free one, whose pose is in the world in MuJoCo, placement times pose."""
    own, M = q[:, match.q], match.placement
    if match.joint.kind != "free" or np.array_equal(M, np.eye(4)):
        return own
    pose = M[:3, :3] @ own.reshape(-1, 3, 4)
    pose[:, :, 3] += M[:3, 3]
    return pose.reshape(-1, 12)


def from_mujoco(robot: Robot, model, qpos: ArrayLike, qvel: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Convert a state of MuJoCo: the inverse of `to_mujoco`.

    Parameters
    ----------
    robot : Robot
        The robot.
    model : mujoco.MjModel
        Model of the same robot.
    qpos, qvel : array_like, shape (..., model.nq), (..., model.nv)
        Its configuration and velocity. The coordinates of joints that follow others, which MuJoCo keeps by
        constraints, are not read.

    Returns
    -------
    q : ndarray, shape (..., nq)
        Configuration [rad, m].
    v : ndarray, shape (..., nv)
        Velocity [rad/s, m/s].

    Examples
    --------
    >>> import geomctrl as gc
    >>> body = gc.models.quadrotor()
    >>> model = gc.interop.to_mujoco_model(body)
    >>> q, v = gc.interop.from_mujoco(body, model, [0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    >>> q.reshape(3, 4)[:, 3], v  # v = (angular, linear) velocity
    (array([0., 0., 2.]), array([0., 0., 0., 0., 0., 1.]))
    """
    _require_model(robot, model, "mujoco.MjModel", MUJOCO)
    lead, x, u = _their_state(model, qpos=qpos, qvel=qvel)
    tree = robot.coupling.tree
    q, joints = np.empty((len(x), tree.nq)), mujoco_joints(tree, model)
    for match in joints:
        q[:, match.q] = _our_coordinates(match.joint, x[:, match.their_q], scalar_first=True)
        if match.joint.kind == "free":
            q[:, match.q] = _in_world(match._replace(placement=np.linalg.inv(match.placement)), q)
    v = velocities_from_mujoco(joints, q, u)
    if robot.couplings:
        own = [k for k, rates in enumerate(robot.v_slices) if rates.start < rates.stop]
        q, v = (np.hstack([y[:, s[k]] for k in own]) for y, s in ((q, tree.q_slices), (v, tree.v_slices)))
    return q.reshape(*lead, robot.nq), v.reshape(*lead, robot.nv)


class MatchedJoint(NamedTuple):
    """A joint, its slices in our q and v, and its slices in the other library's."""

    joint: Joint
    q: slice
    v: slice
    their_q: slice
    their_v: slice
    placement: np.ndarray


# attributes that a model must have
PINOCCHIO = "names", "nq", "nv", "njoints", "joints", "idx_qs", "idx_vs", "getJointId"
MUJOCO = ("nq", "nv", "njnt", "jnt_qposadr", "jnt_dofadr", "joint")


def _require_model(robot, model, kind, attributes):
    require_robot("robot", robot)
    if isinstance(model, type) or not has_attributes(model, *attributes):
        raise ArgumentError(f"model: expected a {kind}, got {shown(model)}")


def _their_state(model, **state):
    (first, q), (second, v) = state.items()
    q, v = checked(first, q, (model.nq,)), checked(second, v, (model.nv,))
    lead = same_batch((first, second), q, v, (1, 1))
    return lead, q.reshape(-1, model.nq), v.reshape(-1, model.nv)


def _pinocchio_joints(robot, model):
    """(joint, our slices of q and v, Pinocchio's) of each joint."""
    theirs = {part.name: part for j in range(1, model.njoints) for part in parts(model, j)}
    _check_same_joints(robot, [name for name, part in theirs.items() if part.v.start < part.v.stop])
    for joint, body, qs, vs in zip(robot.joints, robot.body_names, robot.q_slices, robot.v_slices):
        if vs.start == vs.stop:  # it follows other joints, also in Pinocchio's model
            continue
        part = theirs[joint.name]
        _check_same_kind(joint, part.q.stop - part.q.start, part.v.stop - part.v.start, continuous=True)
        if joint.kind == "planar":
            _check_same_plane(joint, body, model)
        yield joint, qs, vs, part.q, part.v


def _check_same_plane(joint, body, model):
    """Check that a planar joint whose normal is not z is on a frame that is turned, as `to_pinocchio_model` does it."""
    R, j = planar_axes(joint), model.getJointId(joint.name)
    frames = [f.placement.rotation for f in model.frames if f.name == body and f.parentJoint == j]
    if R is not IDENTITY and not any(np.abs(turn - R.T).max() < 1e-9 for turn in frames):
        raise ArgumentError(f"robot: joint {joint.name!r}: planar joints of other libraries have the normal z only")


def mujoco_joints(robot: Mechanism, model: Any) -> list[MatchedJoint]:
    """Match each joint of the robot with MuJoCo's; raises as `to_mujoco` does."""
    starts, rates = [*model.jnt_qposadr.tolist(), model.nq], [*model.jnt_dofadr.tolist(), model.nv]
    names, matched = joint_names(model), []
    _check_same_joints(robot, names)
    for joint, qs, vs, M in zip(robot.joints, robot.q_slices, robot.v_slices, robot.placements):
        j = names.index(str(joint.name))
        coordinates, dofs = slice(starts[j], starts[j + 1]), slice(rates[j], rates[j + 1])
        _check_same_kind(joint, coordinates.stop - coordinates.start, dofs.stop - dofs.start, continuous=False)
        matched.append(MatchedJoint(joint, qs, vs, coordinates, dofs, M))
    return matched


def _check_same_joints(robot, names):
    own = [joint.name for joint in robot.coupling.independent_joints]
    for name in own:
        if name not in names:
            raise NameNotFoundError(f"model: no joint named {name!r}; known: {', '.join(names)}")
    if unknown := [repr(name) for name in names if name not in own]:
        raise ArgumentError(f"model: robot {robot.name!r} lacks its joint(s) {', '.join(unknown)}")


COORDINATES = {"free": 7, "spherical": 4, "planar": 4}  # of other libraries, where there is not one


def _check_same_kind(joint, nq, nv, continuous):
    expected = COORDINATES.get(joint.kind, 1)
    if nv != joint.dof or not (nq == expected or (continuous and nq == 2 and joint.kind == "revolute")):
        raise ArgumentError(
            f"model: joint {joint.name!r} is {joint.kind} in the robot, but has nq = {nq}, nv = {nv} in the model"
        )


def _linear_first(joint):
    """The matrix that maps our velocity of one joint to the other library's."""
    if joint.kind == "free":
        return np.eye(6)[[3, 4, 5, 0, 1, 2]]
    if joint.kind == "planar":
        R = planar_axes(joint)
        return np.vstack((R.T @ joint.S[3:], R.T @ joint.S[:3]))[[0, 1, 5]]
    return np.eye(joint.dof)


def _rotations(q):
    return q.reshape(-1, 3, 4)[:, :, :3]


def _their_coordinates(joint, q, n, scalar_first):
    """The other library's coordinates (b, n) for the coordinates (b, 1) or poses (b, 12) of one joint."""
    if joint.dof == 1:
        return q if n == 1 else np.hstack((np.cos(q), np.sin(q)))
    pose = q.reshape(-1, 3, 4)
    if joint.kind == "planar":
        R = planar_axes(joint)
        return np.hstack((pose[:, :, 3] @ R[:, :2], (R.T @ pose[:, :, :3] @ R)[:, :2, 0]))
    quaternion = Rotation.from_matrix(pose[:, :, :3]).as_quat()  # (x, y, z, w)
    if scalar_first:
        quaternion = np.roll(quaternion, 1, axis=1)
    return quaternion if joint.kind == "spherical" else np.hstack((pose[:, :, 3], quaternion))


def _our_coordinates(joint, x, scalar_first):
    """The inverse of `_their_coordinates`."""
    if joint.dof == 1:
        return x if x.shape[1] == 1 else _angle(joint, x)
    pose = np.zeros((len(x), 3, 4))
    if joint.kind == "planar":
        R = planar_axes(joint)
        pose[:, :, :3] = Rotation.from_rotvec(_angle(joint, x[:, 2:]) * R[:, 2]).as_matrix()
        pose[:, :, 3] = x[:, :2] @ R[:, :2].T
        return pose.reshape(-1, 12)
    quaternion = np.roll(x[:, -4:], -1, axis=1) if scalar_first else x[:, -4:]
    _check_unit(joint, "a unit quaternion", quaternion)
    R = pose[:, :, :3] = Rotation.from_quat(quaternion).as_matrix()
    if joint.kind == "free":
        pose[:, :, 3] = x[:, :3]
    else:
        point = np.array((joint.S[5, 1], joint.S[3, 2], joint.S[4, 0]))  # the linear part of the screws is [point] w
        pose[:, :, 3] = point - R @ point
    return pose.reshape(-1, 12)


def _angle(joint, x):
    _check_unit(joint, "(cos, sin)", x)
    return np.arctan2(x[:, 1:], x[:, :1])


@without_overflow_warnings
def _check_unit(joint, expected, x):
    norm = np.linalg.norm(x, axis=1)
    off = np.abs(norm - 1.0)
    if off.max(initial=0.0) > ROTATION_TOLERANCE:
        raise ArgumentError(f"q: joint {joint.name!r}: expected {expected}, got one of norm {norm[off.argmax()]:.6g}")
