"""The algebra of kernels: vectors, 3x3 matrices, se(3) and its dual, on tuples of numbers.

Matrices are tuples of rows, symmetric ones (xx, xy, yy, xz, yz, zz). Twists `(w, v)`, wrenches `(m, f)` and frames
`(R, p)` are named tuples of 3-tuples. Lines of kernels therefore read like the papers' equations, and LLVM keeps the
numbers in registers. The functions do not allocate; `lie.so3` and `lie.se3` have the same algebra on arrays. Angular
parts come first; a frame `T_ab` maps coordinates in b to coordinates in a.

Sources: Ploen 1999 section 2; Mueller 2018 appendix; Park and Chung 2005 section II.
"""

from typing import NamedTuple

from .primitives import primitive

Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]
Symmetric = tuple[float, float, float, float, float, float]


@primitive
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@primitive
def add3(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@primitive
def sub3(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@primitive
def mul3(s, a):
    return s * a[0], s * a[1], s * a[2]


@primitive
def neg3(a):
    return -a[0], -a[1], -a[2]


@primitive
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@primitive
def rot(R, a):
    """R a."""
    return dot(R[0], a), dot(R[1], a), dot(R[2], a)


@primitive
def rotT(R, a):
    """R^T a."""
    return (
        R[0][0] * a[0] + R[1][0] * a[1] + R[2][0] * a[2],
        R[0][1] * a[0] + R[1][1] * a[1] + R[2][1] * a[2],
        R[0][2] * a[0] + R[1][2] * a[1] + R[2][2] * a[2],
    )


@primitive
def transpose(A):
    return (A[0][0], A[1][0], A[2][0]), (A[0][1], A[1][1], A[2][1]), (A[0][2], A[1][2], A[2][2])


@primitive
def matmul(A, B):
    return rotT(B, A[0]), rotT(B, A[1]), rotT(B, A[2])


@primitive
def add33(A, B):
    return add3(A[0], B[0]), add3(A[1], B[1]), add3(A[2], B[2])


@primitive
def mul33(s, A):
    return mul3(s, A[0]), mul3(s, A[1]), mul3(s, A[2])


@primitive
def hat3(a):
    """[a]: the matrix of a x."""
    return (0.0, -a[2], a[1]), (a[2], 0.0, -a[0]), (-a[1], a[0], 0.0)


@primitive
def outer(a, b):
    return mul3(a[0], b), mul3(a[1], b), mul3(a[2], b)


@primitive
def eye33():
    return (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@primitive
def hat_squared(a, b):
    """[a][b] = b a^T - (a . b) 1."""
    d = dot(a, b)
    return (
        (b[0] * a[0] - d, b[0] * a[1], b[0] * a[2]),
        (b[1] * a[0], b[1] * a[1] - d, b[1] * a[2]),
        (b[2] * a[0], b[2] * a[1], b[2] * a[2] - d),
    )


@primitive
def sym_mul(I, a):
    """I a for a symmetric matrix stored as (xx, xy, yy, xz, yz, zz)."""
    return (
        I[0] * a[0] + I[1] * a[1] + I[3] * a[2],
        I[1] * a[0] + I[2] * a[1] + I[4] * a[2],
        I[3] * a[0] + I[4] * a[1] + I[5] * a[2],
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
    u = add3(h, mul3(0.5 * J.m, p))  # the shift is 2 (p . u) 1 - p u^T - u p^T
    k = add3(u, u)
    xx = dot(RI[0], R[0]) + p[1] * k[1] + p[2] * k[2]
    xy = dot(RI[0], R[1]) - p[0] * u[1] - p[1] * u[0]
    yy = dot(RI[1], R[1]) + p[0] * k[0] + p[2] * k[2]
    xz = dot(RI[0], R[2]) - p[0] * u[2] - p[2] * u[0]
    yz = dot(RI[1], R[2]) - p[1] * u[2] - p[2] * u[1]
    zz = dot(RI[2], R[2]) + p[0] * k[0] + p[1] * k[1]
    return Inertia(J.m, add3(h, mul3(J.m, p)), (xx, xy, yy, xz, yz, zz))
