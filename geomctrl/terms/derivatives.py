"""First and second derivatives of the equations of motion in closed form, by recursion, and the linearisation.

A derivative with respect to q is taken along the group, left-trivialised: column k is the derivative of f(q exp(S_k d))
at d = 0, with S_k the screw of velocity coordinate k. For a joint with one degree of freedom this is df/dq_k. All
derivatives therefore have nv columns, whatever nq is, and are consistent with `Robot.integrate` and `Robot.difference`.
Second derivatives are derivatives of first ones, in this order; within one joint with several degrees of freedom the
two orders differ by a bracket of screws.

All functions accept leading batch axes and raise ArgumentError like the other terms.

Sources: Mueller 2018 section 6; Singh, Russo and Wensing 2022. The modules `derivatives` and `higher_derivatives` of
`kernels` contain the recursions. For derivatives with respect to inertial parameters see `terms.regressor`; for time
derivatives of any order see `inverse_dynamics_rates` (Mueller 2018 section 6.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.compiler.catalogue import ForwardDynamicsDerivatives, InverseDynamicsDerivatives
from geomctrl.errors import ArgumentError
from geomctrl.kernels import derivatives, higher_derivatives
from geomctrl.kernels.couplings import fitting
from geomctrl.mechanism.configuration import ConfigurationGroup
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.other_names import unknown_names

from .batches import ONE, REFUSED, check_threads, over_states, plain
from .dynamics import coriolis_transpose_product

__all__ = [
    "coriolis_transpose_product",
    "forward_dynamics_second_derivatives",
    "inverse_dynamics_rates",
    "inverse_dynamics_second_derivatives",
    "linearize",
    "mass_matrix_derivative",
]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)


class InverseDynamicsSecondDerivatives(NamedTuple):
    """Second derivatives of tau, shape (..., nv, nv, nv) each.

    Entry [i, j, k] is the derivative of tau_i with respect to component j of the first variable and component k of the
    second. dadq is dM_ij/dq_k. All others vanish or are these with j and k exchanged.
    """

    dqdq: np.ndarray
    dvdq: np.ndarray
    dvdv: np.ndarray
    dadq: np.ndarray


class ForwardDynamicsSecondDerivatives(NamedTuple):
    """Second derivatives of the acceleration a, shape (..., nv, nv, nv) each.

    Entry [i, j, k] is the derivative of a_i with respect to component j of the first variable and component k of the
    second. dtaudq is d(M^-1)_ij/dq_k. All others vanish or are these with j and k exchanged.
    """

    dqdq: np.ndarray
    dvdq: np.ndarray
    dvdv: np.ndarray
    dtaudq: np.ndarray


class Linearization(NamedTuple):
    """x' = A x + B u about a motion: A (..., 2 nv, 2 nv), B (..., 2 nv, nv), and the acceleration a (..., nv) of the
    motion.
    """

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
    """Return the derivatives of `inverse_dynamics` with respect to q, v and a, in O(n depth).

    Parameters
    ----------
    q, v, a : array_like, shape (..., nq), (..., nv), (..., nv)
        Configuration [rad, m], velocity [rad/s, m/s] and acceleration [rad/s^2, m/s^2].
    f_ext : array_like, shape (..., nbodies, 6), optional
        External wrenches on the bodies [N m, N], constant in body frames. Default: none.
    threads : int
        Number of threads for a large batch, default 1.

    Returns
    -------
    InverseDynamicsDerivatives
        Named tuple of dq, dv, da, shape (..., nv, nv) each; da is the mass matrix.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in q is not rigid.

    Notes
    -----
    A derivative with respect to q is df(q exp(S_k d))/dd for each velocity coordinate k, see
    `geomctrl.terms.derivatives`. Mueller 2018 section 6; Singh, Russo and Wensing 2022.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> bool(np.allclose(robot.inverse_dynamics_derivatives(q, v, np.zeros(2)).da, robot.mass_matrix(q)))
    True
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
    """Return the derivatives of `forward_dynamics` with respect to q, v and tau, and its value.

    Parameters
    ----------
    q, v, tau : array_like, shape (..., nq), (..., nv), (..., nv)
        Configuration [rad, m], velocity [rad/s, m/s] and joint torques [N m, N].
    f_ext : array_like, shape (..., nbodies, 6), optional
        External wrenches on the bodies [N m, N], constant in body frames. Default: none.
    threads : int
        Number of threads for a large batch, default 1.

    Returns
    -------
    ForwardDynamicsDerivatives
        Named tuple of dq, dv, dtau, shape (..., nv, nv) each, and the acceleration a, shape (..., nv).

    Raises
    ------
    ModelError
        If the mass matrix is not positive definite.

    Notes
    -----
    da/dq = -M^-1 dtau/dq and da/dv = -M^-1 dtau/dv, with the derivatives of `inverse_dynamics_derivatives`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> d = robot.forward_dynamics_derivatives(q, v, np.zeros(2))
    >>> bool(np.allclose(d.a, robot.forward_dynamics(q, v, np.zeros(2))))
    True
    >>> bool(np.allclose(d.dtau, np.linalg.inv(robot.mass_matrix(q))))
    True
    """
    if threads is not ONE:
        check_threads(threads)
    result = robot._code.forward_dynamics_derivatives(q, v, tau) if f_ext is None else None
    if result is not None:
        return result
    algorithm = derivatives.forward_dynamics_derivatives
    return ForwardDynamicsDerivatives(*over_states(robot, algorithm, threads=threads, q=q, v=v, tau=tau, f_ext=f_ext))


# --- the mass matrix ---------------------------------------------------------------------------------------------


def mass_matrix_derivative(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the derivatives of the mass matrix with respect to the configuration.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., nv, nv, nv)
        dM_ij/dq_k at [i, j, k].

    Notes
    -----
    The cost is O(n depth^2). The derivative along one direction x, sum_k dM_ij/dq_k x_k, is `Robot.mass_matrix_rate(q,
    x)` in O(n depth).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, x = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> np.allclose(gc.derivatives.mass_matrix_derivative(robot, q) @ x, robot.mass_matrix_rate(q, x))
    True
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


# --- second derivatives ------------------------------------------------------------------------------------------


def inverse_dynamics_second_derivatives(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, f_ext: ArrayLike | None = None
) -> InverseDynamicsSecondDerivatives:
    """Return all second derivatives of inverse dynamics.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v, a : array_like, shape (..., nv)
        Velocity [rad/s, m/s] and acceleration [rad/s^2, m/s^2].
    f_ext : array_like, shape (..., nbodies, 6), optional
        Wrenches on the bodies, constant in the frames of the bodies [N m, N].

    Returns
    -------
    InverseDynamicsSecondDerivatives
        Named tuple of tensors (..., nv, nv, nv). The Hessian of a weighted sum l . tau is
        np.einsum("...i,...ijk->...jk", l, tensor).

    Notes
    -----
    The cost is O(n^2 depth).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> gc.derivatives.inverse_dynamics_second_derivatives(robot, q, v, np.zeros(2)).dqdq.shape
    (2, 2, 2)
    """
    require_robot("robot", robot)
    n = robot.nv
    out = over_states(robot, higher_derivatives.second_derivatives, q=q, v=v, a=a, f_ext=f_ext)
    out = np.moveaxis(out, -3, -1)  # the variable of the second derivative is the last axis
    dqdq, dvdq, dadq, dvdv = (out[..., k * n : (k + 1) * n, :, :] for k in range(4))
    return InverseDynamicsSecondDerivatives(dqdq, dvdq, dvdv, dadq)


def forward_dynamics_second_derivatives(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: ArrayLike | None = None
) -> ForwardDynamicsSecondDerivatives:
    """Return all second derivatives of forward dynamics.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v, tau : array_like, shape (..., nv)
        Velocity [rad/s, m/s] and joint torques [N m, N].
    f_ext : array_like, shape (..., nbodies, 6), optional
        Wrenches on the bodies, constant in the frames of the bodies [N m, N].

    Returns
    -------
    ForwardDynamicsSecondDerivatives
        Named tuple of tensors (..., nv, nv, nv).

    Raises
    ------
    ModelError
        If the mass matrix is not positive definite.

    Notes
    -----
    They follow from differentiating ID(q, v, a(q, v, tau)) = tau twice.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> gc.derivatives.forward_dynamics_second_derivatives(robot, q, v, np.zeros(2)).dqdq.shape
    (2, 2, 2)
    """
    require_robot("robot", robot)
    first = forward_dynamics_derivatives(robot, q, v, tau, f_ext)
    second = inverse_dynamics_second_derivatives(robot, q, v, first.a, f_ext)
    dM, inverse = second.dadq, first.dtau
    dM_da = times_second(dM, first.dq)  # sum_m dM_im/dq_k da_m/dq_j
    dqdq = -times(inverse, second.dqdq + dM_da + dM_da.swapaxes(-1, -2))
    dvdq = -times(inverse, second.dvdq + times_second(dM, first.dv))
    return ForwardDynamicsSecondDerivatives(
        dqdq, dvdq, -times(inverse, second.dvdv), -times(inverse, times_second(dM, inverse))
    )


def times(A: np.ndarray, T: np.ndarray) -> np.ndarray:
    """sum_m A_im T_mjk."""
    n = A.shape[-1]
    return (A @ T.reshape(*T.shape[:-2], n * n)).reshape(T.shape)


def times_second(T: np.ndarray, A: np.ndarray) -> np.ndarray:
    """sum_m T_imk A_mj at [i, j, k]."""
    return A.swapaxes(-1, -2)[..., None, :, :] @ T


# --- linearisation -----------------------------------------------------------------------------------------------


def linearize(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: ArrayLike | None = None
) -> Linearization:
    """Linearise the equations of motion about states and torques, one or many along a trajectory.

    Parameters
    ----------
    q, v, tau : array_like, shape (..., nq), (..., nv), (..., nv)
        Configuration [rad, m], velocity [rad/s, m/s] and joint torques [N m, N].
    f_ext : array_like, shape (..., nbodies, 6), optional
        External wrenches on the bodies [N m, N], constant in body frames. Default: none.

    Returns
    -------
    Linearization
        Named tuple of A (..., 2 nv, 2 nv), B (..., 2 nv, nv) and the acceleration a (..., nv).

    Raises
    ------
    ModelError
        If the mass matrix is not positive definite.

    Notes
    -----
    With x = (log(q^-1 q~), v~ - v) and u = tau~ - tau for a neighbouring motion (q~, v~, tau~), to first order

        x' = [[-ad_v, 1], [da/dq, da/dv]] x + [[0], [M^-1]] u,

    where ad_v is block diagonal over the joints and zero for those with one degree of freedom. (q, v) need not be an
    equilibrium: along a motion with torques tau this is the variational equation.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.cart_pole()
    >>> A = gc.derivatives.linearize(robot, np.zeros(2), np.zeros(2), np.zeros(2)).A
    >>> bool(np.linalg.eigvals(A).real.max() > 0.0)  # the upright pole is unstable
    True
    """
    require_robot("robot", robot)
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
    """Return the joint torques and their time derivatives, in O(m^2 n).

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    rates : array_like, shape (..., m, nv)
        (v, a, a', ...), m >= 2. For joints with several degrees of freedom v is the body-fixed velocity and a, a', ...
        are its time derivatives.

    Returns
    -------
    ndarray, shape (..., m - 1, nv)
        (tau, tau', ...) [N m, N m/s, ...]: as many as the motion determines. (v, a) gives tau; four rates give tau''
        too.

    Notes
    -----
    Mueller 2018 section 6.3, by power series in inertial axes.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> tau = gc.derivatives.inverse_dynamics_rates(robot, q, [v, np.zeros(2), np.zeros(2)])  # tau and tau'
    >>> bool(np.allclose(tau[0], robot.inverse_dynamics(q, v, np.zeros(2))))
    True
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
