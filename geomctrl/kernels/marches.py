"""Integration of a robot's state (q, v) over many steps in one call, by Runge-Kutta and other methods.

A method consists of three primitives. `begin` allocates its work memory, `step` makes a step in place and returns an
exit code, and `velocity` computes v if the method has another state than (q, v). `march_kernel` generates the loop,
with one signature for all methods.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .articulated_bodies import accelerations, dynamics_memory
from .configuration import polish
from .exponentials import dexp_inv_se3, exp_se3, within_a_turn
from .jit import kernel
from .momenta import get_subtree, momentum_sweep, sweep_memory, weightless
from .primitives import primitive
from .records import finite, pose_at, put6, put_pose, twist_at, wrench_at
from .screws import (
    Ad_dual,
    Ad_inv_dual,
    Wrench,
    add3,
    compose,
    cross,
    mul3,
    pair,
    twist_mul,
    wrench_add,
)
from .tree import (
    coordinate_of,
    dual_screw_of,
    first_dof_of,
    gravity_of,
    holds_pose,
    joint_frame,
    joint_twist,
    n_bodies,
    n_q,
    n_v,
    ndof_of,
    root_origin,
)

DONE, NOT_FINITE, TURNED, SINGULAR, NOT_CONVERGED = range(5)  # exit codes of a step


MARCH = "Tuple((i8, i8))(f8[::1], f8[::1], f8[:,::1], i8, i8, f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1])"


@primitive
def hold(taus, k, first, tau):
    """Copy the torques of step k to `tau`: row k of taus, or its only row."""
    if k == first or taus.shape[0] > 1:
        for j in range(tau.shape[0]):
            tau[j] = taus[k if taus.shape[0] > 1 else 0, j]


@primitive
def store(q, v, row, q_out, v_out):
    for j in range(q.shape[0]):
        q_out[row, j] = q[j]
    for j in range(v.shape[0]):
        v_out[row, j] = v[j]


@primitive
def velocities_are_the_state(model, q, v, work):
    """The `velocity` of a method whose steps write v themselves."""


def march_kernel(module: str, name: str, begin: Callable, step: Callable, velocity: Callable) -> Any:
    """Generate the loop of a method; `module` must store it under `name`.

    march(model, numbers, taus, first, last, q, v, every, q_out, v_out) makes steps `first` to `last` (exclusive) of
    (q, v), in place, and returns (exit code, number of the failed step, or `last`). numbers: parameters of the method.
    taus: one row for all steps, or one per step. Row k / every of q_out and v_out receives the state after step k.

    begin(model, numbers, q, v) returns `work`; step(model, numbers, tau, q, v, k, work) makes step k and checks that
    its velocities or momenta are finite; velocity(model, q, v, work) writes v.
    """

    def march(model, numbers, taus, first, last, q, v, every, q_out, v_out):
        tau, work = np.empty(n_v(model)), begin(model, numbers, q, v)
        for k in range(first, last):
            hold(taus, k, first, tau)
            result = step(model, numbers, tau, q, v, k, work)
            stored = (k + 1) % every == 0
            if result != DONE or stored or k + 1 == last:
                velocity(model, q, v, work)
                if result == DONE and not finite(q):
                    result = NOT_FINITE  # `step` has checked the velocities only
            if result != DONE:
                return result, k
            if stored:
                store(q, v, (k + 1) // every, q_out, v_out)
        return DONE, last

    march.__module__, march.__name__, march.__qualname__ = module, name, name
    return kernel(MARCH)(march)


# --- the length of the next step -------------------------------------------------------------------------------------
#
# Constants of the step-size control, shared by steps in Python and in compiled code.
#
# h becomes h min(max(SAFETY e^(3/4 PI_GAIN - 1/order) e_before^PI_GAIN, SHRINK), GROW). Here e is the error of the step
# divided by the tolerance, and e_before that of the previous step. After e > 1 the new h is at most h SAFETY, and the
# next step does not grow.


SAFETY, SHRINK, GROW, PI_GAIN = 0.9, 0.2, 5.0, 0.04
# lower bounds of e and e_before; MIN_LAST_ERROR is also e_before of a first step
MIN_ERROR, MIN_LAST_ERROR = 1e-10, 1e-4
END_STRETCH = 1.01  # a step that would reach the end if it were longer by this factor ends there
MIN_STEP_ULPS = 10.0  # shortest step, in units of the rounding of t


# --- Runge-Kutta methods ---------------------------------------------------------------------------------------------
#
# Explicit Runge-Kutta steps on a Lie group, for states (q, y) of a robot: Park and Chung 2005 section IV-B.
#
# Crouch-Grossman (46), commutator-free (39) and Munthe-Kaas (47) methods: any `Tableau`, as one array of numbers.
# Velocities are left-trivialised, so increments multiply from the right and dexp^-1 is taken at -Theta (41).
# `integrators.explicit` has the same step for Python functions on any group.


POLISH_EVERY = 64  # steps between projections of the rotations onto SO(3), against a drift of 1e-18 a step

# --- a method as one array of numbers ----------------------------------------------------------------------------
#
# [s, rows, Munthe-Kaas?, is the basis of every free joint the identity?] [stage 0] ... [stage s], the last being the
# update. A stage, multiplied by h, is
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
    """S x of a joint stored as a pose; for a free joint the basis is the identity, which saves 36 products."""
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
    """Work memory of `rk_step`.

    The stages' configurations (s, nq) and slopes (s, nv), flat; exponent, configuration, y, velocity and slope of y of
    the current stage; memory of the field; an empty array.
    """

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
    """One step of (q, y), in place.

    field(model, q, y, tau, context, memory, a) writes ydot to a. The velocity of q is y, or work.vi if the field's
    context contains it. `accelerations` is such a field (44), with the external wrenches as context.
    """
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
def begin_runge_kutta(model, plan, q, v):
    return stage_work(model, plan, dynamics_memory(model))


@primitive
def step_runge_kutta(model, plan, tau, q, v, k, work):
    result = rk_step(accelerations, model, plan, tau, q, v, work, work.none)
    if (k + 1) % POLISH_EVERY == 0:
        polish(model, q)
    return result if result != DONE or finite(v) else NOT_FINITE


march = march_kernel(__name__, "march", begin_runge_kutta, step_runge_kutta, velocities_are_the_state)


# --- the momentum form -----------------------------------------------------------------------------------------------
#
# The momentum form of the equations of motion: Mueller 2018 (36) for the whole robot, (79) for its joints.
#
# The state is q and y = (spatial momentum Pi, joints' momenta), for robots whose first joint is the base's free one.


class Context(NamedTuple):
    """Results of `hamiltonian`, beginning with v = M^-1 p, and the model without gravity."""

    v: Any
    p: Any
    mu: Any
    diagonal: Any
    rest: Any
    none: Any
    still: Any


class MomentumWork(NamedTuple):
    stages: StageWork
    context: Context
    y: Any
    no_torque: Any


@primitive
def context_of(model, v):
    nv = n_v(model)
    return Context(v, np.empty(nv), np.empty(nv), np.empty(nv), np.zeros(nv), np.empty(0), weightless(model))


@primitive
def hamiltonian(model, q, y, tau, context, memory, rate):
    """y' and, in the context, v = M^-1 p, for y = (spatial momentum Pi, joints' momenta p): (36) and (79)."""
    v, p, mu, diagonal, rest, none, still = context
    dynamics, sweep = memory
    base = joint_frame(model, 0, q)
    for k in range(6, n_v(model)):
        p[k] = y[k]
    put6(p, 0, Ad_inv_dual(base, wrench_at(y, 0)))
    if not accelerations(still, q, rest, p, none, dynamics, v):
        return False
    momentum_sweep(model, q, v, sweep, mu, rate, diagonal)
    for k in range(6, n_v(model)):
        rate[k] += tau[k]
    gravity, J = gravity_of(model), get_subtree(sweep[2], 0).J
    f = mul3(J.m, gravity)
    weight = Wrench(add3(cross(J.h, gravity), cross(root_origin(model, q), f)), f)
    put6(rate, 0, wrench_add(weight, Ad_dual(base, wrench_at(tau, 0))))
    return True


@kernel("b1(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def momentum_rates(model, q, y, tau, v, rate):
    """v (nv,) and y' (nv,) at one state of the momentum form; False where the mass matrix is singular."""
    return hamiltonian(model, q, y, tau, context_of(model, v), memory_of(model), rate)


@primitive
def memory_of(model):
    return dynamics_memory(model), sweep_memory(model)


@primitive
def begin_momentum_form(model, plan, q, v):
    stages, y = stage_work(model, plan, memory_of(model)), np.empty(n_v(model))
    context = context_of(model, stages.vi)
    momentum_sweep(model, q, v, stages.memory[1], y, stages.ai, context.diagonal)
    put6(y, 0, Ad_dual(joint_frame(model, 0, q), wrench_at(y, 0)))
    return MomentumWork(stages, context, y, np.zeros(n_v(model)))


@primitive
def step_momentum_form(model, plan, tau, q, v, k, work):
    result = rk_step(hamiltonian, model, plan, tau, q, work.y, work.stages, work.context)
    polish(model, q)
    return result if result != DONE or finite(work.y) else NOT_FINITE


@primitive
def velocity_of_momentum(model, q, v, work):
    stages = work.stages
    hamiltonian(model, q, work.y, work.no_torque, work.context, stages.memory, stages.ai)
    for j in range(v.shape[0]):
        v[j] = stages.vi[j]


march_momentum_form = march_kernel(
    __name__, "march_momentum_form", begin_momentum_form, step_momentum_form, velocity_of_momentum
)
