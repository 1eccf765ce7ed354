"""`geomctrl identify-load` and `geomctrl drive-gains`: the help's examples as printed, statuses, what is refused."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from identification.loaded import Load, Oracle, motion, torque_log

from geomctrl import models
from geomctrl.cli import drive_gains, identify_load
from geomctrl.cli.main import app
from geomctrl.identification import RegressorModel, Result, fit
from geomctrl.mechanism.mechanism import Frame
from geomctrl.models.io.model_file import save_model
from geomctrl.models.io.writing import save_urdf

OFF = np.eye(4)
OFF[2, 3] = 0.05
AT = models.panda().frame("panda_link8")
FRAMES = Frame("tool0", AT.body, AT.placement @ OFF), Frame("ft_sensor", AT.body, AT.placement)
ARM = replace(models.panda(), frames=(*models.panda().frames, *FRAMES))
LOAD = Load(mass=3.012, centre=(0.0, 0.0, 0.06), moments=(0.008, 0.008, 0.006, 0.0, 0.0, 0.0), frame="tool0")
GAINS = np.array([11.0, 12.5, -9.5, 10.0, 6.0, 7.0, 5.5])
TILTED = 9.81 * np.array([0.0, np.sin(0.4), -np.cos(0.4)])


def table(path, t, q, **fields):
    columns = {"t": t} | {f"q{k + 1}": x for k, x in enumerate(q.T)}
    for field, x in fields.items():
        columns |= {f"{field}{k + 1}": column for k, column in enumerate(x.T)}
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the examples name, made by Pinocchio."""
    here = tmp_path_factory.mktemp("logs")
    save_urdf(ARM, here / "arm.urdf")
    for name, load, seed in (("gripper", LOAD, 0), ("empty", None, 1)):
        log = torque_log(ARM, load, here, seed, rate=125.0)
        table(here / f"{name}.csv", log.t, log.q, tau=log.tau)
    for name, load, seed in (("loaded", LOAD, 2), ("currents", None, 3)):
        log = torque_log(ARM, load, here, seed, noise=0.05, rate=125.0)
        table(here / f"{name}.csv", log.t, log.q, current=log.tau / GAINS)
    t, q, v, a = motion(ARM, seed=4, rate=125.0)
    _, W = Oracle(ARM.with_gravity(TILTED), LOAD, here)(q, v, a)
    f, m = W[:, :3], W[:, 3:] + np.cross([0.0, 0.0, 0.05], W[:, :3])  # from tool0 to the sensor
    noise = np.random.default_rng(0).normal(size=(2, *f.shape))
    table(here / "wrist.csv", t, q, f=np.hstack((0.3 * noise[0] - f + 2.0, 0.02 * noise[1] - m - 0.1)))
    data = torque_log(ARM, None, here, 1, rate=125.0).filtered(12.0, alike=True, decimate=5)
    estimate = fit(RegressorModel(ARM), data, "wls")
    Result(estimate, data).save(here / "out" / "identify", plots=False)
    return here


def examples(command):
    return [" ".join(x.split()) for x in re.findall(r"- `geomctrl (.*?)`", str(command.__doc__), re.DOTALL)]


@pytest.mark.slow
@pytest.mark.parametrize("example", examples(identify_load))
def test_examples_of_loads_give_the_load_as_printed(example, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    said = run(*shlex.split(example), "--out", tmp_path).output
    tables = json.loads((tmp_path / "report.json").read_text())
    assert tables["mass"] == pytest.approx(LOAD.mass, rel=0.02)
    np.testing.assert_allclose(tables["centre"], LOAD.centre, atol=5e-3)
    assert tables["frame"] == "tool0"
    assert "No doubts." in said
    assert f"wrote report.json, report.txt, robot.json, robot.urdf in {tmp_path}" in said.replace("\n", " ")


@pytest.mark.slow
@pytest.mark.parametrize("example", examples(drive_gains))
def test_examples_of_drives_give_the_gains_as_printed(example, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    text = ["currents.csv" if x == "empty.csv" else x for x in shlex.split(example)]
    run(*text, "--out", tmp_path)
    tables = json.loads((tmp_path / "report.json").read_text())
    np.testing.assert_allclose(tables["gains"], GAINS, rtol=0.1)
    assert tables["refused"] == {}


def test_doubts_are_in_the_exit_status(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    inputs = ("--cutoff", 12)  # choosing a cut-off takes a few seconds
    wrong_way = ("identify-load", "empty.csv", "gripper.csv", "--robot", "arm.urdf", *inputs, "--out", tmp_path)
    said = run(*wrong_way, status=1).output
    assert "NOT TO BE TRUSTED" in said
    assert (tmp_path / "report.txt").is_file()
    said = run(*wrong_way, "--ignore", "mass", "--ignore", "bodies", status=0).output
    assert "assessment: TRUST: nothing was found that speaks against it (ignored: mass" in " ".join(said.split())
    run(*wrong_way, "--ignore", "masses", status=2)  # no finding has that name
    save_model(ARM.with_parameters(1.1 * ARM.parameters), tmp_path / "heavy.json")
    one_log = ("identify-load", "gripper.csv", "--robot", tmp_path / "heavy.json", *inputs, "--out", tmp_path / "one")
    said = run(*one_log, status=3).output
    assert "bodies: no rigid body explains the log" in said
    run(*one_log, "--ignore", "bodies", "--ignore", "model", status=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("identify-load", "gripper.csv", "empty.csv", "--frame", "tool9"), "frame named 'tool9'"),
        (("identify-load", "gripper.csv", "none.csv"), "log 'none.csv': no such file"),
        (("identify-load", "loaded.csv", "empty.csv"), "expected torques, got currents"),
        (("identify-load", "gripper.csv", "--sensor", "ft_sensor"), "expected forces and moments of"),
        (("identify-load", "wrist.csv", "--sensor", "ft_sensor", "--wrench", "a,b"), "expected six columns"),
        (("identify-load", "gripper.csv", "--wrench", "f"), "wrench: for logs of a wrench sensor"),
        (("identify-load", "gripper.csv", "--load-friction", "big"), "friction: expected one of 'own', 'same', 'load'"),
        (("identify-load", "gripper.csv", "--friction", "sigmoid"), "--friction: expected viscous, coulomb, offset"),
        (("drive-gains", "loaded.csv", "currents.csv", "--mass", "0"), "mass: expected kilograms > 0"),
        (("drive-gains", "loaded.csv", "currents.csv"), "--mass: expected the mass of a load, or --known-bodies"),
        (("drive-gains", "gripper.csv", "empty.csv", "--mass", "3"), "i: expected motor currents, got none"),
        (("drive-gains", "loaded.csv", "currents.csv", "--mass", "3", "--inertia", "1,2"), "--inertia: expected xx"),
        (("drive-gains", "loaded.csv", "--mass", "3", "--current-gains", "2"), "--current-gains: can not be given"),
    ],
)  # fmt: skip
def test_what_can_not_be_done_ends_with_status_2_and_the_reason(arguments, message, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    said = run(*arguments, "--robot", "arm.urdf", "--out", tmp_path / "out", status=2).output
    assert message in said.replace("\n", " ")
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_the_robot_with_its_load_is_a_robot_to_other_commands(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    out = tmp_path / "load"
    run("identify-load", "gripper.csv", "empty.csv", "--robot", "arm.urdf", "--frame", "tool0", "--out", out)
    mass = json.loads((out / "report.json").read_text())["mass"]
    total = ARM.parameters[:, 0].sum() + mass
    assert f"{total:.6g} kg" in run("info", out / "robot.json").output
    other = "identify-load", "gripper.csv", "--robot", Path("out/identify/robot.json"), "--rotor", "yes"
    assert "contains the friction and rotors of its robot" in run(*other, status=2).output.replace("\n", " ")


def test_a_setup_file_of_identify_with_a_verdict_serves_loads(tmp_path):
    setup = tmp_path / "setup.toml"
    setup.write_text('[assessment]\nignore = ["mass", "bodies"]\n[output]\nout = "out/mine"\n')
    _, bound, _ = app.parse_args(["identify-load", "log.csv", "--robot", "two_link", "--setup", str(setup)])
    assert bound.arguments["assessment"].kinds() == ("mass", "bodies")
    assert "out" not in bound.arguments  # the folder with results of `identify` is not the folder of the load
