"""Articulated bodies: M^-1 without forming M, the inertias and biases behind O(n) forward dynamics, and what they give.

With A_i the acceleration of body i, gravity being the base's acceleration -g, the wrench that body i and all beyond it
take at joint i is

    F_i = IA_i A_i + pA_i,      IA_i = J_i + sum_children (IA_c - U_c D_c^-1 U_c^T),   U = IA S,  D = S^T U

(Featherstone 1983, the O(n) method that Mueller 2018 section 4 builds on). A joint with several degrees of freedom is
eliminated column by column. The sweeps run in inertial axes about the first body's origin. M^-1 is applied to LANES
columns side by side, so that LLVM turns the innermost loops into vector instructions.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel, primitive
from .passes import BODY, D_, DOF, FORCE, NEXT, S_, SUM, T_, U_, V_, parent_twist, place, place_screws
from .records import accumulate, get_frame, get_twist, get_wrench, put, put6, vec
from .screws import (
    Ad,
    Ad_dual,
    Ad_inv_dual,
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
    WIDTH,
    dofs_of,
    good_configuration,
    good_velocity,
    gravity_of,
    inertia_of,
    n_bodies,
    n_v,
    parent_of,
    root_origin,
)
from .vectors import add3, hat3, mul3, neg3, rot, rotT, sym_mul

BIAS = SUM + 21  # pA (6) in a body's record, behind IA
LANES = 16
# rows of lanes, unsigned: a signed index may count from the end, and that question is in the way of vector instructions
R1, R2, R3, R4, R5, R6, R7 = (np.uint64(k * LANES) for k in range(1, 8))


# --- M^-1 -------------------------------------------------------------------------------------------------------


@primitive
def articulate(model, q, body, dof):
    """IA of every body after its joint gave way (21 numbers at SUM); S, U and D per coordinate. False unless M > 0."""
    n = n_bodies(model)
    origin = root_origin(model, q)
    for i in range(n):
        T = place(model, i, q, origin, body)
        place_screws(model, i, T, dof)
        put_rigid(body, i * BODY + SUM, inertia_to(T, inertia_of(model, i * WIDTH)))
    for i in range(n - 1, -1, -1):
        row = i * BODY + SUM
        first, end = dofs_of(model, i * WIDTH)
        for k in range(end - 1, first - 1, -1):
            S = get_twist(dof, k * DOF + S_)
            U = articulated_mul(body, row, S)
            D = pair(S, U)
            if not D > 0.0:
                return False
            project_out(body, row, U, D)
            put6(dof, k * DOF + U_, U)
            dof[k * DOF + D_] = D
        p = parent_of(model, i * WIDTH)
        if p >= 0:
            accumulate(body, p * BODY + SUM, body, row, 21)
    return True


@primitive
def solve_lanes(dof, n, W):
    """M^-1 applied to LANES columns, from S, U and D of the n coordinates.

    A coordinate's record in W has 7 LANES numbers: a wrench on the way in, an acceleration on the way out (6), then the
    column's entry, in place. One record holds both, and a coordinate counts as a body of its own: offsets within the
    innermost loops are then constants, and LLVM needs no proof that arrays are apart.
    """
    for k in range(n):
        for l in range(6 * LANES):
            W[k * 7 * LANES + l] = 0.0
    for k in range(n - 1, -1, -1):
        S, U = get_twist(dof, k * DOF + S_), get_wrench(dof, k * DOF + U_)
        w, v, m, f = S.w, S.v, U.m, U.f
        one_over_D = 1.0 / dof[k * DOF + D_]
        row = np.uint64(k) * R7
        for lane in range(R1):
            l = row + lane
            m1, m2, m3, f1, f2, f3 = lane6(W, l)
            u = W[l + R6] - (w[0] * m1 + w[1] * m2 + w[2] * m3 + v[0] * f1 + v[1] * f2 + v[2] * f3)
            u *= one_over_D
            W[l + R6] = u
            put_lane6(W, l, m1 + u * m[0], m2 + u * m[1], m3 + u * m[2], f1 + u * f[0], f2 + u * f[1], f3 + u * f[2])
        p = int(dof[k * DOF + NEXT])
        if p >= 0:
            up = np.uint64(p) * R7
            for l in range(R6):
                W[up + l] += W[row + l]
    for k in range(n):
        S, U = get_twist(dof, k * DOF + S_), get_wrench(dof, k * DOF + U_)
        w, v, m, f = S.w, S.v, U.m, U.f
        one_over_D = 1.0 / dof[k * DOF + D_]
        row, p = np.uint64(k) * R7, int(dof[k * DOF + NEXT])
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
def solve_columns(dof, scale, B, W, out):
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
        solve_lanes(dof, n, W)
        for k in range(n):
            entry = (7 * k + 6) * LANES
            for l in range(count):
                out[k, start + l] = W[entry + l]


@primitive
def invert(dof, W, out):
    """out = M^-1 (nv, nv), exactly symmetric."""
    n = out.shape[0]
    for i in range(n):
        for j in range(n):
            out[i, j] = 0.0
        out[i, i] = 1.0
    solve_columns(dof, 1.0, out, W, out)
    for i in range(n):
        for j in range(i):
            out[j, i] = out[i, j] = 0.5 * (out[i, j] + out[j, i])


@kernel("f8[:,::1](f8[::1], f8[::1])")
def mass_matrix_inverse_one(model, q):
    if not good_configuration(model, q):
        raise ValueError
    n, m = n_bodies(model), n_v(model)
    body, dof, out = np.empty(n * BODY), np.empty(m * DOF), np.empty((m, m))
    if not articulate(model, q, body, dof):
        raise ValueError
    invert(dof, np.empty(m * 7 * LANES), out)
    return out


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1])")
def mass_matrix_solve_one(model, q, b, x):
    if not (good_configuration(model, q) and good_velocity(model, b)):
        raise ValueError
    m = n_v(model)
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(m * DOF)
    if not articulate(model, q, body, dof):
        raise ValueError
    solve_columns(dof, 1.0, b.reshape((m, 1)), np.empty(m * 7 * LANES), x.reshape((m, 1)))


@kernel("Tuple((f8[:,:,::1], i8))(f8[::1], f8[:,::1], f8[:,:,::1], b1)")
def mass_matrix_solve_many(model, q, B, inverse):
    """(M^-1 B, number of the first state whose M is not positive, or -1); with `inverse` M^-1, B being its size."""
    n, m = n_bodies(model), n_v(model)
    body, dof, W = np.empty(n * BODY), np.empty(m * DOF), np.empty(m * 7 * LANES)
    out = np.empty(B.shape)
    for b in range(q.shape[0]):
        if not articulate(model, q[b], body, dof):
            return out, b
        if inverse:
            invert(dof, W, out[b])
        else:
            solve_columns(dof, 1.0, B[b], W, out[b])
    return out, -1


@primitive
def articulated_biases(model, v, tau, f_ext, body, dof):
    """pA of every body (BIAS in its record), the part of F_i that its own acceleration A_i does not make."""
    n = n_bodies(model)
    for i in range(n):
        link, row = i * WIDTH, i * BODY
        T, p = get_frame(body, row + T_), parent_of(model, link)
        first, end = dofs_of(model, link)
        V = get_twist(body, p * BODY + V_) if p >= 0 else zero_twist()
        for k in range(first, end):
            V = twist_add(V, twist_mul(v[k], get_twist(dof, k * DOF + S_)))
        J = inertia_to(T, inertia_of(model, link))
        F = ad_dual(V, momentum(J, V))
        if f_ext.shape[0] > 0:
            F = wrench_sub(F, Ad_dual(T, get_wrench(f_ext, 6 * i)))
        put6(body, row + V_, V)
        put6(body, row + BIAS, F)
    for i in range(n - 1, -1, -1):
        link, row, up = i * WIDTH, i * BODY, parent_of(model, i * WIDTH)
        if up < 0:
            continue
        first, end = dofs_of(model, link)
        V, Sv = get_twist(body, row + V_), zero_twist()
        for k in range(first, end):
            Sv = twist_add(Sv, twist_mul(v[k], get_twist(dof, k * DOF + S_)))
        c = ad(V, Sv)
        p = wrench_add(get_wrench(body, row + BIAS), articulated_mul(body, row + SUM, c))
        for k in range(end - 1, first - 1, -1):
            u = tau[k] - pair(get_twist(dof, k * DOF + S_), p)
            p = wrench_add(p, wrench_mul(u / dof[k * DOF + D_], get_wrench(dof, k * DOF + U_)))
        put6(body, up * BODY + BIAS, wrench_add(get_wrench(body, up * BODY + BIAS), p))


@primitive
def whole_mul(body, row, dof, first, end, X):
    """IA X, with what the joint's elimination took away put back."""
    F = articulated_mul(body, row + SUM, X)
    for k in range(first, end):
        U = get_wrench(dof, k * DOF + U_)
        F = wrench_add(F, wrench_mul(pair(X, U) / dof[k * DOF + D_], U))
    return F


@primitive
def unit_twist(e):
    return Twist((1.0 * (e == 0), 1.0 * (e == 1), 1.0 * (e == 2)), (1.0 * (e == 3), 1.0 * (e == 4), 1.0 * (e == 5)))


@primitive
def put_articulated(model, i, body, dof, out):
    T = get_frame(body, i * BODY + T_)
    first, end = dofs_of(model, i * WIDTH)
    for e in range(6):
        F = Ad_inv_dual(T, whole_mul(body, i * BODY, dof, first, end, Ad(T, unit_twist(e))))
        put6(out, 6 * e, F)
    put6(out, 36, Ad_inv_dual(T, get_wrench(body, i * BODY + BIAS)))


@kernel("Tuple((f8[:,:,::1], i8))(f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1])")
def articulated_bodies_many(model, q, v, tau, f_ext):
    """Per state and body IA, row by row, and pA in its frame; and the first state whose M is not positive, or -1."""
    n, m = n_bodies(model), n_v(model)
    body, dof = np.empty(n * BODY), np.empty(m * DOF)
    out, none = np.empty((q.shape[0], n, 42)), np.empty(0)
    for b in range(q.shape[0]):
        if not articulate(model, q[b], body, dof):
            return out, b
        articulated_biases(model, v[b], tau[b], f_ext[b] if f_ext.shape[0] > 0 else none, body, dof)
        for i in range(n):
            put_articulated(model, i, body, dof, out[b, i])
    return out, -1


# --- articulated bodies -----------------------------------------------------------------------------------------

# an articulated inertia [[A, B], [B^T, D]] in 21 numbers of a row: A (6, symmetric), B (9), D (6, symmetric)


@primitive
def articulated_mul(a, k, X):
    """IA X."""
    A = a[k], a[k + 1], a[k + 2], a[k + 3], a[k + 4], a[k + 5]
    B = vec(a, k + 6), vec(a, k + 9), vec(a, k + 12)
    D = a[k + 15], a[k + 16], a[k + 17], a[k + 18], a[k + 19], a[k + 20]
    return Wrench(add3(sym_mul(A, X.w), rot(B, X.v)), add3(rotT(B, X.w), sym_mul(D, X.v)))


@primitive
def put_rigid(a, k, J):
    """A rigid body's inertia as an articulated one: A = I, B = [h], D = m 1."""
    a[k], a[k + 1], a[k + 2], a[k + 3], a[k + 4], a[k + 5] = J.I[0], J.I[1], J.I[2], J.I[3], J.I[4], J.I[5]
    H = hat3(J.h)
    put(a, k + 6, H[0])
    put(a, k + 9, H[1])
    put(a, k + 12, H[2])
    a[k + 15], a[k + 16], a[k + 17], a[k + 18], a[k + 19], a[k + 20] = J.m, 0.0, J.m, 0.0, 0.0, J.m


@primitive
def project_out(a, k, U, D):
    """IA - U U^T / D: what is left of the inertia once the joint gives way."""
    m, f, x = U.m, U.f, mul3(1.0 / D, U.m)
    y = mul3(1.0 / D, U.f)
    a[k] -= x[0] * m[0]
    a[k + 1] -= x[0] * m[1]
    a[k + 2] -= x[1] * m[1]
    a[k + 3] -= x[0] * m[2]
    a[k + 4] -= x[1] * m[2]
    a[k + 5] -= x[2] * m[2]
    for i in range(3):
        for j in range(3):
            a[k + 6 + 3 * i + j] -= x[i] * f[j]
    a[k + 15] -= y[0] * f[0]
    a[k + 16] -= y[0] * f[1]
    a[k + 17] -= y[1] * f[1]
    a[k + 18] -= y[0] * f[2]
    a[k + 19] -= y[1] * f[2]
    a[k + 20] -= y[2] * f[2]


@primitive
def forward_dynamics(model, q, v, tau, f_ext, body, dof, a):
    """a = M^-1 (tau + sum Jac^T f_ext - C v - g), O(n). False where a joint has no inertia to push against.

    A joint with several degrees of freedom is eliminated column by column. `body`: T, V, IA (21), p (6), c (6);
    `dof`: S, U = IA S (6), next, D, u = tau - S . p.
    """
    n = n_bodies(model)
    origin = root_origin(model, q)
    for i in range(n):
        link, row = i * WIDTH, i * BODY
        T = place(model, i, q, origin, body)
        place_screws(model, i, T, dof)
        first, end = dofs_of(model, link)
        Sv = zero_twist()
        for k in range(first, end):
            Sv = twist_add(Sv, twist_mul(v[k], get_twist(dof, k * DOF + S_)))
        V = twist_add(parent_twist(model, i, body), Sv)
        c = ad(V, Sv)
        J = inertia_to(T, inertia_of(model, link))
        p = ad_dual(V, momentum(J, V))
        if f_ext.shape[0] > 0:
            p = wrench_sub(p, Ad_dual(T, get_wrench(f_ext, 6 * i)))
        put6(body, row + V_, V)
        put_rigid(body, row + SUM, J)
        put6(body, row + SUM + 21, p)
        put6(body, row + SUM + 27, c)
    for i in range(n - 1, -1, -1):
        link, row = i * WIDTH, i * BODY
        p = wrench_add(
            get_wrench(body, row + SUM + 21), articulated_mul(body, row + SUM, get_twist(body, row + SUM + 27))
        )
        first, end = dofs_of(model, link)
        for k in range(end - 1, first - 1, -1):
            S = get_twist(dof, k * DOF + S_)
            U = articulated_mul(body, row + SUM, S)
            D = pair(S, U)
            if not D > 0.0:
                return False
            u = tau[k] - pair(S, p)
            project_out(body, row + SUM, U, D)
            p = wrench_add(p, wrench_mul(u / D, U))
            put6(dof, k * DOF + U_, U)
            dof[k * DOF + D_] = D
            dof[k * DOF + FORCE] = u
        up = parent_of(model, link)
        if up >= 0:
            accumulate(body, up * BODY + SUM, body, row + SUM, 21)
            put6(body, up * BODY + SUM + 21, wrench_add(get_wrench(body, up * BODY + SUM + 21), p))
    A0 = Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
    for i in range(n):
        link, row = i * WIDTH, i * BODY
        up = parent_of(model, link)
        A = A0
        if up >= 0:
            A = get_twist(body, up * BODY + SUM + 21)
        first, end = dofs_of(model, link)
        for k in range(first, end):
            a[k] = (dof[k * DOF + FORCE] - pair(A, get_wrench(dof, k * DOF + U_))) / dof[k * DOF + D_]
            A = twist_add(A, twist_mul(a[k], get_twist(dof, k * DOF + S_)))
        put6(body, row + SUM + 21, twist_add(A, get_twist(body, row + SUM + 27)))
    return True


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def forward_dynamics_one(model, q, v, tau, a):
    if not (good_configuration(model, q) and good_velocity(model, v) and good_velocity(model, tau)):
        raise ValueError
    if not forward_dynamics(
        model, q, v, tau, np.empty(0), np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF), a
    ):
        raise ValueError


@kernel("Tuple((f8[:,::1], i8))(f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1])")
def forward_dynamics_many(model, q, v, tau, f_ext):
    """(a, the number of the first state whose mass matrix is not positive definite, or -1)."""
    a, body, dof = np.empty(v.shape), np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF)
    none = np.empty(0)
    for b in range(q.shape[0]):
        external = f_ext[b] if f_ext.shape[0] > 0 else none
        if not forward_dynamics(model, q[b], v[b], tau[b], external, body, dof, a[b]):
            return a, b
    return a, -1
