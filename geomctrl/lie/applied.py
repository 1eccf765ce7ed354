"""What `so3` and `se3` share: a differential as a matrix, or applied to a vector."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, matrix_of, over_batch, same_batch


def differential(kernel: Callable, names: tuple[str, str], dim: int, x: ArrayLike, y: ArrayLike | None) -> np.ndarray:
    """The matrices (..., dim, dim) of y -> kernel(x, y); with y, kernel(x, y) itself (..., dim)."""
    a = checked(names[0], x, (dim,))
    if y is None:
        return matrix_of(kernel, a)
    b = checked(names[1], y, (dim,))
    same_batch(names, a, b, (1, 1))
    return over_batch(kernel, 1, a, b)
