"""The velocities that `generalized_alpha` steps with: those of the bodies' groups, or spatial twists.

Mueller 2018 (88), (89): a step moves the pose C by C exp(X) with body-fixed twists and by exp(X) C with spatial ones.
"""

from __future__ import annotations

import numpy as np

from geomctrl.kernels import maximal as kernels

from .maximal import ConstrainedSystem


class OfGroups:
    """What the state holds: body-fixed twists on SE(3), (omega, pdot) on SO(3) x R^3."""

    def __init__(self, system: ConstrainedSystem):
        self.system, self.half = system, system.group.dim // 2

    def at(self, y: np.ndarray) -> np.ndarray:
        """The velocities (6 n,) of a state."""
        return y[-self.half :]

    def rates(self, y: np.ndarray, Vdot: np.ndarray) -> np.ndarray:
        """Their rates (6 n,) where those of the body-fixed twists are Vdot (n + 1, 6)."""
        return self.system._velocity_rates(y, Vdot)

    def moved(self, y: np.ndarray, x: np.ndarray, dv: np.ndarray) -> np.ndarray:
        """The state moved by x, its velocities changed by dv."""
        return self.system.group.advance(y, np.concatenate((x, dv)))


class Spatial(OfGroups):
    """Spatial twists Ad_C V of bodies on SE(3); their rates are Ad_C Vdot, since ad_V V = 0."""

    def at(self, y):
        return self.rates(y, y[-self.half :].reshape(-1, 6))

    def rates(self, y, Vdot):
        out = np.empty(self.half)
        kernels.spatial_twists(self.system._layout, y, Vdot, out)
        return out

    def moved(self, y, x, dv):
        out = np.empty(y.shape)
        kernels.advance_spatially(self.system._layout, y, x, dv, out)
        return out
