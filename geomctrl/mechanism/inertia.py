"""Inertial parameters: ten numbers for each body, the spatial inertia J (6x6), the pseudo-inertia P (4x4), feasibility.

The ten parameters are (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) [kg, kg m, kg m^2], as in Pinocchio: h = m c is the
first moment, I the inertia about the origin of the frame. All functions accept leading batch axes. They raise
ArgumentError for wrong shapes and for entries that are not finite real numbers; `violation` and `check` describe nan
and infinity instead.

    J = [[I, [h]], [-[h], m 1]],    P = [[Sigma, h], [h^T, m]],  Sigma = tr(I)/2 1 - I

A rigid body with these parameters exists if and only if P >= 0 (Wensing, Kim, Slotine 2018): the mass is not negative
and the principal moments about the centre of mass satisfy the triangle inequalities. The condition J > 0 is weaker.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, flag, same_batch, without_overflow_warnings
from geomctrl.errors import ArgumentError, InertiaError
from geomctrl.lie import se3
from geomctrl.other_names import unknown_names

__all__ = [
    "com",
    "com_tensor",
    "divergence",
    "from_com",
    "from_pseudo",
    "is_physical",
    "pseudo",
    "spatial",
    "tensor",
    "transform",
    "violation",
]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)

SYMMETRIC = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])  # (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) -> 3x3
UPPER = ((0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2))
SYMMETRY = 1e-9  # allowed asymmetry of a symmetric matrix, relative to its largest entry
TOLERANCE = 1e-9  # relative to the body's own scale, so that rounding of a thin rod or point mass is no violation


def _parameters(parameters: ArrayLike, finite: bool = True) -> np.ndarray:
    return checked("parameters", parameters, (10,), finite)


def _hat(x):
    out = np.zeros((*x.shape, 3))
    out[..., (2, 0, 1), (1, 2, 0)] = x
    out[..., (1, 2, 0), (2, 0, 1)] = -x
    return out


def _relative(off: np.ndarray, A: np.ndarray) -> float:
    """Largest entry of `off`, relative to the largest entry of its matrix in A (..., n, n)."""
    size = np.abs(A).max(axis=(-2, -1), initial=0.0)
    return float((np.abs(off).max(axis=(-2, -1), initial=0.0) / np.where(size > 0.0, size, 1.0)).max(initial=0.0))


def _require_symmetric(name: str, A: np.ndarray) -> None:
    if (off := _relative(A - A.swapaxes(-1, -2), A)) > SYMMETRY:
        raise ArgumentError(f"{name}: expected a symmetric matrix, got a relative asymmetry of {off:.3g}")


@without_overflow_warnings
def from_com(mass: ArrayLike, com: ArrayLike, I_com: ArrayLike) -> np.ndarray:
    """Compute the ten parameters from mass, centre of mass and inertia about it.

    Parameters
    ----------
    mass : array_like, shape (...,)
        Mass [kg].
    com : array_like, shape (..., 3)
        Centre of mass in the frame [m].
    I_com : array_like, shape (..., 3, 3)
        Inertia about the centre of mass, in the axes of the frame [kg m^2]. Must be symmetric.

    Returns
    -------
    ndarray, shape (..., 10)
        One `com` or one `I_com` may be shared by all masses; otherwise leading axes must agree.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.mechanism import inertia
    >>> pi = inertia.from_com(2.0, [0.1, 0.0, 0.0], 0.01 * np.eye(3))
    >>> inertia.com(pi)
    array([0.1, 0. , 0. ])
    """
    m, c, I = (checked(n, x, s) for n, x, s in (("mass", mass, ()), ("com", com, (3,)), ("I_com", I_com, (3, 3))))
    for name, x, core in (("com", c, 1), ("I_com", I, 2)):
        if x.shape[: x.ndim - core] not in ((), m.shape):
            raise ArgumentError(f"mass, {name}: expected the same leading axes, got {m.shape} and {x.shape[:-core]}")
    _require_symmetric("I_com", I)
    I = I - m[..., None, None] * _hat(c) @ _hat(c)
    return np.concatenate((m[..., None], m[..., None] * c, I[..., UPPER[0], UPPER[1]]), -1)


def tensor(parameters: ArrayLike) -> np.ndarray:
    """Return the rotational inertia about the origin of the frame.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the origin of the frame, h = m c [kg, kg m, kg m^2].

    Returns
    -------
    ndarray, shape (..., 3, 3)
        [kg m^2].

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import inertia
    >>> body = inertia.from_com(2.0, [0.0, 0.0, 0.5], np.diag([0.1, 0.1, 0.02]))
    >>> inertia.tensor(body).diagonal()
    array([0.6 , 0.6 , 0.02])
    """
    return _parameters(parameters)[..., 4:][..., SYMMETRIC]


def com(parameters: ArrayLike) -> np.ndarray:
    """Return the centre of mass.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the origin of the frame, h = m c [kg, kg m, kg m^2].

    Returns
    -------
    ndarray, shape (..., 3)
        [m]; nan where the mass is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import inertia
    >>> inertia.com(inertia.from_com(2.0, [0.0, 0.0, 0.5], np.eye(3)))
    array([0. , 0. , 0.5])
    """
    pi = _parameters(parameters)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pi[..., :1] != 0.0, pi[..., 1:4] / pi[..., :1], np.nan)


@without_overflow_warnings
def com_tensor(parameters: ArrayLike) -> np.ndarray:
    """Return the rotational inertia about the centre of mass, in the axes of the frame.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the origin of the frame, h = m c [kg, kg m, kg m^2].

    Returns
    -------
    ndarray, shape (..., 3, 3)
        [kg m^2]; about the origin where the mass is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import inertia
    >>> body = inertia.from_com(2.0, [0.0, 0.0, 0.5], np.diag([0.1, 0.1, 0.02]))
    >>> np.round(inertia.com_tensor(body).diagonal(), 12)
    array([0.1 , 0.1 , 0.02])
    """
    pi = _parameters(parameters)
    c = np.nan_to_num(com(pi))
    return tensor(pi) + pi[..., 0, None, None] * _hat(c) @ _hat(c)


@without_overflow_warnings
def spatial(parameters: ArrayLike) -> np.ndarray:
    """Return the spatial inertia J: momentum = J V, and kinetic energy = 1/2 V . J V for the twist V = (omega, v).

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the origin of the frame, h = m c [kg, kg m, kg m^2].

    Returns
    -------
    ndarray, shape (..., 6, 6)

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import inertia
    >>> body = inertia.from_com(2.0, [0.0, 0.0, 0.5], np.diag([0.1, 0.1, 0.02]))
    >>> V = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])  # translation along x
    >>> inertia.spatial(body) @ V
    array([0., 1., 0., 2., 0., 0.])
    """
    pi = _parameters(parameters)
    H = _hat(pi[..., 1:4])
    m = pi[..., 0, None, None] * np.eye(3)
    return np.concatenate((np.concatenate((tensor(pi), H), -1), np.concatenate((-H, m), -1)), -2)


@without_overflow_warnings
def pseudo(parameters: ArrayLike) -> np.ndarray:
    """Return the pseudo-inertia P, which is positive definite for every body that extends in all directions.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the origin of the frame, h = m c [kg, kg m, kg m^2].

    Returns
    -------
    ndarray, shape (..., 4, 4)
        [[1/2 tr(I) 1 - I, h], [h^T, m]].

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> ball = gc.inertia.from_com(2.0, (0, 0, 0), 0.4 * np.eye(3))
    >>> gc.inertia.pseudo(ball).diagonal()
    array([0.2, 0.2, 0.2, 2. ])
    """
    pi = _parameters(parameters)
    I, h = tensor(pi), pi[..., 1:4, None]
    Sigma = 0.5 * np.trace(I, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - I
    bottom = np.concatenate((h.swapaxes(-1, -2), pi[..., 0, None, None]), -1)
    return np.concatenate((np.concatenate((Sigma, h), -1), bottom), -2)


@without_overflow_warnings
def from_pseudo(P: ArrayLike) -> np.ndarray:
    """Return the ten parameters of a pseudo-inertia: the inverse of `pseudo`.

    Parameters
    ----------
    P : array_like, shape (..., 4, 4)
        A symmetric matrix.

    Returns
    -------
    ndarray, shape (..., 10)
        As for `pseudo`.

    Raises
    ------
    ArgumentError
        If the matrix is not symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import inertia
    >>> body = inertia.from_com(2.0, [0.0, 0.0, 0.5], np.diag([0.1, 0.1, 0.02]))
    >>> bool(np.allclose(inertia.from_pseudo(inertia.pseudo(body)), body))
    True
    """
    P = checked("P", P, (4, 4))
    _require_symmetric("P", P)
    return _of_pseudo(P)


def _of_pseudo(P: np.ndarray) -> np.ndarray:
    Sigma = P[..., :3, :3]
    I = np.trace(Sigma, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - Sigma
    return np.concatenate((P[..., 3, 3, None], P[..., :3, 3], I[..., UPPER[0], UPPER[1]]), -1)


@without_overflow_warnings
def transform(T: ArrayLike, parameters: ArrayLike) -> np.ndarray:
    """Convert parameters from frame b to frame a: P' = T P T^T with T = T_ab.

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of frame b in frame a.
    parameters : array_like, shape (..., 10)
        Parameters in frame b.

    Returns
    -------
    ndarray, shape (..., 10)
        Parameters in frame a. One T may be shared by all parameters, or one set of parameters by all T.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> ball = gc.inertia.from_com(2.0, (0, 0, 0), 0.4 * np.eye(3))
    >>> T = gc.se3.exp([0, 0, 0, 0, 0, 0.5])  # 0.5 m along z
    >>> gc.inertia.com(gc.inertia.transform(T, ball))
    array([0. , 0. , 0.5])
    """
    T, P = se3.checked_transform("T", T), pseudo(parameters)
    if T.ndim > 2 and P.ndim > 2:
        same_batch(("T", "parameters"), T, P, (2, 2))
    return _of_pseudo(T @ P @ T.swapaxes(-1, -2))


@without_overflow_warnings
def violation(parameters: ArrayLike) -> str | None:
    """Explain why no rigid body can have these ten parameters.

    Parameters
    ----------
    parameters : array_like, shape (10,)
        (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the origin of the frame, h = m c [kg, kg m, kg m^2].

    Returns
    -------
    str or None
        The violated condition; None if a rigid body can have them. Point masses and thin rods are rigid bodies.

    Examples
    --------
    >>> from geomctrl import inertia
    >>> inertia.violation([-1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1])
    'mass -1 is negative'
    """
    pi = _parameters(parameters, finite=False)
    if pi.ndim != 1:
        raise ArgumentError(f"parameters: expected one body's parameters, shape (10,), got {pi.shape}")
    if not np.isfinite(pi).all():
        return f"parameters are not finite: {pi}"
    m = pi[0]
    if m < 0.0:
        return f"mass {m:.6g} is negative"
    if m == 0.0:
        return "mass is zero but first moment or inertia is not" if pi.any() else None
    moments = com_tensor(pi)
    if not np.isfinite(moments).all():
        return f"parameters are so large that the inertia about the centre of mass overflows: {pi}"
    a, b, c = np.linalg.eigvalsh(moments)
    scale = TOLERANCE * max(np.abs(tensor(pi)).max(), abs(c))
    if a < -scale:
        return f"a principal moment of inertia about the centre of mass is negative: {a:.6g}, {b:.6g}, {c:.6g}"
    if a + b < c - scale:
        return (
            f"triangle inequality fails: principal moments about the centre of mass {a:.6g} + {b:.6g} < {c:.6g}"
            " (a body's two smaller moments sum to at least the largest)"
        )
    return None


def is_physical(parameters: ArrayLike, strict: bool = False) -> np.ndarray:
    """Return whether a rigid body can have the parameters.

    Parameters
    ----------
    parameters : array_like, shape (..., 10)
        As for `spatial`.
    strict : bool
        Whether the body must extend in all directions: pseudo-inertia > 0. Default: False.

    Returns
    -------
    ndarray of bool, shape (...,)

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import inertia
    >>> bool(inertia.is_physical(inertia.from_com(1.0, [0.0, 0.0, 0.0], np.diag([1.0, 1.0, 3.0]))))  # 1 + 1 < 3
    False
    """
    pi = _parameters(parameters)
    flag("strict", strict)
    with np.errstate(over="ignore", invalid="ignore"):
        P = pseudo(pi)
    P = np.where(np.isfinite(P).all((-2, -1), keepdims=True), P, -np.eye(4))  # no body: its sums overflow
    eigenvalues = np.linalg.eigvalsh(P)
    bound = TOLERANCE * np.abs(eigenvalues).max(-1)
    if strict:
        return eigenvalues[..., 0] > bound
    return (eigenvalues[..., 0] >= -bound) & ((pi[..., 0] > 0.0) | ~pi.any(-1))


def check(parameters: ArrayLike, body: str) -> None:
    """Raise InertiaError, naming the body, unless a rigid body can have the parameters."""
    why = violation(parameters)
    if why:
        raise InertiaError(f"body {body!r}: {why}")


def check_all(parameters: ArrayLike, names: Sequence[str]) -> None:
    """Run `check` on all bodies (n, 10) at once."""
    pi = _parameters(parameters, finite=False)
    with np.errstate(invalid="ignore"):
        physical = np.isfinite(pi).all(-1) & (pi[:, 0] > 0.0)
        I = com_tensor(np.where(physical[:, None], pi, 0.0))
        physical &= np.isfinite(I).all((-2, -1))
        moments = np.linalg.eigvalsh(np.where(physical[:, None, None], I, 0.0))
        physical &= (moments[:, 0] >= 0.0) & (moments[:, 0] + moments[:, 1] >= moments[:, 2])
    for k in np.flatnonzero(~physical).tolist():
        check(pi[k], names[k])


def divergence(parameters: ArrayLike, prior: ArrayLike) -> np.ndarray:
    """Return the log-det (Bregman) divergence D(P || P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4 of each body.

    It is non-negative, zero only if the parameters agree, and independent of the frame. Both bodies must satisfy P > 0.

    Parameters
    ----------
    parameters, prior : array_like, shape (..., 10)
        Parameters and prior.

    Returns
    -------
    ndarray, shape (...,)

    Raises
    ------
    InertiaError
        If a pseudo-inertia is not positive definite.

    Notes
    -----
    Lee, Wensing and Park 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import inertia
    >>> body = inertia.from_com(2.0, [0.0, 0.0, 0.5], np.diag([0.1, 0.1, 0.02]))
    >>> bool(inertia.divergence(body, body) < 1e-12 < inertia.divergence(1.1 * body, body))
    True
    """
    a, b = checked("parameters", parameters, (10,)), checked("prior", prior, (10,))
    if a.ndim > 1 and b.ndim > 1:
        same_batch(("parameters", "prior"), a, b, (1, 1))
    for name, pi in (("parameters", a), ("prior", b)):
        if not is_physical(pi, strict=True).all():
            raise InertiaError(f"{name}: the pseudo-inertia is not positive definite; expected strictly physical ones")
    X = np.linalg.solve(pseudo(b), pseudo(a))
    return np.trace(X, axis1=-2, axis2=-1) - np.linalg.slogdet(X)[1] - 4.0
