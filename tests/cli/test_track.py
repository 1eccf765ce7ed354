"""The command line: exit statuses, messages, files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import geomctrl as gc
from geomctrl import models
from geomctrl.cli import scenario
from geomctrl.cli.main import app
from geomctrl.errors import GeomctrlError

SHORT = ("--seconds", "0.2", "--no-plots")
URDF = """<robot name="pendulum"><link name="base"><inertial><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="0.08" iyz="0" izz="0.001"/></inertial></link>
<joint name="swing" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="1 0 0"/></joint></robot>"""


def run(*arguments, status=0):
    result = CliRunner(env={"COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}).invoke(app, [str(a) for a in arguments])
    assert result.exit_code == status, (result.output, result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


# --- track -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_track_writes_a_run_a_report_and_plots(tmp_path):
    result = run("track", "two_link", "--seconds", 0.5, "--payload", 0.5, "--out", tmp_path / "deep" / "demo")
    folder = tmp_path / "deep" / "demo"
    plots = {"overview", "tracking", "torques", "lyapunov", "estimates", "monitors"}
    assert {p.name for p in folder.iterdir()} == {"run.npz", "report.txt"} | {f"{name}.png" for name in plots}
    report = (folder / "report.txt").read_text(encoding="utf-8")
    for words in (
        "joint1",
        "RMS",
        "skew",
        "held",
        "steps/s",
        "x real time",
        "mass of link2",
        "unknown load of 0.5 kg at tip",
    ):
        assert words in report
        assert words in result.output
    saved = gc.Run.load(folder / "run.npz")
    assert saved.success
    assert saved.t[-1] == 0.5
    assert set(saved.monitors) == {"skew", "energy", "lyapunov", "group"}


def test_track_ends_with_the_comparison_of_adaptive_and_computed_torque(tmp_path):
    result = run("track", "two_link", *SHORT, "--payload", 0.5, "--out", tmp_path)
    assert "tracking RMS, all joints: SlotineLi" in result.output
    assert "ComputedTorque" in result.output
    alone = run("track", "two_link", *SHORT, "--payload", 0.5, "--no-compare", "--out", tmp_path)
    assert "ComputedTorque" not in alone.output


@pytest.mark.parametrize("controller", scenario.CONTROLLERS)
@pytest.mark.parametrize("reference", scenario.REFERENCES)
def test_track_takes_every_controller_and_reference(controller, reference, tmp_path):
    result = run("track", "scara", *SHORT, "--controller", controller, "--reference", reference, "--out", tmp_path)
    assert f"scara, {controller}, {reference}, 0.2 s" in result.output
    assert "finished: reached t = 0.2 s" in result.output


@pytest.mark.parametrize("robot", models.names())
def test_track_takes_every_bundled_robot(robot, tmp_path):
    result = run("track", robot, *SHORT, "--payload", 1, "--friction", "--no-compare", "--out", tmp_path)
    lyapunov = next(line for line in result.output.splitlines() if "lyapunov" in line)
    assert "held" in lyapunov


def test_track_changes_the_load_during_the_run(tmp_path):
    result = run("track", "two_link", *SHORT, "--payload", 0.5, "--payload-at", 0.1, "--no-compare", "--out", tmp_path)
    assert "from 0.1 s on" in result.output
    assert "VIOLATED" not in result.output


def test_track_samples_the_controller_and_says_that_the_proof_is_for_a_continuous_one(tmp_path):
    arguments = ("--controller", "passivity", "--control-dt", 0.02, "--payload", 1.0)
    result = run("track", "two_link", "--seconds", 1.0, "--no-plots", *arguments, "--out", tmp_path)
    assert "controller every 0.02 s" in result.output
    assert "held between samples" in result.output
    assert "gains lowered" in result.output


def test_a_loop_that_diverges_ends_with_a_message_and_the_run_so_far(tmp_path):
    gains = ("--controller", "computed-torque", "--gains", "kp=1e6,kd=1e5")
    result = run("track", "two_link", "--seconds", 1.0, "--no-plots", *gains, "--out", tmp_path, status=1)
    assert "Traceback" not in result.output
    assert "STOPPED" in result.output
    partial = gc.Run.load(tmp_path / "run.npz")
    assert not partial.success
    assert 0 < len(partial.t) < 1001
    assert partial.reason.split(";")[0] in (tmp_path / "report.txt").read_text(encoding="utf-8").replace("\n", " ")


def test_strict_stops_at_the_first_violation_and_names_the_monitor(tmp_path):
    broken = ("--controller", "computed-torque", "--payload", 2, "--strict")
    result = run("track", "two_link", *SHORT, *broken, "--out", tmp_path, status=1)
    assert "monitor 'lyapunov' at t =" in result.output.replace("\n", " ")
    assert (tmp_path / "run.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pandaa",), "no bundled robot named 'pandaa'; did you mean 'panda'?"),
        (("missing.urdf",), "no such file: 'missing.urdf'"),
        (("two_link", "--floating-base"), "for URDF files"),
        (("two_link", "--gains", "kq=3"), "slotine-li has no gain 'kq'; known: Lambda, kappa, rate"),
        (("two_link", "--gains", "Lambda=x"), "expected Lambda=number, got 'Lambda=x'"),
        (("two_link", "--gains", "Lambda=-1"), "Lambda: expected a positive number"),
        (("two_link", "--dt", "0"), "dt: expected a positive number of seconds, got 0"),
        (("two_link", "--seconds", "nan"), "seconds: expected a positive number of seconds, got nan"),
        (("two_link", "--control-dt", "0.0015"), "control-dt: expected a multiple of dt"),
        (("two_link", "--payload", "-1"), "payload: expected a mass >= 0 in kg, got -1"),
        (("two_link", "--payload", "1", "--payload-frame", "hand"), "no frame named 'hand'"),
        (("two_link", "--payload", "1", "--payload-frame", "world"), "fixed to the world"),
        (("two_link", "--payload-at", "-2"), "payload-at: expected a time >= 0"),
        (("two_link", "--method", "Euler", "--seconds", "0.01"), "Euler"),
    ],
)
def test_bad_arguments_end_with_status_2_and_a_message(arguments, message, tmp_path):
    result = run("track", *arguments, "--no-plots", "--out", tmp_path, status=2)
    assert message in result.output.replace("\n", " ")
    assert "Traceback" not in result.output


def test_unknown_controllers_are_refused_with_the_list(tmp_path):
    result = run("track", "two_link", "--controller", "lqr", "--out", tmp_path, status=2)
    assert "'lqr' is not one of 'pd-gravity'" in result.output
    assert "Value error" not in result.output


def test_a_folder_that_can_not_be_made_ends_with_status_2(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("track", "two_link", *SHORT, "--out", tmp_path / "file" / "out", status=2)
    assert "Traceback" not in result.output


# --- info, check, robots ---------------------------------------------------------------------------------------


def test_info_shows_joints_limits_mass_and_base_parameters():
    output = run("info", "panda").output
    for words in (
        "panda_joint4",
        "-3.07 .. -0.0698 rad",
        "87 N m",
        "16.0621 kg",
        "base parameters of 70",
        "panda_hand_tcp",
    ):
        assert words in output


def test_info_reads_a_urdf_by_path(tmp_path):
    path = tmp_path / "pendulum.urdf"
    path.write_text(URDF.format(ixx=0.08))
    assert "swing" in run("info", path).output
    assert "free base" in run("info", path, "--floating-base").output


@pytest.mark.parametrize("robot", ["two_link", "three_spheres"])
def test_check_passes_on_bundled_robots(robot):
    output = run("check", robot, "--states", 3).output
    assert "properties hold" in output
    assert "FAILS" not in output


def test_check_fails_with_the_reason_on_an_inertia_that_no_body_has(tmp_path):
    path = tmp_path / "pendulum.urdf"
    path.write_text(URDF.format(ixx=5.0))
    refused = run("check", path, status=2).output
    assert "rod" in refused
    failed = run("check", path, "--allow-nonphysical", "--states", 2, status=1).output
    assert "FAILS" in failed
    assert "body 'rod'" in failed.replace("\n", " ")


def test_robots_lists_all():
    output = run("robots").output
    for name in models.names():
        assert name in output


def test_help_teaches_by_example():
    assert "geomctrl track panda" in run("--help").output
    for command in ("track", "info", "check"):
        assert "Examples" in run(command, "--help").output
    assert "Exit status" in run("track", "--help").output
    assert "geomctrl robots" in run("info", "--help").output


# --- as a program ----------------------------------------------------------------------------------------------


def program(*arguments, cwd):
    command = [sys.executable, "-m", "geomctrl.cli", *arguments]
    path = os.pathsep.join([str(Path(gc.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"PYTHONPATH": path, "COLUMNS": "120"}
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300
    )


@pytest.mark.slow
def test_the_program_separates_results_from_complaints_and_sets_its_status(tmp_path):
    good = program("track", "two_link", "--seconds", "0.1", "--no-plots", "--out", "there", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert (tmp_path / "there" / "run.npz").stat().st_size > 0
    bad = program("info", "nobody", cwd=tmp_path)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("geomctrl: no bundled robot named 'nobody'")


@pytest.mark.slow
def test_a_warm_start_says_nothing_of_compiling(tmp_path):
    program("info", "two_link", cwd=tmp_path)
    assert "compil" not in program("info", "two_link", cwd=tmp_path).stdout


def test_info_imports_no_solver_filter_or_parser():
    """What takes seconds to import is not needed to show a bundled robot."""
    heavy = ["cvxpy", "matplotlib", "scipy.signal", "scipy.stats", "scipy.interpolate", "scipy.optimize", "yourdfpy"]
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom geomctrl.cli.main import app\n"
        "assert CliRunner().invoke(app, ['info', 'panda']).exit_code == 0\n"
        f"print(*(m for m in {heavy} if m in sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == ""


# --- scenarios -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", scenario.REFERENCES)
@pytest.mark.parametrize("robot", models.names())
def test_references_stay_within_limits_and_start_at_rest(robot, name):
    r = models.load(robot)
    motion = scenario.make_reference(name, r, 4.0, seed=3)
    samples = [motion(t) for t in np.linspace(0.0, 4.0, 200)]
    for joint, qs, vs in zip(r.joints, r.q_slices, r.v_slices):
        assert max(np.abs(d.v[vs]).max() for d in samples) <= 0.5 * joint.velocity + 1e-9
        if joint.dof == 1:
            assert joint.lower <= min(d.q[qs][0] for d in samples)
            assert joint.upper >= max(d.q[qs][0] for d in samples)
    np.testing.assert_allclose(samples[0].v, 0.0, atol=1e-12)
    assert max(np.abs(d.v).max() for d in samples) > 0.01


@pytest.mark.parametrize("robot", models.names())
def test_gains_keep_the_fastest_rate_within_what_a_step_follows(robot):
    r = models.load(robot)
    rule = scenario.design(r, 2e-3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        rates = np.linalg.eigvals(
            np.linalg.solve(r.mass_matrix(r.random_configuration(rng)), np.diag(rule.kappa * rule.D))
        )
        assert rates.real.max() <= scenario.FASTEST / 2e-3 * (1.0 + 1e-9)


def test_the_load_is_a_body_with_an_inertia_at_the_tool():
    panda = models.panda()
    heavy = scenario.loaded(panda, 2.0)
    assert scenario.tool_frame(panda) == "panda_hand_tcp"
    assert heavy.parameters[:, 0].sum() == pytest.approx(panda.parameters[:, 0].sum() + 2.0)
    assert gc.inertia.is_physical(heavy.parameters - panda.parameters + panda.parameters).all()
    assert (np.linalg.eigvalsh(gc.inertia.com_tensor((heavy.parameters - panda.parameters)[-1])) > 0.0).all()
    assert scenario.tool_frame(models.quadruped()) == "trunk"


def test_scenarios_refuse_what_they_do_not_know():
    r = models.two_link()
    for bad in (
        {"controller": "lqr"},
        {"controller": "slotine-li", "adapt": "all"},
        {"controller": "passivity", "reference": "circle"},
    ):
        with pytest.raises(GeomctrlError, match="expected"):
            scenario.Scenario.make(r, **bad)


def test_saved_verdicts_are_in_the_file(tmp_path):
    run("track", "two_link", *SHORT, "--out", tmp_path)
    with np.load(tmp_path / "run.npz") as f:
        assert set(json.loads(str(f["about"]))["monitors"]) == {"skew", "energy", "lyapunov", "group"}
