"""The momentum p = dT/dv of a robot and the force on it: sums over subtrees in inertial axes, Mueller 2018 (36), (79).

    p_k = S_k . Pi_k,     p_k' = (ad_V S_k) . Pi_k + S_k . W_k + tau_k,

Pi_k the subtree's spatial momentum and W_k its weight: one sweep, O(n). The methods of `structure_preserving` are made
of it.
"""

from .exponentials import dexp_inv_se3, dexp_se3, exp_se3
from .jit import primitive
from .marches import within_a_turn
from .passes import BODY, DOF, DS, S_, SUM, place_moving
from .records import accumulate, get_inertia, get_twist, get_wrench, put6, put_inertia, vec
from .screws import (
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
    joint_twist,
    n_bodies,
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
def momentum_after(model, x, p, h, f, out):
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
        if int(model[link + KIND]) == POSE and not within_a_turn(joint_twist(model, link, x).w):
            return False
    return True
