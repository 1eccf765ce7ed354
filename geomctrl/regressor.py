"""The regressor: inverse dynamics is linear in the inertial parameters, tau = Y(q, v, a, v_ref) pi.

Body by body the wrench J A + Cbar(V) Vr is linear in (m, h, I): with L(x) y = I x for the six entries of I,

    Y_i = [[0, -[lin], L(al + w x wr) + [w] L(wr)], [lin, [al] + [w][wr], 0]]     (Ploen's Cbar)

where A = (al, acc), lin = acc + w x vr; the Christoffel-consistent Cbar has the inertia block
L(al) + [wr] L(w) + 1/2 (w x wr)(1, 0, 1, 0, 0, 1). A row of Y is Jac_k^T Y_i.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .dynamics import FORMS, REFUSED, Form, form_number
from .jit import kernel, primitive
from .packed import (
    WIDTH,
    dofs_of,
    good_configuration,
    good_velocity,
    gravity_of,
    joint_twist,
    n_bodies,
    n_v,
    parent_of,
    root_origin,
)
from .recursions import BODY, DOF, NEXT, PLOEN, S_, T_, place, place_screws
from .robot import Robot, as_batch, term
from .screw import (
    Ad,
    Ad_inv,
    Twist,
    ad,
    add3,
    cross,
    dot,
    get_frame,
    get_twist,
    neg3,
    put6,
    sub3,
    twist_add,
    twist_sub,
    zero_twist,
)

V_, VR, A_ = 12, 18, 24  # twist, reference twist and acceleration in a body's record


@primitive
def put_inertia_row(Y, k, j, s, a, x):
    """Y[k, j + 4 : j + 10] += s a^T L(x)."""
    Y[k, j + 4] += s * a[0] * x[0]
    Y[k, j + 5] += s * (a[0] * x[1] + a[1] * x[0])
    Y[k, j + 6] += s * a[1] * x[1]
    Y[k, j + 7] += s * (a[0] * x[2] + a[2] * x[0])
    Y[k, j + 8] += s * (a[1] * x[2] + a[2] * x[1])
    Y[k, j + 9] += s * a[2] * x[2]


@primitive
def regressor_of(model, q, v, a, v_ref, form, body, dof, Y):
    """Fill Y (nv, 10 nbodies), which comes zeroed: in inertial axes outward, body by body inward."""
    origin = root_origin(model, q)
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
        w, wr, al = V.w, Vr.w, A.w
        lin = add3(A.v, cross(w, Vr.v))
        wwr = cross(w, wr)
        j = 10 * i
        _, end = dofs_of(model, link)
        k = end - 1
        while k >= 0:
            X = Ad_inv(T, get_twist(dof, k * DOF + S_))  # column k of the body's Jacobian
            x, y = X.w, X.v
            Y[k, j] = dot(y, lin)
            h = add3(cross(lin, x), sub3(cross(wr, cross(w, y)), cross(al, y)))
            Y[k, j + 1], Y[k, j + 2], Y[k, j + 3] = h[0], h[1], h[2]
            if form == PLOEN:
                put_inertia_row(Y, k, j, 1.0, x, add3(al, wwr))
                put_inertia_row(Y, k, j, 1.0, cross(x, w), wr)
            else:
                put_inertia_row(Y, k, j, 1.0, x, al)
                put_inertia_row(Y, k, j, 1.0, cross(x, wr), w)
                t = 0.5 * dot(x, wwr)
                Y[k, j + 4] += t
                Y[k, j + 6] += t
                Y[k, j + 9] += t
            k = int(dof[k * DOF + NEXT])


@kernel("f8[:,::1](f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8)")
def regressor_one(model, q, v, a, v_ref, form):
    if not (
        good_configuration(model, q)
        and good_velocity(model, v)
        and good_velocity(model, a)
        and good_velocity(model, v_ref)
    ):
        raise ValueError
    Y = np.zeros((n_v(model), 10 * n_bodies(model)))
    regressor_of(model, q, v, a, v_ref, form, np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF), Y)
    return Y


@kernel("f8[:,:,::1](f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8)")
def regressor_many(model, q, v, a, v_ref, form):
    Y = np.zeros((q.shape[0], n_v(model), 10 * n_bodies(model)))
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF)
    for b in range(q.shape[0]):
        regressor_of(model, q[b], v[b], a[b], v_ref[b], form, body, dof, Y[b])
    return Y


@term
def regressor(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, v_ref: ArrayLike | None = None, form: Form = "ploen"
) -> np.ndarray:
    """Y (..., nv, 10 nbodies) with Y @ robot.parameters.ravel() == inverse_dynamics(q, v, a, v_ref, form=form).

    It depends on the robot's geometry and gravity, not on its parameters (Slotine and Li's regressor where v_ref is
    given). Columns: ten a body, in the order of `Robot.parameters`. Raises ArgumentError like the other terms.
    """
    if v_ref is None:
        v_ref = v
    try:
        return regressor_one(robot._model, q, v, a, v_ref, FORMS[form])
    except (*REFUSED, KeyError):
        number = form_number(form)
        lead, (q, v, a, v_ref) = as_batch(robot, q=q, v=v, a=a, v_ref=v_ref)
        return regressor_many(robot._model, q, v, a, v_ref, number).reshape(*lead, robot.nv, 10 * robot.nbodies)
