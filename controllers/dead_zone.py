"""Slotine and Li's law with a dead zone: estimates are constant while disturbances can explain the error."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number
from geomctrl.control.contracts import Reference
from geomctrl.controllers._adaptive import AdaptiveSliding
from geomctrl.robot import Robot


class DeadZone(AdaptiveSliding):
    """Adaptive tracking with a dead zone: p' = -phi Gamma Y^T s.

    phi is 0 in the dead zone, s . K s <= r^2 / 4, and 1 for s . K s >= r^2, with a smooth transition.

    Parameters
    ----------
    width : float
        Size of s in a typical joint [rad/s, m/s]; r^2 = width^2 tr K.
    robot, reference, Lambda, K, Gamma, **options
        As for `SlotineLi`.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.
    NameNotFoundError
        If the robot has no body of a given name.

    Notes
    -----
    (Peterson and Narendra 1982; for robots Slotine and Coetsee 1986.) The torque is that of `SlotineLi`. This law has
    no Lyapunov function that decreases everywhere, and therefore no method `lyapunov`. Outside the dead zone that of
    `SlotineLi` decreases, V' = - s . K s + s . d, for any unmodelled torque d with d . K^-1 d < r^2. Inside, estimates
    are constant for any d. The number of times that s crosses the boundary is not bounded. With one joint it would be,
    because M is a number and 1/2 M (|s| - r)^2 is a Lyapunov function. With several joints the dead zone would have to
    be defined by s . M s, but M is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.DeadZone(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {**AdaptiveSliding.GAINS, "width": "rad/s, m/s, size of s in a joint"}

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
