"""Super-twisting sliding mode control of each joint: s and s' vanish in finite time under smooth disturbances."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance, one_state
from geomctrl.control.contracts import Command, Reference
from geomctrl.control.friction import FrictionModel
from geomctrl.control.tuning import RATES, Tuning
from geomctrl.controllers._model_based import ModelBased
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

K1, K2 = 1.5, 1.1  # k1 = K1 rate^1/2, k2 = K2 rate (Levant 1998)
RATIO = K2 / K1**2
FIRST = 1.0 + 2.0 * RATIO
P = np.array([[FIRST, -1.0], [-1.0, 0.5 * (FIRST + 1.0) / RATIO]])  # solves A^T P + P A = -1
MATCH_SPEED = 0.05  # rad/s or m/s: s at which the default gains are as steep as those of the tuning rule


class SuperTwisting(ModelBased):
    """Super-twisting law: tau = M (a_ref - k1 |s|^1/2 sgn s + z) + C v + g [+ friction(v)],   z' = - k2 sgn s.

    Parameters
    ----------
    robot : Robot
        The model.
    reference : Reference
        The desired motion.
    Lambda : float, (nv,) or (nv, nv)
        As in `Passivity` [1/s].
    rate : float or (nv,), optional
        Bound on the rate of disturbance accelerations [rad/s^3, m/s^3]. By default k1 |s|^1/2 equals kappa_i s at
        s = 0.05 rad/s or m/s, with the default rate kappa_i of `Passivity`.
    friction : FrictionModel, optional
        Friction that the law compensates. Default: none, whatever friction the model or the plant has.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.

    Notes
    -----
    (Levant 1993.) v_ref = v_d - Lambda e and s = v - v_ref as in `Passivity`. For each joint of the true model

    s' = - k1 |s|^1/2 sgn s + z + d,   z' = - k2 sgn s,

    where d is the acceleration due to unmodelled torques. If |d'| <= rate, with k1 = 1.5 rate^1/2 and k2 = 1.1 rate,
    then s = s' = 0 and z = -d after a finite time, and e decreases like exp(-Lambda t). Torques are continuous. The
    state z (nv,) [rad/s^2, m/s^2] may have any value.

    There is no smooth Lyapunov function. With x = (|s|^1/2 sgn s, z / k1), A = [[-1/2, 1/2], [-k2 / k1^2, 0]] and
    A^T P + P A = -1, V = x . P x of each joint (Moreno and Osorio 2012) satisfies without d, for s != 0,

    V' = - k1 |s|^-1/2 x . x <= - k1 (V / lambda_max(P))^1/2

    because |s|^1/2 <= |x|. Hence V is zero after at most 2 (V lambda_max(P))^1/2 / k1, see `_convergence_time`. V
    has no gradient at s = 0, which the loop crosses, so that the class has no method `lyapunov`. With a torque held
    for dt, s remains of the order of (k1 dt)^2.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.SuperTwisting(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {"Lambda": RATES["Lambda"], "rate": "rad/s^3, of disturbances"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        rate: ArrayLike | None = None,
        friction: FrictionModel | None = None,
    ):
        super().__init__(robot, reference, friction)
        self.Lambda = self._gain("Lambda", Lambda, lambda rule: rule.Lambda)
        of_rate = self._gain("rate", rate, lambda rule: MATCH_SPEED * (rule.kappa / K1) ** 2)
        if np.count_nonzero(of_rate - np.diag(np.diag(of_rate))):
            raise ArgumentError(f"rate: expected a number or one per joint ({robot.nv},), got a matrix")
        rates = np.diag(of_rate)
        self.k1, self.k2 = K1 * np.sqrt(rates), K2 * rates

    @classmethod
    def tuned(cls, tuning: Tuning) -> SuperTwisting:
        """Lambda of the rule; the default rate from kappa_i."""
        instance("tuning", tuning, Tuning, "a Tuning")
        rate = tuning.gains.get("rate", MATCH_SPEED * (tuning.kappa / K1) ** 2)
        return cls(tuning.robot, tuning.motion, tuning.Lambda, rate)

    def start(self):
        """z = 0: no disturbance."""
        return np.zeros(self.robot.nv)

    def __call__(self, t, q, v, z):
        x = self.sliding(t, q, v)
        z, sign = one_state("z", z, self.robot.nv), np.sign(x.s)
        tau = self.robot.inverse_dynamics(q, v, x.a_ref - self.k1 * np.sqrt(np.abs(x.s)) * sign + z)
        return Command(self._compensated(v, tau), -self.k2 * sign, {"e": x.e, "s": x.s})

    def _strict_energy(self, s: ArrayLike, z: ArrayLike) -> np.ndarray:
        """V of each joint (nv,), at s and z (nv,) each."""
        n = self.robot.nv
        s, z = one_state("s", s, n), one_state("z", z, n)
        x = np.array([np.sqrt(np.abs(s)) * np.sign(s), z / self.k1])
        return np.einsum("ik,ij,jk->k", x, P, x)

    def _convergence_time(self, s: ArrayLike, z: ArrayLike) -> float:
        """Time [s] after which s and z (nv,) of every joint remain zero without disturbances."""
        return float((2.0 * np.sqrt(self._strict_energy(s, z) * np.linalg.eigvalsh(P)[1]) / self.k1).max())
