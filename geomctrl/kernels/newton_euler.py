"""Newton-Euler recursions in body frames, as the papers write them: Ploen 1999 (14)-(18)."""

from typing import NamedTuple

from .algorithms import algorithm, numbers, per_body
from .passes import inward, outward
from .primitives import primitive
from .records import get_wrench, put_wrench, reader
from .screws import (
    Ad_dual,
    Ad_inv,
    Pose,
    Twist,
    Vector,
    Wrench,
    ad,
    ad_dual,
    add3,
    apply_inertia,
    cross,
    dot,
    identity,
    mul3,
    pair,
    rotT,
    sub3,
    sym_mul,
    twist_add,
    twist_sub,
    wrench_add,
    wrench_sub,
    zero_twist,
)
from .tree import (
    armature_of,
    base_acceleration,
    dofs_of,
    inertia_of,
    joint_frame,
    joint_twist,
    n_bodies,
    screw_of,
)

PLOEN, CHRISTOFFEL, PLAIN, ADJOINT = 0, 1, 2, 3  # forms of Cbar; with PLAIN Mdot - 2C is not skew (negative tests)


@primitive
def accelerate(f, V_parent, A_parent, Sv, Sa):
    """A body's twist and acceleration from its parent's."""
    V = twist_add(Ad_inv(f, V_parent), Sv)  # (15)
    return V, twist_add(twist_add(Ad_inv(f, A_parent), ad(V, Sv)), Sa)  # (16)


@primitive
def moving_wrench(J, w, alpha, acceleration):
    """The wrench that moves a body: angular velocity and acceleration, and the acceleration of its frame's origin."""
    # With the products of the acceleration first, its registers become free early, and PTX code spills less.
    moment = add3(add3(cross(J.h, acceleration), sym_mul(J.I, alpha)), cross(w, sym_mul(J.I, w)))
    force = add3(add3(mul3(J.m, acceleration), cross(alpha, J.h)), cross(w, cross(w, J.h)))
    return Wrench(moment, force)


@primitive
def inertial_wrench(J, V, A):
    """J A - ad_V^T J V: the wrench of a body's own motion."""
    return moving_wrench(J, V.w, A.w, add3(A.v, cross(V.w, V.v)))  # (17)


@primitive
def coupled_wrench(J, V, Vr, A, acceleration, form):
    """J A + Cbar(V) Vr, `acceleration` being A.v + w x vr.

    Cbar is Ploen's [w]I + I[w] (Proposition 1), the Christoffel-consistent [theta w] with theta = tr(I)/2 1 - I, the
    adjoint J ad_V - ad_V^T J, or plain -ad_V^T J. docs/reference/formulas.md has the family that keeps Mdot - 2C
    skew.
    """
    if form in (PLAIN, ADJOINT):
        A = twist_add(A, ad(V, Vr)) if form == ADJOINT else A
        return wrench_add(apply_inertia(J, A), ad_dual(V, apply_inertia(J, Vr)))
    w, wr = V.w, Vr.w
    if form == PLOEN:
        angular = add3(sym_mul(J.I, add3(A.w, cross(w, wr))), cross(w, sym_mul(J.I, wr)))
    else:
        trace = J.I[0] + J.I[2] + J.I[5]
        angular = add3(sym_mul(J.I, A.w), cross(sub3(mul3(0.5 * trace, w), sym_mul(J.I, w)), wr))
    linear = add3(cross(A.w, J.h), cross(w, cross(wr, J.h)))
    return Wrench(add3(angular, cross(J.h, acceleration)), add3(mul3(J.m, acceleration), linear))


@primitive
def inertia_row(X, A):
    """X^T J A as ten numbers, one for each parameter of J."""
    x, u, al, acc = X.w, X.v, A.w, A.v
    h = add3(cross(acc, x), cross(u, al))
    return (
        dot(u, acc), h[0], h[1], h[2],
        x[0] * al[0], x[0] * al[1] + x[1] * al[0], x[1] * al[1],
        x[0] * al[2] + x[2] * al[0], x[1] * al[2] + x[2] * al[1], x[2] * al[2],
    )  # fmt: skip


@primitive
def regressor_row(X, V, Vr, A, acceleration, form):
    """X^T Y_i, ten numbers: the body's regressor (see `terms.regressor`) seen along the twist X.

    acceleration: A.v + w x vr.
    """
    if form == ADJOINT:  # X^T J (A + ad_V Vr) - (ad_V X)^T J Vr
        r, s = inertia_row(X, twist_add(A, ad(V, Vr))), inertia_row(ad(X, V), Vr)
        return (
            r[0] + s[0], r[1] + s[1], r[2] + s[2], r[3] + s[3], r[4] + s[4],
            r[5] + s[5], r[6] + s[6], r[7] + s[7], r[8] + s[8], r[9] + s[9],
        )  # fmt: skip
    x, u = X.w, X.v
    w, wr, al = V.w, Vr.w, A.w
    lin = acceleration
    wwr = cross(w, wr)
    h = add3(cross(lin, x), sub3(cross(wr, cross(w, u)), cross(al, u)))
    if form == PLOEN:
        b, c, d, t = add3(al, wwr), cross(x, w), wr, 0.0
    else:
        b, c, d, t = al, cross(x, wr), w, 0.5 * dot(x, wwr)
    return (
        dot(u, lin), h[0], h[1], h[2],
        x[0] * b[0] + c[0] * d[0] + t,  # x^T L(b) + c^T L(d)
        x[0] * b[1] + x[1] * b[0] + c[0] * d[1] + c[1] * d[0],
        x[1] * b[1] + c[1] * d[1] + t,
        x[0] * b[2] + x[2] * b[0] + c[0] * d[2] + c[2] * d[0],
        x[1] * b[2] + x[2] * b[1] + c[1] * d[2] + c[2] * d[1],
        x[2] * b[2] + c[2] * d[2] + t,
    )  # fmt: skip


class Motion(NamedTuple):
    """A body's frame in its parent's, its twist and its acceleration, with gravity as the base's acceleration."""

    f: Pose
    V: Twist
    A: Twist


get_motion = reader(Motion)


@primitive
def base_motion(model):
    return Motion(identity(), zero_twist(), base_acceleration(model))


@outward(Motion)
def move(model, i, parent, q, v, a, wrenches):
    f = joint_frame(model, i, q)  # (14)
    V, A = accelerate(f, parent.V, parent.A, joint_twist(model, i, v), joint_twist(model, i, a))
    put_wrench(wrenches, i, inertial_wrench(inertia_of(model, i), V, A))
    return Motion(f, V, A)


@inward(Wrench)
def transmit(model, i, F, a, motion, tau):
    """tau_i = S_i^T F_i (18), plus the torque of the motor's inertia; the parent gets Ad*_{f^-1} F_i (17)."""
    project(model, i, F, a, tau)
    return Ad_dual(get_motion(motion, i).f, F)


@primitive
def project(model, i, F, a, tau):
    """tau_i = S_i^T F of body i's joint, and armature times its acceleration."""
    (first, end), armature = dofs_of(model, i), armature_of(model, i)
    for k in range(first, end):
        tau[k] = armature * a[k] + pair(screw_of(model, i, k - first), F)


@algorithm("q, v, a -> tau", (per_body(Motion), per_body(Wrench)))
def inverse_dynamics(model, q, v, a, motion, wrenches, tau):
    """tau = M a + C v + g."""
    move(model, base_motion(model), motion, q, v, a, wrenches)
    transmit(model, wrenches, a, motion, tau)


@algorithm("q -> g[nv]", (numbers("nv"), per_body(Motion), per_body(Wrench)))
def gravity_force(model, q, rest, motion, wrenches, g):
    """g(q): the torques of a robot at rest."""
    rest[:] = 0.0
    inverse_dynamics(model, q, rest, rest, motion, wrenches, g)


# --- with a reference velocity -----------------------------------------------------------------------------------


class ReferenceMotion(NamedTuple):
    """A body's frame in its parent's, its twist, reference twist and acceleration, and A.v + w x vr, the acceleration
    of its origin.
    """

    f: Pose
    V: Twist
    Vr: Twist
    A: Twist
    acceleration: Vector


get_reference_motion = reader(ReferenceMotion)


@outward(ReferenceMotion)
def move_reference(model, i, parent, q, v, a, v_ref):
    """(19)-(21) with a reference velocity: Vr = X Vr_p + S v_ref, A = X A_p + S a - ad_{S v} X Vr_p.

    The acceleration of the origin is computed without the velocities of origins.
    """
    f = joint_frame(model, i, q)
    Sv, Svr, Sa, XVr = (
        joint_twist(model, i, v),
        joint_twist(model, i, v_ref),
        joint_twist(model, i, a),
        Ad_inv(f, parent.Vr),
    )
    V = twist_add(Ad_inv(f, parent.V), Sv)
    A = twist_add(twist_sub(Ad_inv(f, parent.A), ad(Sv, XVr)), Sa)
    turning = add3(cross(parent.A.w, f.p), cross(parent.V.w, cross(parent.Vr.w, f.p)))
    own = add3(Sa.v, add3(cross(XVr.w, Sv.v), cross(V.w, Svr.v)))
    acceleration = add3(rotT(f.R, add3(parent.acceleration, turning)), own)
    return ReferenceMotion(f, V, twist_add(XVr, Svr), A, acceleration)


@primitive
def base_reference_motion(model):
    A = base_acceleration(model)
    return ReferenceMotion(identity(), zero_twist(), zero_twist(), A, A.v)


@primitive
def reference_wrench(J, x, form):
    """J A + Cbar(V) Vr of a body with inertia J and `ReferenceMotion` x."""
    return coupled_wrench(J, x.V, x.Vr, x.A, x.acceleration, form)


@inward(Wrench)
def transmit_reference(model, i, F, a, motion, tau):
    project(model, i, F, a, tau)
    return Ad_dual(get_reference_motion(motion, i).f, F)


@algorithm("q, v, a, v_ref, f_ext?; form: i8 -> tau", (per_body(ReferenceMotion), per_body(Wrench)))
def inverse_dynamics_reference(model, q, v, a, v_ref, f_ext, form, motion, wrenches, tau):
    """tau = M a + C(q, v) v_ref + g - sum_i Jac_i^T f_ext_i."""
    move_reference(model, base_reference_motion(model), motion, q, v, a, v_ref)
    for i in range(n_bodies(model)):
        F = reference_wrench(inertia_of(model, i), get_reference_motion(motion, i), form)
        if f_ext.shape[0] > 0:
            F = wrench_sub(F, get_wrench(f_ext, i))
        put_wrench(wrenches, i, F)
    transmit_reference(model, wrenches, a, motion, tau)
