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
    """Adaptive tracking of Slotine and Li: tau = Y(q, v, a_ref, v_ref) p + armature a_ref - K s,   p' = -Gamma Y^T s.

    Parameters
    ----------
    robot : Robot
        The nominal model. It provides the kinematics, the armature (assumed exact) and the initial estimate.
    reference : Reference
        The desired motion.
    Lambda, K : float, (nv,) or (nv, nv)
        As in `Passivity`, with the same defaults.
    Gamma : float, (n,) or (n, n)
        Adaptation gain, symmetric positive definite. The default scales `rate` by the mass and size of each body.
    adapt : "links", "base" or list of str
        Adapted parameters: "links" means ten of each body; a list names bodies, and all others keep the model's values;
        "base" means the base parameters of the robot in the reference-velocity dynamics.
    friction : FrictionModel, optional
        A model that is linear in its parameters. They are adapted too, starting from these values: of `Friction` nv
        viscous and nv Coulomb coefficients. The plant has the true ones; `smoothing` is assumed to be exact.
    minimum_mass : float, optional
        Lower bound on every adapted mass [kg]. Below it an estimate decreases ever more slowly and stops at half of it.
        If the true masses are above the bound, this only makes V' more negative. Not with adapt="base".
    rate : float
        Scale of the default Gamma [1/s]: estimates move faster if it is larger. Default 1.
    form : {"ploen", "christoffel", "adjoint"}
        The Coriolis matrix C; Mdot - 2C is skew-symmetric for all of them. Default "ploen".

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.
    NameNotFoundError
        If the robot has no body of a given name.

    Notes
    -----
    (Slotine and Li 1987.) With v_ref = v_d - Lambda e and s = v - v_ref as in `Passivity`,

    V = 1/2 s . M s + 1/2 (p - p_true) . Gamma^-1 (p - p_true),   V' = - s . K s.

    The state z is the estimate p: ten parameters of each adapted body, then those of friction. `estimate(z)` returns
    the inertial parameters of all bodies, and `true_parameters(plant)` the z that makes V zero at e = 0, v = v_d.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> motion = gc.references.Sinusoids(robot, np.zeros(2), 0.3, 0.5, start_at_rest=1.0)
    >>> law = gc.controllers.SlotineLi(robot, motion)
    >>> run = gc.simulate(robot.with_payload(1.0), law, np.zeros(2), np.zeros(2), t_end=2.0, dt=1e-3)
    >>> run.monitors["lyapunov"].verdict
    'held'
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
        """p' = -Gamma Y^T s with g = Y^T s, reduced for a mass that is below its bound and would decrease further."""
        rate = self._gradient(g)
        if len(self.masses):
            z = self._state(z)
            taken = np.clip(2.0 * (1.0 - z[self.masses] / self.minimum_mass), 0.0, 1.0)
            falling = np.minimum(rate[self.masses], 0.0) / np.diag(self.Gamma)[self.masses]
            rate = rate - self.Gamma[:, self.masses].dot(taken * falling)
        return rate

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray | None:
        """A random reachable estimate near the plant's parameters, for tests.

        With `minimum_mass` no adapted mass is below half of it. Without, the result is None: any z is admissible.
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
            rate += scalar(weighted.dot(self._adaptation(g, z) + self.Gamma.dot(g)))  # contribution of the lower bound
        return Lyapunov(value, rate)
