"""SO(3) and so(3) on arrays: rotation matrices (..., 3, 3) and rotation vectors (..., 3), any leading batch axes.

Nothing is broadcast: two arguments have the same leading axes. Results are accurate to a few units in the last place
at every angle (see `screw`, which holds the formulas). Every function raises ArgumentError, a ValueError, for a wrong
shape, for nan and for infinity.

Sources: Park and Chung 2005 section II; Ploen 1999 section 2. `dexp` is right-trivialised,
d/dt exp(w) = hat(dexp(w) wdot) exp(w), so that the body-fixed angular velocity of exp(w) is dexp(-w) wdot.
"""

import numpy as np

from .exponentials import dexp_inv_so3, dexp_so3, exp_so3, log_so3, orthonormal
from .jit import KernelTypeError, kernel
from .records import put, vec
from .vectors import matmul


@kernel("f8[:,:,::1](f8[:,::1])")
def exp_kernel(x):
    out = np.empty((len(x), 3, 3))
    for i in range(len(x)):
        R = exp_so3(vec(x[i], 0))
        for j in range(3):
            put(out[i, j], 0, R[j])
    return out


@kernel("f8[:,::1](f8[:,:,::1])")
def log_kernel(a):
    out = np.empty((len(a), 3))
    for i in range(len(a)):
        put(out[i], 0, log_so3((vec(a[i, 0], 0), vec(a[i, 1], 0), vec(a[i, 2], 0))))
    return out


@kernel("f8[:,::1](f8[:,::1], f8[:,::1])")
def dexp_kernel(x, y):
    out = np.empty_like(x)
    for i in range(len(x)):
        put(out[i], 0, dexp_so3(vec(x[i], 0), vec(y[i], 0)))
    return out


@kernel("f8[:,::1](f8[:,::1], f8[:,::1])")
def dexp_inv_kernel(x, y):
    out = np.empty_like(x)
    for i in range(len(x)):
        put(out[i], 0, dexp_inv_so3(vec(x[i], 0), vec(y[i], 0)))
    return out


# The next two serve `groups` for single elements; they refuse a wrong shape as the dispatcher does a wrong type. An
# element that is advanced again and again stays on the group to round-off.


@kernel("f8[:,::1](f8[:,::1], f8[::1])")
def advance_kernel(y, x):
    if y.shape != (3, 3) or x.shape != (3,):
        raise KernelTypeError("shape")
    out = np.empty((3, 3))
    R = orthonormal(matmul((vec(y[0], 0), vec(y[1], 0), vec(y[2], 0)), exp_so3(vec(x, 0))))
    for i in range(3):
        put(out[i], 0, R[i])
    return out


@kernel("f8[::1](f8[::1], f8[::1])")
def dexp_inv_one_kernel(x, y):
    if x.shape != (3,) or y.shape != (3,):
        raise KernelTypeError("shape")
    out = np.empty(3)
    put(out, 0, dexp_inv_so3(vec(x, 0), vec(y, 0)))
    return out
