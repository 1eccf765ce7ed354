"""The four representations of twists, and dynamics written in each of them: Mueller 2018 sections 3, 4 and appendix A.

With T = (R, r) the pose of a frame and (w, v) its body-fixed twist (see `kinematics`):

    body     V^b = (w, v)                     wrenches about the frame's origin, in its axes
    spatial  V^s = Ad_T V^b                   about the world's origin, in inertial axes
    hybrid   V^h = (R w, R v) = (w^s, rdot)   about the frame's origin, in inertial axes
    mixed    V^m = (w, R v) = (w, rdot)       moments body-fixed, forces in inertial axes

A wrench's representation is the one that keeps its power W . V. Everything but `inverse_dynamics` is numpy, written to
be read. All functions take leading batch axes, the same for all arguments, and raise ArgumentError for wrong shapes,
nan, infinity, or an unknown representation. Equation numbers are Mueller's. Slips of the print, corrected here: the
last two forms of (99) are for V^h; M_c^b stands on the right in (47); (56) means R^T rddot = vdot + w x v; (60) means
ad^T, (64) R_jk = R_j^T R_k; and (63) adds the brackets of the frame's rotation and of its displacement.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError
from geomctrl.kernels import representations
from geomctrl.lie import se3, so3
from geomctrl.mechanism import inertia
from geomctrl.mechanism.configuration import neutral
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.terms.batches import over_states
from geomctrl.terms.dynamics import inverse_dynamics as body_fixed
from geomctrl.terms.kinematics import Representation, pose, representation_number

from .blocks import blocks, mul, transpose

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

# --- conversions -------------------------------------------------------------------------------------------------


def change_of_representation(T: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """The matrix A (..., 6, 6) with V_target = A V_source for the frame at T (..., 4, 4): (98)-(100).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6, 6)
    """
    (T,) = checked_together(T=T)
    return _change(T, source, target)


def convert_twist(T: ArrayLike, V: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """The twist V (..., 6) of the frame at T in another representation: (98)-(100).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    V : array_like, shape (..., 6)
        Twist.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6)

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.papers import representations
    >>> T = np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])  # a quarter turn about z
    >>> representations.convert_twist(T, [0.0, 0, 0, 1, 0, 0], "body", "hybrid")
    array([0., 0., 0., 0., 1., 0.])
    """
    T, V = checked_together(T=T, V=V)
    return mul(_change(T, source, target), V)


def convert_acceleration(
    T: ArrayLike, V: ArrayLike, A: ArrayLike, source: Representation, target: Representation
) -> np.ndarray:
    """The rate of the twist (..., 6) in `target`, given twist V and rate A in `source`: (98)-(100) derived, (33).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    V : array_like, shape (..., 6)
        Twist.
    A : array_like, shape (..., 6)
        Rate of the twist.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6)
    """
    T, V, A = checked_together(T=T, V=V, A=A)
    return mul(_change(T, source, target), A) + mul(_change_rate(T, V, source, target), V)


def convert_jacobian(T: ArrayLike, Jac: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """A Jacobian (..., 6, n) of the frame at T in another representation: (106).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    Jac : array_like, shape (..., 6, n)
        Jacobian of the frame.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6, n)
    """
    T, Jac = checked_together(T=T, Jac=Jac)
    return _change(T, source, target) @ Jac


def convert_jacobian_rate(
    T: ArrayLike, V: ArrayLike, Jac: ArrayLike, Jac_rate: ArrayLike, source: Representation, target: Representation
) -> np.ndarray:
    """A Jacobian's time derivative (..., 6, n), given the frame's twist V, Jac and its rate in `source`: (24), (33)."""
    T, V, Jac, Jac_rate = checked_together(T=T, V=V, Jac=Jac, Jac_rate=Jac_rate)
    if Jac.shape != Jac_rate.shape:
        raise ArgumentError(f"Jac, Jac_rate: expected the same shape, got {Jac.shape} and {Jac_rate.shape}")
    return _change(T, source, target) @ Jac_rate + _change_rate(T, V, source, target) @ Jac


def convert_wrench(T: ArrayLike, W: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """The wrench W (..., 6) on the frame at T in another representation, so that W . V stays the power: (35).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    W : array_like, shape (..., 6)
        Wrench on the frame.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6)
    """
    T, W = checked_together(T=T, W=W)
    _require_known(source, target)
    return mul(transpose(_change(T, target, source)), W)


def convert_inertia(T: ArrayLike, J: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """The mass matrix J (..., 6, 6) of a body at T in another representation: (34), (47), (51).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the body.
    J : array_like, shape (..., 6, 6)
        Mass matrix of the body.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6, 6)
    """
    T, J = checked_together(T=T, J=J)
    _require_known(source, target)
    back = _change(T, target, source)
    return transpose(back) @ J @ back


def _require_known(source: str, target: str) -> None:
    representation_number(source, "source")
    representation_number(target, "target")


def _change(T: np.ndarray, source: str, target: str) -> np.ndarray:
    _require_known(source, target)
    return _from_body(T, target) @ _to_body(T, source)


def _change_rate(T: np.ndarray, V: np.ndarray, source: str, target: str) -> np.ndarray:
    back = _to_body(T, source)
    V_b = mul(back, V)
    rate = _from_body_rate(T, V_b, target) @ back
    # A = A_target A_source^-1, and d/dt A_source^-1 = - A_source^-1 (d/dt A_source) A_source^-1
    return rate - _from_body(T, target) @ back @ _from_body_rate(T, V_b, source) @ back


def _from_body(T: np.ndarray, target: str) -> np.ndarray:
    """A with V_target = A V^b."""
    R, one, zero = T[..., :3, :3], _eye3(T), _zero3(T)
    if target == "spatial":
        return se3.Ad_of(T)  # (99)
    if target == "hybrid":
        return blocks(R, zero, zero, R)  # (98)
    if target == "mixed":
        return blocks(one, zero, zero, R)  # (100)
    return blocks(one, zero, zero, one)


def _to_body(T: np.ndarray, source: str) -> np.ndarray:
    """Its inverse: all but the spatial one are orthogonal."""
    return se3.Ad_of(se3.inverse_of(T)) if source == "spatial" else transpose(_from_body(T, source))


def _from_body_rate(T: np.ndarray, V_b: np.ndarray, target: str) -> np.ndarray:
    """d/dt of `_from_body` with Rdot = R [w], d/dt Ad_T = Ad_T ad_V."""
    R_rate, zero = T[..., :3, :3] @ so3.hat(V_b[..., :3]), _zero3(T)
    if target == "spatial":
        return se3.Ad_of(T) @ se3.ad(V_b)
    if target == "hybrid":
        return blocks(R_rate, zero, zero, R_rate)
    if target == "mixed":
        return blocks(zero, zero, zero, R_rate)
    return blocks(zero, zero, zero, zero)


# --- one body ----------------------------------------------------------------------------------------------------


def newton_euler(
    parameters: ArrayLike, T: ArrayLike, V: ArrayLike, A: ArrayLike, representation: Representation = "body"
) -> np.ndarray:
    """The wrench (..., 6) that moves a body at T (..., 4, 4) with twist V and its rate A, all in `representation`.

    `parameters` (..., 10): the body's inertia in its own frame. Gravity is a wrench like any other; as the base's
    acceleration, subtract (0, g) from A: in inertial axes for all but "body", where it is (0, R^T g).
    """
    pi, T, V, A = checked_together(parameters=parameters, T=T, V=V, A=A)
    representation_number(representation)
    M = convert_inertia(T, inertia.spatial(pi), "body", representation)
    return mul(M, A) + mul(_coriolis(pi, T, V, M, representation), V)  # (38), (41), (53), (56), (57)


def coriolis_matrix_of_body(
    parameters: ArrayLike, T: ArrayLike, V: ArrayLike, representation: Representation = "body"
) -> np.ndarray:
    """C (..., 6, 6) of one body's equation W = M Vdot + C V in `representation`: (38), (41), (53), (56), (57).

    With `mass_matrix_rate_of_body` for Mdot, Mdot - 2C is skew for the spatial representation only (Remark 2): there
    C = -ad_V^T M. Of a robot's C, `Robot.coriolis_matrix` keeps that property.
    """
    pi, T, V = checked_together(parameters=parameters, T=T, V=V)
    representation_number(representation)
    return _coriolis(pi, T, V, convert_inertia(T, inertia.spatial(pi), "body", representation), representation)


def mass_matrix_rate_of_body(
    parameters: ArrayLike, T: ArrayLike, V: ArrayLike, representation: Representation = "body"
) -> np.ndarray:
    """Mdot (..., 6, 6) of a body's mass matrix in `representation` as it moves with twist V.

    -ad_V^T M - M ad_V in the spatial one (37), in the hybrid one with (w, 0) for V (48), (53), zero in the body's own.
    """
    pi, T, V = checked_together(parameters=parameters, T=T, V=V)
    representation_number(representation)
    back = _to_body(T, representation)
    M, K = (
        convert_inertia(T, inertia.spatial(pi), "body", representation),
        _from_body_rate(T, mul(back, V), representation),
    )
    return -transpose(K @ back) @ M - M @ K @ back


def _coriolis(pi: np.ndarray, T: np.ndarray, V: np.ndarray, M: np.ndarray, representation: str) -> np.ndarray:
    if representation in ("body", "spatial"):
        return -_ad_T(V) @ M  # (38), (41)
    w, zero = so3.hat(V[..., :3]), _zero3(T)
    if representation == "hybrid":
        turning = np.concatenate((V[..., :3], np.zeros_like(V[..., :3])), -1)
        return -_ad_T(turning) @ M @ blocks(_eye3(T), zero, zero, zero)  # (53): of V only (w, 0)
    return blocks(w @ inertia.tensor(pi), zero, -T[..., :3, :3] @ w @ so3.hat(pi[..., 1:4]), zero)  # (56), (57)


def newton_euler_in_frame(
    parameters: ArrayLike, T: ArrayLike, frame: ArrayLike, frame_twist: ArrayLike, V: ArrayLike, A: ArrayLike
) -> np.ndarray:
    """The wrench (..., 6) on a body at T, all of its equation written in an arbitrary moving frame: (60)-(64).

    `frame` (..., 4, 4): pose of the frame, (R_k, r_j) where Mueller measures at frame j and resolves in frame k;
    `frame_twist` (..., 6): its body-fixed twist U = (R_k^T w_k, R_k^T rdot_j). V = Ad_frame^-1 V^s is the body's twist
    there and A its rate. The frame at rest in the origin gives (38), the body's own (41), (1, r) with U = (0, rdot)
    the hybrid (53).
    """
    pi, T, frame, U, V, A = checked_together(parameters=parameters, T=T, frame=frame, frame_twist=frame_twist, V=V, A=A)
    back = se3.Ad_of(se3.inverse_of(T)) @ se3.Ad_of(frame)
    M = transpose(back) @ inertia.spatial(pi) @ back  # (61), (64)
    return mul(M, A + mul(se3.ad(U), V)) - mul(_ad_T(V), mul(M, V))  # (60), (63)


def momentum_of_body(
    parameters: ArrayLike, T: ArrayLike, V: ArrayLike, representation: Representation = "body"
) -> np.ndarray:
    """The momentum co-screw M V (..., 6) of a body at T with twist V, in `representation`: (35)."""
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
    """tau = M a + C v + g - sum_i Jac_i^T f_ext_i (..., nv), O(n), by the recursion in one representation.

    "body" (66), (67), which is `Robot.inverse_dynamics`; "spatial" (70), (71), about the world's origin, so a robot far
    from there loses digits; "hybrid" (75), (76). They differ in round-off and cost, see
    experiments/benchmarks/benchmark_representations.py. f_ext (..., nbodies, 6): wrenches on bodies, in body frames.
    Raises ArgumentError for "mixed", for which there is no recursion: its two halves are in different axes.
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


# --- modelling without body frames -------------------------------------------------------------------------------


def with_body_frames(robot: Mechanism, placements: ArrayLike) -> Mechanism:
    """The same robot described by other frames on its bodies: body i's new frame at placements[i] in the old one.

    `placements` (nbodies, 4, 4). Screws, inertias and other frames are rewritten; velocities, and configurations of
    joints with one degree of freedom, mean what they did, and all terms of the equations of motion stay what they are
    (section 4.4), only poses and Jacobians of bodies change. The relative pose that a joint with several degrees of
    freedom keeps in q is between body frames: `configuration_in_frames` gives the same configuration in new ones.
    """
    N = _placements(robot, placements)
    back = se3.inverse(N)
    M, joints = np.array(robot.placements), []
    for i, (p, joint) in enumerate(zip(robot.parents, robot.joints)):
        M[i] = M[i] @ N[i] if p < 0 else back[p] @ M[i] @ N[i]
        joints.append(replace(joint, S=se3.Ad(back[i]) @ joint.S))
    frames = tuple(
        f if f.body < 0 or f.name in robot.body_names else f._replace(placement=back[f.body] @ f.placement)
        for f in robot.frames
    )
    parameters = inertia.transform(back, robot.parameters)
    return replace(robot, joints=tuple(joints), placements=M, parameters=parameters, frames=frames)


def configuration_in_frames(robot: Mechanism, q: ArrayLike, placements: ArrayLike) -> np.ndarray:
    """The configuration q (..., nq) of `robot` as `with_body_frames(robot, placements)` writes it."""
    lead, (x,) = as_batch(robot, q=q)
    N, out = _placements(robot, placements), x.copy()
    for i, (joint, s) in enumerate(zip(robot.joints, robot.q_slices)):
        if joint.dof > 1:
            T = np.concatenate((x[:, s].reshape(-1, 3, 4), np.tile([[[0.0, 0.0, 0.0, 1.0]]], (len(x), 1, 1))), 1)
            out[:, s] = (se3.inverse(N[i]) @ T @ N[i])[:, :3].reshape(-1, 12)
    return out.reshape(*lead, robot.nq)


def without_body_frames(robot: Mechanism) -> Mechanism:
    """The same robot with all body frames in the world's at the neutral configuration: A_i = 1 (section 4.4).

    Its screws are then the spatial ones at zero, Y_i, and its inertias those of the assembly drawing.
    """
    require_robot("robot", robot)
    q = neutral(robot)
    return with_body_frames(robot, se3.inverse(np.array([pose(robot, q, name) for name in robot.body_names])))


# --- arrays ------------------------------------------------------------------------------------------------------


SHAPES = {"T": (4, 4), "frame": (4, 4), "placements": (4, 4), "parameters": (10,), "J": (6, 6)}  # others: (6,)


def checked_together(**arguments: ArrayLike) -> list[np.ndarray]:
    """Arrays of the shapes that the arguments' names stand for, with the same leading axes: nothing is broadcast."""
    arrays, leads = [], {}
    for name, x in arguments.items():
        shape = SHAPES.get(name, (6,))
        if name.startswith("Jac"):
            x = checked(name, x, ())
            shape = (6, x.shape[-1] if x.ndim else 1)
        a = se3.checked_transform(name, x) if shape == (4, 4) else checked(name, x, shape)
        leads[name] = a.shape[: a.ndim - len(shape)]
        arrays.append(a)
    first = next(iter(leads))
    for name, lead in leads.items():
        if lead != leads[first]:
            raise ArgumentError(
                f"{name}: expected the leading axes of {first}, {leads[first]}, got {lead} (nothing is broadcast)"
            )
    return arrays


def _placements(robot: Mechanism, placements: ArrayLike) -> np.ndarray:
    require_robot("robot", robot)
    (N,) = checked_together(placements=placements)
    if N.shape != (robot.nbodies, 4, 4):
        raise ArgumentError(f"placements: expected shape ({robot.nbodies}, 4, 4), got {N.shape}")
    return N


def _ad_T(V: np.ndarray) -> np.ndarray:
    return transpose(se3.ad(V))


def _eye3(T: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.eye(3), (*T.shape[:-2], 3, 3))


def _zero3(T: np.ndarray) -> np.ndarray:
    return np.zeros((*T.shape[:-2], 3, 3))
