"""`geomctrl identify --setup`: robots, columns and options from a TOML file; options of logs; the help's examples."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from cli.identify_logs import RATE, run, simulated, write
from lib import logs

from geomctrl import Robot, inertia, models
from geomctrl.cli import identify as command
from geomctrl.cli.setup_file import options_of
from geomctrl.identification import Filtering, RegressorModel, Validation, identify
from geomctrl.models.io.writing import save_urdf

ROOT = Path(__file__).parents[2]
SETUP = """
[robot]
convention = "standard"
a = [0.5, 0.4]
alpha = [90, 0]
d = [0.3, 0.1]
angles = "deg"
masses = [3, 2]
joints = ["pan", "lift"]

[log]
columns = {t = "A_t", q = "A_deg", tau = "A_motor"}
units.q = "deg"
gears = [[50, 0], [10, 80]]
joint-positions = true
zero = [0.1, -0.2]

[test]
test_columns = {t = "B_t", q = "B_deg", tau = "B_motor"}

[model]
friction = ["viscous", "coulomb"]
smoothing = 0.02

[filters]
cutoff = 15

[[column]]
name = "gas spring"
joint = "lift"
torque = "sin(q + 20 * deg)"
"""


def arm_log(path, seed):
    """Both trajectories of an arm with a gas spring, motor torques of coupled joints, in one archive."""
    body = inertia.from_com(2.0, np.array([-0.1, 0.02, 0.05]), 0.03 * np.eye(3))
    robot = Robot.from_dh([0.5, 0.4], [np.pi / 2, 0], [0.3, 0.1], [0, 0], convention="standard", inertias=[body] * 2)
    arrays = {}
    for part, shift in (("A", 0.0), ("B", 2.0)):
        t = np.arange(int(15 * RATE)) / RATE
        w = 2 * np.pi * np.array([[0.23, 0.31], [0.77, 0.59], [1.1, 1.4]]) * (1.0 + 0.1 * shift)
        A, angle = np.array([[0.8, 0.7], [0.4, 0.5], [0.2, 0.2]]), t[:, None, None] * w + shift
        q, v, a = (A * np.sin(angle)).sum(1), (A * w * np.cos(angle)).sum(1), -(A * w**2 * np.sin(angle)).sum(1)
        tau = robot.inverse_dynamics(q, v, a) + 0.4 * v + 0.2 * np.tanh(v / 0.02)
        tau[:, 1] += 30.0 * np.sin(q[:, 1] + np.deg2rad(20))
        tau += 0.02 * np.random.default_rng(seed).normal(size=tau.shape)
        motor = np.linalg.solve(np.array([[50.0, 0], [10, 80]]).T, tau.T).T
        arrays |= {f"{part}_t": t, f"{part}_deg": np.rad2deg(q - [0.1, -0.2]), f"{part}_motor": motor}
    np.savez(path, **arrays)
    return path


def test_a_file_holds_robot_gears_columns_and_options_and_the_command_line_goes_before(tmp_path):
    log = arm_log(tmp_path / "log.npz", 0)
    (tmp_path / "arm.toml").write_text(SETUP)
    options = (
        "--setup",
        tmp_path / "arm.toml",
        "--test-log",
        log,
        "--prior-weight",
        1e-4,
        "--no-plots",
        "--out",
        tmp_path,
    )
    said = run(log, *options)
    tables = json.loads((tmp_path / "report.json").read_text())
    assert "amplitude 1/2 at 15 Hz" in said
    assert tables["errors"]["test"]["relative_error"] < 0.01
    assert tables["parameters"]["gas spring"] == pytest.approx(30.0, rel=0.03)
    assert "fo1" not in tables["parameters"]
    assert json.loads((tmp_path / "robot.json").read_text())["bodies"][1]["joint"]["name"] == "lift"
    said = run(log, *options, "--cutoff", 12, "--friction", "viscous,coulomb,offset")
    assert "amplitude 1/2 at 12 Hz" in said
    assert "fo1" in json.loads((tmp_path / "report.json").read_text())["parameters"]


def test_files_are_found_beside_the_setup(tmp_path):
    t, q, tau, _, _ = simulated()
    (tmp_path / "deep").mkdir()
    log = write(tmp_path / "log.csv", t, q * [50, 80], tau / [50, 80])
    save_urdf(models.two_link(), tmp_path / "deep" / "arm.urdf")
    (tmp_path / "deep" / "gears.txt").write_text("50 0\n0 80\n")
    (tmp_path / "deep" / "s.toml").write_text(
        'robot = "arm.urdf"\n[log]\ngears = "gears.txt"\n[model]\nrotor = true\ntransmission = [[1, 0], [0, 1]]\n'
        "[filters]\ncutoff = 15\n[estimator]\nmethod = 'wls'\n[output]\nplots = false\n"
    )
    run(log, "--setup", tmp_path / "deep" / "s.toml", "--out", tmp_path / "out")
    tables = json.loads((tmp_path / "out" / "report.json").read_text())
    assert tables["method"] == "wls"
    assert tables["errors"]["test"]["relative_error"] < 0.01


@pytest.mark.parametrize(("value", "option"), [("true", "yes"), ("false", "no"), ("'auto'", "auto")])
def test_truth_values_answer_options_of_yes_and_no(value, option, tmp_path):
    (tmp_path / "s.toml").write_text(f"[model]\nrotor = {value}\n")
    assert options_of(tmp_path / "s.toml") == {"rotor": [option]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[modell]\nrotor = true\n", "'modell' is not known; did you mean 'model'?"),
        ("[model]\nrotors = true\n", "[model]: 'rotors' is not known; did you mean 'rotor'?"),
        ("model = 3\n", "model: expected a table [model], got 3"),
        ("[log]\nrate = 2020-01-01\n", "[log] rate: expected strings, numbers, true or false"),
        ("[log\n", "not a TOML file"),
        ("[filters]\ncutoff = 'high'\n", "Invalid value for --cutoff from"),
        ("[[column]]\nname = 'x'\njoint = 'joint1'\ntorque = 'p'\n", "torque: unknown name 'p'"),
        ("[robot]\na = [1, 2]\n", "[robot]: convention: missing"),
    ],
)
def test_setups_that_are_wrong_name_file_and_key(text, message, tmp_path):
    (tmp_path / "s.toml").write_text(text)
    t, q, tau, _, _ = simulated(2.0)
    log = write(tmp_path / "log.csv", t, q, tau)
    robot = () if "[robot]" in text else ("--robot", "two_link")
    said = run(log, *robot, "--setup", tmp_path / "s.toml", "--no-plots", "--out", tmp_path, status=2)
    assert message in " ".join(said.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--joints", "a,b,c"), "joints: expected 2 names, one per joint of 'two_link', got 3"),
        (("--current-gains", "1,2"), "i: current_gains are given, expected currents, got none; there are t, q1"),
        (("--column", "i=tau"), "tau: expected torques, got currents; give the gains that convert them"),
        (("--current-gains", "0", "--column", "i=tau"), "current_gains: expected N m/A, one or one per joint, not 0"),
        (("--topic", "/a"), "topic: no columns called after joints, on '/a' or elsewhere; there are t, q1"),
        (("--gears", "1,0;0"), "--gears: expected rows of numbers, or the name of a file of them"),
        (("--transmission", "1,0;0,x"), "--transmission: expected rows of numbers"),
        (("--test-column", "q=B"), "--test-column: expected together with --test-log"),
        (("--own-columns", "none.toml"), "none.toml: No such file"),
        (("--setup", "none.toml"), "none.toml: No such file"),
    ],
)
def test_what_can_not_be_done_is_said(arguments, message, tmp_path):
    t, q, tau, _, _ = simulated(2.0)
    log = write(tmp_path / "log.csv", t, q, tau)
    said = run(log, "--robot", "two_link", *arguments, "--no-plots", "--out", tmp_path, status=2)
    assert message in said.replace("\n", " ")


@pytest.mark.slow
@pytest.mark.skipif(logs.missing("kr300_weigand_AB.npz") is not None, reason=str(logs.missing("kr300_weigand_AB.npz")))
def test_the_kr300_study_runs_from_the_command_line(tmp_path):
    path = logs.need("kr300_weigand_AB.npz")
    choices = {
        "--cutoff": 8, "--decimate": 2, "--standstill": 0.01, "--smoothing": 1e-3, "--prior-weight": 1e-4,
        "--mass-max": ",".join(str(m) for m in logs.KR300_MASSES),
    }  # fmt: skip
    inputs = [x for pair in choices.items() for x in pair]
    run(path, "--setup", ROOT / "experiments" / "logs" / "kr300.toml", "--test-log", path, *inputs, "--noise-weights",
        "--no-plots", "--out", tmp_path)  # fmt: skip
    robot = logs.kr300()
    model = RegressorModel(robot, rotor=True, offset=False, columns=[logs.kr300_counterbalance()], smoothing=1e-3)
    options = {"mass_max": logs.KR300_MASSES, "regularization": 1e-4, "weights": "noise"}
    study = identify(
        robot, logs.kr300_log("A"), model=model, options=options, validation=Validation(logs.kr300_log("B")),
        filtering=Filtering(8.0, decimate=2, standstill=0.01),
    )  # fmt: skip
    tables = json.loads((tmp_path / "report.json").read_text())
    assert tables["errors"]["test"]["relative_error"] == pytest.approx(study.errors["test"]["relative_error"], rel=1e-5)
    assert tables["errors"]["test"]["relative_error"] <= 0.15


def bare(name, setup, folder, *more):
    """Errors are one line, with the facts about the log and without a choice to make."""
    if logs.missing(name):
        pytest.skip(str(logs.missing(name)))
    path = logs.need(name)
    run(path, "--setup", ROOT / "experiments" / "logs" / setup, *more, "--no-plots", "--out", folder)
    return json.loads((folder / "report.json").read_text())["errors"]["test"]


@pytest.mark.slow
def test_published_logs_are_predicted_from_defaults(tmp_path):
    assert bare("ur10_petrone_first70.npz", "ur10.toml", tmp_path)["relative_error"] <= 0.05
    # at the end the robot stands still and its torques creep
    assert bare("tx40_figaroh.npz", "tx40.toml", tmp_path)["moving_error"] <= 0.06
    kr300 = logs.FOLDER / "kr300_weigand_AB.npz"
    assert bare(kr300.name, "kr300.toml", tmp_path, "--test-log", kr300)["relative_error"] <= 0.14


# --- the help's examples -------------------------------------------------------------------------------------------


def examples():
    text = str(command.__doc__)
    return [" ".join(x.split()) for x in re.findall(r"- `geomctrl identify (.*?)`", text, re.DOTALL)]


@pytest.mark.slow
@pytest.mark.parametrize("example", examples())
def test_the_helps_examples_give_a_good_result_as_printed(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = shlex.split(example)
    log = Path(arguments[0])
    real = log.name == "tx40_figaroh.npz"
    if real:
        if logs.missing(log.name):
            pytest.skip(str(logs.missing(log.name)))
        log.symlink_to(logs.need(log.name))
        (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    else:
        robot = arguments[arguments.index("--robot") + 1]
        created = models.load(robot) if robot in models.names() else models.two_link()
        if robot.endswith(".urdf"):
            save_urdf(created, Path(robot))
        _write_example(log, created, arguments)
        if "--test-log" in arguments:
            _write_example(Path(arguments[arguments.index("--test-log") + 1]), created, arguments, seed=1)
    folder = Path(arguments[arguments.index("--out") + 1] if "--out" in arguments else "out/identify")
    run(*arguments, "--no-plots")
    errors = json.loads((folder / "report.json").read_text())["errors"]
    if real:  # the robot mostly stands still in the last 30 %, and its friction there is not seen in the rest
        assert errors["training"]["relative_error"] < 0.04
        assert errors["test"]["moving_error"] < 0.06
        assert errors["test"]["relative_error"] < 0.145
    else:
        assert errors["test"]["relative_error"] < 0.05


def _write_example(path, robot, arguments, seed=0):
    """A log that is not periodic, of a robot 20 % heavier than its model, as in the example."""
    from identification.bags import START, write_bag

    rng = np.random.default_rng(seed)
    t = np.arange(int(30 * RATE)) / RATE
    w = 2 * np.pi * rng.uniform(0.05, 0.9, (4, robot.nv))
    A, angle = rng.uniform(0.1, 0.4, (4, robot.nv)), t[:, None, None] * w + rng.uniform(0, 6, (4, robot.nv))
    q, v, a = (A * np.sin(angle)).sum(1), (A * w * np.cos(angle)).sum(1), -(A * w**2 * np.sin(angle)).sum(1)
    tau = robot.with_parameters(1.2 * robot.parameters).inverse_dynamics(q, v, a) + 0.5 * v + 0.3 * np.tanh(v / 0.01)
    tau += 0.02 * rng.normal(size=tau.shape)
    if path.suffix == ".npz":
        np.savez(path, t=t, q=q, tau=tau)
    elif path.suffix == ".csv" and "--current-gains" in arguments:
        gains = np.array([float(x) for x in arguments[arguments.index("--current-gains") + 1].split(",")])
        names = [f"{name}{k + 1}" for name in ("pos", "current") for k in range(robot.nv)]
        write(path, t, np.rad2deg(q), tau / gains, ",".join(["t", *names]))
    elif path.suffix == ".csv":
        write(path, t, q, tau)
    else:
        pytest.importorskip("rosbags")
        names = list(robot.joint_names)
        states = [
            {"stamp": START + round(1e9 * s), "name": names, "position": q[k], "velocity": v[k], "effort": tau[k]}
            for k, s in enumerate(t)
        ]
        write_bag(path, {"/joint_states": states})
