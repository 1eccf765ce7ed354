"""Derivatives of the equations of motion, first and second, in closed form by recursion, and the linearisation.

A derivative with respect to q is taken along the group, left-trivialised: column k is that of f(q exp(S_k d)) at d = 0,
S_k the k-th velocity coordinate's screw; for a joint with one degree of freedom this is df/dq_k. So all have nv
columns, whatever nq is, and go with `Robot.integrate` and `Robot.difference`. Second derivatives are derivatives of
first ones, in this order: within one joint of several degrees of freedom the two orders differ by a bracket of screws.

Each function is also a method of `Robot`; all take leading batch axes and raise ArgumentError like the other terms.
Sources: Mueller 2018 section 6, Singh, Russo and Wensing 2022; the modules `derivatives` and
`higher_derivatives` of `kernels` say how. Derivatives with respect to inertial parameters are `terms.regressor`,
derivatives
in time of any order `inverse_dynamics_rates`, by power series in inertial axes (Mueller 2018 section 6.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.compiler.catalogue import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from geomctrl.errors import ArgumentError
from geomctrl.kernels import derivatives, higher_derivatives
from geomctrl.kernels import derivatives as geometry
from geomctrl.kernels.couplings import fitting
from geomctrl.lie import se3
from geomctrl.mechanism.configuration import ConfigurationGroup
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch

from .batches import ONE, REFUSED, check_threads, over_states, plain
from .dynamics import mass_matrix_inverse, mass_matrix_rate
from .kinematics import poses
from .regressor import momentum_rate_regressor, momentum_regressor

__all__ = [
    "forward_dynamics_second_derivatives",
    "geometric_sensitivity",
    "inverse_dynamics_derivatives_along",
    "inverse_dynamics_rates",
    "inverse_dynamics_second_derivatives",
    "mass_matrix_derivative",
    "mass_matrix_inverse_derivative",
    "mass_matrix_inverse_rate",
    "momentum_rate_regressor",
    "momentum_regressor",
    "pose_sensitivity",
]


class InverseDynamicsSecondDerivatives(NamedTuple):
    """Tensors (..., nv, nv, nv): entry [i, j, k] is tau_i derived by the first letter's j, then by the second's k.

    dadq is dM_ij/dq_k. All others vanish or are these with j and k exchanged.
    """

    dqdq: np.ndarray
    dvdq: np.ndarray
    dvdv: np.ndarray
    dadq: np.ndarray


class ForwardDynamicsSecondDerivatives(NamedTuple):
    """Tensors (..., nv, nv, nv): entry [i, j, k] is a_i derived by the first letter's j, then by the second's k.

    dtaudq is d(M^-1)_ij/dq_k. All others vanish or are these with j and k exchanged.
    """

    dqdq: np.ndarray
    dvdq: np.ndarray
    dvdv: np.ndarray
    dtaudq: np.ndarray


class GeometricSensitivity(NamedTuple):
    """Gradients along twists of each joint's placement and of its screw, (..., n, nbodies, 6)."""

    placement: np.ndarray
    screw: np.ndarray


class Linearization(NamedTuple):
    """x' = A x + B u about a motion: A (..., 2 nv, 2 nv), B (..., 2 nv, nv), and the acceleration a (..., nv) there."""

    A: np.ndarray
    B: np.ndarray
    a: np.ndarray


# --- first derivatives -------------------------------------------------------------------------------------------


def inverse_dynamics_derivatives(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    f_ext: ArrayLike | None = None,
    *,
    threads: int = 1,
) -> InverseDynamicsDerivatives:
    """Derivatives of `inverse_dynamics` with respect to q, v and a, (..., nv, nv) each, O(n depth).

    f_ext (..., nbodies, 6): wrenches on the bodies, constant in their frames. threads: how many share a large batch.
    In N m/rad and so on per coordinate.
    """
    if threads is not ONE:
        check_threads(threads)
    result = robot._code.inverse_dynamics_derivatives(q, v, a) if f_ext is None else None
    if result is not None:
        return result
    algorithm = derivatives.inverse_dynamics_derivatives
    return InverseDynamicsDerivatives(*over_states(robot, algorithm, threads=threads, q=q, v=v, a=a, f_ext=f_ext))


def forward_dynamics_derivatives(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    f_ext: ArrayLike | None = None,
    *,
    threads: int = 1,
) -> ForwardDynamicsDerivatives:
    """Derivatives of `forward_dynamics` with respect to q, v and tau, and its value: -M^-1 dtau/dq and so on.

    f_ext (..., nbodies, 6): wrenches on the bodies, constant in their frames. threads: how many share a large
    batch. Raises ModelError where the mass matrix is not positive definite.
    """
    if threads is not ONE:
        check_threads(threads)
    result = robot._code.forward_dynamics_derivatives(q, v, tau) if f_ext is None else None
    if result is not None:
        return result
    algorithm = derivatives.forward_dynamics_derivatives
    return ForwardDynamicsDerivatives(*over_states(robot, algorithm, threads=threads, q=q, v=v, tau=tau, f_ext=f_ext))


def _rows(blocks: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first three (..., n, n) of matrices below each other."""
    if blocks.ndim == 2:  # plain slices take half the time
        return blocks[:n], blocks[n : 2 * n], blocks[2 * n : 3 * n]
    return blocks[..., :n, :], blocks[..., n : 2 * n, :], blocks[..., 2 * n : 3 * n, :]


# --- the mass matrix ---------------------------------------------------------------------------------------------


def mass_matrix_derivative(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """dM_ij/dq_k (..., nv, nv, nv) at [i, j, k], O(n depth^2).

    Along one direction x, sum_k [i, j, k] x_k is `mass_matrix_rate(q, x)`, at O(n depth).
    """
    require_robot("robot", robot)
    out = np.empty((robot.nv, robot.nv, robot.nv))
    try:
        if plain(q):
            fitting(derivatives.mass_matrix_derivative, robot._model).one(robot._model, q, out)
            return out
    except REFUSED:
        pass
    return over_states(robot, derivatives.mass_matrix_derivative, q=q)


def mass_matrix_inverse_derivative(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """d(M^-1)_ij/dq_k (..., nv, nv, nv) at [i, j, k]: -M^-1 (dM/dq_k) M^-1."""
    require_robot("robot", robot)
    inverse = mass_matrix_inverse(robot, q)
    return -_times(inverse, _times_second(mass_matrix_derivative(robot, q), inverse))


def mass_matrix_inverse_rate(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """The derivative of M^-1 (..., nv, nv) along v: -M^-1 Mdot M^-1."""
    require_robot("robot", robot)
    inverse = mass_matrix_inverse(robot, q)
    return -inverse @ mass_matrix_rate(robot, q, v) @ inverse


# --- second derivatives ------------------------------------------------------------------------------------------


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
    """How `inverse_dynamics_derivatives` change along (q exp(dq t), v + dv t, a + da t), (..., nv, nv) each.

    The second derivatives contracted with directions (..., nv), without forming them, O(n depth). Along the motion
    itself, dq = v, dv = a, da = a', it is their time derivative. f_ext (..., nbodies, 6): wrenches on the bodies,
    constant in their frames.
    """
    require_robot("robot", robot)
    along = higher_derivatives.derivatives_along
    try:
        if f_ext is None and plain(q, v, a, dq, dv, da):
            block = np.empty((3 * robot.nv, robot.nv))
            fitting(along, robot._model).one(robot._model, q, v, a, dq, dv, da, block)
            return InverseDynamicsDerivatives(*_rows(block, robot.nv))
    except REFUSED:
        pass
    blocks = over_states(robot, along, q=q, v=v, a=a, dq=dq, dv=dv, da=da, f_ext=f_ext)
    return InverseDynamicsDerivatives(*_rows(blocks, robot.nv))


def inverse_dynamics_second_derivatives(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: ArrayLike | None = None
) -> InverseDynamicsSecondDerivatives:
    """All second derivatives of inverse dynamics, O(n^2 depth): tensors (..., nv, nv, nv), see the class.

    The Hessian of a weighted sum l . tau is np.einsum("...i,...ijk->...jk", l, tensor). f_ext (..., nbodies, 6):
    wrenches on the bodies, constant in their frames.
    """
    require_robot("robot", robot)
    n = robot.nv
    out = over_states(robot, higher_derivatives.second_derivatives, q=q, v=v, a=a, f_ext=f_ext)
    out = np.moveaxis(out, -3, -1)  # the coordinate of the second derivative comes last
    dqdq, dvdq, dadq, dvdv = (out[..., k * n : (k + 1) * n, :, :] for k in range(4))
    return InverseDynamicsSecondDerivatives(dqdq, dvdq, dvdv, dadq)


def forward_dynamics_second_derivatives(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: ArrayLike | None = None
) -> ForwardDynamicsSecondDerivatives:
    """All second derivatives of forward dynamics: tensors (..., nv, nv, nv), see the class.

    From those of inverse dynamics ID(q, v, a(q, v, tau)) = tau, derived twice. f_ext (..., nbodies, 6): wrenches on the
    bodies, constant in their frames. Raises ModelError where the mass matrix is not positive definite.
    """
    require_robot("robot", robot)
    first = forward_dynamics_derivatives(robot, q, v, tau, f_ext)
    second = inverse_dynamics_second_derivatives(robot, q, v, first.a, f_ext)
    dM, inverse = second.dadq, first.dtau
    dM_da = _times_second(dM, first.dq)  # sum_m dM_im/dq_k da_m/dq_j
    dqdq = -_times(inverse, second.dqdq + dM_da + dM_da.swapaxes(-1, -2))
    dvdq = -_times(inverse, second.dvdq + _times_second(dM, first.dv))
    return ForwardDynamicsSecondDerivatives(
        dqdq, dvdq, -_times(inverse, second.dvdv), -_times(inverse, _times_second(dM, inverse))
    )


def _times(A: np.ndarray, T: np.ndarray) -> np.ndarray:
    """sum_m A_im T_mjk."""
    n = A.shape[-1]
    return (A @ T.reshape(*T.shape[:-2], n * n)).reshape(T.shape)


def _times_second(T: np.ndarray, A: np.ndarray) -> np.ndarray:
    """sum_m T_imk A_mj at [i, j, k]."""
    return A.swapaxes(-1, -2)[..., None, :, :] @ T


# --- geometry ----------------------------------------------------------------------------------------------------


def geometric_sensitivity(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: ArrayLike | None = None
) -> GeometricSensitivity:
    """How inverse dynamics changes with the robot's geometry (Mueller 2018 section 6.2), (..., nv, nbodies, 6) each.

    Entry [j, i] is the gradient of tau_j along twists U (6,), angular part first, in body i's frame at zero:

        placement   M_i -> M_i exp(U d): the joint and its body's subtree are displaced
        screw       S_i -> Ad_{exp(U d)} S_i: the joint's axis is, the body at zero is not

    For joints with several degrees of freedom the same, the motion exp(S q) being displaced with its axes.
    f_ext (..., nbodies, 6): wrenches on the bodies, constant in their frames, which are displaced with them.
    """
    require_robot("robot", robot)
    try:
        if f_ext is None and plain(q, v, a):
            before, behind = out = np.empty((2, robot.nv, robot.nbodies, 6))
            fitting(geometry.geometric_sensitivity, robot._model).one(robot._model, q, v, a, out)
            return GeometricSensitivity(before, before - behind)
    except REFUSED:
        pass
    out = over_states(robot, geometry.geometric_sensitivity, q=q, v=v, a=a, f_ext=f_ext)
    before, behind = out[..., 0, :, :, :], out[..., 1, :, :, :]
    return GeometricSensitivity(before, before - behind)


def pose_sensitivity(robot: Mechanism, q: ArrayLike, frame: str) -> GeometricSensitivity:
    """The frame's body-fixed displacement (..., 6, nbodies, 6) per geometric change: the identification Jacobian.

    [:, i] maps twists U of body i's joint as in `geometric_sensitivity`; zero for bodies the frame does not hang on
    (Mueller 2018 section 6.2).
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


# --- linearisation -----------------------------------------------------------------------------------------------


def linearize(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: ArrayLike | None = None
) -> Linearization:
    """The equations of motion linearised about states and torques, one or many along a trajectory.

    For x = (log(q^-1 q~), v~ - v) and u = tau~ - tau of a neighbouring motion (q~, v~, tau~), to first order

        x' = [[-ad_v, 1], [da/dq, da/dv]] x + [[0], [M^-1]] u,

    ad_v joint by joint and zero where it has one degree of freedom. (q, v) need not be an equilibrium: along a motion
    with torques tau this is its variational equation. f_ext (..., nbodies, 6): wrenches on the bodies, constant in
    their frames. Raises ModelError where the mass matrix is not positive definite.
    """
    d = forward_dynamics_derivatives(robot, q, v, tau, f_ext)
    n, lead = robot.nv, d.a.shape[:-1]
    A, B = np.zeros((*lead, 2 * n, 2 * n)), np.zeros((*lead, 2 * n, n))
    if robot.nq != n:
        A[..., :n, :n] = -ConfigurationGroup(robot).ad(v)
    A[..., :n, n:] = np.eye(n)
    A[..., n:, :n], A[..., n:, n:] = d.dq, d.dv
    B[..., n:, :] = d.dtau
    return Linearization(A, B, d.a)


def inverse_dynamics_rates(robot: Mechanism, q: ArrayLike, rates: ArrayLike) -> np.ndarray:
    """tau and its time derivatives (..., m - 1, nv) from the velocity and its rates (..., m, nv), m >= 2, O(n m^2).

    rates = (v, a, a', a'', ...) gives (tau, tau', tau'', ...), in N m, N m/s, N m/s^2 for revolute joints: as many as
    the motion determines, (v, a) the inverse dynamics alone, four rates tau'' as well (Mueller 2018 section 6.3). For
    joints with several degrees of freedom v is the body-fixed velocity and a, a', ... its time derivatives. Raises
    ArgumentError like the other terms.
    """
    require_robot("robot", robot)
    if isinstance(rates, np.ndarray) and rates.ndim == 2 and len(rates) > 1:
        tau = robot._code.at(higher_derivatives.inverse_dynamics_rates, len(rates) - 1)(q, rates.reshape(-1))
        if tau is not None:
            return tau
    lead, (q,) = as_batch(robot, q=q)
    rates = checked("rates", rates, ())
    m = rates.shape[-2] if rates.ndim > 1 else 0
    if m < 2:
        raise ArgumentError(f"rates: expected v, a and more, shape (..., m, {robot.nv}) with m >= 2, got {rates.shape}")
    rates = checked("rates", rates, (m, robot.nv))
    if rates.shape[:-2] != lead:
        raise ArgumentError(
            f"rates: expected the leading axes of q, {lead}, got {rates.shape[:-2]} (nothing is broadcast)"
        )
    call = fitting(higher_derivatives.inverse_dynamics_rates, robot._model)
    tau = call.many(robot._model, q, rates.reshape(len(q), m * robot.nv), m - 1)
    return tau.reshape(*lead, m - 1, robot.nv)
