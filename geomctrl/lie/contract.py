"""The `LieGroup` protocol, the group R^n, and the argument checks that the groups, `so3` and `se3` share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

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
    shown,
)
from geomctrl.compiler.kernel_traces import run
from geomctrl.errors import ArgumentError
from geomctrl.tracing.numbers import has_symbols, holds


@runtime_checkable
class LieGroup(Protocol):
    """Protocol of a Lie group G with algebra g = R^dim, as integrators, states and controllers use it.

    Notes
    -----
    Rules for implementations:

    1. An element is one float64 array of the fixed shape `shape`; an algebra element is a vector of length `dim`.
    2. Every method accepts any number of leading batch axes, the same for all its arguments, and returns new arrays
       (only `dexp_inv_mul` may return its argument).
    3. `compose`, `inverse` and `identity()` satisfy the group axioms. `exp` maps g to G, and `log` is its inverse for
       rotations by less than pi.
    4. `Ad(a)` is the matrix of x -> vee(a hat(x) a^-1), `ad(x)` that of the bracket y -> [x, y].
    5. `dexp` is right-trivialised: d/dt exp(x) = (dexp(x) xdot) exp(x) = exp(x) (dexp(-x) xdot). `dexp_inv` is its
       inverse, which may be large near the singularities of `dexp`.
    6. `advance(y, x)` is compose(y, exp(x)) and `dexp_inv_mul(x, y)` is dexp_inv(x) @ y. Integrators call them in their
       inner loop, so they need not check that y is a group element.
    7. `residual(a)` is a distance of `a` from the group, 0 for group elements. `random(rng)` draws an element.
    8. Wrong shapes, nan, infinity and anything but real numbers raise ArgumentError. A group is immutable and hashable,
       compares by value and has a repr that evaluates to it.
    9. A group of matrices may define `hat(x)`, the matrix of an algebra vector, and its inverse `vee(X)`. A group may
       define `rotation(x)`, the largest rotation angle [rad] of exp(x), max |Im eig ad(x)|; `dexp` is
       singular at 2 pi. The function `rotation` computes it for groups without it, more slowly.
    """

    @property
    def dim(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def identity(self) -> np.ndarray:
        """Return the identity element.

        Returns
        -------
        array
            Group element.
        """
        ...

    def compose(self, a: np.ndarray, b: np.ndarray, /) -> np.ndarray:
        """Return the product a b.

        Parameters
        ----------
        a, b : array
            Group elements.

        Returns
        -------
        array
            Group element.
        """
        ...

    def inverse(self, a: np.ndarray, /) -> np.ndarray:
        """Return a^-1.

        Parameters
        ----------
        a : array
            Group element, with any leading batch axes.

        Returns
        -------
        array
            Group element.
        """
        ...

    def exp(self, x: np.ndarray, /) -> np.ndarray:
        """Return exp(x).

        Parameters
        ----------
        x : array (..., dim)
            Vector of the algebra.

        Returns
        -------
        array
            Group element.

        Examples
        --------
        >>> import numpy as np
        >>> from geomctrl import groups
        >>> bool(np.allclose(groups.SO3().exp([0.0, 0.0, np.pi / 2]) @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
        True
        """
        ...

    def log(self, a: np.ndarray, /) -> np.ndarray:
        """Return the vector x with exp(x) = a.

        Parameters
        ----------
        a : array
            Group element, with any leading batch axes.

        Returns
        -------
        array (..., dim)
            Unique for rotations by less than pi.
        """
        ...

    def Ad(self, a: np.ndarray, /) -> np.ndarray:
        """Return the matrix of x -> vee(a hat(x) a^-1).

        Parameters
        ----------
        a : array
            Group element, with any leading batch axes.

        Returns
        -------
        array (..., dim, dim)
        """
        ...

    def ad(self, x: np.ndarray, /) -> np.ndarray:
        """Return the matrix of the bracket y -> [x, y].

        Parameters
        ----------
        x : array (..., dim)
            Vector of the algebra.

        Returns
        -------
        array (..., dim, dim)
        """
        ...

    def dexp(self, x: np.ndarray, /) -> np.ndarray:
        """Return the right-trivialised differential of exp at x.

        Parameters
        ----------
        x : array (..., dim)
            Vector of the algebra.

        Returns
        -------
        array (..., dim, dim)
            d/dt exp(x) = (dexp(x) xdot) exp(x).
        """
        ...

    def dexp_inv(self, x: np.ndarray, /) -> np.ndarray:
        """Return the inverse of `dexp(x)`.

        Parameters
        ----------
        x : array (..., dim)
            Vector of the algebra.

        Returns
        -------
        array (..., dim, dim)
        """
        ...

    def dexp_inv_mul(self, x: np.ndarray, y: np.ndarray, /) -> np.ndarray:
        """Return dexp_inv(x) @ y.

        Parameters
        ----------
        x, y : array (..., dim)
            Vectors of the algebra.

        Returns
        -------
        array (..., dim)
        """
        ...

    def advance(self, y: np.ndarray, x: np.ndarray, /) -> np.ndarray:
        """Return y exp(x): the element y moved by x, in body-fixed axes.

        Parameters
        ----------
        y : array
            Group element.
        x : array (..., dim)
            Vector of the algebra.

        Returns
        -------
        array
            Group element.
        """
        ...

    def residual(self, a: np.ndarray, /) -> np.ndarray:
        """Return a distance of an array from the group.

        Parameters
        ----------
        a : array
            Of the shape of an element.

        Returns
        -------
        array (...)
            0 for group elements.
        """
        ...

    def random(self, rng: np.random.Generator, /) -> np.ndarray:
        """Return a random element.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array
            Group element.
        """
        ...


def rotation(group: LieGroup, x: np.ndarray) -> np.ndarray:
    """Return the largest rotation angle [rad] (...) of exp(x), x (..., group.dim): max |Im eig ad(x)|.

    Infinity if the group's own method returns nan.
    """
    own = None if isinstance(group, type) else getattr(group, "rotation", None)
    if own is None:
        if isinstance(group, type) or not hasattr(group, "ad"):
            raise ArgumentError(f"group: expected a LieGroup, SO3() for example, got {shown(group)}")
        x = checked("x", x, (group.dim,))
        return np.asarray(np.abs(np.linalg.eigvals(group.ad(x)).imag).max(axis=-1, initial=0.0))[()]
    angle = own(x)
    return np.asarray(np.where(np.isfinite(angle), angle, np.inf))[()]


def require_group(name: str, x: object) -> None:
    """Raise ArgumentError, naming the argument `name`, unless x is an instance of a Lie group."""
    if isinstance(x, type) or not isinstance(x, LieGroup):
        raise ArgumentError(f"{name}: expected a LieGroup, SO3() for example, got {shown(x)}")


def checked_pair(names, a, b, shape_a, shape_b):
    """Return the two arguments in the form that the kernels take, with the same leading axes."""
    a, b = checked(names[0], a, shape_a), checked(names[1], b, shape_b)
    same_batch(names, a, b, (len(shape_a), len(shape_b)))
    return a, b


class CheckedGroup:
    """Base class that checks arguments and then calls the subclass's _compose, _exp, _dexp_inv_mul and _residual."""

    dim: int
    shape: tuple[int, ...]

    def compose(self, a, b):
        """Return the product a b."""
        return self._compose(*checked_pair(("a", "b"), a, b, self.shape, self.shape))

    def exp(self, x):
        """Return the element exp(x) for x (..., dim)."""
        return self._exp(checked("x", x, (self.dim,)))

    def advance(self, y, x):
        """Return y exp(x): x (..., dim) moves the element y in body-fixed axes. It is not checked that y is a group
        element.
        """
        y, x = checked_pair(("y", "x"), y, x, self.shape, (self.dim,))
        return self._compose(y, self._exp(x))

    def dexp_inv_mul(self, x, y):
        """Return dexp_inv(x) @ y for x, y (..., dim), without building the matrix."""
        return self._dexp_inv_mul(*checked_pair(("x", "y"), x, y, (self.dim,), (self.dim,)))

    def rotation(self, x):
        """Return the largest rotation angle [rad] of exp(x).

        Parameters
        ----------
        x : array_like, shape (..., dim)

        Returns
        -------
        ndarray, shape (...,)
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


def over_batch(kernel: Callable, core: int, *arrays: np.ndarray) -> np.ndarray:
    """Call `kernel`, which takes one leading axis, on arrays with any number of axes before their last `core` axes."""
    batch = arrays[0].shape[: arrays[0].ndim - core]
    out = run(kernel, *(np.ascontiguousarray(a.reshape(-1, *a.shape[a.ndim - core :])) for a in arrays))
    return out.reshape(batch + out.shape[1:])


def matrix_of(kernel: Callable, x: np.ndarray) -> np.ndarray:
    """The matrices (..., n, n) of the linear maps y -> kernel(x, y), from their columns."""
    n = x.shape[-1]
    columns = over_batch(kernel, 1, np.repeat(x[..., None, :], n, axis=-2), np.tile(np.eye(n), (*x.shape[:-1], 1, 1)))
    return np.ascontiguousarray(columns.swapaxes(-1, -2))


def differential(kernel: Callable, names: tuple[str, str], dim: int, x: ArrayLike, y: ArrayLike | None) -> np.ndarray:
    """The matrices (..., dim, dim) of y -> kernel(x, y); with y, kernel(x, y) itself (..., dim)."""
    a = checked(names[0], x, (dim,))
    if y is None:
        return matrix_of(kernel, a)
    b = checked(names[1], y, (dim,))
    same_batch(names, a, b, (1, 1))
    return over_batch(kernel, 1, a, b)


def require_rotation(name: str, R: np.ndarray) -> None:
    """`arguments.require_rotation` for numbers; symbols are assumed to be rotations."""
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
