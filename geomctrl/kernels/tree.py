"""A robot's packed array: one float64 array that kernels read, and the primitives that read it.

Record i < nbodies describes body i and the joint to its parent; the last record holds sizes and gravity. Numba unboxes
one plain array in 0.1 us; a structured array takes twice as long, separate arrays take longer.

A joint with one degree of freedom is f(q) = M exp(S q), expanded once into constants (Ploen 1999 (9)-(11)):

    f(q) = A + sin(q) B + cos(q) C + q D        (3x4 matrices; D has a translation only)

A joint with any axis, offset and pitch therefore costs 27 multiplications and has no branch except in the sine. A joint
with more degrees of freedom stores its pose in q, and f(q) = M q.
"""

import math
from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from geomctrl.arguments import ROTATION_TOLERANCE

from .exponentials import log_se3, sin_cos
from .jit import kernel
from .primitives import primitive
from .records import finite, inertia_at, pose_at, twist_at, vec, wrench_at
from .screws import (
    Pose,
    Twist,
    add3,
    compose,
    cross,
    dot,
    mul3,
    neg3,
    pair,
    twist_add,
    twist_mul,
    twist_sub,
)


def _offsets(*widths: int) -> Iterator[int]:
    return accumulate((0, *widths))


# a body's record: whole numbers, the constants of f(q), ten inertial parameters, columns of S, rows of S^+, armature
PARENT, KIND, NDOF, IQ, IV, PARENT_DOF, A, B, C, D, J, S, S_PINV, ARMATURE, WIDTH = _offsets(
    *(1, 1, 1, 1, 1, 1), *(12, 12, 12, 3), 10, *(36, 36), 1
)
NQ, NV, NB, FIRST, GRAVITY = range(5)  # the last record; FIRST: where a coupled robot's coordinates begin, else 0

SUBGROUP_TOLERANCE = 1e-6  # largest |log T - S S^+ log T| / (1 + |p|) of a pose that a joint can reach
ROTATING, SLIDING, POSE = 0, 1, 2  # kinds of joint: with one rotation, pure translation, stored as a pose


def pack(parents, joints, placements, parameters, gravity) -> np.ndarray:
    """Return the packed array of a tree whose bodies have parents first."""
    model = np.zeros((len(joints) + 1, WIDTH))
    nq = nv = 0
    last_dof = [-1] * len(joints)
    for i, (parent, joint, M) in enumerate(zip(parents, joints, placements, strict=True)):
        row, d = model[i], joint.S.shape[1]
        kind = POSE if d > 1 else ROTATING if joint.is_rotational.any() else SLIDING
        row[:A] = parent, kind, d, nq, nv, last_dof[parent] if parent >= 0 else -1
        row[A:J] = _expand(M, joint.S[:, 0], kind)
        row[J:S] = parameters[i]
        row[S : S + 6 * d] = joint.S.T.ravel()
        row[S_PINV : S_PINV + 6 * d] = np.linalg.pinv(joint.S).ravel()
        row[ARMATURE] = joint.armature
        nq += 12 if kind == POSE else 1
        nv += d
        last_dof[i] = nv - 1
    model[-1, :FIRST] = nq, nv, len(joints)
    model[-1, GRAVITY : GRAVITY + 3] = gravity
    return model.ravel()


def pack_coupled(tree, A, b, bodies, joints) -> np.ndarray:
    """Return the packed array of a robot whose joints follow others (`kernels.couplings`).

    It contains the array of its tree, the coefficients of q = A x + b, the independent joints as a tree (whose
    "parents" are the numbers of their `bodies`), and a last record.
    """
    numbers = np.concatenate((A.ravel(), b))
    rows = np.zeros((-(-len(numbers) // WIDTH), WIDTH))
    rows.ravel()[: len(numbers)] = numbers
    free = [-1] * len(joints)
    own = pack(free, joints, np.broadcast_to(np.eye(4), (len(joints), 4, 4)), np.zeros((len(joints), 10)), np.zeros(3))
    own = own.reshape(-1, WIDTH)
    own[:-1, PARENT], own[:-1, ARMATURE] = bodies, 0.0
    last = tree[-WIDTH:].copy()
    last[:GRAVITY] = *own[-1, :NB], last[NB], len(tree) // WIDTH + len(rows)
    return np.concatenate((tree, rows.ravel(), own.ravel(), last))


def body_records(model: np.ndarray) -> np.ndarray:
    """The bodies' records (nbodies, WIDTH) of a packed array, in place."""
    return model.reshape(-1, WIDTH)[: int(model[NB - WIDTH])]


def with_inertias(model: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """The packed array of the same tree with other inertial parameters (nbodies, 10)."""
    changed = model.copy()
    body_records(changed)[:, J:S] = parameters
    return changed


def with_armatures(model: np.ndarray, armatures) -> np.ndarray:
    """The packed array of the same tree with other armatures (nbodies,) of its joints."""
    changed = model.copy()
    body_records(changed)[:, ARMATURE] = armatures
    return changed


def _expand(M, screw, kind):
    """The constants A, B, C (3x4, flat) and D (3) of f(q) = M exp(S q)."""
    R, w, v = M[:3, :3], screw[:3], screw[3:]
    a, b, c, d = M[:3].copy(), np.zeros((3, 4)), np.zeros((3, 4)), np.zeros(3)
    if kind == SLIDING:
        d = R @ v
    elif kind == ROTATING:
        W = np.cross(np.eye(3), w)  # [w]
        pitch = w @ v if abs(w @ v) > 1e-14 * math.hypot(*v) else 0.0  # ignores rounding errors
        a[:, :3], b[:, :3], c[:, :3] = R @ (np.eye(3) + W @ W), R @ W, -R @ W @ W
        a[:, 3] += R @ W @ v
        b[:, 3], c[:, 3], d = -R @ W @ W @ v, -R @ W @ v, R @ w * pitch
    return np.concatenate((a.ravel(), b.ravel(), c.ravel(), d))


# --- reading, body by body ---------------------------------------------------------------------------------------


@primitive
def n_bodies(model):
    return int(model[model.shape[0] - WIDTH + NB])


@primitive
def n_q(model):
    return int(model[model.shape[0] - WIDTH + NQ])


@primitive
def n_v(model):
    return int(model[model.shape[0] - WIDTH + NV])


@primitive
def joints_begin(model):
    """Start of the tree of the joints in q: the robot's own, or that of the independent joints of a coupled robot."""
    return int(model[model.shape[0] - WIDTH + FIRST]) * WIDTH


@primitive
def joints_end(model):
    return model.shape[0] - (WIDTH if joints_begin(model) > 0 else 0)


@primitive
def gravity_of(model):
    return vec(model, model.shape[0] - WIDTH + GRAVITY)


@primitive
def base_acceleration(model):
    """(0, -g): gravity as the acceleration of the base."""
    return Twist((0.0, 0.0, 0.0), neg3(gravity_of(model)))


@primitive
def parent_of(model, i):
    return int(model[i * WIDTH + PARENT])


@primitive
def kind_of(model, i):
    return int(model[i * WIDTH + KIND])


@primitive
def holds_pose(model, i):
    """Whether the joint has several degrees of freedom and stores its pose in q."""
    return kind_of(model, i) == POSE


@primitive
def dofs_of(model, i):
    """The joint's velocity coordinates: first and one past the last."""
    k = int(model[i * WIDTH + IV])
    return k, k + int(model[i * WIDTH + NDOF])


@primitive
def first_dof_of(model, i):
    return int(model[i * WIDTH + IV])


@primitive
def ndof_of(model, i):
    return int(model[i * WIDTH + NDOF])


@primitive
def last_dof_of_parent(model, i):
    """The last velocity coordinate of the parent's joint, -1 where the parent is the world."""
    return int(model[i * WIDTH + PARENT_DOF])


@primitive
def coordinate_of(model, i):
    """Index in q of the joint's coordinate, or of the first number of its pose."""
    return int(model[i * WIDTH + IQ])


@primitive
def joint_frame(model, i, q):
    """f_i(q): the body's frame in its parent's."""
    row, k, kind = i * WIDTH, coordinate_of(model, i), kind_of(model, i)
    a = pose_at(model, row + A)
    if kind == POSE:
        return compose(a, pose_at(q, k))
    x = q[k]
    if kind == SLIDING:
        return Pose(a.R, add3(a.p, mul3(x, vec(model, row + D))))
    s, c = sin_cos(x)
    return turned(a, pose_at(model, row + B), pose_at(model, row + C), vec(model, row + D), x, s, c)


@primitive
def turned(a, b, e, d, x, s, c):
    """A + sin(x) B + cos(x) C + x D."""
    R = (_sc(a.R[0], s, b.R[0], c, e.R[0]), _sc(a.R[1], s, b.R[1], c, e.R[1]), _sc(a.R[2], s, b.R[2], c, e.R[2]))
    return Pose(R, add3(_sc(a.p, s, b.p, c, e.p), mul3(x, d)))


@primitive
def _sc(a, s, b, c, e):
    return a[0] + s * b[0] + c * e[0], a[1] + s * b[1] + c * e[1], a[2] + s * b[2] + c * e[2]


@primitive
def screw_of(model, i, c):
    """Column c of the basis S_i, in the body's frame."""
    return twist_at(model, i * WIDTH + S + 6 * c)


@primitive
def joint_twist(model, i, v):
    """S_i v_i, in the body's frame."""
    first, end = dofs_of(model, i)
    X = twist_mul(v[first], screw_of(model, i, 0))
    for c in range(1, end - first):
        X = twist_add(X, twist_mul(v[first + c], screw_of(model, i, c)))
    return X


@primitive
def joint_coordinates(model, i, X, v, scale):
    """v += scale S_i^+ X: the coordinates of a twist in the span of S_i."""
    first, end = dofs_of(model, i)
    for c in range(end - first):
        v[first + c] += scale * pair(X, dual_screw_of(model, i, c))


@primitive
def dual_screw_of(model, i, c):
    """Row c of S_i^+, as a wrench: paired with a twist in the span of S_i it gives coordinate c."""
    return wrench_at(model, i * WIDTH + S_PINV + 6 * c)


@primitive
def inertia_of(model, i):
    return inertia_at(model, i * WIDTH + J)


@primitive
def armature_of(model, i):
    """Reflected inertia of the joint's motor, which is added to the diagonal of M."""
    return model[i * WIDTH + ARMATURE]


@primitive
def add_armature(model, M):
    """Add the armature to the diagonal of M."""
    for i in range(n_bodies(model)):
        first, end = dofs_of(model, i)
        for k in range(first, end):
            M[k, k] += armature_of(model, i)


@primitive
def root_origin(model, q):
    """Origin of the first body, about which sums in inertial axes are taken.

    Sums about the world's origin would lose digits for a floating robot far away from it.
    """
    return joint_frame(model, 0, q).p


# --- guards ----------------------------------------------------------------------------------------------------


@primitive
def good_velocity(model, v):
    return v.shape[0] == n_v(model) and finite(v)


@primitive
def good_configuration(model, q):
    """Whether q has the right length, is finite, and every pose is a rotation that its joint can reach."""
    if q.shape[0] != n_q(model) or not finite(q):
        return False
    return q.shape[0] == n_v(model) or good_poses(model, q)


@primitive
def good_poses(model, q):
    """Whether every pose is a rotation that its joint can reach."""
    good, joints = True, model[joints_begin(model) : joints_end(model)]
    for i in range(n_bodies(joints)):
        if holds_pose(joints, i):
            T = pose_at(q, coordinate_of(joints, i))
            good &= is_rotation(T.R, ROTATION_TOLERANCE)
            good &= off_subgroup(joints, i, T) <= SUBGROUP_TOLERANCE
    return good


@primitive
def is_rotation(R, tolerance):
    """Whether R^T R = 1 to `tolerance`, without reflection."""
    x, y, z = R
    error = max(
        abs(dot(x, x) - 1.0), abs(dot(y, y) - 1.0), abs(dot(z, z) - 1.0),
        abs(dot(x, y)), abs(dot(y, z)), abs(dot(z, x)),
    )  # fmt: skip
    return (error <= tolerance) & (dot(x, cross(y, z)) >= 0.0)


@primitive
def off_subgroup(model, i, T):
    """|log T - S S^+ log T| / (1 + |p|), the distance of a pose from those that its joint can reach.

    Rotations by pi are accepted. The distance is 0 for a joint that stores no pose or can reach every pose.
    """
    first, end = dofs_of(model, i)
    if end - first == 1 or end - first == 6:
        return 0.0
    X = log_se3(T)
    Y = X
    for c in range(end - first):
        Y = twist_sub(Y, twist_mul(pair(X, dual_screw_of(model, i, c)), screw_of(model, i, c)))
    return math.sqrt(dot(Y.w, Y.w) + dot(Y.v, Y.v)) / (1.0 + math.sqrt(dot(T.p, T.p)))


@kernel("f8[:,::1](f8[::1], f8[:,::1])")
def off_subgroup_many(model, q):
    """`off_subgroup` of every state, for every joint in q."""
    joints = model[joints_begin(model) : joints_end(model)]
    out = np.zeros((q.shape[0], n_bodies(joints)))
    for b in range(q.shape[0]):
        for i in range(n_bodies(joints)):
            if holds_pose(joints, i):
                out[b, i] = off_subgroup(joints, i, pose_at(q[b], coordinate_of(joints, i)))
    return out
