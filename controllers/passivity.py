"""Passivity-based tracking: Slotine and Li's law with known parameters."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import flag, instance
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.friction import FrictionModel
from geomctrl.control.tracking import sliding_energy
from geomctrl.control.tuning import RATES, Tuning
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import require_vectors
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form, form_number
from geomctrl.tracing.numbers import scalar


class Passivity(ModelBased):
    """tau = M a_ref + C v_ref + g - K s [+ friction(v)], v_ref = v_d - Lambda e, s = v - v_ref (Slotine and Li 1987).

    V = 1/2 s . M s,   V' = - s . K s   because s . (Mdot - 2C) s = 0        (Ploen 1999 section 1)

    This V vanishes wherever s does. With `strict` it is one of the whole state (Slotine and Li 1991),

    V = 1/2 s . M s + e . Lambda K e,   V' = - s . K s + 2 e . Lambda K e'  =  - w . K w - e . Lambda K Lambda e

    for one-degree-of-freedom joints, w = v - v_d: it is what a region of attraction is certified with.

    Lambda [1/s] and K [N m s/rad]: numbers, (nv,) or symmetric positive definite (nv, nv); by default those of the rule
    of `geomctrl.control.tuning`. With `strict` Lambda K must be symmetric. `form`: which C, "ploen", "christoffel" or
    "adjoint"; all keep Mdot - 2C skew.
    """

    GAINS: ClassVar = RATES

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        friction: FrictionModel | None = None,
        form: Form = "ploen",
        strict: bool = False,
    ):
        super().__init__(robot, reference, friction)
        form_number(form)
        self.Lambda, self.K = self._sliding_gains(Lambda, K)
        self.form: Form = form
        self.strict = flag("strict", strict)
        self.stiffness = self.Lambda @ self.K
        if strict:
            require_vectors("strict", robot)
        if strict and not np.allclose(self.stiffness, self.stiffness.T, rtol=1e-12, atol=0.0):
            raise ArgumentError(f"strict: expected Lambda and K whose product is symmetric, got {self.stiffness}")

    @classmethod
    def tuned(cls, tuning: Tuning) -> Passivity:
        """Lambda, K = kappa_i D_i."""
        instance("tuning", tuning, Tuning, "a Tuning")
        return cls(tuning.robot, tuning.motion, tuning.Lambda, tuning.K)

    def __call__(self, t, q, v, z):
        x = self.sliding(t, q, v)
        tau = self.robot.inverse_dynamics(q, v, x.a_ref, x.v_ref, form=self.form) - self.K.dot(x.s)
        return Command(self._compensated(v, tau), None, {"e": x.e, "s": x.s})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        energy, loss = sliding_energy(self.robot, true_robot(plant), q, v, self._desired(t), self.Lambda, self.K)
        if not self.strict:
            return Lyapunov(energy, -loss)
        error = self.error(t, q, v)
        force = self.stiffness.dot(error.e)
        return Lyapunov(energy + scalar(error.e.dot(force)), 2.0 * scalar(force.dot(error.e_rate)) - loss)
