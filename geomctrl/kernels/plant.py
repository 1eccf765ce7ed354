"""The plant as an ordinary differential equation: friction, forward dynamics and power in one call."""

from __future__ import annotations

import math

import numpy as np

from .articulated_bodies import accelerations, dynamics_memory
from .jit import kernel
from .tree import good_configuration, good_velocity, n_v


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8, f8[::1])")
def rate_one(model, q, v, tau, friction, smoothing, out):
    """v, vdot under tau less friction, and the power of both. friction: rows of viscous and Coulomb coefficients."""
    if not (good_configuration(model, q) and good_velocity(model, v) and good_velocity(model, tau)):
        raise ValueError
    n = n_v(model)
    net, total = np.empty(n), 0.0
    for k in range(n):
        net[k] = tau[k] - friction[0, k] * v[k]
        if friction[1, k] != 0.0:
            net[k] -= friction[1, k] * math.tanh(v[k] / smoothing)
        total += v[k] * net[k]
        out[k] = v[k]
    out[out.shape[0] - 1] = total
    if not accelerations(model, q, v, net, np.empty(0), dynamics_memory(model), out[n : 2 * n]):
        raise ValueError
