"""Integrators that keep what the motion keeps, for a Robot under torques that are constant within a step.

    method            keeps, of a floating robot without torques                     a step costs, of rollout's MK4
    momentum_form     spatial momentum, to round-off at any step and order           about 2
    variational       spatial momentum to round-off, and the symplectic form: energy
                      stays within a band for ever, without drift; order 2           4 to 6
    energy_momentum   energy and spatial momentum, to round-off; order 2             6 to 13

With gravity, momentum keeps the components gravity leaves: horizontal linear and vertical angular. A robot on a fixed
base has no such momentum; energy is kept all the same. A fixed-step method can not keep all three (Ge and Marsden
1988), so there are two implicit ones. All cost O(n). Written with the momentum p = dT/dv and the force on it, both
sums over subtrees in inertial axes (Mueller 2018 (36), (79)):

    p_k = S_k . Pi_k,     p_k' = (ad_V S_k) . Pi_k + S_k . W_k + tau_k,

Pi_k the subtree's spatial momentum and W_k its weight. Sources: Marsden and West, Discrete mechanics and variational
integrators, Acta Numerica 2001; Lee, Leok and McClamroch 2007 for Lie groups; Lee, Liu, Park and Srinivasa 2016 for
O(n); Simo and Wong 1991 and Gonzalez 1996 for the discrete gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .configuration import advance
from .errors import ArgumentError, IntegrationError
from .jit import kernel, primitive
from .packed import (
    GRAVITY,
    KIND,
    POSE,
    S_PINV,
    WIDTH,
    dofs_of,
    finite,
    gravity_of,
    inertia_of,
    joint_frame,
    joint_twist,
    n_bodies,
    n_q,
    n_v,
    parent_of,
    root_origin,
    screw_of,
)
from .recursions import BODY, DOF, DS, S_, SUM, forward_dynamics, place_moving
from .robot import Robot
from .rollout import (
    DONE,
    LARGEST_ANGLE,
    NOT_CONVERGED,
    NOT_FINITE,
    REASONS,
    SINGULAR,
    TURNED,
    Trajectory,
    drive,
    fixed_step,
    plan_of,
    polish,
    rk_step,
    start_of,
    step_arguments,
    store,
)
from .screw import (
    Ad_dual,
    Ad_inv_dual,
    Twist,
    Wrench,
    accumulate,
    ad_dual,
    add3,
    cross,
    dexp_inv_se3,
    dexp_se3,
    dot,
    exp_se3,
    get_inertia,
    get_twist,
    get_wrench,
    inertia_to,
    momentum,
    mul3,
    pair,
    put6,
    put_inertia,
    twist_mul,
    vec,
    wrench_add,
    wrench_mul,
    wrench_sub,
    zero_wrench,
)
from .tableaus import Tableau

__all__ = [
    "energy_momentum",
    "energy_momentum_step",
    "momentum_form",
    "momentum_form_step",
    "variational",
    "variational_step",
]

ITERATIONS = 40  # of Broyden's method; some 6 to 10 are usual
PATIENCE = 12  # iterations after which 1e-8 will do, where joints all but at rest magnify the energy's round-off
SLOW = 1e-8  # share of the joints in M x . x towards which their motion becomes too slow to correct the energy by
MOMENTUM = BODY - 6  # where a subtree's momentum is in a body's record, behind its composite inertia


# --- momentum and the force on it --------------------------------------------------------------------------------


@primitive
def momentum_sweep(model, q, v, body, dof, p, rate, diagonal):
    """p = M v, p' without torques and the diagonal of M, (nv,) each; returns the potential energy."""
    n = n_bodies(model)
    origin, gravity = root_origin(model, q), gravity_of(model)
    potential = 0.0
    for i in range(n):
        row = i * BODY
        T, V = place_moving(model, i, q, v, origin, body, dof)
        J = inertia_to(T, inertia_of(model, i * WIDTH))
        potential -= dot(gravity, add3(J.h, mul3(J.m, origin)))
        put_inertia(body, row + SUM, J)
        put6(body, row + MOMENTUM, momentum(J, V))
    for i in range(n - 1, -1, -1):
        link, row = i * WIDTH, i * BODY
        J, Pi = get_inertia(body, row + SUM), get_wrench(body, row + MOMENTUM)
        weight = Wrench(cross(J.h, gravity), mul3(J.m, gravity))
        first, end = dofs_of(model, link)
        for k in range(first, end):
            S, dS = get_twist(dof, k * DOF + S_), get_twist(dof, k * DOF + DS)
            p[k] = pair(S, Pi)
            rate[k] = pair(dS, Pi) + pair(S, weight)
            diagonal[k] = pair(S, momentum(J, S))
        up = parent_of(model, link)
        if up >= 0:
            accumulate(body, up * BODY + SUM, body, row + SUM, 10)
            accumulate(body, up * BODY + MOMENTUM, body, row + MOMENTUM, 6)
    return potential


@primitive
def weightless(model):
    """The model without gravity: its forward dynamics at rest are p -> M^-1 p."""
    out = model.copy()
    for k in range(3):
        out[model.shape[0] - WIDTH + GRAVITY + k] = 0.0
    return out


# --- the duals of the exponential's maps, on wrenches: se(3)* is se(3) with force and moment exchanged -----------


@primitive
def dexp_dual(X, F):
    """dexp_X^T F."""
    Y = dexp_se3(twist_mul(-1.0, X), Twist(F.f, F.m))
    return Wrench(Y.v, Y.w)


@primitive
def dexp_inv_dual(X, F):
    """dexp_X^-T F."""
    Y = dexp_inv_se3(twist_mul(-1.0, X), Twist(F.f, F.m))
    return Wrench(Y.v, Y.w)


@primitive
def lifted(model, link, p):
    """The wrench that pairs with S v as the joint's coordinates p pair with v."""
    first, end = dofs_of(model, link)
    F = zero_wrench()
    for k in range(first, end):
        row = link + S_PINV + 6 * (k - first)
        F = wrench_add(F, wrench_mul(p[k], Wrench(vec(model, row), vec(model, row + 3))))
    return F


@primitive
def lower(model, link, F, p):
    """p = S^T F."""
    first, end = dofs_of(model, link)
    for k in range(first, end):
        p[k] = pair(screw_of(model, link, k - first), F)


@primitive
def lie_force(model, w, p, rate, tau, f):
    """f = p' + tau - ad_w^T p: the part of p' that is not the frame's turning (0 for a free base without torque)."""
    for i in range(n_bodies(model)):
        link = i * WIDTH
        first, end = dofs_of(model, link)
        for k in range(first, end):
            f[k] = rate[k] + tau[k]
        if int(model[link + KIND]) == POSE:
            F = wrench_add(lifted(model, link, f), ad_dual(joint_twist(model, link, w), lifted(model, link, p)))
            lower(model, link, F, f)


@primitive
def carried(model, x, p, h, f, out):
    """out = Ad_{exp x}^T p + h Ad_{exp x/2}^T f: the momentum after the step; a free base keeps its spatial one."""
    for i in range(n_bodies(model)):
        link = i * WIDTH
        first, end = dofs_of(model, link)
        if int(model[link + KIND]) == POSE:
            X = joint_twist(model, link, x)
            before = Ad_inv_dual(exp_se3(X), lifted(model, link, p))
            impulse = Ad_inv_dual(exp_se3(twist_mul(0.5, X)), wrench_mul(h, lifted(model, link, f)))
            lower(model, link, wrench_add(before, impulse), out)
        else:
            for k in range(first, end):
                out[k] = p[k] + h * f[k]


@primitive
def within_reach(model, x):
    """No joint turns by 2 pi in the step."""
    for i in range(n_bodies(model)):
        link = i * WIDTH
        if int(model[link + KIND]) == POSE:
            w = joint_twist(model, link, x).w
            if not dot(w, w) < LARGEST_ANGLE * LARGEST_ANGLE:
                return False
    return True


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
        link = i * WIDTH
        first, end = dofs_of(model, link)
        if int(model[link + KIND]) == POSE:
            X = joint_twist(model, link, x)
            impulse = wrench_mul(0.5 * h, dexp_dual(twist_mul(0.5, X), lifted(model, link, f)))
            F = dexp_inv_dual(X, wrench_sub(lifted(model, link, p_mid), impulse))
            lower(model, link, F, R)
            for k in range(first, end):
                R[k] -= p[k]
        else:
            for k in range(first, end):
                R[k] = p_mid[k] - 0.5 * h * f[k] - p[k]


@primitive
def variational_kernel(model, still, h, tau, q, p, x, qm, w, half, p_mid, f, R, dx, S, rest, none, body, dof):
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
        momentum_sweep(model, qm, w, body, dof, p_mid, dx, R)
        lie_force(model, w, p_mid, dx, tau, f)
        legendre_residual(model, x, p_mid, h, f, p, R)
        if not forward_dynamics(still, qm, rest, R, none, body, dof, dx):  # M / h for the derivative of R
            return SINGULAR
        for k in range(nv):
            dx[k] *= -h
        broyden(i, dx, S)
        for k in range(nv):
            x[k] += dx[k]
        change = norm(dx)
        if settled(i, change, last, norm(x)):
            carried(model, x, p, h, f, R)
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
    body, dof, S = np.empty(n_bodies(model) * BODY), np.empty(nv * DOF), np.empty(ITERATIONS * (nv + 1))
    momentum_sweep(model, q, v, body, dof, p, R, dx)
    for j in range(nv):
        x[j] = x_old[j] = h * v[j]
    for k in range(first, last):
        for j in range(nv):
            tau[j] = taus[k if taus.shape[0] > 1 else 0, j]
            x[j], x_old[j] = 2.0 * x[j] - x_old[j], x[j]
        result = variational_kernel(
            model, still, h, tau, q, p, x, qm, w, half, p_mid, f, R, dx, S, rest, none, body, dof
        )
        polish(model, q)
        if result == DONE and not (finite(q) and finite(p)):
            result = NOT_FINITE
        if result != DONE:
            forward_dynamics(still, q, rest, p, none, body, dof, v)
            return result, k
        if (k + 1) % every == 0 or k + 1 == last:
            forward_dynamics(still, q, rest, p, none, body, dof, v)
            if (k + 1) % every == 0:
                store(q, v, (k + 1) // every, q_out, v_out)
    return DONE, last


# --- energy and momentum: x = h (v0 + v1) / 2 and a discrete gradient of the energy ------------------------------


@primitive
def energy_momentum_kernel(
    model, still, h, tau, skip, q, p, v, v1, potential, x, q1, w, p1, f, R, dv, S, rest, none, body, dof, diagonal, rate
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
        momentum_sweep(model, q1, w, body, dof, p1, rate, diagonal)
        lie_force(model, w, p1, rate, rest, f)
        for k in range(nv):
            x[k] = h * w[k]
        if not within_reach(model, x):
            return (TURNED if finite(x) else NOT_CONVERGED), potential
        advance(model, q, x, q1)
        reached = momentum_sweep(model, q1, v1, body, dof, p1, rate, R)
        missing, moving, all_moving = potential - reached, 0.0, 0.0
        for k in range(nv):
            missing += 0.5 * (v[k] * p1[k] - v1[k] * p[k]) - x[k] * f[k]
            all_moving += diagonal[k] * x[k] * x[k]
            if k >= skip:
                moving += diagonal[k] * x[k] * x[k]
        for k in range(nv):
            if k >= skip and all_moving > 0.0:  # missing / moving, but for joints that hardly move
                slow = SLOW * all_moving
                f[k] += missing * moving / (moving * moving + slow * slow) * diagonal[k] * x[k]
            f[k] += tau[k]
        carried(model, x, p, h, f, dv)
        for k in range(nv):
            R[k] = p1[k] - dv[k]
        if not forward_dynamics(still, q1, rest, R, none, body, dof, w):  # M for the derivative of R
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
            forward_dynamics(still, q, rest, p, none, body, dof, v)  # v1 but for what the solver left, so that p = M v
            return DONE, reached
        last = change
    return NOT_CONVERGED, potential


@kernel("Tuple((i8, i8))(f8[::1], f8, f8[:,::1], i8, i8, i8, f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1])")
def march_energy_momentum(model, h, taus, skip, first, last, q, v, every, q_out, v_out):
    """As `rollout.march`; skip: the number of velocity coordinates of a free base."""
    nq, nv = n_q(model), n_v(model)
    still, none, rest = weightless(model), np.empty(0), np.zeros(nv)
    x, w, f, p, p1, v1, v_old = (
        np.empty(nv),
        np.empty(nv),
        np.empty(nv),
        np.empty(nv),
        np.empty(nv),
        np.empty(nv),
        v.copy(),
    )
    R, dv, diagonal, rate, tau, q1 = np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nq)
    body, dof, S = np.empty(n_bodies(model) * BODY), np.empty(nv * DOF), np.empty(ITERATIONS * (nv + 1))
    potential = momentum_sweep(model, q, v, body, dof, p, R, dv)
    for k in range(first, last):
        for j in range(nv):
            tau[j] = taus[k if taus.shape[0] > 1 else 0, j]
            v1[j], v_old[j] = 2.0 * v[j] - v_old[j], v[j]
        result, potential = energy_momentum_kernel(
            model, still, h, tau, skip, q, p, v, v1, potential,
            x, q1, w, p1, f, R, dv, S, rest, none, body, dof, diagonal, rate,
        )  # fmt: skip
        polish(model, q)
        if result == DONE and not (finite(q) and finite(v)):
            result = NOT_FINITE
        if result != DONE:
            return result, k
        if (k + 1) % every == 0:
            store(q, v, (k + 1) // every, q_out, v_out)
    return DONE, last


# --- momentum form: Mueller 2018 (36) for the whole, (79) for the joints -----------------------------------------


@primitive
def hamiltonian(model, q, y, tau, context, body, dof, rate):
    """y' and, in the context, v = M^-1 p, for y = (spatial momentum Pi, joints' momenta p): (36) and (79)."""
    v, p, mu, diagonal, rest, none, still = context
    base = joint_frame(model, 0, q)
    for k in range(6, n_v(model)):
        p[k] = y[k]
    put6(p, 0, Ad_inv_dual(base, get_wrench(y, 0)))
    if not forward_dynamics(still, q, rest, p, none, body, dof, v):
        return False
    momentum_sweep(model, q, v, body, dof, mu, rate, diagonal)
    for k in range(6, n_v(model)):
        rate[k] += tau[k]
    gravity, J = gravity_of(model), get_inertia(body, SUM)
    f = mul3(J.m, gravity)
    weight = Wrench(add3(cross(J.h, gravity), cross(root_origin(model, q), f)), f)
    put6(rate, 0, wrench_add(weight, Ad_dual(base, get_wrench(tau, 0))))
    return True


@kernel("Tuple((i8, i8))(f8[::1], f8[::1], f8[:,::1], i8, i8, f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1])")
def march_momentum_form(model, plan, taus, first, last, q, v, every, q_out, v_out):
    """As `rollout.march`, for a robot whose first joint is the free one of its base."""
    s, nq, nv = int(plan[0]), n_q(model), n_v(model)
    Q, Kq, Ky = np.empty(s * nq), np.empty(s * nv), np.empty(s * nv)
    u, qi, yi, vi, ai, tau = np.empty(nv), np.empty(nq), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    p, mu, diagonal, rest, none, still = (
        np.empty(nv),
        np.empty(nv),
        np.empty(nv),
        np.zeros(nv),
        np.empty(0),
        weightless(model),
    )
    body, dof, y = np.empty(n_bodies(model) * BODY), np.empty(nv * DOF), np.empty(nv)
    context = (vi, p, mu, diagonal, rest, none, still)
    momentum_sweep(model, q, v, body, dof, y, ai, diagonal)
    put6(y, 0, Ad_dual(joint_frame(model, 0, q), get_wrench(y, 0)))
    for k in range(first, last):
        for j in range(nv):
            tau[j] = taus[k if taus.shape[0] > 1 else 0, j]
        result = rk_step(hamiltonian, model, plan, tau, q, y, Q, Kq, Ky, u, qi, yi, vi, ai, context, body, dof)
        polish(model, q)
        if result == DONE and not (finite(q) and finite(y)):
            result = NOT_FINITE
        if result != DONE or (k + 1) % every == 0 or k + 1 == last:
            hamiltonian(model, q, y, tau, context, body, dof, ai)
            for j in range(nv):
                v[j] = vi[j]
            if result != DONE:
                return result, k
            if (k + 1) % every == 0:
                store(q, v, (k + 1) // every, q_out, v_out)
    return DONE, last


# --- public ----------------------------------------------------------------------------------------------------


def momentum_form(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    tau: ArrayLike | None,
    t_end: float,
    dt: float,
    method: str | Tableau = "MK4",
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """`rollout` with momenta for velocities: spatial momentum is a state, and without a wrench it does not change.

    Any fixed-step method of any order; arguments and errors as for `rollout`. The momentum kept is the whole robot's
    about the inertial origin (Mueller 2018 (36)); a torque on the free base's coordinates or gravity changes it as its
    wrench does. Energy drifts as the method's order lets it. Raises ArgumentError for a robot that has no free base.
    """
    tableau = fixed_step(method)
    _check_free_base(robot)
    q, v, torque, steps = start_of(robot, q0, v0, tau, t_end, dt)

    def chunk(h, first, last, q_out, v_out):
        return march_momentum_form(
            robot._model, plan_of(tableau, h, robot), torque, first, last, q, v, every, q_out, v_out
        )

    return drive(chunk, f"momentum form, {tableau.name}", q, v, steps, t_end, dt, every, progress)


def variational(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    tau: ArrayLike | None,
    t_end: float,
    dt: float,
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """Discrete mechanics on the group, second order: the midpoint Lagrangian h L(q0 exp(x/2), x/h).

    Symplectic and symmetric in time: energy oscillates but does not drift, for ever, and momentum maps are kept to
    round-off (a free base's spatial momentum, without gravity). v is M^-1 p, p the discrete momentum. Torques do the
    midpoint's virtual work. Arguments and errors as for `rollout`; IntegrationError too where the implicit equations
    have no solution near, dt being too long for the motion.
    """
    q, v, torque, steps = start_of(robot, q0, v0, tau, t_end, dt)

    def chunk(h, first, last, q_out, v_out):
        return march_variational(robot._model, h, torque, first, last, q, v, every, q_out, v_out)

    return drive(chunk, "variational", q, v, steps, t_end, dt, every, progress)


def energy_momentum(
    robot: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    tau: ArrayLike | None,
    t_end: float,
    dt: float,
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """Implicit, second order, symmetric in time: energy changes by the torques' work h v . tau, to round-off.

    A free base's momentum is kept too, as far as gravity and torques on it let it. (One free body alone under gravity
    has no joints to take the correction, and keeps its energy at the price of horizontal momentum, to second order.)
    Arguments and errors as for `variational`.
    """
    q, v, torque, steps = start_of(robot, q0, v0, tau, t_end, dt)
    skip = _base_coordinates(robot)

    def chunk(h, first, last, q_out, v_out):
        return march_energy_momentum(robot._model, h, torque, skip, first, last, q, v, every, q_out, v_out)

    return drive(chunk, "energy-momentum", q, v, steps, t_end, dt, every, progress)


def momentum_form_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None, dt: float, method: str | Tableau = "MK4"
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after one step of `momentum_form`, dt of either sign. Raises as it does."""
    tableau = fixed_step(method)
    _check_free_base(robot)
    q, v, torque, h = step_arguments(robot, q, v, tau, dt)
    nowhere = np.empty((1, robot.nq)), np.empty((1, robot.nv))
    result, _ = march_momentum_form(robot._model, plan_of(tableau, h, robot), torque, 0, 1, q, v, 2, *nowhere)
    return _made(result, f"momentum form, {tableau.name}", h, q, v)


def variational_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None, dt: float
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after one step of `variational`, dt of either sign. Raises as it does."""
    q, v, torque, h = step_arguments(robot, q, v, tau, dt)
    nowhere = np.empty((1, robot.nq)), np.empty((1, robot.nv))
    result, _ = march_variational(robot._model, h, torque, 0, 1, q, v, 2, *nowhere)
    return _made(result, "variational", h, q, v)


def energy_momentum_step(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None, dt: float
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after one step of `energy_momentum`, dt of either sign. Raises as it does."""
    q, v, torque, h = step_arguments(robot, q, v, tau, dt)
    nowhere, skip = (np.empty((1, robot.nq)), np.empty((1, robot.nv))), _base_coordinates(robot)
    result, _ = march_energy_momentum(robot._model, h, torque, skip, 0, 1, q, v, 2, *nowhere)
    return _made(result, "energy-momentum", h, q, v)


def _made(result, name, h, q, v):
    if result != DONE:
        raise IntegrationError(f"{name}: the step of dt = {h:g} can not be made: {REASONS[result]}")
    return q, v


def _base_coordinates(robot: Robot) -> int:
    """6 for a free base that carries joints, else 0."""
    return 6 if robot.joints[0].kind == "free" and robot.parents.count(-1) == 1 and robot.nv > 6 else 0


def _check_free_base(robot: Robot) -> None:
    if robot.joints[0].kind != "free" or robot.parents.count(-1) != 1:
        kind = robot.joints[0].kind
        raise ArgumentError(
            f"robot: momentum_form needs one free base that carries everything; {robot.name!r} begins with a {kind}"
            f" joint and has {robot.parents.count(-1)} bodies on the world"
        )
