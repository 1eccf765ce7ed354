"""Slotine and Li's law with smooth projection: estimates stay in a ball under any disturbance."""

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

TRANSITION_WIDTH = 0.1  # relative width of the transition, in radius squared


class SmoothProjection(AdaptiveSliding):
    """Adaptive tracking with bounded estimates: p' = x - Gamma h (h . x)+ phi / (h . Gamma h),   x = -Gamma Y^T s.

    Parameters
    ----------
    radius : float, optional
        Radius of the ball around the nominal parameters [kg]; default twice the mass of the robot's mean body, times
        the square root of the number of adapted parameters.
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
    (Pomet and Praly 1992.) h = D^-1 (p - p_0), (h . x)+ = max(h . x, 0), and phi grows linearly from 0 on the ball
    h . D h = radius^2 to 1 at 1.1 radius^2. An estimate never leaves the larger ball, whatever the unmodelled torque. D
    contains the squares of the natural units of the parameters, (1, l, l^2) for mass, first and second moments, with
    the size l of the robot's mean body, as in the default Gamma. Torque and V are those of `SlotineLi`:

    V' <= - s . K s   if p_true is in the smaller ball, because then (p - p_true) . h >= 0 outside of it.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.SmoothProjection(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
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
        taken = np.clip((h.dot(off) / self.radius**2 - 1.0) / TRANSITION_WIDTH, 0.0, 1.0)
        outward, Gh = np.maximum(h.dot(x), 0.0), self.Gamma.dot(h)
        return x - taken * outward / np.maximum(h.dot(Gh), 1e-300) * Gh

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        value, loss = self._sliding_energy(t, q, v, z, plant)
        return Lyapunov(value, -loss)

    def _distance(self, p: ArrayLike) -> float:
        """Distance of parameters from the nominal ones in radii. The proof needs at most 1 for the true parameters."""
        off = checked("p", one_state("p", p, len(self.p0)), self.p0.shape) - self.p0
        return scalar(np.sqrt(off.dot(self.D_inverse * off))) / self.radius

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray:
        """A random estimate in the larger ball, often in its outer layer, for tests."""
        generator("rng", rng)
        true_robot(plant)
        x = rng.normal(size=self.p0.shape)
        size = np.sqrt(1.0 + TRANSITION_WIDTH) * rng.uniform() ** 0.1 * self.radius
        return self.p0 + size * np.sqrt(self.units) * x / np.linalg.norm(x)
