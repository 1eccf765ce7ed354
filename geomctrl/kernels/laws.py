"""Slotine and Li's adaptive law (1987) and the energy of its Lyapunov function, of one state, in O(n)."""

from __future__ import annotations

import numpy as np

from .energies import mechanical_state_one
from .jit import kernel
from .regressor import products_one
from .tracking import sliding_one


@kernel("UniTuple(f8, 2)(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1])")
def sliding_energy_one(model, true, q, v, q_d, v_d, a_d, Lambda, K):
    """(1/2 s . M s with the mass matrix of `true`, s . K s)."""
    n = v.shape[0]
    errors, state, loss = np.empty((4, n)), np.empty(8), 0.0
    sliding_one(model, q, v, q_d, v_d, a_d, Lambda, errors)
    s = errors[3]
    mechanical_state_one(true, q, s, state)
    for i in range(n):
        for j in range(n):
            loss += s[i] * K[i, j] * s[j]
    return state[0], loss


@kernel(
    "void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[:,::1], i8, f8[:,::1], f8[::1])"
)
def adaptive_law_one(model, p, q, v, q_d, v_d, a_d, Lambda, K, form, out, g):
    """Into rows e, v_ref, a_ref, s, tau = Y p - K s of `out`, and g = Y^T s."""
    sliding_one(model, q, v, q_d, v_d, a_d, Lambda, out)
    s, tau = out[3], out[4]
    products_one(model, p, q, v, out[2], out[1], s, form, tau, g)
    for i in range(len(s)):
        for j in range(len(s)):
            tau[i] -= K[i, j] * s[j]
