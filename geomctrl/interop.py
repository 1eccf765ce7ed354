"""Robots as python-control systems with named signals, and states of Pinocchio and MuJoCo.

For `control.lqr`, `control.input_output_response` and the rest the state is x = (e, v): e (nv,) the exponential
coordinates log(q0^-1 q) of the configuration about q0, which for joints with one degree of freedom is q - q0, and v
(nv,) the velocity. With q0 = 0 on such robots it is (q, v) itself. Signals are named after `Robot.dof_names`: states
and outputs q_<name>, v_<name>, inputs tau_<name>.
"""

from __future__ import annotations

import control
import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from geomctrl.control.plant import Plant
from geomctrl.mechanism.configuration import ConfigurationGroup, difference, integrate
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.mechanism.states import as_batch, one_configuration
from geomctrl.models.mjcf import joint_names
from geomctrl.robot import Robot
from geomctrl.terms.derivatives import linearize

from .arguments import ROTATION_TOLERANCE, checked, same_batch
from .errors import ArgumentError, NameNotFoundError

__all__ = [
    "from_mujoco",
    "from_pinocchio",
    "from_state",
    "nonlinear_system",
    "signal_names",
    "state_space",
    "to_mujoco",
    "to_pinocchio",
    "to_state",
]


def signal_names(robot: Robot) -> dict[str, list[str]]:
    """Keys "states" and "outputs": q_<name>, v_<name>; "inputs": tau_<name>. Dots in names become underscores."""
    require_robot("robot", robot)
    names = [name.replace(".", "_") for name in robot.dof_names]
    states = [f"{x}_{name}" for x in ("q", "v") for name in names]
    return {"states": states, "outputs": list(states), "inputs": [f"tau_{name}" for name in names]}


def to_state(robot: Robot, q: ArrayLike, v: ArrayLike, q0: ArrayLike | None = None) -> np.ndarray:
    """x = (log(q0^-1 q), v) (..., 2 nv) of q (..., nq), v (..., nv); q0 (nq,), default neutral."""
    lead, (q, v) = as_batch(robot, q=q, v=v)
    at = robot.neutral() if q0 is None else one_configuration(robot, "q0", q0)
    x = np.concatenate((difference(robot, np.tile(at, (len(q), 1)), q), v), axis=-1)
    return x.reshape(*lead, 2 * robot.nv)


def from_state(robot: Robot, x: ArrayLike, q0: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(q (..., nq), v (..., nv)) from x (..., 2 nv): the inverse of `to_state`."""
    require_robot("robot", robot)
    x = checked("x", x, (2 * robot.nv,))
    e, v = x[..., : robot.nv], x[..., robot.nv :]
    at = robot.neutral() if q0 is None else one_configuration(robot, "q0", q0)
    return integrate(robot, np.broadcast_to(at, (*e.shape[:-1], robot.nq)), e), v.copy()


def state_space(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, name: str | None = None):
    """`linearize(robot, q, v, tau)` as a control.StateSpace, all states being outputs; one state.

    Of the robot alone: springs and friction are a `Plant`'s, of which `nonlinear_system` takes one. Where joints with
    several degrees of freedom move, v != 0, its x counts from the moving q(t), see `linearize`, and
    that of `nonlinear_system` from a fixed q0; at rest they are the same.
    """
    name = _name(name, robot)
    lead, _ = as_batch(robot, q=q, v=v, tau=tau)
    if lead:
        raise ArgumentError(f"q, v, tau: expected one state, got leading axes {lead}: use linearize for many")
    A, B, _ = linearize(robot, q, v, tau)
    n, m = B.shape
    return control.StateSpace(A, B, np.eye(n), np.zeros((n, m)), name=name, **signal_names(robot))


def _name(name: str | None, robot: Robot) -> str:
    """What a system is called: as said, or as its robot."""
    require_robot("robot", robot)
    if name is not None and not isinstance(name, str):
        raise ArgumentError(f"name: expected a string or None, got {name!r:.80}")
    return name or robot.name


def nonlinear_system(plant: Robot | Plant, q0: ArrayLike | None = None, name: str | None = None):
    """A robot or a `Plant` (with its friction, wrenches and changing loads) as a control.NonlinearIOSystem.

    x' = (dexp_{-e}^-1 v, vdot), with e = log(q0^-1 q), q0 (nq,) default neutral. On joints with several degrees of
    freedom it holds while they turn by less than 2 pi from q0.
    """
    if not isinstance(plant, (Robot, Plant)):
        raise ArgumentError(f"plant: expected a Robot or a Plant, got {plant!r:.80}")
    plant = plant if isinstance(plant, Plant) else Plant(plant)
    name = _name(name, plant.robot)
    robot, n = plant.robot, plant.robot.nv
    at = robot.neutral() if q0 is None else one_configuration(robot, "q0", q0)
    group = None if robot.nq == n else ConfigurationGroup(robot)

    def update(t, x, u, params):
        x = np.ascontiguousarray(x, dtype=float)
        e, v = x[:n], x[n:]
        q = at + e if group is None else group.advance(at, e)
        e_rate = v if group is None else group.dexp_inv_mul(-e, v)
        return np.concatenate((e_rate, plant.at(t).acceleration(t, q, v, np.ascontiguousarray(u, dtype=float))))

    return control.NonlinearIOSystem(update, None, name=name, **signal_names(robot))


# --- states of other libraries ----------------------------------------------------------------------------------


def to_pinocchio(robot: Robot, model, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) of a pinocchio.Model of the same robot, (..., model.nq), (..., model.nv), from q (..., nq), v (..., nv).

    Joints are matched by name. Theirs: quaternions (x, y, z, w), linear velocity before angular, (cos, sin) for a
    continuous joint, for a planar one (x, y, cos, sin). Accelerations and torques are ordered like velocities. Raises
    NameNotFoundError for a joint that `model` has not, ArgumentError for one that only `model` has or of another kind.
    """
    _require_model(robot, model, "pinocchio.Model", PINOCCHIO)
    lead, (q, v) = as_batch(robot, q=q, v=v)
    x, u = np.empty((len(q), model.nq)), np.empty((len(q), model.nv))
    for joint, qs, vs, at, rates in _pinocchio_joints(robot, model):
        x[:, at] = _their_coordinates(joint, q[:, qs], at.stop - at.start, scalar_first=False)
        u[:, rates] = v[:, vs] @ _linear_first(joint).T
    return x.reshape(*lead, model.nq), u.reshape(*lead, model.nv)


def from_pinocchio(robot: Robot, model, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(q (..., nq), v (..., nv)) from (q, v) of a pinocchio.Model of the same robot: the inverse of `to_pinocchio`.

    The angle of a continuous joint comes back within pi.
    """
    _require_model(robot, model, "pinocchio.Model", PINOCCHIO)
    lead, x, u = _their_state(model, q=q, v=v)
    ours, rates_of = np.empty((len(x), robot.nq)), np.empty((len(x), robot.nv))
    for joint, qs, vs, at, rates in _pinocchio_joints(robot, model):
        ours[:, qs] = _our_coordinates(joint, x[:, at], scalar_first=False)
        rates_of[:, vs] = u[:, rates] @ np.linalg.inv(_linear_first(joint)).T
    return ours.reshape(*lead, robot.nq), rates_of.reshape(*lead, robot.nv)


def to_mujoco(robot: Robot, model, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(qpos, qvel) of a mujoco.MjModel of the same robot, (..., model.nq), (..., model.nv), from q, v.

    Joints are matched by name, "joint5" being MuJoCo's number 5 where that has none, as in `models.load_mjcf`. Theirs:
    quaternions (w, x, y, z); a free joint's linear velocity comes first and in world axes. Raises NameNotFoundError for
    a joint that `model` has not, ArgumentError for one that only `model` has or of another kind.
    """
    _require_model(robot, model, "mujoco.MjModel", MUJOCO)
    lead, (q, v) = as_batch(robot, q=q, v=v)
    x, u = np.empty((len(q), model.nq)), np.empty((len(q), model.nv))
    for joint, qs, vs, at, rates in _mujoco_joints(robot, model):
        x[:, at] = _their_coordinates(joint, q[:, qs], at.stop - at.start, scalar_first=True)
        moved = v[:, vs] @ _linear_first(joint).T
        if joint.kind == "free":
            moved[:, :3] = np.einsum("bij,bj->bi", _rotations(q[:, qs]), moved[:, :3])
        u[:, rates] = moved
    return x.reshape(*lead, model.nq), u.reshape(*lead, model.nv)


def from_mujoco(robot: Robot, model, qpos: ArrayLike, qvel: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(q (..., nq), v (..., nv)) from (qpos, qvel) of a mujoco.MjModel of the same robot; inverts `to_mujoco`."""
    _require_model(robot, model, "mujoco.MjModel", MUJOCO)
    lead, x, u = _their_state(model, qpos=qpos, qvel=qvel)
    ours, rates_of = np.empty((len(x), robot.nq)), np.empty((len(x), robot.nv))
    for joint, qs, vs, at, rates in _mujoco_joints(robot, model):
        ours[:, qs] = _our_coordinates(joint, x[:, at], scalar_first=True)
        moved = u[:, rates].copy()
        if joint.kind == "free":
            moved[:, :3] = np.einsum("bji,bj->bi", _rotations(ours[:, qs]), moved[:, :3])
        rates_of[:, vs] = moved @ np.linalg.inv(_linear_first(joint)).T
    return ours.reshape(*lead, robot.nq), rates_of.reshape(*lead, robot.nv)


PINOCCHIO = ("names", "nq", "nv", "nqs", "nvs", "idx_qs", "idx_vs", "getJointId")  # what is asked of a model
MUJOCO = ("nq", "nv", "njnt", "jnt_qposadr", "jnt_dofadr", "joint")


def _require_model(robot, model, kind, attributes):
    require_robot("robot", robot)
    if isinstance(model, type) or not all(hasattr(model, name) for name in attributes):
        raise ArgumentError(f"model: expected a {kind}, got {model!r:.80}")


def _their_state(model, **state):
    (first, q), (second, v) = state.items()
    q, v = checked(first, q, (model.nq,)), checked(second, v, (model.nv,))
    lead = same_batch((first, second), q, v, (1, 1))
    return lead, q.reshape(-1, model.nq), v.reshape(-1, model.nv)


def _pinocchio_joints(robot, model):
    """(joint, our slices of q and v, theirs) of each joint."""
    _check_same_joints(robot, [n for n, dofs in zip(model.names, model.nvs) if dofs])
    for joint, qs, vs in zip(robot.joints, robot.q_slices, robot.v_slices):
        if vs.start == vs.stop:  # it follows others, in their model too
            continue
        j = model.getJointId(joint.name)
        k, d = model.idx_qs[j], model.idx_vs[j]
        _check_same_kind(joint, model.nqs[j], model.nvs[j], continuous=True)
        yield joint, qs, vs, slice(k, k + model.nqs[j]), slice(d, d + model.nvs[j])


def _mujoco_joints(robot, model):
    """(joint, our slices of q and v, theirs) of each joint."""
    starts, rates = [*model.jnt_qposadr.tolist(), model.nq], [*model.jnt_dofadr.tolist(), model.nv]
    names = joint_names(model)
    _check_same_joints(robot, names)
    for joint, qs, vs in zip(robot.joints, robot.q_slices, robot.v_slices):
        j = names.index(joint.name)
        at, dofs = slice(starts[j], starts[j + 1]), slice(rates[j], rates[j + 1])
        _check_same_kind(joint, at.stop - at.start, dofs.stop - dofs.start, continuous=False)
        yield joint, qs, vs, at, dofs


def _check_same_joints(robot, names):
    own = [joint.name for joint in robot.independent_joints]
    for name in own:
        if name not in names:
            raise NameNotFoundError(f"model: no joint named {name!r}; known: {', '.join(names)}")
    if unknown := [repr(name) for name in names if name not in own]:
        raise ArgumentError(f"model: robot {robot.name!r} lacks its joint(s) {', '.join(unknown)}")


COORDINATES = {"free": 7, "spherical": 4, "planar": 4}  # of other libraries, where there is not one


def _check_same_kind(joint, nq, nv, continuous):
    expected = COORDINATES.get(joint.kind, 1)
    if nv != joint.dof or not (nq == expected or (continuous and nq == 2 and joint.kind == "revolute")):
        raise ArgumentError(f"model: joint {joint.name!r} is {joint.kind} here, theirs has nq = {nq}, nv = {nv}")
    if joint.kind == "planar" and abs(joint.S[2, 2] - 1.0) > 1e-12:
        raise ArgumentError(f"robot: joint {joint.name!r}: planar joints of other libraries have the normal z only")


def _linear_first(joint):
    """Their velocity of one joint = this matrix times ours."""
    if joint.kind == "free":
        return np.eye(6)[[3, 4, 5, 0, 1, 2]]
    return joint.S[[3, 4, 2]] if joint.kind == "planar" else np.eye(joint.dof)


def _rotations(q):
    return q.reshape(-1, 3, 4)[:, :, :3]


def _their_coordinates(joint, q, n, scalar_first):
    """(b, n) from the coordinates (b, 1) or poses (b, 12) of one joint."""
    if joint.dof == 1:
        return q if n == 1 else np.hstack((np.cos(q), np.sin(q)))
    pose = q.reshape(-1, 3, 4)
    if joint.kind == "planar":
        return np.hstack((pose[:, :2, 3], pose[:, :2, 0]))
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
        pose[:, :, :3] = Rotation.from_rotvec(_angle(joint, x[:, 2:]) * (0.0, 0.0, 1.0)).as_matrix()
        pose[:, :2, 3] = x[:, :2]
        return pose.reshape(-1, 12)
    quaternion = np.roll(x[:, -4:], -1, axis=1) if scalar_first else x[:, -4:]
    _check_unit(joint, "a unit quaternion", quaternion)
    R = pose[:, :, :3] = Rotation.from_quat(quaternion).as_matrix()
    if joint.kind == "free":
        pose[:, :, 3] = x[:, :3]
    else:
        point = np.array((joint.S[5, 1], joint.S[3, 2], joint.S[4, 0]))  # of which [point] w is the linear part
        pose[:, :, 3] = point - R @ point
    return pose.reshape(-1, 12)


def _angle(joint, x):
    _check_unit(joint, "(cos, sin)", x)
    return np.arctan2(x[:, 1:], x[:, :1])


def _check_unit(joint, expected, x):
    norm = np.linalg.norm(x, axis=1)
    off = np.abs(norm - 1.0)
    if off.max(initial=0.0) > ROTATION_TOLERANCE:
        raise ArgumentError(f"q: joint {joint.name!r}: expected {expected}, got one of norm {norm[off.argmax()]:.6g}")
