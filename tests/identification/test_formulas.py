"""User-defined columns from formulas: arithmetic on joint states."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from lib import logs

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.identification import RegressorModel
from geomctrl.identification.model.columns import load_columns

LOGS = Path(__file__).parents[2] / "experiments" / "logs"
ARM = models.two_link()


def columns(tmp_path, text):
    (tmp_path / "own.toml").write_text(text)
    return load_columns(tmp_path / "own.toml", ARM)


def test_the_counterbalance_is_that_of_the_study():
    (own,), theirs = load_columns(LOGS / "kr300.toml", logs.kr300()), logs.kr300_counterbalance()
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 6)) - [0, 1.5, 0, 0, 0, 0]
    np.testing.assert_allclose(own.torque(q, 0 * q, 0 * q), theirs.torque(q, 0 * q, 0 * q), rtol=1e-13)
    assert own.name == theirs.name


def test_formulas_mean_what_they_say(tmp_path):
    text = """
    [[column]]
    name = "all"
    joint = "joint2"
    torque = "-x**2 + atan2(q1, 2) * max(v1, v2) / 4 - abs(a) * sign(q) + min(tanh(v), pi) + y"
    where.x = "q1 + 30 * deg"
    where.y = 7
    positive = true
    initial = 0.5
    [[column]]
    name = "constant"
    joint = "joint1"
    torque = "1"
    """
    first, second = columns(tmp_path, text)
    q, v, a = np.random.default_rng(1).normal(size=(3, 9, 2))
    expected = (
        -((q[:, 0] + np.pi / 6) ** 2) + np.arctan2(q[:, 0], 2) * v.max(1) / 4 - np.abs(a[:, 1]) * np.sign(q[:, 1])
        + np.tanh(v[:, 1]) + 7
    )  # fmt: skip
    np.testing.assert_allclose(first.torque(q, v, a), np.stack((0 * expected, expected), -1), rtol=1e-13)
    np.testing.assert_array_equal(second.torque(q, v, a), [[1.0, 0.0]] * 9)
    assert (first.positive, first.initial, second.positive) == (True, 0.5, False)
    model = RegressorModel(ARM, columns=[first, second])
    assert model.names[-2:] == ["all", "constant"]
    np.testing.assert_allclose(model.regressor(q, v, a)[:, 1, -2], expected, rtol=1e-13)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(second)).torque(q, v, a), second.torque(q, v, a))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('torque = "q + lever"', r"\[\[column\]\] 'x': torque: unknown name 'lever'"),
        ('torque = "q3"', "torque: unknown name 'q3'; did you mean 'q"),
        ('torque = "leverr"\nwhere.lever = 1', "unknown name 'leverr'; did you mean 'lever'"),
        ('torque = "q +"', r"torque: expected a formula, got 'q \+': invalid syntax"),
        ('torque = "__import__(q)"', r"expected arithmetic and sin, .*, got '__import__\(q\)'"),
        ('torque = "q.real"', r"expected arithmetic and sin.*got 'q.real'"),
        ('torque = "sin(q, v)"', r"expected arithmetic and sin.*got 'sin\(q, v\)'"),
        ('torque = "sin"', "unknown name 'sin'"),
        ('torque = "q > 0"', "expected arithmetic"),
        ('torque = "\'q\'"', "expected arithmetic"),
        ('torque = "q @ v"', "expected arithmetic"),
        ("torque = 3", "torque: expected a string, got 3"),
        ('torque = "x"\nwhere.x = [1]', r"x: expected a number or a formula, got \[1\]"),
        ('torque = "x"\nwhere.x = "torque"', "x: unknown name 'torque'"),
        ('torque = "q"\nwhere.q = 1', "where.q: expected an unused name, got 'q'"),
        ('torque = "q"\nwhere.sin = 1', "where.sin: expected an unused name"),
        ('torque = "q"\nweight = 1', "weight: expected some of name, joint, torque, where"),
        ('torque = "q"\npositive = 1', "positive: expected True or False"),
    ],
)  # fmt: skip
def test_what_is_no_arithmetic_is_refused_by_name(lines, words, tmp_path):
    with pytest.raises(ArgumentError, match=words):
        columns(tmp_path, f'[[column]]\nname = "x"\njoint = "joint1"\n{lines}\n')


def test_columns_of_other_joints_and_formulas_without_a_value_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="joint: expected one of joint1, joint2, got 'elbow'"):
        columns(tmp_path, '[[column]]\nname = "x"\njoint = "elbow"\ntorque = "q"\n')
    with pytest.raises(ArgumentError, match="column: expected tables"):
        columns(tmp_path, "column = 3\n")
    assert columns(tmp_path, "[log]\n") == []
    (bad,) = columns(tmp_path, '[[column]]\nname = "x"\njoint = "joint1"\ntorque = "log(-abs(q))"\n')
    q = np.ones((3, 2))
    with pytest.raises(ArgumentError, match="column 'x': expected finite torques"):
        RegressorModel(ARM, columns=[bad]).regressor(q, q, q)
