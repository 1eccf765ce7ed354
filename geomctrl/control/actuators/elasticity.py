"""`SeriesElasticity`: a spring between motor and joint, with optional backlash."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import per_coordinate
from geomctrl.other_names import named_arguments
from geomctrl.tracing.numbers import scalar

from .actuator import Actuator, require_sizes


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class SeriesElasticity(Actuator):
    """Elastic joint: tau = K s(d) + D d',  d' = w_m - w,  B w_m' = u - tau - b w_m, with the motor torque u as command.

    Parameters
    ----------
    stiffness : float or (nv,)
        K > 0 [N m/rad, N/m].
    rotor : float or (nv,)
        Rotor inertia B > 0 after the gears [kg m^2, kg].
    damping : float or (nv,)
        Damping D >= 0 of the spring [N m s/rad, N s/m]. Default 0.
    friction : float or (nv,)
        Viscous friction b >= 0 of the motor [N m s/rad, N s/m]. Default 0.
    backlash : float or (nv,)
        Total play of the gears >= 0 [rad, m]. Default 0.

    Raises
    ------
    ArgumentError
        If a number has the wrong sign or is not finite.

    Notes
    -----
    The state is (d, w_m): the deflection d, motor coordinate after the gears minus joint coordinate, and the motor
    speed w_m. Initially the spring is relaxed and the motor moves with the joint. The stored energy is
    s K s / 2 + w_m B w_m / 2. As in Spong 1987, rotors spin about axes fixed in the world.

    The rotor is not part of the robot. If the robot's armature already represents it, use `robot.with_armature(0.0)`.
    For a controller that measures the motor coordinates use `control.ElasticPlant`.

    With backlash s(d) = d - clip(d, -backlash / 2, backlash / 2), otherwise s(d) = d. Inside the play tau is zero;
    teeth in contact push and never pull (Nordin and Gutman 2002). Initially the gear is in the middle of its play.

    Examples
    --------
    >>> import geomctrl as gc
    >>> plant = gc.Plant(gc.models.two_link(), actuators=gc.actuators.SeriesElasticity(1e4, rotor=0.1))
    >>> plant.stores_energy
    True
    """

    stiffness: ArrayLike
    rotor: ArrayLike
    damping: ArrayLike = 0.0
    friction: ArrayLike = 0.0
    backlash: ArrayLike = 0.0
    _plays: bool = field(init=False, repr=False)

    def __post_init__(self):
        for name in ("stiffness", "rotor"):
            x = per_coordinate(name, getattr(self, name), "a positive number", lambda x: x > 0.0)
            object.__setattr__(self, name, x)
        for name in ("damping", "friction", "backlash"):
            x = per_coordinate(name, getattr(self, name), "a number, not negative", lambda x: x >= 0.0)
            object.__setattr__(self, name, x)
        object.__setattr__(self, "_plays", bool(np.any(self.backlash)))

    def inputs(self, outputs: int) -> int:
        names = ("stiffness", "rotor", "damping", "friction", "backlash")
        return require_sizes(outputs, **{name: np.asarray(getattr(self, name)) for name in names})

    def start(self, w):
        return np.concatenate((np.zeros(len(w)), w))

    def torque(self, t, u, w, x):
        d, motor = _halves(x)
        s = self._stretch(d)
        tau = np.asarray(self.stiffness) * s + np.asarray(self.damping) * (motor - w)
        if not self._plays:
            return tau
        return np.where(s > 0.0, np.maximum(tau, 0.0), np.where(s < 0.0, np.minimum(tau, 0.0), 0.0))

    def _stretch(self, d):
        """s(d), the deflection of the spring itself."""
        half = 0.5 * np.asarray(self.backlash)
        return d - np.clip(d, -half, half) if self._plays else d

    def state_rate(self, t, u, w, x):
        _, motor = _halves(x)
        net = u - self.torque(t, u, w, x) - np.asarray(self.friction) * motor
        return np.concatenate((motor - w, net / self.rotor))

    def speed(self, w, x):
        return _halves(x)[1]

    def stored_energy(self, x):
        d, motor = _halves(x)
        s = self._stretch(d)
        return scalar(0.5 * (np.asarray(self.stiffness) * s * s + np.asarray(self.rotor) * motor * motor).sum())

    def storage_power(self, t, u, w, x):
        d, motor = _halves(x)
        tau = self.torque(t, u, w, x)
        damped = (tau - np.asarray(self.stiffness) * self._stretch(d)) * (motor - w)
        return scalar((u * motor - tau * w - damped - np.asarray(self.friction) * motor * motor).sum())


def _halves(x):
    n = len(x) // 2
    return x[:n], x[n:]
