"""The plant as an ordinary differential equation: friction, forward dynamics and power in one call."""

from __future__ import annotations

import math

from .algorithms import algorithm, numbers
from .joint_accelerations import MEMORY, forward_dynamics
from .tree import n_v


@algorithm(
    "q, v, tau; coulomb: i8, friction: f8[:, ::1] -> rate[2 nv + 1]",
    (numbers("nv"), numbers("nv"), *MEMORY),
    may_fail=True,
)
def plant_rate(
    model, q, v, tau, coulomb, friction,
    net, a, moving, eliminated, handles, twists, bodies, axes, loads, memory,
    rate,
):  # fmt: skip
    """v, vdot under tau less friction, and the power of both. False where a joint has no inertia to push against.

    friction: rows of viscous and Coulomb coefficients and of the velocities of smoothing; coulomb: 0 where all of the
    second row are.
    """
    n, power = n_v(model), 0.0
    for k in range(n):
        net[k] = tau[k] - friction[0, k] * v[k]
        if coulomb:
            net[k] -= friction[1, k] * math.tanh(v[k] / friction[2, k])
        power += v[k] * net[k]
        rate[k] = v[k]
    good = forward_dynamics(
        model, q, v, net, v[:0], moving, eliminated, handles, twists, bodies, axes, loads, memory, a
    )
    for k in range(n):
        rate[n + k] = a[k]
    rate[2 * n] = power
    return good
