"""Slotine and Li's law with smooth projection: estimates stay in a ball, whatever disturbs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, generator, number, one_state
from geomctrl.control.contracts import Lyapunov, Reference
from geomctrl.control.plant import Plant
from geomctrl.controllers._adaptive import AdaptiveSliding
from geomctrl.controllers._model_based import true_robot
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar

EDGE = 0.1  # of the radius squared, over which the projection sets in


class SmoothProjection(AdaptiveSliding):
    """p' = x - Gamma h (h . x)+ taken / (h . Gamma h),   x = -Gamma Y^T s      (Pomet and Praly 1992)

    h = D^-1 (p - p_0), taken = 0 within the ball h . D h <= radius^2 and 1 where that is 1.1 radius^2, linear between,
    (h . x)+ = max(h . x, 0): an estimate never leaves the larger ball, which any torque that nobody models can not
    change. D are the squares of the parameters' natural units, (1, l, l^2) for mass, first and second moments, l
    the size of the robot's mean body, as in the default Gamma. The torque, V and the `options` are those of
    `SlotineLi`:

    V' <= - s . K s   as long as p_true is in the smaller ball, as then (p - p_true) . h >= 0 outside of it.

    radius [kg]: default twice the mean body's mass, times the square root of how many are adapted.
    """

    GAINS: ClassVar = {**AdaptiveSliding.GAINS, "radius": "kg, of the ball"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        radius: float | None = None,
        **options: Any,
    ):
        super().__init__(robot, reference, Lambda, K, Gamma, **options)
        if radius is None:
            radius = 2.0 * float(robot.parameters[:, 0].mean() * np.sqrt(len(self.columns) / 10.0))
        self.radius = number("radius", radius, "a positive number", lambda x: x > 0.0)
        self.D_inverse = 1.0 / self.units

    def _rate(self, g, s, z):
        x, off = self._gradient(g), self._state(z) - self.p0
        h = self.D_inverse * off
        taken = np.clip((h.dot(off) / self.radius**2 - 1.0) / EDGE, 0.0, 1.0)
        outward, Gh = np.maximum(h.dot(x), 0.0), self.Gamma.dot(h)
        return x - taken * outward / np.maximum(h.dot(Gh), 1e-300) * Gh

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        value, loss = self._sliding_energy(t, q, v, z, plant)
        return Lyapunov(value, -loss)

    def distance(self, p: ArrayLike) -> float:
        """How far parameters are off the nominal ones, in radii: for the proof the true ones are at most 1."""
        off = checked("p", one_state("p", p, len(self.p0)), self.p0.shape) - self.p0
        return scalar(np.sqrt(off.dot(self.D_inverse * off))) / self.radius

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray:
        """An estimate anywhere in the larger ball, often in its outer layer, for tests."""
        generator("rng", rng)
        true_robot(plant)
        x = rng.normal(size=self.p0.shape)
        size = np.sqrt(1.0 + EDGE) * rng.uniform() ** 0.1 * self.radius
        return self.p0 + size * np.sqrt(self.units) * x / np.linalg.norm(x)
