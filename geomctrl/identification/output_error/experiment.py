"""Combine logs with the loop that moved the robot: simulated parts, their initial states, and compared signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.arguments import instance, is_a, listed
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.identification.errors import DataError
from geomctrl.identification.estimators import Estimate
from geomctrl.identification.logs import Dataset
from geomctrl.identification.logs.dataset import check_robot
from geomctrl.identification.logs.samples import Processing
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.robot import Robot

from .loop import LoopSamples, loops_of
from .simulation import Dynamics, Schedule, Trajectory, require_forwards, simulated

MAX_JITTER = 0.1  # largest distance of a time stamp from a sample of the loop, in periods
MIN_BEGINNING = 12  # samples that determine the initial state of a log without velocities, over BEGINNING_SECONDS
BEGINNING_SECONDS = 0.05
MAX_SETTLING_SHARE = 0.1  # of a part
REMEDY = (
    "start nearer to the robot's parameters, or use a physically consistent estimator if the log excites too little"
)


@dataclass(frozen=True, eq=False)
class Part:
    """An uninterrupted part of a log: `rows` are the loop's samples at its time stamps, out of `samples`."""

    loop: LoopSamples
    samples: int
    rows: np.ndarray
    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    mask: np.ndarray
    q0: np.ndarray
    v0: np.ndarray

    def run(self, dynamics: Dynamics, plan: Schedule, q0: Any = None, v0: Any = None, z0: Any = None) -> Trajectory:
        q0, v0 = self.q0 if q0 is None else q0, self.v0 if v0 is None else v0
        try:
            return simulated(dynamics, self.loop, plan, self.samples, q0, v0, self.tau[0], z0)
        except SimulationError as error:
            raise SimulationError(
                f"{error}: see the gains, the period, the delay and the sign of torques; {REMEDY}"
            ) from error


@dataclass(frozen=True, eq=False)
class Experiment:
    """All parts of the logs; `loops`: one for each log, with the same gains."""

    model: RegressorModel
    data: tuple[Dataset, ...]
    loops: tuple[Any, ...]
    parts: tuple[Part, ...]

    @property
    def loop(self) -> Any:
        return self.loops[0]

    def with_loop(self, **changes: Any) -> Experiment:
        """The experiment with changed gains or delay."""
        return experiment(self.model, self.data, [loop._changed(**changes) for loop in self.loops])


def experiment(model: RegressorModel, logs: Any, loop: Any) -> Experiment:
    """Create an experiment. Raises ArgumentError, DataError."""
    require_forwards(model)
    data = listed("logs", logs) if isinstance(logs, (list, tuple)) else [logs]
    if not data:
        raise ArgumentError("logs: expected a Dataset, or several, got none")
    loops = loops_of(loop, len(data))
    parts = []
    for log, own in zip(data, loops):
        instance("logs", log, Dataset, "a Dataset, or several")
        check_robot(log, model.robot, units=False)
        parts += [_part(model.robot, log, s, own) for s in log.stretches]
    return Experiment(model, tuple(data), tuple(loops), tuple(parts))


def start_of(start: Any) -> tuple[RegressorModel, np.ndarray]:
    """(model, first parameters x) of a robot, a model or an estimate."""
    if is_a(start, Estimate):
        return start.model, start.x
    if is_a(start, RegressorModel):
        return start, start.prior
    robot = instance("start", start, Robot, "an Estimate, a RegressorModel or a geomctrl.Robot")
    model = RegressorModel(robot)
    return model, model.prior


def _part(robot: Robot, data: Dataset, s: slice, loop: Any) -> Part:
    t, period = data.t[s], loop.period
    place = (t - t[0]) / period
    rows = np.round(place).astype(int)
    if len(t) < MIN_BEGINNING:
        raise DataError(
            f"{data.label}: an uninterrupted part of {len(t)} samples is too short to simulate:"
            f" expected {MIN_BEGINNING} or more"
        )
    if np.abs(place - rows).max() > MAX_JITTER or (np.diff(rows) < 1).any():
        raise DataError(
            f"{data.label}: t: expected time stamps at multiples of the loop's period, {period:g} s, got some"
            f" {np.abs(place - rows).max() * period:.3g} s off; use resampled(rate)"
        )
    samples = int(rows[-1]) + 1
    running = loop._running(robot, t[0] + period * np.arange(samples))
    q0, v0 = _beginning(data, s)
    return Part(running, samples, rows, t, data.q[s], data.tau[s], data.used[s], q0, v0)


def _beginning(data: Dataset, s: slice) -> tuple[np.ndarray, np.ndarray]:
    """q and v at the first sample: by a cubic through the first samples, or as measured."""
    first = slice(s.start, min(s.stop, s.start + max(MIN_BEGINNING, round(BEGINNING_SECONDS * data.rate))))
    t = data.t[first] - data.t[s.start]
    curve = np.polynomial.polynomial.polyfit(t, data.q[first], 3)
    return curve[0], curve[1] if data.v is None else np.array(data.v[s.start])


def motion(
    experiment: Experiment,
    dynamics: Dynamics,
    plan: Schedule,
    runs: Sequence[Trajectory],
    band: Any = None,
    stride: int = 1,
    settle: float = 0.0,
) -> Dataset:
    """The measured torques with the simulated motion at the times when they acted, as one log of all parts."""
    commanded = experiment.loop.torque == "commanded"
    columns, gaps, start, names = [], [], 0.0, experiment.data[0].names
    for part, run in zip(experiment.parts, runs):
        later = plan.lag if commanded else 0
        rows = part.rows[part.rows + later < part.samples]
        k, n = rows + later, len(rows)
        j = plan.pieces[0].steps if commanded and len(plan.pieces) == 2 else 0
        q, v = run.starts[j][:, k]
        u = run.u[rows] if commanded else run.command(plan.shown)[k]
        late = (part.t[:n] - part.t[0] >= min(settle, MAX_SETTLING_SHARE * (part.t[-1] - part.t[0])))[:, None]
        columns.append(
            (part.t[:n] - part.t[0] + start, q, v, dynamics.acceleration(q, v, u), part.tau[:n], part.mask[:n] & late)
        )
        gaps.append(n)
        start += part.t[-1] - part.t[0] + 1.0
    t, q, v, a, tau, mask = (np.concatenate(x) for x in zip(*columns))
    where = tuple(np.cumsum(gaps)[:-1].tolist())
    label = " + ".join(log.label for log in experiment.data)
    return Dataset(
        t, q, tau, v=v, a=a, mask=mask, names=names, label=f"{label}, simulated motion", gaps=where,
        processing=Processing(band, stride),
    )  # fmt: skip
