"""Kernels of second derivatives: the recursion of `sensitivities` once more, along a direction.

They carry the tangent of every quantity as the state moves along (q exp(S x t), v + y t, a + z t): body i is carried by
the twist W_i = W_p + S x, what is fixed to it changes by ad_W, -ad_W^T or `rates.carried`, and what is bilinear has a
product rule. A direction costs O(n depth), all of them O(n^2 depth), a tensor's own size on a chain.
"""

import numpy as np

from .derivatives import (
    A_,
    ALPHA,
    ALPHAV,
    BETA,
    D11,
    F_,
    MOVE,
    NEXT,
    P2,
    composite_product,
    double_rate,
    get_rows,
    outward_derivatives,
    sum_over_subtrees,
)
from .jit import kernel, primitive
from .passes import BODY, SUM, T_, V_
from .records import get_frame, get_inertia, get_twist, get_wrench, put, put6, put_inertia, vec
from .screws import (
    Ad_dual,
    Twist,
    ad,
    ad_dual,
    momentum,
    pair,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_sub,
    zero_twist,
)
from .time_derivatives import carried
from .tree import PARENT_DOF, WIDTH, dofs_of, good_configuration, good_velocity, gravity_of, n_bodies, n_v, parent_of
from .vectors import add3, cross, dot, neg3, rotT

# tangents of a body's record: J (10), D11 (9), 2 p (3), F (6) over its subtree; W (6), V (6), A (6)
TANGENT, dD11, dP2, dF, W_, dV, dA = 46, 10, 19, 22, 28, 34, 40


@primitive
def outward_tangents(model, v, a, f_ext, x, y, z, body, move, tbody, tmove):
    """Tangents of what `outward_derivatives` left in `body` and `move`, into `tbody` and `tmove`."""
    for i in range(n_bodies(model)):
        link, row, t = i * WIDTH, i * BODY, i * TANGENT
        p = parent_of(model, link)
        V_p, A_p = zero_twist(), Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
        W, V_t, A_t = zero_twist(), zero_twist(), zero_twist()
        if p >= 0:
            V_p, A_p = get_twist(body, p * BODY + V_), get_twist(body, p * BODY + A_)
            W, V_t = get_twist(tbody, p * TANGENT + W_), get_twist(tbody, p * TANGENT + dV)
            A_t = get_twist(tbody, p * TANGENT + dA)
        first, end = dofs_of(model, link)
        for k in range(first, end):
            W = twist_add(W, twist_mul(x[k], get_twist(move, k * MOVE)))
        Sv, Sv_t, Sa_t = zero_twist(), zero_twist(), zero_twist()
        for k in range(first, end):
            S = get_twist(move, k * MOVE)
            S_t, beta = ad(W, S), ad(V_p, S)
            beta_t = twist_add(ad(V_t, S), ad(V_p, S_t))
            alpha_t = twist_add(twist_add(ad(A_t, S), ad(A_p, S_t)), twist_add(ad(V_t, beta), ad(V_p, beta_t)))
            put6(tmove, k * MOVE, S_t)
            put(tmove, k * MOVE + BETA, beta_t.w)
            put6(tmove, k * MOVE + ALPHA, alpha_t)
            put6(tmove, k * MOVE + ALPHAV, beta_t)
            Sv = twist_add(Sv, twist_mul(v[k], S))
            Sv_t = twist_add(Sv_t, twist_add(twist_mul(v[k], S_t), twist_mul(y[k], S)))
            Sa_t = twist_add(Sa_t, twist_add(twist_mul(a[k], S_t), twist_mul(z[k], S)))
        A_t = twist_add(twist_add(A_t, Sa_t), twist_add(ad(V_t, Sv), ad(V_p, Sv_t)))
        V_t = twist_add(V_t, Sv_t)
        V, A, J = get_twist(body, row + V_), get_twist(body, row + A_), get_inertia(body, row + SUM)
        for k in range(first, end):
            dS_t = twist_add(ad(V_t, get_twist(move, k * MOVE)), ad(V, get_twist(tmove, k * MOVE)))
            put6(tmove, k * MOVE + ALPHAV, twist_add(get_twist(tmove, k * MOVE + ALPHAV), dS_t))
        J_t = carried(J, W)
        D, P = double_rate(J_t, V)
        D_t, P_t = double_rate(J, V_t)
        F = wrench_add(momentum(J_t, A), momentum(J, A_t))
        F = wrench_add(F, ad_dual(V_t, momentum(J, V)))
        F = wrench_add(F, ad_dual(V, wrench_add(momentum(J_t, V), momentum(J, V_t))))
        if f_ext.shape[0] > 0:
            F = wrench_sub(F, ad_dual(W, Ad_dual(get_frame(body, row + T_), get_wrench(f_ext, 6 * i))))
        put_inertia(tbody, t, J_t)
        for r in range(3):
            put(tbody, t + dD11 + 3 * r, add3(D[r], D_t[r]))
        put(tbody, t + dP2, add3(P, P_t))
        put6(tbody, t + dF, F)
        put6(tbody, t + W_, W)
        put6(tbody, t + dV, V_t)
        put6(tbody, t + dA, A_t)


@primitive
def inward_tangents(model, body, move, tbody, tmove, dq, dv, M):
    """The derivatives of dtau/dq, dtau/dv and M along the direction, from records summed over subtrees."""
    dq[:], dv[:], M[:] = 0.0, 0.0, 0.0
    for i in range(n_bodies(model) - 1, -1, -1):
        at, t = i * BODY, i * TANGENT
        J, F, D, P = (
            get_inertia(body, at + SUM),
            get_wrench(body, at + F_),
            get_rows(body, at + D11),
            vec(body, at + P2),
        )
        J_t, F_t = get_inertia(tbody, t), get_wrench(tbody, t + dF)
        D_t, P_t = get_rows(tbody, t + dD11), vec(tbody, t + dP2)
        first, end = dofs_of(model, i * WIDTH)
        towards_root = int(model[i * WIDTH + PARENT_DOF])
        for row in range(first, end):
            k = row * MOVE
            S, beta, S_t, beta_t = get_twist(move, k), vec(move, k + BETA), get_twist(tmove, k), vec(tmove, k + BETA)
            JS = momentum(J, S)
            JS_t = wrench_add(momentum(J_t, S), momentum(J, S_t))
            DTS = add3(rotT(D, S.w), cross(P, S.v))
            DTS_t = add3(
                add3(rotT(D_t, S.w), cross(P_t, S.v)),
                add3(rotT(D, S_t.w), cross(P, S_t.v)),
            )
            X, X_t = get_twist(move, k + ALPHA), get_twist(tmove, k + ALPHA)
            Q = composite_product(J, D, P, X, beta)
            Q_t = wrench_add(composite_product(J_t, D_t, P_t, X, beta), composite_product(J, D, P, X_t, beta_t))
            X, X_t = get_twist(move, k + ALPHAV), get_twist(tmove, k + ALPHAV)
            U = composite_product(J, D, P, X, S.w)
            U_t = wrench_add(composite_product(J_t, D_t, P_t, X, S.w), composite_product(J, D, P, X_t, S_t.w))
            col = row
            while col >= 0:
                if col == towards_root:  # leaving the joint
                    Q_t = wrench_add(Q_t, wrench_add(ad_dual(S_t, F), ad_dual(S, F_t)))
                    Q = wrench_add(Q, ad_dual(S, F))
                c = col * MOVE
                X, X_t = get_twist(move, c), get_twist(tmove, c)
                M[row, col] = M[col, row] = pair(X_t, JS) + pair(X, JS_t)
                dq[col, row] = pair(X_t, Q) + pair(X, Q_t)
                dv[col, row] = pair(X_t, U) + pair(X, U_t)
                dv[row, col] = dot(X_t.w, DTS) + dot(X.w, DTS_t)
                X, X_t = get_twist(move, c + ALPHA), get_twist(tmove, c + ALPHA)
                dq[row, col] = pair(X_t, JS) + pair(X, JS_t)
                dq[row, col] += dot(vec(tmove, c + BETA), DTS) + dot(vec(move, c + BETA), DTS_t)
                X, X_t = get_twist(move, c + ALPHAV), get_twist(tmove, c + ALPHAV)
                dv[row, col] += pair(X_t, JS) + pair(X, JS_t)
                col = int(move[c + NEXT])


@primitive
def derivatives_along(model, q, v, a, f_ext, x, y, z, work, out):
    """out (directions, 3 nv, nv) for directions x, y, z (directions, nv); `work` as `work_memory` makes it."""
    n = n_v(model)
    own, body, move, tbody, tmove = work
    outward_derivatives(model, q, v, a, f_ext, own, move)
    body[:] = own
    sum_over_subtrees(model, body, BODY, SUM, 28)
    for d in range(x.shape[0]):
        outward_tangents(model, v, a, f_ext, x[d], y[d], z[d], own, move, tbody, tmove)
        sum_over_subtrees(model, tbody, TANGENT, 0, 28)
        to = out[d]
        inward_tangents(model, body, move, tbody, tmove, to[:n], to[n : 2 * n], to[2 * n :])


@primitive
def work_memory(model):
    n, m = n_v(model), n_bodies(model)
    return np.empty(m * BODY), np.empty(m * BODY), np.empty(n * MOVE), np.empty(m * TANGENT), np.empty(n * MOVE)


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,:,::1])")
def derivatives_along_one(model, q, v, a, x, y, z, out):
    """out (1, 3 nv, nv)."""
    if not (
        good_configuration(model, q)
        and good_velocity(model, v)
        and good_velocity(model, a)
        and good_velocity(model, x)
        and good_velocity(model, y)
        and good_velocity(model, z)
    ):
        raise ValueError
    one = (1, x.shape[0])
    derivatives_along(
        model, q, v, a, np.empty(0), x.reshape(one), y.reshape(one), z.reshape(one), work_memory(model), out
    )


@kernel(
    "void(f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,:,::1], f8[:,:,::1], f8[:,:,::1], f8[:,:,:,::1])"
)
def derivatives_along_many(model, q, v, a, f_ext, x, y, z, out):
    """out (batch, directions, 3 nv, nv) for directions x, y, z (batch, directions, nv), or (1, directions, nv) for all.

    f_ext: (batch, 6 nbodies), or (0, 6 nbodies) for none.
    """
    work, none = work_memory(model), np.empty(0)
    for b in range(q.shape[0]):
        F, d = f_ext[b] if f_ext.shape[0] > 0 else none, b if x.shape[0] > 1 else 0
        derivatives_along(model, q[b], v[b], a[b], F, x[d], y[d], z[d], work, out[b])
