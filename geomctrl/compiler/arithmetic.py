"""Execution of kernels with other numbers than floats: complex, intervals, exact or high-precision numbers, symbols.

A kernel is a plain Python function, so that only functions from `math` and `numpy` depend on the type of number. An
`Arithmetic` provides these functions. `on(function, arithmetic)` returns the function with those of math, numpy and
Python replaced, including all primitives that it calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from geomctrl.kernels import tree
from geomctrl.kernels.algorithms import Algorithm, Array, Option
from geomctrl.kernels.couplings import fitting
from geomctrl.kernels.exponentials import either, sin_cos, where
from geomctrl.kernels.primitives import python_function, references
from geomctrl.kernels.tangents import moving, place_of, tangent
from geomctrl.tracing.duals import Dual
from geomctrl.tracing.rebinding import empty_cells, rebind

TANGENTS = {moving: Dual, place_of: lambda x: x.real, tangent: lambda x: x.imag}


class Arithmetic:
    """The functions for one type of number.

    `functions`: those of math (sqrt, sin, cos, tan, asin, acos, atan2, exp, log, tanh, pi); `where(condition, a, b)`;
    `minimum` and `maximum`; `zero` fills new arrays."""

    def __init__(
        self,
        functions: Any,
        *,
        where: Callable[[Any, Any, Any], Any] | None = None,
        minimum: Callable[..., Any] = min,
        maximum: Callable[..., Any] = max,
        absolute: Callable[[Any], Any] = abs,
        zero: Any = 0.0,
    ):
        self.functions, self.zero = functions, zero
        self.where = where or (lambda condition, a, b: a if condition else b)
        self.minimum, self.maximum, self.absolute = minimum, maximum, absolute
        self._done: dict[Callable, Callable] = {}

    def array(self, *shape: int) -> np.ndarray:
        """New arrays for such numbers."""
        out = np.empty(shape, object)
        out[...] = self.zero
        return out

    def _empty(self, shape, *_):
        return self.array(*(shape if isinstance(shape, tuple) else (shape,)))

    def _replaced(self, name: str, value: Any) -> Any:
        if value is sin_cos:
            return lambda x: (self.functions.sin(x), self.functions.cos(x))
        if value is where:
            return self.where
        if value in TANGENTS:
            return TANGENTS[value]
        if value is either:
            return self._either
        if isinstance(value, ModuleType) and value.__name__ == "math":
            return self.functions
        if value is np:
            return SimpleNamespace(
                empty=self._empty,
                empty_like=lambda x: self._empty(x.shape),
                zeros=self._empty,
                inf=np.inf,
                sqrt=self.functions.sqrt,
                uint64=int,
                complex128=complex,
                dot=_dot,
            )
        if type(value) is np.uint64:  # with numpy before 2 its sum with a Python int is a float, and no index
            return int(value)
        inner = python_function(value)
        return value if inner is None else on(inner, self)

    def _either(self, condition, yes, no, x):
        """Both branches if the condition is unknown; kernels call it with primitives that are already replaced."""
        if isinstance(condition, (bool, np.bool_)):
            return yes(x) if condition else no(x)
        return self.where(condition, yes(x), no(x))


def _dot(A: np.ndarray, B: np.ndarray, out: np.ndarray) -> None:
    out[...] = A @ B


def on(function: Callable[..., Any], arithmetic: Arithmetic) -> Callable[..., Any]:
    """The kernel `function` on the numbers of `arithmetic`."""
    function = python_function(function) or function
    if function in arithmetic._done:
        return arithmetic._done[function]
    cells = empty_cells(function)
    scope: dict[str, Any] = {"__name__": "geomctrl.kernels"}
    scope |= {"min": arithmetic.minimum, "max": arithmetic.maximum, "abs": arithmetic.absolute}
    twin = rebind(function, scope, cells)
    arithmetic._done[function] = twin
    scope |= {name: arithmetic._replaced(name, value) for name, value in references(function).items()}
    for cell, original in zip(cells, function.__closure__ or ()):
        cell.cell_contents = arithmetic._replaced("", original.cell_contents)
    return twin


def evaluated(
    algorithm: Algorithm, sizes: Sizes, model: np.ndarray, arrays: Sequence[Any], arithmetic: Arithmetic
) -> tuple[Any, list[np.ndarray]]:
    """(Whether there is a result, outputs) of an algorithm for such numbers; arrays: its inputs, then its options."""
    memory = [arithmetic.array(sizes.number(m.count) * m.width) for m in algorithm.memory]
    outputs = [arithmetic.array(*sizes.shape(y)) for y in algorithm.outputs]
    result = on(fitting(algorithm, model).py_func, arithmetic)(model, *arrays, *memory, *outputs)
    return (result if algorithm.may_fail else True), outputs


@functools.cache
def _parsed(expression: str) -> CodeType:
    return compile(expression, "<size>", "eval")


class Sizes:
    """Sizes of arrays for one structure and the integer options of an algorithm."""

    def __init__(self, pattern: np.ndarray, options: dict[str, Any] | None = None):
        nq, nv, nb = map(int, pattern[-tree.WIDTH :][: tree.FIRST])
        self.names = {"nb": nb, "nq": nq, "nv": nv} | (options or {})

    def number(self, expression: str) -> int:
        return int(eval(_parsed(expression), {"__builtins__": {}}, self.names))

    def shape(self, x: Array | Option) -> tuple[int, ...]:
        return tuple(self.number(n) for n in x.shape)

    def of(self, x: Array | Option) -> int:
        return int(np.prod(self.shape(x)))

    def inputs(self, algorithm: Algorithm, optional: tuple[str, ...]) -> list[tuple[int, ...]]:
        """Shapes of an algorithm's inputs, followed by the arrays among its options."""
        states = [x for x in algorithm.inputs if not x.optional or x.name in optional]
        return [self.shape(x) for x in (*states, *(x for x in algorithm.options if x.is_array))]
