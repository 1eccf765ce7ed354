"""Couplings as data: valid arguments, and their effect on joint properties."""

import copy
import pickle

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import inertia, models
from geomctrl.errors import ArgumentError, ModelError, NameNotFoundError

BALL = inertia.from_com(1.0, (0.2, 0.1, 0.0), np.eye(3))


def built(*couplings, **options):
    joints = [gc.Joint.revolute((0, 0, 1), name=n, **options) for n in ("a", "b", "c")]
    bodies = [gc.Body(f"body {j.name}", None, j, None, BALL) for j in joints]
    bodies.append(gc.Body("ball", None, gc.Joint.spherical(name="s"), None, BALL))
    return gc.Robot.build(bodies, couplings=couplings)


@pytest.mark.parametrize(
    ("couplings", "error", "match"),
    [
        ([gc.Coupling("a", {"b": 1}), gc.Coupling("b", {"c": 1}), gc.Coupling("c", {"a": 1})], ModelError,
         r"coupling of joint 'a': .* in a cycle, 'a' -> 'b' -> 'c' -> 'a'"),
        ([gc.Coupling("a", {"b": 1}), gc.Coupling("a", {"c": 1})], ModelError, "'a': the joint has two couplings"),
        ([gc.Coupling("a", {"nobody": 1})], NameNotFoundError, "'a': no joint named 'nobody'.*there are a, b, c, s"),
        ([gc.Coupling("s", {"a": 1})], ModelError, "one degree of freedom, 's' is spherical and has 3"),
        ([gc.Coupling("a", {"s": 1})], ModelError, "joint 'a': .* 's' is spherical"),
        (["a"], ArgumentError, "couplings: expected geomctrl.Coupling, got 'a'"),
    ],
)  # fmt: skip
def test_what_can_not_be(couplings, error, match):
    with pytest.raises(error, match=match):
        built(*couplings)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("a", {"b": np.nan}), r"coupling of joint 'a': follows\['b'\]: expected .*, got nan"),
        (("a", ["b"]), r"coupling of joint 'a': follows: expected ratios by joints' names, got \['b'\]"),
        (("a", {"b": 1.0}, np.inf), "coupling of joint 'a': offset"),
        ((1, {}), "joint: expected a name, got 1"),
    ],
)
def test_what_is_no_coupling(arguments, match):
    with pytest.raises(ArgumentError, match=match):
        gc.Coupling(*arguments)


@pytest.mark.parametrize("key", ["damping", "friction", "armature", "stiffness"])
def test_losses_and_motors_that_would_couple_coordinates(key):
    assert built(gc.Coupling("a", {"b": 2.0}), **{key: 0.5}).nv == 5
    with pytest.raises(ModelError, match=rf"joint 'a': a joint that follows several can have no {key} \(0.5\)"):
        built(gc.Coupling("a", {"b": 2.0, "c": 1.0}), **{key: 0.5})


def test_locked_at_the_offset():
    robot = built(gc.Coupling("b", {}, 0.3))
    q = robot.random_configuration(np.random.default_rng(0))
    assert robot.nv == 5
    np.testing.assert_allclose(robot.coupling.tree_configuration(q)[..., 1], 0.3)
    np.testing.assert_allclose(robot.coupling.tree_configuration(q)[2:], q[1:])


def test_springs_rest_where_their_torques_cancel():
    robot = built(gc.Coupling("a", {"b": -2.0}, 0.5), stiffness=3.0, rest=0.1)
    k, rest = robot.springs.stiffness[0], robot.springs.rest[0]
    for x in (0.0, 0.7):  # the energy's slope
        assert k * (x - rest) == pytest.approx(3.0 * (x - 0.1) - 2.0 * 3.0 * (-2.0 * x + 0.5 - 0.1))


def test_copies_and_files_keep_them(tmp_path):
    robot = built(gc.Coupling("a", {"b": -0.5, "c": 2.0}, 0.25))
    saved = models.load(models.save(robot, tmp_path / "robot.json"))
    q = robot.random_configuration(np.random.default_rng(1))
    others = (pickle.loads(pickle.dumps(robot)), copy.copy(robot), saved, robot.with_gravity((0, 0, -9.81)),
              robot.with_parameters(robot.parameters))  # fmt: skip
    for other in others:
        np.testing.assert_array_equal(other.coupling.matrix, robot.coupling.matrix)
        np.testing.assert_array_equal(other.mass_matrix(q), robot.mass_matrix(q))
    driven = robot.with_armature(0.5)
    np.testing.assert_allclose(driven.mass_matrix(q) - robot.mass_matrix(q), np.diag([0.5, 0.5, 0, 0, 0]), atol=1e-14)


def test_urdf_and_back(tmp_path):
    joints = [gc.Joint.revolute((0, 0, 1), name=n) for n in "ab"]
    bodies = [gc.Body(f"body_{j.name}", None, j, None, BALL) for j in joints]
    robot = gc.Robot.build(bodies, couplings=[gc.Coupling("a", {"b": -0.5}, 0.25)])
    back = models.load_urdf(models.save(robot, tmp_path / "robot.urdf"))
    np.testing.assert_allclose(back.inverse_dynamics([0.3], [1.0], [2.0]), robot.inverse_dynamics([0.3], [1.0], [2.0]))
    several = gc.Robot.build(
        [*bodies, gc.Body("body_c", None, gc.Joint.revolute((0, 1, 0), name="c"), None, BALL)],
        couplings=[gc.Coupling("a", {"b": 1.0, "c": 1.0})],
    )
    with pytest.raises(ModelError, match="joint 'a': in URDF a joint follows one other, not 2"):
        models.save(several, tmp_path / "other.urdf")
