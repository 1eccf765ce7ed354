"""Kernels of the two implicit methods of `structure_preserving`: variational, and energy-momentum.

Both are second order and symmetric in time, and solve for a step by Broyden's method with the mass matrix for
derivative: O(n) an iteration. A torque is constant within the step and does the midpoint's virtual work.
"""

import math

import numpy as np

from .articulated_bodies import accelerations, dynamics_memory
from .configuration import advance, polish
from .jit import kernel, primitive
from .records import finite
from .runge_kutta import DONE, NOT_CONVERGED, NOT_FINITE, SINGULAR, TURNED, store
from .screws import twist_mul, wrench_mul, wrench_sub
from .spatial_momentum import (
    dexp_dual,
    dexp_inv_dual,
    lie_force,
    lifted,
    lower,
    momentum_sweep,
    sweep_memory,
    transported,
    weightless,
    within_reach,
)
from .tree import dofs_of, holds_pose, joint_twist, n_bodies, n_q, n_v

ITERATIONS = 40  # of Broyden's method; some 6 to 10 are usual
PATIENCE = 12  # iterations after which 1e-8 will do, where joints all but at rest magnify the energy's round-off
LOST = 1e-14  # share of the potential energy below which a kinetic energy is lost in its round-off, and so is `missing`
SLOW = 1e-8  # share of the joints in M x . x towards which their motion becomes too slow to correct the energy by


@primitive
def norm(x):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * x[k]
    return math.sqrt(total)


@primitive
def settled(i, change, last, size):
    """Changes have come down to round-off: below 4e-16 of the unknown, or small and no longer shrinking."""
    small = 1e-12 if i < PATIENCE else 1e-8
    return change <= 4e-16 * size or (change <= small * size and change >= 0.5 * last)


@primitive
def broyden(i, newton, S):
    """Step i of Broyden's method, in place, from the step `newton` that a constant derivative suggests (Kelley 1995,
    section 7.3). S: the steps so far, a row of n numbers each, behind their squared lengths."""
    n = newton.shape[0]
    for j in range(i):
        along = 0.0
        for k in range(n):
            along += S[ITERATIONS + j * n + k] * newton[k]
        along /= S[j]
        if j + 1 < i:
            for k in range(n):
                newton[k] += along * S[ITERATIONS + (j + 1) * n + k]
        elif abs(1.0 - along) > 0.1:  # else nothing was learnt: at round-off, steps repeat
            for k in range(n):
                newton[k] /= 1.0 - along
    S[i] = 0.0
    for k in range(n):
        S[i] += newton[k] * newton[k]
        S[ITERATIONS + i * n + k] = newton[k]


# --- variational: L_d(q0, q1) = h L(q0 exp(x/2), x/h) with exp x = q0^-1 q1 --------------------------------------


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
def variational_kernel(model, still, h, tau, q, p, x, qm, w, half, p_mid, f, R, dx, S, rest, none, dynamics, sweep):
    """(q, p) after h, in place, from the guess x of the increment, which becomes the increment."""
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
        broyden(i, dx, S)
        for k in range(nv):
            x[k] += dx[k]
        change = norm(dx)
        if settled(i, change, last, norm(x)):
            transported(model, x, p, h, f, R)
            advance(model, q, x, qm)
            for k in range(nv):
                p[k] = R[k]
            for k in range(n_q(model)):
                q[k] = qm[k]
            return DONE
        last = change
    return NOT_CONVERGED


@kernel("Tuple((i8, i8))(f8[::1], f8, f8[:,::1], i8, i8, f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1])")
def march_variational(model, h, taus, first, last, q, v, every, q_out, v_out):
    """As `rollout.march`."""
    nq, nv = n_q(model), n_v(model)
    still, none, rest = weightless(model), np.empty(0), np.zeros(nv)
    x, w, half, p_mid, f = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    R, dx, p, x_old, tau, qm = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nq)
    dynamics, sweep, S = dynamics_memory(model), sweep_memory(model), np.empty(ITERATIONS * (nv + 1))
    momentum_sweep(model, q, v, sweep, p, R, dx)
    for j in range(nv):
        x[j] = x_old[j] = h * v[j]
    for k in range(first, last):
        for j in range(nv):
            tau[j] = taus[k if taus.shape[0] > 1 else 0, j]
            x[j], x_old[j] = 2.0 * x[j] - x_old[j], x[j]
        result = variational_kernel(
            model, still, h, tau, q, p, x, qm, w, half, p_mid, f, R, dx, S, rest, none, dynamics, sweep
        )
        polish(model, q)
        if result == DONE and not (finite(q) and finite(p)):
            result = NOT_FINITE
        if result != DONE:
            accelerations(still, q, rest, p, none, dynamics, v)
            return result, k
        if (k + 1) % every == 0 or k + 1 == last:
            accelerations(still, q, rest, p, none, dynamics, v)
            if (k + 1) % every == 0:
                store(q, v, (k + 1) // every, q_out, v_out)
    return DONE, last


# --- energy and momentum: x = h (v0 + v1) / 2 and a discrete gradient of the energy ------------------------------


@primitive
def energy_momentum_kernel(
    model,
    still,
    h,
    tau,
    skip,
    q,
    p,
    v,
    v1,
    potential,
    x,
    q1,
    w,
    p1,
    f,
    R,
    dv,
    S,
    rest,
    none,
    dynamics,
    sweep,
    diagonal,
    rate,
):
    """(q, p, v) after h, in place, from the guess v1; (how it went, potential energy there).

    With x = h (v0 + v1) / 2 and p1 = Ad_{exp x}^T p0 + h Ad_{exp x/2}^T (f + tau), the energy changes by the torques'
    work x . tau if and only if x . f = (v0 . p1 - v1 . p0) / 2 - (U1 - U0). The midpoint's f misses that by O(h^3),
    and takes the rest along the motion of the joints, from `skip` on: a free base's momentum is not to feel it.
    """
    nv = n_v(model)
    last = math.inf
    for i in range(ITERATIONS):
        for k in range(nv):
            w[k] = 0.5 * (v[k] + v1[k])
            x[k] = 0.5 * h * w[k]
        advance(model, q, x, q1)
        momentum_sweep(model, q1, w, sweep, p1, rate, diagonal)
        lie_force(model, w, p1, rate, rest, f)
        for k in range(nv):
            x[k] = h * w[k]
        if not within_reach(model, x):
            return (TURNED if finite(x) else NOT_CONVERGED), potential
        advance(model, q, x, q1)
        reached = momentum_sweep(model, q1, v1, sweep, p1, rate, R)
        missing, moving, all_moving = potential - reached, 0.0, 0.0
        slow = h * h * LOST * (abs(potential) + abs(reached))
        for k in range(nv):
            missing += 0.5 * (v[k] * p1[k] - v1[k] * p[k]) - x[k] * f[k]
            all_moving += diagonal[k] * x[k] * x[k]
            if k >= skip:
                moving += diagonal[k] * x[k] * x[k]
        for k in range(nv):
            if k >= skip and all_moving > 0.0:  # missing / moving, but for joints that hardly move
                slow = max(slow, SLOW * all_moving)
                f[k] += missing * moving / (moving * moving + slow * slow) * diagonal[k] * x[k]
            f[k] += tau[k]
        transported(model, x, p, h, f, dv)
        for k in range(nv):
            R[k] = p1[k] - dv[k]
        if not accelerations(still, q1, rest, R, none, dynamics, w):  # M for the derivative of R
            return SINGULAR, potential
        for k in range(nv):
            w[k] = -w[k]
        broyden(i, w, S)
        for k in range(nv):
            v1[k] += w[k]
        change = norm(w)
        if settled(i, change, last, norm(v1)):
            for k in range(nv):
                p[k] = dv[k]
            for k in range(n_q(model)):
                q[k] = q1[k]
            accelerations(still, q, rest, p, none, dynamics, v)  # v1 but for what the solver left, so that p = M v
            return DONE, reached
        last = change
    return NOT_CONVERGED, potential


@kernel("Tuple((i8, i8))(f8[::1], i8, f8, f8[:,::1], i8, i8, f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1])")
def march_energy_momentum(model, skip, h, taus, first, last, q, v, every, q_out, v_out):
    """As `rollout.march`; skip: the number of velocity coordinates of a free base."""
    nq, nv = n_q(model), n_v(model)
    still, none, rest = weightless(model), np.empty(0), np.zeros(nv)
    x, w, f, p = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    p1, v1, v_old = np.empty(nv), np.empty(nv), v.copy()
    R, dv, diagonal, rate, tau, q1 = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nq)
    dynamics, sweep, S = dynamics_memory(model), sweep_memory(model), np.empty(ITERATIONS * (nv + 1))
    potential = momentum_sweep(model, q, v, sweep, p, R, dv)
    for k in range(first, last):
        for j in range(nv):
            tau[j] = taus[k if taus.shape[0] > 1 else 0, j]
            v1[j], v_old[j] = 2.0 * v[j] - v_old[j], v[j]
        result, potential = energy_momentum_kernel(
            model, still, h, tau, skip, q, p, v, v1, potential,
            x, q1, w, p1, f, R, dv, S, rest, none, dynamics, sweep, diagonal, rate,
        )  # fmt: skip
        polish(model, q)
        if result == DONE and not (finite(q) and finite(v)):
            result = NOT_FINITE
        if result != DONE:
            return result, k
        if (k + 1) % every == 0:
            store(q, v, (k + 1) // every, q_out, v_out)
    return DONE, last
