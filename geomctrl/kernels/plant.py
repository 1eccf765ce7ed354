"""Kernels of closed loops: contact forces, Slotine and Li's adaptive law, and the derivative of the plant's state."""

from __future__ import annotations

import math

from .algorithms import algorithm, numbers, per_body
from .articulated_bodies import FORWARD_MEMORY, forward_dynamics
from .configuration import sliding
from .frames import frame_twist, pose_of
from .newton_euler import ReferenceMotion
from .primitives import primitive
from .records import pose_at, put, put6, vec
from .regressor import products
from .screws import Ad_dual, Twist, Wrench, dot, mul3, rot, rotT, sub3
from .tree import n_v

# --- contact ---------------------------------------------------------------------------------------------------------
#
# A point against a half-space: Hunt and Crossley's normal force (1975), Coulomb friction smoothed about zero slip.
#
# `contact`: the outward normal n (3), its offset (the half-space is n . x <= offset), stiffness k, dissipation d,
# exponent p, coefficient of friction mu, speed of slip u.


TINY = 1e-300  # the logarithm is finite, and powers are negligible


@primitive
def power(x, p):
    """x^p for x >= 0 and p >= 1."""
    return math.exp(p * math.log(max(x, TINY)))


@algorithm("q, v; i: i8, placement: f8[::1], contact: f8[::1] -> F[nb, 6], state[6]")
def contact_wrenches(model, q, v, i, placement, contact, F, state):
    """The contact wrench on body i at its point `placement`, and (depth, force (3) in world axes, energy, dissipation).

    With the depth x and the velocity w of the point: N = k x^p max(1 + d xdot, 0), f = N (n - mu s / sqrt(s^2 + u^2)),
    s = w - (n . w) n; energy k x^(p+1) / (p + 1); dissipation -f . w less the energy's rate, which is never negative.
    """
    F[:, :] = 0.0
    T = pose_of(model, q, i, placement)
    n = vec(contact, 0)
    w = rot(T.R, frame_twist(model, q, v, i, placement).v)
    away = dot(n, w)
    s = sub3(w, mul3(away, n))
    depth = contact[3] - dot(n, T.p)
    inside = max(depth, 0.0)
    elastic = contact[4] * power(inside, contact[6])
    N = elastic * max(1.0 - contact[5] * away, 0.0)
    drag = N * contact[7] / math.sqrt(dot(s, s) + contact[8] * contact[8])
    f = sub3(mul3(N, n), mul3(drag, s))
    put6(F[i], 0, Ad_dual(pose_at(placement, 0), Wrench((0.0, 0.0, 0.0), rotT(T.R, f))))
    state[0] = depth
    put(state, 1, f)
    state[4] = elastic * inside / (contact[6] + 1.0)
    state[5] = (elastic - N) * away + drag * dot(s, s)


# --- an adaptive law -------------------------------------------------------------------------------------------------
#
# Slotine and Li's adaptive law (1987) of one state, in O(n).


@algorithm(
    "p[10 nb], q, v, q_d, v_d, a_d; Lambda: f8[:, ::1], K: f8[:, ::1], form: i8 -> tau, YTs[10 nb], e, s",
    (*(numbers("nv") for _ in range(4)), per_body(ReferenceMotion), per_body(Wrench), per_body(Twist)),
)
def adaptive_law(
    model, p, q, v, q_d, v_d, a_d, Lambda, K, form,
    w, e_rate, v_ref, a_ref, motion, wrenches, along,
    tau, YTs, e, s,
):  # fmt: skip
    """tau = Y p + armature a_ref - K s and Y^T s, Y the regressor at (q, v, a_ref, v_ref), and the errors e and s."""
    sliding(model, q, v, q_d, v_d, a_d, Lambda, w, e_rate, e, v_ref, a_ref, s)
    products(model, p, q, v, a_ref, v_ref, s, form, motion, wrenches, along, tau, YTs)
    for i in range(s.shape[0]):
        for j in range(s.shape[0]):
            tau[i] -= K[i, j] * s[j]


# --- the plant -------------------------------------------------------------------------------------------------------
#
# The plant as an ordinary differential equation: friction, forward dynamics and power in one call.


@algorithm(
    "q, v, tau; coulomb: i8, friction: f8[:, ::1] -> rate[2 nv + 1]",
    (numbers("nv"), numbers("nv"), *FORWARD_MEMORY),
    may_fail=True,
)
def plant_rate(
    model, q, v, tau, coulomb, friction,
    net, a, moving, eliminated, handles, twists, bodies, frames, inertias, wrenches, ancestors, memory,
    rate,
):  # fmt: skip
    """v, vdot under tau minus friction, and the power of both. False unless M > 0.

    friction: rows of viscous and Coulomb coefficients and of the velocities of smoothing; coulomb: 0 if all of the
    second row are zero.
    """
    n, power = n_v(model), 0.0
    for k in range(n):
        net[k] = tau[k] - friction[0, k] * v[k]
        if coulomb:
            net[k] -= friction[1, k] * math.tanh(v[k] / friction[2, k])
        power += v[k] * net[k]
        rate[k] = v[k]
    good = forward_dynamics(
        model, q, v, net, v[:0],
        moving, eliminated, handles, twists, bodies, frames, inertias, wrenches, ancestors, memory,
        a,
    )  # fmt: skip
    for k in range(n):
        rate[n + k] = a[k]
    rate[2 * n] = power
    return good
