"""The rows of constraints between bodies, with their first and second derivatives along the motion.

A row k constrains two bodies a, b (or the world, number n, which stands still) or, from a user's function, any number.
With P = p_a + R_a r_a, Q = p_b + R_b r_b, s = Q - P and directions d_a, d_b fixed in the bodies, the rows are

    AXES      R_a d_a . R_b d_b                 perpendicular directions
    ALONG     R_a d_a . s                       no offset along a direction of body a
    MEET      d_a . s                           no offset along an inertial direction: (38), (43), three of them
    DISTANCE  (s . s - L^2) / (2 L)

J maps the body-fixed twists to d/dt of the rows; `bias` is Jdot V. The numbers are those of Mueller and Terze 2013.
"""

from .jit import kernel
from .records import pose_at, put, twist_at, vec
from .vectors import add3, cross, dot, mul3, neg3, rot, rotT, sub3

AXES, ALONG, MEET, DISTANCE, USER = 0, 1, 2, 3, 4
R_A, R_B, D_A, D_B, LENGTH, DATA = 0, 3, 6, 9, 12, 13  # a row's numbers


@kernel("void(f8[:,::1], f8[:,::1], i8[:,::1], f8[:,::1], f8[:,:,::1], f8[::1], f8[::1], f8[::1])")
def evaluate_rows(frames, V, index, data, J, g, gdot, bias):
    """The rows (kind, a, b) of `index`: J (m, 2 or more, 6), g, gdot = J V and bias = Jdot V (m,). USER is left out."""
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
        sdd = sub3(rot(B.R, cross(Y.w, ub)), rot(A.R, cross(X.w, ua)))  # where the twists do not change
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
