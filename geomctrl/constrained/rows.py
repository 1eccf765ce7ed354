"""The rows that constraints become, and the order in which they are eliminated.

Mueller and Terze 2013 sections 5.1 and 5.2 for ball joints, (38) and (43); the other lower pairs add perpendicular
axes or drop directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from geomctrl.errors import ModelError, NameNotFoundError
from geomctrl.kernels.constraints import ALONG, AXES, D_A, D_B, DATA, DISTANCE, LENGTH, MEET, R_A, R_B, USER

from .holonomic import check_user
from .joints import CLOSE, LOWER_PAIRS, WORLD, Constraint, direction, point


class RowTable(NamedTuple):
    """What `kernels.constraints` reads, rows in the order of elimination."""

    index: np.ndarray  # (m, 3): kind, body a, body b
    data: np.ndarray  # (m, DATA): points and directions
    bodies: np.ndarray  # (m, w): bodies of a row, padded with the world
    owner: np.ndarray  # (m,): the constraint a row belongs to
    users: list  # (constraint, its rows, its bodies) of every holonomic one
    skyline: tuple  # (pairs, first, start) of `factorise`


def set_up_rows(names: Sequence[str], reference: np.ndarray, constraints: Sequence[Constraint]) -> RowTable:
    """The rows of constraints between the bodies `names`, whose reference poses are (n, 4, 4)."""
    n = len(names)
    number = {name: i for i, name in enumerate((*names, WORLD))}
    for c in constraints:
        for name in c.bodies:
            if name not in number:
                known = ", ".join(map(repr, names[:12]))
                raise NameNotFoundError(f"constraint {c.name!r}: no body named {name!r}; known: {known}, 'world'")
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
        if length <= CLOSE:
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
    # Three offsets are taken in inertial axes, as in (38), (43): in a body's axes the motion is the same but not the
    # drift (the paper's pendulum: joint 2 loses 1.9e-5 instead of 7.2e-6 m in the first second).
    for i in offsets:
        rows.append((MEET if len(offsets) == 3 else ALONG, data.copy()))
        rows[-1][1][D_A:D_B] = np.eye(3)[i] if len(offsets) == 3 else F_a[:, i]
    for i, j in perpendicular:
        rows.append((AXES, data.copy()))
        rows[-1][1][D_A:D_B], rows[-1][1][D_B:LENGTH] = F_a[:, i], F_b[:, j]
    return rows


def _elimination_order(attached, n):
    """Constraints so that those that share a body are near one another (reverse Cuthill-McKee)."""
    count = len(attached)
    if not count:
        return []
    at = [(c, b) for c, bodies in enumerate(attached) for b in bodies if b < n]
    rows, columns = np.array(at or [(0, 0)]).T
    touches = csr_array((np.ones(len(rows)), (rows, columns)), shape=(count, n))
    return reverse_cuthill_mckee(csr_array(touches @ touches.T), symmetric_mode=True).tolist()


def _skyline(bodies, n):
    """(pairs (p, 4), first (m,), start (m,)): which rows share a body, and where each row of L begins."""
    users: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for row, numbers in enumerate(bodies.tolist()):
        for slot, body in enumerate(numbers):
            if body < n:
                users[body].append((row, slot))
    pairs = [(i, si, j, sj) for at in users for i, si in at for j, sj in at if j <= i]
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
    """A rotation whose third column is z and whose first is as near to that of `near` as can be."""
    x = near[:, 0] - (near[:, 0] @ z) * z
    if np.linalg.norm(x) < 0.5:
        x = near[:, 1] - (near[:, 1] @ z) * z
        if np.linalg.norm(x) < 0.5:
            x = near[:, 2] - (near[:, 2] @ z) * z
    x /= np.linalg.norm(x)
    return np.column_stack((x, np.cross(z, x), z))
