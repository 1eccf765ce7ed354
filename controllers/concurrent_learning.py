"""Concurrent learning: Slotine and Li's law that also learns from recorded data."""

from __future__ import annotations

from typing import ClassVar

from geomctrl.controllers._filtered_regression import FilteredAdaptation, RememberingAdaptation


class ConcurrentLearning(RememberingAdaptation):
    """Adaptive tracking with concurrent learning: p' = -Gamma (Y^T s + r (Phi p - eta)).

    Parameters
    ----------
    weight : float
        Weight of the recorded data [1/s].
    forgetting : float
        Rate at which old data are forgotten [1/s].
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
    Chowdhary and Johnson 2010 record selected instants. Here the record is a continuous information matrix with
    forgetting, as in Cho, Shin, Kim and Tsao 2018 and the composite learning of Pan and Yu 2016:
    Phi = int e^{-forgetting (t - x)} W^T K^-1 W dx, and eta likewise, for the filtered regression W p = y of
    `Composite`. Estimates converge once Phi is positive definite, even if the motion excites one parameter after the
    other.

    The normalisation r = weight / (1 + weight tr(Gamma Phi) / bandwidth) keeps estimates slower than the filters. D
    bounds the error of the record. With x = p - p_true, |x|^2 = x . Gamma^-1 x, and delta as in `Composite`,

    V = 1/2 s . M s + 1/2 |x|^2 + weight / forgetting (D + delta . K^-1 delta / (2 bandwidth)),
    V' = - s . K s - r x . (Phi p - eta) - weight D  <=  - s . K s - r / 2 x . Phi x - weight / 2 D.

    The torque is that of `SlotineLi`. The state z also contains filters and record, (n + 1)^2 numbers for n parameters:
    adapt few bodies.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.ConcurrentLearning(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {
        **FilteredAdaptation.GAINS,
        "weight": "1/s, weight of the record",
        "forgetting": "1/s, rate of the record",
    }

    def _pull(self, p, Phi, eta):
        r = self.weight / (1.0 + self.weight * (self.Gamma * Phi).sum() / self.bandwidth)
        return r * self.Gamma.dot(Phi.dot(p) - eta)

    def _bound(self) -> float:
        return self.weight
