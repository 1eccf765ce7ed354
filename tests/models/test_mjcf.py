"""load_mjcf against MuJoCo itself, and what it refuses."""

import sys

import numpy as np
import pytest
from mjcf_text import EVERY_JOINT

import geomctrl as gc
from geomctrl import models

mujoco = pytest.importorskip("mujoco")


def from_mujoco(robot, m, qpos):
    """Our configuration, and the matrix P with MuJoCo's qvel = P v, at MuJoCo's qpos."""
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
    np.testing.assert_allclose([pan.lower, pan.upper], np.radians([-1, 2]))  # MJCF angles are degrees unless said
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


ARM = """
<mujoco>{option}<worldbody>
  <body name="a" {body}><joint name="j" {joint}/><geom size="0.1" pos="0.2 0 0"/>
    <body name="b" pos="0.4 0 0"><joint name="k" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/><site name="s"/></body>
  </body><site name="w"/></worldbody>{extra}
</mujoco>
"""


def arm(option="", body="", joint="", extra=""):
    return ARM.format(option=option, body=body, joint=joint, extra=extra)


@pytest.mark.parametrize(
    ("key", "text", "where"),
    [
        ("armature", arm(joint='armature="0.1"'), "'j'"),
        ("stiffness", arm(joint='stiffness="2"'), "'j'"),
        ("gravcomp", arm(body='gravcomp="1"'), "'a'"),
        ("fluid", arm(option='<option density="1.2"/>'), "option"),
        ("equality", arm(extra='<equality><connect name="c" body1="b" anchor="0 0 0"/></equality>'), "'c'"),
        ("tendon", arm(extra='<tendon><spatial name="t"><site site="s"/><site site="w"/></spatial></tendon>'), "'t'"),
    ],
)
def test_what_a_tree_does_not_represent_is_refused_or_ignored_by_name(key, text, where):
    with pytest.raises(gc.errors.ModelError, match=f"{key} of .*{where}.*ignore=.*{key}"):
        models.load_mjcf(text)
    assert models.load_mjcf(text, ignore=[key]).nv == models.load_mjcf(text, ignore=key).nv == 2


def test_ignored_armature_is_the_only_difference():
    text = arm(joint='armature="0.1"')
    m = mujoco.MjModel.from_xml_string(text)
    m.dof_armature[:] = 0.0
    check_against_mujoco(models.load_mjcf(text, ignore=("armature",)), m, np.random.default_rng(1))


def test_refusals():
    with pytest.raises(gc.errors.ArgumentError, match=r"ignore: expected some of armature.*\['gears'\]"):
        models.load_mjcf(arm(), ignore=["gears"])
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


def test_unnamed_bodies_and_joints_are_numbered():
    text = '<mujoco><worldbody><body><joint/><geom size="0.1" pos="1 0 0"/></body></worldbody></mujoco>'
    robot = models.load_mjcf(text)
    assert (robot.body_names, robot.joint_names) == (("body1",), ("joint0",))


def test_without_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(gc.errors.ModelError, match=r"optional package mujoco: pip install 'geomctrl\[mjcf\]'"):
        models.load_mjcf(arm())
