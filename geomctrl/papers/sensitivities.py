"""Sensitivity of inverse dynamics to the robot's geometry, second derivatives along a direction, and those of M^-1.

The first and second derivatives that controllers and optimisers use are methods of `Robot` and functions of
`geomctrl.derivatives`, which states what a derivative with respect to q is.

Source: Mueller 2018 section 6.

Examples
--------
>>> import dataclasses
>>> import numpy as np
>>> import geomctrl as gc
>>> from geomctrl.papers import sensitivities
>>> robot, q, v, a = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0]), np.zeros(2)
>>> U, moved = 1e-6 * np.arange(6.0), np.array(robot.placements)
>>> moved[1] = moved[1] @ gc.se3.exp(U)  # displace the second joint
>>> other = dataclasses.replace(robot, placements=moved)
>>> change = other.inverse_dynamics(q, v, a) - robot.inverse_dynamics(q, v, a)
>>> bool(np.allclose(sensitivities.geometric_sensitivity(robot, q, v, a).placement[:, 1] @ U, change, atol=1e-9))
True
>>> displaced = gc.se3.log(gc.se3.inverse(robot.pose(q, "tip")) @ other.pose(q, "tip"))
>>> bool(np.allclose(sensitivities.pose_sensitivity(robot, q, "tip").placement[:, 1] @ U, displaced, atol=1e-9))
True
>>> h, inverse = 1e-6, robot.mass_matrix_inverse
>>> slope = (inverse(q + h * v) - inverse(q - h * v)) / (2 * h)
>>> bool(np.allclose(sensitivities.mass_matrix_inverse_derivative(robot, q) @ v, slope))
True
>>> along = sensitivities.inverse_dynamics_derivatives_along(robot, q, v, a, v, a, a)
>>> bool(np.allclose(along.da, robot.mass_matrix_rate(q, v)))
True
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.compiler.catalogue import InverseDynamicsDerivatives
from geomctrl.kernels import derivatives as geometry
from geomctrl.kernels import higher_derivatives
from geomctrl.lie import se3
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.terms.batches import over_states
from geomctrl.terms.derivatives import mass_matrix_derivative, times, times_second
from geomctrl.terms.dynamics import mass_matrix_inverse
from geomctrl.terms.kinematics import poses

__all__ = [
    "geometric_sensitivity",
    "inverse_dynamics_derivatives_along",
    "mass_matrix_inverse_derivative",
    "pose_sensitivity",
]


class GeometricSensitivity(NamedTuple):
    """Gradients with respect to twists of each joint's placement and of its screw.

    Attributes
    ----------
    placement : ndarray, shape (..., n, nbodies, 6)
        Gradients with respect to displacements of the joint and the subtree of its body.
    screw : ndarray, shape (..., n, nbodies, 6)
        Gradients with respect to displacements of the joint axis alone.
    """

    placement: np.ndarray
    screw: np.ndarray


# --- geometry ----------------------------------------------------------------------------------------------------


def geometric_sensitivity(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: ArrayLike | None = None
) -> GeometricSensitivity:
    """Return the gradient of inverse dynamics with respect to the robot's geometry: Mueller 2018 section 6.2.

    Entry [j, i] is the gradient of tau_j along twists U (6,), angular part first, in the frame of body i at zero:

        placement   M_i -> M_i exp(U d): displaces the joint and the subtree of its body
        screw       S_i -> Ad_{exp(U d)} S_i: displaces the joint axis, but not the body at zero

    For joints with several degrees of freedom exp(S q) is displaced with its axes.

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
        Wrenches on the bodies, constant in body frames [N m, N]. Default: none.

    Returns
    -------
    GeometricSensitivity
        Gradients of shape (..., nv, nbodies, 6) each.
    """
    require_robot("robot", robot)
    out = over_states(robot, geometry.geometric_sensitivity, q=q, v=v, a=a, f_ext=f_ext)
    before, behind = out[..., 0, :, :, :], out[..., 1, :, :, :]
    return GeometricSensitivity(before, before - behind)


def pose_sensitivity(robot: Mechanism, q: ArrayLike, frame: str) -> GeometricSensitivity:
    """Return the identification Jacobian, a frame's displacement per change of geometry: Mueller 2018 section 6.2.

    [:, i] maps twists U of body i's joint, as in `geometric_sensitivity`, to body-fixed displacements of the frame. It
    is zero for bodies that are not on the path to the frame.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    frame : str
        Name of a body, a merged link or an added frame.

    Returns
    -------
    GeometricSensitivity
        Jacobians of shape (..., 6, nbodies, 6) each.
    """
    require_robot("robot", robot)
    lead, (q,) = as_batch(robot, q=q)
    to_frame = se3.inverse_of(poses(robot, q, frame))
    out = np.zeros((2, len(q), 6, robot.nbodies, 6))
    i = robot.frame(frame).body
    while i >= 0:
        p = robot.parents[i]
        T = poses(robot, q, robot.body_names[p]) if p >= 0 else np.eye(4)
        out[0, :, :, i] = se3.Ad_of(to_frame @ T @ robot.placements[i])
        out[1, :, :, i] = out[0, :, :, i] - se3.Ad_of(to_frame @ poses(robot, q, robot.body_names[i]))
        i = p
    return GeometricSensitivity(*out.reshape(2, *lead, 6, robot.nbodies, 6))


# --- along a direction -------------------------------------------------------------------------------------------


def inverse_dynamics_derivatives_along(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    dq: ArrayLike,
    dv: ArrayLike,
    da: ArrayLike,
    f_ext: ArrayLike | None = None,
) -> InverseDynamicsDerivatives:
    """Return the derivative of `inverse_dynamics_derivatives` along (q exp(dq t), v + dv t, a + da t).

    It equals the second derivatives contracted with the direction, and is computed in O(n depth) without them. For
    dq = v, dv = a and da the rate of a, it is the time derivative along the motion.

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
    dq, dv, da : array_like, shape (..., nv)
        Direction in which q, v and a change.
    f_ext : array_like, shape (..., nbodies, 6), optional
        Wrenches on the bodies, constant in body frames [N m, N]. Default: none.

    Returns
    -------
    InverseDynamicsDerivatives
        Rates of dtau/dq, dtau/dv and the mass matrix, of shape (..., nv, nv) each.
    """
    require_robot("robot", robot)
    along = higher_derivatives.derivatives_along
    n, out = robot.nv, over_states(robot, along, q=q, v=v, a=a, dq=dq, dv=dv, da=da, f_ext=f_ext)
    return InverseDynamicsDerivatives(*(out[..., k * n : (k + 1) * n, :] for k in range(3)))


# --- the inverse of the mass matrix ------------------------------------------------------------------------------


def mass_matrix_inverse_derivative(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return d(M^-1)_ij/dq_k at [i, j, k]: -M^-1 (dM/dq_k) M^-1.

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
    require_robot("robot", robot)
    inverse = mass_matrix_inverse(robot, q)
    return -times(inverse, times_second(mass_matrix_derivative(robot, q), inverse))
