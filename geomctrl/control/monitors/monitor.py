"""What a monitor is, what it finds, and what a run keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from geomctrl.control.plant import Plant
from geomctrl.control.sample import Sample
from geomctrl.described import Described

HELD, VIOLATED, UNRESOLVED, NOT_MEASURED = "held", "VIOLATED", "UNRESOLVED", "not measured"


class Finding(NamedTuple):
    """What confirmation of a monitor's accusation found.

    verdict: `HELD`, `VIOLATED` or `UNRESOLVED`; reason: why, in a clause; advice: what resolves or removes it, a clause
    or empty; dt: the step of the integrator that should resolve it [s], nan where no step would.
    """

    verdict: str
    reason: str
    advice: str = ""
    dt: float = np.nan


class Monitor(Described):
    """One property. The implementer's contract:

    1. `name` and `description` (a sentence) say what is measured, `limit` what it may not exceed; nan counts as
       exceeding. A limit is a number; infinity is one for what is only recorded, which those below refuse.
    2. `start(plant, controller)` is called once before a run and returns whether the property applies to it.
    3. `measure(sample)` returns the number at this step; it must not change the sample.
    4. Optionally `signals` are further numbers by name, for the run to keep: `start` names them, `measure` renews them.
    5. A run sets `held` before `start`: for how long the loop holds a command [s], 0 where the law acts all the time.
    6. Optionally `confirm(replay)` judges again what `measure` found beyond the limit, from the stored samples of a
       `Replay`, and returns a `Finding`. It is called after the run, and changes nothing. Without it, a number beyond
       the limit is a violation: right where the number is an observation that neither truncation nor rounding explains.
    """

    name = "monitor"
    description = ""
    limit = 0.0
    held = 0.0
    signals: Mapping[str, float] = MappingProxyType({})

    def start(self, plant: Plant, controller: Any) -> bool:
        """Prepare for a run; whether the property applies to it; rule 2."""
        return True

    def measure(self, sample: Sample) -> float:
        """The number at this step; rule 3."""
        raise NotImplementedError

    def confirm(self, replay: Any) -> Finding:
        """Judge again, from the stored samples, what is beyond the limit; rule 6."""
        return Finding(VIOLATED, "observed directly")


@dataclass(frozen=True)
class MonitorResult:
    """One monitor's verdict over a run: its values at the stored samples, the worst of all steps and when.

    A run that ended before its first sample has measured nothing: then `worst` is nan, and nothing is said to hold.
    A worst value beyond the limit is an accusation; `finding` is what its confirmation found, None where nothing was
    beyond the limit, or where nothing was confirmed, as in an interrupted run.
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
        """True where the property held, False where it is confirmed that it did not, None where that is unresolved.

        What was not measured is False: nothing is said to hold.
        """
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
        """Reason and advice of a verdict that took confirmation, else empty."""
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
