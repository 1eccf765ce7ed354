"""Loads from logs with known truth: torques and wrenches are Pinocchio's, with the load as a separate body."""

import functools
import json

import cvxpy as cp
import numpy as np
import pytest
from identification.loaded import SMOOTHING, Load, Oracle, friction, motion, torque_log
from lib.logs import between

from geomctrl import inertia, models
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.identification import (
    DataError,
    Dataset,
    ExcitationError,
    Filtering,
    Reading,
    RegressorModel,
    Result,
    WristSensor,
    fit,
    identify_load,
)
from geomctrl.identification.loads import report as load_report
from geomctrl.identification.loads import torque_rows
from geomctrl.models import load_extra
from geomctrl.models.io.model_file import load_model, save_model

PANDA, LOAD, FRAME = models.panda(), Load(), "panda_link8"
TRUE = inertia.from_com(LOAD.mass, np.array(LOAD.centre), LOAD.inertia)
FILTER = Filtering(cutoff=12.0)
OFFSETS = np.array([3.0, -2.0, 5.0, 0.1, 0.2, -0.3])  # N, N m


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """logs(seed, load): each log is created once."""
    folder = tmp_path_factory.mktemp("robots")

    @functools.cache
    def log(seed, load=LOAD, **options):
        return torque_log(PANDA, load, folder, seed, label="with" if load else "without", **options)

    return log


def z_scores(report, true=TRUE):
    half = 0.5 * np.diff(report.intervals["parameters"]).ravel()
    return (report.body.least_squares - true) / (half / load_report.Z95)


# --- from joint torques --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("two", [False, True])
def test_the_load_is_found_and_intervals_cover_it(two, logs):
    z = []
    for seed in range(0, 8, 2):
        both = (logs(seed), logs(seed + 1, None)) if two else (logs(seed),)
        report = identify_load(PANDA, *both, frame=FRAME, filtering=FILTER)
        z.append(z_scores(report))
        assert report.findings == ()
        assert report.mass == pytest.approx(LOAD.mass, rel=0.01)
        np.testing.assert_allclose(report.centre, LOAD.centre, atol=2e-3)
        np.testing.assert_allclose(report.inertia, LOAD.inertia, atol=2e-3)
        assert inertia.is_physical(report.parameters, strict=True)
        assert report.not_excited == {}
        attached = report.robot.parameters - LOAD.on(PANDA).parameters
        np.testing.assert_allclose(attached, 0.0, atol=0.02)
        np.testing.assert_array_equal(report.robot.parameters[:-1], PANDA.parameters[:-1])
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.4
    assert np.mean(np.abs(z) < 1.96) > 0.85


def test_two_logs_need_no_inertias_of_the_robot_and_one_log_does(logs):
    wrong = PANDA.with_parameters(1.4 * PANDA.parameters)
    report = identify_load(wrong, logs(0), logs(1, None), frame=FRAME, filtering=FILTER)
    right = identify_load(PANDA, logs(0), logs(1, None), frame=FRAME, filtering=FILTER)
    for k in range(7):  # friction of the loaded robot: the logs have 2 N m s/rad and 1.5 N m
        assert right.friction[f"fv{k + 1}"] == pytest.approx(2.0, abs=0.1)
        assert right.friction[f"fc{k + 1}"] == pytest.approx(1.5, abs=0.1)
    np.testing.assert_allclose(report.parameters, right.parameters, rtol=1e-6, atol=1e-9)
    misled = identify_load(wrong, logs(0), frame=FRAME, filtering=FILTER)
    assert misled.mass < 0.8 * LOAD.mass
    assert {"model", "bodies"} & {d.kind for d in misled.findings}


def test_defaults_find_the_load(logs):
    report = identify_load(PANDA, logs(0), logs(1, None), frame=FRAME)
    assert report.mass == pytest.approx(LOAD.mass, rel=0.03)
    np.testing.assert_allclose(report.centre, LOAD.centre, atol=5e-3)


def test_an_arm_of_six_joints_on_a_wall(tmp_path):
    robot = models.load("ur10").with_gravity((0.0, 9.81, 0.0))
    load = Load(frame=robot.body_names[-1])
    about = [0.3, -1.2, 1.5, -0.8, 0.5, 0.2]
    logs = [torque_log(robot, x, tmp_path, seed, about=about) for x, seed in ((load, 4), (None, 5))]
    report = identify_load(robot, *logs, filtering=FILTER)
    assert report.frame == robot.body_names[-1]
    assert report.mass == pytest.approx(load.mass, rel=0.02)
    np.testing.assert_allclose(report.centre, load.centre, atol=4e-3)
    assert np.abs(z_scores(report)).max() < 4.0


@pytest.mark.slow
def test_friction_that_grows_with_the_load(tmp_path):
    share = 0.06

    def growing(v, tau):
        return friction(v) + share * np.abs(tau) * np.tanh(v / SMOOTHING)

    logs = [torque_log(PANDA, x, tmp_path, seed, extra=growing, noise=0.05) for x, seed in ((LOAD, 0), (None, 1))]
    off = {}
    for kind in ("same", "own", "load"):
        report = identify_load(PANDA, *logs, frame=FRAME, filtering=FILTER, friction=kind)
        off[kind] = np.abs(report.body.least_squares - TRUE) / np.array([1.6] + [0.16] * 3 + [0.016] * 6)
    assert off["load"].max() < 0.3 * min(off["own"].max(), off["same"].max())
    results = [float(x) for x in report.notes["friction per transmitted torque"].split(", ")]
    np.testing.assert_allclose(results[:4], share, atol=0.01)


def test_a_robot_identified_before_and_its_file_say_the_same(logs, tmp_path):
    data = logs(1, None).filtered(12.0, alike=True, decimate=10)
    estimate = fit(RegressorModel(PANDA), data, "wls")
    path = save_model(estimate.robot, tmp_path / "robot.json", Result(estimate, data)._extra())
    report = identify_load(PANDA, logs(0), frame=FRAME, identified=estimate, filtering=FILTER, friction="same")
    again = identify_load(
        load_model(path), logs(0), frame=FRAME, identified=load_extra(path), filtering=FILTER, friction="same"
    )
    np.testing.assert_allclose(again.parameters, report.parameters, rtol=1e-9, atol=1e-12)
    assert report.mass == pytest.approx(LOAD.mass, rel=0.02)
    by_name = {name: float(estimate.x[estimate.model.names.index(name)]) for name in report.friction}
    assert report.friction == pytest.approx(by_name), "the same as without the load"
    unaware = identify_load(PANDA, logs(0), frame=FRAME, filtering=FILTER, friction="same")  # of friction
    assert np.linalg.norm(unaware.parameters - TRUE) > 3.0 * np.linalg.norm(report.parameters - TRUE)
    again.save(tmp_path / "loaded")
    assert load_extra(tmp_path / "loaded" / "robot.json")["identified"] == load_extra(path)["identified"]


def test_what_a_planar_arm_can_not_show_is_said(tmp_path):
    robot = models.two_link()
    load = Load(frame=robot.body_names[-1])
    about = [0.3, 0.9]
    logs = [torque_log(robot, x, tmp_path, seed, about=about, noise=0.01) for x, seed in ((load, 0), (None, 1))]
    report = identify_load(robot, *logs, filtering=FILTER)
    axis = int(np.argmax(np.abs(robot.joints[-1].S[:3, 0])))
    across = [k for k in range(3) if k != axis]
    felt = {"m", *(f"h{'xyz'[k]}" for k in across), f"I{2 * 'xyz'[axis]}"}
    assert set(report.not_excited) == {"m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"} - felt
    assert np.isinf(report.intervals["centre"][axis]).all()
    assert report.mass == pytest.approx(load.mass, rel=0.02)
    np.testing.assert_allclose(report.centre[across], np.array(load.centre)[across], atol=2e-3)
    assert report.centre[axis] == pytest.approx(0.0, abs=1e-3), "what is open is at the frame's origin"
    assert [d.kind for d in report.findings] == ["excitation"]
    saved = {path.name: path for path in report.save(tmp_path / "out")}
    tables = json.loads(saved["report.json"].read_text())
    assert tables["intervals"]["centre"][axis] == [None, None]
    assert "the motion does not determine it" in saved["report.txt"].read_text()
    np.testing.assert_array_equal(load_model(saved["robot.json"]).parameters, report.robot.parameters)


def test_doubts(logs, tmp_path):
    swapped = identify_load(PANDA, logs(1, None), logs(0), frame=FRAME, filtering=FILTER)
    assert (swapped.findings[0].kind, swapped.findings[0].fatal) == ("mass", True)
    assert "order of the two logs" in swapped.text()
    assert inertia.is_physical(swapped.parameters, strict=True)
    nothing = identify_load(PANDA, logs(3, None), logs(1, None), frame=FRAME, filtering=FILTER)
    assert [d.kind for d in nothing.findings] == ["mass"]
    assert "no load is visible" in nothing.text()
    other = Dataset(logs(1, None).t, logs(1, None).q, 1.3 * logs(1, None).tau)
    assert "logs" in [d.kind for d in identify_load(PANDA, logs(0), other, frame=FRAME, filtering=FILTER).findings]


# --- from a sensor at the wrist ------------------------------------------------------------------------------------


def wrench_log(folder, seed=0, sign=-1.0, gravity=None, load=LOAD, noise=1.0, **options):
    """(t, q, wrenches)."""
    t, q, v, a = motion(PANDA, seed=seed, **options)
    robot = PANDA if gravity is None else PANDA.with_gravity(gravity)
    _, W = Oracle(robot, load, folder)(q, v, a)
    rng = np.random.default_rng(seed)
    W = sign * W + OFFSETS + noise * rng.normal(size=W.shape) * np.repeat([0.5, 0.02], 3)
    step = 2.0 * np.pi / 2**19
    return t, step * np.round(q / step), W


def silent(t, q, label="log"):
    return Dataset(t, q, np.zeros(q.shape), label=label)


@pytest.mark.quick(2)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("tilted", [False, True])
def test_a_wrist_sensor_shows_load_offsets_and_sign(sign, tilted, tmp_path):
    g = 9.81 * np.array([0.0, np.sin(0.4), -np.cos(0.4)]) if tilted else PANDA.gravity
    robot, z = PANDA.with_gravity(g), []
    for seed in range(3):
        t, q, W = wrench_log(tmp_path, seed, sign, g)
        report = identify_load(robot, silent(t, q), sensor=WristSensor(FRAME, W), filtering=FILTER)
        z.append(z_scores(report))
        assert report.findings == ()
        np.testing.assert_allclose(report.parameters, TRUE, atol=5e-3)
    assert 0.5 < np.sqrt(np.mean(np.square(z))) < 1.5
    offsets = [float(x) for x in report.notes["offsets [N, N m]"].split(", ")]
    np.testing.assert_allclose(offsets, OFFSETS, atol=0.02)
    assert ("forces on the load" if sign > 0.0 else "forces on the sensor") in report.text()


def test_the_load_in_another_frame_of_the_sensors_link(tmp_path):
    t, q, W = wrench_log(tmp_path, noise=0.0)
    there = identify_load(PANDA, silent(t, q), sensor=WristSensor(FRAME, W), frame="panda_hand_tcp", filtering=FILTER)
    T = np.linalg.inv(PANDA.frame("panda_hand_tcp").placement) @ PANDA.frame(FRAME).placement
    np.testing.assert_allclose(there.parameters, inertia.transform(T, TRUE), atol=2e-3)
    np.testing.assert_allclose(there.robot.parameters, LOAD.on(PANDA).parameters, atol=2e-3)
    with pytest.raises(ArgumentError, match="frame: 'panda_link3' does not move with the sensor 'panda_link8'"):
        identify_load(PANDA, silent(t, q), sensor=WristSensor(FRAME, W), frame="panda_link3")


def test_at_rest_in_some_poses_a_sensor_shows_mass_and_centre_only(tmp_path):
    poses = np.random.default_rng(3).uniform(-1.0, 1.0, (12, 7))
    q = np.repeat(poses, 200, 0)
    _, W = Oracle(PANDA, LOAD, tmp_path)(q, 0.0 * q, 0.0 * q)
    kept = [slice(200 * k + 60, 200 * k + 140) for k in range(12)]
    noise = 0.01 * np.random.default_rng(0).normal(size=W.shape)
    t = np.arange(len(q)) / 200.0
    log = silent(t, q).select(np.isin(np.arange(len(q)), np.concatenate([np.arange(s.start, s.stop) for s in kept])))
    W = np.concatenate([(W + noise)[s] for s in kept])
    report = identify_load(PANDA, log, sensor=WristSensor(FRAME, W), filtering=Filtering(cutoff=20.0, decimate=4))
    assert report.mass == pytest.approx(LOAD.mass, rel=1e-2)
    np.testing.assert_allclose(report.centre, LOAD.centre, atol=1e-3)
    assert set(report.not_excited) == {"Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"}


@pytest.mark.parametrize(
    "names",
    [
        ("fx", "fy", "fz", "tx", "ty", "tz"),
        ("f1", "f2", "f3", "f4", "f5", "f6"),
        ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z"),
        tuple(f"/wrist/wrench/{w}/{a}" for w in ("force", "torque") for a in "xyz"),
    ],
)
def test_columns_of_wrenches_are_known_by_their_usual_names(names, tmp_path):
    t, q, W = wrench_log(tmp_path, rate=100.0)
    path = write(tmp_path / "log.csv", {"t": t, **numbered("q", q), **dict(zip(names, W.T))})
    report = identify_load(PANDA, path, sensor=FRAME, filtering=FILTER)
    same = identify_load(PANDA, silent(t, q), sensor=WristSensor(FRAME, W), filtering=FILTER)
    np.testing.assert_allclose(report.parameters, same.parameters, rtol=1e-9)
    inputs = identify_load(PANDA, path, sensor=WristSensor(FRAME, list(names)), filtering=FILTER)
    np.testing.assert_array_equal(inputs.parameters, report.parameters)
    with pytest.raises(DataError, match="wrench: no column 'gx1'; there are t, q1"):
        identify_load(PANDA, path, sensor=WristSensor(FRAME, "gx"))


def test_wrenches_of_another_topic_come_at_times_of_their_own(tmp_path):
    t, q, W = wrench_log(tmp_path, rate=400.0)
    joints = {f"/joint_states/{j}/position": q[:, k] for k, j in enumerate(PANDA.dof_names)}
    wrist = {f"/ft/wrench/{w}/{a}": x for (w, a), x in zip([(w, a) for w in ("force", "torque") for a in "xyz"], W.T)}
    rows = np.arange(len(t)) % 2 == 0  # joint states, with wrenches between them
    columns = {"__time": t} | {name: np.where(rows, x, np.nan) for name, x in joints.items()}
    columns |= {name: np.where(rows, np.nan, x) for name, x in wrist.items()}
    report = identify_load(PANDA, write(tmp_path / "log.csv", columns), sensor=FRAME, filtering=FILTER)
    np.testing.assert_allclose(report.parameters, TRUE, atol=8e-3)
    assert report.findings == ()


def numbered(stem, x):
    return {f"{stem}{k + 1}": column for k, column in enumerate(x.T)}


def write(path, columns):
    table = [[f"{x:.17g}" if np.isfinite(x) else "" for x in row] for row in zip(*columns.values())]
    path.write_text("\n".join(",".join(row) for row in [list(columns), *table]) + "\n")
    return path


# --- one body ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-3, 1e-1, 1.0])
def test_the_nearest_body_is_the_minimum_that_a_cone_solver_finds(noise):
    rng = np.random.default_rng(1)
    W = rng.normal(size=(40, 10)) / noise
    b = W @ TRUE + rng.normal(size=40)
    result = load_report.estimated(W, b)
    prior = load_report._ball(result.least_squares[0], load_report._centre(W, b, result.scale))
    y = cp.Variable(10)
    P = cp.reshape(inertia.pseudo(np.eye(10)).reshape(10, 16).T @ y, (4, 4), order="C")
    L = np.linalg.inv(np.linalg.cholesky(inertia.pseudo(prior)))  # log det P = log det L P L^T + a constant
    white = L @ P @ L.T
    cost = 0.5 * cp.sum_squares(W @ y - b) + cp.trace(white) - cp.log_det(white)
    cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL")
    std = np.sqrt(np.diag(result.covariance))
    np.testing.assert_allclose((result.parameters - y.value) / std, 0.0, atol=2e-3)


def test_a_body_that_the_log_determines_is_not_moved_by_the_prior():
    rng = np.random.default_rng(2)
    W = rng.normal(size=(40, 10)) / 1e-4
    result = load_report.estimated(W, W @ TRUE + rng.normal(size=40))
    moved = (result.parameters - result.least_squares) / np.sqrt(np.diag(result.covariance))
    assert np.abs(moved).max() < 0.05
    light = load_report.estimated(W / 1e4, (W @ TRUE) / 1e4 + 2.0 * rng.normal(size=40))
    assert not inertia.is_physical(light.least_squares)
    assert inertia.is_physical(light.parameters, strict=True)


def test_intervals_of_centre_and_inertia_are_those_of_samples():
    rng = np.random.default_rng(4)
    W = rng.normal(size=(60, 10)) / 2e-3
    far = inertia.from_com(LOAD.mass, np.array([0.3, -0.2, 0.7]), LOAD.inertia)  # where the motion of axes matters
    result = load_report.estimated(W, W @ far)
    samples = rng.multivariate_normal(result.least_squares, result.covariance, 20_000)
    box = result.quantities()
    for name, values in (("centre", inertia.com(samples)), ("inertia", inertia.com_tensor(samples))):
        half = 0.5 * np.diff(box[name])[..., 0]
        np.testing.assert_allclose(load_report.Z95 * values.std(0), half, rtol=0.04)


def test_nuisances_are_eliminated_even_where_they_are_not_determined():
    rng = np.random.default_rng(5)
    N = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 5))  # five columns, three directions
    W, x, y = rng.normal(size=(200, 2)), np.array([2.0, -1.0]), rng.normal(size=5)
    b = (N @ y + W @ x + 1e-3 * rng.normal(size=200))[:, None]

    class Log:
        label, channels = "log", ("one",)

        def rows(self):
            A = np.hstack((N, W))[:, None]
            for s in (slice(0, 70), slice(70, 200)):
                yield A[s], b[s], np.ones((len(b[s]), 1), bool)

    solved = torque_rows.solved(torque_rows.factored([Log()], 5))
    np.testing.assert_allclose(solved.x, x, atol=5e-4)
    whole = np.linalg.lstsq(np.hstack((N, W)), b[:, 0], rcond=None)[0]
    np.testing.assert_allclose(solved.x, whole[5:], rtol=1e-9)
    np.testing.assert_allclose(solved.residuals()[0], np.std(b[:, 0] - np.hstack((N, W)) @ whole), rtol=1e-2)


# --- what can not be done ------------------------------------------------------------------------------------------


def test_bad_input_is_refused_with_its_name(logs, tmp_path):
    t, q, W = wrench_log(tmp_path, rate=100.0)
    log, empty = logs(0), logs(1, None)
    short = between(log, 0.0, 0.2)
    still = Dataset(log.t, np.tile(log.q[:1], (len(log), 1)), np.tile(log.tau[:1], (len(log), 1)))
    six = Dataset(log.t, log.q[:, :6], log.tau[:, :6])
    other = Dataset(log.t, log.q, log.tau, names=tuple("abcdefg"))
    ours = Dataset(log.t, log.q, log.tau, names=PANDA.dof_names)
    currents = {"t": t, **numbered("q", q), **numbered("current", q)}
    currents = write(tmp_path / "currents.csv", currents)
    for error, words, arguments, options in (
        (DataError, "too short: .* expected about 10 s", (short, empty), {"filtering": FILTER}),
        (ExcitationError, "does not determine the load's mass", (still,), {"filtering": FILTER}),
        (NameNotFoundError, "frame named 'tool9'", (log, empty), {"frame": "tool9"}),
        (ArgumentError, "frame: 'world' is fixed to the world", (log, empty), {"frame": "world"}),
        (DataError, "expected 7 joints .* got tau of 6", (log, six), {}),
        (DataError, "joints: expected those of", (ours, other), {}),
        (DataError, "expected torques, got currents; .*current_gains", (currents,), {"reading": Reading()}),
        (ArgumentError, "without_load: not with a sensor", (log, empty), {"sensor": WristSensor(FRAME, W)}),
        (ArgumentError, "wrench: expected shape", (silent(t, q),), {"sensor": WristSensor(FRAME, W[:5])}),
        (DataError, "expected forces and moments of the wrist's sensor.*there are t, q1", (currents,),
         {"sensor": FRAME}),
        (ArgumentError, "friction: expected one of 'own', 'same', 'load'", (log,), {"friction": "more"}),
        (ArgumentError, "identified: the log without the load", (log, empty), {"identified": {}}),
        (ArgumentError, "identified: expected what geomctrl identify writes to robot.json", (log,),
         {"identified": {"load": {}}}),
        (ArgumentError, "'spring1' is a user-defined column", (log,), {"identified": {"identified": {"spring1": 1.0}}}),
        (ArgumentError, "model: expected one of this robot", (log,), {"model": RegressorModel(models.two_link())}),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            identify_load(PANDA, *arguments, **options)
