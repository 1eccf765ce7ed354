"""`LuGre` and `Dahl`: dynamic friction models with the deflection of bristles as state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import per_coordinate
from geomctrl.other_names import named_arguments
from geomctrl.tracing.numbers import scalar

from .model import FrictionModel
from .stribeck import stribeck_arguments, stribeck_curve


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class LuGre(FrictionModel):
    """Joint friction stiffness z + damping z' + viscous v with the mean deflection z of bristles as its state:

        z' = v - stiffness |v| z / g(v),    g(v) = coulomb + (static - coulomb) exp(-(v / speed)^2).

    Parameters
    ----------
    stiffness : float or (nv,)
        Of the bristles, > 0 [N m/rad, N/m].
    coulomb, static, speed : float or (nv,)
        As for `Stribeck`, whose curve friction follows at constant speed.
    damping : float or (nv,)
        Of the bristles, >= 0 [N m s/rad, N s/m].
    viscous : float or (nv,)
        Viscous coefficient [N m s/rad, N s/m].

    Raises
    ------
    ArgumentError
        If a coefficient has the wrong sign or is not finite, or if `static` is less than `coulomb`.

    Notes
    -----
    Canudas de Wit, Olsson, Astrom and Lischinsky 1995. |stiffness z| stays below `static`. With the energy
    stiffness z^2 / 2 the model is passive where viscous >= damping (static / coulomb - 1) (Barahanov and Ortega 2000);
    its dissipation can be negative for a moment otherwise. A step should be short against sqrt(inertia / stiffness)
    and against coulomb / (stiffness |v|).

    Examples
    --------
    >>> import geomctrl as gc
    >>> model = gc.friction.LuGre(stiffness=1e4, coulomb=1.0, static=1.5, speed=0.1, damping=10.0, viscous=5.0)
    >>> gc.Plant(gc.models.two_link(), friction=model).has_state
    True
    """

    stiffness: ArrayLike
    coulomb: ArrayLike
    static: ArrayLike
    speed: ArrayLike
    damping: ArrayLike = 0.0
    viscous: ArrayLike = 0.0

    def __post_init__(self):
        arguments = stribeck_arguments(self.coulomb, self.static, self.speed, self.viscous)
        positive = per_coordinate("stiffness", self.stiffness, "a positive stiffness", lambda x: x > 0.0)
        damping = per_coordinate("damping", self.damping, "a damping >= 0", lambda x: x >= 0.0)
        for name, x in (arguments | {"stiffness": positive, "damping": damping}).items():
            object.__setattr__(self, name, x)

    def start(self, v):
        return np.zeros(np.shape(v))

    def torque(self, v, load=None, x=None):
        elastic = np.asarray(self.stiffness) * x
        return elastic + np.asarray(self.damping) * self.state_rate(v, load, x) + np.asarray(self.viscous) * v

    def state_rate(self, v, load, x):
        return v - np.asarray(self.stiffness) * np.abs(v) * x / stribeck_curve(self, v)

    def stored_energy(self, x):
        return scalar(0.5 * (np.asarray(self.stiffness) * x * x).sum())

    def dissipation(self, v, load=None, x=None):
        rate, slip = self.state_rate(v, load, x), np.asarray(self.stiffness) * x * x * np.abs(v)
        lost = np.asarray(self.stiffness) * slip / stribeck_curve(self, v)
        lost = lost + np.asarray(self.damping) * rate * v + np.asarray(self.viscous) * v * v
        return scalar(lost.sum())


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Dahl(FrictionModel):
    """Joint friction stiffness z with the state z' = v - stiffness |v| z / coulomb.

    Parameters
    ----------
    stiffness : float or (nv,)
        Of the contact before it slips, > 0 [N m/rad, N/m].
    coulomb : float or (nv,)
        Friction of continued motion in one direction, > 0 [N m, N].

    Raises
    ------
    ArgumentError
        If a coefficient is not positive.

    Notes
    -----
    Dahl 1968, with exponent one. The torque depends on the path alone: along motion in one direction it tends to
    `coulomb` as exp(-stiffness |displacement| / coulomb). The energy stiffness z^2 / 2 is stored, the model is passive.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> bristles = gc.friction.Dahl(stiffness=100.0, coulomb=2.0)
    >>> bristles.torque(np.zeros(1), None, np.array([0.01]))
    array([1.])
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
