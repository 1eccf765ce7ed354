"""q * exp(dv), its inverse, and random configurations."""

import numpy as np
import pytest
from hypothesis import given
from oracles import assert_close, cases, properties

import geomctrl as gc
from geomctrl import models, se3, testing
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import ConfigurationGroup
from geomctrl.papers import factored


def poses(robot, q):
    return [q[s].reshape(3, 4) for joint, s in zip(robot.joints, robot.q_slices) if joint.dof > 1]


@properties
@given(cases(floating_base=None))
def test_integrate_moves_each_joint_by_the_exponential_of_its_twist(case):
    robot, q, x, _, _ = case
    moved = robot.integrate(q, x)
    for joint, s, k in zip(robot.joints, robot.q_slices, robot.v_slices):
        before, after = (factored.joint_motion(joint.S, y[s]) for y in (q, moved))
        assert_close(after, before @ se3.exp(joint.S @ x[k]), 1e-13)


@properties
@given(cases(floating_base=None))
def test_difference_is_the_inverse_of_integrate(case):
    robot, q, x, _, _ = case
    x = 0.99 * x  # at most 2.97 about each of three axes: rotations beyond pi return as the shorter rotation
    short = np.array(x)
    for joint, k in zip(robot.joints, robot.v_slices):
        turn = np.linalg.norm(joint.S[:3] @ x[k])
        if joint.dof > 1 and turn > 3.0:
            short[k] *= 3.0 / turn
    assert_close(robot.difference(q, robot.integrate(q, short)), short, 1e-9, 1.0)
    other = robot.integrate(q, x)
    assert_close(robot.integrate(q, robot.difference(q, other)), other, 1e-9, 1.0)
    assert_close(robot.difference(q, q), np.zeros(robot.nv), 1e-14, np.abs(q).max() ** 2 + 1.0)


@properties
@given(cases(floating_base=None))
def test_integrate_keeps_configurations_in_their_subgroup(case):
    """A planar joint stays in its plane, a cylindrical one on its axis: log of the pose is in the span of S."""
    robot, q, x, _, _ = case
    q = robot.integrate(q, x)
    for joint, s in zip(robot.joints, robot.q_slices):
        if joint.dof > 1:
            X = se3.log(factored.joint_motion(joint.S, q[s]))
            inside = joint.S @ np.linalg.pinv(joint.S) @ X
            assert_close(X, inside, 1e-9, 1.0)


@properties
@given(cases(floating_base=None))
def test_steps_along_the_same_velocity_add_up(case):
    robot, q, x, _, _ = case
    assert_close(robot.integrate(robot.integrate(q, 0.3 * x), 0.7 * x), robot.integrate(q, x), 1e-13, 10.0)
    assert_close(robot.integrate(robot.integrate(q, x), -x), q, 1e-13, 10.0)


def test_neutral_is_zero_coordinates_and_identity_poses():
    robot = testing.random_robot(np.random.default_rng(0), ["revolute", "spherical", "free"], [-1, 0, 1])
    q = robot.neutral()
    assert q.shape == (25,)
    assert q[0] == 0.0
    for T in poses(robot, q):
        np.testing.assert_array_equal(T, np.eye(3, 4))
    q[:] = np.nan
    assert np.isfinite(robot.neutral()).all()


def test_random_configurations_keep_limits_and_reproduce():
    options = {"lower": -0.5, "upper": 2.0}
    bodies = [
        gc.Body("a", None, gc.Joint.revolute((0, 0, 1), **options), None, np.eye(10)[0] + np.eye(10)[9]),
        gc.Body("b", "a", gc.Joint.prismatic((1, 0, 0), lower=0.2), None, np.eye(10)[0]),
        gc.Body("c", "b", gc.Joint.revolute((0, 0, 1), upper=-20.0), None, np.eye(10)[0] + np.eye(10)[9]),
        gc.Body("d", "c", gc.Joint.revolute((0, 1, 0)), None, np.array([1, 0, 0, 0, 1, 0, 1, 0, 0, 1.0])),
    ]
    robot = gc.Robot.build(bodies, physical=False)
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(500)])
    assert (q[:, 0] >= -0.5).all()
    assert (q[:, 0] <= 2.0).all()
    assert (q[:, 1] >= 0.2).all()
    assert (q[:, 2] <= -20.0).all()
    assert (np.abs(q[:, 3]) <= np.pi).all()
    assert np.ptp(q, axis=0).min() > 0.5
    np.testing.assert_array_equal(
        robot.random_configuration(np.random.default_rng(7)), robot.random_configuration(np.random.default_rng(7))
    )


@pytest.mark.parametrize("lead", [(1,), (4,), (2, 3), (0,)], ids=str)
def test_batches_equal_loops(lead):
    rng = np.random.default_rng(1)
    robot = testing.random_robot(rng, ["free", "revolute", "planar", "helical"], [-1, 0, 1, 0])
    q, x = np.empty((*lead, robot.nq)), rng.normal(size=(*lead, robot.nv))
    for i in np.ndindex(lead):
        q[i] = robot.random_configuration(rng)
    moved = robot.integrate(q, x)
    back = robot.difference(q, moved)
    assert moved.shape == q.shape
    assert back.shape == x.shape
    for i in np.ndindex(lead):
        assert_close(moved[i], robot.integrate(q[i], x[i]), 1e-15)
        assert_close(back[i], robot.difference(q[i], moved[i]), 1e-15)


def test_long_products_stay_rotations():
    """Ten thousand steps cause only rounding errors, which validation accepts."""
    robot = testing.random_robot(np.random.default_rng(0), ["free"], [-1])
    q, x = robot.neutral(), np.random.default_rng(1).normal(size=6) * 0.1
    for _ in range(10000):
        q = robot.integrate(q, x)
    R = q.reshape(3, 4)[:, :3]
    assert np.abs(R.T @ R - np.eye(3)).max() < 1e-11


def test_residual_is_the_largest_over_the_joints():
    """The residual is |R^T R - 1| of a joint's pose, or its distance from the poses that the joint can reach."""
    robot = testing.random_robot(np.random.default_rng(0), ["revolute", "free", "spherical", "planar"], [-1, 0, 1, 1])
    group, rng = ConfigurationGroup(robot), np.random.default_rng(1)
    q = np.stack([group.random(rng) for _ in range(3)])
    assert group.residual(q).shape == (3,)
    assert group.residual(q).max() < 1e-14
    for s in robot.q_slices[1:]:
        stretched = q.copy()
        # one row is slightly too long, so R R^T is wrong by twice as much
        stretched[1, s].reshape(3, 4)[0, :3] *= 1.0 + 1e-9
        assert 0.2e-9 < group.residual(stretched)[1] < 3e-9
        assert group.residual(stretched)[[0, 2]].max() < 1e-14
    for joint, s in zip(robot.joints[1:], robot.q_slices[1:]):
        moved = q[0].copy()  # along a twist that the joint does not allow, if there is one
        moved[s] = se3.exp(1e-5 * np.linalg.svd(joint.S)[0][:, -1])[:3].ravel()
        off = group.residual(moved)
        assert off < 1e-14 if joint.dof == 6 else off == pytest.approx(1e-5, rel=1e-3)
    q[2, 0] = np.nan
    with pytest.raises(ArgumentError, match=r"a: expected finite numbers, got nan at index \[2, 0\]"):
        group.residual(q)


def test_arguments_are_checked():
    robot = models.three_spheres()
    q = robot.neutral()
    with pytest.raises(ArgumentError, match=rf"dv: expected shape \(..., {robot.nv}\)"):
        robot.integrate(q, np.zeros(robot.nv + 1))
    with pytest.raises(ArgumentError, match=r"q1: expected finite numbers, got nan at index \[3\]"):
        robot.difference(q, np.where(np.arange(robot.nq) == 3, np.nan, q))
    with pytest.raises(ArgumentError, match=r"rng: expected a numpy\.random\.Generator, got 5"):
        robot.random_configuration(5)
    with pytest.raises(ArgumentError, match=r"q0: entries 0 to 11, the pose .* hold no rotation"):
        robot.difference(2.0 * q, q)


def test_which_velocities_turn():
    z = (0, 0, 1)
    joints = {
        gc.Joint.revolute(z): [True],
        gc.Joint.prismatic(z): [False],
        gc.Joint.helical(z, pitch=0.1): [True],
        gc.Joint.cylindrical(z): [True, False],
        gc.Joint.planar(z): [False, False, True],
        gc.Joint.spherical((0, 0, 1)): [True] * 3,
        gc.Joint.free(): [True] * 3 + [False] * 3,
    }
    for joint, turning in joints.items():
        assert joint.is_rotational.tolist() == turning
    inertia = gc.inertia.from_com(1.0, (0, 0, 0), np.eye(3))
    bodies = [gc.Body(f"b{i}", f"b{i - 1}" if i else None, joint, None, inertia) for i, joint in enumerate(joints)]
    assert gc.Robot.build(bodies).is_rotational.tolist() == [turns for turning in joints.values() for turns in turning]
