"""scipy's `Rotation` and `Slerp` on symbols: single rotations, as unit quaternions in scipy's order (x, y, z, w).

The formulas are those of scipy, and so are the signs of quaternions. Series near zero are written in the square of an
angle, so that derivatives exist there. There is no result where scipy raises, where it warns of gimbal lock, and where
a matrix is not orthogonal up to rounding.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import SEQUENCES, SymbolArray, has_symbols, symbol_array
from .choices import entries
from .requirements import on_symbols, require
from .symbols import Condition, UntraceableError, binary, both, caller, invert, is_symbol, relation, unary, where

MODULE = "scipy.spatial.transform"
SYMBOLIC = "_symbolic"  # attribute of a constant rotation: the same on symbols
SMALL = 1e-3  # angles up to this are computed by series [rad]
GIMBAL = 1e-7  # scipy warns of gimbal lock up to this angle [rad]
ORTHOGONAL = 1e-12, 1e-5  # largest error of the entries of M M^T off and on the diagonal, below which scipy keeps M


def rotation_class() -> Any:
    """scipy's class of rotations; None before scipy.spatial.transform is imported."""
    return getattr(sys.modules.get(MODULE), "Rotation", None)


def is_rotation(x: Any) -> bool:
    """Whether x is one or several rotations of scipy."""
    return x is not None and type(x) in (base := rotation_class(), _constant_class(base))


def is_single_rotation(x: Any) -> bool:
    return is_rotation(x) and bool(x.single)


def quaternion(x: Any) -> list[Any] | None:
    """The quaternion of a rotation, with numbers or symbols; None for anything else."""
    if type(x) is SymbolicRotation:
        return x._q
    return x.as_quat().tolist() if is_single_rotation(x) else None


class _OfScipy(type):
    """The names of scipy's class, for other threads and for isinstance."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is SymbolicRotation or is_rotation(x)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.from_quat(*args, **kwargs) if on_symbols() else rotation_class()(*args, **kwargs)

    def __getattr__(cls, name: str) -> Any:
        member = getattr(rotation_class(), name)
        if on_symbols() and name[:2] != "__":
            _refuse(name)
        return member


def _refuse(name: str) -> Any:
    raise UntraceableError(f"Rotation.{name} can not be traced{caller()}: use as_quat, as_matrix or as_rotvec")


def _constructor(values: Callable[..., list[Any]]) -> Any:
    """A static method that returns the rotation of a quaternion; of numbers, scipy's own result."""
    name, signature = values.__name__, inspect.signature(values)

    def create(*args: Any, **kwargs: Any) -> Any:
        original = getattr(rotation_class(), name)
        if not on_symbols():
            return original(*args, **kwargs)
        if not any(map(_depends, (*args, *kwargs.values()))):
            return of_scipy(original(*map(_numbers, args), **{key: _numbers(x) for key, x in kwargs.items()}))
        return of_quaternion(_bound(name, signature, values)(*args, **kwargs))

    return staticmethod(functools.update_wrapper(create, values))


def _bound(name: str, signature: inspect.Signature, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that refuses arguments which its signature does not name."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UntraceableError(f"only Rotation.{name}{signature} can be traced{caller()}: {error}") from None
        return function(*args, **kwargs)

    return call


def _depends(x: Any) -> bool:
    """Whether an argument holds symbols."""
    if not has_symbols(x) and not isinstance(x, SEQUENCES):
        return False
    return any(is_symbol(y) or isinstance(y, Condition) for y in entries(x).ravel().tolist())


def _numbers(x: Any) -> Any:
    """An argument without symbols for scipy."""
    return np.array(entries(x), float) if isinstance(x, (np.ndarray, *SEQUENCES)) else x


def _vector(x: Any, *shape: int) -> list[Any]:
    """The entries of one quaternion, vector or matrix."""
    array = entries(x)
    if array.shape[-len(shape) :] != shape:
        raise ValueError(f"Expected shape {shape}, got {array.shape}")
    if array.shape != shape:
        raise UntraceableError(f"only single rotations can be traced{caller()}, got an array of shape {array.shape}")
    return array.ravel().tolist()


def _squared(x: list[Any]) -> Any:
    return sum((y * y for y in x[1:]), x[0] * x[0])


def _normalized(q: list[Any]) -> list[Any]:
    length = unary("sqrt", _squared(q))
    require(relation("lt", 0.0, length))  # scipy raises
    return [x / length for x in q]


def _composed(p: list[Any], q: list[Any]) -> list[Any]:
    (a, b, c, d), (x, y, z, w) = p, q
    return [
        d * x + w * a + (b * z - c * y),
        d * y + w * b + (c * x - a * z),
        d * z + w * c + (a * y - b * x),
        d * w - a * x - b * y - c * z,
    ]


def choose_quaternion(condition: Any, a: list[Any], b: list[Any]) -> list[Any]:
    """The numbers of a where the condition holds, else those of b."""
    return [where(condition, x, y) for x, y in zip(a, b)]


def from_quat(quat, *, scalar_first=False):
    q = _vector(quat, 4)
    return _normalized([*q[1:], q[0]] if scalar_first else q)


def from_matrix(matrix, *, assume_valid=False):
    m = _vector(matrix, 3, 3)
    rows = [m[:3], m[3:6], m[6:]]
    if not assume_valid:
        _require_rotation(rows)
    trace = m[0] + m[4] + m[8]
    chosen = [rows[2][1] - rows[1][2], rows[0][2] - rows[2][0], rows[1][0] - rows[0][1], 1.0 + trace]
    largest: list[Any] = []  # scipy takes the first of the largest of the diagonal's entries and the trace
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        q: list[Any] = [0.0, 0.0, 0.0, rows[k][j] - rows[j][k]]
        q[i] = 1.0 - trace + 2.0 * rows[i][i]
        q[j], q[k] = rows[j][i] + rows[i][j], rows[k][i] + rows[i][k]
        largest.append((rows[i][i], q))
    best, q = largest[0]
    for value, other in [*largest[1:], (trace, chosen)]:
        better = relation("lt", best, value)
        best, q = where(better, value, best), choose_quaternion(better, other, q)
    return _normalized(q)


def _require_rotation(rows: list[list[Any]]) -> None:
    """Require a matrix that scipy takes as it is; others it makes orthogonal, or raises."""
    x, y, z = rows
    cross = [y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2], y[0] * z[1] - y[1] * z[0]]
    require(relation("lt", 0.0, x[0] * cross[0] + x[1] * cross[1] + x[2] * cross[2]))
    for i in range(3):
        for j in range(i, 3):
            product = rows[i][0] * rows[j][0] + rows[i][1] * rows[j][1] + rows[i][2] * rows[j][2]
            error = unary("abs", product - 1.0 if i == j else product)
            require(relation("le", error, ORTHOGONAL[i == j]))


def from_rotvec(rotvec, degrees=False):
    r = [math.pi / 180.0 * x for x in _vector(rotvec, 3)] if degrees else _vector(rotvec, 3)
    square = _squared(r)
    small = relation("le", square, SMALL**2)
    angle = unary("sqrt", where(small, 1.0, square))
    half = 0.5 * angle
    series = 0.5 - square / 48.0 + square * square / 3840.0, 1.0 - square / 8.0 + square * square / 384.0
    scale = where(small, series[0], unary("sin", half) / angle)
    return [*(scale * x for x in r), where(small, series[1], unary("cos", half))]


def from_euler(seq, angles, degrees=False):
    if not re.fullmatch("[xyz]{1,3}|[XYZ]{1,3}", seq) or any(map(operator.eq, seq, seq[1:])):
        raise ValueError(f"Expected a sequence of one to three axes that differ from their neighbours, got {seq!r}")
    values = _vector(angles, len(seq)) if len(seq) > 1 else [entries(angles).item()] if not np.ndim(angles) else []
    if not values:
        raise UntraceableError(f"only single rotations can be traced{caller()}: give one angle per axis")
    total: list[Any] = [0.0, 0.0, 0.0, 1.0]
    for axis, value in zip(seq.lower(), values):
        half = 0.5 * (math.pi / 180.0 * value if degrees else value)
        turn: list[Any] = [0.0, 0.0, 0.0, unary("cos", half)]
        turn["xyz".index(axis)] = unary("sin", half)
        total = _composed(total, turn) if seq.isupper() else _composed(turn, total)
    return total


def of_quaternion(q: Any) -> SymbolicRotation:
    """The rotation of a unit quaternion."""
    rotation = object.__new__(SymbolicRotation)
    rotation._q = list(q)
    return rotation


def constant_rotation(rotation: Any) -> Any:
    """A copy of one of scipy's rotations that is a SymbolicRotation while code runs with symbols."""
    constant = _constant_class(rotation_class())(rotation.as_quat(), normalize=False)
    setattr(constant, SYMBOLIC, of_scipy(rotation))
    return constant


@functools.cache
def _constant_class(base: Any) -> Any:
    """A subclass of scipy's class; other threads than the one that traces see that class."""
    if base is None:
        return None
    own = base.__getattribute__

    class ConstantRotation(base):
        def __getattribute__(self, name):
            return getattr(own(self, SYMBOLIC), name) if on_symbols() and name[0] != "_" else own(self, name)

        def __mul__(self, other):
            return own(self, SYMBOLIC) * other if on_symbols() else base.__mul__(self, other)

        def __rmul__(self, other):
            return other * own(self, SYMBOLIC) if on_symbols() else base.__mul__(other, self)

        def __pow__(self, n, modulus=None):
            return own(self, SYMBOLIC) ** n if on_symbols() else base.__pow__(self, n, modulus)

        def __reduce_ex__(self, protocol):
            return functools.partial(base, normalize=False), (base.as_quat(self),)

    return ConstantRotation


def of_scipy(rotation: Any) -> SymbolicRotation:
    """One of scipy's rotations, with its numbers."""
    if not is_single_rotation(rotation):
        raise UntraceableError(f"only single rotations can be traced{caller()}, got several")
    return of_quaternion(rotation.as_quat().tolist())


def _method(function: Callable[..., Any]) -> Any:
    signature = inspect.signature(function)
    own = signature.replace(parameters=list(signature.parameters.values())[1:])

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _bound(function.__name__, own, functools.partial(function, self))(*args, **kwargs)

    return call


class SymbolicRotation(metaclass=_OfScipy):
    """A rotation with symbols; replaces the name Rotation in user code while it runs with symbols."""

    __slots__ = ("_q",)
    single = True
    from_quat = _constructor(from_quat)
    from_matrix = _constructor(from_matrix)
    from_rotvec = _constructor(from_rotvec)
    from_euler = _constructor(from_euler)

    @staticmethod
    def identity(*args: Any, **kwargs: Any) -> Any:
        rotation = rotation_class().identity(*args, **kwargs)
        return of_scipy(rotation) if on_symbols() else rotation

    def __getattr__(self, name: str) -> Any:
        if hasattr(rotation_class(), name):
            _refuse(name)
        raise AttributeError(f"Rotation has no attribute {name!r}")

    def _leak(self, *_: Any, **__: Any) -> Any:
        raise UntraceableError(f"a rotation is stored or written as text{caller()}: use its as_quat()")

    __repr__ = __str__ = __format__ = __reduce_ex__ = __getstate__ = _leak  # pyright: ignore[reportAssignmentType]

    def __mul__(self, other: Any) -> Any:
        other = of_scipy(other) if is_rotation(other) else other
        if type(other) is not SymbolicRotation:
            return NotImplemented
        return of_quaternion(_normalized(_composed(self._q, other._q)))

    def __rmul__(self, other: Any) -> Any:
        return of_scipy(other) * self if is_rotation(other) else NotImplemented

    def __pow__(self, n: Any) -> Any:
        if _depends(n) or np.ndim(n):
            raise UntraceableError(f"only constant powers of a rotation can be traced{caller()}")
        if n in (1, -1):
            return of_quaternion(self._q) if n == 1 else self.inv()
        return of_quaternion([0.0, 0.0, 0.0, 1.0] if n == 0 else from_rotvec([float(n) * x for x in self._rotvec()]))

    def inv(self) -> Any:
        x, y, z, w = self._q
        return of_quaternion([-x, -y, -z, w])

    @_method
    def as_quat(self, canonical=False, *, scalar_first=False):
        q = self._canonical() if canonical else self._q
        return _array([q[3], *q[:3]] if scalar_first else q, 4)

    def as_matrix(self) -> Any:
        return _array([x for row in self._rows() for x in row], 3, 3)

    @_method
    def as_rotvec(self, degrees=False):
        return _array([180.0 / math.pi * x for x in self._rotvec()] if degrees else self._rotvec(), 3)

    @_method
    def as_euler(self, seq, degrees=False, *, suppress_warnings=False):
        del suppress_warnings  # with gimbal lock there is no result
        if not re.fullmatch("[xyz]{3}|[XYZ]{3}", seq) or any(map(operator.eq, seq, seq[1:])):
            raise ValueError(f"Expected three axes that differ from their neighbours, got {seq!r}")
        angles = self._angles(seq)
        return _array([180.0 / math.pi * x for x in angles] if degrees else angles, 3)

    @_method
    def apply(self, vectors, inverse=False):
        rows = self._rows()
        m = symbol_array([x for row in rows for x in row], (3, 3)).view(SymbolArray)
        x = entries(vectors).view(SymbolArray)
        if x.ndim not in (1, 2) or x.shape[-1] != 3:
            raise ValueError(f"Expected vectors of shape (3,) or (N, 3), got {x.shape}")
        m = m.T if inverse else m
        return m @ x if x.ndim == 1 else x @ m.T

    def magnitude(self) -> Any:
        *vector, w = self._q
        return _array([2.0 * binary("atan2", unary("sqrt", _squared(vector)), unary("abs", w))], 1)[0]

    def _canonical(self) -> list[Any]:
        """The quaternion of the two whose last component that is not zero, in the order w, x, y, z, is positive."""
        x, y, z, w = self._q
        negative: Any = relation("lt", z, 0.0)
        for first in (y, x, w):
            below, zero = relation("lt", first, 0.0), relation("eq", first, 0.0)
            negative = invert(both(invert(below), invert(both(zero, negative))))
        return choose_quaternion(negative, [-x for x in self._q], self._q)

    def _rows(self) -> list[list[Any]]:
        x, y, z, w = self._q
        a, b, c, d = x * x, y * y, z * z, w * w
        return [
            [a - b - c + d, 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), b - a - c + d, 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), c - a - b + d],
        ]

    def _rotvec(self) -> list[Any]:
        *vector, w = self._canonical()
        square = _squared(vector)
        small = relation("le", square, math.sin(0.5 * SMALL) ** 2)
        sine = unary("sqrt", where(small, 1.0, square))
        angle = 2.0 * binary("atan2", sine, w)
        scale = where(small, 2.0 + square / 3.0 + 0.15 * square * square, angle / unary("sin", 0.5 * angle))
        return [scale * x for x in vector]

    def _angles(self, seq: str) -> list[Any]:
        """Euler angles (Bernardes and Viollet 2022)."""
        extrinsic = seq.islower()
        i, j, k = map("xyz".index, seq.lower() if extrinsic else seq.lower()[::-1])
        symmetric = i == k
        k = 3 - i - j if symmetric else k
        sign = float((i - j) * (j - k) * (k - i) // 2)
        q = self._q
        a, b, c, d = q[3], q[i], q[j], q[k] * sign
        if not symmetric:
            a, b, c, d = a - q[j], b + d, c + q[3], d - q[i]
        second = 2.0 * binary("atan2", binary("hypot", c, d), binary("hypot", a, b))
        require(relation("lt", GIMBAL, second))
        require(relation("lt", GIMBAL, unary("abs", second - math.pi)))
        half_sum, half_difference = binary("atan2", b, a), binary("atan2", d, c)
        first, third = half_sum - half_difference, half_sum + half_difference
        if not symmetric:
            third, second = third * sign, second - 0.5 * math.pi
        return [*map(_within_pi, (first, second, third) if extrinsic else (third, second, first))]


def _within_pi(x: Any) -> Any:
    turned = where(relation("lt", math.pi, x), x - 2.0 * math.pi, x)
    return where(relation("lt", x, -math.pi), x + 2.0 * math.pi, turned)


def _array(values: list[Any], *shape: int) -> Any:
    return symbol_array(values, shape).view(SymbolArray)
