"""R^n as a Lie group: nothing in it costs more than an addition."""

from dataclasses import dataclass

import numpy as np

from geomctrl.arguments import FLOAT64, checked, count, generator

from .contract import CheckedGroup


@dataclass(frozen=True)
class Rn(CheckedGroup):
    """R^n with addition: elements and algebra vectors are (..., n)."""

    n: int

    def __post_init__(self):
        n = count("n", self.n)
        self.__dict__.update(n=n, dim=n, shape=(n,))

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
        """y itself."""
        return y if self._plain(x) and self._plain(y) else super().dexp_inv_mul(x, y)

    def advance(self, y, x):
        """y + x."""
        return y + x if self._plain(x) and self._plain(y) else super().advance(y, x)

    def _plain(self, x):
        """Whether x is one finite vector as kernels take it; other vectors may be good as well."""
        return type(x) is np.ndarray and x.shape == self.shape and x.dtype == FLOAT64 and x.dot(x) < np.inf

    def random(self, rng):
        return generator("rng", rng).normal(size=self.dim)

    def _ones(self, x):
        return np.tile(np.eye(self.dim), (*x.shape[:-1], 1, 1))

    def _compose(self, a, b):
        return a + b

    def _exp(self, x):
        return x.copy()

    def _dexp_inv_mul(self, x, y):
        return y

    def _rotation(self, x):
        return np.zeros(x.shape[:-1])[()]

    def _residual(self, a):
        return np.zeros(a.shape[:-1])
