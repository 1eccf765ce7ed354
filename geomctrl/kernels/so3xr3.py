"""SO(3) x R^3 on arrays: poses [R | p] (n, 3, 4) and algebra vectors (omega, pdot) (n, 6).

Mueller and Terze 2013 (16)-(19). Rotations use the equations of `exponentials`; positions are vectors.
"""

from .exponentials import dexp_inv_so3, dexp_so3, exp_so3, log_so3, orthonormal
from .groups import Equations, array_entries
from .primitives import primitive
from .records import pose_at, put6, put_pose, twist_at
from .screws import Pose, Twist, add3, matmul


@primitive
def exp(X):
    return Pose(exp_so3(X.w), X.v)


@primitive
def log(T):
    return Twist(log_so3(T.R), T.p)


@primitive
def dexp(X, Y):
    return Twist(dexp_so3(X.w, Y.w), Y.v)


@primitive
def dexp_inv(X, Y):
    return Twist(dexp_inv_so3(X.w, Y.w), Y.v)


@primitive
def moved(T, X):
    return Pose(orthonormal(matmul(T.R, exp_so3(X.w))), add3(T.p, X.v))


exp_many, log_many, dexp_many, dexp_inv_many, advance_one, dexp_inv_one = array_entries(
    __name__,
    Equations(
        (3, 4), 6, pose_at, put_pose, twist_at, put6,
        exp=exp, log=log, dexp=dexp, dexp_inv=dexp_inv, moved=moved,
    ),
)  # fmt: skip
