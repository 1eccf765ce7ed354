"""The algebra kernels speak: so(3), se(3) and their duals on tuples of floats.

Twists `(w, v)`, wrenches `(m, f)` and frames `(R, p)` are named tuples of 3-tuples, so a kernel's line is the paper's
line and LLVM keeps everything in registers. Nothing here allocates and nothing here is called from Python: `so3` and
`se3` are the same algebra for people. Angular part first; a frame `T_ab` maps coordinates in b to coordinates in a.

Sources: Ploen 1999 section 2; Mueller 2018 appendix; Park and Chung 2005 section II.
"""

import math

import numpy as np

from geomctrl.tracing.polynomials import COSINE, HALF_PI, REDUCIBLE, SINE

from .primitives import primitive

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


# --- choosing: what a branch on a number is in a kernel, so that symbols and intervals can take both ways ---------


@primitive
def where(condition, a, b):
    """a where the condition holds, else b; both are computed."""
    return a if condition else b


@primitive
def either(condition, yes, no, x):
    """yes(x) where the condition holds, else no(x); only one of them is computed, where numbers are known."""
    if condition:
        return yes(x)
    return no(x)
