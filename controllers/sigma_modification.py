"""Slotine and Li's law with sigma-modification: a leakage keeps estimates bounded under disturbances."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from geomctrl.arguments import number
from geomctrl.control.contracts import Lyapunov, Reference
from geomctrl.control.plant import Plant
from geomctrl.controllers._adaptive import AdaptiveSliding
from geomctrl.robot import Robot


class SigmaModification(AdaptiveSliding):
    """Adaptive tracking with leakage: p' = -Gamma Y^T s - sigma (p - p_0), with the nominal parameters p_0.

    Parameters
    ----------
    sigma : float
        Leakage [1/s].
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
    (Ioannou and Kokotovic 1984.) Torque and V are those of `SlotineLi`. In the norm |x|^2 = x . Gamma^-1 x

    V' = - s . K s - sigma (p - p_true) . Gamma^-1 (p - p_0)
       <= - s . K s - sigma/2 |p - p_true|^2 + c,            c = sigma/2 |p_true - p_0|^2.

    Hence V decreases below c / min(sigma, 2 lambda), where lambda is the smallest eigenvalue of M^-1 K, and with a
    bounded unmodelled torque d below (c + d . K^-1 d / 2) / min(sigma, lambda). `lyapunov` returns the rate without c,
    and `allowance` returns c. If the model is exact, c is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.SigmaModification(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {**AdaptiveSliding.GAINS, "sigma": "1/s, leakage"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        sigma: float = 0.1,
        **options: Any,
    ):
        super().__init__(robot, reference, Lambda, K, Gamma, **options)
        self.sigma = number("sigma", sigma, "a positive number [1/s]", lambda x: x > 0.0)

    def _rate(self, g, s, z):
        return self._gradient(g) - self.sigma * (self._state(z) - self.p0)

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        value, loss = self._sliding_energy(t, q, v, z, plant)
        return Lyapunov(value, -loss - 0.5 * self.sigma * self._squared(z, plant))

    def allowance(self, plant: Plant) -> float:
        """c [W], the bound on V' minus the rate of `lyapunov`."""
        return 0.5 * self.sigma * self._squared(self.p0, plant)
