"""Operational space: inertia and mobility of a frame, and redundancy resolution with the metric M (Khatib 1987).

For a task velocity J v with any Jacobian J (m, nv), for example `robot.jacobian(q, "tool", "hybrid")[3:]`,

    Jbar = M^-1 J^T (J M^-1 J^T)^-1,   J Jbar = 1      the right inverse with the least kinetic energy
    N = 1 - Jbar J,                    J N = 0, N N = N, M N = N^T M

Velocities and accelerations N x do not move the task; torques N^T tau do not accelerate it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, without_overflow_warnings
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.kernels import mass_matrix_inverse as kernels
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.other_names import unknown_names
from geomctrl.tracing.numbers import has_symbols

from .batches import over_states
from .dynamics import mass_matrix_solve
from .kinematics import Representation, representation_number, where_is

__all__ = [
    "dynamically_consistent_inverse",
    "inertia",
    "mobility",
    "null_space_projector",
]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)

SINGULAR = 1e-12  # smallest accepted eigenvalue of J M^-1 J^T, scaled to a unit diagonal


def mobility(robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Return the mobility J M^-1 J^T of a frame: its acceleration for each wrench on it.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    frame : str
        Name of a frame of the robot.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Coordinates of the acceleration and the wrench, as for `Robot.jacobian`. Default: "body".

    Returns
    -------
    ndarray, shape (..., 6, 6)
        It is singular if the frame can not move in all six directions.

    Raises
    ------
    ModelError
        If M is not positive definite.

    Notes
    -----
    Khatib 1987, computed in O(n) without M and J.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> J = robot.jacobian(q, "tip")
    >>> Lambda_inverse = gc.operational_space.mobility(robot, q, "tip")
    >>> bool(np.allclose(Lambda_inverse, J @ np.linalg.solve(robot.mass_matrix(q), J.T)))
    True
    """
    require_robot("robot", robot)
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    compiled = robot._code.at(kernels.operational_mobility, body, form)(q, placement)
    if compiled is not None:
        return compiled
    return over_states(robot, kernels.operational_mobility, body, placement, form, q=q)


def inertia(robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Return the operational-space inertia Lambda = (J M^-1 J^T)^-1: the wrench on a frame for each acceleration.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    frame : str
        Name of a frame of the robot.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Coordinates of the acceleration and the wrench, as for `Robot.jacobian`. Default: "body".

    Returns
    -------
    ndarray, shape (..., 6, 6)

    Raises
    ------
    ModelError
        If the frame can not move in all six directions, or M is not positive definite.

    Notes
    -----
    Khatib 1987, computed in O(n) without M and J.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q = gc.models.ur10(), np.array([0.1, -0.8, 1.2, 0.3, 0.7, 0.2])
    >>> J, M = robot.jacobian(q, "wrist_3_link"), robot.mass_matrix(q)
    >>> Lambda = gc.operational_space.inertia(robot, q, "wrist_3_link")
    >>> np.allclose(Lambda @ J @ np.linalg.solve(M, J.T), np.eye(6))
    True
    """
    require_robot("robot", robot)
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    compiled = robot._code.at(kernels.operational_inertia, body, form)(q, placement)
    if compiled is not None:
        return compiled

    def failure(robot: Mechanism, q: np.ndarray) -> ModelError:
        mobility(robot, q, frame)  # raises the error if M is not positive definite
        return ModelError(
            f"robot {robot.name!r}: frame {frame!r} can not move in all six directions here, so it has no operational"
            " inertia: use operational_space.mobility"
        )

    return over_states(robot, kernels.operational_inertia, body, placement, form, failure=failure, q=q)


@without_overflow_warnings
def dynamically_consistent_inverse(robot: Mechanism, q: ArrayLike, J: ArrayLike) -> np.ndarray:
    """Return Jbar = M^-1 J^T (J M^-1 J^T)^-1, whose transpose maps joint torques to task forces.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    J : array_like, shape (..., m, nv)
        Jacobian of the task with m <= nv rows, and the leading axes of q.

    Returns
    -------
    ndarray, shape (..., nv, m)

    Raises
    ------
    ModelError
        If J does not have full row rank, or M is not positive definite.
    ArgumentError
        For wrong shapes.

    Notes
    -----
    Khatib 1987, equation (46).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> J = robot.jacobian(q, "tip", "hybrid")[[3, 5]]  # motion in the x-z plane
    >>> bool(np.allclose(J @ gc.operational_space.dynamically_consistent_inverse(robot, q, J), np.eye(2)))
    True
    """
    require_robot("robot", robot)
    lead, (flat,) = as_batch(robot, q=q)
    J = checked("J", J, (robot.nv,))
    if J.ndim != len(lead) + 2 or J.shape[:-2] != lead or not 0 < J.shape[-2] <= robot.nv:
        raise ArgumentError(
            f"J: expected the leading axes of q, {lead}, then 1 to {robot.nv} rows of {robot.nv}, got shape {J.shape}"
        )
    X = mass_matrix_solve(robot, flat.reshape(*lead, robot.nq), J.swapaxes(-1, -2))
    return X @ _inverse(robot, J @ X)


@without_overflow_warnings
def null_space_projector(robot: Mechanism, q: ArrayLike, J: ArrayLike) -> np.ndarray:
    """Return N = 1 - Jbar J: velocities N x do not move the task, and torques N^T x do not accelerate it.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    J : array_like, shape (..., m, nv)
        Jacobian of the task with m <= nv rows, and the leading axes of q.

    Returns
    -------
    ndarray, shape (..., nv, nv)
        J N = 0 and J M^-1 N^T = 0.

    Raises
    ------
    ModelError, ArgumentError
        As `dynamically_consistent_inverse`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q = gc.models.panda(), np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    >>> J = robot.jacobian(q, "panda_hand")
    >>> N = gc.operational_space.null_space_projector(robot, q, J)
    >>> bool(np.abs(J @ N).max() < 1e-12)
    True
    """
    require_robot("robot", robot)
    Jbar = dynamically_consistent_inverse(robot, q, J)
    return np.eye(robot.nv) - Jbar @ (J if has_symbols(J) else np.asarray(J, float))


def _inverse(robot: Mechanism, G: np.ndarray) -> np.ndarray:
    """Invert symmetric matrices after scaling, so that the test for singularity does not depend on units."""
    if has_symbols(G):
        return np.linalg.inv(G)
    diagonal = np.diagonal(G, axis1=-2, axis2=-1)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scale = scale[..., :, None] * scale[..., None, :]
    values = np.linalg.eigvalsh(G * scale)
    if not (values[..., 0] > SINGULAR * values[..., -1]).all():
        raise ModelError(f"robot {robot.name!r}: J does not have full row rank here, so it has no right inverse")
    return np.linalg.inv(G * scale) * scale
