"""Concurrent learning: Slotine and Li's law that learns from what it remembers while it learns from what it sees."""

from __future__ import annotations

from typing import ClassVar

from geomctrl.controllers._filtered_regression import FilteredAdaptation, RememberingAdaptation


class ConcurrentLearning(RememberingAdaptation):
    """p' = -Gamma (Y^T s + r (Phi p - eta)),   Phi and eta the filtered regression W p = y over the past

    (Chowdhary and Johnson 2010, who record chosen instants; here the record is a continuous one, an information matrix
    that forgets: Phi = int e^{-forgetting (t - x)} W^T K^-1 W dx and eta likewise, as in Cho, Shin, Kim and Tsao 2018
    and the composite learning of Pan and Yu 2016). Estimates converge once Phi has become definite, also where the
    motion excites one parameter after the other. W, y and delta are those of `Composite`, and

    r = weight / (1 + weight tr(Gamma Phi) / bandwidth), so that no estimate moves faster than the filters. With D as
    far as the record is off, x = p - p_true and `SlotineLi`'s norm |x|^2 = x . Gamma^-1 x

    V = 1/2 s . M s + 1/2 |x|^2 + weight / forgetting (D + delta . K^-1 delta / (2 bandwidth)),
    V' = - s . K s - r x . (Phi p - eta) - weight D  <=  - s . K s - r / 2 x . Phi x - weight / 2 D

    weight, forgetting and bandwidth [1/s]. The torque and the `options` are those of `SlotineLi`; z holds filters and
    record besides, (n + 1)^2 numbers for n parameters: adapt few bodies.
    """

    GAINS: ClassVar = {
        **FilteredAdaptation.GAINS,
        "weight": "1/s, of the record",
        "forgetting": "1/s, of the record",
    }

    def _pull(self, p, Phi, eta):
        r = self.weight / (1.0 + self.weight * (self.Gamma * Phi).sum() / self.bandwidth)
        return r * self.Gamma.dot(Phi.dot(p) - eta)

    def _bound(self) -> float:
        return self.weight
