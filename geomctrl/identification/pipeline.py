"""`identify`: from a log to a report in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from geomctrl.arguments import choice, function, instance
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from .columns import SHAPES
from .data import Dataset
from .doubts import Doubt
from .errors import DataError, ExcitationError
from .estimators import Estimate, Estimator, fit, named
from .estimators.least_squares import linear
from .friction import fit_curves
from .model import RegressorModel
from .provenance import with_provenance
from .report import IdentificationReport
from .settings import Filtering, LogFilter, Reading, Validation

Progress = Callable[[str, float], None]


@with_provenance
def identify(
    robot: Robot,
    log: Dataset | str | Path,
    *,
    method: str = "consistent",
    options: Mapping[str, Any] | None = None,
    model: RegressorModel | None = None,
    friction_curves: str | None = None,
    reading: Reading | None = None,
    filtering: Filtering | None = None,
    validation: Validation | None = None,
    progress: Progress | None = None,
) -> IdentificationReport:
    """Identify a robot from a log: read, check, split, filter, fit, report. What `geomctrl identify` runs.

        report = identify(robot, "log.csv", method="wls", filtering=Filtering(cutoff=8.0, standstill=0.01))

    log: a Dataset or the path of a file, see `Dataset.read`; reading: how to read it. Holes in the log, sampling
    intervals of more than five median ones, are not filtered or interpolated across (`Dataset.cut_at_holes`).
    method, options: see `estimators.fit`; an option that can be made of a periodic log, the instruments of "iv", need
    not be given. model: default inertia, viscous and Coulomb friction, offsets. friction_curves: "sigmoid" or
    "stribeck" adds such a curve to every joint.
    filtering, validation: what is low-passed and left out, what is set aside to test on.
    progress(what, fraction) is called now and then. Raises DataError, ExcitationError, SolverError, ArgumentError.
    """
    for name, x, kind, expected in (
        ("robot", robot, Robot, "a geomctrl.Robot"),
        ("log", log, (Dataset, str, os.PathLike), "a Dataset or the path of a log"),
        ("options", options, (Mapping, NoneType), "a dict by name, or None"),
        ("model", model, (RegressorModel, NoneType), "a RegressorModel or None"),
        ("reading", reading, (Reading, NoneType), "a Reading or None"),
        ("filtering", filtering, (Filtering, NoneType), "a Filtering or None"),
        ("validation", validation, (Validation, NoneType), "a Validation or None"),
    ):
        instance(name, x, kind, expected)
    estimator, options = named(method), dict(options or {})
    for name in options:
        instance("options", name, str, "names of options")
    if friction_curves is not None:
        choice("friction_curves", friction_curves, SHAPES)
    say = (lambda what, fraction: None) if progress is None else function("progress", progress, "(what, fraction)")
    reading, validation = reading or Reading(), validation or Validation()
    reading.require_units_of(robot)
    say("reading", 0.0)
    raw = reading.read(log, robot)
    model = model or RegressorModel(robot)
    if model.robot is not robot:
        raise ArgumentError("model: was made for another robot")
    doubts: list[Doubt] = []
    filter_ = (filtering or Filtering()).for_log(raw)
    notes: dict[str, Any] = {"cutoff": filter_.cutoff, "torque_cutoff": filter_.torque_cutoff}
    raw = filter_.without_outliers(filter_.without_saturation(raw, robot))
    missing = [name for name in estimator.from_period if name not in options]
    period = validation.period_of(raw) if missing or isinstance(validation.test, (int, float)) else None
    parts = _parts(raw, robot, reading, filter_, validation, period, notes)
    say("filtering", 0.1)
    training, *test = (filter_.filtered(part) for part in parts)
    training = filter_.without_standstill(training)
    if friction_curves is not None:
        say("friction curves", 0.2)
        model, notes["friction curves"] = _with_curves(model, training, friction_curves)
    for name in missing:
        options[name] = _from_period(estimator, name, training, raw, period)
    estimate, unconstrained = _estimates(estimator, model, training, options, notes, say)
    say("done", 1.0)
    return IdentificationReport(estimate, training, test[0] if test else None, raw, unconstrained, notes, tuple(doubts))


def _parts(
    data: Dataset,
    robot: Robot,
    reading: Reading,
    filter_: LogFilter,
    validation: Validation,
    period: float | None,
    notes: dict[str, Any],
) -> list[Dataset]:
    """[training], or [training, test]; how they were split goes to the notes."""
    if validation.test is None:
        return [data]
    if isinstance(validation.test, (int, float)):
        parts, notes["split"] = validation.split(data, period, guard=1.0 / filter_.cutoff)
        return parts
    reading = validation.reading or reading
    other = filter_.without_saturation(reading.read(validation.test, robot), robot)
    notes["split"] = f"tested on {other.label!r}"
    return [data, other]


def _with_curves(model: RegressorModel, training: Dataset, shape: str) -> tuple[RegressorModel, str]:
    """(the model with friction curves, in words)."""
    found = fit_curves(model, training, shape)
    speeds = ", ".join(f"{s:.4g}{'*' * b}" for s, b in zip(found.speeds, found.at_bound.tolist()))
    undetermined = " (*: at its bound, not determined by the log)" if found.at_bound.any() else ""
    return found.model, f"{shape}, speeds {speeds} rad/s{undetermined}"


def _from_period(estimator: Estimator, name: str, training: Dataset, raw: Dataset, period: float | None) -> Any:
    if period is None:
        raise DataError(f"{raw.label}: {estimator.name} needs a trajectory that repeats (give its period), or {name}")
    return estimator.from_period[name](training, period)


def _estimates(
    estimator: Estimator,
    model: RegressorModel,
    training: Dataset,
    options: Mapping[str, Any],
    notes: dict[str, Any],
    say: Progress,
) -> tuple[Estimate, Estimate | None]:
    """(the estimate, least squares without prior and constraints to compare it with)."""
    factors = model.compress(training, progress=lambda x: say("stacking", 0.3 + 0.5 * x))
    say("estimating", 0.8)
    estimate = fit(model, training if estimator.needs_samples else factors, estimator.name, **options)
    if not estimator.has_prior:
        return estimate, None
    try:
        return estimate, linear(model, training, np.ones(model.robot.nv), "ols", factors)
    except ExcitationError as error:
        notes["excitation"] = str(error)
        return estimate, None
