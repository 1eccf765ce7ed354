"""The recursive algorithms in inertial axes as kernels on a packed robot: M, C, Mdot, articulated bodies, energies.

They are summed in inertial axes about the first body's origin, where a subtree's inertia is a plain sum and screws need
no transport. `*_one` and `*_many` are entries as in `newton_euler`.
"""

import numpy as np

from .jit import kernel, primitive
from .newton_euler import PLOEN
from .packed import (
    PARENT_DOF,
    WIDTH,
    dofs_of,
    good_configuration,
    good_velocity,
    gravity_of,
    inertia_of,
    joint_frame,
    n_bodies,
    n_v,
    parent_of,
    root_origin,
    screw_of,
)
from .screw import (
    Ad,
    Ad_dual,
    Frame,
    Inertia,
    Twist,
    Wrench,
    accumulate,
    ad,
    ad_dual,
    add3,
    add33,
    compose,
    cross,
    dot,
    get_frame,
    get_inertia,
    get_twist,
    get_wrench,
    hat3,
    hat_squared,
    inertia_to,
    momentum,
    mul3,
    mul33,
    neg3,
    pair,
    put,
    put6,
    put_frame,
    put_inertia,
    rot,
    rotT,
    sub3,
    sym_mul,
    twist_add,
    twist_mul,
    vec,
    wrench_add,
    wrench_mul,
    wrench_sub,
    zero_twist,
    zero_wrench,
)

# a body's record: T (12), V (6), and what each algorithm adds up over subtrees from 18 on
BODY, T_, V_, SUM = 52, 0, 12, 18
# a velocity coordinate's: screw S (6), its rate ad_V S (6) or U = IA S (6), the next coordinate towards the root, D, u
DOF, S_, DS, U_, NEXT, D_, FORCE = 16, 0, 6, 6, 12, 13, 14


@primitive
def place(model, i, q, origin, body):
    """T_i in inertial axes about `origin`, stored in its record and returned."""
    link = i * WIDTH
    f = joint_frame(model, link, q)
    p = parent_of(model, link)
    if p < 0:
        T = Frame(f.R, sub3(f.p, origin))
    else:
        T = compose(get_frame(body, p * BODY + T_), f)
    put_frame(body, i * BODY + T_, T)
    return T


@primitive
def parent_twist(model, i, body):
    p = parent_of(model, i * WIDTH)
    if p < 0:
        return zero_twist()
    return get_twist(body, p * BODY + V_)


@primitive
def place_screws(model, i, T, dof):
    """The joint's screws in inertial axes, S_k = Ad_T S_i, one record of `dof` each."""
    link = i * WIDTH
    first, end = dofs_of(model, link)
    towards_root = model[link + PARENT_DOF]
    for k in range(first, end):
        put6(dof, k * DOF + S_, Ad(T, screw_of(model, link, k - first)))
        dof[k * DOF + NEXT] = towards_root
        towards_root = float(k)


@primitive
def place_moving(model, i, q, v, origin, body, dof):
    """Pose, screws, twist V_i = V_p + S v and the screws' rates ad_V S of body i; returns (T, V)."""
    T = place(model, i, q, origin, body)
    place_screws(model, i, T, dof)
    V = parent_twist(model, i, body)
    first, end = dofs_of(model, i * WIDTH)
    for k in range(first, end):
        V = twist_add(V, twist_mul(v[k], get_twist(dof, k * DOF + S_)))
    for k in range(first, end):
        put6(dof, k * DOF + DS, ad(V, get_twist(dof, k * DOF + S_)))
    put6(body, i * BODY + V_, V)
    return T, V


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


# --- energies and momentum --------------------------------------------------------------------------------------


@primitive
def mechanical_state(model, q, v, body, dof, out):
    """out = (kinetic energy, potential energy, spatial momentum about the world's origin in inertial axes (6))."""
    origin = root_origin(model, q)
    kinetic = 0.0
    total = Inertia(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    P = zero_wrench()
    for i in range(n_bodies(model)):
        T, V = place_moving(model, i, q, v, origin, body, dof)
        J = inertia_to(T, inertia_of(model, i * WIDTH))
        h = momentum(J, V)
        kinetic += 0.5 * pair(V, h)
        P = wrench_add(P, h)
        total = Inertia(total.m + J.m, add3(total.h, J.h), total.I)
    out[0] = kinetic
    out[1] = -dot(gravity_of(model), add3(total.h, mul3(total.m, origin)))
    put(out, 2, add3(P.m, cross(origin, P.f)))
    put(out, 5, P.f)


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1])")
def mechanical_state_one(model, q, v, out):
    if not (good_configuration(model, q) and good_velocity(model, v)):
        raise ValueError
    mechanical_state(model, q, v, np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF), out)


@kernel("f8[:,::1](f8[::1], f8[:,::1], f8[:,::1])")
def mechanical_state_many(model, q, v):
    out, body, dof = np.empty((q.shape[0], 8)), np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF)
    for b in range(q.shape[0]):
        mechanical_state(model, q[b], v[b], body, dof, out[b])
    return out


@kernel("f8(f8[::1], f8[::1], f8[::1], i8)")
def skew_residual_one(model, q, v, form):
    """max |Mdot - C - C^T| relative to max(|Mdot|, |C|); 0 where both vanish."""
    if not (good_configuration(model, q) and good_velocity(model, v)):
        raise ValueError
    n = n_v(model)
    out = np.zeros((3 * n + 1, n))
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(n * DOF)
    terms(model, q, v, form, body, dof, out[:n], out[n : 2 * n], out[2 * n : 3 * n], out[3 * n])
    worst = scale = 0.0
    for i in range(n):
        for j in range(n):
            worst = max(worst, abs(out[n + i, j] - out[2 * n + i, j] - out[2 * n + j, i]))
            scale = max(scale, abs(out[n + i, j]), abs(out[2 * n + i, j]))
    if scale == 0.0:
        return 0.0
    return worst / scale
