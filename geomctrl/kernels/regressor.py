"""The regressor: inverse dynamics is linear in the inertial parameters, tau = Y(q, v, a, v_ref) pi.

Body by body the wrench J A + Cbar(V) Vr is linear in (m, h, I): with L(x) y = I x for the six entries of I,

    Y_i = [[0, -[lin], L(al + w x wr) + [w] L(wr)], [lin, [al] + [w][wr], 0]]     (Ploen's Cbar)

where A = (al, acc), lin = acc + w x vr; the Christoffel-consistent Cbar has the inertia block
L(al) + [wr] L(w) + 1/2 (w x wr)(1, 0, 1, 0, 0, 1). A row of Y is Jac_k^T Y_i.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel, primitive
from .newton_euler import PLOEN, coriolis_wrench, forces_to_torques, outward_reference
from .passes import BODY, DOF, NEXT, S_, T_, place, place_screws
from .records import get_frame, get_inertia, get_twist, put, put6, put_frame
from .screws import Ad, Ad_inv, Twist, ad, momentum, twist_add, twist_sub, wrench_add, zero_twist
from .tree import (
    WIDTH,
    dofs_of,
    good_configuration,
    good_velocity,
    gravity_of,
    joint_frame,
    joint_twist,
    n_bodies,
    n_v,
    parent_of,
    root_origin,
)
from .vectors import add3, cross, dot, neg3, sub3

PRODUCTS = 42  # record of a body in `products_of`
V_, VR, A_ = 12, 18, 24  # twist, reference twist and acceleration in a body's record


@primitive
def put_body_row(y, j, X, V, Vr, A, form):
    """y[j : j + 10] = X^T Y_i, the body's regressor seen along the twist X."""
    x, u = X.w, X.v
    w, wr, al = V.w, Vr.w, A.w
    lin = add3(A.v, cross(w, Vr.v))
    wwr = cross(w, wr)
    y[j] = dot(u, lin)
    put(y, j + 1, add3(cross(lin, x), sub3(cross(wr, cross(w, u)), cross(al, u))))
    if form == PLOEN:
        b, c, d, t = add3(al, wwr), cross(x, w), wr, 0.0
    else:
        b, c, d, t = al, cross(x, wr), w, 0.5 * dot(x, wwr)
    y[j + 4] = x[0] * b[0] + c[0] * d[0] + t  # x^T L(b) + c^T L(d)
    y[j + 5] = x[0] * b[1] + x[1] * b[0] + c[0] * d[1] + c[1] * d[0]
    y[j + 6] = x[1] * b[1] + c[1] * d[1] + t
    y[j + 7] = x[0] * b[2] + x[2] * b[0] + c[0] * d[2] + c[2] * d[0]
    y[j + 8] = x[1] * b[2] + x[2] * b[1] + c[1] * d[2] + c[2] * d[1]
    y[j + 9] = x[2] * b[2] + c[2] * d[2] + t


@primitive
def regressor_of(model, q, v, a, v_ref, form, body, dof, Y):
    """Fill Y (nv, 10 nbodies), which comes zeroed: in inertial axes outward, body by body inward."""
    origin = root_origin(model, q)
    flat, width = Y.reshape(Y.size), Y.shape[1]
    for i in range(n_bodies(model)):
        link, row = i * WIDTH, i * BODY
        T = place(model, i, q, origin, body)
        place_screws(model, i, T, dof)
        p = parent_of(model, link)
        V, Vr, A = zero_twist(), zero_twist(), Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
        if p >= 0:
            V, Vr, A = get_twist(body, p * BODY + V_), get_twist(body, p * BODY + VR), get_twist(body, p * BODY + A_)
        Sv = Ad(T, joint_twist(model, link, v))
        A = twist_sub(twist_add(A, Ad(T, joint_twist(model, link, a))), ad(Sv, Vr))
        V = twist_add(V, Sv)
        Vr = twist_add(Vr, Ad(T, joint_twist(model, link, v_ref)))
        put6(body, row + V_, V)
        put6(body, row + VR, Vr)
        put6(body, row + A_, A)
    for i in range(n_bodies(model)):
        link, row = i * WIDTH, i * BODY
        T = get_frame(body, row + T_)
        V, Vr, A = (
            Ad_inv(T, get_twist(body, row + V_)),
            Ad_inv(T, get_twist(body, row + VR)),
            Ad_inv(T, get_twist(body, row + A_)),
        )
        _, end = dofs_of(model, link)
        k = end - 1
        while k >= 0:
            X = Ad_inv(T, get_twist(dof, k * DOF + S_))  # column k of the body's Jacobian
            put_body_row(flat, k * width + 10 * i, X, V, Vr, A, form)
            k = int(dof[k * DOF + NEXT])


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8, f8[:,::1])")
def regressor_one(model, q, v, a, v_ref, form, Y):
    if not (
        good_configuration(model, q)
        and good_velocity(model, v)
        and good_velocity(model, a)
        and good_velocity(model, v_ref)
    ):
        raise ValueError
    regressor_of(model, q, v, a, v_ref, form, np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF), Y)


@kernel("f8[:,:,::1](f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8)")
def regressor_many(model, q, v, a, v_ref, form):
    Y = np.empty((q.shape[0], n_v(model), 10 * n_bodies(model)))
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF)
    for b in range(q.shape[0]):
        Y[b] = 0.0  # here, and not all at once: it is still in the cache when it is filled
        regressor_of(model, q[b], v[b], a[b], v_ref[b], form, body, dof, Y[b])
    return Y


@primitive
def products_of(model, pi, q, v, a, v_ref, x, form, work, tau, g):
    """tau = Y pi and g = Y^T x, O(n), without Y: Newton-Euler with parameters `pi`, and Y_i^T (Jac_i x) body by body.

    `work`: f (12), V (6), A (6), F (6), Vr (6), X = Jac_i x (6).
    """
    A_0 = Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
    for i in range(n_bodies(model)):
        link, row, j = i * WIDTH, i * PRODUCTS, 10 * i
        f = joint_frame(model, link, q)
        Sv, Sa = joint_twist(model, link, v), joint_twist(model, link, a)
        p = parent_of(model, link)
        V_p, Vr_p, A_p, X_p = zero_twist(), zero_twist(), A_0, zero_twist()
        if p >= 0:
            up = p * PRODUCTS
            V_p, A_p = get_twist(work, up + 12), get_twist(work, up + 18)
            Vr_p, X_p = get_twist(work, up + 30), get_twist(work, up + 36)
        V, Vr, A = outward_reference(f, V_p, Vr_p, A_p, Sv, Sa, joint_twist(model, link, v_ref))
        X = twist_add(Ad_inv(f, X_p), joint_twist(model, link, x))
        J = get_inertia(pi, j)
        put_frame(work, row, f)
        put6(work, row + 12, V)
        put6(work, row + 18, A)
        put6(work, row + 24, wrench_add(momentum(J, A), coriolis_wrench(J, V, Vr, form)))
        put6(work, row + 30, Vr)
        put6(work, row + 36, X)
        put_body_row(g, j, X, V, Vr, A, form)
    forces_to_torques(model, work, PRODUCTS, tau)


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8, f8[::1], f8[::1])")
def products_one(model, pi, q, v, a, v_ref, x, form, tau, g):
    n = n_bodies(model)
    if not (good_configuration(model, q) and good_velocity(model, v) and good_velocity(model, a)):
        raise ValueError
    if not (good_velocity(model, v_ref) and good_velocity(model, x) and pi.shape[0] == 10 * n):
        raise ValueError
    products_of(model, pi, q, v, a, v_ref, x, form, np.empty(n * PRODUCTS), tau, g)
