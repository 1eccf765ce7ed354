"""Computed torque control: feedback linearisation with the inverse dynamics."""

from __future__ import annotations

from typing import ClassVar

from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.compiler.arrays import scalar
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.gains import gain_matrix
from geomctrl.control.plant import Friction
from geomctrl.control.tracking import joint_forces
from geomctrl.control.tuning import Tuning
from geomctrl.controllers._model_based import ModelBased
from geomctrl.robot import Robot


class ComputedTorque(ModelBased):
    """tau = M (a_d - Kd w - Kp e) + C v + g [+ friction(v)]; with the true model w' = -Kd w - Kp e.

    V = 1/2 w . w + 1/2 e . Kp e,   V' = - w . Kd w          (w the velocity error; with LaSalle: e, w -> 0)

    Gains: numbers, (nv,) or symmetric positive definite (nv, nv); kp [1/s^2], kd [1/s]. On joints with several
    degrees of freedom Kp e stands for the gradient of 1/2 e . Kp e.
    """

    GAINS: ClassVar = {"kp": "1/s^2", "kd": "1/s"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        kp: ArrayLike = 100.0,
        kd: ArrayLike = 20.0,
        friction: Friction | None = None,
    ):
        super().__init__(robot, reference, friction)
        self.kp, self.kd = gain_matrix("kp", kp, robot.nv), gain_matrix("kd", kd, robot.nv)

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
        if self.friction is not None:
            tau += self.friction.acting(v)
        return Command(tau, None, {"e": error.e})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        error = self.error(t, q, v)
        e, w = error.e, error.w
        return Lyapunov(scalar(0.5 * w.dot(w) + 0.5 * e.dot(self.kp).dot(e)), -scalar(w.dot(self.kd).dot(w)))
