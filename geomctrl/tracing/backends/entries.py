"""Calls from Python: arrays in, new arrays out, without a dispatcher in between.

One piece of machine code serves all compiled functions: a METH_FASTCALL function whose `self` is an array of integers
that describes the call, `Descriptor`. It reads numpy's arrays directly. Each argument must be a plain C-contiguous
float64 array of the right shape without nan or infinity; it is copied, the results are allocated, and the core computes
them. For any other argument the function returns None, and the public function converts, checks and explains.

The assumed layout of numpy's arrays is verified with known arrays before use (`works`). If that fails, a slower Python
function does the same.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import cache, host
from .entry_code import (
    ARRAY_FLAGS,
    ARRAY_REQUIREMENTS,
    BYTE_ORDER,
    DATA,
    DESCR,
    DIMENSIONS,
    DOUBLE,
    INPUT,
    METH_FASTCALL,
    ND,
    OB_TYPE,
    OUTPUT,
    PYARRAY_NEW,
    SOURCE,
    TYPE_NUMBER,
)

MAKE = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
POINTER_OF = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)


class _Descriptor(np.ndarray):
    """The `self` of an entry: numbers for the machine code, and the core that it calls."""

    core: int


class _Definition(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def entry(
    core: int,
    model: np.ndarray,
    inputs: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
    result: type = tuple,
    other: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """f(*arrays) -> a new array, or several as a `result`; None for arguments that the core does not accept.

    core: address of `bool core(model, x, ys)`, with pointers ys to the outputs. inputs, outputs: shapes of arguments
    and results with one or two axes; () is a Python float. result: tuple or a NamedTuple. other: called instead of
    returning None. The owner of the function keeps the model array and `other` alive. Inputs are on the stack; for more
    than `host.STACK` numbers a slower Python function is used.
    """
    small = sum(map(math.prod, inputs)) + 2 * len(outputs) <= host.STACK
    return (_compiled_entry if small and works() else _python_entry)(core, model, inputs, outputs, result, other)


def _compiled_entry(core, model, inputs, outputs, result=tuple, other=None):
    shapes, total = _shapes(tuple(inputs), tuple(outputs))
    kind = id(result) if len(outputs) > 1 else 0
    header = core, model.ctypes.data, len(inputs), len(outputs), total, kind, id(other) if other else 0
    descriptor = np.array((*header, *shapes), np.int64).view(_Descriptor)
    descriptor.core = core
    return _make()(ctypes.addressof(_definition()), descriptor, None)


@functools.cache
def _make() -> Callable[..., Any]:
    return MAKE(("PyCFunction_NewEx", ctypes.pythonapi))  # private: types set on ctypes.pythonapi affect the process


@functools.lru_cache(maxsize=1024)
def _shapes(inputs: tuple, outputs: tuple) -> tuple[tuple[int, ...], int]:
    """The part of a descriptor that describes shapes, and the number of inputs, at least 1."""
    begin = INPUT * len(inputs)
    descriptor = np.zeros(begin + OUTPUT * len(outputs), np.int64)
    for k, shape in enumerate(inputs):
        offset = INPUT * k
        descriptor[offset : offset + INPUT] = (
            math.prod(shape),
            len(shape),
            *(shape[:1] + shape[-1:] if shape else (0, 0)),
        )
    for k, shape in enumerate(outputs):
        offset = begin + OUTPUT * k
        descriptor[offset : offset + 1 + len(shape)] = len(shape), *shape
    return tuple(descriptor.tolist()), max(sum(map(math.prod, inputs)), 1)


def _python_entry(core, model, inputs, outputs, result=tuple, other=None):
    run = host.function(ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p), core)

    def call(*arrays):
        good = len(arrays) == len(inputs) and all(
            (type(a) is np.ndarray and a.dtype == np.float64 and a.shape == shape and np.isfinite(a).all())
            or (type(a) is float and shape == () and math.isfinite(a))
            for a, shape in zip(arrays, inputs)
        )
        if not good:
            return other(*arrays) if other else None
        x, ys = np.concatenate([*(np.ravel(a) for a in arrays), np.zeros(1)]), [np.empty(shape) for shape in outputs]
        pointers = (ctypes.c_void_p * len(ys))(*(y.ctypes.data for y in ys))
        if not run(model.ctypes.data, x.ctypes.data, ctypes.addressof(pointers)):
            return other(*arrays) if other else None
        return ys[0] if len(ys) == 1 else tuple.__new__(result, ys)

    return call


@functools.cache
def _addresses() -> tuple[host.Address, host.Address, host.Address]:
    """The machine code's `call`, `same` and `sum`, linked with numpy and Python."""
    code = cache.kept(SOURCE, lambda: host.object_code(SOURCE))
    call, same, total, env = host.load(code, ["call", "same", "sum", "env"])
    api = ctypes.pythonapi
    pointer_of = POINTER_OF(("PyCapsule_GetPointer", api))
    core = "numpy._core" if hasattr(np, "_core") else "numpy.core"  # numpy 2 and 1
    table = pointer_of(importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API, None)
    new = (ctypes.c_void_p * (PYARRAY_NEW + 1)).from_address(table)[PYARRAY_NEW]
    names = ("PyType_GenericAlloc", "PyTuple_SetItem", "Py_IncRef", "Py_DecRef", "PyObject_Vectorcall")
    functions = [ctypes.cast(getattr(api, name), ctypes.c_void_p).value for name in names]
    values = [id(np.ndarray), id(None), new, *functions, id(float)]
    (ctypes.c_int64 * len(values)).from_address(env)[:] = values
    return call, same, total


@functools.cache
def _definition() -> _Definition:
    call, _, _ = _addresses()
    definition = _Definition(b"compiled", call, METH_FASTCALL, None)
    definition.call = call  # keeps its code alive
    return definition


@functools.cache
def works() -> bool:
    """Whether numpy's arrays have the layout that the machine code assumes, by inspection and then by a call.

    No pointer is dereferenced before it has been compared with numpy's own information.
    """
    a = np.array([1.5, 2.5, 3.5])

    def word(offset: int, kind: Any = ctypes.c_int64) -> int:
        return kind.from_address(id(a) + offset).value

    looks = (
        word(OB_TYPE) == id(np.ndarray)
        and word(DATA) == a.ctypes.data
        and word(ND, ctypes.c_int32) == 1
        and ctypes.c_int64.from_address(word(DIMENSIONS)).value == 3
        and word(DESCR) == id(a.dtype)
        and all(_describes(d, "=", DOUBLE) for d in (np.dtype(np.float64), np.array([1.0]).dtype))
        and _describes(np.dtype(np.float32), "=", np.dtype(np.float32).num)
        and _describes(np.dtype(np.float64).newbyteorder(), np.dtype(np.float64).newbyteorder().byteorder, DOUBLE)
        and word(ARRAY_FLAGS, ctypes.c_int32) & ARRAY_REQUIREMENTS == ARRAY_REQUIREMENTS
    )
    if not looks:
        return False
    try:
        (_, same, total), model = _addresses(), np.array([10.0])
        one, pair = (
            _compiled_entry(total, model, ((3,),), ((1,),)),
            _compiled_entry(same, model, ((1,), (2, 1)), ((1,), (1, 1)), _Pair),
        )
        alone = _compiled_entry(total, model, ((),), ((1,),))
        x, y = one(a), pair(a[:1].copy(), a[1:, None].copy())
        return (
            x.tolist() == [11.5]
            and type(y) is _Pair
            and [part.tolist() for part in y] == [[11.5], [[2.5]]]
            and all(one(bad) is None for bad in (a[:2], a[None], a.astype(np.float32), a * np.nan, 1.0, a + 100.0))
            and pair(a[:1] + 100.0, a[1:, None].copy()) is None
            and all(pair(a[:1].copy(), bad) is None for bad in (a[1:].copy(), a[None, 1:].copy(), a[:, None].copy()))
            and one() is None
            and alone(2.5).tolist() == [12.5]
            and all(alone(bad) is None for bad in (1, math.nan, -math.inf, a, np.float64(1.0)))
        )
    except (AttributeError, ImportError, TypeError, ValueError, OSError):
        return False


class _Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


def _describes(dtype: np.dtype, order: str, number: int) -> bool:
    """Whether a dtype's memory agrees with its attributes."""
    address = id(dtype)
    return (
        ctypes.c_char.from_address(address + BYTE_ORDER).value == order.encode()
        and ctypes.c_int32.from_address(address + TYPE_NUMBER).value == number == dtype.num
    )
