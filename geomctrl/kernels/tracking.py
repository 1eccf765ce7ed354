"""Tracking errors on the group and Slotine and Li's sliding variables (1987), of one state."""

from __future__ import annotations

import numpy as np

from .exponentials import dexp_inv_se3, log_se3
from .jit import kernel, primitive
from .records import get_frame
from .screws import Ad_inv, Twist, ad, compose, inverse, twist_sub
from .tree import IQ, IV, KIND, POSE, WIDTH, good_configuration, good_velocity, joint_coordinates, joint_twist, n_bodies
from .vectors import neg3


@primitive
def put_coordinates(model, link, X, out, row):
    joint_coordinates(model, link, X, out[row], 1.0)


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1])")
def tracking_error_one(model, q, v, q_d, v_d, a_d, out):
    """Into rows e, w, e_rate, v_d, a_d, which come zeroed."""
    if not (good_configuration(model, q) and good_velocity(model, v) and good_configuration(model, q_d)):
        raise ValueError
    if not (good_velocity(model, v_d) and good_velocity(model, a_d)):
        raise ValueError
    for i in range(n_bodies(model)):
        link = i * WIDTH
        k = int(model[link + IQ])
        if int(model[link + KIND]) == POSE:
            T = compose(inverse(get_frame(q_d, k)), get_frame(q, k))
            V, Vd, Ad_ = joint_twist(model, link, v), joint_twist(model, link, v_d), joint_twist(model, link, a_d)
            E, Vd = log_se3(T), Ad_inv(T, Vd)
            W = twist_sub(V, Vd)
            put_coordinates(model, link, E, out, 0)
            put_coordinates(model, link, W, out, 1)
            put_coordinates(model, link, dexp_inv_se3(Twist(neg3(E.w), neg3(E.v)), W), out, 2)
            put_coordinates(model, link, Vd, out, 3)
            put_coordinates(model, link, twist_sub(Ad_inv(T, Ad_), ad(W, Vd)), out, 4)
        else:
            j = int(model[link + IV])
            out[0, j] = q[k] - q_d[k]
            out[1, j] = out[2, j] = v[j] - v_d[j]
            out[3, j] = v_d[j]
            out[4, j] = a_d[j]


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1])")
def sliding_one(model, q, v, q_d, v_d, a_d, Lambda, out):
    """Into rows e, v_ref, a_ref, s."""
    if Lambda.shape[0] != v.shape[0] or Lambda.shape[1] != v.shape[0]:
        raise ValueError
    n = v.shape[0]
    error = np.zeros((5, n))
    tracking_error_one(model, q, v, q_d, v_d, a_d, error)
    for i in range(n):
        out[0, i] = error[0, i]
        v_ref, a_ref = error[3, i], error[4, i]
        for j in range(n):
            v_ref -= Lambda[i, j] * error[0, j]
            a_ref -= Lambda[i, j] * error[2, j]
        out[1, i], out[2, i], out[3, i] = v_ref, a_ref, v[i] - v_ref
