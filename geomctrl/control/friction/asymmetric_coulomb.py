"""Coulomb friction that differs between the two directions of motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number, per_coordinate

from .model import FrictionModel, diagonal


@dataclass(frozen=True, eq=False, repr=False)
class AsymmetricCoulomb(FrictionModel):
    """Joint friction `forward` at positive and -`backward` at negative velocities, with a smooth change between them.

    Parameters
    ----------
    forward, backward : float or (nv,)
        Friction torques of motion in either direction, >= 0 [N m, N].
    smoothing : float
        Speed over which friction changes its sign [rad/s, m/s].

    Notes
    -----
    With s = tanh(v / smoothing) the torque is forward (s + s^2) / 2 + backward (s - s^2) / 2. It is linear in both
    torques, opposes the velocity everywhere, and is `Friction`'s Coulomb torque where they are equal.
    """

    forward: ArrayLike
    backward: ArrayLike
    smoothing: float = 0.01

    def __post_init__(self):
        for name in ("forward", "backward"):
            x = per_coordinate(name, getattr(self, name), "a friction torque >= 0", lambda x: x >= 0.0)
            object.__setattr__(self, name, x)
        smoothing = number("smoothing", self.smoothing, "a positive speed", lambda x: x > 0.0)
        object.__setattr__(self, "smoothing", smoothing)

    def torque(self, v, load=None, x=None):
        s = np.tanh(v / self.smoothing)
        return 0.5 * s * (np.asarray(self.forward) * (1.0 + s) + np.asarray(self.backward) * (1.0 - s))

    def columns(self, v, load=None):
        s = np.tanh(v / self.smoothing)
        return np.concatenate((diagonal(0.5 * (s + s * s)), diagonal(0.5 * (s - s * s))), axis=-1)

    def parameters(self, nv):
        self.check(nv)
        return np.concatenate((np.broadcast_to(self.forward, nv), np.broadcast_to(self.backward, nv)))
