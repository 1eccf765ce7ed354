"""Poses of frames, Jacobians and their time derivatives, in the four representations of Mueller 2018.

With T = (R, r) the pose of a frame and V = (w, v) its body-fixed twist, the twist in each representation is

    body     (w, v)                      in the frame's axes, about its origin
    spatial  Ad_T (w, v)                 in inertial axes, about the world's origin
    hybrid   (R w, R v) = (w^s, rdot)    in inertial axes, about the frame's origin
    mixed    (w, R v) = (w, rdot)        angular velocity body-fixed, linear velocity in inertial axes
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import shown
from geomctrl.errors import ArgumentError
from geomctrl.kernels import frames
from geomctrl.kernels.frames import BODY_FIXED, HYBRID, MIXED, SPATIAL
from geomctrl.mechanism.mechanism import Frame as NamedFrame
from geomctrl.mechanism.mechanism import Mechanism

from .batches import over_states

Representation = Literal["body", "spatial", "hybrid", "mixed"]
REPRESENTATIONS = {"body": BODY_FIXED, "spatial": SPATIAL, "hybrid": HYBRID, "mixed": MIXED}
PINOCCHIO = {"LOCAL": "body", "WORLD": "spatial", "LOCAL_WORLD_ALIGNED": "hybrid"}


def representation_number(name: str, argument: str = "representation") -> int:
    try:
        return REPRESENTATIONS[name]
    except Exception:  # of the object's own hash, too
        names = ", ".join(map(repr, REPRESENTATIONS))
        hint = f"; Pinocchio's {name} is {PINOCCHIO[name]!r} here" if type(name) is str and name in PINOCCHIO else ""
        raise ArgumentError(f"{argument}: expected one of {names}, got {shown(name)}{hint}") from None


def poses(robot: Mechanism, q: np.ndarray, frame: str) -> np.ndarray:
    """Return `pose` (batch, 4, 4) for configurations q (batch, nq) that are already checked."""
    return over_states(robot, frames.pose, *where_is(robot, frame), q=q)


def where_is(robot: Mechanism, frame: str) -> tuple[int, np.ndarray]:
    """Return the body that a frame is fixed to, -1 for the world, and its placement there (12,)."""
    place: NamedFrame = robot.frame(frame)
    return place.body, place.placement[:3].flatten()


def pose(robot: Mechanism, q: ArrayLike, frame: str) -> np.ndarray:
    """Return the pose T_world_frame of a frame.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    frame : str
        Name of a body, a merged link or an added frame.

    Returns
    -------
    ndarray, shape (..., 4, 4)

    Raises
    ------
    NameNotFoundError
        If there is no such frame.

    Notes
    -----
    Mueller 2018 (1).

    Examples
    --------
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> robot.pose([0.0, 0.0], "tip")[:3, 3].round(9) + 0.0
    array([2., 0., 0.])
    """
    body, placement = where_is(robot, frame)
    T = robot._code.at(frames.pose, body)(q, placement)
    return over_states(robot, frames.pose, body, placement, q=q) if T is None else T


def jacobian(robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Return the Jacobian of a frame: its twist is J v, angular part first.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    frame : str
        Name of a body, a merged link or an added frame.
    representation : {"body", "spatial", "hybrid", "mixed"}
        "body" (default): in the frame's axes about its origin. "spatial": in world axes about the world's origin.
        "hybrid": in world axes about the frame's origin. "mixed": angular velocity in the frame's axes, linear velocity
        in world axes.

    Returns
    -------
    ndarray, shape (..., 6, nv)

    Raises
    ------
    NameNotFoundError
        If there is no such frame.

    Notes
    -----
    Mueller 2018 (5), (14), (18).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> J = robot.jacobian(q, "link2", "hybrid")         # world axes, angular part first
    >>> h = 1e-6
    >>> velocity = (robot.pose(q + h * v, "link2") - robot.pose(q - h * v, "link2"))[:3, 3] / (2 * h)
    >>> np.allclose((J @ v)[3:], velocity)
    True
    """
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    J = robot._code.at(frames.jacobian, body, form)(q, placement)
    return over_states(robot, frames.jacobian, body, placement, form, q=q) if J is None else J


def jacobian_rate(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """Return the time derivative of `jacobian`: the frame's acceleration is J a + Jdot v.

    Parameters
    ----------
    q, v : array_like, shape (..., nq), (..., nv)
        Configuration [rad, m] and velocity [rad/s, m/s].
    frame : str
        Name of a body, a merged link or an added frame.
    representation : {"body", "spatial", "hybrid", "mixed"}
        As for `jacobian`. The acceleration is the time derivative of the twist in the same representation.

    Returns
    -------
    ndarray, shape (..., 6, nv)

    Raises
    ------
    NameNotFoundError
        If there is no such frame.

    Notes
    -----
    Mueller 2018 (8), (16), (27).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> h = 1e-6
    >>> difference = (robot.jacobian(q + h * v, "link2") - robot.jacobian(q - h * v, "link2")) / (2 * h)
    >>> np.allclose(robot.jacobian_rate(q, v, "link2"), difference)
    True
    """
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    dJ = robot._code.at(frames.jacobian_rate, body, form)(q, v, placement)
    return over_states(robot, frames.jacobian_rate, body, placement, form, q=q, v=v) if dJ is None else dJ


def body_wrenches(
    robot: Mechanism, q: ArrayLike, wrench: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """Convert a wrench on a frame to `f_ext`, the wrenches on all bodies that the dynamics accept.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    wrench : array_like, shape (..., 6)
        Moment and force (m, f) [N m, N].
    frame : str
        Name of a body, a merged link or an added frame.
    representation : {"body", "spatial", "hybrid", "mixed"}
        "body" (default): in the frame's axes about its origin. "spatial": in world axes about the world's origin.
        "hybrid": in world axes about the frame's origin. "mixed": moment in the frame's axes, force in world axes. The
        wrench acts on the joints as J^T wrench, with `jacobian` in the same representation.

    Returns
    -------
    ndarray, shape (..., nbodies, 6)
        Wrenches in body frames about their origins.

    Raises
    ------
    NameNotFoundError
        If there is no such frame.
    ArgumentError
        If the frame is fixed to the world.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> weight = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -9.81])  # of 1 kg at the tip
    >>> f_ext = robot.body_wrenches(q, weight, "tip", "hybrid")
    >>> zero = np.zeros(2)
    >>> tau = robot.inverse_dynamics(q, zero, zero, f_ext=f_ext)
    >>> bool(np.allclose(tau, robot.gravity_force(q) - robot.jacobian(q, "tip", "hybrid").T @ weight))
    True
    """
    body, placement = on_a_body(robot, frame)
    form = representation_number(representation)
    F = robot._code.at(frames.body_wrenches, body, form)(q, wrench, placement)
    if F is not None:
        return F
    return over_states(robot, frames.body_wrenches, body, placement, form, q=q, wrench=wrench)


def on_a_body(robot: Mechanism, frame: str) -> tuple[int, np.ndarray]:
    """Return a frame's body number and its placement (12,). Raises ArgumentError for frames fixed to the world."""
    place = robot.frame(frame)
    if place.body < 0:
        raise ArgumentError(
            f"frame: expected one on a body of {robot.name!r}, got {frame!r}, which is fixed in the world"
        )
    return place.body, place.placement[:3].flatten()
