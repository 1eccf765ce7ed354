"""M x and C^T x by recursion, O(n), in inertial axes: what generalised momenta and their observers are made of.

With X_i = Jac_i x the twist that x gives to body i, (M x)_k = S_k . sum J_i X_i over the subtree of coordinate k, and
(C^T x)_k = dS_k . sum J_i X_i + S_k . sum B_i^T X_i with the B of `composite_bodies`: the transposes of its columns.
"""

from typing import NamedTuple

from .algorithms import algorithm, per_body
from .composite_bodies import bracket, coriolis_composite
from .passes import inertial_axes, inward, joint_twist_at, outward, place
from .primitives import primitive
from .records import put_wrench, reader, writer
from .rigid_body import ADJOINT
from .screws import (
    Ad,
    Pose,
    Twist,
    Wrench,
    ad,
    apply_inertia,
    inertia_to,
    pair,
    twist_add,
    wrench_add,
    wrench_mul,
    zero_twist,
    zero_wrench,
)
from .tree import armature_of, dofs_of, inertia_of, screw_of
from .vectors import add3, cross, rotT, sub3, sym_mul


class Carried(NamedTuple):
    """A body's pose and the twist X = Jac x."""

    T: Pose
    X: Twist


class CarriedMoving(NamedTuple):
    """A body's pose, its twist V and the twist X = Jac x."""

    T: Pose
    V: Twist
    X: Twist


class Share(NamedTuple):
    """Of a subtree: P = sum J X and Q = sum B^T X."""

    P: Wrench
    Q: Wrench


get_carried, get_moving, put_share = reader(Carried), reader(CarriedMoving), writer(Share)


@outward(Carried)
def carry(model, i, parent, q, x, momenta):
    T = place(model, i, parent.T, q)
    X = twist_add(parent.X, joint_twist_at(model, i, T, x))
    put_wrench(momenta, i, apply_inertia(inertia_to(T, inertia_of(model, i)), X))
    return Carried(T, X)


@inward(Wrench)
def gather_momenta(model, i, P, x, bodies, y):
    T, (first, end) = get_carried(bodies, i).T, dofs_of(model, i)
    for k in range(first, end):
        y[k] = pair(Ad(T, screw_of(model, i, k - first)), P) + armature_of(model, i) * x[k]
    return P


@algorithm("q, x -> y", (per_body(Carried), per_body(Wrench)))
def mass_matrix_product(model, q, x, bodies, momenta, y):
    """M x."""
    carry(model, Carried(inertial_axes(model, q), zero_twist()), bodies, q, x, momenta)
    gather_momenta(model, momenta, x, bodies, y)


@primitive
def bracket_product(E, X):
    """E X for the skew E of a `Bracket`."""
    m = add3(add3(cross(E.a, X.w), cross(E.b, X.v)), sym_mul(E.N, X.v))
    f = sub3(add3(cross(E.b, X.w), cross(E.c, X.v)), sym_mul(E.N, X.w))
    return wrench_mul(0.5, Wrench(m, f))


@outward(CarriedMoving)
def carry_moving(model, i, parent, q, v, x, form, shares):
    T, own = place(model, i, parent.T, q), inertia_of(model, i)
    V = twist_add(parent.V, joint_twist_at(model, i, T, v))
    X = twist_add(parent.X, joint_twist_at(model, i, T, x))
    J = inertia_to(T, own)
    B11, p = coriolis_composite(J, V, form, own.I[0] + own.I[2] + own.I[5])
    Q = Wrench(add3(rotT(B11, X.w), cross(p, X.v)), (0.0, 0.0, 0.0))
    E = bracket_product(bracket(J, V), X) if form == ADJOINT else zero_wrench()
    put_share(shares, i, Share(apply_inertia(J, X), wrench_add(Q, wrench_mul(-1.0, E))))
    return CarriedMoving(T, V, X)


@inward(Share)
def gather_shares(model, i, share, bodies, y):
    body, (first, end) = get_moving(bodies, i), dofs_of(model, i)
    for k in range(first, end):
        S = Ad(body.T, screw_of(model, i, k - first))
        y[k] = pair(ad(body.V, S), share.P) + pair(S, share.Q)
    return share


@algorithm("q, v, x; form: i8 -> y", (per_body(CarriedMoving), per_body(Share)))
def coriolis_transpose_product(model, q, v, x, form, bodies, shares, y):
    """C(q, v)^T x."""
    root = CarriedMoving(inertial_axes(model, q), zero_twist(), zero_twist())
    carry_moving(model, root, bodies, q, v, x, form, shares)
    gather_shares(model, shares, bodies, y)
