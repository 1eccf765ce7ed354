"""The outcome of one setting: the run, its curves on a common time grid, measures and verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.control.loop import run_loop
from geomctrl.control.loop_runner import Case
from geomctrl.control.measures import PeakTorque, SettlingTime, TrackingRMS
from geomctrl.control.monitors.lyapunov import MIN_VALUE
from geomctrl.control.monitors.monitor import UNRESOLVED
from geomctrl.control.options import SimulationOptions
from geomctrl.control.run import Run
from geomctrl.errors import SimulationError
from geomctrl.tracing.numbers import scalar
from geomctrl.tracing.untraceable import UntraceableError

from .controls import Loop

CURVE_POINTS = 500
STEPS_IN_PYTHON = 1000  # of a law that can not be compiled
SECONDS_IN_PYTHON = 2.0  # after which its run is shorter
TRIAL_STEPS = 20  # which measure how long a step takes
MIN_V = 1e-16  # smallest value of V in a logarithmic curve
V_RATE = "V' [V/s]"


@dataclass(frozen=True)
class Verdict:
    """What one monitor says: its name, its verdict or "checking", and numbers with advice."""

    name: str
    verdict: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """A run with its curves (title to array over `t`), measures (name to value and unit), verdicts and notes.

    ok is True if the run reached its end and all monitors held. seconds: what building and simulating took.
    promised has, by title of a curve, what the law's proof promises for it.
    checking is True if a monitor is beyond its limit and the steps were not repeated to confirm that.
    """

    run: Run
    loop: Loop
    t: np.ndarray
    curves: dict[str, np.ndarray]
    measures: dict[str, tuple[float, str]]
    verdicts: list[Verdict]
    notes: list[str]
    seconds: float
    t_end: float
    every: int
    compiled: bool
    checking: bool
    promised: dict[str, np.ndarray]

    @property
    def ok(self) -> bool | None:
        return self.run.ok


class LateError(BaseException):
    """A run in Python was given up because a newer setting waits. No `except Exception` of a law catches it."""


def outcome_of(
    loop: Loop, t_end: float | None = None, confirming: bool = True, is_late: Callable[[], bool] = lambda: False
) -> Outcome:
    """Simulate a loop, compiled or else a part of it in Python. Raises GeomctrlError if it has no sample.

    Without `confirming`, no steps are repeated for monitors beyond their limits. is_late: whether to give up a run in
    Python, which raises LateError.
    """
    begin = time.perf_counter()
    t_end, notes, compiled = loop.t_end if t_end is None else t_end, [], True
    try:
        run = simulated(loop, t_end, True, confirming)
    except UntraceableError as error:
        shorter = min(t_end, _steps_in_python(loop, is_late) * loop.dt)
        run = simulated(loop, shorter, False, confirming, is_late)
        t_end, whole, compiled = shorter, t_end, False
        part = f", the first {shorter:g} s only" if shorter < whole else ""
        notes.append(f"This law runs in Python{part}: {error}")
    if not run.success:
        notes.append(run.reason)
    t = np.linspace(0.0, loop.t_end, CURVE_POINTS + 1)
    curves = {title: np.interp(t, run.t, y, right=np.nan) for title, y in _curves(run).items()}
    promised = {}
    if "lyapunov" in run.signals and len(run.t) > 1:
        middle, rate, promise = lyapunov_rates(run, loop.controller)
        curves[V_RATE], promised[V_RATE] = (np.interp(t, middle, y, right=np.nan) for y in (rate, promise))
    unconfirmed = {m.name for m in run.monitors.values() if m.verdict == UNRESOLVED and not confirming}
    verdicts = [
        Verdict(m.name, "checking" if m.name in unconfirmed else m.verdict, _numbers(m)) for m in run.monitors.values()
    ]
    seconds, every = time.perf_counter() - begin, _every(loop, t_end)
    return Outcome(
        run,
        loop,
        t,
        curves,
        _measures(run),
        verdicts,
        notes,
        seconds,
        t_end,
        every,
        compiled,
        bool(unconfirmed),
        promised,
    )


def _steps_in_python(loop: Loop, is_late: Callable[[], bool]) -> int:
    begin = time.perf_counter()
    simulated(loop, TRIAL_STEPS * loop.dt, False, False, is_late)
    in_time = int(TRIAL_STEPS * SECONDS_IN_PYTHON / (time.perf_counter() - begin))
    return min(max(in_time, TRIAL_STEPS), STEPS_IN_PYTHON)


def simulated(
    loop: Loop, t_end: float, compiled: bool, confirming: bool, is_late: Callable[[], bool] = lambda: False
) -> Run:
    """The run of a loop, up to where it fails. Raises GeomctrlError if it fails before its first sample."""

    def report(fraction: float) -> None:
        if is_late():
            raise LateError

    options = SimulationOptions(every=_every(loop, t_end), compiled=compiled)
    try:
        case = Case(loop.plant, loop.controller, loop.q0, loop.v0)
        progress = not compiled and report  # compiled, a run takes less time than a report
        return run_loop(case, t_end, loop.dt, loop.control_dt, "default", options, progress, confirming)
    except SimulationError as error:
        if error.run is None or not len(error.run.t):
            raise
        return error.run


def _every(loop: Loop, t_end: float) -> int:
    return max(1, round(t_end / loop.dt / CURVE_POINTS))


def _curves(run: Run) -> dict[str, np.ndarray]:
    limits = np.asarray(run.plant.robot.limits.effort, float)
    limited = np.isfinite(limits).all() and (limits > 0.0).all()
    torque = np.abs(run.applied / limits if limited else run.applied).max(axis=1)
    curves = {"largest torque / limit" if limited else "largest torque [N m, N]": torque}
    error = run.tracking_error()
    if error is not None:
        curves = {"largest tracking error [rad, m]": np.abs(error).max(axis=1), **curves}
    if "lyapunov" in run.signals:
        curves["log10 V"] = np.log10(np.maximum(run.signals["lyapunov"], MIN_V))
    return curves


def lyapunov_rates(run: Run, controller: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times between the stored samples, the mean V' there, and its promised bound: the law's rate and its `allowance`.

    The bound is the larger one of both samples. nan where a change of the plant changes V itself, and zero for rates so
    small that they are rounding.
    """
    changes = np.array([t for t, _ in run.plant.changes])
    V, rate = run.signals["lyapunov"], run.signals["lyapunov_rate"]
    if getattr(controller, "allowance", None) is not None:
        allowed = [scalar(controller.allowance(run.plant.at(t))) for t in (0.0, *changes)]
        rate = rate + np.array(allowed)[np.searchsorted(changes, run.t, side="right")]
    begin, end = run.t[:-1], run.t[1:]
    jumps = ((begin[:, None] < changes) & (changes <= end[:, None])).any(axis=1)
    V_rate, bound = np.diff(V) / np.diff(run.t), np.maximum(rate[:-1], rate[1:])
    for x in (V_rate, bound):
        x[np.abs(x) < MIN_VALUE] = 0.0
        x[jumps] = np.nan
    return 0.5 * (begin + end), V_rate, bound


def _measures(run: Run) -> dict[str, tuple[float, str]]:
    measures: dict[str, tuple[float, str]] = {}
    if run.desired is not None:
        for measure in (TrackingRMS(), SettlingTime()):
            measures[measure.description] = measure(run), measure.units
    measures["largest torque"] = PeakTorque()(run), "N m"
    if "lyapunov" in run.signals:
        V = run.signals["lyapunov"]
        measures["largest growth of V"] = float((V - np.minimum.accumulate(V)).max()), "J"
    return measures


def _numbers(result: Any) -> str:
    worst = f"worst {result.worst:.2g} at {result.t_worst:.3g} s, limit {result.limit:.2g}"
    return f"{worst}: {result.explanation}" if result.explanation else worst
