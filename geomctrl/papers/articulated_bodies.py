"""Articulated-body inertias and biases: the dynamics of a body's subtree, seen from its joint (Featherstone 1983).

Examples
--------
>>> import numpy as np
>>> import geomctrl as gc
>>> from geomctrl.papers.articulated_bodies import Articulated, articulated_bodies
>>> robot, q, zero = gc.models.two_link(), np.array([0.3, -0.5]), np.zeros(2)
>>> result: Articulated = articulated_bodies(robot, q, zero, zero)
>>> bool(np.allclose(result.inertia[-1], gc.inertia.spatial(robot.parameters[-1])))  # the last body carries no other
True
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.kernels import articulated_bodies as bodies
from geomctrl.mechanism.mechanism import Mechanism, require_free_joints, require_robot
from geomctrl.terms.batches import over_states

__all__ = ["Articulated", "articulated_bodies"]


class Articulated(NamedTuple):
    """Articulated inertias and biases of all bodies, each in its body's frame.

    Attributes
    ----------
    inertia : ndarray, shape (..., nbodies, 6, 6)
        Articulated inertias [kg m^2, kg m, kg].
    bias : ndarray, shape (..., nbodies, 6)
        Bias wrenches [N m, N].
    """

    inertia: np.ndarray
    bias: np.ndarray


def articulated_bodies(
    robot: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike, f_ext: ArrayLike | None = None
) -> Articulated:
    """Return IA_i and pA_i with F_i = IA_i A_i + pA_i, the dynamics of the subtree of body i seen from joint i.

    F_i is the wrench that joint i transmits, and A_i is the body's acceleration, where gravity enters as the base's
    acceleration -g; both are in the body's frame. IA_i and pA_i do not depend on joint i itself (Featherstone 1983).
    Raises ModelError where the mass matrix is not positive definite, and for joints that follow others.

    Parameters
    ----------
    robot : Robot
        The robot.
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].
    tau : array_like, shape (..., nv)
        Joint torques and forces [N m, N].
    f_ext : array_like, shape (..., nbodies, 6), optional
        Wrenches on the bodies, in body frames [N m, N]. Default: none.

    Returns
    -------
    Articulated
        Named tuple of the inertias and biases.
    """
    require_robot("robot", robot)
    require_free_joints("articulated_bodies", robot)
    out = over_states(robot, bodies.articulated_handles, q=q, v=v, tau=tau, f_ext=f_ext)
    out = out.reshape(*out.shape[:-1], robot.nbodies, 7, 6)
    IA = out[..., :6, :]
    return Articulated(0.5 * (IA + IA.swapaxes(-1, -2)), out[..., 6, :].copy())
