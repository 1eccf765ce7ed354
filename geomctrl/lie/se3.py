"""SE(3) and se(3) on arrays: transforms (..., 4, 4) and twists (omega, v) (..., 6), any leading batch axes.

Angular part first; T_ab maps coordinates in frame b to frame a, and Ad(T_ab) maps twists likewise. Nothing is
broadcast: two arguments have the same leading axes. Results are accurate to a few units in the last place at every
angle (the equations are in `kernels.exponentials`). Every function raises ArgumentError, a ValueError, for a wrong
shape, for nan and for infinity.

Sources: Park and Chung 2005 section II; Ploen 1999 section 2. `dexp` is right-trivialised,
d/dt exp(X) = hat(dexp(X) Xdot) exp(X), so that the body-fixed twist of exp(X) is dexp(-X) Xdot.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, same_batch
from geomctrl.errors import ArgumentError
from geomctrl.kernels import se3 as kernels
from geomctrl.tracing.numbers import holds

from . import so3
from .contract import differential, over_batch, require_rotation

__all__ = [
    "Ad",
    "ad",
    "dexp",
    "dexp_inv",
    "exp",
    "hat",
    "inverse",
    "log",
    "pose_error",
    "vee",
]

PoseError = Literal["log", "geometric", "decoupled", "quaternion"]
POSE_ERRORS = ("log", "geometric", "decoupled", "quaternion")
LAST_ROW_TOLERANCE = 1e-12  # what numpy's inverse of a transform may leave


def hat(X: ArrayLike) -> np.ndarray:
    """The matrix [[ [omega], v ], [0, 0]] (..., 4, 4) of a twist X (..., 6)."""
    a = checked("X", X, (6,))
    out = np.zeros((*a.shape[:-1], 4, 4))
    out[..., :3, :3] = so3.hat(a[..., :3])
    out[..., :3, 3] = a[..., 3:]
    return out


def vee(A: ArrayLike) -> np.ndarray:
    """The inverse of hat: (..., 4, 4) to (..., 6).

    Raises ArgumentError if the upper left block is not skew or the last row not zero.
    """
    a = checked("A", A, (4, 4))
    so3.require_skew("A", a[..., :3, :3])
    if not holds(np.abs(a[..., 3, :]) <= so3.SKEW_TOLERANCE):
        raise ArgumentError(f"A: expected a last row of zeros, got one with {np.abs(a[..., 3, :]).max():.3g}")
    return np.concatenate((so3.vee(a[..., :3, :3]), a[..., :3, 3]), axis=-1)


def exp(X: ArrayLike) -> np.ndarray:
    """The transform (..., 4, 4) of the screw motion X (..., 6): rotation exp(omega), position dexp(omega) v.

    Park and Chung 2005 (10), (12), (18).
    """
    return over_batch(kernels.exp_many, 1, checked("X", X, (6,)))


def log(T: ArrayLike) -> np.ndarray:
    """The twist (..., 6) with exp(log(T)) = T, T (..., 4, 4), and |omega| <= pi, chosen at pi as `so3.log` does.

    Raises ArgumentError, with the residual, if the rotation has |R^T R - 1| > 1e-6 or det R < 0, or if the last row
    is not (0, 0, 0, 1).
    """
    return over_batch(kernels.log_many, 2, checked_transform("T", T))


def inverse(T: ArrayLike) -> np.ndarray:
    """T^-1 (..., 4, 4). Raises ArgumentError if T is not a rigid transform."""
    return inverse_of(checked_transform("T", T))


def Ad(T: ArrayLike) -> np.ndarray:
    """The matrix [[R, 0], [ [p] R, R ]] (..., 6, 6) that maps twists in b to a, T = T_ab. Ploen 1999 section 2.

    T hat(X) T^-1 = hat(Ad(T) X). Wrenches map from a to b with its transpose. Raises ArgumentError if T is not a
    rigid transform.
    """
    return Ad_of(checked_transform("T", T))


def ad(X: ArrayLike) -> np.ndarray:
    """The matrix [[ [w], 0 ], [ [v], [w] ]] (..., 6, 6) of the bracket, ad(X) Y = [X, Y]. Ploen 1999 section 2."""
    a = checked("X", X, (6,))
    out = np.zeros((*a.shape, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = so3.hat(a[..., :3])
    out[..., 3:, :3] = so3.hat(a[..., 3:])
    return out


def dexp(X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
    """The matrix (..., 6, 6) of the right-trivialised differential of exp at X (..., 6); with Y, dexp(X) Y (..., 6).

    The second form does not build the matrix. Park and Chung 2005 (20), (21).
    """
    return differential(kernels.dexp_many, ("X", "Y"), 6, X, Y)


def dexp_inv(X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
    """The inverse (..., 6, 6) of dexp(X), X (..., 6); with Y, dexp_inv(X) Y (..., 6) without building the matrix.

    Singular where |omega| is a nonzero multiple of 2 pi: finite but huge next to it. Park and Chung 2005 (23), (24);
    Mueller and Terze 2013 (10) is the same in powers of ad.
    """
    return differential(kernels.dexp_inv_many, ("X", "Y"), 6, X, Y)


def pose_error(T: ArrayLike, T_d: ArrayLike, form: PoseError = "log") -> np.ndarray:
    """How far a pose T is off the desired T_d, (..., 4, 4) each: (rotational part, translational part) (..., 6).

    With R_e = R_d^T R, theta its angle and n its axis,

    "log"         log(T_d^-1 T), the twist of the screw motion from T_d to T, |rotational part| = theta. Body-fixed,
                  left-invariant: the same wherever the inertial frame is (Bullo and Murray 1999).
    "geometric"   e_R = 1/2 (R_d^T R - R^T R_d)^vee = sin(theta) n, the gradient of 1/4 |1 - R_e|^2 in Frobenius' norm,
                  and e_p = R^T (p - p_d) (Lee, Leok and McClamroch 2010; twice this e_R in Seo and others 2023).
                  It needs no angle, but vanishes at theta = pi, too.
    "decoupled"   log(R_e) = theta n and p - p_d in inertial axes: rotation and position do not mix.
    "quaternion"  the vector part sin(theta / 2) n of R_e's unit quaternion with w >= 0, and p - p_d
                  (Siciliano and others 2009 section 3.7.3).
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
        e_R = so3.log(R) if form == "decoupled" else so3.to_quaternion(R, "wxyz")[..., 1:]
    return np.concatenate((e_R, p), axis=-1)


def checked_transform(name: str, T: ArrayLike) -> np.ndarray:
    """T (..., 4, 4) as the kernels take it; raises ArgumentError, naming the argument, if it is not rigid."""
    a = checked(name, T, (4, 4))
    require_rotation(name, a[..., :3, :3])
    row = a[..., 3, :].reshape(-1, 4)
    good = (np.abs(row - (0.0, 0.0, 0.0, 1.0)) <= LAST_ROW_TOLERANCE).all(axis=1)
    if not holds(good):
        raise ArgumentError(f"{name}: expected the last row (0, 0, 0, 1), got {row[good.argmin()].tolist()}")
    return a


def inverse_of(a: np.ndarray) -> np.ndarray:
    """`inverse` without checks."""
    out = np.zeros_like(a)
    Rt = a[..., :3, :3].swapaxes(-1, -2)
    out[..., :3, :3] = Rt
    out[..., :3, 3] = -(Rt @ a[..., :3, 3:])[..., 0]
    out[..., 3, 3] = 1.0
    return out


def Ad_of(a: np.ndarray) -> np.ndarray:
    """`Ad` without checks."""
    out = np.zeros((*a.shape[:-2], 6, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = a[..., :3, :3]
    out[..., 3:, :3] = so3.hat(a[..., :3, 3]) @ a[..., :3, :3]
    return out
