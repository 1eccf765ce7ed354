"""Wrenches at named frames as the dynamics take them: on bodies, in their frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.kernels import frames
from geomctrl.mechanism.mechanism import Mechanism

from .batches import over_states
from .kinematics import Representation, representation_number


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
    at = robot.frame(frame)
    if at.body < 0:
        raise ArgumentError(
            f"frame: expected one on a body of {robot.name!r}, got {frame!r}, which is fixed in the world"
        )
    return at.body, at.placement[:3].flatten()
