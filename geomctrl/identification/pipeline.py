"""`identify`: from a log to a report in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import choice, flag, function, instance
from geomctrl.control.progress import told_in_steps
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from .assessment import checked_boxes, estimated_delay, ignorable
from .assessment.similarity import compare
from .errors import ExcitationError
from .estimators import Estimate, Estimator, fit, named
from .estimators.automatic import with_chosen_prior
from .estimators.least_squares import linear
from .estimators.motion_noise import with_bias_of_noise
from .estimators.smoothing import with_best_curves, with_best_rotors, with_smoothing
from .findings import Finding
from .logs import Dataset
from .model.columns import SHAPES
from .model.friction_curves import fit_curves
from .model.regressor_model import RegressorModel
from .report import IdentificationReport
from .report.provenance import with_provenance
from .settings import Filtering, LogFilter, Reading, Validation

AUTO = "auto"  # friction curves by cross-validation
Progress = Callable[[str, float], None]


@with_provenance
@told_in_steps
def identify(
    robot: Robot,
    log: Dataset | str | Path,
    *,
    method: str = "consistent",
    options: Mapping[str, Any] | None = None,
    model: RegressorModel | None = None,
    friction_curves: str | None = None,
    choose_smoothing: bool | None = None,
    choose_rotors: bool | None = None,
    reading: Reading | None = None,
    filtering: Filtering | None = None,
    validation: Validation | None = None,
    ignore: Sequence[str] = (),
    boxes: Mapping[str, ArrayLike] | None = None,
    progress: Progress | bool | None = None,
) -> IdentificationReport:
    """Identify a robot from a log: read, check, split, filter, fit, report. What `geomctrl identify` runs.

        report = identify(robot, "log.csv", method="wls", filtering=Filtering(cutoff=8.0, standstill=0.01))

    log: a Dataset or the path of a file, see `Dataset.read`; reading: how to read it. Holes in the log, sampling
    intervals of more than five median ones, are not filtered or interpolated across (`Dataset.cut_at_holes`).
    method, options: see `estimators.fit`. Weights of a prior and of joints that are not given are chosen by cross-
    validation (`choose_prior`); where one weight of the prior is given, the other is its default, or "auto". model:
    default inertia, viscous and Coulomb friction, offsets. friction_curves: "sigmoid" or "stribeck" adds such a curve
    to every joint, "auto" the one that predicts blocks left out better, if one does; default "auto" where no model is
    given, else none.
    choose_smoothing: whether the speed over which Coulomb friction changes its sign is chosen by cross-validation, see
    `smoothing`; choose_rotors: whether rotor inertias join a model without them; default where no model is given.
    filtering, validation: what is low-passed and left out, what is set aside to test on.
    ignore: kinds of findings, or "all", that do not count in the assessment. boxes: (2, 3) corners [m] of
    bodies in their frames by name, where their mass can be (`models.link_boxes` of a URDF); else boxes about joints.
    progress(what, fraction) is called now and then; True draws a bar. Raises DataError, ExcitationError, SolverError,
    ArgumentError.
    """
    _check(robot, log, options, model, friction_curves, reading, filtering, validation)
    estimator, options, ignore = named(method), dict(options or {}), ignorable("ignore", ignore)
    say = (lambda what, fraction: None) if progress is None else function("progress", progress, "(what, fraction)")
    reading, validation = reading or Reading(), validation or Validation()
    reading.require_units_of(robot)
    corners = checked_boxes("boxes", boxes, robot)
    say("reading", 0.0)
    raw = _moving(reading.read(log, robot))
    choose_smoothing = model is None if choose_smoothing is None else flag("choose_smoothing", choose_smoothing)
    choose_rotors = model is None if choose_rotors is None else flag("choose_rotors", choose_rotors)
    friction_curves = AUTO if model is None and friction_curves is None else friction_curves
    model = model or RegressorModel(robot)
    if model.robot is not robot:
        raise ArgumentError("model: was made for another robot")
    findings: list[Finding] = []
    period = validation.period_of(raw) if validation.needs_period else None
    notes: dict[str, Any] = {}
    parts = _parts(raw, robot, reading, validation, period, notes)
    say("choosing cut-offs", 0.02)
    filtering = filtering or Filtering()
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
    choices = choose_smoothing, choose_rotors, friction_curves
    model = _chosen(model, training, every_row, choices, notes, say)
    options = with_chosen_prior(estimator, model, training, options, period, notes, findings, say)
    estimate, free = _estimates(estimator, model, training, options, notes, say)
    estimate, free = _with_bias(estimate, free, (parts[0], training, filter_), notes, say)
    say("done", 1.0)
    unseen = test[0] if test else None
    return IdentificationReport(estimate, training, unseen, raw, free, notes, tuple(findings), ignore, boxes=corners)


def _check(robot, log, options, model, friction_curves, reading, filtering, validation) -> None:
    """Raises ArgumentError for arguments of `identify` that are of another kind."""
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
    for name in options or ():
        instance("options", name, str, "names of options")
    if friction_curves is not None:
        choice("friction_curves", friction_curves, (*SHAPES, AUTO))


def _moving(raw: Dataset) -> Dataset:
    """The log. Raises ExcitationError for one of a robot that stands."""
    if not np.ptp(raw.q, axis=0).any():
        raise ExcitationError(f"{raw.label}: q: no joint moves: every row has the same positions")
    return raw


def _without_delay(filtering: Filtering, model: RegressorModel, parts: list[Dataset]) -> list[Dataset]:
    """The parts of a log with torques taken back by the delay that is given, or that the first part shows."""
    if not filtering.delay:
        return parts
    seconds = estimated_delay(filtering, model, parts[0]) if filtering.delay == AUTO else float(filtering.delay)
    return [part.without_delay(seconds) for part in parts]


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
        model = _smoothed(model, training, every_row, notes)
    if rotors and not len(model.indices("rotor")):
        say("rotor inertias", 0.18)
        model, notes["rotor inertias"] = with_best_rotors(model, training, every_row)
    if curves is None:
        return model
    say("friction curves", 0.2)
    if curves == AUTO:
        model, notes["friction curves"] = with_best_curves(model, own, training, every_row)
    else:
        model, notes["friction curves"] = _with_curves(model, training, curves)
    return model


def _smoothed(model: RegressorModel, training: Dataset, every_row: Dataset, notes: dict[str, Any]) -> RegressorModel:
    """The model with the width of friction's step that predicts best; why is noted, where it has such friction."""
    model, words = with_smoothing(model, training, every_row)
    notes |= {"smoothing": words} if words else {}
    return model


def _parts(
    data: Dataset,
    robot: Robot,
    reading: Reading,
    validation: Validation,
    period: float | None,
    notes: dict[str, Any],
) -> list[Dataset]:
    """[training], or [training, test]; how they were split goes to the notes."""
    if validation.test is None:
        return [data]
    if isinstance(validation.test, (int, float)):
        parts, notes["split"] = validation.split(data, period)  # no guard: filters' edges are masked on both sides
        return parts
    other = (validation.reading or reading).read(validation.test, robot)
    notes["split"] = f"tested on {other.label!r}"
    return [data, other]


def _filter(
    filtering: Filtering,
    model: RegressorModel,
    training: Dataset,
    notes: dict[str, Any],
    findings: list[Finding],
) -> LogFilter:
    """The filter for a log: cut-offs as given, else chosen from the part that trains; what was chosen is noted."""
    chosen, found = filtering.choose(model, training)
    findings += found
    filter_ = filtering.for_log(training, chosen)
    notes |= {"cutoff": filter_.cutoff, "torque_cutoff": filter_.torque_cutoff}
    if chosen is not None:
        notes["cutoffs"] = str(chosen)
    return filter_


def _with_curves(model: RegressorModel, training: Dataset, shape: str) -> tuple[RegressorModel, str]:
    """(the model with friction curves, in words)."""
    found = fit_curves(model, training, shape)
    speeds = ", ".join(f"{s:.4g}{'*' * b}" for s, b in zip(found.speeds, found.at_bound.tolist()))
    undetermined = " (*: at its bound, not determined by the log)" if found.at_bound.any() else ""
    return found.model, f"{shape}, speeds {speeds} rad/s{undetermined}"


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
    wider, words = with_bias_of_noise(estimate if free is None else free, *data)
    notes |= {"noise of the motion": words} if words else {}
    return (wider, None) if free is None else (estimate, wider)
