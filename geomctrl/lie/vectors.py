"""R^n as a Lie group: nothing in it costs more than an addition."""

from dataclasses import dataclass

import numpy as np

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError

from .contract import CheckedGroup


@dataclass(frozen=True)
class Rn(CheckedGroup):
    """R^n with addition: elements and algebra vectors are (..., n)."""

    n: int

    def __post_init__(self):
        if not isinstance(self.n, int | np.integer) or isinstance(self.n, bool) or self.n < 0:
            raise ArgumentError(f"n: expected an integer >= 0, got {self.n!r}")
        self.__dict__.update(n=int(self.n), dim=int(self.n), shape=(int(self.n),))

    def __repr__(self):
        return f"Rn({self.n})"

    def identity(self):
        return np.zeros(self.dim)

    def inverse(self, a):
        return -checked("a", a, self.shape)

    def log(self, a):
        return checked("a", a, self.shape).copy()

    def Ad(self, a):
        return self._ones(checked("a", a, self.shape))

    def ad(self, x):
        return np.zeros((*checked("x", x, self.shape).shape, self.dim))

    def dexp(self, x):
        return self._ones(checked("x", x, self.shape))

    def dexp_inv(self, x):
        return self._ones(checked("x", x, self.shape))

    def dexp_inv_mul(self, x, y):
        """y itself, unchecked: the integrators' shortcut."""
        return y

    def advance(self, y, x):
        """y + x."""
        try:
            if y.shape == x.shape == self.shape:
                out = y + x
                if out.dtype == np.float64:
                    return out
        except AttributeError:
            pass
        return super().advance(y, x)

    def random(self, rng):
        return rng.normal(size=self.dim)

    def _ones(self, x):
        return np.tile(np.eye(self.dim), (*x.shape[:-1], 1, 1))

    def _compose(self, a, b):
        return a + b

    def _exp(self, x):
        return x.copy()

    def _rotation(self, x):
        return np.zeros(x.shape[:-1])[()]

    def _residual(self, a):
        return np.zeros(a.shape[:-1])
