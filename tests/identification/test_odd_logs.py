"""Logs that something is odd about: what is said of them, and that no number is taken for granted."""

import dataclasses

import numpy as np
import pytest
from identification.verdict_logs import AS_IT_IS, first, simulated

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.identification import (
    DataError,
    Dataset,
    ExcitationError,
    Filtering,
    Validation,
    choose_cutoffs,
    drive_gains,
    identify,
    identify_load,
)
from geomctrl.identification.settings import motion_bandwidth

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


# --- coarse encoders, sampled fast ---------------------------------------------------------------------------------


def coarse(robot, seed, bits, rate, highest, seconds=10.0):
    """A log of slow motion [Hz], friction, and encoders of so few bits that differences of counts are noise."""
    rng, n = np.random.default_rng(seed), robot.nv
    t = np.arange(int(seconds * rate)) / rate
    w, phase = 2.0 * np.pi * rng.uniform(0.2 * highest, highest, (4, n)), rng.uniform(0.0, 6.28, (4, n))
    x = t[:, None, None] * w + phase
    q, v, a = 0.3 * np.sin(x).sum(1), 0.3 * (w * np.cos(x)).sum(1), -0.3 * (w**2 * np.sin(x)).sum(1)
    tau = robot.inverse_dynamics(q, v, a) + 0.5 * v + 0.4 * np.tanh(v / 0.01) + 0.1 * rng.normal(size=q.shape)
    step = 2.0 * np.pi / 2**bits
    return Dataset(t, np.round(q / step) * step, tau)


@pytest.mark.parametrize(("bits", "rate", "highest"), [(12, 1000.0, 0.5), (13, 4000.0, 0.1), (12, 125.0, 2.0)])
def test_the_motions_bandwidth_is_not_that_of_its_encoders(bits, rate, highest):
    for seed in range(3):
        log = coarse(models.two_link(), seed, bits, rate, highest)
        assert 2.0 * highest < motion_bandwidth(log) < max(10.0 * highest, 15.1)


def test_a_load_is_found_without_a_cutoff_that_is_given():
    robot = models.two_link()
    loaded = robot.with_payload(0.5, (0.4, 0.1, 0.0), 0.01 * np.eye(3), robot.body_names[-1])
    logs = [coarse(r, seed, 11, 500.0, 0.4) for seed, r in enumerate((loaded, robot))]
    report = identify_load(robot, *logs)
    assert {d.kind for d in report.doubts} <= {"excitation"}  # the arm is planar
    low, high = report.intervals["mass"]
    assert abs(report.mass - 0.5) < high - low < 0.1
    gains = np.array([5.0, -2.0])
    currents = [dataclasses.replace(log, tau=log.tau / gains) for log in logs]
    np.testing.assert_allclose(drive_gains(robot, *currents, mass=0.5).estimates, gains, rtol=0.05)
