"""Terms and closed loops on one NVIDIA GPU: states per second compared with this machine's CPU, bottlenecks, real time.

Needs a GPU with its driver and `pip install 'geomctrl[cuda]'`; says so and stops where one is missing. Times are
between two events around many launches in one stream, without checks, the results' memory allocated in the stream. The
share of bandwidth counts inputs and outputs once; the share of peak counts the trace's operations, a fused multiply-add
as two, against what the GPU does of them at its highest clock. Goals on an H200, doubles, arms with seven joints:
inverse dynamics 5e9 a second, forward dynamics 1e9.

    python experiments/benchmarks/benchmark_cuda.py [--quick] [--states N]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl import models
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.control.compiled.gpu_machine import GpuMachine
from geomctrl.tracing.backends import gpu

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import Results
from lib.robots import chain
from lib.script import Quick, run_script

CASES = (
    ("panda", "inverse_dynamics"),
    ("panda", "forward_dynamics"),
    ("panda", "terms"),
    ("chain", "inverse_dynamics"),
)
GOALS = {("panda", "inverse_dynamics"): 5e9, ("panda", "forward_dynamics"): 1e9}
# Results a clock and multiprocessor of fused multiply-adds in double and single precision, by compute capability
# (CUDA C++ programming guide, throughput of arithmetic instructions).
RATES = {(7, 0): (32, 64), (8, 0): (32, 64), (9, 0): (64, 128), (10, 0): (64, 128)}
CONSUMER = (2, 128)  # all others
RESULTS = Results("cuda")


def peaks(device) -> tuple[float, dict[str, float]]:
    """(bytes a second of the memory, operations a second by precision) that the GPU's properties promise."""
    p = device.properties
    memory = 2.0 * p.memory_clock_rate * 1e3 * p.global_memory_bus_width / 8.0  # two transfers a clock
    double, single = RATES.get(tuple(device.compute_capability), CONSUMER)
    clocks = 2.0 * p.clock_rate * 1e3 * p.multiprocessor_count
    return memory, {"double": double * clocks, "float": single * clocks}


def states(robot: gc.Robot, inputs: list[tuple[str, tuple[int, ...]]], n: int, kind) -> list[np.ndarray]:
    """n random states; of a thousand configurations, as they are all that costs time to draw."""
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(1000)], kind)
    return [
        np.resize(q, (n, robot.nq)) if name == "q" else rng.normal(size=(n, *shape)).astype(kind)
        for name, shape in inputs
    ]


def on_gpu(f, arguments: list[np.ndarray], seconds: float) -> float:
    """States a second: launches between two events, the best of five rounds."""
    device, n = gpu.device(), len(arguments[0])
    arrays, stream = [gpu.put(x) for x in arguments], device.create_stream()
    timed = gpu.core().EventOptions(timing_enabled=True)
    for _ in range(3):
        f(*arrays, stream=stream, check=False)
    stream.sync()
    start = time.perf_counter()
    f(*arrays, stream=stream, check=False)
    stream.sync()
    launches = max(3, int(seconds / 5 / max(time.perf_counter() - start, 1e-5)))
    best = np.inf
    for _ in range(5):
        first = stream.record(options=timed)
        for _ in range(launches):
            f(*arrays, stream=stream, check=False)
        last = stream.record(options=timed)
        stream.sync()
        best = min(best, (last - first) * 1e-3 / launches)
    return n / best


def on_cpu(robot: gc.Robot, term: str, arguments: list[np.ndarray], seconds: float) -> float:
    """States a second of the public function in double precision, on one core."""
    rows = [x[:10_000].astype(float) for x in arguments]
    call = getattr(robot, term)
    call(*rows)
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call(*rows)
        best = min(best, time.perf_counter() - start)
    return len(rows[0]) / best


def report(name: str, robot: gc.Robot, term: str, precision: str, n: int, seconds: float) -> bool:
    """One line; whether a goal is missed."""
    f = robot.to_cuda(term, precision=precision)
    kind = np.float64 if precision == "double" else np.float32
    arguments = states(robot, f.inputs, n, kind)
    rate, cpu = on_gpu(f, arguments, seconds), on_cpu(robot, term, arguments, seconds / 5)
    algorithm, options, *_ = CATALOGUE[term]
    outputs = f(*(gpu.put(x[:1]) for x in arguments))
    sizes = sum(int(np.prod(y.shape)) for y in (outputs if isinstance(outputs, tuple) else (outputs,)))
    moved = (sum(int(np.prod(shape)) for _, shape in f.inputs) + sizes) * np.dtype(kind).itemsize
    operations = trace(algorithm, structure(robot._model), options).operations
    memory, peak = peaks(gpu.device())
    goal = GOALS.get((name, term)) if precision == "double" else None
    verdict = "" if goal is None else f"   goal {goal:.0e}: {'met' if rate >= goal else 'MISSED'}"
    print(
        f"  {robot.name:8s} {term:17s} {precision:6s} {rate:9.2e} /s   {rate / cpu:8.0f} x one core's {cpu:8.2e}   "
        f"{100 * rate * moved / memory:5.1f} % of bandwidth   "
        f"{100 * rate * operations / peak[precision]:5.1f} % of peak   "
        f"{f.registers} registers, {f.local_bytes} bytes, blocks of {f.threads}{verdict}",
        flush=True,
    )
    RESULTS.row(
        gpu.device().name, robot=robot.name, term=term, precision=precision, states_per_s=rate, of_one_core=rate / cpu,
        bandwidth_percent=100 * rate * moved / memory, peak_percent=100 * rate * operations / peak[precision],
    )  # fmt: skip
    return goal is not None and rate < goal


def closed_loops(n: int, t_end: float) -> None:
    """n loops of a Panda under Slotine-Li with 70 parameters, with monitors: the kernel, and the whole sweep."""
    robot = models.panda()
    reference = gc.references.Sinusoids(robot, robot.neutral(), 0.3, 0.4, 0.5)
    start = reference(0.0)

    def make(point):
        law = gc.controllers.SlotineLi(robot, reference, Lambda=point["Lambda"])
        return robot.with_payload(point["payload"]), law, start.q, start.v

    rng, spent, run = np.random.default_rng(0), [], GpuMachine.run

    def timed(self, *arguments):
        begun = time.perf_counter()
        result = run(self, *arguments)
        spent.append(time.perf_counter() - begun)
        return result

    space = {name: ("loop", rng.uniform(a, b, n)) for name, a, b in (("Lambda", 3.0, 6.0), ("payload", 0.1, 3.0))}
    options = gc.SimulationOptions(device="cuda", compiled=True)
    measures = [gc.measures.TrackingRMS(), gc.measures.PeakTorque()]
    GpuMachine.run = timed
    try:
        begun = time.perf_counter()
        gc.sweep(make, space, measures, t_end, 1e-3, options=options)
        whole = time.perf_counter() - begun
    finally:
        GpuMachine.run = run
    real = n * t_end
    kernel = f"kernel {sum(spent):.2f} s, {real / sum(spent):.2e} x real time"
    print(f"  {n} loops of {t_end:g} s: {kernel}; sweep {whole:.1f} s")
    RESULTS.row(gpu.device().name, loops=n, kernel_of_real_time=real / sum(spent), sweep_of_real_time=real / whole)


def main(*, quick: Quick = False, states: int = 4_000_000) -> None:
    """states: that a launch works on."""
    reason = gpu.why_not()
    if reason is not None:
        print(f"skipped: {reason}")
        return
    device = gpu.device()
    memory, peak = peaks(device)
    rates = ", ".join(f"{x / 1e12:.1f} TFLOP/s {precision}" for precision, x in peak.items())
    print(f"{device.name}: {memory / 1e12:.2f} TB/s, {rates}")
    robots = {"panda": models.panda(), "chain": chain(30)}
    missed = False
    for name, term in CASES:
        n = states if name == "panda" and term != "terms" else states // 8
        for precision in ("double", "float"):
            missed |= report(name, robots[name], term, precision, n, 0.5 if quick else 5.0)
    closed_loops(1_000 if quick else 100_000, 1.0 if quick else 5.0)
    RESULTS.save(quick)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    run_script(main)
