"""Robots from Denavit-Hartenberg tables in TOML files."""

from pathlib import Path

import numpy as np
import pytest
from lib import logs

from geomctrl import Robot, models
from geomctrl.errors import GeomctrlError

LOGS = Path(__file__).parents[2] / "experiments" / "logs"
ARM = """
[robot]
convention = "modified"
a = [0, 0.4, 0.3]
alpha = [0, 1.0, -0.5]
d = [0.2, 0, 0.1]
theta = [0.1, 0.2, 0.3]
masses = [3, 2, 1]
joints = ["pan", "lift", "reach"]
prismatic = ["reach"]
effort = [50, 40, 30]
gravity = [0, 3, -9]
"""


@pytest.mark.parametrize("name", ["kr300", "tx40"])
def test_a_table_in_degrees_is_the_robot_of_the_study(name):
    robot, own = models.load(LOGS / f"{name}.toml"), getattr(logs, name)()
    assert robot.name == own.name
    assert robot.joint_names == own.joint_names
    for part in ("placements", "gravity"):
        np.testing.assert_allclose(getattr(robot, part), getattr(own, part), atol=1e-15)
    np.testing.assert_allclose(robot.parameters, own.parameters, rtol=1e-15)
    for a, b in zip(robot.joints, own.joints):
        np.testing.assert_allclose(a.S, b.S, atol=1e-15)


def test_every_key_arrives(tmp_path):
    (tmp_path / "arm.toml").write_text(ARM)
    robot = models.load(tmp_path / "arm.toml")
    body = np.array([1.0, 0, 0, 0, 0.01, 0, 0.01, 0, 0, 0.01])
    own = Robot.from_dh(
        [0, 0.4, 0.3], [0, 1.0, -0.5], [0.2, 0, 0.1], [0.1, 0.2, 0.3], convention="modified", prismatic=[2],
        inertias=[m * body for m in (3, 2, 1)], gravity=(0, 3, -9),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 5, 3))
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), own.inverse_dynamics(q, v, a), rtol=1e-12)
    assert (robot.name, robot.joint_names) == ("arm", ("pan", "lift", "reach"))
    np.testing.assert_array_equal(robot.limits.effort, [50, 40, 30])
    assert np.isinf(robot.limits.upper).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[robot]", "[bot]", r"expected a table \[robot\]"),
        ("a = [0, 0.4, 0.3]", "a = 3", "a: expected as many numbers, one per joint, got 3"),
        ("d = [0.2, 0, 0.1]", "d = [0.2, 0]", r"d: expected 3 numbers, one per joint, got \[0.2, 0\]"),
        ("d = [0.2, 0, 0.1]", "d = [0.2, true, 0.1]", r"d: expected 3 numbers"),
        ("d = [0.2, 0, 0.1]", "d = [0.2, nan, 0.1]", r"d: expected finite numbers, got nan"),
        ("d = [0.2, 0, 0.1]", "", "d: missing"),
        ("masses", "mass", "mass: expected some of name, convention"),
        ("3, 2, 1]", "3, -2, 1]", "mass -2 is negative"),
        ('"modified"', '"craig"', "convention: expected 'standard' or 'modified', got 'craig'"),
        ('["reach"]', '["grab"]', "prismatic: expected some of pan, lift, reach, got 'grab'"),
        ('["pan", "lift", "reach"]', '["pan"]', "joints: expected 3 names, one per number in `a`, got 1"),
        ("[0, 3, -9]", "[0, 3]", "gravity: expected 3 numbers"),
        ("[0, 3, -9]", '[0, 3, -9]\nangles = "grad"', "angles: expected 'rad' or 'deg', got 'grad'"),
        ("a = [0,", "a = [0;", "not a TOML file: .*line 4"),
    ],
)  # fmt: skip
def test_tables_that_are_none_are_refused_with_file_and_key(old, new, message, tmp_path):
    assert old in ARM
    (tmp_path / "arm.toml").write_text(ARM.replace(old, new))
    with pytest.raises(GeomctrlError, match=rf"arm\.toml: .*{message}"):
        models.load(tmp_path / "arm.toml")
    with pytest.raises(GeomctrlError, match=r"none\.toml: No such file"):
        models.load(tmp_path / "none.toml")
