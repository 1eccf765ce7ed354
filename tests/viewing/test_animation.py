"""A run as a page: bodies from the robot's tree, curves whose cursors follow the time, and no network."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import geomctrl as gc
from geomctrl import controllers, models, references
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.viewing import joints, scene, shapes
from geomctrl.viewing.animation import _arrows, _pictures


def volume_integrals(vertices, faces):
    """(volume, first moment, int r r^T) of a closed mesh, by tetrahedra from the origin."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    six = np.einsum("ij,ij->i", a, np.cross(b, c))
    first = np.einsum("i,ij->j", six, a + b + c) / 24.0
    s = a + b + c
    second = np.einsum("i,ij,ik->jk", six, s, s)
    for x in (a, b, c):
        second += np.einsum("i,ij,ik->jk", six, x, x)
    return six.sum() / 6.0, first, second / 120.0


@pytest.mark.parametrize("b", [(0.0, 0.0, 0.7), (0.3, -0.4, 0.0), (0.0, 0.0, 0.0)])
def test_a_capsule_is_closed_faces_outwards_and_has_its_volume(b):
    b, r = np.array(b), 0.2
    vertices, faces = shapes.capsule(np.zeros(3), b, r)
    along = np.clip(vertices @ b / max(b @ b, 1e-12), 0.0, 1.0)
    np.testing.assert_allclose(np.linalg.norm(vertices - along[:, None] * b, axis=1), r, rtol=1e-12)
    volume, _, _ = volume_integrals(vertices, faces)
    exact = np.pi * r**2 * np.linalg.norm(b) + 4.0 / 3.0 * np.pi * r**3
    assert 0.9 * exact < volume < exact  # the mesh lies within


def test_a_body_that_ends_where_it_begins_is_the_ellipsoid_with_its_inertia():
    semi, R = np.array([0.3, 0.2, 0.1]), gc.so3.exp([0.3, -0.5, 0.8])
    mass = 4.0
    about_centre = R @ np.diag(mass / 5.0 * (semi @ semi - semi**2)) @ R.T
    body = gc.Body("moon", None, gc.Joint.free(), None, inertia.from_com(mass, (0, 0, 0), about_centre))
    (mesh,) = shapes.capsules(gc.Robot.build([body]))
    volume, _, second = volume_integrals(mesh.vertices, mesh.faces)
    result = mass / volume * (np.trace(second) * np.eye(3) - second)
    np.testing.assert_allclose(result, about_centre, rtol=0.1, atol=0.05 * np.trace(about_centre))


def test_links_go_from_joint_to_joint():
    robot = models.two_link()
    links = [m for m in shapes.capsules(robot) if m.part == "link"]
    child = robot.placements[1][:3, 3]
    first = next(m for m in links if m.body == 0)
    assert np.linalg.norm(first.vertices - child, axis=1).min() < shapes.MAX_RADIUS * shapes.reach(robot) + 1e-12
    assert {m.body for m in shapes.capsules(models.panda())} >= set(range(7)) | {-1}


def test_pictures_are_as_long_apart_as_the_samples_they_show():
    t = np.linspace(1.0, 3.0, 2001)
    shown = _pictures(t)
    at = [k for k, _ in shown]
    assert (at[0], at[-1]) == (0, 2000)
    np.testing.assert_allclose(np.cumsum([0.0, *(pause for _, pause in shown)])[: len(at)], t[at] - 1.0, atol=1e-12)
    assert np.diff(t[at]).max() < 1.01 / 30.0 + 1e-3


@pytest.fixture(scope="module")
def run():
    robot = models.panda()
    reference = references.Sinusoids(robot, [0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8], amplitude=0.3, frequency=0.4)
    law = controllers.Passivity(robot, reference)
    return gc.simulate(gc.Plant(robot), law, reference(0.0).q + 0.1, reference(0.0).v, t_end=0.5, dt=1e-3)


@pytest.fixture(scope="module")
def small():
    """A run whose page is quickly made."""
    robot = models.two_link()
    law = controllers.PDGravity(robot, robot.neutral())
    return gc.simulate(robot, law, robot.neutral(), np.zeros(2), 0.05, 1e-3)


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    pytest.importorskip("viser")
    return run.save_html(tmp_path_factory.mktemp("page") / "run.html", title="<Panda> & load")


def test_a_page_is_small_and_complete(run, page):
    text = page.read_text(encoding="utf-8")
    assert len(text) < 3e6
    assert "&lt;Panda&gt; &amp; load" in text
    assert "<Panda>" not in text
    outside = text[: text.index("srcdoc=")] + text[text.index('"></iframe>') :]
    assert not re.findall(r"(?:src|href)=[\"']https?:", outside)
    panels = json.loads(re.search(r"const panels = (\[.*?\]);", text)[1])
    assert len(panels) == 4
    for p in panels:
        assert p["left"] < p["right"]
        assert p["top"] < p["bottom"]
        assert (p["first"], p["last"]) == (run.t[0], run.t[-1])


def test_runs_that_can_not_be_shown(small, tmp_path):
    loaded = gc.Run.load(small.save(tmp_path / "run.npz"))
    with pytest.raises(ArgumentError, match="loaded without a plant"):
        loaded.save_html(tmp_path / "run.html")
    with pytest.raises(ArgumentError, match="title: expected a line of text"):
        small.save_html(tmp_path / "run.html", title=3)
    assert not (tmp_path / "run.html").exists()
    assert "<iframe srcdoc=" in gc.Run.load(tmp_path / "run.npz", small.plant).animate()._repr_html_()


def test_the_page_says_what_its_colours_mean_and_frames_are_chosen(run, tmp_path):
    pytest.importorskip("viser")
    text = run.save_html(tmp_path / "run.html", frames=["panda_link8"]).read_text(encoding="utf-8")
    header = text[: text.index("srcdoc=")]
    assert "path of panda_hand_tcp" in header
    assert "desired" in header
    assert "external force" not in header
    with pytest.raises(gc.NameNotFoundError, match="no frame named 'panda_link9'"):
        run.animate(frames=["panda_link9"])
    with pytest.raises(ArgumentError, match="frames: expected a list"):
        run.animate(frames="panda_link8")


def test_a_title_is_no_template(small, tmp_path):
    pytest.importorskip("viser")
    text = small.save_html(tmp_path / "run.html", title="{{curves}} of {{nobody}}").read_text(encoding="utf-8")
    assert "<title>{{curves}} of {{nobody}}</title>" in text
    assert text.count("<svg") == 1


def test_a_page_without_a_browser_says_where_it_is(small, monkeypatch, capsys):
    pytest.importorskip("viser")
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    small.animate().open()
    address = capsys.readouterr().err.split()[-1]
    file = Path(url2pathname(urlsplit(address).path))
    assert "<title>two_link, PDGravity</title>" in file.read_text(encoding="utf-8")
    file.unlink()


@pytest.mark.parametrize("turns", [True, False])
@pytest.mark.parametrize("limits", [(-np.inf, np.inf), (10.0, np.inf), (-np.inf, -10.0), (0.5, 0.5), (-1.0, np.inf)])
def test_a_slider_goes_where_its_joint_may(limits, turns):
    low, high = joints.span(*limits, turns=turns)
    assert limits[0] <= low <= high <= limits[1]
    assert np.isfinite([low, high]).all()
    assert high > low or limits[0] == limits[1]


def test_a_tour_of_the_joints_moves_each_to_both_sides_within_its_limits():
    for robot in (models.panda(), models.scara(), models.quadruped(), models.cart_pole()):
        t, q = joints.joint_tour(robot)
        moved = robot.difference(np.broadcast_to(joints.rest(robot), q.shape), q)
        assert (moved.max(axis=0) > 0.05).all()
        assert (moved.min(axis=0) < -0.05).all()
        assert ((np.abs(moved) > 1e-9).sum(axis=1) <= 1).all()
        assert len(t) == len(q)
        for joint, at in zip(robot.joints, robot.q_slices):
            if joint.dof == 1:
                assert joint.lower - 1e-12 <= q[:, at].min()
                assert q[:, at].max() <= joint.upper + 1e-12


def test_an_end_effector_is_the_tool_or_the_free_body():
    assert scene.end_effector(models.panda()) == "panda_hand_tcp"
    assert scene.end_effector(models.two_link()) == "tip"
    assert scene.end_effector(models.quadrotor()) == models.quadrotor().body_names[0]


def test_what_rounding_leaves_of_a_moment_is_no_arrow():
    pytest.importorskip("viser")
    robot = models.two_link()
    law = controllers.PDGravity(robot, [1.0, 0.5])
    for wrench, said in (
        ([0, 0, 0, 0, 0, 20.0], ["external force: 20 N is 0.7 m long"]),
        ([0, 0, 3.0, 0, 0, 0], ["moment: 3 N m is 0.7 m long"]),
        ([0, 0, 3.0, 0, 0, 20.0], ["external force: 20 N is 0.7 m long", "moment: 3 N m is 0.7 m long"]),
    ):
        push = gc.Wrench("tip", wrench, representation="hybrid")
        run = gc.simulate(gc.Plant(robot, f_ext=push), law, [0.2, 0.1], [0.0, 0.0], 0.01, 1e-3)
        arrows, scales = _arrows(run, np.arange(len(run.t)))
        assert [words for _, words in scales] == said
        assert len(arrows) == len(said)


def test_arrows_turn_to_where_they_point():
    rng = np.random.default_rng(0)
    for n in (*rng.normal(size=(20, 3)), [0, 0, 1.0], [0, 0, -1.0], [1.0, 0, 0]):
        n = np.asarray(n) / np.linalg.norm(n)
        w, x, y, z = scene._from_z_to(n)
        R = Rotation.from_quat([x, y, z, w]).as_matrix()
        np.testing.assert_allclose(R[:, 2], n, atol=1e-7)
