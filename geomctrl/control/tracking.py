"""The tracking errors that controllers are written in, on the group, and what Slotine and Li's laws make of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.compiler.arrays import scalar
from geomctrl.errors import ArgumentError
from geomctrl.kernels import laws, tracking
from geomctrl.mechanism.states import as_batch
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form, form_number
from geomctrl.terms.regressor import products

from .contracts import Desired


class TrackingError(NamedTuple):
    """Errors of a state against a desired one, (nv,) each, on the group.

    e = log(q_d^-1 q); w = v - v_d the velocity error, v_d and a_d being the desired velocity and its rate seen from
    the actual configuration (v_d = Ad_{exp(-e)} of the reference's, a_d its time derivative along the motion);
    e_rate = dexp^-1_{-e} w. For joints with one degree of freedom: e = q - q_d, w = e_rate = v - v_d.
    """

    e: np.ndarray
    w: np.ndarray
    e_rate: np.ndarray
    v_d: np.ndarray
    a_d: np.ndarray


def tracking_error(robot: Robot, q: ArrayLike, v: ArrayLike, desired: Desired) -> TrackingError:
    """The TrackingError of the state (q, v) against `desired`; one state."""
    try:
        q_d, v_d, a_d = desired
    except (TypeError, ValueError):
        raise ArgumentError(f"reference: expected Desired(q, v, a) at a time, got {desired!r:.80}") from None
    call = robot._code.at(tracking.tracking_error, result=TrackingError)
    error = call(q, v, q_d, v_d, a_d)
    if error is not None:
        return error
    lead, arrays = as_batch(robot, q=q, v=v, q_d=q_d, v_d=v_d, a_d=a_d)
    if lead:
        raise ArgumentError(f"q, v: expected one state, got leading axes {lead}")
    return call(*(a[0] for a in arrays))


class Sliding(NamedTuple):
    """Slotine and Li's variables (nv,): e = log(q_d^-1 q), v_ref = v_d - Lambda e, its rate a_ref, s = v - v_ref."""

    e: np.ndarray
    v_ref: np.ndarray
    a_ref: np.ndarray
    s: np.ndarray


def sliding_variables(robot: Robot, q: ArrayLike, v: ArrayLike, desired: Desired, Lambda: np.ndarray) -> Sliding:
    """The Sliding variables of the state (q, v) against `desired`, Lambda (nv, nv); one state."""
    call = robot._code.at(tracking.sliding, result=Sliding)
    found = call(q, v, *desired, Lambda) if isinstance(desired, tuple) else None
    if found is not None:
        return found
    error = tracking_error(robot, q, v, desired)
    v_ref = error.v_d - Lambda @ error.e
    return Sliding(error.e, v_ref, error.a_d - Lambda @ error.e_rate, np.asarray(v, float) - v_ref)


def sliding_energy(
    robot: Robot, true: Robot, q: ArrayLike, v: ArrayLike, desired: Desired, Lambda: np.ndarray, K: np.ndarray
) -> tuple[float, float]:
    """(1/2 s . M s with the mass matrix of the robot `true`, s . K s): what Lyapunov functions in s are made of."""
    s = sliding_variables(robot, q, v, desired, Lambda).s
    return scalar(true.kinetic_energy(q, s)), scalar(s @ K @ s)


class AdaptiveLaw(NamedTuple):
    """Slotine and Li's law at one state, Y the regressor at (q, v, a_ref, v_ref): tau = Y p - K s (nv,), Y^T s
    (10 nbodies,), and the errors e and s (nv,)."""

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
    """The AdaptiveLaw of the state (q, v) against `desired` with parameters p (10 nbodies,), in O(n), without Y."""
    call = robot._code.at(laws.adaptive_law, form_number(form), result=AdaptiveLaw)
    found = call(p, q, v, *desired, Lambda, K) if isinstance(desired, tuple) else None
    if found is not None:
        return found
    x = sliding_variables(robot, q, v, desired, Lambda)
    Yp, g = products(robot, q, v, x.a_ref, x.v_ref, p, x.s, form)
    return AdaptiveLaw(Yp - K @ x.s, g, x.e, x.s)


def error_gradient(robot: Robot, e: np.ndarray, f: np.ndarray) -> np.ndarray:
    """dexp^-1_{-e} transposed times f: the joint forces of a potential with gradient f in the coordinates e.

    With it d/dt of 1/2 e . K e is w . error_gradient(robot, e, K e) on the group; for joints with one degree of
    freedom it is f itself.
    """
    if robot.nq == robot.nv:
        return f
    call = robot._code.at(tracking.error_gradient)
    found = call(e, f)
    return call(checked("e", e, (robot.nv,)), checked("f", f, (robot.nv,))) if found is None else found
