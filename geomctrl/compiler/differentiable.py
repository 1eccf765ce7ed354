"""Compiled functions whose derivatives are compiled functions too, for libraries that differentiate programs.

A `Differentiable` is a term of a robot as a function of arrays: the constants of the robot, its inertial parameters,
then the inputs of one state. From `pushforward` and `transposed` such libraries make all derivatives. Both apply to
each other's results, so there are derivatives of any order whose code is short enough.

Derivatives by configurations are those along the group: of a change of a pose only what the joint can do is passed on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial, reduce
from typing import Any

import numpy as np

from geomctrl.errors import GeomctrlError, ModelError
from geomctrl.kernels import tree
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.kernels.configuration import change_along_group
from geomctrl.kernels.couplings import fitting
from geomctrl.kernels.primitives import fingerprint, python_function
from geomctrl.tracing.backends import buffer_calls, cache, gpu, host
from geomctrl.tracing.backends.batches import BufferCall
from geomctrl.tracing.backends.gpu_calls import GpuCall
from geomctrl.tracing.backends.rounding import differing, evaluated
from geomctrl.tracing.derivatives import pushforward, transposed
from geomctrl.tracing.locks import renewed_lock
from geomctrl.tracing.symbols import Condition, add, both, is_finite
from geomctrl.tracing.traces import Trace

from .arithmetic import Sizes, on
from .code import NODES, allows, version
from .kernel_traces import symbolic, symbolic_model, trace

CONSTANTS, PARAMETERS, FIRST = range(3)  # numbers of the operands; FIRST: the first array of a state

AlongGroup = Callable[[list[Any], list[Any]], Iterable[Any]]  # (q, dq) -> the part of dq that the joints can do

_lock = renewed_lock()


class Differentiable:
    """A function of (constants, parameters, *arrays) with its derivatives; arrays are flat, operands have numbers.

    inputs, outputs: sizes of the operands from `PARAMETERS` on, and of the results. constants, parameters: positions in
    the model array. key: a hash of everything that determines the function. configurations: the operands that have
    poses. trial: operands of one state, to compare compiled code with the trace.
    """

    def __init__(
        self,
        key: str,
        model: tuple[np.ndarray, np.ndarray],
        inputs: tuple[int, ...],
        outputs: tuple[int, ...],
        make: Callable[[], Trace],
        configurations: Mapping[int, AlongGroup],
        trial: Sequence[np.ndarray] = (),
    ):
        self.key, self.inputs, self.outputs, self._make = key, inputs, outputs, make
        self.constants, self.parameters = model
        self._configurations, self.trial = configurations, list(trial)
        self._derived: dict[tuple, Differentiable] = {}
        self._calls: dict[str, BufferCall] = {}
        self._gpu_calls: dict[bool, GpuCall] = {}

    @cached_property
    def trace(self) -> Trace:
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
        along_group = {g: self._configurations[k] for g, k in enumerate(moving) if k in self._configurations}
        return self._derivative(
            ("pushforward", moving),
            (*self.inputs, *sizes),
            self.outputs,
            lambda: pushforward(self.trace, places, along_group),
            [*self.trial, *map(_random, sizes)],
        )

    def transposed(self, linear: tuple[int, ...], results: tuple[int, ...]) -> Differentiable:
        """The transpose of the linear map from the operands `linear` to these results; its operands are all others,
        then a vector for each result.
        """
        arrays = [k - PARAMETERS for k in linear]
        kept = [size for k, size in enumerate(self.inputs) if k not in arrays]
        sizes = tuple(self.inputs[k] for k in arrays)
        weights = tuple(self.outputs[j] for j in results)
        rows = [x for k, x in enumerate(self.trial) if k not in linear]
        return self._derivative(
            ("transposed", linear, results),
            (*kept, *weights),
            sizes,
            lambda: transposed(self.trace, arrays, results),
            [*rows, *map(_random, weights)],
        )

    def pullback(self, moving: tuple[int, ...], results: tuple[int, ...]) -> Differentiable:
        """The derivatives of a weighted sum of these results by the operands `moving`; the weights are further
        operands.
        """
        first = PARAMETERS + len(self.inputs)
        return self.pushforward(moving).transposed(tuple(range(first, first + len(moving))), results)

    def _derivative(
        self, operation: tuple, inputs: tuple, outputs: tuple, make: Callable[[], Trace], trial: list[np.ndarray]
    ) -> Differentiable:
        with _lock:
            if operation not in self._derived:
                key, model = _hash(self.key, operation), (self.constants, self.parameters)
                self._derived[operation] = Differentiable(
                    key, model, inputs, outputs, make, self._configurations, trial
                )
            return self._derived[operation]

    def call(self, shared: bool, several: bool) -> tuple[str, BufferCall]:
        """(Name, compiled code), see `tracing.backends.buffer_calls`.

        shared: whether all states have the same parameters. several: whether to evaluate several states at a time.
        Raises GeomctrlError if the code differs from the trace.
        """
        side = host.lanes()
        width = side if several else 1
        key = _hash(self.key, cache.version(), shared, width, side)
        with _lock:
            if key not in self._calls:
                model = buffer_calls.Sizes(self.constants.tolist(), self.parameters.tolist(), shared)
                code = cache.kept(key, lambda: host.object_code(buffer_calls.module(self.trace, model, width, side)))
                call = BufferCall(host.load(code, buffer_calls.NAMES))
                self._compare(partial(_on_cpu, call))
                self._calls[key] = call
            return f"geomctrl_{key[:32]}", self._calls[key]

    def gpu_call(self, shared: bool) -> tuple[str, GpuCall]:
        """The same on an NVIDIA GPU (not yet run on one), see `gpu_calls`. Raises GeomctrlError without a GPU."""
        key = _hash(self.key, cache.version(), shared, "gpu")
        with _lock:
            if shared not in self._gpu_calls:
                model = buffer_calls.Sizes(self.constants.tolist(), self.parameters.tolist(), shared)
                make = partial(_kept_code, key)
                call = GpuCall(self.trace, model, make)
                self._compare(partial(_on_gpu, call))
                self._gpu_calls[shared] = call
            return f"geomctrl_{key[:32]}", self._gpu_calls[shared]

    def _compare(self, call: Callable[..., None]) -> None:
        """Raise GeomctrlError if the code differs from the trace, evaluated operation by operation.

        call(operands, results) evaluates one state.
        """
        constants, parameters, *arrays = self.trial
        model = np.zeros(1 + max([*self.constants, *self.parameters]))
        model[self.constants], model[self.parameters] = constants, parameters
        actual = [np.empty(n) for n in self.outputs]
        call(self.trial, actual)
        expected = evaluated(self.trace, [*arrays, model], guarded=True)  # array 0 is also the last one
        if differing(self.trace, [*arrays, model], expected, actual) is not None:
            raise GeomctrlError("compiled code differs from its trace on this processor: report this as an error")


def _on_cpu(call: BufferCall, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
    constants, parameters, *arrays = operands
    inputs, outputs = [x.ctypes.data for x in (*arrays, parameters)], [y.ctypes.data for y in results]
    call(constants.ctypes.data, inputs, outputs, 1)


def _on_gpu(call: GpuCall, operands: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
    number, cuda = call.kernel.device.device_id, call.kernel.cuda
    there = [gpu.put(x, number) for x in (*operands, *results)]
    with gpu.current(cuda, call.kernel.device):
        call(cuda.LEGACY_DEFAULT_STREAM, 1, [x.ptr for x in there])
        for y, result in zip(there[len(operands) :], results):
            result[:] = gpu.get(y)


def _kept_code(key: str, text: str) -> bytes:
    return cache.kept(key, lambda: host.object_code(text))


def differentiable(
    algorithm: Algorithm, pattern: np.ndarray, options: dict[str, Any], optional: tuple[str, ...]
) -> Differentiable:
    """The algorithm for robots of structure `pattern`; they all share its code. options: its integers and arrays.

    Before its code is used, its `trial` needs the constants, parameters and inputs of a state of such a robot.
    """
    numbers = {name: x.tobytes() if isinstance(x, np.ndarray) else x for name, x in options.items()}
    return _differentiable(algorithm, pattern.tobytes(), tuple(sorted(numbers.items())), optional)


@lru_cache(maxsize=256)
def _differentiable(
    algorithm: Algorithm, pattern: bytes, options: tuple[tuple[str, Any], ...], optional: tuple[str, ...]
) -> Differentiable:
    structure = np.frombuffer(pattern)
    values = {name: np.frombuffer(x) if isinstance(x, bytes) else x for name, x in options}
    sizes = Sizes(structure, values)
    states = [x for x in algorithm.inputs if not x.optional or x.name in optional]
    inputs = [sizes.of(x) for x in states]
    places = np.arange(len(structure)).reshape(-1, tree.WIDTH)
    parameters = places[: sizes.names["nb"], tree.J : tree.S].ravel()
    constants = np.setdiff1d(np.flatnonzero(np.isnan(structure)), parameters)
    kernels = fingerprint(fitting(algorithm, structure).py_func), fingerprint(python_function(change_along_group))
    key = _hash(kernels, pattern, options, optional, version())
    poses = [k for k, x in enumerate(states, FIRST) if x.shape == ("nq",) and sizes.names["nq"] != sizes.names["nv"]]

    def make() -> Trace:
        traced = trace(algorithm, structure, values, optional, guarded=True, limit=NODES)
        return _of_finite_states(traced)

    outputs = tuple(sizes.of(y) for y in algorithm.outputs)
    model = constants, parameters
    projected = dict.fromkeys(poses, partial(_along_group, structure))
    return Differentiable(key, model, (len(parameters), *inputs), outputs, make, projected)


def _along_group(structure: np.ndarray, q: list[Any], dq: list[Any]) -> Iterable[Any]:
    """The part of the rates dq that the joints can do."""
    x, out = np.zeros(Sizes(structure).names["nv"], object), np.empty(len(q), object)
    on(change_along_group, symbolic())(symbolic_model(q[0].graph, structure), q, dq, x, out)
    return out


def _of_finite_states(traced: Trace) -> Trace:
    """The trace with a flag that is false, too, if a number of the state is nan or infinite."""
    graph = traced.graph
    states = [graph.load(a, k) for a, size in enumerate(traced.inputs, 1) for k in range(size)]
    finite = is_finite(reduce(add, states))
    flag = finite.index if traced.flag is None else both(finite, Condition(graph, traced.flag)).index
    return replace(traced, flag=flag)


def _random(size: int) -> np.ndarray:
    return np.random.default_rng(size).normal(size=size)


def _hash(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
