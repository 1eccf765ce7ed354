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

from geomctrl.arguments import checked
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
    """Return J M^-1 J^T (..., 6, 6) in O(n): the acceleration of a frame for each wrench on it.

    It is singular if the frame has fewer than six degrees of freedom. `representation` as for `Robot.jacobian`. Raises
    ModelError if M is not positive definite. Khatib 1987.
    """
    require_robot("robot", robot)
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    compiled = robot._code.at(kernels.operational_mobility, body, form)(q, placement)
    if compiled is not None:
        return compiled
    return over_states(robot, kernels.operational_mobility, body, placement, form, q=q)


def inertia(robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Return Lambda = (J M^-1 J^T)^-1 (..., 6, 6) in O(n): the wrench on a frame for each acceleration (Khatib 1987).

    Raises ModelError if the frame can not move in all six directions, or M is not positive definite.
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


def dynamically_consistent_inverse(robot: Mechanism, q: ArrayLike, J: ArrayLike) -> np.ndarray:
    """Return Jbar = M^-1 J^T (J M^-1 J^T)^-1 (..., nv, m) for a Jacobian J (..., m, nv) (Khatib 1987 (46)).

    Its transpose maps joint torques to task forces. Raises ModelError if J does not have full row rank, ArgumentError
    for wrong shapes.
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


def null_space_projector(robot: Mechanism, q: ArrayLike, J: ArrayLike) -> np.ndarray:
    """Return N = 1 - Jbar J (..., nv, nv) for a Jacobian J (..., m, nv): J N = 0, and J M^-1 N^T = 0 for torques.

    Raises as `dynamically_consistent_inverse`.
    """
    require_robot("robot", robot)
    Jbar = dynamically_consistent_inverse(robot, q, J)
    return np.eye(robot.nv) - Jbar @ (J if has_symbols(J) else np.asarray(J, float))


def _inverse(robot: Mechanism, G: np.ndarray) -> np.ndarray:
    """Invert symmetric matrices after scaling, so that units do not affect what counts as singular."""
    if has_symbols(G):
        return np.linalg.inv(G)
    diagonal = np.diagonal(G, axis1=-2, axis2=-1)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scale = scale[..., :, None] * scale[..., None, :]
    values = np.linalg.eigvalsh(G * scale)
    if not (values[..., 0] > SINGULAR * values[..., -1]).all():
        raise ModelError(f"robot {robot.name!r}: J does not have full row rank here, so it has no right inverse")
    return np.linalg.inv(G * scale) * scale
