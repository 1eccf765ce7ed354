"""What is measured of a run in a sweep: numbers that say how well it went.

Any function of a `Run` is a measure. Those here are written twice: as a formula on a stored run, and as an
accumulation over the samples of a loop while it runs, which needs no stored run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from geomctrl.arguments import flag, instance, number
from geomctrl.described import Described
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import difference
from geomctrl.robot import Robot

from .contracts import Command, started
from .monitors import HELD, UNRESOLVED, VIOLATED, Monitor, default_monitors
from .plant import Plant
from .run import Run
from .sample import Sample, State

__all__ = [
    "Measure",
    "ParameterError",
    "PeakTorque",
    "SettlingTime",
    "TrackingRMS",
    "Verdict",
    "WorstMonitor",
]


class Measure(Described):
    """A number, or an array, of a run. The implementer's contract:

    1. `name` and `description` (a few words) say what is measured, `units` its units; `dims` names an array's axes.
    2. `start(plant, controller)` forgets the last run: it sets the attributes that `add` changes, to floats or
       float arrays. It raises ArgumentError where the measure does not apply.
    3. `add(sample)` takes the next sample into account. It changes only attributes that `start` set, and nothing
       in it depends on a number but through np.where, np.maximum and the like.
    4. `value()` is the result after the samples so far.
    5. `__call__(run)` is the same of a stored run and changes nothing; a formula on its arrays where there is one.
    """

    name = "measure"
    description = ""
    units = "1"
    dims: tuple[str, ...] = ()

    def start(self, plant: Plant, controller: Any) -> None:
        """Forget the last run; rule 2."""
        raise NotImplementedError

    def add(self, sample: Sample) -> None:
        """Take the next sample into account; rule 3."""
        raise NotImplementedError

    def value(self) -> Any:
        """The result after the samples so far; rule 4."""
        raise NotImplementedError

    def __call__(self, run: Run) -> Any:
        measure = copy.copy(self)
        measure.start(run.plant, run.controller)
        for sample in samples(run):
            measure.add(sample)
        return measure.value()


def accumulates(measure: Any) -> bool:
    """Whether a measure looks at the samples of a loop while it runs; all others are functions of its Run."""
    return isinstance(measure, Measure) and not isinstance(measure, WorstMonitor)


def _run(x: Any) -> Run:
    return instance("run", x, Run, "a geomctrl.Run")


def samples(run: Run) -> Iterator[Sample]:
    """The stored samples of a run as a loop gives them to a measure: t, q, v, z, tau, plant, desired, x, applied."""
    reference = getattr(_run(run).controller, "reference", None)
    for k, t in enumerate(run.t):
        z, x, applied = (None if a is None else a[k] for a in (run.z, run.x, run.applied))
        state = State(run.q[k], run.v[k], z, x, np.nan, run.q[k])
        yield Sample(float(t), state, Command(run.tau[k]), run.plant.at(t), applied, reference=reference)


class _Error(Measure):
    """Of e = log(q_d^-1 q) (nv,), q_d the controller's reference or its attribute `q_d`."""

    units = "rad"

    def _goal(self, controller: Any) -> np.ndarray | None:
        """The configuration that is held; None if a reference says it."""
        if getattr(controller, "reference", None) is not None:
            return None
        q_d = getattr(controller, "q_d", None)
        if q_d is None:
            raise ArgumentError(f"{self.name}: expected a controller with a reference or a q_d, got {controller!r:.60}")
        return np.asarray(q_d, float)

    def start(self, plant, controller):
        self.robot: Robot = plant.robot
        self.held: Any = self._goal(controller)

    def _error(self, sample: Sample) -> np.ndarray:
        desired = sample.desired
        return difference(self.robot, desired.q if desired is not None else self.held, sample.q)

    def _errors(self, run: Run) -> np.ndarray:
        """(n, nv) at the stored samples."""
        if run.desired is not None:
            return difference(run.plant.robot, run.desired.q, run.q)
        return difference(run.plant.robot, np.broadcast_to(np.asarray(self._goal(run.controller)), run.q.shape), run.q)


class TrackingRMS(_Error):
    """Root mean square of |e| over the samples from `after` seconds on; with joints=True of each coordinate (nv,).

    nan for a run that ended before. Radians, and metres where joints slide.
    """

    name = "tracking_rms"
    description = "RMS of the tracking error"

    def __init__(self, after: float = 0.0, joints: bool = False):
        self.after, self.joints = number("after", after, "seconds >= 0", lambda t: t >= 0.0), flag("joints", joints)
        self.dims = ("joint",) if joints else ()

    def start(self, plant, controller):
        super().start(plant, controller)
        self.squares, self.count = np.zeros(plant.robot.nv), np.zeros(plant.robot.nv)

    def add(self, sample):
        e, counts = self._error(sample), sample.t >= self.after
        self.squares = np.where(counts, self.squares + e * e, self.squares)
        self.count = np.where(counts, self.count + 1.0, self.count)

    def value(self):
        return self._rms(self.squares / np.where(self.count > 0.0, self.count, np.nan))

    def __call__(self, run):
        e = self._errors(_run(run))[run.t >= self.after]
        return self._rms((e**2).mean(axis=0) if len(e) else np.full(run.v.shape[1], np.nan))

    def _rms(self, squares):
        return np.sqrt(squares) if self.joints else float(np.sqrt(squares.sum()))


class SettlingTime(_Error):
    """From when on the largest coordinate of |e| stays within `tolerance` [rad or m]; nan if it is not at the end."""

    name = "settling_time"
    description = "time from which the error stays within the tolerance"
    units = "s"

    def __init__(self, tolerance: float = 0.01):
        self.tolerance = number("tolerance", tolerance, "a positive error", lambda x: x > 0.0)

    def start(self, plant, controller):
        super().start(plant, controller)
        self.settled = np.full(plant.robot.nv, np.inf)  # each coordinate

    def add(self, sample):
        outside = np.abs(self._error(sample)) > self.tolerance
        self.settled = np.where(outside, np.inf, np.minimum(self.settled, sample.t))

    def value(self):
        last = float(np.max(self.settled))
        return last if last < np.inf else np.nan

    def __call__(self, run):
        outside = np.flatnonzero(np.abs(self._errors(_run(run))).max(axis=1) > self.tolerance)
        first = outside[-1] + 1 if len(outside) else 0
        return float(run.t[first]) if first < len(run.t) else np.nan


class ParameterError(Measure):
    """|z - z_true| at the end over the same at the start, Euclidean norms: what is left of what was not known.

    z_true is the controller's `true_parameters(plant)` with the plant of that moment. nan if nothing was unknown.
    """

    name = "parameter_error"
    description = "error of the parameters at the end, relative to the start"

    def start(self, plant, controller):
        if getattr(controller, "true_parameters", None) is None:
            raise ArgumentError(f"{self.name}: expected a controller with true_parameters, got {controller!r:.60}")
        self.controller = controller
        self.error = self.first = started(controller, plant.robot) - controller.true_parameters(plant.at(0.0))

    def add(self, sample):
        self.error = sample.z - self.controller.true_parameters(sample.plant)

    def value(self):
        first = float(np.linalg.norm(self.first))
        return float(np.linalg.norm(self.error)) / first if first else np.nan

    def __call__(self, run: Run) -> float:
        measure: Any = copy.copy(self)
        measure.start(_run(run).plant, run.controller)
        z: Any = run.z
        measure.error = z[-1] - run.controller.true_parameters(run.plant.at(run.t[-1]))
        return measure.value()


class PeakTorque(Measure):
    """The largest |tau| applied to joints, of all samples; with joints=True of each (nv,). Newtons where they slide."""

    name = "peak_torque"
    description = "largest torque"
    units = "N m"

    def __init__(self, joints: bool = False):
        self.joints = flag("joints", joints)
        self.dims = ("joint",) if joints else ()

    def start(self, plant, controller):
        self.peak = np.zeros(plant.robot.nv)

    def add(self, sample):
        self.peak = np.maximum(self.peak, np.abs(sample.applied))

    def value(self):
        return np.array(self.peak) if self.joints else float(np.max(self.peak))

    def __call__(self, run):
        peak = np.abs(_run(run).applied).max(axis=0, initial=0.0)
        return peak if self.joints else float(peak.max())


class WorstMonitor(Measure):
    """The worst value of a monitor over all steps; nan where it does not apply.

    monitor: the name of one that the run has, or a `monitors.Monitor` that it is given.
    """

    def __init__(self, monitor: str | Monitor = "energy"):
        monitors = {m.name: m for m in default_monitors()}
        chosen = monitors.get(monitor) if isinstance(monitor, str) else monitor
        if not isinstance(chosen, Monitor):
            raise ArgumentError(f"monitor: expected one of {', '.join(monitors)}, or a Monitor, got {monitor!r:.80}")
        self.monitor, self.name = chosen, f"worst_{chosen.name}"
        self.description = f"worst of the run: {chosen.description}"

    def start(self, plant, controller):
        self.applies, self.worst = self.monitor.start(plant, controller), -np.inf

    def add(self, sample):
        if self.applies:
            self.worst = np.maximum(self.worst, self.monitor.measure(sample))

    def value(self):
        return float(self.worst) if self.applies else np.nan

    def __call__(self, run):
        result = _run(run).monitors.get(self.monitor.name)
        return np.nan if result is None else result.worst


class Verdict(WorstMonitor):
    """What a run says of a monitored property: 1 held, -1 violated (confirmed), 0 unresolved; nan if not measured.

    monitor: as for `WorstMonitor`. Where it is not 1, the `reason` of a sweep has the explanation and the advice.
    """

    def __init__(self, monitor: str | Monitor = "lyapunov"):
        super().__init__(monitor)
        self.name = f"verdict_{self.monitor.name}"
        self.description = f"1 held, 0 unresolved, -1 violated: {self.monitor.description}"

    def value(self):
        """Of the samples so far, of which nothing is confirmed."""
        return np.nan if not self.applies or self.worst == -np.inf else float(self.worst <= self.monitor.limit)

    def __call__(self, run):
        result = _run(run).monitors.get(self.monitor.name)
        return np.nan if result is None else {HELD: 1.0, UNRESOLVED: 0.0, VIOLATED: -1.0}.get(result.verdict, np.nan)
