"""The compiled functions of one robot: made when first asked for, shared by all robots of the same structure."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.kernels.primitives import fingerprint

from . import budget, cache, entries, host
from .llvm import module
from .symbols import UntraceableError
from .tracing import Sizes, Trace, structure, trace

_lock = threading.RLock()


def enabled() -> bool:
    """False where the environment says GEOMCTRL_COMPILER=off: everything then runs in numba's loops."""
    chosen = os.environ.get("GEOMCTRL_COMPILER", "on")
    if chosen not in ("on", "off"):
        raise ArgumentError(f"GEOMCTRL_COMPILER: expected 'on' or 'off', got {chosen!r:.40}")
    return chosen == "on"


class Code:
    """What has been compiled for a robot's model array."""

    def __init__(self, model: np.ndarray):
        self.model = model
        self.pattern = structure(model)
        self.sizes = Sizes(self.pattern)
        self.shared = _shared(self.pattern.tobytes())

    def one(self, algorithm: Algorithm, given: tuple[str, ...] = (), **options: Any) -> Callable[..., Any] | None:
        """f(*inputs) -> outputs for a single state, or None where loops are better (see `budget`).

        f itself answers None for arguments that it was not made for, and where there is no result.
        """
        core = self._address(algorithm, "one", given, options)
        if core is None:
            return None
        inputs = self.sizes.inputs(algorithm, given, options)
        return entries.entry(core, self.model, inputs, [self.sizes.shape(y) for y in algorithm.outputs])

    def many(self, algorithm: Algorithm, given: tuple[str, ...] = (), **options: Any) -> Callable[..., Any] | None:
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
            if key not in self.shared:
                self.shared[key] = self._made(algorithm, kind, given, options)
            return self.shared[key]

    def _made(self, algorithm: Algorithm, kind: str, given: tuple[str, ...], options: dict[str, Any]) -> int | None:
        words = (fingerprint(algorithm.py_func), kind, given, sorted(options.items()), version(), host.lanes())
        key = hashlib.sha256(repr(words).encode() + self.pattern.tobytes()).hexdigest()

        def make() -> bytes:
            try:
                traced: Trace | None = trace(algorithm, self.pattern, options, given)
            except UntraceableError:
                traced = None
            if traced is None or traced.operations > budget.OPERATIONS:
                return budget.LOOPS
            return host.object_code(module(traced, [1] if kind == "one" else [host.lanes()]))

        code = cache.kept(key, make)
        return None if code == budget.LOOPS else host.load(code, [f"f_{kind}"])[0]


def _run(run, model, arrays, out, states) -> int:
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    return run(model.ctypes.data, ctypes.addressof(pointers), out.ctypes.data, 0, states) if states else -1


@functools.lru_cache(maxsize=256)
def _shared(pattern: bytes) -> dict[tuple, int | None]:
    """Addresses of what is compiled for a structure."""
    return {}


@functools.cache
def version() -> str:
    """A hash of the compiler's own sources: what it makes of a kernel is kept under it."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
