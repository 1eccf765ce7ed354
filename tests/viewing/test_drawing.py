"""Robots in matplotlib's axes are drawn at their poses."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models
from geomctrl.viewing import shapes
from geomctrl.viewing.drawing import draw_robot, picture


@pytest.fixture
def ax():
    plt.switch_backend("agg")
    yield plt.figure().add_subplot(projection="3d")
    plt.close("all")


def triangles(drawn):
    return np.asarray(drawn._faces).reshape(-1, 3, 3)


def test_a_robot_is_drawn_where_it_is(ax):
    """The tip is the end of the last capsule."""
    arm = models.two_link()
    q = np.array([0.4, 0.9])
    corners = triangles(draw_robot(ax, arm, q[None], ["0.85"])).reshape(-1, 3)
    tip = arm.pose(q, "tip")[:3, 3]
    assert np.linalg.norm(corners - tip, axis=1).min() < shapes.MAX_RADIUS * shapes.reach(arm) + 1e-9
    away = tip / np.linalg.norm(tip)
    assert (corners @ away).max() == pytest.approx(tip @ away, abs=shapes.MAX_RADIUS * shapes.reach(arm))
    edges = np.linalg.norm(np.diff(triangles(draw_robot(ax, arm, q[None], ["0.85"])), axis=1), axis=2)
    assert edges.max() < 0.2 * shapes.reach(arm)


def test_several_postures_are_one_collection_with_their_colours(ax):
    arm = models.two_link()
    q = np.array([[0.4, 0.9], [0.0, 0.0], [1.0, -1.0]])
    apart = [triangles(draw_robot(ax, arm, x[None], ["0.85"])) for x in q]
    together = draw_robot(ax, arm, q, ["#ff0000", "#00ff00", "#0000ff"])
    assert len(triangles(together)) == sum(len(x) for x in apart)
    assert {int(np.argmax(c[:3])) for c in together.get_facecolor()} == {0, 1, 2}


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_links_of_both_conventions_hang_together(convention):
    """Capsules end where the next one begins, for any convention of link frames."""
    half = np.pi / 2
    a, alpha, d = [0.0, -0.425, -0.392, 0.0, 0.0], [half, 0.0, 0.0, half, -half], [0.089, 0.0, 0.0, 0.109, 0.095]
    bodies = [gc.inertia.from_com(1.0, (0, 0, 0.01), 0.01 * np.eye(3))] * 5
    robot = gc.Robot.from_dh(a, alpha, d, np.zeros(5), convention=convention, inertias=bodies)
    q = np.array([0.3, -0.8, 1.1, 0.4, -0.6])
    clouds = {}
    for mesh in shapes.capsules(robot):
        if mesh.part == "link":
            T = np.eye(4) if mesh.body < 0 else robot.pose(q, robot.body_names[mesh.body])
            clouds.setdefault(mesh.body, []).append(mesh.vertices @ T[:3, :3].T + T[:3, 3])
    thick = 2.0 * shapes.MAX_RADIUS * shapes.reach(robot)
    for body in range(robot.nbodies - 1):
        if body in clouds and body + 1 in clouds:
            mine, next_one = np.concatenate(clouds[body]), np.concatenate(clouds[body + 1])
            assert np.linalg.norm(mine[:, None] - next_one[None], axis=2).min() < thick, body


def test_a_picture_shows_each_configuration_in_its_colour():
    arm = models.two_link()
    drawn = picture(arm, np.array([[0.4, 0.9], [2.0, -0.5]]), ["#ff0000", "#00ff00"], pixels=200).astype(int)
    assert drawn.shape == (200, 200, 3)
    red, green, blue = drawn.transpose(2, 0, 1)
    assert ((red > 2 * green) & (red > 2 * blue)).sum() > 100
    assert ((green > 2 * red) & (green > 2 * blue)).sum() > 100
    assert (drawn[0, 0] == 255).all()
