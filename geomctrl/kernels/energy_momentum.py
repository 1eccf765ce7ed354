"""The energy-momentum method of `structure_preserving`: x = h (v0 + v1) / 2 and a discrete gradient of the energy.

Simo and Wong 1991; Gonzalez 1996. Second order and symmetric in time. A step is solved for by Broyden's method with the
mass matrix for derivative: O(n) an iteration. A torque is constant within the step.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .articulated_bodies import forward_dynamics
from .broyden import ITERATIONS, broyden, norm, settled
from .configuration import advance, polish
from .jit import primitive
from .marches import DONE, NOT_CONVERGED, NOT_FINITE, SINGULAR, TURNED, march_kernel, velocities_are_the_state
from .passes import BODY, DOF
from .records import finite
from .spatial_momentum import lie_force, momentum_after, momentum_sweep, weightless, within_reach
from .tree import n_bodies, n_q, n_v

LOST = 1e-14  # share of the potential energy below which a kinetic energy is lost in its round-off, and so is `missing`
SLOW = 1e-8  # share of the joints in M x . x towards which their motion becomes too slow to correct the energy by


class Work(NamedTuple):
    """p: the momentum at q; v1: the guess of v a step later, v_old v a step before; potential: the energy at q, in one
    number; the rest is memory of the iterations."""

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
    body: Any
    dof: Any
    rest: Any
    none: Any
    still: Any


@primitive
def correct_force(skip, h, tau, before, after, x, diagonal, f):
    """f += torque, and what f misses of the change of energy, along the motion of the joints from `skip` on: a free
    base's momentum is not to feel it. before, after: (velocity, momentum, potential energy).

    With x = h (v0 + v1) / 2 and p1 = Ad_{exp x}^T p0 + h Ad_{exp x/2}^T (f + tau), the energy changes by the torques'
    work x . tau if and only if x . f = (v0 . p1 - v1 . p0) / 2 - (U1 - U0). The midpoint's f misses that by O(h^3).
    """
    v, p, potential = before
    v1, p1, reached = after
    missing, moving, all_moving = potential - reached, 0.0, 0.0
    slow = h * h * LOST * (abs(potential) + abs(reached))
    for k in range(x.shape[0]):
        missing += 0.5 * (v[k] * p1[k] - v1[k] * p[k]) - x[k] * f[k]
        all_moving += diagonal[k] * x[k] * x[k]
        if k >= skip:
            moving += diagonal[k] * x[k] * x[k]
    for k in range(x.shape[0]):
        if k >= skip and all_moving > 0.0:  # missing / moving, but for joints that hardly move
            slow = max(slow, SLOW * all_moving)
            f[k] += missing * moving / (moving * moving + slow * slow) * diagonal[k] * x[k]
        f[k] += tau[k]


@primitive
def solve(model, skip, h, tau, q, v, work):
    """(q, v, work.p, work.potential) after h, in place, from the guess work.v1."""
    p, v1, _, potential, x, q1, w, p1, f, R, dv, rate, diagonal, steps, body, dof, rest, none, still = work
    nv = n_v(model)
    last = math.inf
    for i in range(ITERATIONS):
        for k in range(nv):
            w[k] = 0.5 * (v[k] + v1[k])
            x[k] = 0.5 * h * w[k]
        advance(model, q, x, q1)
        momentum_sweep(model, q1, w, body, dof, p1, rate, diagonal)
        lie_force(model, w, p1, rate, rest, f)  # at the midpoint
        for k in range(nv):
            x[k] = h * w[k]
        if not within_reach(model, x):
            return TURNED if finite(x) else NOT_CONVERGED
        advance(model, q, x, q1)
        reached = momentum_sweep(model, q1, v1, body, dof, p1, rate, R)
        correct_force(skip, h, tau, (v, p, potential[0]), (v1, p1, reached), x, diagonal, f)
        momentum_after(model, x, p, h, f, dv)
        for k in range(nv):
            R[k] = p1[k] - dv[k]
        if not forward_dynamics(still, q1, rest, R, none, body, dof, w):  # M for the derivative of R
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
            forward_dynamics(still, q, rest, p, none, body, dof, v)  # v1 but for what the solver left, so that p = M v
            return DONE
        last = change
    return NOT_CONVERGED


@primitive
def begin(model, numbers, q, v):
    nv = n_v(model)
    p, v1, potential, x, q1 = np.empty(nv), np.empty(nv), np.empty(1), np.empty(nv), np.empty(n_q(model))
    w, p1, f, R, dv = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    rate, diagonal, steps = np.empty(nv), np.empty(nv), np.empty(ITERATIONS * (nv + 1))
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(nv * DOF)
    potential[0] = momentum_sweep(model, q, v, body, dof, p, R, dv)
    return Work(
        p, v1, v.copy(), potential, x, q1, w, p1, f, R, dv, rate, diagonal, steps, body, dof,
        np.zeros(nv), np.empty(0), weightless(model),
    )  # fmt: skip


@primitive
def step(model, numbers, tau, q, v, k, work):
    v1, v_old = work.v1, work.v_old
    for j in range(v.shape[0]):
        v1[j], v_old[j] = 2.0 * v[j] - v_old[j], v[j]
    result = solve(model, int(numbers[1]), numbers[0], tau, q, v, work)
    polish(model, q)
    return result if result != DONE or finite(v) else NOT_FINITE


# numbers: (h, velocity coordinates of a free base, which the correction of the energy leaves alone)
march_energy_momentum = march_kernel(__name__, "march_energy_momentum", begin, step, velocities_are_the_state)
