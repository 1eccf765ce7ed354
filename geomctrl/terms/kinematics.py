"""Poses, Jacobians and their rates, in the four representations of Mueller 2018.

With T = (R, r) the pose of a frame and V = (w, v) its body-fixed twist, the twist of the same motion is

    body     (w, v)                      in the frame's axes, about its origin
    spatial  Ad_T (w, v)                 in inertial axes, about the world's origin
    hybrid   (R w, R v) = (w^s, rdot)    in inertial axes, about the frame's origin
    mixed    (w, R v) = (w, rdot)        angular velocity body-fixed, linear velocity in inertial axes
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.kernels import frames
from geomctrl.kernels.frames import BODY_FIXED, HYBRID, MIXED, SPATIAL
from geomctrl.mechanism.mechanism import Frame as NamedFrame
from geomctrl.mechanism.mechanism import Mechanism

from .batches import REFUSED, over_states

Representation = Literal["body", "spatial", "hybrid", "mixed"]
REPRESENTATIONS = {"body": BODY_FIXED, "spatial": SPATIAL, "hybrid": HYBRID, "mixed": MIXED}


def _representation(name: str) -> int:
    try:
        return REPRESENTATIONS[name]
    except (KeyError, TypeError):
        raise ArgumentError(
            f"representation: expected one of {', '.join(map(repr, REPRESENTATIONS))}, got {name!r}"
        ) from None


def poses(robot: Mechanism, q: np.ndarray, frame: str) -> np.ndarray:
    """`pose` (batch, 4, 4) for configurations q (batch, nq) that are checked already."""
    return frames.pose.many(robot._model, q, *_where(robot, frame))


def _where(robot: Mechanism, frame: str) -> tuple[int, np.ndarray]:
    at: NamedFrame = robot.frame(frame)
    return at.body, at.placement[:3].flatten()


def pose(robot: Mechanism, q: ArrayLike, frame: str) -> np.ndarray:
    """T_world_frame (..., 4, 4) of the named frame: a body, a merged link, an added frame (Mueller 2018 (1)).

    Raises NameNotFoundError for an unknown frame.
    """
    body, placement = _where(robot, frame)
    try:
        T = np.empty((4, 4))
        frames.pose.one(robot._model, q, body, placement, T)
        return T
    except REFUSED:
        return over_states(robot, frames.pose, body, placement, q=q)


def jacobian(robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Jac (..., 6, nv): the frame's twist is Jac v, angular part first (Mueller 2018 (5), (14), (18)).

    `representation`: "body", "spatial", "hybrid" or "mixed", see the module's docstring.
    """
    body, placement = _where(robot, frame)
    form = _representation(representation)
    try:
        J = np.empty((6, robot.nv))
        frames.jacobian.one(robot._model, q, body, placement, form, J)
        return J
    except REFUSED:
        return over_states(robot, frames.jacobian, body, placement, form, q=q)


def jacobian_rate(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """Jacdot (..., 6, nv): the frame's acceleration is Jac a + Jacdot v, the time derivative of its twist in the same
    representation (Mueller 2018 (8), (16), (27))."""
    body, placement = _where(robot, frame)
    form = _representation(representation)
    try:
        dJ = np.empty((6, robot.nv))
        frames.jacobian_rate.one(robot._model, q, v, body, placement, form, dJ)
        return dJ
    except REFUSED:
        return over_states(robot, frames.jacobian_rate, body, placement, form, q=q, v=v)
