"""Closed loops on an NVIDIA GPU: runs with a common trace are the threads of one kernel.

The CPU's code of the same trace is compared with Python before the run, as always; the GPU's first steps are compared
with those of the CPU's code, and its stored samples with Python after the run. A run in which the kernel stops, and
runs on a GPU that fails, are continued or repeated on the CPU. So is a run in single precision in which a monitor
exceeds its limit, because rounding may be the reason.

Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from geomctrl.tracing.backends.gpu import first_line
from geomctrl.tracing.untraceable import UntraceableError

from .compiled.choice import FittedTrace, say
from .compiled.comparison import MAX_AMPLIFICATION, Comparison, Extent, NoResultError
from .compiled.gpu_machine import GpuMachine, rows_between
from .compiled.machine import Machine
from .group_members import alone, completed, in_python
from .loop_runner import LoopRunner, in_a_loop
from .options import Gpu
from .run import Run
from .samples import ROUNDING

MAX_RUNS = 1 << 17  # runs in a launch; each needs about 0.2 MB of the host's memory
CHECK_STEPS, CHECKED_RUNS = 32, 8  # steps and runs that are compared with the CPU's code
MIN_SPLIT = 64  # runs, below which a launch that needs too much memory is not split
MEMORY = re.compile("OUT_OF_MEMORY|out of memory|MemoryError")  # of errors of the driver, and of numpy


class _Steps(NamedTuple):
    """Where a run is after some steps: 2 k + phase (see `gpu_loops`), its numbers at a sample and its rates."""

    reached: int
    x: np.ndarray
    slopes: np.ndarray

    def difference(self, other: _Steps) -> float:
        """The largest difference of two numbers, relative to the largest one if that exceeds 1."""
        if self.reached != other.reached:
            return np.inf
        largest = 0.0
        for a, b in zip(self[1:], other[1:]):
            scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
            differ = ~((a == b) | (np.isnan(a) & np.isnan(b)))
            with np.errstate(all="ignore"):
                differences = np.nan_to_num(np.abs(a - b)[differ] / scale, nan=np.inf)
            largest = max(largest, differences.max(initial=0.0))
        return largest


class GpuGroup:
    """Runners with a common trace on a GPU."""

    def __init__(
        self,
        members: Sequence[tuple[LoopRunner, FittedTrace]],
        choice: bool | str,
        report: Callable[[float], None],
        gpu: Gpu,
    ):
        self.members, self.choice, self.report, self.gpu = members, choice, report, gpu
        self.runners = [runner for runner, _ in members]
        self.cpu = Machine(members[0][1].traced)  # computes single samples for comparisons
        self.runs: dict[int, Run] = {}

    def to_end(self, compared: Sequence[Extent]) -> list[Run]:
        """The runs; the first ones are compared with Python, each to the given extent."""
        self._compare_samples(compared)
        stopped = self._advanced()
        if isinstance(stopped, str):
            return self._without_gpu(stopped, compared)
        for lane, runner in enumerate(self.runners):
            if lane in self.runs:
                continue
            self.cpu.set_numbers([self.members[lane][1].copies.values])
            if lane in stopped and runner.strict and self.gpu.precision == "float":
                self.runs[lane] = self._repeated(runner)  # perhaps rounding has passed a monitor's limit
            elif lane in stopped:
                runner.count_stop()
                self.runs[lane] = alone(runner, self.choice, self.report, stopped=True)
            else:
                self.runs[lane] = self._completed(runner)
        return [self.runs[lane] for lane in range(len(self.runners))]

    def _advanced(self) -> set[int] | str:
        """Run to the end on the GPU. Returns the lanes in which the kernel stopped, or the message of a failure."""
        try:
            machine = GpuMachine(self.members[0][1].traced, len(self.members), *self.gpu)
            for lane, runner in enumerate(self.runners):
                runner.enter(machine, lane)
            machine.set_numbers([trace.copies.values for _, trace in self.members])
            return self._advance(machine)
        except UntraceableError as error:
            if self.choice is True:
                raise
            return str(error)
        except Exception as error:  # of the driver, each of whose layers has its own class, or of a missing library
            return f"{type(error).__name__}: {first_line(error)}"

    def _completed(self, runner: LoopRunner) -> Run:
        """A run that has reached its end; in single precision, repeated on the CPU if rounding may have passed a limit:
        that of a monitor, or one beyond which the law has no result.
        """
        record, single = runner.record, self.gpu.precision == "float"
        if not single or all(x <= m.limit for x, m in zip(record.worst, record.monitors)):
            try:
                return completed(runner, self.choice, self.report)
            except NoResultError:
                if not single:
                    raise
        return self._repeated(runner)

    def _repeated(self, runner: LoopRunner) -> Run:
        """The run again, on the CPU."""
        again = self._restarted(runner)
        run = alone(again, self.choice, self.report)
        runner.record = again.record
        return run

    def _compare_samples(self, extents: Sequence[Extent]) -> None:
        """Compare samples of the first runs with Python; runs that differ are completed in Python."""
        for lane, (extent, (runner, trace)) in enumerate(zip(extents, self.members)):
            self.cpu.set_numbers([trace.copies.values])
            runner.enter(self.cpu, 0)
            where = f"cuda:{self.gpu.number}", self.gpu.precision
            runner.comparison = Comparison(runner.loop, self.cpu, 0, trace.parts, extent, where)
            try:
                runner.comparison.before(*runner.times)
            except UntraceableError as error:
                self.runs[lane] = in_python(runner, self.choice, self.report, error)

    def _advance(self, machine: GpuMachine) -> set[int]:
        first = self.runners[0]
        k, total, every = first.k, first.n_steps, first.every
        here = np.array([lane not in self.runs for lane in range(len(self.runners))])
        machine.begin(k, here)
        stopped: dict[int, tuple[int, int]] = {}
        while k < total and here.any():
            steps = CHECK_STEPS if k == first.k else machine.steps(every)
            last = min(k + steps, total)
            reached, rows = machine.run(k, last, every, total, first.dt, first.t_end)
            rows = np.ascontiguousarray(rows.transpose(2, 0, 1))
            for lane in np.flatnonzero(here).tolist():
                step, phase = divmod(int(reached[lane]), 2)
                stored = rows_between(k, step - phase, every, total)
                self.runners[lane].stored(machine, 0, rows[lane, :stored, :, None])
                if (step, phase) != (last, 0):
                    stopped[lane] = step, phase
            here[list(stopped)] = False
            if k == first.k:
                machine.end()
                self._compare_steps(machine, last, reached)
            k = last
            self.report(k / total)
        machine.end()
        for lane, runner in enumerate(self.runners):
            if lane not in self.runs:
                runner.leave(machine, lane, *stopped.get(lane, (k, 0)))
        return {*stopped}

    def _compare_steps(self, machine: GpuMachine, last: int, reached: np.ndarray) -> None:
        """Compare the first steps of some runs with those of the CPU's code. Raises UntraceableError if they differ.

        A run that stops on both is not compared: its states grow beyond all bounds, and rounding with them.
        """
        single, rounding = self.gpu.precision == "float", ROUNDING[self.gpu.precision]
        lanes = [lane for lane in range(len(self.runners)) if lane not in self.runs]
        compared = len(machine.x) - single * len(self.runners[0].record.monitors)  # rounding decides times of the worst
        law, n = type(self.runners[0].loop.controller).__name__, last - self.runners[0].k
        stopped = agreeing = 0
        for lane in lanes[:: -(-len(lanes) // CHECKED_RUNS)]:
            expected, stops = self._steps_on_cpu(lane, last, compared), reached[lane] != 2 * last
            if stops and expected.reached != 2 * last:
                continue
            if single and stops:
                stopped += 1  # perhaps beyond the range of floats; the CPU continues there
                continue
            agreeing += 1
            here = _Steps(int(reached[lane]), machine.x[:compared, lane], machine.slopes[:, lane])
            difference = here.difference(expected)
            if difference <= rounding.agreement:
                continue
            displaced = (self._steps_on_cpu(lane, last, compared, x * rounding.perturbation) for x in (1.0, -1.0))
            if difference > MAX_AMPLIFICATION * max(x.difference(expected) for x in displaced):
                raise UntraceableError(
                    f"{law}: the GPU's first {n} steps, in {self.gpu.precision} precision, differ from those of the CPU"
                    f" by {difference:.1g} of the largest number"
                )
        if stopped and not agreeing:
            raise UntraceableError(
                f"{law}: the GPU stops all {stopped} compared runs within {n} steps; the CPU does not"
            )

    def _steps_on_cpu(self, lane: int, last: int, compared: int, displacement: float = 0.0) -> _Steps:
        """A run after step `last` by the CPU's code, from its state displaced relative to its largest number."""
        runner = self.runners[lane]
        self.cpu.set_numbers([self.members[lane][1].copies.values])
        runner.enter(self.cpu, 0)
        self.cpu.y[:] += displacement * np.abs(self.cpu.y).max(initial=1.0)
        k, phase, _, _ = self.cpu.run(runner.k, last, runner.every, runner.n_steps, runner.dt, runner.t_end)
        return _Steps(2 * k + phase, self.cpu.x[:compared, 0].copy(), self.cpu.slopes[:, 0].copy())

    def _without_gpu(self, reason: str, extents: Sequence[Extent]) -> list[Run]:
        """The runs again after a failure of the GPU: in two halves if memory was short, otherwise on the CPU."""
        n = len(self.runners)
        again = [(self._restarted(runner), trace) for runner, trace in self.members]
        if MEMORY.search(reason) and n >= 2 * MIN_SPLIT:
            halves = slice(0, n // 2), slice(n // 2, n)
            runs = [
                run
                for part in halves
                for run in GpuGroup(again[part], self.choice, self.report, self.gpu).to_end(extents[part])
            ]
        else:
            say(f"GPU {self.gpu.number} failed ({reason}): {n} loops run on the CPU")
            runs = [alone(runner, self.choice, self.report) for runner, _ in again]
        for runner, (fresh, _) in zip(self.runners, again):
            runner.record = fresh.record  # contains the accumulated measures
        return runs

    def _restarted(self, runner: LoopRunner) -> LoopRunner:
        """A fresh runner of the same case, after its first sample."""
        fresh = runner.again()
        with in_a_loop():
            fresh.begin()
        return fresh
