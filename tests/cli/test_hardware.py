"""`geomctrl track` with a law from a file, with actuators and sensors."""

import numpy as np
import pytest
from command_line import run

from geomctrl import models
from geomctrl.cli import hardware
from geomctrl.cli.laws import law_class
from geomctrl.control.actuators import Lag, RateLimit, TorqueLimits, TransportDelay
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
    found = hardware.actuators("delay=2ms, rate=1e3, lag=0.5s, limits", panda)
    assert [type(x) for x in found] == [TransportDelay, RateLimit, Lag, TorqueLimits]
    assert found[0].delay == 2e-3
    assert found[2].time_constant == 0.5
    np.testing.assert_array_equal(found[3].upper, panda.limits.effort)
    (encoder,) = hardware.sensors("bits=12,delay=500us", 3)
    assert (encoder.delay, encoder.seed) == (5e-4, 3)
    np.testing.assert_allclose(encoder.resolution, 2.0 * np.pi / 4096)
    assert hardware.sensors(None, 0) == hardware.actuators("", panda) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("limit", "actuators: expected limits, lag, delay, rate, got 'limit'"),
        ("lag", "lag: expected lag=NUMBER"),
        ("lag=fast", "actuators: lag: expected a number, in s, ms or us, got 'fast'"),
        ("rate=5ms", "actuators: rate: expected a number, got '5ms'"),
        ("delay=-1ms", "delay: expected seconds >= 0"),
        ("limits", "actuators: limits: two_link has none of its own: expected limits=NUMBER"),
    ],
)
def test_words_that_are_no_actuators(words, said):
    with pytest.raises(ArgumentError, match=said):
        hardware.actuators(words, models.two_link())


@pytest.mark.parametrize(("words", "said"), [("bits=12.5", "bits: expected a whole number"), ("counts=3", "expected")])
def test_words_that_are_no_sensors(words, said):
    with pytest.raises(ArgumentError, match=f"sensors: {said}"):
        hardware.sensors(words, 0)


def test_files_without_such_a_law(own):
    with pytest.raises(NameNotFoundError, match=r"controller: my\.py has no class 'Missing'; it has Law, Other"):
        law_class(f"{own}:Missing")
    with pytest.raises(ArgumentError, match=r"made as Other\(robot, reference\), got Other\(gains, robot, reference\)"):
        law_class(f"{own}:Other")
    with pytest.raises(ArgumentError, match="controller: no such file"):
        law_class(f"{own.parent / 'nothing.py'}:Law")
    with pytest.raises(NameNotFoundError, match=r"or FILE\.py:CLASS, got 'slotine'"):
        law_class("slotine")
