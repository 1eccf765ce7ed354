"""Vectors and 3x3 matrices as tuples of numbers, matrices by rows; symmetric ones as (xx, xy, yy, xz, yz, zz)."""

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
