"""Momenta and energies of a tree, by sums over subtrees in inertial axes about the first body's origin."""

from typing import NamedTuple

import numpy as np

from .algorithms import algorithm, per_body, per_coordinate
from .composite_bodies import MovingInertia, place_moving_inertias
from .exponentials import dexp_inv_se3, dexp_se3, exp_se3, within_a_turn
from .newton_euler import PLOEN
from .passes import (
    Moving,
    MovingAxis,
    get_moving_axis,
    inertial_axes,
    inward,
    joint_twist_at,
    outward,
    place,
    place_moving_axes,
)
from .primitives import primitive
from .records import put, reader, width, writer
from .screws import (
    Ad_inv_dual,
    Inertia,
    Pose,
    Twist,
    Wrench,
    ad_dual,
    add3,
    apply_inertia,
    cross,
    dot,
    inertia_add,
    inertia_to,
    mul3,
    pair,
    rot,
    rotT,
    sub3,
    twist_add,
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

# --- spatial momentum ------------------------------------------------------------------------------------------------
#
# The momentum p = dT/dv of a robot and its rate: sums over subtrees in inertial axes, Mueller 2018 (36), (79).
#
#     p_k = S_k . Pi_k + armature_k v_k,     p_k' = (ad_V S_k) . Pi_k + S_k . W_k + tau_k,
#
# where Pi_k is the subtree's spatial momentum and W_k its weight. One pass costs O(n). `structure_preserving` uses it.


class MovingSubtree(NamedTuple):
    """A subtree's inertia and spatial momentum."""

    J: Inertia
    Pi: Wrench


put_subtree, get_subtree = writer(MovingSubtree), reader(MovingSubtree)
MOVING, MOVING_AXIS, SUBTREE = width(Moving), width(MovingAxis), width(MovingSubtree)

# --- momentum and the force on it --------------------------------------------------------------------------------


@primitive
def sweep_memory(model):
    """Work memory of `momentum_sweep`."""
    nb, nv = n_bodies(model), n_v(model)
    return np.empty(nb * MOVING), np.empty(nv * MOVING_AXIS), np.empty(nb * SUBTREE)


@outward(Moving)
def place_momenta(model, i, parent, q, v, axes, subtrees):
    T = place(model, i, parent.T, q)
    V = place_moving_axes(model, i, T, parent.V, v, axes)
    J = inertia_to(T, inertia_of(model, i))
    put_subtree(subtrees, i, MovingSubtree(J, apply_inertia(J, V)))
    return Moving(T, V)


@inward(MovingSubtree)
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
    """The wrench F in the span of S^+ with F . (S v) = p . v for all v."""
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
    """f = p' + tau - ad_w^T p: p' without the frame's rotation (0 for a free base without torque)."""
    for i in range(n_bodies(model)):
        first, end = dofs_of(model, i)
        for k in range(first, end):
            f[k] = rate[k] + tau[k]
        if holds_pose(model, i):
            F = wrench_add(lifted(model, i, f), ad_dual(joint_twist(model, i, w), lifted(model, i, p)))
            lower(model, i, F, f)


@primitive
def momentum_after(model, x, p, h, f, out):
    """out = Ad_{exp x}^T p + h Ad_{exp x/2}^T f, the momentum after the step; it conserves that of a free base."""
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
    """Whether every joint with several degrees of freedom turns by less than a full turn in the step."""
    for i in range(n_bodies(model)):
        if holds_pose(model, i) and not within_a_turn(joint_twist(model, i, x).w):
            return False
    return True


# --- energies --------------------------------------------------------------------------------------------------------
#
# Energies and momentum of a tree, summed in inertial axes about the first body's origin.


get_moving = reader(Moving)


@outward(Moving)
def move_bodies(model, i, parent, q, v):
    T = place(model, i, parent.T, q)
    return Moving(T, twist_add(parent.V, joint_twist_at(model, i, T, v)))


@algorithm("q, v -> state[8]", (per_body(Moving),))
def mechanical_state(model, q, v, bodies, out):
    """Kinetic energy, potential energy, spatial momentum about the world's origin in inertial axes (6)."""
    move_bodies(model, Moving(inertial_axes(model, q), zero_twist()), bodies, q, v)
    kinetic, total, P = 0.0, Inertia(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)), zero_wrench()
    for i in range(n_bodies(model)):
        T, V = get_moving(bodies, i)
        J = inertia_to(T, inertia_of(model, i))
        h = apply_inertia(J, V)
        kinetic += 0.5 * pair(V, h)
        first, end = dofs_of(model, i)
        for k in range(first, end):
            kinetic += 0.5 * armature_of(model, i) * v[k] * v[k]
        P, total = wrench_add(P, h), inertia_add(total, J)
    origin = root_origin(model, q)
    out[0] = kinetic
    out[1] = -dot(gravity_of(model), add3(total.h, mul3(total.m, origin)))
    put(out, 2, add3(P.m, cross(origin, P.f)))
    put(out, 5, P.f)


get_pose = reader(Pose)


# --- centroidal momentum ---------------------------------------------------------------------------------------------
#
# Centre of mass and centroidal momentum: the screws S_k of the joints times the inertia of the bodies that they move.
#
# With J the composite inertia of the subtree of coordinate k in inertial axes, column k of the momentum matrix about a
# fixed point is J S_k, and its rate J dS_k + Jdot S_k, as in `composite_bodies`. About the centre of mass c the moment
# changes to m - c x f (Orin, Goswami and Lee 2013, "Centroidal dynamics of a humanoid robot").


@outward(Pose)
def place_bodies(model, i, parent, q):
    return place(model, i, parent, q)


@algorithm("q -> com[3]", (per_body(Pose),))
def center_of_mass(model, q, bodies, com):
    """Centre of mass of the whole robot in the world's frame; nan without mass."""
    place_bodies(model, inertial_axes(model, q), bodies, q)
    total = Inertia(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(n_bodies(model)):
        total = inertia_add(total, inertia_to(get_pose(bodies, i), inertia_of(model, i)))
    c = add3(mul3(1.0 / total.m, total.h), root_origin(model, q))
    com[0], com[1], com[2] = c[0], c[1], c[2]


@inward(MovingInertia)
def momentum_columns(model, i, x, axes, A, dA):
    """Columns of the momentum matrix and of its rate, about the origin of the inertial axes."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        S, dS = get_moving_axis(axes, k).S, get_moving_axis(axes, k).dS
        F, JdS = apply_inertia(x.J, S), apply_inertia(x.J, dS)
        BTS = add3(rotT(x.B11, S.w), cross(x.p, S.v))  # Jdot = B + B^T
        m, f = add3(add3(JdS.m, rot(x.B11, S.w)), BTS), sub3(JdS.f, cross(x.p, S.w))
        for r in range(3):
            A[r, k], A[r + 3, k], dA[r, k], dA[r + 3, k] = F.m[r], F.f[r], m[r], f[r]
    return x


@algorithm(
    "q, v -> A[6, nv], dA[6, nv]",
    (per_body(Moving), per_coordinate(MovingAxis), per_body(MovingInertia)),
)
def centroidal_momentum(model, q, v, bodies, axes, composites, A, dA):
    """The centroidal momentum is A v, in the world's axes about the centre of mass; dA is the rate of A."""
    root = Moving(inertial_axes(model, q), zero_twist())
    place_moving_inertias(model, root, bodies, q, v, PLOEN, axes, composites)
    momentum_columns(model, composites, axes, A, dA)
    total = Inertia(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(n_bodies(model)):
        total = inertia_add(total, inertia_to(get_moving(bodies, i).T, inertia_of(model, i)))
    c, rate = mul3(1.0 / total.m, total.h), (0.0, 0.0, 0.0)
    for k in range(n_v(model)):
        rate = add3(rate, mul3(v[k] / total.m, (A[3, k], A[4, k], A[5, k])))
    for k in range(n_v(model)):
        f, df = (A[3, k], A[4, k], A[5, k]), (dA[3, k], dA[4, k], dA[5, k])
        moved, change = cross(c, f), add3(cross(rate, f), cross(c, df))
        for r in range(3):
            A[r, k] -= moved[r]
            dA[r, k] -= change[r]
