"""Conversion of twists, accelerations, Jacobians, wrenches and inertias between the four representations.

Mueller 2018 section 3 and appendix A, whose equation numbers are cited. `representations` defines the representations
and exports these functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError
from geomctrl.lie import se3, so3
from geomctrl.mechanism.states import equal_axes
from geomctrl.terms.kinematics import Representation, representation_number

from .blocks import blocks, mul, transpose

SHAPES = {"T": (4, 4), "frame": (4, 4), "placements": (4, 4), "parameters": (10,), "J": (6, 6)}  # others: (6,)


def change_of_representation(T: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """Return the matrix A with V_target = A V_source for the frame at T: (98)-(100).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6, 6)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> T = gc.se3.exp([0.1, 0.2, 0.3, 1.0, 0.0, 0.0])
    >>> A = representations.change_of_representation(T, "body", "spatial")
    >>> bool(np.allclose(A, gc.se3.Ad(T)))
    True
    """
    (T,) = checked_together(T=T)
    return _change(T, source, target)


def convert_twist(T: ArrayLike, V: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """Convert the twist V of the frame at T to another representation: (98)-(100).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    V : array_like, shape (..., 6)
        Twist of the frame [rad/s, m/s].
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6)

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.papers import representations
    >>> T = np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])  # a quarter turn about z
    >>> representations.convert_twist(T, [0.0, 0, 0, 1, 0, 0], "body", "hybrid")
    array([0., 0., 0., 0., 1., 0.])
    """
    T, V = checked_together(T=T, V=V)
    return mul(_change(T, source, target), V)


def convert_acceleration(
    T: ArrayLike, V: ArrayLike, A: ArrayLike, source: Representation, target: Representation
) -> np.ndarray:
    """Convert the rate A of the twist V to another representation: the time derivatives of (98)-(100), and (33).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    V : array_like, shape (..., 6)
        Twist of the frame [rad/s, m/s], in `source`.
    A : array_like, shape (..., 6)
        Rate of the twist [rad/s^2, m/s^2], in `source`.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> T, V = robot.pose(q, "tip"), robot.jacobian(q, "tip") @ v
    >>> A = representations.convert_acceleration(T, V, robot.jacobian_rate(q, v, "tip") @ v, "body", "hybrid")
    >>> bool(np.allclose(A, robot.jacobian_rate(q, v, "tip", "hybrid") @ v))
    True
    """
    T, V, A = checked_together(T=T, V=V, A=A)
    return mul(_change(T, source, target), A) + mul(_change_rate(T, V, source, target), V)


def convert_jacobian(T: ArrayLike, Jac: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """Convert a Jacobian of the frame at T to another representation: (106).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    Jac : array_like, shape (..., 6, n)
        Jacobian of the frame.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6, n)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> robot, q = gc.models.two_link(), np.array([0.3, -0.5])
    >>> J = representations.convert_jacobian(robot.pose(q, "tip"), robot.jacobian(q, "tip"), "body", "hybrid")
    >>> bool(np.allclose(J, robot.jacobian(q, "tip", "hybrid")))
    True
    """
    T, Jac = checked_together(T=T, Jac=Jac)
    return _change(T, source, target) @ Jac


def convert_jacobian_rate(
    T: ArrayLike, V: ArrayLike, Jac: ArrayLike, Jac_rate: ArrayLike, source: Representation, target: Representation
) -> np.ndarray:
    """Convert the time derivative of a Jacobian to another representation: (24), (33).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    V : array_like, shape (..., 6)
        Twist of the frame [rad/s, m/s], in `source`.
    Jac, Jac_rate : array_like, shape (..., 6, n)
        Jacobian of the frame and its time derivative, in `source`.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the arguments and of the result.

    Returns
    -------
    ndarray, shape (..., 6, n)

    Raises
    ------
    ArgumentError
        If shapes differ, numbers are not finite or a representation is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> T, J, J_rate = robot.pose(q, "tip"), robot.jacobian(q, "tip"), robot.jacobian_rate(q, v, "tip")
    >>> converted = representations.convert_jacobian_rate(T, J @ v, J, J_rate, "body", "hybrid")
    >>> bool(np.allclose(converted, robot.jacobian_rate(q, v, "tip", "hybrid")))
    True
    """
    T, V, Jac, Jac_rate = checked_together(T=T, V=V, Jac=Jac, Jac_rate=Jac_rate)
    if Jac.shape != Jac_rate.shape:
        raise ArgumentError(f"Jac, Jac_rate: expected the same shape, got {Jac.shape} and {Jac_rate.shape}")
    return _change(T, source, target) @ Jac_rate + _change_rate(T, V, source, target) @ Jac


def convert_wrench(T: ArrayLike, W: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """Convert the wrench W on the frame at T to another representation, with equal power W . V: (35).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the frame.
    W : array_like, shape (..., 6)
        Wrench on the frame [N m, N].
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> T = gc.se3.exp([0.1, 0.2, 0.3, 1.0, 0.0, 0.0])
    >>> V, W = np.arange(6.0), np.ones(6)
    >>> V_s = representations.convert_twist(T, V, "body", "spatial")
    >>> W_s = representations.convert_wrench(T, W, "body", "spatial")
    >>> bool(np.isclose(W @ V, W_s @ V_s))  # equal power
    True
    """
    T, W = checked_together(T=T, W=W)
    _require_known(source, target)
    return mul(transpose(_change(T, target, source)), W)


def convert_inertia(T: ArrayLike, J: ArrayLike, source: Representation, target: Representation) -> np.ndarray:
    """Convert the mass matrix J of a body at T to another representation: (34), (47), (51).

    Parameters
    ----------
    T : array_like, shape (..., 4, 4)
        Pose of the body.
    J : array_like, shape (..., 6, 6)
        Mass matrix of the body.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        Representations of the argument and of the result.

    Returns
    -------
    ndarray, shape (..., 6, 6)

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers import representations
    >>> T = gc.se3.exp([0.1, 0.2, 0.3, 1.0, 0.0, 0.0])
    >>> J, V = gc.inertia.spatial(gc.inertia.from_com(2.0, [0.1, 0.2, 0.3], 0.1 * np.eye(3))), np.arange(6.0)
    >>> V_s = representations.convert_twist(T, V, "body", "spatial")
    >>> J_s = representations.convert_inertia(T, J, "body", "spatial")
    >>> bool(np.isclose(V @ J @ V, V_s @ J_s @ V_s))  # equal kinetic energy
    True
    """
    T, J = checked_together(T=T, J=J)
    _require_known(source, target)
    back = _change(T, target, source)
    return transpose(back) @ J @ back


def _require_known(source: str, target: str) -> None:
    representation_number(source, "source")
    representation_number(target, "target")


def _change(T: np.ndarray, source: str, target: str) -> np.ndarray:
    _require_known(source, target)
    return from_body(T, target) @ to_body(T, source)


def _change_rate(T: np.ndarray, V: np.ndarray, source: str, target: str) -> np.ndarray:
    back = to_body(T, source)
    V_b = mul(back, V)
    rate = from_body_rate(T, V_b, target) @ back
    # A = A_target A_source^-1, and d/dt A_source^-1 = - A_source^-1 (d/dt A_source) A_source^-1
    return rate - from_body(T, target) @ back @ from_body_rate(T, V_b, source) @ back


def from_body(T: np.ndarray, target: str) -> np.ndarray:
    """Return A with V_target = A V^b."""
    if target == "spatial":
        return se3.Ad_of(T)  # (99)
    R, one, zero = T[..., :3, :3], eye3(T), zero3(T)
    return blocks(R if target == "hybrid" else one, zero, zero, one if target == "body" else R)  # (98), (100)


def to_body(T: np.ndarray, source: str) -> np.ndarray:
    """Return the inverse of `from_body`; all but the spatial matrix are orthogonal."""
    return se3.Ad_of(se3.inverse_of(T)) if source == "spatial" else transpose(from_body(T, source))


def from_body_rate(T: np.ndarray, V_b: np.ndarray, target: str) -> np.ndarray:
    """Return the time derivative of `from_body`, with Rdot = R [w] and d/dt Ad_T = Ad_T ad_V."""
    if target == "spatial":
        return se3.Ad_of(T) @ se3.ad(V_b)
    R_rate, zero = T[..., :3, :3] @ so3.hat(V_b[..., :3]), zero3(T)
    return blocks(R_rate if target == "hybrid" else zero, zero, zero, zero if target == "body" else R_rate)


# --- arrays ------------------------------------------------------------------------------------------------------


def checked_together(**arguments: ArrayLike) -> list[np.ndarray]:
    """Return the arguments as arrays, of the shapes that `SHAPES` gives for their names and with equal leading axes.

    Nothing is broadcast; raises ArgumentError for other shapes.
    """
    arrays, leads = [], {}
    for name, x in arguments.items():
        shape = SHAPES.get(name, (6,))
        if name.startswith("Jac"):
            x = checked(name, x, ())
            shape = (6, x.shape[-1] if x.ndim else 1)
        a = se3.checked_transform(name, x) if shape == (4, 4) else checked(name, x, shape)
        leads[name] = a.shape[: a.ndim - len(shape)]
        arrays.append(a)
    equal_axes(leads)
    return arrays


def eye3(T: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.eye(3), (*T.shape[:-2], 3, 3))


def zero3(T: np.ndarray) -> np.ndarray:
    return np.zeros((*T.shape[:-2], 3, 3))
