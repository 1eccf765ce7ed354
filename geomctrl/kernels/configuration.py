"""Configurations of a robot as a Lie group: q * exp(dv), its inverse and differential, for integrators.

Every lower pair is a motion subgroup, so the configurations of a tree are a product of them: R for a joint with one
degree of freedom, a subgroup of SE(3) for one with more, in the coordinates v of its basis S. Mueller 2018 section 2.
"""

from __future__ import annotations

import math

import numpy as np

from .algorithms import algorithm, numbers
from .exponentials import dexp_inv_se3, exp_se3, log_se3, orthonormal, where
from .jit import kernel
from .primitives import primitive
from .records import finite, pose_at, put_pose
from .screws import (
    Ad_inv,
    Pose,
    Twist,
    ad,
    compose,
    hat3,
    inverse,
    matmul,
    mul3,
    neg3,
    pair,
    rot,
    rotT,
    transpose,
    twist_add,
    twist_sub,
)
from .tree import (
    coordinate_of,
    dofs_of,
    dual_screw_of,
    first_dof_of,
    holds_pose,
    joint_coordinates,
    joint_twist,
    joints_begin,
    joints_end,
    n_bodies,
    n_q,
    n_v,
    screw_of,
)

# --- kernels ---------------------------------------------------------------------------------------------------


@primitive
def advance(model, q, x, out):
    """out = q exp(x), joint by joint."""
    for i in range(n_bodies(model)):
        k = coordinate_of(model, i)
        if holds_pose(model, i):
            put_pose(out, k, compose(pose_at(q, k), exp_se3(joint_twist(model, i, x))))
        else:
            out[k] = q[k] + x[first_dof_of(model, i)]


@primitive
def polish(model, q):
    """Move the rotations of poses to the nearest ones on SO(3), so that round-off does not accumulate over steps."""
    for i in range(n_bodies(model)):
        if holds_pose(model, i):
            k = coordinate_of(model, i)
            T = pose_at(q, k)
            put_pose(q, k, Pose(orthonormal(T.R), T.p))


@primitive
def difference_of(model, q0, q1, out):
    """out = log(q0^-1 q1), joint by joint. `out` must be zero."""
    for i in range(n_bodies(model)):
        k = coordinate_of(model, i)
        if holds_pose(model, i):
            X = log_se3(compose(inverse(pose_at(q0, k)), pose_at(q1, k)))
            joint_coordinates(model, i, X, out, 1.0)
        else:
            out[first_dof_of(model, i)] = q1[k] - q0[k]


@primitive
def change_along_group(model, q, dq, x, out):
    """The part of the change dq of q that is a motion of the joints. `x`, nv numbers, must be zero.

    The poses T change by T [S S^+ X], where X has the rotation of the skew part of R^T dR and the translation R^T dp.
    """
    joints = model[joints_begin(model) : joints_end(model)]
    for i in range(n_bodies(joints)):
        k = coordinate_of(joints, i)
        if holds_pose(joints, i):
            T, dT = pose_at(q, k), pose_at(dq, k)
            W = matmul(transpose(T.R), dT.R)
            w = mul3(0.5, (W[2][1] - W[1][2], W[0][2] - W[2][0], W[1][0] - W[0][1]))
            joint_coordinates(joints, i, Twist(w, rotT(T.R, dT.p)), x, 1.0)
            X = joint_twist(joints, i, x)
            put_pose(out, k, Pose(matmul(T.R, hat3(X.w)), rot(T.R, X.v)))
        else:
            out[k] = dq[k]


@kernel("f8[::1](f8[::1], f8[::1], f8[::1])")
def advance_one(model, q, x):
    if q.shape[0] != n_q(model) or x.shape[0] != n_v(model) or not (finite(q) and finite(x)):
        raise ValueError
    out, joints = np.empty(n_q(model)), model[joints_begin(model) : joints_end(model)]
    advance(joints, q, x, out)
    polish(joints, out)
    return out


@algorithm("q, dv -> moved[nq]")
def moved(model, q, dv, moved):
    advance(model, q, dv, moved)


@algorithm("q0[nq], q1[nq] -> dv")
def difference(model, q0, q1, dv):
    dv[:] = 0.0
    difference_of(model, q0, q1, dv)


@kernel("f8[:,::1](f8[::1], f8[:,::1], f8[:,::1])")
def dexp_inv_many(model, x, y):
    """dexp_x^-1 y in the joints' coordinates."""
    out, joints = np.zeros(y.shape), model[joints_begin(model) : joints_end(model)]
    for b in range(x.shape[0]):
        for i in range(n_bodies(joints)):
            if holds_pose(joints, i):
                X = dexp_inv_se3(joint_twist(joints, i, x[b]), joint_twist(joints, i, y[b]))
                joint_coordinates(joints, i, X, out[b], 1.0)
            else:
                k = first_dof_of(joints, i)
                out[b, k] = y[b, k]
    return out


# --- tracking --------------------------------------------------------------------------------------------------------
#
# Tracking errors on the group and Slotine and Li's sliding variables (1987), of one state.


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


# --- references ------------------------------------------------------------------------------------------------------
#
# Desired motions as products of exponentials, with velocity and acceleration by the recursion that
# `geomctrl.control.references` writes out.


@primitive
def append_factor(model, x, dx, ddx, q, v, a, old):
    """Append the factor exp(x) to the motion (q, v, a). The rates dx, ddx of x are parallel to x."""
    for k in range(q.shape[0]):
        old[k] = q[k]
    advance(model, old, x, q)
    for i in range(n_bodies(model)):
        j = first_dof_of(model, i)
        if holds_pose(model, i):
            T = exp_se3(joint_twist(model, i, x))
            V, A = Ad_inv(T, joint_twist(model, i, v)), Ad_inv(T, joint_twist(model, i, a))
            dX = joint_twist(model, i, dx)
            A = twist_add(twist_sub(A, ad(dX, V)), joint_twist(model, i, ddx))
            V = twist_add(V, dX)
            joint_coordinates(model, i, twist_sub(V, joint_twist(model, i, v)), v, 1.0)
            joint_coordinates(model, i, twist_sub(A, joint_twist(model, i, a)), a, 1.0)
        else:
            v[j] += dx[j]
            a[j] += ddx[j]


@primitive
def begin_motion(q0, q, v, a):
    """The motion (q0, 0, 0)."""
    for k in range(q.shape[0]):
        q[k] = q0[k]
    for k in range(v.shape[0]):
        v[k] = a[k] = 0.0


@algorithm("q0[nq], X[m * nv], s[3 * m]; m: i8 -> q[nq], v, a", (numbers("nq"), numbers("3 * nv")))
def product_motion(model, q0, X, s, m, old, memory, q, v, a):
    """(q, v, a) of q0 exp(X_1 s_1) exp(X_2 s_2) ...; s: all values, then their first two derivatives."""
    n = n_v(model)
    x, dx, ddx = memory[:n], memory[n : 2 * n], memory[2 * n :]
    begin_motion(q0, q, v, a)
    for k in range(m):
        for j in range(n):
            X_kj = X[k * n + j]
            x[j], dx[j], ddx[j] = X_kj * s[k], X_kj * s[m + k], X_kj * s[2 * m + k]
        append_factor(model, x, dx, ddx, q, v, a, old)


@primitive
def blended_sums(t, ramp, rows, count, X, dX, ddX):
    """The sums of sinusoids at t, blended in from rest over `ramp` seconds, and their first two derivatives."""
    T = where(ramp > 0.0, ramp, 1.0)
    b, db, ddb = quintic_blend(where(ramp > 0.0, min(max(t, 0.0) / T, 1.0), 1.0), T)
    n = X.shape[0]
    for j in range(n):
        x = dx = ddx = 0.0
        for h in range(count):
            A, w = rows[h * n + j], rows[(count + h) * n + j]
            angle = w * t + rows[(2 * count + h) * n + j]
            x += A * math.sin(angle)
            dx += A * w * math.cos(angle)
            ddx -= A * w * w * math.sin(angle)
        X[j], dX[j], ddX[j] = b * x, b * dx + db * x, b * ddx + 2.0 * db * dx + ddb * x


@algorithm(
    "q0[nq], time[2], rows[3 * count * nv]; count: i8 -> q[nq], v, a",
    (numbers("nq"), numbers("3 * nv"), numbers("3 * nv")),
)
def sinusoid_motion(model, q0, time, rows, count, old, sums, factor, q, v, a):
    """(q, v, a) of q0 exp(e_1 x_1(t)) exp(e_2 x_2(t)) ..., x the sums of `count` sinusoids.

    time: t, and the time in which the motion is blended in. rows: amplitudes, then angular frequencies, then phases.
    """
    n = n_v(model)
    X, dX, ddX = sums[:n], sums[n : 2 * n], sums[2 * n :]
    blended_sums(time[0], time[1], rows, count, X, dX, ddX)
    begin_motion(q0, q, v, a)
    if n_q(model) == n:  # all factors commute
        append_factor(model, X, dX, ddX, q, v, a, old)
        return
    x, dx, ddx = factor[:n], factor[n : 2 * n], factor[2 * n :]
    for k in range(3 * n):
        factor[k] = 0.0
    for j in range(n):
        x[j], dx[j], ddx[j] = X[j], dX[j], ddX[j]
        append_factor(model, x, dx, ddx, q, v, a, old)
        x[j] = dx[j] = ddx[j] = 0.0


@primitive
def quintic_blend(u, T):
    """10 u^3 - 15 u^4 + 6 u^5 and its first two derivatives in time, u = t / T in [0, 1]."""
    return (
        u**3 * (10.0 + u * (-15.0 + 6.0 * u)),
        30.0 * u**2 * (1.0 - u) ** 2 / T,
        60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / T**2,
    )
