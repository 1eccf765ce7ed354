"""Newton-Euler recursions in body frames, as the papers write them: Ploen 1999 (14)-(18)."""

from typing import NamedTuple

from .algorithms import algorithm, numbers, per_body
from .passes import inward, outward
from .primitives import primitive
from .records import get_wrench, put_wrench, reader
from .rigid_body import accelerate, coriolis_wrench, inertial_wrench
from .screws import (
    Ad_dual,
    Ad_inv,
    Pose,
    Twist,
    Wrench,
    ad,
    apply_inertia,
    identity,
    pair,
    twist_add,
    twist_sub,
    wrench_add,
    wrench_sub,
    zero_twist,
)
from .tree import armature_of, base_acceleration, dofs_of, inertia_of, joint_frame, joint_twist, n_bodies, screw_of


class Motion(NamedTuple):
    """A body's frame in its parent's, its twist and its acceleration, gravity being the base's."""

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
    """tau_i = S_i^T F_i (18), and what the motor's inertia takes; the parent gets Ad*_{f^-1} F_i (17)."""
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
    """A body's frame in its parent's, its twist, reference twist and acceleration."""

    f: Pose
    V: Twist
    Vr: Twist
    A: Twist


get_reference_motion = reader(ReferenceMotion)


@outward(ReferenceMotion)
def move_reference(model, i, parent, q, v, a, v_ref):
    """(19)-(21) with a reference velocity: Vr = X Vr_p + S v_ref, A = X A_p + S a - ad_{S v} X Vr_p."""
    f = joint_frame(model, i, q)
    Sv, XVr = joint_twist(model, i, v), Ad_inv(f, parent.Vr)
    V = twist_add(Ad_inv(f, parent.V), Sv)
    A = twist_add(twist_sub(Ad_inv(f, parent.A), ad(Sv, XVr)), joint_twist(model, i, a))
    return ReferenceMotion(f, V, twist_add(XVr, joint_twist(model, i, v_ref)), A)


@primitive
def base_reference_motion(model):
    return ReferenceMotion(identity(), zero_twist(), zero_twist(), base_acceleration(model))


@primitive
def reference_wrench(J, x, form):
    """J A + Cbar(V) Vr of a body with inertia J and `ReferenceMotion` x."""
    return wrench_add(apply_inertia(J, x.A), coriolis_wrench(J, x.V, x.Vr, form))


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
