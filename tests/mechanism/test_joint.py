"""Joints: their screws, and the error messages for invalid ones."""

import numpy as np
import pytest
from oracles import assert_close
from parts import Z

import geomctrl as gc
from geomctrl.errors import GeomctrlError


def test_screws_of_joints():
    axis, point = np.array([0.0, 0.6, 0.8]), np.array([1.0, 2.0, 3.0])
    moment = np.cross(point, axis)
    assert_close(gc.Joint.revolute(2 * axis, point).S[:, 0], [*axis, *moment], 1e-15)
    assert_close(gc.Joint.prismatic(3 * axis).S[:, 0], [0, 0, 0, *axis], 1e-15)
    assert_close(gc.Joint.helical(axis, point, 0.1).S[:, 0], [*axis, *(moment + 0.1 * axis)], 1e-15)
    assert_close(gc.Joint.cylindrical(axis, point).S.T, [[*axis, *moment], [0, 0, 0, *axis]], 1e-15)
    assert_close(gc.Joint.free().S, np.eye(6), 1e-15)
    spherical, w = gc.Joint.spherical(point).S, np.array([0.1, -0.5, 0.9])
    assert_close(spherical @ w, [*w, *np.cross(point, w)], 1e-15)
    planar = gc.Joint.planar(axis).S
    assert_close(planar.T @ planar, np.eye(3), 1e-15)
    assert_close(planar[:3, 2], axis, 1e-15)
    assert_close(np.cross(planar[3:, 0], planar[3:, 1]), axis, 1e-15)
    assert [j.nq for j in (gc.Joint.free(), gc.Joint.revolute(Z), gc.Joint.fixed())] == [12, 1, 0]


@pytest.mark.parametrize(("normal", "e1", "e2"), [(2, 0, 1), (0, 1, 2), (1, 2, 0)])
def test_a_planar_joint_slides_along_the_axes_of_its_plane_in_their_order(normal, e1, e2):
    """(x, y) for the normal z, as in URDF and Pinocchio, and cyclic permutations of it."""
    axes = np.eye(3)
    S = gc.Joint.planar(axes[normal]).S
    np.testing.assert_array_equal(
        S,
        np.vstack(
            (np.column_stack((0 * axes[:, :2], axes[:, normal])), np.column_stack((axes[e1], axes[e2], 0 * axes[0])))
        ),
    )
    tilted = gc.Joint.planar(axes[normal] + 1e-7 * axes[e1]).S
    assert np.abs(tilted - S).max() < 2e-7


@pytest.mark.parametrize(
    ("screw", "kind"),
    [((0, 0, 1, 0, 2, 0), "revolute"), ((0, 0, 1, 1, 0, 0.3), "helical"), ((0, 0, 0, 0, 1, 0), "prismatic")],
)
def test_joint_from_a_screw(screw, kind):
    joint = gc.Joint.from_screw(screw, name="j", lower=-1.0)
    assert (joint.kind, joint.name, joint.lower) == (kind, "j", -1.0)
    assert_close(joint.S[:, 0], screw, 1e-15)


BAD_JOINTS = {
    "axis: expected a direction, got the zero vector": lambda: gc.Joint.revolute((0, 0, 0)),
    r"axis: expected 3 finite numbers, got \(0, 1\)": lambda: gc.Joint.prismatic((0, 1)),
    r"axis: expected 3 finite numbers, got \(0, nan, 1\)": lambda: gc.Joint.cylindrical((0, np.nan, 1)),
    "normal: expected a direction": lambda: gc.Joint.planar((0, 0, 0)),
    "point: expected 3 finite numbers": lambda: gc.Joint.spherical((0, 0)),
    "pitch: expected a finite number, got inf": lambda: gc.Joint.helical(Z, pitch=np.inf),
    "screw: expected a non-zero screw, got zeros": lambda: gc.Joint.from_screw(np.zeros(6)),
    "screw: expected 6 finite numbers": lambda: gc.Joint.from_screw(np.zeros(5)),
    r"screw: expected a unit axis, .* with \|w\| = 2": lambda: gc.Joint.from_screw((0, 0, 2, 0, 0, 0)),
    r"screw: expected a unit axis, .* with \|v\| = 3": lambda: gc.Joint.from_screw((0, 0, 0, 0, 0, 3)),
    "joint 'j': lower limit 1.0 above upper limit -1.0": lambda: gc.Joint.revolute(Z, name="j", lower=1.0, upper=-1.0),
    "joint 'revolute': effort: expected a number, got nan": lambda: gc.Joint.revolute(Z, effort=np.nan),
    "joint 'j': damping must not be negative: -1": lambda: gc.Joint.revolute(Z, name="j", damping=-1.0),
    "joint 'j': effort must not be negative: -2": lambda: gc.Joint.revolute(Z, name="j", effort=-2.0),
    "joint 'j': stiffness must not be negative: -1": lambda: gc.Joint.revolute(Z, name="j", stiffness=-1.0),
    "joint 'j': stiffness: expected a finite number, got inf": lambda: gc.Joint.revolute(Z, name="j", stiffness=np.inf),
    "joint 'j': rest: expected a finite number, got -inf": lambda: gc.Joint.revolute(Z, name="j", rest=-np.inf),
    "joint 'j': stiffness: .* one degree of freedom has a spring, spherical": lambda: gc.Joint.spherical(
        name="j", stiffness=1.0
    ),
    "joint 'j': armature must not be negative: -1": lambda: gc.Joint.revolute(Z, name="j", armature=-1.0),
    "joint 'j': armature: expected a finite number, got inf": lambda: gc.Joint.revolute(Z, name="j", armature=np.inf),
    "joint 'j': armature: .* one degree of freedom has a motor, free": lambda: gc.Joint.free(name="j", armature=0.1),
    "joint 'j': gear_ratio: .* one degree of freedom has a motor, planar": lambda: gc.Joint.planar(
        Z, name="j", gear_ratio=2.0
    ),
    "joint 'j': gear_ratio: expected a number other than 0": lambda: gc.Joint.revolute(Z, name="j", gear_ratio=0.0),
    "joint 'j': gear_ratio: expected a finite number, got -inf": lambda: gc.Joint.prismatic(
        Z, name="j", gear_ratio=-np.inf
    ),
    "rotor: expected an inertia >= 0, got -1": lambda: gc.Joint.revolute(Z).with_motor(-1.0),
    "pitch: expected a finite number, got 'a'": lambda: gc.Joint.helical(Z, pitch="a"),
    "kind: expected one of 'revolute', .*, got 'foo'": lambda: gc.Joint("foo", np.eye(6)),
    "lowr: a joint has no such property; expected .*lower": lambda: gc.Joint.revolute(Z, lowr=1.0),
    "kind: expected one of 'revolute', .*, got 3": lambda: gc.Joint(3, np.eye(6)),
    r"joint 'revolute': S: expected shape \(6, 1\), revolute, got \(6, 6\)": lambda: gc.Joint("revolute", np.eye(6)),
    "joint 'free': S: expected real numbers .*, got 'a'": lambda: gc.Joint("free", "a"),
    r"joint 'spherical': S: expected 3 rotational direction\(s\) for spherical": lambda: gc.Joint(
        "spherical", np.eye(6)[:, 3:]
    ),
    "joint 'revolute': S: expected no pitch, revolute, got 0.5": lambda: gc.Joint(
        "revolute", np.c_[[0, 0, 1, 0, 0, 0.5]]
    ),
    "joint 'revolute': damping: expected a finite number, got inf": lambda: gc.Joint.revolute(Z, damping=np.inf),
    "joint 'revolute': upper: expected a number, got 1j": lambda: gc.Joint.revolute(Z, upper=1j),
    "axis: expected 3 finite numbers, got masked": lambda: gc.Joint.revolute(np.ma.masked_array(Z, [1, 0, 0])),
    "axis: expected 3 finite numbers, got \\['0'": lambda: gc.Joint.revolute(["0", "0", "1"]),
    "name: expected a name, or None for that of the body, got ''": lambda: gc.Joint.revolute(Z, name=""),
    "name: expected a name, or None for that of the body, got 3": lambda: gc.Joint.revolute(Z, name=3),
}


@pytest.mark.parametrize("message", BAD_JOINTS)
def test_joints_that_can_not_be(message):
    with pytest.raises(GeomctrlError, match=message):
        BAD_JOINTS[message]()


def test_a_motor_is_felt_by_its_gear_ratio_squared():
    joint = gc.Joint.prismatic(Z, name="slide", upper=0.5).with_motor(2e-6, -1000.0)
    assert (joint.name, joint.upper, joint.gear_ratio) == ("slide", 0.5, -1000.0)
    assert joint.armature == pytest.approx(2.0)
    assert (joint.with_motor(3.0).armature, joint.with_motor(3.0).gear_ratio) == (3.0, 1.0)
