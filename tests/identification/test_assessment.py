"""The text of an assessment, and the checks of the fit (those of the log's columns are elsewhere)."""

import dataclasses
import json

import numpy as np
import pytest
from identification.assessment_logs import AS_IT_IS, first, simulated

from geomctrl import inertia, models
from geomctrl.errors import ArgumentError
from geomctrl.identification import Dataset, Filtering, RegressorModel, Result, Validation, fit, identify
from geomctrl.identification.findings import Assessment, Finding

SMALL = Finding("bodies", "a body of 43 kg", "Bound masses")
FATAL = Finding("sign", "'joint2' turns the other way", "Turn it", True)


def test_status_and_exit_status():
    assert [(v.status, v.exit_status) for v in (Assessment.of(x) for x in ([], [SMALL], [SMALL, FATAL]))] == [
        ("trust", 0), ("doubts", 3), ("distrust", 1)]  # fmt: skip


def test_what_is_ignored_does_not_count_but_is_written():
    results = [SMALL, FATAL]
    part, nothing = Assessment.of(results, ["sign"]), Assessment.of(results, ["all"])
    assert (part.status, part.findings, part.ignored) == ("doubts", (SMALL,), (FATAL,))
    assert (nothing.status, nothing.findings, nothing.ignored) == ("trust", (), (FATAL, SMALL))
    assert "ignored, sign: 'joint2' turns the other way" in part.text()
    assert str(nothing) == "TRUST: nothing was found that speaks against it (ignored: sign, bodies)"
    assert Assessment.of([SMALL, SMALL]).findings == (SMALL,)


def test_fatal_doubts_come_first_with_what_to_do():
    lines = Assessment.of([SMALL, FATAL]).text().splitlines()
    assert lines[0] == "assessment: NOT TO BE TRUSTED"
    assert lines[1:3] == ["  FATAL, sign: 'joint2' turns the other way", "      -> Turn it"]
    assert json.loads(json.dumps(Assessment.of([FATAL], ["sign"]).tables())) == {
        "status": "trust",
        "exit_status": 0,
        "doubts": [
            {"kind": "sign", "fatal": True, "seen": FATAL.seen, "advice": "Turn it", "ignored": True},
        ],
        "notes": [],
    }


@pytest.mark.parametrize("ignore", ["sign", ["sings"], 3, None])
def test_kinds_that_there_are_not(ignore):
    with pytest.raises(ArgumentError, match=r"^ignore: expected "):
        Assessment.of([], ignore)
    log, model = simulated("two_link", seconds=4.0)
    with pytest.raises(ArgumentError, match=r"^ignore: expected "):
        identify(model.robot, log, ignore=ignore)


# --- reports -----------------------------------------------------------------------------------------------------


def reported(log, model, method="consistent", **options):
    options = {"weights": "noise"} if method == "consistent" and not options else options
    return identify(
        model.robot, log, model=model, method=method, options=options, filtering=Filtering(5.0), reading=AS_IT_IS,
        validation=Validation(None),
    )  # fmt: skip


@pytest.fixture(scope="module")
def arm():
    return simulated("two_link")


@pytest.fixture(scope="module")
def report(arm):
    return reported(*arm)


def test_reports_begin_with_the_verdict(report, tmp_path):
    assert report.assessment.status == "trust"
    assert report.text().startswith("assessment: TRUST")
    report.save(tmp_path, plots=False)
    assert json.loads((tmp_path / "report.json").read_text())["assessment"]["exit_status"] == 0
    doubted = dataclasses.replace(report, findings=(FATAL,))
    assert doubted.assessment.exit_status == 1
    assert dataclasses.replace(doubted, ignore=("sign",)).assessment.exit_status == 0


def test_an_ols_report_has_no_free_fit_beside_it(arm):
    log, model = arm
    report = reported(log, model, "ols")
    assert report.unconstrained is None
    assert {d.kind for d in report.assessment.findings} <= {"bodies", "prior"}


def test_load_in_the_test_data_is_seen(arm, report):
    model = arm[1]
    heavier = model.prior
    heavier[10:20] *= 3.0
    x, data = report.estimate.x, report.training
    more = model.torque(heavier, data.q, data.v, data.a) - model.torque(model.prior, data.q, data.v, data.a)
    other = Result(report.estimate, data, dataclasses.replace(data, tau=data.tau + more))
    said = first(other.assessment, "unseen")
    assert said.fatal
    assert "the training data to " in said.seen
    assert x is other.estimate.x


def test_torques_that_nothing_explains(arm):
    log, model = arm
    rng, t = np.random.default_rng(0), log.t
    f, phase = rng.uniform(0.1, 1.0, (2, 20)), rng.uniform(0, 6.28, (2, 20))
    other = np.sin(2 * np.pi * f * t[:, None, None] + phase).sum(-1)
    tau = log.tau + 0.3 * other * np.sqrt(np.mean(log.tau**2, 0))
    said = first(reported(dataclasses.replace(log, tau=tau), model, "wls").assessment, "unexplained")
    assert said.fatal
    assert "% of the torques are left unexplained over all joints" in said.seen


def test_friction_that_falls_while_the_robot_warms_is_a_drift_of_that_joint(arm):
    log, model = arm
    v = np.gradient(log.q, log.t, axis=0)
    tau = log.tau.copy()
    tau[:, 1] += (0.5 - log.t / log.t[-1]) * 0.3 * np.sqrt(np.mean(log.tau[:, 1] ** 2)) * np.tanh(v[:, 1] / 0.1)
    said = first(reported(dataclasses.replace(log, tau=tau), model, "wls").assessment, "drift").seen
    assert "friction or offset changes during the log (20 s): 'joint2' " in said
    assert "'joint1'" not in said


def test_an_optimiser_that_stopped_is_said(report):
    notes = {**report.estimate.notes, "converged": False, "status": "user_limit"}
    stopped = dataclasses.replace(report, estimate=dataclasses.replace(report.estimate, notes=notes))
    assert "the optimiser of consistent did not converge (user_limit)" in first(stopped.assessment, "convergence").seen
    assert "convergence" not in [d.kind for d in report.assessment.findings]


def test_joints_that_hardly_moved_and_logs_that_tell_little():
    log, model = simulated("two_link", seconds=4.0, noise=0.3, band=0.3)
    still = dataclasses.replace(log, q=np.stack((log.q[:, 0], 0.01 * log.q[:, 1]), -1))
    said = [d.seen for d in reported(still, model, "wls").assessment.findings if d.kind == "excitation"]
    assert said[0].startswith("hardly moved: 'joint2' moved 0.0")
    poor = first(reported(log, model, "wls").assessment, "excitation").seen
    assert poor.startswith(
        "torques of other motions of this range and speed are uncertain (standard deviation): 'joint1'"
    )
    assert "inertial base parameters are not determined" in poor
    assert " +- " in poor


@pytest.mark.slow
def test_small_joints_that_equal_weights_forget():
    """A wrist with a thousandth of the shoulder's torques: its error is 200 % where least squares leave 1 %."""
    log, model = simulated("ur10", seed=2, noise=0.01)
    seen = first(reported(log, model, "consistent", regularization=1e-6, weights=None).assessment, "prior").seen
    assert "'wrist_3_joint'" in seen
    assert "prior" not in [d.kind for d in reported(log, model, "wls").assessment.findings]


def body(mass, com, moments):
    return inertia.from_com(mass, np.array(com), np.diag(moments))


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("pi", "message"),
    [
        (
            body(1.0, [0.1, 0.0, 0.0], [0.01, 0.01, 0.02 - 1e-6]),
            "nearly degenerate bodies, thinner than a sheet: 'link2'",
        ),
        (
            body(1.0, [0.1, 0.0, 0.0], [1e-5, 0.02, 0.02]),
            "nearly degenerate bodies, as thin as a rod or as small as a point: 'link2'",
        ),
        (
            body(43.0, [0.1, 0.0, 0.0], [1.0, 1.0, 1.0]),
            "heavier than the sum of the model's bodies (2 kg): 'link2' 43",
        ),
        (body(1.0, [0.1, 3.0, 0.0], [0.1, 0.1, 0.1]), "centre of mass outside the link"),
        (body(1.0, [0.1, 0.0, 0.0], [0.01, 0.01, 0.03]), "no body can have the parameters of 'link2' (triangle"),
    ],
)
def test_bodies_that_nobody_builds(report, pi, message):
    x = report.estimate.x.copy()
    x[:10], x[10:20] = body(1.0, [0.5, 0.0, 0.0], [0.1, 0.1, 0.1]), pi
    assert report.robot.parameters[:, 0].sum() != 2.0
    odd = dataclasses.replace(report, estimate=dataclasses.replace(report.estimate, x=x))
    total = models.two_link().parameters[:, 0].sum()
    message = message.replace("(2 kg)", f"({total:.4g} kg)")
    seen = [d.seen for d in odd.assessment.findings if d.kind == "bodies"]
    assert len(seen) == 1
    assert seen[0].startswith(message)
    good = x.copy()
    good[10:20] = body(1.0, [0.1, 0.0, 0.0], [0.01, 0.01, 0.015])
    sound = dataclasses.replace(report, estimate=dataclasses.replace(report.estimate, x=good))
    assert "bodies" not in [d.kind for d in sound.assessment.findings]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cart_pole", "satellite", "quadruped"])
def test_a_robot_with_any_joints_has_a_verdict(name):
    """Free bases, sliding joints, several degrees of freedom: measured velocities and accelerations, no filter."""
    robot = models.load(name)
    model = RegressorModel(robot, smoothing=0.02)
    rng = np.random.default_rng(0)
    n = 150
    q = np.array([robot.random_configuration(rng) for _ in range(n)])
    v, a = rng.normal(size=(2, n, robot.nv))
    x = model.prior
    x[model.positive] = np.maximum(x[model.positive], 0.2)
    data = Dataset(np.arange(n) / 100.0, q, model.torque(x, q, v, a) + 1e-3 * rng.normal(size=(n, robot.nv)), v=v, a=a)
    assessment = Result(fit(model, data, "ridge", strength=1e-9), data).assessment
    assert not [d for d in assessment.findings if d.fatal or d.kind in ("sign", "swap", "scale", "coupling")], (
        assessment.text()
    )
