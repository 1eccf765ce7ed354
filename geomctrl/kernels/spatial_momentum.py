"""The momentum p = dT/dv of a robot and the force on it: sums over subtrees in inertial axes, Mueller 2018 (36), (79).

    p_k = S_k . Pi_k,     p_k' = (ad_V S_k) . Pi_k + S_k . W_k + tau_k,

Pi_k the subtree's spatial momentum and W_k its weight: one sweep, O(n). The kernels of `structure_preserving` are made
of it; here are also those of the momentum form itself.
"""

import numpy as np

from .articulated_bodies import forward_dynamics
from .configuration import polish
from .exponentials import dexp_inv_se3, dexp_se3, exp_se3
from .jit import kernel, primitive
from .passes import BODY, DOF, DS, S_, SUM, place_moving
from .records import accumulate, finite, get_inertia, get_twist, get_wrench, put6, put_inertia, vec
from .runge_kutta import DONE, LARGEST_ANGLE, NOT_FINITE, rk_step, store
from .screws import (
    Ad_dual,
    Ad_inv_dual,
    Twist,
    Wrench,
    ad_dual,
    inertia_to,
    momentum,
    pair,
    twist_mul,
    wrench_add,
    wrench_mul,
    zero_wrench,
)
from .tree import (
    GRAVITY,
    KIND,
    POSE,
    S_PINV,
    WIDTH,
    dofs_of,
    gravity_of,
    inertia_of,
    joint_frame,
    joint_twist,
    n_bodies,
    n_q,
    n_v,
    parent_of,
    root_origin,
    screw_of,
)
from .vectors import add3, cross, dot, mul3

MOMENTUM = BODY - 6  # where a subtree's momentum is in a body's record, behind its composite inertia


# --- momentum and the force on it --------------------------------------------------------------------------------


@primitive
def momentum_sweep(model, q, v, body, dof, p, rate, diagonal):
    """p = M v, p' without torques and the diagonal of M, (nv,) each; returns the potential energy."""
    n = n_bodies(model)
    origin, gravity = root_origin(model, q), gravity_of(model)
    potential = 0.0
    for i in range(n):
        row = i * BODY
        T, V = place_moving(model, i, q, v, origin, body, dof)
        J = inertia_to(T, inertia_of(model, i * WIDTH))
        potential -= dot(gravity, add3(J.h, mul3(J.m, origin)))
        put_inertia(body, row + SUM, J)
        put6(body, row + MOMENTUM, momentum(J, V))
    for i in range(n - 1, -1, -1):
        link, row = i * WIDTH, i * BODY
        J, Pi = get_inertia(body, row + SUM), get_wrench(body, row + MOMENTUM)
        weight = Wrench(cross(J.h, gravity), mul3(J.m, gravity))
        first, end = dofs_of(model, link)
        for k in range(first, end):
            S, dS = get_twist(dof, k * DOF + S_), get_twist(dof, k * DOF + DS)
            p[k] = pair(S, Pi)
            rate[k] = pair(dS, Pi) + pair(S, weight)
            diagonal[k] = pair(S, momentum(J, S))
        up = parent_of(model, link)
        if up >= 0:
            accumulate(body, up * BODY + SUM, body, row + SUM, 10)
            accumulate(body, up * BODY + MOMENTUM, body, row + MOMENTUM, 6)
    return potential


@primitive
def weightless(model):
    """The model without gravity: its forward dynamics at rest are p -> M^-1 p."""
    out = model.copy()
    for k in range(3):
        out[model.shape[0] - WIDTH + GRAVITY + k] = 0.0
    return out


# --- the duals of the exponential's maps, on wrenches: se(3)* is se(3) with force and moment exchanged -----------


@primitive
def dexp_dual(X, F):
    """dexp_X^T F."""
    Y = dexp_se3(twist_mul(-1.0, X), Twist(F.f, F.m))
    return Wrench(Y.v, Y.w)


@primitive
def dexp_inv_dual(X, F):
    """dexp_X^-T F."""
    Y = dexp_inv_se3(twist_mul(-1.0, X), Twist(F.f, F.m))
    return Wrench(Y.v, Y.w)


@primitive
def lifted(model, link, p):
    """The wrench that pairs with S v as the joint's coordinates p pair with v."""
    first, end = dofs_of(model, link)
    F = zero_wrench()
    for k in range(first, end):
        row = link + S_PINV + 6 * (k - first)
        F = wrench_add(F, wrench_mul(p[k], Wrench(vec(model, row), vec(model, row + 3))))
    return F


@primitive
def lower(model, link, F, p):
    """p = S^T F."""
    first, end = dofs_of(model, link)
    for k in range(first, end):
        p[k] = pair(screw_of(model, link, k - first), F)


@primitive
def lie_force(model, w, p, rate, tau, f):
    """f = p' + tau - ad_w^T p: the part of p' that is not the frame's turning (0 for a free base without torque)."""
    for i in range(n_bodies(model)):
        link = i * WIDTH
        first, end = dofs_of(model, link)
        for k in range(first, end):
            f[k] = rate[k] + tau[k]
        if int(model[link + KIND]) == POSE:
            F = wrench_add(lifted(model, link, f), ad_dual(joint_twist(model, link, w), lifted(model, link, p)))
            lower(model, link, F, f)


@primitive
def carried(model, x, p, h, f, out):
    """out = Ad_{exp x}^T p + h Ad_{exp x/2}^T f: the momentum after the step; a free base keeps its spatial one."""
    for i in range(n_bodies(model)):
        link = i * WIDTH
        first, end = dofs_of(model, link)
        if int(model[link + KIND]) == POSE:
            X = joint_twist(model, link, x)
            before = Ad_inv_dual(exp_se3(X), lifted(model, link, p))
            impulse = Ad_inv_dual(exp_se3(twist_mul(0.5, X)), wrench_mul(h, lifted(model, link, f)))
            lower(model, link, wrench_add(before, impulse), out)
        else:
            for k in range(first, end):
                out[k] = p[k] + h * f[k]


@primitive
def within_reach(model, x):
    """No joint turns by 2 pi in the step."""
    for i in range(n_bodies(model)):
        link = i * WIDTH
        if int(model[link + KIND]) == POSE:
            w = joint_twist(model, link, x).w
            if not dot(w, w) < LARGEST_ANGLE * LARGEST_ANGLE:
                return False
    return True


# --- momentum form: Mueller 2018 (36) for the whole, (79) for the joints -----------------------------------------


@primitive
def hamiltonian(model, q, y, tau, context, body, dof, rate):
    """y' and, in the context, v = M^-1 p, for y = (spatial momentum Pi, joints' momenta p): (36) and (79)."""
    v, p, mu, diagonal, rest, none, still = context
    base = joint_frame(model, 0, q)
    for k in range(6, n_v(model)):
        p[k] = y[k]
    put6(p, 0, Ad_inv_dual(base, get_wrench(y, 0)))
    if not forward_dynamics(still, q, rest, p, none, body, dof, v):
        return False
    momentum_sweep(model, q, v, body, dof, mu, rate, diagonal)
    for k in range(6, n_v(model)):
        rate[k] += tau[k]
    gravity, J = gravity_of(model), get_inertia(body, SUM)
    f = mul3(J.m, gravity)
    weight = Wrench(add3(cross(J.h, gravity), cross(root_origin(model, q), f)), f)
    put6(rate, 0, wrench_add(weight, Ad_dual(base, get_wrench(tau, 0))))
    return True


@kernel("b1(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def momentum_rates(model, q, y, tau, v, rate):
    """v (nv,) and y' (nv,) at one state of the momentum form; False where the mass matrix is singular."""
    nv = n_v(model)
    p, mu, diagonal, rest = np.empty(nv), np.empty(nv), np.empty(nv), np.zeros(nv)
    context = (v, p, mu, diagonal, rest, np.empty(0), weightless(model))
    return hamiltonian(model, q, y, tau, context, np.empty(n_bodies(model) * BODY), np.empty(nv * DOF), rate)


@kernel("Tuple((i8, i8))(f8[::1], f8[::1], f8[:,::1], i8, i8, f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1])")
def march_momentum_form(model, plan, taus, first, last, q, v, every, q_out, v_out):
    """As `rollout.march`, for a robot whose first joint is the free one of its base."""
    s, nq, nv = int(plan[0]), n_q(model), n_v(model)
    Q, Kq, Ky = np.empty(s * nq), np.empty(s * nv), np.empty(s * nv)
    u, qi, yi, vi, ai, tau = np.empty(nv), np.empty(nq), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    p, mu, diagonal, rest, none, still = (
        np.empty(nv),
        np.empty(nv),
        np.empty(nv),
        np.zeros(nv),
        np.empty(0),
        weightless(model),
    )
    body, dof, y = np.empty(n_bodies(model) * BODY), np.empty(nv * DOF), np.empty(nv)
    context = (vi, p, mu, diagonal, rest, none, still)
    momentum_sweep(model, q, v, body, dof, y, ai, diagonal)
    put6(y, 0, Ad_dual(joint_frame(model, 0, q), get_wrench(y, 0)))
    for k in range(first, last):
        for j in range(nv):
            tau[j] = taus[k if taus.shape[0] > 1 else 0, j]
        result = rk_step(hamiltonian, model, plan, tau, q, y, Q, Kq, Ky, u, qi, yi, vi, ai, context, body, dof)
        polish(model, q)
        if result == DONE and not (finite(q) and finite(y)):
            result = NOT_FINITE
        if result != DONE or (k + 1) % every == 0 or k + 1 == last:
            hamiltonian(model, q, y, tau, context, body, dof, ai)
            for j in range(nv):
                v[j] = vi[j]
            if result != DONE:
                return result, k
            if (k + 1) % every == 0:
                store(q, v, (k + 1) // every, q_out, v_out)
    return DONE, last
