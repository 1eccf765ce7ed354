"""Composite adaptation: Slotine and Li's law that also learns from the prediction error of filtered torques."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from geomctrl.arguments import number
from geomctrl.control.contracts import Lyapunov, Reference
from geomctrl.controllers._filtered_regression import FilteredAdaptation
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class Composite(FilteredAdaptation):
    """Adaptive tracking with composite adaptation: p' = -Gamma (Y^T s + r W^T K^-1 (W p - y)).

    Parameters
    ----------
    weight : float
        Weight of the prediction error.
    bandwidth : float
        Bandwidth of the filters [1/s].
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
    (Slotine and Li 1989, "Composite adaptive control of robot manipulators", with a constant gain.) W p_true = y is the
    filtered regression of the torque, which uses momenta instead of accelerations. It is exact if the robot starts on
    the reference; otherwise W p_true - y = delta with delta' = -bandwidth delta. The normalisation
    r = weight / (1 + tr(K^-1 W Gamma W^T) / bandwidth) keeps estimates slower than the filters. With
    x = W (p - p_true) and |p|^2 = p . Gamma^-1 p

    V = 1/2 s . M s + 1/2 |p - p_true|^2 + weight / (2 bandwidth) delta . K^-1 delta,
    V' = - s . K s - r x . K^-1 (x + delta) - weight delta . K^-1 delta.

    With persistent excitation the estimates converge even if s is zero. The torque is that of `SlotineLi`. The state z
    consists of the estimate and the filters.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.Composite(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {**FilteredAdaptation.GAINS, "weight": "weight of the prediction error"}

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
