"""`geomctrl info`, `check` and `robots`, and the program as a whole."""

import io
import subprocess
import sys

import numba
import pytest
from command_line import program, run
from rich.console import Console

from geomctrl import models
from geomctrl.cli.terminal import compiling
from geomctrl.kernels.jit import kernel

URDF = """<robot name="pendulum"><link name="base"><inertial><mass value="2"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="0.08" iyz="0" izz="0.001"/></inertial></link>
<joint name="swing" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="1 0 0"/></joint></robot>"""


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


@pytest.mark.quick(1)
@pytest.mark.parametrize("robot", ["two_link", "three_spheres"])
def test_check_passes_on_bundled_robots(robot):
    output = run("check", robot, "--states", 3).output
    assert "properties hold" in output
    assert "FAILS" not in output


def test_check_fails_with_the_reason_on_an_inertia_that_no_body_has(tmp_path):
    path = tmp_path / "pendulum.urdf"
    path.write_text(URDF.format(ixx=5.0))
    refused = run("check", path, "--physical", "required", status=2).output
    assert "rod" in refused
    with pytest.warns(match="link 'rod'"):
        failed = run("check", path, "--states", 2, status=1).output
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


@pytest.mark.slow
def test_the_program_separates_results_from_complaints_and_sets_its_status(tmp_path):
    good = program("track", "two_link", "--seconds", "0.1", "--no-plots", "--out", "there", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert (tmp_path / "there" / "run.npz").stat().st_size > 0
    bad = program("info", "nobody", cwd=tmp_path)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("geomctrl: ROBOT: no bundled robot named 'nobody'")


@pytest.mark.slow
def test_a_warm_start_says_nothing_of_compiling(tmp_path):
    check = ("check", "two_link", "--states", "1")
    program(*check, cwd=tmp_path)
    warm = program(*check, cwd=tmp_path)
    assert warm.returncode == 0
    assert "compil" not in warm.stdout


def test_compiling_is_announced_once_and_loading_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def said():
        first, second = (kernel("f8(f8)")(function) for function in (doubled, tripled))
        console = Console(file=io.StringIO(), width=200)
        with compiling(console, "a second"):
            assert (first(1.0), second(1.0)) == (2.0, 3.0)
        return console.file.getvalue()

    cold = said()
    assert cold.count("compiling kernels, about a second; later runs load them from the cache") == 1
    assert cold.count("compiled in") == 1
    assert said() == ""


def doubled(x):
    return 2.0 * x


def tripled(x):
    return 3.0 * x


def test_info_imports_no_compiler_solver_filter_or_parser():
    """Showing a bundled robot imports no library that takes seconds to import, and compiles nothing."""
    heavy = [
        "numba",
        "cvxpy",
        "matplotlib",
        "scipy.signal",
        "scipy.stats",
        "scipy.interpolate",
        "scipy.optimize",
        "yourdfpy",
    ]
    code = (
        "import sys\nfrom geomctrl.cli.main import run\n"
        "assert run(['info', 'panda']) == 0\n"
        f"print('HEAVY', *(m for m in {heavy} if m in sys.modules))"
    )
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert output.splitlines()[-1] == "HEAVY"


def test_options_for_urdf_are_refused_elsewhere(tmp_path):
    (tmp_path / "arm.xml").write_text("<mujoco/>")
    for robot in ("panda", tmp_path / "arm.xml"):
        assert "for URDF files, not for" in run("info", robot, "--floating-base", status=2).output


def test_export_writes_c(tmp_path):
    output = run(
        "export", "two_link", "--terms", "mass_matrix, gravity_force", "--out", tmp_path, "--name", "arm"
    ).output
    assert "arm.h" in output
    assert "int arm_gravity_force(const double q[2], double g[2]);" in (tmp_path / "arm.h").read_text()


def test_export_says_what_there_is(tmp_path):
    refused = run("export", "two_link", "--terms", "mass", "--out", tmp_path, status=2)
    assert "mass_matrix" in refused.output


def test_an_unexpected_error_has_a_status_of_its_own(monkeypatch, capfd):
    """Exit status 1 of `identify` means that its result is not to be trusted."""
    from geomctrl.cli import main

    def broken(arguments):
        raise ZeroDivisionError("of geomctrl itself")

    monkeypatch.setattr(main, "run", broken)
    for name in ("SIGTERM", "SIGHUP"):
        monkeypatch.setattr(main.signal, name, None, raising=False)
        monkeypatch.delattr(main.signal, name)
    assert main.main() == 70
    assert "ZeroDivisionError: of geomctrl itself" in capfd.readouterr().err
