"""Lie groups for states: Rn, SO3, SE3, SO3xR3 and products of them, behind one protocol.

Sources: Park and Chung 2005 section II; Mueller and Terze 2013 section 2, whose direct product is SO3xR3.
"""

import numpy as np

from .exponentials import dexp_inv_so3, exp_so3, orthonormal
from .jit import KernelTypeError, kernel
from .records import put, vec
from .vectors import matmul


@kernel("f8[:,::1](f8[:,::1], f8[::1])")
def _advance_SO3xR3(y, x):
    if y.shape != (3, 4) or x.shape != (6,):
        raise KernelTypeError("shape")
    out = np.empty((3, 4))
    R = orthonormal(matmul((vec(y[0], 0), vec(y[1], 0), vec(y[2], 0)), exp_so3(vec(x, 0))))
    for i in range(3):
        put(out[i], 0, R[i])
        out[i, 3] = y[i, 3] + x[i + 3]
    return out


@kernel("f8[::1](f8[::1], f8[::1])")
def _dexp_inv_mul_SO3xR3(x, y):
    if x.shape != (6,) or y.shape != (6,):
        raise KernelTypeError("shape")
    out = np.empty(6)
    put(out, 0, dexp_inv_so3(vec(x, 0), vec(y, 0)))
    put(out, 3, vec(y, 3))
    return out
