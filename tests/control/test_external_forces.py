"""External forces at points give the same generalized force as the plant's wrenches."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models

ROBOT = models.panda()
Q = np.array([0.1, -0.5, 0.2, -2.0, 0.3, 1.6, 0.8])


def run_of(f_ext, robot=ROBOT, q0=Q, t_end=0.02):
    return gc.simulate(gc.Plant(robot, f_ext=f_ext), controllers.PDGravity(robot, q0), q0, 0 * q0, t_end, 1e-3)


def generalized(robot, q, push, frame):
    """J^T of a force at a point and a moment, by the hybrid Jacobian of a frame there."""
    J = robot.jacobian(q, frame, "hybrid")
    T = robot.pose(q, frame)
    moment = push.moment + np.cross(push.point - T[..., :3, 3], push.force)
    return np.einsum("...ij,...i->...j", J, np.concatenate([moment, push.force], axis=-1))


@pytest.mark.parametrize("representation", ["body", "hybrid", "spatial"])
def test_a_wrench_is_at_its_frame(representation):
    value = np.array([1.0, -2.0, 3.0, 10.0, 20.0, -5.0])
    run = run_of(gc.Wrench("panda_hand", value, representation=representation))
    (push,) = run.external_forces()
    assert push.name == "panda_hand"
    np.testing.assert_allclose(push.point, ROBOT.pose(run.q, "panda_hand")[:, :3, 3], atol=1e-12)
    if representation == "hybrid":
        np.testing.assert_allclose(push.force, np.broadcast_to(value[3:], push.force.shape), atol=1e-12)
        np.testing.assert_allclose(push.moment, np.broadcast_to(value[:3], push.moment.shape), atol=1e-12)
    exact = np.einsum("nij,i->nj", ROBOT.jacobian(run.q, "panda_hand", representation), value)
    np.testing.assert_allclose(generalized(ROBOT, run.q, push, "panda_hand"), exact, atol=1e-10)


def test_it_begins_and_ends_and_samples_are_chosen():
    run = run_of([gc.Wrench("panda_hand", [0, 0, 0, 0, 0, 9.0], 0.005, 0.0105, representation="hybrid")])
    (push,) = run.external_forces()
    np.testing.assert_array_equal(push.force[:, 2] > 0, (run.t > 0.005 - 1e-9) & (run.t < 0.0105))
    (few,) = run.external_forces([0, 7, 20])
    np.testing.assert_allclose(few.force[:, 2], [0.0, 9.0, 0.0], atol=1e-12)
    with pytest.raises(gc.ArgumentError, match="at: expected a whole number from 0 to 20, got 21"):
        run.external_forces([21])


@pytest.mark.parametrize("also", [False, True])
def test_a_function_pushes_bodies(also):
    rng = np.random.default_rng(3)
    F = np.zeros((7, 6))
    F[[2, 6]] = rng.normal(size=(2, 6))
    f = lambda t, q, v: F  # noqa: E731
    run = run_of([f, gc.Wrench("panda_hand", np.ones(6))] if also else f)
    pushes = run.external_forces()
    assert [p.name for p in pushes] == ["panda_link3", "panda_link7", *["panda_hand"] * also]
    result = sum(generalized(ROBOT, run.q, p, p.name) for p in pushes[:2])
    exact = sum(np.einsum("nij,i->nj", ROBOT.jacobian(run.q, ROBOT.body_names[i], "body"), F[i]) for i in (2, 6))
    np.testing.assert_allclose(result, exact, atol=1e-12)


def test_contact_pushes_at_its_points():
    joint = gc.Joint.prismatic((0, 0, 1), name="up")
    ball = gc.Robot.build([gc.Body("ball", None, joint, None, gc.inertia.from_com(1.0, (0, 0, 0), np.eye(3)))])
    contact = gc.Contact([("ball", (0.3, 0.0, -0.1))], stiffness=1e4, dissipation=0.5)
    law = controllers.PDGravity(ball, [0.1], kp=1e-6, kd=1e-6)
    run = gc.simulate(gc.Plant(ball, f_ext=contact), law, [0.099], [0.0], 0.02, 1e-3)
    (push,) = run.external_forces()
    assert push.name == "contact at ball"
    np.testing.assert_allclose(
        push.point, np.stack([0 * run.t + 0.3, 0 * run.t, run.q[:, 0] - 0.1], axis=1), atol=1e-12
    )
    depth = 0.1 - run.q[:, 0]
    exact = 1e4 * np.maximum(depth, 0.0) ** 1.5 * np.maximum(1.0 - 0.5 * run.v[:, 0], 0.0)
    np.testing.assert_allclose(push.force[:, 2], exact, rtol=1e-10, atol=1e-12)
    assert push.force[0, 2] > 0.0


def test_nothing_pushes_where_nothing_is_or_nobody_knows(tmp_path):
    run = run_of(None)
    assert run.external_forces() == []
    assert gc.Run.load(run.save(tmp_path / "run.npz")).external_forces() == []
