"""Evaluation of many states per call: blocks of SIMD lanes, several threads, and the remaining states."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from . import host

LINE = 64  # bytes of a cache line
SHARE = 4096  # states per thread: starting two threads takes 0.2 ms, as long as 4000 states of an arm


def in_threads(run: Callable[[int, int], Any], states: int, lanes: int, threads: int) -> list[Any]:
    """run(first, end) for shares of the states that begin at multiples of the lanes, each in a thread of its own."""
    if threads < 2:
        return [run(0, states)]
    cuts = [*(states // lanes * k // threads * lanes for k in range(threads)), states]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, cuts, cuts[1:]))


class Batch:
    """Compiled code for many states.

    addresses: of `many` and of the size of its work memory (see `llvm`). numbers: length of an output row.
    """

    def __init__(self, model: np.ndarray, addresses: Sequence[int], numbers: int):
        signature = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2, ctypes.c_void_p)
        run, size = addresses
        self.run, self.size = host.function(signature, run), ctypes.c_int64.from_address(size).value
        self.model, self.numbers, self.lanes = model, numbers, host.lanes()

    def __call__(self, *arrays: np.ndarray, threads: int = 1) -> tuple[np.ndarray, int]:
        """(outputs (states, numbers), index of the first state without a result or -1).

        Inputs are checked C-contiguous float64 arrays (states, numbers).
        """
        states, lanes = len(arrays[0]), self.lanes
        out = np.empty((states, self.numbers))
        whole = states - states % lanes
        failed = self._shared(arrays, out, whole, min(threads, whole // SHARE))
        if failed < 0 and whole < states:  # the remaining states are repeated to fill the lanes
            rest = np.minimum(np.arange(lanes) + whole, states - 1)
            last = np.empty((lanes, self.numbers))
            failed = self._filled([np.ascontiguousarray(a[rest]) for a in arrays], last, 0, lanes)
            out[whole:] = last[: states - whole]
            failed = min(failed + whole, states - 1) if failed >= 0 else failed
        return out, failed

    def _shared(self, arrays: Sequence[np.ndarray], out: np.ndarray, end: int, threads: int) -> int:
        """The first `end` states, a multiple of the lanes, in as many threads."""
        done = in_threads(lambda first, last: self._filled(arrays, out, first, last), end, self.lanes, threads)
        return next((failed for failed in done if failed >= 0), -1)

    def _filled(self, arrays: Sequence[np.ndarray], out: np.ndarray, first: int, end: int) -> int:
        """Evaluate states `first` to `end`; ctypes releases the interpreter lock."""
        if first == end:
            return -1
        work = np.empty(self.size + LINE // 8)
        aligned = -(-work.ctypes.data // LINE) * LINE
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        return self.run(
            self.model.ctypes.data, ctypes.addressof(pointers), out.ctypes.data, first, end, ctypes.c_void_p(aligned)
        )


class BufferCall:
    """Compiled code for many states on buffers of another library; addresses: of `buffer_calls.NAMES`."""

    def __init__(self, addresses: Sequence[int]):
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2, ctypes.c_void_p)
        call, self.xla_handler, self.xla_version, work = addresses
        self.run, self.work = host.function(signature, call), ctypes.c_int64.from_address(work).value
        self.lanes = host.lanes()

    def __call__(
        self, constants: int, inputs: Sequence[int], outputs: Sequence[int], states: int, threads: int = 1
    ) -> None:
        """Fill the outputs; arguments are addresses of arrays, the last input of the parameters."""
        sources = (ctypes.c_void_p * len(inputs))(*inputs)
        results = (ctypes.c_void_p * len(outputs))(*outputs)

        def run(first: int, end: int) -> None:  # ctypes releases the interpreter lock
            work = np.empty(self.work)
            self.run(constants, sources, results, first, end, work.ctypes.data)

        in_threads(run, states, self.lanes, min(threads, states // SHARE))
