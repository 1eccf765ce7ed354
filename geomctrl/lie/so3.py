"""SO(3) and so(3) on arrays: rotation matrices (..., 3, 3) and rotation vectors (..., 3), any leading batch axes.

Nothing is broadcast: two arguments have the same leading axes. Results are accurate to a few units in the last place
at every angle (the equations are in `kernels.exponentials`). Every function raises ArgumentError, a ValueError, for a
wrong shape, for nan and for infinity.

Sources: Park and Chung 2005 section II; Ploen 1999 section 2. `dexp` is right-trivialised,
d/dt exp(w) = hat(dexp(w) wdot) exp(w), so that the body-fixed angular velocity of exp(w) is dexp(-w) wdot.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice
from geomctrl.errors import ArgumentError
from geomctrl.kernels import so3 as kernels
from geomctrl.tracing.numbers import holds

from .contract import differential, over_batch, require_rotation

__all__ = [
    "Ad",
    "ad",
    "dexp",
    "dexp_inv",
    "exp",
    "from_quaternion",
    "hat",
    "inverse",
    "log",
    "to_quaternion",
    "unwrap_quaternion",
    "vee",
]

SKEW_TOLERANCE = 1e-9  # |A + A^T| above which vee refuses A, relative to max(1, |A|)
UNIT_TOLERANCE = 1e-3  # ||Q| - 1| above which a quaternion is refused: logs keep four digits
Order = Literal["xyzw", "wxyz"]


def hat(w: ArrayLike) -> np.ndarray:
    """The skew matrix (..., 3, 3) with hat(w) a = w x a, for w (..., 3)."""
    a = checked("w", w, (3,))
    out = np.zeros((*a.shape, 3))
    out[..., 2, 1], out[..., 0, 2], out[..., 1, 0] = a[..., 0], a[..., 1], a[..., 2]
    return out - out.swapaxes(-1, -2)


def vee(W: ArrayLike) -> np.ndarray:
    """The inverse of hat: (..., 3, 3) to (..., 3). Raises ArgumentError if W is not skew."""
    A = checked("W", W, (3, 3))
    require_skew("W", A)
    B = 0.5 * (A - A.swapaxes(-1, -2))
    return np.stack((B[..., 2, 1], B[..., 0, 2], B[..., 1, 0]), axis=-1)


def exp(w: ArrayLike) -> np.ndarray:
    """The rotation (..., 3, 3) by |w| about w (..., 3). Rodrigues; Park and Chung 2005 (12)."""
    return over_batch(kernels.exp_many, 1, checked("w", w, (3,)))


def log(R: ArrayLike) -> np.ndarray:
    """The rotation vector (..., 3) of R (..., 3, 3), |log(R)| <= pi.

    At a rotation by exactly pi, where w and -w are both right, the largest component of the result is positive.
    Raises ArgumentError, with the residual, if |R^T R - 1| > 1e-6 or det R < 0.
    """
    return over_batch(kernels.log_many, 2, _rotation(R))


def inverse(R: ArrayLike) -> np.ndarray:
    """R^T (..., 3, 3). Raises ArgumentError if R is not a rotation."""
    return np.ascontiguousarray(_rotation(R).swapaxes(-1, -2))


def Ad(R: ArrayLike) -> np.ndarray:
    """R hat(w) R^T = hat(Ad(R) w): a copy of R (..., 3, 3). Raises ArgumentError if R is not a rotation."""
    return _rotation(R).copy()


def ad(w: ArrayLike) -> np.ndarray:
    """The matrix (..., 3, 3) of the bracket, ad(w) x = w x x: the same as hat(w)."""
    return hat(w)


def dexp(w: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
    """The matrix (..., 3, 3) of the right-trivialised differential of exp at w (..., 3); with y, dexp(w) y (..., 3).

    The second form does not build the matrix. Park and Chung 2005 (18).
    """
    return differential(kernels.dexp_many, ("w", "y"), 3, w, y)


def dexp_inv(w: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
    """The inverse (..., 3, 3) of dexp(w), w (..., 3); with y, dexp_inv(w) y (..., 3) without building the matrix.

    Singular where |w| is a nonzero multiple of 2 pi: finite but huge next to it. Mueller and Terze 2013 section 2.1;
    Park and Chung 2005 (19).
    """
    return differential(kernels.dexp_inv_many, ("w", "y"), 3, w, y)


# --- quaternions, for data -----------------------------------------------------------------------------------------


def to_quaternion(R: ArrayLike, order: Order) -> np.ndarray:
    """The unit quaternion (..., 4) of R (..., 3, 3) with w >= 0, the shorter turn of the two that R stands for.

    order: "xyzw" (ROS, Pinocchio, scipy) or "wxyz" (MuJoCo, Drake, Eigen's constructor): where the real part is. For
    a trajectory without jumps of sign, see `unwrap_quaternion`. Raises ArgumentError if R is not a rotation.
    """
    choice("order", order, ("xyzw", "wxyz"))
    Q = over_batch(kernels.quaternion_many, 2, _rotation(R))
    return Q if order == "wxyz" else np.concatenate((Q[..., 1:], Q[..., :1]), axis=-1)


def from_quaternion(Q: ArrayLike, order: Order) -> np.ndarray:
    """The rotation (..., 3, 3) of a unit quaternion Q (..., 4), or of -Q; `order` as for `to_quaternion`.

    Lengths that rounding left, 1e-3 off at most, are taken out. Raises ArgumentError beyond that.
    """
    choice("order", order, ("xyzw", "wxyz"))
    a = checked("Q", Q, (4,))
    size = np.sqrt((a * a).sum(axis=-1))
    if not holds(np.abs(size - 1.0) <= UNIT_TOLERANCE):
        raise ArgumentError(
            f"Q: expected unit quaternions, got a length of {size.flat[np.abs(size - 1.0).argmax()]:.6g}"
        )
    a = a / size[..., None]
    w, n = (a[..., 0], a[..., 1:]) if order == "wxyz" else (a[..., 3], a[..., :3])
    N = hat(n)
    return np.eye(3) + 2.0 * (w[..., None, None] * N + N @ N)


def unwrap_quaternion(Q: ArrayLike) -> np.ndarray:
    """A trajectory of quaternions Q (..., samples, 4), in either order, with signs that follow each other.

    Q and -Q are the same rotation; each sample gets the sign that is nearer to the one before, the first keeps its own,
    as numpy's `unwrap` does for angles.
    """
    a = checked("Q", Q, (4,))
    if a.ndim < 2:
        raise ArgumentError(f"Q: expected shape (..., samples, 4), got {a.shape}")
    turned = (a[..., 1:, :] * a[..., :-1, :]).sum(axis=-1) < 0.0
    signs = np.cumprod(np.where(turned, -1.0, 1.0), axis=-1)
    return np.concatenate((a[..., :1, :], signs[..., None] * a[..., 1:, :]), axis=-2)


def _rotation(R: ArrayLike) -> np.ndarray:
    a = checked("R", R, (3, 3))
    require_rotation("R", a)
    return a


def require_skew(name: str, A: np.ndarray) -> None:
    """Raise ArgumentError unless every A (..., 3, 3) is skew to SKEW_TOLERANCE."""
    residual = np.abs(A + A.swapaxes(-1, -2)).max(axis=(-2, -1))
    size = np.abs(A).max(axis=(-2, -1))
    if not holds(residual <= SKEW_TOLERANCE * np.maximum(1.0, size)):
        raise ArgumentError(f"{name}: expected a skew-symmetric matrix, got |A + A^T| = {residual.max():.3g}")
