"""SO(3) and so(3) as functions of arrays: rotation matrices (..., 3, 3) and rotation vectors (..., 3).

All functions accept leading batch axes, which must be equal for two arguments (nothing is broadcast). Results are
accurate to a few units in the last place at every angle (the equations are in `kernels.exponentials`). Every function
raises ArgumentError, which is a ValueError, for a wrong shape, nan or infinity.

Sources: Park and Chung 2005 section II; Ploen 1999 section 2. `dexp` is right-trivialised, d/dt exp(w) = hat(dexp(w)
wdot) exp(w), so the body-fixed angular velocity of exp(w) is dexp(-w) wdot.
"""

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, without_overflow_warnings
from geomctrl.errors import ArgumentError
from geomctrl.kernels import so3 as kernels
from geomctrl.tracing.numbers import holds

from .checked_group import differential, over_batch, require_rotation

SKEW_TOLERANCE = 1e-9  # |A + A^T| above which vee refuses A, relative to max(1, |A|)


def hat(w: ArrayLike) -> np.ndarray:
    """Return the skew matrix (..., 3, 3) with hat(w) a = w x a, for w (..., 3)."""
    a = checked("w", w, (3,))
    out = np.zeros((*a.shape, 3))
    out[..., 2, 1], out[..., 0, 2], out[..., 1, 0] = a[..., 0], a[..., 1], a[..., 2]
    return out - out.swapaxes(-1, -2)


def vee(W: ArrayLike) -> np.ndarray:
    """Return the vector (..., 3) of a skew matrix W (..., 3, 3): the inverse of `hat`. Raises ArgumentError if W is
    not skew.
    """
    A = checked("W", W, (3, 3))
    require_skew("W", A)
    B = 0.5 * (A - A.swapaxes(-1, -2))
    return np.stack((B[..., 2, 1], B[..., 0, 2], B[..., 1, 0]), axis=-1)


def exp(w: ArrayLike) -> np.ndarray:
    """Return the rotation matrix of a rotation vector.

    Parameters
    ----------
    w : array_like, shape (..., 3)
        Rotation axis times angle [rad].

    Returns
    -------
    ndarray, shape (..., 3, 3)

    Notes
    -----
    Rodrigues' formula, Park and Chung 2005 (12).

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import so3
    >>> np.allclose(so3.exp([0, 0, np.pi / 2]) @ [1, 0, 0], [0, 1, 0])
    True
    """
    return over_batch(kernels.exp_many, 1, checked("w", w, (3,)))


def log(R: ArrayLike) -> np.ndarray:
    """Return the rotation vector of a rotation matrix, with a length of at most pi.

    For a rotation by exactly pi, where w and -w are both right, the largest component of the result is positive.

    Parameters
    ----------
    R : array_like, shape (..., 3, 3)
        Rotation matrix.

    Returns
    -------
    ndarray, shape (..., 3)
        Rotation axis times angle [rad].

    Raises
    ------
    ArgumentError
        If |R^T R - 1| > 1e-6 or det R < 0.
    """
    return over_batch(kernels.log_many, 2, _rotation(R))


def inverse(R: ArrayLike) -> np.ndarray:
    """Return R^T (..., 3, 3). Raises ArgumentError if R is not a rotation."""
    return np.ascontiguousarray(_rotation(R).swapaxes(-1, -2))


def Ad(R: ArrayLike) -> np.ndarray:
    """Return the matrix with R hat(w) R^T = hat(Ad(R) w), a copy of R (..., 3, 3).

    Raises ArgumentError if R is not a rotation.
    """
    return _rotation(R).copy()


def ad(w: ArrayLike) -> np.ndarray:
    """Return the matrix (..., 3, 3) of the bracket, ad(w) y = w x y: the same as hat(w)."""
    return hat(w)


def dexp(w: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
    """Return the right-trivialised differential of exp at w (..., 3), a matrix (..., 3, 3), or its product with y (...,
    3).

    With y the matrix is not built. Park and Chung 2005 (18).
    """
    return differential(kernels.dexp_many, ("w", "y"), 3, w, y)


def dexp_inv(w: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
    """Return the inverse (..., 3, 3) of dexp(w), or its product with y (..., 3), for w (..., 3).

    With y the matrix is not built. It is singular where |w| is a nonzero multiple of 2 pi. Mueller and Terze 2013
    section 2.1; Park and Chung 2005 (19).
    """
    return differential(kernels.dexp_inv_many, ("w", "y"), 3, w, y)


def quaternion(R: ArrayLike) -> np.ndarray:
    """Return the unit quaternions (w, x, y, z) (..., 4), w >= 0, of rotations R (..., 3, 3)."""
    return over_batch(kernels.quaternion_many, 2, _rotation(R))


def _rotation(R: ArrayLike) -> np.ndarray:
    a = checked("R", R, (3, 3))
    require_rotation("R", a)
    return a


@without_overflow_warnings
def require_skew(name: str, A: np.ndarray) -> None:
    """Raise ArgumentError unless every A (..., 3, 3) is skew to SKEW_TOLERANCE."""
    residual = np.abs(A + A.swapaxes(-1, -2)).max(axis=(-2, -1))
    size = np.abs(A).max(axis=(-2, -1))
    if not holds(residual <= SKEW_TOLERANCE * np.maximum(1.0, size)):
        raise ArgumentError(f"{name}: expected a skew-symmetric matrix, got |A + A^T| = {residual.max():.3g}")
