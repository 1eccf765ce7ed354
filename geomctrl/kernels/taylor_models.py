"""Taylor models of order 2 and Taylor series in time of a recorded function, with bounds of all rounding errors.

A Taylor model is a row of numbers that represents the set of reals

    c + sum_j c_j e_j + sum_{i <= j <= m2} c_ij e_i e_j + err [-1, 1],      |e_j| <= 1, j = 1..m,

with the same symbols e in all rows (Makino and Berz 2003). The row has c, the m linear coefficients, the quadratic ones
of the first m2 symbols by rows of the upper triangle, and four bounds: err, the size of everything but c, the size of
the linear part and the size of the quadratic part. A row of nan is an undefined quantity.

`series` evaluates the coefficients of the solution of y' = f(y) in powers of time. f is a list of operations, and each
has a recurrence for the coefficients of its result (Griewank and Walther 2008, table 13.2).

**Rounding.** A sum or a product to nearest is off by at most 2^-53 of its size, or by less than LEAST where it
underflows; EPS is twice 2^-53. Bounds are sums of a thousand numbers at most that are rounded themselves, which the
factor UP covers. Elementary functions are off by at most 8 units in the last place (`proofs.intervals.ULPS`), sine and
cosine by WAVE. The kernels are strict: the compiler contracts and reorders nothing.
"""

from __future__ import annotations

import math

import numpy as np

from geomctrl.tracing.proofs.operation_rows import (
    ADD,
    AND,
    CONST,
    DIV,
    EQ,
    LE,
    LOAD,
    LT,
    MUL,
    NEG,
    NOT,
    SIN,
    SUB,
    WHERE,
)

from .jit import kernel
from .primitives import primitive
from .taylor_functions import ALL, EPS, ERR, LEAST, LIN, QUAD, UP, add_quadratic, elementary, expand, reciprocal, store
from .taylor_ranges import compared, is_extreme, set_range

NEGLIGIBLE = 2.0**-30  # error of a row, relative to its size, that needs no symbol


@primitive
def convolution(N, w, a, b, k, first, last, weighted, m, m2):
    """w = sum over i from first to last of a_i b_(k - i), times i if weighted; return a bound of its error."""
    err = 0.0
    size = 0.0
    nonzero = False
    for j in range(len(w)):
        w[j] = 0.0
    for i in range(first, last + 1):
        p = N[a, i]
        q = N[b, k - i]
        if math.isnan(p[0]) or math.isnan(q[0]):
            return math.nan
        s = abs(p[0])
        t = abs(q[0])
        if s + p[ALL] == 0.0 or t + q[ALL] == 0.0:
            continue
        nonzero = True
        factor = 1.0 * i if weighted else 1.0
        c = factor * p[0]
        d = factor * q[0]
        w[0] += c * q[0]
        if p[ALL] == 0.0:
            for j in range(1, len(w)):
                w[j] += c * q[j]
        elif q[ALL] == 0.0:
            for j in range(1, len(w)):
                w[j] += d * p[j]
        else:
            for j in range(1, len(w)):
                w[j] += c * q[j] + d * p[j]
            err += add_quadratic(w, p, q, factor, m, m2)
            err += factor * (p[LIN] * q[QUAD] + p[QUAD] * q[LIN] + p[QUAD] * q[QUAD])
        err += factor * ((s + p[ALL]) * q[ERR] + (t + q[ALL]) * p[ERR])
        size += factor * (s + p[ALL]) * (t + q[ALL])
    return err + (4.0 * (last - first) + 16.0) * EPS * size + (LEAST if nonzero else 0.0)


@primitive
def divide(form, w, err, divisor, m):
    """Set a row to (w +- err) / divisor."""
    size = 0.0
    for j in range(len(w)):
        w[j] /= divisor
        size += abs(w[j])
    store(form, w, err / abs(divisor) + 2.0 * EPS * size + (LEAST if size + err != 0.0 else 0.0), m)


@primitive
def difference(w, a, b):
    """w = a - b; return a bound of the errors of both and of the rounding."""
    size = 0.0
    for j in range(len(w)):
        w[j] = a[j] - b[j]
        size += abs(w[j])
    return (a[ERR] + b[ERR] + 2.0 * EPS * size) * UP


@primitive
def truth(op, a, b, w):
    """A comparison of two rows: 1.0 if it holds for all symbols, 0.0 if for none, else 0.5."""
    spread = difference(w, b, a)
    for j in range(1, len(w)):
        spread += abs(w[j])
    spread *= UP
    gap = w[0]
    if op == EQ:
        return 1.0 if gap == 0.0 and spread == 0.0 else 0.0 if gap > spread or gap < -spread else 0.5
    if gap > spread or (op == LE and gap >= spread):
        return 1.0
    if gap < -spread or (op == LT and gap <= -spread):
        return 0.0
    return 0.5


@primitive
def hull(form, a, b, w, m):
    """Set a row to a set that contains both rows: their mean, and half their difference as error."""
    err = max(a[ERR], b[ERR])
    size = 0.0
    for j in range(len(w)):
        err += 0.5 * abs(a[j] - b[j])
        w[j] = 0.5 * a[j] + 0.5 * b[j]
        size += abs(a[j]) + abs(b[j])
    if math.isnan(a[0]) or math.isnan(b[0]):
        err = math.nan
    store(form, w, (err + 2.0 * EPS * size) * UP + LEAST, m)


@primitive
def extreme(form, a, b, sign, w, m, m2):
    """Set a row to the larger (sign 1) or smaller (-1) of rows a and b: b + sign max(d, 0) for d = sign (a - b).

    For d in [-l, h], the line h (d + l) / (h + l) is above max(d, 0), by h l / (h + l) at most.
    """
    err = difference(w, a, b)
    for j in range(len(w)):
        w[j] *= sign
    store(form, w, err, m)
    margin = 2.0 * EPS * (abs(form[0]) + form[ALL])
    h = (form[0] + form[ALL]) + margin
    l = (form[ALL] - form[0]) + margin
    slope = h / (h + l)
    half = 0.5 * slope * l
    expand(form, form, w, slope * form[0] + half, slope, 0.0, (half + 64.0 * EPS * (h + l)) * UP, m, m2)
    size = 0.0
    for j in range(len(w)):
        w[j] = b[j] + sign * form[j]
        size += abs(w[j])
    store(form, w, (b[ERR] + form[ERR] + EPS * size) * UP, m)


@primitive
def add_rows(N, w, op, z, a, b, k, m):
    """Coefficient k of a sum, a difference or a negative."""
    err = N[a, k, ERR]
    size = 0.0
    if op == NEG:
        for j in range(len(w)):
            w[j] = -N[a, k, j]
    else:
        sign = -1.0 if op == SUB else 1.0
        err += N[b, k, ERR]
        for j in range(len(w)):
            w[j] = N[a, k, j] + sign * N[b, k, j]
            size += abs(w[j])
    store(N[z, k], w, err + EPS * size, m)


@primitive
def quotient(N, w, R, z, a, b, e, k, m, m2):
    """Coefficient k of a / b. Row e has 1 / b_0 as coefficient 0, row e + 1 the dividends a_k - sum b_i z_(k - i)."""
    if k == 0:
        reciprocal(N[e, 0], N[b, 0], R[b, 0], R[b, 1], w, m, m2)
    err = convolution(N, w, b, z, k, 1, k, False, m, m2)
    size = 0.0
    for j in range(len(w)):
        w[j] = N[a, k, j] - w[j]
        size += abs(w[j])
    store(N[e + 1, k], w, err + N[a, k, ERR] + EPS * size, m)
    err = convolution(N, w, e + 1, e, k, k, k, False, m, m2)
    store(N[z, k], w, err, m)


@primitive
def select(N, w, rows, z, k, hulls, m, m2):
    """Coefficient k of a choice. An undecided one is the extreme of both sides or their hull, which is not smooth."""
    condition, a, b = rows[z, 1], rows[z, 2], rows[z, 3]
    certain = N[condition, 0, 0]
    if certain == 1.0 or certain == 0.0:
        chosen = a if certain == 1.0 else b
        for j in range(N.shape[2]):
            N[z, k, j] = N[chosen, k, j]
    elif k > 0 and not hulls:
        N[z, k, 0] = math.nan
    elif k == 0 and is_extreme(rows, z):
        narrow = a if N[a, 0, ALL] < N[b, 0, ALL] else b
        sign = 1.0 if rows[condition, 1] == b else -1.0
        extreme(N[z, 0], N[a + b - narrow, 0], N[narrow, 0], sign, w, m, m2)
    else:
        hull(N[z, k], N[a, k], N[b, k], w, m)


@primitive
def decide(N, w, R, op, z, a, b):
    """The truth of a condition, from coefficients 0 and ranges."""
    if op == AND:
        N[z, 0, 0] = min(N[a, 0, 0], N[b, 0, 0])
    elif op == NOT:
        N[z, 0, 0] = 1.0 - N[a, 0, 0]
    else:
        N[z, 0, 0] = compared(op, R[a, 0], R[a, 1], R[b, 0], R[b, 1])
        if N[z, 0, 0] == 0.5:
            N[z, 0, 0] = truth(op, N[a, 0], N[b, 0], w)


@primitive
def named(form, spare):
    """Make the error of a row the coefficient of a symbol that no row has yet, so that it cancels where it can."""
    form[spare] = form[ERR]
    form[LIN] = (form[LIN] + form[ERR]) * UP
    form[ERR] = 0.0


@kernel(
    "void(i8[:,::1], f8[::1], i8[::1], i8[::1], f8[:,::1], i8, i8, i8, i8, b1, f8[:,:,::1], f8[:,::1])", strict=True
)
def series_many(rows, constants, rates, further, X, order, m, m2, spare, hulls, coefficients, values):
    """Taylor coefficients of the state in time, and the values of further rows.

    coefficients (n, order + 1, width) begins with the state X (n, width); values (further, width). spare: the first of
    the symbols up to m that X does not have; errors of functions get them, as far as there are some. hulls: whether
    undecided choices have hulls as coefficients of all orders, and functions without derivative have zero. Coefficients
    2 and higher are then not those of the Taylor series, which is allowed if an a priori enclosure is verified
    afterwards.
    """
    n, width = X.shape
    w = np.zeros(width - 4)
    N = np.zeros((len(rows), order, width))
    R = np.empty((len(rows), 2))
    for i in range(n):
        for j in range(width):  # elementwise: numba compiles a second of messages for the shapes of slices
            coefficients[i, 0, j] = X[i, j]
    for k in range(order):
        for z in range(len(rows)):
            op, a, b, e = rows[z, 0], rows[z, 1], rows[z, 2], rows[z, 3]
            if op == CONST:
                if k == 0:
                    N[z, 0, 0] = constants[z]
            elif op == LOAD:
                for j in range(width):
                    N[z, k, j] = coefficients[a, k, j]
            elif op in (ADD, SUB, NEG):
                add_rows(N, w, op, z, a, b, k, m)
            elif op == MUL:
                err = convolution(N, w, a, b, k, 0, k, False, m, m2)
                store(N[z, k], w, err, m)
            elif op == DIV:
                quotient(N, w, R, z, a, b, e, k, m, m2)
            elif op == WHERE:
                select(N, w, rows, z, k, hulls, m, m2)
            elif LT <= op <= NOT:
                if k == 0:
                    decide(N, w, R, op, z, a, b)
            elif op >= SIN and k == 0:
                elementary(N[z, 0], op, N[a, 0], R[a, 0], R[a, 1], w, m, m2)
            elif op >= SIN:  # z' = a' times row b, the derivative of the function
                err = convolution(N, w, a, b, k, 1, k, True, m, m2)
                divide(N[z, k], w, err, 1.0 * k, m)
                if hulls and math.isnan(N[z, k, 0]) and not math.isnan(N[z, 0, 0]):
                    for j in range(width):  # a root of zero has no derivative
                        N[z, k, j] = 0.0
            if k == 0:
                set_range(R, rows, z, N[z, 0], N[a, 0, 0])
            if k == 0 and spare <= m and (op == WHERE or op >= SIN) and N[z, 0, ERR] > NEGLIGIBLE * N[z, 0, ALL]:
                named(N[z, 0], spare)
                spare += 1
        for i in range(len(rates)):
            for j in range(len(w)):
                w[j] = N[rates[i], k, j]
            divide(coefficients[i, k + 1], w, N[rates[i], k, ERR], k + 1.0, m)
    for i in range(len(further)):
        for j in range(width):
            values[i, j] = N[further[i], 0, j]


@kernel("f8[::1](f8[::1], f8[::1], i8, i8)", strict=True)
def product_many(p, q, m, m2):
    """The product of two rows."""
    N, w = np.zeros((3, 1, len(p))), np.zeros(len(p) - 4)
    for j in range(len(p)):
        N[0, 0, j] = p[j]
        N[1, 0, j] = q[j]
    err = convolution(N, w, 0, 1, 0, 0, 0, False, m, m2)
    store(N[2, 0], w, err, m)
    return N[2, 0].copy()
