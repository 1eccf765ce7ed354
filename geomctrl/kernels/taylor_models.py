"""Taylor models of order 2 and Taylor series in time of a recorded function, with bounds of all rounding errors.

A Taylor model is a row of numbers that represents the set of reals

    c + sum_j c_j e_j + sum_{i <= j <= m2} c_ij e_i e_j + err [-1, 1],      |e_j| <= 1, j = 1..m,

with the same symbols e in all rows (Makino and Berz 2003). The row has c, the m linear coefficients, the quadratic ones
of the first m2 symbols by rows of the upper triangle, and four bounds: err, the size of everything but c, the size of
the linear part and the size of the quadratic part. A row of nan is an undefined quantity.

`series` evaluates the coefficients of the solution of y' = f(y) in powers of time. f is a list of operations, and each
has a recurrence for the coefficients of its result (Griewank and Walther 2008, table 13.2).

**Rounding.** A sum or a product to nearest is off by at most 2^-53 of its size, or by less than LEAST where it
underflows; EPS is twice 2^-53. Bounds are sums of a few hundred numbers at most that are rounded themselves, which the
factor UP covers. Elementary functions are off by at most 8 units in the last place (`proofs.intervals.ULPS`), sine and
cosine by WAVE. The kernels are strict: the compiler contracts and reorders nothing.
"""

from __future__ import annotations

import math

import numpy as np

from geomctrl.tracing.proofs.operation_rows import (
    ACOS,
    ADD,
    AND,
    ASIN,
    ATAN,
    CONST,
    COS,
    DIV,
    EQ,
    EXP,
    LE,
    LOAD,
    LOG,
    LT,
    MUL,
    NEG,
    NOT,
    SIN,
    SQRT,
    SUB,
    TANH,
    WHERE,
)  # fmt: skip

from .jit import kernel
from .primitives import primitive

EPS, LEAST, WAVE, UP = 2.0**-52, 2.0**-1000, 2.0**-51, 1.0 + 2.0**-42
TINY = 2.0**-300  # least argument of a root or logarithm: the remainder of smaller ones may underflow
NEGLIGIBLE = 2.0**-30  # error of a row, relative to its size, that needs no symbol
ERR, ALL, LIN, QUAD = -4, -3, -2, -1  # places of the bounds in a row


@primitive
def store(form, w, err, m):
    """Set a row to the coefficients w and a bound err; nan if any is not finite."""
    lin = 0.0
    quad = 0.0
    for j in range(1, m + 1):
        lin += abs(w[j])
    for j in range(m + 1, len(w)):
        quad += abs(w[j])
    for j in range(len(w)):
        form[j] = w[j]
    form[ERR] = err * UP
    form[ALL] = (err * UP + lin + quad) * UP
    form[LIN] = lin * UP
    form[QUAD] = quad * UP
    if not math.isfinite(form[ALL] + w[0]):
        for j in range(len(form)):
            form[j] = math.nan


@primitive
def add_quadratic(w, p, q, factor, m, m2):
    """Add factor times the product of two linear parts to w; return a bound of the monomials that w does not have."""
    if p[LIN] == 0.0 or q[LIN] == 0.0:
        return 0.0
    k = m + 1
    for i in range(1, m2 + 1):
        a = factor * p[i]
        b = factor * q[i]
        if a == 0.0 and b == 0.0:
            k += m2 - i + 1
            continue
        w[k] += a * q[i]
        for j in range(i + 1, m2 + 1):
            w[k + j - i] += a * q[j] + b * p[j]
        k += m2 - i + 1
    s = 0.0
    t = 0.0
    for i in range(m2 + 1, m + 1):
        s += abs(p[i])
        t += abs(q[i])
    return abs(factor) * (s * q[LIN] + p[LIN] * t)


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
def expand(form, a, w, value, slope, bend, rest, m, m2):
    """Set a row to value + slope d + bend d^2 +- rest for d = a - its centre; the three numbers are off by 8 EPS."""
    w[0] = value
    for j in range(1, len(w)):
        w[j] = slope * a[j]
    err = add_quadratic(w, a, a, bend, m, m2)
    nonlinear = a[QUAD] + a[ERR]
    err += abs(slope) * a[ERR] + rest + abs(bend) * (2.0 * a[LIN] * nonlinear + nonlinear * nonlinear)
    size = abs(value) + abs(slope) * a[ALL] + abs(bend) * a[ALL] * a[ALL]
    store(form, w, err + 24.0 * EPS * size + LEAST, m)


@primitive
def divide(form, w, err, divisor, m):
    """Set a row to (w +- err) / divisor."""
    size = 0.0
    for j in range(len(w)):
        w[j] /= divisor
        size += abs(w[j])
    store(form, w, err / abs(divisor) + 2.0 * EPS * size + (LEAST if size + err != 0.0 else 0.0), m)


@primitive
def unresolved(a, m, m2):
    """A bound of the square of the part of row a that is not constant, without what quadratic coefficients represent."""
    s = 0.0
    for i in range(m2 + 1, m + 1):
        s += abs(a[i])
    nonlinear = a[QUAD] + a[ERR]
    return 2.0 * a[LIN] * (s + nonlinear) + nonlinear * nonlinear


@primitive
def expand_tanh(form, a, lo, hi, w, m, m2):
    """Set a row to tanh of row a, in [lo, hi]: Taylor's formula or a line, whichever has the smaller error.

    The derivatives are 1 - t^2 and, of third order, -2 (1 - t^2)(1 - 3 t^2) with t = tanh. Lines have slopes 1 - t^2
    from that of the chord to steeper ones; tanh x minus a line is extreme at an end or where tanh x = +-t.
    """
    c = a[0]
    r = a[ALL]
    value = math.tanh(c)
    slope = (1.0 - value) * (1.0 + value)
    bend = -value * slope
    first = math.tanh(lo)
    last = math.tanh(hi)
    least = 0.0 if lo <= 0.0 <= hi else min(abs(first), abs(last))
    largest = max(abs(first), abs(last))
    third = (1.0 - least) * (1.0 + least) * max(abs(1.0 - 3.0 * least * least), abs(1.0 - 3.0 * largest * largest))
    rest = UP * (third + 128.0 * EPS) * r * r * r / 3.0 + 16.0 * EPS * (r + r * r)
    total = rest + abs(bend) * unresolved(a, m, m2)
    chord = math.sqrt(max(1.0 - (last - first) / (hi - lo), 0.0)) if hi > lo else 0.0
    for k in range(4, 9):
        t = 0.125 * k * chord
        if t < 2.0**-20 or t > 1.0 - 2.0**-20:
            continue
        x = 0.5 * math.log((1.0 + t) / (1.0 - t))
        line = (1.0 - t) * (1.0 + t)
        high = max(first - line * lo, last - line * hi)
        low = min(first - line * lo, last - line * hi)
        if lo <= x + 2.0**-20 and hi >= x - 2.0**-20:
            high = max(high, t - line * x)
        if lo <= -x + 2.0**-20 and hi >= -x - 2.0**-20:
            low = min(low, line * x - t)
        distance = 0.5 * (high - low) + 128.0 * EPS * (1.0 + abs(lo) + abs(hi) + x)
        if distance < total:
            value, slope, bend, rest, total = line * c + 0.5 * (high + low), line, 0.0, distance, distance
    expand(form, a, w, value, slope, bend, rest * UP, m, m2)


@primitive
def elementary(form, op, a, w, m, m2):
    """Set a row to an elementary function of row a: Taylor's formula of order 2 with the remainder f''' r^3 / 6."""
    c = a[0]
    r = a[ALL]
    lo = (c - r) - 2.0 * EPS * (abs(c) + r)
    hi = (c + r) + 2.0 * EPS * (abs(c) + r)
    cube = UP * r * r * r / 6.0
    value = slope = bend = rest = math.nan
    if op in (SIN, COS):
        s = math.sin(c)
        t = math.cos(c)
        rest = WAVE * (1.0 + r) * (1.0 + r) if c != 0.0 or r != 0.0 else 0.0
        if op == SIN:
            value, slope, bend = s, t, -0.5 * s
            rest += cube * min(1.0, abs(t) + r + WAVE)
        else:
            value, slope, bend = t, -s, -0.5 * t
            rest += cube * min(1.0, abs(s) + r + WAVE)
    elif op == EXP:
        value = math.exp(c)
        slope, bend, rest = value, 0.5 * value, cube * (math.exp(hi) + LEAST)
    elif op == LOG and lo > TINY:
        value, slope = math.log(c), 1.0 / c
        bend, rest = -0.5 * slope * slope, 2.0 * cube / (lo * lo * lo)
    elif op == SQRT and lo > TINY:
        value = math.sqrt(c)
        slope = 0.5 / value
        bend, rest = -0.25 * slope / c, 0.375 * cube / (lo * lo * math.sqrt(lo))
    elif (op in (ASIN, ACOS)) and lo > -1.0 and hi < 1.0:
        largest = max(-lo, hi)
        q = (1.0 - c) * (1.0 + c)
        Q = (1.0 - largest) * (1.0 + largest) * (1.0 - 4.0 * EPS)
        slope = 1.0 / math.sqrt(q)
        bend = 0.5 * c * slope / q
        rest = cube * (1.0 + 2.0 * largest * largest) / (Q * Q * math.sqrt(Q))
        value = math.asin(c)
        if op == ACOS:
            value, slope, bend = math.acos(c), -slope, -bend
    elif op == ATAN:
        value = math.atan(c)
        slope = 1.0 / (1.0 + c * c)
        bend, rest = -c * slope * slope, 2.0 * cube
    if op == TANH:
        expand_tanh(form, a, lo, hi, w, m, m2)
    else:
        expand(form, a, w, value, slope, bend, rest * UP, m, m2)
    if op == COS and c == 0.0 and r == 0.0:
        form[ERR] = form[ALL] = 0.0
    if (op in (SIN, TANH)) and c == 0.0 and r == 0.0:
        form[ERR] = form[ALL] = 0.0


@primitive
def reciprocal(form, a, w, m, m2):
    """Set a row to 1 / a: y - y^2 d + y^3 d^2 - y^3 d^3 / (c + d) with y = 1 / c."""
    c = a[0]
    r = a[ALL]
    low = abs(c) - r - 2.0 * EPS * (abs(c) + r)
    y = 1.0 / c
    rest = UP * r * r * r * abs(y * y * y) / low if low > 0.0 else math.nan
    expand(form, a, w, y, -y * y, y * y * y, rest * UP, m, m2)


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
def quotient(N, w, z, a, b, e, k, m, m2):
    """Coefficient k of a / b. Row e has 1 / b_0 as coefficient 0, row e + 1 the dividends a_k - sum b_i z_(k - i)."""
    if k == 0:
        reciprocal(N[e, 0], N[b, 0], w, m, m2)
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
    elif k == 0 and rows[condition, 0] == LT and (
        (rows[condition, 1] == a and rows[condition, 2] == b) or (rows[condition, 1] == b and rows[condition, 2] == a)
    ):
        narrow = a if N[a, 0, ALL] < N[b, 0, ALL] else b
        sign = 1.0 if rows[condition, 1] == b else -1.0
        extreme(N[z, 0], N[a + b - narrow, 0], N[narrow, 0], sign, w, m, m2)
    else:
        hull(N[z, k], N[a, k], N[b, k], w, m)


@primitive
def decide(N, w, op, z, a, b):
    """The truth of a condition, from coefficients 0."""
    if op == AND:
        N[z, 0, 0] = min(N[a, 0, 0], N[b, 0, 0])
    elif op == NOT:
        N[z, 0, 0] = 1.0 - N[a, 0, 0]
    else:
        N[z, 0, 0] = truth(op, N[a, 0], N[b, 0], w)


@primitive
def named(form, spare):
    """Make the error of a row the coefficient of a symbol that no row has yet, so that it cancels where it can."""
    form[spare] = form[ERR]
    form[LIN] = (form[LIN] + form[ERR]) * UP
    form[ERR] = 0.0


@kernel("void(i8[:,::1], f8[::1], i8[::1], i8[::1], f8[:,::1], i8, i8, i8, i8, b1, f8[:,:,::1], f8[:,::1])", strict=True)
def series_many(rows, constants, rates, further, X, order, m, m2, spare, hulls, coefficients, values):
    """Taylor coefficients of the state in time, and the values of further rows.

    coefficients (n, order + 1, width) begins with the state X (n, width); values (further, width). spare: the first of
    the symbols up to m that X does not have; errors of functions get them, as far as there are some. hulls: whether
    undecided choices have hulls as coefficients of all orders. Coefficients 2 and higher are then not those of the
    Taylor series, which is allowed if an a priori enclosure is verified afterwards.
    """
    n, width = X.shape
    w = np.zeros(width - 4)
    N = np.zeros((len(rows), order, width))
    for i in range(n):
        coefficients[i, 0] = X[i]
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
                quotient(N, w, z, a, b, e, k, m, m2)
            elif op == WHERE:
                select(N, w, rows, z, k, hulls, m, m2)
            elif LT <= op <= NOT:
                if k == 0:
                    decide(N, w, op, z, a, b)
            elif op >= SIN and k == 0:
                elementary(N[z, 0], op, N[a, 0], w, m, m2)
            elif op >= SIN:  # z' = a' times row b, the derivative of the function
                err = convolution(N, w, a, b, k, 1, k, True, m, m2)
                divide(N[z, k], w, err, 1.0 * k, m)
            if k == 0 and spare <= m and (op == WHERE or op >= SIN) and N[z, 0, ERR] > NEGLIGIBLE * N[z, 0, ALL]:
                named(N[z, 0], spare)
                spare += 1
        for i in range(len(rates)):
            for j in range(len(w)):
                w[j] = N[rates[i], k, j]
            divide(coefficients[i, k + 1], w, N[rates[i], k, ERR], k + 1.0, m)
    for i in range(len(further)):
        values[i] = N[further[i], 0]


@kernel("f8[::1](f8[::1], f8[::1], i8, i8)", strict=True)
def product_many(p, q, m, m2):
    """The product of two rows."""
    N, w = np.zeros((3, 1, len(p))), np.zeros(len(p) - 4)
    N[0, 0], N[1, 0] = p, q
    err = convolution(N, w, 0, 1, 0, 0, 0, False, m, m2)
    store(N[2, 0], w, err, m)
    return N[2, 0].copy()
