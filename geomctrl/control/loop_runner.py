"""`LoopRunner`: runs a closed loop from its first sample to its last, in Python or in compiled code.

If compiled code can not complete a step or a sample, Python repeats it and either goes on or explains why the run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import GeomctrlError, IntegrationError, SimulationError
from geomctrl.motion.trajectory import step_count
from geomctrl.robot import Robot
from geomctrl.tracing.code_identity import raised_in
from geomctrl.tracing.untraceable import UntraceableError

from .closed_loop import Loop
from .compiled.choice import FittedTrace, machine_for
from .compiled.comparison import Comparison, NoResultError, fill_work_buffers, spread_rows
from .compiled.lane_memory import LaneMemory
from .compiled.law_memory import MemoryLengthError
from .compiled.law_use import watched
from .compiled.machine import SAMPLE, STEP, Machine
from .contracts import Controller, evaluated_once
from .monitors import VIOLATED, Finding, Monitor
from .monitors.replay import Replay, confirm, finding
from .options import SimulationOptions
from .plant import Plant, plant_of
from .record import Record
from .run import Run
from .wrenches import SWITCH_TOLERANCE

CHUNK_STEPS = 1024  # steps per call of compiled code (milliseconds), between which interrupts and progress are handled
LONGER_CHUNKS = 2  # factor for runs whose progress is not reported
CHUNK_NUMBERS = 2**20  # most numbers in the rows of a chunk, which also bounds the time of a large robot's steps
PYTHON_CHUNK_STEPS = 64  # steps in Python between two progress reports
FILLING = 1, 2, 4, 8, 16, 32, 0  # samples in Python between attempts to trace a law that fills its buffers
MAX_STOPS, STOP_INTERVAL = 20, 10  # compiled code is abandoned after so many stops, each within so few steps


@contextmanager
def in_a_loop() -> Iterator[None]:
    """Context for running loops: references are cached per time, and numpy's overflow warnings are off."""
    with evaluated_once(), np.errstate(over="ignore", invalid="ignore"):
        yield


@dataclass(frozen=True, eq=False)
class Case:
    """A closed loop and its initial state: q0 (nq,), v0 (nv,)."""

    plant: Plant | Robot
    controller: Controller
    q0: ArrayLike
    v0: ArrayLike


class LoopRunner:
    """One closed loop, its progress and its record.

    `k` is the number of the sample or step that comes `next`; `k1` holds the rates at the beginning of a step. The
    arguments are those of `simulate`; `measures` have been started; with `confirming`, the run contains the findings of
    its monitors.
    """

    def __init__(
        self,
        case: Case,
        t_end: float,
        dt: float,
        control_dt: float | None,
        monitors: list[Monitor],
        options: SimulationOptions,
        measures: Sequence[Any] = (),
        confirming: bool = True,
    ):
        plant, controller = plant_of("plant", case.plant), case.controller
        self.loop = Loop(plant, controller, case.q0, case.v0, dt, control_dt, options.method)
        self.n_steps, self.dt, self.t_end = step_count(t_end, dt), float(dt), float(t_end)
        self.strict, self.every, self.confirming = options.strict, options.every, confirming
        rows = self.n_steps // self.every + 2
        held = self.loop.hold * self.dt
        nx = 0 if self.loop.plants is None else len(self.loop.y[self.loop.plants])
        self.record = Record(plant, controller, self.loop.z_shape, nx, monitors, rows, measures, held)
        self.k, self.next, self.k1 = 0, SAMPLE, self.loop.rates
        self.machine: Machine | None = None
        self.known_trace: FittedTrace | None = None  # the trace that the machine executes
        self.comparison: Comparison | None = None  # of the machine with Python
        self.kept_rows: list[np.ndarray] = []  # of stored samples that are compared after the run
        self.chunk = CHUNK_STEPS
        self.calls_user = False  # whether progress is reported to a user's function
        self.stops = 0  # consecutive stops of compiled code
        self.again: Callable[[], LoopRunner]  # a fresh runner of the same case; assigned by callers that need it
        self.resumed = 0  # sample or step that follows the last one computed in Python

    @property
    def done(self) -> bool:
        return self.k == self.n_steps and self.next == STEP

    def time(self, k: int) -> float:
        return min(k * self.dt, self.t_end)

    @property
    def pieces(self) -> float:
        """Estimated number of integrator steps per sample."""
        return 1.0 if self.loop.h is None else self.dt / self.loop.h

    def begin(self, report: Callable[[float], Any] = lambda fraction: None) -> None:
        """Take the first sample. An adaptive method also takes one step in Python, which selects the step size."""
        with self.explained():
            self.sample()
            report(0.0)
            if self.loop.adaptive and not self.done:
                self.in_python()

    def to_end(
        self,
        choice: bool | str,
        report: Callable[[float], Any] = lambda fraction: None,
        *,
        stopped: bool = False,
    ) -> Run:
        """Run to the end. `choice` is the option `compiled`; `stopped`: compiled code has stopped before `next`.

        Raises SimulationError, which contains the run so far.
        """
        if stopped:
            with self.explained():
                self.in_python()
            self.resumed = self.k
        try:
            self.machine = None if self.done else self.machine_chosen(choice)
        except NoResultError:
            if not stopped:
                raise
            self.comparison = None  # compiled code may have no result any more: Python completes the run
        while not self.done:
            with self.explained():
                self.continue_run(report)
            self.compare()
            if self.machine and self.calls_user:
                with self.explained():
                    self.tell(report)
            if self.machine and self.compiled_for is not self.loop.now and not self.done:
                self.machine = self.machine_chosen(choice)
        return self.run()

    def compare(self) -> None:
        """Compare stored samples with Python. Raises UntraceableError if the results differ."""
        if self.comparison is None:
            return
        self.comparison.after(self.kept_rows, self.loop.hold, self.dt)
        self.kept_rows = []
        before = self.record.compared
        self.record.compared = self.comparison.compared if before is None else before.and_then(self.comparison.compared)
        self.comparison.samples, self.comparison.difference = 0, 0.0

    def continue_run(self, report: Callable[[float], Any]) -> None:
        """Advance to the end, to a change of the plant, which needs other compiled code, or to a user's `progress`."""
        while not self.done and not (self.machine and self.compiled_for is not self.loop.now):
            advanced = self.machine and self.advanced(self.machine, report)
            if not advanced:
                self.in_python()
                self.resumed = self.k
            if self.calls_user and (self.machine or self.kept_rows):
                return  # to compare first: the function may change what both results depend on
            if not advanced and (self.machine or self.k % min(PYTHON_CHUNK_STEPS, self.chunk) == 0 or self.done):
                report(self.k / self.n_steps)

    def tell(self, report: Callable[[float], Any]) -> None:
        """Call a user's `progress`. If that changes what the loop uses, the compiled code no longer fits."""
        has_changed = watched(self.loop.controller, self.loop.plant, *self.record.watchers)
        report(self.k / self.n_steps)
        if not self.done and has_changed():
            self.compiled_for = None

    def run(self) -> Run:
        """The finished run. Raises SimulationError with `strict` if a violation is confirmed."""
        run = self.confirmed(f"reached t = {self.t_end:g} s", success=True)
        violated = [m for m in run.monitors.values() if m.verdict == VIOLATED]
        if self.strict and violated:
            reason = f"strict: monitor {violated[0]}"
            raise SimulationError(reason, run._failed(reason))
        return run

    def confirmed(self, reason: str, success: bool) -> Run:
        """The run so far, with the findings of its monitors."""
        run = self.record.run(reason, success)
        if self.confirming:
            confirm(run, self.record.monitors, self.loop, self.dt)
        return run

    def in_python(self) -> None:
        """Take the next step, if one is due, and the sample after it, in Python."""
        if self.next == STEP:
            t = self.time(self.k)
            self.loop.step(t, min(self.dt, self.t_end - t), self.k1)
            self.k, self.next = self.k + 1, SAMPLE
        self.sample()

    def sample(self) -> None:
        """Take sample k: command, rates, monitors and, if it is due, a row of the record."""
        k, loop, record = self.k, self.loop, self.record
        t = self.time(k)
        sample, command, self.k1 = loop.sample(k, t)
        accused = record.add(sample, loop.split(loop.y), command, k % self.every == 0 or k == self.n_steps)
        record.steps = k
        if self.strict and accused is not None:
            confirmed = finding(accused[0], Replay(record.run("", success=False), loop, self.dt))
            if confirmed.verdict == VIOLATED:
                raise _broken(*accused, t, confirmed)
        loop.renew(k)
        self.next = STEP

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Context that turns any exception of user code into a SimulationError with the run so far."""
        try:
            yield
        except Exception as error:
            reason = _reason(error, self.time(self.k), self.dt, self.loop.adaptive)
            cause = error.__cause__ if isinstance(error, SimulationError) else error
            raise SimulationError(reason, self.confirmed(reason, success=False)) from cause

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Context that adds the run so far to Ctrl-C, SystemExit and similar exceptions as their attribute `run`."""
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            run = self.interrupted(error)
            error.run = run  # pyright: ignore[reportAttributeAccessIssue]
            error.add_note(f"geomctrl: the run so far, {len(run.t)} samples, is this exception's attribute `run`")
            raise

    def interrupted(self, error: BaseException) -> Run:
        """The run up to an interruption."""
        done = self.record.t[self.record.rows - 1] if self.record.rows else 0.0
        return self.record.run(f"interrupted after t = {done:.6g} s: {type(error).__name__}", success=False)

    # --- compiled ------------------------------------------------------------------------------------------------

    def machine_chosen(self, choice: bool | str) -> Machine | None:
        """The machine for the rest of the run; Python takes some samples first if the law still fills its buffers."""
        steps, chosen = self.n_steps * self.pieces, None
        for samples in FILLING:
            self.compiled_for, last = self.loop.now, not samples or self.done
            try:
                chosen = machine_for(self.loop, self.record, choice, self.strict, steps, self.times, last)
                break
            except MemoryLengthError:
                if last:
                    raise
            with self.explained():
                for _ in range(min(samples * self.loop.hold, self.n_steps - self.k)):
                    self.in_python()
        machine, self.comparison, self.known_trace = chosen or (None, None, None)
        return machine

    @property
    def times(self) -> tuple[float, float, float]:
        """Current time, end time and sampling period of the controller [s]."""
        return self.time(self.k), self.t_end, self.dt * max(self.loop.hold, 1)

    def advanced(self, machine: Machine, report: Callable[[float], Any]) -> bool:
        """Advance in compiled code as far as possible. Returns False if Python must take the next step."""
        end, first = self.steps_until_change(), self.k
        if self.next == SAMPLE or end <= first:
            return False
        try:
            changed = (
                self.resumed > 0
                and self.loop.hold
                and self.known_trace
                and not self.known_trace.fits(self.loop, self.record.watchers)
            )
            if not changed:
                self.enter(machine, 0)
        except UntraceableError:
            changed = True
        if changed:  # Python steps have changed the law in a way that the compiled code does not contain
            self.machine = None
            return False
        phase, stopped = STEP, 0
        chunk = ceil(min(self.chunk, CHUNK_NUMBERS / machine.layout.row) / self.pieces)
        try:
            while self.k < end and not stopped:
                last = min(self.k + chunk, end)
                self.k, phase, stopped, rows = machine.run(self.k, last, self.every, self.n_steps, self.dt, self.t_end)
                self.stored(machine, 0, rows)
                if self.calls_user:
                    break
                report(self.k / self.n_steps)
        finally:
            self.leave(machine, 0, self.k, phase)
        if stopped:
            self.count_stop()
            if self.stops > MAX_STOPS:
                self.machine = None
        return not stopped

    def count_stop(self) -> None:
        """Count a stop of compiled code; the count does not depend on lanes or chunk sizes."""
        self.stops = self.stops + 1 if self.k - self.resumed < STOP_INTERVAL else 0

    def enter(self, machine: LaneMemory, lane: int) -> None:
        """Copy the loop into a lane of the machine, before a step."""
        machine.put(lane, self.loop, self.record, self.time(self.k), self.k1)

    def stored(self, machine: LaneMemory, lane: int, rows: np.ndarray) -> None:
        columns, first = machine.columns(rows, lane), self.record.rows
        if self.comparison is not None:
            to_compare = spread_rows(self.n_steps // self.every + 2, self.comparison.extent.stored)
            chosen = [k - first for k in to_compare if first <= k < first + len(rows)]
            self.kept_rows += [rows[k, :, lane].copy() for k in chosen]
        y = columns["y", ""]
        self.record.extend(columns, (*self.loop.split(y), self.loop.plant_state(y)))

    def leave(self, machine: LaneMemory, lane: int, k: int, phase: int) -> None:
        """Copy the loop back from a lane; step or sample k is next."""
        self.k, self.next, self.k1 = k, phase, machine.take(lane, self.loop, self.record)
        self.record.steps = k - (phase == SAMPLE)
        if phase == STEP:
            fill_work_buffers(self.loop, self.record.watchers, machine.traced, self.time(k))

    def steps_until_change(self) -> int:
        """The step in which, or at whose end, the plant changes next."""
        ahead = [start for start in self.loop.plant.switches if start - SWITCH_TOLERANCE > self.time(self.k)]
        if not ahead:
            return self.n_steps
        k = max(int(min(ahead) / self.dt) - 2, self.k)
        while k < self.n_steps and self.time(k + 1) < min(ahead) - SWITCH_TOLERANCE:
            k += 1
        return k


def _broken(monitor: Monitor, value: float, t: float, finding: Finding) -> SimulationError:
    return SimulationError(
        f"strict: monitor {monitor.name!r} at t = {t:.6g} s: {monitor.description} is {value:.3e},"
        f" limit {monitor.limit:.0e}: {finding.reason}"
    )


def _reason(error: Exception, t: float, dt: float, adaptive: bool) -> str:
    """The message that says why a run ends at time t."""
    if isinstance(error, SimulationError):
        return str(error)
    if isinstance(error, IntegrationError):
        cause = "it is too stiff" if adaptive else f"dt = {dt:g} s is too long for it"
        return f"stopped at t = {t:.6g} s: the closed loop is unstable, or {cause}: {error}"
    if isinstance(error, GeomctrlError):
        return f"stopped at t = {t:.6g} s: {error}"
    line = raised_in(error)
    where = "" if line is None else f" ({Path(line.filename).name}, line {line.lineno}, in {line.name})"
    hint = "; arrays passed to user code are read-only: work on a copy" if "read-only" in str(error) else ""
    return f"stopped at t = {t:.6g} s: {type(error).__name__} in the closed loop{where}: {error}{hint}"
