"""Regressors of torque, tau = Y(q, v, a, v_ref) pi, and of momentum; products with vectors without forming Y."""

from typing import NamedTuple

from .algorithms import algorithm, per_body, per_coordinate
from .newton_euler import (
    ReferenceMotion,
    base_reference_motion,
    get_reference_motion,
    inertia_row,
    move_reference,
    reference_wrench,
    regressor_row,
    transmit_reference,
)
from .passes import (
    Axis,
    Moving,
    MovingAxis,
    get_axis,
    get_moving_axis,
    inertial_axes,
    joint_twist_at,
    outward,
    place,
    place_axes,
    place_moving_axes,
)
from .primitives import primitive
from .records import get_inertia, put_wrench, reader
from .screws import Ad_inv, Pose, Twist, Wrench, ad, add3, cross, twist_add, twist_sub, zero_twist
from .tree import base_acceleration, dofs_of, joint_twist, n_bodies

get_twist = reader(Twist)
get_moving = reader(Moving)


class PlacedReference(NamedTuple):
    """A body's pose, twist, reference twist and acceleration in inertial axes."""

    T: Pose
    V: Twist
    Vr: Twist
    A: Twist


get_reference = reader(PlacedReference)


@outward(PlacedReference)
def place_reference(model, i, parent, q, v, a, v_ref, axes):
    """`newton_euler.move_reference` in inertial axes."""
    T = place(model, i, parent.T, q)
    place_axes(model, i, T, axes)
    Sv = joint_twist_at(model, i, T, v)
    A = twist_sub(twist_add(parent.A, joint_twist_at(model, i, T, a)), ad(Sv, parent.Vr))
    return PlacedReference(T, twist_add(parent.V, Sv), twist_add(parent.Vr, joint_twist_at(model, i, T, v_ref)), A)


@primitive
def put_row(y, j, row):
    for k in range(10):
        y[j + k] = row[k]


@algorithm("q, v, a, v_ref; form: i8 -> Y[nv, 10 nb]", (per_body(PlacedReference), per_coordinate(Axis)))
def regressor(model, q, v, a, v_ref, form, bodies, axes, Y):
    """Y, body by body: a row of its ten columns for every coordinate on the path to the root."""
    Y[:, :] = 0.0
    root = PlacedReference(inertial_axes(model, q), zero_twist(), zero_twist(), base_acceleration(model))
    place_reference(model, root, bodies, q, v, a, v_ref, axes)
    for i in range(n_bodies(model)):
        T, V, Vr, A = get_reference(bodies, i)
        V, Vr, A = Ad_inv(T, V), Ad_inv(T, Vr), Ad_inv(T, A)
        acceleration = add3(A.v, cross(V.w, Vr.v))
        _, end = dofs_of(model, i)
        k = end - 1
        while k >= 0:
            X = Ad_inv(T, get_axis(axes, k).S)  # column k of the body's Jacobian
            put_row(Y[k], 10 * i, regressor_row(X, V, Vr, A, acceleration, form))
            k = int(get_axis(axes, k).ancestor)


@outward(Moving)
def place_moving(model, i, parent, q, v, axes):
    T = place(model, i, parent.T, q)
    return Moving(T, place_moving_axes(model, i, T, parent.V, v, axes))


@algorithm("q, v -> Y[nv, 10 nb]", (per_body(Moving), per_coordinate(MovingAxis)))
def momentum_regressor(model, q, v, bodies, axes, Y):
    """p_k = S_k . sum_i J_i V_i over the bodies that k moves (`momenta`), as columns of the bodies' parameters."""
    Y[:, :] = 0.0
    place_moving(model, Moving(inertial_axes(model, q), zero_twist()), bodies, q, v, axes)
    for i in range(n_bodies(model)):
        T, V = get_moving(bodies, i)
        V = Ad_inv(T, V)
        _, end = dofs_of(model, i)
        k = end - 1
        while k >= 0:
            axis = get_moving_axis(axes, k)
            put_row(Y[k], 10 * i, inertia_row(Ad_inv(T, axis.S), V))
            k = int(axis.ancestor)


@algorithm("q, v -> Y[nv, 10 nb]", (per_body(Moving), per_coordinate(MovingAxis)))
def momentum_rate_regressor(model, q, v, bodies, axes, Y):
    """p_k' - tau_k = sum_i (ad_V S_k) . J_i V_i + S_k . W_i, W_i the weight, as columns of the parameters."""
    Y[:, :] = 0.0
    place_moving(model, Moving(inertial_axes(model, q), zero_twist()), bodies, q, v, axes)
    for i in range(n_bodies(model)):
        T, V = get_moving(bodies, i)
        V, upward = Ad_inv(T, V), Ad_inv(T, base_acceleration(model))
        _, end = dofs_of(model, i)
        k = end - 1
        while k >= 0:
            axis = get_moving_axis(axes, k)
            moving, lifting = inertia_row(Ad_inv(T, axis.dS), V), inertia_row(Ad_inv(T, axis.S), upward)
            for c in range(10):
                Y[k, 10 * i + c] = moving[c] - lifting[c]
            k = int(axis.ancestor)


@outward(Twist)
def move_along(model, i, X_parent, x, motion):
    """Jac_i x, in the body's frame."""
    return twist_add(Ad_inv(get_reference_motion(motion, i).f, X_parent), joint_twist(model, i, x))


@algorithm(
    "pi[10 nb], q, v, a, v_ref, x; form: i8 -> tau, g[10 nb]",
    (per_body(ReferenceMotion), per_body(Wrench), per_body(Twist)),
)
def products(model, pi, q, v, a, v_ref, x, form, motion, wrenches, along, tau, g):
    """tau = Y pi + armature a and g = Y^T x in O(n), without Y: Newton-Euler with pi, and Y_i^T (Jac_i x) per body."""
    move_reference(model, base_reference_motion(model), motion, q, v, a, v_ref)
    move_along(model, zero_twist(), along, x, motion)
    for i in range(n_bodies(model)):
        m = get_reference_motion(motion, i)
        put_wrench(wrenches, i, reference_wrench(get_inertia(pi, i), m, form))
        put_row(g, 10 * i, regressor_row(get_twist(along, i), m.V, m.Vr, m.A, m.acceleration, form))
    transmit_reference(model, wrenches, a, motion, tau)
