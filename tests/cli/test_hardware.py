"""`geomctrl track` with a law from a file, with actuators and sensors."""

import numpy as np
import pytest
from command_line import run

from geomctrl import models
from geomctrl.cli import hardware
from geomctrl.cli.user_files import law_class
from geomctrl.control.actuators import Lag, RateLimit, Saturation, TransportDelay
from geomctrl.errors import ArgumentError, NameNotFoundError

OWN = """
import geomctrl as gc

class Law:
    def __init__(self, robot, reference):
        self.robot, self.reference = robot, reference
    def start(self):
        return None
    def __call__(self, t, q, v, z):
        e = q - self.reference(t).q
        return gc.Command(self.robot.gravity_force(q) - 20.0 * e - 4.0 * v, None, {"largest": e @ e})

class Other:
    def __init__(self, gains, robot, reference):
        pass
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "my.py").write_text(OWN)
    return tmp_path / "my.py"


def test_a_law_from_a_file_on_hardware(own, tmp_path):
    result = run(
        "track", "two_link", "--controller", f"{own}:Law", "--actuators", "delay=2ms,lag=5ms,limits=30", "--sensors",
        "bits=14,noise=1e-5,cutoff=50", "--seconds", "0.2", "--control-dt", "1e-3", "--out", tmp_path / "out",
    )  # fmt: skip
    assert "actuators: delay=2ms,lag=5ms,limits=30; sensors: bits=14" in result.output.replace("\n", " ")
    assert (tmp_path / "out" / "signals.png").is_file()
    with np.load(tmp_path / "out" / "run.npz") as f:
        assert not f["tau"][:2].any() or not np.array_equal(f["tau"], f["applied"])


def test_words_are_actuators_in_their_order():
    panda = models.panda()
    outcome = hardware.actuators("delay=2ms, rate=1e3, lag=0.5s, limits", panda)
    assert [type(x) for x in outcome] == [TransportDelay, RateLimit, Lag, Saturation]
    assert outcome[0].delay == 2e-3
    assert outcome[2].time_constant == 0.5
    np.testing.assert_array_equal(outcome[3].upper, panda.limits.effort)
    (encoder,) = hardware.sensors("bits=12,delay=500us", 3)
    assert (encoder.delay, encoder.seed) == (5e-4, 3)
    np.testing.assert_allclose(encoder.resolution, 2.0 * np.pi / 4096)
    assert hardware.sensors(None, 0) == hardware.actuators("", panda) == []


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("limit", "actuators: expected limits, lag, delay, rate, joints, got 'limit'"),
        ("lag", "lag: expected lag=NUMBER"),
        ("lag=fast", "actuators: lag: expected a number, in s, ms or us, got 'fast'"),
        ("rate=5ms", "actuators: rate: expected a number, got '5ms'"),
        ("delay=-1ms", "delay: expected seconds >= 0"),
        ("joints=3", "actuators: joints: expected no number, got 3"),
        ("limits", "actuators: limits: two_link has no limits: expected limits=NUMBER"),
    ],
)
def test_words_that_are_no_actuators(message, said):
    with pytest.raises(ArgumentError, match=said):
        hardware.actuators(message, models.two_link())


@pytest.mark.slow
def test_a_free_base_is_driven_where_that_is_said(tmp_path):
    """By default the other joints are commanded too; with `joints` only, the centre of mass falls freely."""
    robot = models.quadruped()
    for words, said in (
        (
            [],
            "driven: all 18 coordinates, those of the free 'root_joint' too, by a wrench on its body; the other joints",
        ),
        (["--actuators", "joints"], "driven: all joints but the free 'root_joint', which moves freely"),
    ):
        result = run(
            "track", "quadruped", "--controller", "passivity", "--seconds", "0.1", "--control-dt", "1e-3", *words,
            "--no-plots", "--out", tmp_path / "out",
        )  # fmt: skip
        assert said in result.output.replace("\n", " ")
        with np.load(tmp_path / "out" / "run.npz") as f:
            q, v, applied, tau = f["q"], f["v"], f["applied"] if words else f["tau"], f["tau"]
        weight = 9.81 * robot.parameters[:, 0].sum()
        risen = (robot.potential_energy(q[-1]) - robot.potential_energy(q[0])) / weight
        thrown = 0.1 * robot.gravity_force(q[0]) @ v[0] / weight - 0.5 * 9.81 * 0.1**2
        assert np.abs(tau[:, :6]).max() > 10.0
        assert np.abs(applied[:, 6:]).max() > 0.5
        if words:
            assert not applied[:, :6].any()
        assert bool(abs(risen - thrown) < 1e-3 * abs(thrown)) is bool(words)


def test_joints_that_are_driven_alone():
    for robot in (models.quadruped(), models.three_spheres(), models.panda()):
        (outcome,) = hardware.actuators("joints", robot)
        free = 6 if robot.joints[0].kind == "free" else 0
        np.testing.assert_array_equal(outcome.B, np.diag([0.0] * free + [1.0] * (robot.nv - free)))
    with pytest.raises(ArgumentError, match="joints: quadrotor has only free joints"):
        hardware.actuators("joints", models.quadrotor())
    assert hardware.driven(models.panda(), []) == ""
    assert hardware.driven(models.quadrotor(), []).endswith("by a wrench on its body")


@pytest.mark.parametrize(
    ("message", "said"), [("bits=12.5", "bits: expected a whole number"), ("counts=3", "expected")]
)
def test_words_that_are_no_sensors(message, said):
    with pytest.raises(ArgumentError, match=f"sensors: {said}"):
        hardware.sensors(message, 0)


def test_files_without_such_a_law(own):
    with pytest.raises(NameNotFoundError, match=r"controller: my\.py has no class 'Missing'; it has Law, Other"):
        law_class(f"{own}:Missing")
    with pytest.raises(
        ArgumentError, match=r"constructed as Other\(robot, reference\), got Other\(gains, robot, reference\)"
    ):
        law_class(f"{own}:Other")
    with pytest.raises(ArgumentError, match="controller: no such file"):
        law_class(f"{own.parent / 'nothing.py'}:Law")
    with pytest.raises(NameNotFoundError, match=r"or FILE\.py:CLASS, got 'slotine'"):
        law_class("slotine")
