"""`Lag`: a drive with first-order lag and limited slew rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import per_coordinate
from geomctrl.other_names import named_arguments

from .actuator import Actuator, require_sizes


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Lag(Actuator):
    """First-order lag with limited slew rate: tau = x,  T x' = u - x,  |x'| <= rate.

    Parameters
    ----------
    time_constant : float or (nv,)
        T > 0 [s]; the bandwidth is 1 / T.
    rate : float, (nv,) or None
        Largest slope > 0 [N m/s, N/s]; None for no limit.
    initial : float or (nv,)
        Initial torque [N m, N]. Default 0.

    Raises
    ------
    ArgumentError
        If a number is not finite, or if `time_constant` or `rate` is not positive.

    Notes
    -----
    A slope limit without lag, x' = rate sign(u - x), has a discontinuous right-hand side; the lag removes it.

    Examples
    --------
    >>> import geomctrl as gc
    >>> plant = gc.Plant(gc.models.two_link(), actuators=gc.actuators.Lag(0.01))  # 10 ms
    >>> plant.has_state
    True
    """

    time_constant: ArrayLike
    rate: ArrayLike | None = None
    initial: ArrayLike = 0.0

    def __post_init__(self):
        good = {
            "time_constant": ("a positive time", lambda x: x > 0.0),
            "rate": ("a positive slope", lambda x: x > 0.0),
        }
        good["initial"] = ("a torque", lambda x: np.isfinite(x))
        for name, (expected, check) in good.items():
            x = getattr(self, name)
            if name != "rate" or x is not None:
                object.__setattr__(self, name, per_coordinate(name, x, expected, check))

    def inputs(self, outputs: int) -> int:
        numbers = {name: np.asarray(getattr(self, name)) for name in ("time_constant", "initial")}
        if self.rate is not None:
            numbers["rate"] = np.asarray(self.rate)
        return require_sizes(outputs, **numbers)

    def start(self, w):
        return np.broadcast_to(np.asarray(self.initial), np.shape(w)).copy()

    def torque(self, t, u, w, x):
        return x

    def state_rate(self, t, u, w, x):
        slope = (u - x) / self.time_constant
        return slope if self.rate is None else np.clip(slope, -np.asarray(self.rate), self.rate)
