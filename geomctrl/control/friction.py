"""Joint friction as an ordinary differential equation can have it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import FLOAT64, checked, count, frozen, number, one_state
from geomctrl.described import Described
from geomctrl.errors import ArgumentError


@dataclass(frozen=True, eq=False, repr=False)
class Friction(Described):
    """Joint friction: viscous v + coulomb tanh(v / smoothing), (nv,) each or a number [N m s/rad, N m, rad/s].

    The smooth Coulomb law keeps the closed loop an ordinary differential equation; `smoothing` is the speed at which
    76 % of the Coulomb torque acts.
    """

    viscous: ArrayLike = 0.0
    coulomb: ArrayLike = 0.0
    smoothing: float = 0.01
    _shape: tuple[int, ...] = field(init=False, repr=False)  # of velocities; () where joints share their numbers

    def __post_init__(self):
        for name in ("viscous", "coulomb"):
            x = checked(name, getattr(self, name), ())
            if x.ndim > 1 or not x.size or (x < 0.0).any():
                raise ArgumentError(f"{name}: expected a number or (nv,) numbers, not negative, got {x}")
            object.__setattr__(self, name, frozen(x))
        object.__setattr__(self, "_shape", np.shape(self.viscous) or np.shape(self.coulomb))
        object.__setattr__(
            self, "smoothing", number("smoothing", self.smoothing, "a positive speed", lambda x: x > 0.0)
        )

    def torque(self, v: np.ndarray) -> np.ndarray:
        """The torque that friction takes from the joints, (..., nv)."""
        return self.acting(checked("v", v, self._shape))

    def acting(self, v: np.ndarray) -> np.ndarray:
        """`torque`, of what is known to be velocities."""
        if type(v) is not np.ndarray or v.dtype is not FLOAT64:
            v = checked("v", v, self._shape)
        return np.asarray(self.viscous) * v + np.asarray(self.coulomb) * np.tanh(v / self.smoothing)

    def columns(self, v: np.ndarray) -> np.ndarray:
        """(nv, 2 nv): torque is columns @ (viscous, coulomb), linear in its parameters like the regressor."""
        return self.acting_columns(one_state("v", v, *(self._shape or np.shape(v)[:1] or (0,))))

    def acting_columns(self, v: np.ndarray) -> np.ndarray:
        """`columns`, of what is known to be velocities."""
        if type(v) is not np.ndarray or v.dtype is not FLOAT64:
            v = checked("v", v, self._shape)
        return np.hstack((np.diag(v), np.diag(np.tanh(v / self.smoothing))))

    def parameters(self, nv: int) -> np.ndarray:
        """(viscous, coulomb) as one vector (2 nv,)."""
        self.check(nv)
        return np.concatenate((np.broadcast_to(self.viscous, nv), np.broadcast_to(self.coulomb, nv)))

    def check(self, nv: int) -> None:
        """Raise ArgumentError unless this is the friction of a robot with nv velocity coordinates."""
        count("nv", nv)
        for name in ("viscous", "coulomb"):
            shape = np.shape(getattr(self, name))
            if shape not in ((), (nv,)):
                raise ArgumentError(f"friction: {name}: expected a number or ({nv},) numbers, got shape {shape}")
