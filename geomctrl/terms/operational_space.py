"""Operational space: inertia and mobility of a frame, and redundancy resolution with M as the metric (Khatib 1987).

For a task whose velocity is J v, J (m, nv) any Jacobian, such as `robot.jacobian(q, "tool", "hybrid")[3:]`,

    Jbar = M^-1 J^T (J M^-1 J^T)^-1,   J Jbar = 1      of all right inverses the one of least kinetic energy
    N = 1 - Jbar J,                    J N = 0, N N = N, M N = N^T M

Velocities and accelerations N x do not move the task; torques N^T tau do not accelerate it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.kernels import mass_matrix_inverse as kernels
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.tracing.numbers import has_symbols

from .batches import over_states
from .dynamics import mass_matrix_rate, mass_matrix_solve
from .kinematics import Representation, jacobian, jacobian_rate, representation_number, where_is

__all__ = [
    "dynamically_consistent_inverse",
    "inertia",
    "inertia_rate",
    "mobility",
    "mobility_rate",
    "null_space_projector",
]

SINGULAR = 1e-12  # of the eigenvalues of J M^-1 J^T with ones on its diagonal


def mobility(robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Jac M^-1 Jac^T (..., 6, 6): the frame's acceleration per wrench on it, O(n); singular below six freedoms.

    Khatib 1987; `representation` as for `jacobian`. Raises ModelError where M is not positive definite.
    """
    require_robot("robot", robot)
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    compiled = robot._code.at(kernels.operational_mobility, body, form)(q, placement)
    if compiled is not None:
        return compiled
    return over_states(robot, kernels.operational_mobility, body, placement, form, q=q)


def mobility_rate(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """The derivative (..., 6, 6) of `mobility` along the motion v; v = e_k: by coordinate k."""
    require_robot("robot", robot)
    Jac, rate = jacobian(robot, q, frame, representation), jacobian_rate(robot, q, v, frame, representation)
    X = mass_matrix_solve(robot, q, Jac.swapaxes(-1, -2))
    half = rate @ X
    return half + half.swapaxes(-1, -2) - X.swapaxes(-1, -2) @ mass_matrix_rate(robot, q, v) @ X


def inertia(robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Lambda = (Jac M^-1 Jac^T)^-1 (..., 6, 6): the wrench on the frame per acceleration, O(n) (Khatib 1987).

    Raises ModelError where the frame can not move in all six directions, and where M is not positive definite.
    """
    require_robot("robot", robot)
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    compiled = robot._code.at(kernels.operational_inertia, body, form)(q, placement)
    if compiled is not None:
        return compiled

    def failure(robot: Mechanism, q: np.ndarray) -> ModelError:
        mobility(robot, q, frame)  # which raises where it is M that fails
        return ModelError(
            f"robot {robot.name!r}: frame {frame!r} can not move in all six directions here, so it has no operational"
            " inertia: use operational_space.mobility"
        )

    return over_states(robot, kernels.operational_inertia, body, placement, form, failure=failure, q=q)


def inertia_rate(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """The derivative (..., 6, 6) of `inertia` along the motion v: -Lambda (Lambda^-1)' Lambda."""
    require_robot("robot", robot)
    L = inertia(robot, q, frame, representation)
    return -L @ mobility_rate(robot, q, v, frame, representation) @ L


def dynamically_consistent_inverse(robot: Mechanism, q: ArrayLike, J: ArrayLike) -> np.ndarray:
    """Jbar = M^-1 J^T (J M^-1 J^T)^-1 (..., nv, m) of a Jacobian J (..., m, nv) (Khatib 1987 (46)).

    Its transpose takes joint torques to the forces on the task that they amount to. Raises ModelError where J has not
    full row rank, ArgumentError for shapes that do not fit.
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
    """N = 1 - Jbar J (..., nv, nv) of a Jacobian J (..., m, nv): J N = 0, and of torques J M^-1 N^T = 0.

    Raises as `dynamically_consistent_inverse`.
    """
    require_robot("robot", robot)
    Jbar = dynamically_consistent_inverse(robot, q, J)
    return np.eye(robot.nv) - Jbar @ (J if has_symbols(J) else np.asarray(J, float))


def _inverse(robot: Mechanism, G: np.ndarray) -> np.ndarray:
    """Of symmetric matrices, scaled so that units do not decide what is singular."""
    if has_symbols(G):
        return np.linalg.inv(G)
    diagonal = np.diagonal(G, axis1=-2, axis2=-1)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scale = scale[..., :, None] * scale[..., None, :]
    values = np.linalg.eigvalsh(G * scale)
    if not (values[..., 0] > SINGULAR * values[..., -1]).all():
        raise ModelError(f"robot {robot.name!r}: J has not full row rank here, so that it has no right inverse")
    return np.linalg.inv(G * scale) * scale
