"""Logs with anomalies: the messages about them, and that no number is accepted without a check."""

import dataclasses
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from identification.assessment_logs import AS_IT_IS, first, simulated

from geomctrl import Body, Joint, Robot, inertia, models
from geomctrl.cli import identify as identify_command
from geomctrl.cli.excite import FileOptions
from geomctrl.cli.identify_options import LogOptions, OutputOptions
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.identification import (
    DataError,
    Dataset,
    ExcitationError,
    Filtering,
    RegressorModel,
    Result,
    Validation,
    drive_gains,
    fit,
    identify,
    identify_load,
)
from geomctrl.identification.assessment import trials
from geomctrl.identification.assessment.rows import Rows
from geomctrl.identification.estimators.cutoffs import choose_cutoffs
from geomctrl.identification.excitation import MotionLimits, search
from geomctrl.identification.logs.dataset import check_robot, read_log
from geomctrl.identification.logs.parts import without_edges
from geomctrl.identification.logs.signals import motion_bandwidth
from geomctrl.models.io.writing import save_or_why, save_urdf

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


@pytest.mark.quick(1)
@pytest.mark.parametrize(("k", "torque"), [(1, 0.0), (0, 3.0)])
def test_a_joint_whose_torque_never_changes_is_not_trusted(arm, k, torque):
    """A column that was never filled: "consistent" then leaves 14 % of the torques unexplained, which alone is no
    finding.
    """
    log, model = arm
    report = identify(model.robot, with_torque(log, k, torque), model=model, filtering=CUT, validation=Validation(None))
    said = first(report.assessment, "silent")
    assert said.fatal
    assert f"'joint{k + 1}' is {torque:.4g} N m" in said.seen
    assert "nan" not in report.text()[: report.text().index("joint ")]


def test_a_joint_without_torques_or_at_rest_is_not_silent(arm):
    log, model = arm
    still = dataclasses.replace(with_torque(log, 1, 0.0), q=log.q * [1.0, 0.0])
    for data in (masked(with_torque(log, 1, 0.0), 1), still):
        assessment = identify(
            model.robot, data, model=model, filtering=CUT, method="ridge", options={"strength": 1e-6, "weights": None},
            validation=Validation(None), reading=AS_IT_IS,
        ).assessment  # fmt: skip
        assert "silent" not in [d.kind for d in assessment.findings]


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
    """A log of slow motion [Hz], with friction, and encoders of so few bits that differences of counts are noise."""
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
    assert {d.kind for d in report.findings} <= {"excitation"}  # the arm moves in a plane
    low, high = report.intervals["mass"]
    assert abs(report.mass - 0.5) < high - low < 0.1
    gains = np.array([5.0, -2.0])
    currents = [dataclasses.replace(log, tau=log.tau / gains) for log in logs]
    np.testing.assert_allclose(drive_gains(robot, *currents, load=0.5).estimates, gains, rtol=0.05)


@pytest.mark.parametrize("bits", [12, 19])
def test_velocities_in_degrees_are_seen_beside_encoders_of_any_resolution(bits):
    robot = models.two_link()
    log = coarse(robot, 0, bits, 4000.0, 0.2)
    v = np.gradient(coarse(robot, 0, 40, 4000.0, 0.2).q, log.t, axis=0)
    hole = np.arange(len(log)) % 12000 > 1600
    for keep in (np.full(len(log), True), hole):
        check_robot(dataclasses.replace(log, v=v).select(keep), robot)
        with pytest.raises(DataError, match="v in degrees a second"):
            check_robot(dataclasses.replace(log, v=np.rad2deg(v)).select(keep), robot)


def test_velocities_that_nobody_filled_in_are_not_those_of_a_joint_that_stands(arm):
    log, model = arm
    v = np.gradient(log.q, log.t, axis=0)
    for empty, kept in (([0.0, 1.0], False), ([0.0, 0.0], False), ([1.0, 1.0], True)):
        read = read_log(dataclasses.replace(log, v=v * empty), model.robot, AS_IT_IS)
        assert (read.v is not None) == kept
        assert any("those of 'joint1'" in line for line in read.history) == (not kept)
    locked = dataclasses.replace(log, q=log.q * [1.0, 1e-4], v=v * [1.0, 0.0])
    assert read_log(locked, model.robot, AS_IT_IS).v is not None


# --- rows that are dropped -----------------------------------------------------------------------------------------


def test_one_stamp_far_ahead_does_not_take_the_rest_of_the_log_with_it():
    t = np.arange(100) / 100.0
    t[30] = 1e6
    x = np.zeros((100, 2))
    with pytest.raises(
        DataError, match=r"^log: t: .* 69 of 100 earlier than one before them: 1000000 s up to sample 30,"
    ):
        Dataset.read({"t": t, "q": x, "tau": x}, drop_bad_rows=True)
    t[30], t[80] = 0.3, 1e6
    assert len(Dataset.read({"t": t, "q": x, "tau": x}, drop_bad_rows=True)) == 81
    again = np.repeat(np.arange(25) / 100.0, 4)  # each state is sent four times
    assert len(Dataset.read({"t": again, "q": x, "tau": x}, drop_bad_rows=True)) == 25


# --- messages ------------------------------------------------------------------------------------------------------


def test_degrees_are_tried_of_joints_that_turn_only():
    q = np.zeros((10, 3))
    q[-1] = [7.0, 7.0, 0.1]
    rows = Rows(*[q] * 5, np.ones((10, 3), bool))
    said = [t.clause for t in trials._degrees(rows, ("a", "b", "c"), np.array([True, False, False]))]
    assert said == ["the position of 'a' is in degrees"]
    both = next(trials._degrees(rows, ("a", "b", "c"), np.array([True, True, False])))
    assert (both.clause, np.diag(both.motion)[2]) == ("positions are in degrees", 1.0)


def test_one_joint_has_nothing_to_tell_its_scale_by():
    body = inertia.from_com(2.0, [0.3, 0.0, 0.0], 0.02 * np.eye(3))
    model = RegressorModel(Robot.build([Body("arm", None, Joint.revolute((0, 1, 0), name="joint"), None, body)]))
    t = np.arange(2000) / 100.0
    q = np.sin(1.3 * t)[:, None] + 0.4 * np.sin(3.1 * t + 1.0)[:, None]
    v, a = (np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0))
    noise = 0.01 * np.random.default_rng(0).normal(size=q.shape)
    data = without_edges(Dataset(t, q, 1.5 * model.torque(model.prior, q, v, a) + noise).filtered(5.0), 0.3)
    assessment = Result(fit(model, data, "wls"), data).assessment
    assert any("by which factor the torques may be off" in note for note in assessment.notes)


def test_a_folder_holds_the_urdf_of_its_last_robot_only(tmp_path):
    assert save_or_why(save_urdf, models.two_link(), tmp_path / "robot.urdf").name == "robot.urdf"
    assert save_or_why(save_urdf, models.satellite(), tmp_path / "robot.urdf").name == "robot.urdf.txt"
    assert [p.name for p in tmp_path.iterdir()] == ["robot.urdf.txt"]
    save_or_why(save_urdf, models.two_link(), tmp_path / "robot.urdf")
    assert [p.name for p in tmp_path.iterdir()] == ["robot.urdf"]


def test_limits_that_can_not_be_kept_name_the_joint():
    robot = models.two_link()
    for options, words in (
        ({"velocity": [2.0, 0.0]}, r"^velocity: joint 'joint2': expected a limit > 0, got 0"),
        ({"velocity": 1.0, "lower": [0.0, 1.0], "upper": 1.0}, r"^lower, upper: joint 'joint2': .* got 1 and 1$"),
    ):
        with pytest.raises(ArgumentError, match=words):
            MotionLimits(**options).of(robot)


def test_options_that_would_do_nothing_are_refused():
    for options in (LogOptions(joint_torques=True), LogOptions(zero=[0.0, 0.0], joint_positions=True)):
        with pytest.raises(ArgumentError, match="for --gears"):
            options.reading(2)
    with pytest.raises(ArgumentError, match="--export-friction: expected together with --export"):
        OutputOptions(export_friction=True).check("arm.urdf", None)
    for wrong, words in (({"name": "a b"}, "--name: expected a name in C"), ({"rate": 0.0}, "--rate: "),
                         ({"repeats": 0}, "--repeats: ")):  # fmt: skip
        with pytest.raises(ArgumentError, match=words):
            FileOptions(**wrong)


def test_geometry_that_is_wrong_is_not_passed_over_in_silence(monkeypatch):
    def wrong(path, robot):
        raise ModelError("arm.urdf: link 'a': a sphere without a radius")

    monkeypatch.setattr(identify_command, "link_boxes", wrong)
    said = []
    console = SimpleNamespace(print=lambda text, **_: said.append(text))
    assert identify_command._boxes(console, "arm.urdf", models.two_link()) == {}
    assert said == [
        "note: centres of mass are bounded by boxes around joints, not by the links' geometry: arm.urdf: link 'a': a"
        " sphere without a radius"
    ]


@pytest.mark.parametrize(("cores", "starts", "compare", "used"), [(2, 4, 200, 2), (16, 4, 200, 16), (64, 4, 20, 4)])
def test_random_motions_are_shared_by_all_cores(cores, starts, compare, used, monkeypatch):
    asked = []
    monkeypatch.setattr(search, "cores", lambda: cores)
    monkeypatch.setattr(search, "processes", lambda n: nullcontext(asked.append(n) or SimpleNamespace(map=map)))
    with search._workers(starts, compare):
        assert asked == [used]


def test_stretches_that_are_too_short_say_what_is_enough(arm):
    log, _ = arm
    with pytest.raises(
        DataError, match="an uninterrupted part of 15 samples is too short to filter: expected 16 or more"
    ):
        log.select(np.arange(len(log)) < 15).filtered(5.0)
    assert len(log.select(np.arange(len(log)) < 16).filtered(5.0)) == 16


def test_coordinates_of_xarray_are_arrays_of_a_log():
    xarray = pytest.importorskip("xarray", reason="the extra 'tables' is not installed")
    t = np.linspace(0.0, 1.0, 101)
    x = ("t", "joint"), np.sin(t)[:, None]
    log = Dataset.read(xarray.Dataset({"q": x, "tau": x}, coords={"t": t}))
    np.testing.assert_array_equal(log.t, t)


def test_unicode_spaces_belong_to_no_number_with_or_without_decimal_commas(tmp_path):
    tables = {}
    for mark in ".,":
        path = tmp_path / "log.csv"
        rows = [f"{t:.2f}\xa0;{t:.2f}\u2009;\u20071.5".replace(".", mark) for t in np.arange(40) * 0.01]
        path.write_text("\n".join(("t;q;tau", *rows)) + "\n", encoding="utf-8")
        log = Dataset.read(path)
        tables[mark] = np.column_stack((log.t, log.q, log.tau))
    np.testing.assert_array_equal(tables["."], tables[","])
    np.testing.assert_allclose(tables["."][-1], [0.39, 0.39, 1.5])
