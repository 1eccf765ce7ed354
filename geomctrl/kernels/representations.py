"""Recursive Newton-Euler in spatial and in hybrid representation: Mueller 2018 section 4.

Equation numbers are Mueller's, with misprints corrected: (70d) is Vdot_{i-1} + J qdd + ad_{V_{i-1}} V_i; (75b) is
0X_i = Ad_{-r_i} J_i^s, the screw without the shift; and (76b) has the angular part (w, 0) of the twist.
"""

from .algorithms import algorithm, per_body, per_coordinate
from .newton_euler import Motion, base_motion, inertial_wrench
from .passes import Axis, get_axis, inward, outward, place, place_axes, put_axis
from .primitives import primitive
from .records import get_wrench, put_wrench, reader
from .screws import (
    Ad_dual,
    Pose,
    Twist,
    Wrench,
    ad,
    add3,
    apply_inertia,
    cross,
    inertia_to,
    pair,
    rot,
    sub3,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_sub,
    zero_twist,
)
from .tree import armature_of, dofs_of, inertia_of, last_dof_of_parent, parent_of, screw_of

get_motion = reader(Motion)
MEMORY = per_body(Motion), per_coordinate(Axis), per_body(Wrench)


@primitive
def without_external(model, i, F, f_ext, T):
    """F minus the external wrench on body i, which T maps from the body's frame."""
    return wrench_sub(F, Ad_dual(T, get_wrench(f_ext, i))) if f_ext.shape[0] > 0 else F


@primitive
def joint_rate(model, i, axes, v):
    """sum_k v_k S_k of body i's joint, from the stored screws."""
    first, end = dofs_of(model, i)
    X = zero_twist()
    for k in range(first, end):
        X = twist_add(X, twist_mul(v[k], get_axis(axes, k).S))
    return X


@primitive
def project(model, i, F, a, axes, tau):
    """tau_k = S_k . F of body i's joint, and armature times its acceleration."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        tau[k] = pair(get_axis(axes, k).S, F) + armature_of(model, i) * a[k]


# --- spatial -----------------------------------------------------------------------------------------------------


@outward(Motion)
def move_spatial(model, i, parent, q, v, a, f_ext, axes, wrenches):
    T = place(model, i, parent.f, q)  # (70a)
    place_axes(model, i, T, axes)  # (70b)
    V = twist_add(parent.V, joint_rate(model, i, axes, v))  # (70c)
    A = twist_add(twist_add(parent.A, joint_rate(model, i, axes, a)), ad(parent.V, V))  # (70d)
    M = inertia_to(T, inertia_of(model, i))  # (71a)
    put_wrench(wrenches, i, without_external(model, i, inertial_wrench(M, V, A), f_ext, T))  # (71b), own part
    return Motion(T, V, A)


@inward(Wrench)
def transmit_spatial(model, i, F, a, axes, tau):
    project(model, i, F, a, axes, tau)  # (71c)
    return F


@algorithm("q, v, a, f_ext? -> tau", MEMORY)
def spatial_inverse_dynamics(model, q, v, a, f_ext, motion, axes, wrenches, tau):
    """tau with all twists and wrenches in the spatial representation: only inertias are transported."""
    move_spatial(model, base_motion(model), motion, q, v, a, f_ext, axes, wrenches)
    transmit_spatial(model, wrenches, a, axes, tau)


# --- hybrid ------------------------------------------------------------------------------------------------------


@primitive
def turn_axes(model, i, R, axes):
    """Ad_R S_i: the joint's screws about the body's origin in inertial axes."""
    first, end = dofs_of(model, i)
    ancestor = float(last_dof_of_parent(model, i))
    for k in range(first, end):
        S = screw_of(model, i, k - first)
        put_axis(axes, k, Axis(Twist(rot(R, S.w), rot(R, S.v)), ancestor))
        ancestor = float(k)


@outward(Motion)
def move_hybrid(model, i, parent, q, v, a, f_ext, axes, wrenches):
    still = (0.0, 0.0, 0.0)
    T = place(model, i, parent.f, q)  # (75a)
    turn_axes(model, i, T.R, axes)  # (75b)
    d, w = sub3(T.p, parent.f.p), parent.V.w
    XV, XA = joint_rate(model, i, axes, v), joint_rate(model, i, axes, a)
    V = twist_add(Twist(w, add3(parent.V.v, cross(w, d))), XV)  # (75c)
    A = Twist(parent.A.w, add3(parent.A.v, cross(parent.A.w, d)))  # Ad_{r_i,i-1} Vdot_{i-1}
    A = twist_add(A, Twist(still, cross(sub3(parent.V.v, V.v), w)))  # ad_{rdot_i,i-1} V_{i-1}
    A = twist_add(A, Twist(cross(V.w, XV.w), cross(V.w, XV.v)))  # ad_{w_i} X qd
    A = twist_add(A, XA)  # (75d)
    R = Pose(T.R, still)
    M = inertia_to(R, inertia_of(model, i))  # (76a)
    P = apply_inertia(M, Twist(V.w, still))
    F = wrench_add(apply_inertia(M, A), Wrench(cross(V.w, P.m), cross(V.w, P.f)))  # (76b), own part
    put_wrench(wrenches, i, without_external(model, i, F, f_ext, R))
    return Motion(T, V, A)


@inward(Wrench)
def transmit_hybrid(model, i, F, a, motion, axes, tau):
    project(model, i, F, a, axes, tau)  # (76c)
    p = parent_of(model, i)
    d = get_motion(motion, i).f.p
    if p >= 0:
        d = sub3(d, get_motion(motion, p).f.p)
    return Wrench(add3(F.m, cross(d, F.f)), F.f)


@algorithm("q, v, a, f_ext? -> tau", MEMORY)
def hybrid_inverse_dynamics(model, q, v, a, f_ext, motion, axes, wrenches, tau):
    """tau with all twists and wrenches in the hybrid representation: transports are shifts, without a rotation."""
    move_hybrid(model, base_motion(model), motion, q, v, a, f_ext, axes, wrenches)
    transmit_hybrid(model, wrenches, a, motion, axes, tau)
