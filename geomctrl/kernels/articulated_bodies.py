"""Articulated bodies: forward dynamics in O(n), M^-1 without forming M, and the inertias and biases behind both.

With A_i the acceleration of body i, gravity being the base's acceleration -g, the wrench that the subtree of body i
takes at joint i is

    F_i = IA_i A_i + pA_i,      IA_i = J_i + sum_children (IA_c - U_c D_c^-1 U_c^T),   U = IA S,  D = S^T U

(Featherstone 1983, the O(n) method that Mueller 2018 section 4 builds on). A joint with several degrees of freedom is
eliminated column by column. The passes run in inertial axes about the first body's origin. M^-1 is applied to LANES
columns side by side, so that LLVM turns the innermost loops into vector instructions.
"""

from typing import NamedTuple

import numpy as np

from .algorithms import algorithm, numbers, per_body, per_coordinate
from .jit import kernel
from .lanes import LANES
from .passes import inertial_axes, inward, joint_twist_at, outward, place
from .primitives import primitive
from .records import get_wrench, put_wrench, reader, width, writer
from .screws import (
    Ad,
    Ad_dual,
    Ad_inv_dual,
    Frame,
    Twist,
    Wrench,
    ad,
    ad_dual,
    inertia_to,
    momentum,
    pair,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_mul,
    wrench_sub,
    zero_twist,
)
from .tree import (
    base_acceleration,
    dofs_of,
    good_configuration,
    good_velocity,
    inertia_of,
    last_dof_of_parent,
    n_bodies,
    n_v,
    screw_of,
)
from .vectors import Matrix, Symmetric, add3, hat3, mul3, rot, rotT, sub3, sym_mul

# rows of lanes, unsigned: a signed index may count from the end, and that question is in the way of vector instructions
R1, R2, R3, R4, R5, R6, R7 = (np.uint64(k * LANES) for k in range(1, 8))


class Articulated(NamedTuple):
    """An articulated inertia [[A, B], [B^T, D]]."""

    A: Symmetric
    B: Matrix
    D: Symmetric


class Eliminated(NamedTuple):
    """A velocity coordinate: its screw S in inertial axes, U = IA S, D = S . U, what is left of its torque,
    u = tau - S . pA, and the next coordinate towards the root or -1."""

    S: Twist
    U: Wrench
    D: float
    u: float
    ancestor: float


get_articulated, put_articulated = reader(Articulated), writer(Articulated)
get_eliminated, put_eliminated = reader(Eliminated), writer(Eliminated)
FRAME, ELIMINATED, ARTICULATED = width(Frame), width(Eliminated), width(Articulated)


@primitive
def rigid(J):
    """A rigid body's inertia as an articulated one: A = I, B = [h], D = m 1."""
    return Articulated(J.I, hat3(J.h), (J.m, 0.0, J.m, 0.0, 0.0, J.m))


@primitive
def articulated_mul(IA, X):
    """IA X."""
    return Wrench(add3(sym_mul(IA.A, X.w), rot(IA.B, X.v)), add3(rotT(IA.B, X.w), sym_mul(IA.D, X.v)))


@primitive
def project_out(IA, U, D):
    """IA - U U^T / D: what is left of the inertia once the joint moves freely."""
    A, B, C, m, f = IA.A, IA.B, IA.D, U.m, U.f
    x, y = mul3(1.0 / D, m), mul3(1.0 / D, f)
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
        put_eliminated(axes, k, Eliminated(Ad(T, screw_of(model, i, k - first)), nothing, 0.0, 0.0, ancestor))
        ancestor = float(k)


@primitive
def eliminate(axes, k, IA, p, tau):
    """Coordinate k moves freely under its torque tau: what is left of the inertia IA and the bias p."""
    x = get_eliminated(axes, k)
    U = articulated_mul(IA, x.S)
    D, u = pair(x.S, U), tau - pair(x.S, p)
    put_eliminated(axes, k, Eliminated(x.S, U, D, u, x.ancestor))
    return project_out(IA, U, D), wrench_add(p, wrench_mul(u / D, U))


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

    T: Frame
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
    p = ad_dual(V, momentum(J, V))
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
        IA, p = eliminate(axes, k, IA, p, tau[k])
    return Handle(IA, p)


@outward(Twist)
def accelerate(model, i, A, bodies, axes, a):
    first, end = dofs_of(model, i)
    for k in range(first, end):
        x = get_eliminated(axes, k)
        a[k] = (x.u - pair(A, x.U)) / x.D
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


# --- M^-1 --------------------------------------------------------------------------------------------------------


@outward(Frame)
def place_articulated(model, i, parent, q, axes, inertias):
    T = place(model, i, parent, q)
    place_screws(model, i, T, axes)
    put_articulated(inertias, i, rigid(inertia_to(T, inertia_of(model, i))))
    return T


@inward(Articulated)
def articulate_at_rest(model, i, IA, axes):
    p = Wrench((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    first, end = dofs_of(model, i)
    for k in range(end - 1, first - 1, -1):
        IA, p = eliminate(axes, k, IA, p, 0.0)
    return IA


@primitive
def articulate(model, q, frames, axes, inertias):
    """S, U and D of every coordinate. False unless M > 0."""
    place_articulated(model, inertial_axes(model, q), frames, q, axes, inertias)
    articulate_at_rest(model, inertias, axes)
    return is_positive(axes, n_v(model))


@primitive
def solve_lanes(axes, n, W):
    """M^-1 applied to LANES columns, from S, U and D of the n coordinates.

    A coordinate's record in W has 7 LANES numbers: a wrench on the way in, an acceleration on the way out (6), then the
    column's entry, in place. One record holds both, and a coordinate counts as a body of its own: offsets within the
    innermost loops are then constants, and LLVM needs no proof that arrays are apart.
    """
    for k in range(n):
        for l in range(6 * LANES):
            W[k * 7 * LANES + l] = 0.0
    for k in range(n - 1, -1, -1):
        S, U = get_eliminated(axes, k).S, get_eliminated(axes, k).U
        w, v, m, f = S.w, S.v, U.m, U.f
        one_over_D = 1.0 / get_eliminated(axes, k).D
        row = np.uint64(k) * R7
        for lane in range(R1):
            l = row + lane
            m1, m2, m3, f1, f2, f3 = lane6(W, l)
            u = W[l + R6] - (w[0] * m1 + w[1] * m2 + w[2] * m3 + v[0] * f1 + v[1] * f2 + v[2] * f3)
            u *= one_over_D
            W[l + R6] = u
            put_lane6(W, l, m1 + u * m[0], m2 + u * m[1], m3 + u * m[2], f1 + u * f[0], f2 + u * f[1], f3 + u * f[2])
        p = int(get_eliminated(axes, k).ancestor)
        if p >= 0:
            up = np.uint64(p) * R7
            for l in range(R6):
                W[up + l] += W[row + l]
    for k in range(n):
        S, U = get_eliminated(axes, k).S, get_eliminated(axes, k).U
        w, v, m, f = S.w, S.v, U.m, U.f
        one_over_D = 1.0 / get_eliminated(axes, k).D
        row, p = np.uint64(k) * R7, int(get_eliminated(axes, k).ancestor)
        if p >= 0:
            up = np.uint64(p) * R7
            for l in range(R6):
                W[row + l] = W[up + l]
        else:
            for l in range(R6):
                W[row + l] = 0.0
        for lane in range(R1):
            l = row + lane
            w1, w2, w3, v1, v2, v3 = lane6(W, l)
            y = m[0] * w1 + m[1] * w2 + m[2] * w3 + f[0] * v1 + f[1] * v2 + f[2] * v3
            y = W[l + R6] - one_over_D * y
            W[l + R6] = y
            put_lane6(W, l, w1 + y * w[0], w2 + y * w[1], w3 + y * w[2], v1 + y * v[0], v2 + y * v[1], v3 + y * v[2])


@primitive
def lane6(W, l):
    return W[l], W[l + R1], W[l + R2], W[l + R3], W[l + R4], W[l + R5]


@primitive
def put_lane6(W, l, a, b, c, d, e, f):
    W[l] = a
    W[l + R1] = b
    W[l + R2] = c
    W[l + R3] = d
    W[l + R4] = e
    W[l + R5] = f


@primitive
def solve_columns(axes, scale, B, W, out):
    """out = scale M^-1 B column by column, B and out (nv, m), out may be B. `W`: 7 LANES numbers a coordinate."""
    n, m = B.shape
    for start in range(0, m, LANES):
        count = min(LANES, m - start)
        for k in range(n):
            entry = (7 * k + 6) * LANES
            for l in range(count):
                W[entry + l] = scale * B[k, start + l]
            for l in range(count, LANES):
                W[entry + l] = 0.0
        solve_lanes(axes, n, W)
        for k in range(n):
            entry = (7 * k + 6) * LANES
            for l in range(count):
                out[k, start + l] = W[entry + l]


@primitive
def invert(axes, W, out):
    """out = M^-1 (nv, nv), exactly symmetric."""
    n = out.shape[0]
    for i in range(n):
        for j in range(n):
            out[i, j] = 0.0
        out[i, i] = 1.0
    solve_columns(axes, 1.0, out, W, out)
    for i in range(n):
        for j in range(i):
            out[j, i] = out[i, j] = 0.5 * (out[i, j] + out[j, i])


MEMORY = per_body(Frame), per_coordinate(Eliminated), per_body(Articulated), numbers(f"{7 * LANES} * nv")


@algorithm("q -> inverse[nv, nv]", MEMORY, may_fail=True)
def mass_matrix_inverse(model, q, frames, axes, inertias, W, inverse):
    positive = articulate(model, q, frames, axes, inertias)
    invert(axes, W, inverse)
    return positive


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1])")
def mass_matrix_solve_one(model, q, b, x):
    if not (good_configuration(model, q) and good_velocity(model, b)):
        raise ValueError
    n, m = n_bodies(model), n_v(model)
    axes = np.empty(m * ELIMINATED)
    if not articulate(model, q, np.empty(n * FRAME), axes, np.empty(n * ARTICULATED)):
        raise ValueError
    solve_columns(axes, 1.0, b.reshape((m, 1)), np.empty(m * 7 * LANES), x.reshape((m, 1)))


@kernel("Tuple((f8[:,:,::1], i8))(f8[::1], f8[:,::1], f8[:,:,::1])")
def mass_matrix_solve_many(model, q, B):
    """(M^-1 B, number of the first state whose M is not positive, or -1)."""
    n, m = n_bodies(model), n_v(model)
    frames, axes, inertias = np.empty(n * FRAME), np.empty(m * ELIMINATED), np.empty(n * ARTICULATED)
    out, W = np.empty(B.shape), np.empty(m * 7 * LANES)
    for b in range(q.shape[0]):
        if not articulate(model, q[b], frames, axes, inertias):
            return out, b
        solve_columns(axes, 1.0, B[b], W, out[b])
    return out, -1
