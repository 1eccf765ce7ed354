"""The variational method of `structure_preserving`: L_d(q0, q1) = h L(q0 exp(x/2), x/h) with exp x = q0^-1 q1.

Marsden and West, Acta Numerica 2001, sections 1.1 and 3.2; on Lie groups Lee, Leok and McClamroch 2007. Second order
and symmetric in time. A step is solved for by Broyden's method with the mass matrix for derivative: O(n) an iteration.
A torque is constant within the step and does the midpoint's virtual work.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .articulated_bodies import accelerations, dynamics_memory
from .broyden import ITERATIONS, broyden, norm, settled
from .configuration import advance, polish
from .jit import primitive
from .marches import DONE, NOT_CONVERGED, NOT_FINITE, SINGULAR, TURNED, march_kernel
from .records import finite
from .screws import twist_mul, wrench_mul, wrench_sub
from .spatial_momentum import (
    dexp_dual,
    dexp_inv_dual,
    lie_force,
    lifted,
    lower,
    momentum_after,
    momentum_sweep,
    sweep_memory,
    weightless,
    within_reach,
)
from .tree import dofs_of, holds_pose, joint_twist, n_bodies, n_q, n_v


class Work(NamedTuple):
    """x: the increment, x_old the one before; p: the momentum, a state; the rest is memory of the iterations."""

    x: Any
    x_old: Any
    p: Any
    w: Any
    half: Any
    p_mid: Any
    f: Any
    R: Any
    dx: Any
    qm: Any
    steps: Any
    dynamics: Any
    sweep: Any
    rest: Any
    none: Any
    still: Any


@primitive
def legendre_residual(model, x, p_mid, h, f, p, R):
    """R = dexp_x^-T (p_mid - h/2 dexp_{x/2}^T f) - p: what -D1 L_d(q0, q1) misses of the momentum p at q0."""
    for i in range(n_bodies(model)):
        first, end = dofs_of(model, i)
        if holds_pose(model, i):
            X = joint_twist(model, i, x)
            impulse = wrench_mul(0.5 * h, dexp_dual(twist_mul(0.5, X), lifted(model, i, f)))
            F = dexp_inv_dual(X, wrench_sub(lifted(model, i, p_mid), impulse))
            lower(model, i, F, R)
            for k in range(first, end):
                R[k] -= p[k]
        else:
            for k in range(first, end):
                R[k] = p_mid[k] - 0.5 * h * f[k] - p[k]


@primitive
def solve(model, h, tau, q, work):
    """(q, work.p) after h, in place, from the guess work.x of the increment, which becomes the increment."""
    x, _, p, w, half, p_mid, f, R, dx, qm, steps, dynamics, sweep, rest, none, still = work
    nv = n_v(model)
    last = math.inf
    for i in range(ITERATIONS):
        if not within_reach(model, x):
            return TURNED if finite(x) else NOT_CONVERGED
        for k in range(nv):
            w[k] = x[k] / h
            half[k] = 0.5 * x[k]
        advance(model, q, half, qm)
        momentum_sweep(model, qm, w, sweep, p_mid, dx, R)
        lie_force(model, w, p_mid, dx, tau, f)
        legendre_residual(model, x, p_mid, h, f, p, R)
        if not accelerations(still, qm, rest, R, none, dynamics, dx):  # M / h for the derivative of R
            return SINGULAR
        for k in range(nv):
            dx[k] *= -h
        broyden(i, dx, steps)
        for k in range(nv):
            x[k] += dx[k]
        change = norm(dx)
        if settled(i, change, last, norm(x)):
            momentum_after(model, x, p, h, f, R)
            advance(model, q, x, qm)
            for k in range(nv):
                p[k] = R[k]
            for k in range(n_q(model)):
                q[k] = qm[k]
            return DONE
        last = change
    return NOT_CONVERGED


@primitive
def begin(model, numbers, q, v):
    nv = n_v(model)
    x, x_old, p, w, half = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    p_mid, f, R, dx, qm = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(n_q(model))
    steps, dynamics, sweep = np.empty(ITERATIONS * (nv + 1)), dynamics_memory(model), sweep_memory(model)
    momentum_sweep(model, q, v, sweep, p, R, dx)
    for j in range(nv):
        x[j] = x_old[j] = numbers[0] * v[j]
    return Work(
        x, x_old, p, w, half, p_mid, f, R, dx, qm, steps, dynamics, sweep, np.zeros(nv), np.empty(0), weightless(model)
    )


@primitive
def step(model, numbers, tau, q, v, k, work):
    x, x_old, p = work.x, work.x_old, work.p
    for j in range(x.shape[0]):
        x[j], x_old[j] = 2.0 * x[j] - x_old[j], x[j]
    result = solve(model, numbers[0], tau, q, work)
    polish(model, q)
    return result if result != DONE or finite(p) else NOT_FINITE


@primitive
def velocity(model, q, v, work):
    """v = M^-1 p."""
    accelerations(work.still, q, work.rest, work.p, work.none, work.dynamics, v)


march_variational = march_kernel(__name__, "march_variational", begin, step, velocity)  # numbers: (h,)
