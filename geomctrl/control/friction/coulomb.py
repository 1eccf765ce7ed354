"""`Friction` and `AsymmetricCoulomb`: viscous and Coulomb friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.other_names import named_arguments

from .model import FrictionModel, check_coefficients, diagonal, stacked


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Friction(FrictionModel):
    """Viscous and Coulomb friction of joints: viscous v + coulomb tanh(v / smoothing).

    Parameters
    ----------
    viscous : float or array_like (nv,), default 0
        [N m s/rad, N s/m].
    coulomb : float or array_like (nv,), default 0
        [N m, N].
    smoothing : float, default 0.01
        Speed [rad/s, m/s] at which 76 % of the Coulomb torque acts.

    Raises
    ------
    ArgumentError

    Notes
    -----
    The smooth Coulomb law keeps the closed loop an ordinary differential equation.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> gc.Friction(viscous=0.5, coulomb=2.0).torque(np.array([1.0, -1.0]))
    array([ 2.5, -2.5])
    """

    viscous: ArrayLike = 0.0
    coulomb: ArrayLike = 0.0
    smoothing: float = 0.01

    def __post_init__(self):
        check_coefficients(self, "viscous", "coulomb")

    def torque(self, v, load=None, x=None):
        return np.asarray(self.viscous) * v + np.asarray(self.coulomb) * np.tanh(v / self.smoothing)

    def columns(self, v, load=None):
        return np.concatenate((diagonal(v), diagonal(np.tanh(v / self.smoothing))), axis=-1)

    def parameters(self, nv):
        return stacked(self, nv, "viscous", "coulomb")


FRICTIONLESS = Friction()


def kernel_coefficients(friction: FrictionModel | None, nv: int) -> np.ndarray | None:
    """(viscous, coulomb, smoothing) (3, nv) for `kernels.plant`, zero friction for None; None for other models."""
    plain = FRICTIONLESS if friction is None else friction
    if type(plain) is not Friction:
        return None
    return np.append(plain.parameters(nv), np.full(nv, float(plain.smoothing))).reshape(3, nv)


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class AsymmetricCoulomb(FrictionModel):
    """Joint friction `forward` at positive and -`backward` at negative velocities, with a smooth change between them.

    Parameters
    ----------
    forward, backward : float or (nv,)
        Friction torques of motion in either direction, >= 0 [N m, N].
    smoothing : float
        Speed over which friction changes its sign [rad/s, m/s].

    Raises
    ------
    ArgumentError
        If a coefficient is negative or not finite.

    Notes
    -----
    With s = tanh(v / smoothing) the torque is forward (s + s^2) / 2 + backward (s - s^2) / 2. It is linear in both
    torques, opposes the velocity everywhere, and is `Friction`'s Coulomb torque where they are equal.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> gc.friction.AsymmetricCoulomb(forward=1.0, backward=0.6).torque(np.array([1.0, -1.0]))
    array([ 1. , -0.6])
    """

    forward: ArrayLike
    backward: ArrayLike
    smoothing: float = 0.01

    def __post_init__(self):
        check_coefficients(self, "forward", "backward")

    def torque(self, v, load=None, x=None):
        s = np.tanh(v / self.smoothing)
        return 0.5 * s * (np.asarray(self.forward) * (1.0 + s) + np.asarray(self.backward) * (1.0 - s))

    def columns(self, v, load=None):
        s = np.tanh(v / self.smoothing)
        return np.concatenate((diagonal(0.5 * (s + s * s)), diagonal(0.5 * (s - s * s))), axis=-1)

    def parameters(self, nv):
        return stacked(self, nv, "forward", "backward")
