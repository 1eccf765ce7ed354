"""A URDF's robot looks like its <visual> elements: where files are, scale and colour of meshes, what is missing."""

import warnings

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models
from geomctrl.viewing import shapes, visuals

trimesh = pytest.importorskip("trimesh")

INERTIA = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
URDF = """<robot name="arm">
<material name="blue"><color rgba="0 0 1 1"/></material>
<link name="base"><visual><geometry><box size="0.2 0.4 0.6"/></geometry><material name="blue"/></visual></link>
<link name="link">{inertia}
  <visual><origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/>{geometry}
  <material name="m"><color rgba="1 0 0 0.5"/></material></visual>
</link>
<joint name="j" type="continuous"><parent link="base"/><child link="link"/><axis xyz="0 0 1"/></joint>
</robot>"""


def urdf(geometry):
    return URDF.format(inertia=INERTIA, geometry=f"<geometry>{geometry}</geometry>")


def box(folder, name="box.stl", extents=(1.0, 2.0, 3.0), colour=None):
    folder.mkdir(parents=True, exist_ok=True)
    mesh = trimesh.creation.box(extents=extents)
    if colour is not None:
        material = trimesh.visual.material.PBRMaterial(baseColorFactor=colour)
        mesh.visual = trimesh.visual.TextureVisuals(uv=np.zeros((len(mesh.vertices), 2)), material=material)
    mesh.export(folder / name)
    return folder / name


def volume(mesh):
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0


def drawn(robot):
    """(that of the base, that of the link); no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = visuals.meshes(robot)
    return tuple(next(m for m in result if m.body == body) for body in (-1, 0))


@pytest.mark.parametrize(
    ("geometry", "exact", "extents"),
    [
        ('<box size="1 2 3"/>', 6.0, (2.0, 1.0, 3.0)),  # turned by a right angle
        ('<cylinder radius="0.5" length="2"/>', np.pi / 2, (1.0, 1.0, 2.0)),
        ('<sphere radius="0.5"/>', np.pi / 6, (1.0, 1.0, 1.0)),
    ],
)
def test_primitives_have_their_volume_place_and_colour(geometry, exact, extents):
    base, link = drawn(models.load_urdf(urdf(geometry)))
    assert volume(link) == pytest.approx(exact, rel=0.06)
    np.testing.assert_allclose(np.ptp(link.vertices, axis=0), extents, rtol=0.02)
    np.testing.assert_allclose(link.vertices.mean(axis=0), (0, 0, 1), atol=1e-3)
    assert (link.colour, link.opacity) == ((255, 0, 0), pytest.approx(128 / 255))
    assert (base.colour, base.opacity) == ((0, 0, 255), 1.0)
    assert volume(base) == pytest.approx(0.048)


@pytest.mark.parametrize(
    "written", ["meshes/box.stl", "package://mine/meshes/box.stl", "package://other/meshes/box.stl"]
)
def test_meshes_are_found_from_the_file(written, tmp_path):
    box(tmp_path / "mine" / "meshes")
    file = tmp_path / "mine" / "arm.urdf"
    file.write_text(urdf(f'<mesh filename="{written}" scale="0.1 0.1 0.2"/>'), encoding="utf-8")
    _, link = drawn(models.load_urdf(file))
    assert volume(link) == pytest.approx(6.0 * 0.002)


@pytest.mark.parametrize("how", ["package_dirs", "ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH"])
def test_meshes_are_found_in_packages(how, tmp_path, monkeypatch):
    box(tmp_path / "packages" / "share" / "mine")
    text = urdf('<mesh filename="package://mine/box.stl"/>')
    folder = tmp_path / "packages" / ("" if how == "AMENT_PREFIX_PATH" else "share")
    if how != "package_dirs":
        monkeypatch.setenv(how, f"/nowhere:{folder}")
    robot = models.load_urdf(text, package_dirs=[folder] if how == "package_dirs" else ())
    assert volume(drawn(robot)[1]) == pytest.approx(6.0)


def test_a_mirrored_mesh_faces_outwards(tmp_path):
    file = box(tmp_path)
    _, link = drawn(models.load_urdf(urdf(f'<mesh filename="{file}" scale="1 -1 1"/>')))
    assert volume(link) == pytest.approx(6.0)


@pytest.mark.parametrize("kind", ["obj", "dae", "glb"])
def test_a_meshs_own_colour_comes_before_the_urdfs(kind, tmp_path):
    file = box(tmp_path, f"box.{kind}", colour=[10, 200, 30, 255])
    _, link = drawn(models.load_urdf(urdf(f'<mesh filename="file://{file}"/>')))
    np.testing.assert_allclose(link.colour, (10, 200, 30), atol=1)
    _, link = drawn(models.load_urdf(urdf(f'<mesh filename="{box(tmp_path)}"/>')))
    assert link.colour == (255, 0, 0)


def test_a_collada_file_says_its_unit(tmp_path):
    file = box(tmp_path, "box.dae")
    text = file.read_text(encoding="utf-8")
    assert "<asset>" in text
    start, end = text.index("<asset>"), text.index("</asset>")
    inside = text[start:end]
    inside = inside[: inside.index("<unit")] if "<unit" in inside else inside
    file.write_text(text[:start] + inside + '<unit name="cm" meter="0.01"/>' + text[end:], encoding="utf-8")
    _, link = drawn(models.load_urdf(urdf(f'<mesh filename="{file}"/>')))
    assert volume(link) == pytest.approx(6e-6)


def test_what_is_missing_is_named_once_and_drawn_as_capsules(tmp_path):
    (tmp_path / "broken.stl").write_bytes(b"solid nothing")
    text = urdf('<mesh filename="package://gone/a.stl"/>')
    with pytest.warns(UserWarning, match=r"arm: not there.*package://gone/a\.stl.*drawn as capsules where") as seen:
        result = visuals.meshes(models.load_urdf(text))
    assert len(seen) == 1
    assert {m.body for m in result} == {-1, 0}
    assert any(m.colour is None for m in result)  # a capsule
    with pytest.warns(UserWarning, match=r"broken\.stl"):
        visuals.meshes(models.load_urdf(urdf(f'<mesh filename="{tmp_path}/broken.stl"/>')))
    file = tmp_path / "arm.urdf"
    file.write_text(text, encoding="utf-8")
    robot = models.load_urdf(file)
    file.unlink()
    with pytest.warns(UserWarning, match=r"arm\.urdf.*drawn as capsules$"):
        result = visuals.meshes(robot)
    assert all(m.colour is None for m in result)
    assert len(result) == len(shapes.capsules(robot))


def test_loading_opens_no_mesh_and_looks_stay_with_the_robot(tmp_path, monkeypatch):
    file = box(tmp_path)
    monkeypatch.setattr(trimesh, "load_scene", lambda *a, **k: pytest.fail("opened"))
    robot = models.load_urdf(urdf(f'<mesh filename="{file}"/>'))
    monkeypatch.undo()
    import pickle

    for same in (robot.with_payload(1.0), robot.with_gravity((0, 0, 0)), pickle.loads(pickle.dumps(robot))):
        assert same.origin.visual == robot.origin.visual
        assert len(visuals.meshes(same)) == 2


def test_a_sweep_is_the_same_wherever_the_meshes_are(tmp_path):
    from dataclasses import replace

    from geomctrl.control.sweeping.fingerprint import fingerprint

    robot = models.load_urdf(urdf('<box size="1 1 1"/>'))
    assert fingerprint(robot) == fingerprint(replace(robot, origin=replace(robot.origin, visual=None)))
    assert fingerprint(robot) != fingerprint(robot.with_payload(1.0))


def test_many_triangles_become_few_that_are_near(monkeypatch):
    ball = trimesh.creation.icosphere(subdivisions=5)
    V, F = np.asarray(ball.vertices), np.asarray(ball.faces)
    monkeypatch.setattr(visuals, "MAX_TRIANGLES", 3000)
    side = visuals._cell([(V, F)])
    small, few = visuals.coarser(V, F, side)
    assert 1500 < len(few) <= 3000 < len(F)
    np.testing.assert_allclose(np.linalg.norm(small, axis=1), 1.0, atol=0.01)  # the planes', not the corners' mean
    assert volume(shapes.Mesh(0, "link", small, few)) == pytest.approx(4.0 / 3.0 * np.pi, rel=0.02)


def test_a_boxs_corner_is_kept_when_it_is_made_coarser():
    cube = trimesh.creation.box().subdivide().subdivide().subdivide()
    small, few = visuals.coarser(np.asarray(cube.vertices), np.asarray(cube.faces), 0.3)
    assert len(few) < len(cube.faces) / 2
    corner = np.linalg.norm(np.abs(small) - 0.5, axis=1).min()
    assert corner < 0.01  # the mean of the cell's vertices is 0.06 off


def test_sharp_edges_are_shaded_apart_and_round_ones_together():
    cube, ball = trimesh.creation.box(), trimesh.creation.icosphere(subdivisions=3)
    assert len(visuals.creased(np.asarray(cube.vertices), np.asarray(cube.faces))[0]) == 24  # three at each corner
    assert len(visuals.creased(np.asarray(ball.vertices), np.asarray(ball.faces))[0]) == len(ball.vertices)


def test_equal_places_are_one_vertex():
    V = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0], [0, 1, 0]])
    V, F = visuals.welded(V, np.array([[0, 1, 2], [3, 4, 5], [2, 5, 6]]))
    assert len(V) == 4
    assert len(F) == 2


def test_frames_that_are_none_are_named():
    pytest.importorskip("viser")
    from geomctrl.viewing.animation import robot_page

    with pytest.raises(gc.NameNotFoundError, match="no frame named 'hnad'"):
        robot_page(models.panda(), "", ["hnad"])


def test_a_mesh_in_millimetres_is_doubted(tmp_path):
    file = box(tmp_path, extents=(300.0, 200.0, 400.0))
    with pytest.warns(UserWarning, match=r'400 m large, the robot about .* scale="0\.001 0\.001 0\.001"'):
        visuals.meshes(models.load_urdf(urdf(f'<mesh filename="{file}"/>')))
    drawn(models.load_urdf(urdf(f'<mesh filename="{file}" scale="0.001 0.001 0.001"/>')))
