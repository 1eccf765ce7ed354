"""Configurations of a robot as a Lie group: q * exp(dv), its inverse, and what integrators need of it.

Every lower pair is a motion subgroup, so the configurations of a tree are a product of them: R for a joint with one
degree of freedom, a subgroup of SE(3) for one with more, in the coordinates v of its basis S. Mueller 2018 section 2.
"""

from __future__ import annotations

import numpy as np

from .algorithms import algorithm
from .exponentials import dexp_inv_se3, exp_se3, log_se3, orthonormal
from .jit import kernel, primitive
from .records import finite, pose_at, put_pose
from .screws import Pose, compose, inverse
from .tree import (
    coordinate_of,
    first_dof_of,
    holds_pose,
    joint_coordinates,
    joint_twist,
    joints_begin,
    joints_end,
    n_bodies,
    n_q,
    n_v,
)

# --- kernels ---------------------------------------------------------------------------------------------------


@primitive
def advance(model, q, x, out):
    """out = q exp(x), joint by joint."""
    for i in range(n_bodies(model)):
        k = coordinate_of(model, i)
        if holds_pose(model, i):
            put_pose(out, k, compose(pose_at(q, k), exp_se3(joint_twist(model, i, x))))
        else:
            out[k] = q[k] + x[first_dof_of(model, i)]


@primitive
def polish(model, q):
    """The poses' rotations, a few roundings off SO(3), to the nearest ones: else each step would leave its rounding."""
    for i in range(n_bodies(model)):
        if holds_pose(model, i):
            k = coordinate_of(model, i)
            T = pose_at(q, k)
            put_pose(q, k, Pose(orthonormal(T.R), T.p))


@primitive
def difference_of(model, q0, q1, out):
    """out = log(q0^-1 q1), joint by joint. `out` comes zeroed."""
    for i in range(n_bodies(model)):
        k = coordinate_of(model, i)
        if holds_pose(model, i):
            X = log_se3(compose(inverse(pose_at(q0, k)), pose_at(q1, k)))
            joint_coordinates(model, i, X, out, 1.0)
        else:
            out[first_dof_of(model, i)] = q1[k] - q0[k]


@kernel("f8[::1](f8[::1], f8[::1], f8[::1])")
def advance_one(model, q, x):
    if q.shape[0] != n_q(model) or x.shape[0] != n_v(model) or not (finite(q) and finite(x)):
        raise ValueError
    out, joints = np.empty(n_q(model)), model[joints_begin(model) : joints_end(model)]
    advance(joints, q, x, out)
    polish(joints, out)
    return out


@algorithm("q, dv -> moved[nq]")
def moved(model, q, dv, moved):
    advance(model, q, dv, moved)


@algorithm("q0[nq], q1[nq] -> dv")
def difference(model, q0, q1, dv):
    dv[:] = 0.0
    difference_of(model, q0, q1, dv)


@kernel("f8[:,::1](f8[::1], f8[:,::1], f8[:,::1])")
def dexp_inv_many(model, x, y):
    """dexp_x^-1 y in the joints' coordinates."""
    out, joints = np.zeros(y.shape), model[joints_begin(model) : joints_end(model)]
    for b in range(x.shape[0]):
        for i in range(n_bodies(joints)):
            if holds_pose(joints, i):
                X = dexp_inv_se3(joint_twist(joints, i, x[b]), joint_twist(joints, i, y[b]))
                joint_coordinates(joints, i, X, out[b], 1.0)
            else:
                k = first_dof_of(joints, i)
                out[b, k] = y[b, k]
    return out
