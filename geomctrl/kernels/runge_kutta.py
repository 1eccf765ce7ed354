"""Explicit Runge-Kutta steps on a Lie group, for states (q, y) of a robot: Park and Chung 2005 section IV-B.

Crouch-Grossman (46), commutator-free (39) and Munthe-Kaas (47) methods: any `Tableau`, as one array of numbers. Being
left-trivialised, the increment stands on the right and dexp^-1 is taken at -Theta (41). `integrators.explicit` has the
same step for a field in Python on any group.
"""

from typing import Any, NamedTuple

import numpy as np

from .articulated_bodies import accelerations, dynamics_memory
from .configuration import polish
from .exponentials import dexp_inv_se3, exp_se3
from .jit import primitive
from .marches import DONE, NOT_FINITE, SINGULAR, TURNED, march_kernel, velocities_are_the_state, within_a_turn
from .records import finite, pose_at, put6, put_pose, twist_at
from .screws import compose, pair, twist_mul
from .tree import (
    coordinate_of,
    dual_screw_of,
    first_dof_of,
    holds_pose,
    joint_twist,
    n_bodies,
    n_q,
    n_v,
    ndof_of,
)

POLISH_EVERY = 64  # steps after which rotations are brought back to SO(3) to the last bit: without it, 1e-18 a step off

# --- a method as one array of numbers ----------------------------------------------------------------------------
#
# [s, rows, Munthe-Kaas?, is the basis of every free joint the identity?] [stage 0] ... [stage s], the last being the
# update. A stage is, with h multiplied in,
# [the stage whose pose it starts from, number of exponentials, does a later stage start here?] [classical row (s)]
# [exponentials (rows, s)].

HEADER, STAGE = 4, 3


@primitive
def increment(plan, row, K, count, n, u):
    """u = sum_j plan[row + j] K_j over the first `count` slopes of n numbers."""
    for k in range(n):
        u[k] = 0.0
    for j in range(count):
        c = plan[row + j]
        if c != 0.0:
            for k in range(n):
                u[k] += c * K[j * n + k]


@primitive
def twist_of(model, i, x, identity):
    """S x of a joint stored as a pose; a free joint's basis is the identity, and 36 products with it take time."""
    if identity and ndof_of(model, i) == 6:
        return twist_at(x, first_dof_of(model, i))
    return joint_twist(model, i, x)


@primitive
def move(model, x, q, identity):
    """q <- q exp(x), joint by joint."""
    for i in range(n_bodies(model)):
        k = coordinate_of(model, i)
        if holds_pose(model, i):
            put_pose(q, k, compose(pose_at(q, k), exp_se3(twist_of(model, i, x, identity))))
        else:
            q[k] += x[first_dof_of(model, i)]


@primitive
def pull_back(model, u, v, K, first, identity):
    """K[at:] = dexp^-1_{-u} v (47e), joint by joint; False where u turns a joint by 2 pi."""
    for i in range(n_bodies(model)):
        k = first_dof_of(model, i)
        if holds_pose(model, i):
            U, V = twist_of(model, i, u, identity), twist_of(model, i, v, identity)
            if not within_a_turn(U.w):
                return False
            X = dexp_inv_se3(twist_mul(-1.0, U), V)
            if identity and ndof_of(model, i) == 6:
                put6(K, first + k, X)
                continue
            for c in range(ndof_of(model, i)):
                K[first + k + c] = pair(X, dual_screw_of(model, i, c))
        else:
            K[first + k] = v[k]
    return True


class StageWork(NamedTuple):
    """Work memory of `rk_step`: the stages' configurations (s, nq) and slopes (s, nv), flat, then those of the stage at
    hand: exponent, configuration, y, velocity and slope of y; what a field needs; an empty array."""

    Q: Any
    Kq: Any
    Ky: Any
    u: Any
    qi: Any
    yi: Any
    vi: Any
    ai: Any
    memory: Any
    none: Any


@primitive
def stage_work(model, plan, memory):
    s, nq, nv = int(plan[0]), n_q(model), n_v(model)
    Q, Kq, Ky = np.empty(s * nq), np.empty(s * nv), np.empty(s * nv)
    u, qi, yi, vi, ai = np.empty(nv), np.empty(nq), np.empty(nv), np.empty(nv), np.empty(nv)
    return StageWork(Q, Kq, Ky, u, qi, yi, vi, ai, memory, np.empty(0))


@primitive
def rk_step(field, model, plan, tau, q, y, work, context):
    """One step of (q, y), in place. field(model, q, y, tau, context, memory, a) writes ydot to a; q turns at y, or
    at what the field, having work.vi in its context, writes there. `accelerations` is one (44), with its external
    wrenches for context."""
    Q, Kq, Ky, u, qi, yi, vi, ai, memory, _ = work
    s, max_terms, munthe_kaas, identity = int(plan[0]), int(plan[1]), plan[2] == 1.0, plan[3] == 1.0
    nq, nv = n_q(model), n_v(model)
    for i in range(s + 1):
        row = HEADER + i * (STAGE + s * (1 + max_terms))
        base, rows, keep = int(plan[row]), int(plan[row + 1]), plan[row + 2] == 1.0
        for k in range(nq):
            qi[k] = Q[base * nq + k] if base > 0 else q[k]
        for r in range(rows):  # (46i), (39b), (47d)
            increment(plan, row + STAGE + s * (1 + r), Kq, i, nv, u)
            move(model, u, qi, identity)
        increment(plan, row + STAGE, Ky, i, nv, yi)  # (46g), (46h)
        for k in range(nv):
            yi[k] += y[k]
        if i == s:
            break
        if keep:
            for k in range(nq):
                Q[i * nq + k] = qi[k]
        for k in range(nv):
            vi[k] = yi[k]
        if not field(model, qi, yi, tau, context, memory, ai):
            return SINGULAR if finite(qi) and finite(yi) else NOT_FINITE
        if munthe_kaas and rows > 0:
            if not pull_back(model, u, vi, Kq, i * nv, identity):
                return TURNED
        else:
            for k in range(nv):
                Kq[i * nv + k] = vi[k]
        for k in range(nv):
            Ky[i * nv + k] = ai[k]
    for k in range(nq):
        q[k] = qi[k]
    for k in range(nv):
        y[k] = yi[k]
    return DONE


# --- the robot's own motion --------------------------------------------------------------------------------------


@primitive
def begin(model, plan, q, v):
    return stage_work(model, plan, dynamics_memory(model))


@primitive
def step(model, plan, tau, q, v, k, work):
    result = rk_step(accelerations, model, plan, tau, q, v, work, work.none)
    if (k + 1) % POLISH_EVERY == 0:
        polish(model, q)
    return result if result != DONE or finite(v) else NOT_FINITE


march = march_kernel(__name__, "march", begin, step, velocities_are_the_state)
