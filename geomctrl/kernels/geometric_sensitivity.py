"""How inverse dynamics changes with a robot's geometry: Mueller 2018 section 6.2.

A change M_i exp(U d) of a placement is a motion of a locked, massless joint with screw U before joint i, and
exp(S q) exp(U d) one of a joint behind it: the formulas of `derivatives` with these joints' screws.
"""

from typing import NamedTuple

from .algorithms import algorithm, numbers
from .articulated_bodies import unit_twist
from .derivatives import (
    MEMORY,
    Subtree,
    base_at_rest,
    change_of_wrench,
    get_motion,
    get_subtree,
    move,
    place_bodies,
    pull_back,
)
from .passes import get_axis, inertial_axes, inward
from .primitives import primitive
from .records import pose_at, reader, width, writer
from .screws import Ad, Pose, Twist, ad, ad_dual, apply_inertia, compose, pair, twist_add, wrench_add
from .tree import ROTATING, WIDTH, A, C, dofs_of, kind_of, last_dof_of_parent, n_bodies, parent_of
from .vectors import Vector, add3, add33, dot

BEFORE, BEHIND = 0, 1


class LockedJoint(NamedTuple):
    """What a locked joint's motion would change: alpha, and beta's angular part."""

    alpha: Twist
    beta: Vector


get_frame = reader(Pose)
get_locked, put_locked = reader(LockedJoint), writer(LockedJoint)


@primitive
def placement_of(model, i):
    """M_i, the joint's frame at coordinate zero or before its pose."""
    a, c = pose_at(model, i * WIDTH + A), pose_at(model, i * WIDTH + C)
    if kind_of(model, i) == ROTATING:
        return Pose(add33(a.R, c.R), add3(a.p, c.p))
    return a


@primitive
def locked_number(i, side, e):
    """The number of the locked joint along twist e of six, before or behind joint i."""
    return 12 * i + 6 * side + e


@inward(Subtree)
def sum_subtrees(model, i, x):
    return x


@primitive
def inner_rows(model, i, side, T, motion, x, axes, locked, out):
    """Torques between the root and a change at T, along six twists, of what moves with `motion` there."""
    for e in range(6):
        U = Ad(T, unit_twist(e))
        beta = ad(motion.V, U)
        alpha = twist_add(ad(motion.A, U), ad(motion.V, beta))
        put_locked(locked, locked_number(i, side, e), LockedJoint(alpha, beta.w))
        Q = wrench_add(change_of_wrench(x, alpha, beta.w), ad_dual(U, x.F))
        k = last_dof_of_parent(model, i) if side == BEFORE else dofs_of(model, i)[1] - 1
        while k >= 0:
            out[side, k, i, e] = pair(get_axis(axes, k).S, Q)
            k = int(get_axis(axes, k).ancestor)


@primitive
def outer_rows(model, i, x, axes, locked, out):
    """Torques of body i's joint, for changes before it and on its path to the root."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        S = get_axis(axes, k).S
        JS, DTS = apply_inertia(x.J, S), pull_back(x, S)
        b, sides = i, 1
        while b >= 0:
            for side in range(sides):
                for e in range(6):
                    y = get_locked(locked, locked_number(b, side, e))
                    out[side, k, b, e] = pair(y.alpha, JS) + dot(y.beta, DTS)
            b, sides = parent_of(model, b), 2


@algorithm("q, v, a, f_ext? -> out[2, nv, nb, 6]", (*MEMORY, numbers(f"{12 * width(LockedJoint)} * nb")))
def geometric_sensitivity(
    model, q, v, a, f_ext, frames, axes, bodies, motions, variations, subtrees, locked, out
):  # fmt: skip
    """dtau for twists before (out[0]) and behind (out[1]) each joint."""
    out[:] = 0.0
    root, base = inertial_axes(model, q), base_at_rest(model)
    place_bodies(model, root, frames, q, f_ext, axes, bodies)
    move(model, base, motions, v, a, axes, bodies, variations, subtrees)
    sum_subtrees(model, subtrees)
    for i in range(n_bodies(model)):
        p, x = parent_of(model, i), get_subtree(subtrees, i)
        T, motion = (root, base) if p < 0 else (get_frame(frames, p), get_motion(motions, p))
        inner_rows(model, i, BEFORE, compose(T, placement_of(model, i)), motion, x, axes, locked, out)
        inner_rows(model, i, BEHIND, get_frame(frames, i), get_motion(motions, i), x, axes, locked, out)
    for i in range(n_bodies(model)):
        outer_rows(model, i, get_subtree(subtrees, i), axes, locked, out)
