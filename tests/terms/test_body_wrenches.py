"""Conversion of wrenches at frames to the `f_ext` of the dynamics."""

import numpy as np
import pytest
from oracles import assert_close, random_motion

import geomctrl as gc
from geomctrl import models
from geomctrl.tracing.backends import host

REPRESENTATIONS = ("body", "hybrid", "spatial", "mixed")
PLACES = {"panda": "panda_hand_tcp", "quadruped": "FL_foot", "three_spheres": None, "two_link": "tip"}


def place(name):
    robot = models.load(name)
    return robot, PLACES[name] or robot.body_names[-1]


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("name", PLACES)
def test_a_wrench_does_the_work_of_its_representation(name, representation):
    """The resulting joint torques are Jac^T F with the Jacobian of the same representation."""
    robot, frame = place(name)
    q, v, a, _ = random_motion(robot)
    F = np.random.default_rng(1).normal(size=6)
    pushed = robot.inverse_dynamics(q, v, a, f_ext=robot.body_wrenches(q, F, frame, representation))
    assert_close(robot.inverse_dynamics(q, v, a) - pushed, robot.jacobian(q, frame, representation).T @ F, 1e-12)


def test_a_force_at_a_point_turns_about_the_bodys_origin():
    robot, frame = place("two_link")
    q = np.array([0.3, -0.4])
    force = np.array([0.0, 2.0, -1.0])
    T_body, T_tip = robot.pose(q, robot.body_names[-1]), robot.pose(q, frame)
    arm = T_tip[:3, 3] - T_body[:3, 3]
    expected = np.concatenate((T_body[:3, :3].T @ np.cross(arm, force), T_body[:3, :3].T @ force))
    result = robot.body_wrenches(q, np.concatenate((np.zeros(3), force)), frame, "hybrid")
    assert_close(result[-1], expected, 1e-14)
    assert not result[:-1].any()


@pytest.mark.parametrize("lead", [(1,), (3,), (2, 2 * host.lanes())])
def test_batches_are_loops(lead):
    robot, frame = place("quadruped")
    rng = np.random.default_rng(2)
    F = rng.normal(size=(*lead, 6))
    q = np.array([robot.random_configuration(rng) for _ in range(int(np.prod(lead)))]).reshape(*lead, robot.nq)
    result = robot.body_wrenches(q, F, frame, "spatial")
    assert result.shape == (*lead, robot.nbodies, 6)
    for at in np.ndindex(*lead):
        assert_close(result[at], robot.body_wrenches(q[at], F[at], frame, "spatial"), 1e-13)


def test_what_is_no_wrench_on_a_body_is_refused():
    robot, frame = place("two_link")
    q, F = np.zeros(2), np.ones(6)
    with pytest.raises(gc.ArgumentError, match="frame: expected one on a body of 'two_link', got 'world'"):
        robot.body_wrenches(q, F, "world")
    with pytest.raises(gc.NameNotFoundError, match="no frame named 'top'"):
        robot.body_wrenches(q, F, "top")
    with pytest.raises(gc.ArgumentError, match=r"wrench: expected shape \(..., 6\), got \(3,\)"):
        robot.body_wrenches(q, F[:3], frame)
    with pytest.raises(gc.ArgumentError, match="wrench: expected finite numbers"):
        robot.body_wrenches(q, F * np.nan, frame)
    with pytest.raises(gc.ArgumentError, match="representation: expected one of"):
        robot.body_wrenches(q, F, frame, "world")
