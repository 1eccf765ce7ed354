"""Standard output that can not be written: the command continues, saves its results, and its exit status shows it."""

import errno
import os
import signal
import subprocess
import sys

import pytest
from command_line import run

from geomctrl.cli import terminal
from geomctrl.control.run import Run

TRACK = "track", "two_link", "--seconds", "0.05", "--no-plots", "--no-compare"
LOOP = """from geomctrl import Plant, controllers, models
import numpy as np
robot = models.two_link()
plant, controller = Plant(robot), controllers.PDGravity(robot, robot.neutral())
q0, v0, t_end, dt = robot.neutral(), np.zeros(2), 0.05, 1e-3
"""


def command(*message, stdout, **environment):
    """Return (exit status, standard error) of the program with its output going to a file or descriptor."""
    arguments = [sys.executable, "-m", "geomctrl.cli", *map(str, message)]
    done = subprocess.run(
        arguments, stdout=stdout, stderr=subprocess.PIPE, text=True, env=os.environ | environment, timeout=300
    )
    return done.returncode, done.stderr


@pytest.fixture
def closed():
    """The writing end of a pipe whose reading end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


needs_full_device = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")


def saved(out):
    return sorted(p.name for p in out.iterdir()) == ["report.txt", "run.npz"]


@pytest.mark.quick(1)
@needs_full_device
@pytest.mark.parametrize("own", [False, True])
def test_a_run_is_saved_though_its_report_can_not_be_printed(tmp_path, own):
    (tmp_path / "loop.py").write_text(LOOP)
    message = ("track", tmp_path / "loop.py", "--no-plots") if own else TRACK
    with open("/dev/full", "w") as full:
        status, said = command(*message, "--out", tmp_path / "out", stdout=full)
    assert (status, said) == (2, "geomctrl: No space left on device: standard output\n")
    assert saved(tmp_path / "out")


def test_a_reader_that_left_is_no_failure(tmp_path, closed):
    assert command(*TRACK, "--out", tmp_path / "out", stdout=closed) == (0, "")
    assert saved(tmp_path / "out")
    assert command("info", "panda", stdout=closed) == (0, "")


@pytest.mark.skipif(os.name == "nt", reason="a shell closes them")
def test_closed_streams_lose_nothing(tmp_path):
    program = [sys.executable, "-m", "geomctrl.cli", *TRACK, "--out", str(tmp_path / "out")]
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *program], timeout=300)
    assert done.returncode == 0
    assert saved(tmp_path / "out")


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(
        """<robot name="ärm"><link name="b"/><link name="ü"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"
ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous"><parent link="b"/><child link="ü"/>
<axis xyz="0 0 1"/></joint></robot>""", encoding="utf-8",
    )  # fmt: skip
    return path


def test_characters_that_the_encoding_lacks_are_replaced(tmp_path, urdf):
    with open(tmp_path / "said", "w") as file:
        assert command("info", urdf, stdout=file, PYTHONIOENCODING="ascii") == (0, "")
    text = (tmp_path / "said").read_text(encoding="ascii")
    assert "?rm: 1 body" in text


@pytest.mark.slow
def test_reports_are_in_utf_8_whatever_the_encoding_of_the_terminal_is(tmp_path, urdf):
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with open(tmp_path / "said", "w") as file:
        message = ("track", urdf, "--seconds", "0.05", "--no-compare", "--no-plots", "--out", tmp_path / "out")
        assert command(*message, stdout=file, **environment) == (0, "")
    assert "ärm" in (tmp_path / "out" / "report.txt").read_text(encoding="utf-8")


def test_the_run_is_on_disk_before_the_report_is_printed(tmp_path, monkeypatch):
    """Different ways in which the program ends while it prints."""

    def killed(self, text):
        if "two_link, slotine-li" in text:  # the first line of the output
            raise SystemExit(128 + signal.SIGTERM)
        return len(text)

    monkeypatch.setattr(terminal.Stdout, "write", killed)
    run(*TRACK, "--out", tmp_path / "out", status=128 + signal.SIGTERM)
    assert saved(tmp_path / "out")


def test_what_can_not_be_saved_is_printed(tmp_path, monkeypatch):
    (tmp_path / "out" / "report.txt").mkdir(parents=True)
    assert "properties behind the proof" in run(*TRACK, "--out", tmp_path / "out", status=2).output

    def full(self, path):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Run, "save", full)
    said = " ".join(run(*TRACK, "--out", tmp_path / "out", status=1).output.split())
    assert "properties behind the proof" in said
    assert "run.npz; the run is not saved; No space left on device" in said
