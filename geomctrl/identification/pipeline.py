"""`identify`: from a log to a report in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from . import filters
from .dataset import Dataset
from .errors import DataError, ExcitationError
from .estimators import _linear, fit, period_instruments
from .friction import fit_curves
from .model import RegressorModel
from .reading import ANGULAR, LINEAR, JointMapping
from .report import IdentificationReport

SHORTEST = 32  # samples: less is no log


def identify(
    robot: Robot,
    log: Dataset | str | Path,
    *,
    keys: Mapping[str, Any] | None = None,
    units: Mapping[str, str | Sequence[str]] | None = None,
    mapping: JointMapping | None = None,
    rate: float | None = None,
    drop_bad_rows: bool = False,
    resample: float | None = None,
    cutoff: float | None = None,
    torque_cutoff: float | None = None,
    alike: bool = True,
    decimate: int | None = None,
    test: Dataset | str | Path | float | None = 0.3,
    period: float | None = None,
    standstill: float = 0.0,
    saturation: bool = True,
    outliers: float | None = None,
    method: str = "consistent",
    model: RegressorModel | None = None,
    friction_curves: str | None = None,
    check_units: bool = True,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> IdentificationReport:
    """Identify a robot from a log: read, check, split, filter, fit, report. What `geomctrl identify` runs.

    log: a Dataset or the path of an npz or CSV file; keys, units, mapping, rate: how to read it (`Dataset.from_npz`).
    drop_bad_rows: leave out rows with missing numbers and repeated time stamps. Holes in the log, sampling intervals of
    more than five median ones, are not filtered or interpolated across (`Dataset.cut_at_holes`).
    resample [Hz]: put time stamps that are not even on a grid of this rate.
    cutoff [Hz] of positions: default five times the frequency below which 99 % of the velocities' power lies, at most a
    fifth of the sampling rate; torque_cutoff: default the same; alike: one low-pass for torques and regressor.
    decimate: default such that four rows are kept a period of torque_cutoff.
    test: a Dataset or path of another log; or the fraction of this one that is set aside, by phase if the trajectory is
    periodic (`period` [s], or found), by time if not; None: no test.
    standstill: speed [rad/s] below which training samples of a joint are left out. saturation: leave out torques at the
    robot's effort limits. outliers: leave out torques this many robust standard deviations off their running median.
    model: default inertia, viscous and Coulomb friction, offsets. friction_curves: "sigmoid" or
    "stribeck" adds such a curve to every joint. method, options: see `estimators.fit`.
    method="iv" takes the other periods of a periodic log as instruments, unless options name some.
    progress(what, fraction) is called now and then. Raises DataError, ExcitationError, SolverError, ArgumentError.
    """
    if not isinstance(robot, Robot):
        raise ArgumentError(f"robot: expected a geomctrl Robot, got {robot!r:.60}")
    say = progress or (lambda what, fraction: None)
    if check_units and mapping is None:
        _check_units(robot, units or {})

    def read(source: Dataset | str | Path) -> Dataset:
        options = {"keys": keys, "units": units, "mapping": mapping, "rate": rate, "drop_bad_rows": drop_bad_rows}
        data = source if isinstance(source, Dataset) else Dataset.read(source, **options)
        data.check(robot, units=check_units)
        if len(data) < SHORTEST:
            raise DataError(f"{data.label}: {len(data)} samples are no log: expected at least {SHORTEST}")
        data = data.cut_at_holes()
        return data if resample is None else data.resampled(resample)

    say("reading", 0.0)
    data = read(log)
    model = model or RegressorModel(robot)
    if model.robot is not robot:
        raise ArgumentError("model: was made for another robot")
    cutoff = cutoff if cutoff is not None else motion_bandwidth(data)
    torque_cutoff = cutoff if torque_cutoff is None else torque_cutoff
    filters.require_cutoff(cutoff, data.rate)
    filters.require_cutoff(torque_cutoff, data.rate, "torque_cutoff")
    decimate = decimate if decimate is not None else max(1, int(data.rate / (4.0 * torque_cutoff)))
    effort = np.where(robot.limits.effort > 0.0, robot.limits.effort, np.inf)  # URDF files say 0 for "not known"
    saturation = saturation and bool(np.isfinite(effort).any())
    if saturation:
        data = data.without_saturation(effort, widen=0.5 / torque_cutoff)
    if outliers is not None:
        data = data.without_outliers(outliers)
    notes: dict[str, Any] = {"cutoff": cutoff, "torque_cutoff": torque_cutoff}
    found = None if test is None and method != "iv" else period if period is not None else data.period()
    if test is None:
        parts = [data]
    elif isinstance(test, (int, float)):
        parts, notes["split"] = _split(data, test, found, guard=1.0 / cutoff)
    else:
        other = read(test)
        if saturation:
            other = other.without_saturation(effort, widen=0.5 / torque_cutoff)
        parts = [data, other]
        notes["split"] = f"tested on {other.label!r}"
    say("filtering", 0.1)
    ready = [p.filtered(cutoff, torque_cutoff=torque_cutoff, alike=alike, decimate=decimate) for p in parts]
    training = ready[0].without_standstill(standstill) if standstill != 0.0 else ready[0]
    if friction_curves is not None:
        say("friction curves", 0.2)
        found_curves = fit_curves(model, training, friction_curves)
        model = found_curves.model
        speeds = ", ".join(f"{s:.4g}{'*' * b}" for s, b in zip(found_curves.speeds, found_curves.at_bound.tolist()))
        undetermined = " (*: at its bound, not determined by the log)" if found_curves.at_bound.any() else ""
        notes["friction curves"] = f"{friction_curves}, speeds {speeds} rad/s{undetermined}"
    factors = model.compress(training, progress=lambda x: say("stacking", 0.3 + 0.5 * x))
    say("estimating", 0.8)
    options = dict(options or {})
    if method == "iv" and "instruments" not in options:
        if found is None:
            raise DataError(f"{data.label}: iv needs a trajectory that repeats (give its period), or instruments")
        options["instruments"] = period_instruments(training, found)
    needs_samples = method in ("irls", "iv", "ols", "wls", "ridge")  # for the residuals' correlation
    estimate = fit(model, training if needs_samples else factors, method, **options)
    unconstrained = None
    if method in ("consistent", "manifold", "ridge"):
        try:
            unconstrained = _linear(model, training, np.ones(robot.nv), "ols", factors)
        except ExcitationError as error:
            notes["excitation"] = str(error)
    say("done", 1.0)
    return IdentificationReport(estimate, training, ready[1] if len(ready) > 1 else None, data, unconstrained, notes)


def _split(data: Dataset, test: float, period: float | None, guard: float) -> tuple[list[Dataset], str]:
    """([training, unseen], in words): by phase where there is a period, by time where not."""
    if not 0.0 < test < 1.0:
        raise ArgumentError(f"test: expected a fraction between 0 and 1, a log, or None, got {test}")
    if period is None:
        words = f"the first {100 * (1 - test):.0f} % of the samples train, the rest is unseen"
        return list(data.split_time(1.0 - test, guard)), words
    words = f"by phase of a period of {period:.5g} s: from {1 - test:.2f} on unseen in every period"
    return list(data.split_phase(period, (1.0 - test, 1.0), guard)), words


def _check_units(robot: Robot, units: Mapping[str, str | Sequence[str]]) -> None:
    """Raises ArgumentError for degrees of a joint that slides, or millimetres of one that turns."""
    slides = [not column[:3].any() for joint in robot.joints for column in joint.S.T]
    for field, given in units.items():
        each = [given] * robot.nv if isinstance(given, str) else list(given)
        for unit, sliding, name in zip(each, slides, robot.dof_names):
            if unit in (ANGULAR if sliding else LINEAR):
                raise ArgumentError(
                    f"units: {field}: {unit!r} for joint {name!r}, which {'slides' if sliding else 'turns'}; give one"
                    f" unit a joint: {field}={','.join('mm' if s else 'deg' for s in slides)}, say"
                )


def motion_bandwidth(data: Dataset) -> float:
    """Five times the frequency [Hz] below which 99 % of the joint velocities' power lies, at most a fifth of the
    rate.
    """
    s = max(data.stretches(), key=lambda part: part.stop - part.start)
    x = data.q[s] if data.q.shape[1] == data.nv else np.asarray(data.v)[s]
    x = np.gradient(x, axis=0) if data.q.shape[1] == data.nv else x
    window = np.hanning(len(x))[:, None]
    power = (np.abs(np.fft.rfft((x - x.mean(0)) * window, axis=0)) ** 2).sum(1)
    f = np.fft.rfftfreq(len(x), 1.0 / data.rate)
    # encoder noise rises with frequency in differences: count the band up to a fifth of the rate only
    inside = f <= 0.2 * data.rate
    total = np.cumsum(power[inside])
    edge = float(f[inside][np.searchsorted(total, 0.99 * total[-1])]) if total[-1] > 0.0 else 1.0
    return min(max(5.0 * edge, 1.0), 0.2 * data.rate)
