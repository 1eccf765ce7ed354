"""Friction that grows with the torque that a gear transmits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .model import FrictionModel, check_coefficients, diagonal, stacked


@dataclass(frozen=True, eq=False, repr=False)
class LoadDependent(FrictionModel):
    """Joint friction coefficient |load| tanh(v / smoothing), load being the torque that the actuators transmit.

    Parameters
    ----------
    coefficient : float or (nv,)
        Friction torque per transmitted torque, >= 0 [1].
    smoothing : float
        Speed over which friction changes its sign [rad/s, m/s].

    Notes
    -----
    Gears lose a share of what they transmit (Hamon, Gautier, Garrec and Janot 2010). Friction that does not depend on
    the load adds to it: `Plant(robot, friction=[Friction(...), LoadDependent(...)])`.
    """

    coefficient: ArrayLike
    smoothing: float = 0.01

    def __post_init__(self):
        check_coefficients(self, "coefficient")

    def torque(self, v, load: Any = None, x=None):
        return np.asarray(self.coefficient) * np.abs(load) * np.tanh(v / self.smoothing)

    def columns(self, v, load: Any = None):
        return diagonal(np.abs(load) * np.tanh(v / self.smoothing))

    def parameters(self, nv):
        return stacked(self, nv, "coefficient")
