"""Sine, cosine, and exponentials, logarithms and their differentials on SO(3) and SE(3), to a few ulp at every angle.

Sources: Park and Chung 2005 section II, Lemma 1; Mueller and Terze 2013 (9), (10).
"""

import math

import numpy as np

from geomctrl.tracing.polynomials import COSINE, HALF_PI, REDUCIBLE, SINE

from .primitives import primitive
from .screws import (
    Pose,
    Twist,
    add3,
    add33,
    cross,
    dot,
    eye33,
    hat3,
    hat_squared,
    matmul,
    mul3,
    mul33,
    transpose,
)

# --- sine and cosine -------------------------------------------------------------------------------------------


@primitive
def polynomial(c, x):
    """c[0] + c[1] x + c[2] x^2 + ..."""
    y = 0.0
    for i in range(len(c) - 1, -1, -1):
        y = y * x + c[i]
    return y


@primitive
def sin_cos(x):
    """(sin x, cos x), to an ulp of 1."""
    if abs(x) <= REDUCIBLE:
        return reduced_sin_cos(x)
    return math.sin(x), math.cos(x)


@primitive
def reduced_sin_cos(x):
    """(sin x, cos x) for |x| <= REDUCIBLE, to an ulp of 1; ten times faster than libm, and LLVM can vectorise it.

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


# --- choices: they replace branches on numbers, so that symbols and intervals can take both sides -----------------


@primitive
def where(condition, a, b):
    """a where the condition holds, else b; both are computed."""
    return a if condition else b


@primitive
def either(condition, yes, no, x):
    """yes(x) where the condition holds, else no(x); for numbers only one of them is computed."""
    if condition:
        return yes(x)
    return no(x)


# --- exponentials ----------------------------------------------------------------------------------------------
#
# All small-angle logic of the project. The coefficients are functions of u = t^2, t = |w|. Below u = 10, just above the
# largest angle that a logarithm returns, they are series without trigonometry. Above it they are the closed forms of
# Park and Chung (2005) Lemma 1, which lose digits to cancellation only for smaller angles. The two series are
#   c4, c5 = sum (-u)^k / (2k+4)!, (2k+5)!, from which the others follow by c_n = 1/n! - u c_{n+2}, and
#   (t/2) cot(t/2) = 1 - u sum_n 2 / ((2 pi n)^2 - u), the pole n = 1 alone plus a fast series.

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
    return either(u < SWITCH, dexp_series, dexp_closed, u)


@primitive
def dexp_series(u):
    c4 = polynomial(C4, u)
    c5 = polynomial(C5, u)
    zeta = 1 / 6 - u * c5
    return 1.0 - u * zeta, 0.5 - u * c4, zeta, 2.0 * c4 - zeta, 3.0 * c5 - c4


@primitive
def dexp_closed(u):
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
    ad^2. They have poles at t = 2 pi k, k != 0, and are finite at every floating-point u.
    """
    return either(u < SWITCH, dexp_inv_series, dexp_inv_closed, u)


@primitive
def dexp_inv_series(u):
    pole = 1.0 / (TWO_PI_SQUARED - u)
    return 2.0 * pole + polynomial(G1, u), 4.0 * pole * pole + polynomial(G2, u)


@primitive
def dexp_inv_closed(u):
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
    """The rotation nearest to a matrix that differs from SO(3) by rounding: R (3 - R^T R) / 2."""
    return add33(R, mul33(0.5, matmul(R, add33(eye33(), mul33(-1.0, matmul(transpose(R), R))))))


@primitive
def scaled_quaternion(R):
    """(w, n), a positive multiple of R's quaternion with w >= 0; where w = 0 the first of n's largest is positive.

    It is four times the product of the quaternion with its largest component, well-conditioned at every angle.
    """
    trace = R[0][0] + R[1][1] + R[2][2]
    a = (R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1])
    xy, xz, yz = R[0][1] + R[1][0], R[0][2] + R[2][0], R[1][2] + R[2][1]
    largest = max(R[0][0], R[1][1], R[2][2])
    first, x, y = trace >= largest, R[0][0] >= largest, R[1][1] >= largest
    c = where(first, 1.0 + trace, where(x, a[0], where(y, a[1], a[2])))
    n = (
        where(first, a[0], where(x, 1.0 + R[0][0] - R[1][1] - R[2][2], where(y, xy, xz))),
        where(first, a[1], where(x, xy, where(y, 1.0 + R[1][1] - R[2][2] - R[0][0], yz))),
        where(first, a[2], where(x, xz, where(y, yz, 1.0 + R[2][2] - R[0][0] - R[1][1]))),
    )
    return abs(c), mul3(where(c < 0.0, -1.0, 1.0), n)


@primitive
def log_so3(R):
    """w with exp [w] = R and |w| <= pi; at |w| = pi the first of the largest components of w is positive."""
    c, n = scaled_quaternion(R)
    s = math.sqrt(dot(n, n))
    return mul3(either(s == 0.0, identity_factor, angle_factor, (s, c)), n)


@primitive
def quaternion_so3(R):
    """R's unit quaternion (w, x, y, z) with w >= 0; signs at w = 0 as for `log_so3`."""
    c, n = scaled_quaternion(R)
    scale = 1.0 / math.sqrt(c * c + dot(n, n))
    return scale * c, scale * n[0], scale * n[1], scale * n[2]


@primitive
def identity_factor(x):
    """The factor for the identity, and for angles whose squares underflow."""
    return 2.0 / x[1]


@primitive
def angle_factor(x):
    return 2.0 * math.atan2(x[0], x[1]) / x[0]


@primitive
def dexp_so3(w, x):
    """dexp_w x, right-trivialised: d/dt exp [w] = [dexp_w wdot] exp [w]."""
    _, half_beta, zeta, _, _ = dexp_coefficients(dot(w, w))
    wx = cross(w, x)
    return add3(x, add3(mul3(half_beta, wx), mul3(zeta, cross(w, wx))))


@primitive
def dexp_inv_so3(w, x):
    """dexp_w^-1 x; singular where |w| is a multiple of 2 pi other than 0."""
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
    return Pose(R, add3(v, add3(mul3(half_beta, wv), mul3(zeta, cross(w, wv)))))


@primitive
def log_se3(T):
    """X with exp X = T and |w| <= pi."""
    w = log_so3(T.R)
    return Twist(w, dexp_inv_so3(w, T.p))


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
    """dexp_X^-1 Y; singular where |w| is a multiple of 2 pi other than 0. Park and Chung (23), (24)."""
    w, v, y = X.w, X.v, Y.w
    g1, g2 = dexp_inv_coefficients(dot(w, w))
    wy = cross(w, y)
    wwy = cross(w, wy)
    first = add3(cross(w, Y.v), cross(v, y))
    second = add3(cross(w, first), cross(v, wy))
    linear = add3(mul3(-0.5, first), add3(mul3(g1, second), mul3(dot(w, v) * g2, wwy)))
    return Twist(add3(y, add3(mul3(-0.5, wy), mul3(g1, wwy))), add3(Y.v, linear))


LARGEST_ANGLE = 2.0 * math.pi - 0.1  # rad a joint may turn within a step: dexp^-1 is singular at 2 pi


@primitive
def within_a_turn(w):
    """False also for nan."""
    return dot(w, w) < LARGEST_ANGLE * LARGEST_ANGLE
