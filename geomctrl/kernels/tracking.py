"""Tracking errors on the group and Slotine and Li's sliding variables (1987), of one state."""

from __future__ import annotations

from .algorithms import algorithm, numbers
from .exponentials import dexp_inv_se3, log_se3
from .records import pose_at
from .screws import Ad_inv, Twist, ad, compose, inverse, pair, twist_sub
from .tree import (
    coordinate_of,
    dofs_of,
    dual_screw_of,
    first_dof_of,
    holds_pose,
    joint_coordinates,
    joint_twist,
    n_bodies,
    screw_of,
)
from .vectors import neg3


@algorithm("q, v, q_d, v_d, a_d -> e, w, e_rate, v_t, a_t")
def tracking_error(model, q, v, q_d, v_d, a_d, e, w, e_rate, v_t, a_t):
    """e = log(q_d^-1 q), w = v - v_t, e_rate, and the desired motion seen from the actual configuration."""
    for out in (e, w, e_rate, v_t, a_t):
        out[:] = 0.0
    for i in range(n_bodies(model)):
        k = coordinate_of(model, i)
        if holds_pose(model, i):
            T = compose(inverse(pose_at(q_d, k)), pose_at(q, k))
            V, Vd, Ad_ = joint_twist(model, i, v), joint_twist(model, i, v_d), joint_twist(model, i, a_d)
            E, Vd = log_se3(T), Ad_inv(T, Vd)
            W = twist_sub(V, Vd)
            joint_coordinates(model, i, E, e, 1.0)
            joint_coordinates(model, i, W, w, 1.0)
            joint_coordinates(model, i, dexp_inv_se3(Twist(neg3(E.w), neg3(E.v)), W), e_rate, 1.0)
            joint_coordinates(model, i, Vd, v_t, 1.0)
            joint_coordinates(model, i, twist_sub(Ad_inv(T, Ad_), ad(W, Vd)), a_t, 1.0)
        else:
            j = first_dof_of(model, i)
            e[j] = q[k] - q_d[k]
            w[j] = e_rate[j] = v[j] - v_d[j]
            v_t[j] = v_d[j]
            a_t[j] = a_d[j]


@algorithm("e, f -> out")
def error_gradient(model, e, f, out):
    """dexp^-1_{-e} transposed times f, joint by joint."""
    for i in range(n_bodies(model)):
        first, end = dofs_of(model, i)
        if holds_pose(model, i):
            E = joint_twist(model, i, e)
            for c in range(first, end):
                X = dexp_inv_se3(Twist(neg3(E.w), neg3(E.v)), screw_of(model, i, c - first))
                x = 0.0
                for r in range(first, end):
                    x += f[r] * pair(X, dual_screw_of(model, i, r - first))
                out[c] = x
        else:
            out[first] = f[first]


@algorithm("q, v, q_d, v_d, a_d; Lambda: f8[:, ::1] -> e, v_ref, a_ref, s", (numbers("nv"), numbers("nv")))
def sliding(model, q, v, q_d, v_d, a_d, Lambda, w, e_rate, e, v_ref, a_ref, s):
    """v_ref = v_t - Lambda e, its rate a_ref and s = v - v_ref."""
    n = v.shape[0]
    if Lambda.shape[0] != n or Lambda.shape[1] != n:
        raise ValueError
    tracking_error(model, q, v, q_d, v_d, a_d, e, w, e_rate, v_ref, a_ref)
    for i in range(n):
        for j in range(n):
            v_ref[i] -= Lambda[i, j] * e[j]
            a_ref[i] -= Lambda[i, j] * e_rate[j]
        s[i] = v[i] - v_ref[i]
