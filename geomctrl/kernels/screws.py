"""The algebra kernels speak: so(3), se(3) and their duals on tuples of floats.

Twists `(w, v)`, wrenches `(m, f)` and frames `(R, p)` are named tuples of 3-tuples, so a kernel's line is the paper's
line and LLVM keeps everything in registers. Nothing here allocates and nothing here is called from Python: `lie.so3`
and `lie.se3` are the same algebra for people. Angular part first; a frame `T_ab` maps coordinates in b to coordinates
in a.

Sources: Ploen 1999 section 2; Mueller 2018 appendix; Park and Chung 2005 section II.
"""

from typing import NamedTuple

from .primitives import primitive
from .vectors import (
    Matrix,
    Symmetric,
    Vector,
    add3,
    cross,
    dot,
    matmul,
    mul3,
    neg3,
    rot,
    rotT,
    sub3,
    sym_mul,
    transpose,
)


class Twist(NamedTuple):
    """(omega, v): also a screw S, an acceleration or any element of se(3)."""

    w: Vector
    v: Vector


class Wrench(NamedTuple):
    """(m, f): also a momentum, or any element of the dual of se(3)."""

    m: Vector
    f: Vector


class Pose(NamedTuple):
    """T_ab: the rows of R_ab and the origin of b in a."""

    R: Matrix
    p: Vector


class Inertia(NamedTuple):
    """Mass, first moment h = m c, and (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the frame's origin."""

    m: float
    h: Vector
    I: Symmetric


# --- se(3) and its dual ----------------------------------------------------------------------------------------


@primitive
def zero_twist():
    return Twist((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@primitive
def zero_wrench():
    return Wrench((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@primitive
def twist_add(X, Y):
    return Twist(add3(X.w, Y.w), add3(X.v, Y.v))


@primitive
def twist_sub(X, Y):
    return Twist(sub3(X.w, Y.w), sub3(X.v, Y.v))


@primitive
def twist_mul(s, X):
    return Twist(mul3(s, X.w), mul3(s, X.v))


@primitive
def wrench_add(F, G):
    return Wrench(add3(F.m, G.m), add3(F.f, G.f))


@primitive
def wrench_sub(F, G):
    return Wrench(sub3(F.m, G.m), sub3(F.f, G.f))


@primitive
def wrench_mul(s, F):
    return Wrench(mul3(s, F.m), mul3(s, F.f))


@primitive
def pair(X, F):
    """F(X) = m . w + f . v: power."""
    return dot(X.w, F.m) + dot(X.v, F.f)


@primitive
def ad(X, Y):
    """ad_X Y = [X, Y]."""
    return Twist(cross(X.w, Y.w), add3(cross(X.w, Y.v), cross(X.v, Y.w)))


@primitive
def ad_dual(X, F):
    """-ad_X^T F."""
    return Wrench(add3(cross(X.w, F.m), cross(X.v, F.f)), cross(X.w, F.f))


# --- SE(3) -----------------------------------------------------------------------------------------------------


@primitive
def identity():
    return Pose(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, 0.0))


@primitive
def compose(A, B):
    return Pose(matmul(A.R, B.R), add3(A.p, rot(A.R, B.p)))


@primitive
def inverse(T):
    return Pose(transpose(T.R), neg3(rotT(T.R, T.p)))


@primitive
def Ad(T, X):
    """Ad_T X: a twist in frame b to frame a, T = T_ab."""
    w = rot(T.R, X.w)
    return Twist(w, add3(rot(T.R, X.v), cross(T.p, w)))


@primitive
def Ad_inv(T, X):
    """Ad_{T^-1} X: the parent's twist to the child, T = T_parent_child."""
    return Twist(rotT(T.R, X.w), rotT(T.R, add3(X.v, cross(X.w, T.p))))


@primitive
def Ad_dual(T, F):
    """Ad_{T^-1}^T F: the child's wrench to the parent."""
    f = rot(T.R, F.f)
    return Wrench(add3(rot(T.R, F.m), cross(T.p, f)), f)


@primitive
def Ad_inv_dual(T, F):
    """Ad_T^T F: the parent's wrench to the child."""
    return Wrench(rotT(T.R, sub3(F.m, cross(T.p, F.f))), rotT(T.R, F.f))


# --- inertia ---------------------------------------------------------------------------------------------------


@primitive
def apply_inertia(J, V):
    """J V with J = [[I, [h]], [-[h], m]]."""
    return Wrench(add3(sym_mul(J.I, V.w), cross(J.h, V.v)), sub3(mul3(J.m, V.v), cross(J.h, V.w)))


@primitive
def inertia_add(A, B):
    return Inertia(
        A.m + B.m,
        add3(A.h, B.h),
        (A.I[0] + B.I[0], A.I[1] + B.I[1], A.I[2] + B.I[2], A.I[3] + B.I[3], A.I[4] + B.I[4], A.I[5] + B.I[5]),
    )


@primitive
def inertia_to(T, J):
    """Ad_{T^-1}^T J Ad_{T^-1}: the child's inertia in the parent's frame, T = T_parent_child."""
    R, p = T.R, T.p
    a = J.I
    RI = matmul(R, ((a[0], a[1], a[3]), (a[1], a[2], a[4]), (a[3], a[4], a[5])))
    h = rot(R, J.h)
    # about the parent's origin: - [p][h] - [h][p] - m [p][p], with [a][b] = b a^T - (a . b) 1
    k = add3(mul3(2.0, h), mul3(J.m, p))  # 2 h + m p, so that the shift is sym(p k) up to the trace
    d = dot(p, k)
    xx = dot(RI[0], R[0]) + d - p[0] * k[0]
    xy = dot(RI[0], R[1]) - 0.5 * (p[0] * k[1] + p[1] * k[0])
    yy = dot(RI[1], R[1]) + d - p[1] * k[1]
    xz = dot(RI[0], R[2]) - 0.5 * (p[0] * k[2] + p[2] * k[0])
    yz = dot(RI[1], R[2]) - 0.5 * (p[1] * k[2] + p[2] * k[1])
    zz = dot(RI[2], R[2]) + d - p[2] * k[2]
    return Inertia(J.m, add3(h, mul3(J.m, p)), (xx, xy, yy, xz, yz, zz))
