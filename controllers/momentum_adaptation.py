"""Adaptation with momentum: the estimate follows a second one, which moves by mirror descent."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, generator, number, one_state
from geomctrl.control.contracts import Command, Lyapunov, Reference
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
from geomctrl.tracing.numbers import scalar


class MomentumAdaptation(AdaptiveSliding):
    """Adaptive tracking with momentum: (d/dt) grad psi(m) = - Y^T s,   p' = follow N (m - p).

    Parameters
    ----------
    potential : {"quadratic", "log-det"}
        "quadratic": psi = 1/2 p . Gamma^-1 p. m moves as the estimate of `SlotineLi`, and p is smooth if s is noisy.
        "log-det": psi = - 1/gamma sum log det P with the pseudo-inertias P of the bodies. m moves as in
        `NaturalAdaptation`, so that m and p are physically possible; without friction and base parameters.
    follow : float
        Rate at which p follows m [1/s].
    robot, reference, Lambda, K, Gamma, rate, **options
        As for `SlotineLi`; `rate` is 0.1 by default.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.
    NameNotFoundError
        If the robot has no body of a given name.

    Notes
    -----
    (Boffi and Slotine 2021, "Implicit regularization and momentum algorithms in nonlinearly parameterized adaptive
    control and prediction".) p is the estimate in the torque of `SlotineLi`. m moves by mirror descent in the potential
    psi, m' = - H^-1 Y^T s with its Hessian H at m. With the Bregman divergence
    d(x|y) = psi(x) - psi(y) - grad psi(y) . (x - y) and |x|^2 = x . Gamma^-1 x

    V = 1/2 s . M s + d(p_true | m) + 1/2 |p - m|^2,
    V' = - s . K s - follow N |p - m|^2 + s . Y A Gamma^-1 (p - m)  <=  - 1/2 s . K s - follow |p - m|^2

    with A = Gamma + H^-1 and follow N = follow + 1/2 tr(K^-1 Y A Gamma^-1 A^T Y^T). The state z is (p, m).

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.MomentumAdaptation(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {**AdaptiveSliding.GAINS, "follow": "1/s"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        potential: str = "quadratic",
        follow: float = 10.0,
        rate: float = 0.1,
        **options: Any,
    ):
        super().__init__(robot, reference, Lambda, K, Gamma, rate=rate, **options)
        self.potential = choice("potential", potential, ("quadratic", "log-det"))
        self.follow = number("follow", follow, "a positive number [1/s]", lambda x: x > 0.0)
        self.K_inverse = np.linalg.inv(self.K)
        self.gamma = rate / float(robot.parameters[:, 0].mean()) ** 2
        if potential == "log-det":
            if self.projection is not None or self.friction is not None or Gamma is not None:
                raise ArgumentError(
                    "potential: 'log-det' is defined for bodies only: expected no friction, base parameters or Gamma"
                )
            require_solid(robot, self.columns)

    def start(self):
        """The nominal parameters, for both p and m."""
        return np.concatenate((self.p0, self.p0))

    def _state(self, z):
        n = len(self.p0)
        return z if isinstance(z, np.ndarray) and z.shape == (n,) else one_state("z", z, 2 * n)[:n]

    def true_parameters(self, plant: Plant) -> np.ndarray:
        true = self._true(plant)
        return np.concatenate((true, true))

    def _regressor(self, t, q, v):
        x = self.sliding(t, q, v)
        Y = self.robot.regressor(q, v, x.a_ref, x.v_ref, self.form)[:, self.columns]
        return Y if self.friction is None else np.hstack((Y, self.friction.columns(one_state("v", v, self.robot.nv))))

    def _coupling(self, t, q, v, m):
        """(Y A (nv, n), follow N)."""
        inverse_hessian = self.Gamma if self.potential == "quadratic" else self.gamma * metric_inverse(m)
        B = self._regressor(t, q, v).dot(self.Gamma + inverse_hessian)
        return B, self.follow + 0.5 * (self.K_inverse * B.dot(self._weighted(B.T))).sum()

    def _stable_fraction(self, Y, M, dt):
        """As in the base class; also limits the rate at which p follows m, which grows with Gamma, to 1 / dt."""
        coupled = 2.0 * float((self.K_inverse * Y.dot(self.Gamma).dot(Y.T)).sum())
        return min(super()._stable_fraction(Y, M, dt), max(1.0 / dt - self.follow, 0.1 / dt) / max(coupled, 1e-300))

    def __call__(self, t, q, v, z):
        z, n = one_state("z", z, 2 * len(self.p0)), len(self.p0)
        p, m = z[:n], z[n:]
        tau, g, e, s = self._law(t, q, v, p)
        lead = self._gradient(g) if self.potential == "quadratic" else -self.gamma * natural_gradient(m, g)
        pace = self._coupling(t, q, v, m)[1]
        return Command(tau, np.concatenate((pace * (m - p), lead)), {"e": e, "s": s})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        energy, loss = sliding_energy(self.robot, true_robot(plant), q, v, self._desired(t), self.Lambda, self.K)
        z, n = one_state("z", z, 2 * len(self.p0)), len(self.p0)
        p, m, true = z[:n], z[n:], self._true(plant)
        behind = self._weighted(p - m)
        if self.potential == "quadratic":
            led = 0.5 * scalar((m - true).dot(self._weighted(m - true)))
        else:
            led = scalar(divergence(true, m)) / self.gamma
        B, pace = self._coupling(t, q, v, m)
        apart, s = scalar((p - m).dot(behind)), self.sliding(t, q, v).s
        value = energy + led + 0.5 * apart
        if type(value) is float and not np.isfinite(value):
            checked("z", z, z.shape)
        return Lyapunov(value, scalar(s.dot(B).dot(behind)) - loss - scalar(pace * apart))

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray | None:
        """Two random physically possible estimates, for tests; None with the quadratic potential (any z)."""
        generator("rng", rng)
        true = self._true(plant)
        if self.potential == "quadratic":
            return None
        return np.concatenate((random_bodies(rng, true), random_bodies(rng, true)))
