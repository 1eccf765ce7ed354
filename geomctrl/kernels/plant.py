"""The plant as an ordinary differential equation: friction, forward dynamics and power in one call."""

from __future__ import annotations

import math

from .algorithms import algorithm, numbers, per_body, per_coordinate
from .articulated_bodies import Eliminated, Handle, MovingBody, forward_dynamics
from .screws import Twist


@algorithm(
    "q, v, tau, friction[2 nv + 1] -> rate[2 nv + 1]",
    (numbers("nv"), per_body(MovingBody), per_coordinate(Eliminated), per_body(Handle), per_body(Twist)),
    may_fail=True,
)
def plant_rate(model, q, v, tau, friction, net, bodies, axes, handles, twists, rate):
    """v, vdot under tau less friction, and the power of both. friction: viscous and Coulomb coefficients and the speed
    at which 76 % of the Coulomb torque acts."""
    n, power = v.shape[0], 0.0
    for k in range(n):
        net[k] = tau[k] - friction[k] * v[k] - friction[n + k] * math.tanh(v[k] / friction[2 * n])
        power += v[k] * net[k]
        rate[k] = v[k]
    rate[2 * n] = power
    return forward_dynamics(model, q, v, net, model[:0], bodies, axes, handles, twists, rate[n : 2 * n])
