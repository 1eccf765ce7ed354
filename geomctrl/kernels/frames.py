"""Poses, Jacobians and Jacobian rates of a frame in the four representations of Mueller 2018, and wrenches on it.

They are computed along the path from the frame's body to the root. `terms.kinematics` has the public functions.
"""

from .algorithms import algorithm
from .primitives import primitive
from .records import pose_at, put6, wrench_at
from .screws import (
    Ad_dual,
    Ad_inv,
    Ad_inv_dual,
    Twist,
    Wrench,
    ad,
    add3,
    compose,
    cross,
    rot,
    rotT,
    twist_add,
    zero_twist,
)
from .tree import dofs_of, joint_frame, joint_twist, parent_of, screw_of

BODY_FIXED, SPATIAL, HYBRID, MIXED = range(4)


@primitive
def pose_of(model, q, i, placement):
    """T_world_frame of a frame at `placement` (12) on body i, -1 for the world."""
    T = pose_at(placement, 0)
    while i >= 0:
        T = compose(joint_frame(model, i, q), T)
        i = parent_of(model, i)
    return T


@primitive
def frame_twist(model, q, v, i, placement):
    """The frame's body-fixed twist V = sum_k X_k S_k v_k."""
    T, V = pose_at(placement, 0), zero_twist()  # T: from the frame to body i
    while i >= 0:
        V = twist_add(V, Ad_inv(T, joint_twist(model, i, v)))
        T = compose(joint_frame(model, i, q), T)
        i = parent_of(model, i)
    return V


@primitive
def represent(form, R, r, X):
    """A body-fixed twist X of the frame (R, r) in another representation."""
    if form == BODY_FIXED:
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
    if form == BODY_FIXED:
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


@algorithm("q; i: i8, placement: f8[::1] -> T[4, 4]")
def pose(model, q, i, placement, T):
    P = pose_of(model, q, i, placement)
    for row in range(3):
        T[row, 0], T[row, 1], T[row, 2], T[row, 3] = P.R[row][0], P.R[row][1], P.R[row][2], P.p[row]
    T[3, 0], T[3, 1], T[3, 2], T[3, 3] = 0.0, 0.0, 0.0, 1.0


@algorithm("q; i: i8, placement: f8[::1], form: i8 -> J[6, nv]")
def jacobian(model, q, i, placement, form, J):
    """Column k is X_k S_k (body)."""
    J[:, :] = 0.0
    P, T = pose_of(model, q, i, placement), pose_at(placement, 0)
    while i >= 0:
        first, end = dofs_of(model, i)
        for k in range(first, end):
            put_column(J, k, represent(form, P.R, P.p, Ad_inv(T, screw_of(model, i, k - first))))
        T = compose(joint_frame(model, i, q), T)
        i = parent_of(model, i)


@algorithm("q, v; i: i8, placement: f8[::1], form: i8 -> dJ[6, nv]")
def jacobian_rate(model, q, v, i, placement, form, dJ):
    """Column k of the body Jacobian, X_k S_k, has the rate -ad_U X_k S_k, U the frame's twist relative to body k."""
    dJ[:, :] = 0.0
    P, V = pose_of(model, q, i, placement), frame_twist(model, q, v, i, placement)
    T, U = pose_at(placement, 0), zero_twist()
    while i >= 0:
        first, end = dofs_of(model, i)
        for k in range(first, end):
            X = Ad_inv(T, screw_of(model, i, k - first))
            put_column(dJ, k, represent_rate(form, P.R, P.p, V, X, ad(X, U)))
        U = twist_add(U, Ad_inv(T, joint_twist(model, i, v)))
        T = compose(joint_frame(model, i, q), T)
        i = parent_of(model, i)


# --- wrenches ----------------------------------------------------------------------------------------------------


@primitive
def to_body_fixed(form, T, F):
    """A wrench F on the frame at T, converted from another representation to body-fixed: the dual of `represent`."""
    if form == BODY_FIXED:
        return F
    if form == SPATIAL:
        return Ad_inv_dual(T, F)
    f = rotT(T.R, F.f)
    return Wrench(F.m, f) if form == MIXED else Wrench(rotT(T.R, F.m), f)


@algorithm("q, wrench[6]; i: i8, placement: f8[::1], form: i8 -> F[nb, 6]")
def body_wrenches(model, q, wrench, i, placement, form, F):
    """The frame's wrench as a wrench on body i in its own frame; the wrenches on other bodies are zero."""
    F[:, :] = 0.0
    P = pose_of(model, q, i, placement)
    put6(F[i], 0, Ad_dual(pose_at(placement, 0), to_body_fixed(form, P, wrench_at(wrench, 0))))
