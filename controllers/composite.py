"""Composite adaptation: Slotine and Li's law that learns from the prediction error of filtered torques too."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from geomctrl.arguments import number
from geomctrl.control.contracts import Lyapunov, Reference
from geomctrl.controllers._filtered_regression import FilteredAdaptation
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class Composite(FilteredAdaptation):
    """p' = -Gamma (Y^T s + r W^T K^-1 (W p - y))      (Slotine and Li 1989, "Composite adaptive control of robot
    manipulators", with a constant gain)

    W p_true = y is the torque's filtered regression, of momenta instead of accelerations; W and y are low-pass filtered
    with `bandwidth` [1/s]; from a start on the reference exactly, else W p_true - y = delta, delta' = -bandwidth delta.
    r = weight / (1 + tr(K^-1 W Gamma W^T) / bandwidth), so that no estimate moves faster than the filters. With
    x = W (p - p_true)

    V = 1/2 s . M s + 1/2 |p - p_true|^2 + weight / (2 bandwidth) delta . K^-1 delta,
    V' = - s . K s - r x . K^-1 (x + delta) - weight delta . K^-1 delta:

    with a rich motion estimates converge whether s is zero or not. The torque and the `options` are those of
    `SlotineLi`, its norm |x|^2 = x . Gamma^-1 x; z holds the filters besides.
    """

    GAINS: ClassVar = {**FilteredAdaptation.GAINS, "weight": "of the prediction error"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        weight: float = 1.0,
        **options: Any,
    ):
        super().__init__(robot, reference, Lambda, K, Gamma, **options)
        self.weight = number("weight", weight, "a positive number", lambda x: x > 0.0)

    def _normalised(self, W):
        size = (self.K_inverse * W.dot(self.Gamma).dot(W.T)).sum()
        return self.weight / (1.0 + size / self.bandwidth)

    def _learning(self, g, p, of, more):
        error = of.W.T.dot(self.K_inverse.dot(of.W.dot(p) - of.y))
        return self._gradient(g + self._normalised(of.W) * error), more

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        value, loss = self._sliding_energy(t, q, v, z, plant)
        W, delta = self._unknown(q, v, z, plant)
        r, x = self._normalised(W), W.dot(self._state(z) - self._true(plant))
        wrong = self.weight * scalar(delta.dot(self.K_inverse).dot(delta))
        learnt = scalar(r * x.dot(self.K_inverse).dot(x + delta))
        return Lyapunov(value + 0.5 * wrong / self.bandwidth, -loss - learnt - wrong)
