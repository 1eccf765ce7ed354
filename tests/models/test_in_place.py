"""Updates of a URDF or MJCF file: changed and unchanged parts, and the result read by other libraries."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from pinocchio_oracle import assert_dynamics, robot_files

from geomctrl import inertia, models
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError
from geomctrl.models.io.in_place import update_model_file

URDF = """<?xml version='1.0' encoding="utf-8"?>
<!-- the arm of room 7, Prüfstand -->
<robot  name = "arm"  >
\t<material name="grün"><color rgba="0 1 0 1"/></material>
\t<link name='base'><inertial><mass value="9"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
\t</link>
\t<link name="upper"   >
\t\t<!-- weighed <inertial> -->
\t\t<inertial>
\t\t\t<mass   value = '3.5'/>  <!-- kg -->
\t\t\t<origin rpy="0.3 -0.2 0.1"
\t\t\t        xyz="0.1 0 0.02"/>
\t\t\t<inertia izz="0.05" ixx="0.04" iyy="0.06" ixy="0.001" ixz="-0.002" iyz="0.003"/>
\t\t</inertial>
\t\t<visual><geometry><box size="0.1 0.1 0.4"/></geometry></visual>
\t</link>
\t<link name="bracket"><inertial>
\t\t<origin xyz="0 0 0.1"/><mass value="0.4"/>
\t\t<inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/></inertial></link>
\t<link name="empty"/>
\t<link name="fore"/>
\t<link name="tip"><collision><geometry><sphere radius=".01"/></geometry></collision></link>
\t<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 .3" rpy="0.1 0 0"/>
\t\t<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="50" velocity="2"/>
\t\t<dynamics friction='0.1' damping="0.7"/></joint>
\t<joint name="mount" type="fixed"><parent link="upper"/><child link="bracket"/>
\t\t<origin xyz="0.2 0.1 0" rpy="0 0.4 1"/></joint>
\t<joint name="plate" type="fixed"><parent link="bracket"/><child link="empty"/></joint>
\t<joint name="elbow" type="continuous"><parent link="empty"/><child link="fore"/><origin xyz="0.4 0 0"/>
\t\t<axis xyz="1 0 1"/></joint>
\t<joint name="last" type="prismatic"><parent link="fore"/><child link="tip"/><axis xyz="0 0 1"/>
\t\t<limit lower="-0.1" upper="0.2" effort="50" velocity="2"/></joint>
</robot>
<!-- the end -->
"""
MJCF = """<mujoco model="arm">
  <!-- angles in degrees -->
  <compiler angle="degree" autolimits="true"/>
  <default><joint damping="0.3"/></default>
  <worldbody>
    <body name="upper" pos="0 0 .3" euler="10 0 0">
      <joint name='shoulder' axis="0 1 0"  range="-60 60"/>  <!-- the shoulder -->
      <inertial pos="0.1 0 0.02" quat="0.9 0.1 0.2 0.3" mass="3.5" diaginertia=".04 .05 .06"/>
      <geom type="box" size=".05 .05 .2"/>
      <body name="bracket" pos=".2 .1 0"><geom size=".05" mass="0.4"/></body>
      <body pos=".4 0 0">
        <geom type="capsule" size=".03 .1" mass="0.8"/>
        <joint axis="1 0 1" frictionloss="0.05"/>
        <frame pos="0 0 .1"><body name="tip"><joint type="slide" axis="0 0 1"/><geom size=".04"/></body></frame>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def identified(robot, seed=0):
    """The robot with other, physical inertias, friction and damping."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(robot.nbodies, 4, 4)) * [0.1, 0.1, 0.1, 1.0]
    P = A @ A.swapaxes(1, 2) + np.diag([0.01, 0.01, 0.01, 0.5])
    joints = tuple(
        replace(j, damping=float(rng.uniform()), friction=float(rng.uniform())) if j.dof == 1 else j
        for j in robot.joints
    )
    return replace(robot.with_parameters(inertia.from_pseudo(P)), joints=joints)


def blanked(text):
    """The text without the parts that may change: inertials with their comments, dynamics, and whitespace around
    them.
    """
    text = text.replace(b"<!-- weighed <inertial> -->", b"<!-- weighed -->")
    text = re.sub(rb"<inertial.*?</inertial>|<inertial\s[^<]*/>", b"", text, flags=re.S)
    text = re.sub(rb"<!-- (its inertia is part of link|no inertia).*?-->|<dynamics [^<]*/>", b"", text)
    text = re.sub(rb' (damping|frictionloss)="[^"]*"', b"", text)
    return re.sub(rb"<link ([^>]*?)\s*/>", rb"<link \1></link>", re.sub(rb">\s+</link>", b"></link>", text))


def states(robot, seed=1):
    rng = np.random.default_rng(seed)
    return [(robot.random_configuration(rng), rng.normal(size=robot.nv)) for _ in range(5)]


def as_pinocchio_reads(path, robot):
    """Compare M, C v + g and inverse dynamics of a URDF in Pinocchio with the robot's."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(path))
    model.gravity.linear = robot.gravity
    for q, v in states(robot):
        assert_dynamics(robot, model, q, v, v[::-1].copy(), 1e-11)


def of_mujoco(path, robot):
    """Return [(M, bias)] at the states, for a URDF or MJCF in MuJoCo."""
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_path(str(path))
    m.opt.gravity[:] = robot.gravity
    data, out = mujoco.MjData(m), []
    for q, v in states(robot):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(m, data)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, data, M) if mujoco.__version__ >= "3.4" else mujoco.mj_fullM(m, M, data.qM)
        out.append((M - np.diag(m.dof_armature), data.qfrc_bias.copy()))
    return out


def of_drake(path, robot):
    """Return [(M, bias)] at the states, for a URDF in Drake."""
    pytest.importorskip("pydrake", reason="with Drake installed (pip install drake) it reads what is written")
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(str(path))
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    plant.Finalize()
    assert plant.num_velocities() == robot.nv
    at = [plant.GetJointByName(name).velocity_start() for name in robot.dof_names]
    context, out = plant.CreateDefaultContext(), []
    for q, v in states(robot):
        x = np.zeros((2, robot.nv))
        x[:, at] = q, v
        plant.SetPositionsAndVelocities(context, x.ravel())
        M = plant.CalcMassMatrixViaInverseDynamics(context)
        bias = plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context)
        out.append((M[np.ix_(at, at)], bias[at]))
    return out


def compare(robot, others, rtol):
    for (q, v), (M, bias) in zip(states(robot), others):
        own, b = robot.mass_matrix(q), robot.inverse_dynamics(q, v, 0 * v)
        np.testing.assert_allclose(M, own, atol=rtol * np.abs(own).max())
        np.testing.assert_allclose(bias, b, atol=rtol * np.abs(b).max())


def written(tmp_path, text=URDF, name="arm.urdf", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


# --- URDF ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-8-sig"])
def test_inertials_change_and_no_other_byte_does(newline, encoding, tmp_path):
    text = URDF.replace("utf-8", encoding.removesuffix("-sig")).replace("\n", newline)
    path = written(tmp_path, text, encoding=encoding)
    robot = models.load_urdf(path, physical="unchecked")
    new = identified(robot)
    out = update_model_file(path, new, tmp_path / "deep" / "out.urdf", friction=True)
    before, after = path.read_bytes(), out.read_bytes()
    assert blanked(before) == blanked(after)
    assert before == text.encode(encoding)
    assert (b"\r\n" in after) == (newline == "\r\n")
    assert after.count(b"\n") - after.count(b"\r\n") == (0 if newline == "\r\n" else after.count(b"\n"))
    assert before[before.index(b"<link name='base'>") :].splitlines()[0] in after
    for kept in (b"<mass   value = '", b"</inertial>", b"<!-- kg -->", b'name = "arm"  >', b"friction='"):
        assert kept in after
    assert re.search(rb'<origin rpy="0 0 0"\s+xyz="[^"]+"/>\s+<inertia izz="[^"]+" ixx=', after)
    assert b"<!-- its inertia is part of link 'upper' -->" in after
    back = models.load_urdf(out)
    scale = np.abs(new.parameters).max()
    np.testing.assert_allclose(back.parameters, new.parameters, atol=1e-14 * scale)
    np.testing.assert_array_equal(back.damping, new.damping)
    np.testing.assert_array_equal(back.friction, new.friction)


def test_others_read_the_identified_dynamics(tmp_path):
    path = written(tmp_path)
    new = identified(models.load_urdf(path, physical="unchecked"))
    out = update_model_file(path, new, tmp_path / "out.urdf", friction=True)
    as_pinocchio_reads(out, new)
    compare(new, of_mujoco(out, new), 1e-12)


def test_drake_reads_the_identified_dynamics(tmp_path):
    path = written(tmp_path)
    new = identified(models.load_urdf(path, physical="unchecked"))
    compare(new, of_drake(update_model_file(path, new, tmp_path / "out.urdf", friction=True), new), 1e-12)


def test_friction_stays_unless_asked_for_and_limits_stay(tmp_path):
    path = written(tmp_path)
    robot = models.load_urdf(path, physical="unchecked")
    tighter = [replace(j, upper=0.5 * j.upper, effort=7.0) if np.isfinite(j.upper) else j for j in robot.joints]
    new = replace(identified(robot), joints=tuple(tighter))
    update_model_file(path, new, tmp_path / "out.urdf")
    back = models.load_urdf(tmp_path / "out.urdf")
    np.testing.assert_array_equal(back.damping, [0.7, 0.0, 0.0])
    np.testing.assert_array_equal(back.limits.upper, [1.0, np.inf, 0.2])


def test_in_place_keeps_mode_links_and_bodies_that_have_not_changed(tmp_path):
    path = written(tmp_path)
    path.chmod(0o640)
    (tmp_path / "link.urdf").symlink_to(path)
    robot = models.load_urdf(path, physical="unchecked")
    before = path.read_bytes()
    assert update_model_file(path, robot) == path
    assert path.read_bytes() == before  # nothing to change
    pi = robot.parameters.copy()
    pi[2] = identified(robot).parameters[2]
    update_model_file(tmp_path / "link.urdf", robot.with_parameters(pi, physical=False))
    after = path.read_bytes()
    assert (tmp_path / "link.urdf").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert after[: before.index(b'<link name="tip">')] == before[: before.index(b'<link name="tip">')]
    assert {p.name for p in tmp_path.iterdir()} == {"arm.urdf", "link.urdf"}
    np.testing.assert_allclose(models.load_urdf(path, physical="unchecked").parameters, pi, atol=1e-14)


def test_floating_bases_and_mimic_joints(tmp_path):
    mimic = URDF.replace(
        '<axis xyz="1 0 1"/></joint>', '<axis xyz="1 0 1"/><mimic joint="shoulder" offset="0.3"/></joint>'
    )
    mimic = mimic.replace('<link name="fore"/>', '<link name="fore">' + _inertial(0.3) + "</link>")
    mimic = mimic.replace('<link name="tip">', '<link name="tip">' + _inertial(0.2))
    path = written(tmp_path, mimic)
    for options in ({"mimic": "fixed"}, {"mimic": "independent"}, {}, {"mimic": "fixed", "floating_base": True}):
        robot = models.load_urdf(path, physical="unchecked", **options)
        pi = robot.parameters * 1.25
        out = update_model_file(path, robot.with_parameters(pi), tmp_path / "out.urdf")
        back = models.load_urdf(out, **options)
        np.testing.assert_allclose(back.parameters, pi, atol=1e-14 * np.abs(pi).max())
        kept = models.io.urdf.link_parameters(out)["fore"]
        assert kept[0] == pytest.approx(0.3 if options.get("mimic") == "fixed" else 0.375)
    small = robot.parameters.copy()
    small[robot.body_names.index("upper")] *= 0.05
    with pytest.raises(
        ModelError, match=r"body 'upper': without fore, on locked mimic joints, the remaining inertia is impossible"
    ):
        update_model_file(path, robot.with_parameters(small), tmp_path / "other.urdf")
    assert not (tmp_path / "other.urdf").exists()


def _inertial(mass):
    return (
        f'<inertial><mass value="{mass}"/><inertia ixx=".01" ixy="0" ixz="0" iyy=".01" iyz="0" izz=".01"/></inertial>'
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name="upper"', 'name="${prefix}upper"', None),
        ("<robot ", '<robot xmlns:xacro="http://ros.org/wiki/xacro" ', None),
        (
            "<!-- the arm",
            '<!DOCTYPE robot [<!ENTITY m "3.5">]>\n<!-- the arm',
            "entity 'm': .* can not be edited in place",
        ),
    ],
)
def test_macros_and_entities_are_refused_and_nothing_is_written(old, new, message, tmp_path):
    robot = models.load_urdf(written(tmp_path), physical="unchecked")
    text = URDF.replace(old, new, 1)
    if message is None:  # a macro in place of a link
        text = text.replace('<link name="empty"/>', '<xacro:arm name="empty"/>').replace(
            "<robot  name", '<robot xmlns:xacro="http://ros.org/wiki/xacro" name'
        )
        message = r"line \d+: <xacro:arm> is a xacro macro: expand the file with `xacro` first"
        text = text.replace('xmlns:xacro="http://ros.org/wiki/xacro" ', "", text.count("xmlns") - 1)
    path = written(tmp_path, text, "other.urdf")
    with pytest.raises(ModelError, match=rf"other.urdf: .*{message}"):
        update_model_file(path, identified(robot))
    assert path.read_bytes() == text.encode()


def test_files_that_can_not_be_written_are_answered_before_anything_is(tmp_path):
    path = written(tmp_path)
    new = identified(models.load_urdf(path, physical="unchecked"))
    before = path.read_bytes()
    path.chmod(0o444)
    with pytest.raises(ArgumentError, match=r"out: '.*arm.urdf' is read-only: write to another file"):
        update_model_file(path, new)
    for out, words in ((tmp_path, "is a folder, expected a file"), (path / "x.urdf", "no permission to write in")):
        with pytest.raises(ArgumentError, match=words):
            update_model_file(path, new, out)
    with pytest.raises(ArgumentError, match=r"source: no such file: 'none.urdf'"):
        update_model_file("none.urdf", new)
    wide = written(tmp_path, URDF.replace("utf-8", "utf-16"), "wide.urdf", "utf-16")
    with pytest.raises(GeomctrlError, match=r"wide.urdf: encoded in UTF-16"):
        update_model_file(wide, new)
    with pytest.raises(
        ArgumentError, match=r"robot: does not belong to this file: expected body_names \('upper', 'fore', 'tip'\)"
    ):
        update_model_file(path, models.panda(), tmp_path / "out.urdf")
    moved = replace(new, placements=new.placements + np.eye(4)[3] * 0 + _shift(0.01))
    with pytest.raises(ArgumentError, match="joint or placement of 'upper' differs"):
        update_model_file(path, moved, tmp_path / "out.urdf")
    bad = new.parameters.copy()
    bad[1, 0] = 0.0
    with pytest.raises(ModelError, match="body 'fore': can not hold a mass of 0 kg with a first moment or inertia"):
        update_model_file(path, new.with_parameters(bad, physical=False), tmp_path / "out.urdf")
    assert path.read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {"arm.urdf", "wide.urdf"}


def _shift(x):
    T = np.zeros((4, 4))
    T[0, 3] = x
    return T


def test_what_is_written_is_read_again_first(tmp_path, monkeypatch):
    """An error of the editor is found before the file is written."""
    path = written(tmp_path)
    new = identified(models.load_urdf(path, physical="unchecked"))
    from geomctrl.models.io import in_place

    right = in_place.central
    monkeypatch.setattr(in_place, "central", lambda pi: right(1.001 * pi))
    with pytest.raises(ModelError, match=r"body '\w+': reading the new file back gives other inertias"):
        update_model_file(path, new)
    assert path.read_bytes() == URDF.encode()


@pytest.mark.slow
def test_published_urdfs_are_written_in_place(tmp_path):
    pin = pytest.importorskip("pinocchio")
    paths = robot_files()
    if not paths:
        pytest.skip("example-robot-data is not installed (make robots)")
    count, read = 0, 0
    for path in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                robot = models.load_urdf(path, mimic="fixed", physical="unchecked")
            except ModelError:
                continue
            new = robot.with_parameters(1.1 * robot.parameters, physical=False)
            out = update_model_file(path, new, tmp_path / "out.urdf")
        assert blanked(path.read_bytes()) == blanked(out.read_bytes()), path
        count += 1
        if b"<mimic" not in path.read_bytes():
            model = pin.buildModelFromUrdf(str(out))
            for name, pi in zip(robot.joint_names, new.parameters):
                theirs = model.inertias[model.getJointId(name)].toDynamicParameters()
                np.testing.assert_allclose(theirs, pi, atol=1e-9 * np.abs(pi).max(), err_msg=f"{path}: {name}")
            read += 1
    assert count >= 60
    assert read >= 40


# --- MJCF ----------------------------------------------------------------------------------------------------------


def test_mjcf_inertials_change_and_no_other_byte_does(tmp_path):
    pytest.importorskip("mujoco")
    path = written(tmp_path, MJCF, "arm.xml")
    new = identified(models.load_mjcf(path))
    out = update_model_file(path, new, tmp_path / "out.xml", friction=True)
    assert out.read_text().count("<inertial ") == 4
    after = re.sub(rb"\n\s*<inertial [^<]*/>|<inertial [^<]*/>", b"", out.read_bytes())
    before = re.sub(rb"\n\s*<inertial [^<]*/>", b"", MJCF.encode())
    assert blanked(after) == blanked(before)
    back = models.load_mjcf(out)
    np.testing.assert_allclose(back.parameters, new.parameters, atol=1e-11 * np.abs(new.parameters).max())
    np.testing.assert_allclose(back.damping, new.damping)
    np.testing.assert_allclose(back.friction, new.friction)
    compare(new, of_mujoco(out, new), 1e-10)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('autolimits="true"', 'autolimits="true" inertiafromgeom="true"', "gives other inertias .*inertiafromgeom"),
        ('autolimits="true"', 'autolimits="true" boundmass="50"', "gives other inertias .*boundmass"),
        (
            '<geom type="box" size=".05 .05 .2"/>',
            '<replicate count="2" offset="1 0 0"><body><geom size=".1"/></body></replicate>',
            r"the model has 6 bodies, but the file has 5 <body> elements: .*replicate",
        ),
        ("<!-- angles in degrees -->", "<include file='more.xml'/>", "4 bodies, but the file has 3 <body> .*included"),
    ],
)  # fmt: skip
def test_mjcf_that_makes_inertias_or_bodies_of_its_own_is_refused(old, new, message, tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "more.xml").write_text(
        '<mujoco><worldbody><body name="x"><geom size=".1"/></body></worldbody></mujoco>'
    )
    text = MJCF.replace(old, new)
    if "include" in new:
        text = text.replace('<body name="bracket" pos=".2 .1 0"><geom size=".05" mass="0.4"/></body>', "")
    path = written(tmp_path, text, "arm.xml")
    robot = models.load_mjcf(path)
    with pytest.raises(ModelError, match=message):
        update_model_file(path, identified(robot))
    assert path.read_bytes() == text.encode()


def test_mjcf_with_a_mesh_beside_it_and_bodies_of_two_joints(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "m.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    text = (
        '<mujoco><asset><mesh name="m" file="m.obj"/></asset><worldbody><body name="a"><joint name="x" type="slide"/>'
        '<joint name="y" axis="0 1 0"/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    path = written(tmp_path, text, "arm.xml")
    robot = models.load_mjcf(path)
    pi = robot.parameters * 1.5
    out = update_model_file(path, robot.with_parameters(pi), tmp_path / "out.xml")
    np.testing.assert_allclose(models.load_mjcf(out).parameters, pi, atol=1e-10 * pi.max())
    both = pi + np.array([[0.1, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1], np.zeros(10)])
    with pytest.raises(ModelError, match="represents one of several joints of a body and can not have an inertia"):
        update_model_file(path, robot.with_parameters(both))
