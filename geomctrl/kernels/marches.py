"""Many steps of a robot's state (q, v) in one call: the loop, what it stores, and how a step can go.

A method is three primitives: `begin` allocates what its steps work with, `step` makes one in place and says how it
went, `velocity` writes v where the method has another state beside q. `march_kernel` makes the loop around them, with
one signature for all methods.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .jit import kernel, primitive
from .records import finite
from .tree import n_v
from .vectors import dot

LARGEST_ANGLE = 2.0 * math.pi - 0.1  # rad a joint may turn within a step: dexp^-1 is singular at 2 pi

DONE, NOT_FINITE, TURNED, SINGULAR, NOT_CONVERGED = range(5)  # how a step went


MARCH = "Tuple((i8, i8))(f8[::1], f8[::1], f8[:,::1], i8, i8, f8[::1], f8[::1], i8, f8[:,::1], f8[:,::1])"


@primitive
def within_a_turn(w):
    """False also for nan."""
    return dot(w, w) < LARGEST_ANGLE * LARGEST_ANGLE


@primitive
def hold(taus, k, first, tau):
    """tau of step k: the one row of taus, or its own."""
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
    """The `velocity` of a method whose steps leave v itself."""


def march_kernel(module: str, name: str, begin: Callable, step: Callable, velocity: Callable) -> Any:
    """march(model, numbers, taus, first, last, q, v, every, q_out, v_out) -> (how it went, the step that went wrong, or
    `last`), for `module` to hold under `name`: steps `first` to `last` (exclusive) of (q, v), in place.

    numbers: what the method is told about its steps. taus: one row for all steps, or one a step. After step k, a
    multiple of `every`, row k / every of q_out and v_out gets the state.

    begin(model, numbers, q, v) returns `work`; step(model, numbers, tau, q, v, k, work) makes step k and looks whether
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
                    result = NOT_FINITE  # velocities tell at once, for q looks at them next
            if result != DONE:
                return result, k
            if stored:
                store(q, v, (k + 1) // every, q_out, v_out)
        return DONE, last

    march.__module__, march.__name__, march.__qualname__ = module, name, name
    return kernel(MARCH)(march)
