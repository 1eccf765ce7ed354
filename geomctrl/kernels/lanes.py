"""Run one algorithm on LANES states at once, for vector instructions.

The innermost loop runs over states, so that LLVM vectorises it: it reads from one buffer, writes to another and calls
nothing. Number k of lane b is stored at k LANES + b.
"""

import numpy as np

from .exponentials import REDUCIBLE, reduced_sin_cos
from .jit import kernel
from .newton_euler import PLOEN, accelerate, regressor_row
from .primitives import primitive
from .records import pose_at, vec
from .screws import Ad_inv, Pose, Twist, add3, cross, twist_mul, zero_twist
from .tree import WIDTH, A, B, C, D, base_acceleration, n_bodies, n_q, n_v, parent_of, screw_of, turned

LANES = 16
STACKED = 24  # numbers of a body: f (12), V and A (12)
MAX_BODIES = 40  # with more bodies the memory of the lanes exceeds the cache, and the plain loop is faster


@primitive
def lanes_of(model, q):
    """Number of full groups of lanes in a batch; 0 for many bodies, for poses, for coordinates beyond REDUCIBLE."""
    if n_q(model) != n_v(model) or n_bodies(model) > MAX_BODIES:
        return 0
    for b in range(q.shape[0]):
        for k in range(q.shape[1]):
            if not abs(q[b, k]) <= REDUCIBLE:
                return 0
    return q.shape[0] // LANES


@primitive
def lane_vec(a, k, b):
    return a[k * LANES + b], a[(k + 1) * LANES + b], a[(k + 2) * LANES + b]


@primitive
def lane_twist(a, k, b):
    return Twist(lane_vec(a, k, b), lane_vec(a, k + 3, b))


@primitive
def lane_put(a, k, b, x):
    a[k * LANES + b] = x[0]
    a[(k + 1) * LANES + b] = x[1]
    a[(k + 2) * LANES + b] = x[2]


@primitive
def lane_put6(a, k, b, X):
    lane_put(a, k, b, X[0])
    lane_put(a, k + 3, b, X[1])


@primitive
def copy(a, k, b, j, n):
    """a[k : k + n] = b[j : j + n], in numbers of all lanes."""
    for i in range(n * LANES):
        a[k * LANES + i] = b[j * LANES + i]


@primitive
def row_lanes(S, own, source, sink):
    """Column of a body's Jacobian and its ten numbers of the regressor, from frames, twists and the parent's column."""
    for b in range(LANES):
        X = S
        if not own:
            R = lane_vec(source, 0, b), lane_vec(source, 3, b), lane_vec(source, 6, b)
            X = Ad_inv(Pose(R, lane_vec(source, 9, b)), lane_twist(source, 24, b))
        V, A = lane_twist(source, 12, b), lane_twist(source, 18, b)
        y = regressor_row(X, V, V, A, add3(A.v, cross(V.w, V.v)), PLOEN)
        lane_put6(sink, 0, b, X)
        for j in range(10):
            sink[(6 + j) * LANES + b] = y[j]


@kernel("i8(f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], i8[:,::1], f8[:,::1])")
def stack_lanes(model, q, v, a, place, out):
    """Fill out[place[k, i] : place[k, i] + 10] for every body i and every joint k before it.

    Returns the number of states computed, a multiple of LANES; 0 if a coordinate exceeds REDUCIBLE.
    """
    n = n_bodies(model)
    count = lanes_of(model, q) * LANES
    work = np.empty(n * STACKED * LANES)
    screws = np.empty(n * n * 6 * LANES)  # column k of body i's Jacobian, in body i's frame
    source, sink = np.empty(32 * LANES), np.empty(32 * LANES)
    A_0 = base_acceleration(model)
    for start in range(0, count, LANES):
        for i in range(n):
            link, p = i * WIDTH, parent_of(model, i)
            fa, fb = pose_at(model, link + A), pose_at(model, link + B)
            fc, fd = pose_at(model, link + C), vec(model, link + D)
            S = screw_of(model, i, 0)
            if p >= 0:
                copy(source, 0, work, p * STACKED + 12, 12)
            for b in range(LANES):
                if p < 0:
                    lane_put6(source, 0, b, zero_twist())
                    lane_put6(source, 6, b, A_0)
                lane_put(source, 12, b, (q[start + b, i], v[start + b, i], a[start + b, i]))
            for b in range(LANES):
                x, xd, xdd = lane_vec(source, 12, b)
                s, c = reduced_sin_cos(x)
                f = turned(fa, fb, fc, fd, x, s, c)
                V_p, A_p = lane_twist(source, 0, b), lane_twist(source, 6, b)
                V_, A_ = accelerate(f, V_p, A_p, twist_mul(xd, S), twist_mul(xdd, S))
                lane_put(sink, 0, b, f.R[0])
                lane_put(sink, 3, b, f.R[1])
                lane_put(sink, 6, b, f.R[2])
                lane_put(sink, 9, b, f.p)
                lane_put6(sink, 12, b, V_)
                lane_put6(sink, 18, b, A_)
            copy(work, i * STACKED, sink, 0, 24)
            copy(source, 0, work, i * STACKED, 24)
            k = i
            while k >= 0:
                if k < i:
                    copy(source, 24, screws, (p * n + k) * 6, 6)
                row_lanes(S, k == i, source, sink)
                copy(screws, (i * n + k) * 6, sink, 0, 6)
                row = place[k, i]
                for j in range(10):
                    for b in range(LANES):
                        out[row + j, start + b] = sink[(6 + j) * LANES + b]
                k = parent_of(model, k)
    return count
