"""Poses, Jacobians and their rates in four representations: Pinocchio, the complex step, and Mueller's relations."""

import numpy as np
import pytest
from hypothesis import given
from oracles import PINOCCHIO_KINDS, STEP, assert_close, cases, moved, pinocchio, properties

import geomctrl as gc
from geomctrl import models, se3, testing
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.papers import factored
from geomctrl.testing.random_robots import random_inertia

REPRESENTATIONS = ("body", "spatial", "hybrid", "mixed")


def pose(robot, q, frame):
    """Return the pose, computed from placements and screws; q may be complex."""
    i, T = robot.frame(frame).body, robot.frame(frame).placement
    while i >= 0:
        motion = factored.joint_motion(robot.joints[i].S, q[robot.q_slices[i]])
        i, T = robot.parents[i], robot.placements[i] @ motion @ T
    return T


def jacobian(robot, q, frame, representation):
    """The Jacobian column by column from the derivative of the pose, by the complex step."""
    T, columns = pose(robot, q, frame), []
    for e in np.eye(robot.nv):
        dT = np.imag(pose(robot, moved(robot, q, e), frame)) / STEP
        body, spatial = se3.vee(np.linalg.inv(T) @ dT), se3.vee(dT @ np.linalg.inv(T))
        columns.append(
            {
                "body": body,
                "spatial": spatial,
                "hybrid": np.concatenate((spatial[:3], dT[:3, 3])),
                "mixed": np.concatenate((body[:3], dT[:3, 3])),
            }[representation]
        )
    return np.column_stack(columns)


def check_against_pinocchio(robot, q, v):
    theirs = pinocchio(robot)
    for name in robot.body_names:
        assert_close(robot.pose(q, name), theirs.pose(q, name), 1e-9)
        for representation in ("body", "spatial", "hybrid"):
            J, dJ = robot.jacobian(q, name, representation), robot.jacobian_rate(q, v, name, representation)
            assert_close(J, theirs.jacobian(q, name, representation), 1e-9)
            assert_close(
                dJ, theirs.jacobian_rate(q, v, name, representation), 1e-9, np.abs(J).max() ** 2 * np.abs(v).max()
            )


@properties
@given(cases(kinds=PINOCCHIO_KINDS, floating_base=None, max_bodies=6))
def test_kinematics_equal_pinocchios_on_random_trees(case):
    robot, q, v, _, _ = case
    check_against_pinocchio(robot, q, v)


@pytest.mark.quick(4)
def test_kinematics_equal_pinocchios_on_bundled_robots(bundled):
    rng = np.random.default_rng(0)
    check_against_pinocchio(bundled, bundled.random_configuration(rng), rng.normal(size=bundled.nv))


@properties
@given(cases(floating_base=None, max_bodies=5))
def test_jacobians_are_the_derivatives_of_the_pose(case):
    robot, q, _, _, _ = case
    for name in robot.body_names:
        assert_close(robot.pose(q, name), pose(robot, q, name), 1e-12)
        for representation in REPRESENTATIONS:
            assert_close(robot.jacobian(q, name, representation), jacobian(robot, q, name, representation), 1e-11)


@properties
@given(cases(floating_base=None, max_bodies=4))
def test_jacobian_rates_are_the_derivatives_of_the_jacobians(case):
    """Sixth-order differences along q exp(v t)."""
    robot, q, v, _, _ = case
    h = 4e-3
    for name in robot.body_names:
        for representation in REPRESENTATIONS:
            J = {k: robot.jacobian(robot.integrate(q, k * h * v), name, representation) for k in range(-3, 4)}
            expected = (45.0 * (J[1] - J[-1]) - 9.0 * (J[2] - J[-2]) + J[3] - J[-3]) / (60.0 * h)
            scale = np.abs(J[0]).max() * max(np.abs(v).max(), 1.0)
            assert_close(robot.jacobian_rate(q, v, name, representation), expected, 1e-7, 10 * scale)


@properties
@given(cases(floating_base=None, max_bodies=5))
def test_representations_are_related_as_in_mueller(case):
    """V^s = Ad_T V^b, V^h = diag(R, R) V^b, V^m = diag(1, R) V^b; the rates by the product rule."""
    robot, q, v, _, _ = case
    for name in robot.body_names:
        T, J, dJ = robot.pose(q, name), robot.jacobian(q, name), robot.jacobian_rate(q, v, name)
        R, zero, V = T[:3, :3], np.zeros((3, 3)), J @ v
        R_rate = R @ factored.hat(V[:3])
        Ad = se3.Ad(T)
        maps = {
            "spatial": (Ad, Ad @ factored.ad(V)),
            "hybrid": (np.block([[R, zero], [zero, R]]), np.block([[R_rate, zero], [zero, R_rate]])),
            "mixed": (np.block([[np.eye(3), zero], [zero, R]]), np.block([[zero, zero], [zero, R_rate]])),
        }
        for representation, (A, A_rate) in maps.items():
            size = np.abs(A).max() ** 2 * max(np.abs(J).max(), np.abs(J).max() ** 2) * 10
            assert_close(robot.jacobian(q, name, representation), A @ J, 1e-12)
            rate = robot.jacobian_rate(q, v, name, representation)
            assert_close(rate, A @ dJ + A_rate @ J, 1e-12, size * np.abs(v).max())


@properties
@given(cases(floating_base=None, max_bodies=5))
def test_acceleration_of_inverse_dynamics_is_that_of_the_jacobian(case):
    """Newton's and Euler's equations for every body, with Jac and Jacdot from kinematics, against the recursion."""
    robot, q, v, a, _ = case
    tau = robot.armature * a
    f = factored.factors(robot, q, v)
    for i, name in enumerate(robot.body_names):
        J = f.J[6 * i : 6 * i + 6, 6 * i : 6 * i + 6]
        Jac = robot.jacobian(q, name)
        V, A = Jac @ v, Jac @ a + robot.jacobian_rate(q, v, name) @ v
        A[3:] -= robot.pose(q, name)[:3, :3].T @ robot.gravity
        tau += Jac.T @ (J @ A - factored.ad(V).T @ J @ V)
    scale = np.abs(f.J).max() * (np.abs(a).max() + (v @ v) * 10 + 10) * robot.nbodies
    assert_close(robot.inverse_dynamics(q, v, a), tau, 1e-12, scale)


def test_sines_and_cosines_of_joints_are_right_to_an_ulp_of_one():
    """Rz(q) of a revolute joint: small and large angles, both sides of every octant, and angles beyond the fast
    reduction.
    """
    robot = gc.Robot.build([gc.Body("a", None, gc.Joint.revolute((0, 0, 1)), None, [1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1])])
    rng = np.random.default_rng(0)
    octants = np.arange(-100, 100) * (np.pi / 4)
    tiny = np.array([0.0, -0.0, 1e-300, 1e-20, 1e-8])
    limits = 1e5 * np.array([1.0, 1.0 + 1e-15, 1.0 - 1e-15, -1.0])
    sizes = rng.uniform(-1.0, 1.0, 2000) * 10.0 ** rng.uniform(-6, 15, 2000)
    q = np.concatenate((octants, np.nextafter(octants, np.inf), np.nextafter(octants, -np.inf), tiny, limits, sizes))
    multiples = np.round(rng.uniform(-6e4, 6e4, 500)) * (np.pi / 2)
    q = np.concatenate((q, multiples))[:, None]
    R = robot.pose(q, "a")
    assert np.abs(R[:, 1, 0] - np.sin(q[:, 0])).max() <= 2.3e-16
    assert np.abs(R[:, 0, 0] - np.cos(q[:, 0])).max() <= 2.3e-16
    small = np.abs(q[:, 0]) < 0.1
    assert_close(
        R[small, 1, 0] / np.where(q[small, 0] == 0.0, 1.0, np.sin(q[small, 0])), (q[small, 0] != 0.0) * 1.0, 1e-15
    )


def fixture_robot():
    rng = np.random.default_rng(0)
    tool = se3.exp(rng.normal(size=6))
    bodies = [
        gc.Body("arm", None, gc.Joint.revolute((0, 0, 1)), None, random_inertia(rng)),
        gc.Body("flange", "arm", gc.Joint.fixed(), se3.exp(rng.normal(size=6)), random_inertia(rng)),
        gc.Body("finger", "flange", gc.Joint.prismatic((1, 0, 0)), se3.exp(rng.normal(size=6)), random_inertia(rng)),
        gc.Body("table", None, gc.Joint.fixed(), se3.exp(rng.normal(size=6))),
    ]
    return gc.Robot.build(bodies, frames=[("tool", "flange", tool), ("camera", "world", tool)]), bodies, tool


def test_frames_on_bodies_merged_links_and_the_world():
    robot, bodies, tool = fixture_robot()
    q, v = np.array([0.3, 0.2]), np.array([1.0, -2.0])
    flange = robot.pose(q, "arm") @ bodies[1].placement
    assert_close(robot.pose(q, "flange"), flange, 1e-14)
    assert_close(robot.pose(q, "tool"), flange @ tool, 1e-14)
    assert_close(robot.pose(q, "camera"), tool, 1e-15)
    assert_close(robot.pose(q, "table"), bodies[3].placement, 1e-15)
    assert_close(robot.pose(q, "world"), np.eye(4), 1e-15)
    assert_close(
        robot.jacobian(q, "tool"), se3.Ad(se3.inverse(bodies[1].placement @ tool)) @ robot.jacobian(q, "arm"), 1e-13
    )
    assert_close(robot.jacobian(q, "tool", "spatial"), robot.jacobian(q, "arm", "spatial"), 1e-13)
    for representation in REPRESENTATIONS:
        for name in ("world", "camera", "table"):
            assert not robot.jacobian(q, name, representation).any()
            assert not robot.jacobian_rate(q, v, name, representation).any()


@pytest.mark.parametrize("lead", [(1,), (4,), (2, 3), (0,)], ids=str)
def test_batches_equal_loops(lead):
    rng = np.random.default_rng(1)
    robot = testing.random_robot(rng, ["free", "revolute", "planar", "helical"], [-1, 0, 1, 0])
    q, v = np.empty((*lead, robot.nq)), rng.normal(size=(*lead, robot.nv))
    for i in np.ndindex(lead):
        q[i] = robot.random_configuration(rng)
    poses = robot.pose(q, "body2")
    assert poses.shape == (*lead, 4, 4)
    for representation in REPRESENTATIONS:
        J, dJ = robot.jacobian(q, "body2", representation), robot.jacobian_rate(q, v, "body2", representation)
        assert J.shape == dJ.shape == (*lead, 6, robot.nv)
        for i in np.ndindex(lead):
            assert_close(poses[i], robot.pose(q[i], "body2"), 1e-15)
            assert_close(J[i], robot.jacobian(q[i], "body2", representation), 1e-15)
            assert_close(dJ[i], robot.jacobian_rate(q[i], v[i], "body2", representation), 1e-15)


def test_unknown_frames_and_representations_are_refused():
    robot, _, _ = fixture_robot()
    q, v = np.zeros(2), np.zeros(2)
    calls = [
        lambda frame, **o: robot.pose(q, frame),
        lambda frame, **o: robot.jacobian(q, frame, **o),
        lambda frame, **o: robot.jacobian_rate(q, v, frame, **o),
    ]
    for call in calls:
        with pytest.raises(NameNotFoundError, match="no frame named 'flang'; did you mean 'flange'"):
            call("flang")
        with pytest.raises(NameNotFoundError, match="no frame named 'zzz'; known: 'arm', 'flange', 'finger'"):
            call("zzz")
        with pytest.raises(NameNotFoundError, match="no frame named 3"):
            call(3)
    for call in calls[1:]:
        with pytest.raises(
            ArgumentError, match="representation: expected one of 'body', 'spatial', 'hybrid', 'mixed', got 'Body'"
        ):
            call("tool", representation="Body")


def test_bad_states_are_named():
    robot, q, v = models.two_link(), np.zeros(2), np.zeros(2)
    for bad, message in ((np.zeros(3), r"expected shape \(..., 2\)"), (np.array([0.0, np.nan]), "expected finite")):
        for call in (robot.pose, robot.jacobian):
            with pytest.raises(ArgumentError, match=f"q: {message}"):
                call(bad, "tip")
        for name, state in (("q", (bad, v)), ("v", (q, bad))):
            with pytest.raises(ArgumentError, match=f"{name}: {message}"):
                robot.jacobian_rate(*state, "tip")
    ball = testing.random_robot(np.random.default_rng(0), ["spherical"])
    with pytest.raises(ArgumentError, match=r"q: entries 0 to 11, the pose .* hold no rotation"):
        ball.pose(np.zeros(12), "body0")
