"""Closed forms of the equations of motion as Park, Bobrow, Ploen 1995 and Mueller 2018 print them (corrected).

The module has the product of exponentials, M = A^T L^T D L A, Christoffel symbols summed over bodies, Lagrange's
equations, the Euler-Jourdain projection and the momentum form. Each form computes the same dynamics and serves as an
independent test of the others. The blocks S, G, Gamma, J are those of `factored`. The code follows the print and is
slow. All functions take leading batch axes; functions of q alone take complex q, for derivatives by the complex step.

Trees and joints with several degrees of freedom are supported unless a function says otherwise. PBP and MU are the
papers whose equation numbers are cited. Misprints corrected here: Q of PBP (50) holds Ad of the cumulative products
M_1 ... M_i; the sum and the 1/2 of PBP (55)-(57) cover all three terms; PBP (58), (59) have the sign of -g; MU (36)
lacks the dots of its rates; the third term of MU (86) is ordered, the joint nearer to the root first; MU (87) holds at
the centres of mass and without 1/2.

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
>>> symbols = closed_forms.product_christoffel_symbols(robot, q)
>>> others = closed_forms.mueller_christoffel_symbols(robot, q), closed_forms.binet_christoffel_symbols(robot, q)
>>> all(np.allclose(symbols, other) for other in others)
True
>>> bool(np.allclose(closed_forms.mueller_coriolis_matrix(robot, q, v) @ v, robot.coriolis_matrix(q, v) @ v))
True
>>> bool(np.allclose(closed_forms.spatial_momenta(robot, q, v).sum(axis=0)[3:], robot.momentum(q, v)[3:]))
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.lie import se3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms.kinematics import jacobian, jacobian_rate, pose

from .blocks import ad, mul, transpose
from .exponentials import (
    ProductOfExponentials,
    adjoint_derivatives,
    adjoint_second_derivatives,
    product_gravity_force,
    product_mass_matrix,
    product_of_exponentials,
    require_one_dof,
)
from .factored import at_rest, factors, mass_matrix, states

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


# --- Christoffel symbols, body by body ---------------------------------------------------------------------------


def brackets(Jac: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return sum_l <[J_la, J_lb], J_lc>_l at [a, b, c], from body Jacobians (..., n, 6, nv) and inertias (n, 6, 6)."""
    columns = np.moveaxis(Jac, -1, -2)  # (..., n, nv, 6)
    pairs = np.einsum("...laxy,...lby->...labx", ad(columns), columns)
    return np.einsum("...labx,lxy,...lcy->...abc", pairs, M, columns)


def product_christoffel_symbols(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return Gamma_ijk at [i, j, k] by the three cases of PBP (55)-(57), in O(n^4).

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
    require_one_dof(robot)
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
    """Return Gamma_ijk by MU (86), in the order of PBP: the lowered index, which Mueller writes first, is last.

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
    require_one_dof(robot)
    f, n = at_rest(robot, q), robot.nbodies
    B = brackets((f.G @ f.S).reshape(*f.G.shape[:-2], n, 6, n), _diagonal(f.J))
    j, k, i = np.ogrid[:n, :n, :n]
    s, r = np.minimum(j, k), np.maximum(j, k)
    return 0.5 * (B[..., i, j, k] + B[..., i, k, j] + B[..., s, r, i])


def binet_christoffel_symbols(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return Gamma_ijk by MU (87) with Binet's inertia theta = tr(Theta_c)/2 1 - Theta_c, in the order of PBP.

    Gamma_ijk = sum_l w_s . theta (w_r x w_k) + m v_k . (w_s x v_r). Here s is the one of i and j nearer to the root, r
    the other, and (w, v) are columns of the bodies' Jacobians at their centres of mass. Raises ArgumentError for joints
    with several degrees of freedom.

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
    require_one_dof(robot)
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
    """Return C = -J^T (M A a + b^T M) J of MU (84), for which Mdot - 2C is not skew.

    It equals Ploen's (25), `factored.coriolis_matrix(..., "plain")`, for joints with one degree of freedom. For joints
    with several, only the product C v is right, because Jdot = -A a J (8) holds only when multiplied by v.

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
    """Return tau = d/dt dT/dv - dT/dq + dU/dq, term by term: MU (80)-(83), PBP (59).

    dT/dq_k = V^T M A b X_k. For joints with several degrees of freedom, b includes the additional terms of Hamel's
    equations.

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
    v, a = states(robot, q=q, v=v, a=a)[1:]
    f = factors(robot, q, v)
    J, b = f.G @ f.S, -transpose(f.ad_V_dual)
    half = transpose(J) @ f.J @ f.G @ f.ad_Sv @ f.Gamma @ J
    momentum_rate = mul(mass_matrix(robot, q), a) + mul(half + transpose(half), v)
    kinetic = mul(transpose(f.J @ f.G @ b @ f.S), f.V)
    return momentum_rate - kinetic + product_gravity_force(robot, q)


def euler_jourdain(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: ArrayLike | None = None
) -> np.ndarray:
    """Return tau = J^T (M Vdot - ad_V^T M V - W) + armature a, the projected equations of the bodies: MU (77), (78).

    Vdot is that of (10). W is the sum of gravity and f_ext.

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
    f_ext : array_like, shape (..., nbodies, 6), optional
        Wrenches on the bodies, in body frames [N m, N]. Default: none.

    Returns
    -------
    ndarray, shape (..., nv)
        Joint torques and forces [N m, N].
    """
    external = {} if f_ext is None else {"f_ext": f_ext}
    v, a, *F = states(robot, q=q, v=v, a=a, **external)[1:]
    f = factors(robot, q, v)
    J = f.G @ f.S
    acceleration = mul(J, a) + mul(f.G @ f.ad_Sv @ f.Gamma, f.V)  # (10)
    weight = mul(f.J @ f.G @ f.P0, np.concatenate((np.zeros(3), robot.gravity)))
    W = weight + F[0].reshape(*weight.shape) if F else weight
    return mul(transpose(J), mul(f.J, acceleration) + mul(f.ad_V_dual @ f.J, f.V) - W) + robot.armature * a


def spatial_momenta(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the bodies' momenta Pi^s_i = M^s_i J^s_i v about the world's origin, in inertial axes: MU (35), (79).

    Their sum is `Robot.momentum`.

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
    ndarray, shape (..., nbodies, 6)
        Angular [N m s], then linear momentum [N s] of each body.
    """
    q, v = states(robot, q=q, v=v)
    rows = [
        mul(M @ J, v) for M, J in ((_spatial_inertia(robot, q, i), _spatial(robot, q, i)) for i in range(robot.nbodies))
    ]
    return np.stack(rows, -2)


def momentum_form(robot: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
    """Return tau = sum_i (J^s_i)^T (Pidot^s_i - W^s_i) + armature a, with gravity for W: MU (36), (37), (79).

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
        Joint torques and forces [N m, N].
    """
    q, v, a = states(robot, q=q, v=v, a=a)
    tau = robot.armature * a
    for i in range(robot.nbodies):
        M, J = _spatial_inertia(robot, q, i), _spatial(robot, q, i)
        V, V_rate = mul(J, v), mul(J, a) + mul(jacobian_rate(robot, q, v, robot.body_names[i], "spatial"), v)
        M_rate = -transpose(ad(V)) @ M - M @ ad(V)  # (37)
        weight = mul(M, np.concatenate((np.zeros(3), robot.gravity)))
        tau += mul(transpose(J), mul(M, V_rate) + mul(M_rate, V) - weight)  # (79)
    return tau


# --- parts -------------------------------------------------------------------------------------------------------


def _spatial(robot: Mechanism, q, i: int) -> np.ndarray:
    return jacobian(robot, q, robot.body_names[i], "spatial")


def _spatial_inertia(robot: Mechanism, q, i: int) -> np.ndarray:
    back = se3.Ad_of(se3.inverse_of(pose(robot, q, robot.body_names[i])))
    return transpose(back) @ inertia.spatial(robot.parameters[i]) @ back  # MU (34)


def _diagonal(A: np.ndarray) -> np.ndarray:
    """Return the 6x6 blocks (n, 6, 6) of a block-diagonal matrix."""
    n = len(A) // 6
    return A.reshape(n, 6, n, 6)[np.arange(n), :, np.arange(n)]
