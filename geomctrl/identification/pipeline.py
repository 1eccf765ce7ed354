"""`identify`: identify a robot from a log in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from geomctrl.arguments import choice, function, instance
from geomctrl.control.progress import with_progress_bar
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot

from .assessment.causes import estimated_delay
from .assessment.similarity import compare
from .errors import ExcitationError
from .estimators import Estimate, fit, named
from .estimators.choosing import with_chosen_prior
from .estimators.cutoffs import LogFilter, chosen_cutoffs, with_bias_of_noise
from .estimators.least_squares import linear
from .estimators.model_choice import with_best_curves, with_best_rotors, with_smoothing
from .findings import Finding
from .logs import Dataset
from .logs.dataset import read_log, require_units
from .logs.parts import detected_period, require_repeating
from .logs.signals import without_delay
from .model.friction_curves import fit_curves
from .model.regressor_model import RegressorModel
from .report import Result
from .report.provenance import provenance
from .settings import AUTO, Settings

Progress = Callable[[str, float], None]


@named_arguments()
@with_progress_bar
def identify(
    robot: Robot,
    log: Dataset | str | Path,
    settings: Settings | None = None,
    *,
    model: RegressorModel | None = None,
    progress: Progress | bool | None = None,
    **changes: Any,
) -> Result:
    """Identify a robot from a log: read, check, split, filter, fit and report.

    The command `geomctrl identify` calls this function.

    Parameters
    ----------
    robot : Robot
        Its geometry is assumed to be correct; its inertial parameters are the prior.
    log : Dataset, str or Path
        The log. See `Dataset.read` for file formats.
    settings : Settings, optional
        How the log is read, filtered, split and fitted. Default: `Settings()`.
    model : RegressorModel, optional
        Contributions to the torques. Default: inertia, viscous and Coulomb friction, offsets.
    progress : callable or bool, optional
        `progress(stage, fraction)` is called during the computation; True shows a progress bar.
    **changes
        Fields of `Settings` that replace those of `settings`.

    Returns
    -------
    Result

    Raises
    ------
    DataError
        If the log can not be used.
    ExcitationError
        If the motion does not determine the parameters.
    SolverError
        If the optimisation has no solution.
    ArgumentError
        If an argument is invalid.

    Notes
    -----
    Gaps in the log (sampling intervals of more than five times the median) are not filtered or interpolated across.

    Examples
    --------
    result = identify(robot, "log.csv", method="wls", filtering=Filtering(cutoff=8.0, standstill=0.01))
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    instance("log", log, (Dataset, str, os.PathLike), "a Dataset or the path of a log")
    instance("model", model, (RegressorModel, NoneType), "a RegressorModel or None")
    instance("settings", settings, (Settings, NoneType), "Settings or None")
    settings = replace(settings or Settings(), **changes)
    say = (lambda stage, fraction: None) if progress is None else function("progress", progress, "(what, fraction)", 2)
    if model is not None and model.robot is not robot:
        raise ArgumentError("model: expected one of this robot, got one of another robot")
    require_units(robot, settings.reading)
    for body in settings.boxes or ():
        choice("boxes: a body", body, robot.body_names)
    return _Identification(robot, settings, model, say).result(log)


class _Identification:
    """One call of `identify`: its settings, notes and findings."""

    def __init__(self, robot: Robot, settings: Settings, model: RegressorModel | None, say: Progress):
        self.robot, self.settings, self.given_model, self.say = robot, settings, model, say
        self.estimator = named(settings.method)
        self.notes: dict[str, Any] = {}
        self.findings: list[Finding] = []

    def result(self, log: Dataset | str | Path) -> Result:
        settings, say = self.settings, self.say
        say("reading", 0.0)
        raw = read_log(log, self.robot, settings.reading, settings.filtering.resample)
        if not np.ptp(raw.q, axis=0).any():
            raise ExcitationError(f"{raw.label}: q: no joint moves: every sample has the same positions")
        model = self.given_model or RegressorModel(self.robot)
        period = self._period(raw)
        parts = self._parts(raw, period)
        say("choosing cut-offs", 0.02)
        parts = self._without_delay(model, parts)
        filter_ = self._filter(model, parts[0])
        parts = [filter_.cleaned(part, self.robot) for part in parts]
        say("filtering", 0.1)
        every_row, *test = (filter_.filtered(part) for part in parts)
        training = filter_.moving(every_row)
        if test:
            likeness = compare(training, test[0])
            self.notes["unseen"] = str(likeness)
            self.findings += likeness.findings()
        model = self._chosen(model, training, every_row)
        requested = dict(settings.options or {})
        options = with_chosen_prior(self.estimator, model, training, requested, period, self.notes, self.findings, say)
        estimate, free = self._estimates(model, training, options)
        say("noise of the motion", 0.9)
        wider, note = with_bias_of_noise(estimate if free is None else free, parts[0], training, filter_)
        self.notes |= {"noise of the motion": note} if note else {}
        estimate, free = (wider, None) if free is None else (estimate, wider)
        say("done", 1.0)
        return Result(
            estimate, training, test[0] if test else None, raw, free, self.notes, tuple(self.findings),
            tuple(settings.ignore), boxes={name: np.asarray(x) for name, x in (settings.boxes or {}).items()},
            provenance=provenance(self.robot, log, settings, self.given_model),
        )  # fmt: skip

    def _period(self, data: Dataset) -> float | None:
        """The given or detected period by which the log is split. Raises ArgumentError if the log has another one."""
        validation = self.settings.validation
        if validation.period is not None:
            require_repeating(data, validation.period)
            return validation.period
        return detected_period(data) if isinstance(validation.test, (int, float)) else None

    def _parts(self, data: Dataset, period: float | None) -> list[Dataset]:
        """[training], or [training, test], without a gap because filter edges are masked on both sides."""
        test, reading, notes = self.settings.validation.test, self.settings.validation.reading, self.notes
        if test is None:
            return [data]
        if not isinstance(test, (int, float)):
            settings = self.settings
            other = read_log(test, self.robot, reading or settings.reading, settings.filtering.resample, "test")
            notes["split"] = f"tested on {other.label!r}"
            return [data, other]
        notes["split"] = (
            f"the first {100 * (1 - test):.0f} % of the samples train, the rest is unseen"
            if period is None
            else f"by phase of a period of {period:.5g} s: from {1 - test:.2f} on unseen in every period"
        )
        return list(data.split(1.0 - test, period))

    def _without_delay(self, model: RegressorModel, parts: list[Dataset]) -> list[Dataset]:
        """Shift torques by the given delay, or by the delay that the training part shows."""
        filtering = self.settings.filtering
        if not filtering.delay:
            return parts
        seconds = estimated_delay(filtering, model, parts[0]) if filtering.delay == AUTO else float(filtering.delay)
        return [without_delay(part, seconds) for part in parts]

    def _filter(self, model: RegressorModel, training: Dataset) -> LogFilter:
        """The filter for a log: cut-offs as given, otherwise chosen from the training part."""
        chosen, findings = chosen_cutoffs(self.settings.filtering, model, training)
        self.findings += findings
        filter_ = LogFilter.of(self.settings.filtering, training, chosen)
        self.notes |= {"cutoff": filter_.cutoff, "torque_cutoff": filter_.torque_cutoff}
        if chosen is not None:
            self.notes["cutoffs"] = str(chosen)
        return filter_

    def _chosen(self, model: RegressorModel, training: Dataset, every_row: Dataset) -> RegressorModel:
        """The model with the friction smoothing, rotors and friction curves that cross-validation selects."""
        own, settings, by_default = model.smoothing, self.settings, self.given_model is None
        smoothing, rotors = (
            by_default if wanted is None else wanted for wanted in (settings.choose_smoothing, settings.choose_rotors)
        )
        if smoothing:
            self.say("friction near standstill", 0.15)
            model, reason = with_smoothing(model, training, every_row)
            self.notes |= {"smoothing": reason} if reason else {}
        if rotors and not len(model.by_kind["rotor"]):
            self.say("rotor inertias", 0.18)
            model, self.notes["rotor inertias"] = with_best_rotors(model, training, every_row)
        curves = AUTO if by_default and settings.friction_curves is None else settings.friction_curves
        if curves is None:
            return model
        self.say("friction curves", 0.2)
        if curves == AUTO:
            model, self.notes["friction curves"] = with_best_curves(model, own, training, every_row)
            return model
        fitted = fit_curves(model, training, curves)
        speeds = ", ".join(f"{s:.4g}{'*' * b}" for s, b in zip(fitted.speeds, fitted.at_bound.tolist()))
        undetermined = " (*: at its bound, not determined by the log)" if fitted.at_bound.any() else ""
        self.notes["friction curves"] = f"{curves}, speeds {speeds} rad/s{undetermined}"
        return fitted.model

    def _estimates(
        self, model: RegressorModel, training: Dataset, options: Mapping[str, Any]
    ) -> tuple[Estimate, Estimate | None]:
        """(the estimate, least squares without prior and constraints for comparison)."""
        factors = model.compress(training, progress=lambda x: self.say("stacking", 0.3 + 0.5 * x))
        self.say("estimating", 0.8)
        data = training if self.estimator.needs_samples else factors
        estimate = fit(model, data, self.estimator.name, **options)
        if not self.estimator.has_prior:
            return estimate, None
        try:
            return estimate, linear(model, training, np.ones(model.robot.nv), "ols", factors)
        except ExcitationError as error:
            self.notes["excitation"] = str(error)
            return estimate, None
