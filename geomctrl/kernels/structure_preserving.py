"""Integrators that conserve a robot's energy and momenta: the variational and the energy-momentum method.

Both are of second order and symmetric in time. Broyden's method solves the implicit equations of a step, with the mass
matrix as initial derivative, in O(n) per iteration. Torques are constant within a step.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .articulated_bodies import accelerations, dynamics_memory
from .configuration import advance, polish
from .marches import (
    DONE,
    NOT_CONVERGED,
    NOT_FINITE,
    SINGULAR,
    TURNED,
    march_kernel,
    velocities_are_the_state,
)
from .momenta import (
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
from .primitives import primitive
from .records import finite
from .screws import twist_mul, wrench_mul, wrench_sub
from .tree import dofs_of, holds_pose, joint_twist, n_bodies, n_q, n_v

# --- Broyden's method ------------------------------------------------------------------------------------------------
#
# Broyden's method: Kelley, Iterative Methods for Linear and Nonlinear Equations, 1995, section 7.3.


ITERATIONS = 40  # 6 to 10 are usual
# After so many iterations 1e-8 is accepted, because joints nearly at rest magnify the round-off of the energy.
STRICT_ITERATIONS = 12


@primitive
def norm(x):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * x[k]
    return math.sqrt(total)


@primitive
def settled(i, change, last, size):
    """Whether the changes are at round-off: below 4e-16 of the unknown, or small and no longer shrinking."""
    small = 1e-12 if i < STRICT_ITERATIONS else 1e-8
    return change <= 4e-16 * size or (change <= small * size and change >= 0.5 * last)


@primitive
def broyden(i, newton, S):
    """Step i of the method; `newton` is the step for a constant derivative and is overwritten.

    S: squared lengths of the steps so far, then the steps, a row of n numbers each.
    """
    n = newton.shape[0]
    for j in range(i):
        along = 0.0
        for k in range(n):
            along += S[ITERATIONS + j * n + k] * newton[k]
        along /= S[j]
        if j + 1 < i:
            for k in range(n):
                newton[k] += along * S[ITERATIONS + (j + 1) * n + k]
        elif abs(1.0 - along) > 0.1:  # otherwise the step repeats the last one, at round-off
            for k in range(n):
                newton[k] /= 1.0 - along
    S[i] = 0.0
    for k in range(n):
        S[i] += newton[k] * newton[k]
        S[ITERATIONS + i * n + k] = newton[k]


# --- the variational method ------------------------------------------------------------------------------------------
#
# The variational method of `structure_preserving`: L_d(q0, q1) = h L(q0 exp(x/2), x/h) with exp x = q0^-1 q1.
#
# Marsden and West, Acta Numerica 2001, sections 1.1 and 3.2; on Lie groups Lee, Leok and McClamroch 2007. The virtual
# work of a torque is that at the midpoint.


class VariationalWork(NamedTuple):
    """x: the increment, x_old the previous one; p: the momentum, part of the state; the rest is work memory."""

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
    """R = dexp_x^-T (p_mid - h/2 dexp_{x/2}^T f) - p: the difference of -D1 L_d(q0, q1) and the momentum p at q0."""
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
def solve_variational(model, h, tau, q, work):
    """Compute (q, work.p) after h, in place. work.x is the initial guess of the increment, then the increment."""
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
def begin_variational(model, numbers, q, v):
    nv = n_v(model)
    x, x_old, p, w, half = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    p_mid, f, R, dx, qm = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(n_q(model))
    steps, dynamics, sweep = np.empty(ITERATIONS * (nv + 1)), dynamics_memory(model), sweep_memory(model)
    momentum_sweep(model, q, v, sweep, p, R, dx)
    for j in range(nv):
        x[j] = x_old[j] = numbers[0] * v[j]
    return VariationalWork(
        x, x_old, p, w, half, p_mid, f, R, dx, qm, steps, dynamics, sweep, np.zeros(nv), np.empty(0), weightless(model)
    )


@primitive
def step_variational(model, numbers, tau, q, v, k, work):
    x, x_old, p = work.x, work.x_old, work.p
    for j in range(x.shape[0]):
        x[j], x_old[j] = 2.0 * x[j] - x_old[j], x[j]
    result = solve_variational(model, numbers[0], tau, q, work)
    polish(model, q)
    return result if result != DONE or finite(p) else NOT_FINITE


@primitive
def velocity_variational(model, q, v, work):
    """v = M^-1 p."""
    accelerations(work.still, q, work.rest, work.p, work.none, work.dynamics, v)


march_variational = march_kernel(
    __name__, "march_variational", begin_variational, step_variational, velocity_variational
)  # numbers: (h,)


# --- the energy-momentum method --------------------------------------------------------------------------------------
#
# The energy-momentum method of `structure_preserving`: x = h (v0 + v1) / 2 and a discrete gradient of the energy.
#
# Simo and Wong 1991; Gonzalez 1996.


# share of the potential energy below which the kinetic energy, and so `missing`, is round-off
MIN_KINETIC_SHARE = 1e-14
MIN_JOINT_SHARE = 1e-8  # share of the joints in M x . x below which their motion is too slow to correct the energy


class EnergyMomentumWork(NamedTuple):
    """p: the momentum at q; v1: the guess of v after the step; v_old: v before the previous step; potential: the
    potential energy at q (1,); the rest is work memory."""

    p: Any
    v1: Any
    v_old: Any
    potential: Any
    x: Any
    q1: Any
    w: Any
    p1: Any
    f: Any
    R: Any
    dv: Any
    rate: Any
    diagonal: Any
    steps: Any
    dynamics: Any
    sweep: Any
    rest: Any
    none: Any
    still: Any


@primitive
def correct_force(skip, h, tau, before, after, x, diagonal, f):
    """Add the torque to f, and a correction of the energy along the motion of the joints from `skip` on.

    The momentum of a free base is not changed. before, after: (velocity, momentum, potential energy).

    With x = h (v0 + v1) / 2 and p1 = Ad_{exp x}^T p0 + h Ad_{exp x/2}^T (f + tau), the energy changes by the torques'
    work x . tau if and only if x . f = (v0 . p1 - v1 . p0) / 2 - (U1 - U0). The midpoint's f misses that by O(h^3).
    """
    v, p, potential = before
    v1, p1, reached = after
    missing, moving, all_moving = potential - reached, 0.0, 0.0
    slow = h * h * MIN_KINETIC_SHARE * (abs(potential) + abs(reached))
    for k in range(x.shape[0]):
        missing += 0.5 * (v[k] * p1[k] - v1[k] * p[k]) - x[k] * f[k]
        all_moving += diagonal[k] * x[k] * x[k]
        if k >= skip:
            moving += diagonal[k] * x[k] * x[k]
    for k in range(x.shape[0]):
        if k >= skip and all_moving > 0.0:  # missing / moving, but for joints that hardly move
            slow = max(slow, MIN_JOINT_SHARE * all_moving)
            f[k] += missing * moving / (moving * moving + slow * slow) * diagonal[k] * x[k]
        f[k] += tau[k]


@primitive
def solve_energy_momentum(model, skip, h, tau, q, v, work):
    """Compute (q, v, work.p, work.potential) after h, in place. work.v1 is the initial guess of v."""
    p, v1, _, potential, x, q1, w, p1, f, R, dv, rate, diagonal, steps, dynamics, sweep, rest, none, still = work
    nv = n_v(model)
    last = math.inf
    for i in range(ITERATIONS):
        for k in range(nv):
            w[k] = 0.5 * (v[k] + v1[k])
            x[k] = 0.5 * h * w[k]
        advance(model, q, x, q1)
        momentum_sweep(model, q1, w, sweep, p1, rate, diagonal)
        lie_force(model, w, p1, rate, rest, f)  # at the midpoint
        for k in range(nv):
            x[k] = h * w[k]
        if not within_reach(model, x):
            return TURNED if finite(x) else NOT_CONVERGED
        advance(model, q, x, q1)
        reached = momentum_sweep(model, q1, v1, sweep, p1, rate, R)
        correct_force(skip, h, tau, (v, p, potential[0]), (v1, p1, reached), x, diagonal, f)
        momentum_after(model, x, p, h, f, dv)
        for k in range(nv):
            R[k] = p1[k] - dv[k]
        if not accelerations(still, q1, rest, R, none, dynamics, w):  # M for the derivative of R
            return SINGULAR
        for k in range(nv):
            w[k] = -w[k]
        broyden(i, w, steps)
        for k in range(nv):
            v1[k] += w[k]
        change = norm(w)
        if settled(i, change, last, norm(v1)):
            for k in range(nv):
                p[k] = dv[k]
            for k in range(n_q(model)):
                q[k] = q1[k]
            potential[0] = reached
            accelerations(still, q, rest, p, none, dynamics, v)  # v1 up to the residual of the solver, so that p = M v
            return DONE
        last = change
    return NOT_CONVERGED


@primitive
def begin_energy_momentum(model, numbers, q, v):
    nv = n_v(model)
    p, v1, potential, x, q1 = np.empty(nv), np.empty(nv), np.empty(1), np.empty(nv), np.empty(n_q(model))
    w, p1, f, R, dv = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    rate, diagonal, steps = np.empty(nv), np.empty(nv), np.empty(ITERATIONS * (nv + 1))
    dynamics, sweep = dynamics_memory(model), sweep_memory(model)
    potential[0] = momentum_sweep(model, q, v, sweep, p, R, dv)
    return EnergyMomentumWork(
        p, v1, v.copy(), potential, x, q1, w, p1, f, R, dv, rate, diagonal, steps, dynamics, sweep,
        np.zeros(nv), np.empty(0), weightless(model),
    )  # fmt: skip


@primitive
def step_energy_momentum(model, numbers, tau, q, v, k, work):
    v1, v_old = work.v1, work.v_old
    for j in range(v.shape[0]):
        v1[j], v_old[j] = 2.0 * v[j] - v_old[j], v[j]
    result = solve_energy_momentum(model, int(numbers[1]), numbers[0], tau, q, v, work)
    polish(model, q)
    return result if result != DONE or finite(v) else NOT_FINITE


# numbers: (h, velocity coordinates of a free base, which the correction of the energy does not use)
march_energy_momentum = march_kernel(
    __name__, "march_energy_momentum", begin_energy_momentum, step_energy_momentum, velocities_are_the_state
)
