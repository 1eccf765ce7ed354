"""`geomctrl identify` from a log file to its output files, and its error messages."""

import json
from hashlib import sha256
from html import unescape

import numpy as np
import pytest
from cli.identify_logs import COULOMB, GEARS, RATE, ROTOR, VISCOUS, ZERO, run, simulated, write

import geomctrl.identification
from geomctrl import inertia, models
from geomctrl.errors import GeomctrlError
from geomctrl.identification import Curve, Filtering, Reading, Validation
from geomctrl.models import load_extra
from geomctrl.models.io.model_file import load_model


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    t, q, tau, _, _ = simulated()
    return write(tmp_path_factory.mktemp("log") / "log.csv", t, q, tau)


def test_a_motor_side_log_in_degrees_becomes_the_robot_it_came_from(tmp_path):
    t, q, tau, model, x = simulated()
    motor = np.rad2deg((q - ZERO) * GEARS), tau / GEARS
    log = write(tmp_path / "log.csv", 1e3 * t, *motor, "clock,angle_1,angle_2,left,right")
    out = tmp_path / "deep" / "out"
    said = run(
        log, "--robot", "two_link", "--column", "t=clock", "--unit", "t=ms", "--column", "q=angle", "--unit", "q=deg",
        "--column", "tau=left,right", "--gears", "50,-80", "--zero", "0.1,-0.2", "--rotor", "yes", "--smoothing", 0.02,
        "--friction", "viscous,coulomb", "--cutoff", 15, "--torque-cutoff", 12, "--decimate", 4, "--test", 0.25,
        "--mass-max", 5, "--out", out,
    )  # fmt: skip
    tables = json.loads((out / "report.json").read_text())
    names = {p.name for p in out.iterdir()}
    assert names == {"report.txt", "report.html", "report.json", "parameters.csv", "robot.json", "robot.urdf",
                     "robot.xml", "torques.png", "residuals.png", "parameters.png"}  # fmt: skip
    for words in ("method 'consistent'", "amplitude 1/2 at 15 Hz", "amplitude 1/2 at 12 Hz",
                  "one sample kept every 40 ms", "the first 75 % of the samples train",
                  "|tau - tau_hat| / |tau|, 2-norms over samples", "95 % from",
                  "viscous friction  joint1", "yes, as damping", "rotor inertia     joint2",
                  "robot.json under"):  # fmt: skip
        assert words in said
        assert words in (out / "report.txt").read_text()
    page = unescape((out / "report.html").read_text(encoding="utf-8"))
    # the command as it was typed
    assert f"geomctrl identify {log} --robot two_link --column t=clock --unit t=ms" in page
    assert sha256(log.read_bytes()).hexdigest() in page
    assert not any(name.startswith("fo") for name in tables["parameters"])
    assert tables["errors"]["test"]["relative_error"] < 0.005
    assert tables["is_physical"]
    # exported files: equal bit for bit, equal to rounding, and near the truth
    robot, extra = load_model(out / "robot.json"), load_extra(out / "robot.json")
    array = np.array(list(tables["parameters"].values()))
    np.testing.assert_array_equal(robot.parameters.ravel(), array[:20])
    assert extra["identified"] == dict(zip(list(tables["parameters"])[20:], array[20:]))
    assert extra["identified"]["Ir2"] == pytest.approx(ROTOR, rel=0.05)
    np.testing.assert_array_equal(robot.damping, [extra["identified"][k] for k in ("fv1", "fv2")])
    np.testing.assert_allclose(robot.damping, VISCOUS, rtol=0.1)
    np.testing.assert_allclose(robot.friction, COULOMB, rtol=0.1)
    assert (robot.parameters[:, 0] <= 5.0 + 1e-6).all()
    rng = np.random.default_rng(1)
    state = rng.normal(size=(3, 10, 2))
    urdf = models.load_urdf(out / "robot.urdf", gravity=robot.gravity)
    np.testing.assert_allclose(urdf.inverse_dynamics(*state), robot.inverse_dynamics(*state), atol=1e-10)
    true = model.robot.with_parameters(x[:20]).gravity_force(state[0])
    np.testing.assert_allclose(robot.gravity_force(state[0]), true, atol=0.02 * np.abs(true).max())


@pytest.mark.quick(2)
@pytest.mark.parametrize("method", ["ols", "consistent", "wls", "ridge"])
def test_every_method_on_a_trajectory_that_repeats(method, tmp_path):
    _, q, tau, _, _ = simulated(periodic=True)
    np.savez(tmp_path / "log.npz", q=q, tau=tau)
    arguments = (
        "--robot", "two_link", "--rate", RATE, "--rotor", "yes", "--cutoff", 15, "--no-plots", "--out", tmp_path
    )  # fmt: skip
    said = run(tmp_path / "log.npz", *arguments, "--method", method)
    assert "split: by phase of a period of 5 s: from 0.70 on unseen in every period" in said
    tables = json.loads((tmp_path / "report.json").read_text())
    assert tables["method"] == method
    # the model's parameters are 30 % off
    assert tables["errors"]["test"]["relative_error"] < (0.03 if method == "ridge" else 0.01)
    assert tables["is_physical"] or method != "consistent"
    assert not (tmp_path / "torques.png").exists()


@pytest.mark.parametrize(("shape", "speed"), [("sigmoid", 0.9), ("stribeck", 0.3)])
def test_friction_curves_are_found_and_exported(shape, speed, tmp_path):
    t, q, tau, _, _ = simulated(curves=[Curve(k, shape, speed) for k in (0, 1)])
    friction = f"viscous,coulomb,offset,{shape}"
    run(write(tmp_path / "log.csv", t, q, tau), "--robot", "two_link", "--friction", friction, "--rotor", "yes",
        "--smoothing", 0.02, "--cutoff", 20, "--no-plots", "--method", "ols", "--out", tmp_path)  # fmt: skip
    extra = load_extra(tmp_path / "robot.json")
    assert [(c["actuator"], c["shape"]) for c in extra["curves"]] == [(0, shape), (1, shape)]
    np.testing.assert_allclose([c["speed"] for c in extra["curves"]], speed, rtol=0.1)
    amplitude = [extra["identified"][f"{'fs' if shape == 'sigmoid' else 'fb'}{k}"] for k in (1, 2)]
    np.testing.assert_allclose(amplitude, 2.0, rtol=0.1)
    assert "sigmoid friction" in (tmp_path / "report.txt").read_text() or shape == "stribeck"


def test_a_urdf_without_inertias_gives_the_geometry(tmp_path):
    joints = "".join(
        f'<link name="l{k}"/><joint name="j{k}" type="continuous"><parent link="{p}"/><child link="l{k}"/>'
        f'<origin xyz="{x} 0 0"/><axis xyz="0 1 0"/></joint>'
        for k, p, x in ((1, "base", 0), (2, "l1", 1))
    )
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="arm"><link name="base"/>{joints}</robot>')
    robot = models.load_urdf(path, physical="unchecked")
    bodies = inertia.from_com(np.array([1.0, 0.8]), np.array([[0.5, 0, 0], [0.4, 0, 0.1]]), 0.05 * np.eye(3))
    t, q, _, _, _ = simulated()
    v, a = (np.gradient(np.gradient(q, t, axis=0) if k else q, t, axis=0) for k in (0, 1))
    tau = robot.with_parameters(bodies).inverse_dynamics(q, v, a)
    said = run(write(tmp_path / "log.csv", t, q, tau), "--robot", path, "--friction", "none", "--cutoff", 20,
               "--prior-weight", 1e-6,
               "--no-plots", "--out", tmp_path)  # fmt: skip
    assert "no body can have the inertias of l1, l2 in the model; its geometry is used" in said
    result = load_model(tmp_path / "robot.json")
    state = np.random.default_rng(0).normal(size=(3, 10, 2))
    tau = robot.with_parameters(bodies).inverse_dynamics(*state)
    np.testing.assert_allclose(result.inverse_dynamics(*state), tau, atol=0.01 * np.abs(tau).max())


def test_uneven_time_stamps_are_resampled_with_a_note(tmp_path):
    t, q, tau, _, _ = simulated(noise=0.0)
    keep = np.random.default_rng(0).uniform(size=len(t)) > 0.2  # one sample in five is missing
    chosen = ("--cutoff", 15, "--prior-weight", 1e-4)  # most of the time is spent on choosing a weight
    arguments = ("--robot", "two_link", "--rotor", "yes", *chosen, "--no-plots", "--out", tmp_path)
    log = write(tmp_path / "log.csv", t[keep], q[keep], tau[keep])
    said = run(log, *arguments)
    assert "resampled at 100 Hz by cubic interpolation" in said
    assert "time stamps were not even, 0.01 to 0.0" in said
    assert json.loads((tmp_path / "report.json").read_text())["errors"]["test"]["relative_error"] < 0.005


def test_another_log_is_tested_on(log, tmp_path):
    t, q, tau, _, _ = simulated(periodic=True)
    other = write(tmp_path / "other.csv", t, q, tau)
    options = ("--rotor", "yes", "--cutoff", 15, "--prior-weight", 1e-4, "--no-plots", "--out", tmp_path)
    said = run(log, "--robot", "two_link", "--test-log", other, *options)
    assert "split: tested on 'other'" in said
    assert json.loads((tmp_path / "report.json").read_text())["errors"]["test"]["relative_error"] < 0.02


def test_every_option_arrives(log, tmp_path, monkeypatch):
    got = {}

    def record(robot, path, **options):
        got.update(options, robot=robot, log=path)
        raise GeomctrlError("enough")

    monkeypatch.setattr(geomctrl.identification, "identify", record)
    (tmp_path / "gears.txt").write_text("50, 0\n3, 80\n")
    (tmp_path / "motors.txt").write_text("1 0\n0 1\n1 1\n")
    said = run(
        log, "--robot", "two_link", "--rate", 100, "--resample", 90, "--gears", tmp_path / "gears.txt", "--zero", "1,2",
        "--joint-torques", "--no-check-units", "--unit", "v=deg/s", "--friction", "viscous,stribeck",
        "--springs", "joint2",
        "--transmission", tmp_path / "motors.txt", "--cutoff", 9, "--torque-cutoff", 8, "--torques-only",
        "--decimate", 3,
        "--no-saturation", "--outliers", 7, "--standstill", 0.2, "--test", 0, "--period", 4, "--method", "consistent",
        "--prior-weight", 1e-3, "--entropic", 1e-4, "--noise-weights", status=2,
    )  # fmt: skip
    assert "geomctrl: enough" in said
    assert got["filtering"] == Filtering(
        9.0, 8.0, alike=False, decimate=3, saturation=False, outliers=7.0, standstill=0.2, resample=90.0
    )
    assert got["validation"] == Validation(test=None, period=4.0)
    assert (got["method"], got["friction_curves"]) == ("consistent", "stribeck")
    assert got["options"] == {"regularization": 1e-3, "entropic": 1e-4, "weights": "noise"}
    mapping = got["reading"].mapping
    assert got["reading"] == Reading(keys={}, units={"v": "deg/s"}, mapping=mapping, rate=100.0, check_units=False)
    np.testing.assert_array_equal(mapping.matrix, [[50, 0], [3, 80]])
    np.testing.assert_array_equal(mapping.offset, [1, 2])
    assert not mapping.torque_at_motor
    assert got["model"].names[20:] == ["fv1", "fv2", "fv3", "ks2", "k02"]
    run(log, "--robot", "two_link", "--mass-max", "3,4", "--total-mass", 5, "--fixed", "link1,link2", status=2)
    assert got["options"] == {"mass_max": [3.0, 4.0], "total_mass": 5.0, "fixed": ["link1", "link2"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--robot", "panda"), "expected 7 joints (nq = 7) as robot 'panda' has, got tau of 2"),
        (("--robot", "arm.urdf"), "no such file: 'arm.urdf'"),
        (("--column", "q=pos"), "q: no columns 'pos'; there are t, q1, q2, tau1, tau2"),
        (("--column", "tau=tau1,torque2"), "tau: no column 'torque2'; there are t, q1"),
        (("--column", "torque=tau"), "keys: expected t, q, v, a, tau, i, got 'torque'"),
        (("--column", "q=,"), "--column: expected FIELD=NAME, got 'q=,'"),
        (("--test", "-0.5"), "test: expected a fraction between 0 and 1"),
        (("--column", "q"), "--column: expected FIELD=NAME, got 'q'"),
        (("--unit", "q=degree"), "units: q: expected one of rad, deg"),
        (("--unit", "q=deg,rad,rad"), "units: q: expected one unit, or one per column of shape (2000, 2)"),
        (("--unit", "tau=mN m"), "wrong units suspected: torques are"),
        (("--rate", "100"), "rate: the log has time stamps of its own"),
        (("--gears", "1,x"), "--gears: expected rows of numbers, or the name of a file of them, got '1,x'"),
        (("--gears", "1,2,3"), "expected 3 joints as in the joint mapping"),
        (("--friction", "viscous,stribek"), "--friction: expected none, or a list of viscous, coulomb, offset"),
        (("--springs", "elbow"), "no joint named 'elbow'"),
        (("--cutoff", "100"), "cutoff: expected hertz between 0.0001 and half the sampling rate, 50 Hz, got 100"),
        (("--cutoff", "nan"), "cutoff: expected hertz"),
        (("--torque-cutoff", "-1"), "torque_cutoff: expected hertz"),
        (("--decimate", "0"), "decimate: expected a whole number from 1, got 0"),
        (("--standstill", "1000"), "all are masked"),
        (("--standstill", "nan"), "standstill: expected a speed >= 0"),
        (("--test", "1.5"), "test: expected a fraction between 0 and 1"),
        (("--period", "-2"), "period: expected seconds > 0, got -2"),
        (("--test-log", "none.csv"), "log 'none.csv': no such file"),
        (("--method", "ols", "--prior-weight", "1"), "--prior-weight: for consistent, ridge, not for ols"),
        (("--method", "wls", "--mass-max", "3"), "options: wls has no option 'mass_max'; known: iterations"),
        (("--method", "ridge", "--prior-weight", "-1"), "strength: expected a positive number, got -1"),
        (("--mass-max", "-3"), "mass_max: expected a mass >= 0 or 2, one a body"),
        (("--mass-max", "1", "--total-mass", "9"), "no physical robot satisfies the bounds together"),
        (("--fixed", "link3"), "no body named 'link3'"),
    ],
)
def test_what_can_not_be_done_ends_with_status_2_and_the_reason(log, arguments, message, tmp_path):
    robot = () if "--robot" in arguments else ("--robot", "two_link")
    assert message in run(log, *robot, *arguments, "--no-plots", "--out", tmp_path, status=2).replace("\n", " ")


def test_a_log_that_stands_still_names_what_it_does_not_show(tmp_path):
    t, q, tau, _, _ = simulated()
    q[:, 1] = 0.3
    log = write(tmp_path / "log.csv", t, q, tau)
    said = run(log, "--robot", "two_link", "--cutoff", 15, "--method", "ols", "--no-plots", "--out", tmp_path, status=2)
    assert "too little excitation" in said
    assert "fv2: the log does not excite it" in said.replace("\n", " ")


def test_help_teaches_by_example():
    said = run("--help")
    for words in (
        "Examples",
        "geomctrl identify tx40_figaroh.npz --setup experiments/logs/tx40.toml",
        "Exit status",
        "--prior-weight",
        "--gears",
    ):
        assert words in said
