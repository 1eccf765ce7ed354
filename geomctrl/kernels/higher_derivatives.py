"""Time derivatives of the equations of motion to any order, and second derivatives of inverse dynamics."""

from .algorithms import algorithm, numbers, of_complex, per_body, per_coordinate
from .composite_bodies import coriolis_composite
from .derivatives import (
    MOVING_MEMORY,
    PLACED_MEMORY,
    Body,
    SpatialMotion,
    all_of,
    base_at_rest,
    derivative_rows,
    get_body,
    move,
    place_bodies,
    put_body,
)
from .newton_euler import CHRISTOFFEL
from .passes import Axis, get_axis, inertial_axes, inward, outward, place, put_axis
from .primitives import primitive
from .records import get_inertia, get_twist, get_wrench, put_inertia, put_twist, put_wrench
from .screws import (
    Ad,
    Inertia,
    Pose,
    Twist,
    Wrench,
    ad,
    ad_dual,
    add33,
    apply_inertia,
    cross,
    inertia_add,
    inertia_to,
    mul3,
    pair,
    transpose,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_mul,
    wrench_sub,
    zero_twist,
    zero_wrench,
)
from .tangents import moving, moving_twist, moving_vector, tangent
from .tree import armature_of, dofs_of, gravity_of, inertia_of, n_bodies, n_v, parent_of, screw_of

# --- time derivatives ------------------------------------------------------------------------------------------------
#
# Time derivatives of the equations of motion to any order: tau, tau', tau'', ... from q and v, v', v'', ... in O(n).
#
# Flatness-based control of robots with elastic joints needs them (Mueller 2018 section 6.3). In inertial axes about a
# fixed point everything fixed to body i moves with its twist, and the recursion is the product rule:
#
#     S' = ad_V S,      V_i = V_p + S v,      J' = -ad_V^T J - J ad_V,      F_i = (J V)' - J (0, g) + sum_children F_c,
#     tau = S^T F,
#
# All quantities are power series in t: x_k is the k-th time derivative of x over k!, and a product is a convolution.
# The series of a body or coordinate is stored in `terms` consecutive records.


@primitive
def inertia_rate(J, V):
    """J' = -ad_V^T J - J ad_V of an inertia that moves with the twist V, the derivative of Ad_{T^-1}^T J Ad_{T^-1}."""
    B, p = coriolis_composite(J, V, CHRISTOFFEL, 0.0)
    I = add33(B, transpose(B))
    return Inertia(0.0, p, (I[0][0], I[0][1], I[1][1], I[0][2], I[1][2], I[2][2]))


@primitive
def inertia_mul(s, J):
    I = J.I
    return Inertia(s * J.m, mul3(s, J.h), (s * I[0], s * I[1], s * I[2], s * I[3], s * I[4], s * I[5]))


@outward(Pose)
def move_series(model, i, parent, q, v, terms, S, V, J, F):
    """The series of the joint's screws, of the body's twist and inertia, and of the wrench of its own motion.

    F holds the wrenches of a body by order, as `transmit_series` reads them.
    """
    T = place(model, i, parent, q)
    screw_and_twist_series(model, i, T, v, terms, S, V)
    put_inertia(J, 0, inertia_to(T, inertia_of(model, i)))
    first = i * terms
    for k in range(1, terms):
        dJ = inertia_rate(get_inertia(J, k - 1), get_twist(V, first))
        for j in range(1, k):
            dJ = inertia_add(dJ, inertia_rate(get_inertia(J, k - 1 - j), get_twist(V, first + j)))
        put_inertia(J, k, inertia_mul(1.0 / k, dJ))
    gravity = gravity_of(model)
    for k in range(terms - 1):
        P = zero_wrench()  # the series of J V at k + 1
        for j in range(k + 2):
            P = wrench_add(P, apply_inertia(get_inertia(J, k + 1 - j), get_twist(V, first + j)))
        Jk = get_inertia(J, k)
        weight = Wrench(cross(Jk.h, gravity), mul3(Jk.m, gravity))
        put_wrench(F, k * n_bodies(model) + i, wrench_sub(wrench_mul(k + 1.0, P), weight))
    return T


@primitive
def screw_and_twist_series(model, i, T, v, terms, S, V):
    """(k + 1) S_{k+1} = sum_j ad_{V_j} S_{k-j} and V_k = V_p,k + sum_j S_j v_{k-j} of body i at T."""
    first, end = dofs_of(model, i)
    n, p, start = n_v(model), parent_of(model, i), i * terms
    for c in range(first, end):
        put_twist(S, c * terms, Ad(T, screw_of(model, i, c - first)))
    for k in range(terms):
        X = zero_twist()
        if p >= 0:
            X = get_twist(V, p * terms + k)
        for c in range(first, end):
            if k > 0:
                dS = zero_twist()
                for j in range(k):
                    dS = twist_add(dS, ad(get_twist(V, start + j), get_twist(S, c * terms + k - 1 - j)))
                put_twist(S, c * terms + k, twist_mul(1.0 / k, dS))
            for j in range(k + 1):
                X = twist_add(X, twist_mul(v[j * n + c], get_twist(S, c * terms + k - j)))
        put_twist(V, start + k, X)


@inward(Wrench)
def transmit_series(model, i, F, k, terms, v, S, wrenches, tau):
    """tau_k = sum_j S_{k-j} . F_j + armature v'_k, after the wrenches of lower order have been summed."""
    first, end = dofs_of(model, i)
    for c in range(first, end):
        x = pair(get_twist(S, c * terms), F) + armature_of(model, i) * (k + 1) * v[(k + 1) * n_v(model) + c]
        for j in range(k):
            x += pair(get_twist(S, c * terms + k - j), get_wrench(wrenches, j * n_bodies(model) + i))
        tau[k, c] = x
    return F


@algorithm(
    "q, rates[(orders + 1) * nv]; orders: i8 -> tau[orders, nv]",
    (
        per_body(Pose),
        numbers("(orders + 1) * nv"),
        *(numbers("6 * (orders + 1) * nv"), numbers("6 * (orders + 1) * nb"), numbers("10 * (orders + 1)")),
        numbers("6 * orders * nb"),
    ),
)
def inverse_dynamics_rates(model, q, rates, orders, frames, v, S, V, J, F, tau):
    """tau and its time derivatives. `rates` holds the velocity and its derivatives, up to one order more."""
    n, m, terms = n_v(model), 6 * n_bodies(model), orders + 1
    factorial = 1.0
    for k in range(terms):
        factorial *= max(k, 1)
        for j in range(n):
            v[k * n + j] = rates[k * n + j] / factorial
    move_series(model, inertial_axes(model, q), frames, q, v, terms, S, V, J, F)
    for k in range(orders):
        transmit_series(model, F[k * m : (k + 1) * m], k, terms, v, S, F, tau)
    factorial = 1.0
    for k in range(orders):
        factorial *= max(k, 1)
        for j in range(n):
            tau[k, j] *= factorial


# --- second derivatives ----------------------------------------------------------------------------------------------
#
# Second derivatives of inverse dynamics: the passes of `derivatives` on complex numbers, along a direction.
#
# Along (q exp(S x t), v + y t, a + z t) body i moves with the twist W_i = W_p + S x. Quantities fixed to it have the
# rates ad_W S (screws), -ad_W^T J - J ad_W (inertias) and -ad_W^T F (wrenches). With these rates as `tangents` of the
# records of `place_bodies`, `move` and `derivative_rows` compute the rates of the derivatives, exact to round-off. One
# direction costs O(n depth), all directions O(n^2 depth), which on a chain is the size of the tensor.


# --- along a direction -------------------------------------------------------------------------------------------


@primitive
def moving_body(x, W):
    """A `Body` displaced with the twist W."""
    J, F = x.J, x.F
    dJ, dF, I = inertia_rate(J, W), ad_dual(W, F), J.I
    dI = dJ.I
    return Body(
        Inertia(
            moving(J.m, 0.0),
            moving_vector(J.h, dJ.h),
            (
                *(moving(I[0], dI[0]), moving(I[1], dI[1]), moving(I[2], dI[2])),
                *(moving(I[3], dI[3]), moving(I[4], dI[4]), moving(I[5], dI[5])),
            ),
        ),
        Wrench(moving_vector(F.m, dF.m), moving_vector(F.f, dF.f)),
    )


@outward(Twist)
def displace(model, i, W, x, axes, bodies, moving_axes, moving_bodies):
    """Return W_i; store screws, inertia and wrench of body i with their tangents."""
    first, end = dofs_of(model, i)
    for k in range(first, end):
        W = twist_add(W, twist_mul(x[k], get_axis(axes, k).S))
    for k in range(first, end):
        axis = get_axis(axes, k)
        put_axis(moving_axes, k, Axis(moving_twist(axis.S, ad(W, axis.S)), axis.ancestor))
    put_body(moving_bodies, i, moving_body(get_body(bodies, i), W))
    return W


@primitive
def moving_base(model):
    x, zero = base_at_rest(model), zero_twist()
    return SpatialMotion(moving_twist(x.V, zero), moving_twist(x.A, zero))


@primitive
def along(model, v, a, x, y, z, placed, work, out):
    """The rates of dtau/dq, dtau/dv and M along one direction, from the records of `place_bodies`."""
    axes, bodies = placed
    displacements, vc, ac, axes_c, bodies_c, motions, variations, subtrees = work
    out[:] = 0.0
    for k in range(n_v(model)):
        vc[k], ac[k] = moving(v[k], y[k]), moving(a[k], z[k])
    displace(model, zero_twist(), displacements, x, axes, bodies, axes_c, bodies_c)
    move(model, moving_base(model), motions, vc, ac, axes_c, bodies_c, variations, subtrees)
    n = n_v(model)
    derivative_rows(model, subtrees, axes_c, variations, tangent, out[:n], out[n : 2 * n], out[2 * n :])


MEMORY = (
    *(*PLACED_MEMORY, per_body(Twist)),
    *(of_complex(numbers("nv")), of_complex(numbers("nv"))),
    *(of_complex(per_coordinate(Axis)), of_complex(per_body(Body))),
    *(of_complex(m) for m in MOVING_MEMORY),
)


@algorithm("q, v, a, dq, dv, da, f_ext? -> out[3 nv, nv]", MEMORY)
def derivatives_along(
    model, q, v, a, dq, dv, da, f_ext,
    frames, axes, bodies, displacements, vc, ac, axes_c, bodies_c, motions, variations, subtrees, out
):  # fmt: skip
    """The rates of dtau/dq, dtau/dv and M, nv rows each, along (q exp(S dq t), v + dv t, a + da t)."""
    place_bodies(model, inertial_axes(model, q), frames, q, f_ext, axes, bodies)
    work = displacements, vc, ac, axes_c, bodies_c, motions, variations, subtrees
    along(model, v, a, dq, dv, da, (axes, bodies), work, out)


@algorithm(
    "q, v, a, f_ext? -> out[nv, 4 nv, nv]",
    (*MEMORY, *MOVING_MEMORY, numbers("nv"), numbers("nv"), numbers("3 * nv * nv")),
)
def second_derivatives(
    model, q, v, a, f_ext,
    frames, axes, bodies, displacements, vc, ac, axes_c, bodies_c, motions_c, variations_c, subtrees_c,
    motions, variations, subtrees, unit, zero, memory, out,
):  # fmt: skip
    """Per coordinate k, the rates along q_k of dtau/dq, dtau/dv and M, then that of dtau/dv along v_k, nv rows each.

    dtau/dv is linear in v, so its rate along v_k is its value at v = e_k. The rate of dtau/dq along v is that of
    dtau/dv along q with exchanged indices.
    """
    place_bodies(model, inertial_axes(model, q), frames, q, f_ext, axes, bodies)
    work = displacements, vc, ac, axes_c, bodies_c, motions_c, variations_c, subtrees_c
    n = n_v(model)
    block = memory.reshape((3 * n, n))
    block[:], unit[:], zero[:] = 0.0, 0.0, 0.0
    for k in range(n):
        unit[k] = 1.0
        along(model, v, a, unit, zero, zero, (axes, bodies), work, out[k, : 3 * n])
        move(model, base_at_rest(model), motions, unit, zero, axes, bodies, variations, subtrees)
        derivative_rows(model, subtrees, axes, variations, all_of, block[:n], block[n : 2 * n], block[2 * n :])
        for i in range(n):
            for j in range(n):
                out[k, 3 * n + i, j] = block[n + i, j]
        unit[k] = 0.0
