"""Explicit integration on a Lie group G: dy/dt = y field(t, y), y in G, field(t, y) in the Lie algebra as a vector.

Crouch-Grossman, commutator-free and Munthe-Kaas methods are the `Tableau`s of tableaus.py; one step of any of them
is `rk_step`. Two drivers loop over it: `steps` stores nothing and `integrate` returns a `Solution`. Equation numbers
are those of Park and Chung 2005; being left-trivialised, the increment stands on the right and dexp^-1 is taken at
-Theta (41). The embedded pair and its step control follow Hairer, Norsett and Wanner, Solving ODEs I, sections II.4-5.
"""

from __future__ import annotations

import math

import numpy as np

from .articulated_bodies import accelerations, dynamics_memory
from .configuration import polish
from .exponentials import dexp_inv_se3, exp_se3
from .jit import kernel, primitive
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
from .vectors import dot


@kernel("void(f8[::1], f8[::1], f8[:,::1], f8[::1])")
def moved_one(y, row, K, out):
    for j in range(y.shape[0]):
        out[j] = y[j]
    for i in range(row.shape[0]):
        for j in range(y.shape[0]):
            out[j] += row[i] * K[i, j]


@kernel("b1(f8[::1])")
def finite_one(x):
    return finite(x)


LARGEST_ANGLE = 2.0 * math.pi - 0.1  # rad a joint may turn within a Munthe-Kaas step: dexp^-1 is singular at 2 pi
POLISH = 64  # steps after which rotations are brought back to SO(3) to the last bit: without it, 1e-18 a step off

DONE, NOT_FINITE, TURNED, SINGULAR, NOT_CONVERGED = range(5)  # how a step went


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
def pull_back(model, u, v, K, at, identity):
    """K[at:] = dexp^-1_{-u} v (47e), joint by joint; False where u turns a joint by 2 pi."""
    for i in range(n_bodies(model)):
        k = first_dof_of(model, i)
        if holds_pose(model, i):
            U, V = twist_of(model, i, u, identity), twist_of(model, i, v, identity)
            if not dot(U.w, U.w) < LARGEST_ANGLE * LARGEST_ANGLE:
                return False
            X = dexp_inv_se3(twist_mul(-1.0, U), V)
            if identity and ndof_of(model, i) == 6:
                put6(K, at + k, X)
                continue
            for c in range(ndof_of(model, i)):
                K[at + k + c] = pair(X, dual_screw_of(model, i, c))
        else:
            K[at + k] = v[k]
    return True


@primitive
def rk_step(field, model, plan, tau, q, y, Q, Kq, Ky, u, qi, yi, vi, ai, context, memory):
    """One step of (q, y), in place. field(model, q, y, tau, context, memory, a) writes ydot to a; q turns at y, or
    at what the field, having vi in its context, writes there. `accelerations` is one (44), with its external
    wrenches for context. Work memory: the stages' configurations Q (s, nq) and slopes Kq, Ky (s, nv), and the stage at
    hand, its exponent u, qi, yi, vi, ai."""
    s, most, munthe_kaas, identity = int(plan[0]), int(plan[1]), plan[2] == 1.0, plan[3] == 1.0
    nq, nv = n_q(model), n_v(model)
    for i in range(s + 1):
        at = HEADER + i * (STAGE + s * (1 + most))
        base, rows, keep = int(plan[at]), int(plan[at + 1]), plan[at + 2] == 1.0
        for k in range(nq):
            qi[k] = Q[base * nq + k] if base > 0 else q[k]
        for r in range(rows):  # (46i), (39b), (47d)
            increment(plan, at + STAGE + s * (1 + r), Kq, i, nv, u)
            move(model, u, qi, identity)
        increment(plan, at + STAGE, Ky, i, nv, yi)  # (46g), (46h)
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


@primitive
def store(q, v, row, q_out, v_out):
    for j in range(q.shape[0]):
        q_out[row, j] = q[j]
    for j in range(v.shape[0]):
        v_out[row, j] = v[j]


@kernel("Tuple((i8, i8))(f8[::1], f8[::1], f8[:,::1], i8, i8, f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1])")
def march(model, plan, taus, first, last, q, v, every, q_out, v_out):
    """Steps `first` to `last` (exclusive) of (q, v), in place: (how it went, the step that went wrong, or `last`).

    taus: one row for all steps, or one a step. After step k, a multiple of `every`, row k / every gets the state.
    """
    s, nq, nv = int(plan[0]), n_q(model), n_v(model)
    Q, Kq, Kv = np.empty(s * nq), np.empty(s * nv), np.empty(s * nv)
    u, qi, yi, vi, ai, tau = np.empty(nv), np.empty(nq), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    memory, none = dynamics_memory(model), np.empty(0)
    for k in range(first, last):
        if k == first or taus.shape[0] > 1:
            for j in range(nv):
                tau[j] = taus[k if taus.shape[0] > 1 else 0, j]
        result = rk_step(accelerations, model, plan, tau, q, v, Q, Kq, Kv, u, qi, yi, vi, ai, none, memory)
        if (k + 1) % POLISH == 0:
            polish(model, q)
        stored = (k + 1) % every == 0
        if result == DONE and not (finite(v) and (not (stored or k + 1 == last) or finite(q))):
            result = NOT_FINITE  # velocities tell at once, for q looks at them next
        if result != DONE:
            return result, k
        if stored:
            store(q, v, (k + 1) // every, q_out, v_out)
    return DONE, last
