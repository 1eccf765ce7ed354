"""The testing helpers catch what they are for."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from oracles import properties

from geomctrl import factored, inertia, models, testing
from geomctrl.errors import ArgumentError


def test_a_wrong_coriolis_matrix_fails_with_the_state_that_breaks_it():
    robot = models.panda()

    def plain(q, v):
        return factored.coriolis_matrix(robot, q, v, "plain")

    with pytest.raises(AssertionError, match=r"Mdot - 2C is not skew") as caught:
        testing.assert_skew_symmetric(robot, plain)
    words = str(caught.value)
    numbers = {}
    for name in ("s", "q", "v"):
        tail = words.split(f"for {name} = " if name == "s" else f"{name} = [", 1)[1].lstrip("[")
        numbers[name] = np.array([float(x) for x in tail.split("]")[0].split(",")])
    N = robot.mass_matrix_rate(numbers["q"], numbers["v"]) - 2 * plain(numbers["q"], numbers["v"])
    assert abs(numbers["s"] @ N @ numbers["s"]) > 0.01


@pytest.mark.parametrize("form", ["ploen", "christoffel"])
def test_a_right_coriolis_matrix_passes(form):
    robot = models.panda()
    testing.assert_skew_symmetric(robot, lambda q, v: factored.coriolis_matrix(robot, q, v, form))


@pytest.mark.parametrize("error", [1e-6, -1e-9])
def test_small_errors_are_seen(error):
    robot = models.panda()
    with pytest.raises(AssertionError, match="is not skew"):
        testing.assert_skew_symmetric(robot, lambda q, v: robot.coriolis_matrix(q, v) + error * np.eye(7))
    with pytest.raises(AssertionError, match="is not skew"):
        testing.assert_skew_symmetric(
            robot, robot.coriolis_matrix, mass_matrix_rate=lambda q, v: robot.mass_matrix_rate(q, v) * (1.0 + 1e-9)
        )


def test_nan_and_wrong_shapes_fail():
    robot = models.two_link()
    with pytest.raises(AssertionError, match="C: expected a finite 2 x 2 matrix"):
        testing.assert_skew_symmetric(robot, lambda q, v: np.full((2, 2), np.nan))
    with pytest.raises(AssertionError, match="C: expected a finite 2 x 2 matrix"):
        testing.assert_skew_symmetric(robot, lambda q, v: np.zeros(2))
    with pytest.raises(AssertionError, match="tau: expected 2 finite numbers"):
        testing.assert_passive(robot, lambda q, v, a: np.full(2, np.nan))


WRONG = {
    "friction": lambda robot, q, v, a: robot.inverse_dynamics(q, v, a) + 1e-3 * v,
    "gravity": lambda robot, q, v, a: robot.inverse_dynamics(q, v, a) + 0.001 * robot.gravity_force(q),
    "half a Coriolis force": lambda robot, q, v, a: (
        robot.inverse_dynamics(q, v, a) - robot.coriolis_matrix(q, v) @ v / 2
    ),
    "a wrong mass": lambda robot, q, v, a: robot.with_payload(1e-3).inverse_dynamics(q, v, a),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["panda", "quadruped"])
def test_wrong_dynamics_fail_the_power_balance(name, wrong):
    robot = models.load(name)
    with pytest.raises(AssertionError, match="energy is not balanced"):
        testing.assert_passive(robot, lambda q, v, a: WRONG[wrong](robot, q, v, a))


@properties
@given(testing.robots(floating_base=None))
def test_random_robots_are_physical(robot):
    assert inertia.is_physical(robot.parameters, strict=True).all()
    assert 1 <= robot.nbodies <= 8
    testing.assert_skew_symmetric(robot, states=1)
    testing.assert_passive(robot, states=1)


@properties
@given(testing.robots(kinds=("revolute", "prismatic"), max_bodies=4, chain=True))
def test_options_of_robots(robot):
    assert {j.kind for j in robot.joints} <= {"revolute", "prismatic"}
    assert robot.parents == tuple(range(-1, robot.nbodies - 1))
    assert robot.nbodies <= 4


@properties
@given(testing.robots(floating_base=True).flatmap(lambda r: st.tuples(st.just(r), testing.motions(r))))
def test_floating_base_and_motions(case):
    robot, (q, v, a, v_ref) = case
    assert robot.joints[0].kind == "free"
    assert robot.parents.count(-1) == 1
    assert q.shape == (robot.nq,)
    for x in (v, a, v_ref):
        assert x.shape == (robot.nv,)
        assert np.abs(x).max() <= 3.0


def test_failing_cases_shrink_to_simple_ones():
    quick = settings(derandomize=True, max_examples=200, database=None)
    robot = find(testing.robots(), lambda r: r.nbodies >= 3, settings=quick)
    assert robot.nbodies == 3
    assert [j.kind for j in robot.joints] == ["revolute"] * 3
    assert robot.parents == (-1, 0, 1)
    q, v = find(testing.states(robot), lambda s: np.abs(s[1]).max() > 1.0, settings=quick)
    assert not q.any()
    assert np.count_nonzero(v) == 1


def test_random_robot_takes_a_tree_and_refuses_what_is_none():
    rng = np.random.default_rng(0)
    robot = testing.random_robot(rng, ["free", "planar"], [-1, 0], aligned=True, gravity=(0, 0, 0), name="puck")
    assert (robot.name, robot.nv, robot.parents) == ("puck", 9, (-1, 0))
    for parents in ([0], [-1, 1], [-1, -2], [-1, 0, 0]):
        with pytest.raises(ArgumentError, match="parents: expected for each of 2 bodies a body before it or -1"):
            testing.random_robot(rng, ["free", "planar"], parents)
    with pytest.raises(ArgumentError, match=r"kind: expected one of 'revolute', .* got 'ball'"):
        testing.random_robot(rng, ["ball"])


def test_without_hypothesis_only_the_strategies_are_missing():
    code = """
import sys
sys.modules["hypothesis"] = None
from geomctrl import models, testing
testing.assert_skew_symmetric(models.two_link(), states=1)
try:
    testing.robots()
except ImportError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "strategies need hypothesis, which is not installed: pip install 'geomctrl[test]'" in out
