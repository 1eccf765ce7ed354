"""Measures: numbers that a sweep computes for each run, such as tracking error, settling time and peak torque.

Any function of a `Run` is a measure. Those of this module have two forms: a formula on a stored run, and an
accumulation over the samples while the loop runs, for which no run needs to be stored.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from geomctrl.arguments import flag, instance, is_a, number, shown
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import difference
from geomctrl.other_names import unknown_names
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

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)


class Measure(ReadableRepr):
    """Base class for a number, or an array, computed from a run. A subclass follows these rules:

    1. `name` and `description` (a few words) say what is measured, `units` the units. `dims` names an array's axes.
    2. `start(plant, controller)` resets the measure: it sets the attributes that `add` changes to floats or float
       arrays. It raises ArgumentError if the measure does not apply to this loop.
    3. `add(sample)` accumulates the next sample. It changes only attributes that `start` set. It may depend on numbers
       only through np.where, np.maximum and similar functions, so that it can be compiled.
    4. `value()` returns the result after the samples so far.
    5. `__call__(run)` computes the same from a stored run without changing the measure, by a formula on its arrays if
       there is one.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> class Effort(gc.measures.Measure):
    ...     name, description, units = "effort", "largest command", "N m"
    ...
    ...     def start(self, plant, controller):
    ...         self.largest = 0.0
    ...
    ...     def add(self, sample):
    ...         self.largest = np.maximum(self.largest, np.abs(sample.tau).max())
    ...
    ...     def value(self):
    ...         return float(self.largest)
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.0, 0.0], kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, [0.1, 0.0], [0.0, 0.0], t_end=0.01, dt=1e-3)
    >>> bool(Effort()(run) == abs(run.tau).max())
    True
    """

    name = "measure"
    description = ""
    units = "1"
    dims: tuple[str, ...] = ()

    def start(self, plant: Plant, controller: Any) -> None:
        """Reset the measure (rule 2)."""
        raise NotImplementedError

    def add(self, sample: Sample) -> None:
        """Accumulate the next sample (rule 3).

        Parameters
        ----------
        sample : Sample
            Time, state, command and plant of one sample.
        """
        raise NotImplementedError

    def value(self) -> Any:
        """Return the result after the samples so far (rule 4).

        Returns
        -------
        float or ndarray
            In `units`; an array has the axes `dims`.
        """
        raise NotImplementedError

    def __call__(self, run: Run) -> Any:
        measure = copy.copy(self)
        measure.start(run.plant, run.controller)
        for sample in samples(run):
            measure.add(sample)
        return measure.value()


def accumulates(measure: Any) -> bool:
    """Whether a measure accumulates samples while the loop runs; all others are functions of the Run."""
    return isinstance(measure, Measure) and not isinstance(measure, WorstMonitor)


def _run(x: Any) -> Run:
    return instance("run", x, Run, "a geomctrl.Run")


def samples(run: Run) -> Iterator[Sample]:
    """The stored samples of a run in the form that a running loop passes to a measure."""
    reference = getattr(_run(run).controller, "reference", None)
    for k, t in enumerate(run.t):
        z, x, applied = (None if a is None else a[k] for a in (run.z, run.x, run.applied))
        state = State(run.q[k], run.v[k], z, x, np.nan, run.q[k])
        yield Sample(float(t), state, Command(run.tau[k]), run.plant.at(t), applied, reference=reference)


class _Error(Measure):
    """Base class for measures of e = log(q_d^-1 q) (nv,), with q_d the controller's reference or attribute `q_d`."""

    units = "rad"

    def _goal(self, controller: Any) -> np.ndarray | None:
        """The constant goal, or None if the controller has a reference."""
        if getattr(controller, "reference", None) is not None:
            return None
        q_d = getattr(controller, "q_d", None)
        if q_d is None:
            raise ArgumentError(
                f"{self.name}: expected a controller with a reference or a q_d, got {shown(controller)}"
            )
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
    """Root mean square of |e| over the samples [rad, m]; nan if the run ended before `after`.

    Parameters
    ----------
    after : float
        Time [s] from which samples count. Default: 0.
    joints : bool
        Whether the result has one number for each coordinate (nv,). Default: False, a single number.

    Raises
    ------
    ArgumentError
        If `after` is not a finite number, or `joints` is not True or False.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), np.zeros(2), kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, np.array([0.1, 0.0]), np.zeros(2), t_end=0.01, dt=1e-3)
    >>> bool(0.0 < gc.measures.TrackingRMS()(run) <= 0.1)
    True
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
    """Time from which every coordinate of |e| stays within a tolerance [s]; nan if one is outside at the end.

    Parameters
    ----------
    tolerance : float
        [rad, m]. Default: 0.01.

    Raises
    ------
    ArgumentError
        If `tolerance` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), np.zeros(2), kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, np.array([0.1, 0.0]), np.zeros(2), t_end=0.01, dt=1e-3)
    >>> gc.measures.SettlingTime(tolerance=0.2)(run)  # inside the tolerance from the start
    0.0
    """

    name = "settling_time"
    description = "time from which the error stays within the tolerance"
    units = "s"

    def __init__(self, tolerance: float = 0.01):
        self.tolerance = number("tolerance", tolerance, "a positive error", lambda x: x > 0.0)

    def start(self, plant, controller):
        super().start(plant, controller)
        self.settled = np.full(plant.robot.nv, np.inf)  # time per coordinate

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
    """The remaining parameter error |z - z_true| at the end, relative to that at the start (Euclidean norms).

    z_true is the controller's `true_parameters(plant)` for the plant at that time. The result is nan if the initial
    error is zero.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.SlotineLi(arm, gc.references.Sinusoids(arm, [0.3, 0.5], amplitude=0.4, frequency=0.5))
    >>> start = law.reference(0.0)
    >>> run = gc.simulate(arm.with_payload(0.5), law, start.q, start.v, t_end=0.1, dt=1e-3)
    >>> bool(0.0 < gc.measures.ParameterError()(run) <= 1.0)
    True
    """

    name = "parameter_error"
    description = "error of the parameters at the end, relative to the start"

    def start(self, plant, controller):
        if getattr(controller, "true_parameters", None) is None:
            raise ArgumentError(f"{self.name}: expected a controller with true_parameters, got {shown(controller)}")
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
    """The largest |tau| applied to the joints in all samples [N m, N].

    Parameters
    ----------
    joints : bool
        Whether the result has one number for each coordinate (nv,). Default: False, a single number.

    Raises
    ------
    ArgumentError
        If `joints` is not True or False.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), np.zeros(2), kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, np.array([0.1, 0.0]), np.zeros(2), t_end=0.01, dt=1e-3)
    >>> bool(gc.measures.PeakTorque()(run) == np.abs(run.applied).max())
    True
    """

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
    """The worst value of a monitor over all samples; nan if the monitor does not apply.

    Parameters
    ----------
    monitor : str or Monitor
        The name of a default monitor, or a monitor. Default: "energy".

    Raises
    ------
    ArgumentError
        If no monitor has this name.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), np.zeros(2), kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, np.array([0.1, 0.0]), np.zeros(2), t_end=0.01, dt=1e-3)
    >>> bool(gc.measures.WorstMonitor("energy")(run) <= 1e-6)
    True
    """

    def __init__(self, monitor: str | Monitor = "energy"):
        monitors = {m.name: m for m in default_monitors()}
        chosen = monitors.get(monitor) if isinstance(monitor, str) else monitor
        if not is_a(chosen, Monitor):
            raise ArgumentError(f"monitor: expected one of {', '.join(monitors)}, or a Monitor, got {shown(monitor)}")
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
    """The verdict of a monitor: 1 held, -1 violated (confirmed), 0 unresolved, nan not measured.

    If the value is not 1, `reason` in the sweep contains explanation and advice.

    Parameters
    ----------
    monitor : str or Monitor
        The name of a default monitor, or a monitor. Default: "lyapunov".

    Raises
    ------
    ArgumentError
        If no monitor has this name.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), np.zeros(2), kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, np.array([0.1, 0.0]), np.zeros(2), t_end=0.01, dt=1e-3)
    >>> float(gc.measures.Verdict("lyapunov")(run))
    1.0
    """

    def __init__(self, monitor: str | Monitor = "lyapunov"):
        super().__init__(monitor)
        self.name = f"verdict_{self.monitor.name}"
        self.description = f"1 held, 0 unresolved, -1 violated: {self.monitor.description}"

    def value(self):
        """The verdict on the samples so far, without confirmation."""
        return np.nan if not self.applies or self.worst == -np.inf else float(self.worst <= self.monitor.limit)

    def __call__(self, run):
        result = _run(run).monitors.get(self.monitor.name)
        return np.nan if result is None else {HELD: 1.0, UNRESOLVED: 0.0, VIOLATED: -1.0}.get(result.verdict, np.nan)
