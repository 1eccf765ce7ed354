"""Natural adaptation: estimates move in the metric of pseudo-inertias, and stay those of bodies that there can be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, generator
from geomctrl.control.contracts import Lyapunov, Reference
from geomctrl.control.friction import FrictionModel
from geomctrl.control.plant import Plant
from geomctrl.control.tracking import sliding_energy
from geomctrl.controllers._adaptive import AdaptiveSliding
from geomctrl.controllers._model_based import true_robot
from geomctrl.controllers._pseudo_inertias import (
    divergence,
    metric_inverse,
    natural_gradient,
    random_bodies,
    require_solid,
)
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form
from geomctrl.tracing.numbers import scalar


class NaturalAdaptation(AdaptiveSliding):
    """P' = -gamma P L P for the pseudo-inertia P (4, 4) of each adapted body      (Lee, Kwon and Park 2018)

    L is the symmetric matrix with tr(L dP) = (Y^T s) . dp for every change dp of the parameters, dP what it makes of P:
    the gradient of `SlotineLi`, in the affine-invariant metric of positive definite matrices instead of a constant one.
    So P stays positive definite: estimates are always those of bodies; and units, frames and what is heavy or light
    change nothing. The torque is `SlotineLi`'s. With the log-det divergence of the true from the estimated bodies,
    D = log(det P / det P_true) + tr(P^-1 P_true) - 4,

    V = 1/2 s . M s + 1/gamma sum D,   V' = - s . K s

    The state z is the estimate of the ten parameters of each body in `adapt` (names; default all), which must have
    extent in all directions, in the model and in the plant. gamma [1/J] = rate / m^2, m the mean body's mass: then a
    mean body's mass moves as in `SlotineLi`. Where gamma V is much more than one, estimates may grow by its
    exponential, and steps have to be short. friction: a Friction, adapted too, as there; `form` likewise.
    """

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        *,
        adapt: str | Sequence[str] = "links",
        friction: FrictionModel | None = None,
        rate: float = 0.1,
        form: Form = "ploen",
    ):
        if isinstance(adapt, str) and adapt == "base":
            raise ArgumentError("adapt: expected 'links' or a list of body names, as base parameters are of no body")
        super().__init__(robot, reference, Lambda, K, adapt=adapt, friction=friction, rate=rate, form=form)
        self.gamma = rate / float(robot.parameters[:, 0].mean()) ** 2
        self.size = len(self.columns)
        require_solid(robot, self.columns)
        # the constant metric that is tangent to this one where the estimates start
        self.Gamma[: self.size, : self.size] = self.gamma * metric_inverse(self.nominal)

    def _rate(self, g, s, z):
        p = self._state(z)
        bodies = -self.gamma * natural_gradient(p[: self.size], g[: self.size])
        return np.concatenate((bodies, -np.diag(self.Gamma)[self.size :] * g[self.size :]))

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        energy, loss = sliding_energy(self.robot, true_robot(plant), q, v, self._desired(t), self.Lambda, self.K)
        p, true = self._state(z), self._true(plant)
        wrong = divergence(true[: self.size], p[: self.size]) / self.gamma
        off = p[self.size :] - true[self.size :]
        value = energy + scalar(wrong) + 0.5 * scalar((off * off / np.diag(self.Gamma)[self.size :]).sum())
        if type(value) is float and not np.isfinite(value):
            checked("z", z, self.p0.shape)
        return Lyapunov(value, -loss)

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray:
        """Other bodies about the plant's, that there can be, for tests."""
        generator("rng", rng)
        true = self._true(plant)
        friction = true[self.size :] * (1.0 + 0.5 * rng.normal(size=len(true) - self.size))
        return np.concatenate((random_bodies(rng, true[: self.size]), friction))
