"""The constraints of `constrained`: what there is to choose from, and the rows they become.

Mueller and Terze 2013 sections 5.1 and 5.2 for ball joints, (38) and (43); the other lower pairs add perpendicular
axes or drop directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from geomctrl.arguments import checked, require_rotation
from geomctrl.errors import ArgumentError, ModelError, NameNotFoundError
from geomctrl.kernels.constraints import ALONG, AXES, D_A, D_B, DATA, DISTANCE, LENGTH, MEET, R_A, R_B, USER
from geomctrl.lie import se3
from geomctrl.lie.groups import SE3, SO3xR3
from geomctrl.mechanism import inertia as _inertia

WORLD = "world"
JACOBIAN_STEP, JACOBIAN_TOLERANCE = 1e-5, 1e-6  # central differences that a user's Jacobian is compared with

X_, Y_, Z_ = 0, 1, 2
# offsets along which axes of frame A vanish; which axes of frames A and B are perpendicular
LOWER_PAIRS: dict[str, tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = {
    "spherical": ((X_, Y_, Z_), ()),
    "revolute": ((X_, Y_, Z_), ((X_, Z_), (Y_, Z_))),
    "prismatic": ((X_, Y_), ((X_, Z_), (Y_, Z_), (X_, Y_))),
    "cylindrical": ((X_, Y_), ((X_, Z_), (Y_, Z_))),
    "universal": ((X_, Y_, Z_), ((Z_, Z_),)),
    "planar": ((Z_,), ((X_, Z_), (Y_, Z_))),
    "fixed": ((X_, Y_, Z_), ((X_, Z_), (Y_, Z_), (X_, Y_))),
}


@dataclass(frozen=True, eq=False)
class ConstrainedBody:
    """A body: its ten inertial parameters (see `inertia`), reference pose (4, 4), and group SE3() or SO3xR3().

    group None is the system's. The six-by-six inertia must be positive definite: maximal coordinates divide by it.
    """

    name: str
    inertia: Any
    pose: Any = None
    group: SE3 | SO3xR3 | None = None


@dataclass(frozen=True, eq=False)
class Constraint:
    """What holds bodies a and b together; make one with the class methods. a may be "world".

    `point` and `axis` are given in a's frame, `point_b` and `axis_b` in b's. Where the latter are None they are such
    that the constraint holds in the reference poses. Lengths in m, axes of any length.
    """

    kind: str
    name: str
    bodies: tuple[str, ...]
    point: Any = (0.0, 0.0, 0.0)
    point_b: Any = None
    axis: Any = None
    axis_b: Any = None
    length: float | None = None
    function: Callable | None = None
    jacobian: Callable | None = None
    bias: Callable | None = None

    @classmethod
    def spherical(cls, name: str, a: str, b: str, point, point_b=None) -> Constraint:
        """The points coincide: three rows."""
        return cls("spherical", name, (a, b), point, point_b)

    @classmethod
    def revolute(cls, name: str, a: str, b: str, point, axis, point_b=None, axis_b=None) -> Constraint:
        """b turns about the axis through the point: five rows."""
        return cls("revolute", name, (a, b), point, point_b, axis, axis_b)

    @classmethod
    def prismatic(cls, name: str, a: str, b: str, axis, point=(0.0, 0.0, 0.0), point_b=None, axis_b=None) -> Constraint:
        """b slides along the axis: five rows."""
        return cls("prismatic", name, (a, b), point, point_b, axis, axis_b)

    @classmethod
    def cylindrical(cls, name: str, a: str, b: str, point, axis, point_b=None, axis_b=None) -> Constraint:
        """b turns about the axis through the point and slides along it: four rows."""
        return cls("cylindrical", name, (a, b), point, point_b, axis, axis_b)

    @classmethod
    def universal(cls, name: str, a: str, b: str, point, axis, axis_b, point_b=None) -> Constraint:
        """The points coincide, and `axis`, fixed in a, stays perpendicular to `axis_b`, fixed in b: four rows."""
        return cls("universal", name, (a, b), point, point_b, axis, axis_b)

    @classmethod
    def planar(cls, name: str, a: str, b: str, point, normal, point_b=None, axis_b=None) -> Constraint:
        """b slides on the plane through the point and turns about its normal: three rows."""
        return cls("planar", name, (a, b), point, point_b, normal, axis_b)

    @classmethod
    def fixed(cls, name: str, a: str, b: str, point=(0.0, 0.0, 0.0), point_b=None) -> Constraint:
        """b does not move in a: six rows."""
        return cls("fixed", name, (a, b), point, point_b, (0.0, 0.0, 1.0))

    @classmethod
    def distance(cls, name: str, a: str, b: str, point, point_b, length: float | None = None) -> Constraint:
        """The points stay `length` apart (None: as in the reference poses): one row, (s . s - L^2) / (2 L)."""
        return cls("distance", name, (a, b), point, point_b, length=length)

    @classmethod
    def holonomic(
        cls, name: str, bodies: Sequence[str], function: Callable, jacobian: Callable, bias: Callable | None = None
    ) -> Constraint:
        """function(poses (k, 4, 4)) -> (r,) vanishes; jacobian(poses) -> (r, k, 6) maps the k body-fixed twists to
        its rate. bias(poses, twists (k, 6)) -> (r,) is Jdot V; None: the Jacobian is differenced along the motion, to
        about 1e-11 of its size. The Jacobian is compared with differences of the function when the system is built.
        """
        if isinstance(bodies, str):  # else its letters would be the names
            raise ArgumentError(f"constraint {name!r}: bodies: expected a tuple of names, got {bodies!r:.80}")
        return cls("holonomic", name, tuple(bodies), function=function, jacobian=jacobian, bias=bias)


# --- rows ----------------------------------------------------------------------------------------------------------


class RowTable(NamedTuple):
    """What the kernels of `multipliers` read, rows in the order of elimination."""

    index: np.ndarray  # (m, 3): kind, body a, body b
    data: np.ndarray  # (m, DATA): points and directions
    bodies: np.ndarray  # (m, w): bodies of a row, padded with the world
    owner: np.ndarray  # (m,): the constraint a row belongs to
    users: list  # (constraint, its rows, its bodies) of every holonomic one
    skyline: tuple  # (pairs, first, start) of `multipliers.factorise`


def set_up_rows(names: Sequence[str], reference: np.ndarray, constraints: Sequence[Constraint]) -> RowTable:
    """The rows of constraints between the bodies `names`, whose reference poses are (n, 4, 4)."""
    n = len(names)
    number = {name: i for i, name in enumerate((*names, WORLD))}
    for c in constraints:
        if c.kind not in (*LOWER_PAIRS, "distance", "holonomic"):
            known = ", ".join((*LOWER_PAIRS, "distance", "holonomic"))
            raise ModelError(f"constraint {c.name!r}: kind: expected one of {known}, got {c.kind!r}")
        if len(bodies_of(c)) != 2 and c.kind != "holonomic":
            raise ModelError(f"constraint {c.name!r}: bodies: expected two, got {c.bodies!r}")
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
            count = _check_user(c, reference, numbers)
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
    data[R_A:R_B] = ra = _point(f"{label}: point", c.point)
    in_b = B[:3, :3].T @ (A[:3, :3] @ ra + A[:3, 3] - B[:3, 3])
    data[R_B:D_A] = rb = in_b if c.point_b is None else _point(f"{label}: point_b", c.point_b)
    if c.kind == "distance":
        if c.point_b is None:
            raise ArgumentError(f"{label}: point_b: a distance needs both points")
        s = B[:3, :3] @ rb + B[:3, 3] - A[:3, :3] @ ra - A[:3, 3]
        length = np.linalg.norm(s) if c.length is None else c.length
        number = isinstance(length, int | float | np.number) and not isinstance(length, bool)
        if not (number and np.isfinite(length) and length > 1e-9):
            raise ModelError(
                f"{label}: length: expected more than 0 [m], got {length}; points that coincide are spherical"
            )
        data[LENGTH] = length
        return [(DISTANCE, data)]
    offsets, perpendicular = LOWER_PAIRS[c.kind]
    if c.axis is None and perpendicular:
        raise ArgumentError(f"{label}: axis: expected shape (3,), got None")
    z = (0.0, 0.0, 1.0) if c.axis is None else c.axis
    F_a = _frame_with_z(_axis(f"{label}: axis", z), np.eye(3))
    F_b = B[:3, :3].T @ A[:3, :3] @ F_a
    if c.axis_b is not None:
        F_b = _frame_with_z(_axis(f"{label}: axis_b", c.axis_b), F_b)
    elif c.kind == "universal":
        raise ArgumentError(f"{label}: axis_b: a universal joint needs both axes")
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


def _check_user(c, reference, numbers):
    """The number of rows of a user's constraint, once its function and Jacobian agree at the reference poses."""
    label, k = f"constraint {c.name!r}", len(numbers)
    if len(reference) in numbers or len(set(numbers)) < k or not k:
        raise ModelError(f"{label}: bodies: expected different bodies, not the world, got {c.bodies!r}")
    if not callable(c.function) or not callable(c.jacobian) or not (c.bias is None or callable(c.bias)):
        raise ArgumentError(f"{label}: expected a function, its Jacobian and, if any, its bias to be callable")
    poses = reference[list(numbers)]
    g = _numbers(label, "function", c.function(poses))
    if g.ndim != 1 or not g.size or not np.isfinite(g).all():
        raise ArgumentError(f"{label}: function: expected (r,) finite numbers, got {g!r:.80}")
    J = user_array(label, "jacobian", c.jacobian(poses), (len(g), k, 6))
    numeric = np.zeros_like(J)
    for i in range(k):
        for x in range(6):
            step = np.zeros((k, 6))
            step[i, x] = JACOBIAN_STEP
            there, back = (
                user_array(label, "function", c.function(poses @ se3.exp(s)), g.shape) for s in (step, -step)
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


def evaluate_user(c, at, numbers, frames, V, J, g, gdot, bias):
    """The rows `at` of a holonomic constraint c on the bodies `numbers`, into J, g, gdot and bias."""
    label, k, r = f"constraint {c.name!r}", len(numbers), at.stop - at.start
    T, X = matrices(frames[numbers]), V[numbers]
    g[at] = user_array(label, "function", c.function(T.copy()), (r,))
    J[at, :k] = user_array(label, "jacobian", c.jacobian(T.copy()), (r, k, 6))
    gdot[at] = np.einsum("rki,ki->r", J[at, :k], X)
    if c.bias is not None:
        bias[at] = user_array(label, "bias", c.bias(T.copy(), X.copy()), (r,))
    elif (speed := np.abs(X).max()) > 0.0:
        h = 1e-3 / speed  # fourth order: the error is of the order of 1e-12 V^2 and rounding of 1e-13 V^2
        J1, J_1, J2, J_2 = (
            user_array(label, "jacobian", c.jacobian(T @ se3.exp(s * h * X)), (r, k, 6)) for s in (1.0, -1.0, 2.0, -2.0)
        )
        Jdot = (8.0 * (J1 - J_1) - (J2 - J_2)) / (12.0 * h)
        bias[at] = np.einsum("rki,ki->r", Jdot, X)
    else:
        bias[at] = 0.0


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


# --- input ---------------------------------------------------------------------------------------------------------


def checked_items(name, items):
    if isinstance(items, str | bytes | dict) or not isinstance(items, Iterable):
        raise ArgumentError(f"{name}: expected a sequence of {name}, got {items!r:.80}")
    return tuple(items)


def bodies_of(c):
    """The names of the bodies of a constraint."""
    if not isinstance(c.bodies, tuple) or not all(isinstance(name, str) for name in c.bodies):
        raise ArgumentError(f"constraint {c.name!r}: bodies: expected a tuple of names, got {c.bodies!r:.80}")
    return c.bodies


def checked_names(what, items, kind):
    names = []
    for i, item in enumerate(items):
        if not isinstance(item, kind):
            raise ArgumentError(f"{what} {i}: expected a {kind.__name__}, got {item!r:.80}")
        if not isinstance(item.name, str):
            raise ArgumentError(f"{what} {i}: name: expected a string, got {item.name!r:.80}")
        if item.name in names or (what == "body" and item.name == WORLD):
            raise ModelError(f"{what} {item.name!r}: the name is taken")
        names.append(item.name)
    return tuple(names)


def checked_group(body, default):
    group = default if body.group is None else body.group
    if not isinstance(group, SE3 | SO3xR3):
        raise ArgumentError(f"body {body.name!r}: group: expected SE3() or SO3xR3(), got {group!r:.80}")
    return group


def checked_parameters(body):
    label = f"body {body.name!r}: inertia"
    pi = checked(label, body.inertia, (10,))
    if pi.shape != (10,):
        raise ArgumentError(f"{label}: expected shape (10,), got {pi.shape}")
    _inertia.check(pi, body.name)
    least = np.linalg.eigvalsh(_inertia.com_tensor(pi))[0] if pi[0] > 0.0 else 0.0
    if least <= 0.0 or least <= 1e-12 * np.abs(pi[4:]).max():
        raise ModelError(
            f"{label}: maximal coordinates need a positive mass and moments of inertia, got a mass of"
            f" {pi[0]:.6g} kg and a least moment of {least:.3g} kg m^2"
        )
    return pi


def checked_pose(label, pose):
    T = np.eye(4) if pose is None else checked(label, pose, (4, 4)).copy()
    if T.shape != (4, 4) or np.abs(T[3] - (0.0, 0.0, 0.0, 1.0)).max() > 0.0:
        raise ArgumentError(f"{label}: expected one 4x4 transform, got {pose!r:.80}")
    require_rotation(label, T[:3, :3])
    return T


def _point(label, point):
    p = checked(label, point, (3,))
    if p.shape != (3,):
        raise ArgumentError(f"{label}: expected shape (3,), got {p.shape}")
    return p


def _axis(label, axis):
    a = _point(label, axis)
    if (norm := np.linalg.norm(a)) < 1e-12:
        raise ModelError(f"{label}: expected a direction, got the zero vector")
    return a / norm


def _frame_with_z(z, near):
    """A rotation whose third column is z and whose first is as near to that of `near` as can be."""
    x = near[:, 0] - (near[:, 0] @ z) * z
    if np.linalg.norm(x) < 0.5:
        x = near[:, 1] - (near[:, 1] @ z) * z
        if np.linalg.norm(x) < 0.5:
            x = near[:, 2] - (near[:, 2] @ z) * z
    x /= np.linalg.norm(x)
    return np.column_stack((x, np.cross(z, x), z))


def _numbers(label, what, value):
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{label}: {what}: expected numbers, got {value!r:.80}") from None


def user_array(label, what, value, shape):
    """value as a new array of that shape: a user's function may reuse its buffer."""
    a = _numbers(label, what, value)
    if a.shape != shape or not np.isfinite(a).all():
        raise ArgumentError(f"{label}: {what}: expected finite numbers of shape {shape}, got {a.shape} {value!r:.60}")
    return a


def matrices(frames):
    """(n, 12) rows of [R | p] as (n, 4, 4)."""
    T = np.zeros((len(frames), 4, 4))
    T[:, :3] = frames.reshape(-1, 3, 4)
    T[:, 3, 3] = 1.0
    return T
