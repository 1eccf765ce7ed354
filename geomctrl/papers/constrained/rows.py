"""The rows of constraints, and their order of elimination.

Mueller and Terze 2013 sections 5.1 and 5.2 for ball joints, (38) and (43); the other lower pairs add perpendicular
axes or drop directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from geomctrl.arguments import shown
from geomctrl.errors import ArgumentError, ModelError, NameNotFoundError
from geomctrl.kernels.maximal import ALONG, AXES, D_A, D_B, DATA, DISTANCE, LENGTH, MEET, R_A, R_B, USER
from geomctrl.lie import se3

from .joints import LOWER_PAIRS, MIN_DISTANCE, WORLD, Constraint, direction, point


class RowTable(NamedTuple):
    """The table that `kernels.maximal` reads, with rows in the order of elimination."""

    index: np.ndarray  # (m, 3): kind, body a, body b
    data: np.ndarray  # (m, DATA): points and directions
    bodies: np.ndarray  # (m, w): bodies of a row, padded with the world
    owner: np.ndarray  # (m,): the constraint a row belongs to
    users: list  # (constraint, its rows, its bodies) for every holonomic one
    skyline: tuple  # (pairs, first, start) of `factorise`


def set_up_rows(names: Sequence[str], reference: np.ndarray, constraints: Sequence[Constraint]) -> RowTable:
    """The rows of constraints between the bodies `names`, whose reference poses are (n, 4, 4)."""
    n = len(names)
    number = {name: i for i, name in enumerate((*names, WORLD))}
    for c in constraints:
        for name in c.bodies:
            if name not in number:
                listed = ", ".join(map(repr, names[:12]))
                raise NameNotFoundError(f"constraint {c.name!r}: no body named {name!r}; known: {listed}, 'world'")
    attached = [tuple(number[name] for name in c.bodies) for c in constraints]
    width = max([2, *map(len, attached)])
    index, data, bodies, owner, users = [], [], [], [], []
    for k in _elimination_order(attached, n):
        c, numbers = constraints[k], attached[k]
        padded = [*numbers, *[n] * (width - len(numbers))]
        if c.kind == "holonomic":
            count = check_user(c, reference, numbers)
            users.append((k, slice(len(index), len(index) + count), list(numbers)))
            rows = [(USER, np.zeros(DATA))] * count
        else:
            rows = _lower_pair(c, reference, *numbers)
        for kind, values in rows:
            index.append((kind, *padded[:2]))
            data.append(values)
            bodies.append(padded)
            owner.append(k)
    of_rows = np.array(bodies, dtype=np.int64).reshape(-1, width)
    return RowTable(
        np.array(index, dtype=np.int64).reshape(-1, 3),
        np.array(data, dtype=float).reshape(-1, DATA),
        of_rows,
        np.array(owner, dtype=np.int64),
        users,
        _skyline(of_rows, n),
    )


def _lower_pair(c, reference, a, b):
    """[(kind, data)] of a constraint from its points, axes and the reference poses."""
    label = f"constraint {c.name!r}"
    if b == len(reference) or a == b:
        raise ModelError(f"{label}: b must be a body other than a, got {c.bodies!r}")
    poses = np.concatenate((reference, np.eye(4)[None]))
    A, B = poses[a], poses[b]
    data = np.zeros(DATA)
    data[R_A:R_B] = ra = point(f"{label}: point", c.point)
    in_b = B[:3, :3].T @ (A[:3, :3] @ ra + A[:3, 3] - B[:3, 3])
    data[R_B:D_A] = rb = in_b if c.point_b is None else point(f"{label}: point_b", c.point_b)
    if c.kind == "distance":
        s = B[:3, :3] @ rb + B[:3, 3] - A[:3, :3] @ ra - A[:3, 3]
        length = np.linalg.norm(s) if c.length is None else float(c.length)
        if length <= MIN_DISTANCE:
            raise ModelError(
                f"{label}: length: expected more than 0 [m], got {length}; points that coincide are spherical"
            )
        data[LENGTH] = length
        return [(DISTANCE, data)]
    offsets, perpendicular = LOWER_PAIRS[c.kind]
    z = (0.0, 0.0, 1.0) if c.axis is None else c.axis
    F_a = _frame_with_z(direction(f"{label}: axis", z), np.eye(3))
    F_b = B[:3, :3].T @ A[:3, :3] @ F_a
    if c.axis_b is not None:
        F_b = _frame_with_z(direction(f"{label}: axis_b", c.axis_b), F_b)
    rows = []
    # Three offsets are in inertial axes, as in (38), (43): in a body's axes the motion would be the same but not the
    # drift (the paper's pendulum: joint 2 loses 1.9e-5 instead of 7.2e-6 m in the first second).
    for i in offsets:
        rows.append((MEET if len(offsets) == 3 else ALONG, data.copy()))
        rows[-1][1][D_A:D_B] = np.eye(3)[i] if len(offsets) == 3 else F_a[:, i]
    for i, j in perpendicular:
        rows.append((AXES, data.copy()))
        rows[-1][1][D_A:D_B], rows[-1][1][D_B:LENGTH] = F_a[:, i], F_b[:, j]
    return rows


def _elimination_order(attached, n):
    """The order in which constraints that share a body are close together (reverse Cuthill-McKee)."""
    count = len(attached)
    if not count:
        return []
    pairs = [(c, b) for c, bodies in enumerate(attached) for b in bodies if b < n]
    rows, columns = np.array(pairs or [(0, 0)]).T
    touches = csr_array((np.ones(len(rows)), (rows, columns)), shape=(count, n))
    return reverse_cuthill_mckee(csr_array(touches @ touches.T), symmetric_mode=True).tolist()


def _skyline(bodies, n):
    """(pairs (p, 4), first (m,), start (m,)): which rows share a body, and where each row of L begins."""
    users: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for row, numbers in enumerate(bodies.tolist()):
        for slot, body in enumerate(numbers):
            if body < n:
                users[body].append((row, slot))
    pairs = [(i, si, j, sj) for blocks in users for i, si in blocks for j, sj in blocks if j <= i]
    first = np.arange(len(bodies))
    for i, _, j, _ in pairs:
        first[i] = min(first[i], j)
    lengths = np.arange(len(bodies)) - first + 1
    start = np.concatenate(([0], np.cumsum(lengths)[:-1])) - first if len(bodies) else np.zeros(0)
    return (
        np.array(sorted(pairs), dtype=np.int64).reshape(-1, 4),
        first.astype(np.int64),
        start.astype(np.int64),
    )


def _frame_with_z(z, near):
    """A rotation with the third column z and the first column as near as possible to that of `near`."""
    x = near[:, 0] - (near[:, 0] @ z) * z
    if np.linalg.norm(x) < 0.5:
        x = near[:, 1] - (near[:, 1] @ z) * z
        if np.linalg.norm(x) < 0.5:
            x = near[:, 2] - (near[:, 2] @ z) * z
    x /= np.linalg.norm(x)
    return np.column_stack((x, np.cross(z, x), z))


JACOBIAN_STEP, JACOBIAN_TOLERANCE = 1e-5, 1e-6  # central differences that a user's Jacobian is compared with


def check_user(c, reference, numbers):
    """The number of rows of a user's constraint, once its function and Jacobian agree at the reference poses."""
    label, k = f"constraint {c.name!r}", len(numbers)
    if len(reference) in numbers or len(set(numbers)) < k or not k:
        raise ModelError(f"{label}: bodies: expected different bodies, not the world, got {c.bodies!r}")
    poses = reference[list(numbers)]
    g = _numbers(label, "function", c.functions.function(poses))
    if g.ndim != 1 or not g.size or not np.isfinite(g).all():
        raise ArgumentError(f"{label}: function: expected (r,) finite numbers, got {shown(g)}")
    J = user_array(label, "jacobian", c.functions.jacobian(poses), (len(g), k, 6))
    numeric = np.zeros_like(J)
    for i in range(k):
        for x in range(6):
            step = np.zeros((k, 6))
            step[i, x] = JACOBIAN_STEP
            there, back = (
                user_array(label, "function", c.functions.function(poses @ se3.exp(s)), g.shape) for s in (step, -step)
            )
            numeric[:, i, x] = (there - back) / (2.0 * JACOBIAN_STEP)
    error = np.abs(J - numeric).max()
    if error > JACOBIAN_TOLERANCE * max(1.0, np.abs(numeric).max()):
        where = np.unravel_index(np.abs(J - numeric).argmax(), J.shape)
        raise ArgumentError(
            f"{label}: jacobian: differs from the function's differences along body-fixed twists by {error:.3g}:"
            f" row {where[0]}, body {c.bodies[where[1]]!r}, component {where[2]}: {J[where]:.6g}, not"
            f" {numeric[where]:.6g}"
        )
    return len(g)


def evaluate_user(c, rows, numbers, frames, V, J, g, gdot, bias):
    """The rows `at` of a holonomic constraint c on the bodies `numbers`, into J, g, gdot and bias."""
    label, k, r = f"constraint {c.name!r}", len(numbers), rows.stop - rows.start
    T, X = matrices(frames[numbers]), V[numbers]
    g[rows] = user_array(label, "function", c.functions.function(T.copy()), (r,))
    J[rows, :k] = user_array(label, "jacobian", c.functions.jacobian(T.copy()), (r, k, 6))
    gdot[rows] = np.einsum("rki,ki->r", J[rows, :k], X)
    if c.functions.bias is not None:
        bias[rows] = user_array(label, "bias", c.functions.bias(T.copy(), X.copy()), (r,))
    elif (speed := np.abs(X).max()) > 0.0:
        h = 1e-3 / speed  # fourth order: the error is of the order of 1e-12 V^2 and rounding of 1e-13 V^2
        J1, J_1, J2, J_2 = (
            user_array(label, "jacobian", c.functions.jacobian(T @ se3.exp(s * h * X)), (r, k, 6))
            for s in (1.0, -1.0, 2.0, -2.0)
        )
        Jdot = (8.0 * (J1 - J_1) - (J2 - J_2)) / (12.0 * h)
        bias[rows] = np.einsum("rki,ki->r", Jdot, X)
    else:
        bias[rows] = 0.0


def _numbers(label, argument, value):
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{label}: {argument}: expected numbers, got {shown(value)}") from None


def user_array(label, name, value, shape):
    """value as a new array of that shape: a user's function may reuse its buffer."""
    a = _numbers(label, name, value)
    if a.shape != shape or not np.isfinite(a).all():
        raise ArgumentError(f"{label}: {name}: expected finite numbers of shape {shape}, got {a.shape} {shown(value)}")
    return a


def matrices(frames):
    """(n, 12) rows of [R | p] as (n, 4, 4)."""
    T = np.zeros((len(frames), 4, 4))
    T[:, :3] = frames.reshape(-1, 3, 4)
    T[:, 3, 3] = 1.0
    return T
