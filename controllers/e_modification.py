"""Slotine and Li's law with e-modification: a leakage proportional to the error."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number
from geomctrl.control.contracts import Lyapunov, Reference
from geomctrl.control.plant import Plant
from geomctrl.controllers._adaptive import AdaptiveSliding
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class EModification(AdaptiveSliding):
    """Adaptive tracking with error-dependent leakage: p' = -Gamma Y^T s - nu r (p - p_0),  r^2 = s . K s.

    Parameters
    ----------
    nu : float
        Leakage [W^-1/2 / s]; r is the square root of the power that K dissipates.
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
    (Narendra and Annaswamy 1987.) p_0 are the nominal parameters. Torque and V are those of `SlotineLi`. In the norm
    |x|^2 = x . Gamma^-1 x

    V' = - r^2 - nu r (p - p_true) . Gamma^-1 (p - p_0)
       <= - r^2 / 2 - nu r / 2 |p - p_true|^2 + c,            c = nu^2 / 8 |p_true - p_0|^4.

    V decreases wherever r^2 / 2 + nu r / 2 |p - p_true|^2 > c. `lyapunov` returns the rate without c, and `allowance`
    returns c. If the model is exact, c is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.EModification(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {**AdaptiveSliding.GAINS, "nu": "W^-1/2 / s, leakage"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        nu: float = 0.1,
        **options: Any,
    ):
        super().__init__(robot, reference, Lambda, K, Gamma, **options)
        self.nu = number("nu", nu, "a positive number [W^-1/2 / s]", lambda x: x > 0.0)

    def _rate(self, g, s, z):
        leakage = self.nu * np.sqrt(s.dot(self.K).dot(s))
        return self._gradient(g) - leakage * (self._state(z) - self.p0)

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        value, loss = self._sliding_energy(t, q, v, z, plant)
        return Lyapunov(value, -0.5 * (loss + self.nu * scalar(np.sqrt(loss)) * self._squared(z, plant)))

    def allowance(self, plant: Plant) -> float:
        """Return c of the bound V' <= rate + c.

        Parameters
        ----------
        plant : Plant
            The true plant.

        Returns
        -------
        float
            [W].

        Examples
        --------
        >>> import geomctrl as gc
        >>> robot = gc.models.two_link()
        >>> law = gc.controllers.EModification(robot, gc.references.hold(robot, [0.0, 0.0]))
        >>> law.allowance(gc.Plant(robot)) >= 0.0
        True
        """
        return 0.125 * (self.nu * self._squared(self.p0, plant)) ** 2
