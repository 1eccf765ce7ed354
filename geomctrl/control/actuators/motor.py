"""`CurrentDrive` and `DCMotor`: electric motors with a current or a voltage as input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import per_coordinate
from geomctrl.other_names import named_arguments
from geomctrl.tracing.numbers import scalar

from .actuator import Actuator, require_sizes

NOT_ZERO = "a number that is not zero"


def _is_not_zero(x: np.ndarray) -> np.ndarray:
    return x != 0.0


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class CurrentDrive(Actuator):
    """A current-controlled motor: tau = n k i, with the motor current i [A] as command.

    Parameters
    ----------
    torque_constant : float or (nv,)
        k [N m/A], not zero.
    gear_ratio : float or (nv,)
        n, motor speed over joint speed [rad/rad, rad/m]; negative if they turn in opposite directions, not zero.

    Raises
    ------
    ArgumentError
        If a number is zero or not finite.

    Notes
    -----
    The rotor inertia is the armature of the robot's joint.

    Examples
    --------
    >>> import geomctrl as gc
    >>> drive = gc.actuators.CurrentDrive(torque_constant=0.1, gear_ratio=50.0)
    >>> float(drive.torque(0.0, 2.0, 0.0, None))  # 2 A
    10.0
    """

    torque_constant: ArrayLike
    gear_ratio: ArrayLike = 1.0

    def __post_init__(self):
        for name in ("torque_constant", "gear_ratio"):
            object.__setattr__(self, name, per_coordinate(name, getattr(self, name), NOT_ZERO, _is_not_zero))

    def inputs(self, outputs: int) -> int:
        numbers = {name: np.asarray(getattr(self, name)) for name in ("torque_constant", "gear_ratio")}
        return require_sizes(outputs, **numbers)

    def torque(self, t, u, w, x):
        return np.asarray(self.torque_constant) * self.gear_ratio * u

    def speed(self, w, x):
        return np.asarray(self.torque_constant) * self.gear_ratio * w  # back-EMF, conjugate to the current


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class DCMotor(Actuator):
    """A voltage-controlled DC motor: tau = n k i,  L i' = U - R i - n k w, with command U [V] and state i [A].

    Parameters
    ----------
    torque_constant : float or (nv,)
        k [N m/A], equal to the back-EMF constant [V s/rad].
    resistance : float or (nv,)
        R > 0 [Ohm].
    inductance : float or (nv,)
        L [H]; 0 for no state, i = (U - n k w) / R, which is accurate if L / R is much shorter than a step.
    gear_ratio : float or (nv,)
        n, motor speed over joint speed [rad/rad, rad/m].

    Raises
    ------
    ArgumentError
        If a constant is zero or not finite, if `resistance` is not positive, or if `inductance` is negative.

    Notes
    -----
    The stored energy is L i^2 / 2. The rotor inertia is the armature of the robot's joint.

    Examples
    --------
    >>> import geomctrl as gc
    >>> motor = gc.actuators.DCMotor(torque_constant=0.1, resistance=2.0, gear_ratio=50.0)
    >>> float(motor.torque(0.0, 24.0, 0.0, None))  # 24 V at standstill: 12 A
    60.0
    """

    torque_constant: ArrayLike
    resistance: ArrayLike
    inductance: ArrayLike = 0.0
    gear_ratio: ArrayLike = 1.0

    def __post_init__(self):
        for name, expected, good in (
            ("torque_constant", NOT_ZERO, _is_not_zero),
            ("resistance", "a positive resistance", lambda x: x > 0.0),
            ("inductance", "positive inductances, or 0 for none", lambda x: (x > 0.0).all() | (x == 0.0).all()),
            ("gear_ratio", NOT_ZERO, _is_not_zero),
        ):
            object.__setattr__(self, name, per_coordinate(name, getattr(self, name), expected, good))

    def inputs(self, outputs: int) -> int:
        names = ("torque_constant", "resistance", "inductance", "gear_ratio")
        return require_sizes(outputs, **{name: np.asarray(getattr(self, name)) for name in names})

    def start(self, w):
        return np.zeros(np.shape(w)) if np.any(self.inductance) else None

    def torque(self, t, u, w, x):
        k = self._constant
        return k * (x if x is not None else (u - k * w) / self.resistance)

    def state_rate(self, t, u, w, x):
        return (u - np.asarray(self.resistance) * x - self._constant * w) / self.inductance

    def speed(self, w, x):
        """The current, which is conjugate to the voltage; zeros if it is not a state."""
        return np.zeros(np.shape(w)) if x is None else x

    def stored_energy(self, x):
        return 0.0 if x is None else scalar(0.5 * (np.asarray(self.inductance) * x * x).sum())

    def storage_power(self, t, u, w, x):
        if x is None:
            return 0.0
        return scalar((x * (u - np.asarray(self.resistance) * x - self._constant * w)).sum())

    @property
    def _constant(self) -> np.ndarray:
        return np.asarray(self.torque_constant) * self.gear_ratio
