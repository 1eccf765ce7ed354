"""load_mjcf against MuJoCo, and the features that it refuses."""

import sys

import numpy as np
import pytest
from mjcf_text import EVERY_JOINT

import geomctrl as gc
from geomctrl import models

mujoco = pytest.importorskip("mujoco")


def from_mujoco(robot, m, qpos):
    """Return our configuration, and the matrix P with MuJoCo's qvel = P v, at MuJoCo's qpos."""
    q, P = np.empty(robot.nq), np.zeros((robot.nv, robot.nv))
    for joint, qs, vs in zip(robot.joints, robot.q_slices, robot.v_slices):
        j = m.joint(joint.name)
        k, d = j.qposadr[0], j.dofadr[0]
        if joint.dof == 1:
            q[qs], P[d, vs] = qpos[k], 1.0
            continue
        pose, R = np.zeros((3, 4)), np.empty(9)
        mujoco.mju_quat2Mat(R, qpos[k + 3 : k + 7] if joint.kind == "free" else qpos[k : k + 4])
        R = R.reshape(3, 3)
        pose[:, :3] = R
        if joint.kind == "free":
            pose[:, 3] = qpos[k : k + 3]
            P[d : d + 3, vs.start + 3 : vs.stop] = R  # linear velocity in world axes
            P[d + 3 : d + 6, vs.start : vs.start + 3] = np.eye(3)
        else:
            pose[:, 3] = j.pos - R @ j.pos
            P[d : d + 3, vs] = np.eye(3)
        q[qs] = pose.ravel()
    return q, P


def check_against_mujoco(robot, m, rng):
    data = mujoco.MjData(m)
    for _ in range(3):
        mujoco.mj_resetData(m, data)
        mujoco.mj_integratePos(m, data.qpos, rng.normal(size=m.nv), 1.0)
        data.qvel[:] = 0.0
        mujoco.mj_forward(m, data)
        M = np.zeros((m.nv, m.nv))
        for column, unit in zip(M, np.eye(m.nv)):  # mj_fullM's arguments differ between versions
            mujoco.mj_mulM(m, data, column, unit)
        q, P = from_mujoco(robot, m, data.qpos)
        scale = np.abs(M).max()
        np.testing.assert_allclose(robot.mass_matrix(q), P.T @ M @ P, atol=1e-12 * scale)
        np.testing.assert_allclose(robot.gravity_force(q), P.T @ data.qfrc_bias, atol=1e-11 * scale)
        for i in range(1, m.nbody):
            name = m.body(i).name
            np.testing.assert_allclose(robot.pose(q, name)[:3, 3], data.xpos[i], atol=1e-12)
            np.testing.assert_allclose(robot.pose(q, name)[:3, :3], data.xmat[i].reshape(3, 3), atol=1e-12)


def test_every_joint_type_agrees_with_mujoco():
    robot = models.load_mjcf(EVERY_JOINT)
    assert robot.name == "zoo"
    assert robot.nv == 1 + 3 + 3 + 6 + 1
    check_against_mujoco(robot, mujoco.MjModel.from_xml_string(EVERY_JOINT), np.random.default_rng(0))


def test_several_joints_of_a_body_are_a_chain_of_massless_bodies():
    robot = models.load_mjcf(EVERY_JOINT)
    i = robot.body_names.index("stage")
    assert robot.body_names[i - 2 : i] == ("stage/x", "stage/tilt")
    assert not robot.parameters[i - 2 : i].any()
    assert robot.parameters[i, 0] > 0.0


def test_limits_friction_gravity_and_sites_are_kept():
    robot = models.load_mjcf(EVERY_JOINT)
    pan = robot.joints[robot.joint("pan")]
    np.testing.assert_allclose([pan.lower, pan.upper], np.radians([-1, 2]))  # MJCF angles are degrees by default
    assert (pan.damping, pan.friction, pan.effort) == (0.7, 0.2, 8.0)
    np.testing.assert_array_equal(robot.gravity, [0.3, -0.4, -9.0])
    np.testing.assert_array_equal(models.load_mjcf(EVERY_JOINT, gravity=(0, 0, -1)).gravity, [0, 0, -1])
    assert robot.frame("origin").body == -1
    assert robot.frame("tip").body == robot.frame("plate").body == robot.body_names.index("stage")


def test_disabled_gravity_is_no_gravity():
    off = EVERY_JOINT.replace('-9"/>', '-9"><flag gravity="disable"/></option>')
    np.testing.assert_array_equal(models.load_mjcf(off).gravity, np.zeros(3))


def test_a_site_with_a_bodys_name():
    robot = models.load_mjcf(EVERY_JOINT.replace('site name="tip"', 'site name="plate"'))
    np.testing.assert_allclose(
        robot.frame("plate_site").placement[:3, 3] - robot.frame("plate").placement[:3, 3], [0.1, 0, 0]
    )


def test_file(tmp_path):
    path = tmp_path / "zoo.xml"
    path.write_text(EVERY_JOINT)
    np.testing.assert_array_equal(models.load_mjcf(path).parameters, models.load_mjcf(EVERY_JOINT).parameters)


TENDONS = (
    "<tendon><spatial name='{0}'><site site='s'/><site site='w'/></spatial>"
    "<fixed {1}><joint joint='j' coef='1'/></fixed><fixed {2}><joint joint='k' coef='2'/></fixed></tendon>"
)
ARM = """
<mujoco>{option}<worldbody>
  <body name="a" {body}><joint name="j" {joint}/><geom size="0.1" pos="0.2 0 0"/>
    <body name="b" pos="0.4 0 0"><joint name="k" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/><site name="s"/></body>
  </body><site name="w"/></worldbody>{extra}
</mujoco>
"""


MOTOR = '<actuator><motor {}="{}" armature="1"/></actuator>'
of_actuators = pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_armature"), reason="an older MuJoCo")


def arm(option="", body="", joint="", extra=""):
    return ARM.format(option=option, body=body, joint=joint, extra=extra)


@pytest.mark.parametrize(
    ("key", "text", "where"),
    [
        ("armature", arm(joint='type="ball" armature="0.1"'), "'j' .line 3."),
        ("stiffness", arm(joint='type="ball" stiffness="2"'), "'j' .line 3."),
        pytest.param(
            *("armature", arm(joint='type="ball"', extra=MOTOR.format("joint", "j")), "'#0' .line 5."),
            marks=of_actuators,
        ),
        pytest.param(
            *(
                "armature",
                arm(extra=TENDONS.format("t", "", "name='u'") + MOTOR.format("tendon", "u")),
                "'#0' .line 5.",
            ),
            marks=of_actuators,
        ),
        ("gravcomp", arm(body='gravcomp="1"'), "'a' .line 3."),
        ("fluid", arm(option='<option density="1.2"/>'), "'option' .line 2 of the text."),
        ("equality", arm(extra='<equality><connect name="c" body1="b" anchor="0 0 0"/></equality>'), "'c' .line 5."),
        (
            "equality",
            arm(extra='<equality><joint joint1="j" joint2="k" polycoef="0 1 1 0 0"/></equality>'),
            "'#0' .line 5.",
        ),
        *(
            ("tendon", arm(extra=TENDONS.format("t", f"name='s' {acts}", "")), "'s' .line 5.")
            for acts in (
                "stiffness='2'",
                "damping='1'",
                "frictionloss='1'",
                "armature='1'",
                "limited='true' range='0 1'",
            )
        ),
        ("tendon", arm(extra=TENDONS.format("t", "", "name='u' stiffness='1'")), "'u' .line 5."),
    ],
)
def test_what_a_tree_does_not_represent_is_refused_or_ignored_by_name(key, text, where):
    with pytest.raises(gc.errors.ModelError, match=f"{key} of .*{where}.*ignore=.*{key}"):
        models.load_mjcf(text)
    nv = mujoco.MjModel.from_xml_string(text).nv
    assert models.load_mjcf(text, ignore=[key]).nv == models.load_mjcf(text, ignore=key).nv == nv


def test_elements_of_included_files_are_named_with_theirs(tmp_path):
    """The message names the right line, although an element of another file, a body and a coupling have the same
    name.
    """
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "leg.xml").write_text(
        "<mujocoinclude>\n<body name='knee'>\n<geom size='0.1' pos='1 0 0'/>\n<include file='parts/hinge.xml'/></body>"
        "</mujocoinclude>"
    )
    (tmp_path / "parts" / "hinge.xml").write_text(
        "<mujocoinclude>\n<joint name='knee' type='ball' armature='1'/></mujocoinclude>"
    )
    main = tmp_path / "main.xml"
    coupling = "<equality><joint name='knee' joint1='hip' active='false'/></equality>"
    hip = "<body name='hip'><joint name='hip'/><geom size='0.1' pos='1 0 0'/></body>"
    main.write_text(f"<mujoco>{coupling}<worldbody>{hip}<include file='parts/leg.xml'/></worldbody></mujoco>")
    with pytest.raises(gc.errors.ModelError, match=r"main.xml: .*armature of 'knee' \(line 2 of hinge.xml\)"):
        models.load_mjcf(main)


def test_tendons_that_only_transmit_are_no_part_of_a_robot():
    text = arm(extra=TENDONS.format("t", "", "") + '<actuator><motor tendon="t"/></actuator>')
    assert models.load_mjcf(text).nv == 2


SPRINGS = """
<mujoco><worldbody>
  <body name="boat"><freejoint name="float"/><geom size="0.2"/>
    <body name="a"><joint name="j" ref="20" springref="35" stiffness="3"/><geom size="0.1" pos="1 0 0"/>
      <joint type="slide" axis="1 0 0" springref="0.4" stiffness="7" damping="0.5"/></body>
    <body name="b"><joint name="k" axis="0 1 0" stiffness="2"/><geom size="0.1" pos="0.2 0 0"/></body>
  </body></worldbody>
</mujoco>
"""


def test_a_plant_feels_linear_springs_as_mujoco_does():
    robot, m = models.load_mjcf(SPRINGS), mujoco.MjModel.from_xml_string(SPRINGS)
    np.testing.assert_allclose(robot.springs.stiffness, [*[0] * 6, 3, 7, 2])
    np.testing.assert_allclose(robot.springs.rest, [*[0] * 6, np.radians(35), 0.4, 0])
    data, rng = mujoco.MjData(m), np.random.default_rng(2)
    q = robot.random_configuration(rng)
    v, tau = rng.normal(size=(2, robot.nv))
    plant = gc.Plant(robot, "model")
    data.qpos[:], data.qvel[:] = gc.interop.to_mujoco(robot, m, q, v)
    mujoco.mj_fwdPosition(m, data)
    mujoco.mj_passive(m, data)
    passive = robot.mass_matrix(q) @ (plant.acceleration(0.0, q, v, tau) - robot.forward_dynamics(q, v, tau))
    np.testing.assert_allclose(passive, data.qfrc_passive, atol=1e-12)  # for joints with equal velocities
    assert plant.power(0.0, q, v, tau) == pytest.approx(v @ (tau + data.qfrc_passive))
    out = np.empty(2 * robot.nv + 1)
    plant.rate(0.0, q, v, tau, out)
    np.testing.assert_allclose(out[robot.nv : -1], plant.acceleration(0.0, q, v, tau), atol=1e-12)


@pytest.mark.skipif(
    not hasattr(mujoco.mjtDisableBit, "mjDSBL_SPRING"), reason="an older MuJoCo, with one flag for both"
)
@pytest.mark.parametrize("off", ["spring", "damper"])
def test_what_the_file_switches_off_is_not_there(off):
    text = SPRINGS.replace("<worldbody>", f'<option><flag {off}="disable"/></option><worldbody>')
    robot = models.load_mjcf(text)
    assert (robot.springs.stiffness.any(), robot.damping.any()) == (off != "spring", off != "damper")


def test_ignored_springs_are_left_out():
    assert not models.load_mjcf(SPRINGS, ignore="stiffness").springs.stiffness.any()


FREELY = '<option><flag energy="enable" contact="disable" constraint="disable"/></option>'


def dynamics_against_mujoco(text):
    """M and poses; inverse dynamics, accelerations and energies for robots with MuJoCo's velocities."""
    robot, m, rng = models.load_mjcf(text), mujoco.MjModel.from_xml_string(text), np.random.default_rng(3)
    check_against_mujoco(robot, m, rng)
    data, q = mujoco.MjData(m), robot.random_configuration(rng)
    v, a, tau = rng.normal(size=(3, robot.nv))
    data.qpos[:], data.qvel[:] = gc.interop.to_mujoco(robot, m, q, v)
    data.qacc[:] = a
    mujoco.mj_inverse(m, data)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), data.qfrc_inverse, atol=1e-10)
    data.qfrc_applied[:] = tau
    mujoco.mj_forward(m, data)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), data.qacc, atol=1e-8)
    assert robot.kinetic_energy(q, v) == pytest.approx(data.energy[1], rel=1e-10)
    return robot


def test_armature_is_mujocos():
    robot = dynamics_against_mujoco(arm(FREELY, joint='type="slide" axis="1 0 1" armature="0.7"'))
    np.testing.assert_array_equal(robot.armature, [0.7, 0.0])
    text = EVERY_JOINT.replace('<joint name="pan"', '<joint name="pan" armature="0.2"', 1)
    assert models.load_mjcf(text).armature.tolist().count(0.2) == 1
    check_against_mujoco(models.load_mjcf(text), mujoco.MjModel.from_xml_string(text), np.random.default_rng(0))


@of_actuators
def test_rotors_of_actuators_are_behind_their_gears():
    motors = '<motor joint="k" gear="-30" armature="2e-4"/><motor jointinparent="j" gear="2" armature="0.1"/>'
    robot = dynamics_against_mujoco(arm(FREELY, joint='armature="0.3"', extra=f"<actuator>{motors}</actuator>"))
    np.testing.assert_allclose(robot.armature, [0.7, 0.18])
    np.testing.assert_array_equal(robot.gear_ratio, [2.0, -30.0])


def test_ignored_armature_is_the_only_difference():
    text = arm(joint='armature="0.1"')
    m = mujoco.MjModel.from_xml_string(text)
    m.dof_armature[:] = 0.0
    check_against_mujoco(models.load_mjcf(text, ignore=("armature",)), m, np.random.default_rng(1))


def test_refusals():
    with pytest.raises(gc.errors.ArgumentError, match=r"ignore: expected some of armature.*\['gears'\]"):
        models.load_mjcf(arm(), ignore=["gears"])
    for wrong in (3, None, [["tendon"]]):
        with pytest.raises(gc.errors.ArgumentError, match=r"ignore: expected (a list|some of armature)"):
            models.load_mjcf(arm(), ignore=wrong)
    with pytest.raises(gc.errors.ArgumentError, match=r"no such file: 'nowhere\.xml'"):
        models.load_mjcf("nowhere.xml")
    with pytest.raises(gc.errors.ArgumentError, match="expected a path or a string of XML, got int"):
        models.load_mjcf(3)
    with pytest.raises(gc.errors.ModelError, match="malformed XML"):
        models.load_mjcf("<mujoco><worldbody>")
    with pytest.raises(gc.errors.ModelError, match="<robot>: use load_urdf"):
        models.load_mjcf('<robot name="r"/>')
    with pytest.raises(gc.errors.ModelError, match=r"(?s)MJCF text: .*bogus"):
        models.load_mjcf("<mujoco><bogus/></mujoco>")
    with pytest.raises(gc.errors.ModelError, match="no joint that moves"):
        models.load_mjcf('<mujoco><worldbody><body><geom size="0.1"/></body></worldbody></mujoco>')


def test_unnamed_bodies_and_joints_have_mujocos_numbers():
    link = "<body {}><joint {}/><joint type='slide'/><geom size='0.1' pos='1 0 0'/>{}</body>"
    inner = link.format("", "name='joint1'", link.format("name='body1/joint0'", "", ""))
    outer = link.format("", "", inner) + link.format("name='body1'", "", "")
    text = f"<mujoco><worldbody>{outer}</worldbody></mujoco>"
    robot, m = models.load_mjcf(text), mujoco.MjModel.from_xml_string(text)
    assert robot.joint_names == ("joint0", "joint1_", "joint1", "joint3", "joint4", "joint5", "joint6", "joint7")
    bodies = ("body1_", "body2", "body1/joint0", "body1")
    assert tuple(name for name in robot.body_names if name in bodies) == bodies
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 8))
    x, u = gc.interop.to_mujoco(robot, m, q, v)
    order = [m.jnt_qposadr[robot.joint_names.index(name)] for name in robot.joint_names]
    np.testing.assert_array_equal(x[order], q)  # bodies of a file are in MuJoCo's order
    np.testing.assert_array_equal(np.concatenate(gc.interop.from_mujoco(robot, m, x, u)), [*q, *v])


def test_entities_which_mujoco_does_not_replace_are_refused():
    text = "<!DOCTYPE mujoco [<!ENTITY m 'x'>]>" + arm()
    with pytest.raises(gc.errors.ModelError, match="MJCF text: entity 'm': MuJoCo does not expand XML entities"):
        models.load_mjcf(text)


def test_without_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(gc.GeomctrlError, match=r"optional package mujoco: pip install 'geomctrl\[mjcf\]'"):
        models.load_mjcf(arm())
