"""Kernels of the derivatives of inverse dynamics: what `derivatives` offers, without validation's words.

All is written in inertial axes about the first body's origin, where a motion of the joint c_k -> c_k exp(S_k d) carries
everything beyond it along with the screw S_k, and nothing needs a transport. With V_p, A_p the twist and acceleration
of the parent of joint k (gravity is the base's acceleration -g), the change that d leaves behind in a body beyond it is

    beta_k = ad_{V_p} S_k   of its twist,      alpha_k = ad_{A_p} S_k + ad_{V_p} beta_k   of its acceleration,

and v_k changes the acceleration by alphav_k = ad_{V_k} S_k + beta_k. With J_k, D_k, F_k the sums over the subtree of
J, D = Jdot + bar(J V) and F, for j on the path from k to the root (FORMULAS section 6; Singh, Russo, Wensing 2022)

    dtau_k/dq_j = S_k . (J_k alpha_j + D_k beta_j),    dtau_j/dq_k = S_j . (J_k alpha_k + D_k beta_k - ad_{S_k}^T F_k),
    dtau_k/dv_j = S_k . (J_k alphav_j + D_k S_j),      dtau_j/dv_k = S_j . (J_k alphav_k + D_k S_k),

without the first line's last term where j and k belong to the same joint. D = 2 B with the Christoffel-consistent
B = Cbar - J ad_V of `recursions.coriolis_composite`.
"""

import numpy as np

from .articulated_bodies import LANES, forward_dynamics, invert, unit_twist
from .composite_bodies import coriolis_composite
from .jit import kernel, primitive
from .newton_euler import CHRISTOFFEL
from .passes import BODY, DOF, SUM, T_, V_, place, place_screws
from .passes import NEXT as TOWARDS_ROOT
from .records import accumulate, get_frame, get_inertia, get_twist, get_wrench, put, put6, put_inertia, vec
from .screws import (
    Ad,
    Ad_dual,
    Frame,
    Twist,
    Wrench,
    ad,
    ad_dual,
    compose,
    inertia_to,
    momentum,
    pair,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_sub,
    zero_twist,
)
from .tree import (
    KIND,
    PARENT_DOF,
    ROTATING,
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
    screw_of,
)
from .tree import A as A_FRAME
from .tree import C as C_FRAME
from .vectors import add3, add33, cross, dot, mul3, neg3, rot, rotT, sub3

# a body's record: T (12), V (6), and over its subtree J (10), D11 (9), 2 p (3), F (6); then A (6)
D11, P2, F_, A_ = SUM + 10, SUM + 19, SUM + 22, SUM + 28
# a coordinate's record: S (6), the next coordinate towards the root, beta's angular part (3), alpha, alphav (6 each)
MOVE, NEXT, BETA, ALPHA, ALPHAV = 22, 6, 7, 10, 16


@primitive
def double_rate(J, V):
    """D = Jdot + bar(J V) = [[D11, 0], [-[2p], 0]] of one body, p its linear momentum: (D11, 2p)."""
    B, p = coriolis_composite(J, V, CHRISTOFFEL, 0.0)
    return (mul3(2.0, B[0]), mul3(2.0, B[1]), mul3(2.0, B[2])), mul3(2.0, p)


@primitive
def composite_product(J, D, P, X, beta):
    """J X + D beta."""
    F = momentum(J, X)
    return Wrench(add3(F.m, rot(D, beta)), sub3(F.f, cross(P, beta)))


@primitive
def get_rows(a, k):
    return vec(a, k), vec(a, k + 3), vec(a, k + 6)


@primitive
def sum_over_subtrees(model, body, width, first, count):
    for i in range(n_bodies(model) - 1, -1, -1):
        p = parent_of(model, i * WIDTH)
        if p >= 0:
            accumulate(body, p * width + first, body, i * width + first, count)


@primitive
def outward_derivatives(model, q, v, a, f_ext, body, move):
    """Twists, accelerations and what one body adds to J, D and F; per coordinate S, beta, alpha and alphav.

    External wrenches are constant in their bodies' frames: they move along, as the rest of F does.
    """
    origin = root_origin(model, q)
    for i in range(n_bodies(model)):
        link, row = i * WIDTH, i * BODY
        T = place(model, i, q, origin, body)
        p = parent_of(model, link)
        V_p, A_p = zero_twist(), Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
        if p >= 0:
            V_p, A_p = get_twist(body, p * BODY + V_), get_twist(body, p * BODY + A_)
        first, end = dofs_of(model, link)
        Sv, Sa, towards_root = zero_twist(), zero_twist(), model[link + PARENT_DOF]
        for k in range(first, end):
            S = Ad(T, screw_of(model, link, k - first))
            beta = ad(V_p, S)
            put6(move, k * MOVE, S)
            move[k * MOVE + NEXT] = towards_root
            put(move, k * MOVE + BETA, beta.w)
            put6(move, k * MOVE + ALPHA, twist_add(ad(A_p, S), ad(V_p, beta)))
            put6(move, k * MOVE + ALPHAV, beta)
            Sv, Sa = twist_add(Sv, twist_mul(v[k], S)), twist_add(Sa, twist_mul(a[k], S))
            towards_root = float(k)
        V = twist_add(V_p, Sv)
        A = twist_add(A_p, twist_add(Sa, ad(V_p, Sv)))
        for k in range(first, end):
            dS = ad(V, get_twist(move, k * MOVE))
            put6(move, k * MOVE + ALPHAV, twist_add(get_twist(move, k * MOVE + ALPHAV), dS))
        J = inertia_to(T, inertia_of(model, link))
        D, P = double_rate(J, V)
        put6(body, row + V_, V)
        put6(body, row + A_, A)
        put_inertia(body, row + SUM, J)
        put(body, row + D11, D[0])
        put(body, row + D11 + 3, D[1])
        put(body, row + D11 + 6, D[2])
        put(body, row + P2, P)
        F = wrench_add(momentum(J, A), ad_dual(V, momentum(J, V)))
        if f_ext.shape[0] > 0:
            F = wrench_sub(F, Ad_dual(T, get_wrench(f_ext, 6 * i)))
        put6(body, row + F_, F)


@primitive
def inverse_dynamics_derivatives(model, q, v, a, f_ext, body, move, dq, dv, M):
    """dtau/dq, dtau/dv and dtau/da = M. `body`: BODY, `move`: MOVE numbers a record.

    Zeroed here, state by state, so that of a large batch each block is in the cache when it is filled.
    """
    dq[:], dv[:], M[:] = 0.0, 0.0, 0.0
    outward_derivatives(model, q, v, a, f_ext, body, move)
    for i in range(n_bodies(model) - 1, -1, -1):
        link, at = i * WIDTH, i * BODY
        J, F = get_inertia(body, at + SUM), get_wrench(body, at + F_)
        D, P = get_rows(body, at + D11), vec(body, at + P2)
        first, end = dofs_of(model, link)
        towards_root = int(model[link + PARENT_DOF])
        for row in range(first, end):
            k = row * MOVE
            S, beta = get_twist(move, k), vec(move, k + BETA)
            JS, DTS = momentum(J, S), add3(rotT(D, S.w), cross(P, S.v))  # J S; D^T S, whose linear part is zero
            Q = composite_product(J, D, P, get_twist(move, k + ALPHA), beta)
            U = composite_product(J, D, P, get_twist(move, k + ALPHAV), S.w)
            col = row
            while col >= 0:
                if col == towards_root:  # leaving the joint
                    Q = wrench_add(Q, ad_dual(S, F))
                c = col * MOVE
                X, X_q, X_v = get_twist(move, c), get_twist(move, c + ALPHA), get_twist(move, c + ALPHAV)
                M[row, col] = M[col, row] = pair(X, JS)
                dq[col, row] = pair(X, Q)
                dv[col, row] = pair(X, U)
                dq[row, col] = pair(X_q, JS) + dot(vec(move, c + BETA), DTS)
                dv[row, col] = pair(X_v, JS) + dot(X.w, DTS)
                col = int(move[c + NEXT])
        p = parent_of(model, link)
        if p >= 0:
            accumulate(body, p * BODY + SUM, body, at + SUM, 28)


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1])")
def inverse_dynamics_derivatives_one(model, q, v, a, out):
    """Into one block (3 nv, nv): dtau/dq, dtau/dv, M, nv rows each."""
    if not (good_configuration(model, q) and good_velocity(model, v) and good_velocity(model, a)):
        raise ValueError
    n = n_v(model)
    body, move, none = np.empty(n_bodies(model) * BODY), np.empty(n * MOVE), np.empty(0)
    inverse_dynamics_derivatives(model, q, v, a, none, body, move, out[:n], out[n : 2 * n], out[2 * n :])


@kernel("void(f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1])")
def inverse_dynamics_derivatives_many(model, q, v, a, f_ext, out):
    """out (batch, 3 nv, nv); f_ext: (batch, 6 nbodies), or (0, 6 nbodies) for none."""
    n = n_v(model)
    body, move, none = np.empty(n_bodies(model) * BODY), np.empty(n * MOVE), np.empty(0)
    for b in range(q.shape[0]):
        F, block = f_ext[b] if f_ext.shape[0] > 0 else none, out[b]
        inverse_dynamics_derivatives(
            model, q[b], v[b], a[b], F, body, move, block[:n], block[n : 2 * n], block[2 * n :]
        )


# --- forward dynamics -------------------------------------------------------------------------------------------


@primitive
def forward_dynamics_derivatives(model, q, v, tau, f_ext, body, dof, move, W, block, a, out):
    """da/dq = -M^-1 dtau/dq, da/dv = -M^-1 dtau/dv, M^-1, nv rows each in `out`, and a. False unless M > 0.

    `block` (3 nv, nv) is work for the derivatives of inverse dynamics; `W`: 7 LANES numbers a coordinate.
    """
    n = a.shape[0]
    if not forward_dynamics(model, q, v, tau, f_ext, body, dof, a):
        return False
    inverse = out[2 * n :]
    invert(dof, W, inverse)
    inverse_dynamics_derivatives(model, q, v, a, f_ext, body, move, block[:n], block[n : 2 * n], block[2 * n :])
    np.dot(inverse, block[:n], out[:n])
    np.dot(inverse, block[n : 2 * n], out[n : 2 * n])
    for i in range(2 * n):
        for j in range(n):
            out[i, j] = -out[i, j]
    return True


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1])")
def forward_dynamics_derivatives_one(model, q, v, tau, out):
    """Into one block (3 nv + 1, nv): da/dq, da/dv, M^-1, nv rows each, then a."""
    if not (good_configuration(model, q) and good_velocity(model, v) and good_velocity(model, tau)):
        raise ValueError
    n, m = n_v(model), n_bodies(model)
    block = np.empty((3 * n, n))
    body, dof, move, W = np.empty(m * BODY), np.empty(n * DOF), np.empty(n * MOVE), np.empty(n * 7 * LANES)
    if not forward_dynamics_derivatives(
        model, q, v, tau, np.empty(0), body, dof, move, W, block, out[3 * n], out[: 3 * n]
    ):
        raise ValueError


@kernel("i8(f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1])")
def forward_dynamics_derivatives_many(model, q, v, tau, f_ext, out):
    """Into blocks; returns the number of the first state whose mass matrix is not positive definite, or -1."""
    n, m = n_v(model), n_bodies(model)
    block = np.empty((3 * n, n))
    body, dof, move, W = np.empty(m * BODY), np.empty(n * DOF), np.empty(n * MOVE), np.empty(n * 7 * LANES)
    none = np.empty(0)
    for b in range(q.shape[0]):
        F, to = f_ext[b] if f_ext.shape[0] > 0 else none, out[b]
        if not forward_dynamics_derivatives(
            model, q[b], v[b], tau[b], F, body, dof, move, W, block, to[3 * n], to[: 3 * n]
        ):
            return b
    return -1


# --- the mass matrix --------------------------------------------------------------------------------------------


@primitive
def mass_matrix_derivative(model, q, body, dof, out):
    """out[i, j, k] = dM_ij/dq_k, O(n depth^2). `body`: BODY, `dof`: DOF numbers a record.

    M_rc = S_c . J_r S_r for c on the path from r to the root. A motion of joint k does nothing to it where k carries
    both, carries S_r and J_r along where k is between them, and the part J_k of J_r where k is beyond r.
    """
    out[:] = 0.0
    origin = root_origin(model, q)
    for i in range(n_bodies(model)):
        T = place(model, i, q, origin, body)
        place_screws(model, i, T, dof)
        put_inertia(body, i * BODY + SUM, inertia_to(T, inertia_of(model, i * WIDTH)))
    sum_over_subtrees(model, body, BODY, SUM, 10)
    for i in range(n_bodies(model)):
        J = get_inertia(body, i * BODY + SUM)
        first, end = dofs_of(model, i * WIDTH)
        for r in range(first, end):
            F, b = momentum(J, get_twist(dof, r * DOF)), i
            while b >= 0:
                begin, stop = dofs_of(model, b * WIDTH)
                for k in range(begin, stop):
                    H, c = ad_dual(get_twist(dof, k * DOF), F), int(model[b * WIDTH + PARENT_DOF])
                    while c >= 0:
                        out[r, c, k] = out[c, r, k] = pair(get_twist(dof, c * DOF), H)
                        c = int(dof[c * DOF + TOWARDS_ROOT])
                b = parent_of(model, b * WIDTH)
        for k in range(first, end):
            S, b = get_twist(dof, k * DOF), parent_of(model, i * WIDTH)
            while b >= 0:
                begin, stop = dofs_of(model, b * WIDTH)
                for r in range(begin, stop):
                    X = get_twist(dof, r * DOF)
                    H, c = wrench_sub(ad_dual(S, momentum(J, X)), momentum(J, ad(S, X))), r
                    while c >= 0:
                        out[r, c, k] = out[c, r, k] = pair(get_twist(dof, c * DOF), H)
                        c = int(dof[c * DOF + TOWARDS_ROOT])
                b = parent_of(model, b * WIDTH)


@kernel("void(f8[::1], f8[:,::1], f8[:,:,:,::1])")
def mass_matrix_derivative_many(model, q, out):
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF)
    for b in range(q.shape[0]):
        mass_matrix_derivative(model, q[b], body, dof, out[b])


# --- geometry ---------------------------------------------------------------------------------------------------
#
# A change M_i exp(U d) of a placement is a motion of a locked, massless joint with screw U before joint i, and
# exp(S q) exp(U d) one of a joint behind it (Mueller 2018 section 6.2): the formulas above with these joints' screws.

# record of such a joint, one for each of six U: alpha (6), beta's angular part (3)
LOCKED = 9


@primitive
def placement_of(model, link):
    """M_i, the joint's frame at coordinate zero or before its pose."""
    a, c = get_frame(model, link + A_FRAME), get_frame(model, link + C_FRAME)
    if int(model[link + KIND]) == ROTATING:
        return Frame(add33(a.R, c.R), add3(a.p, c.p))
    return a


@primitive
def put_locked(locked, k, U, V, A):
    beta = ad(V, U)
    alpha = twist_add(ad(A, U), ad(V, beta))
    put6(locked, k * LOCKED, alpha)
    put(locked, k * LOCKED + 6, beta.w)
    return alpha, beta.w


@primitive
def geometric_sensitivity(model, q, v, a, f_ext, body, move, locked, out):
    """out[0] and out[1] (nv, nbodies, 6): dtau for screws before and behind each joint. `locked`: 12 each."""
    out[:] = 0.0
    outward_derivatives(model, q, v, a, f_ext, body, move)
    sum_over_subtrees(model, body, BODY, SUM, 28)
    origin = root_origin(model, q)
    for i in range(n_bodies(model)):
        link, at, p = i * WIDTH, i * BODY, parent_of(model, i * WIDTH)
        J, F, D, P = (
            get_inertia(body, at + SUM),
            get_wrench(body, at + F_),
            get_rows(body, at + D11),
            vec(body, at + P2),
        )
        V_p, A_p, T = zero_twist(), Twist((0.0, 0.0, 0.0), neg3(gravity_of(model))), placement_of(model, link)
        if p >= 0:
            V_p, A_p = get_twist(body, p * BODY + V_), get_twist(body, p * BODY + A_)
            T = compose(get_frame(body, p * BODY + T_), T)
        else:
            T = Frame(T.R, sub3(T.p, origin))
        T_i, V, A = get_frame(body, at + T_), get_twist(body, at + V_), get_twist(body, at + A_)
        _, end = dofs_of(model, link)
        for e in range(6):
            for side in range(2):
                U = Ad(T, unit_twist(e)) if side == 0 else Ad(T_i, unit_twist(e))
                V_k, A_k = (V_p, A_p) if side == 0 else (V, A)
                alpha, beta = put_locked(locked, 12 * i + 6 * side + e, U, V_k, A_k)
                Q = wrench_add(composite_product(J, D, P, alpha, beta), ad_dual(U, F))
                col = int(model[link + PARENT_DOF]) if side == 0 else end - 1
                while col >= 0:  # on this side of the change
                    out[side, col, i, e] = pair(get_twist(move, col * MOVE), Q)
                    col = int(move[col * MOVE + NEXT])
    for i in range(n_bodies(model)):
        at = i * BODY
        J, D, P = get_inertia(body, at + SUM), get_rows(body, at + D11), vec(body, at + P2)
        first, end = dofs_of(model, i * WIDTH)
        for row in range(first, end):  # beyond it
            S = get_twist(move, row * MOVE)
            JS, DTS = momentum(J, S), add3(rotT(D, S.w), cross(P, S.v))
            b, side = i, 0
            while b >= 0:
                for e in range(6):
                    for s in range(side + 1):
                        k = (12 * b + 6 * s + e) * LOCKED
                        out[s, row, b, e] = pair(get_twist(locked, k), JS) + dot(vec(locked, k + 6), DTS)
                b, side = parent_of(model, b * WIDTH), 1


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[:,:,:,::1])")
def geometric_sensitivity_one(model, q, v, a, out):
    """out (2, nv, nbodies, 6)."""
    if not (good_configuration(model, q) and good_velocity(model, v) and good_velocity(model, a)):
        raise ValueError
    n, m = n_v(model), n_bodies(model)
    body, move, locked = np.empty(m * BODY), np.empty(n * MOVE), np.empty(12 * m * LOCKED)
    geometric_sensitivity(model, q, v, a, np.empty(0), body, move, locked, out)


@kernel("void(f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,:,:,:,::1])")
def geometric_sensitivity_many(model, q, v, a, f_ext, out):
    """out (batch, 2, nv, nbodies, 6); f_ext: (batch, 6 nbodies), or (0, 6 nbodies) for none."""
    n, m = n_v(model), n_bodies(model)
    body, move, locked, none = np.empty(m * BODY), np.empty(n * MOVE), np.empty(12 * m * LOCKED), np.empty(0)
    for b in range(q.shape[0]):
        F = f_ext[b] if f_ext.shape[0] > 0 else none
        geometric_sensitivity(model, q[b], v[b], a[b], F, body, move, locked, out[b])
