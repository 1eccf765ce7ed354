"""Natural adaptation: estimates follow the metric of pseudo-inertias and remain physically possible."""

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
    """Adaptive tracking with physical estimates: P' = -gamma P L P for the pseudo-inertia P (4, 4) of each body.

    Parameters
    ----------
    robot, reference, Lambda, K, friction, form
        As for `SlotineLi`. Adapted bodies must have extent in all directions, in the model and in the plant.
    adapt : "links" or list of str
        Names of the adapted bodies; default all.
    rate : float
        gamma = rate / m^2 [1/J] with the mass m of the mean body, which then adapts as fast as in `SlotineLi`.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.
    NameNotFoundError
        If the robot has no body of a given name.

    Notes
    -----
    (Lee, Kwon and Park 2018.) L is the symmetric matrix with tr(L dP) = (Y^T s) . dp for every change dp of the
    parameters and the corresponding dP. The law is the gradient of `SlotineLi` in the affine-invariant metric of
    positive definite matrices. Hence P stays positive definite, and the law does not depend on units or frames. The
    torque is that of `SlotineLi`. With the log-det divergence D = log(det P / det P_true) + tr(P^-1 P_true) - 4,

    V = 1/2 s . M s + 1/gamma sum D,   V' = - s . K s.

    The state z contains ten parameters of each adapted body. If gamma V is much larger than one, estimates may grow by
    the exponential of it, and steps must be small.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.NaturalAdaptation(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
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
            raise ArgumentError(
                "adapt: expected 'links' or a list of body names, because base parameters belong to no single body"
            )
        super().__init__(robot, reference, Lambda, K, adapt=adapt, friction=friction, rate=rate, form=form)
        self.gamma = rate / float(robot.parameters[:, 0].mean()) ** 2
        self.size = len(self.columns)
        require_solid(robot, self.columns)
        # the constant metric that agrees with this one at the initial estimates
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
        """Random physically possible bodies near those of the plant, for tests."""
        generator("rng", rng)
        true = self._true(plant)
        friction = true[self.size :] * (1.0 + 0.5 * rng.normal(size=len(true) - self.size))
        return np.concatenate((random_bodies(rng, true[: self.size]), friction))
