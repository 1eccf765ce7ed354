"""Direct products of Lie groups: states that consist of several parts, stored in one flat array."""

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import NamedTuple

import numpy as np

from geomctrl.arguments import FLOAT64, checked, listed, same_batch
from geomctrl.errors import ArgumentError

from .checked_group import CheckedGroup, Rn, block_diagonal, checked_pair
from .contract import LieGroup, require_group, rotation


class _Part(NamedTuple):
    """A factor of a product, and the slices of its flattened element and its algebra vector."""

    group: LieGroup
    y: slice
    x: slice


class Product(CheckedGroup):
    """The direct product of groups.

    An element (..., size) is the concatenation of the flattened elements of the factors. Algebra vectors are
    concatenated in the same way. `split` and `join` convert between an element and its factors.

    Parameters
    ----------
    *groups : LieGroup
        The factors.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import groups
    >>> G = groups.Product(groups.SO3(), groups.Rn(2))
    >>> R, x = G.split(G.exp(np.array([0.0, 0.0, 0.3, 1.0, 2.0])))
    >>> R.shape, x
    ((3, 3), array([1., 2.]))
    """

    groups: tuple[LieGroup, ...]
    _parts: tuple[_Part, ...]
    _inner: tuple[_Part, ...]  # the same layout with nested products expanded and neighbouring Rn merged
    _runs: tuple[tuple[LieGroup, slice, int], ...]  # equal neighbours merged: factor, slice of x, number of repetitions
    _vector: Rn | None  # set if all factors are Rn: an element is then one vector

    def __init__(self, *groups: LieGroup):
        if not groups:
            raise ArgumentError("groups: expected at least one")
        for i, g in enumerate(groups):
            require_group(f"groups[{i}]", g)
        parts = _laid_out(groups)
        inner = _laid_out(_merged(groups))
        vector = inner[0].group if len(inner) == 1 and type(inner[0].group) is Rn else None
        self.__dict__.update(groups=groups, dim=parts[-1].x.stop, shape=(parts[-1].y.stop,))
        self.__dict__.update(_parts=parts, _inner=inner, _runs=_runs(inner), _vector=vector)

    def __setattr__(self, name, value):
        raise AttributeError(f"a Product is immutable: can not set {name}")

    def __eq__(self, other):
        return self.groups == other.groups if isinstance(other, Product) else NotImplemented

    def __hash__(self):
        return hash((Product, self.groups))

    def __repr__(self):
        return f"Product({', '.join(map(repr, self.groups))})"

    def split(self, y: np.ndarray) -> list[np.ndarray]:
        """Return the elements of the factors.

        Parameters
        ----------
        y : array, shape (..., size)
            Element of the product.

        Returns
        -------
        list of ndarray
            Arrays `(..., *group.shape)`, one for each factor.

        Examples
        --------
        >>> from geomctrl import groups
        >>> G = groups.Product(groups.SO3(), groups.Rn(2))
        >>> [part.shape for part in G.split(G.identity())]
        [(3, 3), (2,)]
        """
        return _elements(self._parts, checked("y", y, self.shape, finite=False))

    def join(self, parts: Sequence) -> np.ndarray:
        """Return the element of the product with given elements of the factors: the inverse of `split`.

        Parameters
        ----------
        parts : sequence of array
            One element `(..., *group.shape)` for each factor.

        Returns
        -------
        ndarray, shape (..., size)

        Examples
        --------
        >>> from geomctrl import groups
        >>> G = groups.Product(groups.SO3(), groups.Rn(2))
        >>> G.join([groups.SO3().identity(), [1.0, 2.0]]).shape
        (11,)
        """
        parts = listed("parts", parts, f"{len(self.groups)} elements")
        if len(parts) != len(self.groups):
            raise ArgumentError(f"parts: expected {len(self.groups)} elements, got {len(parts)}")
        names = [f"parts[{i}]" for i in range(len(parts))]
        arrays = [checked(name, a, g.shape, finite=False) for name, a, g in zip(names, parts, self.groups)]
        for name, a, g in zip(names, arrays, self.groups):
            same_batch((names[0], name), arrays[0], a, (len(self.groups[0].shape), len(g.shape)))
        return _joined(self._parts, arrays)

    def identity(self):
        return _joined(self._parts, [g.identity() for g in self.groups])

    def random(self, rng):
        return _joined(self._parts, [g.random(rng) for g in self.groups])

    def inverse(self, a):
        return _joined(self._inner, self._of_element("inverse", a))

    def log(self, a):
        return np.concatenate(self._of_element("log", a), axis=-1)

    def Ad(self, a):
        return block_diagonal(*self._of_element("Ad", a))

    def ad(self, x):
        return block_diagonal(*self._of_algebra("ad", x))

    def dexp(self, x):
        return block_diagonal(*self._of_algebra("dexp", x))

    def dexp_inv(self, x):
        return block_diagonal(*self._of_algebra("dexp_inv", x))

    def dexp_inv_mul(self, x, y):
        """Return dexp_inv(x) @ y for x, y (..., dim), without building the matrix."""
        if self._vector:
            return self._vector.dexp_inv_mul(x, y)
        if not (_is_plain(x, (self.dim,)) and _is_plain(y, (self.dim,))):
            x, y = checked_pair(("x", "y"), x, y, (self.dim,), (self.dim,))
        out = np.empty(x.shape)
        for g, _, part in self._inner:
            out[..., part] = g.dexp_inv_mul(x[..., part], y[..., part])
        return out

    def advance(self, y, x):
        """Return y exp(x): x (..., dim) moves the element y in body-fixed axes. y is not checked."""
        if self._vector:
            return self._vector.advance(y, x)
        if not (_is_plain(y, self.shape) and _is_plain(x, (self.dim,))):
            y, x = checked_pair(("y", "x"), y, x, self.shape, (self.dim,))
        out = np.empty(y.shape)
        if y.ndim == 1:
            for g, place, part in self._inner:
                out[place] = g.advance(y[place].reshape(g.shape), x[part]).ravel()
        else:
            batch = y.shape[:-1]
            for g, place, part in self._inner:
                step = g.advance(y[..., place].reshape(batch + g.shape), x[..., part])
                out[..., place] = step.reshape(out[..., place].shape)
        return out

    def _compose(self, a, b):
        pairs = zip(_elements(self._inner, a), _elements(self._inner, b))
        return _joined(self._inner, [part.group.compose(p, q) for part, (p, q) in zip(self._inner, pairs)])

    def _exp(self, x):
        return _joined(self._inner, [g.exp(x[..., part]) for g, _, part in self._inner])

    def _rotation(self, x):
        lead = x.shape[:-1]
        angles = [rotation(g, x[..., span].reshape(*lead, n, g.dim)).max(axis=-1) for g, span, n in self._runs]
        return reduce(np.maximum, angles)

    def _residual(self, a):
        return reduce(np.maximum, self._of_element("residual", a))

    def _of_element(self, method, a):
        results = []
        for part, p in zip(self._inner, _elements(self._inner, checked("a", a, self.shape))):
            try:
                results.append(getattr(part.group, method)(p))
            except ArgumentError as error:
                place = f"a[..., {part.y.start}:{part.y.stop}]"
                raise ArgumentError(f"{place}: expected an element of {part.group!r}: {error}") from None
        return results

    def _of_algebra(self, method, x):
        x = checked("x", x, (self.dim,))
        return [getattr(g, method)(x[..., part]) for g, _, part in self._inner]


def _is_plain(x, shape):
    """Whether x is one array that the kernels accept directly; the factors check its values."""
    return type(x) is np.ndarray and x.shape == shape and x.dtype == FLOAT64


def _merged(groups):
    """Return the factors of nested products in one list, with neighbouring Rn merged."""
    leaves = []
    for g in groups:
        for leaf in (part.group for part in g._inner) if isinstance(g, Product) else (g,):
            if type(leaf) is Rn and leaves and type(leaves[-1]) is Rn:  # a subclass may redefine the product
                leaf = Rn(leaves.pop().n + leaf.n)
            leaves.append(leaf)
    return leaves


def _laid_out(groups):
    parts, i, j = [], 0, 0
    for g in groups:
        size = prod(g.shape)
        parts.append(_Part(g, slice(i, i + size), slice(j, j + g.dim)))
        i, j = i + size, j + g.dim
    return tuple(parts)


def _runs(parts):
    runs = []
    for g, _, span in parts:
        if runs and runs[-1][0] == g:
            _, before, n = runs.pop()
            runs.append((g, slice(before.start, span.stop), n + 1))
        else:
            runs.append((g, span, 1))
    return tuple(runs)


def _elements(parts, y):
    return [y[..., place].reshape(y.shape[:-1] + g.shape) for g, place, _ in parts]


def _joined(parts, elements):
    batch = elements[0].shape[: elements[0].ndim - len(parts[0].group.shape)]
    return np.concatenate([a.reshape(*batch, prod(g.shape)) for a, (g, _, _) in zip(elements, parts)], axis=-1)
