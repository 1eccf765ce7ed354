"""Articulated bodies: forward dynamics in O(n), and the inertias and biases behind it.

With A_i the acceleration of body i, gravity being the base's acceleration -g, the wrench that the subtree of body i
takes at joint i is

    F_i = IA_i A_i + pA_i,      IA_i = J_i + sum_children (IA_c - U_c D_c^-1 U_c^T),   U = IA S,  D = S^T U + armature

(Featherstone 1983, the O(n) method that Mueller 2018 section 4 builds on). A joint with several degrees of freedom is
eliminated column by column. The passes run in inertial axes about the first body's origin.
"""

from typing import NamedTuple

import numpy as np

from .algorithms import algorithm, per_body, per_coordinate
from .passes import inertial_axes, inward, joint_twist_at, outward, place
from .primitives import primitive
from .records import get_wrench, put_wrench, reader, width, writer
from .screws import (
    Ad,
    Ad_dual,
    Ad_inv_dual,
    Pose,
    Twist,
    Wrench,
    ad,
    ad_dual,
    apply_inertia,
    inertia_to,
    pair,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_mul,
    wrench_sub,
    zero_twist,
)
from .tree import (
    armature_of,
    base_acceleration,
    dofs_of,
    inertia_of,
    last_dof_of_parent,
    n_bodies,
    n_v,
    screw_of,
)
from .vectors import Matrix, Symmetric, add3, hat3, mul3, rot, rotT, sub3, sym_mul


class Articulated(NamedTuple):
    """An articulated inertia [[A, B], [B^T, D]]."""

    A: Symmetric
    B: Matrix
    D: Symmetric


class Eliminated(NamedTuple):
    """A velocity coordinate: its screw S in inertial axes, U = IA S, D = S . U + armature and 1 / D, what is left of
    its torque, u = tau - S . pA, and the next coordinate towards the root or -1."""

    S: Twist
    U: Wrench
    D: float
    inverse: float
    u: float
    ancestor: float


put_articulated = writer(Articulated)
get_eliminated, put_eliminated = reader(Eliminated), writer(Eliminated)
FRAME, ELIMINATED, ARTICULATED = width(Pose), width(Eliminated), width(Articulated)


@primitive
def rigid(J):
    """A rigid body's inertia as an articulated one: A = I, B = [h], D = m 1."""
    return Articulated(J.I, hat3(J.h), (J.m, 0.0, J.m, 0.0, 0.0, J.m))


@primitive
def articulated_mul(IA, X):
    """IA X."""
    return Wrench(add3(sym_mul(IA.A, X.w), rot(IA.B, X.v)), add3(rotT(IA.B, X.w), sym_mul(IA.D, X.v)))


@primitive
def project_out(IA, U, inverse):
    """IA - U U^T / D, given 1 / D: what is left of the inertia once the joint moves freely."""
    A, B, C, m, f = IA.A, IA.B, IA.D, U.m, U.f
    x, y = mul3(inverse, m), mul3(inverse, f)
    return Articulated(
        (A[0] - x[0] * m[0], A[1] - x[0] * m[1], A[2] - x[1] * m[1],
         A[3] - x[0] * m[2], A[4] - x[1] * m[2], A[5] - x[2] * m[2]),
        (sub3(B[0], mul3(x[0], f)), sub3(B[1], mul3(x[1], f)), sub3(B[2], mul3(x[2], f))),
        (C[0] - y[0] * f[0], C[1] - y[0] * f[1], C[2] - y[1] * f[1],
         C[3] - y[0] * f[2], C[4] - y[1] * f[2], C[5] - y[2] * f[2]),
    )  # fmt: skip


@primitive
def place_screws(model, i, T, axes):
    """The screw of every coordinate of body i's joint, the body being at T; the rest of its record is to come."""
    first, end = dofs_of(model, i)
    ancestor = float(last_dof_of_parent(model, i))
    nothing = Wrench((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    for k in range(first, end):
        put_eliminated(axes, k, Eliminated(Ad(T, screw_of(model, i, k - first)), nothing, 0.0, 0.0, 0.0, ancestor))
        ancestor = float(k)


@primitive
def eliminate(axes, k, armature, IA, p, tau):
    """Coordinate k moves freely under its torque tau: what is left of the inertia IA and the bias p."""
    x = get_eliminated(axes, k)
    U = articulated_mul(IA, x.S)
    D, u = pair(x.S, U) + armature, tau - pair(x.S, p)
    inverse = 1.0 / D
    put_eliminated(axes, k, Eliminated(x.S, U, D, inverse, u, x.ancestor))
    return project_out(IA, U, inverse), wrench_add(p, wrench_mul(u * inverse, U))


@primitive
def is_positive(axes, n):
    """Every coordinate has inertia to push against: M is positive definite."""
    positive = True
    for k in range(n):
        positive &= get_eliminated(axes, k).D > 0.0
    return positive


# --- forward dynamics --------------------------------------------------------------------------------------------


class MovingBody(NamedTuple):
    """A body's pose and twist in inertial axes, and c = ad_V S v, its acceleration at constant joint rates."""

    T: Pose
    V: Twist
    c: Twist


class Handle(NamedTuple):
    """What a subtree feels like from its joint: F = IA A + p."""

    IA: Articulated
    p: Wrench


get_moving_body, put_handle, get_handle = reader(MovingBody), writer(Handle), reader(Handle)
MOVING_BODY, HANDLE = width(MovingBody), width(Handle)


@outward(MovingBody)
def place_handles(model, i, parent, q, v, f_ext, axes, handles):
    T = place(model, i, parent.T, q)
    place_screws(model, i, T, axes)
    Sv = joint_twist_at(model, i, T, v)
    V = twist_add(parent.V, Sv)
    J = inertia_to(T, inertia_of(model, i))
    p = ad_dual(V, apply_inertia(J, V))
    if f_ext.shape[0] > 0:
        p = wrench_sub(p, Ad_dual(T, get_wrench(f_ext, i)))
    put_handle(handles, i, Handle(rigid(J), p))
    return MovingBody(T, V, ad(V, Sv))


@primitive
def moving_base(model, q):
    return MovingBody(inertial_axes(model, q), zero_twist(), zero_twist())


@inward(Handle)
def articulate_moving(model, i, x, tau, bodies, axes):
    IA, p = x.IA, wrench_add(x.p, articulated_mul(x.IA, get_moving_body(bodies, i).c))
    first, end = dofs_of(model, i)
    for k in range(end - 1, first - 1, -1):
        IA, p = eliminate(axes, k, armature_of(model, i), IA, p, tau[k])
    return Handle(IA, p)


@outward(Twist)
def accelerate(model, i, A, bodies, axes, a):
    first, end = dofs_of(model, i)
    for k in range(first, end):
        x = get_eliminated(axes, k)
        a[k] = (x.u - pair(A, x.U)) * x.inverse
        A = twist_add(A, twist_mul(a[k], x.S))
    return twist_add(A, get_moving_body(bodies, i).c)


@algorithm(
    "q, v, tau, f_ext? -> a",
    (per_body(MovingBody), per_coordinate(Eliminated), per_body(Handle), per_body(Twist)),
    may_fail=True,
)
def forward_dynamics(model, q, v, tau, f_ext, bodies, axes, handles, accelerations, a):
    """a = M^-1 (tau + sum Jac^T f_ext - C v - g). False where a joint has no inertia to push against."""
    place_handles(model, moving_base(model, q), bodies, q, v, f_ext, axes, handles)
    articulate_moving(model, handles, tau, bodies, axes)
    accelerate(model, base_acceleration(model), accelerations, bodies, axes, a)
    return is_positive(axes, n_v(model))


@primitive
def dynamics_memory(model):
    """What `accelerations` needs, for kernels that call it often."""
    nb, nv = n_bodies(model), n_v(model)
    return np.empty(nb * MOVING_BODY), np.empty(nv * ELIMINATED), np.empty(nb * HANDLE), np.empty(nb * 6)


@primitive
def accelerations(model, q, v, tau, f_ext, memory, a):
    """`forward_dynamics` in the memory that `dynamics_memory` made."""
    bodies, axes, handles, twists = memory
    return forward_dynamics(model, q, v, tau, f_ext, bodies, axes, handles, twists, a)


@algorithm(
    "q, v, tau, f_ext? -> out[42 nb]",
    (per_body(MovingBody), per_coordinate(Eliminated), per_body(Handle)),
    may_fail=True,
)
def articulated_handles(model, q, v, tau, f_ext, bodies, axes, handles, out):
    """Per body IA, row by row, and pA in its own frame."""
    place_handles(model, moving_base(model, q), bodies, q, v, f_ext, axes, handles)
    articulate_moving(model, handles, tau, bodies, axes)
    for i in range(n_bodies(model)):
        T, (IA, p) = get_moving_body(bodies, i).T, get_handle(handles, i)
        for e in range(6):
            put_wrench(out, 7 * i + e, Ad_inv_dual(T, articulated_mul(IA, Ad(T, unit_twist(e)))))
        put_wrench(out, 7 * i + 6, Ad_inv_dual(T, p))
    return is_positive(axes, n_v(model))


@primitive
def unit_twist(e):
    return Twist((1.0 * (e == 0), 1.0 * (e == 1), 1.0 * (e == 2)), (1.0 * (e == 3), 1.0 * (e == 4), 1.0 * (e == 5)))
