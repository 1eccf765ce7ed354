"""The torque's filtered regression without accelerations, sample by sample.

Momentum p = M v = Y_p x moves as p' = H x + tau - F x (H x = C^T v - g, F x what friction, offsets and springs take).
Between two samples, `period` T apart, with the torque held as drives hold it and the trapezoidal rule for the rest,

    (Y_p,k - Y_p,k-1 - T/2 (H_k + H_k-1 - F_k - F_k-1)) x = T tau_k-1 + O(T^3),

linear in x, and low-passed by W_k = alpha W_k-1 + (1 - alpha) / T (the bracket), alpha = exp(-bandwidth T), y_k alike:
W x = y is the torque behind bandwidth / (s + bandwidth) (Slotine and Li 1989), for sampled signals.
"""

from __future__ import annotations

import numpy as np

from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.terms import derivatives


class MomentumFilter:
    """W (nv, size) and y (nv,) of a `RegressorModel`, from q, v and tau at samples; bandwidth [1/s], period [s]."""

    def __init__(self, model: RegressorModel, bandwidth: float, period: float):
        self.model, self.period, self.alpha = model, period, float(np.exp(-bandwidth * period))
        n = model.robot.nv
        self.W, self.y = np.zeros((n, model.size)), np.zeros(n)
        self.end: np.ndarray | None = None  # Y_p + T/2 (H - F) of the last sample
        self.momentum, self.torque = np.zeros(n), np.zeros(n)

    def pushed(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(W, y) at this sample, whose torque tau acts from now on; None at the first."""
        Y, rate = self._columns(q, v)
        known = self.model.known_armature * v
        half = 0.5 * self.period * rate
        first = self.end is None
        if self.end is not None:
            share = (1.0 - self.alpha) / self.period
            self.W = self.alpha * self.W + share * (Y - half - self.end)
            self.y = self.alpha * self.y + share * (self.period * self.torque - known + self.momentum)
        self.end, self.torque, self.momentum = Y + half, np.array(tau, float), known
        return None if first else (self.W, self.y)

    def _columns(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Y_p and H - F, (nv, size) each."""
        model, robot = self.model, self.model.robot
        Y, rate = np.zeros((2, robot.nv, model.size))
        Y[:, : model.inertial] = derivatives.momentum_regressor(robot, q, v)
        rate[:, : model.inertial] = derivatives.momentum_rate_regressor(robot, q, v)
        still = model.regressor(q[None], v[None], np.zeros((1, robot.nv)))[0]
        moving = model.regressor(q[None], v[None], v[None])[0]
        rotors = model.indices("rotor")
        Y[:, rotors] = moving[:, rotors]
        rate[:, model.inertial :] = -still[:, model.inertial :]
        return Y, rate
