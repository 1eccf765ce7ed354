"""Tracking errors on the group and Slotine and Li's sliding variables (1987), of one state."""

from __future__ import annotations

from .algorithms import algorithm, numbers
from .exponentials import dexp_inv_se3, log_se3
from .primitives import primitive
from .records import pose_at
from .screws import Ad_inv, Twist, ad, compose, inverse, twist_sub
from .tree import coordinate_of, first_dof_of, holds_pose, joint_coordinates, joint_twist, n_bodies
from .vectors import neg3


@primitive
def put_coordinates(model, i, X, out, row):
    joint_coordinates(model, i, X, out[row], 1.0)


@algorithm("q, v, q_d, v_d, a_d -> out[5, nv]")
def tracking_error(model, q, v, q_d, v_d, a_d, out):
    """Rows e, w, e_rate, v_d, a_d."""
    out[:, :] = 0.0
    for i in range(n_bodies(model)):
        k = coordinate_of(model, i)
        if holds_pose(model, i):
            T = compose(inverse(pose_at(q_d, k)), pose_at(q, k))
            V, Vd, Ad_ = joint_twist(model, i, v), joint_twist(model, i, v_d), joint_twist(model, i, a_d)
            E, Vd = log_se3(T), Ad_inv(T, Vd)
            W = twist_sub(V, Vd)
            put_coordinates(model, i, E, out, 0)
            put_coordinates(model, i, W, out, 1)
            put_coordinates(model, i, dexp_inv_se3(Twist(neg3(E.w), neg3(E.v)), W), out, 2)
            put_coordinates(model, i, Vd, out, 3)
            put_coordinates(model, i, twist_sub(Ad_inv(T, Ad_), ad(W, Vd)), out, 4)
        else:
            j = first_dof_of(model, i)
            out[0, j] = q[k] - q_d[k]
            out[1, j] = out[2, j] = v[j] - v_d[j]
            out[3, j] = v_d[j]
            out[4, j] = a_d[j]


@algorithm("q, v, q_d, v_d, a_d, Lambda[nv, nv] -> out[4, nv]", (numbers("5 * nv"),))
def sliding(model, q, v, q_d, v_d, a_d, Lambda, memory, out):
    """Rows e, v_ref, a_ref, s."""
    n = v.shape[0]
    error = memory.reshape((5, n))
    tracking_error(model, q, v, q_d, v_d, a_d, error)
    for i in range(n):
        out[0, i] = error[0, i]
        v_ref, a_ref = error[3, i], error[4, i]
        for j in range(n):
            v_ref -= Lambda[i * n + j] * error[0, j]
            a_ref -= Lambda[i * n + j] * error[2, j]
        out[1, i], out[2, i], out[3, i] = v_ref, a_ref, v[i] - v_ref
