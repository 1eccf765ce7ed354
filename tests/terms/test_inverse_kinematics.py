"""Inverse kinematics: frames reach their targets within the limits; against closed forms."""

import numpy as np
import pytest

from geomctrl import models, se3, so3, testing
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.terms.inverse_kinematics import _derivative, _errors, _targets

ARM = models.panda()
TOOL = ARM.body_names[-1]


@pytest.mark.parametrize("name", ["panda", "ur10", "three_spheres"])
def test_poses_that_can_be_reached_are_reached_within_the_limits(name):
    robot, rng = models.load(name), np.random.default_rng(1)
    frame = robot.body_names[-1]
    for _ in range(8):
        T = robot.pose(robot.random_configuration(rng), frame)
        result = robot.inverse_kinematics({frame: T})
        assert result.success, result
        assert result.residual <= 1e-9
        np.testing.assert_allclose(robot.pose(result.q, frame), T, rtol=0, atol=3e-9)
        if robot.nq == robot.nv:
            assert (result.q >= robot.limits.lower).all()
            assert (result.q <= robot.limits.upper).all()


def test_the_elbow_of_two_links_is_that_of_the_cosine_theorem():
    robot = models.two_link()
    q = np.array([0.4, 1.1])
    l1 = np.linalg.norm(robot.pose(q, "link2")[:3, 3] - robot.pose(q, "link1")[:3, 3])
    tip, shoulder = robot.pose(q, "tip")[:3, 3], robot.pose(q, "link1")[:3, 3]
    l2 = np.linalg.norm(tip - robot.pose(q, "link2")[:3, 3])
    result = robot.inverse_kinematics({"tip": tip}, [0.1, 0.3])
    elbow = np.arccos((np.sum((tip - shoulder) ** 2) - l1**2 - l2**2) / (2 * l1 * l2))
    assert result.success
    assert abs(result.q[1]) == pytest.approx(elbow, abs=1e-8)


def test_partial_targets_and_several_frames_on_a_floating_robot():
    robot, rng = models.load("quadruped"), np.random.default_rng(2)
    q = robot.random_configuration(rng)
    base, *_, foot = robot.body_names
    targets = {base: robot.pose(q, base)[:3, :3], foot: robot.pose(q, foot)[:3, 3]}
    result = robot.inverse_kinematics(targets, robot.neutral())
    assert result.success
    np.testing.assert_allclose(robot.pose(result.q, base)[:3, :3], targets[base], atol=1e-8)
    np.testing.assert_allclose(robot.pose(result.q, foot)[:3, 3], targets[foot], atol=1e-8)


def test_it_converges_quadratically_near_a_solution():
    q = np.array([0.1, -0.5, 0.2, -1.8, 0.3, 1.5, 0.4])
    result = ARM.inverse_kinematics({TOOL: ARM.pose(q, TOOL)}, q + 0.05, tolerance=1e-12)
    assert result.success
    assert result.starts == 1
    assert result.iterations <= 6


def test_limits_hold_and_what_is_out_of_reach_is_said_to_be():
    q = np.array([0.1, -0.5, 0.2, -1.8, 0.3, 1.5, 0.4])
    T = ARM.pose(q, TOOL).copy()
    T[:3, 3] *= 3.0 / np.linalg.norm(T[:3, 3])
    result = ARM.inverse_kinematics({TOOL: T}, starts=3)
    assert not result.success
    assert result.starts == 3
    assert "no start of 3" in result.reason
    assert (result.q >= ARM.limits.lower).all()
    assert (result.q <= ARM.limits.upper).all()
    assert result.residual > 1.0
    again = ARM.inverse_kinematics({TOOL: T}, starts=3)
    np.testing.assert_array_equal(result.q, again.q)


def test_bad_targets():
    R = so3.exp((0.1, 0.2, 0.3))
    for targets, words in [
        ({}, "targets: expected"),
        ({TOOL: np.zeros(4)}, "expected a pose"),
        ({TOOL: 2.0 * R}, "rotation"),
        ({TOOL: np.full(3, np.nan)}, "finite"),
        ({"world": np.zeros(3)}, "fixed to the world"),
        ({TOOL: 2.0 * se3.exp(np.zeros(6))}, "rotation"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            ARM.inverse_kinematics(targets)
    with pytest.raises(NameNotFoundError, match="no frame"):
        ARM.inverse_kinematics({"tol": R})
    with pytest.raises(ArgumentError, match="tolerance"):
        ARM.inverse_kinematics({TOOL: R}, tolerance=0.0)


def test_trees_with_several_freedoms_a_joint():
    robot = testing.random_robot(np.random.default_rng(3), ["spherical", "cylindrical", "revolute"], [-1, 0, 1])
    frame = robot.body_names[-1]
    T = robot.pose(robot.random_configuration(np.random.default_rng(1)), frame)
    assert robot.inverse_kinematics({frame: T}).success


def test_the_derivative_of_the_errors_is_exact_far_from_the_targets():
    robot = models.load("quadruped")
    rng = np.random.default_rng(4)
    q, other, (base, *_, foot) = robot.random_configuration(rng), robot.random_configuration(rng), robot.body_names
    knee = robot.body_names[2]
    T = {name: robot.pose(other, name) for name in (base, foot, knee)}
    targets = _targets(robot, {base: T[base][:3, :3], foot: T[foot][:3, 3], knee: T[knee]})
    E, h = _derivative(robot, targets, q), 1e-6
    for k, x in enumerate(h * np.eye(robot.nv)):
        ahead, behind = (_errors(robot, targets, robot.integrate(q, s * x))[0] for s in (1.0, -1.0))
        np.testing.assert_allclose((ahead - behind) / (2.0 * h), E[:, k], atol=1e-7)
