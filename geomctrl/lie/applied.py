"""What stands between `so3`, `se3`, the groups and their kernels: leading axes, checks, and symbols."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from geomctrl import arguments
from geomctrl.arguments import ROTATION_TOLERANCE, checked, rotation_residual, same_batch
from geomctrl.compiler.kernel_traces import run
from geomctrl.tracing.arrays import has_symbols, holds


def over_batch(kernel: Callable, core: int, *arrays: np.ndarray) -> np.ndarray:
    """Call `kernel`, made for one leading axis, on arrays with any number of them before their last `core` axes."""
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
    """`arguments.require_rotation`; of symbols it is required."""
    if has_symbols(R):
        holds(rotation_residual(R) <= ROTATION_TOLERANCE)
    else:
        arguments.require_rotation(name, R)
