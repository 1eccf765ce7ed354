"""Viscous and Coulomb friction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number, per_coordinate

from .model import FrictionModel, diagonal


@dataclass(frozen=True, eq=False, repr=False)
class Friction(FrictionModel):
    """Joint friction: viscous v + coulomb tanh(v / smoothing), (nv,) each or a number [N m s/rad, N m, rad/s].

    The smooth Coulomb law keeps the closed loop an ordinary differential equation; `smoothing` is the speed at which
    76 % of the Coulomb torque acts.
    """

    viscous: ArrayLike = 0.0
    coulomb: ArrayLike = 0.0
    smoothing: float = 0.01

    def __post_init__(self):
        for name in ("viscous", "coulomb"):
            x = per_coordinate(name, getattr(self, name), "a friction coefficient >= 0", lambda x: x >= 0.0)
            object.__setattr__(self, name, x)
        smoothing = number("smoothing", self.smoothing, "a positive speed", lambda x: x > 0.0)
        object.__setattr__(self, "smoothing", smoothing)

    def torque(self, v, load=None, x=None):
        return np.asarray(self.viscous) * v + np.asarray(self.coulomb) * np.tanh(v / self.smoothing)

    def columns(self, v, load=None):
        return np.concatenate((diagonal(v), diagonal(np.tanh(v / self.smoothing))), axis=-1)

    def parameters(self, nv):
        self.check(nv)
        return np.concatenate((np.broadcast_to(self.viscous, nv), np.broadcast_to(self.coulomb, nv)))


def kernel_coefficients(friction: FrictionModel | None, nv: int) -> np.ndarray | None:
    """(viscous, coulomb, smoothing) (3, nv) for `kernels.plant`, zero friction for None; None for other models."""
    plain = Friction() if friction is None else friction
    if type(plain) is not Friction:
        return None
    return np.append(plain.parameters(nv), np.full(nv, float(plain.smoothing))).reshape(3, nv)
