"""`geomctrl track LOOP.py`: a user-defined loop; and `--version` of every command."""

import numpy as np
import pytest
from command_line import run

import geomctrl as gc
from geomctrl import controllers, models

LOOP = """
import geomctrl as gc
from geomctrl import controllers, models
robot = models.two_link()
plant = gc.Plant(robot.with_payload(1.0, (0.1, 0, 0)))
controller = controllers.PDGravity(robot, [0.5, -0.5], kp=20.0, kd=5.0)
q0, v0, dt, control_dt, t_end = [0.0, 0.0], [0.0, 0.0], 1e-3, 5e-3, {t_end}
progress = "the command's own"
"""


SPEED = """
class Speed(gc.monitors.Monitor):
    name, what, limit = "speed", "fastest joint, rad/s", 1e-3
    def measure(self, sample):
        return abs(sample.v).max()
monitors = [Speed()]
"""


def test_what_is_unresolved_is_explained_and_no_failure(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP.format(t_end=0.2) + "monitors = [gc.monitors.EnergyBalance(limit=1e-30)]\n")
    output = run("track", tmp_path / "loop.py", "--no-plots", "--strict", "--out", tmp_path / "out").output
    assert "UNRESOLVED (dH/dt equals the power at the samples; the drift is integration error" in " ".join(
        output.split()
    )
    assert gc.Run.load(tmp_path / "out" / "run.npz").ok is None


def test_a_file_says_what_the_loop_is(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP.format(t_end=0.2))
    output = run("track", tmp_path / "loop.py", "--no-plots", "--out", tmp_path / "out").output
    kept = gc.Run.load(tmp_path / "out" / "run.npz")
    robot = models.two_link()
    law = controllers.PDGravity(robot, [0.5, -0.5], kp=20.0, kd=5.0)
    plant = gc.Plant(robot.with_payload(1.0, (0.1, 0, 0)))
    same = gc.simulate(plant, law, [0.0, 0.0], [0.0, 0.0], 0.2, 1e-3, control_dt=5e-3)
    assert np.array_equal(kept.q, same.q)
    assert np.array_equal(kept.tau, same.tau)
    assert "Run of PDGravity on two_link: 201 samples" in output
    report = (tmp_path / "out" / "report.txt").read_text()
    assert all(f"  {name}: " in report for name in same.monitors)


def test_strict_is_the_files_or_the_options(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP.format(t_end=0.2) + SPEED)
    arguments = ("track", tmp_path / "loop.py", "--no-plots", "--out", tmp_path / "out")
    run(*arguments)
    assert "'speed'" in run(*arguments, "--strict", status=1).output
    assert len(gc.Run.load(tmp_path / "out" / "run.npz").t) < 201
    (tmp_path / "loop.py").write_text(
        (tmp_path / "loop.py").read_text() + "options = gc.SimulationOptions(strict=True)\n"
    )
    run(*arguments, status=1)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            LOOP.format(t_end=0.2),
            ("--payload", "2"),
            "payload: can not be given with loop.py, which defines the whole loop",
        ),
        (LOOP.format(t_end=0.2), ("--control-dt", "0.01"), "control-dt: can not be given with loop.py"),
        ("plant = 1", (), "expected controller, q0, v0, t_end, dt in"),
        (LOOP.format(t_end=-1.0), (), "t_end: expected"),
        (LOOP.format(t_end="'long'"), (), "t_end: expected"),
        (None, (), "no such file"),
    ],
)
def test_what_is_no_loop_is_refused(text, options, message, tmp_path):
    if text is not None:
        (tmp_path / "loop.py").write_text(text)
    result = run("track", tmp_path / "loop.py", *options, "--out", tmp_path / "out", status=2)
    assert message in " ".join(result.output.split())
    assert not list(tmp_path.glob("out/*"))


def test_the_version_is_said():
    assert run("--version").output == f"geomctrl {gc.__version__}\n"
