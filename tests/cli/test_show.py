"""`geomctrl show`: pages of robots and runs, and its error messages."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from command_line import run

import geomctrl as gc
from geomctrl import controllers, models

pytest.importorskip("viser")

URDF = """<robot name="arm"><link name="base"/><link name="link"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="turn" type="continuous">
<parent link="base"/><child link="link"/><axis xyz="0 0 1"/></joint></robot>"""


def saved(robot, path):
    law = controllers.PDGravity(robot, robot.neutral())
    return gc.simulate(robot, law, robot.neutral(), np.zeros(robot.nv), 0.05, 1e-3).save(path)


def test_a_robot_is_written_as_a_page(tmp_path):
    out = tmp_path / "deep" / "robot.html"
    assert f"wrote {out}" in run("show", "two_link", "--out", out).output
    text = out.read_text(encoding="utf-8")
    assert "<title>two_link</title>" in text
    assert len(text) < 3e6


def test_a_run_knows_its_robot(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(URDF, encoding="utf-8")
    for name, robot in (("two_link", models.two_link()), ("arm", models.load_urdf(file))):
        path = saved(robot, tmp_path / f"{name}.npz")
        run("show", path, "--out", tmp_path / "run.html")
        assert f"<title>{name}</title>" in (tmp_path / "run.html").read_text(encoding="utf-8")
    file.unlink()
    assert "'arm' of" in run("show", path, "--out", tmp_path / "run.html", status=2).output
    assert "--robot" in run("show", path, "--out", tmp_path / "run.html", status=2).output


def test_what_can_not_be_shown(tmp_path):
    own = gc.Robot.build(
        [gc.Body("b", None, gc.Joint.revolute((0, 0, 1)), None, gc.inertia.from_com(1, (0, 0, 0), np.eye(3)))]
    )
    path = saved(own, tmp_path / "own.npz")
    for words, said in (
        (("show", path), "names no robot: give --robot"),
        (("show", path, "--robot", "panda"), "nq = 7 and nv = 7, the run 1 and 1"),
        (("show", tmp_path / "none.npz"), "RUN: no such file"),
        (("show", "pnada"), "did you mean 'panda'?"),
        (("show", "panda", "--robot", "panda"), "--robot: for runs"),
        (("show", "panda", "--frames", "hand", "--out", tmp_path / "x.html"), "no frame named 'hand'"),
    ):
        assert said in " ".join(run(*words, status=2).output.split())
    assert not (tmp_path / "x.html").exists()


def test_without_the_extra_it_says_which(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    result = run("show", "two_link", "--out", tmp_path / "x.html", status=1)
    assert "pip install 'geomctrl[view]'" in result.output


@pytest.mark.slow
def test_sliders_until_ctrl_c():
    command = [sys.executable, "-m", "geomctrl.cli", "show", "two_link", "--port", "0"]
    env = os.environ | {"SSH_CONNECTION": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    assert "two_link: http://localhost:" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert "closed" in process.communicate(timeout=60)[0]
    assert process.returncode == 0
