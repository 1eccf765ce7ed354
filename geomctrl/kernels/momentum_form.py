"""The momentum form of the equations of motion: Mueller 2018 (36) for the whole robot, (79) for its joints.

The state beside q is y = (spatial momentum Pi, joints' momenta), of a robot whose first joint is its base's free one.
"""

from typing import Any, NamedTuple

import numpy as np

from .articulated_bodies import accelerations, dynamics_memory
from .configuration import polish
from .jit import kernel, primitive
from .marches import DONE, NOT_FINITE, march_kernel
from .records import finite, put6, wrench_at
from .runge_kutta import StageWork, rk_step, stage_work
from .screws import Ad_dual, Ad_inv_dual, Wrench, wrench_add
from .spatial_momentum import get_subtree, momentum_sweep, sweep_memory, weightless
from .tree import gravity_of, joint_frame, n_v, root_origin
from .vectors import add3, cross, mul3


class Context(NamedTuple):
    """What `hamiltonian` writes, v = M^-1 p first, and the robot without gravity."""

    v: Any
    p: Any
    mu: Any
    diagonal: Any
    rest: Any
    none: Any
    still: Any


class Work(NamedTuple):
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
def begin(model, plan, q, v):
    stages, y = stage_work(model, plan, memory_of(model)), np.empty(n_v(model))
    context = context_of(model, stages.vi)
    momentum_sweep(model, q, v, stages.memory[1], y, stages.ai, context.diagonal)
    put6(y, 0, Ad_dual(joint_frame(model, 0, q), wrench_at(y, 0)))
    return Work(stages, context, y, np.zeros(n_v(model)))


@primitive
def step(model, plan, tau, q, v, k, work):
    result = rk_step(hamiltonian, model, plan, tau, q, work.y, work.stages, work.context)
    polish(model, q)
    return result if result != DONE or finite(work.y) else NOT_FINITE


@primitive
def velocity(model, q, v, work):
    stages = work.stages
    hamiltonian(model, q, work.y, work.no_torque, work.context, stages.memory, stages.ai)
    for j in range(v.shape[0]):
        v[j] = stages.vi[j]


march_momentum_form = march_kernel(__name__, "march_momentum_form", begin, step, velocity)
