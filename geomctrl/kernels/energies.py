"""The recursive algorithms in inertial axes as kernels on a packed robot: M, C, Mdot, articulated bodies, energies.

They are summed in inertial axes about the first body's origin, where a subtree's inertia is a plain sum and screws need
no transport. `*_one` and `*_many` are entries as in `newton_euler`.
"""

import numpy as np

from .jit import kernel, primitive
from .passes import BODY, DOF, place_moving
from .records import put
from .screws import (
    Inertia,
    inertia_to,
    momentum,
    pair,
    wrench_add,
    zero_wrench,
)
from .tree import (
    WIDTH,
    good_configuration,
    good_velocity,
    gravity_of,
    inertia_of,
    n_bodies,
    n_v,
    root_origin,
)
from .vectors import add3, cross, dot, mul3

# --- energies and momentum --------------------------------------------------------------------------------------


@primitive
def mechanical_state(model, q, v, body, dof, out):
    """out = (kinetic energy, potential energy, spatial momentum about the world's origin in inertial axes (6))."""
    origin = root_origin(model, q)
    kinetic = 0.0
    total = Inertia(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    P = zero_wrench()
    for i in range(n_bodies(model)):
        T, V = place_moving(model, i, q, v, origin, body, dof)
        J = inertia_to(T, inertia_of(model, i * WIDTH))
        h = momentum(J, V)
        kinetic += 0.5 * pair(V, h)
        P = wrench_add(P, h)
        total = Inertia(total.m + J.m, add3(total.h, J.h), total.I)
    out[0] = kinetic
    out[1] = -dot(gravity_of(model), add3(total.h, mul3(total.m, origin)))
    put(out, 2, add3(P.m, cross(origin, P.f)))
    put(out, 5, P.f)


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1])")
def mechanical_state_one(model, q, v, out):
    if not (good_configuration(model, q) and good_velocity(model, v)):
        raise ValueError
    mechanical_state(model, q, v, np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF), out)


@kernel("f8[:,::1](f8[::1], f8[:,::1], f8[:,::1])")
def mechanical_state_many(model, q, v):
    out, body, dof = np.empty((q.shape[0], 8)), np.empty(n_bodies(model) * BODY), np.empty(n_v(model) * DOF)
    for b in range(q.shape[0]):
        mechanical_state(model, q[b], v[b], body, dof, out[b])
    return out
