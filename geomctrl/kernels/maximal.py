"""Bodies in maximal coordinates: their states, their accelerations without constraints, and their Lie group.

A state holds the bodies' poses, each on SE(3) (4x4) or SO(3) x R^3 (3x4), then their velocities. The array `layout`
(n, 2) has the offset of each body's pose in the state, and 1 if the pose is on SE(3).
"""

from .exponentials import dexp_inv_se3
from .jit import kernel
from .primitives import primitive
from .records import inertia_at, pose_at, put, put6, put_pose, twist_at, vec
from .screws import (
    Ad,
    Ad_inv,
    ad_dual,
    add3,
    apply_inertia,
    cross,
    dot,
    mul3,
    neg3,
    rot,
    rotT,
    sub3,
    twist_add,
)
from .se3 import moved as moved_se3
from .se3 import put_transform
from .so3xr3 import dexp_inv as dexp_inv_so3xr3
from .so3xr3 import moved as moved_so3xr3


@kernel("void(f8[::1], i8[:,::1], f8[:,::1], f8[:,::1])")
def unpack(y, layout, frames, V):
    """Frames [R | p] (n + 1, 12) and body-fixed twists (n + 1, 6) of a state; layout: (its offset in y, is SE(3))."""
    n = len(layout)
    for i in range(n):
        for k in range(12):  # elementwise: numba compiles a second of messages for the shapes of slices
            frames[i, k] = y[layout[i, 0] + k]
        X = twist_at(y, len(y) - 6 * (n - i))
        put(V[i], 0, X.w)
        put(V[i], 3, X.v if layout[i, 1] else rotT(pose_at(frames[i], 0).R, X.v))
    frames[n, :] = 0.0
    frames[n, 0] = frames[n, 5] = frames[n, 10] = 1.0
    V[n, :] = 0.0


@kernel("void(f8[:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8[::1], f8[:,::1], f8[:,::1])")
def free_accelerations(frames, V, inertia, M_inv, gravity, applied, Vdot):
    """Vdot (n + 1, 6) of the bodies without constraints: M Vdot = ad_V^T M V + M (0, R^T g) + applied."""
    n = len(inertia)
    for i in range(n):
        X, I = twist_at(V[i], 0), inertia_at(inertia[i], 0)
        F = ad_dual(X, apply_inertia(I, X))  # -ad^T
        weight = rotT(pose_at(frames[i], 0).R, vec(gravity, 0))
        for r in range(6):
            x = weight[r - 3] if r > 2 else 0.0
            for c in range(6):
                f = applied[i, c] - (F.m[c] if c < 3 else F.f[c - 3])
                x += M_inv[i, r, c] * f
            Vdot[i, r] = x
    Vdot[n, :] = 0.0


@kernel("void(i8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[::1])")
def pack_rates(layout, frames, V, moved, Vdot, out):
    """The field on the state's group. Poses move with the twists `moved`, which differ from V only for GGL.

    On SE(3) the velocity is the twist; on SO(3) x R^3 it is (omega, pdot), pdot = R v and pddot = R (vdot + w x v).
    """
    n = len(layout)
    for i in range(n):
        k = 6 * i
        W, X, A = twist_at(moved[i], 0), twist_at(V[i], 0), twist_at(Vdot[i], 0)
        if layout[i, 1]:
            put6(out, k, W)
            put6(out, k + 6 * n, A)
        else:
            R = pose_at(frames[i], 0).R
            put(out, k, W.w)
            put(out, k + 3, rot(R, W.v))
            put(out, k + 6 * n, A.w)
            put(out, k + 6 * n + 3, rot(R, add3(A.v, cross(X.w, X.v))))


# --- the group of states, all bodies in one call ---------------------------------------------------------------


@kernel("void(i8[:,::1], f8[::1], f8[::1], f8[::1])")
def advance_bodies(layout, y, x, out):
    """out = y exp(x), pose by pose, on the group to round-off; velocities add."""
    n = len(layout)
    for i in range(n):
        first = layout[i, 0]
        T, X = pose_at(y[first : first + 12], 0), twist_at(x, 6 * i)
        if layout[i, 1]:
            put_transform(out, first, moved_se3(T, X))
        else:
            put_pose(out, first, moved_so3xr3(T, X))
    for k in range(6 * n):
        out[len(y) - 6 * n + k] = y[len(y) - 6 * n + k] + x[6 * n + k]


@kernel("void(i8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def spatial_twists(layout, y, X, out):
    """Ad_T X_i (6 n,) of body-fixed twists, or their rates, X (n or more, 6), all bodies on SE(3)."""
    for i in range(len(layout)):
        put6(out, 6 * i, Ad(_pose_of(layout, y, i), twist_at(X[i], 0)))


@kernel("void(i8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def advance_spatially(layout, y, x, dv, out):
    """Poses exp(x) T, all on SE(3), and spatial twists Ad_T V + dv, stored as body-fixed ones."""
    n = len(layout)
    for i in range(n):
        k, first = 6 * i, len(y) - 6 * (n - i)
        T = _pose_of(layout, y, i)
        moved = moved_se3(T, Ad_inv(T, twist_at(x, k)))  # exp(x) T = T exp(Ad_T^-1 x)
        put_transform(out, layout[i, 0], moved)
        put6(out, first, Ad_inv(moved, twist_add(Ad(T, twist_at(y, first)), twist_at(dv, k))))


@primitive
def _pose_of(layout, y, i):
    return pose_at(y[layout[i, 0] : layout[i, 0] + 12], 0)


@kernel("void(i8[:,::1], f8[::1], f8[::1], f8[::1])")
def dexp_inv_bodies(layout, x, y, out):
    """out = dexp^-1_x y, body by body."""
    n = len(layout)
    for i in range(n):
        k = 6 * i
        X, Y = twist_at(x, k), twist_at(y, k)
        put6(out, k, dexp_inv_se3(X, Y) if layout[i, 1] else dexp_inv_so3xr3(X, Y))
    for k in range(6 * n, len(y)):
        out[k] = y[k]


# --- rows of constraints ---------------------------------------------------------------------------------------------
#
# The rows of constraints between bodies, with their first and second derivatives along the motion.
#
# A row k constrains two bodies a, b, where number n is the world; the row of a user's function may have more bodies.
# With P = p_a + R_a r_a, Q = p_b + R_b r_b, s = Q - P and directions d_a, d_b fixed in the bodies, the rows are
#
#     AXES      R_a d_a . R_b d_b                 perpendicular directions
#     ALONG     R_a d_a . s                       no offset along a direction of body a
#     MEET      d_a . s                           no offset along an inertial direction: (38), (43), three of them
#     DISTANCE  (s . s - L^2) / (2 L)
#
# J maps the body-fixed twists to d/dt of the rows; `bias` is Jdot V. Equation numbers are Mueller and Terze's (2013).


AXES, ALONG, MEET, DISTANCE, USER = 0, 1, 2, 3, 4
R_A, R_B, D_A, D_B, LENGTH, DATA = 0, 3, 6, 9, 12, 13  # a row's numbers


@kernel("void(f8[:,::1], f8[:,::1], i8[:,::1], f8[:,::1], f8[:,:,::1], f8[::1], f8[::1], f8[::1])")
def evaluate_rows(frames, V, index, data, J, g, gdot, bias):
    """Compute J (m, 2 or more, 6), g, gdot = J V, bias = Jdot V (m,) of the rows (kind, a, b), except USER rows."""
    for k in range(len(index)):
        kind, a, b = index[k, 0], index[k, 1], index[k, 2]
        if kind == USER:
            continue
        A, B = pose_at(frames[a], 0), pose_at(frames[b], 0)
        X, Y = twist_at(V[a], 0), twist_at(V[b], 0)
        ra, rb, da, db = vec(data[k], R_A), vec(data[k], R_B), vec(data[k], D_A), vec(data[k], D_B)
        P, Pd, Pdd = rot(A.R, da), rot(A.R, cross(X.w, da)), rot(A.R, cross(X.w, cross(X.w, da)))
        if kind == AXES:
            Q, Qd, Qdd = rot(B.R, db), rot(B.R, cross(Y.w, db)), rot(B.R, cross(Y.w, cross(Y.w, db)))
            g[k] = dot(P, Q)
            gdot[k] = dot(Pd, Q) + dot(P, Qd)
            bias[k] = dot(Pdd, Q) + 2.0 * dot(Pd, Qd) + dot(P, Qdd)
            put(J[k, 0], 0, cross(da, rotT(A.R, Q)))
            put(J[k, 0], 3, (0.0, 0.0, 0.0))
            put(J[k, 1], 0, cross(db, rotT(B.R, P)))
            put(J[k, 1], 3, (0.0, 0.0, 0.0))
            continue
        ua, ub = add3(X.v, cross(X.w, ra)), add3(Y.v, cross(Y.w, rb))  # the points' velocities, body-fixed
        s = sub3(add3(B.p, rot(B.R, rb)), add3(A.p, rot(A.R, ra)))
        sd = sub3(rot(B.R, ub), rot(A.R, ua))
        sdd = sub3(rot(B.R, cross(Y.w, ub)), rot(A.R, cross(X.w, ua)))  # for constant twists
        if kind == ALONG:
            D, turning = P, cross(da, rotT(A.R, s))
            g[k] = dot(D, s)
            gdot[k] = dot(D, sd) + dot(Pd, s)
            bias[k] = dot(D, sdd) + 2.0 * dot(Pd, sd) + dot(Pdd, s)
        elif kind == MEET:
            D, turning = da, (0.0, 0.0, 0.0)
            g[k], gdot[k], bias[k] = dot(D, s), dot(D, sd), dot(D, sdd)
        else:
            length = data[k, LENGTH]
            D, turning = mul3(1.0 / length, s), (0.0, 0.0, 0.0)
            g[k] = 0.5 * (dot(s, s) / length - length)
            gdot[k] = dot(D, sd)
            bias[k] = dot(D, sdd) + dot(sd, sd) / length
        Da, Db = rotT(A.R, D), rotT(B.R, D)
        put(J[k, 0], 0, sub3(turning, cross(ra, Da)))
        put(J[k, 0], 3, neg3(Da))
        put(J[k, 1], 0, cross(rb, Db))
        put(J[k, 1], 3, Db)


@kernel("void(f8[:,:,::1], i8[:,::1], f8[:,::1], f8[::1])")
def row_rates(J, bodies, X, out):
    """out = J X for twists X (n + 1, 6)."""
    for k in range(len(J)):
        x = 0.0
        for slot in range(J.shape[1]):
            for c in range(6):
                x += J[k, slot, c] * X[bodies[k, slot], c]
        out[k] = x


# --- multipliers -----------------------------------------------------------------------------------------------------
#
# The multipliers of constraints: a Gram matrix and its factors, with redundant rows left out.
#
# The multipliers of the index-1 equations (3) of Mueller and Terze 2013 solve (J M^-1 J^T) lambda = rhs, whose matrix
# is a Gram matrix: a row is redundant if sin^2 of its angle to the span of the rows before it, in the metric M^-1, is
# below a tolerance. That is a QR factorisation of M^-1/2 J^T. The matrix is kept in skyline form, so
# along a chain the cost is linear in its length.


@kernel("f8(f8[:,:,::1], i8[:,::1], f8[:,:,::1], i8[:,::1], i8[::1], i8[::1], f8, f8[:,:,::1], f8[::1], f8[::1])")
def factorise_rows(J, bodies, M_inv, pairs, first, start, tolerance, JM, L, d):
    """J M^-1 into JM (m, w, 6) and L D L^T = J M^-1 J^T; redundant rows have d = 0.

    Returns the least sin^2 of the angle between a row that is kept and the span of the rows before it.
    Row i of L is L[start[i] + j], j = first[i] .. i. pairs: (i, slot, j, slot) for rows j <= i that share a body.
    """
    m = len(J)
    for k in range(m):
        for slot in range(J.shape[1]):
            inverse = M_inv[bodies[k, slot]]
            for i in range(6):
                x = 0.0
                for j in range(6):
                    x += inverse[i, j] * J[k, slot, j]
                JM[k, slot, i] = x
    L[:] = 0.0
    for p in range(len(pairs)):
        i, si, j, sj = pairs[p, 0], pairs[p, 1], pairs[p, 2], pairs[p, 3]
        x = 0.0
        for c in range(6):
            x += JM[i, si, c] * J[j, sj, c]
        L[start[i] + j] += x
    least = 1.0
    for i in range(m):
        whole = rest = L[start[i] + i]
        for j in range(first[i], i):
            x = L[start[i] + j]
            for k in range(max(first[i], first[j]), j):
                x -= L[start[i] + k] * L[start[j] + k]
            L[start[i] + j] = x if d[j] > 0.0 else 0.0  # L d, until the row is done
        for j in range(first[i], i):
            if d[j] > 0.0:
                x = L[start[i] + j]
                L[start[i] + j] = x / d[j]
                rest -= x * x / d[j]
        if rest > tolerance * whole:
            d[i] = rest
            L[start[i] + i] = 1.0
            least = min(least, rest / whole)
        else:
            d[i] = 0.0
            for j in range(first[i], i + 1):
                L[start[i] + j] = 0.0
    return least


@kernel("void(f8[::1], f8[::1], i8[::1], i8[::1], f8[::1])")
def solve_rows(L, d, first, start, x):
    """x <- (L D L^T)^-1 x, zero at redundant rows."""
    m = len(d)
    for i in range(m):
        for j in range(first[i], i):
            x[i] -= L[start[i] + j] * x[j]
        if d[i] == 0.0:
            x[i] = 0.0
    for i in range(m):
        if d[i] > 0.0:
            x[i] /= d[i]
    for i in range(m - 1, -1, -1):
        for j in range(first[i], i):
            x[j] -= L[start[i] + j] * x[i]


@kernel("void(f8[:,:,::1], i8[:,::1], f8[::1], f8[:,::1])")
def add_reactions(JM, bodies, multipliers, X):
    """X += M^-1 J^T multipliers, X (n + 1, 6); the part of the world is zero, because its M^-1 is."""
    for k in range(len(JM)):
        for slot in range(JM.shape[1]):
            for c in range(6):
                X[bodies[k, slot], c] += JM[k, slot, c] * multipliers[k]
