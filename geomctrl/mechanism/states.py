"""Check states that are passed as arguments, and flatten their leading axes for the kernels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, exactly, require_rotation
from geomctrl.errors import ArgumentError
from geomctrl.kernels import tree
from geomctrl.kernels.tree import SUBGROUP_TOLERANCE

from .mechanism import Mechanism, require_robot


def as_batch(robot: Mechanism, **arguments: ArrayLike) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """Check states and flatten their leading axes: returns (leading shape, arrays (batch, n)).

    The names of the keyword arguments determine the expected shape: q, q0, q1, q_d (nq), f_ext (nbodies, 6), C (nv,
    nv), wrench (6), others (nv). All arguments must have the same leading axes; nothing is broadcast.
    """
    require_robot("robot", robot)
    arrays, leads = [], {}
    matrices = {"f_ext": (robot.nbodies, 6), "C": (robot.nv, robot.nv), "wrench": (6,)}
    for key, x in arguments.items():
        configuration = key in ("q", "q0", "q1", "q_d")
        trailing = (robot.nq,) if configuration else matrices.get(key, (robot.nv,))
        a = checked(key, x, trailing)
        lead = leads[key] = a.shape[: a.ndim - len(trailing)]
        flat = a.reshape(math.prod(lead), *trailing)
        if configuration and robot.nq != robot.nv:
            _check_poses(robot, key, flat)
        arrays.append(flat)
    return equal_axes(leads), arrays


def equal_axes(leads: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the leading axes of arguments. Raises ArgumentError, naming the argument, if they are not equal."""
    first = next(iter(leads))
    for name, lead in leads.items():
        if lead != leads[first]:
            raise ArgumentError(
                f"{name}: expected the leading axes of {first}, {leads[first]}, got {lead} (nothing is broadcast)"
            )
    return leads[first]


def one_configuration(robot: Mechanism, name: str, q: ArrayLike) -> np.ndarray:
    """Return one checked configuration (nq,) as a new array; errors name the argument `name`."""
    require_robot("robot", robot)
    a = exactly(name, q, (robot.nq,))
    if robot.nq != robot.nv:
        _check_poses(robot, name, a[None])
    return a


def require_vectors(name: str, robot: Mechanism, why: str = "") -> None:
    """Raise ArgumentError, naming the argument `name`, unless every joint of the robot has one degree of freedom."""
    for joint in robot.joints:
        if joint.dof > 1:
            message = f"{name}: expected joints with one degree of freedom, got {joint.name!r}, {joint.kind}"
            raise ArgumentError(f"{message}: {why}" if why else message)


def _check_poses(robot: Mechanism, key: str, q: np.ndarray) -> None:
    """Check that every pose in q (batch, nq) is rigid and can be reached by its joint; symbols are not checked."""
    if q.dtype == object:
        return
    outside = tree.off_subgroup_many(robot._model, q).max(axis=0, initial=0.0)
    slices = (s for s in robot.q_slices if s.start < s.stop)
    for joint, s, off in zip(robot.coupling.independent_joints, slices, outside):
        if joint.dof > 1:
            where = f"{key}: entries {s.start} to {s.stop - 1}, the pose [R | p] of joint {joint.name!r}"
            require_rotation(where + ", hold no rotation", q[:, s].reshape(-1, 3, 4)[:, :, :3], "")
            if off > SUBGROUP_TOLERANCE:
                raise ArgumentError(
                    f"{where}, are not one of a {joint.kind} joint: |log T - S S^+ log T| / (1 + |p|) = {off:.3g}"
                )
