"""Causes of a bad fit other than exchanged columns, each in a log with known parameters, and logs without any."""

import dataclasses
import re

import numpy as np
import pytest
from identification.assessment_logs import AS_IT_IS, evidence, first, simulated
from lib.mistakes import delayed, quantised, with_lost_samples

from geomctrl.errors import ArgumentError
from geomctrl.identification import Dataset, Filtering, Validation, identify
from geomctrl.identification.assessment.causes import likely_causes
from geomctrl.identification.assessment.evidence import fit_rows
from geomctrl.identification.assessment.fit_checks import SPEEDS, shape_of, steps
from geomctrl.identification.assessment.rows import rows_of
from geomctrl.identification.assessment.search import ViewTest, compared_in_views, held_out
from geomctrl.identification.assessment.trials import likely_trials, trial_fits
from geomctrl.identification.estimators.cutoffs import LogFilter
from geomctrl.identification.logs.signals import without_delay

NAME, OPTIONS = "ur10", {"seed": 7, "rate": 200.0, "noise": 0.02, "seconds": 15.0}


def reported(log, model, **filtering):
    return identify(
        model.robot, log, model=model, method="wls", filtering=Filtering(5.0, **filtering), reading=AS_IT_IS,
        validation=Validation(0.3), ignore=("bodies", "prior"),
    )  # fmt: skip


def cause(log, model, kind):
    """The text of the finding of one kind, from the likely causes alone: the whole assessment takes longer."""
    data = LogFilter.of(Filtering(5.0), log).filtered(log)
    seen = evidence(data, model)
    (said,) = [
        x.finding.seen for x in likely_causes(seen, seen.rows, fit_rows(model, seen.rows))[0] if x.finding.kind == kind
    ]
    return said


@pytest.fixture(scope="module")
def right():
    return simulated(NAME, velocities=0.01, **OPTIONS)


@pytest.fixture(scope="module")
def right_report(right):
    return reported(*right)


def test_a_right_log_has_no_cause_and_its_delay_is_printed(right_report):
    assessment = right_report.assessment
    assert not {"delay", "gravity", "drift", "samples", "resolution"} & {d.kind for d in assessment.findings}
    assert any(note.startswith("torques lag positions by ") for note in assessment.notes)


def test_a_tilt_that_is_not_doubted_is_noted():
    """Two links in a plane show a part of a tilt: too little to doubt, and nothing of the tilt across the plane."""
    conditions = {"rate": 125.0, "seconds": 15.0, "noise": 0.003, "band": 0.8, "friction": 0.15, "velocities": 0.01}
    log, model = simulated("two_link", 20_355, tilt=5.0, **conditions)
    assessment = identify(model.robot, log, model=model, method="wls").assessment
    assert "gravity" not in {finding.kind for finding in assessment.findings}
    notes = " ".join(assessment.notes)
    assert "gravity is 1" in notes
    assert "this log does not determine a tilt of the base towards (0.00, 1.00, 0.00)" in notes


@pytest.mark.quick(1)
@pytest.mark.parametrize("seconds", [0.02, -0.015])
def test_a_delay_is_measured_and_taken_back(right, right_report, seconds):
    log, model = right
    late = delayed(log, seconds)
    late_report = reported(late, model)
    said = first(late_report.assessment, "delay")
    assert not said.fatal
    assert said.seen.startswith("torques lag" if seconds > 0.0 else "torques lead")
    assert float(said.seen.split(" by ")[1].split()[0]) == pytest.approx(1e3 * abs(seconds), abs=2.0)
    corrected = reported(late, model, delay="auto").errors["test"]["relative_error"]
    plain = late_report.errors["test"]["relative_error"]
    assert corrected < 0.8 * plain
    assert corrected == pytest.approx(right_report.errors["test"]["relative_error"], rel=0.1)


def test_torques_are_taken_back_by_the_seconds_given():
    t = np.arange(400) / 100.0
    log = Dataset(t, np.sin(t)[:, None], np.cos(3.0 * (t - 0.05))[:, None], gaps=(200,))
    back = without_delay(log, 0.05)
    kept = back.used[:, 0]
    np.testing.assert_allclose(back.tau[kept, 0], np.cos(3.0 * t[kept]), atol=1e-5)
    assert (~kept).sum() == 10  # five samples at the end of each continuous part
    with pytest.raises(ArgumentError, match=r"^delay: expected seconds"):
        Filtering(delay=3.0)


def test_measured_velocities_that_lag(right):
    log, model = right
    said = first(reported(delayed(log, 0.03, "v"), model).assessment, "delay").seen
    assert said.startswith("measured velocities lag the positions: 'shoulder_pan_joint' 3")


def test_velocities_in_each_others_place_are_named(right):
    log, model = right
    v = np.asarray(log.v)[:, [0, 2, 1, 3, 4, 5]]
    said = first(reported(dataclasses.replace(log, v=v), model).assessment, "velocity").seen
    assert [name in said for name in model.robot.dof_names] == [False, True, True, False, False, False]


def test_a_joint_whose_torques_alone_are_late_is_named(right):
    log, model = right
    tau = np.array(log.tau)
    tau[:, 1] = np.interp(log.t - 0.015, log.t, tau[:, 1])
    said = cause(dataclasses.replace(log, tau=tau), model, "delay")
    assert said.startswith("the torques of 'shoulder_lift_joint' alone lag the positions by 1")


def test_a_joint_with_another_zero_is_named_with_its_angle():
    log, model = simulated("puma560", seed=3, noise=0.003)
    q = np.array(log.q)
    q[:, 1] += 0.2
    said = cause(dataclasses.replace(log, q=q), model, "zero")
    degrees = float(re.search(r"^the zero of 'joint2' is (-[\d.]+) degrees", said)[1])
    assert degrees == pytest.approx(-np.rad2deg(0.2), abs=3.0)


@pytest.mark.parametrize("degrees", [pytest.param(0.0, marks=pytest.mark.slow), 1.2])
def test_a_note_has_the_offset_of_each_zero_that_the_log_shows(degrees):
    """Smaller changes than a finding reports; a joint about the vertical axis of the base shows none."""
    log, model = simulated("puma560", seed=3, noise=0.003)
    q = np.array(log.q)
    q[:, 1] += np.deg2rad(degrees)
    assessment = reported(dataclasses.replace(log, q=q), model).assessment
    assert "zero" not in [finding.kind for finding in assessment.findings]
    notes = " ".join(assessment.notes)
    value, deviation = map(float, re.search(r"zeros, .* 'joint2' (\S+) \+- ([\d.e-]+)", notes).groups())
    assert abs(value + degrees) < 4.0 * deviation + 0.05
    assert 0.0 < deviation < 5.0
    assert re.search(r"does not determine an offset of the zero of 'joint1'", notes)


def test_lost_samples_with_even_stamps(right):
    log, model = right
    said = first(reported(with_lost_samples(log, 15, np.random.default_rng(0)), model).assessment, "samples").seen
    assert 8 <= int(said.split()[0]) <= 15
    assert "samples seem lost" in said


@pytest.mark.slow
def test_torques_in_coarse_steps_name_joints_and_accuse_no_column():
    log, model = simulated("panda", **OPTIONS)
    log = quantised(log, 1.0)
    assessment = identify(
        model.robot, log, model=model, filtering=Filtering(5.0), options={"entropic": 1e-3}
    ).assessment
    assert "'panda_joint5' in steps of 1" in first(assessment, "resolution").seen
    assert not {"sign", "swap", "scale", "coupling"} & {d.kind for d in assessment.findings}


@pytest.mark.slow
def test_a_tilted_base_is_named_with_its_angle():
    log, model = simulated(NAME, tilt=4.0, **OPTIONS)
    said = first(reported(log, model).assessment, "gravity")
    assert float(said.seen.split("gravity is ")[1].split()[0]) == pytest.approx(4.0, abs=1.5)
    assert not said.fatal


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("name", "tilt", "seed"), [("scara", 5.0, 20_032), ("scara", 5.0, 20_117), ("ur10", 2.0, 20_150)]
)
def test_a_small_tilt_is_named_where_single_joints_tell(name, tilt, seed):
    """A robot whose vertical joints do not feel gravity, and one that shows one direction only."""
    log, model = simulated(name, seed, tilt=tilt, seconds=20.0, rate=200.0, noise=0.01)
    said = first(reported(log, model).assessment, "gravity").seen
    assert float(said.split("gravity is ")[1].split()[0]) == pytest.approx(tilt, abs=0.7)


def test_a_tilt_that_a_plane_does_not_show_is_noted():
    """Two links in a vertical plane: a tilt across it has no effect, and the first joint's angle compensates one
    within it.
    """
    (note,) = [n for n in reported(*simulated("two_link", 1)).assessment.notes if "a tilt of the base" in n]
    assert "towards (0.00, 1.00, 0.00)" in note.replace("-1.00", "1.00").replace("-0.00", "0.00")


@pytest.mark.quick(1)
@pytest.mark.parametrize("seconds", [8.0, 20.0])
def test_friction_that_falls_is_a_drift_in_short_logs_too(seconds):
    log, model = simulated(NAME, warming=0.6, friction=0.3, **OPTIONS | {"seconds": seconds})
    assert "changes during the log" in cause(log, model, "drift")


@pytest.mark.slow
def test_what_no_heat_does_to_friction_is_no_drift(right):
    """Friction that falls in one joint and rises in the next, or becomes negative at the end."""
    log, model = right
    data = LogFilter.of(Filtering(5.0), log).filtered(log)
    clock = np.linspace(-1.0, 1.0, len(data))[:, None]
    steady = 0.2 * np.sqrt(np.mean(data.tau**2, axis=0)) * data.v / np.sqrt(np.mean(data.v**2, axis=0))

    def drifts(change):
        changed = dataclasses.replace(data, tau=data.tau + steady * (1.0 + clock * np.array(change)))
        seen = evidence(changed, model)
        return any(x.finding.kind == "drift" for x in likely_causes(seen, seen.rows, fit_rows(model, seen.rows))[0])

    assert drifts([-0.5, -0.5, -0.5, 0, 0, 0])
    assert drifts([0.5, 0.5, 0.5, 0, 0, 0])
    assert not drifts([-0.5, 0.5, -0.5, 0, 0, 0])
    assert not drifts([-4.0, -4.0, -4.0, 0, 0, 0])


def test_torques_that_are_taken_off_are_no_measure_of_errors(right):
    """A real drift improves the fit in all views, however small the torques are without it."""
    log, model = right
    data = LogFilter.of(Filtering(5.0), log).filtered(log)
    seen = evidence(data, model)
    late, more = seen.rows, 9.0 * seen.rows.torques(model)
    loud = dataclasses.replace(late, tau=late.tau + more)
    kept = held_out(model, late, fit_rows(model, late).weights, 4, loud)
    np.testing.assert_allclose(kept, held_out(model, late, fit_rows(model, late).weights, 4) - np.log(10.0), rtol=1e-6)


@pytest.mark.slow
def test_friction_that_falls_is_a_drift():
    log, model = simulated(NAME, warming=0.6, friction=0.3, **OPTIONS | {"seconds": 20.0})
    assessment = reported(log, model).assessment
    assert "changes during the log" in first(assessment, "drift").seen
    assert not {"sign", "swap", "scale", "coupling"} & {d.kind for d in assessment.findings}


@pytest.mark.slow
def test_residuals_that_are_no_noise_are_noted_with_what_they_go_with(right):
    def noted(log, model):
        return [note for note in reported(log, model).assessment.notes if "are not noise" in note]

    assert noted(*right) == []
    (note,) = noted(*simulated("panda", seed=3, rate=200.0, stribeck=1.0, friction=0.2))
    assert "'panda_joint2'" in note
    assert "of their power goes with its speed" in note


def test_the_share_of_a_residual_that_a_signal_explains():
    """By columns with the same low-pass as the residual; nothing is found by chance."""
    rng, t = np.random.default_rng(0), np.arange(8000) / 200.0
    v = np.sin(1.3 * t) + np.sin(0.7 * t)
    data = Dataset(t, -np.cos(1.3 * t)[:, None], v[:, None], v=v[:, None], a=v[:, None])
    rows = rows_of(data, np.arange(len(t)), 5.0)
    shape, noise = (rows.motion.passed(x[:, None]) for x in (np.sign(v) * (np.abs(v) < 0.15), rng.normal(size=len(t))))
    shape, noise = (rows.motion.at(rows.t, x)[1][0][:, 0] for x in (shape, noise))
    noise *= np.linalg.norm(shape) / np.linalg.norm(noise)
    used, columns = np.ones(len(rows.t), bool), steps(v, SPEEDS)
    assert shape_of(rows, columns, shape, used) > 0.8
    assert shape_of(rows, columns, noise, used) < 0.1
    assert shape_of(rows, columns, shape + noise, used) == pytest.approx(0.45, abs=0.15)


# --- other views of the log --------------------------------------------------------------------------------------


def test_a_mistake_holds_in_all_views_and_a_neighbour_does_not(right):
    log, model = right
    data = LogFilter.of(Filtering(5.0), log).filtered(log)
    broken = dataclasses.replace(data, tau=data.tau * np.where(np.arange(data.nv) == 2, -1.0, 1.0))
    seen = evidence(broken, model)
    fit = fit_rows(model, seen.rows)
    attempts = trial_fits(model, seen.rows, fit, seen.names)
    best = likely_trials(seen, seen.rows, fit, attempts)[0]
    assert "torque of 'elbow_joint' has the other sign" in best.clause
    assert compared_in_views(seen, [], fit, best).certain
    worse = dataclasses.replace(best, change=lambda rows: rows.with_torques(np.diag([1.0, -1, -1, 1, 1, 1])))
    assert not compared_in_views(seen, [], fit, worse).likely


def test_what_hangs_on_one_view_is_not_certain():
    assert ViewTest(np.array([0.5, 0.4, 0.6])).certain
    assert not ViewTest(np.array([0.5, 0.4, -0.1])).certain
    assert not ViewTest(np.array([0.05, 0.06, 0.05])).certain  # the improvement is too small
    assert not ViewTest(np.array([5.0, 0.1, 0.1, 0.1])).certain  # less than the spread
    assert not ViewTest(np.array([0.5, -0.4, -0.1])).likely
    assert ViewTest(np.array([0.5, 0.4, 0.6, -0.1])).clear  # in all views but one
    assert not ViewTest(np.array([5.0, 0.1, 0.1, 0.1])).clear


def test_delayed_rows_have_the_motion_of_before():
    t = np.arange(500) / 100.0
    q, v, a = np.sin(t), np.cos(t), -np.sin(t)
    data = Dataset(t, q[:, None], q[:, None], v=v[:, None], a=a[:, None])
    rows = rows_of(data, np.arange(len(t)), None).delayed(0.034)
    inside = rows.used[:, 0]
    np.testing.assert_allclose(rows.q[inside, 0], np.sin(rows.t[inside] - 0.034), atol=1e-7)
    assert (~inside).sum() == 4
