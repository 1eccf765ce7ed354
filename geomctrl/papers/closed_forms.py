"""Closed forms of the equations of motion as Park, Bobrow, Ploen 1995 and Mueller 2018 print them (corrected).

Beside `factored`, Ploen's form, from which the blocks S, G, Gamma, J come: the product of exponentials'
M = A^T L^T D L A and what relates it to S^T G^T J G S, Christoffel symbols summed body by body, Lagrange's equations,
the Euler-Jourdain projection and the momentum form. All say the same; each is another oracle. Written to be read, not
to be fast: numpy, any leading batch axes, and functions of q alone take complex q, for derivatives by the complex step.

Trees and joints with several degrees of freedom are included unless a function says otherwise. PBP and MU number the
equations. Slips of the print, corrected here: Q of PBP (50) holds Ad of the cumulative products M_1 ... M_i; the sum
and the 1/2 of PBP (55)-(57) cover all three terms; PBP (58), (59) have the sign of -g; MU (36) lacks the dots of its
rates; the third term of MU (86) is ordered, the nearer to the root first; MU (87) holds at the centres of mass and
without 1/2.

Examples
--------
>>> import numpy as np
>>> import geomctrl as gc
>>> from geomctrl.papers import closed_forms
>>> robot, q, v, a = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0]), np.array([0.5, -1.0])
>>> tau = robot.inverse_dynamics(q, v, a)
>>> forms = closed_forms.euler_jourdain, closed_forms.momentum_form, closed_forms.lagrange
>>> all(np.allclose(form(robot, q, v, a), tau) for form in forms)
True
>>> x: closed_forms.ProductOfExponentials = closed_forms.product_of_exponentials(robot, q)
>>> bool(np.allclose(x.A.T @ x.L.T @ x.D @ x.L @ x.A, closed_forms.product_mass_matrix(robot, q)))
True
>>> bool(np.allclose(closed_forms.product_gravity_force(robot, q), robot.gravity_force(q)))
True
>>> symbols = closed_forms.product_christoffel_symbols(robot, q)
>>> others = closed_forms.mueller_christoffel_symbols(robot, q), closed_forms.binet_christoffel_symbols(robot, q)
>>> all(np.allclose(symbols, other) for other in others)
True
>>> bool(np.allclose(closed_forms.mueller_coriolis_matrix(robot, q, v) @ v, robot.coriolis_matrix(q, v) @ v))
True
>>> bool(np.allclose(closed_forms.spatial_momenta(robot, q, v).sum(axis=0)[3:], robot.momentum(q, v)[3:]))
True
>>> closed_forms.adjoint_derivatives(robot, q).shape, closed_forms.adjoint_second_derivatives(robot, q).shape
((12, 12, 2), (12, 12, 2, 2))
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.lie import se3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism, require_free_joints, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.terms.kinematics import jacobian, jacobian_rate, pose

from .blocks import mul, transpose
from .factored import Ad_inverse, ad, at_rest, factors, hat, joint_motion, mass_matrix, states

__all__ = [
    "ProductOfExponentials",
    "adjoint_derivatives",
    "adjoint_second_derivatives",
    "binet_christoffel_symbols",
    "euler_jourdain",
    "lagrange",
    "momentum_form",
    "mueller_christoffel_symbols",
    "mueller_coriolis_matrix",
    "product_christoffel_symbols",
    "product_gravity_force",
    "product_mass_matrix",
    "product_of_exponentials",
    "spatial_momenta",
]


class ProductOfExponentials(NamedTuple):
    """The block matrices of PBP section 4: T_i = e^{A_1 x_1} ... e^{A_i x_i} M_i, all in the world's frame at zero."""

    A: np.ndarray  # (6n, nv) diag(A_i), the joints' screws
    L: np.ndarray  # (..., 6n, 6n) block ij: Ad of e^{-A_i x_i} ... e^{-A_{j+1} x_{j+1}}
    D: np.ndarray  # (6n, 6n) diag(D_i), the bodies' inertias
    Q: np.ndarray  # (6n, 6n) diag(Ad_{M_i}), M_i body i's pose at zero: A = Q S, L = Q G Q^-1, D = Q^-T J Q^-1
    F: np.ndarray  # (..., n, 4, 4) e^{A_1 x_1} ... e^{A_i x_i}


def product_of_exponentials(robot: Mechanism, q: ArrayLike) -> ProductOfExponentials:
    """A, L, D, Q at q, from exponentials alone: PBP (41)-(45), (50).

    A joint with several degrees of freedom has its relative pose in the place of e^{A_i x_i}.

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
    """
    require_free_joints("closed forms", robot)
    (q,) = states(robot, q=q)
    n, lead, dtype = robot.nbodies, q.shape[:-1], np.result_type(q, float)
    A, D, Q = np.zeros((6 * n, robot.nv)), np.zeros((6 * n, 6 * n)), np.zeros((6 * n, 6 * n))
    L, F = np.zeros((*lead, 6 * n, 6 * n), dtype), np.zeros((*lead, n, 4, 4), dtype)
    home = np.empty((n, 4, 4))
    for i, (p, joint) in enumerate(zip(robot.parents, robot.joints)):
        b = slice(6 * i, 6 * i + 6)
        M = home[i] = robot.placements[i] if p < 0 else home[p] @ robot.placements[i]
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
    """M(q) (..., nv, nv) = A^T L^T D L A + diag(armature): PBP (46), and the motors' inertia.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv, nv)
    """
    f = product_of_exponentials(robot, q)
    return f.A.T @ transpose(f.L) @ f.D @ f.L @ f.A + np.diag(robot.armature)


def adjoint_derivatives(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """dL/dx_k (..., 6n, 6n, nv) at [..., k]: Proposition 1, PBP (53), of all the maps Ad_j^i that are blocks of L.

    d/dx_k Ad_j^i B = Ad_j^k [Ad_{k-1}^i B, A_k] for k from i to j, on trees for the joints of that path, 0 for others.
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
    """
    _only_one_dof(robot)
    f = product_of_exponentials(robot, q)
    one = np.eye(6 * robot.nbodies)
    return np.stack([_bracketed(robot, f, k, f.L, f.L - one) for k in _all(robot)], -1)


def adjoint_second_derivatives(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """d^2 L / dx_k dx_l (..., 6n, 6n, nv, nv) at [..., k, l]: Proposition 2, PBP (54).

    The bracket of the joint nearer the root is the inner one: the paper's two cases are exchanged. Raises ArgumentError
    for joints with several degrees of freedom.
    """
    _only_one_dof(robot)
    f, first = product_of_exponentials(robot, q), adjoint_derivatives(robot, q)
    one, n = np.eye(6 * robot.nbodies), robot.nbodies
    out = np.zeros((*first.shape, n), first.dtype)
    for k in range(n):
        for l in range(n):
            outer = _bracketed(robot, f, k, first[..., l], f.L - one)  # l beyond k
            out[..., k, l] = outer + _bracketed(robot, f, k, f.L, first[..., l])  # l at k or before it
    return out


def _bracketed(robot: Mechanism, f: ProductOfExponentials, k: int, after: np.ndarray, before: np.ndarray) -> np.ndarray:
    """after [before, A_k], the maps from body k on and those that end before joint k, which has moved them."""
    b = slice(6 * k, 6 * k + 6)
    return -after[..., :, b] @ ad(f.A[b, robot.v_slices[k]][:, 0]) @ before[..., b, :]


def product_gravity_force(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """g(q) (..., nv), the gradient of U = -sum m_i g . c_i: PBP (58), (59) with g the gravitational acceleration.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv)
    """
    f, n = product_of_exponentials(robot, q), robot.nbodies
    W = (f.L @ f.A).reshape(*f.L.shape[:-2], n, 6, robot.nv)
    first = inertia.pseudo(inertia.transform(_home_poses(robot), robot.parameters))[..., 3]  # m_i (c_i, 1) at zero
    rates = hat(np.moveaxis(W[..., :3, :], -1, -2)) @ first[:, None, :3, None]  # hat(W) c, one column after another
    rates = rates[..., 0] + np.moveaxis(W[..., 3:, :], -1, -2) * first[:, None, 3:]
    return -np.einsum("a,...iab,...ikb->...k", robot.gravity, f.F[..., :3, :3], rates)


# --- Christoffel symbols, body by body ---------------------------------------------------------------------------


def brackets(Jac: np.ndarray, M: np.ndarray) -> np.ndarray:
    """B_abc = sum_l <[J_la, J_lb], J_lc>_l (..., nv, nv, nv), from body Jacobians (..., n, 6, nv) and inertias."""
    columns = np.moveaxis(Jac, -1, -2)  # (..., n, nv, 6)
    pairs = np.einsum("...laxy,...lby->...labx", ad(columns), columns)
    return np.einsum("...labx,lxy,...lcy->...abc", pairs, M, columns)


def product_christoffel_symbols(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Gamma_ijk (..., nv, nv, nv) at [i, j, k] by the three cases of PBP (55)-(57), O(n^4).

    The brackets nest because Ad_l^i([Ad_{i-1}^{k+1} A_k, A_i]) = [Ad_l^{k+1} A_k, Ad_l^{i+1} A_i], the columns of L A.
    Raises ArgumentError for joints with several degrees of freedom: use `curvature.christoffel_symbols`.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv, nv, nv)
    """
    _only_one_dof(robot)
    f, n = product_of_exponentials(robot, q), robot.nbodies
    B = brackets((f.L @ f.A).reshape(*f.L.shape[:-2], n, 6, n), _diagonal(f.D))
    i, j, k = np.ogrid[:n, :n, :n]
    i, j = np.minimum(i, j), np.maximum(i, j)  # Gamma_ijk = Gamma_jik
    B_kij, B_kji, B_ijk = B[..., k, i, j], B[..., k, j, i], B[..., i, j, k]
    first = B_kij + B_kji + B_ijk  # (55): k <= i <= j
    second = B_kji + B_ijk - B[..., i, k, j]  # (56): i < k <= j
    third = B_ijk - B[..., i, k, j] - B[..., j, k, i]  # (57): i <= j < k
    return 0.5 * np.where(k <= i, first, np.where(k <= j, second, third))


def mueller_christoffel_symbols(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Gamma_ijk (..., nv, nv, nv) by MU (86), in PBP's order: the lowered index, which Mueller writes first, is last.

    Raises ArgumentError for joints with several degrees of freedom.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv, nv, nv)
    """
    _only_one_dof(robot)
    f, n = at_rest(robot, q), robot.nbodies
    B = brackets((f.G @ f.S).reshape(*f.G.shape[:-2], n, 6, n), _diagonal(f.J))
    j, k, i = np.ogrid[:n, :n, :n]
    s, r = np.minimum(j, k), np.maximum(j, k)
    return 0.5 * (B[..., i, j, k] + B[..., i, k, j] + B[..., s, r, i])


def binet_christoffel_symbols(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Gamma_ijk (..., nv, nv, nv) by MU (87) with Binet's inertia theta = tr(Theta_c)/2 1 - Theta_c, PBP's order.

    Gamma_ijk = sum_l w_s . theta (w_r x w_k) + m v_k . (w_s x v_r), s the nearer to the root of i and j, columns of the
    bodies' Jacobians at their centres of mass. Raises ArgumentError for joints with several degrees of freedom.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv, nv, nv)
    """
    _only_one_dof(robot)
    f, n = at_rest(robot, q), robot.nbodies
    columns = np.moveaxis((f.G @ f.S).reshape(*f.G.shape[:-2], n, 6, n), -1, -2)
    m, c, I = robot.parameters[:, 0], np.nan_to_num(inertia.com(robot.parameters)), inertia.com_tensor(robot.parameters)
    theta = 0.5 * np.trace(I, axis1=-2, axis2=-1)[:, None, None] * np.eye(3) - I
    w = columns[..., :3]
    v = columns[..., 3:] + np.cross(w, c[:, None])
    turning = np.einsum(
        "...lsx,lxy,...lrky->...srk", w, theta, np.cross(w[..., :, None, :], w[..., None, :, :], axis=-1)
    )
    moving = np.einsum("l,...lkx,...lsrx->...srk", m, v, np.cross(w[..., :, None, :], v[..., None, :, :], axis=-1))
    Gamma = turning + moving  # at [s, r, k]
    i, j, k = np.ogrid[:n, :n, :n]
    return Gamma[..., np.minimum(i, j), np.maximum(i, j), k]


# --- C, Lagrange, Euler-Jourdain, momenta ------------------------------------------------------------------------


def mueller_coriolis_matrix(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """C = -J^T (M A a + b^T M) J (..., nv, nv) of MU (84), for which Mdot - 2C is not skew.

    Equal to Ploen's (25), `factored.coriolis_matrix(..., "plain")`, for joints with one degree of freedom; for others
    (84) has C v right and Mueller's Jdot = -A a J (8) only times v.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    ndarray, shape (..., nv, nv)
    """
    f = factors(robot, q, v)
    J, a, b = f.G @ f.S, -f.ad_Sv, -transpose(f.ad_V_dual)  # (112), (9), (82)
    return -transpose(J) @ (f.J @ f.G @ a + transpose(b) @ f.J) @ J


def lagrange(robot: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
    """d/dt dT/dv - dT/dq + dU/dq (..., nv), term by term: MU (80)-(83), PBP (59).

    dT/dq_k = V^T M A b X_k; for joints with several degrees of freedom b's own part is what Hamel's equations add.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    a : array_like, shape (..., nv)
        Acceleration [rad/s^2, m/s^2].

    Returns
    -------
    ndarray, shape (..., nv)
    """
    v, a = _checked(robot, q=q, v=v, a=a)[1:]
    f = factors(robot, q, v)
    J, b = f.G @ f.S, -transpose(f.ad_V_dual)
    half = transpose(J) @ f.J @ f.G @ f.ad_Sv @ f.Gamma @ J
    momentum_rate = mul(mass_matrix(robot, q), a) + mul(half + transpose(half), v)
    kinetic = mul(transpose(f.J @ f.G @ b @ f.S), f.V)
    return momentum_rate - kinetic + product_gravity_force(robot, q)


def euler_jourdain(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: ArrayLike | None = None
) -> np.ndarray:
    """J^T (M Vdot - ad_V^T M V - W) (..., nv), the bodies' equations projected: MU (77), (78), with (10) for Vdot; and
    what the motors' inertia takes.

    W: gravity, and f_ext (..., nbodies, 6) in body frames.
    """
    external = {} if f_ext is None else {"f_ext": f_ext}
    v, a, *F = _checked(robot, q=q, v=v, a=a, **external)[1:]
    f = factors(robot, q, v)
    J = f.G @ f.S
    acceleration = mul(J, a) + mul(f.G @ f.ad_Sv @ f.Gamma, f.V)  # (10)
    weight = mul(f.J @ f.G @ f.P0, np.concatenate((np.zeros(3), robot.gravity)))
    W = weight + F[0].reshape(*weight.shape) if F else weight
    return mul(transpose(J), mul(f.J, acceleration) + mul(f.ad_V_dual @ f.J, f.V) - W) + robot.armature * a


def spatial_momenta(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Pi^s_i = M^s_i J^s_i v (..., nbodies, 6) about the world's origin: MU (35), (79); summed, `Robot.momentum`."""
    q, v = _checked(robot, q=q, v=v)
    rows = [mul(M @ J, v) for M, J in ((_spatial_inertia(robot, q, i), _spatial(robot, q, i)) for i in _all(robot))]
    return np.stack(rows, -2)


def momentum_form(robot: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
    """sum_i (J^s_i)^T (Pidot^s_i - W^s_i) + armature a (..., nv) with gravity for W: MU (36), (37), (79)."""
    q, v, a = _checked(robot, q=q, v=v, a=a)
    tau = robot.armature * a
    for i in _all(robot):
        M, J = _spatial_inertia(robot, q, i), _spatial(robot, q, i)
        V, V_rate = mul(J, v), mul(J, a) + mul(jacobian_rate(robot, q, v, robot.body_names[i], "spatial"), v)
        M_rate = -transpose(ad(V)) @ M - M @ ad(V)  # (37)
        weight = mul(M, np.concatenate((np.zeros(3), robot.gravity)))
        tau += mul(transpose(J), mul(M, V_rate) + mul(M_rate, V) - weight)  # (79)
    return tau


# --- parts -------------------------------------------------------------------------------------------------------


def _checked(robot: Mechanism, **arguments: ArrayLike) -> list[np.ndarray]:
    """The arguments as arrays with their leading axes, after `as_batch` has found nothing wrong with them."""
    require_free_joints("closed forms", robot)
    lead, arrays = as_batch(robot, **arguments)
    return [x.reshape(*lead, *x.shape[1:]) for x in arrays]


def _spatial(robot: Mechanism, q, i: int) -> np.ndarray:
    return jacobian(robot, q, robot.body_names[i], "spatial")


def _spatial_inertia(robot: Mechanism, q, i: int) -> np.ndarray:
    back = se3.Ad_of(se3.inverse_of(pose(robot, q, robot.body_names[i])))
    return transpose(back) @ inertia.spatial(robot.parameters[i]) @ back  # MU (34)


def _all(robot: Mechanism) -> range:
    return range(robot.nbodies)


def _home_poses(robot: Mechanism) -> np.ndarray:
    home = np.empty((robot.nbodies, 4, 4))
    for i, p in enumerate(robot.parents):
        home[i] = robot.placements[i] if p < 0 else home[p] @ robot.placements[i]
    return home


def _diagonal(A: np.ndarray) -> np.ndarray:
    """The 6x6 blocks (n, 6, 6) of a block-diagonal matrix."""
    n = len(A) // 6
    return A.reshape(n, 6, n, 6)[np.arange(n), :, np.arange(n)]


def _only_one_dof(robot: Mechanism) -> None:
    require_robot("robot", robot)
    for joint in robot.joints:
        if joint.dof > 1:
            raise ArgumentError(
                f"robot {robot.name!r}: joint {joint.name!r} has {joint.dof} degrees of freedom; this formula is for"
                " one (curvature.christoffel_symbols generalises it)"
            )
