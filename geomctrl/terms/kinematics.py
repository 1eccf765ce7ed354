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

from .batches import over_states

Representation = Literal["body", "spatial", "hybrid", "mixed"]
REPRESENTATIONS = {"body": BODY_FIXED, "spatial": SPATIAL, "hybrid": HYBRID, "mixed": MIXED}


def representation_number(name: str, argument: str = "representation") -> int:
    try:
        return REPRESENTATIONS[name]
    except (KeyError, TypeError):
        names = ", ".join(map(repr, REPRESENTATIONS))
        raise ArgumentError(f"{argument}: expected one of {names}, got {name!r:.80}") from None


def poses(robot: Mechanism, q: np.ndarray, frame: str) -> np.ndarray:
    """`pose` (batch, 4, 4) for configurations q (batch, nq) that are checked already."""
    return over_states(robot, frames.pose, *where_is(robot, frame), q=q)


def where_is(robot: Mechanism, frame: str) -> tuple[int, np.ndarray]:
    """The body that a frame is fixed in, -1 for the world, and its placement there (12,)."""
    place: NamedFrame = robot.frame(frame)
    return place.body, place.placement[:3].flatten()


def pose(robot: Mechanism, q: ArrayLike, frame: str) -> np.ndarray:
    """Compute the pose of a frame in the world.

    Parameters
    ----------
    q : array_like (..., nq)
    frame : str
        A body, a merged link, or an added frame.

    Returns
    -------
    ndarray (..., 4, 4)
        T_world_frame, which maps coordinates in the frame to the world's (Mueller 2018 (1)).

    Raises
    ------
    NameNotFoundError, ArgumentError
    """
    body, placement = where_is(robot, frame)
    T = robot._code.at(frames.pose, body)(q, placement)
    return over_states(robot, frames.pose, body, placement, q=q) if T is None else T


def jacobian(robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Compute the Jacobian of a frame: its twist (omega, v) is Jac @ v, angular part first.

    Parameters
    ----------
    q : array_like (..., nq)
    frame : str
        A body, a merged link, or an added frame.
    representation : {"body", "spatial", "hybrid", "mixed"}, default "body"
        In which axes and about which point: the frame's own; the world's, about the world's origin; the world's axes
        about the frame's origin; angular part in the frame's axes and linear part in the world's.

    Returns
    -------
    ndarray (..., 6, nv)

    Raises
    ------
    NameNotFoundError, ArgumentError

    Notes
    -----
    Mueller 2018 (5), (14), (18).
    """
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    J = robot._code.at(frames.jacobian, body, form)(q, placement)
    return over_states(robot, frames.jacobian, body, placement, form, q=q) if J is None else J


def jacobian_rate(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """Jacdot (..., 6, nv): the frame's acceleration is Jac a + Jacdot v, the time derivative of its twist in the same
    representation (Mueller 2018 (8), (16), (27))."""
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    dJ = robot._code.at(frames.jacobian_rate, body, form)(q, v, placement)
    return over_states(robot, frames.jacobian_rate, body, placement, form, q=q, v=v) if dJ is None else dJ


def body_wrenches(
    robot: Mechanism, q: ArrayLike, wrench: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """f_ext (..., nbodies, 6), as dynamics take it, of a wrench (m, f) (..., 6) [N m, N] on the named frame.

    representation: of the twist on which the wrench does work (Mueller 2018), so that it feeds J^T wrench into the
    joints, J that of `jacobian` with the same representation: "body", about the frame's origin in its axes; "hybrid",
    about its origin in world axes; "spatial", about the world's origin in world axes; "mixed", the moment in the
    frame's axes, the force in world axes. Raises NameNotFoundError for an unknown frame, ArgumentError for one that is
    fixed in the world.
    """
    body, placement = on_a_body(robot, frame)
    form = representation_number(representation)
    F = robot._code.at(frames.body_wrenches, body, form)(q, wrench, placement)
    if F is not None:
        return F
    return over_states(robot, frames.body_wrenches, body, placement, form, q=q, wrench=wrench)


def on_a_body(robot: Mechanism, frame: str) -> tuple[int, np.ndarray]:
    """The body's number and the placement (12,) of a named frame. Raises ArgumentError for one of the world's."""
    place = robot.frame(frame)
    if place.body < 0:
        raise ArgumentError(
            f"frame: expected one on a body of {robot.name!r}, got {frame!r}, which is fixed in the world"
        )
    return place.body, place.placement[:3].flatten()
