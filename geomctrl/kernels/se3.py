"""SE(3) on arrays: transforms (n, 4, 4), twists (omega, v) (n, 6). The equations are those of `exponentials`."""

from .exponentials import dexp_inv_se3, dexp_se3, exp_se3, log_se3, orthonormal
from .groups import Equations, array_entries
from .primitives import primitive
from .records import pose_at, put6, put_pose, twist_at
from .screws import Pose, compose


@primitive
def put_transform(a, k, T):
    put_pose(a, k, T)
    a[k + 12] = a[k + 13] = a[k + 14] = 0.0
    a[k + 15] = 1.0


@primitive
def moved(T, X):
    T = compose(T, exp_se3(X))
    return Pose(orthonormal(T.R), T.p)


exp_many, log_many, dexp_many, dexp_inv_many, advance_one, dexp_inv_one = array_entries(
    __name__,
    Equations(
        (4, 4), 6, pose_at, put_transform, twist_at, put6,
        exp=exp_se3, log=log_se3, dexp=dexp_se3, dexp_inv=dexp_inv_se3, moved=moved,
    ),
)  # fmt: skip
