"""What to do about the drift of constraints that the equations have differentiated."""

from __future__ import annotations

from dataclasses import dataclass

from geomctrl.arguments import number


@dataclass(frozen=True)
class Baumgarte:
    """gddot + 2 damping gdot + stiffness^2 g = 0 in place of gddot = 0; both [1/s], damping = stiffness is critical."""

    damping: float
    stiffness: float

    def __post_init__(self):
        _check_rates(self, "damping", "stiffness")


@dataclass(frozen=True)
class GGL:
    """Stabilisation in the manner of Gear, Gupta and Leimkuhler 1985: a second multiplier in the kinematic equation.

    q^-1 qdot = V - M^-1 J^T mu with J (q^-1 qdot) = -rate g, and J Vdot = -Jdot V - rate J V. With rate = 0 [1/s] the
    position constraint is the invariant of the ODE itself; with rate > 0 both levels are also attracted.
    """

    rate: float = 0.0

    def __post_init__(self):
        _check_rates(self, "rate")


def _check_rates(stabilisation, *keys):
    for key in keys:
        label = f"{type(stabilisation).__name__}: {key}"
        rate = number(label, getattr(stabilisation, key), "a number >= 0 [1/s]", lambda x: x >= 0.0)
        object.__setattr__(stabilisation, key, rate)
