"""From motors to joints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.arguments import checked, flag
from geomctrl.errors import ArgumentError

from .numbers import real


@dataclass(frozen=True, eq=False)
class JointMapping:
    """Motor to joint coordinates: q = matrix^-1 q_motor + offset, v = matrix^-1 v_motor, tau = matrix^T tau_motor.

    `matrix` (nv, nv) holds motor turns per joint turn: gear ratios on its diagonal, couplings beside it; one number a
    joint stands for a diagonal one. The torque map is the one that conserves power. `offset` (nv,) [rad, m] is added to
    joint positions, where the model's zero differs from the log's.
    """

    matrix: Any
    offset: Any = 0.0
    torque_at_motor: bool = True  # False: tau is already at the joints
    position_at_motor: bool = True  # False: q, v and a are already at the joints, but for the offset

    def __post_init__(self):
        flag("torque_at_motor", self.torque_at_motor)
        flag("position_at_motor", self.position_at_motor)
        N = real("joint mapping", "matrix", self.matrix)
        N = np.diag(N) if N.ndim == 1 else N
        if N.ndim != 2 or N.shape[0] != N.shape[1] or not N.size or not np.isfinite(N).all():
            raise ArgumentError(f"matrix: expected (nv,) ratios or a finite (nv, nv) matrix, got shape {N.shape}")
        if np.linalg.cond(N) > 1e10:
            raise ArgumentError("matrix: expected an invertible matrix: some motors do not determine the joints")
        offset = real("joint mapping", "offset", self.offset)
        if offset.shape not in ((), (len(N),)) or not np.isfinite(offset).all():
            raise ArgumentError(f"offset: expected a number or ({len(N)},) finite numbers, got {self.offset!r}")
        object.__setattr__(self, "matrix", N)
        object.__setattr__(self, "offset", np.broadcast_to(offset, len(N)).copy())

    def position(self, q: np.ndarray) -> np.ndarray:
        return self._at_joints("q", q) + self.offset

    def rate(self, v: np.ndarray) -> np.ndarray:
        """Velocities or accelerations."""
        return self._at_joints("v", v)

    def torque(self, tau: np.ndarray) -> np.ndarray:
        tau = checked("tau", tau, (len(self.matrix),))
        return tau @ self.matrix if self.torque_at_motor else tau

    def _at_joints(self, name: str, x: np.ndarray) -> np.ndarray:
        x = checked(name, x, (len(self.matrix),))
        return np.linalg.solve(self.matrix, x.T).T if self.position_at_motor else x
