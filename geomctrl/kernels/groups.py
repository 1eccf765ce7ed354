"""Lie groups of matrices on arrays: entries from Python, generated from equations on tuples (`exponentials`).

`so3`, `se3` and `so3xr3` define their equations and the layout of their numbers; `array_entries` generates the entries.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .jit import kernel
from .primitives import KernelTypeError
from .records import finite


class Equations(NamedTuple):
    """A group of matrices of the given shape with an algebra of `dim` numbers, in primitives.

    `element(a, k)` and `vector(a, k)` read from a flat array, `put_element(a, k, g)` and `put_vector(a, k, x)` write.
    `moved(g, x)` is g exp(x), on the group to round-off after any number of calls.
    """

    shape: tuple[int, int]
    dim: int
    element: Callable
    put_element: Callable
    vector: Callable
    put_vector: Callable
    exp: Callable
    log: Callable
    dexp: Callable
    dexp_inv: Callable
    moved: Callable


class Entries(NamedTuple):
    """Kernels of a group: `*_many` for arrays with one leading axis, `*_one` for single elements.

    `*_one` raise an error for another shape, nan or infinity; numba's dispatchers do so for another type.
    """

    exp_many: Any  # x (n, dim) -> (n, *shape)
    log_many: Any  # a (n, *shape) -> (n, dim)
    dexp_many: Any  # x, y (n, dim) -> dexp_x y (n, dim)
    dexp_inv_many: Any  # x, y (n, dim) -> dexp_x^-1 y (n, dim)
    advance_one: Any  # a (*shape), x (dim,) -> a exp(x)
    dexp_inv_one: Any  # x, y (dim,) -> dexp_x^-1 y


def array_entries(module: str, equations: Equations) -> Entries:
    """The kernels of a group; `module` must store them under the names in `Entries`."""

    def entry(signature):
        def decorate(function):
            function.__module__, function.__qualname__ = module, function.__name__
            return kernel(signature)(function)

        return decorate

    return Entries(*_exp_and_log(equations, entry), *_differentials(equations, entry), *_on_one(equations, entry))


def _exp_and_log(equations, entry):
    (rows, columns), dim, element, put_element, vector, put_vector, exp, log = equations[:8]

    @entry("f8[:,:,::1](f8[:,::1])")
    def exp_many(x):
        out = np.empty((len(x), rows, columns))
        flat = out.reshape(-1)
        for i in range(len(x)):
            put_element(flat, i * rows * columns, exp(vector(x[i], 0)))
        return out

    @entry("f8[:,::1](f8[:,:,::1])")
    def log_many(a):
        out, flat = np.empty((len(a), dim)), a.reshape(-1)
        for i in range(len(a)):
            put_vector(out[i], 0, log(element(flat, i * rows * columns)))
        return out

    return exp_many, log_many


def _differentials(equations, entry):
    vector, put_vector, dexp, dexp_inv = equations.vector, equations.put_vector, equations.dexp, equations.dexp_inv

    @entry("f8[:,::1](f8[:,::1], f8[:,::1])")
    def dexp_many(x, y):
        out = np.empty_like(x)
        for i in range(len(x)):
            put_vector(out[i], 0, dexp(vector(x[i], 0), vector(y[i], 0)))
        return out

    @entry("f8[:,::1](f8[:,::1], f8[:,::1])")
    def dexp_inv_many(x, y):
        out = np.empty_like(x)
        for i in range(len(x)):
            put_vector(out[i], 0, dexp_inv(vector(x[i], 0), vector(y[i], 0)))
        return out

    return dexp_many, dexp_inv_many


def _on_one(equations, entry):
    shape, dim, element, put_element, vector, put_vector, _, _, _, dexp_inv, moved = equations

    @entry("f8[:,::1](f8[:,::1], f8[::1])")
    def advance_one(y, x):
        if y.shape != shape or x.shape[0] != dim or not (finite(y.ravel()) and finite(x)):
            raise KernelTypeError("shape")
        out = np.empty(shape)
        put_element(out.ravel(), 0, moved(element(y.ravel(), 0), vector(x, 0)))
        return out

    @entry("f8[::1](f8[::1], f8[::1])")
    def dexp_inv_one(x, y):
        if x.shape[0] != dim or y.shape[0] != dim or not (finite(x) and finite(y)):
            raise KernelTypeError("shape")
        out = np.empty(dim)
        put_vector(out, 0, dexp_inv(vector(x, 0), vector(y, 0)))
        return out

    return advance_one, dexp_inv_one
