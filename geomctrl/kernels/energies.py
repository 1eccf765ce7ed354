"""Energies and momentum of a tree, summed in inertial axes about the first body's origin."""

from .algorithms import algorithm, per_body
from .passes import Moving, inertial_axes, joint_twist_at, outward, place
from .records import put, reader
from .screws import (
    Inertia,
    apply_inertia,
    inertia_add,
    inertia_to,
    pair,
    twist_add,
    wrench_add,
    zero_twist,
    zero_wrench,
)
from .tree import armature_of, dofs_of, gravity_of, inertia_of, n_bodies, root_origin
from .vectors import add3, cross, dot, mul3

get_moving = reader(Moving)


@outward(Moving)
def move(model, i, parent, q, v):
    T = place(model, i, parent.T, q)
    return Moving(T, twist_add(parent.V, joint_twist_at(model, i, T, v)))


@algorithm("q, v -> state[8]", (per_body(Moving),))
def mechanical_state(model, q, v, bodies, out):
    """Kinetic energy, potential energy, spatial momentum about the world's origin in inertial axes (6)."""
    move(model, Moving(inertial_axes(model, q), zero_twist()), bodies, q, v)
    kinetic, total, P = 0.0, Inertia(0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)), zero_wrench()
    for i in range(n_bodies(model)):
        T, V = get_moving(bodies, i)
        J = inertia_to(T, inertia_of(model, i))
        h = apply_inertia(J, V)
        kinetic += 0.5 * pair(V, h)
        first, end = dofs_of(model, i)
        for k in range(first, end):
            kinetic += 0.5 * armature_of(model, i) * v[k] * v[k]
        P, total = wrench_add(P, h), inertia_add(total, J)
    origin = root_origin(model, q)
    out[0] = kinetic
    out[1] = -dot(gravity_of(model), add3(total.h, mul3(total.m, origin)))
    put(out, 2, add3(P.m, cross(origin, P.f)))
    put(out, 5, P.f)
