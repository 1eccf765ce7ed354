"""Configurations of a robot as a Lie group: q * exp(dv), its inverse, and what integrators need.

Every lower pair is a motion subgroup, so the configuration space of a tree is a product of them: R for a joint with one
degree of freedom, a subgroup of SE(3) for a joint with more, with the coordinates v in its basis S. Mueller 2018
section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import ROTATION_TOLERANCE, checked, generator, rotation_residual, same_batch
from geomctrl.compiler.kernel_traces import run
from geomctrl.kernels import configuration, tree
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.kernels.couplings import fitting
from geomctrl.kernels.primitives import KernelTypeError
from geomctrl.lie import se3
from geomctrl.lie.groups import Rn
from geomctrl.tracing.numbers import ARRAYS

from .joint import Joint
from .mechanism import Mechanism, require_robot
from .states import as_batch


class JointCoordinates(NamedTuple):
    """A joint, and the slices of q and v that hold its coordinates."""

    joint: Joint
    q: slice
    v: slice


def joint_coordinates(robot: Mechanism) -> list[JointCoordinates]:
    """Return joint and slices for each joint that has coordinates, in order; joints that follow others have none."""
    coordinates = map(JointCoordinates, robot.joints, robot.q_slices, robot.v_slices)
    return [x for x in coordinates if x.v.start < x.v.stop]


def single_coordinates(robot: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices in q and in v, (n,) each, of the coordinates of joints with one degree of freedom.

    Their ranges in `robot.limits` already include the limits of joints that follow them.
    """
    places = [(x.q.start, x.v.start) for x in joint_coordinates(robot) if x.joint.dof == 1]
    q, v = np.array(places, int).reshape(-1, 2).T
    return q, v


# --- public ----------------------------------------------------------------------------------------------------


def neutral(robot: Mechanism) -> np.ndarray:
    """Return the configuration with zero coordinates and identity poses.

    Returns
    -------
    ndarray, shape (nq,)

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.two_link().neutral()
    array([0., 0.])
    """
    require_robot("robot", robot)
    q = np.zeros(robot.nq)
    for joint, s in zip(robot.joints, robot.q_slices):
        if joint.dof > 1:
            q[s] = np.eye(3, 4).ravel()
    return q


def random_configuration(robot: Mechanism, rng: np.random.Generator) -> np.ndarray:
    """Return a random configuration (nq,).

    Coordinates are uniform within the joint limits, or within +-pi or +-1 m where there is no limit. Rotations are
    uniform.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers, for example `numpy.random.default_rng(0)`.

    Returns
    -------
    ndarray, shape (nq,)

    Raises
    ------
    ArgumentError
        If `rng` is not a numpy.random.Generator.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> gc.models.two_link().random_configuration(np.random.default_rng(0)).shape
    (2,)
    """
    require_robot("robot", robot)
    generator("rng", rng)
    x, limits = np.empty(robot.nv), robot.limits
    lower, upper = limits.lower.tolist(), limits.upper.tolist()
    for joint, s in zip(robot.joints, robot.v_slices):
        if s.start == s.stop:
            continue
        if joint.dof > 1:
            x[s] = np.where(joint.is_rotational, rng.normal(size=joint.dof) * np.pi, rng.uniform(-1.0, 1.0, joint.dof))
        else:
            reach = np.pi if joint.is_rotational.any() else 1.0
            low, high = lower[s.start], upper[s.start]
            low = low if isfinite(low) else min(-reach, high - 2 * reach)
            x[s] = rng.uniform(low, high if isfinite(high) else max(reach, low + 2 * reach))
    return integrate(robot, neutral(robot), x)


def integrate(robot: Mechanism, q: ArrayLike, dv: ArrayLike) -> np.ndarray:
    """Return q * exp(dv): the configuration after moving from q with constant velocity dv for unit time.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration.
    dv : array_like, shape (..., nv)
        Displacement in velocity coordinates: velocity [rad/s, m/s] times time.

    Returns
    -------
    ndarray, shape (..., nq)

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in a configuration is not rigid.

    See Also
    --------
    difference : the inverse.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> body = gc.models.quadrotor()
    >>> q = body.integrate(body.neutral(), np.array([0.0, 0.0, np.pi / 2, 0.0, 0.0, 0.0]))  # a quarter turn about z
    >>> q.reshape(3, 4)[:, :3].round(3) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    if (moved := robot._code.at(configuration.moved)(q, dv)) is not None:
        return moved
    lead, (q, dv) = as_batch(robot, q=q, dv=dv)
    moved = q + dv if robot.nq == robot.nv else _over(robot, configuration.moved, q, dv)
    return moved.reshape(*lead, robot.nq)


def difference(robot: Mechanism, q0: ArrayLike, q1: ArrayLike) -> np.ndarray:
    """Return dv with q0 * exp(dv) = q1, with rotations by at most pi.

    Parameters
    ----------
    q0, q1 : array_like, shape (..., nq)
        Configurations.

    Returns
    -------
    ndarray, shape (..., nv)

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in a configuration is not rigid.

    See Also
    --------
    integrate : the inverse.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> body, x = gc.models.quadrotor(), np.array([0.3, 0.2, 0.1, 1.0, 2.0, 3.0])
    >>> q = body.neutral()
    >>> np.allclose(body.difference(q, body.integrate(q, x)), x)
    True
    """
    if (dv := robot._code.at(configuration.difference)(q0, q1)) is not None:
        return dv
    lead, (q0, q1) = as_batch(robot, q0=q0, q1=q1)
    dv = q1 - q0 if robot.nq == robot.nv else _over(robot, configuration.difference, q0, q1)
    return dv.reshape(*lead, robot.nv)


def _over(robot: Mechanism, algorithm: Algorithm, *rows: np.ndarray) -> np.ndarray:
    """Run the algorithm on checked states."""
    outcome = robot._code.over(algorithm, rows, (), {})
    if outcome is not None:
        return outcome[0]
    return fitting(algorithm, robot._model).entry("many", robot._model, len(rows[0]))(robot._model, *rows)


@dataclass(frozen=True, eq=False)
class ConfigurationGroup:
    """A robot's configurations as a `geomctrl.lie.LieGroup`: elements (..., nq), algebra vectors are velocities (...,
    nv).
    """

    robot: Mechanism

    def __eq__(self, other):
        return isinstance(other, ConfigurationGroup) and other.robot is self.robot

    def __hash__(self):
        return hash((ConfigurationGroup, id(self.robot)))

    @property
    def dim(self) -> int:
        return self.robot.nv

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.robot.nq,)

    def identity(self):
        return neutral(self.robot)

    def compose(self, a, b):
        a, b = checked("a", a, self.shape), checked("b", b, self.shape)
        same_batch(("a", "b"), a, b, (1, 1))
        out = a + b
        for s in self._poses():
            out[..., s] = _flat(_pose(a[..., s]) @ _pose(b[..., s]))
        return out

    def inverse(self, a):
        a = checked("a", a, self.shape)
        out = -a
        for s in self._poses():
            out[..., s] = _flat(se3.inverse(_pose(a[..., s])))
        return out

    def exp(self, x):
        x = checked("x", x, (self.dim,))
        return self.advance(np.broadcast_to(self.identity(), (*x.shape[:-1], self.robot.nq)), x)

    def log(self, a):
        a = checked("a", a, self.shape)
        return difference(self.robot, np.broadcast_to(self.identity(), a.shape), a)

    def Ad(self, a):
        a = checked("a", a, self.shape)
        return self._per_joint(a, self.robot.q_slices, lambda x: se3.Ad(_pose(x)))

    def ad(self, x):
        x = checked("x", x, (self.dim,))
        out = self._algebra(x, se3.ad)
        for joint, s in zip(self.robot.joints, self.robot.v_slices):
            if joint.dof == 1:
                out[..., s, s] = 0.0
        return out

    def dexp(self, x):
        return self._algebra(checked("x", x, (self.dim,)), se3.dexp)

    def dexp_inv(self, x):
        return self._algebra(checked("x", x, (self.dim,)), se3.dexp_inv)

    def dexp_inv_mul(self, x, y):
        x, y = checked("x", x, (self.dim,)), checked("y", y, (self.dim,))
        lead = same_batch(("x", "y"), x, y, (1, 1))
        rows = x.reshape(-1, self.dim), y.reshape(-1, self.dim)
        flat = run(configuration.dexp_inv_many, self.robot._model, *rows)
        return flat.reshape(*lead, self.dim)

    def advance(self, y, x):
        if type(y) in ARRAYS and type(x) in ARRAYS:
            try:
                return run(configuration.advance_one, self.robot._model, y, x)
            except (KernelTypeError, ValueError):
                pass
        y, x = checked("y", y, self.shape), checked("x", x, (self.dim,))
        lead = same_batch(("y", "x"), y, x, (1, 1))
        call = fitting(configuration.moved, self.robot._model)
        flat = call.many(self.robot._model, y.reshape(-1, self.robot.nq), x.reshape(-1, self.dim))
        return flat.reshape(*lead, self.robot.nq)

    def rotation(self, x):
        """Largest angle [rad] (...) by which a pose rotates, x (..., nv); 0 if there are no poses."""
        x = checked("x", x, (self.dim,))
        out = np.zeros(x.shape[:-1])
        for joint, s in zip(self.robot.joints, self.robot.v_slices):
            if joint.dof > 1:
                out = np.maximum(out, np.linalg.norm(x[..., s] @ joint.S[:3].T, axis=-1))
        return np.asarray(out)[()]

    def residual(self, a):
        """Distance of a from the group: the largest |R^T R - 1| of its poses, and, for proper rotations, the distance
        |log T - S S^+ log T| / (1 + |p|) from the motions of their joint. It is 0 if there are no poses.
        """
        a = checked("a", a, self.shape)
        out = np.zeros(a.shape[:-1])
        for s in self._poses():
            out = np.maximum(out, rotation_residual(_pose(a[..., s])[..., :3, :3]))
        if any(1 < joint.dof < 6 for joint in self.robot.joints):
            outside = run(tree.off_subgroup_many, self.robot._model, a.reshape(-1, self.robot.nq)).max(axis=-1)
            out = np.where(out < ROTATION_TOLERANCE, np.maximum(out, outside.reshape(a.shape[:-1])), out)
        return np.asarray(out)[()]

    def random(self, rng):
        return random_configuration(self.robot, rng)

    def _poses(self):
        return [s for joint, s in zip(self.robot.joints, self.robot.q_slices) if joint.dof > 1]

    def _algebra(self, x, matrix):
        return self._per_joint(x, self.robot.v_slices, matrix, algebra=True)

    def _per_joint(self, a, slices, matrix, algebra=False):
        """Block diagonal of the 6x6 matrices restricted to each joint's subalgebra; 1 for one degree of freedom."""
        out = np.zeros((*a.shape[:-1], self.dim, self.dim))
        for joint, s, v in zip(self.robot.joints, slices, self.robot.v_slices):
            if joint.dof == 1:
                out[..., v, v] = 1.0
            else:
                x = a[..., s] @ joint.S.T if algebra else a[..., s]
                out[..., v, v] = np.linalg.pinv(joint.S) @ matrix(x) @ joint.S
        return out


def configuration_group(robot: Mechanism):
    """Return the robot's configurations as a group: plain R^n if every joint has one degree of freedom."""
    return Rn(robot.nq) if robot.nq == robot.nv else ConfigurationGroup(robot)


def _pose(x: np.ndarray) -> np.ndarray:
    """Convert (..., 12) to (..., 4, 4)."""
    T = np.zeros((*x.shape[:-1], 4, 4))
    T[..., :3, :] = x.reshape(*x.shape[:-1], 3, 4)
    T[..., 3, 3] = 1.0
    return T


def _flat(T: np.ndarray) -> np.ndarray:
    return T[..., :3, :].reshape(*T.shape[:-2], 12)
