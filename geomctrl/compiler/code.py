"""The functions of one robot, by the names of `catalogue`: straight-line code where it pays, numba's loops elsewhere.

    robot._code.inverse_dynamics(q, v, a)       a new array, or None for what it was not made for

Code is made when it is first asked for and shared by all robots of the same structure, in memory and on disk. Which way
a function runs is decided here and known to nobody else; results differ by rounding.
"""

from __future__ import annotations

import ctypes
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
from .catalogue import FUNCTIONS
from .llvm import module
from .symbols import UntraceableError
from .tracing import Trace, structure, trace

OFFERED = [function.algorithm for function in FUNCTIONS.values()]
_lock = threading.RLock()
_structures = Counter()  # how many structures this process has met

Call = Callable[..., Any]


def enabled() -> bool:
    """False where the environment says GEOMCTRL_COMPILER=off: everything then runs in numba's loops."""
    chosen = os.environ.get("GEOMCTRL_COMPILER", "on")
    if chosen not in ("on", "off"):
        raise ArgumentError(f"GEOMCTRL_COMPILER: expected 'on' or 'off', got {chosen!r:.40}")
    return chosen == "on"


class Structure:
    """What has been compiled for a structure, and how often it was wanted."""

    def __init__(self):
        self.addresses: dict[tuple, int | None] = {}
        self.wanted = Counter()
        self.eager = _structures["met"] < budget.EAGER
        _structures["met"] += 1

    def worthwhile(self, what: Any, states: int) -> bool:
        """Whether a function is compiled now. A process that meets many structures compiles those it works with."""
        self.wanted[what] += states
        return self.eager or self.wanted[what] >= budget.CALLS


class Code:
    """The functions of the robot with this model array; `FUNCTIONS` has their names."""

    def __init__(self, model: np.ndarray):
        self.model = model
        self.pattern = structure(model)
        self.sizes = Sizes(self.pattern)
        self.structure = _structure(self.pattern.tobytes())
        self.of_size: dict[tuple, Call] = {}

    def __getattr__(self, name: str) -> Call:
        """f(*arrays) -> the outputs of a single state, or None for arguments that the function was not made for."""
        if name not in FUNCTIONS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._found(name, name, {})

    def sized(self, name: str, **sizes: tuple[int, ...]) -> Call:
        """The same for a function with options that are arrays, for these shapes; f takes them behind the inputs."""
        key = name, *sizes.values()
        return self.of_size.get(key) or self._found(key, name, sizes)

    def _found(self, key: Any, name: str, sizes: dict[str, Any]) -> Call:
        kept: dict = self.__dict__ if key == name else self.of_size
        algorithm, fixed = FUNCTIONS[name]
        options = fixed | sizes
        if enabled() and self.structure.worthwhile(key, 1):
            kept[key] = self.one(algorithm, **options) or self.loops(algorithm, **options)
            return kept[key]
        loops = self.loops(algorithm, **options)

        def for_now(*arrays):
            if self.structure.worthwhile(key, 1):
                kept[key] = self.one(algorithm, **options) or loops
            return loops(*arrays)

        kept[key] = for_now if enabled() else loops
        return kept[key]

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
        shapes = [self.sizes.shape(y) for y in algorithm.outputs]
        if states > host.lanes():
            batch = self.many(algorithm, given, **options)
            if batch is None:
                return None
            out, failed = batch(*rows)
        else:
            one = self.one(algorithm, given, **options)
            if one is None:
                return None
            results = [one(*(np.array(x[b]) for x in rows)) for b in range(states)]
            failed = next((b for b, result in enumerate(results) if result is None), -1)
            parts = [y if isinstance(y, tuple) else (y,) for y in results]
            out = np.array([[] if failed >= 0 else np.concatenate([y.ravel() for y in p]) for p in parts])
        if failed >= 0:
            return None, failed
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        columns = np.split(out.reshape(states, -1 if states else ends[-1] if len(ends) else 0), ends, axis=1)
        made = [y.reshape(states, *shape) for y, shape in zip(columns, shapes)]
        return (made[0] if len(made) == 1 else tuple(made)), -1

    def loops(self, algorithm: Algorithm, **options: Any) -> Call:
        """The same as `one` by numba's loops."""
        shapes = [self.sizes.shape(y) for y in algorithm.outputs]
        sized = {name: options[name] for name, kind in algorithm.options if "[" in kind}

        def call(*arrays):
            out = [np.empty(shape) for shape in shapes]
            states = len(arrays) - len(sized)
            try:
                given = {name: a.reshape(sized[name]) for name, a in zip(sized, arrays[states:])}
                if not all(np.isfinite(a).all() for a in given.values()):
                    return None
                chosen = [given.get(name, options[name]) for name, _ in algorithm.options]
                algorithm.one(self.model, *arrays[:states], *chosen, *out)
            except (ValueError, TypeError):
                return None
            return out[0] if len(out) == 1 else tuple(out)

        return call

    def one(self, algorithm: Algorithm, given: tuple[str, ...] = (), **options: Any) -> Call | None:
        """f(*inputs) -> outputs of a single state, or None where loops are better (see `budget`).

        f itself answers None for arguments that it was not made for, and where there is no result. Options that are
        arrays are given here as their size, and to f behind the inputs.
        """
        core = self._address(algorithm, "one", given, options)
        if core is None:
            return None
        inputs = self.sizes.inputs(algorithm, given, options)
        return entries.entry(core, self.model, inputs, [self.sizes.shape(y) for y in algorithm.outputs])

    def many(self, algorithm: Algorithm, given: tuple[str, ...] = (), **options: Any) -> Call | None:
        """f(*inputs) -> (outputs (states, numbers), first state without a result or -1); None where loops are better.

        Inputs are C-contiguous float64 arrays (states, numbers) that have been checked.
        """
        address = self._address(algorithm, "many", given, options)
        if address is None:
            return None
        run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)(address)
        numbers, lanes = sum(int(np.prod(self.sizes.shape(y))) for y in algorithm.outputs), host.lanes()

        def batch(*arrays: np.ndarray) -> tuple[np.ndarray, int]:
            states = len(arrays[0])
            out = np.empty((states, numbers))
            whole = states - states % lanes
            failed = _run(run, self.model, arrays, out, whole)
            if failed < 0 and whole < states:  # the last few, repeated until they fill the lanes
                rest = np.minimum(np.arange(lanes) + whole, states - 1)
                last = np.empty((lanes, numbers))
                failed = _run(run, self.model, [np.ascontiguousarray(a[rest]) for a in arrays], last, lanes)
                out[whole:] = last[: states - whole]
                failed = min(failed + whole, states - 1) if failed >= 0 else failed
            return out, failed

        return batch

    def _address(self, algorithm: Algorithm, kind: str, given: tuple[str, ...], options: dict[str, Any]) -> int | None:
        key = (algorithm.py_func, kind, given, tuple(sorted(options.items())))
        with _lock:
            known = self.structure.addresses
            if key not in known:
                known[key] = self._made(algorithm, kind, given, options)
            return known[key]

    def _made(self, algorithm: Algorithm, kind: str, given: tuple[str, ...], options: dict[str, Any]) -> int | None:
        words = (fingerprint(algorithm.py_func), kind, given, sorted(options.items()), version(), host.lanes())
        key = hashlib.sha256(repr(words).encode() + self.pattern.tobytes()).hexdigest()

        def make() -> bytes:
            try:
                traced: Trace | None = trace(algorithm, self.pattern, options, given, guarded=kind == "one")
            except UntraceableError:
                traced = None
            if traced is None or not budget.allows(traced):
                return budget.LOOPS
            return host.object_code(module(traced, [1] if kind == "one" else [host.lanes()]))

        code = cache.kept(key, make)
        return None if code == budget.LOOPS else host.load(code, [f"f_{kind}"])[0]


def _run(run, model, arrays, out, states) -> int:
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    return run(model.ctypes.data, ctypes.addressof(pointers), out.ctypes.data, 0, states) if states else -1


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
