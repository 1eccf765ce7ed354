"""The contracts between a plant, a controller and a reference, and the tracking errors controllers are written in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from .arrays import checked
from .configuration import ConfigurationGroup
from .dynamics import FORMS, REFUSED, Form
from .errors import ArgumentError
from .jit import kernel, primitive
from .packed import (
    IQ,
    IV,
    KIND,
    POSE,
    WIDTH,
    good_configuration,
    good_velocity,
    joint_coordinates,
    joint_twist,
    n_bodies,
)
from .recursions import mechanical_state_one
from .regressor import products, products_one
from .robot import Robot, as_batch
from .screw import Ad_inv, Twist, ad, compose, dexp_inv_se3, get_frame, inverse, log_se3, neg3, twist_sub


class Command(NamedTuple):
    """What a controller returns: joint torques tau (nv,), the rate of its state, and numbers or arrays to record."""

    tau: np.ndarray
    z_rate: np.ndarray | None = None
    signals: Mapping[str, Any] = MappingProxyType({})


class Desired(NamedTuple):
    """A reference at one time: q (nq,), body-fixed joint velocities v (nv,) and their rates a (nv,)."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


class Lyapunov(NamedTuple):
    """A Lyapunov function's value and the derivative the controller's proof promises."""

    value: float
    rate: float


@runtime_checkable
class Reference(Protocol):
    """A desired motion: t -> Desired(q, v, a), with q' = q hat(v) and v' = a to round-off."""

    def __call__(self, t: float) -> Desired: ...


@runtime_checkable
class Controller(Protocol):
    """A feedback law. The implementer's contract:

    1. `start()` returns the controller's own state z0: an array, an element of `group`, or None if it has none.
    2. `__call__(t, q, v, z)` returns a Command and has no side effects: an integrator calls it at its stages, in
       any order, and may throw a step away.
    3. z moves as z' = z_rate on R^n; a controller whose state lives on another Lie group says which in an attribute
       `group`, and z_rate is then in its algebra.
    4. Optionally `lyapunov(t, q, v, z, plant)` returns Lyapunov(value, rate), evaluated with the true robot
       `plant.robot`, which the controller itself does not know; the monitors and `testing.assert_lyapunov` use it.
    5. Optionally `coriolis_matrix(q, v)` and `robot`: the C the law is built on and its model, so that the monitors
       can check that Mdot - 2C is skew for it. Optionally `reference`, a Reference, for tracking errors in reports.
    6. Where V vanishes: at its `reference`, or at rest at its attribute `q_d`, with the state that an optional
       `true_parameters(plant)` returns, or else the one it starts with; `testing.assert_lyapunov` looks there.
    """

    def start(self) -> np.ndarray | None: ...

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray, z: np.ndarray | None) -> Command: ...


# --- tracking errors -------------------------------------------------------------------------------------------


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


@primitive
def put_coordinates(model, link, X, out, row):
    joint_coordinates(model, link, X, out[row], 1.0)


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1])")
def tracking_error_one(model, q, v, q_d, v_d, a_d, out):
    """Into rows e, w, e_rate, v_d, a_d, which come zeroed."""
    if not (good_configuration(model, q) and good_velocity(model, v) and good_configuration(model, q_d)):
        raise ValueError
    if not (good_velocity(model, v_d) and good_velocity(model, a_d)):
        raise ValueError
    for i in range(n_bodies(model)):
        link = i * WIDTH
        k = int(model[link + IQ])
        if int(model[link + KIND]) == POSE:
            T = compose(inverse(get_frame(q_d, k)), get_frame(q, k))
            V, Vd, Ad_ = joint_twist(model, link, v), joint_twist(model, link, v_d), joint_twist(model, link, a_d)
            E, Vd = log_se3(T), Ad_inv(T, Vd)
            W = twist_sub(V, Vd)
            put_coordinates(model, link, E, out, 0)
            put_coordinates(model, link, W, out, 1)
            put_coordinates(model, link, dexp_inv_se3(Twist(neg3(E.w), neg3(E.v)), W), out, 2)
            put_coordinates(model, link, Vd, out, 3)
            put_coordinates(model, link, twist_sub(Ad_inv(T, Ad_), ad(W, Vd)), out, 4)
        else:
            j = int(model[link + IV])
            out[0, j] = q[k] - q_d[k]
            out[1, j] = out[2, j] = v[j] - v_d[j]
            out[3, j] = v_d[j]
            out[4, j] = a_d[j]


def tracking_error(robot: Robot, q: ArrayLike, v: ArrayLike, desired: Desired) -> TrackingError:
    """The TrackingError of the state (q, v) against `desired`; one state."""
    out = np.zeros((5, robot.nv))
    try:
        tracking_error_one(robot._model, q, v, *desired, out)
    except REFUSED:
        try:
            q_d, v_d, a_d = desired
        except (TypeError, ValueError):
            raise ArgumentError(f"reference: expected Desired(q, v, a) at a time, got {desired!r:.80}") from None
        lead, arrays = as_batch(robot, q=q, v=v, q_d=q_d, v_d=v_d, a_d=a_d)
        if lead:
            raise ArgumentError(f"q, v: expected one state, got leading axes {lead}") from None
        tracking_error_one(robot._model, *(a[0] for a in arrays), out)
    return TrackingError(*out)


class Sliding(NamedTuple):
    """Slotine and Li's variables (nv,): e = log(q_d^-1 q), v_ref = v_d - Lambda e, its rate a_ref, s = v - v_ref."""

    e: np.ndarray
    v_ref: np.ndarray
    a_ref: np.ndarray
    s: np.ndarray


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1])")
def sliding_one(model, q, v, q_d, v_d, a_d, Lambda, out):
    """Into rows e, v_ref, a_ref, s."""
    if Lambda.shape[0] != v.shape[0] or Lambda.shape[1] != v.shape[0]:
        raise ValueError
    n = v.shape[0]
    error = np.zeros((5, n))
    tracking_error_one(model, q, v, q_d, v_d, a_d, error)
    for i in range(n):
        out[0, i] = error[0, i]
        v_ref, a_ref = error[3, i], error[4, i]
        for j in range(n):
            v_ref -= Lambda[i, j] * error[0, j]
            a_ref -= Lambda[i, j] * error[2, j]
        out[1, i], out[2, i], out[3, i] = v_ref, a_ref, v[i] - v_ref


def sliding_variables(robot: Robot, q: ArrayLike, v: ArrayLike, desired: Desired, Lambda: np.ndarray) -> Sliding:
    """The Sliding variables of the state (q, v) against `desired`, Lambda (nv, nv); one state."""
    out = np.empty((4, robot.nv))
    try:
        sliding_one(robot._model, q, v, *desired, Lambda, out)
        return Sliding(*out)
    except REFUSED:
        error = tracking_error(robot, q, v, desired)
        v_ref = error.v_d - Lambda @ error.e
        return Sliding(error.e, v_ref, error.a_d - Lambda @ error.e_rate, np.asarray(v, float) - v_ref)


@kernel("UniTuple(f8, 2)(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1])")
def sliding_energy_one(model, true, q, v, q_d, v_d, a_d, Lambda, K):
    """(1/2 s . M s with the mass matrix of `true`, s . K s)."""
    n = v.shape[0]
    errors, state, loss = np.empty((4, n)), np.empty(8), 0.0
    sliding_one(model, q, v, q_d, v_d, a_d, Lambda, errors)
    s = errors[3]
    mechanical_state_one(true, q, s, state)
    for i in range(n):
        for j in range(n):
            loss += s[i] * K[i, j] * s[j]
    return state[0], loss


def sliding_energy(
    robot: Robot, true: Robot, q: ArrayLike, v: ArrayLike, desired: Desired, Lambda: np.ndarray, K: np.ndarray
) -> tuple[float, float]:
    """(1/2 s . M s with the mass matrix of the robot `true`, s . K s): what Lyapunov functions in s are made of."""
    try:
        return sliding_energy_one(robot._model, true._model, q, v, *desired, Lambda, K)
    except REFUSED:
        s = sliding_variables(robot, q, v, desired, Lambda).s
        return float(true.kinetic_energy(q, s)), float(s @ K @ s)


class AdaptiveLaw(NamedTuple):
    """Slotine and Li's law at one state, Y the regressor at (q, v, a_ref, v_ref): tau = Y p - K s (nv,), Y^T s
    (10 nbodies,), and the errors e and s (nv,)."""

    tau: np.ndarray
    YTs: np.ndarray
    e: np.ndarray
    s: np.ndarray


@kernel(
    "void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], i8, f8[:,::1], f8[::1])"
)
def adaptive_law_one(model, p, q, v, q_d, v_d, a_d, Lambda, K, form, out, g):
    """Into rows e, v_ref, a_ref, s, tau = Y p - K s of `out`, and g = Y^T s."""
    sliding_one(model, q, v, q_d, v_d, a_d, Lambda, out)
    s, tau = out[3], out[4]
    products_one(model, p, q, v, out[2], out[1], s, form, tau, g)
    for i in range(len(s)):
        for j in range(len(s)):
            tau[i] -= K[i, j] * s[j]


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
    out, g = np.empty((5, robot.nv)), np.empty(10 * robot.nbodies)
    try:
        adaptive_law_one(robot._model, p, q, v, *desired, Lambda, K, FORMS[form], out, g)
        return AdaptiveLaw(out[4], g, out[0], out[3])
    except REFUSED:
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
    return ConfigurationGroup(robot).dexp_inv(-e).T @ f


# --- gains -----------------------------------------------------------------------------------------------------


def gain_matrix(name: str, gain: ArrayLike, n: int, definite: bool = True) -> np.ndarray:
    """A symmetric positive definite (n, n) gain from a scalar, n diagonal entries or a matrix."""
    try:
        K = np.array(gain, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}: expected a number, {n} numbers or a ({n}, {n}) matrix, got {gain!r:.80}"
        ) from None
    if K.shape in ((), (n,)):
        K = np.diag(np.broadcast_to(K, n))
    if K.shape != (n, n):
        raise ArgumentError(f"{name}: expected a number, {n} numbers or a ({n}, {n}) matrix, got shape {K.shape}")
    if not np.isfinite(K).all() or np.abs(K - K.T).max(initial=0.0) > 1e-9 * np.abs(K).max(initial=0.0):
        raise ArgumentError(f"{name}: expected a finite symmetric matrix")
    smallest = np.linalg.eigvalsh(K)[0] if n else 1.0
    if smallest < 0.0 or (definite and smallest <= 0.0):
        kind = "positive definite" if definite else "positive semidefinite"
        raise ArgumentError(f"{name}: expected a {kind} gain, got smallest eigenvalue {smallest:.6g}")
    return K


def configuration_argument(robot: Robot, name: str, q: ArrayLike) -> np.ndarray:
    """One configuration (nq,), checked, as a new array."""
    a = checked(name, q, (robot.nq,))
    if a.ndim != 1:
        raise ArgumentError(f"{name}: expected one configuration ({robot.nq},), got shape {a.shape}")
    as_batch(robot, q=a)
    return a.copy()
