"""Calls of compiled code from a user's `@njit` functions, without Python in between."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic
from numba.np.numpy_support import carray

_kept: list[tuple[np.ndarray, int]] = []  # keeps model arrays and code alive whose addresses compiled functions contain

# names in capitals avoid conflicts with inputs and outputs
SOURCE = """
def {name}({names}):
    if {wrong}:
        raise ValueError("{name}: expected {shapes}")
    X = carray(on_stack({total}), {total}, np.float64)
    YS = carray(on_stack({results}), {results}, np.intp)
{stores}
{outputs}
    if not CORE(MODEL, X.ctypes.data, YS.ctypes.data):
        raise ValueError("{name}: no result, as for a mass matrix that is not positive definite")
    return {result}
"""


@intrinsic(prefer_literal=True)
def on_stack(context, count):
    """`count` (a constant) numbers of 8 bytes on the stack; allocating an array would take longer than the call."""
    if not isinstance(count, types.IntegerLiteral):
        return None

    def made(context, builder, signature, arguments):
        kind = context.get_data_type(types.float64)
        memory = cgutils.alloca_once(builder, kind, size=count.literal_value)
        memory.align = 64
        return builder.bitcast(memory, cgutils.voidptr_t)

    return types.voidptr(count), made


def njit(
    name: str,
    core: int,
    model: np.ndarray,
    inputs: dict[str, tuple[int, ...]],
    constants: Sequence[np.ndarray],
    outputs: dict[str, tuple[int, ...]],
    result: type,
) -> Callable[..., Any]:
    """An `@njit` function of float64 arrays that returns the outputs as new arrays.

    core: address of `bool core(model, x, ys)`. inputs, outputs: shapes by name. constants: placed after the inputs in
    x. result: type of several outputs, tuple or a NamedTuple. The function raises ValueError for other shapes and if
    there is no result; nan and infinity are not checked.
    """
    _kept.append((model, core))
    stores, offset = [], 0
    for x, shape in inputs.items():
        part = f"X[{offset} : {offset + math.prod(shape)}]"
        stores.append(f"    {part if len(shape) == 1 else f'{part}.reshape({shape})'}[:] = {x}")
        offset += math.prod(shape)
    for k, constant in enumerate(constants):
        stores.append(f"    X[{offset} : {offset + constant.size}] = CONSTANT{k}")
        offset += constant.size
    several = ", ".join(outputs) if result is tuple else f"RESULT({', '.join(outputs)})"
    source = SOURCE.format(
        name=name,
        names=", ".join(inputs),
        wrong=" or ".join(f"{x}.shape != {shape}" for x, shape in inputs.items()),
        shapes=", ".join(f"{x} {shape}" for x, shape in inputs.items()),
        total=max(offset, 1),
        stores="\n".join(stores),
        results=len(outputs),
        outputs="\n".join(
            f"    {y} = np.empty({shape})\n    YS[{k}] = {y}.ctypes.data"
            for k, (y, shape) in enumerate(outputs.items())
        ),
        result=several if len(outputs) > 1 else next(iter(outputs)),
    )
    signature = ctypes.CFUNCTYPE(ctypes.c_bool, *[ctypes.c_size_t] * 3)
    scope: dict[str, Any] = {
        "np": np,
        "carray": carray,
        "on_stack": on_stack,
        "CORE": signature(core),
        "MODEL": model.ctypes.data,
        "RESULT": result,
    }
    if getattr(config, "DISABLE_JIT", False):  # then the function runs in Python
        scope |= {"on_stack": lambda count: count, "carray": lambda memory, count, dtype: np.empty(count, dtype)}
    scope |= {f"CONSTANT{k}": constant.ravel() for k, constant in enumerate(constants)}
    exec(compile(source, f"<geomctrl {name}>", "exec"), scope)
    return numba.njit(scope[name])
