"""The momentum p = dT/dv of a robot and the force on it: sums over subtrees in inertial axes, Mueller 2018 (36), (79).

    p_k = S_k . Pi_k + armature_k v_k,     p_k' = (ad_V S_k) . Pi_k + S_k . W_k + tau_k,

Pi_k the subtree's spatial momentum and W_k its weight: one sweep, O(n). The methods of `structure_preserving` are made
of it.
"""

from typing import NamedTuple

import numpy as np

from .exponentials import dexp_inv_se3, dexp_se3, exp_se3
from .jit import primitive
from .marches import within_a_turn
from .passes import Moving, MovingAxis, get_moving_axis, inertial_axes, inward, outward, place, place_moving_axes
from .records import reader, width, writer
from .screws import (
    Ad_inv_dual,
    Inertia,
    Twist,
    Wrench,
    ad_dual,
    apply_inertia,
    inertia_to,
    pair,
    twist_mul,
    wrench_add,
    wrench_mul,
    zero_twist,
    zero_wrench,
)
from .tree import (
    GRAVITY,
    WIDTH,
    armature_of,
    dofs_of,
    dual_screw_of,
    gravity_of,
    holds_pose,
    inertia_of,
    joint_twist,
    n_bodies,
    n_v,
    root_origin,
    screw_of,
)
from .vectors import add3, cross, dot, mul3


class Subtree(NamedTuple):
    """A subtree's inertia and spatial momentum."""

    J: Inertia
    Pi: Wrench


put_subtree, get_subtree = writer(Subtree), reader(Subtree)
MOVING, MOVING_AXIS, SUBTREE = width(Moving), width(MovingAxis), width(Subtree)

# --- momentum and the force on it --------------------------------------------------------------------------------


@primitive
def sweep_memory(model):
    """What `momentum_sweep` needs."""
    nb, nv = n_bodies(model), n_v(model)
    return np.empty(nb * MOVING), np.empty(nv * MOVING_AXIS), np.empty(nb * SUBTREE)


@outward(Moving)
def place_momenta(model, i, parent, q, v, axes, subtrees):
    T = place(model, i, parent.T, q)
    V = place_moving_axes(model, i, T, parent.V, v, axes)
    J = inertia_to(T, inertia_of(model, i))
    put_subtree(subtrees, i, Subtree(J, apply_inertia(J, V)))
    return Moving(T, V)


@inward(Subtree)
def project_momenta(model, i, x, v, axes, p, rate, diagonal):
    gravity, J = gravity_of(model), x.J
    weight = Wrench(cross(J.h, gravity), mul3(J.m, gravity))
    first, end = dofs_of(model, i)
    for k in range(first, end):
        axis = get_moving_axis(axes, k)
        p[k] = pair(axis.S, x.Pi) + armature_of(model, i) * v[k]
        rate[k] = pair(axis.dS, x.Pi) + pair(axis.S, weight)
        diagonal[k] = pair(axis.S, apply_inertia(J, axis.S)) + armature_of(model, i)
    return x


@primitive
def momentum_sweep(model, q, v, memory, p, rate, diagonal):
    """p = M v, p' without torques and the diagonal of M, (nv,) each; returns the potential energy."""
    bodies, axes, subtrees = memory
    place_momenta(model, Moving(inertial_axes(model, q), zero_twist()), bodies, q, v, axes, subtrees)
    origin, gravity, potential = root_origin(model, q), gravity_of(model), 0.0
    for i in range(n_bodies(model)):
        J = get_subtree(subtrees, i).J
        potential -= dot(gravity, add3(J.h, mul3(J.m, origin)))
    project_momenta(model, subtrees, v, axes, p, rate, diagonal)
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
def lifted(model, i, p):
    """The wrench that pairs with S v as the joint's coordinates p pair with v."""
    first, end = dofs_of(model, i)
    F = zero_wrench()
    for k in range(first, end):
        F = wrench_add(F, wrench_mul(p[k], dual_screw_of(model, i, k - first)))
    return F


@primitive
def lower(model, i, F, p):
    """p = S^T F."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        p[k] = pair(screw_of(model, i, k - first), F)


@primitive
def lie_force(model, w, p, rate, tau, f):
    """f = p' + tau - ad_w^T p: the part of p' that is not the frame's turning (0 for a free base without torque)."""
    for i in range(n_bodies(model)):
        first, end = dofs_of(model, i)
        for k in range(first, end):
            f[k] = rate[k] + tau[k]
        if holds_pose(model, i):
            F = wrench_add(lifted(model, i, f), ad_dual(joint_twist(model, i, w), lifted(model, i, p)))
            lower(model, i, F, f)


@primitive
def momentum_after(model, x, p, h, f, out):
    """out = Ad_{exp x}^T p + h Ad_{exp x/2}^T f: the momentum after the step; a free base keeps its spatial one."""
    for i in range(n_bodies(model)):
        first, end = dofs_of(model, i)
        if holds_pose(model, i):
            X = joint_twist(model, i, x)
            before = Ad_inv_dual(exp_se3(X), lifted(model, i, p))
            impulse = Ad_inv_dual(exp_se3(twist_mul(0.5, X)), wrench_mul(h, lifted(model, i, f)))
            lower(model, i, wrench_add(before, impulse), out)
        else:
            for k in range(first, end):
                out[k] = p[k] + h * f[k]


@primitive
def within_reach(model, x):
    """No joint turns by 2 pi in the step."""
    for i in range(n_bodies(model)):
        if holds_pose(model, i) and not within_a_turn(joint_twist(model, i, x).w):
            return False
    return True
