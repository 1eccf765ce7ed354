"""`Stribeck` and `LoadDependent`: friction that decreases with speed, and friction proportional to the load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import per_coordinate
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments

from .model import FrictionModel, check_coefficients, diagonal, stacked


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Stribeck(FrictionModel):
    """Joint friction g(v) tanh(v / smoothing) + viscous v with g(v) = coulomb + (static - coulomb) exp(-(v / speed)^2).

    Parameters
    ----------
    coulomb, static : float or (nv,)
        Friction at high speeds and at standstill [N m, N], static >= coulomb >= 0.
    speed : float or (nv,)
        Stribeck's speed, at which 37 % of the excess static friction is left [rad/s, m/s].
    viscous : float or (nv,)
        Viscous coefficient [N m s/rad, N s/m].
    smoothing : float
        Speed over which friction changes its sign [rad/s, m/s].

    Raises
    ------
    ArgumentError
        If a coefficient has the wrong sign or is not finite, or if `static` is less than `coulomb`.

    Notes
    -----
    It is linear in (viscous, coulomb, static - coulomb) for given `speed` and `smoothing` (Armstrong-Helouvry, Dupont
    and Canudas de Wit 1994).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> model = gc.friction.Stribeck(coulomb=1.0, static=1.5, speed=0.1, viscous=0.2)
    >>> np.round(model.torque(np.array([0.05, 10.0])), 3)  # 1 + 0.5 exp(-1/4) + 0.01, and 1 + 2
    array([1.399, 3.   ])
    """

    coulomb: ArrayLike
    static: ArrayLike
    speed: ArrayLike
    viscous: ArrayLike = 0.0
    smoothing: float = 0.01

    def __post_init__(self):
        for name, x in stribeck_arguments(self.coulomb, self.static, self.speed, self.viscous).items():
            object.__setattr__(self, name, x)
        check_coefficients(self)

    def torque(self, v, load=None, x=None):
        return stribeck_curve(self, v) * np.tanh(v / self.smoothing) + np.asarray(self.viscous) * v

    def columns(self, v, load=None):
        sign = np.tanh(v / self.smoothing)
        bell = np.exp(-((v / np.asarray(self.speed)) ** 2))
        return np.concatenate((diagonal(v), diagonal(sign), diagonal(sign * bell)), axis=-1)

    def parameters(self, nv):
        self.check(nv)
        excess = np.asarray(self.static) - np.asarray(self.coulomb)
        return np.concatenate([np.broadcast_to(x, nv) for x in (self.viscous, self.coulomb, excess)])


def stribeck_curve(model: Any, v: Any) -> Any:
    """g(v) of a model with attributes `coulomb`, `static` and `speed`."""
    coulomb, static = np.asarray(model.coulomb), np.asarray(model.static)
    return coulomb + (static - coulomb) * np.exp(-((v / np.asarray(model.speed)) ** 2))


def stribeck_arguments(coulomb: Any, static: Any, speed: Any, viscous: Any) -> dict[str, np.ndarray]:
    """The arguments as read-only arrays by name. Raises ArgumentError."""
    checked = {
        "coulomb": per_coordinate("coulomb", coulomb, "a friction torque > 0", lambda x: x > 0.0),
        "static": per_coordinate("static", static, "a friction torque > 0", lambda x: x > 0.0),
        "speed": per_coordinate("speed", speed, "a positive speed", lambda x: x > 0.0),
        "viscous": per_coordinate("viscous", viscous, "a friction coefficient >= 0", lambda x: x >= 0.0),
    }
    a, b = checked["static"], checked["coulomb"]
    if a.ndim and b.ndim and a.shape != b.shape:
        raise ArgumentError(f"static: expected as many as coulomb, {b.shape}, got shape {a.shape}")
    if (a < b).any():
        raise ArgumentError(f"static: expected static friction of at least coulomb, {b}, got {a}")
    return checked


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class LoadDependent(FrictionModel):
    """Joint friction coefficient |load| tanh(v / smoothing), load being the torque that the actuators transmit.

    Parameters
    ----------
    coefficient : float or (nv,)
        Friction torque per transmitted torque, >= 0 [1].
    smoothing : float
        Speed over which friction changes its sign [rad/s, m/s].

    Raises
    ------
    ArgumentError
        If a coefficient is negative or not finite.

    Notes
    -----
    Gears lose a share of what they transmit (Hamon, Gautier, Garrec and Janot 2010). Friction that does not depend on
    the load adds to it: `Plant(robot, friction=[Friction(...), LoadDependent(...)])`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> gc.friction.LoadDependent(0.1).torque(np.array([1.0, -1.0]), np.array([20.0, 5.0]))
    array([ 2. , -0.5])
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
