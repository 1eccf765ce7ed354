"""Composite bodies: M, and M, Mdot, C and g in one sweep in inertial axes about the first body's origin.

The mass matrix is Ploen 1999 (36), M = sum_i Jac_i^T J_i Jac_i; `terms` has the matrices that go with it.
"""

from typing import NamedTuple

from .algorithms import algorithm, per_body, per_coordinate
from .newton_euler import ADJOINT, PLOEN
from .passes import (
    Axis,
    Moving,
    MovingAxis,
    get_axis,
    get_moving_axis,
    inertial_axes,
    inward,
    joint_twist_at,
    outward,
    place,
    place_axes,
    place_moving_axes,
)
from .primitives import primitive
from .records import put_inertia, put_wrench, reader, writer
from .screws import (
    Ad,
    Ad_dual,
    Inertia,
    Matrix,
    Pose,
    Symmetric,
    Twist,
    Vector,
    Wrench,
    ad,
    add3,
    add33,
    apply_inertia,
    cross,
    dot,
    hat3,
    hat_squared,
    inertia_to,
    mul3,
    neg3,
    pair,
    rot,
    rotT,
    sub3,
    sym_mul,
    transpose,
    twist_add,
    wrench_add,
    wrench_mul,
    zero_twist,
    zero_wrench,
)
from .tree import (
    armature_of,
    dofs_of,
    first_dof_of,
    gravity_of,
    inertia_of,
    joint_frame,
    last_dof_of_parent,
    n_bodies,
    n_v,
    parent_of,
    screw_of,
)

# --- M -----------------------------------------------------------------------------------------------------------


get_joint_frame, put_joint_frame = reader(Pose), writer(Pose)


@outward(Pose)
def place_inertias(model, i, parent, q, axes, inertias):
    """Poses, screws and inertias in inertial axes."""
    T = place(model, i, parent, q)
    place_axes(model, i, T, axes)
    put_inertia(inertias, i, inertia_to(T, inertia_of(model, i)))
    return T


@inward(Inertia)
def composite_inertias(model, i, J):
    """Sum the inertias over subtrees."""
    return J


@inward(Inertia)
def mass_matrix_rows(model, i, J, axes, M):
    """M_jk = S_j . J S_k with the composite inertia J of body i's subtree, k its joint, j on the path to the root."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        F, j = apply_inertia(J, get_axis(axes, k).S), k
        while j >= 0:
            M[k, j] = M[j, k] = pair(get_axis(axes, j).S, F)
            j = int(get_axis(axes, j).ancestor)
        M[k, k] += armature_of(model, i)
    return J


# In the bodies' own frames screws are constant, and most entries of frames of joints along coordinate axes are 0
# or 1. Wrenches are transported from body to body along each path to the root. With such joints this takes half the
# operations of sums in inertial axes; in a chain with arbitrary axes fewer up to 6 coordinates, a fifth more with 10.
MAX_JOINTS = 10


@primitive
def put_frame(model, i, f, frames, inertias):
    """Store the frame of body i in its parent's, and the body's inertia."""
    put_joint_frame(frames, i, f)
    put_inertia(inertias, i, inertia_of(model, i))


@inward(Inertia)
def mass_matrix_by_frames(model, i, J, frames, M):
    """M_jk = S_j . J S_k with the composite inertia J of body i's subtree, k its joint, j on the path to the root."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        F, b, j = apply_inertia(J, screw_of(model, i, k - first)), i, k
        while j >= 0:
            start = first_dof_of(model, b)
            while j >= start:
                M[k, j] = M[j, k] = pair(screw_of(model, b, j - start), F)
                j -= 1
            F, j, b = Ad_dual(get_joint_frame(frames, b), F), last_dof_of_parent(model, b), parent_of(model, b)
        M[k, k] += armature_of(model, i)
    return inertia_to(get_joint_frame(frames, i), J)


@algorithm("q -> M[nv, nv]", (per_body(Pose), per_coordinate(Axis), per_body(Inertia)))
def mass_matrix(model, q, frames, axes, inertias, M):
    M[:, :] = 0.0
    if n_v(model) <= MAX_JOINTS:
        for i in range(n_bodies(model)):
            put_frame(model, i, joint_frame(model, i, q), frames, inertias)
        mass_matrix_by_frames(model, inertias, frames, M)
    else:
        place_inertias(model, inertial_axes(model, q), frames, q, axes, inertias)
        mass_matrix_rows(model, inertias, axes, M)


# --- M, Mdot, C, g -------------------------------------------------------------------------------------------------


class MovingInertia(NamedTuple):
    """A subtree's inertia J and B = Cbar - J ad_V = [[B11, 0], [-[p], 0]]; Jdot = [[B11 + B11^T, [p]], [-[p], 0]]."""

    J: Inertia
    B11: Matrix
    p: Vector


put_moving_inertia = writer(MovingInertia)


@primitive
def coriolis_composite(J, V, form, trace):
    """(B11, p) of one body, p its linear momentum.

    B11 = [w] I - [h][v] for Ploen's Cbar about the body's own origin, where tr I is `trace`; - tr(I)/2 [w] makes it the
    Christoffel-consistent one, which no choice of origin changes; the adjoint form begins with that.
    """
    w, v = V.w, V.v
    I = ((J.I[0], J.I[1], J.I[3]), (J.I[1], J.I[2], J.I[4]), (J.I[3], J.I[4], J.I[5]))
    wI = transpose((cross(w, I[0]), cross(w, I[1]), cross(w, I[2])))  # [w] I
    B11 = add33(wI, hat_squared(J.h, neg3(v)))
    here = J.I[0] + J.I[2] + J.I[5]
    if form == PLOEN:
        B11 = add33(B11, hat3(mul3(0.5 * (trace - here), w)))
    else:
        B11 = add33(B11, hat3(mul3(-0.5 * here, w)))
    return B11, add3(mul3(J.m, v), cross(w, J.h))


@outward(Moving)
def place_moving_inertias(model, i, parent, q, v, form, axes, composites):
    T = place(model, i, parent.T, q)
    V = place_moving_axes(model, i, T, parent.V, v, axes)
    own = inertia_of(model, i)
    J = inertia_to(T, own)
    B11, p = coriolis_composite(J, V, form, own.I[0] + own.I[2] + own.I[5])
    put_moving_inertia(composites, i, MovingInertia(J, B11, p))
    return Moving(T, V)


@inward(MovingInertia)
def term_rows(model, i, x, axes, M, Mdot, C, g):
    """Entries of a subtree with composite J and B, for j on the path from its joint's coordinate k to the root:

    M_jk = S_j . J S_k,   Mdot_jk = dS_j . J S_k + S_j . (J dS_k + Jdot S_k),
    C_jk = S_j . (J dS_k + B S_k),   C_kj = dS_j . J S_k + S_j . B^T S_k
    """
    J, gravity = x.J, gravity_of(model)
    weight = Wrench(cross(J.h, gravity), mul3(J.m, gravity))
    first, end = dofs_of(model, i)
    for k in range(first, end):
        S, dS = get_moving_axis(axes, k).S, get_moving_axis(axes, k).dS
        F, JdS = apply_inertia(J, S), apply_inertia(J, dS)
        BTS = add3(rotT(x.B11, S.w), cross(x.p, S.v))  # angular part of B^T S; the linear part is zero
        W = Wrench(add3(JdS.m, rot(x.B11, S.w)), sub3(JdS.f, cross(x.p, S.w)))  # J dS + B S
        G = Wrench(add3(W.m, BTS), W.f)  # J dS + Jdot S
        g[k] = -pair(S, weight)
        j = k
        while j >= 0:
            axis = get_moving_axis(axes, j)
            rate = pair(axis.dS, F)
            M[k, j] = M[j, k] = pair(axis.S, F)
            Mdot[k, j] = Mdot[j, k] = rate + pair(axis.S, G)
            C[k, j] = rate + dot(axis.S.w, BTS)
            C[j, k] = pair(axis.S, W)
            j = int(axis.ancestor)
        M[k, k] += armature_of(model, i)
    return x


class Bracket(NamedTuple):
    """Sum over a subtree of E = (J ad_V - ad_V^T J) - Cbar, Cbar the Christoffel-consistent one, in inertial axes:

    E = 1/2 [[[a], N + [b]], [[b] - N, [c]]] with a = tr(I) w + 2 h x v, b = 2 m v + w x h, c = 2 m w and
    N = [h][w] + [w][h], which is symmetric.
    """

    a: Vector
    b: Vector
    c: Vector
    N: Symmetric


get_moving, put_bracket = reader(Moving), writer(Bracket)


@primitive
def bracket(J, V):
    w, h = V.w, J.h
    a = add3(mul3(J.I[0] + J.I[2] + J.I[5], w), mul3(2.0, cross(h, V.v)))
    d = 2.0 * dot(h, w)
    N = (
        2.0 * h[0] * w[0] - d, h[0] * w[1] + h[1] * w[0], 2.0 * h[1] * w[1] - d,
        h[0] * w[2] + h[2] * w[0], h[1] * w[2] + h[2] * w[1], 2.0 * h[2] * w[2] - d,
    )  # fmt: skip
    return Bracket(a, add3(mul3(2.0 * J.m, V.v), cross(w, h)), mul3(2.0 * J.m, w), N)


@inward(Bracket)
def add_brackets(model, i, E, axes, C):
    """C_jk += S_j . E S_k and, E being skew, C_kj -= it, for j on the path from body i's coordinate k to the root."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        S = get_moving_axis(axes, k).S
        m = add3(add3(cross(E.a, S.w), cross(E.b, S.v)), sym_mul(E.N, S.v))
        f = sub3(add3(cross(E.b, S.w), cross(E.c, S.v)), sym_mul(E.N, S.w))
        j = int(get_moving_axis(axes, k).ancestor)
        while j >= 0:
            axis = get_moving_axis(axes, j)
            half = 0.5 * pair(axis.S, Wrench(m, f))
            C[j, k] += half
            C[k, j] -= half
            j = int(axis.ancestor)
    return E


@algorithm(
    "q, v; form: i8 -> M[nv, nv], Mdot[nv, nv], C[nv, nv], g",
    (per_body(Moving), per_coordinate(MovingAxis), per_body(MovingInertia)),
)
def terms(model, q, v, form, bodies, axes, composites, M, Mdot, C, g):
    """M, Mdot, C and g in one sweep."""
    M[:, :] = 0.0
    Mdot[:, :] = 0.0
    C[:, :] = 0.0
    root = Moving(inertial_axes(model, q), zero_twist())
    place_moving_inertias(model, root, bodies, q, v, form, axes, composites)
    term_rows(model, composites, axes, M, Mdot, C, g)
    if form == ADJOINT:  # C is the Christoffel-consistent one so far; the memory of the composites is used again
        for i in range(n_bodies(model)):
            x = get_moving(bodies, i)
            put_bracket(composites, i, bracket(inertia_to(x.T, inertia_of(model, i)), x.V))
        add_brackets(model, composites, axes, C)


# --- products with vectors -------------------------------------------------------------------------------------------
#
# M x and C^T x by recursion, O(n), in inertial axes, as generalised momenta and their observers need them.
#
# With X_i = Jac_i x the twist that x gives to body i, (M x)_k = S_k . sum J_i X_i over the subtree of coordinate k, and
# (C^T x)_k = dS_k . sum J_i X_i + S_k . sum B_i^T X_i with the B of `MovingInertia`: the transposes of its columns.


class CarriedBody(NamedTuple):
    """A body's pose and the twist X = Jac x."""

    T: Pose
    X: Twist


class CarriedMoving(NamedTuple):
    """A body's pose, its twist V and the twist X = Jac x."""

    T: Pose
    V: Twist
    X: Twist


class Share(NamedTuple):
    """Sums over a subtree: P = sum J X and Q = sum B^T X."""

    P: Wrench
    Q: Wrench


get_carried, get_carried_moving, put_share = reader(CarriedBody), reader(CarriedMoving), writer(Share)


@outward(CarriedBody)
def carry(model, i, parent, q, x, momenta):
    T = place(model, i, parent.T, q)
    X = twist_add(parent.X, joint_twist_at(model, i, T, x))
    put_wrench(momenta, i, apply_inertia(inertia_to(T, inertia_of(model, i)), X))
    return CarriedBody(T, X)


@inward(Wrench)
def gather_momenta(model, i, P, x, bodies, y):
    T, (first, end) = get_carried(bodies, i).T, dofs_of(model, i)
    for k in range(first, end):
        y[k] = pair(Ad(T, screw_of(model, i, k - first)), P) + armature_of(model, i) * x[k]
    return P


@algorithm("q, x -> y", (per_body(CarriedBody), per_body(Wrench)))
def mass_matrix_product(model, q, x, bodies, momenta, y):
    """M x."""
    carry(model, CarriedBody(inertial_axes(model, q), zero_twist()), bodies, q, x, momenta)
    gather_momenta(model, momenta, x, bodies, y)


@primitive
def bracket_product(E, X):
    """E X for the skew E of a `Bracket`."""
    m = add3(add3(cross(E.a, X.w), cross(E.b, X.v)), sym_mul(E.N, X.v))
    f = sub3(add3(cross(E.b, X.w), cross(E.c, X.v)), sym_mul(E.N, X.w))
    return wrench_mul(0.5, Wrench(m, f))


@outward(CarriedMoving)
def carry_moving(model, i, parent, q, v, x, form, shares):
    T, own = place(model, i, parent.T, q), inertia_of(model, i)
    V = twist_add(parent.V, joint_twist_at(model, i, T, v))
    X = twist_add(parent.X, joint_twist_at(model, i, T, x))
    J = inertia_to(T, own)
    B11, p = coriolis_composite(J, V, form, own.I[0] + own.I[2] + own.I[5])
    Q = Wrench(add3(rotT(B11, X.w), cross(p, X.v)), (0.0, 0.0, 0.0))
    E = bracket_product(bracket(J, V), X) if form == ADJOINT else zero_wrench()
    put_share(shares, i, Share(apply_inertia(J, X), wrench_add(Q, wrench_mul(-1.0, E))))
    return CarriedMoving(T, V, X)


@inward(Share)
def gather_shares(model, i, share, bodies, y):
    body, (first, end) = get_carried_moving(bodies, i), dofs_of(model, i)
    for k in range(first, end):
        S = Ad(body.T, screw_of(model, i, k - first))
        y[k] = pair(ad(body.V, S), share.P) + pair(S, share.Q)
    return share


@algorithm("q, v, x; form: i8 -> y", (per_body(CarriedMoving), per_body(Share)))
def coriolis_transpose_product(model, q, v, x, form, bodies, shares, y):
    """C(q, v)^T x."""
    root = CarriedMoving(inertial_axes(model, q), zero_twist(), zero_twist())
    carry_moving(model, root, bodies, q, v, x, form, shares)
    gather_shares(model, shares, bodies, y)
