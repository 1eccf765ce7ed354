"""Verdicts of logs, simulated or recorded, and of the same logs broken on purpose (`lib.mistakes`)."""

import sys
from pathlib import Path

import numpy as np

from geomctrl.identification import Filtering, Reading, Result, Validation, fit, identify
from geomctrl.identification.assessment import Evidence
from geomctrl.identification.estimators.cutoffs import LogFilter

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))  # `lib` if this is not run by pytest
from lib.mistakes import coupled, scaled, simulated, swapped

__all__ = [
    "AS_IT_IS",
    "accused",
    "assess",
    "coupled",
    "evidence",
    "filtered",
    "first",
    "judge",
    "scaled",
    "simulated",
    "swapped",
]

AS_IT_IS = Reading(check_units=False)


def filtered(log, robot, filtering=None):
    """The data for estimators: mistakes can be applied after linear filters, which costs less."""
    filter_ = LogFilter.of(filtering or Filtering(5.0), log)
    return filter_.moving(filter_.filtered(filter_.cleaned(log, robot)))


def judge(data, model):
    """The assessment of filtered data by least squares, without the rest of `identify`."""
    return Result(fit(model, data, "ols"), data).assessment


def evidence(data, model):
    """The data of the checks for the same log."""
    report = Result(fit(model, data, "ols"), data)
    correlation = np.array([white["correlation"] for white in report.whiteness])
    return Evidence(report.estimate, data, report.errors, correlation, report.reference, {})


def assess(log, model, method="ols", filtering=None, validation=None, **options):
    """The assessment, with units taken as they are."""
    return identify(
        model.robot, log, model=model, method=method, options=options, filtering=filtering or Filtering(5.0),
        reading=AS_IT_IS, validation=validation or Validation(None),
    ).assessment  # fmt: skip


def first(assessment, kind):
    """Return the message of the first finding of a kind; the test fails if there is none."""
    result = [finding for finding in assessment.findings if finding.kind == kind]
    assert result, assessment.text()
    return result[0]


MISTAKES = ("sign", "swap", "scale", "coupling")


def accused(assessment):
    """The mistakes that an assessment names, and all other fatal findings."""
    return [str(finding) for finding in assessment.findings if finding.fatal or finding.kind in MISTAKES]
