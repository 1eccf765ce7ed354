"""Compiled functions whose derivatives are compiled functions too, for libraries that differentiate programs.

A `Differentiable` is a term of a robot as a function of arrays: the constants of the robot, its inertial parameters,
then the inputs of one state. From `pushforward` and `transposed` such libraries make all derivatives. Both apply to
each other's results, so there are derivatives of any order whose code is short enough.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np

from geomctrl.errors import ModelError
from geomctrl.kernels import tree
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.kernels.couplings import fitting
from geomctrl.kernels.primitives import fingerprint
from geomctrl.tracing.backends import cache, host, xla
from geomctrl.tracing.derivatives import pushforward, transposed
from geomctrl.tracing.symbols import Condition, add, both, is_finite
from geomctrl.tracing.traces import Trace

from .arithmetic import Sizes
from .code import NODES, allows, version
from .kernel_traces import trace

CONSTANTS, PARAMETERS, FIRST = range(3)  # numbers of the operands; FIRST: the first array of a state

_lock = threading.RLock()


class Differentiable:
    """A function of (constants, parameters, *arrays) with its derivatives; arrays are flat, operands have numbers.

    inputs, outputs: sizes of the operands from `PARAMETERS` on, and of the results. constants, parameters: positions in
    the model array. key: a hash of everything that determines the function.
    """

    def __init__(
        self,
        key: str,
        model: tuple[np.ndarray, np.ndarray],
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        make: Callable[[], Trace],
    ):
        self.key, self.inputs, self.outputs, self._make = key, inputs, outputs, make
        self.constants, self.parameters = model
        self._derived: dict[tuple, Differentiable] = {}
        self._addresses: dict[str, tuple[str, list[host.Address]]] = {}

    @cached_property
    def _trace(self) -> Trace:
        with _lock:
            traced = self._make()
        if not allows(traced):
            raise ModelError(
                f"this derivative takes {traced.operations} operations, more than the compiler takes for one function:"
                " use derivatives of lower order, or a smaller robot"
            )
        return traced

    def pushforward(self, moving: tuple[int, ...]) -> Differentiable:
        """The rates of the results; the rates of the operands `moving` are further operands, one row a state."""
        sizes = tuple(self.inputs[k - PARAMETERS] for k in moving)
        places = [
            [(0, int(p)) for p in self.parameters] if k == PARAMETERS else [(k - PARAMETERS, i) for i in range(size)]
            for k, size in zip(moving, sizes)
        ]
        return self._derivative(
            ("pushforward", moving), (*self.inputs, *sizes), self.outputs, lambda: pushforward(self._trace, places)
        )

    def transposed(self, linear: tuple[int, ...], results: tuple[int, ...]) -> Differentiable:
        """The transpose of the linear map from the operands `linear` to these results; its operands are all others,
        then a vector for each result.
        """
        arrays = [k - PARAMETERS for k in linear]
        kept = [size for k, size in enumerate(self.inputs) if k not in arrays]
        sizes = tuple(self.inputs[k] for k in arrays)
        return self._derivative(
            ("transposed", linear, results),
            (*kept, *(self.outputs[j] for j in results)),
            sizes,
            lambda: transposed(self._trace, arrays, results),
        )

    def _derivative(self, operation: tuple, inputs: tuple, outputs: tuple, make: Callable[[], Trace]) -> Differentiable:
        with _lock:
            if operation not in self._derived:
                model = self.constants, self.parameters
                self._derived[operation] = Differentiable(_hash(self.key, operation), model, inputs, outputs, make)
            return self._derived[operation]

    def handler(self, shared: bool, several: bool, interface: tuple[int, int]) -> tuple[str, list[host.Address]]:
        """(Name, addresses of the handler and of the size of its work memory), see `tracing.backends.xla`.

        shared: whether all states have the same parameters. several: whether to evaluate several states at a time.
        """
        side = host.lanes()
        width = side if several else 1
        key = _hash(self.key, cache.version(), shared, width, side, interface)
        with _lock:
            if key not in self._addresses:
                model = xla.Sizes(self.constants.tolist(), self.parameters.tolist(), shared)
                code = cache.kept(key, lambda: host.object_code(xla.module(self._trace, model, width, side, interface)))
                self._addresses[key] = f"geomctrl_{key[:32]}", host.load(code, xla.NAMES)
            return self._addresses[key]


def differentiable(
    algorithm: Algorithm, pattern: np.ndarray, options: dict[str, Any], optional: tuple[str, ...]
) -> Differentiable:
    """The algorithm for robots of structure `pattern`; they all share its code. options: its integers and arrays."""
    numbers = {name: x.tobytes() if isinstance(x, np.ndarray) else x for name, x in options.items()}
    return _differentiable(algorithm, pattern.tobytes(), tuple(sorted(numbers.items())), optional)


@lru_cache(maxsize=256)
def _differentiable(
    algorithm: Algorithm, pattern: bytes, options: tuple[tuple[str, Any], ...], optional: tuple[str, ...]
) -> Differentiable:
    structure = np.frombuffer(pattern)
    values = {name: np.frombuffer(x) if isinstance(x, bytes) else x for name, x in options}
    sizes = Sizes(structure, values)
    inputs = [sizes.of(x) for x in algorithm.inputs if not x.optional or x.name in optional]
    places = np.arange(len(structure)).reshape(-1, tree.WIDTH)
    parameters = places[: sizes.names["nb"], tree.J : tree.S].ravel()
    constants = np.setdiff1d(np.flatnonzero(np.isnan(structure)), parameters)
    key = _hash(fingerprint(fitting(algorithm, structure).py_func), pattern, options, optional, version())

    def make() -> Trace:
        traced = trace(algorithm, structure, values, optional, guarded=True, limit=NODES)
        return _of_finite_states(traced)

    outputs = tuple(sizes.of(y) for y in algorithm.outputs)
    return Differentiable(key, (constants, parameters), (len(parameters), *inputs), outputs, make)


def _of_finite_states(traced: Trace) -> Trace:
    """The trace with a flag that is false, too, if a number of the state is nan or infinite."""
    graph = traced.graph
    states = [graph.load(a, k) for a, size in enumerate(traced.inputs, 1) for k in range(size)]
    finite = is_finite(reduce(add, states))
    flag = finite.index if traced.flag is None else both(finite, Condition(graph, traced.flag)).index
    return replace(traced, flag=flag)


def _hash(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
