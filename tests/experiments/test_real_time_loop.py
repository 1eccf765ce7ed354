"""Laws in a real-time loop: both C programs move a robot as `geomctrl.simulate` does, and stop as a drive would."""

import shutil
import subprocess

import numpy as np
import pytest
from hardware import real_time_loop as loop

from geomctrl import Command, controllers, models, references

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
ROBOT = models.two_link()
PLANT = ROBOT.with_payload(0.5, (0.0, 0.0, 0.1))
MOTION = references.Sinusoids(ROBOT, [0.3, 0.6], amplitude=0.3, frequency=0.5)
Q, V, SECONDS = np.array([0.2, 0.5]), np.array([0.1, -0.3]), 0.2


class Integral:
    """A law whose state is replaced at each sample, without a rate."""

    robot = ROBOT

    def start(self):
        return np.zeros(2)

    def __call__(self, t, q, v, z):
        return Command(-40.0 * q - 8.0 * v - z, z_next=z + 0.02 * q)


LAWS = {
    "no state": controllers.PDGravity(ROBOT, [0.5, 0.2], kp=50.0, kd=10.0),
    "a rate": controllers.SlotineLi(ROBOT, MOTION, Lambda=5.0, K=5.0),
    "a next state": Integral(),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_motion_is_that_of_the_simulation(name, tmp_path):
    programs = loop.built(LAWS[name], PLANT, tmp_path)
    result = loop.measured(programs, Q, V, SECONDS, lockstep=True, folder=tmp_path)
    run = loop.simulated(LAWS[name], PLANT, Q, V, SECONDS)
    assert result.end == "all samples"
    assert len(result.q) == 200
    assert not result.missed.any()
    samples = slice(0, -1, loop.STEPS)
    np.testing.assert_allclose(result.q, run.q[samples], atol=1e-12)
    np.testing.assert_allclose(result.v, run.v[samples], atol=1e-11)
    np.testing.assert_allclose(result.tau, run.tau[samples], atol=1e-10)


@pytest.fixture
def programs(tmp_path):
    return loop.built(LAWS["no state"], PLANT, tmp_path)


def test_the_robot_keeps_the_clock(programs, tmp_path):
    result = loop.measured(programs, Q, V, SECONDS, lockstep=False, folder=tmp_path)
    assert len(result.period) == len(result.q) - 1
    if result.end == "all samples":  # a busy machine may miss ten in a row
        assert result.period.sum() == pytest.approx(SECONDS - 1e-6 * loop.PERIOD, abs=0.02)
    held = np.flatnonzero(result.missed[1:]) + 1
    np.testing.assert_array_equal(result.tau[held], result.tau[held - 1])
    assert "too late" in result.summary


def test_the_robot_stops_without_a_controller(programs, tmp_path):
    options = ["1000", str(loop.PERIOD), str(loop.STEPS), str(loop.DEADLINE), tmp_path / "robot.csv"]
    state = [repr(float(x)) for x in (*Q, *V)]
    robot = subprocess.Popen([programs[1], *options, *state], stdout=subprocess.PIPE, text=True)
    port = robot.stdout.readline().split()[-1]
    subprocess.run([programs[0], port, "50", str(loop.PERIOD), tmp_path / "c.csv"], check=True, stdout=subprocess.PIPE)
    assert robot.wait(timeout=30.0) == 0
    robot.communicate()
    lines = (tmp_path / "robot.csv").read_text().splitlines()
    assert lines[0] in ("# end: too many torques missed", "# end: no controller")
    assert len(lines) - 2 <= 60


def test_the_robot_stops_when_the_law_has_no_result(programs, tmp_path):
    (tmp_path / "law.h").write_text("int law_step(double t, const double q[2], const double v[2], double tau[2]);\n")
    (tmp_path / "law.c").write_text(
        '#include "law.h"\nint law_step(double t, const double q[2], const double v[2], double tau[2])\n'
        "{ (void)q; (void)v; tau[0] = tau[1] = 1.0; return t < 0.0495; }\n"
    )
    files = [loop.HERE / "controller.c", tmp_path / "law.c"]
    sizes = ["-DNQ=2", "-DNV=2", f"-I{tmp_path}", f"-I{loop.HERE}"]
    subprocess.run([COMPILER, "-std=gnu11", *sizes, "-o", programs[0], *files], check=True)
    result = loop.measured(programs, Q, V, SECONDS, lockstep=True, folder=tmp_path)
    assert result.end == "no valid command"
    assert len(result.q) == 51  # samples 0 to 49, and the one without a result
    np.testing.assert_array_equal(result.tau[:-1], np.ones((50, 2)))


def test_what_it_can_not_do_is_said(tmp_path, monkeypatch):
    robot = models.quadrotor()
    law = controllers.PDGravity(ROBOT, [0.5, 0.2], kp=50.0, kd=10.0)
    with pytest.raises(SystemExit, match="as many coordinates as velocities"):
        loop.built(law, robot, tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(SystemExit, match="no C compiler"):
        loop.built(law, ROBOT, tmp_path)
