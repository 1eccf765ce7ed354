"""Lie groups for states: Rn, SO3, SE3, SO3xR3 and products of them, behind one protocol.

Sources: Park and Chung 2005 section II; Mueller and Terze 2013 section 2, whose direct product is SO3xR3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from geomctrl.arguments import block_diagonal, checked, over_batch, rotation_residual, same_batch
from geomctrl.errors import ArgumentError
from geomctrl.kernels import groups as groups_kernels
from geomctrl.kernels import se3 as kernels
from geomctrl.kernels import so3 as so3_kernels
from geomctrl.kernels.jit import KernelTypeError

from . import se3, so3


@runtime_checkable
class LieGroup(Protocol):
    """What an integrator, a state or a controller may ask of a Lie group G with algebra g = R^dim.

    The implementer's contract:

    1. An element is one float64 array of the fixed shape `shape`; an algebra element is a vector of length `dim`.
    2. Every method takes any number of leading batch axes, the same for all its arguments, and returns new arrays
       (only `dexp_inv_mul` may return its argument).
    3. `compose`, `inverse` and `identity()` obey the group axioms; `exp` maps g to G and `log` inverts it near the
       identity, at every rotation by less than pi.
    4. `Ad(a)` is the matrix of x -> vee(a hat(x) a^-1), `ad(x)` that of the bracket y -> [x, y].
    5. `dexp` is right-trivialised: d/dt exp(x) = (dexp(x) xdot) exp(x) = exp(x) (dexp(-x) xdot); `dexp_inv` is its
       inverse, and may be huge near the singularities of `dexp`.
    6. `advance(y, x)` is compose(y, exp(x)) and `dexp_inv_mul(x, y)` is dexp_inv(x) @ y. Integrators call them in
       their inner loop: they check shapes but not values, so that nan propagates. The rest refuses nan and infinity.
    7. `residual(a)` is a distance of `a` from the group, 0 on it; nan propagates. `random(rng)` draws an element.
    8. A wrong shape raises ArgumentError. A group is immutable, hashable, compares by value and has a repr that
       evaluates to it.
    9. A group may offer `rotation(x)`, the largest angle [rad] by which exp(x) turns, max |Im eig ad(x)|: `dexp` is
       singular at 2 pi. Values are not checked. The function `rotation` serves groups without it, slowly.
    """

    @property
    def dim(self) -> int: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def identity(self) -> np.ndarray: ...
    def compose(self, a: np.ndarray, b: np.ndarray, /) -> np.ndarray: ...
    def inverse(self, a: np.ndarray, /) -> np.ndarray: ...
    def exp(self, x: np.ndarray, /) -> np.ndarray: ...
    def log(self, a: np.ndarray, /) -> np.ndarray: ...
    def Ad(self, a: np.ndarray, /) -> np.ndarray: ...
    def ad(self, x: np.ndarray, /) -> np.ndarray: ...
    def dexp(self, x: np.ndarray, /) -> np.ndarray: ...
    def dexp_inv(self, x: np.ndarray, /) -> np.ndarray: ...
    def dexp_inv_mul(self, x: np.ndarray, y: np.ndarray, /) -> np.ndarray: ...
    def advance(self, y: np.ndarray, x: np.ndarray, /) -> np.ndarray: ...
    def residual(self, a: np.ndarray, /) -> np.ndarray: ...
    def random(self, rng: np.random.Generator, /) -> np.ndarray: ...


def rotation(group: LieGroup, x: np.ndarray) -> np.ndarray:
    """The largest angle [rad] (...) by which exp(x) turns, x (..., group.dim): max |Im eig ad(x)|; nan makes it inf."""
    if (own := getattr(group, "rotation", None)) is not None:
        angle = own(x)
        return np.where(np.isfinite(angle), angle, np.inf)[()]
    finite = np.asarray(np.isfinite(x).all(axis=-1))
    angles = np.abs(np.linalg.eigvals(group.ad(np.where(finite[..., None], x, 0.0))).imag)
    return np.where(finite, angles.max(axis=-1, initial=0.0), np.inf)[()]


# --- groups --------------------------------------------------------------------------------------------------------


def _pair(names, a, b, shape_a, shape_b, finite=True):
    a, b = checked(names[0], a, shape_a, finite), checked(names[1], b, shape_b, finite)
    same_batch(names, a, b, (len(shape_a), len(shape_b)))
    return a, b


class _Group:
    """Checks arguments and leaves the work to the subclass's _compose, _exp, _dexp_inv_mul and _residual."""

    dim: int
    shape: tuple[int, ...]

    def compose(self, a, b):
        """The product a b."""
        return self._compose(*_pair(("a", "b"), a, b, self.shape, self.shape))

    def exp(self, x):
        """The element exp(x) of x (..., dim)."""
        return self._exp(checked("x", x, (self.dim,)))

    def advance(self, y, x):
        """y exp(x): x (..., dim) moves the element y along its own axes. Values are not checked."""
        y, x = _pair(("y", "x"), y, x, self.shape, (self.dim,), finite=False)
        return self._compose(y, self._exp(x))

    def dexp_inv_mul(self, x, y):
        """dexp_inv(x) @ y for x, y (..., dim), without the matrix. Values are not checked."""
        return self._dexp_inv_mul(*_pair(("x", "y"), x, y, (self.dim,), (self.dim,), finite=False))

    def rotation(self, x):
        """The largest angle [rad] (...) by which exp(x) turns, x (..., dim). Values are not checked."""
        return self._rotation(checked("x", x, (self.dim,), finite=False))

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
        """A distance of a from the group; nan where a is not finite."""
        a = checked("a", a, self.shape, finite=False)
        finite = np.isfinite(a).all(axis=tuple(range(-len(self.shape), 0)))
        with np.errstate(invalid="ignore", over="ignore"):
            return np.where(finite, self._residual(a), np.nan)[()]


@dataclass(frozen=True)
class Rn(_Group):
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


class _MatrixGroup(_Group):
    """A group with kernels for single elements, tried first: they refuse whatever needs checking or a batch."""

    dim: ClassVar[int]
    shape: ClassVar[tuple[int, int]]
    _advance_one: ClassVar[Callable]
    _dexp_inv_mul_one: ClassVar[Callable]

    def identity(self):
        return np.eye(self.shape[0], self.shape[1])

    def advance(self, y, x):
        try:
            return self._advance_one(y, x)
        except (KernelTypeError, ValueError):  # the latter if numba has no type at all for an argument
            return super().advance(y, x)

    def dexp_inv_mul(self, x, y):
        try:
            return self._dexp_inv_mul_one(x, y)
        except (KernelTypeError, ValueError):
            return super().dexp_inv_mul(x, y)

    def _compose(self, a, b):
        return a @ b

    def _rotation(self, x):
        return np.linalg.norm(x[..., :3], axis=-1)


@dataclass(frozen=True)
class SO3(_MatrixGroup):
    """Rotations: elements (..., 3, 3), algebra vectors omega (..., 3), body-fixed."""

    dim: ClassVar = 3
    shape: ClassVar = (3, 3)
    _advance_one = staticmethod(so3_kernels.advance_kernel)
    _dexp_inv_mul_one = staticmethod(so3_kernels.dexp_inv_one_kernel)
    inverse = staticmethod(so3.inverse)
    log = staticmethod(so3.log)
    Ad = staticmethod(so3.Ad)
    ad = staticmethod(so3.ad)
    dexp = staticmethod(so3.dexp)
    dexp_inv = staticmethod(so3.dexp_inv)

    def random(self, rng):
        """Uniform, from the QR factors of a normal matrix."""
        Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
        Q = Q * np.sign(np.diag(R))
        return Q if np.linalg.det(Q) > 0.0 else -Q

    def _exp(self, x):
        return over_batch(so3_kernels.exp_kernel, 1, x)

    def _dexp_inv_mul(self, x, y):
        return over_batch(so3_kernels.dexp_inv_kernel, 1, x, y)

    def _residual(self, a):
        return rotation_residual(a)


@dataclass(frozen=True)
class SE3(_MatrixGroup):
    """Rigid transforms: elements (..., 4, 4), algebra vectors body-fixed twists (omega, v) (..., 6)."""

    dim: ClassVar = 6
    shape: ClassVar = (4, 4)
    _advance_one = staticmethod(kernels.advance_kernel)
    _dexp_inv_mul_one = staticmethod(kernels.dexp_inv_one_kernel)
    inverse = staticmethod(se3.inverse)
    log = staticmethod(se3.log)
    Ad = staticmethod(se3.Ad)
    ad = staticmethod(se3.ad)
    dexp = staticmethod(se3.dexp)
    dexp_inv = staticmethod(se3.dexp_inv)

    def random(self, rng):
        return np.vstack((SO3xR3().random(rng), (0.0, 0.0, 0.0, 1.0)))

    def _exp(self, x):
        return over_batch(kernels.exp_kernel, 1, x)

    def _dexp_inv_mul(self, x, y):
        return over_batch(kernels.dexp_inv_kernel, 1, x, y)

    def _residual(self, a):
        last_row = np.abs(a[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(axis=-1)
        return np.maximum(rotation_residual(a[..., :3, :3]), last_row)


@dataclass(frozen=True)
class SO3xR3(_MatrixGroup):
    """Poses [R | p] (..., 3, 4) multiplied componentwise; algebra vectors (omega, pdot) (..., 6).

    omega is body-fixed, pdot in inertial axes. Mueller and Terze 2013 (16)-(19).
    """

    dim: ClassVar = 6
    shape: ClassVar = (3, 4)
    _advance_one = staticmethod(groups_kernels._advance_SO3xR3)
    _dexp_inv_mul_one = staticmethod(groups_kernels._dexp_inv_mul_SO3xR3)

    def inverse(self, a):
        a = checked("a", a, self.shape)
        return np.concatenate((so3.inverse(a[..., :3]), -a[..., 3:]), axis=-1)

    def log(self, a):
        a = checked("a", a, self.shape)
        return np.concatenate((so3.log(a[..., :3]), a[..., 3]), axis=-1)

    def Ad(self, a):
        return block_diagonal(so3.Ad(checked("a", a, self.shape)[..., :3]), np.eye(3))

    def ad(self, x):
        return block_diagonal(so3.ad(checked("x", x, (6,))[..., :3]), np.zeros((3, 3)))

    def dexp(self, x):
        return block_diagonal(so3.dexp(checked("x", x, (6,))[..., :3]), np.eye(3))

    def dexp_inv(self, x):
        return block_diagonal(so3.dexp_inv(checked("x", x, (6,))[..., :3]), np.eye(3))

    def random(self, rng):
        return np.column_stack((SO3().random(rng), rng.normal(size=3)))

    def _compose(self, a, b):
        return np.concatenate((a[..., :3] @ b[..., :3], a[..., 3:] + b[..., 3:]), axis=-1)

    def _exp(self, x):
        return np.concatenate((over_batch(so3_kernels.exp_kernel, 1, x[..., :3]), x[..., 3:, None]), axis=-1)

    def _dexp_inv_mul(self, x, y):
        return np.concatenate((over_batch(so3_kernels.dexp_inv_kernel, 1, x[..., :3], y[..., :3]), y[..., 3:]), axis=-1)

    def _residual(self, a):
        return rotation_residual(a[..., :3])


# --- products ------------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A group within a product: where its raveled element and its algebra vector lie."""

    group: LieGroup
    y: slice
    x: slice


class Product(_Group):
    """The direct product of groups: an element is the concatenation of its factors' raveled elements, (..., size).

    Algebra vectors are concatenated likewise. `split` and `join` go between an element and its factors' elements.
    """

    groups: tuple[LieGroup, ...]
    _parts: tuple[_Part, ...]
    _inner: tuple[_Part, ...]  # the same layout in fewer pieces: products opened, neighbouring Rn joined
    _runs: tuple[tuple[LieGroup, slice, int], ...]  # equal neighbours as one: the factor, its share of x, how often
    _vector: Rn | None  # set if nothing but Rn is inside: then an element is one vector

    def __init__(self, *groups: LieGroup):
        if not groups:
            raise ArgumentError("groups: expected at least one")
        for i, g in enumerate(groups):
            if isinstance(g, type) or not isinstance(g, LieGroup):
                raise ArgumentError(f"groups[{i}]: expected a LieGroup, got {g!r:.80}")
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
        """The factors' elements, arrays (..., *group.shape), of the element y (..., size)."""
        return _elements(self._parts, checked("y", y, self.shape, finite=False))

    def join(self, parts: Sequence) -> np.ndarray:
        """The element (..., size) made of its factors' elements: the inverse of split."""
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
        """dexp_inv(x) @ y for x, y (..., dim), without the matrix. Values are not checked."""
        if self._vector:
            return y
        if not (type(x) is type(y) is np.ndarray and x.shape == y.shape == (self.dim,)):
            x, y = _pair(("x", "y"), x, y, (self.dim,), (self.dim,), finite=False)
        out = np.empty(x.shape)
        for g, _, part in self._inner:
            out[..., part] = g.dexp_inv_mul(x[..., part], y[..., part])
        return out

    def advance(self, y, x):
        """y exp(x): x (..., dim) moves the element y along its own axes. Values are not checked."""
        if self._vector:
            return self._vector.advance(y, x)
        if not (type(x) is type(y) is np.ndarray and y.shape == self.shape and x.shape == (self.dim,)):
            y, x = _pair(("y", "x"), y, x, self.shape, (self.dim,), finite=False)
        out = np.empty(y.shape)
        if y.ndim == 1:
            for g, at, part in self._inner:
                out[at] = g.advance(y[at].reshape(g.shape), x[part]).ravel()
        else:
            batch = y.shape[:-1]
            for g, at, part in self._inner:
                step = g.advance(y[..., at].reshape(batch + g.shape), x[..., part])
                out[..., at] = step.reshape(out[..., at].shape)
        return out

    def _compose(self, a, b):
        pairs = zip(_elements(self._inner, a), _elements(self._inner, b))
        return _joined(self._inner, [part.group.compose(p, q) for part, (p, q) in zip(self._inner, pairs)])

    def _exp(self, x):
        return _joined(self._inner, [g.exp(x[..., part]) for g, _, part in self._inner])

    def _rotation(self, x):
        lead = x.shape[:-1]
        angles = [rotation(g, x[..., at].reshape(*lead, n, g.dim)).max(axis=-1) for g, at, n in self._runs]
        return reduce(np.maximum, angles)

    def _residual(self, a):
        return reduce(np.maximum, self._of_element("residual", a))

    def _of_element(self, method, a):
        parts = _elements(self._inner, checked("a", a, self.shape, finite=method != "residual"))
        return [getattr(part.group, method)(p) for part, p in zip(self._inner, parts)]

    def _of_algebra(self, method, x):
        x = checked("x", x, (self.dim,))
        return [getattr(g, method)(x[..., part]) for g, _, part in self._inner]


def _merged(groups):
    """The factors of nested products in a row, neighbouring Rn as one."""
    leaves = []
    for g in groups:
        for leaf in (part.group for part in g._inner) if isinstance(g, Product) else (g,):
            if type(leaf) is Rn and leaves and type(leaves[-1]) is Rn:  # a subclass may multiply otherwise
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
    for g, _, at in parts:
        if runs and runs[-1][0] == g:
            _, before, n = runs.pop()
            runs.append((g, slice(before.start, at.stop), n + 1))
        else:
            runs.append((g, at, 1))
    return tuple(runs)


def _elements(parts, y):
    return [y[..., at].reshape(y.shape[:-1] + g.shape) for g, at, _ in parts]


def _joined(parts, elements):
    batch = elements[0].shape[: elements[0].ndim - len(parts[0].group.shape)]
    return np.concatenate([a.reshape(*batch, prod(g.shape)) for a, (g, _, _) in zip(elements, parts)], axis=-1)
