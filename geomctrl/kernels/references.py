"""Desired motions as products of exponentials, with velocity and acceleration by the recursion that
`geomctrl.control.references` writes out."""

from __future__ import annotations

import math

from .algorithms import algorithm, numbers
from .configuration import advance
from .exponentials import exp_se3
from .primitives import primitive
from .scalars import where
from .screws import Ad_inv, ad, twist_add, twist_sub
from .tree import first_dof_of, holds_pose, joint_coordinates, joint_twist, n_bodies, n_q, n_v


@primitive
def move(model, x, dx, ddx, q, v, a, old):
    """Append the factor exp(x) to the motion (q, v, a), x moving along itself at the rates dx, ddx."""
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
def begin(q0, q, v, a):
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
    begin(q0, q, v, a)
    for k in range(m):
        for j in range(n):
            X_kj = X[k * n + j]
            x[j], dx[j], ddx[j] = X_kj * s[k], X_kj * s[m + k], X_kj * s[2 * m + k]
        move(model, x, dx, ddx, q, v, a, old)


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

    time: t and how long the motion is blended in. rows: all amplitudes, then angular frequencies, then phases.
    """
    n = n_v(model)
    X, dX, ddX = sums[:n], sums[n : 2 * n], sums[2 * n :]
    blended_sums(time[0], time[1], rows, count, X, dX, ddX)
    begin(q0, q, v, a)
    if n_q(model) == n:  # all factors commute
        move(model, X, dX, ddX, q, v, a, old)
        return
    x, dx, ddx = factor[:n], factor[n : 2 * n], factor[2 * n :]
    for k in range(3 * n):
        factor[k] = 0.0
    for j in range(n):
        x[j], dx[j], ddx[j] = X[j], dX[j], ddX[j]
        move(model, x, dx, ddx, q, v, a, old)
        x[j] = dx[j] = ddx[j] = 0.0


@primitive
def quintic_blend(u, T):
    """10 u^3 - 15 u^4 + 6 u^5 and its first two derivatives in time, u = t / T in [0, 1]."""
    return (
        u**3 * (10.0 + u * (-15.0 + 6.0 * u)),
        30.0 * u**2 * (1.0 - u) ** 2 / T,
        60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / T**2,
    )
