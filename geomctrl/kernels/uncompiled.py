"""Kernels as they are, in Python, for debugging: what runs where the environment says NUMBA_DISABLE_JIT=1.

Breakpoints and prints work in every kernel then, and GEOMCTRL_COMPILER=off makes all that is computed pass through
them. An entry takes what it takes when compiled, and refuses the rest in the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import sigutils, types
from numba.np import numpy_support

from .primitives import KernelTypeError


def entry(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """The function for arguments of the types in `signature`; KernelTypeError, as from compiled code, for others."""
    declared, _ = sigutils.normalize_signature(signature)
    fits = [_fits(kind) for kind in declared]

    def call(*args):
        if len(args) != len(fits) or not all(good(x) for good, x in zip(fits, args)):
            raise KernelTypeError(function.__name__, declared, args)
        with np.errstate(all="ignore"):  # compiled code says nothing either
            return function(*args)

    called: Any = functools.wraps(function)(call)
    called.py_func = function
    return called


def _fits(kind: Any) -> Callable[[Any], bool]:
    if isinstance(kind, types.Array):
        dtype, axes = numpy_support.as_dtype(kind.dtype), kind.ndim
        return lambda x: type(x) is np.ndarray and x.dtype == dtype and x.ndim == axes and x.flags.carray
    if isinstance(kind, types.Integer):
        return lambda x: isinstance(x, (int, np.integer))
    if isinstance(kind, types.Float):
        return lambda x: isinstance(x, (int, float, np.number)) and not isinstance(x, np.complexfloating)
    return lambda x: True
