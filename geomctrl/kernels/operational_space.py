"""Operational space: the mobility Jac M^-1 Jac^T of a frame and its inverse, the inertia that it shows (Khatib 1987).

Neither M nor the Jacobian is formed: six unit wrenches on the frame are handed from joint to joint towards the root,
where the articulated inertias say what each joint passes on (Featherstone 2008 section 7.2; `mass_matrix_inverse`).
With u_k = S_k . F what is left of them at coordinate k, Jac M^-1 Jac^T = sum_k u_k u_k^T / D_k.
"""

import math

from .algorithms import algorithm, numbers, per_body, per_coordinate
from .articulated_bodies import Articulated, Eliminated, get_eliminated, unit_twist
from .frames import BODY_FIXED, HYBRID, SPATIAL
from .mass_matrix_inverse import articulate
from .passes import inertial_axes
from .primitives import primitive
from .records import get_wrench, pose_at, put_wrench, reader
from .scalars import where
from .screws import Pose, Wrench, compose, pair, wrench_mul, wrench_sub
from .tree import dofs_of
from .vectors import add3, cross, rot

SINGULAR = 1e-12  # the smallest pivot of a mobility whose diagonal is scaled to ones
get_pose = reader(Pose)
MEMORY = per_body(Pose), per_coordinate(Eliminated), per_body(Articulated), numbers("36"), numbers("6")


@primitive
def wrench_on_frame(form, T, world, c):
    """The unit wrench c of a representation (`frames.represent`) on the frame T, in the axes in which T is given.

    world: where the world's frame is in them; a wrench of the spatial representation is about its origin.
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
    """False unless M > 0."""
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


@algorithm("q; i: i8, placement: f8[::1], form: i8 -> mobility[6, 6]", MEMORY, may_fail=True)
def operational_mobility(model, q, i, placement, form, frames, axes, inertias, wrenches, u, mobility):
    """Jac M^-1 Jac^T."""
    return fill_mobility(model, q, i, placement, form, frames, axes, inertias, wrenches, u, mobility)


@algorithm("q; i: i8, placement: f8[::1], form: i8 -> inertia[6, 6]", MEMORY, may_fail=True)
def operational_inertia(model, q, i, placement, form, frames, axes, inertias, wrenches, u, inertia):
    """(Jac M^-1 Jac^T)^-1. False unless M > 0 and the frame can move in all six directions."""
    positive = fill_mobility(model, q, i, placement, form, frames, axes, inertias, wrenches, u, inertia)
    return invert_scaled(inertia, wrenches, u) & positive


@primitive
def invert_scaled(A, L, s):
    """A symmetric positive definite (6, 6) in place, by Cholesky's factors of s A s, s = diag(A)^-1/2: units do not
    decide what is singular. `L`: 36 numbers of memory, `s`: six. False where a pivot is SINGULAR or less."""
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
