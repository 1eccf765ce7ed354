"""Articulated bodies: M^-1 without forming M, the inertias and biases behind O(n) forward dynamics, and what they give.

With A_i the acceleration of body i, gravity being the base's acceleration -g, the wrench that body i and all beyond it
take at joint i is

    F_i = IA_i A_i + pA_i,      IA_i = J_i + sum_children (IA_c - U_c D_c^-1 U_c^T),   U = IA S,  D = S^T U

(Featherstone 1983, the O(n) method that Mueller 2018 section 4 builds on). A joint with several degrees of freedom is
eliminated column by column. The sweeps run in inertial axes about the first body's origin. M^-1 is applied to LANES
columns side by side, so that LLVM turns the innermost loops into vector instructions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import checked
from .dynamics import REFUSED, mass_matrix_rate
from .errors import ArgumentError, ModelError
from .jit import kernel, primitive
from .kinematics import Representation, jacobian, jacobian_rate
from .packed import WIDTH, dofs_of, good_configuration, good_velocity, inertia_of, n_bodies, n_v, parent_of, root_origin
from .recursions import (
    BODY,
    D_,
    DOF,
    NEXT,
    S_,
    SUM,
    T_,
    U_,
    V_,
    articulated_mul,
    place,
    place_screws,
    project_out,
    put_rigid,
)
from .robot import Robot, as_batch, term
from .screw import (
    Ad,
    Ad_dual,
    Ad_inv_dual,
    Twist,
    accumulate,
    ad,
    ad_dual,
    get_frame,
    get_twist,
    get_wrench,
    inertia_to,
    momentum,
    pair,
    put6,
    twist_add,
    twist_mul,
    wrench_add,
    wrench_mul,
    wrench_sub,
    zero_twist,
)

BIAS = SUM + 21  # pA (6) in a body's record, behind IA
LANES = 16
# rows of lanes, unsigned: a signed index may count from the end, and that question is in the way of vector instructions
R1, R2, R3, R4, R5, R6, R7 = (np.uint64(k * LANES) for k in range(1, 8))


# --- M^-1 -------------------------------------------------------------------------------------------------------


@primitive
def articulate(model, q, body, dof):
    """IA of every body after its joint gave way (21 numbers at SUM); S, U and D per coordinate. False unless M > 0."""
    n = n_bodies(model)
    origin = root_origin(model, q)
    for i in range(n):
        T = place(model, i, q, origin, body)
        place_screws(model, i, T, dof)
        put_rigid(body, i * BODY + SUM, inertia_to(T, inertia_of(model, i * WIDTH)))
    for i in range(n - 1, -1, -1):
        row = i * BODY + SUM
        first, end = dofs_of(model, i * WIDTH)
        for k in range(end - 1, first - 1, -1):
            S = get_twist(dof, k * DOF + S_)
            U = articulated_mul(body, row, S)
            D = pair(S, U)
            if not D > 0.0:
                return False
            project_out(body, row, U, D)
            put6(dof, k * DOF + U_, U)
            dof[k * DOF + D_] = D
        p = parent_of(model, i * WIDTH)
        if p >= 0:
            accumulate(body, p * BODY + SUM, body, row, 21)
    return True


@primitive
def solve_lanes(dof, n, W):
    """M^-1 applied to LANES columns, from S, U and D of the n coordinates.

    A coordinate's record in W has 7 LANES numbers: a wrench on the way in, an acceleration on the way out (6), then the
    column's entry, in place. One record holds both, and a coordinate counts as a body of its own: offsets within the
    innermost loops are then constants, and LLVM needs no proof that arrays are apart.
    """
    for k in range(n):
        for l in range(6 * LANES):
            W[k * 7 * LANES + l] = 0.0
    for k in range(n - 1, -1, -1):
        S, U = get_twist(dof, k * DOF + S_), get_wrench(dof, k * DOF + U_)
        w, v, m, f = S.w, S.v, U.m, U.f
        one_over_D = 1.0 / dof[k * DOF + D_]
        row = np.uint64(k) * R7
        for lane in range(R1):
            l = row + lane
            m1, m2, m3, f1, f2, f3 = lane6(W, l)
            u = W[l + R6] - (w[0] * m1 + w[1] * m2 + w[2] * m3 + v[0] * f1 + v[1] * f2 + v[2] * f3)
            u *= one_over_D
            W[l + R6] = u
            put_lane6(W, l, m1 + u * m[0], m2 + u * m[1], m3 + u * m[2], f1 + u * f[0], f2 + u * f[1], f3 + u * f[2])
        p = int(dof[k * DOF + NEXT])
        if p >= 0:
            up = np.uint64(p) * R7
            for l in range(R6):
                W[up + l] += W[row + l]
    for k in range(n):
        S, U = get_twist(dof, k * DOF + S_), get_wrench(dof, k * DOF + U_)
        w, v, m, f = S.w, S.v, U.m, U.f
        one_over_D = 1.0 / dof[k * DOF + D_]
        row, p = np.uint64(k) * R7, int(dof[k * DOF + NEXT])
        if p >= 0:
            up = np.uint64(p) * R7
            for l in range(R6):
                W[row + l] = W[up + l]
        else:
            for l in range(R6):
                W[row + l] = 0.0
        for lane in range(R1):
            l = row + lane
            w1, w2, w3, v1, v2, v3 = lane6(W, l)
            y = m[0] * w1 + m[1] * w2 + m[2] * w3 + f[0] * v1 + f[1] * v2 + f[2] * v3
            y = W[l + R6] - one_over_D * y
            W[l + R6] = y
            put_lane6(W, l, w1 + y * w[0], w2 + y * w[1], w3 + y * w[2], v1 + y * v[0], v2 + y * v[1], v3 + y * v[2])


@primitive
def lane6(W, l):
    return W[l], W[l + R1], W[l + R2], W[l + R3], W[l + R4], W[l + R5]


@primitive
def put_lane6(W, l, a, b, c, d, e, f):
    W[l] = a
    W[l + R1] = b
    W[l + R2] = c
    W[l + R3] = d
    W[l + R4] = e
    W[l + R5] = f


@primitive
def solve_columns(dof, scale, B, W, out):
    """out = scale M^-1 B column by column, B and out (nv, m), out may be B. `W`: 7 LANES numbers a coordinate."""
    n, m = B.shape
    for start in range(0, m, LANES):
        count = min(LANES, m - start)
        for k in range(n):
            entry = (7 * k + 6) * LANES
            for l in range(count):
                W[entry + l] = scale * B[k, start + l]
            for l in range(count, LANES):
                W[entry + l] = 0.0
        solve_lanes(dof, n, W)
        for k in range(n):
            entry = (7 * k + 6) * LANES
            for l in range(count):
                out[k, start + l] = W[entry + l]


@primitive
def invert(dof, W, out):
    """out = M^-1 (nv, nv), exactly symmetric."""
    n = out.shape[0]
    for i in range(n):
        for j in range(n):
            out[i, j] = 0.0
        out[i, i] = 1.0
    solve_columns(dof, 1.0, out, W, out)
    for i in range(n):
        for j in range(i):
            out[j, i] = out[i, j] = 0.5 * (out[i, j] + out[j, i])


@kernel("f8[:,::1](f8[::1], f8[::1])")
def mass_matrix_inverse_one(model, q):
    if not good_configuration(model, q):
        raise ValueError
    n, m = n_bodies(model), n_v(model)
    body, dof, out = np.empty(n * BODY), np.empty(m * DOF), np.empty((m, m))
    if not articulate(model, q, body, dof):
        raise ValueError
    invert(dof, np.empty(m * 7 * LANES), out)
    return out


@kernel("void(f8[::1], f8[::1], f8[::1], f8[::1])")
def mass_matrix_solve_one(model, q, b, x):
    if not (good_configuration(model, q) and good_velocity(model, b)):
        raise ValueError
    m = n_v(model)
    body, dof = np.empty(n_bodies(model) * BODY), np.empty(m * DOF)
    if not articulate(model, q, body, dof):
        raise ValueError
    solve_columns(dof, 1.0, b.reshape((m, 1)), np.empty(m * 7 * LANES), x.reshape((m, 1)))


@kernel("Tuple((f8[:,:,::1], i8))(f8[::1], f8[:,::1], f8[:,:,::1], b1)")
def mass_matrix_solve_many(model, q, B, inverse):
    """(M^-1 B, number of the first state whose M is not positive, or -1); with `inverse` M^-1, B being its size."""
    n, m = n_bodies(model), n_v(model)
    body, dof, W = np.empty(n * BODY), np.empty(m * DOF), np.empty(m * 7 * LANES)
    out = np.empty(B.shape)
    for b in range(q.shape[0]):
        if not articulate(model, q[b], body, dof):
            return out, b
        if inverse:
            invert(dof, W, out[b])
        else:
            solve_columns(dof, 1.0, B[b], W, out[b])
    return out, -1


@primitive
def articulated_biases(model, v, tau, f_ext, body, dof):
    """pA of every body (BIAS in its record), the part of F_i that its own acceleration A_i does not make."""
    n = n_bodies(model)
    for i in range(n):
        link, row = i * WIDTH, i * BODY
        T, p = get_frame(body, row + T_), parent_of(model, link)
        first, end = dofs_of(model, link)
        V = get_twist(body, p * BODY + V_) if p >= 0 else zero_twist()
        for k in range(first, end):
            V = twist_add(V, twist_mul(v[k], get_twist(dof, k * DOF + S_)))
        J = inertia_to(T, inertia_of(model, link))
        F = ad_dual(V, momentum(J, V))
        if f_ext.shape[0] > 0:
            F = wrench_sub(F, Ad_dual(T, get_wrench(f_ext, 6 * i)))
        put6(body, row + V_, V)
        put6(body, row + BIAS, F)
    for i in range(n - 1, -1, -1):
        link, row, up = i * WIDTH, i * BODY, parent_of(model, i * WIDTH)
        if up < 0:
            continue
        first, end = dofs_of(model, link)
        V, Sv = get_twist(body, row + V_), zero_twist()
        for k in range(first, end):
            Sv = twist_add(Sv, twist_mul(v[k], get_twist(dof, k * DOF + S_)))
        c = ad(V, Sv)
        p = wrench_add(get_wrench(body, row + BIAS), articulated_mul(body, row + SUM, c))
        for k in range(end - 1, first - 1, -1):
            u = tau[k] - pair(get_twist(dof, k * DOF + S_), p)
            p = wrench_add(p, wrench_mul(u / dof[k * DOF + D_], get_wrench(dof, k * DOF + U_)))
        put6(body, up * BODY + BIAS, wrench_add(get_wrench(body, up * BODY + BIAS), p))


@primitive
def whole_mul(body, row, dof, first, end, X):
    """IA X, with what the joint's elimination took away put back."""
    F = articulated_mul(body, row + SUM, X)
    for k in range(first, end):
        U = get_wrench(dof, k * DOF + U_)
        F = wrench_add(F, wrench_mul(pair(X, U) / dof[k * DOF + D_], U))
    return F


@primitive
def unit_twist(e):
    return Twist((1.0 * (e == 0), 1.0 * (e == 1), 1.0 * (e == 2)), (1.0 * (e == 3), 1.0 * (e == 4), 1.0 * (e == 5)))


@primitive
def put_articulated(model, i, body, dof, out):
    T = get_frame(body, i * BODY + T_)
    first, end = dofs_of(model, i * WIDTH)
    for e in range(6):
        F = Ad_inv_dual(T, whole_mul(body, i * BODY, dof, first, end, Ad(T, unit_twist(e))))
        put6(out, 6 * e, F)
    put6(out, 36, Ad_inv_dual(T, get_wrench(body, i * BODY + BIAS)))


@kernel("Tuple((f8[:,:,::1], i8))(f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], f8[:,::1])")
def articulated_bodies_many(model, q, v, tau, f_ext):
    """Per state and body IA, row by row, and pA in its frame; and the first state whose M is not positive, or -1."""
    n, m = n_bodies(model), n_v(model)
    body, dof = np.empty(n * BODY), np.empty(m * DOF)
    out, none = np.empty((q.shape[0], n, 42)), np.empty(0)
    for b in range(q.shape[0]):
        if not articulate(model, q[b], body, dof):
            return out, b
        articulated_biases(model, v[b], tau[b], f_ext[b] if f_ext.shape[0] > 0 else none, body, dof)
        for i in range(n):
            put_articulated(model, i, body, dof, out[b, i])
    return out, -1


# --- public ----------------------------------------------------------------------------------------------------


def not_positive(robot: Robot, q: np.ndarray) -> ModelError:
    return ModelError(f"robot {robot.name!r}: the mass matrix is not positive definite at q = {q}")


@term
def mass_matrix_inverse(robot: Robot, q: ArrayLike) -> np.ndarray:
    """M(q)^-1 (..., nv, nv), exactly symmetric, without forming M, O(n^2), by articulated bodies (module docstring).

    Raises ModelError where the mass matrix is not positive definite.
    """
    try:
        return mass_matrix_inverse_one(robot._model, q)
    except REFUSED:
        lead, (q,) = as_batch(robot, q=q)
    out, singular = mass_matrix_solve_many(robot._model, q, np.empty((len(q), robot.nv, robot.nv)), True)
    if singular >= 0:
        raise not_positive(robot, q[singular])
    return out.reshape(*lead, robot.nv, robot.nv)


@term
def mass_matrix_solve(robot: Robot, q: ArrayLike, b: ArrayLike) -> np.ndarray:
    """M(q)^-1 b without forming M, O(n) a column: the accelerations that forces b (..., nv) cause from rest.

    b may hold columns, (..., nv, m), with the leading axes of q. Raises ModelError where M is not positive definite.
    """
    try:
        if np.ndim(b) == 1:
            x = np.empty(robot.nv)
            mass_matrix_solve_one(robot._model, q, b, x)
            return x
    except REFUSED:
        pass
    lead, (q,) = as_batch(robot, q=q)
    b = checked("b", b, ())
    columns = b.ndim == len(lead) + 2
    b = checked("b", b, (robot.nv, b.shape[-1]) if columns else (robot.nv,))
    if b.shape[: b.ndim - 1 - columns] != lead:
        raise ArgumentError(f"b: expected the leading axes of q, {lead}, then nv = {robot.nv}, got shape {b.shape}")
    flat = b.reshape(len(q), robot.nv, b.shape[-1] if columns else 1)
    out, singular = mass_matrix_solve_many(robot._model, q, flat, False)
    if singular >= 0:
        raise not_positive(robot, q[singular])
    return out.reshape(b.shape)


class Articulated(NamedTuple):
    """Articulated inertias (..., nbodies, 6, 6) and biases (..., nbodies, 6), each in its body's frame."""

    inertia: np.ndarray
    bias: np.ndarray


@term
def articulated_bodies(
    robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: ArrayLike | None = None
) -> Articulated:
    """IA_i and pA_i with F_i = IA_i A_i + pA_i: what body i and all that hangs on it looks like from joint i.

    F_i is the wrench that joint i passes on, A_i the body's acceleration with gravity as the base's, -g, both in the
    body's frame; the joints beyond i are driven by tau (..., nv), the bodies by f_ext (..., nbodies, 6). IA_i, pA_i
    leave out joint i itself: with it locked or cut they stay what they are (Featherstone 1983).
    Raises ModelError where the mass matrix is not positive definite.
    """
    n = robot.nbodies
    if f_ext is None:
        lead, (q, v, tau) = as_batch(robot, q=q, v=v, tau=tau)
        f_ext = np.empty((0, 6 * n))
    else:
        lead, (q, v, tau, f_ext) = as_batch(robot, q=q, v=v, tau=tau, f_ext=f_ext)
        f_ext = f_ext.reshape(-1, 6 * n)
    out, singular = articulated_bodies_many(robot._model, q, v, tau, f_ext)
    if singular >= 0:
        raise not_positive(robot, q[singular])
    out = out.reshape(*lead, n, 7, 6)
    IA = out[..., :6, :]
    return Articulated(0.5 * (IA + IA.swapaxes(-1, -2)), out[..., 6, :].copy())


# --- operational space -------------------------------------------------------------------------------------------


@term
def operational_mobility(robot: Robot, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Jac M^-1 Jac^T (..., 6, 6): the frame's acceleration per wrench on it, O(n); singular below six freedoms.

    Khatib 1987; `representation` as for `jacobian`.
    """
    Jac = jacobian(robot, q, frame, representation)
    return Jac @ mass_matrix_solve(robot, q, Jac.swapaxes(-1, -2))


@term
def operational_mobility_rate(
    robot: Robot, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """The derivative (..., 6, 6) of `operational_mobility` along the motion v; v = e_k: by coordinate k."""
    Jac, rate = jacobian(robot, q, frame, representation), jacobian_rate(robot, q, v, frame, representation)
    X = mass_matrix_solve(robot, q, Jac.swapaxes(-1, -2))
    half = rate @ X
    return half + half.swapaxes(-1, -2) - X.swapaxes(-1, -2) @ mass_matrix_rate(robot, q, v) @ X


@term
def operational_inertia(robot: Robot, q: ArrayLike, frame: str, representation: Representation = "body") -> np.ndarray:
    """Lambda = (Jac M^-1 Jac^T)^-1 (..., 6, 6): the wrench on the frame per acceleration, O(n) (Khatib 1987).

    Raises ModelError where the frame can not move in all six directions.
    """
    return _inverse_mobility(robot, operational_mobility(robot, q, frame, representation), frame)


@term
def operational_inertia_rate(
    robot: Robot, q: ArrayLike, v: ArrayLike, frame: str, representation: Representation = "body"
) -> np.ndarray:
    """The derivative (..., 6, 6) of `operational_inertia` along the motion v: -Lambda (Lambda^-1)' Lambda."""
    L = operational_inertia(robot, q, frame, representation)
    return -L @ operational_mobility_rate(robot, q, v, frame, representation) @ L


def _inverse_mobility(robot: Robot, mobility: np.ndarray, frame: str) -> np.ndarray:
    """Inverse of symmetric matrices, scaled so that units do not decide what is singular."""
    diagonal = np.diagonal(mobility, axis1=-2, axis2=-1)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(mobility * scale[..., :, None] * scale[..., None, :])
    if not (values[..., 0] > 1e-12 * values[..., -1]).all():
        raise ModelError(
            f"robot {robot.name!r}: frame {frame!r} can not move in all six directions here, so it has no operational"
            " inertia: use operational_mobility"
        )
    inverse = (vectors / values[..., None, :]) @ vectors.swapaxes(-1, -2)
    return inverse * scale[..., :, None] * scale[..., None, :]
