"""Check that Mdot - 2C is skew and that C is a Coriolis matrix, each by two independent computations.

M, C and g are those of `composite_bodies`. They are compared with independent computations: Mdot with the derivative of
the mass matrix on numbers with tangents, M a + C v + g and M a + C v_ref + g with the Newton-Euler recursions, v_ref
being the reference velocity of a law.
"""

import math

import numpy as np

from .algorithms import algorithm, numbers, of_complex, per_body, per_coordinate
from .composite_bodies import MovingInertia, mass_matrix_by_frames, put_frame, terms
from .exponentials import where
from .jit import kernel
from .newton_euler import (
    Motion,
    ReferenceMotion,
    inverse_dynamics,
    inverse_dynamics_reference,
    joint_twist,
)
from .passes import Moving, MovingAxis
from .primitives import primitive
from .screws import Inertia, Pose, Wrench
from .tangents import moving_pose, place_of, tangent
from .tree import gravity_of, inertia_of, joint_frame, n_bodies

# --- the mass matrix in motion -----------------------------------------------------------------------------------


@algorithm(
    "q, v -> M[nv, nv], Mdot[nv, nv]",
    (*map(of_complex, (per_body(Pose), per_body(Inertia), numbers("nv * nv"))),),
)
def mass_matrix_in_motion(model, q, v, frames, inertias, memory, M, Mdot):
    """M(q) and its rate along q' = q hat(v), from the sums of M alone: a moving joint has f_i' = f_i [S_i v_i]."""
    n = v.shape[0]
    rows = memory.reshape((n, n))
    rows[:, :] = 0.0
    for i in range(n_bodies(model)):
        put_frame(model, i, moving_pose(joint_frame(model, i, q), joint_twist(model, i, v)), frames, inertias)
    mass_matrix_by_frames(model, inertias, frames, rows)
    for i in range(n):
        for j in range(n):
            M[i, j], Mdot[i, j] = place_of(rows[i, j]), tangent(rows[i, j])


# --- how far off -------------------------------------------------------------------------------------------------


@primitive
def relative(error, total, size):
    """error / size, 0 where there is no error, infinite where the total of all errors is not finite."""
    fine = (error > 0.0) & (total < np.inf)
    return where(total == 0.0, 0.0, where(fine, error / where(fine, size, 1.0), np.inf))


@primitive
def largest(A):
    """max |A|, by entries."""
    x = 0.0
    for i in range(A.shape[0]):
        for j in range(i + 1):
            x = max(x, max(abs(A[i, j]), abs(A[j, i])))  # folded in traces of symmetric matrices
    return x


@primitive
def fastest(v):
    """max |v|."""
    x = 0.0
    for i in range(v.shape[0]):
        x = max(x, abs(v[i]))
    return x


@kernel("f8(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1])")
def skew_residual(M, Mdot, C, v):
    """max |N + N^T|, N = Mdot - 2C, over max(|Mdot|, 2 |C|, |M| |v|), by entries; infinite where one is not finite."""
    worst = total = 0.0
    for i in range(v.shape[0]):
        for j in range(i + 1):
            error = abs(Mdot[i, j] + Mdot[j, i] - 2.0 * (C[i, j] + C[j, i]))
            worst, total = max(worst, error), total + error
    return relative(worst, total, max(largest(Mdot), 2.0 * largest(C), largest(M) * fastest(v)))


@kernel("f8(f8[:,::1], f8[:,::1])")
def difference(A, B):
    """max |A - B| over max |A|, by entries, of symmetric matrices."""
    worst = total = 0.0
    for i in range(A.shape[0]):
        for j in range(i + 1):
            error = abs(A[i, j] - B[i, j])
            worst, total = max(worst, error), total + error
    return relative(worst, total, largest(A))


@kernel("f8(f8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def force_residual(model, tau, M, C, g, v, a, v_ref):
    """max |tau - (M a + C v_ref + g)| over an upper bound of that force.

    The bound is |M| |a| + (|C| + |M| |v|) |v_ref|, by entries, plus the weight times a length derived from M.
    """
    worst = total = weight = 0.0
    for i in range(v.shape[0]):
        force = g[i]
        for j in range(v.shape[0]):
            force += M[i, j] * a[j] + C[i, j] * v_ref[j]
        error = abs(tau[i] - force)
        worst, total = max(worst, error), total + error
    for i in range(n_bodies(model)):
        weight += inertia_of(model, i).m
    mass, (x, y, z) = largest(M), gravity_of(model)
    weight = math.sqrt((x * x + y * y + z * z) * abs(weight) * mass)
    bound = mass * fastest(a) + (largest(C) + mass * fastest(v)) * fastest(v_ref) + weight
    return relative(worst, total, bound)


@algorithm(
    "q, v, C[nv, nv] -> residual[1]",
    (
        *map(of_complex, (per_body(Pose), per_body(Inertia), numbers("nv * nv"))),
        *(per_body(Motion), per_body(Wrench), numbers("(2 * nv + 3) * nv")),
    ),
)
def skewness_of(model, q, v, C, frames, inertias, moving_rows, motion, wrenches, memory, residual):
    """Residuals of a given C: of Mdot - 2C being skew, and of C v + g against Newton-Euler with v and at rest."""
    n = v.shape[0]
    out, own = memory.reshape((2 * n + 3, n)), C.reshape((n, n))
    M, Mdot, g, tau, zero = out[:n], out[n : 2 * n], out[2 * n], out[2 * n + 1], out[2 * n + 2]
    zero[:] = 0.0
    mass_matrix_in_motion(model, q, v, frames, inertias, moving_rows, M, Mdot)
    inverse_dynamics(model, q, zero, zero, motion, wrenches, g)
    inverse_dynamics(model, q, v, zero, motion, wrenches, tau)
    residual[0] = max(skew_residual(M, Mdot, own, v), force_residual(model, tau, M, own, g, v, zero, v))


@algorithm(
    "q, v, s; form: i8 -> residual[1]",
    (
        *(per_body(Moving), per_coordinate(MovingAxis), per_body(MovingInertia)),
        *map(of_complex, (per_body(Pose), per_body(Inertia), numbers("nv * nv"))),
        *(per_body(Motion), per_body(ReferenceMotion), per_body(Wrench), numbers("(5 * nv + 3) * nv")),
    ),
)
def skewness(
    model, q, v, s, form,
    bodies, axes, composites, frames, inertias, moving_rows, motion, reference_motion, wrenches, memory,
    residual,
):  # fmt: skip
    """The largest of the residuals of

    M, Mdot, and Mdot - 2C skew, against `mass_matrix_in_motion`;
    C v + g and M s + C s + g against the recursions of Newton and Euler, s being any velocity.
    """
    n = v.shape[0]
    out = memory.reshape((5 * n + 3, n))
    M, Mdot, C, M2, Mdot2 = out[:n], out[n : 2 * n], out[2 * n : 3 * n], out[3 * n : 4 * n], out[4 * n : 5 * n]
    g, tau, zero = out[5 * n], out[5 * n + 1], out[5 * n + 2]
    zero[:] = 0.0
    terms(model, q, v, form, bodies, axes, composites, M, Mdot, C, g)
    mass_matrix_in_motion(model, q, v, frames, inertias, moving_rows, M2, Mdot2)
    worst = max(difference(M2, M), skew_residual(M2, Mdot2, C, v))
    Mdot *= 0.5
    worst = max(worst, skew_residual(M2, Mdot2, Mdot, v))
    inverse_dynamics(model, q, v, zero, motion, wrenches, tau)
    worst = max(worst, force_residual(model, tau, M, C, g, v, zero, v))
    inverse_dynamics_reference(model, q, v, s, s, v[:0], form, reference_motion, wrenches, tau)
    residual[0] = max(worst, force_residual(model, tau, M, C, g, v, s, s))
