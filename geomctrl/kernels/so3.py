"""SO(3) on arrays: rotations (n, 3, 3), algebra vectors (n, 3). The equations are those of `exponentials`."""

import numpy as np

from .exponentials import dexp_inv_so3, dexp_so3, exp_so3, log_so3, orthonormal, quaternion_so3
from .groups import Equations, array_entries
from .jit import kernel
from .primitives import primitive
from .records import put, vec
from .screws import matmul


@primitive
def rotation(a, k):
    return vec(a, k), vec(a, k + 3), vec(a, k + 6)


@primitive
def put_rotation(a, k, R):
    put(a, k, R[0])
    put(a, k + 3, R[1])
    put(a, k + 6, R[2])


@primitive
def moved(R, w):
    return orthonormal(matmul(R, exp_so3(w)))


exp_many, log_many, dexp_many, dexp_inv_many, advance_one, dexp_inv_one = array_entries(
    __name__,
    Equations(
        (3, 3), 3, rotation, put_rotation, vec, put,
        exp=exp_so3, log=log_so3, dexp=dexp_so3, dexp_inv=dexp_inv_so3, moved=moved,
    ),
)  # fmt: skip


@kernel("f8[:,::1](f8[:,:,::1])")
def quaternion_many(R):
    """(w, x, y, z) of rotations (n, 3, 3)."""
    out, flat = np.empty((len(R), 4)), R.reshape(-1)
    for i in range(len(R)):
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = quaternion_so3(rotation(flat, 9 * i))
    return out
