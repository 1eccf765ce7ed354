"""The four representations of twists, and dynamics written in each of them: Mueller 2018 sections 3, 4 and appendix A.

For a frame with pose T = (R, r) and body-fixed twist (w, v):

    body     V^b = (w, v)                     wrenches about the frame's origin, in its axes
    spatial  V^s = Ad_T V^b                   about the world's origin, in inertial axes
    hybrid   V^h = (R w, R v) = (w^s, rdot)   about the frame's origin, in inertial axes
    mixed    V^m = (w, R v) = (w, rdot)       moments body-fixed, forces in inertial axes

A wrench is represented such that its power is W . V. All functions but `inverse_dynamics` are plain numpy. They take
leading batch axes, the same for all arguments, and raise ArgumentError for wrong shapes, nan, infinity, or an unknown
representation. Equation numbers are Mueller's. Misprints corrected here: the last two forms of (99) are for V^h; M_c^b
stands on the right in (47); (56) means R^T rddot = vdot + w x v; (60) means ad^T, (64) R_jk = R_j^T R_k; and (63) adds
the brackets of the frame's rotation and of its displacement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.kernels import representations
from geomctrl.lie import se3, so3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.terms.batches import over_states
from geomctrl.terms.dynamics import inverse_dynamics as body_fixed
from geomctrl.terms.kinematics import Representation, representation_number

from .blocks import blocks, mul, transpose
from .body_frames import configuration_in_frames, with_body_frames, without_body_frames
from .conversions import (
    change_of_representation,
    checked_together,
    convert_acceleration,
    convert_inertia,
    convert_jacobian,
    convert_jacobian_rate,
    convert_twist,
    convert_wrench,
    eye3,
    from_body_rate,
    to_body,
    zero3,
)

__all__ = [
    "change_of_representation",
    "configuration_in_frames",
    "convert_acceleration",
    "convert_inertia",
    "convert_jacobian",
    "convert_jacobian_rate",
    "convert_twist",
    "convert_wrench",
    "coriolis_matrix_of_body",
    "inverse_dynamics",
    "mass_matrix_rate_of_body",
    "momentum_of_body",
    "newton_euler",
    "newton_euler_in_frame",
    "with_body_frames",
    "without_body_frames",
]

# --- one body ----------------------------------------------------------------------------------------------------


def newton_euler(
    parameters: ArrayLike, T: ArrayLike, V: ArrayLike, A: ArrayLike, representation: Representation = "body"
) -> np.ndarray:
    """Return the wrench that gives a body at T with twist V the acceleration A: (38), (41), (53), (56), (57).

    The wrench includes gravity. To obtain the wrench without gravity, subtract (0, g) from A, with g in inertial axes;
    for "body" subtract (0, R^T g).

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body.
    V : array_like, shape (..., 6)
        Twist of the body [rad/s, m/s], in `representation`.
    A : array_like, shape (..., 6)
        Rate of the twist [rad/s^2, m/s^2], in `representation`.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Representation of twists and wrenches. Default: "body".

    Returns
    -------
    ndarray, shape (..., 6)
        Wrench [N m, N], in `representation`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> p, T = gc.inertia.from_com(2.0, [0.1, 0.2, 0.3], 0.1 * np.eye(3)), gc.se3.exp(np.full(6, 0.3))
    >>> V, A = np.random.default_rng(0).normal(size=(2, 6))
    >>> W = representations.newton_euler(p, T, V, A)
    >>> V_s = representations.convert_twist(T, V, "body", "spatial")
    >>> A_s = representations.convert_acceleration(T, V, A, "body", "spatial")
    >>> W_s = representations.newton_euler(p, T, V_s, A_s, "spatial")
    >>> bool(np.allclose(W_s, representations.convert_wrench(T, W, "body", "spatial")))
    True
    """
    pi, T, V, A = checked_together(parameters=parameters, T=T, V=V, A=A)
    representation_number(representation)
    M = convert_inertia(T, inertia.spatial(pi), "body", representation)
    return mul(M, A) + mul(_coriolis(pi, T, V, M, representation), V)  # (38), (41), (53), (56), (57)


def coriolis_matrix_of_body(
    parameters: ArrayLike, T: ArrayLike, V: ArrayLike, representation: Representation = "body"
) -> np.ndarray:
    """Return C of one body's equation W = M Vdot + C V: (38), (41), (53), (56), (57).

    With Mdot from `mass_matrix_rate_of_body`, Mdot - 2C is skew only in the spatial representation (Remark 2), where
    C = -ad_V^T M. For a whole robot `Robot.coriolis_matrix` has this property.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body.
    V : array_like, shape (..., 6)
        Twist of the body [rad/s, m/s], in `representation`.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Representation of twists and wrenches. Default: "body".

    Returns
    -------
    ndarray, shape (..., 6, 6)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> p, T = gc.inertia.from_com(2.0, [0.1, 0.2, 0.3], 0.1 * np.eye(3)), gc.se3.exp(np.full(6, 0.3))
    >>> V = np.arange(6.0)
    >>> C = representations.coriolis_matrix_of_body(p, T, V, "spatial")
    >>> N = representations.mass_matrix_rate_of_body(p, T, V, "spatial") - 2.0 * C
    >>> bool(np.allclose(N, -N.T))
    True
    """
    pi, T, V = checked_together(parameters=parameters, T=T, V=V)
    representation_number(representation)
    return _coriolis(pi, T, V, convert_inertia(T, inertia.spatial(pi), "body", representation), representation)


def mass_matrix_rate_of_body(
    parameters: ArrayLike, T: ArrayLike, V: ArrayLike, representation: Representation = "body"
) -> np.ndarray:
    """Return the time derivative Mdot of a body's mass matrix as the body moves with twist V.

    In the spatial representation Mdot = -ad_V^T M - M ad_V (37); in the hybrid one the same with (w, 0) in place of V
    (48), (53); in the body-fixed one it is zero.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body.
    V : array_like, shape (..., 6)
        Twist of the body [rad/s, m/s], in `representation`.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Representation of twists and wrenches. Default: "body".

    Returns
    -------
    ndarray, shape (..., 6, 6)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> p, T = gc.inertia.from_com(2.0, [0.1, 0.2, 0.3], 0.1 * np.eye(3)), gc.se3.exp(np.full(6, 0.3))
    >>> V, h = np.arange(6.0), 1e-6
    >>> V_s = representations.convert_twist(T, V, "body", "spatial")
    >>> J = gc.inertia.spatial(p)
    >>> M = lambda t: representations.convert_inertia(T @ gc.se3.exp(t * V), J, "body", "spatial")
    >>> Mdot = representations.mass_matrix_rate_of_body(p, T, V_s, "spatial")
    >>> bool(np.allclose(Mdot, (M(h) - M(-h)) / (2.0 * h)))
    True
    """
    pi, T, V = checked_together(parameters=parameters, T=T, V=V)
    representation_number(representation)
    back = to_body(T, representation)
    M = convert_inertia(T, inertia.spatial(pi), "body", representation)
    K = from_body_rate(T, mul(back, V), representation)
    return -transpose(K @ back) @ M - M @ K @ back


def _coriolis(pi: np.ndarray, T: np.ndarray, V: np.ndarray, M: np.ndarray, representation: str) -> np.ndarray:
    if representation in ("body", "spatial"):
        return -_ad_T(V) @ M  # (38), (41)
    w, zero = so3.hat(V[..., :3]), zero3(T)
    if representation == "hybrid":
        turning = np.concatenate((V[..., :3], np.zeros_like(V[..., :3])), -1)
        return -_ad_T(turning) @ M @ blocks(eye3(T), zero, zero, zero)  # (53): of V only (w, 0)
    return blocks(w @ inertia.tensor(pi), zero, -T[..., :3, :3] @ w @ so3.hat(pi[..., 1:4]), zero)  # (56), (57)


def newton_euler_in_frame(
    parameters: ArrayLike, T: ArrayLike, frame: ArrayLike, frame_twist: ArrayLike, V: ArrayLike, A: ArrayLike
) -> np.ndarray:
    """Return the wrench on a body at T, with all quantities expressed in an arbitrary moving frame: (60)-(64).

    Special cases: a frame at rest in the origin gives (38), the body's own frame (41), and the frame (1, r) with twist
    (0, rdot) the hybrid form (53).

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body.
    frame : array_like, shape (..., 4, 4)
        Pose of the frame: (R_k, r_j) for quantities that Mueller measures at frame j and resolves in frame k.
    frame_twist : array_like, shape (..., 6)
        Body-fixed twist of the frame, (R_k^T w_k, R_k^T rdot_j) [rad/s, m/s].
    V : array_like, shape (..., 6)
        Twist of the body in the frame, Ad_frame^-1 V^s [rad/s, m/s].
    A : array_like, shape (..., 6)
        Rate of V [rad/s^2, m/s^2].

    Returns
    -------
    ndarray, shape (..., 6)
        Wrench in the frame [N m, N].

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> p, T = gc.inertia.from_com(2.0, [0.1, 0.2, 0.3], 0.1 * np.eye(3)), gc.se3.exp(np.full(6, 0.3))
    >>> V, A = np.random.default_rng(0).normal(size=(2, 6))
    >>> W = representations.newton_euler_in_frame(p, T, T, V, V, A)  # the body's own frame
    >>> bool(np.allclose(W, representations.newton_euler(p, T, V, A)))
    True
    """
    pi, T, frame, U, V, A = checked_together(parameters=parameters, T=T, frame=frame, frame_twist=frame_twist, V=V, A=A)
    back = se3.Ad_of(se3.inverse_of(T)) @ se3.Ad_of(frame)
    M = transpose(back) @ inertia.spatial(pi) @ back  # (61), (64)
    return mul(M, A + mul(se3.ad(U), V)) - mul(_ad_T(V), mul(M, V))  # (60), (63)


def momentum_of_body(
    parameters: ArrayLike, T: ArrayLike, V: ArrayLike, representation: Representation = "body"
) -> np.ndarray:
    """Return the momentum co-screw M V of a body at T with twist V: (35).

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        Inertial parameters of the body in its own frame (see `geomctrl.inertia`).
    T : array_like, shape (..., 4, 4)
        Pose of the body.
    V : array_like, shape (..., 6)
        Twist of the body [rad/s, m/s], in `representation`.
    representation : {"body", "spatial", "hybrid", "mixed"}
        Representation of twists and wrenches. Default: "body".

    Returns
    -------
    ndarray, shape (..., 6)
        Angular [N m s], then linear momentum [N s], in `representation`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> p, T = gc.inertia.from_com(2.0, [0.1, 0.2, 0.3], 0.1 * np.eye(3)), gc.se3.exp(np.full(6, 0.3))
    >>> V = np.arange(6.0)
    >>> momentum = representations.momentum_of_body(p, T, V)
    >>> bool(np.allclose(momentum, gc.inertia.spatial(p) @ V))
    True
    """
    pi, T, V = checked_together(parameters=parameters, T=T, V=V)
    representation_number(representation)
    return mul(convert_inertia(T, inertia.spatial(pi), "body", representation), V)


def inverse_dynamics(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ArrayLike | None = None,
    representation: Representation = "body",
) -> np.ndarray:
    """Return tau = M a + C v + g - sum_i Jac_i^T f_ext_i by the O(n) recursion in one representation.

    "body" is `Robot.inverse_dynamics` (66), (67). "spatial" (70), (71) is about the world's origin and loses digits for
    robots far from it. "hybrid" is (75), (76). The recursions differ in round-off and cost, which
    experiments/benchmarks/benchmark_representations.py compares.

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
    representation : {"body", "spatial", "hybrid"}
        Representation of the recursion. Default: "body".

    Returns
    -------
    ndarray, shape (..., nv)
        Joint torques and forces [N m, N].

    Raises
    ------
    ArgumentError
        If an argument is invalid, and for "mixed", whose two halves are in different axes and have no recursion.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> robot, q, v, a = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0]), np.array([0.5, -1.0])
    >>> tau = representations.inverse_dynamics(robot, q, v, a, representation="hybrid")
    >>> bool(np.allclose(tau, robot.inverse_dynamics(q, v, a)))
    True
    """
    require_robot("robot", robot)
    representation_number(representation)
    if representation == "body":
        return body_fixed(robot, q, v, a, f_ext=f_ext)
    if representation == "mixed":
        raise ArgumentError("representation: expected 'body', 'spatial' or 'hybrid', got 'mixed'")
    spatial = representation == "spatial"
    recursion = representations.spatial_inverse_dynamics if spatial else representations.hybrid_inverse_dynamics
    return over_states(robot, recursion, q=q, v=v, a=a, f_ext=f_ext)


def _ad_T(V: np.ndarray) -> np.ndarray:
    return transpose(se3.ad(V))
