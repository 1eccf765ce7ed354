"""Passivity-based tracking: Slotine and Li's law with known parameters."""

from __future__ import annotations

from typing import ClassVar

from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.gains import gain_matrix
from geomctrl.control.plant import Friction
from geomctrl.control.tracking import sliding_energy
from geomctrl.control.tuning import RATES, Tuning
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form, form_number


class Passivity(ModelBased):
    """tau = M a_ref + C v_ref + g - K s [+ friction(v)], v_ref = v_d - Lambda e, s = v - v_ref (Slotine and Li 1987).

    V = 1/2 s . M s,   V' = - s . K s   because s . (Mdot - 2C) s = 0        (Ploen 1999 section 1)

    Lambda [1/s] and K [N m s/rad]: numbers, (nv,) or symmetric positive definite (nv, nv). `form`: which C,
    "ploen", "christoffel" or "adjoint"; all keep Mdot - 2C skew.
    """

    GAINS: ClassVar = RATES

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike = 5.0,
        K: ArrayLike = 20.0,
        friction: Friction | None = None,
        form: Form = "ploen",
    ):
        super().__init__(robot, reference, friction)
        form_number(form)
        self.Lambda, self.K = gain_matrix("Lambda", Lambda, robot.nv), gain_matrix("K", K, robot.nv)
        self.form: Form = form

    @classmethod
    def tuned(cls, tuning: Tuning) -> Passivity:
        """Lambda, K = kappa_i D_i."""
        instance("tuning", tuning, Tuning, "a Tuning")
        return cls(tuning.robot, tuning.motion, tuning.Lambda, tuning.K)

    def __call__(self, t, q, v, z):
        x = self.sliding(t, q, v)
        tau = self.robot.inverse_dynamics(q, v, x.a_ref, x.v_ref, form=self.form) - self.K.dot(x.s)
        if self.friction is not None:
            tau += self.friction.acting(v)
        return Command(tau, None, {"e": x.e, "s": x.s})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        energy, loss = sliding_energy(self.robot, true_robot(plant), q, v, self.desired(t), self.Lambda, self.K)
        return Lyapunov(energy, -loss)
