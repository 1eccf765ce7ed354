"""The product of exponentials of Park, Bobrow, Ploen 1995 section 4: its block matrices and their derivatives.

M = A^T L^T D L A, with all screws and inertias in the world's frame at zero. The functions take complex q, so that
derivatives can be computed by the complex step. `closed_forms` exports them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.lie import se3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism, require_free_joints, require_robot

from .blocks import Ad_inverse, ad, hat, transpose
from .factored import joint_motion, states


class ProductOfExponentials(NamedTuple):
    """The block matrices of PBP section 4, in the world's frame at zero.

    The pose of body i is T_i = e^{A_1 x_1} ... e^{A_i x_i} M_i, M_i its pose at zero. With the matrices of `factored`,
    A = Q S, L = Q G Q^-1 and D = Q^-T J Q^-1.

    Attributes
    ----------
    A : ndarray, shape (6n, nv)
        diag(A_i), the joints' screws.
    L : ndarray, shape (..., 6n, 6n)
        Block (i, j) is Ad of e^{-A_i x_i} ... e^{-A_{j+1} x_{j+1}}.
    D : ndarray, shape (6n, 6n)
        diag(D_i), the bodies' inertias [kg m^2, kg m, kg].
    Q : ndarray, shape (6n, 6n)
        diag(Ad_{M_i}). PBP (50) corrected: M_i is the cumulative product of the placements.
    F : ndarray, shape (..., n, 4, 4)
        e^{A_1 x_1} ... e^{A_i x_i} for each body i.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import closed_forms, factored
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> x: closed_forms.ProductOfExponentials = closed_forms.product_of_exponentials(robot, q)
    >>> f = factored.factors(robot, q, np.zeros(2))
    >>> bool(np.allclose(x.A, x.Q @ f.S)), bool(np.allclose(x.L, x.Q @ f.G @ np.linalg.inv(x.Q)))
    (True, True)
    """

    A: np.ndarray
    L: np.ndarray
    D: np.ndarray
    Q: np.ndarray
    F: np.ndarray


def product_of_exponentials(robot: Mechanism, q: ArrayLike) -> ProductOfExponentials:
    """Return A, L, D, Q and F at q: PBP (41)-(45), (50).

    For a joint with several degrees of freedom the relative pose replaces e^{A_i x_i}.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ProductOfExponentials
        Named tuple of the block matrices.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import closed_forms
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> x: closed_forms.ProductOfExponentials = closed_forms.product_of_exponentials(robot, q)
    >>> bool(np.allclose(x.A.T @ x.L.T @ x.D @ x.L @ x.A, robot.mass_matrix(q)))  # PBP (46); no motor inertia here
    True
    """
    require_free_joints("closed forms", robot)
    (q,) = states(robot, q=q)
    n, lead, dtype = robot.nbodies, q.shape[:-1], np.result_type(q, float)
    A, D, Q = np.zeros((6 * n, robot.nv)), np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6 * n))
    L, F = np.zeros((*lead, 6 * n, 6 * n), dtype), np.zeros((*lead, n, 4, 4), dtype)
    for i, (p, joint, M) in enumerate(zip(robot.parents, robot.joints, _home_poses(robot))):
        b = slice(6 * i, 6 * i + 6)
        A[b, robot.v_slices[i]] = se3.Ad_of(M) @ joint.S
        D[b, b] = inertia.spatial(inertia.transform(M, robot.parameters[i]))  # (44)
        Q[b, b] = se3.Ad_of(M)
        exp = M @ joint_motion(joint.S, q[..., robot.q_slices[i]]) @ se3.inverse_of(M)  # e^{A_i x_i}
        F[..., i, :, :] = exp if p < 0 else F[..., p, :, :] @ exp
        if p >= 0:
            L[..., b, :] = Ad_inverse(exp) @ L[..., 6 * p : 6 * p + 6, :]  # (42)
        L[..., b, b] += np.eye(6)
    return ProductOfExponentials(A, L, D, Q, F)


def product_mass_matrix(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the mass matrix M = A^T L^T D L A + diag(armature): PBP (46), with the inertia of the motors added.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv, nv)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import closed_forms
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> bool(np.allclose(closed_forms.product_mass_matrix(robot, q), robot.mass_matrix(q)))
    True
    """
    f = product_of_exponentials(robot, q)
    return f.A.T @ transpose(f.L) @ f.D @ f.L @ f.A + np.diag(robot.armature)


def adjoint_derivatives(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return dL/dx_k at [..., k], the derivatives of all maps Ad_j^i that are blocks of L: Proposition 1, PBP (53).

    d/dx_k Ad_j^i B = Ad_j^k [Ad_{k-1}^i B, A_k] for the joints k on the path from body i to body j, 0 for others.
    Raises ArgumentError for joints with several degrees of freedom.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., 6n, 6n, nv)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import closed_forms
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> h, v, L = 1e-6, np.array([1.0, 2.0]), lambda q: closed_forms.product_of_exponentials(robot, q).L
    >>> bool(np.allclose(closed_forms.adjoint_derivatives(robot, q) @ v, (L(q + h * v) - L(q - h * v)) / (2.0 * h)))
    True
    """
    require_one_dof(robot)
    f = product_of_exponentials(robot, q)
    one = np.eye(6 * robot.nbodies)
    return np.stack([_bracketed(robot, f, k, f.L, f.L - one) for k in range(robot.nbodies)], -1)


def adjoint_second_derivatives(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return d^2 L / dx_k dx_l at [..., k, l]: Proposition 2, PBP (54).

    The bracket of the joint nearer the root is the inner one; PBP (54) prints its two cases in exchanged order. Raises
    ArgumentError for joints with several degrees of freedom.

    Parameters
    ----------
    robot : Robot
        The robot. Joints have one degree of freedom each.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., 6n, 6n, nv, nv)
        Second derivatives of L, with n the number of bodies.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import closed_forms
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> second = closed_forms.adjoint_second_derivatives(robot, q)
    >>> bool(np.allclose(second, second.swapaxes(-1, -2)))
    True
    """
    require_one_dof(robot)
    f, first = product_of_exponentials(robot, q), adjoint_derivatives(robot, q)
    one, n = np.eye(6 * robot.nbodies), robot.nbodies
    out = np.zeros((*first.shape, n), first.dtype)
    for k in range(n):
        for l in range(n):
            outer = _bracketed(robot, f, k, first[..., l], f.L - one)  # l beyond k
            out[..., k, l] = outer + _bracketed(robot, f, k, f.L, first[..., l])  # l at k or before it
    return out


def _bracketed(robot: Mechanism, f: ProductOfExponentials, k: int, after: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return after [before, A_k]: `before` maps to the parent of body k, `after` from body k onwards."""
    b = slice(6 * k, 6 * k + 6)
    return -after[..., :, b] @ ad(f.A[b, robot.v_slices[k]][:, 0]) @ before[..., b, :]


def product_gravity_force(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the gradient of U = -sum m_i g . c_i: PBP (58), (59), where g is the gravitational acceleration.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import closed_forms
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> bool(np.allclose(closed_forms.product_gravity_force(robot, q), robot.gravity_force(q)))
    True
    """
    f, n = product_of_exponentials(robot, q), robot.nbodies
    W = (f.L @ f.A).reshape(*f.L.shape[:-2], n, 6, robot.nv)
    first = inertia.pseudo(inertia.transform(_home_poses(robot), robot.parameters))[..., 3]  # m_i (c_i, 1) at zero
    rates = hat(np.moveaxis(W[..., :3, :], -1, -2)) @ first[:, None, :3, None]  # hat(W) c, one column after another
    rates = rates[..., 0] + np.moveaxis(W[..., 3:, :], -1, -2) * first[:, None, 3:]
    return -np.einsum("a,...iab,...ikb->...k", robot.gravity, f.F[..., :3, :3], rates)


def _home_poses(robot: Mechanism) -> np.ndarray:
    home = np.empty((robot.nbodies, 4, 4))
    for i, p in enumerate(robot.parents):
        home[i] = robot.placements[i] if p < 0 else home[p] @ robot.placements[i]
    return home


def require_one_dof(robot: Mechanism) -> None:
    require_robot("robot", robot)
    for joint in robot.joints:
        if joint.dof > 1:
            raise ArgumentError(
                f"robot {robot.name!r}: joint {joint.name!r} has {joint.dof} degrees of freedom; this formula is for"
                " one (curvature.christoffel_symbols generalises it)"
            )
