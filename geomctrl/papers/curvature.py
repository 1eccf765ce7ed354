"""Geometry of the kinetic-energy metric: Christoffel symbols, covariant derivative, curvature.

The map q -> (T_1, ..., T_n) embeds the configuration space in a flat space. The inner product <A, B> = tr(A P B^T) of
two rates of a pose, with the body's 4x4 pseudo-inertia P, has the mass matrix as its pullback (Park, Bobrow, Ploen 1995
section 4.4 uses an inner product on SE(3) instead). Let hat(S_i) be the screws in inertial axes and P_m the composite
pseudo-inertia of the subtree of coordinate m. Then

    M_ij       = tr(hat(S_i) P_m hat(S_j)^T)
    Gamma_ijk  = tr(hat(S_i) hat(S_j) P_m hat(S_k)^T),      i no farther from the root than j
    R_ijkl     = <II_ik, II_jl> - <II_il, II_jk>            (the equation of Gauss)

where m is the outermost coordinate of the entry. Entries are zero unless all coordinates lie on one path to the root.
II_ij, the second fundamental form, is the part of hat(S_i) hat(S_j) normal to the embedded space. The second line is
Mueller 2018 (87) with Binet's inertia, as in `closed_forms.binet_christoffel_symbols`. No derivative of M or Gamma is
computed.

Components refer to joint velocities. For a joint with several degrees of freedom these are a frame of vector fields E_i
(left-invariant on the joint's subgroup) instead of coordinate fields. Then Gamma_ijk = <nabla_{E_i} E_j, E_k> follows
from Koszul's formula, with Gamma_ijk - Gamma_jik = <[E_i, E_j], E_k>, and curvature keeps all its symmetries.

All functions take leading batch axes and raise ArgumentError as the other terms do.

Examples
--------
>>> import numpy as np
>>> import geomctrl as gc
>>> from geomctrl.papers import curvature
>>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
>>> a = robot.forward_dynamics(q, v, robot.gravity_force(q))  # free motion is a geodesic
>>> bool(np.allclose(curvature.covariant_derivative(robot, q, v, v, a), 0.0))
True
>>> ricci, scalar = curvature.ricci_curvature(robot, q), curvature.scalar_curvature(robot, q)
>>> bool(np.allclose(scalar, np.trace(np.linalg.solve(robot.mass_matrix(q), ricci))))
True
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count
from geomctrl.errors import ArgumentError
from geomctrl.kernels import curvature
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.terms.batches import over_states
from geomctrl.terms.dynamics import coriolis_matrix, mass_matrix, mass_matrix_inverse, mass_matrix_solve
from geomctrl.tracing.numbers import holds

__all__ = [
    "christoffel_symbols",
    "covariant_derivative",
    "inner_product",
    "ricci_curvature",
    "riemann_curvature",
    "scalar_curvature",
    "sectional_curvature",
]


def inner_product(robot: Mechanism, q: ArrayLike, x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Return <x, y> = x . M(q) y, the kinetic-energy metric; for x = y it is twice the kinetic energy.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    x, y : array_like, shape (..., nv)
        Velocities.

    Returns
    -------
    ndarray, shape (...,)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import curvature
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> bool(np.isclose(curvature.inner_product(robot, q, v, v), 2.0 * robot.kinetic_energy(q, v)))
    True
    """
    require_robot("robot", robot)
    M = mass_matrix(robot, q)
    x, y = as_batch(robot, q=q, x=x, y=y)[1][1:]
    return ((x[:, None] @ M.reshape(-1, robot.nv, robot.nv))[:, 0] * y).sum(-1).reshape(M.shape[:-2])[()]


def christoffel_symbols(robot: Mechanism, q: ArrayLike, kind: Literal[1, 2] = 1) -> np.ndarray:
    """Return the Christoffel symbols of the kinetic-energy metric at [i, j, k], O(n depth^2) for the first kind.

    kind=1: Gamma_ijk = (dM_kj/dq_i + dM_ki/dq_j - dM_ij/dq_k) / 2 (Park, Bobrow, Ploen 1995 (52), Ploen 1999 (3)), so
    that C_kj = sum_i Gamma_ijk v_i is `coriolis_matrix(q, v, "christoffel")`; Mueller 2018 (85) writes k first.
    kind=2: the last index raised, Gamma_ij^k, so that sum_ij Gamma_ij^k v_i v_j is M^-1 C v. For joints with several
    degrees of freedom, the result is the lowered Levi-Civita connection of the frame of velocities (see the module).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    kind : {1, 2}
        First or second kind. Default: 1.

    Returns
    -------
    ndarray, shape (..., nv, nv, nv)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import curvature
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> C = np.einsum("ijk,i->kj", curvature.christoffel_symbols(robot, q), v)
    >>> bool(np.allclose(C, robot.coriolis_matrix(q, v, "christoffel")))
    True
    """
    require_robot("robot", robot)
    count("kind", kind, 1, 2, expected="1 or 2")
    Gamma = over_states(robot, curvature.christoffel_symbols, q=q)
    return Gamma if kind == 1 else Gamma @ mass_matrix_inverse(robot, q)[..., None, :, :]


def covariant_derivative(robot: Mechanism, q: ArrayLike, v: ArrayLike, w: ArrayLike, w_rate: ArrayLike) -> np.ndarray:
    """Return Dw/dt = w_rate + Gamma(v, w) of a vector field w along a curve with velocity v, O(n depth).

    M Dv/dt is M a + C v. A curve with Dv/dt = 0 is a geodesic: the robot's motion without torques and gravity.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    w, w_rate : array_like, shape (..., nv)
        Components of the field in the velocity coordinates, and their time derivatives.

    Returns
    -------
    ndarray, shape (..., nv)
    """
    require_robot("robot", robot)
    lead, (x, y, z, z_rate) = as_batch(robot, q=q, v=v, w=w, w_rate=w_rate)
    C = coriolis_matrix(robot, x, y, "christoffel")
    return (z_rate + mass_matrix_solve(robot, x, (C @ z[..., None])[..., 0])).reshape(*lead, robot.nv)


def riemann_curvature(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the Riemann curvature R_ijkl of the kinetic-energy metric, all indices lowered, O(n^2 depth^2).

    Signs as in Park, Bobrow, Ploen 1995 (66): R_ijkl = <R(E_k, E_l) E_j, E_i>, so R_1212 is the curvature times
    det M of a robot with two joints. Zero where coordinates exist in which M is constant (Spong 1992), as for a
    Cartesian robot.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv, nv, nv, nv)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import curvature
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> R = curvature.riemann_curvature(robot, q)
    >>> bool(np.isclose(R[0, 1, 0, 1], -R[1, 0, 0, 1]))
    True
    """
    require_robot("robot", robot)
    n = robot.nv
    lead, (x,) = as_batch(robot, q=q)
    Gamma = over_states(robot, curvature.christoffel_symbols, q=x).reshape(-1, n * n, n)
    tangential = Gamma @ mass_matrix_inverse(robot, x) @ Gamma.swapaxes(1, 2)
    products = over_states(robot, curvature.second_order_products, q=x)
    normal = products - tangential.reshape(-1, n, n, n, n)  # <II_ij, II_kl>
    R = np.einsum("bikjl->bijkl", normal) - np.einsum("biljk->bijkl", normal)
    return np.ascontiguousarray(R).reshape(*lead, n, n, n, n)


def sectional_curvature(robot: Mechanism, q: ArrayLike, x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Return the sectional curvature K [1 / (kg m^2) and so on] of the plane that the velocities x and y span.

    It is positive where torque-free motions from one configuration converge. Raises ArgumentError if x and y are
    parallel (the sine of their angle is below 1e-7).

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    x, y : array_like, shape (..., nv)
        Velocities.

    Returns
    -------
    ndarray, shape (...,)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import curvature
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> K = curvature.sectional_curvature(robot, q, [1.0, 0.0], [0.0, 1.0])
    >>> R = curvature.riemann_curvature(robot, q)
    >>> bool(np.isclose(K * np.linalg.det(robot.mass_matrix(q)), R[0, 1, 0, 1]))
    True
    """
    require_robot("robot", robot)
    lead, (q_, x_, y_) = as_batch(robot, q=q, x=x, y=y)
    R = riemann_curvature(robot, q_)
    xx, yy, xy = (inner_product(robot, q_, a, b) for a, b in ((x_, x_), (y_, y_), (x_, y_)))
    area = xx * yy - xy**2
    if not holds(area > 1e-14 * xx * yy):
        raise ArgumentError("x, y: expected velocities that span a plane, got parallel ones")
    return (np.einsum("bijkl,bi,bj,bk,bl->b", R, x_, y_, x_, y_) / area).reshape(lead)[()]


def ricci_curvature(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the Ricci curvature Ric_jl = sum_ik (M^-1)_ik R_ijkl, a symmetric matrix.

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
    require_robot("robot", robot)
    return np.einsum("...ik,...ijkl->...jl", mass_matrix_inverse(robot, q), riemann_curvature(robot, q))


def scalar_curvature(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the trace of the Ricci curvature: twice the sum of K over the pairs of an orthonormal basis.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (...,)
    """
    require_robot("robot", robot)
    return np.asarray(np.einsum("...jl,...jl->...", mass_matrix_inverse(robot, q), ricci_curvature(robot, q)))[()]
