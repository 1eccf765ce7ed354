"""Logs that something is odd about: what is said of them, and that no number is taken for granted."""

import dataclasses

import numpy as np
import pytest
from identification.verdict_logs import AS_IT_IS, first, simulated

from geomctrl.errors import ArgumentError
from geomctrl.identification import (
    DataError,
    ExcitationError,
    Filtering,
    Validation,
    choose_cutoffs,
    identify,
)

CUT = Filtering(5.0)  # Hz


@pytest.fixture(scope="module")
def arm():
    return simulated("two_link")


def with_torque(log, k, torque):
    tau = np.array(log.tau)
    tau[:, k] = torque
    return dataclasses.replace(log, tau=tau)


def masked(log, *joints):
    mask = np.ones(log.tau.shape, bool)
    mask[:, joints] = False
    return dataclasses.replace(log, mask=mask)


# --- torques that are none -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "torque"), [(1, 0.0), (0, 3.0)])
def test_a_joint_whose_torque_never_changes_is_not_trusted(arm, k, torque):
    """As a column that was never filled in: "consistent" then leaves 14 % of the torques, which alone is no doubt."""
    log, model = arm
    report = identify(model.robot, with_torque(log, k, torque), model=model, filtering=CUT, validation=Validation(None))
    said = first(report.verdict, "silent")
    assert said.fatal
    assert f"'joint{k + 1}' is {torque:.4g} N m" in said.seen
    assert "nan" not in report.text()[: report.text().index("joint ")]


def test_a_joint_without_torques_or_at_rest_is_not_silent(arm):
    log, model = arm
    still = dataclasses.replace(with_torque(log, 1, 0.0), q=log.q * [1.0, 0.0])
    for data in (masked(with_torque(log, 1, 0.0), 1), still):
        verdict = identify(
            model.robot, data, model=model, filtering=CUT, method="ridge", options={"strength": 1e-6, "weights": None},
            validation=Validation(None), reading=AS_IT_IS,
        ).verdict  # fmt: skip
        assert "silent" not in [d.kind for d in verdict.doubts]


def test_cutoffs_are_not_chosen_from_no_torques(arm):
    log, model = arm
    with pytest.raises(DataError, match="no usable torque sample is left"):
        choose_cutoffs(model, masked(log, 0, 1))
    with pytest.raises(DataError, match="tau: every usable torque is zero"):
        choose_cutoffs(model, dataclasses.replace(log, tau=0.0 * log.tau))


def test_a_robot_that_stands_is_refused_with_the_reason(arm):
    log, model = arm
    with pytest.raises(ExcitationError, match="no joint moves"):
        identify(model.robot, dataclasses.replace(log, q=0.0 * log.q + 0.3), model=model, reading=AS_IT_IS)


# --- periods -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("validation", [None, "log"])
def test_a_wrong_period_is_refused_where_no_part_of_the_log_is_set_aside_too(arm, validation):
    log, model = arm
    test = log if validation == "log" else None
    with pytest.raises(ArgumentError, match=r"^period: .* differ by"):
        identify(model.robot, log, model=model, filtering=CUT, validation=Validation(test, period=3.1))
