"""PD control with gravity compensation (Takegaki and Arimoto 1981): regulation to a configuration."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.compiler.arrays import scalar
from geomctrl.control.contracts import Command, Lyapunov
from geomctrl.control.gains import gain_matrix
from geomctrl.control.references import hold
from geomctrl.control.tracking import joint_forces
from geomctrl.control.tuning import Tuning
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.mechanism.states import one_configuration
from geomctrl.robot import Robot


class PDGravity(ModelBased):
    """tau = g(q) - Kp e - Kd v, e = log(q_d^-1 q); regulates to the configuration q_d (nq,).

    V = 1/2 v . M v + 1/2 e . Kp e,   V' = - v . Kd v        (with LaSalle: e -> 0)

    Gains: numbers, (nv,) or symmetric positive definite (nv, nv); kp [N m/rad], kd [N m s/rad]. On joints with
    several degrees of freedom Kp e stands for the gradient of 1/2 e . Kp e.
    """

    GAINS: ClassVar = {"kp": "1/s^2, times D", "kd": "1/s, times D"}

    def __init__(self, robot: Robot, q_d: ArrayLike, kp: ArrayLike = 100.0, kd: ArrayLike = 20.0):
        super().__init__(robot, hold(robot, one_configuration(robot, "q_d", q_d)))
        self.kp, self.kd = gain_matrix("kp", kp, robot.nv), gain_matrix("kd", kd, robot.nv)

    @classmethod
    def tuned(cls, tuning: Tuning) -> PDGravity:
        """kp = kappa_i Lambda D_i, kd = (kappa_i + Lambda) D_i; it holds the motion's last configuration."""
        instance("tuning", tuning, Tuning, "a Tuning")
        q_d, D = tuning.motion(tuning.seconds).q, tuning.rule.D
        return cls(tuning.robot, q_d, tuning.kp * D, tuning.kd * D)

    def __call__(self, t, q, v, z):
        e = self.error(t, q, v).e
        tau = self.robot.gravity_force(q) - joint_forces(self.robot, e, self.kp.dot(e)) - self.kd.dot(v)
        return Command(tau, None, {"e": e})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        e = self.error(t, q, v).e
        value = scalar(true_robot(plant).kinetic_energy(q, v)) + 0.5 * e.dot(self.kp).dot(e)
        return Lyapunov(scalar(value), -scalar(np.dot(v, self.kd.dot(v))))
