"""Parallel closed loops: loops with the same trace run in the SIMD lanes of one machine, and several threads share all.

If compiled code fails in one lane, the other lanes continue, and that loop ends or continues alone. Compiled loops are
compared with Python; a loop whose results differ is repeated in Python.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import ceil
from typing import Any, NamedTuple

from geomctrl.errors import SimulationError
from geomctrl.tracing.backends import gpu as gpus
from geomctrl.tracing.backends import host
from geomctrl.tracing.untraceable import UntraceableError

from .compiled.choice import FittedTrace, say
from .compiled.comparison import SIDE_BY_SIDE, WHOLE, Comparison, Extent
from .compiled.law_memory import holders
from .compiled.law_use import used_by_this_thread
from .compiled.loop_parts import law_of
from .compiled.machine import SAMPLE, STEP, Machine, turn
from .compiled.object_kinds import REPLACEMENTS
from .compiled.traced_loop import TracedLoop
from .group_members import MIN_STEPS, alone, completed, in_python, run_of, trace_of
from .loop_runner import LoopRunner, in_a_loop
from .on_gpu import MAX_RUNS, GpuGroup
from .options import Gpu
from .run import Run

ROWS_IN_CACHE = 1024  # stored samples of eight lanes that are read while they are in the processor's cache
MAX_CHUNK_STEPS = 32_768  # steps of eight lanes between two checks for interrupts (a quarter of a second)
MAX_SEQUENTIAL = 2  # a group of at most this many loops runs faster one after the other


def to_end(
    runners: Sequence[LoopRunner],
    choice: bool | str,
    threads: int,
    *,
    compared_each: bool = False,
    gpu: Gpu | None = None,
) -> list[Run]:
    """The runs of fresh runners, in order. A failed run ends at its failure.

    compared_each: compare every compiled loop with Python, and the first of each trace at more states; False: compare
    only the first. gpu: the GPU that executes loops with a common trace; None for the processor.

    A thread starts as many runners as there are lanes and completes those with a common trace together. Runners with
    too few partners wait for others.
    """
    runs: dict[int, Run] = {}
    waiting: dict[int, list[_StartedRunner]] = {}
    lanes, interrupted = host.lanes() if gpu is None else _runs_of(gpu), threading.Event()
    compared: set[int] = set()  # traces

    def report(fraction: float) -> None:
        if interrupted.is_set():  # by another thread
            raise KeyboardInterrupt

    def continue_run(group: list[_StartedRunner]) -> None:
        traced = group[0].traced
        cells = {} if traced is None else traced.law_memory.cells
        held = [holders(law_of(runners[x.number].loop), cells) for x in group] if cells else []
        shared = len(set().union(*held)) < sum(map(len, held))  # what one law writes, another reads
        if traced is not None and len(group) > MAX_SEQUENTIAL and not shared:
            first = id(traced) not in compared
            compared.add(id(traced))
            members = [(runners[x.number], x.known_trace) for x in group if x.known_trace is not None]
            extents = [WHOLE] * first + [SIDE_BY_SIDE] * ((len(group) - first) * compared_each)
            together = _Lanes(members, choice, report) if gpu is None else GpuGroup(members, choice, report, gpu)
            runs.update(zip((x.number for x in group), together.to_end(extents)))
        else:
            _say_that_alone(gpu, traced, shared)
            runs.update((x.number, alone(runners[x.number], choice, report)) for x in group)

    def begins(k: int) -> bool:
        with in_a_loop():
            try:
                runners[k].begin()
            except SimulationError as error:
                runs[k] = run_of(error)
        return k not in runs

    def begin(first: int) -> None:
        groups: dict[int, list[_StartedRunner]] = {}
        started = [k for k in range(first, min(first + lanes, len(runners))) if begins(k)]
        with in_a_loop(), REPLACEMENTS.with_cached_result():  # only here, because first samples call user code
            for k in started:
                begun = _StartedRunner(k, trace_of(runners[k], choice))
                groups.setdefault(id(begun.traced), []).append(begun)
        for key, group in groups.items():
            if len(group) == lanes or group[0].traced is None:
                continue_run(group)
            else:
                waiting.setdefault(key, []).extend(group)

    own = used_by_this_thread(x for runner in runners for x in (runner.loop.controller, runner.loop.plant))
    with own, _runs_kept(runners, runs), _workers(threads, interrupted) as each:
        each(begin, range(0, len(runners), lanes))
        rest = [group[k : k + lanes] for group in waiting.values() for k in range(0, len(group), lanes)]
        each(continue_run, rest)
    return [runs[k] for k in range(len(runners))]


def _runs_of(gpu: Gpu) -> int:
    """Number of runs in a launch. Raises GeomctrlError without this GPU, before any loop runs."""
    gpus.listed_device(gpu.number)
    return MAX_RUNS


def _say_that_alone(gpu: Gpu | None, traced: TracedLoop | None, shared: bool) -> None:
    """Warn that loops for a GPU run one by one on the CPU, and say why."""
    if gpu is None:
        return
    reason = "their laws write to the same object" if shared else f"at most {MAX_SEQUENTIAL} have the same equations"
    if traced is None:
        reason = f"each has fewer than {MIN_STEPS} steps, a plant with `changes`, or code that can not be traced"
    say(f"device: these loops run on the CPU: {reason}")


@contextmanager
def _runs_kept(runners: Sequence[LoopRunner], runs: Mapping[int, Run]) -> Iterator[None]:
    """Context that adds all runs so far to Ctrl-C, SystemExit and similar exceptions as their attribute `runs`."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        kept = [runs[k] if k in runs else runner.interrupted(error) for k, runner in enumerate(runners)]
        error.runs = kept  # pyright: ignore[reportAttributeAccessIssue]
        error.add_note(f"geomctrl: the {len(kept)} runs so far are this exception's attribute `runs`")
        raise


class _StartedRunner(NamedTuple):
    """A runner after its first sample: its index, and the trace that it shares with others."""

    number: int
    known_trace: FittedTrace | None

    @property
    def traced(self) -> TracedLoop | None:
        return None if self.known_trace is None else self.known_trace.traced


@contextmanager
def _workers(
    threads: int, interrupted: threading.Event
) -> Iterator[Callable[[Callable[[Any], None], Iterable[Any]], Any]]:
    """Call the function with each argument, in this thread or shared among several threads; return when all are done.

    Threads take turns in Python and share the processors in compiled code: tracing reads, and restores, all objects
    that the traced code may reach, which may include the law of a run in another thread.
    `interrupted` is set if this thread is interrupted or another one raises an exception.
    """
    if threads == 1:
        yield lambda function, arguments: deque(map(function, arguments), maxlen=0)
        return
    python = threading.Lock()

    def in_turn(function: Callable[[Any], None], x: Any) -> None:
        with python:
            turn.set(python)
            function(x)

    with ThreadPoolExecutor(threads) as pool:
        try:
            yield lambda function, xs: deque(pool.map(functools.partial(in_turn, function), xs), maxlen=0)
        except BaseException:
            interrupted.set()
            raise


class _Lanes:
    """Runners with a common trace, side by side in one machine."""

    def __init__(
        self, members: list[tuple[LoopRunner, FittedTrace]], choice: bool | str, report: Callable[[float], None]
    ):
        self.runners, self.traces = [runner for runner, _ in members], [trace for _, trace in members]
        self.choice, self.report, width = choice, report, host.lanes()
        self.machine = Machine(self.traces[0].traced, width)
        spare = width - len(members)  # unused lanes repeat the first loop
        values = [trace.copies.values for trace in self.traces]
        self.machine.set_numbers([*values, *[values[0]] * spare])
        self.filled = [*self.runners, *[self.runners[0]] * spare]
        self.alive = (1 << len(members)) - 1

    def to_end(self, compared: Sequence[Extent]) -> list[Run]:
        """The runs; the first ones are compared with Python, each to the given extent."""
        first, runs, phase = self.runners[0], {}, STEP
        for lane, runner in enumerate(self.filled):
            runner.enter(self.machine, lane)
        entered = self.machine.memory.copy()  # comparisons overwrite all lanes
        for lane, (runner, extent) in enumerate(zip(self.runners, compared)):
            runner.comparison = Comparison(runner.loop, self.machine, lane, self.traces[lane].parts, extent)
            try:
                runner.comparison.before(*runner.times)
            except UntraceableError as error:
                self.alive &= ~(1 << lane)
                runs[lane] = in_python(runner, self.choice, self.report, error)
        self.machine.memory[:] = entered
        k, pieces = first.k, max(runner.pieces for runner in self.runners)
        stride = 1 if self.machine.stores_every_step else first.every
        chunk = ceil(min(MAX_CHUNK_STEPS, ROWS_IN_CACHE * stride) / pieces)
        while (self.alive and k < first.n_steps) or (phase == SAMPLE and self.alive):
            last = min(k + chunk, first.n_steps)
            k, phase, stopped, rows = self.machine.run(
                k, last, first.every, first.n_steps, first.dt, first.t_end, self.alive, phase
            )
            for lane, runner in enumerate(self.runners):
                if self.alive >> lane & 1:
                    runner.stored(self.machine, lane, rows)
                if (self.alive & stopped) >> lane & 1:
                    runner.leave(self.machine, lane, k, phase)
                    runner.count_stop()
                    others = self.machine.memory.copy()  # includes the clock of all lanes, which comparing modifies
                    runs[lane] = alone(runner, self.choice, self.report, stopped=True)
                    self.machine.memory[:] = others
            self.alive &= ~stopped
            self.report(k / first.n_steps)
        rest = [lane for lane in range(len(self.runners)) if lane not in runs]
        for lane in rest:
            self.runners[lane].leave(self.machine, lane, k, phase)
        runs |= {lane: completed(self.runners[lane], self.choice, self.report) for lane in rest}
        return [runs[lane] for lane in range(len(self.runners))]
