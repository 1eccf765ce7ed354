"""SE(3) and se(3) on arrays: transforms (..., 4, 4) and twists (omega, v) (..., 6), any leading batch axes.

Angular part first; T_ab maps coordinates in frame b to frame a, and Ad(T_ab) maps twists likewise. Nothing is
broadcast: two arguments have the same leading axes. Results are accurate to a few units in the last place at every
angle (see `screw`, which holds the formulas). Every function raises ArgumentError, a ValueError, for a wrong shape,
for nan and for infinity.

Sources: Park and Chung 2005 section II; Ploen 1999 section 2. `dexp` is right-trivialised,
d/dt exp(X) = hat(dexp(X) Xdot) exp(X), so that the body-fixed twist of exp(X) is dexp(-X) Xdot.
"""

import numpy as np

from .exponentials import dexp_inv_se3, dexp_se3, exp_se3, log_se3, orthonormal
from .jit import KernelTypeError, kernel
from .records import get_frame, get_twist, put, put6, put_frame, vec
from .screws import Frame, compose


@kernel("f8[:,:,::1](f8[:,::1])")
def exp_kernel(x):
    out = np.zeros((len(x), 4, 4))
    for i in range(len(x)):
        T = exp_se3(get_twist(x[i], 0))
        for j in range(3):
            put(out[i, j], 0, T.R[j])
            out[i, j, 3] = T.p[j]
        out[i, 3, 3] = 1.0
    return out


@kernel("f8[:,::1](f8[:,:,::1])")
def log_kernel(a):
    out = np.empty((len(a), 6))
    for i in range(len(a)):
        R = vec(a[i, 0], 0), vec(a[i, 1], 0), vec(a[i, 2], 0)
        put6(out[i], 0, log_se3(Frame(R, (a[i, 0, 3], a[i, 1, 3], a[i, 2, 3]))))
    return out


@kernel("f8[:,::1](f8[:,::1], f8[:,::1])")
def dexp_kernel(x, y):
    out = np.empty_like(x)
    for i in range(len(x)):
        put6(out[i], 0, dexp_se3(get_twist(x[i], 0), get_twist(y[i], 0)))
    return out


@kernel("f8[:,::1](f8[:,::1], f8[:,::1])")
def dexp_inv_kernel(x, y):
    out = np.empty_like(x)
    for i in range(len(x)):
        put6(out[i], 0, dexp_inv_se3(get_twist(x[i], 0), get_twist(y[i], 0)))
    return out


# The next two serve `groups` for single elements; they refuse a wrong shape as the dispatcher does a wrong type. An
# element that is advanced again and again stays on the group to round-off.


@kernel("f8[:,::1](f8[:,::1], f8[::1])")
def advance_kernel(y, x):
    if y.shape != (4, 4) or x.shape != (6,):
        raise KernelTypeError("shape")
    out = np.empty((4, 4))
    T = compose(get_frame(y.ravel(), 0), exp_se3(get_twist(x, 0)))
    put_frame(out.ravel(), 0, Frame(orthonormal(T.R), T.p))
    out[3, 0] = out[3, 1] = out[3, 2] = 0.0
    out[3, 3] = 1.0
    return out


@kernel("f8[::1](f8[::1], f8[::1])")
def dexp_inv_one_kernel(x, y):
    if x.shape != (6,) or y.shape != (6,):
        raise KernelTypeError("shape")
    out = np.empty(6)
    put6(out, 0, dexp_inv_se3(get_twist(x, 0), get_twist(y, 0)))
    return out
