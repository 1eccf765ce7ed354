"""Registers, local memory, spills and occupancy of kernels for NVIDIA GPUs, as NVIDIA's assembler reports them.

It needs no GPU but the assembler, ptxas (`make cuda-tools`), and says so where it is missing. Occupancy is the share of
the threads of a multiprocessor that can be active, computed from the registers: a multiprocessor has 65536 of them,
given to a warp in units of 256, and 2048 threads, or 1536 with compute capability 8.6 and 8.9 (CUDA C++ programming
guide, technical specifications). Spilled bytes are those stored and loaded again in a thread. A closed loop is a Panda
under Slotine and Li's law or a PD law, with the default monitors or without any.

    python experiments/benchmarks/benchmark_gpu_code.py [--quick]
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.control.compiled.choice import known_trace
from geomctrl.control.compiled.gpu_machine import NAME, loop_module
from geomctrl.control.compiled.traced_loop import TracedLoop
from geomctrl.control.loop_runner import Case, LoopRunner, in_a_loop
from geomctrl.control.monitors.chosen import monitor_list
from geomctrl.tracing.backends import gpu, host, ptx

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))
from cuda_tools import PTXAS
from lib.results import Results
from lib.script import Quick, run_script

RESULTS = Results("gpu_code")
DERIVATIVES = "inverse_dynamics_derivatives", "forward_dynamics_derivatives"
PROCESSORS = {"sm_80": 2048, "sm_86": 1536, "sm_89": 1536, "sm_90": 2048, "sm_100": 2048}  # threads that can be active
TERMS = "inverse_dynamics", "mass_matrix", "forward_dynamics", "terms", *DERIVATIVES
REGISTERS, UNIT, WARP, WARPS = 65536, 256, 32, 4  # of a multiprocessor, of an allocation; threads; warps of a block
MEMORY = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def main(*, quick: Quick = False) -> None:
    """quick: two processors and two terms."""
    if PTXAS is None:
        print("NVIDIA's ptxas is not installed: make cuda-tools")
        return
    processors = ("sm_80", "sm_90") if quick else tuple(PROCESSORS)
    for kernel, precision, name, text in kernels(quick):
        for processor in processors:
            registers, stack, spilled = assembled(text(processor), processor, name)
            occupancy = WARP * active_warps(registers, PROCESSORS[processor] // WARP) / PROCESSORS[processor]
            print(
                f"{kernel:54} {precision:6} {processor:6} {registers:4} {stack:6} {spilled:6} {100 * occupancy:4.0f} %"
            )
            RESULTS.row(
                "kernels", kernel=kernel, precision=precision, processor=processor, registers=registers,
                local_bytes=stack, spilled_bytes=spilled, occupancy=occupancy,
            )  # fmt: skip
    RESULTS.save(quick)


def kernels(quick: bool) -> Iterator[tuple]:
    """(Kernel, precision, entry, function of a processor that returns its PTX)."""
    robot = gc.models.panda()
    for term in TERMS[:2] if quick else TERMS:
        case = CATALOGUE[term]
        traced = trace(case.algorithm, structure(robot._model), case.options, guarded=True)
        for real in ("double", "float"):
            module = ptx.module(traced, real, term)
            yield f"Panda, {term}", real, term, lambda processor, text=module: written(text, processor)
    q = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    motion = gc.references.Sinusoids(robot, q, 0.3, 0.3)
    laws = [gc.controllers.PDGravity(robot, q), gc.controllers.SlotineLi(robot, motion, adapt="links")]
    for law in laws[:1] if quick else laws:
        for watched in ("default",) if quick else ("default", None):
            traced, monitors = traced_loop(robot, law, q, watched), "with" if watched else "without"
            for real in ("double", "float"):
                module = loop_module(traced, real)
                name = f"Panda, closed loop with {type(law).__name__}, {monitors} monitors"
                yield name, real, NAME, lambda processor, text=module: written(text, processor)


def traced_loop(robot: gc.Robot, law: gc.Controller, q: np.ndarray, monitors: str | None) -> TracedLoop:
    """A closed loop's trace."""
    case = Case(robot, law, q, np.zeros(robot.nv))
    runner = LoopRunner(case, 1.0, 1e-3, None, monitor_list(monitors), gc.SimulationOptions())
    with in_a_loop():
        runner.begin()
        return known_trace(runner.loop, runner.record.watchers, strict=False).traced


def written(module: str, processor: str) -> str:
    """The PTX of a module, for the newest processor up to this one that LLVM writes code for."""
    number = int(processor.removeprefix("sm_"))
    library = gpu.libdevice() if "@__nv_" in module else b""
    return host.ptx(module, ptx.processor((number // 10, number % 10)), library)


def assembled(text: str, processor: str, name: str) -> tuple[int, int, int]:
    """(Registers, bytes of local memory, bytes spilled and loaded again) of a thread."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(text)
        command = [PTXAS, f"-arch={processor}", "-v", "-o", f"{folder}/kernel.cubin", source]
        log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    log = log[log.index(f"Compiling entry function '{name}'") :]
    stack, stores, loads = map(int, MEMORY.search(log).groups())
    return int(re.search(r"Used (\d+) registers", log)[1]), stack, stores + loads


def active_warps(registers: int, most: int) -> int:
    """Warps that a multiprocessor can hold at a time, in whole blocks."""
    per_warp = -(-registers * WARP // UNIT) * UNIT
    return min(REGISTERS // per_warp, most) // WARPS * WARPS


if __name__ == "__main__":
    run_script(main)
