"""Argument checks and batches for all groups, `so3` and `se3`, and the group R^n."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl import arguments
from geomctrl.arguments import (
    FLOAT64,
    ROTATION_TOLERANCE,
    checked,
    count,
    generator,
    rotation_residual,
    same_batch,
    without_overflow_warnings,
)
from geomctrl.compiler.kernel_traces import run
from geomctrl.tracing.numbers import has_symbols, holds


def checked_pair(names, a, b, shape_a, shape_b):
    """Return the two arguments as arrays for the kernels, with equal leading axes."""
    a, b = checked(names[0], a, shape_a), checked(names[1], b, shape_b)
    if a.ndim > len(shape_a) or b.ndim > len(shape_b):
        same_batch(names, a, b, (len(shape_a), len(shape_b)))
    return a, b


class CheckedGroup:
    """Base class that checks arguments and then calls the subclass's _compose, _exp, _dexp_inv_mul and _residual."""

    dim: int
    shape: tuple[int, ...]

    def compose(self, a, b):
        """Return the product a b."""
        a, b = checked_pair(("a", "b"), a, b, self.shape, self.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._compose(a, b)

    def exp(self, x):
        """Return the element exp(x) for x (..., dim)."""
        return self._exp(checked("x", x, (self.dim,)))

    def advance(self, y, x):
        """Return y exp(x): x (..., dim) moves the element y in body-fixed axes. y is not checked."""
        y, x = checked_pair(("y", "x"), y, x, self.shape, (self.dim,))
        return self._compose(y, self._exp(x))

    def dexp_inv_mul(self, x, y):
        """Return dexp_inv(x) @ y for x, y (..., dim), without building the matrix."""
        return self._dexp_inv_mul(*checked_pair(("x", "y"), x, y, (self.dim,), (self.dim,)))

    @without_overflow_warnings
    def rotation(self, x):
        """Return the largest rotation angle [rad] of exp(x).

        Parameters
        ----------
        x : array_like, shape (..., dim)

        Returns
        -------
        ndarray, shape (...,)

        Examples
        --------
        >>> import numpy as np
        >>> from geomctrl import groups
        >>> G = groups.Product(groups.SO3(), groups.Rn(2))
        >>> float(G.rotation(np.array([0.0, 0.0, 0.3, 1.0, 2.0])))
        0.3
        """
        return self._rotation(checked("x", x, (self.dim,)))

    def _compose(self, a, b) -> np.ndarray:
        raise NotImplementedError

    def _exp(self, x) -> np.ndarray:
        raise NotImplementedError

    def _dexp_inv_mul(self, x, y) -> np.ndarray:
        raise NotImplementedError

    def _rotation(self, x) -> np.ndarray:
        raise NotImplementedError

    def _residual(self, a) -> np.ndarray:
        raise NotImplementedError

    def residual(self, a):
        """Return a distance of a from the group; infinity if it overflows."""
        a = checked("a", a, self.shape)
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.asarray(self._residual(a))
        return np.asarray(np.where(np.isfinite(off), off, np.inf))[()]


def block_diagonal(*blocks: np.ndarray) -> np.ndarray:
    """Square blocks (..., n_i, n_i) on the diagonal of (..., n, n); a block without leading axes is used for all."""
    batch = np.broadcast_shapes(*(b.shape[:-2] for b in blocks))
    n = sum(b.shape[-1] for b in blocks)
    out = np.zeros((*batch, n, n))
    k = 0
    for b in blocks:
        span = slice(k, k + b.shape[-1])
        out[..., span, span] = b
        k = span.stop
    return out


def over_batch(kernel: Callable, core: int, *arrays: np.ndarray) -> np.ndarray:
    """Call `kernel`, which takes one leading axis, on arrays with any number of axes before their last `core` axes."""
    batch = arrays[0].shape[: arrays[0].ndim - core]
    out = run(kernel, *(np.ascontiguousarray(a.reshape(-1, *a.shape[a.ndim - core :])) for a in arrays))
    return out.reshape(batch + out.shape[1:])


def matrix_of(kernel: Callable, x: np.ndarray) -> np.ndarray:
    """Return the matrices (..., n, n) of the linear maps y -> kernel(x, y), computed column by column."""
    n = x.shape[-1]
    columns = over_batch(kernel, 1, np.repeat(x[..., None, :], n, axis=-2), np.tile(np.eye(n), (*x.shape[:-1], 1, 1)))
    return np.ascontiguousarray(columns.swapaxes(-1, -2))


def differential(kernel: Callable, names: tuple[str, str], dim: int, x: ArrayLike, y: ArrayLike | None) -> np.ndarray:
    """Return the matrices (..., dim, dim) of y -> kernel(x, y), or, if y is given, kernel(x, y) (..., dim)."""
    a = checked(names[0], x, (dim,))
    if y is None:
        return matrix_of(kernel, a)
    b = checked(names[1], y, (dim,))
    same_batch(names, a, b, (1, 1))
    return over_batch(kernel, 1, a, b)


def require_rotation(name: str, R: np.ndarray) -> None:
    """Call `arguments.require_rotation` for numbers; symbols are assumed to be rotations."""
    if has_symbols(R):
        holds(rotation_residual(R) <= ROTATION_TOLERANCE)
    else:
        arguments.require_rotation(name, R)


@dataclass(frozen=True)
class Rn(CheckedGroup):
    """R^n with addition: elements and algebra vectors are (..., n).

    Parameters
    ----------
    n : int
        Dimension, >= 0.

    Examples
    --------
    >>> from geomctrl import groups
    >>> groups.Rn(2).compose([1.0, 2.0], [3.0, 4.0])
    array([4., 6.])
    """

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
        """Return y itself."""
        return y if self._plain(x) and self._plain(y) else super().dexp_inv_mul(x, y)

    def advance(self, y, x):
        """Return y + x."""
        return y + x if self._plain(x) and self._plain(y) else super().advance(y, x)

    def _plain(self, x):
        """Whether x is one finite vector that the kernels accept directly; other vectors may also be valid."""
        return type(x) is np.ndarray and x.shape == self.shape and x.dtype == FLOAT64 and math.isfinite(sum(x.tolist()))

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
