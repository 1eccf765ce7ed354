"""`GpuMachine`: executes the runs of a traced loop on an NVIDIA GPU, one thread for each.

Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU.
"""

from __future__ import annotations

import hashlib
import time
from typing import Any

import numpy as np

from geomctrl.compiler import gpu_loops
from geomctrl.compiler.gpu_loops import Image
from geomctrl.compiler.loop_memory import Numbers, used_numbers
from geomctrl.tracing.backends import cache, gpu, host, ptx

from .lane_memory import LaneMemory
from .traced_loop import TracedLoop

NAME = "loops"
ROW_BYTES = 1 << 29  # largest size of the samples that a launch stores
STEPS = 4096  # of each run in a launch, at most
SECONDS = 2.0  # of a launch, about: between two of them interrupts and progress are handled


class GpuMachine(LaneMemory[Image]):
    """The memory of `width` runs on the host and on GPU `number`, and the kernel that advances them."""

    def __init__(self, traced: TracedLoop, width: int, number: int, precision: str = "double"):
        equations = traced.equations
        super().__init__(traced, width, Numbers(used_numbers(equations), width), Image(equations, width))
        self.number, self.kernel = number, _kernel(traced, number, precision)

    def begin(self, k: int, taking_part: np.ndarray) -> None:
        """Copy all runs to the device, before step k. taking_part: (width,) whether a run is to be advanced."""
        self.on_device = [gpu.put(x, self.number) for x in (self.values, self.memory)]
        self.reached = gpu.put(np.where(taking_part, 2 * k, -1), self.number)

    def steps(self, every: int) -> int:
        """Number of steps in the next launch, at the speed of the last one. every: steps between stored samples."""
        stored = max(ROW_BYTES // (8 * self.layout.row), 1)
        return max(min(STEPS, stored * every, int(SECONDS * self.steps_per_second)), 1)

    def run(
        self, first: int, last: int, every: int, total: int, dt: float, t_end: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Advance the runs that have reached step `first` to step `last` of `total`.

        Returns 2 k + phase for each run (see `gpu_loops`), and the rows (stored samples, numbers, runs).
        """
        stored = rows_between(first, last, every, total)
        shape = stored, self.traced.equations.row, self.width
        addresses = [*(x.ptr for x in self.on_device)]
        begun = time.perf_counter()
        with gpu.current(self.kernel.cuda, self.kernel.device):
            stream = self.kernel.cuda.LEGACY_DEFAULT_STREAM
            rows = gpu.new(self.kernel.cuda, self.kernel.device, shape, np.dtype(float), stream)
            arguments: list[Any] = [*addresses, rows.ptr, self.reached.ptr, first, last, every, total, dt, t_end]
            self.kernel.launch(stream, self.width, [], arguments)
            reached, stored_rows = gpu.get(self.reached), gpu.get(rows)
        self.steps_per_second = (last - first) / (time.perf_counter() - begun)
        return reached, stored_rows

    def end(self) -> None:
        """Copy all runs back to the host's memory."""
        self.memory[:] = gpu.get(self.on_device[1])


def rows_between(first: int, last: int, every: int, total: int) -> int:
    """Number of samples that a run stores after sample `first`, up to sample `last`."""
    return last // every - first // every + (last == total and total % every > 0 and last > first)


def _kernel(traced: TracedLoop, number: int, precision: str) -> gpu.Kernel:
    """The kernel of a traced loop on a device, new or as before."""
    key = "gpu", number, precision
    if key not in traced.codes:
        equations, device = traced.equations.with_rows_in_samples, gpu.device(number)
        capability = device.compute_capability
        processor = ptx.processor((capability[0], capability[1]))
        text = loop_module(traced, precision)
        library = gpu.libdevice() if gpu_loops.library_functions(equations) else b""
        identity = hashlib.sha256(f"{cache.version()} {processor} {text}".encode() + library).hexdigest()
        code = cache.kept(identity, lambda: host.ptx(text, processor, library).encode()).decode()
        traced.codes[key] = gpu.Kernel(device, NAME, lambda blocks: code)
    return traced.codes[key]


def loop_module(traced: TracedLoop, precision: str = "double") -> str:
    """The kernel of a traced loop as LLVM's text."""
    e = traced.equations.with_rows_in_samples
    return gpu_loops.module(e, Numbers(used_numbers(e), 1), NAME, precision, monitored(traced))


def monitored(traced: TracedLoop) -> set[int]:
    """The outputs of a sample that belong to monitors: their values and signals, and what they remember."""
    e, monitors = traced.equations.with_rows_in_samples, (traced.equations.memory - traced.worst) // 2
    own = {k for x in traced.memory if x.watcher < monitors for k in range(x.first, x.first + x.size)}
    shown = {k for c in traced.columns if c.kind in ("monitor", "watched") for k in range(c.first, c.first + c.size)}
    return shown | {output for output, place in e.remembered if place in own or place >= traced.worst}
