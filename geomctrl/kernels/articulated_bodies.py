"""Forward dynamics in O(n) with articulated bodies, and their inertias and biases.

Let A_i be the acceleration of body i; gravity enters as the base's acceleration -g. The wrench that joint i transmits
to the subtree of body i is

    F_i = IA_i A_i + pA_i,      IA_i = J_i + sum_children (IA_c - U_c D_c^-1 U_c^T),   U = IA S,  D = S^T U + armature

(Featherstone 1983, the O(n) method that Mueller 2018 section 4 builds on). A joint with several degrees of freedom is
eliminated column by column. The passes run in inertial axes about the first body's origin.
"""

from typing import NamedTuple

import numpy as np

from .algorithms import algorithm, numbers, per_body, per_coordinate
from .composite_bodies import MAX_JOINTS, get_joint_frame, mass_matrix_by_frames, put_frame
from .newton_euler import moving_wrench
from .passes import inertial_axes, inward, joint_twist_at, outward, place
from .primitives import primitive
from .records import get_wrench, put_wrench, reader, width, writer
from .screws import (
    Ad,
    Ad_dual,
    Ad_inv_dual,
    Inertia,
    Matrix,
    Pose,
    Symmetric,
    Twist,
    Vector,
    Wrench,
    ad,
    ad_dual,
    add3,
    apply_inertia,
    cross,
    hat3,
    inertia_to,
    mul3,
    neg3,
    pair,
    rot,
    rotT,
    sub3,
    sym_mul,
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
    gravity_of,
    inertia_of,
    joint_frame,
    joint_twist,
    last_dof_of_parent,
    n_bodies,
    n_v,
    screw_of,
)


class Articulated(NamedTuple):
    """An articulated inertia [[A, B], [B^T, D]]."""

    A: Symmetric
    B: Matrix
    D: Symmetric


class Eliminated(NamedTuple):
    """A velocity coordinate: its screw S in inertial axes, U = IA S, D = S . U + armature and 1 / D, the
    reduced torque u = tau - S . pA, and the next coordinate towards the root or -1."""

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
    """IA - U U^T / D, given 1 / D: the inertia seen through a joint that moves freely."""
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
    """Store the screw of every coordinate of body i's joint, for the body at T; `eliminate` fills in the rest."""
    first, end = dofs_of(model, i)
    ancestor = float(last_dof_of_parent(model, i))
    nothing = Wrench((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    for k in range(first, end):
        put_eliminated(axes, k, Eliminated(Ad(T, screw_of(model, i, k - first)), nothing, 0.0, 0.0, 0.0, ancestor))
        ancestor = float(k)


@primitive
def eliminate(axes, k, armature, IA, p, tau):
    """The inertia IA and the bias p seen through coordinate k, which moves freely under its torque tau."""
    x = get_eliminated(axes, k)
    U = articulated_mul(IA, x.S)
    D, u = pair(x.S, U) + armature, tau - pair(x.S, p)
    inverse = 1.0 / D
    put_eliminated(axes, k, Eliminated(x.S, U, D, inverse, u, x.ancestor))
    return project_out(IA, U, inverse), wrench_add(p, wrench_mul(u * inverse, U))


@primitive
def is_positive(axes, n):
    """Whether every D is positive, which is equivalent to a positive definite M."""
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
    """Inertia and bias of a subtree seen from its joint: F = IA A + p."""

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
def accelerate_articulated(model, i, A, bodies, axes, a):
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
def forward_dynamics_articulated(model, q, v, tau, f_ext, bodies, axes, handles, accelerations, a):
    """a = M^-1 (tau + sum Jac^T f_ext - C v - g). False unless M > 0."""
    place_handles(model, moving_base(model, q), bodies, q, v, f_ext, axes, handles)
    articulate_moving(model, handles, tau, bodies, axes)
    accelerate_articulated(model, base_acceleration(model), accelerations, bodies, axes, a)
    return is_positive(axes, n_v(model))


@primitive
def dynamics_memory(model):
    """Work memory of `accelerations`, for kernels that call it often."""
    nb, nv = n_bodies(model), n_v(model)
    return np.empty(nb * MOVING_BODY), np.empty(nv * ELIMINATED), np.empty(nb * HANDLE), np.empty(nb * 6)


@primitive
def accelerations(model, q, v, tau, f_ext, memory, a):
    """`forward_dynamics` with the work memory of `dynamics_memory`."""
    bodies, axes, handles, twists = memory
    return forward_dynamics_articulated(model, q, v, tau, f_ext, bodies, axes, handles, twists, a)


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


# --- forward dynamics ------------------------------------------------------------------------------------------------
#
# Forward dynamics, M a = tau - C v - g: by the mass matrix for few coordinates, by articulated bodies for more.
#
# Let F_i be the wrenches of the motion without joint accelerations; gravity enters as the base's acceleration. Then r =
# tau - S^T F, and M = L^T D L is factorised from the last coordinate to the first along the paths to the root: other
# entries are zero (Featherstone 2005). All quantities are in the bodies' own frames.


class Carried(NamedTuple):
    """A body's angular velocity, and its angular acceleration and that of its origin at constant joint rates."""

    w: Vector
    alpha: Vector
    acceleration: Vector


@outward(Carried)
def carry(model, i, parent, q, v, f_ext, frames, inertias, wrenches):
    """The outward pass of Luh, Walker and Paul 1980, which needs no velocities of origins."""
    f, Sv = joint_frame(model, i, q), joint_twist(model, i, v)
    before = rotT(f.R, parent.w)
    w, alpha = add3(before, Sv.w), add3(rotT(f.R, parent.alpha), cross(before, Sv.w))
    turning = add3(cross(parent.alpha, f.p), cross(parent.w, cross(parent.w, f.p)))
    acceleration = add3(rotT(f.R, add3(parent.acceleration, turning)), cross(add3(before, w), Sv.v))
    F = moving_wrench(inertia_of(model, i), w, alpha, acceleration)
    put_wrench(wrenches, i, wrench_sub(F, get_wrench(f_ext, i)) if f_ext.shape[0] > 0 else F)
    put_frame(model, i, f, frames, inertias)
    return Carried(w, alpha, acceleration)


@inward(Wrench)
def subtract(model, i, F, frames, ancestors, r):
    """r_k -= S_k . F with the wrenches F of subtrees, and each coordinate's next one towards the root."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        r[k] -= pair(screw_of(model, i, k - first), F)
        ancestors[k] = k - 1.0 if k > first else 1.0 * last_dof_of_parent(model, i)
    return Ad_dual(get_joint_frame(frames, i), F)


@primitive
def solve_paths(ancestors, M, a):
    """Solve M a = r: `a` holds r, then the solution; the lower half of M becomes L. False unless M > 0."""
    n, positive = a.shape[0], True
    for k in range(n - 1, -1, -1):
        positive &= M[k, k] > 0.0
        inverse = 1.0 / M[k, k]
        i = int(ancestors[k])
        while i >= 0:
            factor = M[k, i] * inverse
            j = i
            while j >= 0:
                M[i, j] -= factor * M[k, j]
                j = int(ancestors[j])
            a[i] -= factor * a[k]
            M[k, i] = factor
            i = int(ancestors[i])
        a[k] *= inverse
    for k in range(n):
        i = int(ancestors[k])
        while i >= 0:
            a[k] -= M[k, i] * a[i]
            i = int(ancestors[i])
    return positive


FORWARD_MEMORY = (
    *(per_body(MovingBody), per_coordinate(Eliminated), per_body(Handle), per_body(Twist)),
    *(per_body(Carried), per_body(Pose), per_body(Inertia), per_body(Wrench)),
    *(numbers("nv"), numbers(f"{MAX_JOINTS * MAX_JOINTS}")),
)


@algorithm("q, v, tau, f_ext? -> a", FORWARD_MEMORY, may_fail=True)
def forward_dynamics(
    model, q, v, tau, f_ext,
    moving, eliminated, handles, twists, bodies, frames, inertias, wrenches, ancestors, memory,
    a,
):  # fmt: skip
    """a = M^-1 (tau + sum Jac^T f_ext - C v - g). False unless M > 0."""
    n = n_v(model)
    if n > MAX_JOINTS:
        return forward_dynamics_articulated(model, q, v, tau, f_ext, moving, eliminated, handles, twists, a)
    M = memory[: n * n].reshape((n, n))
    for k in range(n):
        a[k] = tau[k]
    root = Carried((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), neg3(gravity_of(model)))
    carry(model, root, bodies, q, v, f_ext, frames, inertias, wrenches)
    subtract(model, wrenches, frames, ancestors, a)
    mass_matrix_by_frames(model, inertias, frames, M)
    return solve_paths(ancestors, M, a)
