"""Adaptive tracking control of Slotine and Li: the robot's parameters are estimated while it moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import generator, number
from geomctrl.control.contracts import Lyapunov, Reference
from geomctrl.control.friction import FrictionModel
from geomctrl.control.plant import Plant
from geomctrl.controllers._adaptive import AdaptiveSliding
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form
from geomctrl.tracing.numbers import possible, scalar


class SlotineLi(AdaptiveSliding):
    """tau = Y(q, v, a_ref, v_ref) p + armature a_ref - K s,   p' = -Gamma Y^T s      (Slotine and Li 1987)

    V = 1/2 s . M s + 1/2 (p - p_true) . Gamma^-1 (p - p_true),   V' = - s . K s

    with v_ref = v_d - Lambda e and s = v - v_ref as in `Passivity`. `robot` is the nominal model: it gives the
    geometry and the armature, which is to be the plant's; its parameters are the first estimate. The state z is the
    estimate p of what is adapted:

    Lambda, K            as in `Passivity`, by default of the rule of `geomctrl.control.tuning`
    adapt                "links", ten parameters of each body; a list of names, those of these bodies, the others kept
                         as in the model; or "base", the base parameters of the whole robot, of the reference-velocity
                         dynamics
    friction             a Friction: its viscous and Coulomb coefficients (nv each) are adapted too, from these values
    Gamma                adaptation gain: a number, one per parameter, or a symmetric positive definite matrix;
                         default: 1/s-like gains from each body's mass and size, times `rate`
    minimum_mass         [kg] keeps every adapted mass positive: below this bound an estimate falls ever slower and
                         stops at half of it. This only makes V' more negative as long as the true masses are above
                         the bound (not with adapt="base")
    """

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        adapt: str | Sequence[str] = "links",
        friction: FrictionModel | None = None,
        minimum_mass: float | None = None,
        rate: float = 1.0,
        form: Form = "ploen",
    ):
        if minimum_mass is not None:
            number("minimum_mass", minimum_mass, "a positive mass", lambda m: m > 0.0)
        super().__init__(
            robot, reference, Lambda, K, Gamma,
            adapt=adapt, friction=friction, rate=rate, form=form,
        )  # fmt: skip
        self.masses = np.flatnonzero(self.columns % 10 == 0) if minimum_mass is not None else np.zeros(0, dtype=int)
        self.minimum_mass = minimum_mass
        self._check_masses()

    def _check_masses(self) -> None:
        if self.minimum_mass is None:
            return
        if self.projection is not None:
            raise ArgumentError("minimum_mass: base parameters mix bodies; expected another adapt than 'base'")
        block = self.Gamma[np.ix_(self.masses, self.masses)]
        if np.abs(block - np.diag(np.diag(block))).max() > 0.0:
            raise ArgumentError("Gamma: with minimum_mass the gains of different masses must not be coupled")
        if (self.p0[self.masses] < self.minimum_mass).any():
            raise ArgumentError(f"minimum_mass: {self.minimum_mass} is above the model's own mass of an adapted body")

    def _rate(self, g, s, z):
        return self._adaptation(g, z)

    def _adaptation(self, g, z):
        """p' = -Gamma Y^T s, g = Y^T s, held back where a mass is below its bound and would fall further."""
        rate = self._gradient(g)
        if len(self.masses):
            z = self._state(z)
            taken = np.clip(2.0 * (1.0 - z[self.masses] / self.minimum_mass), 0.0, 1.0)
            falling = np.minimum(rate[self.masses], 0.0) / np.diag(self.Gamma)[self.masses]
            rate = rate - self.Gamma[:, self.masses].dot(taken * falling)
        return rate

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray | None:
        """An estimate about the plant's parameters that adaptation can reach, for tests: with `minimum_mass`, no
        adapted mass is below half of it. None without that bound: then any z is one.
        """
        generator("rng", rng)
        if not len(self.masses) or self.minimum_mass is None:
            return None
        true = self.true_parameters(plant)
        size = np.where(true != 0.0, np.abs(true), np.median(np.abs(true)))
        z = true + 0.5 * size * rng.normal(size=true.shape)
        z[self.masses] = np.maximum(z[self.masses], 0.5 * self.minimum_mass)
        return z

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        value, loss = self._sliding_energy(t, q, v, z, plant)
        z, rate = self._state(z), -loss
        if len(self.masses) and possible((z[self.masses] < self.minimum_mass).any()):
            g, weighted = self._law(t, q, v, z)[1], self._weighted(z - self.true_parameters(plant))
            rate += scalar(weighted.dot(self._adaptation(g, z) + self.Gamma.dot(g)))  # what the projection takes away
        return Lyapunov(value, rate)
