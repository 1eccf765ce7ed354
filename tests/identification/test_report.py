"""identify() from file to report, and files from which robots are restored."""

import json
from dataclasses import replace

import numpy as np
import pytest
from lib.logs import between

from geomctrl import Body, Joint, Robot, inertia, models
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.identification import (
    DataError,
    Dataset,
    Filtering,
    Reading,
    RegressorModel,
    Result,
    Validation,
    fit,
    identify,
)
from geomctrl.identification.logs.signals import motion_bandwidth
from geomctrl.models import load_extra
from geomctrl.models.io.model_file import load_model, save_model
from geomctrl.models.io.writing import save_urdf

RATE = 200.0


def write_log(path, seconds=20.0, noise=0.05):
    """A two-link arm's log as CSV, with positions and torques only; and (model, true parameters)."""
    model = RegressorModel(models.two_link(), smoothing=0.02)
    x = model.prior
    x[model.by_kind["viscous"]], x[model.by_kind["coulomb"]], x[model.by_kind["offset"]] = (
        [0.4, 0.3],
        [0.5, 0.2],
        [0.1, 0.0],
    )
    t = np.arange(int(seconds * RATE)) / RATE
    w, phase = np.array([[0.23, 0.31], [0.77, 0.59], [1.1, 1.4]]) * 2 * np.pi, np.array([[0, 1], [2, 3], [4, 5.0]])
    A = np.array([[0.8, 0.7], [0.4, 0.5], [0.2, 0.2]])
    angle = t[:, None, None] * w + phase
    q, v, a = (A * np.sin(angle)).sum(1), (A * w * np.cos(angle)).sum(1), -(A * w**2 * np.sin(angle)).sum(1)
    rng = np.random.default_rng(0)
    tau = model.torque(x, q, v, a) + noise * rng.normal(size=q.shape)
    table = np.column_stack((t, q, tau))
    np.savetxt(path, table, delimiter=",", header="t,q1,q2,tau1,tau2", comments="", fmt="%.17g")
    return model, x


@pytest.mark.quick(1)
@pytest.mark.parametrize("method", ["ols", "consistent"])
def test_identify_from_a_file_to_a_saved_report(tmp_path, method):
    model, x = write_log(tmp_path / "log.csv")
    seen = []
    report = identify(
        model.robot,
        tmp_path / "log.csv",
        filtering=Filtering(15.0),
        method=method,
        model=model,
        progress=lambda what, done: seen.append(done),
    )
    errors = report.errors
    assert set(errors) == {"training", "test"}
    assert errors["test"]["relative_error"] < 0.02
    # directly from the definitions
    e = report.estimate
    _, tau, predicted, used = e.model._predict(e.x, report.test)
    assert 0 < (~used).any(axis=1).sum() < 0.2 * len(used)  # rows where filters have not settled
    tau, predicted = tau[used.all(axis=1)], predicted[used.all(axis=1)]
    np.testing.assert_allclose(errors["test"]["rms"], np.sqrt(np.mean((tau - predicted) ** 2, axis=0)), rtol=1e-9)
    assert errors["test"]["relative_error"] == pytest.approx(
        np.linalg.norm(tau - predicted) / np.linalg.norm(tau), rel=1e-9
    )
    # white noise of 0.05 N m after the low-pass
    np.testing.assert_allclose(report.noise_floor, 0.05 * np.sqrt(15.0 / 100.0), rtol=0.4)
    np.testing.assert_allclose(errors["test"]["rms"], report.noise_floor, rtol=0.3)
    assert seen[-1] == 1.0
    assert seen == sorted(seen)
    paths = report.save(tmp_path / "out")
    assert {p.name for p in paths} >= {
        "report.txt",
        "report.json",
        "parameters.csv",
        "robot.json",
        "robot.urdf",
        "robot.xml",
        "torques.png",
        "residuals.png",
        "parameters.png",
    }
    assert all(p.stat().st_size > 100 for p in paths)
    text = (tmp_path / "out" / "report.txt").read_text()
    for word in (
        "|tau - tau_hat| / |tau|, 2-norms over samples",
        "condition",
        "amplitude 1/2 at 15 Hz",
        "unseen",
        "physical consistency",
    ):
        assert word in text
    numbers = json.loads((tmp_path / "out" / "report.json").read_text())
    assert numbers["errors"]["test"]["relative_error"] == errors["test"]["relative_error"]
    assert "std" in numbers["base_parameters"][0]
    assert ("least_squares" in numbers["base_parameters"][0]) == (method != "ols")
    back = load_model(tmp_path / "out" / "robot.json")
    np.testing.assert_array_equal(back.parameters, report.robot.parameters)
    np.testing.assert_array_equal(back.damping, report.robot.damping)
    if method == "ols":
        true = model.base.projection @ x
        assert (np.abs(e.values - true) < 4 * e.std).all()


def test_a_periodic_log_is_split_by_phase(tmp_path):
    model = RegressorModel(models.two_link(), smoothing=0.02)
    t = np.arange(int(20 * RATE)) / RATE
    w = 2 * np.pi / 5.0
    q = np.stack(
        (0.8 * np.sin(w * t) + 0.3 * np.cos(3 * w * t), 0.9 * np.cos(2 * w * t + 1) + 0.2 * np.sin(5 * w * t)), -1
    )
    v, a = np.gradient(q, 1 / RATE, axis=0), np.gradient(np.gradient(q, 1 / RATE, axis=0), 1 / RATE, axis=0)
    report = identify(
        model.robot,
        Dataset(t, q, model.torque(model.prior, q, v, a)),
        filtering=Filtering(20.0),
        model=model,
        method="wls",
    )
    assert "by phase" in report.notes["split"]
    assert not np.intersect1d(np.round(report.test.t % 5.0, 3), np.round(report.training.t % 5.0, 3)).size


@pytest.mark.slow
def test_friction_of_coupled_motors_stays_beside_the_robot(tmp_path):
    robot = models.two_link()
    options = {"rotor": True, "springs": ["joint2"], "transmission": [[1, 0], [0, 1], [1, 1]], "smoothing": 0.05}
    model = RegressorModel(robot, **options)
    t = np.arange(2000) / RATE
    w = 2 * np.pi * np.array([0.31, 0.47])
    q, v, a = (0.9 * x for x in (np.sin(w * t[:, None]), w * np.cos(w * t[:, None]), -(w**2) * np.sin(w * t[:, None])))
    report = identify(
        robot,
        Dataset(t, q, model.torque(model.prior, q, v, a)),
        filtering=Filtering(15.0),
        model=model,
        validation=Validation(None),
    )
    text = report.text()
    lines = {line.split()[0]: line for line in text.splitlines() if " joint" in line}
    assert all(" no" in lines[k] for k in ("fv1", "fv3", "Ir2", "Ir3", "ks2"))
    assert "joint1 + joint2" in lines["fv3"]
    assert "by the prior only" in lines["Ir1"]  # forms a sum with the first link's inertia
    assert "prior only" not in lines["fv1"]
    np.testing.assert_array_equal(report.robot.damping, robot.damping)
    extra = load_extra(save_model(report.robot, tmp_path / "robot.json", report._extra()))
    own = dict(zip(model.names, report.estimate.x))
    assert extra["identified"] == {k: own[k] for k in model.names[model.inertial :]}
    assert extra["transmission"] == options["transmission"]


def test_negative_friction_is_said_not_to_be_in_the_robot(tmp_path):
    model, _ = write_log(tmp_path / "log.csv")
    data = Dataset.read(tmp_path / "log.csv")
    wrong = Dataset(data.t, data.q, data.tau - 2.0 * np.sign(np.gradient(data.q, data.t, axis=0)))
    report = identify(
        model.robot, wrong, filtering=Filtering(15.0), model=model, method="ols", validation=Validation(None)
    )
    assert report.estimate.x[model.by_kind["coulomb"]].max() < 0.0 == report.robot.friction.max()
    assert sum("as a friction of 0: it is negative" in line for line in report.text().splitlines()) == 2
    assert sum("yes, as damping" in line for line in report.text().splitlines()) == 2


def test_effort_limits_of_zero_are_unknown_and_spikes_are_left_out_when_asked(tmp_path):
    model, _ = write_log(tmp_path / "log.csv")
    robot = model.robot
    zero = replace(robot, joints=tuple(replace(j, effort=0.0) for j in robot.joints))
    data = Dataset.read(tmp_path / "log.csv")
    tau = data.tau.copy()
    tau[500::800, 0] += 60.0
    log = Dataset(data.t, data.q, tau)
    dirty, clean = (
        identify(
            zero, log, method="ols", filtering=Filtering(15.0, outliers=o, alike=False), validation=Validation(None)
        )
        for o in (None, 8.0)
    )
    assert not any("saturated" in line for line in dirty.training.history)
    assert "outlying" in clean.training.history[0]
    assert clean.estimate.training.counts[0] < dirty.estimate.training.counts[0]


def test_whiteness_and_errors_are_as_defined():
    model = RegressorModel(models.two_link(), smoothing=0.02)
    rng = np.random.default_rng(0)
    t = np.arange(4000) / RATE
    q, v, a = rng.normal(size=(3, 4000, 2))
    white = rng.normal(size=q.shape)
    noise = np.stack((white[:, 0], np.convolve(white[:, 1], np.ones(5), "same")), -1)  # autocorrelation 1 - k / 5
    mask = np.ones(q.shape, dtype=bool)
    mask[::3, 1] = False
    data = Dataset(t, q, model.torque(model.prior, q, v, a) + noise, v=v, a=a, mask=mask)
    e = fit(model, data)
    report = Result(e, data)
    residual = (data.tau - e.predict(q, v, a))[mask]
    assert report.errors["training"]["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    first, second = Result(fit(model, replace(data, mask=None)), replace(data, mask=None)).whiteness
    assert abs(first["lag1"]) < 0.05
    assert first["outside"] <= 0.12
    assert first["correlation"] == pytest.approx(1.0, abs=0.1)
    assert second["lag1"] == pytest.approx(0.8, abs=0.03)
    assert second["correlation"] == pytest.approx(5.0, rel=0.1)


def test_the_motions_bandwidth_is_five_times_where_its_power_ends():
    t = np.arange(8000) / RATE
    q = np.stack((np.sin(2 * np.pi * 2.0 * t), 0.5 * np.sin(2 * np.pi * 0.5 * t)), -1)
    assert motion_bandwidth(Dataset(t, q, q)) == pytest.approx(10.0, abs=0.3)
    assert motion_bandwidth(Dataset(t, np.sin(2 * np.pi * 30.0 * t)[:, None], q[:, :1])) == pytest.approx(0.2 * RATE)


def test_saturated_torques_and_holes_are_left_out(tmp_path):
    model, x = write_log(tmp_path / "log.csv")
    log = Dataset.read(tmp_path / "log.csv")
    weak = replace(model.robot, joints=tuple(replace(j, effort=12.0) for j in model.robot.joints))
    weak_model = RegressorModel(weak, **model.options)
    kept = np.abs(log.t - 9.0) > 0.3
    clipped = Dataset(log.t[kept], log.q[kept], np.clip(log.tau[kept], -12.0, 12.0))
    assert 0.01 < np.mean(np.abs(log.tau) >= 12.0) < 0.5
    with_, without = (
        identify(
            weak,
            clipped,
            method="ols",
            model=weak_model,
            filtering=Filtering(15.0, alike=False, saturation=s),
            validation=Validation(None),
        )
        for s in (True, False)
    )
    true = model.base.projection @ x
    errors = [np.linalg.norm(r.estimate.values - true) for r in (with_, without)]
    assert errors[0] < 0.2 * errors[1]
    assert "1 hole of up to 0.6 s" in with_.training.history[0]
    assert len(with_.training.gaps) == 1


def test_units_that_a_joint_can_not_have_are_refused(tmp_path):
    path = tmp_path / "log.csv"
    header = "t," + ",".join(f"{name}{k}" for name in ("q", "tau") for k in range(1, 5))
    t = np.arange(64) / RATE
    np.savetxt(path, np.column_stack((t, np.ones((64, 8)))), delimiter=",", header=header, comments="")
    with pytest.raises(ArgumentError, match=r"q: 'deg' for joint 'lift', which slides; .* q=deg,deg,mm,deg"):
        identify(models.scara(), path, reading=Reading(units={"q": "deg"}))
    with pytest.raises(ArgumentError, match="v: 'mm/s' for joint 'shoulder', which turns"):
        identify(models.scara(), path, reading=Reading(units={"v": "mm/s"}))


def test_identify_refuses_what_does_not_fit(tmp_path):
    write_log(tmp_path / "log.csv", seconds=4.0)
    data = Dataset.read(tmp_path / "log.csv")
    with pytest.raises(DataError, match=r"expected a log of at least \d+ samples, got 1"):
        identify(models.two_link(), between(data, 0.0, 1e-3))
    with pytest.raises(ArgumentError, match="standstill: expected a speed >= 0"):
        identify(models.two_link(), data, filtering=Filtering(standstill=np.nan))
    with pytest.raises(DataError, match="expected 7 joints"):
        identify(models.panda(), tmp_path / "log.csv")
    with pytest.raises(ArgumentError, match="test: expected a fraction"):
        identify(models.two_link(), tmp_path / "log.csv", validation=Validation(1.5))
    with pytest.raises(ArgumentError, match="model: expected one of this robot, got one of another robot"):
        identify(models.two_link(), tmp_path / "log.csv", model=RegressorModel(models.two_link()))


def geared(robot, rng):
    """The robot with a motor at every joint that can have one."""
    motors = rng.uniform(1e-4, 1e-2, robot.nbodies), rng.choice([-50.0, 1.0, 7.5], robot.nbodies)
    joints = [j.with_motor(rotor, g) if j.dof == 1 else j for j, rotor, g in zip(robot.joints, *motors)]
    return replace(robot, joints=tuple(joints))


@pytest.mark.parametrize("name", models.names())
def test_model_files_bring_back_every_bit(tmp_path, name):
    robot = models.load(name)
    rng = np.random.default_rng(0)
    robot = geared(robot, rng)
    robot = robot.with_parameters(robot.parameters * (1 + 1e-3 * rng.normal(size=(robot.nbodies, 1))))
    back = load_model(save_model(robot, tmp_path / "robot.json", {"note": "x"}))
    assert (back.name, back.body_names, back.parents) == (robot.name, robot.body_names, robot.parents)
    for a, b in (
        (back.parameters, robot.parameters),
        (back.placements, robot.placements),
        (back.gravity, robot.gravity),
        (back._model, robot._model),
    ):
        assert a.tobytes() == b.tobytes()
    for a, b in zip(back.joints, robot.joints):
        assert (a.name, a.kind, a.lower, a.upper, a.velocity, a.effort, a.damping, a.friction) == (
            b.name, b.kind, b.lower, b.upper, b.velocity, b.effort, b.damping, b.friction)  # fmt: skip
        assert (a.armature, a.gear_ratio) == (b.armature, b.gear_ratio)
    for a, b in zip(back.frames, robot.frames):
        assert (a.name, a.body) == (b.name, b.body)
        np.testing.assert_array_equal(a.placement, b.placement)


@pytest.mark.parametrize("name", ["panda", "ur10", "puma560", "scara", "two_link"])
def test_urdf_files_bring_back_the_dynamics(tmp_path, name):
    rng = np.random.default_rng(0)
    robot = geared(models.load(name), rng)
    back = models.load_urdf(save_urdf(robot, tmp_path / "robot.urdf"), gravity=robot.gravity)
    assert back.joint_names == robot.joint_names
    np.testing.assert_allclose(back.armature, robot.armature, rtol=1e-15)
    np.testing.assert_array_equal(back.gear_ratio, robot.gear_ratio)
    q = np.array([robot.random_configuration(rng) for _ in range(10)])
    v, a = rng.normal(size=(2, 10, robot.nv))
    tau = robot.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(back.inverse_dynamics(q, v, a), tau, atol=1e-12 * np.abs(tau).max())
    last = robot.frames[-1].name
    np.testing.assert_allclose(back.pose(q[0], last), robot.pose(q[0], last), atol=1e-12)
    np.testing.assert_array_equal(back.limits.upper, robot.limits.upper)
    for b in robot.joints:
        if not np.cross(
            b.S[:3, 0], b.S[3:, 0]
        ).any():  # the frame lies on the axis, so the parameters have the same numbers
            i = robot.joint(b.name)
            np.testing.assert_allclose(back.parameters[i], robot.parameters[i], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("pitch", [0.5 * np.pi, -0.5 * np.pi])
def test_urdf_files_hold_axes_off_their_frames_and_right_angles(tmp_path, pitch):
    c, s = np.cos(0.7), np.sin(0.7)
    turned = np.eye(4)  # Rz(0.7) Ry(pitch): roll and yaw are not distinguished
    turned[:3, :3] = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.array(
        [[0, 0, np.sign(pitch)], [0, 1, 0], [-np.sign(pitch), 0, 0]]
    )
    turned[:3, 3] = 0.1, 0.2, 0.3
    body = inertia.from_com(1.5, (0.1, 0.2, -0.1), np.diag([0.2, 0.3, 0.25]))
    joints = [Joint.revolute((0, 0.6, 0.8), (0.3, -0.1, 0.2)), Joint.revolute((1, 0, 0), (0, 0.2, 0.1)),
              Joint.prismatic((0, 0, 1))]  # fmt: skip
    robot = Robot.build(
        [Body(f"b{k}", f"b{k - 1}" if k else None, j, turned, body) for k, j in enumerate(joints)], gravity=(1, 2, -9)
    )
    back = models.load_urdf(save_urdf(robot, tmp_path / "robot.urdf"), gravity=robot.gravity)
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 5, 3))
    np.testing.assert_allclose(back.inverse_dynamics(q, v, a), robot.inverse_dynamics(q, v, a), atol=1e-12)
    for k in range(3):
        frame = f"b{k}_frame" if k < 2 else "b2"
        np.testing.assert_allclose(back.pose(q, frame), robot.pose(q, f"b{k}"), atol=1e-12)


def test_urdf_refuses_joints_it_does_not_have(tmp_path):
    body = inertia.from_com(1.0, (0, 0, 0), np.eye(3))
    robot = Robot.build([Body("screw", None, Joint.helical((0, 0, 1), pitch=0.1), None, body)])
    with pytest.raises(ModelError, match="URDF has no helical joint"):
        save_urdf(robot, tmp_path / "robot.urdf")


def test_springs_are_kept_by_model_files_and_refused_by_urdf(tmp_path):
    body = inertia.from_com(1.0, (0, 0, 0), np.eye(3))
    spring = Joint.revolute((0, 0, 1), name="s", stiffness=3.0, rest=-0.1)
    robot = Robot.build([Body("a", None, spring, None, body), Body("b", "a", Joint.free(), None, body)])
    path = save_model(robot, tmp_path / "robot.json")
    assert [(j.stiffness, j.rest) for j in load_model(path).joints] == [(3.0, -0.1), (0.0, 0.0)]
    path.write_text(path.read_text().replace('"stiffness": 3.0,', "").replace('"rest": -0.1', '"more": 0'))
    # files of older versions
    assert [(j.stiffness, j.rest) for j in load_model(path).joints] == [(0.0, 0.0), (0.0, 0.0)]
    with pytest.raises(ModelError, match="joint 's': URDF has no springs"):
        save_urdf(Robot.build([Body("a", None, spring, None, body)]), tmp_path / "robot.urdf")


def test_damaged_model_files_are_refused(tmp_path):
    path = tmp_path / "robot.json"
    for text, words in (
        ("{", "not a readable"),
        ("{}", "format"),
        ('{"format": "geomctrl robot", "version": 1}', "incomplete"),
    ):
        path.write_text(text)
        with pytest.raises(ModelError, match=words):
            load_model(path)
