"""Poses, Jacobians and their rates, in the four representations of Mueller 2018.

With T = (R, r) the pose of a frame and V = (w, v) its body-fixed twist, the twist of the same motion is

    body     (w, v)                      in the frame's axes, about its origin
    spatial  Ad_T (w, v)                 in inertial axes, about the world's origin
    hybrid   (R w, R v) = (w^s, rdot)    in inertial axes, about the frame's origin
    mixed    (w, R v) = (w, rdot)        angular velocity body-fixed, linear velocity in inertial axes
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .errors import ArgumentError
from .jit import kernel, primitive
from .packed import (
    WIDTH,
    dofs_of,
    good_configuration,
    good_velocity,
    joint_frame,
    joint_twist,
    n_v,
    parent_of,
    screw_of,
)
from .robot import Frame as NamedFrame
from .robot import Robot, as_batch, term
from .screw import (
    Ad_inv,
    Twist,
    ad,
    add3,
    compose,
    cross,
    get_frame,
    put_frame,
    rot,
    twist_add,
    zero_twist,
)

Representation = Literal["body", "spatial", "hybrid", "mixed"]
BODY, SPATIAL, HYBRID, MIXED = range(4)
REPRESENTATIONS = {"body": BODY, "spatial": SPATIAL, "hybrid": HYBRID, "mixed": MIXED}
REFUSED = (ValueError, TypeError)


# --- kernels: walk from the frame's body to the root ------------------------------------------------------------


@primitive
def pose_of(model, q, i, placement):
    """T_world_frame of a frame at `placement` (12) on body i, -1 for the world."""
    T = get_frame(placement, 0)
    while i >= 0:
        T = compose(joint_frame(model, i * WIDTH, q), T)
        i = parent_of(model, i * WIDTH)
    return T


@primitive
def frame_twist(model, q, v, i, placement):
    """The frame's body-fixed twist V = sum_k X_k S_k v_k."""
    T, V = get_frame(placement, 0), zero_twist()  # T: from the frame to body i
    while i >= 0:
        V = twist_add(V, Ad_inv(T, joint_twist(model, i * WIDTH, v)))
        T = compose(joint_frame(model, i * WIDTH, q), T)
        i = parent_of(model, i * WIDTH)
    return V


@primitive
def represent(form, R, r, X):
    """A body-fixed twist X of the frame (R, r) in another representation."""
    if form == BODY:
        return X
    v = rot(R, X.v)
    if form == MIXED:
        return Twist(X.w, v)
    w = rot(R, X.w)
    if form == HYBRID:
        return Twist(w, v)
    return Twist(w, add3(v, cross(r, w)))


@primitive
def represent_rate(form, R, r, V, X, dX):
    """The rate of `represent(X)` while the frame moves with body twist V and X changes at the rate dX."""
    if form == BODY:
        return dX
    v = rot(R, add3(dX.v, cross(V.w, X.v)))  # d/dt (R x) = R (dx + w x x)
    if form == MIXED:
        return Twist(dX.w, v)
    w = rot(R, add3(dX.w, cross(V.w, X.w)))
    if form == HYBRID:
        return Twist(w, v)
    return Twist(w, add3(v, add3(cross(rot(R, V.v), rot(R, X.w)), cross(r, w))))


@primitive
def put_column(J, k, X):
    J[0, k], J[1, k], J[2, k] = X.w[0], X.w[1], X.w[2]
    J[3, k], J[4, k], J[5, k] = X.v[0], X.v[1], X.v[2]


@primitive
def jacobian_of(model, q, i, placement, form, J):
    """Fill J (6, nv), which comes zeroed: column k is X_k S_k (body)."""
    P = pose_of(model, q, i, placement)
    T = get_frame(placement, 0)
    while i >= 0:
        link = i * WIDTH
        first, end = dofs_of(model, link)
        for k in range(first, end):
            put_column(J, k, represent(form, P.R, P.p, Ad_inv(T, screw_of(model, link, k - first))))
        T = compose(joint_frame(model, link, q), T)
        i = parent_of(model, link)


@primitive
def jacobian_rate_of(model, q, v, i, placement, form, dJ):
    """Fill dJ (6, nv), which comes zeroed.

    Column k of the body Jacobian, X_k S_k, changes at the rate -ad_U X_k S_k, U the frame's twist relative to body k.
    """
    P, V = pose_of(model, q, i, placement), frame_twist(model, q, v, i, placement)
    T, U = get_frame(placement, 0), zero_twist()
    while i >= 0:
        link = i * WIDTH
        first, end = dofs_of(model, link)
        for k in range(first, end):
            X = Ad_inv(T, screw_of(model, link, k - first))
            dX = ad(X, U)
            put_column(dJ, k, represent_rate(form, P.R, P.p, V, X, dX))
        U = twist_add(U, Ad_inv(T, joint_twist(model, link, v)))
        T = compose(joint_frame(model, link, q), T)
        i = parent_of(model, link)


@kernel("void(f8[::1], f8[::1], i8, f8[::1], f8[:,::1])")
def pose_one(model, q, i, placement, out):
    if not good_configuration(model, q):
        raise ValueError
    put_frame(out.ravel(), 0, pose_of(model, q, i, placement))
    out[3, 0], out[3, 1], out[3, 2], out[3, 3] = 0.0, 0.0, 0.0, 1.0


@kernel("f8[:,:,::1](f8[::1], f8[:,::1], i8, f8[::1])")
def pose_many(model, q, i, placement):
    out = np.zeros((q.shape[0], 4, 4))
    for b in range(q.shape[0]):
        put_frame(out[b].ravel(), 0, pose_of(model, q[b], i, placement))
        out[b, 3, 3] = 1.0
    return out


@kernel("f8[:,::1](f8[::1], f8[::1], i8, f8[::1], i8)")
def jacobian_one(model, q, i, placement, form):
    if not good_configuration(model, q):
        raise ValueError
    J = np.zeros((6, n_v(model)))
    jacobian_of(model, q, i, placement, form, J)
    return J


@kernel("f8[:,:,::1](f8[::1], f8[:,::1], i8, f8[::1], i8)")
def jacobian_many(model, q, i, placement, form):
    J = np.zeros((q.shape[0], 6, n_v(model)))
    for b in range(q.shape[0]):
        jacobian_of(model, q[b], i, placement, form, J[b])
    return J


@kernel("f8[:,::1](f8[::1], f8[::1], f8[::1], i8, f8[::1], i8)")
def jacobian_rate_one(model, q, v, i, placement, form):
    if not (good_configuration(model, q) and good_velocity(model, v)):
        raise ValueError
    dJ = np.zeros((6, n_v(model)))
    jacobian_rate_of(model, q, v, i, placement, form, dJ)
    return dJ


@kernel("f8[:,:,::1](f8[::1], f8[:,::1], f8[:,::1], i8, f8[::1], i8)")
def jacobian_rate_many(model, q, v, i, placement, form):
    dJ = np.zeros((q.shape[0], 6, n_v(model)))
    for b in range(q.shape[0]):
        jacobian_rate_of(model, q[b], v[b], i, placement, form, dJ[b])
    return dJ


# --- public ----------------------------------------------------------------------------------------------------


def _representation(name: str) -> int:
    try:
        return REPRESENTATIONS[name]
    except (KeyError, TypeError):
        raise ArgumentError(
            f"representation: expected one of {', '.join(map(repr, REPRESENTATIONS))}, got {name!r}"
        ) from None


def poses(robot: Robot, q: np.ndarray, frame: str) -> np.ndarray:
    """`pose` (batch, 4, 4) for configurations q (batch, nq) that are checked already."""
    return pose_many(robot._model, q, *_where(robot, frame))


def _where(robot: Robot, frame: str) -> tuple[int, np.ndarray]:
    at: NamedFrame = robot.frame(frame)
    return at.body, at.placement[:3].flatten()


@term
def pose(robot: Robot, q: ArrayLike, frame: str) -> np.ndarray:
    """T_world_frame (..., 4, 4) of the named frame: a body, a merged link, an added frame (Mueller 2018 (1)).

    Raises NameNotFoundError for an unknown frame.
    """
    body, placement = _where(robot, frame)
    try:
        T = np.empty((4, 4))
        pose_one(robot._model, q, body, placement, T)
        return T
    except REFUSED:
        lead, (q,) = as_batch(robot, q=q)
        return pose_many(robot._model, q, body, placement).reshape(*lead, 4, 4)


@term
def jacobian(robot: Robot, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Jac (..., 6, nv): the frame's twist is Jac v, angular part first (Mueller 2018 (5), (14), (18)).

    `representation`: "body", "spatial", "hybrid" or "mixed", see the module's docstring.
    """
    body, placement = _where(robot, frame)
    form = _representation(representation)
    try:
        return jacobian_one(robot._model, q, body, placement, form)
    except REFUSED:
        lead, (q,) = as_batch(robot, q=q)
        return jacobian_many(robot._model, q, body, placement, form).reshape(*lead, 6, robot.nv)


@term
def jacobian_rate(
    robot: Robot, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """Jacdot (..., 6, nv): the frame's acceleration is Jac a + Jacdot v, the time derivative of its twist in the same
    representation (Mueller 2018 (8), (16), (27), FORMULAS section 4)."""
    body, placement = _where(robot, frame)
    form = _representation(representation)
    try:
        return jacobian_rate_one(robot._model, q, v, body, placement, form)
    except REFUSED:
        lead, (q, v) = as_batch(robot, q=q, v=v)
        return jacobian_rate_many(robot._model, q, v, body, placement, form).reshape(*lead, 6, robot.nv)
