"""Computed torque control: feedback linearisation with the inverse dynamics."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import flag, instance
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.friction import FrictionModel
from geomctrl.control.tracking import joint_forces
from geomctrl.control.tuning import Tuning
from geomctrl.controllers._model_based import ModelBased
from geomctrl.mechanism.states import require_vectors
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class ComputedTorque(ModelBased):
    """tau = M (a_d - Kd w - Kp e) + C v + g [+ friction(v)]; with the true model w' = -Kd w - Kp e.

    (Bejczy 1974; Luh, Walker and Paul 1980, in operational space.)

    V = 1/2 w . w + 1/2 e . Kp e,   V' = - w . Kd w          (w the velocity error; with LaSalle: e, w -> 0)

    With `strict` a V whose rate is negative wherever the state is off, for one-degree-of-freedom joints,

    V = 1/2 w . w + 1/2 e . (Kp + c Kd) e + c e . w,   V' = - w . (Kd - c) w - c e . Kp e,   c = min eig Kd / 2

    Gains: numbers, (nv,) or symmetric positive definite (nv, nv); kp [1/s^2], kd [1/s]; by default
    those of the rule of `geomctrl.control.tuning`. On joints with several degrees of freedom Kp e stands for the
    gradient of 1/2 e . Kp e.
    """

    GAINS: ClassVar = {"kp": "1/s^2", "kd": "1/s"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        friction: FrictionModel | None = None,
        strict: bool = False,
    ):
        super().__init__(robot, reference, friction)
        self.kp, self.kd = self._gain("kp", kp, lambda rule: rule.kp), self._gain("kd", kd, lambda rule: rule.kd)
        self.strict = flag("strict", strict)
        if strict:
            require_vectors("strict", robot)
        self.mixed = 0.5 * float(np.linalg.eigvalsh(self.kd)[0])

    @classmethod
    def tuned(cls, tuning: Tuning) -> ComputedTorque:
        """kp = kappa_i Lambda, kd = kappa_i + Lambda."""
        instance("tuning", tuning, Tuning, "a Tuning")
        return cls(tuning.robot, tuning.motion, tuning.kp, tuning.kd)

    def acceleration(self, t, q, v, z):
        """The vdot (nv,) that the law wants, and gets where its model is right."""
        return self._acceleration(self.error(t, q, v))

    def _acceleration(self, error):
        return error.a_d - self.kd.dot(error.w) - joint_forces(self.robot, error.e, self.kp.dot(error.e))

    def __call__(self, t, q, v, z):
        error = self.error(t, q, v)
        tau = self.robot.inverse_dynamics(q, v, self._acceleration(error))
        return Command(self._compensated(v, tau), None, {"e": error.e})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        error = self.error(t, q, v)
        e, w = error.e, error.w
        V, loss = scalar(0.5 * w.dot(w) + 0.5 * e.dot(self.kp).dot(e)), scalar(w.dot(self.kd).dot(w))
        if not self.strict:
            return Lyapunov(V, -loss)
        V = V + self.mixed * scalar(0.5 * e.dot(self.kd).dot(e) + e.dot(w))
        return Lyapunov(V, self.mixed * scalar(w.dot(w) - e.dot(self.kp).dot(e)) - loss)
