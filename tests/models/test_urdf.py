"""load_urdf: real files against Pinocchio, conventions one by one, mimic joints, impossible inertias."""

import contextlib
import logging
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pinocchio_oracle import assert_dynamics, pinocchio_terms, robot_file, robot_files
from scipy.spatial.transform import Rotation
from urdf_text import BASE, gripper, joint, link, one, urdf

from geomctrl import inertia, models
from geomctrl.errors import ArgumentError, GeomctrlError, InertiaError, ModelError

# --- real files --------------------------------------------------------------------------------------------------

MOTIONLESS = {"quadrotor_base.urdf", "iris_simple.urdf"}  # one body: a robot only with a floating base
MISNAMED = {"alex_psyonic_hands.urdf"}  # its fingers follow joints whose names lack their prefix
NOT_A_URDF = {"ur3.urdf"}  # an incomplete file: <robot> without name and links
UNREAD = {"so101.urdf": "line 294: <origin> in link 'gripper_frame_link'"}  # elements of real files that are not needed
SINGULAR = {"icub.urdf", "romeo.urdf", "romeo_laas_small.urdf"}  # massless ends; point masses on parallel axes


def load_real(path, floating):
    """A quarter of the files have physically impossible inertias and give a warning; one has an element that URDF
    does not define.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f".*{re.escape(path.name)}: physically impossible inertias")
        with pytest.warns(match=UNREAD[path.name]) if path.name in UNREAD else contextlib.nullcontext():
            return models.load_urdf(path, floating, mimic="independent")


def robot_root(model):
    """The number of the root link in a model with a free base: the first body frame after the universe."""
    return next(f.name for f in model.frames if f.name not in ("universe", "root_joint"))


def assert_singular(pin, model):
    """At a generic configuration (massless ends), or at zero (iCub's point masses on parallel neck axes)."""
    box, condition = np.ones(model.nq), []
    for q in (pin.randomConfiguration(model, -box, box), pin.neutral(model)):
        M = np.triu(pin.crba(model, model.createData(), q))
        scale = np.sqrt(np.diag(M))
        M += np.triu(M, 1).T
        condition.append(np.linalg.cond(M / np.outer(scale, scale)) if scale.all() else np.inf)
    assert max(condition) > 1e12


@pytest.mark.quick(28)
@pytest.mark.parametrize("path", robot_files() or [None], ids=lambda p: f"{p.parent.parent.name}/{p.stem}" if p else "")
@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
def test_real_robot_agrees_with_pinocchio(path, floating):
    if path is None:
        pytest.skip("example-robot-data is not installed")
    pin = pytest.importorskip("pinocchio")
    if path.name in NOT_A_URDF:
        pytest.skip("not a URDF; its refusal is tested below")
    if path.name in MOTIONLESS and not floating:
        pytest.skip("nothing moves; its refusal is tested below")
    text = path.read_text()
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromXML(text)
    if path.name in SINGULAR:
        with pytest.raises(ModelError, match=r"mass matrix is singular.*only need the geometry.*'unchecked'"):
            load_real(path, floating)
        assert_singular(pin, model)
        return
    if floating and robot_root(model) == "world":
        with pytest.raises(ModelError, match=r"link 'world'.*would float"):
            load_real(path, floating)
        return
    robot = load_real(path, floating)
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng)
    M, g, poses = pinocchio_terms(robot, model, q)
    np.testing.assert_allclose(robot.mass_matrix(q), M, atol=1e-11 * np.abs(M).max())
    np.testing.assert_allclose(robot.gravity_force(q), g, atol=1e-11 * np.abs(M).max() * 10)
    for name, pose in poses.items():
        np.testing.assert_allclose(robot.pose(q, name), pose, atol=1e-11, err_msg=name)
    assert_dynamics(robot, model, q, *rng.normal(size=(2, robot.nv)))
    for j in robot.joints:
        if j.kind in ("revolute", "prismatic") and model.nqs[model.getJointId(j.name)] == 1:
            k, v = model.idx_qs[model.getJointId(j.name)], model.idx_vs[model.getJointId(j.name)]
            assert (j.lower, j.upper) == (model.lowerPositionLimit[k], model.upperPositionLimit[k]) or np.isinf(j.lower)
            assert (j.velocity, j.effort) == (model.velocityLimit[v], model.effortLimit[v])
            assert (j.damping, j.friction) == (model.damping[v], model.upperDryFrictionLimit[v])


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("ur_description/urdf/ur3.urdf", "no links"),
        ("hector_description/robots/quadrotor_base.urdf", "no joint that moves"),
        ("bolt_description/robots/bolt.urdf", "link 'FL_FOOT': mass is zero but first moment or inertia is not"),
        ("pr2_description/urdf/pr2.urdf", "link 'sensor_mount_link': triangle inequality.*0.001 \\+ 0.001 < 0.01"),
        ("tiago_description/robots/tiago.urdf", "link 'base_antenna_left_link': .* is negative"),
    ],
)
def test_real_file_refused(path, match):
    path = robot_file(path)
    with pytest.raises(ModelError, match=match) as error:
        models.load_urdf(path, physical="required")
    assert str(error.value).startswith(str(path))


def test_what_loads_of_the_real_files():
    """By default all files except those without moving joints, non-URDF files, massless ends and wrong names; a
    quarter warns.
    """
    files = robot_files()
    if not files:
        pytest.skip("example-robot-data is not installed")

    def loaded(paths, physical):
        """The files that load, and those of them with a warning."""
        loads, warned = set(), set()
        for path in paths:
            with warnings.catch_warnings(record=True) as said, contextlib.suppress(GeomctrlError):
                warnings.simplefilter("always")
                models.load_urdf(path, physical=physical)
                loads.add(path)
                warned |= {path} if any("physically impossible inertias" in str(w.message) for w in said) else set()
        return loads, warned

    loads, warned = loaded(files, "reported")
    assert {path.name for path in set(files) - loads} == MOTIONLESS | NOT_A_URDF | SINGULAR | MISNAMED
    assert len(warned) >= len(files) // 5
    right = set(sorted(loads - warned)[::4])
    assert loaded(warned | right, "required") == (right, set())


# --- conventions -------------------------------------------------------------------------------------------------

number = st.floats(-2.0, 2.0)
vector = st.tuples(number, number, number)


def text_of(x):
    return " ".join(map(repr, x))


@settings(max_examples=50, deadline=None)
@given(vector, vector, vector, vector, st.floats(0.1, 5.0), st.tuples(*[st.floats(0.01, 2.0)] * 3))
def test_origins_and_inertias_turned_by_rpy(xyz, rpy, com, com_rpy, mass, sigma):
    moments = np.array([sigma[1] + sigma[2], sigma[0] + sigma[2], sigma[0] + sigma[1]])
    I = (
        f"{moments[0]!r} 0 0 {moments[1]!r} 0 {moments[2]!r}".replace("np.float64", "")
        .replace("(", "")
        .replace(")", "")
    )
    body = link(mass=repr(mass), I=I, xyz=text_of(com), rpy=text_of(com_rpy))
    robot = models.load_urdf(
        one(inside=f'<origin xyz="{text_of(xyz)}" rpy="{text_of(rpy)}"/><axis xyz="0 0 1"/>', body=body)
    )
    pose, R = robot.pose(np.zeros(1), "tip"), Rotation.from_euler("xyz", com_rpy).as_matrix()
    np.testing.assert_allclose(pose[:3, 3], xyz, atol=1e-14)
    np.testing.assert_allclose(pose[:3, :3], Rotation.from_euler("xyz", rpy).as_matrix(), atol=1e-14)
    expected = inertia.from_com(mass, np.array(com), R @ np.diag(moments) @ R.T)
    np.testing.assert_allclose(robot.parameters[0], expected, atol=1e-12)


def test_defaults_axis_x_and_no_origin():
    robot = models.load_urdf(one(inside="", body=link(I="1 0 0 2 0 2.5", xyz="0 0.5 0")))
    np.testing.assert_array_equal(robot.joints[0].S[:, 0], [1, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(robot.mass_matrix(np.zeros(1)), [[1.25]])
    np.testing.assert_array_equal(robot.placements[0], np.eye(4))


def test_axis_is_normalised():
    robot = models.load_urdf(one(inside='<axis xyz="0 3 4"/>'))
    np.testing.assert_allclose(robot.joints[0].S[:3, 0], [0, 0.6, 0.8])


@pytest.mark.parametrize(
    ("kind", "S", "nq"),
    [
        ("revolute", [[0, 1, 0, 0, 0, 0]], 1),
        ("continuous", [[0, 1, 0, 0, 0, 0]], 1),
        ("prismatic", [[0, 0, 0, 0, 1, 0]], 1),
        ("planar", [[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0]], 12),
        ("floating", np.eye(6), 12),
    ],
)
def test_every_joint_type_spans_its_motions(kind, S, nq):
    robot = models.load_urdf(one(kind))
    ours = robot.joints[0].S
    assert robot.nq == nq
    assert ours.shape == np.transpose(S).shape
    assert np.linalg.matrix_rank(np.hstack((ours, np.transpose(S)))) == len(S)  # `axis` is a planar joint's normal


def test_limits_and_friction_are_carried_over():
    inside = '<limit lower="-1" upper="2" velocity="3" effort="4"/><dynamics damping="0.5" friction="0.25"/>'
    robot = models.load_urdf(one("revolute", inside))
    assert [x[0] for x in robot.limits] == [-1, 2, 3, 4]
    assert (robot.damping[0], robot.friction[0]) == (0.5, 0.25)


def test_an_unstated_limit_is_infinite_and_a_continuous_joint_has_no_range():
    robot = models.load_urdf(one("revolute", '<limit effort="4"/>'))
    assert [x[0] for x in robot.limits] == [-np.inf, np.inf, np.inf, 4]
    robot = models.load_urdf(one("continuous", '<limit lower="-1" upper="1" velocity="3" effort="4"/>'))
    assert [x[0] for x in robot.limits] == [-np.inf, np.inf, 3, 4]


def test_fixed_links_are_merged_and_stay_as_frames():
    tool = joint("weld", "fixed", "tip", "tool", '<origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/>')
    text = urdf(BASE, link("mount"), joint("m", "fixed", "base", "mount", ""), link(), link("tool", "2"), joint(), tool)
    robot = models.load_urdf(text)
    assert robot.body_names == ("tip",)
    assert robot.parameters[0, 0] == 3.0
    assert {f.name for f in robot.frames} == {"world", "base", "mount", "tip", "tool"}
    assert robot.frame("mount").body == -1
    np.testing.assert_allclose(robot.pose(np.zeros(1), "tool")[:3, :2], [[0, -1], [1, 0], [0, 0]], atol=1e-15)


def test_names_gravity_and_order():
    text = urdf(BASE, link("b"), link("a"), joint("jb", child="b"), joint("ja", parent="b", child="a"), name="arm")
    robot = models.load_urdf(text, gravity=(0, 0, -1.6))
    assert (robot.name, robot.body_names, robot.joint_names) == ("arm", ("b", "a"), ("jb", "ja"))
    np.testing.assert_array_equal(robot.gravity, [0, 0, -1.6])


def test_floating_base():
    text = urdf(link("base"), link(), joint())
    assert models.load_urdf(text).nv == 1
    robot = models.load_urdf(text, floating_base=True)
    assert robot.joint_names == ("root_joint", "j")
    assert (robot.nv, robot.nq) == (7, 13)


def test_a_root_named_world_is_the_world():
    text = urdf('<link name="world"/>', link(), joint(parent="world"))
    assert models.load_urdf(text).frame("world").body == -1
    with pytest.raises(ModelError, match=r"link 'world'.*would float"):
        models.load_urdf(text, floating_base=True)
    with pytest.raises(ModelError, match=r"link 'world'.*is not the root \('base' is\)"):
        models.load_urdf(urdf(BASE, link("world"), joint(child="world")))


def test_massless_link_between_two_joints():
    text = urdf(BASE, '<link name="cross"/>', link(), joint("x", child="cross"), joint("y", parent="cross", inside=""))
    robot = models.load_urdf(text)
    assert not robot.parameters[0].any()
    assert np.linalg.eigvalsh(robot.mass_matrix(np.zeros(2)))[0] > 0.0


def test_sources(tmp_path, monkeypatch):
    text = one()
    path = tmp_path / "description" / "r.urdf"
    path.parent.mkdir()
    path.write_text('<?xml version="1.0" encoding="utf-8"?>\n' + text)
    for source in (path, str(path), text, "  \n" + path.read_text()):
        assert models.load_urdf(source).nv == 1
    assert models.load_urdf("package://description/r.urdf", package_dirs=["/nowhere", tmp_path]).nv == 1
    with pytest.raises(ArgumentError, match=r"package://description/s\.urdf' is in none of package_dirs"):
        models.load_urdf("package://description/s.urdf", package_dirs=[tmp_path])


def test_meshes_looks_simulators_and_drives_are_never_read_nor_named():
    looks = """<visual><geometry><mesh filename="package://no/where.dae"/></geometry></visual><collision name="c"/>
        <contact><stiff/></contact><material name="m"/><sensor/><gazebo/><self_collision_checking/><!-- more -->"""
    extra = """<material name="m"/><gazebo><plugin name="${x}"/></gazebo><transmission><any/></transmission><sensor/>
        <ros2_control/><mujoco><compiler/></mujoco>"""
    drives = """<calibration rising="up" any="2"/><safety_controller k_velocity="any"><any/></safety_controller>
        <sensor/><limit effort="1" velocity="1" acceleration="3"/><dynamics damping="1" K="7000" D="1"/><gazebo/>"""
    text = urdf(extra, BASE, link(), joint(inside=drives), link("e"), joint("m", "fixed", "tip", "e", drives))
    text = text.replace('<robot name="r"', '<robot name="r" version="1.0"').replace("<child", "<?pi?><child")
    assert models.load_urdf(text.replace('<link name="base"/>', f'<link name="base">{looks}</link>')).nv == 1


def test_entities_of_the_document_stand_for_what_it_says():
    """Xacro properties in attributes, in each other, and for elements give the same as the values written out."""
    tip = link(xyz="0 0 &half;").replace('"', "'")
    entities = f'<!ENTITY m "5"><!ENTITY half "&m;.2"><!ENTITY tip "{tip}">'
    text = f"<!DOCTYPE robot [{entities}]>\n" + urdf(
        BASE, "&tip;", link("tool", mass="1&m;"), joint(), joint("k", parent="tip", child="tool")
    )
    robot = models.load_urdf(text)
    np.testing.assert_array_equal(robot.parameters[0, :4], [1, 0, 0, 5.2])
    assert robot.parameters[1, 0] == 15.0


def test_a_robot_without_a_name_has_that_of_its_file(tmp_path):
    for text in (one().replace('name="r"', ""), one().replace('name="r"', 'name=""')):
        assert models.load_urdf(text).name == "robot"
        path = tmp_path / "arm.v2.urdf"
        path.write_text(text)
        assert models.load_urdf(path).name == "arm.v2"


def aside(at):
    """The smallest robot, one element per line, with an unknown element or attribute at one place."""
    parts = {"robot": "", "link": "", "inertial": "", "mass": "", "joint": "", "axis": "", "parent": "", **at}
    return f"""<robot name="r">{parts["robot"]}
        <link name="base"/>
        <link name="tip">{parts["link"]}
            <inertial>{parts["inertial"]}
            <mass value="1">{parts["mass"]}</mass><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
        </link>
        <joint name="j" type="continuous">{parts["joint"]}
            <axis xyz="0 1 0">{parts["axis"]}</axis>
            <parent link="base">{parts["parent"]}</parent><child link="tip"/>
        </joint></robot>"""


ASIDE = {  # the unknown part: its name in the warning
    ("robot", "<loop_joint/>"): "line 1: <loop_joint> in <robot>",
    ("robot", '<d:clutch xmlns:d="http://d"/>'): "line 1: <d:clutch> in <robot>",
    ("link", '<origin xyz="0 0 1"/>'): "line 3: <origin> in link 'tip'",
    ("link", '<mass value="1"/>'): "line 3: <mass> in link 'tip'",
    ("inertial", "<com/>"): "line 4: <com> in <inertial> of link 'tip'",
    ("mass", "<value>5</value>"): "line 5: <value> in <mass> of <inertial> of link 'tip'",
    ("joint", '<axes xyz="0 0 1"/>'): "line 7: <axes> in joint 'j'; did you mean <axis>?",
    ("joint", '<joint_properties damping="1"/>'): "line 7: <joint_properties> in joint 'j'",
    ("joint", '<inertial><mass value="1"/></inertial>'): "line 7: <inertial> in joint 'j'",
    ("joint", '<dynamics armature="0.1"/>'): "line 7: 'armature' of <dynamics> of joint 'j'",
    ("joint", '<limit xmlns:x="http://x" x:stop="1"/>'): "line 7: 'stop' of <limit> of joint 'j'",
    ("axis", '<xyz value="0 0 1"/>'): "line 8: <xyz> in <axis> of joint 'j'",
    ("parent", "<link/>"): "line 9: <link> in <parent> of joint 'j'",
}


@pytest.mark.parametrize(("where", "case"), ASIDE)
def test_what_urdf_does_not_have_is_named_with_its_line_where_physics_is_read(where, case):
    with pytest.warns(UserWarning, match="not read") as caught:
        robot = models.load_urdf(aside({where: case}))
    assert [str(w.message) for w in caught] == [f"URDF text: not read: {ASIDE[where, case]}"]
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(robot.parameters, models.load_urdf(aside({})).parameters)


def test_unknown_attributes_of_links_and_joints_are_named():
    text = aside({}).replace('name="tip"', 'name="tip" mass="1"').replace('type="c', 'damping="1" type="c')
    for name in ("inertial", "parent"):
        text = text.replace(f"<{name}", f'<{name} rpy="1 0 0"')
    expected = "'mass' of link 'tip'; .*'rpy' of <inertial> .*'damping' of joint 'j'.*'rpy' of <parent> of joint 'j'"
    with pytest.warns(match=expected):
        models.load_urdf(text)


def test_one_warning_names_the_first_and_counts_the_rest():
    text = aside({"joint": "\n".join(f"<x{k}/>" for k in range(20))})
    with pytest.warns(match=r"(?s)line 7: <x0> .*line 14: <x7> in joint 'j'; and 12 more") as caught:
        models.load_urdf(text)
    assert len(caught) == 1


def test_nothing_is_logged(caplog):
    with caplog.at_level(logging.DEBUG):
        models.load_urdf(one())
        with pytest.raises(GeomctrlError):
            models.load_urdf("<robot")
    assert not [r for r in caplog.records if "yourdfpy" in r.name]


# --- mimic -------------------------------------------------------------------------------------------------------


def test_mimic_refused_if_asked_for():
    with pytest.raises(ModelError, match=r"'follow' of 'lead'.*mimic='coupled', mimic='fixed' or mimic='independent'"):
        models.load_urdf(gripper(), mimic="error")


def test_mimic_follows():
    robot = models.load_urdf(gripper())
    assert (robot.joint_names, robot.dof_names) == (("lead", "follow"), ("lead",))
    np.testing.assert_allclose(robot.coupling.tree_configuration([0.5]), [0.5, -0.2], atol=1e-15)
    np.testing.assert_allclose(robot.pose([0.5], "f2")[:3, 3], [0, 0, -0.2], atol=1e-15)


@pytest.mark.quick(23)
@pytest.mark.parametrize("path", robot_files() or [None], ids=lambda p: f"{p.parent.parent.name}/{p.stem}" if p else "")
def test_real_mimic_agrees_with_pinocchio(path):
    if path is None:
        pytest.skip("example-robot-data is not installed")
    text = path.read_text()
    if "<mimic" not in text or path.name in SINGULAR:
        pytest.skip("no joint follows another, or none that has a mass to move")
    if path.name in MISNAMED:
        with pytest.raises(
            GeomctrlError, match=r"coupling of joint 'Left_index_q2': no joint named 'index_q1'.*index_q"
        ):
            models.load_urdf(path)
        return
    pin = pytest.importorskip("pinocchio", minversion="3.5")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = models.load_urdf(path)
    if not robot.couplings:
        pytest.skip("no joint that moves follows another")
    try:
        model = pin.buildModelFromXML(text, mimic=True)
    except ValueError as error:
        pytest.skip(f"Pinocchio does not read it: {error}")
    data, rng = model.createData(), np.random.default_rng(0)
    single = [model.getJointId(j.name) for j in robot.coupling.independent_joints]
    assert (robot.nv, len(robot.joints)) == (model.nv, model.njoints - 1)
    q, (v, a) = rng.normal(size=robot.nq), rng.normal(size=(2, robot.nv))
    q_pin, columns = np.zeros(model.nq), [model.idx_vs[j] for j in single]
    for x, j in zip(q, single):
        k = model.idx_qs[j]
        q_pin[k : k + model.nqs[j]] = x if model.nqs[j] == 1 else (np.cos(x), np.sin(x))

    def theirs(x):
        out = np.zeros(model.nv)
        out[columns] = x
        return out

    M = np.triu(pin.crba(model, data, q_pin))
    M += np.triu(M, 1).T
    scale = np.abs(M).max()
    np.testing.assert_allclose(robot.mass_matrix(q), M[np.ix_(columns, columns)], atol=1e-11 * scale)
    tau = pin.rnea(model, data, q_pin, theirs(v), theirs(a))[columns]
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), tau, atol=1e-10 * max(1.0, np.abs(tau).max()))
    pin.framesForwardKinematics(model, data, q_pin)
    for name in robot.body_names:
        pose = data.oMf[model.getFrameId(name)].homogeneous
        np.testing.assert_allclose(robot.pose(q, name), pose, atol=1e-11, err_msg=name)


@pytest.mark.parametrize(
    ("follower", "match"),
    [
        ('<mimic joint="nobody"/>', "coupling of joint 'j': no joint named 'nobody' that moves; there are j"),
        ('<mimic joint="j"/>', "coupling of joint 'j': joints follow each other in a cycle, 'j' -> 'j'"),
    ],
)
def test_wrong_mimic(follower, match):
    with pytest.raises(GeomctrlError, match=match):
        models.load_urdf(one(inside=f'<axis xyz="0 1 0"/>{follower}'))


def test_mimic_independent():
    assert models.load_urdf(gripper(), mimic="independent").joint_names == ("lead", "follow")


@pytest.mark.parametrize(
    ("kind", "moved"),
    [
        ("prismatic", (np.eye(3), [0, 0, 0.3])),
        ("continuous", (Rotation.from_rotvec([0, 0, 0.3]).as_matrix(), [0, 0, 0])),
    ],
)
def test_mimic_fixed_locks_at_the_offset(kind, moved):
    robot = models.load_urdf(gripper(kind), mimic="fixed")
    assert robot.joint_names == ("lead",)
    assert robot.frame("f2").body == -1
    T = robot.pose(np.zeros(1), "f2")
    np.testing.assert_allclose(T[:3, :3], moved[0], atol=1e-15)
    np.testing.assert_allclose(T[:3, 3], moved[1], atol=1e-15)


def test_mimic_of_a_planar_joint():
    with pytest.raises(ModelError, match="joint 'follow': a planar joint can not mimic"):
        models.load_urdf(gripper("planar"), mimic="fixed")


# --- non-physical inertias -----------------------------------------------------------------------------------------

LONG = "1 0 0 1 0 9"  # 1 + 1 < 9, which violates the triangle inequality


def test_impossible_inertia_is_refused_or_reported():
    text = one(body=link(I=LONG))
    with pytest.raises(InertiaError, match=r"link 'tip': triangle inequality.*1 \+ 1 < 9.*physical='reported'"):
        models.load_urdf(text, physical="required")
    match = r"link 'tip': triangle inequality.*1 \+ 1 < 9.*M\(q\) is positive definite at all q$"
    with pytest.warns(match=match) as said:
        robot = models.load_urdf(text)
    assert len(said) == 1
    np.testing.assert_array_equal(robot.parameters[0], [1, 0, 0, 0, 1, 0, 1, 0, 0, 9])


def test_one_warning_for_many_links_that_can_not_be():
    n = 12
    links = [link(f"l{k}", I=LONG) for k in range(n)]
    joints = [joint(f"j{k}", "revolute", f"l{k - 1}" if k else "base", f"l{k}") for k in range(n)]
    with pytest.warns(match="link 'l7'.*; and 4 more. M") as said:
        models.load_urdf(urdf(BASE, *links, *joints))
    assert len(said) == 1


def test_positive_mass_matrix_at_the_configurations_that_were_tried():
    """A moment of inertia about an axis without rotation is negative; M > 0 nevertheless."""
    with pytest.warns(match="negative: -0.1.*positive definite at the 30 tested configurations, which is no proof"):
        robot = models.load_urdf(one(body=link(I="-0.1 0 0 1 0 1")))
    assert robot.mass_matrix(np.zeros(1))[0, 0] > 0.0


def test_impossible_inertia_is_seen_before_merging():
    text = urdf(
        BASE,
        link(mass="9", I="9 0 0 9 0 9"),
        link("sticker", I=LONG),
        joint(),
        joint("w", "fixed", "tip", "sticker", ""),
    )
    with pytest.raises(InertiaError, match="link 'sticker'"):
        models.load_urdf(text, physical="required")
    with pytest.warns(match="link 'sticker'"):
        models.load_urdf(text)


@pytest.mark.parametrize("physical", ["required", "reported"])
def test_never_allowed(physical):
    options = {"physical": physical}
    with pytest.raises(InertiaError, match=r"link 'tip': mass -1\.0 is negative"):
        models.load_urdf(one(body=link(mass="-1")), **options)
    with pytest.raises(ModelError, match=r"singular or not positive: joint\(s\) 'j'.*massless"):
        models.load_urdf(urdf(BASE, '<link name="tip"/>', joint()), **options)
    with pytest.raises(ModelError, match=r"singular or not positive: joint\(s\) 'j'"):
        models.load_urdf(one(body=link(I="0 0 0 0 0 0", xyz="0 1 0")), **options)  # a point mass on the axis
    with pytest.raises(ModelError, match="singular"):
        models.load_urdf(one(body=link(I="1 0 0 -1 0 1")))


def test_unchecked_keeps_links_that_move_without_mass():
    chain = (BASE, link(), link("flange", mass="0", I="0 0 0 0 0 0"), link("tool", mass="2", xyz="0 0 1"))
    mount = '<origin xyz="0.1 0.2 0.3" rpy="1 2 3"/>'
    joints = (joint(), joint("k", "revolute", "tip", "flange"), joint("w", "fixed", "flange", "tool", mount))
    kept, checked = (models.load_urdf(urdf(*chain, *joints), physical=n) for n in ("unchecked", "required"))
    np.testing.assert_allclose(kept.parameters, checked.parameters, atol=1e-15)  # links are merged in both
    np.testing.assert_array_equal(kept.placements, checked.placements)
    assert [f.name for f in kept.frames] == [f.name for f in checked.frames]
    bare = models.load_urdf(urdf(BASE, '<link name="tip"/>', joint()), physical="unchecked")
    assert not bare.parameters.any()
    np.testing.assert_array_equal(bare.pose(np.zeros(1), "tip"), kept.pose(np.zeros(2), "tip"))
    with pytest.raises(InertiaError, match="negative"):
        models.load_urdf(one(body=link(mass="-1")), physical="unchecked")
