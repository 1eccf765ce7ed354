"""`Monitor`, the base class of all monitors, with their results: `MonitorResult` and `Finding`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from geomctrl.control.plant import Plant
from geomctrl.control.sample import Sample
from geomctrl.described import ReadableRepr

HELD, VIOLATED, UNRESOLVED, NOT_MEASURED = "held", "VIOLATED", "UNRESOLVED", "not measured"


class Finding(NamedTuple):
    """The outcome of confirming a monitor's value beyond its limit.

    Attributes
    ----------
    verdict : str
        `HELD`, `VIOLATED` or `UNRESOLVED`.
    reason : str
        Why, as a clause.
    advice : str
        What resolves the question or removes the violation, as a clause; may be empty.
    dt : float
        Integrator step that should resolve the question [s]; nan if no step would.

    Examples
    --------
    >>> import geomctrl as gc
    >>> finding = gc.monitors.Finding(gc.monitors.UNRESOLVED, "the step is too long", dt=1e-4)
    >>> finding.verdict, finding.dt
    ('UNRESOLVED', 0.0001)
    """

    verdict: str
    reason: str
    advice: str = ""
    dt: float = np.nan


class Monitor(ReadableRepr):
    """Base class for a property that is checked at every sample. A subclass follows these rules:

    1. `name` and `description` (a sentence) say what is measured. `limit` is the largest allowed value; nan counts as
       exceeding it. Use infinity to record a value without a limit.
    2. `start(plant, controller)` is called once before a run. It returns whether the property applies to this loop.
    3. `measure(sample)` returns the value at this sample. It must not modify the sample.
    4. Optional: `signals`, further values by name that the run records. `start` sets the names, `measure` the values.
    5. The run sets `held` before it calls `start`: the hold time of a sampled command [s], 0 in continuous time.
    6. Optional: `confirm(replay)` re-examines values beyond the limit after the run, using the stored samples of a
       `Replay`, and returns a `Finding`. It changes nothing. The default reports a violation, which suits direct
       observations that neither truncation nor rounding errors can explain.
    7. Memory between samples is kept in attributes that are numbers, arrays or None, which `start` sets. Then the
       monitor can run in compiled loops too, if `measure` uses Python, numpy and math on numbers and arrays.

    Examples
    --------
    >>> import geomctrl as gc
    >>> class Speed(gc.monitors.Monitor):
    ...     name, description, limit = "speed", "largest joint speed [rad/s]", 10.0
    ...
    ...     def start(self, plant, controller):
    ...         return True
    ...
    ...     def measure(self, sample):
    ...         return abs(sample.v).max()
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.0, 0.0], kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, [0.1, 0.0], [0.0, 0.0], t_end=0.01, dt=1e-3, monitors=[Speed()])
    >>> run.monitors["speed"].verdict
    'held'
    """

    name = "monitor"
    description = ""
    limit = 0.0
    held = 0.0
    signals: Mapping[str, float] = MappingProxyType({})

    def start(self, plant: Plant, controller: Any) -> bool:
        """Prepare for a run and return whether the property applies (rule 2)."""
        return True

    def measure(self, sample: Sample) -> float:
        """Return the value at this sample (rule 3)."""
        raise NotImplementedError

    def confirm(self, replay: Any) -> Finding:
        """Re-examine values beyond the limit, using the stored samples (rule 6)."""
        return Finding(VIOLATED, "observed directly")


@dataclass(frozen=True)
class MonitorResult:
    """The result of one monitor: values at stored samples, the worst of all samples and its time.

    A value beyond the limit is confirmed after the run, and `finding` is the outcome. `finding` is None if no value
    exceeds the limit or if nothing was confirmed, as in an interrupted run. If a run ends before its first sample,
    `worst` is nan and the verdict is "not measured".
    """

    name: str
    description: str
    limit: float
    values: np.ndarray
    worst: float
    t_worst: float
    finding: Finding | None = None

    @property
    def ok(self) -> bool | None:
        """True if the property held, False if a violation is confirmed or nothing was measured, None if unresolved."""
        return {HELD: True, UNRESOLVED: None}.get(self.verdict, False)

    @property
    def verdict(self) -> str:
        """One of `held`, `VIOLATED`, `UNRESOLVED`, `not measured`."""
        if not len(self.values):
            return NOT_MEASURED
        if self.worst <= self.limit:
            return HELD
        return UNRESOLVED if self.finding is None else self.finding.verdict

    @property
    def explanation(self) -> str:
        """Reason and advice of the confirmation; empty if no value exceeds the limit."""
        if not len(self.values) or self.worst <= self.limit:
            return ""
        reason, advice = ("not confirmed", "") if self.finding is None else self.finding[1:3]
        return f"{reason}; {advice}" if advice else reason

    def __str__(self):
        if not len(self.values):
            return f"{self.name}: {self.description}: {self.verdict}"
        worst = f"worst {self.worst:.2e} at t = {self.t_worst:.4g} s, limit {self.limit:.0e}"
        explained = f" ({self.explanation})" if self.explanation else ""
        return f"{self.name}: {self.description}: {worst}: {self.verdict}{explained}"
