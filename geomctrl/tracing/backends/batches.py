"""Many states in a call: blocks of lanes, several threads, and the last few states that fill no block."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import host

LINE = 64  # bytes of a cache line
SHARE = 4096  # states that are worth a thread: two threads start and end in 0.2 ms, as long as 4000 take of an arm


class Batch:
    """Compiled code for many states.

    addresses: of `many` and of the number of its work memory's entries (see `llvm`). numbers: how many an output row
    has.
    """

    def __init__(self, model: np.ndarray, addresses: Sequence[int], numbers: int):
        signature = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2, ctypes.c_void_p)
        run, size = addresses
        self.run, self.size = host.function(signature, run), ctypes.c_int64.from_address(size).value
        self.model, self.numbers, self.lanes = model, numbers, host.lanes()

    def __call__(self, *arrays: np.ndarray, threads: int = 1) -> tuple[np.ndarray, int]:
        """(outputs (states, numbers), number of the first state without a result or -1).

        Inputs are C-contiguous float64 arrays (states, numbers) that have been checked.
        """
        states, lanes = len(arrays[0]), self.lanes
        out = np.empty((states, self.numbers))
        whole = states - states % lanes
        failed = self._shared(arrays, out, whole, min(threads, whole // SHARE))
        if failed < 0 and whole < states:  # the last few, repeated until they fill the lanes
            rest = np.minimum(np.arange(lanes) + whole, states - 1)
            last = np.empty((lanes, self.numbers))
            failed = self._filled([np.ascontiguousarray(a[rest]) for a in arrays], last, 0, lanes)
            out[whole:] = last[: states - whole]
            failed = min(failed + whole, states - 1) if failed >= 0 else failed
        return out, failed

    def _shared(self, arrays: Sequence[np.ndarray], out: np.ndarray, end: int, threads: int) -> int:
        """The first `end` states, a multiple of the lanes, in as many threads."""
        if threads < 2:
            return self._filled(arrays, out, 0, end)
        cuts = [end // self.lanes * k // threads * self.lanes for k in range(threads + 1)]
        with ThreadPoolExecutor(threads) as pool:
            done = pool.map(lambda first, last: self._filled(arrays, out, first, last), cuts, cuts[1:])
            return next((failed for failed in done if failed >= 0), -1)

    def _filled(self, arrays: Sequence[np.ndarray], out: np.ndarray, first: int, end: int) -> int:
        """States `first` to `end`; ctypes lets other threads run meanwhile."""
        if first == end:
            return -1
        work = np.empty(self.size + LINE // 8)
        aligned = -(-work.ctypes.data // LINE) * LINE
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        return self.run(
            self.model.ctypes.data, ctypes.addressof(pointers), out.ctypes.data, first, end, ctypes.c_void_p(aligned)
        )
