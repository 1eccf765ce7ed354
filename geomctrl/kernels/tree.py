"""A robot as kernels see it: one float64 array, and the primitives that read it.

Record i < nbodies describes body i and the joint that carries it; the last record holds sizes and gravity. One plain
array costs a call 0.1 us to unbox, a structured one twice that, separate arrays far more. It is flat, and so is all
work memory: a kernel addresses record i by its offset `i * WIDTH`, since a view of a row would count references.

A joint with one degree of freedom is f(q) = M exp(S q), expanded once into constants (Ploen 1999 (9)-(11)):

    f(q) = A + sin(q) B + cos(q) C + q D        (3x4 matrices; D has a translation only)

so that a joint of any axis, offset and pitch costs 27 multiplications and no branch but for the sine. A joint with
more degrees of freedom stores its pose in q, and f(q) = M q.
"""

import math

import numpy as np

from geomctrl.arguments import ROTATION_TOLERANCE

from .exponentials import log_se3
from .jit import kernel, primitive
from .records import finite, get_frame, get_inertia, get_twist, vec
from .scalars import REDUCIBLE, sin_cos
from .screws import Frame, compose, twist_add, twist_mul, twist_sub
from .vectors import add3, dot, mul3

# fields of a body's record
PARENT, KIND, NDOF, IQ, IV, PARENT_DOF = range(6)
A, B, C, D, J, S, S_PINV = 6, 18, 30, 42, 45, 55, 91
WIDTH = 127
# fields of the last record
NQ, NV, GRAVITY = 0, 1, 2

SUBGROUP_TOLERANCE = 1e-6  # |log T - S S^+ log T| / (1 + |p|) above which a pose is refused as one of its joint
ROTATING, SLIDING, POSE = 0, 1, 2  # kinds of joint: with one rotation, pure translation, stored as a pose


def pack(parents, joints, placements, parameters, gravity) -> np.ndarray:
    """The packed array of a tree given parents first."""
    model = np.zeros((len(joints) + 1, WIDTH))
    nq = nv = 0
    last_dof = [-1] * len(joints)
    for i, (parent, joint, M) in enumerate(zip(parents, joints, placements, strict=True)):
        row, d = model[i], joint.S.shape[1]
        kind = POSE if d > 1 else ROTATING if joint.turning.any() else SLIDING
        row[:A] = parent, kind, d, nq, nv, last_dof[parent] if parent >= 0 else -1
        row[A:J] = _expand(M, joint.S[:, 0], kind)
        row[J:S] = parameters[i]
        row[S : S + 6 * d] = joint.S.T.ravel()
        row[S_PINV : S_PINV + 6 * d] = np.linalg.pinv(joint.S).ravel()
        nq += 12 if kind == POSE else 1
        nv += d
        last_dof[i] = nv - 1
    model[-1, :GRAVITY] = nq, nv
    model[-1, GRAVITY : GRAVITY + 3] = gravity
    return model.ravel()


def _expand(M, screw, kind):
    """The constants A, B, C (3x4, flat) and D (3) of f(q) = M exp(S q)."""
    R, w, v = M[:3, :3], screw[:3], screw[3:]
    a, b, c, d = M[:3].copy(), np.zeros((3, 4)), np.zeros((3, 4)), np.zeros(3)
    if kind == SLIDING:
        d = R @ v
    elif kind == ROTATING:
        W = np.cross(np.eye(3), w)  # [w]
        pitch = w @ v if abs(w @ v) > 1e-14 * np.linalg.norm(v) else 0.0  # rounding is no pitch
        a[:, :3], b[:, :3], c[:, :3] = R @ (np.eye(3) + W @ W), R @ W, -R @ W @ W
        a[:, 3] += R @ W @ v
        b[:, 3], c[:, 3], d = -R @ W @ W @ v, -R @ W @ v, R @ w * pitch
    return np.concatenate((a.ravel(), b.ravel(), c.ravel(), d))


# --- reading: `link` is the offset of a body's record -----------------------------------------------------------


@primitive
def n_bodies(model):
    return model.shape[0] // WIDTH - 1


@primitive
def n_q(model):
    return int(model[model.shape[0] - WIDTH + NQ])


@primitive
def n_v(model):
    return int(model[model.shape[0] - WIDTH + NV])


@primitive
def gravity_of(model):
    return vec(model, model.shape[0] - WIDTH + GRAVITY)


@primitive
def parent_of(model, link):
    return int(model[link + PARENT])


@primitive
def dofs_of(model, link):
    """The joint's velocity coordinates: first and one past the last."""
    k = int(model[link + IV])
    return k, k + int(model[link + NDOF])


@primitive
def joint_frame(model, link, q):
    """f_i(q): the body's frame in its parent's."""
    k = int(model[link + IQ])
    kind = int(model[link + KIND])
    a = get_frame(model, link + A)
    if kind == POSE:
        return compose(a, get_frame(q, k))
    x = q[k]
    if kind == SLIDING:
        return Frame(a.R, add3(a.p, mul3(x, vec(model, link + D))))
    if abs(x) <= REDUCIBLE:
        s, c = sin_cos(x)
    else:
        s, c = math.sin(x), math.cos(x)
    return turned(a, get_frame(model, link + B), get_frame(model, link + C), vec(model, link + D), x, s, c)


@primitive
def turned(a, b, e, d, x, s, c):
    """A + sin(x) B + cos(x) C + x D."""
    R = (_sc(a.R[0], s, b.R[0], c, e.R[0]), _sc(a.R[1], s, b.R[1], c, e.R[1]), _sc(a.R[2], s, b.R[2], c, e.R[2]))
    return Frame(R, add3(_sc(a.p, s, b.p, c, e.p), mul3(x, d)))


@primitive
def _sc(a, s, b, c, e):
    return a[0] + s * b[0] + c * e[0], a[1] + s * b[1] + c * e[1], a[2] + s * b[2] + c * e[2]


@primitive
def screw_of(model, link, c):
    """Column c of the basis S_i, in the body's frame."""
    return get_twist(model, link + S + 6 * c)


@primitive
def joint_twist(model, link, v):
    """S_i v_i, in the body's frame."""
    k = int(model[link + IV])
    X = twist_mul(v[k], get_twist(model, link + S))
    for c in range(1, int(model[link + NDOF])):
        X = twist_add(X, twist_mul(v[k + c], get_twist(model, link + S + 6 * c)))
    return X


@primitive
def joint_coordinates(model, link, X, v, scale):
    """v += scale S_i^+ X: the coordinates of a twist in the span of S_i."""
    k = int(model[link + IV])
    for c in range(int(model[link + NDOF])):
        row = link + S_PINV + 6 * c
        v[k + c] += scale * (dot(vec(model, row), X.w) + dot(vec(model, row + 3), X.v))


@primitive
def inertia_of(model, link):
    return get_inertia(model, link + J)


@primitive
def root_origin(model, q):
    """Where the first body is. Sums in inertial axes are taken about this point: far from the world's origin a
    floating robot would lose digits about the origin itself."""
    return joint_frame(model, 0, q).p


# --- guards ----------------------------------------------------------------------------------------------------


@primitive
def good_velocity(model, v):
    return v.shape[0] == n_v(model) and finite(v)


@primitive
def good_configuration(model, q):
    """Right length, finite, every pose's rotation a rotation, and every pose one that its joint can reach."""
    if q.shape[0] != n_q(model) or not finite(q):
        return False
    if q.shape[0] == n_v(model):  # only joints with one degree of freedom
        return True
    for i in range(n_bodies(model)):
        link = i * WIDTH
        if int(model[link + KIND]) == POSE:
            T = get_frame(q, int(model[link + IQ]))
            x, y, z = T.R
            error = max(
                abs(dot(x, x) - 1.0), abs(dot(y, y) - 1.0), abs(dot(z, z) - 1.0),
                abs(dot(x, y)), abs(dot(y, z)), abs(dot(z, x)),
            )  # fmt: skip
            det = (
                x[0] * (y[1] * z[2] - y[2] * z[1])
                + x[1] * (y[2] * z[0] - y[0] * z[2])
                + x[2] * (y[0] * z[1] - y[1] * z[0])
            )
            if error > ROTATION_TOLERANCE or det < 0.0:
                return False
            if int(model[link + NDOF]) < 6 and off_subgroup(model, link, T) > SUBGROUP_TOLERANCE:
                return False
    return True


@primitive
def off_subgroup(model, link, T):
    """|log T - S S^+ log T| / (1 + |p|): how far a pose is from those that its joint can reach, rotations by pi."""
    X = log_se3(T)
    Y = X
    for c in range(int(model[link + NDOF])):
        row = link + S_PINV + 6 * c
        x = dot(vec(model, row), X.w) + dot(vec(model, row + 3), X.v)
        Y = twist_sub(Y, twist_mul(x, screw_of(model, link, c)))
    return math.sqrt(dot(Y.w, Y.w) + dot(Y.v, Y.v)) / (1.0 + math.sqrt(dot(T.p, T.p)))


@kernel("f8[:,::1](f8[::1], f8[:,::1])")
def off_subgroup_many(model, q):
    """`off_subgroup` of every state and body, 0 where the joint holds no pose."""
    out = np.zeros((q.shape[0], n_bodies(model)))
    for b in range(q.shape[0]):
        for i in range(n_bodies(model)):
            link = i * WIDTH
            if int(model[link + KIND]) == POSE and int(model[link + NDOF]) < 6:
                out[b, i] = off_subgroup(model, link, get_frame(q[b], int(model[link + IQ])))
    return out
