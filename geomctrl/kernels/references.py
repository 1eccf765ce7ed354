"""Desired motions as products of exponentials, with velocity and acceleration by the recursion that
`geomctrl.control.references` writes out."""

from __future__ import annotations

import math

import numpy as np

from .configuration import advance
from .exponentials import exp_se3
from .jit import kernel, primitive
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


@kernel("void(f8[::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1])")
def product_motion(model, X, s, q, v, a):
    """From (q0, 0, 0) to (q, v, a) of q0 exp(X[0] s[0]) exp(X[1] s[1]) ..., in place.

    s (3, m): values and their first two derivatives.
    """
    old = np.empty(n_q(model))
    for k in range(X.shape[0]):
        move(model, X[k] * s[0, k], X[k] * s[1, k], X[k] * s[2, k], q, v, a, old)


@kernel("void(f8[::1], f8[:,:,::1], f8, f8, f8[::1], f8[::1], f8[::1])")
def sinusoid_motion(model, harmonics, ramp, t, q, v, a):
    """From (q0, 0, 0) to (q, v, a) of q0 exp(e_1 x_1(t)) exp(e_2 x_2(t)) ..., x the sums of sinusoids, in place.

    harmonics (3, h, nv): amplitudes, angular frequencies, phases.
    """
    n = n_v(model)
    s = np.zeros((3, n))
    for h in range(harmonics.shape[1]):
        for j in range(n):
            A, w = harmonics[0, h, j], harmonics[1, h, j]
            angle = w * t + harmonics[2, h, j]
            s[0, j] += A * math.sin(angle)
            s[1, j] += A * w * math.cos(angle)
            s[2, j] -= A * w * w * math.sin(angle)
    if t < ramp and ramp > 0.0:
        b, db, ddb = quintic_blend(max(t, 0.0) / ramp, ramp)
        for j in range(n):
            x, dx, ddx = s[0, j], s[1, j], s[2, j]
            s[0, j], s[1, j], s[2, j] = b * x, b * dx + db * x, b * ddx + 2.0 * db * dx + ddb * x
    old = np.empty(n_q(model))
    if n_q(model) == n:  # all factors commute
        move(model, s[0], s[1], s[2], q, v, a, old)
        return
    x, dx, ddx = np.zeros(n), np.zeros(n), np.zeros(n)
    for j in range(n):
        x[j], dx[j], ddx[j] = s[0, j], s[1, j], s[2, j]
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
