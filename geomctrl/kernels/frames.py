"""Poses, Jacobians and their rates, in the four representations of Mueller 2018.

With T = (R, r) the pose of a frame and V = (w, v) its body-fixed twist, the twist of the same motion is

    body     (w, v)                      in the frame's axes, about its origin
    spatial  Ad_T (w, v)                 in inertial axes, about the world's origin
    hybrid   (R w, R v) = (w^s, rdot)    in inertial axes, about the frame's origin
    mixed    (w, R v) = (w, rdot)        angular velocity body-fixed, linear velocity in inertial axes
"""

from __future__ import annotations

import numpy as np

from .jit import kernel, primitive
from .records import get_frame, put_frame
from .screws import Ad_inv, Twist, ad, compose, twist_add, zero_twist
from .tree import WIDTH, dofs_of, good_configuration, good_velocity, joint_frame, joint_twist, n_v, parent_of, screw_of
from .vectors import add3, cross, rot

BODY, SPATIAL, HYBRID, MIXED = range(4)


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
