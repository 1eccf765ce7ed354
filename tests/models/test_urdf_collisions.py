"""Capsules from a URDF's collision geometry contain this geometry and belong to the right bodies."""

import numpy as np
import pytest
from urdf_arms import ARM

from geomctrl import models
from geomctrl.errors import ModelError
from geomctrl.mechanism.capsules import at, point_on_segment
from geomctrl.models.io.urdf_geometry import collision_capsules


def test_capsules_contain_the_geometry():
    robot = models.load_urdf(ARM)
    found, without = collision_capsules(ARM, robot)
    assert without == ()
    upper = [c for c in found if c.body == 0]
    corners = np.array([[x, y, z] for x in (-0.2, 0.2) for y in (-0.05, 0.05) for z in (-0.15, 0.15)])
    inside = np.random.default_rng(0).uniform(-1, 1, (2000, 3)) * [0.2, 0.05, 0.15]
    import pinocchio as pin

    points = np.concatenate((corners, inside)) @ pin.rpy.rpyToMatrix(0.3, -0.5, 0.7).T + [0.1, 0.2, 0.3]
    far = [
        np.linalg.norm(points - at(c.start, c.end, point_on_segment(points, c.start, c.end)), axis=1) - c.radius
        for c in upper
    ]
    assert np.min(far, axis=0).max() <= 1e-12, "a point of the box is in no capsule"
    assert len(upper) == 3, "a flat box is covered by capsules side by side"
    assert max(c.radius for c in upper) < 0.08, "capsules are not much thicker than the box"
    base = next(c for c in found if c.body == -1)
    assert (base.radius, base.start[2], base.end[2]) == (0.1, -0.1, 0.1)


def test_geometry_on_a_merged_link_is_its_bodys():
    robot = models.load_urdf(ARM)
    found, _ = collision_capsules(ARM, robot)
    (ball,) = [c for c in found if c.body == 1]
    np.testing.assert_allclose(ball.start, [0.05 * np.cos(1.0), 0.1 + 0.05 * np.sin(1.0), 0.2])
    np.testing.assert_allclose(ball.end, ball.start)
    assert ball.radius == 0.04


def test_links_of_meshes_get_capsules_between_joints_and_are_named():
    text = ARM.replace(
        '<geometry><box size="0.4 0.1 0.3"/></geometry>', '<geometry><mesh filename="x.stl"/></geometry>'
    )
    robot = models.load_urdf(text)
    found, without = collision_capsules(text, robot, radius=0.03)
    assert without == ("upper",)
    (c,) = [c for c in found if c.body == 0]
    np.testing.assert_allclose(c.end, [0.5, 0, 0])
    assert c.radius == 0.03


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ('radius="0.04"', 'radius="x"', r"link 'tool', line 13: sphere radius: expected 1 finite"),
        ('radius="0.04"', 'radius="0"', r"link 'tool': collision geometry: expected sizes > 0"),
        ('size="0.4 0.1 0.3"', 'size="0.4 0.1"', r"link 'upper', line 6: box size: expected 3"),
        ('size="0.4 0.1 0.3"', 'size="0.4 0 0.3"', r"link 'upper': collision geometry: expected sizes > 0"),
        ('rpy="0.3 -0.5 0.7"', 'rpy="nan 0 0"', r"origin rpy: expected 3 finite"),
    ],
)
def test_bad_geometry_is_named(was, now, message):
    with pytest.raises(ModelError, match=message):
        collision_capsules(ARM.replace(was, now), models.load_urdf(ARM))


def test_another_robots_file_is_refused():
    with pytest.raises(ModelError, match="has no such body or frame"):
        collision_capsules(ARM, models.panda())
