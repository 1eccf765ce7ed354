"""Time derivatives of the equations of motion to any order: tau, tau', tau'', ... from q and v, v', v'', ... in O(n).

Mueller 2018 section 6.3 asks for them for the flatness of robots with elastic joints. In inertial axes about a fixed
point the recursion is the product rule and nothing else: everything fixed to body i moves with its twist, so that

    S' = ad_V S,      V_i = V_p + S v,      J' = -ad_V^T J - J ad_V,      F_i = (J V)' - J (0, g) + sum_children F_c,
    tau = S^T F,

and all are power series in t: x_k stands for the k-th time derivative of x over k!, and a product is a convolution.
A body's or coordinate's series stands in consecutive records, `terms` of them.
"""

from .algorithms import algorithm, numbers, per_body
from .composite_bodies import coriolis_composite
from .passes import inertial_axes, inward, outward, place
from .primitives import primitive
from .records import get_inertia, get_twist, get_wrench, put_inertia, put_twist, put_wrench
from .rigid_body import CHRISTOFFEL
from .screws import (
    Ad,
    Inertia,
    Pose,
    Wrench,
    ad,
    apply_inertia,
    inertia_add,
    inertia_to,
    pair,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_mul,
    wrench_sub,
    zero_twist,
    zero_wrench,
)
from .tree import armature_of, dofs_of, gravity_of, inertia_of, n_bodies, n_v, parent_of, screw_of
from .vectors import add33, cross, mul3, transpose


@primitive
def inertia_rate(J, V):
    """J' = -ad_V^T J - J ad_V of an inertia that moves with the twist V, the derivative of Ad_{T^-1}^T J Ad_{T^-1}."""
    B, p = coriolis_composite(J, V, CHRISTOFFEL, 0.0)
    I = add33(B, transpose(B))
    return Inertia(0.0, p, (I[0][0], I[0][1], I[1][1], I[0][2], I[1][2], I[2][2]))


@primitive
def inertia_mul(s, J):
    I = J.I
    return Inertia(s * J.m, mul3(s, J.h), (s * I[0], s * I[1], s * I[2], s * I[3], s * I[4], s * I[5]))


@outward(Pose)
def move_series(model, i, parent, q, v, terms, S, V, J, F):
    """The series of the joint's screws, of the body's twist and inertia, and of the wrench that its own motion takes.

    F has a body's wrenches order by order, as `transmit` adds them up.
    """
    T = place(model, i, parent, q)
    screw_and_twist_series(model, i, T, v, terms, S, V)
    put_inertia(J, 0, inertia_to(T, inertia_of(model, i)))
    first = i * terms
    for k in range(1, terms):
        dJ = inertia_rate(get_inertia(J, k - 1), get_twist(V, first))
        for j in range(1, k):
            dJ = inertia_add(dJ, inertia_rate(get_inertia(J, k - 1 - j), get_twist(V, first + j)))
        put_inertia(J, k, inertia_mul(1.0 / k, dJ))
    gravity = gravity_of(model)
    for k in range(terms - 1):
        P = zero_wrench()  # the series of J V at k + 1
        for j in range(k + 2):
            P = wrench_add(P, apply_inertia(get_inertia(J, k + 1 - j), get_twist(V, first + j)))
        Jk = get_inertia(J, k)
        weight = Wrench(cross(Jk.h, gravity), mul3(Jk.m, gravity))
        put_wrench(F, k * n_bodies(model) + i, wrench_sub(wrench_mul(k + 1.0, P), weight))
    return T


@primitive
def screw_and_twist_series(model, i, T, v, terms, S, V):
    """(k + 1) S_{k+1} = sum_j ad_{V_j} S_{k-j} and V_k = V_p,k + sum_j S_j v_{k-j} of body i, which is at T."""
    first, end = dofs_of(model, i)
    n, p, at = n_v(model), parent_of(model, i), i * terms
    for c in range(first, end):
        put_twist(S, c * terms, Ad(T, screw_of(model, i, c - first)))
    for k in range(terms):
        X = zero_twist()
        if p >= 0:
            X = get_twist(V, p * terms + k)
        for c in range(first, end):
            if k > 0:
                dS = zero_twist()
                for j in range(k):
                    dS = twist_add(dS, ad(get_twist(V, at + j), get_twist(S, c * terms + k - 1 - j)))
                put_twist(S, c * terms + k, twist_mul(1.0 / k, dS))
            for j in range(k + 1):
                X = twist_add(X, twist_mul(v[j * n + c], get_twist(S, c * terms + k - j)))
        put_twist(V, at + k, X)


@inward(Wrench)
def transmit(model, i, F, k, terms, v, S, wrenches, tau):
    """tau_k = sum_j S_{k-j} . F_j + armature v'_k, the wrenches of lower order being summed already."""
    first, end = dofs_of(model, i)
    for c in range(first, end):
        x = pair(get_twist(S, c * terms), F) + armature_of(model, i) * (k + 1) * v[(k + 1) * n_v(model) + c]
        for j in range(k):
            x += pair(get_twist(S, c * terms + k - j), get_wrench(wrenches, j * n_bodies(model) + i))
        tau[k, c] = x
    return F


@algorithm(
    "q, rates[(orders + 1) * nv]; orders: i8 -> tau[orders, nv]",
    (
        per_body(Pose),
        numbers("(orders + 1) * nv"),
        *(numbers("6 * (orders + 1) * nv"), numbers("6 * (orders + 1) * nb"), numbers("10 * (orders + 1)")),
        numbers("6 * orders * nb"),
    ),
)
def inverse_dynamics_rates(model, q, rates, orders, frames, v, S, V, J, F, tau):
    """tau and its time derivatives from `rates`, the velocity and its own: one more."""
    n, m, terms = n_v(model), 6 * n_bodies(model), orders + 1
    factorial = 1.0
    for k in range(terms):
        factorial *= max(k, 1)
        for j in range(n):
            v[k * n + j] = rates[k * n + j] / factorial
    move_series(model, inertial_axes(model, q), frames, q, v, terms, S, V, J, F)
    for k in range(orders):
        transmit(model, F[k * m : (k + 1) * m], k, terms, v, S, F, tau)
    factorial = 1.0
    for k in range(orders):
        factorial *= max(k, 1)
        for j in range(n):
            tau[k, j] *= factorial
