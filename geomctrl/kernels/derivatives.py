"""Derivatives of inverse and forward dynamics with respect to q, v and the acceleration or torque.

All quantities are in inertial axes about the first body's origin. There a motion c_k -> c_k exp(S_k d) of a joint moves
its whole subtree with the screw S_k, without transports. Let V_p, A_p be the twist and acceleration of the parent of
joint k (gravity is the base's acceleration -g). Then d changes a body of the subtree by

    beta_k = ad_{V_p} S_k   of its twist,      alpha_k = ad_{A_p} S_k + ad_{V_p} beta_k   of its acceleration,

and v_k changes the acceleration by alphav_k = ad_{V_k} S_k + beta_k. With J_k, D_k, F_k the sums over the subtree of
J, D = Jdot + bar(J V) and F, bar(P) W = -ad_W^T P, for j on the path from k to the root (Singh, Russo and
Wensing 2022, for Mueller 2018 section 6)

    dtau_k/dq_j = S_k . (J_k alpha_j + D_k beta_j),    dtau_j/dq_k = S_j . (J_k alpha_k + D_k beta_k - ad_{S_k}^T F_k),
    dtau_k/dv_j = S_k . (J_k alphav_j + D_k S_j),      dtau_j/dv_k = S_j . (J_k alphav_k + D_k S_k),

without the first line's last term where j and k belong to the same joint. D = 2 B with the Christoffel-consistent
B = Cbar - J ad_V of `composite_bodies.MovingInertia`.

`move` and `derivative_rows` accept records of real or complex numbers; `higher_derivatives.second_derivatives` uses
them with complex ones.
"""

from typing import NamedTuple

import numpy as np

from .algorithms import algorithm, numbers, per_body, per_coordinate
from .articulated_bodies import Eliminated, Handle, MovingBody, forward_dynamics_articulated, unit_twist
from .composite_bodies import composite_inertias, coriolis_composite, place_inertias
from .lanes import LANES
from .mass_matrix_inverse import invert
from .newton_euler import CHRISTOFFEL, inertial_wrench
from .passes import Axis, get_axis, inertial_axes, inward, outward, place, place_axes
from .primitives import primitive
from .records import get_inertia, get_wrench, pose_at, reader, width, writer
from .screws import (
    Ad,
    Ad_dual,
    Inertia,
    Matrix,
    Pose,
    Twist,
    Vector,
    Wrench,
    ad,
    ad_dual,
    add3,
    add33,
    apply_inertia,
    compose,
    cross,
    dot,
    inertia_to,
    pair,
    rot,
    rotT,
    sub3,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_sub,
    zero_twist,
    zero_wrench,
)
from .tree import (
    ROTATING,
    WIDTH,
    A,
    C,
    add_armature,
    base_acceleration,
    dofs_of,
    inertia_of,
    kind_of,
    last_dof_of_parent,
    n_bodies,
    parent_of,
)


class Body(NamedTuple):
    """A body's inertia and the external wrench on it, in inertial axes."""

    J: Inertia
    F: Wrench


class SpatialMotion(NamedTuple):
    """A body's twist and acceleration in inertial axes, with gravity as the base's acceleration."""

    V: Twist
    A: Twist


class Variation(NamedTuple):
    """The changes that a velocity coordinate causes in its subtree: alpha, alphav, and beta's angular part."""

    alpha: Twist
    alphav: Twist
    beta: Vector


class Subtree(NamedTuple):
    """A subtree's inertia J, D = [[D, 0], [-[p], 0]] with p twice its linear momentum, and its wrench F."""

    J: Inertia
    D: Matrix
    p: Vector
    F: Wrench


get_motion = reader(SpatialMotion)
get_body, put_body = reader(Body), writer(Body)
get_variation, put_variation = reader(Variation), writer(Variation)
get_subtree, put_subtree = reader(Subtree), writer(Subtree)


# --- inverse dynamics --------------------------------------------------------------------------------------------


@outward(Pose)
def place_bodies(model, i, parent, q, f_ext, axes, bodies):
    """Poses, screws, inertias and external wrenches, all constant in the frames of their bodies."""
    T = place(model, i, parent, q)
    place_axes(model, i, T, axes)
    F = zero_wrench()
    if f_ext.shape[0] > 0:
        F = Ad_dual(T, get_wrench(f_ext, i))
    put_body(bodies, i, Body(inertia_to(T, inertia_of(model, i)), F))
    return T


@primitive
def base_at_rest(model):
    return SpatialMotion(zero_twist(), base_acceleration(model))


@outward(SpatialMotion)
def move(model, i, parent, v, a, axes, bodies, variations, subtrees):
    """Store the `Variation` of every coordinate of body i's joint and the body's contribution to its `Subtree`."""
    V, A = parent
    first, end = dofs_of(model, i)
    for k in range(first, end):
        S = get_axis(axes, k).S
        beta = ad(parent.V, S)
        alpha = twist_add(ad(parent.A, S), ad(parent.V, beta))
        put_variation(variations, k, Variation(alpha, beta, beta.w))
        V = twist_add(V, twist_mul(v[k], S))
        A = twist_add(A, twist_add(twist_mul(a[k], S), twist_mul(v[k], beta)))
    for k in range(first, end):
        x = get_variation(variations, k)
        alphav = twist_add(x.alphav, ad(V, get_axis(axes, k).S))
        put_variation(variations, k, Variation(x.alpha, alphav, x.beta))
    J, F = get_body(bodies, i)
    D, p = double_rate(J, V)
    put_subtree(subtrees, i, Subtree(J, D, p, wrench_sub(inertial_wrench(J, V, A), F)))
    return SpatialMotion(V, A)


@primitive
def double_rate(J, V):
    """D = Jdot + bar(J V) of one body."""
    B, p = coriolis_composite(J, V, CHRISTOFFEL, 0.0)
    return add33(B, B), add3(p, p)


@primitive
def change_of_wrench(x, alpha, beta):
    """J alpha + D beta of a subtree, which needs the angular part of beta only."""
    F = apply_inertia(x.J, alpha)
    return Wrench(add3(F.m, rot(x.D, beta)), sub3(F.f, cross(x.p, beta)))


@primitive
def pull_back(x, S):
    """D^T S of a subtree, which has an angular part only."""
    return add3(rotT(x.D, S.w), cross(x.p, S.v))


@inward(Subtree)
def derivative_rows(model, i, x, axes, variations, part, dq, dv, da):
    """dtau/dq, dtau/dv and M between a subtree's joint and those on its path to the root: the four formulas above.

    `part` selects the stored part of a number: a real number itself, the tangent of a complex one.
    """
    parent_dof = last_dof_of_parent(model, i)
    first, end = dofs_of(model, i)
    for k in range(first, end):
        S, own = get_axis(axes, k).S, get_variation(variations, k)
        JS, DTS = apply_inertia(x.J, S), pull_back(x, S)
        Q, U = change_of_wrench(x, own.alpha, own.beta), change_of_wrench(x, own.alphav, S.w)
        j = k
        while j >= 0:
            if j == parent_dof:  # j is beyond the joint of k
                Q = wrench_add(Q, ad_dual(S, x.F))
            axis, y = get_axis(axes, j), get_variation(variations, j)
            dq[j, k] = part(pair(axis.S, Q))
            dq[k, j] = part(pair(y.alpha, JS) + dot(y.beta, DTS))
            dv[j, k] = part(pair(axis.S, U))
            dv[k, j] = part(pair(y.alphav, JS) + dot(axis.S.w, DTS))
            da[k, j] = da[j, k] = part(pair(axis.S, JS))
            j = int(axis.ancestor.real)
    return x


@primitive
def all_of(x):
    return x


PLACED_MEMORY = per_body(Pose), per_coordinate(Axis), per_body(Body)
MOVING_MEMORY = per_body(SpatialMotion), per_coordinate(Variation), per_body(Subtree)
MEMORY = *PLACED_MEMORY, *MOVING_MEMORY


@algorithm("q, v, a, f_ext? -> dq[nv, nv], dv[nv, nv], da[nv, nv]", MEMORY)
def inverse_dynamics_derivatives(
    model, q, v, a, f_ext, frames, axes, bodies, motions, variations, subtrees, dq, dv, da
):
    """dtau/dq, dtau/dv and dtau/da = M."""
    for out in (dq, dv, da):
        out[:, :] = 0.0
    place_bodies(model, inertial_axes(model, q), frames, q, f_ext, axes, bodies)
    move(model, base_at_rest(model), motions, v, a, axes, bodies, variations, subtrees)
    derivative_rows(model, subtrees, axes, variations, all_of, dq, dv, da)
    add_armature(model, da)


# --- forward dynamics --------------------------------------------------------------------------------------------

ARTICULATED = per_body(MovingBody), per_coordinate(Eliminated), per_body(Handle), per_body(Twist)


@algorithm(
    "q, v, tau, f_ext? -> dq[nv, nv], dv[nv, nv], dtau[nv, nv], a",
    (*ARTICULATED, *MEMORY, numbers(f"{7 * LANES} * nv"), *(numbers("nv * nv") for _ in range(3))),
    may_fail=True,
)
def forward_dynamics_derivatives(
    model, q, v, tau, f_ext,
    moving, eliminated, handles, accelerations,
    frames, axes, bodies, motions, variations, subtrees,
    W, memory_q, memory_v, memory_a,
    dq, dv, dtau, a,
):  # fmt: skip
    """da/dq = -M^-1 dtau/dq, da/dv = -M^-1 dtau/dv, M^-1 and a. False unless M > 0."""
    n = v.shape[0]
    q_rows, v_rows, M = memory_q.reshape((n, n)), memory_v.reshape((n, n)), memory_a.reshape((n, n))
    good = forward_dynamics_articulated(model, q, v, tau, f_ext, moving, eliminated, handles, accelerations, a)
    invert(eliminated, W, dtau)
    inverse_dynamics_derivatives(
        model, q, v, a, f_ext, frames, axes, bodies, motions, variations, subtrees, q_rows, v_rows, M
    )
    np.dot(dtau, q_rows, dq)
    np.dot(dtau, v_rows, dv)
    for i in range(n):
        for j in range(n):
            dq[i, j], dv[i, j] = -dq[i, j], -dv[i, j]
    return good


# --- the mass matrix ---------------------------------------------------------------------------------------------


@algorithm("q -> out[nv, nv, nv]", (per_body(Pose), per_coordinate(Axis), per_body(Inertia)))
def mass_matrix_derivative(model, q, frames, axes, inertias, out):
    """out[i, j, k] = dM_ij/dq_k, O(n depth^2).

    M_rc = S_c . J_r S_r for c on the path from r to the root. A motion of joint k has no effect on it if k moves both
    r and c; it moves S_r and J_r if k is between them, and the part J_k of J_r if k is in the subtree of r.
    """
    out[:] = 0.0
    place_inertias(model, inertial_axes(model, q), frames, q, axes, inertias)
    composite_inertias(model, inertias)
    for i in range(n_bodies(model)):
        J = get_inertia(inertias, i)
        first, end = dofs_of(model, i)
        for r in range(first, end):
            JS, b = apply_inertia(J, get_axis(axes, r).S), i
            while b >= 0:
                begin, stop = dofs_of(model, b)
                for k in range(begin, stop):
                    put_rates(axes, r, k, last_dof_of_parent(model, b), ad_dual(get_axis(axes, k).S, JS), out)
                b = parent_of(model, b)
        for k in range(first, end):
            S, b = get_axis(axes, k).S, parent_of(model, i)
            while b >= 0:
                begin, stop = dofs_of(model, b)
                for r in range(begin, stop):
                    X = get_axis(axes, r).S
                    F = wrench_sub(ad_dual(S, apply_inertia(J, X)), apply_inertia(J, ad(S, X)))
                    put_rates(axes, r, k, r, F, out)
                b = parent_of(model, b)


@primitive
def put_rates(axes, r, k, c, F, out):
    """dM_rc/dq_k = S_c . F for c and all coordinates on its path to the root."""
    while c >= 0:
        axis = get_axis(axes, c)
        out[r, c, k] = out[c, r, k] = pair(axis.S, F)
        c = int(axis.ancestor)


# --- geometric sensitivity -------------------------------------------------------------------------------------------
#
# Derivatives of inverse dynamics with respect to the robot's geometry: Mueller 2018 section 6.2.
#
# A change M_i exp(U d) of a placement equals the motion of a locked, massless joint with screw U before joint i;
# exp(S q) exp(U d) equals that of a joint behind it. The formulas at the top hold with the screws of these joints.


BEFORE, BEHIND = 0, 1


class LockedJoint(NamedTuple):
    """The changes that a motion of a locked joint would cause: alpha, and beta's angular part."""

    alpha: Twist
    beta: Vector


get_frame = reader(Pose)
get_locked, put_locked = reader(LockedJoint), writer(LockedJoint)


@primitive
def placement_of(model, i):
    """M_i, the joint's frame at coordinate zero or before its pose."""
    a, c = pose_at(model, i * WIDTH + A), pose_at(model, i * WIDTH + C)
    if kind_of(model, i) == ROTATING:
        return Pose(add33(a.R, c.R), add3(a.p, c.p))
    return a


@primitive
def locked_number(i, side, e):
    """The number of the locked joint along twist e of six, before or behind joint i."""
    return 12 * i + 6 * side + e


@inward(Subtree)
def sum_subtrees(model, i, x):
    return x


@primitive
def inner_rows(model, i, side, T, motion, x, axes, locked, out):
    """Torques of the joints from the root to a change at T along six twists; `motion` is that of the body there."""
    for e in range(6):
        U = Ad(T, unit_twist(e))
        beta = ad(motion.V, U)
        alpha = twist_add(ad(motion.A, U), ad(motion.V, beta))
        put_locked(locked, locked_number(i, side, e), LockedJoint(alpha, beta.w))
        Q = wrench_add(change_of_wrench(x, alpha, beta.w), ad_dual(U, x.F))
        k = last_dof_of_parent(model, i) if side == BEFORE else dofs_of(model, i)[1] - 1
        while k >= 0:
            out[side, k, i, e] = pair(get_axis(axes, k).S, Q)
            k = int(get_axis(axes, k).ancestor)


@primitive
def outer_rows(model, i, x, axes, locked, out):
    """Torques of body i's joint, for changes before it and on its path to the root."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        S = get_axis(axes, k).S
        JS, DTS = apply_inertia(x.J, S), pull_back(x, S)
        b, sides = i, 1
        while b >= 0:
            for side in range(sides):
                for e in range(6):
                    y = get_locked(locked, locked_number(b, side, e))
                    out[side, k, b, e] = pair(y.alpha, JS) + dot(y.beta, DTS)
            b, sides = parent_of(model, b), 2


@algorithm("q, v, a, f_ext? -> out[2, nv, nb, 6]", (*MEMORY, numbers(f"{12 * width(LockedJoint)} * nb")))
def geometric_sensitivity(
    model, q, v, a, f_ext, frames, axes, bodies, motions, variations, subtrees, locked, out
):  # fmt: skip
    """dtau for twists before (out[0]) and behind (out[1]) each joint."""
    out[:] = 0.0
    root, base = inertial_axes(model, q), base_at_rest(model)
    place_bodies(model, root, frames, q, f_ext, axes, bodies)
    move(model, base, motions, v, a, axes, bodies, variations, subtrees)
    sum_subtrees(model, subtrees)
    for i in range(n_bodies(model)):
        p, x = parent_of(model, i), get_subtree(subtrees, i)
        T, motion = (root, base) if p < 0 else (get_frame(frames, p), get_motion(motions, p))
        inner_rows(model, i, BEFORE, compose(T, placement_of(model, i)), motion, x, axes, locked, out)
        inner_rows(model, i, BEHIND, get_frame(frames, i), get_motion(motions, i), x, axes, locked, out)
    for i in range(n_bodies(model)):
        outer_rows(model, i, get_subtree(subtrees, i), axes, locked, out)
