"""The `LieGroup` protocol, the contract of every Lie group, and `rotation`, the largest rotation angle of exp(x)."""

from typing import Protocol, runtime_checkable

import numpy as np

from geomctrl.arguments import checked, shown
from geomctrl.errors import ArgumentError


@runtime_checkable
class LieGroup(Protocol):
    """Protocol of a Lie group G with algebra g = R^dim, for integrators, states and controllers.

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

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import groups
    >>> G, x, y = groups.SE3(), np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0]), np.ones(6)
    >>> a = G.exp(x)
    >>> same = np.allclose
    >>> same(G.log(a), x), same(G.compose(a, G.inverse(a)), G.identity()), same(G.advance(a, y), G.compose(a, G.exp(y)))
    (True, True, True)
    >>> same(G.Ad(a) @ y, G.vee(a @ G.hat(y) @ G.inverse(a))), same(G.ad(x) @ x, 0.0)
    (True, True)
    >>> same(G.dexp(x) @ G.dexp_inv(x), np.eye(6)), same(G.dexp_inv_mul(x, y), G.dexp_inv(x) @ y)
    (True, True)
    >>> bool(G.residual(G.random(np.random.default_rng(0))) < 1e-12)
    True
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
