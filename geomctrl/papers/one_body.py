"""Newton's and Euler's equations of one body, about its frame's origin and about its centre of mass.

Mueller 2018 sections 3.2 to 3.4. `representations.newton_euler` computes the wrench, W = M Vdot + C V. This module has
moment and force separately, also in the centre-of-mass frame C_c = C S_bc with S_bc = (R_bc, d):

    representation   about the frame's origin   about the centre of mass
    body             (42), (43)                 Theta_c wdot + w x Theta_c w = t,  m (vdot + w x v) = f      (45), (46)
    hybrid           (54), (55)                 the same with R Theta_c R^T,       m rddot = f               (49), (50)
    mixed            (56), (57)                 the first of body,                 the second of hybrid      (58)

Here d = h / m is the centre of mass in the body's frame, and R_bc are any axes (`axes`, by default the body's). The
spatial representation is about the world's origin for every frame, so it is not offered here.

All arrays have the same leading axes; nothing is broadcast. The functions raise ArgumentError for wrong shapes, nan,
infinity, "spatial", an unknown representation, or a body without mass. Misprints corrected: (42) lacks
m d x (vdot + w x v), (50) lacks a dot, (47) has M_c^b on its right.

Examples
--------
>>> import numpy as np
>>> import geomctrl as gc
>>> from geomctrl.papers import one_body, representations
>>> from geomctrl.papers.one_body import BodyMotion, MomentForce
>>> p = gc.inertia.from_com(2.0, [0.1, 0.2, 0.3], 0.1 * np.eye(3))
>>> T, (V, A) = gc.se3.exp(np.full(6, 0.3)), np.random.default_rng(0).normal(size=(2, 6))
>>> result: MomentForce = one_body.newton_and_euler(p, T, V, A)
>>> W = representations.newton_euler(p, T, V, A)
>>> bool(np.allclose(np.concatenate(result), W))
True
>>> com: BodyMotion = one_body.motion_of_com(p, T, V, A)
>>> about_com = one_body.newton_and_euler_at_com(p, T, com.V, com.A)
>>> bool(np.allclose(np.concatenate(about_com), one_body.wrench_about_com(p, T, W)))
True
>>> M = one_body.mass_matrix_from_com(p, T)
>>> bool(np.allclose(M, gc.inertia.spatial(p))), one_body.com_frame(p)[:3, 3].round(9)
(True, array([0.1, 0.2, 0.3]))
>>> one_body.mass_matrix_at_com(p, T).diagonal().round(9)
array([0.1, 0.1, 0.1, 2. , 2. , 2. ])
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, require_rotation
from geomctrl.errors import ArgumentError
from geomctrl.lie import se3
from geomctrl.mechanism import inertia

from .blocks import mul, transpose
from .conversions import checked_together, convert_acceleration, convert_inertia, convert_twist, convert_wrench

__all__ = [
    "BodyMotion",
    "MomentForce",
    "com_frame",
    "mass_matrix_at_com",
    "mass_matrix_from_com",
    "motion_of_com",
    "newton_and_euler",
    "newton_and_euler_at_com",
    "wrench_about_com",
]

Local = Literal["body", "hybrid", "mixed"]


class MomentForce(NamedTuple):
    """Moment and force on a body.

    Attributes
    ----------
    moment : ndarray, shape (..., 3)
        Moment [N m].
    force : ndarray, shape (..., 3)
        Force [N].
    """

    moment: np.ndarray
    force: np.ndarray


class BodyMotion(NamedTuple):
    """Pose, twist and acceleration of a frame.

    Attributes
    ----------
    T : ndarray, shape (..., 4, 4)
        Pose.
    V : ndarray, shape (..., 6)
        Twist [rad/s, m/s].
    A : ndarray, shape (..., 6)
        Rate of the twist [rad/s^2, m/s^2].
    """

    T: np.ndarray
    V: np.ndarray
    A: np.ndarray


def com_frame(parameters: ArrayLike, axes: ArrayLike | None = None) -> np.ndarray:
    """Return S_bc, the pose of the centre-of-mass frame in the body's frame.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    axes : array_like, shape (3, 3) or (..., 3, 3), optional
        Axes R_bc of the centre-of-mass frame, in the body's frame. Default: the body's axes.

    Returns
    -------
    ndarray, shape (..., 4, 4)
    """
    (pi,) = checked_together(parameters=parameters)
    massless = ~(pi[..., 0] != 0.0)
    if massless.any():
        raise ArgumentError("parameters: expected a body with mass, got none: it has no centre of mass")
    R = np.eye(3) if axes is None else checked("axes", axes, (3, 3))
    if R.ndim > 2 and R.shape[:-2] != pi.shape[:-1]:
        raise ArgumentError(f"axes: expected shape (3, 3) or {(*pi.shape[:-1], 3, 3)}, got {R.shape}")
    require_rotation("axes", R)
    S = np.zeros((*pi.shape[:-1], 4, 4))
    S[..., :3, :3], S[..., :3, 3], S[..., 3, 3] = R, inertia.com(pi), 1.0
    return S


def motion_of_com(
    parameters: ArrayLike,
    T: ArrayLike,
    V: ArrayLike,
    A: ArrayLike,
    representation: Local = "body",
    axes: ArrayLike | None = None,
) -> BodyMotion:
    """Return pose, twist and acceleration of the centre-of-mass frame from those of the body's frame.

    C_c = C S_bc and V_c^b = Ad_{S_bc}^-1 V^b. In the hybrid representation V^h = Ad_d V_c^h, d in inertial axes (51).

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body's frame.
    V : array_like, shape (..., 6)
        Twist of the body's frame [rad/s, m/s].
    A : array_like, shape (..., 6)
        Rate of the twist [rad/s^2, m/s^2].
    representation : {"body", "hybrid", "mixed"}
        Representation of twists, wrenches and the result. Default: "body".
    axes : array_like, shape (3, 3) or (..., 3, 3), optional
        Axes R_bc of the centre-of-mass frame, in the body's frame. Default: the body's axes.

    Returns
    -------
    BodyMotion
        Pose, twist and acceleration, in `representation`.
    """
    pi, T, V, A = checked_together(parameters=parameters, T=T, V=V, A=A)
    _local(representation)
    S = com_frame(pi, axes)
    back, T_c = se3.Ad_of(se3.inverse_of(S)), T @ S
    V_b, A_b = convert_twist(T, V, representation, "body"), convert_acceleration(T, V, A, representation, "body")
    V_b, A_b = mul(back, V_b), mul(back, A_b)
    A_c = convert_acceleration(T_c, V_b, A_b, "body", representation)
    return BodyMotion(T_c, convert_twist(T_c, V_b, "body", representation), A_c)


def wrench_about_com(
    parameters: ArrayLike, T: ArrayLike, W: ArrayLike, representation: Local = "body", axes: ArrayLike | None = None
) -> np.ndarray:
    """Return the wrench W on the body about its centre of mass: W_c^b = Ad_{S_bc}^T W^b.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body's frame.
    W : array_like, shape (..., 6)
        Wrench on the body about its frame's origin [N m, N].
    representation : {"body", "hybrid", "mixed"}
        Representation of twists, wrenches and the result. Default: "body".
    axes : array_like, shape (3, 3) or (..., 3, 3), optional
        Axes R_bc of the centre-of-mass frame, in the body's frame. Default: the body's axes.

    Returns
    -------
    ndarray, shape (..., 6)
        Wrench about the centre of mass [N m, N].
    """
    pi, T, W = checked_together(parameters=parameters, T=T, W=W)
    _local(representation)
    S = com_frame(pi, axes)
    W_c = mul(transpose(se3.Ad_of(S)), convert_wrench(T, W, representation, "body"))
    return convert_wrench(T @ S, W_c, "body", representation)


def mass_matrix_at_com(
    parameters: ArrayLike, T: ArrayLike, representation: Local = "body", axes: ArrayLike | None = None
) -> np.ndarray:
    """Return the mass matrix M_c = diag(Theta, m 1) of the body about its centre of mass.

    Theta is R_bc^T Theta_c R_bc in the body-fixed and mixed representation (39), R Theta_c R^T in the hybrid one (47).

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body's frame.
    representation : {"body", "hybrid", "mixed"}
        Representation of twists, wrenches and the result. Default: "body".
    axes : array_like, shape (3, 3) or (..., 3, 3), optional
        Axes R_bc of the centre-of-mass frame, in the body's frame. Default: the body's axes.

    Returns
    -------
    ndarray, shape (..., 6, 6)
    """
    pi, T = checked_together(parameters=parameters, T=T)
    _local(representation)
    turn = com_frame(pi, axes)[..., :3, :3]
    if representation == "hybrid":
        turn = transpose(T[..., :3, :3])
    M = np.zeros((*pi.shape[:-1], 6, 6))
    M[..., :3, :3] = transpose(turn) @ inertia.com_tensor(pi) @ turn  # (39), (47)
    M[..., 3:, 3:] = pi[..., 0, None, None] * np.eye(3)
    return M


def mass_matrix_from_com(
    parameters: ArrayLike, T: ArrayLike, representation: Local = "body", axes: ArrayLike | None = None
) -> np.ndarray:
    """Return the body's mass matrix by the parallel axes theorem, M = Ad_S^-T M_c Ad_S^-1 (40), (51).

    M_c is that of `mass_matrix_at_com`. S is S_bc in the body-fixed representation (40), and the displacement d in
    inertial axes in the hybrid one (51).

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body's frame.
    representation : {"body", "hybrid", "mixed"}
        Representation of twists, wrenches and the result. Default: "body".
    axes : array_like, shape (3, 3) or (..., 3, 3), optional
        Axes R_bc of the centre-of-mass frame, in the body's frame. Default: the body's axes.

    Returns
    -------
    ndarray, shape (..., 6, 6)
    """
    pi, T = checked_together(parameters=parameters, T=T)
    M_c, S = mass_matrix_at_com(pi, T, representation, axes), com_frame(pi, axes)
    if representation == "hybrid":
        S[..., :3, 3] = mul(T[..., :3, :3], S[..., :3, 3])
        S[..., :3, :3] = np.eye(3)
    back = se3.Ad_of(se3.inverse_of(S))
    M = transpose(back) @ M_c @ back  # (40), (51)
    return convert_inertia(T, M, "body", "mixed") if representation == "mixed" else M


def newton_and_euler(
    parameters: ArrayLike, T: ArrayLike, V: ArrayLike, A: ArrayLike, representation: Local = "body"
) -> MomentForce:
    """Return moment and force about the frame's origin: body (42), (43); hybrid (54), (55); mixed (56), (57).

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body's frame.
    V : array_like, shape (..., 6)
        Twist of the body's frame [rad/s, m/s].
    A : array_like, shape (..., 6)
        Rate of the twist [rad/s^2, m/s^2].
    representation : {"body", "hybrid", "mixed"}
        Representation of twists, wrenches and the result. Default: "body".

    Returns
    -------
    MomentForce
    """
    pi, T, V, A = checked_together(parameters=parameters, T=T, V=V, A=A)
    _local(representation)
    R, m, h, Theta = T[..., :3, :3], pi[..., :1], pi[..., 1:4], inertia.tensor(pi)
    w, w_rate = V[..., :3], A[..., :3]
    if representation == "hybrid":
        h, Theta = mul(R, h), R @ Theta @ transpose(R)
    if representation == "body":
        p_accel = A[..., 3:] + np.cross(w, V[..., 3:])  # of the origin, in the axes of the moments: R^T rddot
    else:
        p_accel = mul(transpose(R), A[..., 3:]) if representation == "mixed" else A[..., 3:]
    moment = mul(Theta, w_rate) + np.cross(w, mul(Theta, w)) + np.cross(h, p_accel)  # (42), (54), (56)
    force = m * p_accel + np.cross(w_rate, h) + np.cross(w, np.cross(w, h))  # (43), (55)
    return MomentForce(moment, mul(R, force) if representation == "mixed" else force)  # (57)


def newton_and_euler_at_com(
    parameters: ArrayLike,
    T: ArrayLike,
    V_c: ArrayLike,
    A_c: ArrayLike,
    representation: Local = "body",
    axes: ArrayLike | None = None,
) -> MomentForce:
    """Return moment and force about the centre of mass: body (45), (46); hybrid (49), (50); mixed (58).

    The hybrid equations are decoupled.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body's frame.
    V_c : array_like, shape (..., 6)
        Twist of the centre-of-mass frame, as from `motion_of_com` [rad/s, m/s].
    A_c : array_like, shape (..., 6)
        Rate of V_c [rad/s^2, m/s^2].
    representation : {"body", "hybrid", "mixed"}
        Representation of twists, wrenches and the result. Default: "body".
    axes : array_like, shape (3, 3) or (..., 3, 3), optional
        Axes R_bc of the centre-of-mass frame, in the body's frame. Default: the body's axes.

    Returns
    -------
    MomentForce
    """
    pi, T, V_c, A_c = checked_together(parameters=parameters, T=T, V_c=V_c, A_c=A_c)
    Theta = mass_matrix_at_com(pi, T, representation, axes)[..., :3, :3]
    w, w_rate, accel = V_c[..., :3], A_c[..., :3], A_c[..., 3:]
    if representation == "body":
        accel = accel + np.cross(w, V_c[..., 3:])  # (46)
    return MomentForce(mul(Theta, w_rate) + np.cross(w, mul(Theta, w)), pi[..., :1] * accel)  # (45), (49); (50), (58)


def _local(representation: str) -> None:
    choice("representation", representation, ("body", "hybrid", "mixed"))
