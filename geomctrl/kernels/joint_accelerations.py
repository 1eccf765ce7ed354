"""Forward dynamics: M a = tau - C v - g by the mass matrix where there are few coordinates, by articulated bodies else.

With the wrenches F_i that the motion would take without acceleration, gravity being the base's, the torque left over is
r = tau - S^T F, and M = L^T D L is eliminated from the last coordinate to the first, along the paths to the root, where
alone it has entries (Featherstone 2005). All is summed in inertial axes about the first body's origin.
"""

from typing import NamedTuple

from .algorithms import algorithm, numbers, per_body, per_coordinate
from .articulated_bodies import Eliminated, Handle, MovingBody
from .articulated_bodies import forward_dynamics as by_articulated_bodies
from .passes import Axis, get_axis, inertial_axes, inward, outward, place, place_axes
from .primitives import primitive
from .records import get_wrench, writer
from .rigid_body import inertial_wrench
from .screws import (
    Ad_dual,
    Inertia,
    Pose,
    Twist,
    Wrench,
    ad,
    apply_inertia,
    inertia_to,
    pair,
    twist_add,
    twist_mul,
    wrench_sub,
    zero_twist,
)
from .tree import armature_of, base_acceleration, dofs_of, inertia_of, n_v

# Coordinates up to which M and its factors take fewer operations than articulated bodies: a tenth fewer at 6 and 7, and
# less of the time, a fifth; they break even at the quadruped's 18, and a chain of 30 takes twice as long.
MAX_JOINTS = 10


class Carried(NamedTuple):
    """A body's pose, twist, and acceleration at constant joint rates, in inertial axes."""

    T: Pose
    V: Twist
    A: Twist


class Load(NamedTuple):
    """A subtree's inertia, and the wrench that its motion takes at constant joint rates less the one given to it."""

    J: Inertia
    F: Wrench


put_load = writer(Load)


@outward(Carried)
def carry(model, i, parent, q, v, f_ext, axes, loads):
    T = place(model, i, parent.T, q)
    place_axes(model, i, T, axes)
    first, end = dofs_of(model, i)
    Sv = twist_mul(v[first], get_axis(axes, first).S)
    for k in range(first + 1, end):
        Sv = twist_add(Sv, twist_mul(v[k], get_axis(axes, k).S))
    V, A = twist_add(parent.V, Sv), twist_add(parent.A, ad(parent.V, Sv))
    J = inertia_to(T, inertia_of(model, i))
    F = inertial_wrench(J, V, A)
    if f_ext.shape[0] > 0:
        F = wrench_sub(F, Ad_dual(T, get_wrench(f_ext, i)))
    put_load(loads, i, Load(J, F))
    return Carried(T, V, A)


@inward(Load)
def collect(model, i, x, axes, M, r):
    """M_kj = S_j . J S_k for j on the path from k to the root, and r_k -= S_k . F."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        S = get_axis(axes, k).S
        r[k] -= pair(S, x.F)
        F, j = apply_inertia(x.J, S), k
        while j >= 0:
            axis = get_axis(axes, j)
            M[k, j] = pair(axis.S, F)
            j = int(axis.ancestor)
        M[k, k] += armature_of(model, i)
    return x


@primitive
def solve(axes, M, a):
    """M a = r in place of r, the lower half of M becoming L. False unless M > 0."""
    n, positive = a.shape[0], True
    for k in range(n - 1, -1, -1):
        positive &= M[k, k] > 0.0
        inverse = 1.0 / M[k, k]
        i = int(get_axis(axes, k).ancestor)
        while i >= 0:
            factor = M[k, i] * inverse
            j = i
            while j >= 0:
                M[i, j] -= factor * M[k, j]
                j = int(get_axis(axes, j).ancestor)
            a[i] -= factor * a[k]
            M[k, i] = factor
            i = int(get_axis(axes, i).ancestor)
        a[k] *= inverse
    for k in range(n):
        i = int(get_axis(axes, k).ancestor)
        while i >= 0:
            a[k] -= M[k, i] * a[i]
            i = int(get_axis(axes, i).ancestor)
    return positive


MEMORY = (
    *(per_body(MovingBody), per_coordinate(Eliminated), per_body(Handle), per_body(Twist)),
    *(per_body(Carried), per_coordinate(Axis), per_body(Load), numbers(f"{MAX_JOINTS * MAX_JOINTS}")),
)


@algorithm("q, v, tau, f_ext? -> a", MEMORY, may_fail=True)
def forward_dynamics(model, q, v, tau, f_ext, moving, eliminated, handles, twists, bodies, axes, loads, memory, a):
    """a = M^-1 (tau + sum Jac^T f_ext - C v - g). False where a joint has no inertia to push against."""
    n = n_v(model)
    if n > MAX_JOINTS:
        return by_articulated_bodies(model, q, v, tau, f_ext, moving, eliminated, handles, twists, a)
    M = memory[: n * n].reshape((n, n))
    for k in range(n):
        a[k] = tau[k]
    base = Carried(inertial_axes(model, q), zero_twist(), base_acceleration(model))
    carry(model, base, bodies, q, v, f_ext, axes, loads)
    collect(model, loads, axes, M, a)
    return solve(axes, M, a)
