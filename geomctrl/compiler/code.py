"""The functions of one robot, by the names of `catalogue`: straight-line code where it pays, numba's loops elsewhere.

    robot._code.inverse_dynamics(q, v, a)       a new array, or None for what it was not made for

Code is made when it is first asked for and shared by all robots of the same structure, in memory and on disk. Which way
a function runs is decided here and known to nobody else; results differ by rounding.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.kernels.primitives import fingerprint

from . import budget, cache, entries, host
from .arithmetic import Sizes
from .batches import Batch
from .catalogue import CATALOGUE
from .llvm import module
from .symbols import UntraceableError
from .tracing import Trace, structure, trace

OFFERED = [function.algorithm for function in CATALOGUE.values()]
_lock = threading.RLock()
_structures = Counter()  # how many structures this process has met

Call = Callable[..., Any]
Found = list[int] | None  # addresses of what `NAMES` says, None for the loops
NAMES = {"one": ["f_one"], "many": ["f_many", "f_work"]}


def enabled() -> bool:
    """False where the environment says GEOMCTRL_COMPILER=off: everything then runs in numba's loops."""
    chosen = os.environ.get("GEOMCTRL_COMPILER", "on")
    if chosen not in ("on", "off"):
        raise ArgumentError(f"GEOMCTRL_COMPILER: expected 'on' or 'off', got {chosen!r:.40}")
    return chosen == "on"


class Structure:
    """What has been compiled for a structure, and how often it was wanted."""

    def __init__(self):
        self.addresses: dict[tuple, Found] = {}
        self.wanted = Counter()
        self.eager = _structures["met"] < budget.EAGER
        _structures["met"] += 1

    def worthwhile(self, what: Any, states: int) -> bool:
        """Whether a function is compiled now. A process that meets many structures compiles those it works with."""
        self.wanted[what] += states
        return self.eager or self.wanted[what] >= budget.CALLS


class Code:
    """The functions of the robot with this model array; `CATALOGUE` has their names."""

    def __init__(self, model: np.ndarray):
        self.model = model
        self.pattern = structure(model)
        self.sizes = Sizes(self.pattern)
        self.structure = _structure(self.pattern.tobytes())
        self._batches: dict[tuple, Batch | None] = {}

    def __getattr__(self, name: str) -> Call:
        """f(*arrays) -> the outputs of a single state, or None for arguments that the function was not made for."""
        if name not in CATALOGUE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        algorithm, options, result = CATALOGUE[name]
        loops = self.loops(algorithm, result=result, **options)
        if not enabled():
            return self._keep(name, loops)
        if self.structure.worthwhile(name, 1):
            return self._keep(name, self.one(algorithm, result=result, **options) or loops)

        def for_now(*arrays):
            if self.structure.worthwhile(name, 1):
                self._keep(name, self.one(algorithm, result=result, **options) or loops)
            return loops(*arrays)

        return self._keep(name, for_now)

    def _keep(self, name: str, call: Call) -> Call:
        self.__dict__[name] = call
        return call

    def over(self, algorithm: Algorithm, rows: Sequence[np.ndarray], given: tuple[str, ...], options: dict) -> Any:
        """(outputs, number of the first state without a result or -1) for checked states, (states, numbers) each.

        None where the loops are to do it.
        """
        states = len(rows[0])
        if (
            algorithm not in OFFERED
            or not enabled()
            or not self.structure.worthwhile((algorithm.py_func, "many"), states)
        ):
            return None
        way = self.many if states > host.lanes() else self._each
        call = way(algorithm, given, **options)
        if call is None:
            return None
        out, failed = call(*rows)
        if failed >= 0:
            return None, failed
        shapes = [self.sizes.shape(y) for y in algorithm.outputs]
        if len(shapes) == 1:
            return out.reshape(states, *shapes[0]), -1
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        return tuple(y.reshape(states, *shape) for y, shape in zip(np.split(out, ends, axis=1), shapes)), -1

    def _each(self, algorithm: Algorithm, given: tuple[str, ...], **options: Any) -> Call | None:
        """`many` for a few states: one after the other."""
        one = self.one(algorithm, given, **options)
        if one is None:
            return None

        def call(*rows):
            out = np.empty((len(rows[0]), sum(map(self.sizes.of, algorithm.outputs))))
            for b, y in enumerate(out):
                found = one(*(np.array(x[b]) for x in rows))
                if found is None:
                    return out, b
                y[:] = np.concatenate([part.ravel() for part in (found if isinstance(found, tuple) else (found,))])
            return out, -1

        return call

    def loops(self, algorithm: Algorithm, *, result: type = tuple, **options: Any) -> Call:
        """The same as `one` by numba's loops."""
        shapes = [self.sizes.shape(y) for y in algorithm.outputs]
        fixed = [options[name] for name, _ in algorithm.options]

        def call(*arrays):
            out = [np.empty(shape) for shape in shapes]
            try:
                algorithm.one(self.model, *arrays, *fixed, *out)
            except (ValueError, TypeError):
                return None
            return out[0] if len(out) == 1 else tuple.__new__(result, out)

        return call

    def one(
        self, algorithm: Algorithm, given: tuple[str, ...] = (), *, result: type = tuple, **options: Any
    ) -> Call | None:
        """f(*inputs) -> outputs of a single state, or None where loops are better (see `budget`).

        f itself answers None for arguments that it was not made for, and where there is no result. Options that are
        arrays are given here as their size, and to f behind the inputs.
        """
        addresses = self._addresses(algorithm, "one", given, options)
        if addresses is None:
            return None
        inputs = self.sizes.inputs(algorithm, given, options)
        return entries.entry(addresses[0], self.model, inputs, [self.sizes.shape(y) for y in algorithm.outputs], result)

    def many(self, algorithm: Algorithm, given: tuple[str, ...] = (), **options: Any) -> Batch | None:
        """The same for many states, or None where loops are better."""
        key = (algorithm, given, tuple(sorted(options.items())))
        if key not in self._batches:
            addresses = self._addresses(algorithm, "many", given, options)
            numbers = sum(map(self.sizes.of, algorithm.outputs))
            self._batches[key] = None if addresses is None else Batch(self.model, addresses, numbers)
        return self._batches[key]

    def _addresses(self, algorithm: Algorithm, kind: str, given: tuple[str, ...], options: dict[str, Any]) -> Found:
        key = (algorithm.py_func, kind, given, tuple(sorted(options.items())))
        with _lock:
            known = self.structure.addresses
            if key not in known:
                known[key] = self._made(algorithm, kind, given, options)
            return known[key]

    def _made(self, algorithm: Algorithm, kind: str, given: tuple[str, ...], options: dict[str, Any]) -> Found:
        words = (fingerprint(algorithm.py_func), kind, given, sorted(options.items()), version(), host.lanes())
        key = hashlib.sha256(repr(words).encode() + self.pattern.tobytes()).hexdigest()

        def make() -> bytes:
            try:
                traced: Trace | None = trace(algorithm, self.pattern, options, given, guarded=kind == "one")
            except UntraceableError:
                traced = None
            if traced is None or not budget.allows(traced):
                return budget.LOOPS
            return host.object_code(module(traced, [1] if kind == "one" else [host.lanes()], side=host.lanes()))

        code = cache.kept(key, make)
        return None if code == budget.LOOPS else host.load(code, NAMES[kind])


@functools.lru_cache(maxsize=1024)
def _structure(pattern: bytes) -> Structure:
    return Structure()


@functools.cache
def version() -> str:
    """A hash of the compiler's own sources: what it makes of a kernel is kept under it."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
