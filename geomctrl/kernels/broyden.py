"""Broyden's method for a step's implicit equations: Kelley, Iterative Methods for Linear and Nonlinear Equations, 1995,
section 7.3."""

import math

from .jit import primitive

ITERATIONS = 40  # some 6 to 10 are usual
PATIENCE = 12  # iterations after which 1e-8 will do, where joints all but at rest magnify the energy's round-off


@primitive
def norm(x):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * x[k]
    return math.sqrt(total)


@primitive
def settled(i, change, last, size):
    """Changes have come down to round-off: below 4e-16 of the unknown, or small and no longer shrinking."""
    small = 1e-12 if i < PATIENCE else 1e-8
    return change <= 4e-16 * size or (change <= small * size and change >= 0.5 * last)


@primitive
def broyden(i, newton, S):
    """Step i of the method, in place, from the step `newton` that a constant derivative suggests. S: the steps so far,
    a row of n numbers each, behind their squared lengths."""
    n = newton.shape[0]
    for j in range(i):
        along = 0.0
        for k in range(n):
            along += S[ITERATIONS + j * n + k] * newton[k]
        along /= S[j]
        if j + 1 < i:
            for k in range(n):
                newton[k] += along * S[ITERATIONS + (j + 1) * n + k]
        elif abs(1.0 - along) > 0.1:  # else nothing was learnt: at round-off, steps repeat
            for k in range(n):
                newton[k] /= 1.0 - along
    S[i] = 0.0
    for k in range(n):
        S[i] += newton[k] * newton[k]
        S[ITERATIONS + i * n + k] = newton[k]
