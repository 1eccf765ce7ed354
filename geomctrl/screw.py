"""The algebra kernels speak: so(3), se(3) and their duals on tuples of floats.

Twists `(w, v)`, wrenches `(m, f)` and frames `(R, p)` are named tuples of 3-tuples, so a kernel's line is the paper's
line and LLVM keeps everything in registers. Nothing here allocates and nothing here is called from Python: `so3` and
`se3` are the same algebra for people. Angular part first; a frame `T_ab` maps coordinates in b to coordinates in a.

Sources: Ploen 1999 section 2; Mueller 2018 appendix; Park and Chung 2005 section II.
"""

import math
from typing import NamedTuple

import numpy as np

from .jit import primitive


class Twist(NamedTuple):
    """(omega, v): also a screw S, an acceleration or any element of se(3)."""

    w: tuple
    v: tuple


class Wrench(NamedTuple):
    """(m, f): also a momentum, or any element of the dual of se(3)."""

    m: tuple
    f: tuple


class Frame(NamedTuple):
    """T_ab: the rows of R_ab and the origin of b in a."""

    R: tuple
    p: tuple


class Inertia(NamedTuple):
    """Mass, first moment h = m c, and (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the frame's origin."""

    m: float
    h: tuple
    I: tuple


# --- vectors and matrices --------------------------------------------------------------------------------------


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
def zero33():
    return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)


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


# --- sine and cosine -------------------------------------------------------------------------------------------

SINE = (
    *(-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04),
    *(2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10),
)
COSINE = (
    *(4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05),
    *(-2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11),
)
HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)  # a sum, each 33 bits
REDUCIBLE = 1e5  # largest |x| for which `sin_cos` reduces the argument exactly enough


@primitive
def polynomial(c, x):
    """c[0] + c[1] x + c[2] x^2 + ..."""
    y = 0.0
    for i in range(len(c) - 1, -1, -1):
        y = y * x + c[i]
    return y


@primitive
def sin_cos(x):
    """(sin x, cos x) for |x| <= REDUCIBLE, to an ulp of 1, ten times faster than libm's and open to vectorisation.

    Argument reduction by Cody and Waite, minimax polynomials on [-pi/4, pi/4].
    """
    k = np.floor(x * 0.6366197723675814 + 0.5)
    r = ((x - k * HALF_PI[0]) - k * HALF_PI[1]) - k * HALF_PI[2]
    u = r * r
    s = r + r * u * polynomial(SINE, u)
    c = 1.0 - 0.5 * u + u * u * polynomial(COSINE, u)
    quadrant = k - 4.0 * np.floor(0.25 * k)
    odd = (quadrant == 1.0) | (quadrant == 3.0)
    sine = c if odd else s
    cosine = s if odd else c
    sine = -sine if quadrant >= 2.0 else sine
    cosine = -cosine if (quadrant == 1.0) | (quadrant == 2.0) else cosine
    return sine, cosine


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
    return Frame(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, 0.0))


@primitive
def compose(A, B):
    return Frame(matmul(A.R, B.R), add3(A.p, rot(A.R, B.p)))


@primitive
def inverse(T):
    return Frame(transpose(T.R), neg3(rotT(T.R, T.p)))


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
def momentum(J, V):
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


# --- memory ----------------------------------------------------------------------------------------------------


@primitive
def finite(x):
    """No nan and no infinity in a flat array."""
    zero = 0.0
    for i in range(x.shape[0]):
        zero += 0.0 * x[i]
    return zero == 0.0


@primitive
def vec(a, k):
    return a[k], a[k + 1], a[k + 2]


@primitive
def put(a, k, x):
    a[k] = x[0]
    a[k + 1] = x[1]
    a[k + 2] = x[2]


@primitive
def get_twist(a, k):
    return Twist(vec(a, k), vec(a, k + 3))


@primitive
def get_wrench(a, k):
    return Wrench(vec(a, k), vec(a, k + 3))


@primitive
def put6(a, k, X):
    """Store a twist or a wrench."""
    put(a, k, X[0])
    put(a, k + 3, X[1])


@primitive
def get_frame(a, k):
    """A frame stored as the 3x4 matrix [R | p] row by row, as in a configuration q."""
    return Frame(
        (vec(a, k), vec(a, k + 4), vec(a, k + 8)),
        (a[k + 3], a[k + 7], a[k + 11]),
    )


@primitive
def put_frame(a, k, T):
    put(a, k, T.R[0])
    put(a, k + 4, T.R[1])
    put(a, k + 8, T.R[2])
    a[k + 3], a[k + 7], a[k + 11] = T.p[0], T.p[1], T.p[2]


@primitive
def get_inertia(a, k):
    return Inertia(a[k], vec(a, k + 1), (a[k + 4], a[k + 5], a[k + 6], a[k + 7], a[k + 8], a[k + 9]))


@primitive
def put_inertia(a, k, J):
    a[k] = J.m
    put(a, k + 1, J.h)
    a[k + 4], a[k + 5], a[k + 6], a[k + 7], a[k + 8], a[k + 9] = J.I[0], J.I[1], J.I[2], J.I[3], J.I[4], J.I[5]


@primitive
def accumulate(a, k, b, j, n):
    """a[k:k+n] += b[j:j+n]."""
    for i in range(n):
        a[k + i] += b[j + i]


# --- exponentials ----------------------------------------------------------------------------------------------
#
# All small-angle logic of the project. The coefficients are functions of u = t^2, t = |w|. Below u = 10, just above
# every angle a logarithm returns, they come from series without trigonometry; above it from the closed forms of Park
# and Chung (2005) Lemma 1, which lose digits to cancellation only for smaller angles. The two series are
#   c4, c5 = sum (-u)^k / (2k+4)!, (2k+5)!, from which the others follow by c_n = 1/n! - u c_{n+2}, and
#   (t/2) cot(t/2) = 1 - u sum_n 2 / ((2 pi n)^2 - u), whose pole n = 1 stands alone and whose rest is a fast series.

SWITCH = 10.0
TWO_PI_SQUARED = 39.478417604357434475  # (2 pi)^2
C4 = tuple((-1) ** k / math.factorial(2 * k + 4) for k in range(13))
C5 = tuple((-1) ** k / math.factorial(2 * k + 5) for k in range(13))
G1 = (  # 2 (zeta(2k) - 1) / (2 pi)^2k
    *(0.032672741512164448, 1.0564110705334699e-4, 5.6373702828768453e-7, 3.3571419266574514e-9),
    *(2.0742872904166046e-11, 1.3000482138698974e-13, 8.1960520556910086e-16, 5.1801181961697243e-18),
    *(3.2775391747017918e-20, 2.0747401878593605e-22, 1.3136241807166534e-24, 8.3180031951892641e-27),
    *(5.2672629968342309e-29, 3.3354842988221443e-31, 2.1122063323183885e-33),
)
G2 = tuple(2 * k * c for k, c in enumerate(G1))[1:]  # twice the derivative of G1, since g2 = 2 dg1/du


@primitive
def dexp_coefficients(u):
    """(alpha, beta/2, zeta, d1, d2) at u = t^2, with s = sin(t/2)/(t/2), c = cos(t/2), alpha = s c, beta = s^2.

    zeta = (1 - alpha)/u, d1 = (alpha - beta)/u, d2 = (beta/2 - 3 zeta)/u: Park and Chung (20), (21).
    """
    if u < SWITCH:
        c4 = polynomial(C4, u)
        c5 = polynomial(C5, u)
        zeta = 1 / 6 - u * c5
        return 1.0 - u * zeta, 0.5 - u * c4, zeta, 2.0 * c4 - zeta, 3.0 * c5 - c4
    h = 0.5 * math.sqrt(u)
    s = math.sin(h) / h
    alpha = s * math.cos(h)
    half_beta = 0.5 * s * s
    zeta = (1.0 - alpha) / u
    return alpha, half_beta, zeta, (alpha - 2.0 * half_beta) / u, (half_beta - 3.0 * zeta) / u


@primitive
def dexp_inv_coefficients(u):
    """(g1, g2) = ((1 - gamma)/u, (1/beta + gamma - 2)/u^2) at u = t^2, with gamma = (t/2) cot(t/2).

    The coefficients of Park and Chung (24). In Mueller and Terze (10), -g2/2 is that of ad^4 and g1 - u g2/2 that of
    ad^2. Poles at t = 2 pi k, k != 0: huge next to them, finite at every floating-point u.
    """
    if u < SWITCH:
        pole = 1.0 / (TWO_PI_SQUARED - u)
        return 2.0 * pole + polynomial(G1, u), 4.0 * pole * pole + polynomial(G2, u)
    h = 0.5 * math.sqrt(u)
    r = h / math.sin(h)
    gamma = r * math.cos(h)
    return (1.0 - gamma) / u, (r * r + gamma - 2.0) / (u * u)


@primitive
def exp_so3(w):
    """R = exp [w], as rows."""
    alpha, half_beta, _, _, _ = dexp_coefficients(dot(w, w))
    return add33(add33(eye33(), mul33(alpha, hat3(w))), mul33(half_beta, hat_squared(w, w)))


@primitive
def orthonormal(R):
    """A rotation that is a few roundings off SO(3), moved to the nearest one: R (3 - R^T R) / 2."""
    return add33(R, mul33(0.5, matmul(R, add33(eye33(), mul33(-1.0, matmul(transpose(R), R))))))


@primitive
def log_so3(R):
    """w with exp [w] = R and |w| <= pi; at |w| = pi the first of the largest components of w is positive.

    Through four times the product of R's quaternion with its largest component, which no angle makes ill-conditioned.
    """
    trace = R[0][0] + R[1][1] + R[2][2]
    a = (R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1])
    xy, xz, yz = R[0][1] + R[1][0], R[0][2] + R[2][0], R[1][2] + R[2][1]
    if trace >= max(R[0][0], R[1][1], R[2][2]):
        c, n = 1.0 + trace, a
    elif R[0][0] >= R[1][1] and R[0][0] >= R[2][2]:
        c, n = a[0], (1.0 + R[0][0] - R[1][1] - R[2][2], xy, xz)
    elif R[1][1] >= R[2][2]:
        c, n = a[1], (xy, 1.0 + R[1][1] - R[2][2] - R[0][0], yz)
    else:
        c, n = a[2], (xz, yz, 1.0 + R[2][2] - R[0][0] - R[1][1])
    if c < 0.0:
        c, n = -c, neg3(n)
    s = math.sqrt(dot(n, n))
    if s == 0.0:  # the identity, or so close that squares underflow
        return mul3(2.0 / c, n)
    return mul3(2.0 * math.atan2(s, c) / s, n)


@primitive
def dexp_so3(w, x):
    """dexp_w x, right-trivialised: d/dt exp [w] = [dexp_w wdot] exp [w]."""
    _, half_beta, zeta, _, _ = dexp_coefficients(dot(w, w))
    wx = cross(w, x)
    return add3(x, add3(mul3(half_beta, wx), mul3(zeta, cross(w, wx))))


@primitive
def dexp_inv_so3(w, x):
    """dexp_w^-1 x; singular, hence huge, where |w| nears a multiple of 2 pi other than 0."""
    g1, _ = dexp_inv_coefficients(dot(w, w))
    wx = cross(w, x)
    return add3(x, add3(mul3(-0.5, wx), mul3(g1, cross(w, wx))))


@primitive
def exp_se3(X):
    """exp X: the frame (exp [w], dexp_w v)."""
    w, v = X.w, X.v
    alpha, half_beta, zeta, _, _ = dexp_coefficients(dot(w, w))
    R = add33(add33(eye33(), mul33(alpha, hat3(w))), mul33(half_beta, hat_squared(w, w)))
    wv = cross(w, v)
    return Frame(R, add3(v, add3(mul3(half_beta, wv), mul3(zeta, cross(w, wv)))))


@primitive
def log_se3(T):
    """X with exp X = T and |w| <= pi."""
    w = log_so3(T.R)
    return Twist(w, dexp_inv_so3(w, T.p))


@primitive
def exp_screw(S, q):
    """exp(S q) for a screw with |w| = 1 or w = 0: what a joint's coordinate does."""
    w, v = S.w, S.v
    s = math.sin(q)
    h = math.sin(0.5 * q)
    k = 2.0 * h * h  # 1 - cos q
    R = add33(add33(eye33(), mul33(s, hat3(w))), mul33(k, hat_squared(w, w)))
    wv = cross(w, v)
    return Frame(R, add3(mul3(q, v), add3(mul3(k, wv), mul3(q - s, cross(w, wv)))))


@primitive
def dexp_se3(X, Y):
    """dexp_X Y, right-trivialised: the body twist of exp X is dexp_{-X} Xdot. Park and Chung (20), (21)."""
    w, v, y = X.w, X.v, Y.w
    _, half_beta, zeta, d1, d2 = dexp_coefficients(dot(w, w))
    d = dot(w, v)
    wy = cross(w, y)
    wwy = cross(w, wy)
    first = add3(cross(w, Y.v), cross(v, y))
    second = add3(cross(w, first), cross(v, wy))  # [w]^2 Y.v + ([w][v] + [v][w]) y
    linear = add3(add3(mul3(half_beta, first), mul3(zeta, second)), add3(mul3(d * d1, wy), mul3(d * d2, wwy)))
    return Twist(add3(y, add3(mul3(half_beta, wy), mul3(zeta, wwy))), add3(Y.v, linear))


@primitive
def dexp_inv_se3(X, Y):
    """dexp_X^-1 Y; singular, hence huge, where |w| nears a multiple of 2 pi other than 0. Park and Chung (23), (24)."""
    w, v, y = X.w, X.v, Y.w
    g1, g2 = dexp_inv_coefficients(dot(w, w))
    wy = cross(w, y)
    wwy = cross(w, wy)
    first = add3(cross(w, Y.v), cross(v, y))
    second = add3(cross(w, first), cross(v, wy))
    linear = add3(mul3(-0.5, first), add3(mul3(g1, second), mul3(dot(w, v) * g2, wwy)))
    return Twist(add3(y, add3(mul3(-0.5, wy), mul3(g1, wwy))), add3(Y.v, linear))
