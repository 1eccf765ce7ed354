"""The recursive algorithms in inertial axes as kernels on a packed robot: M, C, Mdot, articulated bodies, energies.

They are summed in inertial axes about the first body's origin, where a subtree's inertia is a plain sum and screws need
no transport. `*_one` and `*_many` are entries as in `newton_euler`.
"""

import numpy as np

from .jit import kernel, primitive
from .newton_euler import PLOEN
from .passes import BODY, DOF, DS, NEXT, S_, SUM, place, place_moving, place_screws
from .records import accumulate, get_inertia, get_twist, put, put_inertia, vec
from .screws import (
    Wrench,
    inertia_to,
    momentum,
    pair,
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
from .vectors import add3, add33, cross, dot, hat3, hat_squared, mul3, mul33, rot, rotT, sub3


@primitive
def mass_matrix(model, q, body, dof, M):
    """M = sum_i Jac_i^T J_i Jac_i by composite bodies. `body`: T, V, J (10); `dof`: 13. M comes zeroed."""
    n = n_bodies(model)
    origin = root_origin(model, q)
    for i in range(n):
        T = place(model, i, q, origin, body)
        place_screws(model, i, T, dof)
        put_inertia(body, i * BODY + SUM, inertia_to(T, inertia_of(model, i * WIDTH)))
    for i in range(n - 1, -1, -1):
        link = i * WIDTH
        J = get_inertia(body, i * BODY + SUM)
        first, end = dofs_of(model, link)
        for row in range(first, end):
            F = momentum(J, get_twist(dof, row * DOF + S_))
            col = row
            while col >= 0:
                M[row, col] = M[col, row] = pair(get_twist(dof, col * DOF + S_), F)
                col = int(dof[col * DOF + NEXT])
        p = parent_of(model, link)
        if p >= 0:
            accumulate(body, p * BODY + SUM, body, i * BODY + SUM, 10)


@primitive
def coriolis_composite(J, V, form, trace):
    """B = Cbar - J ad_V = [[B11, 0], [-[p], 0]] of one body: (B11, p), p its linear momentum.

    B11 = [w] I - [h][v] for Ploen's Cbar about the body's own origin, where tr I is `trace`; - tr(I)/2 [w] makes it the
    Christoffel-consistent one, which no choice of origin changes.
    """
    w, v = V.w, V.v
    I = ((J.I[0], J.I[1], J.I[3]), (J.I[1], J.I[2], J.I[4]), (J.I[3], J.I[4], J.I[5]))
    wI = transpose_cross(w, I)
    B11 = add33(wI, mul33(-1.0, hat_squared(J.h, v)))
    here = J.I[0] + J.I[2] + J.I[5]
    if form == PLOEN:
        B11 = add33(B11, hat3(mul3(0.5 * (trace - here), w)))
    else:
        B11 = add33(B11, hat3(mul3(-0.5 * here, w)))
    return B11, add3(mul3(J.m, v), cross(w, J.h))


@primitive
def transpose_cross(w, I):
    """[w] I for a symmetric I given by rows."""
    x, y, z = cross(w, I[0]), cross(w, I[1]), cross(w, I[2])
    return (x[0], y[0], z[0]), (x[1], y[1], z[1]), (x[2], y[2], z[2])


@primitive
def terms(model, q, v, form, body, dof, M, Mdot, C, g):
    """M, Mdot, C and g in one sweep over composite bodies. `body`: T, V, J (10), B11 (9), p (3); `dof`: 13.

    With Jdot = -J ad_V - ad_V^T J = [[Idot, [p]], [-[p], 0]], Idot = B11 + B11^T, summed over a subtree:
        M_jk = S_j . J S_k,   Mdot_jk = dS_j . J S_k + S_j . (J dS_k + Jdot S_k),   C_jk = S_j . (J dS_k + B S_k),
    for j on the path from k to the root, and C_kj = dS_j . J S_k + S_j . B^T S_k. All but g come zeroed.
    """
    n = n_bodies(model)
    origin = root_origin(model, q)
    gravity = gravity_of(model)
    for i in range(n):
        T, V = place_moving(model, i, q, v, origin, body, dof)
        own = inertia_of(model, i * WIDTH)
        J = inertia_to(T, own)
        B11, p = coriolis_composite(J, V, form, own.I[0] + own.I[2] + own.I[5])
        put_inertia(body, i * BODY + SUM, J)
        put(body, i * BODY + SUM + 10, B11[0])
        put(body, i * BODY + SUM + 13, B11[1])
        put(body, i * BODY + SUM + 16, B11[2])
        put(body, i * BODY + SUM + 19, p)
    for i in range(n - 1, -1, -1):
        link = i * WIDTH
        J = get_inertia(body, i * BODY + SUM)
        B11 = vec(body, i * BODY + SUM + 10), vec(body, i * BODY + SUM + 13), vec(body, i * BODY + SUM + 16)
        p = vec(body, i * BODY + SUM + 19)
        weight = Wrench(cross(J.h, gravity), mul3(J.m, gravity))
        first, end = dofs_of(model, link)
        for row in range(first, end):
            S, dS = get_twist(dof, row * DOF + S_), get_twist(dof, row * DOF + DS)
            F, JdS = momentum(J, S), momentum(J, dS)
            BS = rot(B11, S.w)
            BTS = add3(rotT(B11, S.w), cross(p, S.v))  # angular part of B^T S; the linear part is zero
            pw = cross(p, S.w)
            W = Wrench(add3(JdS.m, BS), sub3(JdS.f, pw))
            G = Wrench(add3(W.m, BTS), W.f)  # J dS + Jdot S
            g[row] = -pair(S, weight)
            col = row
            while col >= 0:
                X, dX = get_twist(dof, col * DOF + S_), get_twist(dof, col * DOF + DS)
                rate = pair(dX, F)
                M[row, col] = M[col, row] = pair(X, F)
                Mdot[row, col] = Mdot[col, row] = rate + pair(X, G)
                C[row, col] = rate + dot(X.w, BTS)
                C[col, row] = pair(X, W)
                col = int(dof[col * DOF + NEXT])
        up = parent_of(model, link)
        if up >= 0:
            accumulate(body, up * BODY + SUM, body, i * BODY + SUM, 22)


@kernel("void(f8[::1], f8[::1], f8[:,::1])")
def mass_matrix_one(model, q, M):
    if not good_configuration(model, q):
        raise ValueError
    mass_matrix(model, q, np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF), M)


@kernel("f8[:,:,::1](f8[::1], f8[:,::1])")
def mass_matrix_many(model, q):
    n = n_v(model)
    M, body, dof = np.zeros((q.shape[0], n, n)), np.empty(n_bodies(model) * BODY), np.empty(n * DOF)
    for b in range(q.shape[0]):
        mass_matrix(model, q[b], body, dof, M[b])
    return M


@kernel("void(f8[::1], f8[::1], f8[::1], i8, f8[:,::1])")
def terms_one(model, q, v, form, out):
    """Into one block (3 n + 1, n), which comes zeroed: M, Mdot, C (n rows each), then g."""
    if not (good_configuration(model, q) and good_velocity(model, v)):
        raise ValueError
    n = n_v(model)
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(n * DOF)
    terms(model, q, v, form, body, dof, out[:n], out[n : 2 * n], out[2 * n : 3 * n], out[3 * n])


@kernel("f8[:,:,::1](f8[::1], f8[:,::1], f8[:,::1], i8)")
def terms_many(model, q, v, form):
    n = n_v(model)
    out = np.empty((q.shape[0], 3 * n + 1, n))
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(n * DOF)
    for b in range(q.shape[0]):
        block = out[b]
        block[:] = 0.0  # here, and not all at once: it is still in the cache when it is filled
        terms(model, q[b], v[b], form, body, dof, block[:n], block[n : 2 * n], block[2 * n : 3 * n], block[3 * n])
    return out


@kernel("f8(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1])")
def skew_residual(M, Mdot, C, v):
    """max |N + N^T|, N = Mdot - 2C, over max(|Mdot|, 2 |C|, |M| |v|), by entries; infinite where one is not finite."""
    worst = scale = mass = speed = 0.0
    for i in range(v.shape[0]):
        speed = max(speed, abs(v[i]))
        for j in range(v.shape[0]):
            error = abs(Mdot[i, j] + Mdot[j, i] - 2.0 * (C[i, j] + C[j, i]))
            if not error < np.inf:
                return np.inf
            worst, mass = max(worst, error), max(mass, abs(M[i, j]))
            scale = max(scale, abs(Mdot[i, j]), 2.0 * abs(C[i, j]))
    return worst / max(scale, mass * speed) if worst > 0.0 else 0.0


@kernel("f8(f8[::1], f8[::1], f8[::1], i8)")
def skew_residual_one(model, q, v, form):
    if not (good_configuration(model, q) and good_velocity(model, v)):
        raise ValueError
    n = n_v(model)
    out = np.zeros((3 * n + 1, n))
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(n * DOF)
    terms(model, q, v, form, body, dof, out[:n], out[n : 2 * n], out[2 * n : 3 * n], out[3 * n])
    return skew_residual(out[:n], out[n : 2 * n], out[2 * n : 3 * n], v)
