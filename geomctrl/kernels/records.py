"""The algebra kernels speak: so(3), se(3) and their duals on tuples of floats.

Twists `(w, v)`, wrenches `(m, f)` and frames `(R, p)` are named tuples of 3-tuples, so a kernel's line is the paper's
line and LLVM keeps everything in registers. Nothing here allocates and nothing here is called from Python: `so3` and
`se3` are the same algebra for people. Angular part first; a frame `T_ab` maps coordinates in b to coordinates in a.

Sources: Ploen 1999 section 2; Mueller 2018 appendix; Park and Chung 2005 section II.
"""

from .jit import primitive
from .screws import Frame, Inertia, Twist, Wrench

# --- memory ----------------------------------------------------------------------------------------------------


@primitive
def finite(x):
    """No nan and no infinity in a flat array."""
    zero = 0.0
    for i in range(x.shape[0]):
        zero += 0.0 * x[i]
    return zero == 0.0


@primitive
def vec(a, k):
    return a[k], a[k + 1], a[k + 2]


@primitive
def put(a, k, x):
    a[k] = x[0]
    a[k + 1] = x[1]
    a[k + 2] = x[2]


@primitive
def get_twist(a, k):
    return Twist(vec(a, k), vec(a, k + 3))


@primitive
def get_wrench(a, k):
    return Wrench(vec(a, k), vec(a, k + 3))


@primitive
def put6(a, k, X):
    """Store a twist or a wrench."""
    put(a, k, X[0])
    put(a, k + 3, X[1])


@primitive
def get_frame(a, k):
    """A frame stored as the 3x4 matrix [R | p] row by row, as in a configuration q."""
    return Frame(
        (vec(a, k), vec(a, k + 4), vec(a, k + 8)),
        (a[k + 3], a[k + 7], a[k + 11]),
    )


@primitive
def put_frame(a, k, T):
    put(a, k, T.R[0])
    put(a, k + 4, T.R[1])
    put(a, k + 8, T.R[2])
    a[k + 3], a[k + 7], a[k + 11] = T.p[0], T.p[1], T.p[2]


@primitive
def get_inertia(a, k):
    return Inertia(a[k], vec(a, k + 1), (a[k + 4], a[k + 5], a[k + 6], a[k + 7], a[k + 8], a[k + 9]))


@primitive
def put_inertia(a, k, J):
    a[k] = J.m
    put(a, k + 1, J.h)
    a[k + 4], a[k + 5], a[k + 6], a[k + 7], a[k + 8], a[k + 9] = J.I[0], J.I[1], J.I[2], J.I[3], J.I[4], J.I[5]


@primitive
def accumulate(a, k, b, j, n):
    """a[k:k+n] += b[j:j+n]."""
    for i in range(n):
        a[k + i] += b[j + i]
