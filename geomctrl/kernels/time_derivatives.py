"""Time derivatives of the equations of motion to any order: tau, tau', tau'', ... from q and v, v', v'', ... in O(n).

Mueller 2018 section 6.3 asks for them for the flatness of robots with elastic joints. In inertial axes about a fixed
point the recursion is the product rule and nothing else: with everything fixed to body i carried by its twist,

    S' = ad_V S,      V_i = V_p + S v,      J' = -ad_V^T J - J ad_V,      F_i = (J V)' - J (0, g) + sum_children F_c,
    tau = S^T F,

so all are power series in t: x_k stands for the k-th time derivative of x over k!, and a product is a convolution.
FORMULAS section 6 has the same in body frames, written out to second order.
"""

from __future__ import annotations

import numpy as np

from .composite_bodies import coriolis_composite
from .jit import kernel, primitive
from .newton_euler import CHRISTOFFEL
from .passes import BODY, place
from .records import accumulate, get_inertia, get_twist, get_wrench, put6, put_inertia
from .screws import (
    Ad,
    Inertia,
    Wrench,
    ad,
    inertia_add,
    inertia_to,
    momentum,
    pair,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_mul,
    wrench_sub,
    zero_twist,
    zero_wrench,
)
from .tree import (
    WIDTH,
    dofs_of,
    good_configuration,
    gravity_of,
    inertia_of,
    n_bodies,
    n_v,
    parent_of,
    root_origin,
    screw_of,
)
from .vectors import cross, mul3


@primitive
def carried(J, W):
    """-ad_W^T J - J ad_W: the rate of an inertia that the twist W carries along."""
    B, p = coriolis_composite(J, W, CHRISTOFFEL, 0.0)
    dI = (2.0 * B[0][0], B[0][1] + B[1][0], 2.0 * B[1][1], B[0][2] + B[2][0], B[1][2] + B[2][1], 2.0 * B[2][2])
    return Inertia(0.0, p, dI)


@primitive
def inertia_mul(s, J):
    I = J.I
    return Inertia(s * J.m, mul3(s, J.h), (s * I[0], s * I[1], s * I[2], s * I[3], s * I[4], s * I[5]))


@primitive
def inverse_dynamics_series(model, q, v, body, V, F, J, S, tau):
    """tau (orders, nv): the torques' series from the velocities' v (orders + 1, nv).

    `V`, `S`: 6 (orders + 1) numbers a body, a coordinate; `F`: 6 orders a body; `J`: 10 (orders + 1).
    """
    n, orders = n_bodies(model), tau.shape[0]
    six = 6 * (orders + 1)
    gravity, origin = gravity_of(model), root_origin(model, q)
    for i in range(n):
        link, p = i * WIDTH, parent_of(model, i * WIDTH)
        T = place(model, i, q, origin, body)
        first, end = dofs_of(model, link)
        for c in range(first, end):
            put6(S, c * six, Ad(T, screw_of(model, link, c - first)))
        for k in range(orders + 1):
            X = zero_twist()
            if p >= 0:
                X = get_twist(V, p * six + 6 * k)
            for c in range(first, end):
                if k > 0:
                    dS = zero_twist()
                    for j in range(k):
                        dS = twist_add(dS, ad(get_twist(V, i * six + 6 * j), get_twist(S, c * six + 6 * (k - 1 - j))))
                    put6(S, c * six + 6 * k, twist_mul(1.0 / k, dS))  # S' = ad_V S
                for j in range(k + 1):
                    X = twist_add(X, twist_mul(v[j, c], get_twist(S, c * six + 6 * (k - j))))
            put6(V, i * six + 6 * k, X)
        put_inertia(J, 0, inertia_to(T, inertia_of(model, link)))
        for k in range(1, orders + 1):
            dJ = carried(get_inertia(J, 10 * (k - 1)), get_twist(V, i * six))
            for j in range(1, k):
                dJ = inertia_add(dJ, carried(get_inertia(J, 10 * (k - 1 - j)), get_twist(V, i * six + 6 * j)))
            put_inertia(J, 10 * k, inertia_mul(1.0 / k, dJ))
        for k in range(orders):
            P = zero_wrench()
            for j in range(k + 2):
                P = wrench_add(P, momentum(get_inertia(J, 10 * (k + 1 - j)), get_twist(V, i * six + 6 * j)))
            Jk = get_inertia(J, 10 * k)
            weight = Wrench(cross(Jk.h, gravity), mul3(Jk.m, gravity))
            put6(F, 6 * (i * orders + k), wrench_sub(wrench_mul(k + 1.0, P), weight))
    for i in range(n - 1, -1, -1):
        link, p = i * WIDTH, parent_of(model, i * WIDTH)
        first, end = dofs_of(model, link)
        for c in range(first, end):
            for k in range(orders):
                x = 0.0
                for j in range(k + 1):
                    x += pair(get_twist(S, c * six + 6 * (k - j)), get_wrench(F, 6 * (i * orders + j)))
                tau[k, c] = x
        if p >= 0:
            accumulate(F, 6 * p * orders, F, 6 * i * orders, 6 * orders)


@primitive
def scaled(v, series, down):
    """Derivatives to series (down) or back, order by order: over or times k!."""
    factorial = 1.0
    for k in range(v.shape[0]):
        if k > 1:
            factorial *= k
        for j in range(v.shape[1]):
            series[k, j] = v[k, j] / factorial if down else v[k, j] * factorial


@primitive
def all_finite(x):
    zero = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            zero += 0.0 * x[i, j]
    return zero == 0.0


@kernel("f8[:,::1](f8[::1], f8[::1], f8[:,::1])")
def inverse_dynamics_rates_one(model, q, rates):
    n, m, orders = n_bodies(model), n_v(model), rates.shape[0] - 1
    if not (good_configuration(model, q) and rates.shape[1] == m and orders > 0 and all_finite(rates)):
        raise ValueError
    v, tau = np.empty((orders + 1, m)), np.empty((orders, m))
    scaled(rates, v, True)
    six = 6 * (orders + 1)
    body, V, F, J = np.empty(n * BODY), np.empty(n * six), np.empty(n * 6 * orders), np.empty(10 * (orders + 1))
    inverse_dynamics_series(model, q, v, body, V, F, J, np.empty(m * six), tau)
    scaled(tau, tau, False)
    return tau


@kernel("f8[:,:,::1](f8[::1], f8[:,::1], f8[:,:,::1])")
def inverse_dynamics_rates_many(model, q, rates):
    n, m, orders = n_bodies(model), n_v(model), rates.shape[1] - 1
    v, tau = np.empty((orders + 1, m)), np.empty((q.shape[0], orders, m))
    six = 6 * (orders + 1)
    body, V, F, J = np.empty(n * BODY), np.empty(n * six), np.empty(n * 6 * orders), np.empty(10 * (orders + 1))
    S = np.empty(m * six)
    for b in range(q.shape[0]):
        scaled(rates[b], v, True)
        inverse_dynamics_series(model, q[b], v, body, V, F, J, S, tau[b])
        scaled(tau[b], tau[b], False)
    return tau
