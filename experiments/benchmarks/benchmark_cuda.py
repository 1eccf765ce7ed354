"""Terms and closed loops on one NVIDIA GPU: times in the form of GRiD's table, errors, goals.

Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU. Needs a GPU with its driver and
`pip install 'geomctrl[cuda]'`; says so and stops where one is missing. `tests/experiments/test_benchmark_cuda.py`
runs it on the stand-in.

A row is a term and a batch. Its columns, in doubles and in floats: microseconds of a launch on arrays that are in the
GPU's memory (resident), of copying the arguments there, the launch and copying the results back (transfers), and the
largest error, relative to the largest number of that result on the CPU in doubles, over at most 4096 states.
MuJoCo Warp, if installed, computes in floats, resident. Times are between two CUDA events around many repetitions in
one stream, the best of five rounds; launches are from Python, which limits small batches. The share of bandwidth
counts arguments and results once; the share of peak counts the trace's operations, a fused multiply-add as two.

Closed loops are those of a Panda under Slotine and Li's law with 70 parameters, MK4 at 1 kHz, with the default
monitors; their time is that between CUDA events around each launch. Their error is that of the measures of eight runs.

    python experiments/benchmarks/benchmark_cuda.py [--quick] [--largest N] [--loops N] [--t-end T]
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import geomctrl as gc
from geomctrl import models
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.terms.gpu import CudaFunction
from geomctrl.tracing.backends import gpu

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import Results
from lib.script import Quick, run_script
from lib.warp_peer import warp_peer

TERMS = (
    "inverse_dynamics", "mass_matrix", "forward_dynamics", "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
)  # fmt: skip
BATCHES = (16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_000_000)
TYPES = {"double": np.float64, "float": np.float32}
BOUNDS = {"double": 1e-10, "float": 2e-3}  # of an error
COMPARED = 4096  # states of a batch
ROUNDS = 5
GOALS = {("inverse_dynamics", "float"): 5e9, ("loops", "double"): 1e6}  # a second; times real time
# Results a clock and multiprocessor of fused multiply-adds in double and single precision, by compute capability
# (CUDA C++ programming guide, throughput of arithmetic instructions).
RATES = {(7, 0): (32, 64), (8, 0): (32, 64), (9, 0): (64, 128), (10, 0): (64, 128)}
CONSUMER = (2, 128)  # all others
RESULTS = Results("cuda")


def main(*, quick: Quick = False, largest: int = 1_000_000, loops: int = 100_000, t_end: float = 5.0) -> None:
    """largest: batch; loops, t_end [s]: of the closed loops."""
    reason = gpu.why_not()
    if reason is not None:
        print(f"skipped: {reason}")
        return
    describe_device()
    robot, seconds = models.panda(), 0.05 if quick else 0.5
    bad = []
    for term in TERMS:
        bad += table(robot, term, [n for n in BATCHES if n <= largest], seconds)
        RESULTS.save(quick)  # a machine that is lent may be taken away
    for precision in ("double", "float"):
        bad += closed_loops(loops, t_end, precision)
        RESULTS.save(quick)
    for line in bad:
        print(f"MISSED: {line}")
    sys.exit(1 if bad else 0)


def describe_device() -> None:
    device = gpu.device()
    p, (memory, peak) = device.properties, peaks(device)
    row = {"clock_MHz": p.clock_rate / 1e3, "multiprocessors": p.multiprocessor_count,
           "memory_clock_MHz": p.memory_clock_rate / 1e3, "memory_bits": p.global_memory_bus_width,
           "memory_GiB": round(device_memory(device) / 2**30, 1), "TB_per_s": memory / 1e12,
           **{f"TFLOP_per_s_{precision}": x / 1e12 for precision, x in peak.items()}}  # fmt: skip
    print(device.name, *(f"{name} {x:g}" for name, x in row.items()), sep=", ")
    RESULTS.row("device", device=device.name, **row)


def device_memory(device: Any) -> float:
    """Bytes of the GPU's memory; nan if NVIDIA's management library does not say it."""
    try:
        return float(gpu.core().system.Device(pci_bus_id=device.pci_bus_id).memory_info.total)
    except Exception:  # each layer of driver loading has its own exception
        return float("nan")


def peaks(device: Any) -> tuple[float, dict[str, float]]:
    """(bytes a second of the memory, operations a second by precision) that the GPU's properties promise."""
    p = device.properties
    memory = 2.0 * p.memory_clock_rate * 1e3 * p.global_memory_bus_width / 8.0  # two transfers a clock
    double, single = RATES.get(tuple(device.compute_capability), CONSUMER)
    clocks = 2.0 * p.clock_rate * 1e3 * p.multiprocessor_count
    return memory, {"double": double * clocks, "float": single * clocks}


# --- terms -----------------------------------------------------------------------------------------------------------


def table(robot: gc.Robot, term: str, batches: list[int], seconds: float) -> list[str]:
    """Print and keep the rows of a term. Returns what misses its goal or its bound."""
    functions, bad = {precision: robot.to_cuda(term, precision=precision) for precision in TYPES}, []
    peer = warp_peer(robot, term, ROUNDS)
    print(f"\n{robot.name}, {term}: us a batch, error")
    print(
        f"{'batch':>9}"
        + "".join(f"{f'{p} resident':>17}{'transfers':>11}{'error':>9}" for p in TYPES)
        + "  MuJoCo Warp"
    )
    for n in batches:
        row: dict[str, float] = {}
        for precision, f in functions.items():
            arguments = states(robot, f.inputs, n, TYPES[precision])
            batch = Batch(f, arguments)
            row[f"{precision}_resident_us"] = 1e6 * batch.seconds(batch.launch, seconds)
            row[f"{precision}_transfers_us"] = 1e6 * batch.seconds(batch.transfer, seconds)
            row[f"{precision}_error"] = error(robot, term, arguments, batch.results())
            if not row[f"{precision}_error"] <= BOUNDS[precision]:
                bad.append(f"{term}, {n} states, {precision}: error {row[f'{precision}_error']:.1e}")
        theirs = {}
        if peer:
            arguments = states(robot, functions["float"].inputs, n, np.float32)
            theirs["mujoco_warp_us"], y = peer(arguments, seconds)
            if y is not None:
                theirs["mujoco_warp_error"] = error(robot, term, arguments, [(y, y)])
        row |= theirs
        cells = [
            f"{row[f'{p}_resident_us']:17.1f}{row[f'{p}_transfers_us']:11.1f}{row[f'{p}_error']:9.0e}" for p in TYPES
        ]
        print(f"{n:9}" + "".join(cells) + "".join(f"{x:13.3g}" for x in theirs.values()), flush=True)
        RESULTS.row(term, robot=robot.name, batch=n, **row)
    for precision, f in functions.items():
        rate = 1e6 * batches[-1] / row[f"{precision}_resident_us"]
        goal = GOALS.get((term, precision))
        if goal is not None and rate < goal:
            bad.append(f"{term}, {precision}: {rate:.1e} a second, goal {goal:.0e}")
        print(f"  {precision}: {shares(robot, term, f, precision, rate)}")
    return bad


def shares(robot: gc.Robot, term: str, f: CudaFunction, precision: str, rate: float) -> str:
    """What a rate is of the GPU's bandwidth and peak, and what the kernel needs."""
    case, (memory, peak) = CATALOGUE[term], peaks(gpu.device())
    operations = trace(case.algorithm, structure(robot._model), case.options).operations
    shapes = [*(shape for _, shape in f.inputs), *f._launcher.outputs]
    moved = sum(int(np.prod(shape)) for shape in shapes) * np.dtype(TYPES[precision]).itemsize
    share = {
        "bandwidth_percent": 100 * rate * moved / memory,
        "peak_percent": 100 * rate * operations / peak[precision],
    }
    RESULTS.row("kernels", robot=robot.name, term=term, precision=precision, states_per_s=rate, **share,
                registers=f.registers, local_bytes=f.local_bytes, threads=f.threads)  # fmt: skip
    text = ", ".join(f"{x:.1f} % of {name.partition('_')[0]}" for name, x in share.items())
    return f"{rate:.2e} a second, {text}, {f.registers} registers, {f.local_bytes} bytes, blocks of {f.threads}"


def states(robot: gc.Robot, inputs: list[tuple[str, tuple[int, ...]]], n: int, kind: Any) -> list[np.ndarray]:
    """n random states; of a thousand configurations, as they are all that costs time to draw."""
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(min(n, 1000))], kind)
    return [
        np.resize(q, (n, robot.nq)) if name == "q" else rng.normal(size=(n, *shape)).astype(kind)
        for name, shape in inputs
    ]


class Batch:
    """A kernel with its arguments and results, in the GPU's memory and in page-locked memory of the host."""

    def __init__(self, f: CudaFunction, arguments: list[np.ndarray]):
        launcher, self.n = f._launcher, len(arguments[0])
        self.cuda, self.kernel, self.numbers = launcher.cuda, launcher.kernel, launcher.numbers
        self.stream = launcher.device.create_stream()
        self.inputs = [gpu.put(x) for x in arguments]
        self.outputs = [
            gpu.new(self.cuda, launcher.device, (self.n, *shape), launcher.dtype, self.stream)
            for shape in launcher.outputs
        ]
        pinned = self.cuda.LegacyPinnedMemoryResource()
        self.sources = [pinned.allocate(x.nbytes) for x in arguments]
        self.targets = [pinned.allocate(y.buffer.size) for y in self.outputs]
        for x, source in zip(arguments, self.sources):
            ctypes.memmove(int(source.handle), np.ascontiguousarray(x).ctypes.data, x.nbytes)
        self.addresses = [*(x.ptr for x in self.inputs), *(y.ptr for y in self.outputs), 0]

    def launch(self) -> None:
        self.kernel.launch(self.stream, self.n, self.numbers, self.addresses)

    def transfer(self) -> None:
        for source, x in zip(self.sources, self.inputs):
            x.buffer.copy_from(source, stream=self.stream)
        self.launch()
        for y, target in zip(self.outputs, self.targets):
            y.buffer.copy_to(target, stream=self.stream)

    def seconds(self, work: Callable[[], None], seconds: float) -> float:
        """Time of the work between two events, the best of some rounds that take `seconds` in all."""
        options = self.cuda.EventOptions(timing_enabled=True)
        for _ in range(3):
            work()
        self.stream.sync()
        begun = time.perf_counter()
        work()
        self.stream.sync()
        repetitions = max(1, int(seconds / ROUNDS / max(time.perf_counter() - begun, 1e-5)))
        best = np.inf
        for _ in range(ROUNDS):
            first = self.stream.record(options=options)
            for _ in range(repetitions):
                work()
            last = self.stream.record(options=options)
            last.sync()
            best = min(best, 1e-3 * (last - first) / repetitions)
        return best

    def results(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Each result as it is in the GPU's memory, and as it was copied back."""
        copies = [
            np.frombuffer(ctypes.string_at(int(x.handle), y.buffer.size), y.dtype).reshape(y.shape)
            for x, y in zip(self.targets, self.outputs)
        ]
        return [(gpu.get(y), copy) for y, copy in zip(self.outputs, copies)]


def error(
    robot: gc.Robot, term: str, arguments: list[np.ndarray], results: list[tuple[np.ndarray, np.ndarray]]
) -> float:
    """The largest error of results, relative to the largest number of each on the CPU in doubles."""
    rows = np.linspace(0, len(arguments[0]) - 1, min(len(arguments[0]), COMPARED)).astype(int)
    expected = getattr(robot, term)(*(x[rows].astype(float) for x in arguments))
    expected = expected if isinstance(expected, tuple) else (expected,)
    errors = [
        np.abs(y[rows] - z).max() / np.abs(z).max() for pair, z in zip(results, expected, strict=True) for y in pair
    ]
    return float(np.max(errors))  # nan if one is


# --- closed loops ----------------------------------------------------------------------------------------------------


def closed_loops(n: int, t_end: float, precision: str) -> list[str]:
    """n loops with monitors: the kernel's time, the whole sweep's, and the error of the measures of some runs."""
    robot = models.panda()
    motion = gc.references.Sinusoids(robot, [0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8], 0.3, 0.4, 0.5)
    start = motion(0.0)

    def make(point):
        law = gc.controllers.SlotineLi(robot, motion, Lambda=point["Lambda"])
        return robot.with_payload(point["payload"]), law, start.q, start.v

    rng = np.random.default_rng(0)
    values = {"Lambda": rng.uniform(3.0, 6.0, n), "payload": rng.uniform(0.1, 3.0, n)}
    measures = [gc.measures.TrackingRMS(), gc.measures.PeakTorque()]

    def swept(k: int, **options: Any) -> Any:
        space = {name: ("loop", x[:k]) for name, x in values.items()}
        settings, execution = gc.SimulationOptions(compiled=True, **options), gc.SweepExecution(block=k)
        return gc.sweep(make, space, measures, t_end, 1e-3, options=settings, execution=execution)

    with launch_times() as spent:
        begun = time.perf_counter()
        there = swept(n, device="cuda", precision=precision)
        whole = time.perf_counter() - begun
    if not spent:
        return [f"loops, {precision}: the GPU was not used"]
    compared, kernel = min(n, 8), sum(last - first for first, last in spent) * 1e-3
    here, real = swept(compared), n * t_end / kernel
    worst = max(
        float(np.max(np.abs(there[name].values[:compared] - here[name].values) / np.abs(here[name].values).max()))
        for name in ("tracking_rms", "peak_torque")
    )
    text = f"kernel {kernel:.3g} s in {len(spent)} launches, {real:.2e} x real time"
    print(f"\n{n} loops of {t_end:g} s, {precision}: {text}; sweep {whole:.3g} s; error {worst:.0e}", flush=True)
    row = {"kernel_s": kernel, "sweep_s": whole, "of_real_time": real, "sweep_of_real_time": n * t_end / whole}
    RESULTS.row("loops", precision=precision, loops=n, t_end_s=t_end, launches=len(spent), error=worst, **row)
    bad, goal = [], GOALS.get(("loops", precision), 0.0)
    if not worst <= BOUNDS[precision]:
        bad.append(f"loops, {precision}: error {worst:.1e}")
    if real < goal:
        bad.append(f"loops, {precision}: {real:.1e} x real time, goal {goal:.0e}")
    return bad


@contextlib.contextmanager
def launch_times() -> Iterator[list[tuple[Any, Any]]]:
    """A list of the events before and after each launch of a kernel in this context."""
    launch, events = gpu.Kernel.launch, []

    def timed(self: gpu.Kernel, stream: Any, *rest: Any) -> None:
        options = self.cuda.EventOptions(timing_enabled=True)
        first = stream.record(options=options)
        launch(self, stream, *rest)
        events.append((first, stream.record(options=options)))

    gpu.Kernel.launch = timed
    try:
        yield events
    finally:
        gpu.Kernel.launch = launch


if __name__ == "__main__":
    run_script(main)
