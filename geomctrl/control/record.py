"""`Record`: preallocated arrays that collect the samples of a running loop and become its Run."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from geomctrl.arguments import shown
from geomctrl.errors import ArgumentError, SimulationError

from .contracts import Command, Desired
from .monitors import Monitor
from .monitors.monitor import MonitorResult
from .plant import Plant
from .run import Run
from .sample import Sample
from .samples import ComparisonResult, Samples


class Record:
    """Collect states, commands, reference and monitor values, one row per stored sample.

    measures: started `measures.Measure`s, which see every sample. held: hold time of a command [s].
    """

    def __init__(
        self,
        plant: Plant,
        controller: Any,
        z_shape: tuple[int, ...] | None,
        nx: int,
        monitors: list[Monitor],
        rows: int,
        measures: Sequence[Any] = (),
        held: float = 0.0,
    ):
        self.plant, self.controller, self.started = plant, controller, time.perf_counter()
        for m in monitors:
            m.held = held
        self.monitors = [m for m in monitors if m.start(plant, controller)]
        self.watchers = [*self.monitors, *measures]  # objects whose attributes change from sample to sample
        self.worst, self.t_worst = [-math.inf] * len(self.monitors), [math.nan] * len(self.monitors)
        self.rows, self.steps, robot = 0, 0, plant.robot
        self.compared: ComparisonResult | None = None  # comparison of compiled code with Python
        watched = {name: m for m in reversed(self.monitors) for name in m.signals}  # the first one wins a shared name
        try:
            self.t, self.q, self.v = np.empty(rows), np.empty((rows, robot.nq)), np.empty((rows, robot.nv))
            self.tau, self.z = np.empty((rows, plant.inputs)), None if z_shape is None else np.empty((rows, *z_shape))
            self.x = np.empty((rows, nx)) if nx else None
            self.applied = np.empty((rows, robot.nv)) if plant.actuators else self.tau
            self.measured = np.empty((rows, len(self.monitors)))
            self.watched = {name: (m, np.empty(rows)) for name, m in watched.items()}
            self.desired = None
            if getattr(controller, "reference", None) is not None:
                self.desired = Desired(*(np.empty((rows, n)) for n in (robot.nq, robot.nv, robot.nv)))
        except MemoryError as error:
            raise ArgumentError(
                f"every: {rows} samples are more than the memory holds: store fewer ({error})"
            ) from None
        self.signals: dict[str, np.ndarray] = {}
        self.sensed: dict[str, np.ndarray] = {}  # sensor outputs by name

    def add(self, sample: Sample, state: tuple, command: Command, stored: bool) -> tuple[Monitor, float] | None:
        """Measure a sample with all monitors; if `stored`, add a row with the state (q, v, z), command and values.

        Returns the first monitor whose value exceeds its limit and its previous worst, with that value. After a first
        excess the value must double, so that a slow drift is confirmed only a few times.
        """
        if stored:  # copies arrays that users own, before the monitors call user code again
            self._store(sample, state, command)
        values, violated = [m.measure(sample) for m in self.monitors], None
        for measure in self.watchers[len(values) :]:
            measure.add(sample)
        for j, value in enumerate(values):  # nan counts as worse than any number
            if not value <= self.worst[j] and self.worst[j] == self.worst[j]:
                before, limit = self.worst[j], self.monitors[j].limit
                self.worst[j], self.t_worst[j] = value, sample.t
                accused = not value <= limit and not (before > limit and value <= 2.0 * before)
                if violated is None and accused:
                    violated = self.monitors[j], value
        if stored:
            self.measured[self.rows] = values
            for name, (monitor, column) in self.watched.items():
                column[self.rows] = monitor.signals[name]
            self.rows += 1
        return violated

    def extend(self, columns: dict[tuple[str, str], np.ndarray], states: tuple) -> None:
        """Add rows that compiled code has stored; compiled code has already updated the worst monitor values.

        columns: by kind and name, from `Machine.columns`. states: (q, v, z, x) of the rows.
        """
        n = len(columns["t", ""])
        rows = slice(self.rows, self.rows + n)
        self.t[rows], self.tau[rows] = columns["t", ""], columns["tau", "tau"]
        self.q[rows], self.v[rows], z, x = states
        if self.z is not None:
            self.z[rows] = z
        if self.x is not None:
            self.x[rows] = x
        if self.applied is not self.tau:
            self.applied[rows] = columns["applied", "applied"]
        if self.desired is not None:
            for name, column in zip("qva", self.desired):
                column[rows] = columns["desired", name]
        for (kind, name), values in columns.items() if n else ():
            if kind == "signal":
                self._column_of(name, values[0], float(self.t[self.rows]))[rows] = values
        for name, column in self.sensed.items():
            column[rows] = columns["measured", name]
        for j, monitor in enumerate(self.monitors):
            self.measured[rows, j] = columns["monitor", monitor.name]
        for name, (_, column) in self.watched.items():
            column[rows] = columns["watched", name]
        self.rows += n  # last, so that an interrupt leaves complete rows

    def _store(self, sample: Sample, state: tuple, command: Command) -> None:
        row, t = self.rows, sample.t
        self.t[row], self.tau[row] = t, command.tau
        self.q[row], self.v[row], z = state
        if self.z is not None:
            self.z[row] = z
        if self.x is not None:
            self.x[row] = sample.x
        if self.applied is not self.tau:
            self.applied[row] = sample.applied
        if self.desired is not None:
            self._store_desired(row, sample, self.desired)
        for name, x in sample.measured.items():
            if row == 0:
                self.sensed[name] = np.empty((len(self.t), *x.shape))
            self.sensed[name][row] = x
        for name, x in command.signals.items():
            self._column_of(name, x, t)[row] = x

    def _store_desired(self, row: int, sample: Sample, columns: Desired) -> None:
        desired: Any = sample.desired
        try:
            for column, x in zip(columns, desired, strict=True):
                if row == 0 and np.shape(x) != column.shape[1:]:
                    raise ValueError  # later references of other shapes fail to broadcast, except for scalars
                column[row] = x
        except (TypeError, ValueError):
            raise SimulationError(
                f"reference: expected Desired(q, v, a) at t = {sample.t:.6g} s, got {shown(desired)}"
            ) from None

    def _column_of(self, name: str, x: Any, t: float) -> np.ndarray:
        """The column of a signal; it contains nan where the law does not return the signal."""
        column = self.signals.get(name)
        return self._column(name, x, t) if column is None or column.shape[1:] != np.shape(x) else column

    def _column(self, name: str, x: Any, t: float) -> np.ndarray:
        if name in self.signals:
            was = self.signals[name].shape[1:]
            raise SimulationError(f"controller: signal {name!r} had shape {was}, got {np.shape(x)} at t = {t:.6g} s")
        if name in self.watched:
            monitor = self.watched[name][0].name
            raise SimulationError(f"controller: signal {name!r}: the name is that of the monitor {monitor!r}")
        if np.asarray(x).dtype.kind not in "fiub":
            raise SimulationError(f"controller: signal {name!r}: expected numbers, got {shown(x)} at t = {t:.6g} s")
        return self.signals.setdefault(name, np.full((len(self.t), *np.shape(x)), np.nan))

    def run(self, reason: str, success: bool) -> Run:
        """The run up to now."""
        n = self.rows
        columns = self.signals | {name: column for name, (_, column) in self.watched.items()}
        worst = self.worst if n else [math.nan] * len(self.monitors)
        samples = Samples(
            t=self.t[:n],
            q=self.q[:n],
            v=self.v[:n],
            tau=self.tau[:n],
            z=None if self.z is None else self.z[:n],
            x=None if self.x is None else self.x[:n],
            applied=self.applied[:n],
            desired=None if self.desired is None or not n else Desired(*(x[:n] for x in self.desired)),
            signals={name: column[:n] for name, column in columns.items()},
            measured={name: column[:n] for name, column in self.sensed.items()},
        )
        monitors = {
            m.name: MonitorResult(
                m.name, m.description, m.limit, self.measured[:n, j], float(worst[j]), self.t_worst[j]
            )
            for j, m in enumerate(self.monitors)
        }
        seconds = time.perf_counter() - self.started
        return Run(samples, monitors, reason, success, self.steps, seconds, self.plant, self.controller, self.compared)
