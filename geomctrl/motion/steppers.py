"""Integration steps under a torque function: implicit midpoint methods, and explicit methods on the spatial momentum.

The implicit methods solve for the torque and the step together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.integrators.explicit import Explicit
from geomctrl.integrators.march import Step
from geomctrl.integrators.tableaus import Tableau
from geomctrl.kernels import marches
from geomctrl.kernels.marches import DONE, NOT_CONVERGED, SINGULAR
from geomctrl.kernels.structure_preserving import ITERATIONS, STRICT_ITERATIONS
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.robot import Robot

from .trajectory import REASONS, Method, failure, step_in_place


class Midpoint:
    """A `march.Stepper` of an implicit method under torque(t + h/2, q0 exp(x/2), x/h), exp x = q0^-1 q1.

    A damped quasi-Newton method solves F(tau) = tau - torque(... x(tau)) = 0. The derivative comes from differences of
    the torque and of x = h v + h^2/2 M^-1 (tau + ...), and is reused in later steps while it converges (Broyden's
    updates).
    """

    def __init__(self, method: Method, robot: Robot, torque: Callable):
        self.method, self.robot, self.torque = method, robot, torque
        self.group = Product(configuration_group(robot), Rn(robot.nv))
        self.H: Any = None  # the inverse of F's derivative, kept from step to step
        self.nfev = 0

    def step(self, t, y, h, t_next, memory=None) -> Step:
        self.H = None if memory is None else memory.copy()
        q, v = self.state_of(y)
        try:
            result = self.advance(t, h, q, v)
        except ArgumentError as error:
            raise IntegrationError(str(error)) from None
        if result != DONE:
            raise IntegrationError(failure(self.method.name, result, h, t))
        return Step(t, y, h, t_next, np.concatenate((q, v)), memory=self.H)

    def state_of(self, y) -> tuple[np.ndarray, np.ndarray]:
        """(q, v), copied."""
        return y[: self.robot.nq].copy(), y[self.robot.nq :].copy()

    def advance(self, t, h, q, v) -> int:
        """Advance (q, v) from t to t + h in place and return a status. Iterates until a full Newton step leaves x
        unchanged.
        """
        tau = change = F0 = tau0 = torque_at(self.torque, t + 0.5 * h, q, v)
        x0, size = h * v, max(1.0, np.abs(q).max())
        best, full, fresh, reach = np.inf, False, False, np.inf  # |F| at tau0; was the last step full; is H of tau0
        for i in range(ITERATIONS):
            q1, v1, error = q.copy(), v.copy(), np.inf
            result = step_in_place(self.method, self.robot, tau[None], h, q1, v1)
            if result == DONE:
                x = self.robot.difference(q, q1)
                F = tau - self.midpoint_torque(t, h, q, x)
                error = np.linalg.norm(F)
                reach = np.abs(x - x0).max() if full else reach
                if reach <= (1e-15 if i < STRICT_ITERATIONS else 1e-11) * size or error <= 1e-15 * np.linalg.norm(tau):
                    q[:], v[:] = q1, v1
                    return DONE
            elif best == np.inf:
                return result
            nearer, serves = error < best, error < 0.3 * best
            if nearer:
                if best < np.inf:
                    self.learn(change, F - F0)
                best, fresh, tau0, F0, x0 = error, False, tau, F, x
            if self.H is None or not (serves or fresh):
                self.H, fresh, nearer = self.inverse_derivative(t, h, q, x0), True, True
            change, full = (-self.H @ F0, True) if nearer else (0.5 * change, False)
            tau = tau0 + change
        return NOT_CONVERGED

    def learn(self, change, dF):
        """Broyden's update: H dF = change."""
        y = self.H @ dF
        if (along := change @ y) > 0.1 * (change @ change):
            self.H += np.outer(change - y, change @ self.H) / along

    def midpoint_torque(self, t, h, q, x):
        self.nfev += 1
        return torque_at(self.torque, t + 0.5 * h, self.robot.integrate(q, 0.5 * x), x / h)

    def inverse_derivative(self, t, h, q, x):
        e = 1e-7 * max(np.abs(x).max(), 1e-3 * abs(h))
        here = self.midpoint_torque(t, h, q, x)
        slopes = np.array([self.midpoint_torque(t, h, q, x + e * d) - here for d in np.eye(len(x))]).T / e
        M = self.robot.mass_matrix(self.robot.integrate(q, 0.5 * x))
        return np.linalg.pinv(np.eye(len(x)) - 0.5 * h * h * np.linalg.solve(M, slopes.T).T)


def torque_at(torque, t, q, v) -> np.ndarray:
    try:
        tau = checked("tau(t, q, v)", torque(t, q.copy(), v.copy()), v.shape)
    except ArgumentError as error:
        raise ArgumentError(f"{error}, at t = {t:.9g}") from None
    if tau.shape != v.shape:
        raise ArgumentError(f"tau(t, q, v): expected shape {v.shape}, got {tau.shape}, at t = {t:.9g}")
    return tau.copy()  # the function may reuse its buffer


class MomentumForm(Explicit):
    """A `march.Stepper` of y = (q, spatial momentum Pi, joint momenta)."""

    def __init__(self, robot: Robot, torque: Callable, tableau: Tableau):
        super().__init__(self.rates, tableau, Product(configuration_group(robot), Rn(robot.nv)))
        self.robot, self.torque = robot, torque

    def momenta(self, q, v) -> np.ndarray:
        """Convert (q, v) to y."""
        return np.concatenate((q, self.robot.momentum(q, v), (self.robot.mass_matrix(q) @ v)[6:]))

    def state_of(self, y) -> tuple[np.ndarray, np.ndarray]:
        """Convert y to (q, v)."""
        q, v, nothing = y[: self.robot.nq].copy(), np.empty(self.robot.nv), np.zeros(self.robot.nv)
        if not self._rates(q, y, nothing, v, np.empty(self.robot.nv)):
            raise IntegrationError(f"momentum form: {REASONS[SINGULAR]}")
        return q, v

    def rates(self, t, y) -> np.ndarray:
        """The time derivative of y, in the Lie algebra."""
        q, v = self.state_of(y)
        rate = np.empty(self.robot.nv)
        try:
            tau = torque_at(self.torque, t, q, v)
        except ArgumentError as error:
            raise IntegrationError(str(error)) from None
        self._rates(q, y, tau, v, rate)
        return np.concatenate((v, rate))

    def _rates(self, q, y, tau, v, rate) -> bool:
        return marches.momentum_rates(self.robot._model, q, y[self.robot.nq :].copy(), tau, v, rate)
