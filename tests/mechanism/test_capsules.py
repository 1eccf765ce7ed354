"""Capsules generated from the tree: end points and radii."""

import itertools

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.mechanism.capsules import Capsule, capsule, check_capsule, default_radius, link_capsules


def test_a_panda_is_covered_from_joint_to_joint():
    robot = models.panda()
    result = link_capsules(robot, 0.06)
    by_body = {c.body: c for c in result}
    assert len(result) == 8 + 1, "seven links and the base, and a second capsule of the last link (flange and tool)"
    np.testing.assert_array_equal(by_body[-1].end, [0, 0, 0.333])
    np.testing.assert_array_equal(by_body[1].end, [0, -0.316, 0])
    np.testing.assert_array_equal(by_body[0].end, 0.0)  # the axes of joints 1 and 2 intersect: a ball
    assert sorted(c.end[2] for c in result if c.body == 6) == pytest.approx([0.107, 0.2104])
    assert all(c.radius == 0.06 for c in result)
    assert default_radius(robot) == pytest.approx(0.05 * (0.333 + 0.316 + 0.0825 + np.hypot(0.0825, 0.384) + 0.088))
    assert 0.085 < default_radius(models.ur10()) < 0.105


def test_links_end_where_their_mass_says_if_nothing_else_does():
    result = link_capsules(models.two_link(), 0.05)
    last = next(c for c in result if c.body == 1)
    m, h = models.two_link().parameters[1][0], models.two_link().parameters[1][1:4]
    np.testing.assert_allclose(last.end, 2.0 * h / m)


def test_a_tool_is_given_in_a_frame():
    robot = models.panda()
    c = capsule(robot, "panda_link8", [0, 0, 0], [0, 0, 0.2], 0.03)
    assert c.body == 6
    np.testing.assert_allclose(c.end, [0, 0, 0.307])


def test_bad_capsules_are_named():
    robot = models.panda()
    with pytest.raises(ArgumentError, match="radius: expected a length"):
        link_capsules(robot, 0.0)
    with pytest.raises(NameNotFoundError):
        capsule(robot, "link99", [0, 0, 0], [0, 0, 1], 0.1)
    with pytest.raises(ArgumentError, match=r"x: expected Capsules on bodies -1 to 6"):
        check_capsule("x", Capsule(7, np.zeros(3), np.zeros(3), 0.1), robot)


def test_links_of_standard_denavit_hartenberg_frames_hang_together():
    """The frames are at the far ends of links, but capsules extend from axis to axis in every posture."""
    a, alpha, d, theta = np.array([(0.3, 0.5, 0.1, 0.0), (0.4, 0.3, 0.0, 0.2), (0.2, 0.1, 0.5, 0.0)]).T
    links = [gc.inertia.from_com(1.0, (0.0, 0.0, 0.0), 0.01 * np.eye(3))] * 3
    robot = gc.Robot.from_dh(a, alpha, d, theta, convention="standard", inertias=links)
    capsules = link_capsules(robot)
    assert [c.body for c in capsules] == [-1, 0, 1, 2]
    for q in np.random.default_rng(0).uniform(-3.0, 3.0, (5, 3)):
        poses = [np.eye(4), *(robot.pose(q, name) for name in robot.body_names)]
        ends = [[T[:3, :3] @ x + T[:3, 3] for x in (c.start, c.end)] for T, c in zip(poses, capsules)]
        for (_, end), (start, _) in itertools.pairwise(ends):
            np.testing.assert_allclose(end, start, atol=1e-12)
        T, tip = np.eye(4), np.array([0.0, 0.0, 0.0, 1.0])
        for k in range(3):
            c, s, ca, sa = np.cos(theta[k] + q[k]), np.sin(theta[k] + q[k]), np.cos(alpha[k]), np.sin(alpha[k])
            T = T @ [[c, -s * ca, s * sa, a[k] * c], [s, c * ca, -c * sa, a[k] * s], [0, sa, ca, d[k]], [0, 0, 0, 1]]
        np.testing.assert_allclose(ends[-1][1], (T @ tip)[:3], atol=1e-12)
