"""`Saturation` and `TorqueSpeedLimits`: torque limits of a drive, constant or dependent on speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, frozen, per_coordinate, shown
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments

from .actuator import Actuator, require_sizes


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Saturation(Actuator):
    """Torque limits: tau = u, clipped to the range from `lower` to `upper`.

    Parameters
    ----------
    upper : float or (nv,)
        Upper limit [N m, N]; infinity for none. Those of a model file are `robot.limits.effort`.
    lower : float or (nv,), optional
        Lower limit; default -upper.

    Raises
    ------
    ArgumentError
        If a lower limit exceeds its upper limit.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import actuators
    >>> actuators.Saturation(10.0).torque(0.0, np.array([12.0, -20.0, 3.0]), np.zeros(3), None)
    array([ 10., -10.,   3.])
    """

    upper: ArrayLike
    lower: ArrayLike | None = None

    def __post_init__(self):
        upper = _limits("upper", self.upper)
        lower = _limits("lower", -upper if self.lower is None else self.lower)
        if upper.ndim and lower.ndim and upper.shape != lower.shape:
            raise ArgumentError(f"lower: expected as many as upper, {upper.shape}, got shape {lower.shape}")
        if (lower > upper).any():
            raise ArgumentError(f"lower: expected limits below upper, {upper}, got {lower}: they are reversed")
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "lower", lower)

    def inputs(self, outputs: int) -> int:
        return require_sizes(outputs, upper=np.asarray(self.upper), lower=np.asarray(self.lower))

    def torque(self, t, u, w, x):
        return np.clip(u, self.lower, self.upper)  # pyright: ignore[reportArgumentType, reportCallIssue]


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class TorqueSpeedLimits(Actuator):
    """Torque limits of a DC motor or servo drive with limited voltage and current at speed w: tau = u within

        |tau| <= peak,    -stall (1 + w / no_load) <= tau <= stall (1 - w / no_load).

    Parameters
    ----------
    stall : float or (nv,)
        Torque at rest that the voltage allows > 0 [N m, N].
    no_load : float or (nv,)
        Speed > 0 at which no driving torque is left [rad/s, m/s]. At higher speeds the motor can only brake.
    peak : float or (nv,), optional
        Torque that the current allows > 0 [N m, N]; default `stall`.

    Raises
    ------
    ArgumentError
        If a limit is not positive.

    Examples
    --------
    >>> import geomctrl as gc
    >>> motor = gc.actuators.TorqueSpeedLimits(stall=10.0, no_load=20.0)
    >>> float(motor.torque(0.0, 10.0, 10.0, None))  # half the no-load speed leaves half the torque
    5.0
    """

    stall: ArrayLike
    no_load: ArrayLike
    peak: ArrayLike | None = None

    def __post_init__(self):
        peak = self.stall if self.peak is None else self.peak
        for name, x, expected in (
            ("stall", self.stall, "a positive torque"),
            ("no_load", self.no_load, "a positive speed"),
            ("peak", peak, "a positive torque"),
        ):
            object.__setattr__(self, name, per_coordinate(name, x, expected, lambda x: x > 0.0))

    def inputs(self, outputs: int) -> int:
        numbers = {name: np.asarray(getattr(self, name)) for name in ("stall", "no_load", "peak")}
        return require_sizes(outputs, **numbers)

    def torque(self, t, u, w, x):
        stall, peak = np.asarray(self.stall), np.asarray(self.peak)
        slowed = stall * (w / self.no_load)
        high, low = np.clip(stall - slowed, -peak, peak), np.clip(-stall - slowed, -peak, peak)
        return np.clip(u, low, high)


def _limits(name: str, x: ArrayLike) -> np.ndarray:
    a = checked(name, x, (), finite=False)
    if a.ndim > 1 or not a.size or np.isnan(a).any():
        raise ArgumentError(f"{name}: expected a number or (n,) numbers, got {shown(x)}")
    return frozen(a)
