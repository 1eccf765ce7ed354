"""The compiled functions of one robot, by the names of `catalogue`: straight-line code if it pays, else numba's loops.

    robot._code.inverse_dynamics(q, v, a)       a new array, or None for unsupported arguments

Code is generated at first use and shared by all robots of the same structure, in memory and on disk. Only this module
decides how a function runs; the results differ by rounding.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from geomctrl.caches import package_digest
from geomctrl.errors import ArgumentError
from geomctrl.kernels.algorithms import LONG_CHAIN, Algorithm
from geomctrl.kernels.couplings import fitting
from geomctrl.kernels.primitives import fingerprint
from geomctrl.tracing.backends import cache, entries, host
from geomctrl.tracing.backends.batches import Batch
from geomctrl.tracing.backends.llvm import module
from geomctrl.tracing.backends.machine_code import MAX_OPERATIONS
from geomctrl.tracing.locks import renewed_lock
from geomctrl.tracing.numbers import entered, has_symbols, holds_symbols
from geomctrl.tracing.partition import STORE
from geomctrl.tracing.requirements import require
from geomctrl.tracing.traces import Trace
from geomctrl.tracing.untraceable import UntraceableError

from .arithmetic import Sizes, evaluated
from .catalogue import AVAILABLE_ALGORITHMS, CATALOGUE
from .kernel_traces import finite_numbers, structure, symbolic, trace

# Up to this number a function compiles in about two seconds and is faster than the loops: four times at 7 joints, 1.3
# to 2 times at 30, where the loops read batches from memory. Longer code gains less, because fetching it takes as long
# as computing (experiments/benchmarks/benchmark_compiler.py).
OPERATIONS = MAX_OPERATIONS
# Tracing stops at this number of operations, some of which may turn out to be unnecessary.
NODES = 2 * OPERATIONS
# The limit for closed loops is higher: users' code is traced without the simplifications for finite numbers, and a
# compilation of three seconds saves minutes.
LOOP_OPERATIONS = 100_000
# Inputs of a single state are on the stack, which may be small in a thread.
INPUTS = 8192
LOOPS = b"loops"  # stored instead of object code for structures over the limit
# A process compiles immediately for its first structures, if they are no long chains. For others it compiles after this
# many states: compiling takes as long as the loops take for that many states.
EAGER = 8
CALLS = 50_000


def allows(trace: Trace) -> bool:
    return sum(trace.inputs) <= INPUTS and trace.operations + STORE * len(trace.outputs) <= OPERATIONS


_lock = renewed_lock()
_structures = Counter()  # structures that this process has used

Call = Callable[..., Any]
Addresses = list[host.Address] | None  # addresses of `cache.ENTRY_NAMES`, None for the loops
Shapes = tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]  # of inputs and of outputs


def enabled() -> bool:
    """False if GEOMCTRL_COMPILER=off is in the environment: everything then runs in numba's loops."""
    chosen = os.environ.get("GEOMCTRL_COMPILER", "on")
    if chosen not in ("on", "off"):
        raise ArgumentError(f"GEOMCTRL_COMPILER: expected 'on' or 'off', got {chosen!r:.40}")
    return chosen == "on"


class Structure:
    """The compiled code of a structure, and the number of requests."""

    def __init__(self, bodies: int):
        self.addresses: dict[tuple, Addresses] = {}
        self.shapes: dict[tuple, Shapes] = {}
        self.wanted = Counter()
        self.eager = _structures["met"] < EAGER and bodies <= LONG_CHAIN
        _structures["met"] += 1

    def worthwhile(self, call: Any, states: int) -> bool:
        """Whether to compile a function now. A process with many structures compiles only those that it uses often."""
        self.wanted[call] += states
        return self.eager or self.wanted[call] >= CALLS


class Code:
    """The functions of the robot with this model array; `CATALOGUE` has their names.

    For a model array of symbols all functions are traces; its `pattern` (see `structure`) is that of the numbers that
    the symbols represent."""

    def __init__(self, model: np.ndarray, pattern: np.ndarray | None = None):
        self.model = model
        self.pattern = structure(model) if pattern is None else pattern
        self.sizes = Sizes(self.pattern)
        self.structure = _structure(self.pattern.tobytes())
        self._batches: dict[tuple, Batch | None] = {}
        self._singles: dict[tuple, Call | None] = {}
        self._fixed: dict[tuple, Call] = {}
        self._kept: list[Call] = []  # functions that entries call for other arguments

    def __getattr__(self, name: str) -> Call:
        """f(*arrays) -> the outputs of a single state, or None for arguments that the function does not support.

        After its first use it is an attribute of the object itself, which Python looks up fastest.
        """
        if name not in CATALOGUE:
            raise AttributeError(name)
        return self._prepared(functools.partial(self.__dict__.__setitem__, name), *CATALOGUE[name])

    def at(self, algorithm: Algorithm, *numbers: int, result: type = tuple) -> Call:
        """The same for any algorithm on offer and `numbers`, its integer options."""
        key = algorithm, numbers
        try:
            return self._fixed[key]
        except KeyError:
            names = [x.name for x in algorithm.options if not x.is_array]
            options = dict(zip(names, numbers, strict=True))
            return self._prepared(functools.partial(self._fixed.__setitem__, key), algorithm, options, result)

    def _prepared(
        self, keep: Callable[[Call], None], algorithm: Algorithm, options: dict[str, int], result: type, optional=()
    ) -> Call:
        """The function for a single state from now on; `keep` stores it where it is looked up."""
        wanted, chosen = (algorithm, "one", optional, *options.values()), None
        make = functools.partial(self.one, algorithm, optional, result=result, **options)
        if has_symbols(self.model):
            chosen = functools.partial(self.on_symbols, algorithm, optional, options, result)
        elif enabled() and self.structure.worthwhile(wanted, 1):
            chosen = make()
        if chosen is None:
            loops = self.loops(algorithm, optional, result=result, **options)

            def until_compiled(*arrays):
                if self.structure.worthwhile(wanted, 1):
                    keep(make() or loops)
                return loops(*arrays)

            chosen = until_compiled if enabled() else loops
        keep(chosen)
        return chosen

    def over(
        self,
        algorithm: Algorithm,
        rows: Sequence[np.ndarray],
        optional: tuple[str, ...],
        options: dict,
        threads: int = 1,
    ) -> Any:
        """(outputs, number of the first state without a result or -1) for checked states, (states, numbers) each.

        options: all of them, by name. Returns None if the loops should compute it.
        """
        states = len(rows[0])
        if (
            algorithm not in AVAILABLE_ALGORITHMS
            or not enabled()
            or not self.structure.worthwhile((algorithm.py_func, "many"), states)
        ):
            return None
        numbers = {x.name: int(options[x.name]) for x in algorithm.options if not x.is_array}
        shared = [options[x.name] for x in algorithm.options if x.is_array]
        inputs, outputs = self._shapes(algorithm, optional, numbers)
        ends = [0, *itertools.accumulate(map(math.prod, outputs))]
        if states > host.lanes():
            call = self.many(algorithm, optional, **numbers)
            if call is None:
                return None
            out, failed = call(*rows, *(np.tile(x.ravel(), (states, 1)) for x in shared), threads=threads)
        else:
            one = self._single(algorithm, optional, numbers)
            if one is None:
                return None
            out, failed = _one_by_one(one, rows, inputs, shared, ends[-1])
        if failed >= 0:
            return None, failed
        if len(outputs) == 1:
            return out.reshape(states, *outputs[0]), -1
        return tuple(out[:, a:b].reshape(states, *y) for a, b, y in zip(ends, ends[1:], outputs)), -1

    def _shapes(self, algorithm: Algorithm, optional: tuple[str, ...], numbers: dict[str, int]) -> Shapes:
        """Shapes of an algorithm's inputs and outputs for one state."""
        shapes, key = self.structure.shapes, (algorithm, optional, *numbers.values())
        if key not in shapes:
            sizes = Sizes(self.pattern, numbers)
            shapes[key] = tuple(sizes.inputs(algorithm, optional)), tuple(map(sizes.shape, algorithm.outputs))
        return shapes[key]

    def _single(self, algorithm: Algorithm, optional: tuple[str, ...], numbers: dict[str, int]) -> Call | None:
        """`one` with a tuple as result, prepared once."""
        key = (algorithm, optional, *numbers.values())
        if key not in self._singles:
            self._singles[key] = self.one(algorithm, optional, result=tuple, **numbers)
        return self._singles[key]

    def loops(
        self, algorithm: Algorithm, optional: tuple[str, ...] = (), *, result: type = tuple, **options: int
    ) -> Call:
        """The same as `one` by numba's loops, which leave optional inputs to `over`."""
        if optional:
            return functools.partial(self.on_symbols, algorithm, optional, options, result)
        sizes = Sizes(self.pattern, options)
        shapes = [sizes.shape(y) for y in algorithm.outputs]
        inputs = sum(not x.optional for x in algorithm.inputs)
        short = sizes.names["nb"] <= LONG_CHAIN

        def call(*arrays):
            if any(map(has_symbols, arrays)):
                return self.on_symbols(algorithm, optional, options, result, *arrays)
            if np.ma.MaskedArray in map(type, arrays):  # the loops would use masked values
                return None
            out, shared = [np.empty(shape) for shape in shapes], iter(arrays[inputs:])
            try:
                fixed = [next(shared) if x.is_array else options[x.name] for x in algorithm.options]
                fitted = fitting(algorithm, self.model)
                entry = fitted.one if short else fitted.entry("one", self.model)
                entry(self.model, *arrays[:inputs], *fixed, *out)
            except (ValueError, TypeError, StopIteration):
                return None
            return out[0] if len(out) == 1 else tuple.__new__(result, out)

        return call

    def one(
        self, algorithm: Algorithm, optional: tuple[str, ...] = (), *, result: type = tuple, **options: int
    ) -> Call | None:
        """f(*inputs) -> outputs of a single state, or None if loops are better (`OPERATIONS`).

        options: the integer ones. f itself returns None for unsupported arguments, and if there is no result; arrays
        among the options follow its inputs.
        """
        addresses = self._addresses(algorithm, "one", optional, options) if enabled() else None
        if addresses is None:  # otherwise the first is that of `bool one(model, x, ys)`, see `llvm`
            return None
        other = functools.partial(self.on_symbols, algorithm, optional, options, result)
        self._kept.append(other)
        return entries.entry(addresses[0], self.model, *self._shapes(algorithm, optional, options), result, other)

    def on_symbols(
        self, algorithm: Algorithm, optional: tuple[str, ...], options: dict[str, int], result: type, *arrays: Any
    ) -> Any:
        """The result of `one` for symbols, when a controller is traced; None for other arguments.

        The robot's numbers are constants of the trace, unless they are symbols themselves.
        """
        if not any(map(holds_symbols, (self.model, *arrays))):
            return None
        if tuple(map(np.shape, arrays)) != self._shapes(algorithm, optional, options)[0]:
            return None
        rows = iter(np.asarray(x, object).view(np.ndarray) for x in arrays)
        numbers = np.where(np.isnan(self.pattern), self.model, self.pattern).astype(object).view(np.ndarray)
        states = [x for x in algorithm.inputs if not x.optional or x.name in optional]
        taken = {x.name: next(rows) for x in states}
        every = [taken[x.name].ravel() if x.name in taken else np.empty(0, object) for x in algorithm.inputs]
        every += [next(rows) if x.is_array else options[x.name] for x in algorithm.options]
        with finite_numbers(x for x in (numbers, *every) if isinstance(x, np.ndarray)):
            good, outputs = evaluated(algorithm, Sizes(self.pattern, options), numbers, every, symbolic())
        require(good)
        results = [entered(y) for y in outputs]
        return results[0] if len(results) == 1 else tuple.__new__(result, results)

    def many(self, algorithm: Algorithm, optional: tuple[str, ...] = (), **options: int) -> Batch | None:
        """The same for many states, or None if loops are better."""
        key = (algorithm, optional, tuple(sorted(options.items())))
        if key not in self._batches:
            addresses = self._addresses(algorithm, "many", optional, options)
            numbers = sum(map(Sizes(self.pattern, options).of, algorithm.outputs))
            self._batches[key] = None if addresses is None else Batch(self.model, addresses, numbers)
        return self._batches[key]

    def _addresses(
        self, algorithm: Algorithm, kind: str, optional: tuple[str, ...], options: dict[str, Any]
    ) -> Addresses:
        key = (algorithm.py_func, kind, optional, tuple(sorted(options.items())))
        with _lock:
            addresses = self.structure.addresses
            if key not in addresses:
                addresses[key] = self._made(algorithm, kind, optional, options)
            return addresses[key]

    def _made(self, algorithm: Algorithm, kind: str, optional: tuple[str, ...], options: dict[str, Any]) -> Addresses:
        identity = (
            fingerprint(fitting(algorithm, self.pattern).py_func),
            kind,
            optional,
            sorted(options.items()),
            version(),
            host.lanes(),
        )
        key = hashlib.sha256(repr(identity).encode() + self.pattern.tobytes()).hexdigest()

        def make() -> bytes:
            if STORE * sum(map(Sizes(self.pattern, options).of, algorithm.outputs)) > OPERATIONS:
                return LOOPS
            try:
                guarded, limit = kind == "one", NODES
                traced: Trace | None = trace(algorithm, self.pattern, options, optional, guarded=guarded, limit=limit)
            except UntraceableError:
                traced = None
            if traced is None or not allows(traced):
                return LOOPS
            return host.object_code(module(traced, [1] if kind == "one" else [host.lanes()], side=host.lanes()))

        code = cache.kept(key, make)
        return None if code == LOOPS else host.load(code, cache.ENTRY_NAMES[kind])


def _one_by_one(
    one: Call, rows: Sequence[np.ndarray], shapes: Sequence[tuple[int, ...]], shared: list[np.ndarray], total: int
) -> tuple[np.ndarray, int]:
    """(Outputs (states, total), number of the first state without a result or -1), for a few states."""
    out = np.empty((len(rows[0]), total))
    for b, y in enumerate(out):
        result = one(*(x[b].reshape(shape) for x, shape in zip(rows, shapes)), *shared)
        if result is None:
            return out, b
        y[:] = np.concatenate([part.ravel() for part in (result if isinstance(result, tuple) else (result,))])
    return out, -1


@functools.lru_cache(maxsize=256)
def _structure(pattern: bytes) -> Structure:
    return Structure(Sizes(np.frombuffer(pattern)).names["nb"])


@functools.cache
def version() -> str:
    """A hash of the modules that determine the code of a kernel; cached code is stored under this hash."""
    return hashlib.sha256((cache.version() + package_digest(__package__ or "")).encode()).hexdigest()
