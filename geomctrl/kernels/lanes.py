"""Many states side by side: what a kernel needs to run one algorithm on LANES states at once.

The innermost loop runs over states, so that LLVM turns it into vector instructions: it reads from one buffer and writes
to another, and calls nothing. Number k of lane b is at k LANES + b.
"""

from .jit import primitive
from .scalars import REDUCIBLE
from .screws import Twist
from .tree import n_bodies, n_q, n_v

LANES = 16
FEW = 40  # bodies; with more the lanes' memory outgrows the cache and the plain loop is faster


@primitive
def lanes_of(model, q):
    """How many full groups of lanes a batch has; 0 for many bodies, for poses, for coordinates beyond `sin_cos`."""
    if n_q(model) != n_v(model) or n_bodies(model) > FEW:
        return 0
    for b in range(q.shape[0]):
        for k in range(q.shape[1]):
            if not abs(q[b, k]) <= REDUCIBLE:
                return 0
    return q.shape[0] // LANES


@primitive
def lane_vec(a, k, b):
    return a[k * LANES + b], a[(k + 1) * LANES + b], a[(k + 2) * LANES + b]


@primitive
def lane_twist(a, k, b):
    return Twist(lane_vec(a, k, b), lane_vec(a, k + 3, b))


@primitive
def lane_put(a, k, b, x):
    a[k * LANES + b] = x[0]
    a[(k + 1) * LANES + b] = x[1]
    a[(k + 2) * LANES + b] = x[2]


@primitive
def lane_put6(a, k, b, X):
    lane_put(a, k, b, X[0])
    lane_put(a, k + 3, b, X[1])


@primitive
def copy(a, k, b, j, n):
    """a[k : k + n] = b[j : j + n], in numbers of all lanes."""
    for i in range(n * LANES):
        a[k * LANES + i] = b[j * LANES + i]
