"""Tracking errors on Lie groups and the variables of Slotine and Li's controllers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import FLOAT64, checked, count, flag, shown
from geomctrl.errors import ArgumentError
from geomctrl.kernels import configuration, plant
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form, form_number
from geomctrl.terms.regressor import products
from geomctrl.tracing.numbers import scalar

from .contracts import Desired


class TrackingError(NamedTuple):
    """Errors (nv,) of a state with respect to a desired state, on the Lie group.

    Attributes
    ----------
    e : array (nv,)
        log(q_d^-1 q); q - q_d on joints with one degree of freedom [rad, m].
    w : array (nv,)
        Velocity error v - v_d.
    e_rate : array (nv,)
        Time derivative of e, dexp^-1_{-e} w; equal to w on joints with one degree of freedom.
    v_d, a_d : arrays (nv,)
        Desired velocity Ad_{exp(-e)} v_reference, expressed in the actual configuration, and its time derivative along
        the motion.
    """

    e: np.ndarray
    w: np.ndarray
    e_rate: np.ndarray
    v_d: np.ndarray
    a_d: np.ndarray


def tracking_error(robot: Robot, q: ArrayLike, v: ArrayLike, desired: Desired) -> TrackingError:
    """The TrackingError of one state (q, v) with respect to `desired`."""
    q_d, v_d, a_d = desired if type(desired) is Desired else _parts(desired)
    try:
        call = robot._code.at(configuration.tracking_error, result=TrackingError)
    except AttributeError:
        require_robot("robot", robot)
        raise
    error = call(q, v, q_d, v_d, a_d)
    if error is not None:
        return error
    lead, arrays = as_batch(robot, q=q, v=v, q_d=q_d, v_d=v_d, a_d=a_d)
    if lead:
        raise ArgumentError(f"q, v: expected one state, got leading axes {lead}")
    return call(*(a[0] for a in arrays))


class Sliding(NamedTuple):
    """Slotine and Li's variables (nv,): e = log(q_d^-1 q), v_ref = v_d - Lambda e, a_ref = v_ref', s = v - v_ref."""

    e: np.ndarray
    v_ref: np.ndarray
    a_ref: np.ndarray
    s: np.ndarray


def sliding_variables(robot: Robot, q: ArrayLike, v: ArrayLike, desired: Desired, Lambda: np.ndarray) -> Sliding:
    """The Sliding variables of one state (q, v) with respect to `desired`, with a gain Lambda (nv, nv)."""
    try:
        call = robot._code.at(configuration.sliding, result=Sliding)
    except AttributeError:
        require_robot("robot", robot)
        raise
    result = call(q, v, *desired, Lambda) if isinstance(desired, tuple) else None
    if result is not None:
        return result
    Lambda = checked("Lambda", _matrix("Lambda", Lambda, robot.nv), (robot.nv, robot.nv))
    error = tracking_error(robot, q, v, desired)
    v_ref = error.v_d - Lambda @ error.e
    return Sliding(error.e, v_ref, error.a_d - Lambda @ error.e_rate, np.asarray(v, float) - v_ref)


def sliding_energy(
    robot: Robot, true: Robot, q: ArrayLike, v: ArrayLike, desired: Desired, Lambda: np.ndarray, K: np.ndarray
) -> tuple[float, float]:
    """(1/2 s . M s, s . K s), with the mass matrix of the robot `true`: terms of Lyapunov functions in s."""
    require_robot("true", true)
    s = sliding_variables(robot, q, v, desired, Lambda).s
    loss = scalar(s @ _matrix("K", K, robot.nv) @ s)
    if type(loss) is float and not math.isfinite(loss):
        checked("K", K, (robot.nv, robot.nv))
    return scalar(true.kinetic_energy(q, s)), loss


def _matrix(name: str, x: ArrayLike, n: int) -> np.ndarray:
    """x (n, n), numeric or symbolic; errors name the argument `name`. The kernels check the numbers themselves."""
    if type(x) is np.ndarray and x.dtype is FLOAT64 and x.shape == (n, n):
        return x
    a = checked(name, x, (n, n))
    if a.ndim != 2:
        raise ArgumentError(f"{name}: expected shape {(n, n)}, got {a.shape}")
    return a


def _parts(desired: Any) -> tuple[Any, Any, Any]:
    try:
        if not isinstance(desired, tuple | list) and np.ndim(desired) != 2:
            raise TypeError
        q_d, v_d, a_d = desired
    except (TypeError, ValueError):
        raise ArgumentError(
            f"desired: of the reference: expected Desired(q, v, a) at a time, got {shown(desired)}"
        ) from None
    return q_d, v_d, a_d


class AdaptiveLaw(NamedTuple):
    """Slotine and Li's control law at one state, with the regressor Y at (q, v, a_ref, v_ref).

    tau = Y p + armature a_ref - K s (nv,), Y^T s (10 nbodies,), and the errors e and s (nv,).
    """

    tau: np.ndarray
    YTs: np.ndarray
    e: np.ndarray
    s: np.ndarray


def adaptive_law(
    robot: Robot,
    p: np.ndarray,
    q: ArrayLike,
    v: ArrayLike,
    desired: Desired,
    Lambda: np.ndarray,
    K: np.ndarray,
    form: Form = "ploen",
) -> AdaptiveLaw:
    """The AdaptiveLaw of one state (q, v) with parameters p (10 nbodies,), computed in O(n) without forming Y."""
    try:
        call = robot._code.at(plant.adaptive_law, form_number(form), result=AdaptiveLaw)
    except AttributeError:
        require_robot("robot", robot)
        raise
    result = call(p, q, v, *desired, Lambda, K) if isinstance(desired, tuple) else None
    if result is not None:
        return result
    n = robot.nv
    p = checked("p", p, (10 * robot.nbodies,))
    if p.ndim != 1:
        raise ArgumentError(f"p: expected shape ({10 * robot.nbodies},), got {p.shape}")
    Lambda, K = (checked(name, _matrix(name, x, n), (n, n)) for name, x in (("Lambda", Lambda), ("K", K)))
    x = sliding_variables(robot, q, v, desired, Lambda)
    Yp, g = products(robot, q, v, x.a_ref, x.v_ref, p, x.s, form)
    return AdaptiveLaw(Yp - K @ x.s, g, x.e, x.s)


def error_gradient(robot: Robot, e: np.ndarray, f: np.ndarray) -> np.ndarray:
    """dexp^-1_{-e} transposed times f: the joint forces of a potential whose gradient in the coordinates e is f.

    The time derivative of 1/2 e . K e is w . error_gradient(robot, e, K e). On joints with one degree of freedom the
    result is f itself.
    """
    require_robot("robot", robot)
    e, f = checked("e", e, (robot.nv,)), checked("f", f, (robot.nv,))
    for name, x in (("e", e), ("f", f)):
        if x.ndim != 1:
            raise ArgumentError(f"{name}: expected shape ({robot.nv},), got {x.shape}")
    return joint_forces(robot, e, f)


def joint_forces(robot: Robot, e: np.ndarray, f: np.ndarray) -> np.ndarray:
    """`error_gradient` without checks."""
    return f if robot.nq == robot.nv else robot._code.at(configuration.error_gradient)(e, f)


def gain_matrix(name: str, gain: ArrayLike, n: int, definite: bool = True) -> np.ndarray:
    """A symmetric positive definite (n, n) gain from a scalar, n diagonal entries or a matrix."""
    n, definite, K = count("n", n), flag("definite", definite), np.array(checked(name, gain, ()))
    if is_diagonal := K.shape in ((), (n,)):
        K = np.diag(np.broadcast_to(K, n))
    if K.shape != (n, n):
        raise ArgumentError(f"{name}: expected a number, {n} numbers or a ({n}, {n}) matrix, got shape {K.shape}")
    if not is_diagonal and np.abs(K - K.T).max(initial=0.0) > 1e-9 * np.abs(K).max(initial=0.0):
        raise ArgumentError(f"{name}: expected a finite symmetric matrix")
    diagonal = np.diagonal(K)
    is_diagonal = is_diagonal or np.count_nonzero(K) == np.count_nonzero(diagonal)
    smallest = (diagonal.min() if is_diagonal else np.linalg.eigvalsh(K)[0]) if n else 1.0
    if smallest < 0.0 or (definite and smallest <= 0.0):
        kind = "positive definite" if definite else "positive semidefinite"
        raise ArgumentError(f"{name}: expected a {kind} gain, got smallest eigenvalue {smallest:.6g}")
    return K
