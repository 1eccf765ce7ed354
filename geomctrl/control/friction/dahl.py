"""Dahl's model: a friction torque that builds up with displacement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import per_coordinate
from geomctrl.tracing.arrays import scalar

from .model import FrictionModel


@dataclass(frozen=True, eq=False, repr=False)
class Dahl(FrictionModel):
    """Joint friction stiffness z with the state z' = v - stiffness |v| z / coulomb.

    Parameters
    ----------
    stiffness : float or (nv,)
        Of the contact before it slips, > 0 [N m/rad, N/m].
    coulomb : float or (nv,)
        Friction of continued motion in one direction, > 0 [N m, N].

    Notes
    -----
    Dahl 1968, with exponent one. The torque depends on the path alone: along motion in one direction it tends to
    `coulomb` as exp(-stiffness |displacement| / coulomb). The energy stiffness z^2 / 2 is stored, the model is passive.
    """

    stiffness: ArrayLike
    coulomb: ArrayLike

    def __post_init__(self):
        for name, expected in (("stiffness", "a positive stiffness"), ("coulomb", "a friction torque > 0")):
            x = per_coordinate(name, getattr(self, name), expected, lambda x: x > 0.0)
            object.__setattr__(self, name, x)

    def start(self, v):
        return np.zeros(np.shape(v))

    def torque(self, v, load=None, x=None):
        return np.asarray(self.stiffness) * x

    def state_rate(self, v, load, x):
        return v - np.asarray(self.stiffness) * np.abs(v) * x / np.asarray(self.coulomb)

    def stored_energy(self, x):
        return scalar(0.5 * (np.asarray(self.stiffness) * x * x).sum())

    def dissipation(self, v, load=None, x=None):
        elastic = np.asarray(self.stiffness) * x
        return scalar((elastic * elastic * np.abs(v) / np.asarray(self.coulomb)).sum())
