"""Articulated bodies: M^-1 without forming M, the inertias and biases behind O(n) forward dynamics, operational space.

The algorithms are in `kernels.articulated_bodies` and `kernels.mass_matrix_inverse`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.kernels import articulated_bodies as bodies
from geomctrl.kernels import mass_matrix_inverse as inverses
from geomctrl.kernels import operational_space
from geomctrl.mechanism.mechanism import Mechanism, require_free_joints
from geomctrl.mechanism.states import as_batch
from geomctrl.tracing.arrays import has_symbols

from .batches import REFUSED, not_positive, over_states, plain
from .dynamics import mass_matrix_rate
from .kinematics import Representation, jacobian, jacobian_rate, representation_number, where_is


def mass_matrix_inverse(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """M(q)^-1 (..., nv, nv), exactly symmetric, without forming M, O(n^2), by articulated bodies
    (`kernels.mass_matrix_inverse`).

    Raises ModelError where the mass matrix is not positive definite.
    """
    inverse = robot._code.mass_matrix_inverse(q)
    return over_states(robot, inverses.mass_matrix_inverse, q=q) if inverse is None else inverse


def mass_matrix_solve(robot: Mechanism, q: ArrayLike, b: ArrayLike) -> np.ndarray:
    """M(q)^-1 b without forming M, O(n) a column: the accelerations that forces b (..., nv) cause from rest.

    b may hold columns, (..., nv, m), with the leading axes of q. Raises ModelError where M is not positive definite.
    """
    try:
        tree = not robot.couplings and not any(map(has_symbols, (robot._model, q, b)))
        if tree and plain(q, b) and np.ndim(b) == 1:
            x = np.empty(robot.nv)
            inverses.mass_matrix_solve_one(robot._model, q, b, x)
            return x
    except REFUSED:
        pass
    lead, (q,) = as_batch(robot, q=q)
    b = checked("b", b, ())
    columns = b.ndim == len(lead) + 2
    b = checked("b", b, (robot.nv, b.shape[-1]) if columns else (robot.nv,))
    if b.shape[: b.ndim - 1 - columns] != lead:
        raise ArgumentError(f"b: expected the leading axes of q, {lead}, then nv = {robot.nv}, got shape {b.shape}")
    flat = b.reshape(len(q), robot.nv, b.shape[-1] if columns else 1)
    if robot.couplings or any(map(has_symbols, (robot._model, q, b))):
        return (mass_matrix_inverse(robot, q) @ flat).reshape(b.shape)
    out, singular = inverses.mass_matrix_solve_many(robot._model, q, flat)
    if singular >= 0:
        raise not_positive(robot, q[singular])
    return out.reshape(b.shape)


class Articulated(NamedTuple):
    """Articulated inertias (..., nbodies, 6, 6) and biases (..., nbodies, 6), each in its body's frame."""

    inertia: np.ndarray
    bias: np.ndarray


def articulated_bodies(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: ArrayLike | None = None
) -> Articulated:
    """IA_i and pA_i with F_i = IA_i A_i + pA_i: what the subtree of body i looks like from joint i.

    F_i is the wrench that joint i passes on, A_i the body's acceleration with gravity as the base's, -g, both in the
    body's frame; the joints of the subtree are driven by tau (..., nv), the bodies by f_ext (..., nbodies, 6). IA_i and
    pA_i leave out joint i itself: with it locked or cut they stay what they are (Featherstone 1983).
    Raises ModelError where the mass matrix is not positive definite, and for joints that follow others.
    """
    require_free_joints("articulated_bodies", robot)
    out = over_states(robot, bodies.articulated_handles, q=q, v=v, tau=tau, f_ext=f_ext)
    out = out.reshape(*out.shape[:-1], robot.nbodies, 7, 6)
    IA = out[..., :6, :]
    return Articulated(0.5 * (IA + IA.swapaxes(-1, -2)), out[..., 6, :].copy())


# --- operational space -------------------------------------------------------------------------------------------


def operational_mobility(
    robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """Jac M^-1 Jac^T (..., 6, 6): the frame's acceleration per wrench on it, O(n); singular below six freedoms.

    Khatib 1987; `representation` as for `jacobian`. Raises ModelError where M is not positive definite.
    """
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    mobility = robot._code.at(operational_space.operational_mobility, body, form)(q, placement)
    if mobility is not None:
        return mobility
    return over_states(robot, operational_space.operational_mobility, body, placement, form, q=q)


def operational_mobility_rate(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """The derivative (..., 6, 6) of `operational_mobility` along the motion v; v = e_k: by coordinate k."""
    Jac, rate = jacobian(robot, q, frame, representation), jacobian_rate(robot, q, v, frame, representation)
    X = mass_matrix_solve(robot, q, Jac.swapaxes(-1, -2))
    half = rate @ X
    return half + half.swapaxes(-1, -2) - X.swapaxes(-1, -2) @ mass_matrix_rate(robot, q, v) @ X


def operational_inertia(
    robot: Mechanism, q: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """Lambda = (Jac M^-1 Jac^T)^-1 (..., 6, 6): the wrench on the frame per acceleration, O(n) (Khatib 1987).

    Raises ModelError where the frame can not move in all six directions, and where M is not positive definite.
    """
    body, placement = where_is(robot, frame)
    form = representation_number(representation)
    inertia = robot._code.at(operational_space.operational_inertia, body, form)(q, placement)
    if inertia is not None:
        return inertia

    def failure(robot: Mechanism, q: np.ndarray) -> ModelError:
        operational_mobility(robot, q, frame)  # which raises where it is M that fails
        return ModelError(
            f"robot {robot.name!r}: frame {frame!r} can not move in all six directions here, so it has no operational"
            " inertia: use operational_mobility"
        )

    return over_states(robot, operational_space.operational_inertia, body, placement, form, failure=failure, q=q)


def operational_inertia_rate(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """The derivative (..., 6, 6) of `operational_inertia` along the motion v: -Lambda (Lambda^-1)' Lambda."""
    L = operational_inertia(robot, q, frame, representation)
    return -L @ operational_mobility_rate(robot, q, v, frame, representation) @ L
