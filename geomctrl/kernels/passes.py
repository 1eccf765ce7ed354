"""Outward and inward passes over a tree: an algorithm only defines the step for one body.

    @outward(Motion)                        # from the root to the leaves: a body's record from its parent's
    def move(model, i, parent, q, v): ...   # returns Motion(...); called as move(model, root, rows, q, v)

    @inward(Wrench)                         # from the leaves to the root: the contribution to the parent's record
    def transmit(model, i, F, tau): ...     # F includes the children; called as transmit(model, wrenches, tau)

Algorithms in body frames transport twists from frame to frame (Ploen 1999 (14)-(18)). Algorithms in inertial axes sum
about the first body's origin, where a subtree's inertia is a plain sum and screws need no transport: `place` and
`place_axes` transform bodies and joints to these axes.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .primitives import primitive
from .records import adder, reader, writer
from .screws import Ad, Pose, Twist, ad, compose, eye33, neg3, twist_add, twist_mul
from .tree import dofs_of, joint_frame, last_dof_of_parent, n_bodies, parent_of, root_origin, screw_of

# The capital letters avoid clashes with the names of a step's inputs.
OUTWARD = """
def walk(model, ROOT, ROWS, {inputs}):
    for I in range(n_bodies(model)):
        UP = parent_of(model, I)
        PARENT = ROOT if UP < 0 else get(ROWS, UP)
        put(ROWS, I, step(model, I, PARENT, {inputs}))
"""
INWARD = """
def walk(model, ROWS, {inputs}):
    for I in range(n_bodies(model) - 1, -1, -1):
        GIVEN = step(model, I, get(ROWS, I), {inputs})
        UP = parent_of(model, I)
        if UP >= 0:
            add(ROWS, UP, GIVEN)
"""


def outward(record: Any) -> Callable[[Callable], Callable]:
    """Decorator: step(model, i, parent's record, `*inputs`) -> record, for every body, parents first.

    The pass is called with the record of the world and the rows to fill: walk(model, root, rows, `*inputs`).
    """
    return lambda step: _walk(OUTWARD, step, record)


def inward(record: Any) -> Callable[[Callable], Callable]:
    """Decorator: step(model, i, record, `*inputs`) -> contribution to the parent's record, for every body, children
    first.

    The pass is called as walk(model, rows, `*inputs`), with the bodies' own contributions in the rows.
    """
    return lambda step: _walk(INWARD, step, record)


def _walk(source: str, step: Callable, record: Any) -> Callable:
    """Generate the pass with the step's named inputs; numba would count references of variadic ones for each body."""
    inputs = ", ".join(list(inspect.signature(step).parameters)[3:])
    scope = {"step": primitive(step), "get": reader(record), "put": writer(record), "add": adder(record)}
    scope |= {"n_bodies": n_bodies, "parent_of": parent_of}
    exec(source.format(inputs=inputs), scope)
    walk = scope["walk"]
    walk.__name__, walk.__qualname__ = step.__name__, step.__qualname__
    walk.__module__, walk.__doc__ = step.__module__, step.__doc__
    return primitive(walk)


# --- inertial axes -----------------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """A velocity coordinate in inertial axes: its screw S = Ad_T S_i, and the next coordinate towards the root, or
    -1.
    """

    S: Twist
    ancestor: float


class MovingAxis(NamedTuple):
    """An `Axis` and the rate of its screw, dS = ad_V S."""

    S: Twist
    dS: Twist
    ancestor: float


class Moving(NamedTuple):
    """A body's pose and spatial twist in inertial axes."""

    T: Pose
    V: Twist


get_axis, put_axis = reader(Axis), writer(Axis)
get_moving_axis, put_moving_axis = reader(MovingAxis), writer(MovingAxis)


@primitive
def inertial_axes(model, q):
    """A frame parallel to the world's at the first body's origin, where outward passes begin."""
    return Pose(eye33(), neg3(root_origin(model, q)))


@primitive
def place(model, i, parent, q):
    """T_i = T_parent f_i(q), Ploen 1999 (14)."""
    return compose(parent, joint_frame(model, i, q))


@primitive
def place_axes(model, i, T, axes):
    """Store the `Axis` of every coordinate of body i's joint, for the body at T."""
    first, end = dofs_of(model, i)
    ancestor = float(last_dof_of_parent(model, i))
    for k in range(first, end):
        put_axis(axes, k, Axis(Ad(T, screw_of(model, i, k - first)), ancestor))
        ancestor = float(k)


@primitive
def joint_twist_at(model, i, T, v):
    """Ad_T S_i v_i: the twist of body i relative to its parent, in inertial axes."""
    first, end = dofs_of(model, i)
    X = twist_mul(v[first], Ad(T, screw_of(model, i, 0)))
    for k in range(first + 1, end):
        X = twist_add(X, twist_mul(v[k], Ad(T, screw_of(model, i, k - first))))
    return X


@primitive
def place_moving_axes(model, i, T, V_parent, v, axes):
    """Store the `MovingAxis` of every coordinate of body i's joint; return the body's twist V = V_parent + S v."""
    first, end = dofs_of(model, i)
    V, ancestor = V_parent, float(last_dof_of_parent(model, i))
    for k in range(first, end):
        S = Ad(T, screw_of(model, i, k - first))
        V = twist_add(V, twist_mul(v[k], S))
        put_moving_axis(axes, k, MovingAxis(S, S, ancestor))
        ancestor = float(k)
    for k in range(first, end):
        axis = get_moving_axis(axes, k)
        put_moving_axis(axes, k, MovingAxis(axis.S, ad(V, axis.S), axis.ancestor))
    return V
