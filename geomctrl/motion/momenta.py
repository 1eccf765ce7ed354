"""The momentum form under a torque that is a function: the equations of `kernels.momentum_form`, stepped in Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.integrators.explicit import Explicit
from geomctrl.integrators.tableaus import Tableau
from geomctrl.kernels import momentum_form
from geomctrl.kernels.marches import SINGULAR
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.robot import Robot

from .midpoint import torque_at
from .trajectory import REASONS


class MomentumForm(Explicit):
    """A `march.Stepper` of y = (q, spatial momentum Pi, the joints' momenta)."""

    def __init__(self, robot: Robot, torque: Callable, tableau: Tableau):
        super().__init__(self.rates, tableau, Product(configuration_group(robot), Rn(robot.nv)))
        self.robot, self.torque = robot, torque

    def momenta(self, q, v) -> np.ndarray:
        """y of (q, v)."""
        return np.concatenate((q, self.robot.momentum(q, v), (self.robot.mass_matrix(q) @ v)[6:]))

    def state_of(self, y) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) of y."""
        q, v, nothing = y[: self.robot.nq].copy(), np.empty(self.robot.nv), np.zeros(self.robot.nv)
        if not self._rates(q, y, nothing, v, np.empty(self.robot.nv)):
            raise IntegrationError(f"momentum form: {REASONS[SINGULAR]}")
        return q, v

    def rates(self, t, y) -> np.ndarray:
        """The field."""
        q, v = self.state_of(y)
        rate = np.empty(self.robot.nv)
        try:
            tau = torque_at(self.torque, t, q, v)
        except ArgumentError as error:
            raise IntegrationError(str(error)) from None
        self._rates(q, y, tau, v, rate)
        return np.concatenate((v, rate))

    def _rates(self, q, y, tau, v, rate) -> bool:
        return momentum_form.momentum_rates(self.robot._model, q, y[self.robot.nq :].copy(), tau, v, rate)
