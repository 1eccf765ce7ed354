"""Super-twisting sliding mode, joint by joint: s and s' vanish after a finite time, whatever smooth torque disturbs."""

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
P = np.array([[FIRST, -1.0], [-1.0, 0.5 * (FIRST + 1.0) / RATIO]])  # of A^T P + P A = -1, in closed form
MATCH_SPEED = 0.05  # rad/s or m/s: where the rule's law and this one are as steep


class SuperTwisting(ModelBased):
    """tau = M (a_ref - k1 |s|^1/2 sgn s + z) + C v + g [+ friction(v)],   z' = - k2 sgn s, joint by joint

    (Levant 1993). v_ref = v_d - Lambda e and s = v - v_ref as in `Passivity`. With the true model

    s' = - k1 |s|^1/2 sgn s + z + d,   z' = - k2 sgn s,

    d the acceleration that unmodelled torques make; with |d'| <= rate and k1 = 1.5 rate^1/2, k2 = 1.1 rate, s = s' = 0
    after a finite time, z = -d then, and e falls like exp(-Lambda t). Torques are continuous. The state z [rad/s^2,
    m/s^2] is any (nv,).

    There is no smooth V. With x = (|s|^1/2 sgn s, z / k1), A = [[-1/2, 1/2], [-k2 / k1^2, 0]], A^T P + P A = -1, the V
    of Moreno and Osorio (2012), x . P x of each joint, has without d off s = 0

    V' = - k1 |s|^-1/2 x . x <= - k1 (V / lambda_max(P))^1/2,

    as |s|^1/2 <= |x|: it is zero after 2 (V lambda_max(P))^1/2 / k1 at the latest, `convergence_time`. But V has no
    gradient at s = 0, through which the loop goes: so it is no `lyapunov`, but `strict_energy`. A torque held for dt
    leaves s about (k1 dt)^2 off.

    Lambda [1/s] as in `Passivity`. rate [rad/s^3, m/s^3]: a number or (nv,); default: such that at s = 0.05 rad/s or
    m/s k1 |s|^1/2 is what the rule of `geomctrl.control.tuning` has there, kappa_i s.
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
            raise ArgumentError(f"rate: expected a number or one a joint ({robot.nv},), got a matrix")
        rates = np.diag(of_rate)
        self.k1, self.k2 = K1 * np.sqrt(rates), K2 * rates

    @classmethod
    def tuned(cls, tuning: Tuning) -> SuperTwisting:
        """Lambda by the rule; rate, if it is not given, from kappa_i as by default."""
        instance("tuning", tuning, Tuning, "a Tuning")
        rate = tuning.gains.get("rate", MATCH_SPEED * (tuning.kappa / K1) ** 2)
        return cls(tuning.robot, tuning.motion, tuning.Lambda, rate)

    def start(self):
        """No disturbance."""
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

    def convergence_time(self, s: ArrayLike, z: ArrayLike) -> float:
        """The time [s] after which every joint's s and z are zero for good, without disturbances, at s and z (nv,)."""
        return float((2.0 * np.sqrt(self._strict_energy(s, z) * np.linalg.eigvalsh(P)[1]) / self.k1).max())
