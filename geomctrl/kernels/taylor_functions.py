"""Elementary functions of Taylor models, the rows of numbers that `taylor_models` describes."""

from __future__ import annotations

import math

from geomctrl.tracing.proofs.operation_rows import ACOS, ASIN, ATAN, COS, EXP, LOG, SIN, SQRT, TANH

from .primitives import primitive

EPS, LEAST, WAVE, UP = 2.0**-52, 2.0**-1000, 2.0**-51, 1.0 + 2.0**-42
TINY = 2.0**-300  # least argument of a root or logarithm: the remainder of smaller ones may underflow
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
def unresolved(a, m, m2):
    """A bound of the square of row a without its centre, apart from the monomials that rows have."""
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
    first = math.tanh(min(lo, c))
    last = math.tanh(max(hi, c))
    least = 0.0 if min(lo, c) <= 0.0 <= max(hi, c) else min(abs(first), abs(last))
    largest = max(abs(first), abs(last))
    third = (1.0 - least) * (1.0 + least) * max(abs(1.0 - 3.0 * least * least), abs(1.0 - 3.0 * largest * largest))
    rest = UP * (third + 128.0 * EPS) * r * r * r / 3.0 + 16.0 * EPS * (r + r * r)
    total = rest + abs(bend) * unresolved(a, m, m2)
    first = math.tanh(lo)
    last = math.tanh(hi)
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
def concave_line(op, lo, hi):
    """(Slope, offset, distance) of the line nearest to a root or a logarithm on [lo, hi]; nan where that is undefined.

    The function less the line is least at an end and largest where its derivative is the slope: the chord's.
    """
    slope = offset = distance = math.nan
    if op == SQRT and 0.0 <= lo <= hi:
        first = math.sqrt(lo)
        last = math.sqrt(hi)
        if hi <= TINY:
            return 0.0, 0.5 * last, 0.5 * last * UP
        slope = 1.0 / (first + last)
        largest = 0.25 / slope
    elif op == LOG and lo > TINY and hi > lo:
        first = math.log(lo)
        last = math.log(hi)
        slope = (last - first) / (hi - lo)
        if not slope > 0.0:
            return math.nan, math.nan, math.nan
        largest = -math.log(slope) - 1.0
    else:
        return math.nan, math.nan, math.nan
    least = min(first - slope * lo, last - slope * hi)
    offset = 0.5 * largest + 0.5 * least
    distance = 0.5 * (largest - least)
    return slope, offset, distance + 64.0 * EPS * (1.0 + abs(first) + abs(last) + abs(largest))


@primitive
def elementary(form, op, a, lo, hi, w, m, m2):
    """Set a row to an elementary function of row a, whose values are in [lo, hi].

    Taylor's formula of order 2 with the remainder f''' r^3 / 6, where f''' is bounded between the centre and [lo, hi];
    or a line, for roots and logarithms if it has the smaller error.
    """
    c = a[0]
    r = a[ALL]
    low = min(lo, c)
    high = max(hi, c)
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
        slope, bend, rest = value, 0.5 * value, cube * (math.exp(high) + LEAST)
    elif op == LOG and low > TINY:
        value, slope = math.log(c), 1.0 / c
        bend, rest = -0.5 * slope * slope, 2.0 * cube / (low * low * low)
    elif op == SQRT and low > TINY:
        value = math.sqrt(c)
        slope = 0.5 / value
        bend, rest = -0.25 * slope / c, 0.375 * cube / (low * low * math.sqrt(low))
    elif (op in (ASIN, ACOS)) and low > -1.0 and high < 1.0:
        largest = max(-low, high)
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
    if op in (LOG, SQRT):
        line, offset, distance = concave_line(op, lo, hi)
        total = rest * UP + abs(bend) * unresolved(a, m, m2)
        if distance < total or (math.isnan(total) and not math.isnan(distance)):
            value, slope, bend, rest = line * c + offset, line, 0.0, distance
    if op == TANH:
        expand_tanh(form, a, lo, hi, w, m, m2)
    else:
        expand(form, a, w, value, slope, bend, rest * UP, m, m2)
    if (op in (SIN, COS, TANH)) and c == 0.0 and r == 0.0:
        form[ERR] = form[ALL] = 0.0


@primitive
def reciprocal(form, a, lo, hi, w, m, m2):
    """Set a row to 1 / a for a in [lo, hi]: y - y^2 d + y^3 d^2 - y^3 d^3 / (c + d) with y = 1 / c, or a line.

    1 / a less a line of slope s < 0 is 2 sqrt(-s) at least for a > 0, and largest at an end.
    """
    c = a[0]
    r = a[ALL]
    low = lo if lo > 0.0 else -hi  # the least |a|
    y = 1.0 / c
    value, slope, bend = y, -y * y, y * y * y
    rest = UP * r * r * r * abs(bend) / low if low > 0.0 else math.nan
    if low > 0.0 and lo <= hi:
        high = hi if lo > 0.0 else -lo
        line = -1.0 / low / high
        largest = max(1.0 / low - line * low, 1.0 / high - line * high)
        least = 2.0 * math.sqrt(-line)
        distance = 0.5 * (largest - least) + 64.0 * EPS * (largest + least)
        total = rest + abs(bend) * unresolved(a, m, m2)
        if distance < total or (math.isnan(total) and not math.isnan(distance)):
            offset = 0.5 * largest + 0.5 * least
            value, slope, bend, rest = line * c + (offset if lo > 0.0 else -offset), line, 0.0, distance
    expand(form, a, w, value, slope, bend, rest * UP, m, m2)
