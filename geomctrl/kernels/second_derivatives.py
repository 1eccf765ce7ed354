"""Second derivatives of inverse dynamics: the passes of `derivatives` on complex numbers, along a direction.

A state that moves along (q exp(S x t), v + y t, a + z t) displaces body i with the twist W_i = W_p + S x, and all that
is fixed to it: a screw S at the rate ad_W S, an inertia at -ad_W^T J - J ad_W, a wrench at -ad_W^T F. With these rates
as `tangents` of what `place_bodies` left, `move` and `derivative_rows` give the rates of the derivatives, exact to
round-off. A direction costs O(n depth), all of them O(n^2 depth), a tensor's own size on a chain.
"""

from .algorithms import algorithm, numbers, of_complex, per_body, per_coordinate
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
from .passes import Axis, get_axis, inertial_axes, outward, put_axis
from .primitives import primitive
from .screws import Inertia, Twist, Wrench, ad, ad_dual, twist_add, twist_mul, zero_twist
from .tangents import moving, moving_twist, moving_vector, tangent
from .time_derivatives import inertia_rate
from .tree import dofs_of, n_v

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
    """W_i, and what is fixed to body i with its tangent."""
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
    """The rates of dtau/dq, dtau/dv and M along one direction, from what `place_bodies` placed."""
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

    dtau/dv is linear in v: its rate along v_k is what it is at v = e_k. What is left, the rate of dtau/dq along v, is
    that of dtau/dv along q with its indices exchanged.
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
