"""`Machine`: executes a closed loop's compiled code and exchanges its memory with Python objects.

Lanes are runs executed in parallel, one or as many as the processor's vectors hold.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import marshal
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

import numpy as np

from geomctrl.compiler import loops
from geomctrl.compiler.loop_memory import Equations, Layout, Numbers, used_numbers
from geomctrl.tracing.backends import cache, host

from .lane_memory import LaneMemory
from .traced_loop import TracedLoop

POINTER, WHOLE, REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
RUN = ctypes.CFUNCTYPE(WHOLE, POINTER, POINTER, POINTER, WHOLE, WHOLE, WHOLE, WHOLE, REAL, REAL, WHOLE, WHOLE)
LOOK = ctypes.PYFUNCTYPE(WHOLE, POINTER, POINTER)  # keeps the interpreter's lock for its microseconds
OVER_ROWS = ctypes.CFUNCTYPE(None, POINTER, POINTER, POINTER, WHOLE, POINTER)
STEP, SAMPLE = range(2)  # the next operation of a run

turn: ContextVar[Lock | None] = ContextVar("turn", default=None)  # held by one of several threads while it runs Python


@contextmanager
def without_turn() -> Iterator[None]:
    """Context in which other threads of a parallel run may run Python."""
    lock = turn.get()
    if lock is None:
        yield
        return
    lock.release()
    try:
        yield
    finally:
        lock.acquire()


class Machine(LaneMemory[Layout]):
    """Compiled code of a traced loop for `width` lanes, with its memory."""

    def __init__(self, traced: TracedLoop, width: int = 1):
        self.equations = _equations(traced, width)
        numbers, layout, self._observed, run, look, *over_rows = _code(traced, width)
        super().__init__(traced, width, numbers, layout)
        self._run, self._look = host.function(RUN, run), host.function(LOOK, look)
        self._over_rows = host.function(OVER_ROWS, *over_rows) if over_rows else None
        self.rows, self.out = np.zeros(0), self._area(layout.out, sum(self.equations.sample.sizes))
        self._observed_row = np.zeros((layout.row // width, 1))  # of `look`
        self.addresses = 0, 0  # of the values and the memory

    @property
    def stores_every_step(self) -> bool:
        """Whether rows of all steps are stored, from which some monitors of a single run are computed."""
        return self._over_rows is not None

    def set_numbers(self, values: Sequence[np.ndarray]) -> None:
        super().set_numbers(values)
        self.addresses = self.values.ctypes.data, self.memory.ctypes.data

    def run(
        self,
        first: int,
        last: int,
        every: int,
        total: int,
        dt: float,
        t_end: float,
        alive: int = 1,
        begin: int = 0,
        sampled: bool = True,
    ) -> tuple[int, int, int, np.ndarray]:
        """Run from step or sample `first` (`begin`) to step `last` of `total`; not sampled: without its sample.

        Returns (step or sample k, STEP or SAMPLE, lanes without a result, rows (stored samples, numbers, lanes)). STEP
        without lanes means that step `last` was reached and its first sample taken; SAMPLE, that it was not taken.
        """
        end = total, dt, t_end
        if self._over_rows is None:
            return self._advanced((first, last, every), end, alive, begin, sampled)
        start, before = self.memory.copy(), first - begin  # number of the last sample
        k, phase, stopped, rows = self._advanced((first, last, 1), end, alive, begin, sampled)
        good = self._filled(rows)
        if good < len(rows):  # Python continues from the sample before
            self.memory[:] = start
            k, phase, rows = first, begin, rows[:0]
            if good:
                k, phase, stopped, rows = self._advanced((first, before + good, 1), end, alive, begin)
                self._filled(rows)
            stopped = 1
        self._keep_worst(rows)
        if every > 1:
            samples = np.arange(before + 1, before + 1 + len(rows))
            rows = rows[(samples % every == 0) | (samples == total)]
        return k, phase, stopped, rows

    def _advanced(
        self, steps: tuple[int, int, int], end: tuple[int, float, float], alive: int, begin: int, sampled: bool = True
    ) -> tuple[int, int, int, np.ndarray]:
        """`run` without the quantities computed from rows; steps: first, last, every; end: total, dt, t_end."""
        (first, last, every), total = steps, end[0]
        size = self.layout.row
        if len(self.rows) < (numbers := ((last - first) // every + 2) * size):
            self.rows = np.empty(numbers)
        with without_turn():
            next_and_phase = self._run(
                *self.addresses, self.rows.ctypes.data, *steps, *end, alive, begin + 2 * (not sampled)
            )
        k, phase = divmod(next_and_phase, 2)
        stopped = int(self.memory[self.layout.stopped : self.layout.stopped + 1].view(np.int64)[0])
        before, latest = first - begin, k - phase
        stored = latest // every - before // every + (latest == total and total % every > 0 and latest > before)
        rows = self.rows[: stored * size].reshape(stored, size // self.width, self.width)
        return k, phase, 0 if k == last and phase == (STEP if sampled else SAMPLE) else stopped, rows

    def _filled(self, rows: np.ndarray) -> int:
        """Compute the monitors that depend on rows alone; returns the number of rows before the first without value."""
        failed = np.zeros(len(rows) + 1, np.int64)
        self._over_rows(*self.addresses, rows.ctypes.data, len(rows), failed.ctypes.data)  # pyright: ignore[reportOptionalCall]
        if not failed.any():
            return len(rows)
        bad = np.flatnonzero((failed[:, None] >> np.arange(host.lanes()) & 1).ravel()[: len(rows)])
        return int(bad[0]) if len(bad) else len(rows)

    def _keep_worst(self, rows: np.ndarray) -> None:
        """The monitors' worst values in rows and their times, as in `Record.add`."""
        for place, worst, time in zip(*self.equations.rows[1:]) if self.equations.rows and len(rows) else ():
            values, largest = rows[:, place, 0], self.remembered[worst, 0]
            row = int(values.argmax())  # the first nan, if there is one, which counts as worse than any number
            if not values[row] <= largest and largest == largest:
                self.remembered[[worst, time], 0] = values[row], rows[row, 0, 0]

    def look(self, lane: int = 0, own: int | None = None) -> np.ndarray | None:
        """Compute a sample at the state in memory: rates, held command, measurements and the memory of monitors.

        The order is that of `sample_row.SampleRow`. None if there is no result, or if the rates are not finite. own:
        number of entries of the loop, if those of monitors, which follow, are not needed.
        """
        without = self._look(self.addresses[0], self.addresses[1]) >> lane & 1
        if own is None and self._over_rows is not None:
            e, out, row = self.equations, self.out, self._observed_row
            state = 1 + e.y + e.held
            row[:state], row[state:] = self.x[:state], out[e.dim : e.dim + e.sample.sizes[1]]
            failed = np.zeros(2, np.int64)
            self._over_rows(*self.addresses, row.ctypes.data, 1, failed.ctypes.data)
            without |= int(failed[0]) & 1
            for place in e.rows.places if e.rows else ():
                out[place - state + e.dim] = row[place]
        sample = self.memory[self._observed[lane][:own]]
        rates = sample[: self.equations.dim]
        finite = math.isfinite(rates.dot(rates)) or np.isfinite(rates).all()  # the sum may overflow
        return sample if finite and not without else None

    def measured(self) -> np.ndarray:
        """`area` (numbers, lanes) if all sensors measured at the state in memory, which remains unchanged."""
        before = self.memory.copy()
        self._look(*self.addresses)
        area = self.area.copy()
        self.memory[:] = before
        return area


def _equations(traced: TracedLoop, width: int) -> Equations:
    """The equations of `width` runs: only for a single one are some monitors computed later, from rows."""
    return traced.equations if width == 1 else traced.equations.with_rows_in_samples


def _code(traced: TracedLoop, width: int) -> tuple:
    """The code of a traced loop, new or from disk."""
    equations, parts = _equations(traced, width), traced.codes.get(width)
    if parts is None:

        @functools.cache
        def generated() -> tuple[str, Layout, Numbers]:
            numbers = Numbers(used_numbers(equations), width)
            return *loops.module(equations, width, numbers, host.lanes()), numbers

        def summary() -> bytes:
            """What is needed of the text but its code: the key of the code, and how its memory is divided."""
            text, layout, numbers = generated()
            key = hashlib.sha256(f"{cache.version()} {text}".encode()).hexdigest()
            return marshal.dumps((key, numbers.used, layout.slots))

        key, used, slots = marshal.loads(cache.kept(f"{traced.file} {width}", summary) if traced.file else summary())
        numbers, layout = Numbers(used, width), Layout(equations, width, *slots)
        code = cache.kept(key, lambda: host.object_code(generated()[0]))
        names = ["run", "look", *(["over_rows"] if equations.rows else [])]
        parts = traced.codes[width] = numbers, layout, _observed(traced, equations, layout), *host.load(code, names)
    return parts


def _observed(traced: TracedLoop, equations: Equations, l: Layout) -> list[np.ndarray]:
    """Positions in memory of a sample's numbers for each lane, in the order of `sample_row.SampleRow`."""
    w = l.width
    held, measured = (
        [k for c in columns for k in range(c.first, c.first + c.size)] for columns in (traced.held, traced.columns)
    )
    renewed = {place: l.out + source * w for source, place in equations.remembered}
    first = l.x + w * (1 + equations.y)  # the held command, followed by the memory of monitors
    before = first + w * equations.held
    index = [
        *(l.out + k * w for k in range(equations.dim)),
        *(first + k * w for k in held),
        *(l.out + k * w for k in measured),
        *(renewed.get(k, before + k * w) for k in range(traced.worst)),
    ]
    return [np.array(index) + lane for lane in range(w)]
