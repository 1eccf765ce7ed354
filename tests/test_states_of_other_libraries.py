"""States of Pinocchio and MuJoCo: the same motion has the same energy, torques and poses in their coordinates."""

import numpy as np
import pytest
from mjcf_text import EVERY_JOINT
from urdf_text import joint, link, urdf

from geomctrl import interop, models
from geomctrl.errors import ArgumentError, NameNotFoundError

TREE = urdf(
    link("trunk", xyz="0.1 0 0.2", I="1 0.1 0.2 2 0.3 2.5"),
    joint("wheel", "continuous", "trunk", "tyre", '<origin xyz="0 0.1 0.3" rpy="0.1 0.2 0.3"/><axis xyz="0 1 0"/>'),
    link("tyre", xyz="0.1 0.1 0"),
    joint(
        "lift", "prismatic", "tyre", "fork", '<axis xyz="1 1 0"/><limit effort="1" velocity="1" lower="-1" upper="1"/>'
    ),
    link("fork", xyz="0 0 0.3"),
    joint("table", "planar", "trunk", "plate", '<origin xyz="0.3 0 0" rpy="0.5 0 0"/><axis xyz="0 0 1"/>'),
    link("plate", xyz="0.2 0 0.1"),
    joint("kite", "floating", "plate", "sail", '<origin xyz="0 0 1"/>'),
    link("sail", xyz="0 0.3 0"),
)


def states(robot, lead=()):
    rng = np.random.default_rng(5)
    q = np.array([robot.random_configuration(rng) for _ in range(int(np.prod(lead)))]).reshape(*lead, robot.nq)
    return q, *rng.normal(size=(2, *lead, robot.nv))


def test_the_same_motion_in_pinocchio():
    pin = pytest.importorskip("pinocchio")
    robot = models.load_urdf(TREE, floating_base=True)
    model = pin.buildModelFromXML(TREE, pin.JointModelFreeFlyer())
    data = model.createData()
    assert {j.kind for j in robot.joints} == {"free", "revolute", "prismatic", "planar"}
    for q, v, a in zip(*states(robot, (5,))):
        x, u = interop.to_pinocchio(robot, model, q, v)
        acceleration, tau = (interop.to_pinocchio(robot, model, q, y)[1] for y in (a, robot.inverse_dynamics(q, v, a)))
        np.testing.assert_allclose(
            tau, pin.rnea(model, data, x, u, acceleration), rtol=0, atol=1e-11 * np.abs(tau).max()
        )
        assert pin.computeKineticEnergy(model, data, x, u) == pytest.approx(robot.kinetic_energy(q, v), rel=1e-12)
        pin.framesForwardKinematics(model, data, x)
        sail = data.oMf[model.getFrameId("sail")].homogeneous
        np.testing.assert_allclose(sail, robot.pose(q, "sail"), atol=1e-13)


def test_a_ball_joint_in_pinocchio():
    pin = pytest.importorskip("pinocchio")
    from oracles import Pinocchio

    from geomctrl import testing

    robot = testing.random_robot(np.random.default_rng(1), ["spherical", "revolute", "spherical"], [-1, 0, 1])
    model = Pinocchio(robot).model
    for i, name in enumerate(robot.joint_names):
        model.names[i + 1] = name
    q, v, _ = states(robot, (4,))
    x, u = interop.to_pinocchio(robot, model, q, v)
    for one_x, one_u, one_q, one_v in zip(x, u, q, v):
        energy = pin.computeKineticEnergy(model, model.createData(), one_x, one_u)
        assert energy == pytest.approx(robot.kinetic_energy(one_q, one_v), rel=1e-12)
    back = interop.from_pinocchio(robot, model, x, u)
    np.testing.assert_allclose(np.hstack(back), np.hstack((q, v)), atol=1e-13)


def test_the_same_motion_in_mujoco():
    mujoco = pytest.importorskip("mujoco")
    robot = models.load_mjcf(EVERY_JOINT)
    model = mujoco.MjModel.from_xml_string(EVERY_JOINT)
    data = mujoco.MjData(model)
    for q, v, _ in zip(*states(robot, (5,))):
        data.qpos[:], data.qvel[:] = interop.to_mujoco(robot, model, q, v)
        mujoco.mj_forward(model, data)
        p = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, p, data.qvel)
        assert 0.5 * data.qvel @ p == pytest.approx(robot.kinetic_energy(q, v), rel=1e-12)
        for i in range(1, model.nbody):
            np.testing.assert_allclose(robot.pose(q, model.body(i).name)[:3, 3], data.xpos[i], atol=1e-12)


@pytest.mark.parametrize("library", ["pinocchio", "mujoco"])
@pytest.mark.parametrize("lead", [(), (2, 3), (0,)])
def test_there_and_back(library, lead):
    foreign = pytest.importorskip(library)
    if library == "pinocchio":
        robot, model = models.load_urdf(TREE), foreign.buildModelFromXML(TREE)
        there, back = interop.to_pinocchio, interop.from_pinocchio
    else:
        robot, model = models.load_mjcf(EVERY_JOINT), foreign.MjModel.from_xml_string(EVERY_JOINT)
        there, back = interop.to_mujoco, interop.from_mujoco
    q, v, _ = states(robot, lead)
    x, u = there(robot, model, q, v)
    assert (x.shape, u.shape) == ((*lead, model.nq), (*lead, model.nv))
    q_again, v_again = back(robot, model, x, u)
    apart = robot.difference(q, q_again)
    for joint_, s in zip(robot.joints, robot.v_slices):
        if joint_.kind == "revolute":
            apart[..., s] = np.angle(np.exp(1j * apart[..., s]))
    np.testing.assert_allclose(apart, 0.0, atol=1e-12)
    np.testing.assert_allclose(v_again, v, atol=1e-12)


def test_refusals():
    pin = pytest.importorskip("pinocchio")
    robot, model = models.load_urdf(TREE), pin.buildModelFromXML(TREE)
    q, v, _ = states(robot)
    with pytest.raises(NameNotFoundError, match="model: no joint named 'shoulder_pan_joint'; known: "):
        interop.to_pinocchio(models.ur10(), model, np.zeros(6), np.zeros(6))
    other = TREE.replace('name="lift" type="prismatic"', 'name="lift" type="floating"')
    with pytest.raises(
        ArgumentError, match="joint 'lift' is prismatic in the robot, but has nq = 7, nv = 6 in the model"
    ):
        interop.to_pinocchio(robot, pin.buildModelFromXML(other), q, v)
    with pytest.raises(ArgumentError, match=r"q: expected shape \(\.\.\., 14\), got \(3,\)"):
        interop.from_pinocchio(robot, model, np.zeros(3), v)
    sideways = TREE.replace('<axis xyz="0 0 1"/>', '<axis xyz="1 0 0"/>')
    turned = models.load_urdf(sideways)
    with pytest.raises(ArgumentError, match="joint 'table': planar joints of other libraries have the normal z only"):
        interop.to_pinocchio(turned, model, turned.neutral(), v)


def test_joints_that_the_robot_lacks_are_named():
    """Robots whose followers would need invented coordinates in one direction and lose them in the other are
    refused.
    """
    pin, mujoco = pytest.importorskip("pinocchio"), pytest.importorskip("mujoco")
    follower = '<axis xyz="0 1 0"/><mimic joint="wheel"/>'
    text = TREE.replace("</robot>", joint("echo", "continuous", "trunk", "bell", follower) + link("bell") + "</robot>")
    robot, model = models.load_urdf(text, mimic="fixed"), pin.buildModelFromXML(text)
    calls = [(interop.to_pinocchio, robot, model, robot.nq, robot.nv)]
    calls += [(interop.from_pinocchio, robot, model, model.nq, model.nv)]
    two = "<body><joint name='{}'/><geom size='1'/>{}</body>"
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{two.format('a', two.format('echo', ''))}</worldbody></mujoco>"
    )
    robot = models.load_mjcf(f"<mujoco><worldbody>{two.format('a', '')}</worldbody></mujoco>")
    calls += [(interop.to_mujoco, robot, model, 1, 1), (interop.from_mujoco, robot, model, 2, 2)]
    for convert, robot, model, nq, nv in calls:
        q = robot.neutral() if nq == robot.nq else np.zeros(nq)
        with pytest.raises(ArgumentError, match=r"model: robot '.*' lacks its joint\(s\) 'echo'"):
            convert(robot, model, q, np.zeros(nv))


def test_quaternions_and_angles_of_other_norms_are_refused():
    pin, mujoco = pytest.importorskip("pinocchio"), pytest.importorskip("mujoco")
    robot, model = models.load_urdf(TREE), pin.buildModelFromXML(TREE)
    q, v, _ = states(robot)
    x, u = interop.to_pinocchio(robot, model, q, v)
    parts = {"wheel": (0, 2, r"\(cos, sin\)"), "table": (2, 2, r"\(cos, sin\)"), "kite": (3, 4, "a unit quaternion")}
    for name, (first, size, what) in parts.items():
        first += model.idx_qs[model.getJointId(name)]
        at = slice(first, first + size)
        assert np.linalg.norm(x[at]) == pytest.approx(1.0)
        for scale in (0.0, 2.0, 1.0 + 1e-5):
            wrong = x.copy()
            wrong[at] *= scale
            with pytest.raises(ArgumentError, match=f"q: joint '{name}': expected {what}, got one of norm {scale:.6g}"):
                interop.from_pinocchio(robot, model, wrong, u)
    robot, model = models.load_mjcf(EVERY_JOINT), mujoco.MjModel.from_xml_string(EVERY_JOINT)
    with pytest.raises(ArgumentError, match="expected a unit quaternion, got one of norm 0"):
        interop.from_mujoco(robot, model, np.zeros(model.nq), np.zeros(model.nv))
