"""Products of the bodies' velocity fields: Christoffel symbols and the terms of the curvature.

`papers.curvature` explains the geometry. Let hat(S_i) be the screws in inertial axes, m the outermost coordinate of an
entry, and P_m the composite pseudo-inertia of its subtree. If i, j, k lie on one path to the root,

    Gamma_ijk = tr(hat(S_i) hat(S_j) P_m hat(S_k)^T),      i no farther from the root than j,

otherwise the entry is zero. hat(S_i) hat(S_j) is an affine field of accelerations.
"""

from typing import NamedTuple

from .algorithms import algorithm, numbers, per_body, per_coordinate
from .composite_bodies import composite_inertias, place_inertias
from .passes import Axis, get_axis, inertial_axes
from .primitives import primitive
from .records import get_inertia, reader, width, writer
from .screws import (
    Inertia,
    Matrix,
    Pose,
    Vector,
    Wrench,
    add3,
    add33,
    cross,
    dot,
    hat_squared,
    mul3,
    outer,
    pair,
    rot,
)
from .tree import dofs_of, n_bodies, n_v


class Affine(NamedTuple):
    """A field x -> P x + p: the first three rows of a 4x4 matrix."""

    P: Matrix
    p: Vector


get_affine, put_affine = reader(Affine), writer(Affine)


@primitive
def acceleration_field(axes, i, j):
    """hat(S_i) hat(S_j), i nearer the root or in the same joint: accelerations of points for unit rates of i and j."""
    X, Y = get_axis(axes, i).S, get_axis(axes, j).S
    return Affine(hat_squared(X.w, Y.w), cross(X.w, Y.v))


@primitive
def moments(J, y):
    """The integrals of y x^T and of y over a body's mass, for the field y(x): y times the body's pseudo-inertia."""
    I, h = J.I, J.h
    half = 0.5 * (I[0] + I[2] + I[5])
    Sigma = (half - I[0], -I[1], -I[3]), (-I[1], half - I[2], -I[4]), (-I[3], -I[4], half - I[5])
    P = y.P
    return Affine(
        add33((rot(Sigma, P[0]), rot(Sigma, P[1]), rot(Sigma, P[2])), outer(y.p, h)), add3(rot(P, h), mul3(J.m, y.p))
    )


@primitive
def wrench_of(K):
    """The wrench that gives a body these accelerations: the integrals of x cross y and of y, from its `moments`."""
    P = K.P
    return Wrench((P[2][1] - P[1][2], P[0][2] - P[2][0], P[1][0] - P[0][1]), K.p)


@primitive
def inner_product(K, y):
    """tr(K y^T): the integral of y'(x) . y(x) over the mass, K being the `moments` of y'."""
    return dot(K.P[0], y.P[0]) + dot(K.P[1], y.P[1]) + dot(K.P[2], y.P[2]) + dot(K.p, y.p)


@primitive
def place_composites(model, q, frames, axes, inertias, joint_of):
    """Screws and composite inertias in inertial axes about the first body's origin, and every coordinate's joint."""
    place_inertias(model, inertial_axes(model, q), frames, q, axes, inertias)
    composite_inertias(model, inertias)
    for i in range(n_bodies(model)):
        first, end = dofs_of(model, i)
        for k in range(first, end):
            joint_of[k] = i


@primitive
def put_path(model, m, axes, path):
    """Store the coordinates from body m's joint to the root, outermost first; return their number, and m's dof."""
    first, end = dofs_of(model, m)
    k, depth = end - 1, 0
    while k >= 0:
        path[depth] = k
        k, depth = int(get_axis(axes, k).ancestor), depth + 1
    return depth, end - first


MEMORY = per_body(Pose), per_coordinate(Axis), per_body(Inertia), numbers("nv"), numbers("nv")


@algorithm("q -> Gamma[nv, nv, nv]", MEMORY)
def christoffel_symbols(model, q, frames, axes, inertias, joint_of, path, Gamma):
    """Gamma_ijk at [i, j, k] in O(n depth^2), for triples on a path and the composite body of the outermost one."""
    Gamma[:] = 0.0
    place_composites(model, q, frames, axes, inertias, joint_of)
    for m in range(n_bodies(model)):
        J, (depth, own) = get_inertia(inertias, m), put_path(model, m, axes, path)
        joint, same = -1.0, 0
        for y in range(depth):
            j = int(path[y])
            if joint_of[j] != joint:
                joint, same = joint_of[j], y  # where j's joint begins on the path
            for x in range(same, depth):
                i = int(path[x])
                F = wrench_of(moments(J, acceleration_field(axes, i, j)))
                a, b = (i, j) if joint_of[i] == joint else (j, i)  # Gamma_ijk = Gamma_jik except within a joint
                for z in range(depth if y < own else own):
                    k = int(path[z])
                    Gamma[i, j, k] = Gamma[a, b, k] = pair(get_axis(axes, k).S, F)


@algorithm("q -> out[nv, nv, nv, nv]", (*MEMORY, numbers(f"{width(Affine)} * nv * nv")))
def second_order_products(model, q, frames, axes, inertias, joint_of, path, fields, out):
    """<hat(S_i) hat(S_j), hat(S_k) hat(S_l)> at [i, j, k, l], O(n depth^3)."""
    out[:] = 0.0
    place_composites(model, q, frames, axes, inertias, joint_of)
    n = n_v(model)
    for i in range(n):
        for j in range(n):
            a, b = (j, i) if j < i and joint_of[i] != joint_of[j] else (i, j)
            put_affine(fields, i * n + j, acceleration_field(axes, a, b))
    for m in range(n_bodies(model)):
        J, (depth, own) = get_inertia(inertias, m), put_path(model, m, axes, path)
        for w in range(depth):
            for x in range(depth):
                i, j = int(path[w]), int(path[x])
                K = moments(J, get_affine(fields, i * n + j))
                for y in range(depth):
                    k = int(path[y])
                    for z in range(depth if min(w, x, y) < own else own):
                        l = int(path[z])
                        out[i, j, k, l] = inner_product(K, get_affine(fields, k * n + l))
