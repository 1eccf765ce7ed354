"""Slotine and Li's law with a dead zone: estimates rest while the error is what disturbances explain."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number
from geomctrl.control.contracts import Reference
from geomctrl.controllers._adaptive import AdaptiveSliding
from geomctrl.robot import Robot


class DeadZone(AdaptiveSliding):
    """p' = -phi Gamma Y^T s, phi = 0 within the zone, s . K s <= r^2 / 4, and 1 from s . K s = r^2 on

    (Peterson and Narendra 1982; for robots Slotine and Coetsee 1986). r^2 = width^2 tr K, `width` [rad/s, m/s] the size
    of s in a typical joint; between the two phi rises smoothly. The torque and the `options` are those of `SlotineLi`.

    There is no V here that falls everywhere. Outside the zone that of `SlotineLi` does, V' = - s . K s + s . d, with
    any torque d that nobody models and d . K^-1 d < r^2; inside estimates rest, whatever d is. How often s leaves and
    enters is not bounded: with one joint it would be, as M is a number there and 1/2 M (|s| - r)^2 serves; with
    several the zone would have to be one of s . M s, and M is not known. So no `lyapunov` is offered.
    """

    GAINS: ClassVar = {**AdaptiveSliding.GAINS, "width": "rad/s, m/s, of s in a joint"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        width: float = 0.02,
        **options: Any,
    ):
        super().__init__(robot, reference, Lambda, K, Gamma, **options)
        self.width = number("width", width, "a positive speed", lambda x: x > 0.0)
        self.boundary = self.width**2 * float(np.trace(self.K))

    def _rate(self, g, s, z):
        x = np.clip((4.0 * s.dot(self.K).dot(s) / self.boundary - 1.0) / 3.0, 0.0, 1.0)
        return x * x * (3.0 - 2.0 * x) * self._gradient(g)
