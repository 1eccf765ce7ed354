"""Copies of a robot with changed properties, and robots as immutable data."""

import dataclasses
import pickle

import numpy as np
import pytest
from oracles import assert_close
from parts import SPHERE, Z, body, translation

import geomctrl as gc
from geomctrl import inertia, models, se3
from geomctrl.errors import ArgumentError, InertiaError, ModelError, NameNotFoundError
from geomctrl.papers import factored

# --- the same robot with something else --------------------------------------------------------------------------


def test_with_parameters_returns_a_new_robot():
    robot = models.two_link()
    before = robot.parameters.copy()
    for shape in (robot.parameters.shape, -1):
        heavier = robot.with_parameters((2.0 * before).reshape(shape))
        q = np.array([0.1, 0.2])
        assert_close(heavier.mass_matrix(q), 2.0 * robot.mass_matrix(q), 1e-14)
    np.testing.assert_array_equal(robot.parameters, before)
    mine = before.copy()
    robot = robot.with_parameters(mine)
    mine[:] = 0.0
    np.testing.assert_array_equal(robot.parameters, before)


def test_with_parameters_checks_them():
    robot = models.two_link()
    pi = robot.parameters
    with pytest.raises(ArgumentError, match=r"parameters: expected shape \(2, 10\), got \(10,\)"):
        robot.with_parameters(pi[0])
    with pytest.raises(ArgumentError, match=f"parameters: not finite in body '{robot.body_names[1]}'"):
        robot.with_parameters(np.where([[False], [True]], np.nan, pi))
    with pytest.raises(InertiaError, match=f"body '{robot.body_names[1]}': mass -"):
        robot.with_parameters(pi * [[1.0], [-1.0]])
    with pytest.raises(ModelError, match="the mass matrix is singular"):
        robot.with_parameters(np.zeros((2, 10)))
    assert (robot.with_parameters(-pi, physical=False).parameters == -pi).all()


@pytest.mark.parametrize("factor", [0.1, 0.999, 1.0, 1.001, 3.0])
def test_with_parameters_refuses_bodies_beyond_the_triangle_inequality(factor):
    """In any frame, up to equality, which thin plates have, and whatever the other bodies are."""
    rng, robot = np.random.default_rng(0), models.panda()
    for _ in range(10):
        a, b = rng.uniform(0.01, 0.1, 2)
        plate = inertia.from_com(2.0, [0.0, 0.0, 0.0], np.diag([a, b, max(factor * (a + b), abs(a - b))]))
        pi, k = robot.parameters.copy(), rng.integers(robot.nbodies)
        pi[k] = inertia.transform(se3.exp(rng.normal(size=6)), plate)
        if factor <= 1.0:
            np.testing.assert_array_equal(robot.with_parameters(pi).parameters, pi)
        else:
            with pytest.raises(InertiaError, match=f"body '{robot.body_names[k]}': triangle inequality"):
                robot.with_parameters(pi)


def test_with_payload_adds_a_rigid_load():
    robot = models.panda()
    q, v, a = np.random.default_rng(0).normal(size=(3, 7))
    last = robot.body_names[-1]
    com, I_com = np.array([0.1, 0.2, -0.1]), np.diag((0.01, 0.02, 0.025))
    loaded = robot.with_payload(3.0, com, I_com)
    J, dJ = robot.jacobian(q, last), robot.jacobian_rate(q, v, last)
    load = inertia.spatial(inertia.from_com(3.0, com, I_com))
    V, A = J @ v, J @ a + dJ @ v
    A[3:] -= robot.pose(q, last)[:3, :3].T @ robot.gravity
    expected = robot.inverse_dynamics(q, v, a) + J.T @ (load @ A - factored.ad(V).T @ load @ V)
    assert_close(loaded.inverse_dynamics(q, v, a), expected, 1e-12)
    point = robot.with_payload(1.0, frame=last)
    assert_close(point.parameters[-1] - robot.parameters[-1], np.eye(10)[0], 1e-14)


def test_with_payload_in_a_frame_and_its_errors():
    T = se3.exp(np.array([0.1, -0.2, 0.3, 0.4, 0.5, 0.6]))
    bodies = [body("a"), body("flange", "a", gc.Joint.fixed(), T), body("table", None, gc.Joint.fixed(), T)]
    robot = gc.Robot.build(bodies)
    load = inertia.from_com(1.0, (0, 0, 0.1), np.zeros((3, 3)))
    added = robot.with_payload(1.0, (0, 0, 0.1), frame="flange").parameters[0] - robot.parameters[0]
    assert_close(added, inertia.transform(T, load), 1e-13)
    for frame in ("table", "world"):
        with pytest.raises(ArgumentError, match=f"frame: '{frame}' is fixed to the world and can not carry a load"):
            robot.with_payload(1.0, frame=frame)
    with pytest.raises(NameNotFoundError, match="no frame named 'flang'; did you mean 'flange'"):
        robot.with_payload(1.0, frame="flang")
    with pytest.raises(InertiaError, match="body 'payload': mass -1 is negative"):
        robot.with_payload(-1.0)
    with pytest.raises(InertiaError, match="body 'payload': triangle inequality fails"):
        robot.with_payload(1.0, I_com=np.diag((1.0, 1.0, 3.0)))
    with pytest.raises(ArgumentError, match="com: expected 3 finite numbers"):
        robot.with_payload(1.0, (0, 0))


def test_with_gravity():
    robot = models.panda()
    q = np.random.default_rng(0).normal(size=7)
    assert not robot.with_gravity((0, 0, 0)).gravity_force(q).any()
    assert_close(robot.with_gravity(-2 * robot.gravity).gravity_force(q), -2 * robot.gravity_force(q), 1e-13)


# --- frozen data -------------------------------------------------------------------------------------------------


def test_robots_are_immutable():
    robot = models.two_link()
    with pytest.raises(dataclasses.FrozenInstanceError):
        robot.name = "other"
    for x in (robot.parameters, robot.placements, robot.gravity, robot.joints[0].S):
        with pytest.raises(ValueError, match="read-only"):
            x[...] = 0.0
        with pytest.raises(ValueError, match="WRITEABLE"):
            x.setflags(write=True)


def test_frames_are_immutable_too():
    robot = models.two_link()
    for x in (frame.placement for frame in robot.frames):
        with pytest.raises(ValueError, match="read-only"):
            x[...] = 0.0
    with pytest.raises(TypeError):
        robot._frames["tip"] = robot.frames[0]


def test_robots_do_not_share_memory_with_their_makers():
    M, pi, axis, gravity = np.eye(4), SPHERE.copy(), np.array([0, 0, 1.0]), np.array([0, -9.81, 0])
    T = translation(0, 0, 1)
    bodies = [gc.Body("a", None, gc.Joint.revolute(axis), M, pi)]
    robot = gc.Robot.build(bodies, gravity=gravity, frames=[("tip", "a", T)])
    before, tip = robot.inverse_dynamics([0.3], [0.4], [0.5]), robot.pose([0.3], "tip")
    for x in (M, pi, axis, gravity, T):
        x[...] = np.nan
    np.testing.assert_array_equal(robot.inverse_dynamics([0.3], [0.4], [0.5]), before)
    np.testing.assert_array_equal(robot.pose([0.3], "tip"), tip)


@pytest.mark.parametrize("name", models.names())
def test_pickling_keeps_everything(name):
    robot = models.load(name)
    copy = pickle.loads(pickle.dumps(robot))
    np.testing.assert_array_equal(copy.armature, robot.armature)
    rng = np.random.default_rng(0)
    q, (v, a) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    np.testing.assert_array_equal(copy.inverse_dynamics(q, v, a), robot.inverse_dynamics(q, v, a))
    assert repr(copy) == repr(robot)
    assert copy.frames[0].name == robot.frames[0].name
    for key in ("lower", "upper", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(copy.limits, key), getattr(robot.limits, key))
    with pytest.raises(ValueError, match="read-only"):
        copy.parameters[...] = 0.0


def test_limits_damping_and_friction_per_velocity():
    options = {"lower": -1.0, "upper": 2.0, "velocity": 3.0, "effort": 4.0, "damping": 0.5, "friction": 0.25}
    robot = gc.Robot.build([body("a", None, gc.Joint.spherical()), body("b", "a", gc.Joint.revolute(Z, **options))])
    inf = np.inf
    np.testing.assert_array_equal(robot.limits.lower, [-inf, -inf, -inf, -1.0])
    np.testing.assert_array_equal(robot.limits.upper, [inf, inf, inf, 2.0])
    np.testing.assert_array_equal(robot.limits.velocity, [inf, inf, inf, 3.0])
    np.testing.assert_array_equal(robot.limits.effort, [inf, inf, inf, 4.0])
    np.testing.assert_array_equal(robot.damping, [0, 0, 0, 0.5])
    np.testing.assert_array_equal(robot.friction, [0, 0, 0, 0.25])


def test_repr_shows_the_tree():
    arm = body("arm", "base", gc.Joint.revolute(Z, lower=-1.0, upper=2.5))
    lines = repr(gc.Robot.build([body("base", None, gc.Joint.free(name="float")), arm], name="demo")).splitlines()
    assert lines[0] == "Robot 'demo': 2 bodies, nv = 7, nq = 13, free base, 4 kg"
    assert lines[1].split() == ["0", "float", "free", "world", "->", "base,", "2", "kg"]
    assert lines[2].split() == ["1", "arm", "revolute", "base", "->", "arm,", "2", "kg", "[-1,", "2.5]"]


def test_repr_shows_frames_that_are_added():
    frames = [gc.Frame(f"frame{k}", "base", np.eye(4)) for k in range(8)]
    bodies = [body("base", None, gc.Joint.free()), body("arm", "base", gc.Joint.revolute(Z))]
    last = repr(gc.Robot.build(bodies, frames=frames)).splitlines()[-1].strip()
    shown = ", ".join(f"'frame{k}'" for k in range(6))
    assert last == f"frames: {shown}, ..., the bodies and 'world'; robot.frame_names lists all"
    plain = repr(gc.Robot.build(bodies)).splitlines()[-1].strip()
    assert plain == "frames: the bodies and 'world'; robot.frame_names lists all"
