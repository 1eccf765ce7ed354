"""Bounding boxes of a URDF's geometry contain all its points, in the frames of the bodies."""

import numpy as np
import pinocchio as pin
import pytest
from urdf_arms import ARM

from geomctrl import models
from geomctrl.errors import ArgumentError, ModelError

SEEN = ARM.replace("nowhere.stl", "tetrahedron.stl")
CORNERS = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.1]])
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


@pytest.fixture
def arm(tmp_path):
    """Return the path of the arm's URDF next to its meshes, of which one is a tetrahedron in an STL text file."""
    points = [f"facet normal 0 0 0\nouter loop\n{''.join(_vertex(i) for i in f)}endloop\nendfacet\n" for f in FACES]
    (tmp_path / "tetrahedron.stl").write_text(f"solid t\n{''.join(points)}endsolid t\n")
    (tmp_path / "arm.urdf").write_text(SEEN)
    return tmp_path / "arm.urdf"


def _vertex(i):
    return f"vertex {' '.join(map(str, CORNERS[i]))}\n"


def test_boxes_hold_shapes_meshes_and_merged_links(arm):
    boxes = models.link_boxes(arm, models.load_urdf(arm))
    assert list(boxes) == ["upper", "fore"]
    corners = np.array([[x, y, z] for x in (-0.2, 0.2) for y in (-0.05, 0.05) for z in (-0.15, 0.15)])
    upper = np.concatenate((corners @ pin.rpy.rpyToMatrix(0.3, -0.5, 0.7).T + [0.1, 0.2, 0.3], CORNERS))
    np.testing.assert_allclose(boxes["upper"], [upper.min(0), upper.max(0)], atol=1e-12)
    ball = np.array([0.05 * np.cos(1.0), 0.1 + 0.05 * np.sin(1.0), 0.2])
    fore = np.concatenate((CORNERS, [ball - 0.04, ball + 0.04]))
    np.testing.assert_allclose(boxes["fore"], [fore.min(0), fore.max(0)], atol=1e-9)


def test_a_meshs_scale_and_its_package(arm):
    text = SEEN.replace('filename="tetrahedron.stl"', 'filename="package://kit/tetrahedron.stl" scale="2 -1 1"')
    (arm.parent / "kit").mkdir()
    (arm.parent / "tetrahedron.stl").rename(arm.parent / "kit" / "tetrahedron.stl")
    arm.write_text(text.replace('<link name="tool"><collision>', '<link name="tool"><visual>').replace(
        '</geometry></collision></link>\n</robot>', '</geometry></visual></link>\n</robot>'))  # fmt: skip
    robot = models.load_urdf(arm)
    for dirs in ([], [arm.parent]):
        box = models.link_boxes(arm, robot, package_dirs=dirs)["fore"]
        np.testing.assert_allclose(box[0, 1], -0.2, atol=1e-7)
        np.testing.assert_allclose(box[1, 0], 0.6, atol=1e-7)
    assert models.link_boxes(text, robot) == {}


def test_bodies_with_a_mesh_that_is_not_read_have_no_box(arm):
    (arm.parent / "tetrahedron.stl").write_text("no mesh")
    robot = models.load_urdf(arm)
    assert models.link_boxes(arm, robot) == {}
    (arm.parent / "tetrahedron.stl").unlink()
    assert models.link_boxes(arm, robot) == {}


def test_what_is_not_the_robots_file():
    with pytest.raises(ModelError, match="no such body or frame"):
        models.link_boxes(ARM, models.two_link())
    with pytest.raises(ModelError, match="expected the root element <robot>"):
        models.link_boxes("<mujoco/>", models.two_link())
    with pytest.raises(ArgumentError, match="robot: expected a geomctrl"):
        models.link_boxes(ARM, None)
