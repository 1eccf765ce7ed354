"""The four representations of twists, and dynamics written in each of them: Mueller 2018 sections 3, 4 and appendix A.

With T = (R, r) the pose of a frame and (w, v) its body-fixed twist (see `kinematics`):

    body     V^b = (w, v)                     wrenches about the frame's origin, in its axes
    spatial  V^s = Ad_T V^b                   about the world's origin, in inertial axes
    hybrid   V^h = (R w, R v) = (w^s, rdot)   about the frame's origin, in inertial axes
    mixed    V^m = (w, R v) = (w, rdot)       moments body-fixed, forces in inertial axes

A wrench's representation is the one that keeps its power W . V. Everything but `inverse_dynamics` is numpy, written to
be read. All functions take leading batch axes, the same for all arguments, and raise ArgumentError for wrong shapes,
nan, infinity, or an unknown representation. Equation numbers are Mueller's, corrected as in FORMULAS section 3.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel, primitive
from .records import get_frame, get_twist, get_wrench, put6, put_frame
from .screws import (
    Ad,
    Ad_dual,
    Frame,
    Twist,
    Wrench,
    ad,
    ad_dual,
    compose,
    inertia_to,
    momentum,
    pair,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_sub,
    zero_twist,
)
from .tree import WIDTH, dofs_of, gravity_of, inertia_of, joint_frame, n_bodies, parent_of, screw_of
from .vectors import add3, cross, neg3, rot, sub3

# --- recursive Newton-Euler --------------------------------------------------------------------------------------

WORK = 36  # a body's record: T (12), V (6), A (6), W (6)


@primitive
def from_body_frames(f_ext, i, T):
    """The external wrench on body i, about the origin of T's target and in its axes."""
    return Ad_dual(T, get_wrench(f_ext, 6 * i))


@primitive
def spatial_newton_euler(model, q, v, a, f_ext, work, screws, tau):
    """tau with all twists and wrenches in the spatial representation: nothing but inertias is transported."""
    A_0 = Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
    for i in range(n_bodies(model)):
        link, row = i * WIDTH, i * WORK
        T, V_p, A_p, p = joint_frame(model, link, q), zero_twist(), A_0, parent_of(model, link)
        if p >= 0:
            up = p * WORK
            T = compose(get_frame(work, up), T)  # (70a)
            V_p, A_p = get_twist(work, up + 12), get_twist(work, up + 18)
        JV, JA = zero_twist(), zero_twist()
        first, end = dofs_of(model, link)
        for k in range(first, end):
            S = Ad(T, screw_of(model, link, k - first))  # (70b)
            put6(screws, 6 * k, S)
            JV, JA = twist_add(JV, twist_mul(v[k], S)), twist_add(JA, twist_mul(a[k], S))
        V = twist_add(V_p, JV)  # (70c)
        A = twist_add(twist_add(A_p, JA), ad(V_p, V))  # (70d)
        M = inertia_to(T, inertia_of(model, link))  # (71a)
        W = wrench_add(momentum(M, A), ad_dual(V, momentum(M, V)))  # (71b), own part
        if f_ext.shape[0] > 0:
            W = wrench_sub(W, from_body_frames(f_ext, i, T))
        put_frame(work, row, T)
        put6(work, row + 12, V)
        put6(work, row + 18, A)
        put6(work, row + 24, W)
    for i in range(n_bodies(model) - 1, -1, -1):
        link = i * WIDTH
        W = get_wrench(work, i * WORK + 24)
        first, end = dofs_of(model, link)
        for k in range(first, end):
            tau[k] = pair(get_twist(screws, 6 * k), W)  # (71c)
        p = parent_of(model, link)
        if p >= 0:
            up = p * WORK + 24
            put6(work, up, wrench_add(get_wrench(work, up), W))


@primitive
def turned_only(R, X):
    """Ad_R X."""
    return Twist(rot(R, X.w), rot(R, X.v))


@primitive
def hybrid_newton_euler(model, q, v, a, f_ext, work, screws, tau):
    """tau with all twists and wrenches in the hybrid form: transports are shifts, without a rotation."""
    still = (0.0, 0.0, 0.0)
    A_0 = Twist(still, neg3(gravity_of(model)))
    for i in range(n_bodies(model)):
        link, row = i * WIDTH, i * WORK
        T, V_p, A_p, p = joint_frame(model, link, q), zero_twist(), A_0, parent_of(model, link)
        d = T.p
        if p >= 0:
            up = p * WORK
            T_p = get_frame(work, up)
            T = compose(T_p, T)  # (75a)
            d = sub3(T.p, T_p.p)
            V_p, A_p = get_twist(work, up + 12), get_twist(work, up + 18)
        XV, XA = zero_twist(), zero_twist()
        first, end = dofs_of(model, link)
        for k in range(first, end):
            X = turned_only(T.R, screw_of(model, link, k - first))  # (75b)
            put6(screws, 6 * k, X)
            XV, XA = twist_add(XV, twist_mul(v[k], X)), twist_add(XA, twist_mul(a[k], X))
        V = twist_add(Twist(V_p.w, add3(V_p.v, cross(V_p.w, d))), XV)  # (75c)
        A = Twist(A_p.w, add3(A_p.v, cross(A_p.w, d)))  # Ad_{r_i,i-1} Vdot_{i-1}
        A = twist_add(A, Twist(still, cross(sub3(V_p.v, V.v), V_p.w)))  # ad_{rdot_i,i-1} V_{i-1}
        A = twist_add(A, Twist(cross(V.w, XV.w), cross(V.w, XV.v)))  # ad_{w_i} X qd
        A = twist_add(A, XA)  # (75d)
        M = inertia_to(Frame(T.R, still), inertia_of(model, link))  # (76a)
        P = momentum(M, Twist(V.w, still))
        W = wrench_add(momentum(M, A), Wrench(cross(V.w, P.m), cross(V.w, P.f)))  # (76b), own part
        if f_ext.shape[0] > 0:
            W = wrench_sub(W, from_body_frames(f_ext, i, Frame(T.R, still)))
        put_frame(work, row, T)
        put6(work, row + 12, V)
        put6(work, row + 18, A)
        put6(work, row + 24, W)
    for i in range(n_bodies(model) - 1, -1, -1):
        link = i * WIDTH
        W = get_wrench(work, i * WORK + 24)
        first, end = dofs_of(model, link)
        for k in range(first, end):
            tau[k] = pair(get_twist(screws, 6 * k), W)  # (76c)
        p = parent_of(model, link)
        if p >= 0:
            up = p * WORK
            d = sub3(get_frame(work, i * WORK).p, get_frame(work, up).p)
            shifted = Wrench(add3(W.m, cross(d, W.f)), W.f)
            put6(work, up + 24, wrench_add(get_wrench(work, up + 24), shifted))


@kernel("f8[:,::1](f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1])")
def spatial_inverse_dynamics(model, q, v, a, f_ext):
    """f_ext: (batch, 6 nbodies), or (0, 6 nbodies) for none."""
    tau, work, screws = np.empty(v.shape), np.empty(n_bodies(model) * WORK), np.empty(6 * v.shape[1])
    none = np.empty(0)
    for b in range(q.shape[0]):
        external = f_ext[b] if f_ext.shape[0] > 0 else none
        spatial_newton_euler(model, q[b], v[b], a[b], external, work, screws, tau[b])
    return tau


@kernel("f8[:,::1](f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1])")
def hybrid_inverse_dynamics(model, q, v, a, f_ext):
    """f_ext: (batch, 6 nbodies), or (0, 6 nbodies) for none."""
    tau, work, screws = np.empty(v.shape), np.empty(n_bodies(model) * WORK), np.empty(6 * v.shape[1])
    none = np.empty(0)
    for b in range(q.shape[0]):
        external = f_ext[b] if f_ext.shape[0] > 0 else none
        hybrid_newton_euler(model, q[b], v[b], a[b], external, work, screws, tau[b])
    return tau
