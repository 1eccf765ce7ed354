"""M^-1 without forming M, from the articulated inertias of the robot at rest (Featherstone 1983).

M^-1 is applied to LANES columns side by side, so that LLVM turns the innermost loops into vector instructions.
"""

import math

import numpy as np

from .algorithms import algorithm, numbers, per_body, per_coordinate
from .articulated_bodies import (
    Articulated,
    Eliminated,
    eliminate,
    get_eliminated,
    is_positive,
    place_screws,
    put_articulated,
    rigid,
    unit_twist,
)
from .exponentials import where
from .frames import BODY_FIXED, HYBRID, SPATIAL
from .jit import kernel
from .lanes import LANES
from .passes import inertial_axes, inward, outward, place
from .primitives import primitive
from .records import get_wrench, pose_at, put_wrench, reader, width
from .screws import Pose, Wrench, add3, compose, cross, inertia_to, pair, rot, wrench_mul, wrench_sub
from .tree import armature_of, dofs_of, good_configuration, good_velocity, inertia_of, n_bodies, n_v

FRAME, ELIMINATED, ARTICULATED = width(Pose), width(Eliminated), width(Articulated)
# rows of lanes, unsigned: the test whether a signed index is negative prevents vector instructions; numpy 1 turns the
# sum of np.uint64 and int into a float, so that in Python both have to be unsigned
R1, R2, R3, R4, R5, R6, R7 = (np.uint64(k * LANES) for k in range(1, 8))


@outward(Pose)
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
        IA, p = eliminate(axes, k, armature_of(model, i), IA, p, 0.0)
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

    A coordinate's record in W has 7 LANES numbers: six of a wrench in the inward pass and of an acceleration in the
    outward pass, and the entry of the column. Each coordinate is treated as a body. Offsets in the innermost loops are
    then constants, and LLVM need not prove that arrays do not overlap.
    """
    for k in range(n):
        for l in range(6 * LANES):
            W[k * 7 * LANES + l] = 0.0
    for k in range(n - 1, -1, -1):
        S, U = get_eliminated(axes, k).S, get_eliminated(axes, k).U
        w, v, m, f = S.w, S.v, U.m, U.f
        one_over_D = get_eliminated(axes, k).inverse
        row = np.uint64(k) * R7
        for lane in range(R1):
            l = row + np.uint64(lane)
            m1, m2, m3, f1, f2, f3 = lane6(W, l)
            u = W[l + R6] - (w[0] * m1 + w[1] * m2 + w[2] * m3 + v[0] * f1 + v[1] * f2 + v[2] * f3)
            u *= one_over_D
            W[l + R6] = u
            put_lane6(W, l, m1 + u * m[0], m2 + u * m[1], m3 + u * m[2], f1 + u * f[0], f2 + u * f[1], f3 + u * f[2])
        p = int(get_eliminated(axes, k).ancestor)
        if p >= 0:
            up = np.uint64(p) * R7
            for lane in range(R6):
                l = np.uint64(lane)
                W[up + l] += W[row + l]
    for k in range(n):
        S, U = get_eliminated(axes, k).S, get_eliminated(axes, k).U
        w, v, m, f = S.w, S.v, U.m, U.f
        one_over_D = get_eliminated(axes, k).inverse
        row, p = np.uint64(k) * R7, int(get_eliminated(axes, k).ancestor)
        if p >= 0:
            up = np.uint64(p) * R7
            for lane in range(R6):
                l = np.uint64(lane)
                W[row + l] = W[up + l]
        else:
            for lane in range(R6):
                W[row + np.uint64(lane)] = 0.0
        for lane in range(R1):
            l = row + np.uint64(lane)
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


MEMORY = per_body(Pose), per_coordinate(Eliminated), per_body(Articulated), numbers(f"{7 * LANES} * nv")


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


# --- operational space -----------------------------------------------------------------------------------------------
#
# Operational space: the mobility Jac M^-1 Jac^T of a frame and its inverse, the operational-space inertia
# (Khatib 1987).
#
# Neither M nor the Jacobian is formed: the articulated inertias propagate six unit wrenches on the frame from joint to
# joint towards the root (Featherstone 2008 section 7.2; `mass_matrix_inverse`). With u_k = S_k . F at coordinate k,
# Jac M^-1 Jac^T = sum_k u_k u_k^T / D_k.


SINGULAR = 1e-12  # the smallest pivot of a mobility whose diagonal is scaled to ones
get_pose = reader(Pose)
MOBILITY_MEMORY = per_body(Pose), per_coordinate(Eliminated), per_body(Articulated), numbers("36"), numbers("6")


@primitive
def wrench_on_frame(form, T, world, c):
    """The unit wrench c of a representation (`frames.represent`) on the frame T, in the axes in which T is given.

    world: the world's frame in these axes; a wrench of the spatial representation is about its origin.
    """
    m, f = unit_twist(c)
    if form == BODY_FIXED:
        f = rot(T.R, f)
    if form != SPATIAL and form != HYBRID:
        m = rot(T.R, m)
    point = world.p if form == SPATIAL else T.p
    return Wrench(add3(m, cross(point, f)), f)


@primitive
def fill_mobility(model, q, i, placement, form, frames, axes, inertias, wrenches, u, mobility):
    """Store Jac M^-1 Jac^T in `mobility`. False unless M > 0."""
    positive = articulate(model, q, frames, axes, inertias)
    mobility[:, :] = 0.0
    if i < 0:
        return positive
    T, world = compose(get_pose(frames, i), pose_at(placement, 0)), inertial_axes(model, q)
    for c in range(6):
        put_wrench(wrenches, c, wrench_on_frame(form, T, world, c))
    _, end = dofs_of(model, i)
    k = end - 1
    while k >= 0:
        x = get_eliminated(axes, k)
        for c in range(6):
            F = get_wrench(wrenches, c)
            u[c] = pair(x.S, F)
            put_wrench(wrenches, c, wrench_sub(F, wrench_mul(u[c] * x.inverse, x.U)))
            for d in range(c + 1):
                mobility[c, d] += u[c] * u[d] * x.inverse
        k = int(x.ancestor)
    for c in range(6):
        for d in range(c):
            mobility[d, c] = mobility[c, d]
    return positive


@algorithm("q; i: i8, placement: f8[::1], form: i8 -> mobility[6, 6]", MOBILITY_MEMORY, may_fail=True)
def operational_mobility(model, q, i, placement, form, frames, axes, inertias, wrenches, u, mobility):
    """Jac M^-1 Jac^T."""
    return fill_mobility(model, q, i, placement, form, frames, axes, inertias, wrenches, u, mobility)


@algorithm("q; i: i8, placement: f8[::1], form: i8 -> inertia[6, 6]", MOBILITY_MEMORY, may_fail=True)
def operational_inertia(model, q, i, placement, form, frames, axes, inertias, wrenches, u, inertia):
    """(Jac M^-1 Jac^T)^-1. False unless M > 0 and the frame can move in all six directions."""
    positive = fill_mobility(model, q, i, placement, form, frames, axes, inertias, wrenches, u, inertia)
    return invert_scaled(inertia, wrenches, u) & positive


@primitive
def invert_scaled(A, L, s):
    """Invert a symmetric positive definite (6, 6) in place. `L`: 36 numbers of memory, `s`: six.

    Cholesky's factors are those of s A s with s = diag(A)^-1/2, so that the test for singularity does not depend on
    units. Returns False for a pivot <= SINGULAR.
    """
    good = True
    for c in range(6):
        s[c] = 1.0 / math.sqrt(where(A[c, c] > 0.0, A[c, c], 1.0))
    for c in range(6):
        for r in range(c, 6):
            x = A[r, c] * s[r] * s[c]
            for k in range(c):
                x -= L[6 * r + k] * L[6 * c + k]
            if r == c:
                good &= x > SINGULAR
                L[7 * c] = math.sqrt(where(x > SINGULAR, x, 1.0))
            else:
                L[6 * r + c] = x / L[7 * c]
    for c in range(6):  # L^-1 in place
        L[7 * c] = 1.0 / L[7 * c]
        for r in range(c + 1, 6):
            x = 0.0
            for k in range(c, r):
                x -= L[6 * r + k] * L[6 * k + c]
            L[6 * r + c] = x / L[7 * r]
    for c in range(6):
        for r in range(c, 6):
            x = 0.0
            for k in range(r, 6):
                x += L[6 * k + r] * L[6 * k + c]
            A[r, c] = A[c, r] = x * s[r] * s[c]
    return good
