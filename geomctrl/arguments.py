"""What stands between a caller's array and a kernel: conversion, checks, and flattening of the leading axes."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .errors import ArgumentError

ROTATION_TOLERANCE = 1e-6  # |R^T R - 1| above which a matrix is refused as a rotation


def _finite(a: np.ndarray) -> bool:
    """No nan and no infinity; a sum of squares, three times faster, settles it for all but huge numbers."""
    if a.size > 100 and a.dtype == np.float64 and a.flags.c_contiguous:
        flat = a.reshape(-1)
        if flat.dot(flat) < np.inf:
            return True
    return bool(np.isfinite(a).all())


def checked(name: str, value: ArrayLike, trailing: tuple[int, ...], finite: bool = True) -> np.ndarray:
    """`value` as the kernels take it (float64, C order, writable), with the trailing axes `trailing`.

    Raises ArgumentError, naming the argument `name`, for other shapes, for anything but real numbers and, unless
    `finite` is False, for nan and infinity.
    """
    shape = f"shape ({', '.join(['...', *map(str, trailing)])})"
    try:
        a = np.asanyarray(value)
        symbols = type(a).__name__ == "SymbolArray"  # of `compiler.arrays`: a law is traced, its numbers are not known
        if a.dtype.kind not in "iufO" or value is None:
            raise TypeError
        a = a if symbols else np.require(a, np.float64, ["C", "W", "E"])
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: expected real numbers of {shape}, got {value!r:.80}") from None
    if a.ndim < len(trailing) or a.shape[a.ndim - len(trailing) :] != trailing:
        raise ArgumentError(f"{name}: expected {shape}, got {a.shape}")
    if finite and not symbols and not _finite(a):
        where = tuple(np.argwhere(~np.isfinite(a))[0].tolist())
        raise ArgumentError(f"{name}: expected finite numbers, got {a[where]} at index {list(where)}")
    return a


def vector(name: str, x: ArrayLike, n: int) -> np.ndarray:
    """x as a new array of n finite floats; raises ArgumentError, naming the argument `name`, otherwise."""
    try:
        a = np.array(x, dtype=float)
    except (TypeError, ValueError):
        a = np.full(n, np.nan)
    if a.shape != (n,) or not np.isfinite(a).all():
        raise ArgumentError(f"{name}: expected {n} finite numbers, got {x!r:.80}")
    return a


def number(
    name: str, x: object, expected: str = "a finite number", good: Callable[[float], bool] = lambda x: True
) -> float:
    """x as a float; raises ArgumentError, naming the argument `name`, unless it is a finite number that is `good`."""
    if type(x) is float and math.isfinite(x) and good(x):
        return x
    a = np.asarray(x) if np.isscalar(x) or isinstance(x, np.ndarray) else np.empty(0)
    if a.shape != () or a.dtype.kind not in "iuf" or not np.isfinite(a) or not good(float(a)):
        raise ArgumentError(f"{name}: expected {expected}, got {x!r:.80}")
    return float(a)


def frozen(a: np.ndarray) -> np.ndarray:
    """A copy of `a` that nothing makes writable again: its memory belongs to a bytes object."""
    return np.ndarray(a.shape, float, np.ascontiguousarray(a, dtype=float).tobytes())


def same_batch(names: tuple[str, str], a: np.ndarray, b: np.ndarray, core: tuple[int, int]) -> tuple[int, ...]:
    """The leading axes of `a` (all but the last core[0]) and of `b` (all but core[1]), which must be the same."""
    first, second = a.shape[: a.ndim - core[0]], b.shape[: b.ndim - core[1]]
    if first != second:
        message = f"{names[1]}: expected the leading axes of {names[0]}, {first}, got {second} (nothing is broadcast)"
        raise ArgumentError(message)
    return first


def require_rotation(name: str, R: np.ndarray, problem: str = "expected a rotation, got ") -> None:
    """Raise ArgumentError unless every R (..., 3, 3) is a rotation to ROTATION_TOLERANCE."""
    if rotation_residual(R).max(initial=0.0) > ROTATION_TOLERANCE:
        error, det = _off_orthogonal(R).max(), np.linalg.det(R).min()
        raise ArgumentError(f"{name}: {problem}|R^T R - 1| = {error:.3g}, det R = {det:.3g}")


def rotation_residual(R: np.ndarray) -> np.ndarray:
    """max |R^T R - 1| of every R (..., 3, 3), plus 2, a reflection's distance from SO(3), where det R < 0."""
    return _off_orthogonal(R) + np.where(np.linalg.det(R) < 0.0, 2.0, 0.0)


def _off_orthogonal(R: np.ndarray) -> np.ndarray:
    return np.abs(R.swapaxes(-1, -2) @ R - np.eye(3)).max(axis=(-2, -1))


def block_diagonal(*blocks: np.ndarray) -> np.ndarray:
    """Square blocks (..., n_i, n_i) on the diagonal of (..., n, n); a block without leading axes serves every one."""
    batch = np.broadcast_shapes(*(b.shape[:-2] for b in blocks))
    n = sum(b.shape[-1] for b in blocks)
    out = np.zeros((*batch, n, n))
    k = 0
    for b in blocks:
        at = slice(k, k + b.shape[-1])
        out[..., at, at] = b
        k = at.stop
    return out


def tolerance(name: str, x: object) -> float:
    """x as a float; raises ArgumentError, naming the argument `name`, unless it is finite and not negative.

    What is compared with nan or with infinity always passes, or never does: such a check checks nothing.
    """
    return number(name, x, "a finite number, not negative", lambda x: x >= 0.0)
