"""`identify`: from a log to a result in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from geomctrl.arguments import choice, function, instance
from geomctrl.control.progress import told_in_steps
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from .assessment import estimated_delay
from .assessment.similarity import compare
from .errors import ExcitationError
from .estimators import Estimate, Estimator, fit, named
from .estimators.choosing import with_chosen_prior
from .estimators.cutoffs import LogFilter, chosen_cutoffs, with_bias_of_noise
from .estimators.least_squares import linear
from .estimators.model_choice import with_best_curves, with_best_rotors, with_smoothing
from .findings import Finding
from .logs import Dataset
from .logs.dataset import read_log, require_units
from .model.friction_curves import fit_curves
from .model.regressor_model import RegressorModel
from .report import Result
from .report.provenance import provenance
from .settings import AUTO, Filtering, Settings, Validation

Progress = Callable[[str, float], None]


@told_in_steps
def identify(
    robot: Robot,
    log: Dataset | str | Path,
    settings: Settings | None = None,
    *,
    model: RegressorModel | None = None,
    progress: Progress | bool | None = None,
    **changes: Any,
) -> Result:
    """Identify a robot from a log: read, check, split, filter, fit, report. What `geomctrl identify` runs.

    Holes in the log, sampling intervals of more than five median ones, are not filtered or interpolated across.

    Parameters
    ----------
    robot : Robot
        Its geometry is taken as right, its inertias as a prior.
    log : Dataset or path
        See `Dataset.read` for the formats of files.
    settings : Settings, optional
        How the log is read, filtered, split and fitted; default all that `Settings` has.
    model : RegressorModel, optional
        What torques are made of; default inertia, viscous and Coulomb friction, offsets.
    progress : callable or bool, optional
        `progress(stage, fraction)` is called now and then; True draws a bar.
    **changes
        Fields of `Settings` by name, in place of those of `settings`.

    Returns
    -------
    Result

    Raises
    ------
    DataError, ExcitationError, SolverError, ArgumentError

    Examples
    --------
    result = identify(robot, "log.csv", method="wls", filtering=Filtering(cutoff=8.0, standstill=0.01))
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    instance("log", log, (Dataset, str, os.PathLike), "a Dataset or the path of a log")
    instance("model", model, (RegressorModel, NoneType), "a RegressorModel or None")
    instance("settings", settings, (Settings, NoneType), "Settings or None")
    settings = replace(settings or Settings(), **changes)
    estimator, filtering, validation = named(settings.method), settings.filtering, settings.validation
    say = (lambda stage, fraction: None) if progress is None else function("progress", progress, "(what, fraction)")
    if model is not None and model.robot is not robot:
        raise ArgumentError("model: was made for another robot")
    require_units(robot, settings.reading)
    for body in settings.boxes or ():
        choice("boxes: a body", body, robot.body_names)
    say("reading", 0.0)
    raw = _moving(read_log(log, robot, settings.reading))
    own_model, model = model, model or RegressorModel(robot)
    findings: list[Finding] = []
    notes: dict[str, Any] = {}
    period = _period(validation, raw)
    parts = _parts(raw, robot, settings, period, notes)
    say("choosing cut-offs", 0.02)
    parts = _without_delay(filtering, model, parts)
    filter_ = _filter(filtering, model, parts[0], notes, findings)
    parts = [filter_.without_outliers(filter_.without_saturation(part, robot)) for part in parts]
    say("filtering", 0.1)
    every_row, *test = (filter_.filtered(part) for part in parts)
    training = filter_.without_standstill(every_row)
    if test:
        likeness = compare(training, test[0])
        notes["unseen"] = str(likeness)
        findings += likeness.findings()
    model = _chosen(model, training, every_row, _choices(settings, own_model), notes, say)
    options = with_chosen_prior(estimator, model, training, dict(settings.options or {}), period, notes, findings, say)
    estimate, free = _estimates(estimator, model, training, options, notes, say)
    estimate, free = _with_bias(estimate, free, (parts[0], training, filter_), notes, say)
    say("done", 1.0)
    return Result(
        estimate, training, test[0] if test else None, raw, free, notes, tuple(findings), tuple(settings.ignore),
        boxes={name: np.asarray(x) for name, x in (settings.boxes or {}).items()},
        provenance=provenance(robot, log, settings, own_model),
    )  # fmt: skip


def _moving(raw: Dataset) -> Dataset:
    """The log. Raises ExcitationError for one of a robot that stands."""
    if not np.ptp(raw.q, axis=0).any():
        raise ExcitationError(f"{raw.label}: q: no joint moves: every row has the same positions")
    return raw


def _period(validation: Validation, data: Dataset) -> float | None:
    """The period, given or found, where the log is split. Raises ArgumentError for one that the log does not have."""
    if validation.period is not None:
        data.require_repeating(validation.period)
        return validation.period
    return data.period() if isinstance(validation.test, (int, float)) else None


def _parts(
    data: Dataset, robot: Robot, settings: Settings, period: float | None, notes: dict[str, Any]
) -> list[Dataset]:
    """[training], or [training, test]; how they were split goes to the notes. No guard between them: filters' edges
    are masked on both sides.
    """
    test = settings.validation.test
    if test is None:
        return [data]
    if not isinstance(test, (int, float)):
        other = read_log(test, robot, settings.validation.reading or settings.reading)
        notes["split"] = f"tested on {other.label!r}"
        return [data, other]
    if period is None:
        notes["split"] = f"the first {100 * (1 - test):.0f} % of the samples train, the rest is unseen"
        return list(data.split_time(1.0 - test))
    notes["split"] = f"by phase of a period of {period:.5g} s: from {1 - test:.2f} on unseen in every period"
    return list(data.split_phase(period, (1.0 - test, 1.0)))


def _without_delay(filtering: Filtering, model: RegressorModel, parts: list[Dataset]) -> list[Dataset]:
    """The parts of a log with torques taken back by the delay that is given, or that the first part shows."""
    if not filtering.delay:
        return parts
    seconds = estimated_delay(filtering, model, parts[0]) if filtering.delay == AUTO else float(filtering.delay)
    return [part.without_delay(seconds) for part in parts]


def _choices(settings: Settings, model: RegressorModel | None) -> tuple[bool, bool, str | None]:
    """(whether smoothing is chosen, whether rotors are, which curves): by default, all where no model is given."""
    smoothing, rotors, curves = settings.choose_smoothing, settings.choose_rotors, settings.friction_curves
    return (
        model is None if smoothing is None else smoothing,
        model is None if rotors is None else rotors,
        AUTO if model is None and curves is None else curves,
    )


def _chosen(
    model: RegressorModel,
    training: Dataset,
    every_row: Dataset,
    choices: tuple[bool, bool, str | None],
    notes: dict[str, Any],
    say: Progress,
) -> RegressorModel:
    """The model with what cross-validation chooses of (friction's smoothing, rotors, friction curves); why is noted."""
    own, (smoothing, rotors, curves) = model.smoothing, choices
    if smoothing:
        say("friction near standstill", 0.15)
        model, reason = with_smoothing(model, training, every_row)
        notes |= {"smoothing": reason} if reason else {}
    if rotors and not len(model.indices("rotor")):
        say("rotor inertias", 0.18)
        model, notes["rotor inertias"] = with_best_rotors(model, training, every_row)
    if curves is None:
        return model
    say("friction curves", 0.2)
    if curves == AUTO:
        model, notes["friction curves"] = with_best_curves(model, own, training, every_row)
        return model
    fitted = fit_curves(model, training, curves)
    speeds = ", ".join(f"{s:.4g}{'*' * b}" for s, b in zip(fitted.speeds, fitted.at_bound.tolist()))
    undetermined = " (*: at its bound, not determined by the log)" if fitted.at_bound.any() else ""
    notes["friction curves"] = f"{curves}, speeds {speeds} rad/s{undetermined}"
    return fitted.model


def _filter(
    filtering: Filtering,
    model: RegressorModel,
    training: Dataset,
    notes: dict[str, Any],
    findings: list[Finding],
) -> LogFilter:
    """The filter for a log: cut-offs as given, else chosen from the part that trains; what was chosen is noted."""
    chosen, more = chosen_cutoffs(filtering, model, training)
    findings += more
    filter_ = LogFilter.of(filtering, training, chosen)
    notes |= {"cutoff": filter_.cutoff, "torque_cutoff": filter_.torque_cutoff}
    if chosen is not None:
        notes["cutoffs"] = str(chosen)
    return filter_


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


def _with_bias(
    estimate: Estimate,
    free: Estimate | None,
    data: tuple[Dataset, Dataset, LogFilter],
    notes: dict[str, Any],
    say: Progress,
) -> tuple[Estimate, Estimate | None]:
    """The two, that which has a covariance with the bias of the motion's noise in it; what it makes is noted.

    data: what trains before and after the filter, and the filter.
    """
    say("noise of the motion", 0.9)
    wider, note = with_bias_of_noise(estimate if free is None else free, *data)
    notes |= {"noise of the motion": note} if note else {}
    return (wider, None) if free is None else (estimate, wider)
