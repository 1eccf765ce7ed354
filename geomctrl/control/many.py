"""Many closed loops, measured: what a sweep computes with."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import SimulationError
from geomctrl.integrators.march import check_storing
from geomctrl.integrators.tableaus import method as method_named
from geomctrl.motion.arguments import step_count
from geomctrl.robot import Robot

from .contracts import Controller
from .loop import hold_count, simulate
from .plant import Plant
from .run import Run


@dataclass(frozen=True, eq=False)
class Case:
    """A closed loop and where it starts: q0 (nq,), v0 (nv,)."""

    plant: Plant | Robot
    controller: Controller
    q0: ArrayLike
    v0: ArrayLike


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a case: measures by name, why it ended, whether well, the last time reached [s], steps.

    A measure that could not be taken is not in `values`; then `reason` says why, and `success` is False.
    """

    values: dict[str, Any]
    reason: str
    success: bool
    t: float
    steps: int


def check_options(t_end: float, dt: float, method: str, control_dt: float | None, every: int) -> None:
    """Raise ArgumentError for options that `simulate` refuses whatever the case."""
    step_count(t_end, dt)
    method_named(method)
    hold_count(control_dt, dt)
    check_storing(every, None)


def run_of(case: Case, t_end: float, dt: float, **options: Any) -> Run:
    """The whole run that `outcomes` measures, equal to the bit; up to where it failed if it does."""
    try:
        return simulate(case.plant, case.controller, case.q0, case.v0, t_end, dt, **options)
    except SimulationError as error:
        if error.run is None:
            raise
        return error.run


def outcomes(
    cases: Sequence[Case],
    measures: Mapping[str, Callable[[Run], Any]],
    t_end: float,
    dt: float,
    **options: Any,
) -> list[Outcome]:
    """An Outcome a case, in their order; options as for `simulate`. What fails in one case leaves the others alone."""
    options = options | {"monitors": copy.deepcopy(options.get("monitors", "default"))}  # other threads have theirs
    return [_outcome(case, measures, t_end, dt, options) for case in cases]


def _outcome(case, measures, t_end, dt, options) -> Outcome:
    try:
        run = run_of(case, t_end, dt, **options)
    except MemoryError:
        raise
    except Exception as error:  # of a case that `simulate` refuses
        return Outcome({}, said(error), False, np.nan, 0)
    values, reason, success = {}, run.reason, run.success
    for name, measure in measures.items():
        try:
            values[name] = measure(run)
        except MemoryError:
            raise
        except Exception as error:  # of a caller's measure
            reason, success = f"{reason}; measure {name!r}: {said(error)}", False
    return Outcome(values, reason, success, float(run.t[-1]) if len(run.t) else np.nan, run.steps)


def said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
