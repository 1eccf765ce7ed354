"""Intervals of a recorded function's values: what a Taylor model does not show, such as x^2 >= 0.

Row z of R is an interval that contains every value of operation z, with outward rounding. It is the result of interval
arithmetic on the intervals of the operands, intersected with the bounds of the Taylor model. Signs are exact: a sum or
a product of nonnegative numbers is not rounded below zero, so that the root of a sum of squares exists.
"""

from __future__ import annotations

import math

from geomctrl.tracing.proofs.operation_rows import (
    ACOS,
    ADD,
    ASIN,
    ATAN,
    CONST,
    COS,
    DIV,
    EXP,
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
)

from .primitives import primitive
from .taylor_functions import ALL, EPS, LEAST

WIDER = 16.0 * EPS  # relative error of a bound: elementary functions are off by at most 8 units in the last place


@primitive
def below(x):
    return x - (WIDER * abs(x) + LEAST)


@primitive
def above(x):
    return x + (WIDER * abs(x) + LEAST)


@primitive
def is_extreme(rows, z):
    """Whether a choice is the larger or the smaller one of two rows."""
    condition, a, b = rows[z, 1], rows[z, 2], rows[z, 3]
    c, d = rows[condition, 1], rows[condition, 2]
    return rows[condition, 0] == LT and ((c == a and d == b) or (c == b and d == a))


@primitive
def product_range(a_lo, a_hi, b_lo, b_hi, sign):
    """The interval of a product, which is >= 0 (sign 1), <= 0 (-1) or of any sign (0)."""
    p, q, r, s = a_lo * b_lo, a_lo * b_hi, a_hi * b_lo, a_hi * b_hi
    lo = below(min(min(p, q), min(r, s)))
    hi = above(max(max(p, q), max(r, s)))
    if math.isnan(p + q + r + s):
        lo, hi = -math.inf, math.inf
    if sign > 0 or (a_lo >= 0.0 and b_lo >= 0.0) or (a_hi <= 0.0 and b_hi <= 0.0):
        lo = max(lo, 0.0)
    if sign < 0 or (a_lo >= 0.0 and b_hi <= 0.0) or (a_hi <= 0.0 and b_lo >= 0.0):
        hi = min(hi, 0.0)
    return lo, hi


@primitive
def function_range(op, lo, hi):
    """The interval of an elementary function; of all numbers where it is not defined."""
    if op in (SIN, COS):
        return -1.0, 1.0
    if op == EXP:
        return max(below(math.exp(lo)), 0.0), above(math.exp(hi))
    if op == TANH:
        return max(below(math.tanh(lo)), -1.0), min(above(math.tanh(hi)), 1.0)
    if op == ATAN:
        return below(math.atan(lo)), above(math.atan(hi))
    if op == SQRT and 0.0 <= lo <= hi:
        return max(below(math.sqrt(lo)), 0.0), above(math.sqrt(hi))
    if op == LOG and 0.0 < lo <= hi:
        return below(math.log(lo)), above(math.log(hi))
    if op == ASIN and -1.0 <= lo <= hi <= 1.0:
        return below(math.asin(lo)), above(math.asin(hi))
    if op == ACOS and -1.0 <= lo <= hi <= 1.0:
        return max(below(math.acos(hi)), 0.0), above(math.acos(lo))
    return -math.inf, math.inf


@primitive
def set_range(R, rows, z, form, certain):
    """Set row z of R; form: the Taylor model of its values; certain: the truth of a choice's condition."""
    op, a, b, c = rows[z, 0], rows[z, 1], rows[z, 2], rows[z, 3]
    lo, hi = -math.inf, math.inf
    if op in (ADD, SUB):
        low, high = (R[a, 0] + R[b, 0], R[a, 1] + R[b, 1]) if op == ADD else (R[a, 0] - R[b, 1], R[a, 1] - R[b, 0])
        lo = max(below(low), 0.0) if low >= 0.0 else below(low)
        hi = min(above(high), 0.0) if high <= 0.0 else above(high)
    elif op == NEG:
        lo, hi = -R[a, 1], -R[a, 0]
    elif op == MUL:
        lo, hi = product_range(R[a, 0], R[a, 1], R[b, 0], R[b, 1], c)
    elif op == DIV and (R[b, 0] > 0.0 or R[b, 1] < 0.0):
        low, high = below(1.0 / R[b, 1]), above(1.0 / R[b, 0])
        low, high = (max(low, 0.0), high) if R[b, 0] > 0.0 else (low, min(high, 0.0))
        lo, hi = product_range(R[a, 0], R[a, 1], low, high, 0)
    elif op == WHERE and (certain == 1.0 or certain == 0.0):
        chosen = b if certain == 1.0 else c
        lo, hi = R[chosen, 0], R[chosen, 1]
    elif op == WHERE:
        lo, hi = min(R[b, 0], R[c, 0]), max(R[b, 1], R[c, 1])
        if is_extreme(rows, z):  # the larger one if the condition is b < c and c is chosen otherwise
            larger = rows[a, 1] == c
            lo = max(R[b, 0], R[c, 0]) if larger else lo
            hi = hi if larger else min(R[b, 1], R[c, 1])
            if (rows[b, 0] == NEG and rows[b, 1] == c) or (rows[c, 0] == NEG and rows[c, 1] == b):  # |x| or -|x|
                lo = max(lo, 0.0) if larger else lo
                hi = hi if larger else min(hi, 0.0)
    elif LT <= op <= NOT:
        lo, hi = 0.0, 1.0
    elif op >= SIN:
        lo, hi = function_range(op, R[a, 0], R[a, 1])
    size = form[ALL] + 2.0 * EPS * (abs(form[0]) + form[ALL])
    low, high = (form[0], form[0]) if op == CONST else (form[0] - size, form[0] + size)
    R[z, 0], R[z, 1] = lo, hi
    if low > lo or math.isnan(lo):
        R[z, 0] = low
    if high < hi or math.isnan(hi):
        R[z, 1] = high
    if math.isnan(form[0]):
        R[z, 0], R[z, 1] = -math.inf, math.inf


@primitive
def compared(op, a_lo, a_hi, b_lo, b_hi):
    """A comparison of two intervals: 1.0 if it holds for all numbers, 0.0 if for none, else 0.5."""
    if a_hi < b_lo:
        return 0.0 if op > LT + 1 else 1.0
    if a_lo > b_hi:
        return 0.0
    if op == LT and a_lo >= b_hi:
        return 0.0
    if op == LT + 1 and a_hi <= b_lo:
        return 1.0
    return 0.5
