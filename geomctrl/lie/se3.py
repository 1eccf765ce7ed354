"""SE(3) and se(3) as functions of arrays: transforms (..., 4, 4) and twists (omega, v) (..., 6).

The angular part is first. T_ab maps coordinates in frame b to frame a, and Ad(T_ab) maps twists likewise. All functions
accept leading batch axes, which must be equal for two arguments (nothing is broadcast). Results are accurate to a few
units in the last place at every angle (the equations are in `kernels.exponentials`). Every function raises
ArgumentError, which is a ValueError, for a wrong shape, nan or infinity.

Sources: Park and Chung 2005 section II; Ploen 1999 section 2. `dexp` is right-trivialised, d/dt exp(X) = hat(dexp(X)
Xdot) exp(X), so the body-fixed twist of exp(X) is dexp(-X) Xdot.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, same_batch
from geomctrl.errors import ArgumentError
from geomctrl.kernels import se3 as kernels
from geomctrl.tracing.numbers import holds

from . import so3
from .checked_group import differential, over_batch, require_rotation

PoseError = Literal["log", "geometric", "decoupled", "quaternion"]
POSE_ERRORS = ("log", "geometric", "decoupled", "quaternion")
LAST_ROW_TOLERANCE = 1e-12  # deviation that numpy's inverse of a transform may leave


def hat(X: ArrayLike) -> np.ndarray:
    """Return the matrix [[ [omega], v ], [0, 0]] of a twist.

    Parameters
    ----------
    X : array_like, shape (..., 6)
        (omega, v).

    Returns
    -------
    ndarray, shape (..., 4, 4)

    Examples
    --------
    >>> from geomctrl import groups
    >>> groups.SE3().hat([0.0, 0.0, 1.0, 2.0, 0.0, 0.0])
    array([[ 0., -1.,  0.,  2.],
           [ 1.,  0.,  0.,  0.],
           [ 0.,  0.,  0.,  0.],
           [ 0.,  0.,  0.,  0.]])
    """
    a = checked("X", X, (6,))
    out = np.zeros((*a.shape[:-1], 4, 4))
    out[..., :3, :3] = so3.hat(a[..., :3])
    out[..., :3, 3] = a[..., 3:]
    return out


def vee(A: ArrayLike) -> np.ndarray:
    """Return the twist of a matrix: the inverse of `hat`.

    Parameters
    ----------
    A : array_like, shape (..., 4, 4)

    Returns
    -------
    ndarray, shape (..., 6)
        (omega, v).

    Raises
    ------
    ArgumentError
        If the upper left block is not skew-symmetric or the last row is not zero.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import se3
    >>> se3.vee(se3.hat([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    array([1., 2., 3., 4., 5., 6.])
    """
    a = checked("A", A, (4, 4))
    so3.require_skew("A", a[..., :3, :3])
    if not holds(np.abs(a[..., 3, :]) <= so3.SKEW_TOLERANCE):
        raise ArgumentError(f"A: expected a last row of zeros, got one with {np.abs(a[..., 3, :]).max():.3g}")
    return np.concatenate((so3.vee(a[..., :3, :3]), a[..., :3, 3]), axis=-1)


def exp(X: ArrayLike) -> np.ndarray:
    """Return the transform of the screw motion X: rotation exp(omega), position dexp(omega) v.

    Parameters
    ----------
    X : array_like, shape (..., 6)
        Twist (omega, v) times time [rad, m].

    Returns
    -------
    ndarray, shape (..., 4, 4)

    Notes
    -----
    Park and Chung 2005 (10), (12), (18).
    """
    return over_batch(kernels.exp_many, 1, checked("X", X, (6,)))


def log(T: ArrayLike) -> np.ndarray:
    """Return the twist X (..., 6) with exp(X) = T and |omega| <= pi; at pi the choice is that of `so3.log`.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Rigid transform.

    Returns
    -------
    ndarray, shape (..., 6)

    Raises
    ------
    ArgumentError
        If |R^T R - 1| > 1e-6 or det R < 0, or the last row is not (0, 0, 0, 1).
    """
    return over_batch(kernels.log_many, 2, checked_transform("T", T))


def inverse(T: ArrayLike) -> np.ndarray:
    """Return T^-1 (..., 4, 4). Raises ArgumentError if T is not a rigid transform."""
    return inverse_of(checked_transform("T", T))


def Ad(T: ArrayLike) -> np.ndarray:
    """Return the matrix [[R, 0], [ [p] R, R ]] (..., 6, 6) that maps twists in frame b to frame a, T = T_ab.

    T hat(X) T^-1 = hat(Ad(T) X). Its transpose maps wrenches from a to b. Raises ArgumentError if T is not a rigid
    transform. Ploen 1999 section 2.
    """
    return Ad_of(checked_transform("T", T))


def ad(X: ArrayLike) -> np.ndarray:
    """Return the matrix [[ [w], 0 ], [ [v], [w] ]] (..., 6, 6) of the bracket, ad(X) Y = [X, Y]. Ploen 1999 section
    2.
    """
    a = checked("X", X, (6,))
    out = np.zeros((*a.shape, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = so3.hat(a[..., :3])
    out[..., 3:, :3] = so3.hat(a[..., 3:])
    return out


def dexp(X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
    """Return the right-trivialised differential of exp at X (..., 6), a matrix (..., 6, 6), or its product with Y (...,
    6).

    With Y the matrix is not built. Park and Chung 2005 (20), (21).
    """
    return differential(kernels.dexp_many, ("X", "Y"), 6, X, Y)


def dexp_inv(X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
    """Return the inverse (..., 6, 6) of dexp(X), or its product with Y (..., 6), for X (..., 6).

    With Y the matrix is not built. It is singular where |omega| is a nonzero multiple of 2 pi. Park and Chung 2005
    (23), (24); Mueller and Terze 2013 (10) is the same in powers of ad.
    """
    return differential(kernels.dexp_inv_many, ("X", "Y"), 6, X, Y)


def pose_error(T: ArrayLike, T_d: ArrayLike, form: PoseError = "log") -> np.ndarray:
    """Return the error of a pose T with respect to the desired pose T_d: (rotational part, translational part).

    Parameters
    ----------
    T, T_d : array_like, shape (..., 4, 4)
        Pose and desired pose.
    form : {"log", "geometric", "decoupled", "quaternion"}
        Definition of the error, see Notes. Default "log".

    Returns
    -------
    ndarray, shape (..., 6)

    Notes
    -----
    With R_e = R_d^T R, its angle theta and its axis n:

    "log"
        log(T_d^-1 T), the twist of the screw motion from T_d to T, |rotational part| = theta. It is body-fixed and
        left-invariant: it does not depend on the inertial frame (Bullo and Murray 1999).
    "geometric"
        e_R = 1/2 (R_d^T R - R^T R_d)^vee = sin(theta) n, the gradient of 1/4 |1 - R_e|^2 in the Frobenius norm, and
        e_p = R^T (p - p_d) (Lee, Leok and McClamroch 2010; Seo and others 2023 use twice this e_R). It needs no angle,
        but also vanishes at theta = pi.
    "decoupled"
        log(R_e) = theta n, and p - p_d in inertial axes: rotation and position do not mix.
    "quaternion"
        The vector part sin(theta / 2) n of R_e's unit quaternion with w >= 0, and p - p_d (Siciliano and others 2009
        section 3.7.3).

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import se3
    >>> T = se3.exp([0.0, 0.0, 0.3, 0.0, 0.0, 0.1])  # a screw motion about z
    >>> np.round(se3.pose_error(T, np.eye(4)), 9) + 0.0
    array([0. , 0. , 0.3, 0. , 0. , 0.1])
    """
    choice("form", form, POSE_ERRORS)
    a, b = checked_transform("T", T), checked_transform("T_d", T_d)
    same_batch(("T", "T_d"), a, b, (2, 2))
    E = inverse_of(b) @ a
    if form == "log":
        return over_batch(kernels.log_many, 2, E)
    R, p = E[..., :3, :3], a[..., :3, 3] - b[..., :3, 3]
    if form == "geometric":
        S = 0.5 * (R - R.swapaxes(-1, -2))
        e_R = np.stack((S[..., 2, 1], S[..., 0, 2], S[..., 1, 0]), axis=-1)
        p = (a[..., :3, :3].swapaxes(-1, -2) @ p[..., None])[..., 0]
    else:
        e_R = so3.log(R) if form == "decoupled" else so3.quaternion(R)[..., 1:]
    return np.concatenate((e_R, p), axis=-1)


def checked_transform(name: str, T: ArrayLike) -> np.ndarray:
    """Return T (..., 4, 4) as an array for the kernels; raise ArgumentError, with its name, if it is not rigid."""
    a = checked(name, T, (4, 4))
    require_rotation(name, a[..., :3, :3])
    row = a[..., 3, :].reshape(-1, 4)
    good = (np.abs(row - (0.0, 0.0, 0.0, 1.0)) <= LAST_ROW_TOLERANCE).all(axis=1)
    if not holds(good):
        raise ArgumentError(f"{name}: expected the last row (0, 0, 0, 1), got {row[good.argmin()].tolist()}")
    return a


def inverse_of(a: np.ndarray) -> np.ndarray:
    """Return `inverse` without checks."""
    out = np.zeros_like(a)
    Rt = a[..., :3, :3].swapaxes(-1, -2)
    out[..., :3, :3] = Rt
    out[..., :3, 3] = -(Rt @ a[..., :3, 3:])[..., 0]
    out[..., 3, 3] = 1.0
    return out


def Ad_of(a: np.ndarray) -> np.ndarray:
    """Return `Ad` without checks."""
    out = np.zeros((*a.shape[:-2], 6, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = a[..., :3, :3]
    out[..., 3:, :3] = so3.hat(a[..., :3, 3]) @ a[..., :3, :3]
    return out
