"""Slotine and Li's law with sigma-modification: estimates leak towards the nominal ones, disturbances can not drive
them away."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from geomctrl.arguments import number
from geomctrl.control.contracts import Lyapunov, Reference
from geomctrl.control.plant import Plant
from geomctrl.controllers._adaptive import AdaptiveSliding
from geomctrl.robot import Robot


class SigmaModification(AdaptiveSliding):
    """p' = -Gamma Y^T s - sigma (p - p_0), p_0 the nominal parameters      (Ioannou and Kokotovic 1984)

    The torque, V and the `options` are those of `SlotineLi`. In the norm |x|^2 = x . Gamma^-1 x

    V' = - s . K s - sigma (p - p_true) . Gamma^-1 (p - p_0)
       <= - s . K s - sigma/2 |p - p_true|^2 + c,            c = sigma/2 |p_true - p_0|^2,

    so V ends below c / min(sigma, 2 lambda), lambda the least eigenvalue of M^-1 K, and with a bounded torque d that
    nobody models below (c + d . K^-1 d / 2) / min(sigma, lambda). `lyapunov` has the rate without c, `allowance` c.
    Where the model is right c is zero. sigma [1/s].
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
        """c [W]: by how much V' may exceed the rate of `lyapunov`."""
        return 0.5 * self.sigma * self._squared(self.p0, plant)
