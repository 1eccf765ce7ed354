"""The regressor of many states, joint by joint: what least squares stack, without the zeros and ready for LAPACK.

Joint k's torque depends on the bodies it carries only. Block k holds, one a row, the columns of those bodies (ten
each, in the order of `Robot.parameters`) over all states, so that its transpose is a matrix in Fortran order. Bodies'
twists, and their Jacobians' columns, are carried outward in body frames, on LANES states at once (see `lanes`),
v_ref being v.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel, primitive
from .lanes import LANES, copy, lane_put, lane_put6, lane_twist, lane_vec, lanes_of
from .records import get_frame, vec
from .scalars import sin_cos
from .screws import Ad_inv, Frame, Twist, ad, twist_add, twist_mul, zero_twist
from .tree import WIDTH, gravity_of, n_bodies, parent_of, screw_of, turned
from .tree import A as A_FRAME
from .tree import B as B_FRAME
from .tree import C as C_FRAME
from .tree import D as D_SHIFT
from .vectors import add3, cross, dot, neg3, sub3

FRAME, TWISTS, WORK = 0, 12, 24  # a body's record: f (12), V and A (12)


@primitive
def body_row(X, V, A):
    """X^T Y_i, ten numbers: `regressor.put_body_row` for v_ref = v."""
    x, u, w, al = X.w, X.v, V.w, A.w
    lin = add3(A.v, cross(w, V.v))
    h = add3(cross(lin, x), sub3(cross(w, cross(w, u)), cross(al, u)))
    c = cross(x, w)
    return (
        dot(u, lin), h[0], h[1], h[2],
        x[0] * al[0] + c[0] * w[0],
        x[0] * al[1] + x[1] * al[0] + c[0] * w[1] + c[1] * w[0],
        x[1] * al[1] + c[1] * w[1],
        x[0] * al[2] + x[2] * al[0] + c[0] * w[2] + c[2] * w[0],
        x[1] * al[2] + x[2] * al[1] + c[1] * w[2] + c[2] * w[1],
        x[2] * al[2] + c[2] * w[2],
    )  # fmt: skip


@kernel("i8(f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8[:,::1], f8[:,::1])")
def stack_lanes(model, q, v, a, at, out):
    """Fill out[at[k, i] : at[k, i] + 10] for every body i and joint k before it; how many states it did, a multiple of
    LANES (none where a coordinate is beyond `sin_cos`)."""
    n = n_bodies(model)
    count = lanes_of(model, q) * LANES
    work = np.empty(n * WORK * LANES)
    screws = np.empty(n * n * 6 * LANES)  # column k of body i's Jacobian, in body i's frame
    source, sink = np.empty(32 * LANES), np.empty(32 * LANES)
    A_0 = Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
    for start in range(0, count, LANES):
        for i in range(n):
            link, p = i * WIDTH, parent_of(model, i * WIDTH)
            fa, fb = get_frame(model, link + A_FRAME), get_frame(model, link + B_FRAME)
            fc, fd = get_frame(model, link + C_FRAME), vec(model, link + D_SHIFT)
            S = screw_of(model, link, 0)
            if p >= 0:
                copy(source, 0, work, p * WORK + TWISTS, 12)
            for b in range(LANES):
                if p < 0:
                    lane_put6(source, 0, b, zero_twist())
                    lane_put6(source, 6, b, A_0)
                lane_put(source, 12, b, (q[start + b, i], v[start + b, i], a[start + b, i]))
            for b in range(LANES):
                x, xd, xdd = lane_vec(source, 12, b)
                s, c = sin_cos(x)
                f = turned(fa, fb, fc, fd, x, s, c)
                Sv = twist_mul(xd, S)
                V = twist_add(Ad_inv(f, lane_twist(source, 0, b)), Sv)
                A = twist_add(twist_add(Ad_inv(f, lane_twist(source, 6, b)), ad(V, Sv)), twist_mul(xdd, S))
                lane_put(sink, 0, b, f.R[0])
                lane_put(sink, 3, b, f.R[1])
                lane_put(sink, 6, b, f.R[2])
                lane_put(sink, 9, b, f.p)
                lane_put6(sink, 12, b, V)
                lane_put6(sink, 18, b, A)
            copy(work, i * WORK, sink, 0, 24)
            copy(source, 0, work, i * WORK, 24)
            k = i
            while k >= 0:
                if k < i:
                    copy(source, 24, screws, (p * n + k) * 6, 6)
                for b in range(LANES):
                    X = S
                    if k < i:
                        R = lane_vec(source, 0, b), lane_vec(source, 3, b), lane_vec(source, 6, b)
                        X = Ad_inv(Frame(R, lane_vec(source, 9, b)), lane_twist(source, 24, b))
                    y = body_row(X, lane_twist(source, 12, b), lane_twist(source, 18, b))
                    lane_put6(sink, 0, b, X)
                    sink[6 * LANES + b] = y[0]
                    sink[7 * LANES + b] = y[1]
                    sink[8 * LANES + b] = y[2]
                    sink[9 * LANES + b] = y[3]
                    sink[10 * LANES + b] = y[4]
                    sink[11 * LANES + b] = y[5]
                    sink[12 * LANES + b] = y[6]
                    sink[13 * LANES + b] = y[7]
                    sink[14 * LANES + b] = y[8]
                    sink[15 * LANES + b] = y[9]
                copy(screws, (i * n + k) * 6, sink, 0, 6)
                row = at[k, i]
                for j in range(10):
                    for b in range(LANES):
                        out[row + j, start + b] = sink[(6 + j) * LANES + b]
                k = parent_of(model, k * WIDTH)
    return count
