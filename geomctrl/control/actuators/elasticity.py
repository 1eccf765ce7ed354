"""A spring between motor and joint, with or without play."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import per_coordinate
from geomctrl.tracing.numbers import scalar

from .actuator import Actuator, require_sizes


@dataclass(frozen=True, eq=False, repr=False)
class SeriesElasticity(Actuator):
    """tau = K s(d) + D d',  d' = w_m - w,  B w_m' = u - tau - b w_m: Spong's elastic joints, commanded u at the motor.

    d is the spring's deflection, the motor's coordinate (after the gears) less the joint's [rad, m], w_m the motor's
    speed. The state x is (d, w_m); at first the spring is at rest and the motor moves with the joint. stiffness K
    [N m/rad, N/m] and rotor B [kg m^2, kg]: positive numbers, or one each; damping D of the spring and friction b of
    the motor [N m s/rad, N s/m]: not negative. The rotor is none of the robot's: where its armature stands for rotors,
    the plant's robot is to be `robot.with_armature(0.0)`. Motors turn about axes fixed in the world (Spong 1987).
    Stored are s K s / 2 and w_m B w_m / 2. For a law that measures the motors there is `control.ElasticPlant`.

    backlash: the play of the gears [rad, m], all of it, not negative: s(d) = d - clip(d, -backlash / 2, backlash / 2),
    within the play tau is zero, and where the teeth touch they push and never pull (Nordin and Gutman 2002). The play
    begins in its middle; without one s(d) = d.
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
        """s(d), the spring's own deflection."""
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
