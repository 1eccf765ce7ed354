"""Newton-Euler recursions as kernels on a packed robot, in body frames as the papers write them: Ploen 1999 (14)-(18).

Each algorithm is one function on one state; `*_one` is its entry for a single state, `*_many` loops over a batch. An
entry for one state writes into the array its caller gives, since a returned array costs 0.6 us to box. It refuses a
state of the wrong length, with nan in it or with a pose that is no rotation by raising ValueError before it allocates;
the public function then finds the words. `recursions` has the algorithms in inertial axes.
"""

import numpy as np

from .jit import kernel, primitive
from .lanes import LANES, copy, lane_put, lane_put6, lane_twist, lane_vec, lanes_of
from .records import get_frame, get_twist, get_wrench, put6, put_frame, vec
from .scalars import sin_cos
from .screws import (
    Ad_dual,
    Ad_inv,
    Frame,
    Twist,
    Wrench,
    ad,
    ad_dual,
    momentum,
    pair,
    twist_add,
    twist_mul,
    twist_sub,
    wrench_add,
    wrench_sub,
    zero_twist,
)
from .tree import (
    WIDTH,
    dofs_of,
    good_configuration,
    good_velocity,
    gravity_of,
    inertia_of,
    joint_frame,
    joint_twist,
    n_bodies,
    parent_of,
    screw_of,
    turned,
)
from .tree import A as A_FRAME
from .tree import B as B_FRAME
from .tree import C as C_FRAME
from .tree import D as D_SHIFT
from .vectors import add3, cross, mul3, neg3, sub3, sym_mul

WORK = 36  # record of a body in Newton-Euler
PLOEN, CHRISTOFFEL, PLAIN = 0, 1, 2  # which Cbar; PLAIN is -ad_V^T J, whose C is not skew: for negative tests


@primitive
def outward(f, V_p, A_p, Sv, Sa, J):
    """One body outward: its twist, its acceleration and the wrench that these take."""
    V = twist_add(Ad_inv(f, V_p), Sv)  # (15)
    A = twist_add(twist_add(Ad_inv(f, A_p), ad(V, Sv)), Sa)  # (16)
    return V, A, wrench_add(momentum(J, A), ad_dual(V, momentum(J, V)))  # (17), own part


@primitive
def newton_euler(model, q, v, a, work, tau):
    """tau = M a + C v + g. `work` holds a record per body: f (12), V (6), A (6), F (6)."""
    A_0 = Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
    for i in range(n_bodies(model)):
        link, row = i * WIDTH, i * WORK
        f, Sv, Sa = joint_frame(model, link, q), joint_twist(model, link, v), joint_twist(model, link, a)  # (14)
        V_p, A_p, p = zero_twist(), A_0, parent_of(model, link)
        if p >= 0:
            V_p, A_p = get_twist(work, p * WORK + 12), get_twist(work, p * WORK + 18)
        V, A, F = outward(f, V_p, A_p, Sv, Sa, inertia_of(model, link))
        put_frame(work, row, f)
        put6(work, row + 12, V)
        put6(work, row + 18, A)
        put6(work, row + 24, F)
    forces_to_torques(model, work, WORK, tau)


@primitive
def forces_to_torques(model, work, width, tau):
    """The backward sweep: F_p += Ad* F_i (17), tau_i = S_i^T F_i (18). Records of `width`: f (12) at 0, F (6) at 24."""
    for i in range(n_bodies(model) - 1, -1, -1):
        link, row = i * WIDTH, i * width
        F = get_wrench(work, row + 24)
        first, end = dofs_of(model, link)
        for k in range(first, end):
            tau[k] = pair(screw_of(model, link, k - first), F)
        p = parent_of(model, link)
        if p >= 0:
            up = p * width + 24
            put6(work, up, wrench_add(get_wrench(work, up), Ad_dual(get_frame(work, row), F)))


@primitive
def coriolis_wrench(J, V, Vr, form):
    """Cbar(V) Vr, FORMULAS: Ploen's [w]I + I[w], or the Christoffel-consistent [theta w], theta = tr(I)/2 1 - I."""
    if form == PLAIN:
        return ad_dual(V, momentum(J, Vr))
    w, wr = V.w, Vr.w
    linear = cross(w, sub3(mul3(J.m, Vr.v), cross(J.h, wr)))
    if form == PLOEN:
        angular = add3(cross(w, sym_mul(J.I, wr)), sym_mul(J.I, cross(w, wr)))
    else:
        trace = J.I[0] + J.I[2] + J.I[5]
        angular = cross(sub3(mul3(0.5 * trace, w), sym_mul(J.I, w)), wr)
    return Wrench(add3(angular, cross(J.h, cross(w, Vr.v))), linear)


@primitive
def outward_reference(f, V_p, Vr_p, A_p, Sv, Sa, Sr):
    """One body outward with a reference velocity: its twist, reference twist and acceleration, FORMULAS section 4."""
    XVr = Ad_inv(f, Vr_p)
    A = twist_add(twist_sub(Ad_inv(f, A_p), ad(Sv, XVr)), Sa)
    return twist_add(Ad_inv(f, V_p), Sv), twist_add(XVr, Sr), A


@primitive
def newton_euler_reference(model, q, v, a, v_ref, f_ext, form, work, tau):
    """tau = M a + C(q, v) v_ref + g - sum_i Jac_i^T f_ext_i. `work`: f (12), V (6), A (6), F (6), Vr (6)."""
    A_0 = Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
    for i in range(n_bodies(model)):
        link, row = i * WIDTH, i * WORK
        f, Sv, Sa = joint_frame(model, link, q), joint_twist(model, link, v), joint_twist(model, link, a)
        V_p, Vr_p, A_p, p = zero_twist(), zero_twist(), A_0, parent_of(model, link)
        if p >= 0:
            up = p * WORK
            V_p, A_p, Vr_p = get_twist(work, up + 12), get_twist(work, up + 18), get_twist(work, up + 30)
        V, Vr, A = outward_reference(f, V_p, Vr_p, A_p, Sv, Sa, joint_twist(model, link, v_ref))
        J = inertia_of(model, link)
        F = wrench_add(momentum(J, A), coriolis_wrench(J, V, Vr, form))
        if f_ext.shape[0] > 0:
            F = wrench_sub(F, get_wrench(f_ext, 6 * i))
        put_frame(work, row, f)
        put6(work, row + 12, V)
        put6(work, row + 18, A)
        put6(work, row + 24, F)
        put6(work, row + 30, Vr)
    forces_to_torques(model, work, WORK, tau)


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def inverse_dynamics_one(model, q, v, a, tau):
    if not (good_configuration(model, q) and good_velocity(model, v) and good_velocity(model, a)):
        raise ValueError
    newton_euler(model, q, v, a, np.empty(n_bodies(model) * WORK), tau)


@kernel("f8[:,::1](f8[::1], f8[:,::1], f8[:,::1], f8[:,::1])")
def inverse_dynamics_many(model, q, v, a):
    tau, work = np.empty(v.shape), np.empty(n_bodies(model) * WORK)
    done = lanes_of(model, q) * LANES
    if done > 0:
        inverse_dynamics_lanes(model, q, v, a, done, tau)
    for b in range(done, q.shape[0]):
        newton_euler(model, q[b], v[b], a[b], work, tau[b])
    return tau


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], i8, f8[::1])")
def inverse_dynamics_reference_one(model, q, v, a, v_ref, form, tau):
    if not (
        good_configuration(model, q)
        and good_velocity(model, v)
        and good_velocity(model, a)
        and good_velocity(model, v_ref)
    ):
        raise ValueError
    newton_euler_reference(model, q, v, a, v_ref, np.empty(0), form, np.empty(n_bodies(model) * WORK), tau)


@kernel("f8[:,::1](f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1], i8)")
def inverse_dynamics_reference_many(model, q, v, a, v_ref, f_ext, form):
    """f_ext: (batch, 6 nbodies), or (0, 6 nbodies) for none."""
    tau, work = np.empty(v.shape), np.empty(n_bodies(model) * WORK)
    none = np.empty(0)
    for b in range(q.shape[0]):
        external = f_ext[b] if f_ext.shape[0] > 0 else none
        newton_euler_reference(model, q[b], v[b], a[b], v_ref[b], external, form, work, tau[b])
    return tau


# --- many states side by side ------------------------------------------------------------------------------------


@primitive
def inverse_dynamics_lanes(model, q, v, a, count, tau):
    """The first `count` states, a multiple of LANES, of a robot whose joints all have one degree of freedom."""
    n = n_bodies(model)
    work, source, sink = np.empty(n * WORK * LANES), np.empty(WORK * LANES), np.empty(WORK * LANES)
    A_0 = Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))
    for start in range(0, count, LANES):
        for i in range(n):
            link, p = i * WIDTH, parent_of(model, i * WIDTH)
            fa, fb = get_frame(model, link + A_FRAME), get_frame(model, link + B_FRAME)
            fc, fd = get_frame(model, link + C_FRAME), vec(model, link + D_SHIFT)
            S, J = screw_of(model, link, 0), inertia_of(model, link)
            if p >= 0:
                copy(source, 0, work, p * WORK + 12, 12)
            for b in range(LANES):
                if p < 0:
                    lane_put6(source, 0, b, zero_twist())
                    lane_put6(source, 6, b, A_0)
                lane_put(source, 12, b, (q[start + b, i], v[start + b, i], a[start + b, i]))
            for b in range(LANES):
                x, xd, xdd = lane_vec(source, 12, b)
                s, c = sin_cos(x)
                f = turned(fa, fb, fc, fd, x, s, c)
                V_p, A_p = lane_twist(source, 0, b), lane_twist(source, 6, b)
                V, A, F = outward(f, V_p, A_p, twist_mul(xd, S), twist_mul(xdd, S), J)
                lane_put(sink, 0, b, f.R[0])
                lane_put(sink, 3, b, f.R[1])
                lane_put(sink, 6, b, f.R[2])
                lane_put(sink, 9, b, f.p)
                lane_put6(sink, 12, b, V)
                lane_put6(sink, 18, b, A)
                lane_put6(sink, 24, b, F)
            copy(work, i * WORK, sink, 0, 30)
        for i in range(n - 1, -1, -1):
            p, S = parent_of(model, i * WIDTH), screw_of(model, i * WIDTH, 0)
            copy(source, 0, work, i * WORK, 30)
            for b in range(LANES):
                R = lane_vec(source, 0, b), lane_vec(source, 3, b), lane_vec(source, 6, b)
                X = lane_twist(source, 24, b)
                F = Wrench(X.w, X.v)
                sink[6 * LANES + b] = pair(S, F)  # (18)
                lane_put6(sink, 0, b, Ad_dual(Frame(R, lane_vec(source, 9, b)), F))
            for b in range(LANES):
                tau[start + b, i] = sink[6 * LANES + b]
            if p >= 0:
                for k in range(6 * LANES):
                    work[(p * WORK + 24) * LANES + k] += sink[k]
