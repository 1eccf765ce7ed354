"""Whole models of Pinocchio and MuJoCo: their own M, torques, gravity, frames and limits, there and back."""

import copy

import numpy as np
import pytest
from mjcf_text import EVERY_JOINT
from oracles import assert_close

import geomctrl as gc
from geomctrl import Body, Coupling, Joint, Robot, inertia, interop, models, testing
from geomctrl.errors import ArgumentError, GeomctrlError, InertiaError, ModelError
from geomctrl.lie import se3

pin = pytest.importorskip("pinocchio", minversion="3.3")
mujoco = pytest.importorskip("mujoco")
LINK = inertia.from_com(1.3, (0.1, -0.2, 0.05), np.diag([0.03, 0.04, 0.05]))
TREES = 25
PRECISION = 1e-12


def in_their_velocities(convert, robot, model, q):
    """The matrix J (model.nv, robot.nv) with J v in the other library's velocity coordinates."""
    return convert(robot, model, np.tile(q, (robot.nv, 1)), np.eye(robot.nv))[1].T


def assert_pinocchio(robot, model, seed=0, states=2):
    """M, inverse dynamics, gravity and poses of all frames are Pinocchio's; states return."""
    rng, data = np.random.default_rng(seed), model.createData()
    for _ in range(states):
        q, (v, a) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
        x, u = interop.to_pinocchio(robot, model, q, v)
        J = in_their_velocities(interop.to_pinocchio, robot, model, q)
        M = np.triu(pin.crba(model, data, x))
        M = J.T @ (M + np.triu(M, 1).T) @ J
        assert_close(robot.mass_matrix(q), M, PRECISION)
        rest, force = np.zeros(model.nv), np.abs(M).max()
        tau = J.T @ pin.rnea(model, data, x, u, J @ a)
        assert_close(robot.inverse_dynamics(q, v, a), tau, PRECISION, force)
        assert_close(robot.gravity_force(q), J.T @ pin.rnea(model, data, x, rest, rest), PRECISION, force)
        assert_close(robot.inverse_dynamics(q, v, 0 * a), J.T @ pin.rnea(model, data, x, u, rest), PRECISION, force)
        pin.framesForwardKinematics(model, data, x)
        for k, frame in enumerate(model.frames):
            if frame.type in (pin.FrameType.BODY, pin.FrameType.OP_FRAME):
                assert_close(robot.pose(q, frame.name), data.oMf[k].homogeneous, PRECISION, 1.0)
        back = interop.from_pinocchio(robot, model, x, u)
        assert_close(back[1], v, PRECISION)
        assert_close(*(robot.mass_matrix(y) for y in (back[0], q)), PRECISION)


def assert_mujoco(robot, model, seed=0, states=2):
    """M, accelerations, gravity and poses of bodies and sites are MuJoCo's; states return."""
    model = copy.copy(model)
    off = mujoco.mjtDisableBit
    for name in ("CONSTRAINT", "PASSIVE", "SPRING", "DAMPER"):  # versions differ
        model.opt.disableflags |= int(getattr(off, f"mjDSBL_{name}", 0))
    rng, data = np.random.default_rng(seed), mujoco.MjData(model)
    for _ in range(states):
        q, (v, tau) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
        data.qpos[:], data.qvel[:] = interop.to_mujoco(robot, model, q, v)
        back = interop.from_mujoco(robot, model, data.qpos.copy(), data.qvel.copy())
        assert_close(robot.difference(q, back[0]), np.zeros(robot.nv), PRECISION, 1.0)
        assert_close(back[1], v, PRECISION)
        J = in_their_velocities(interop.to_mujoco, robot, model, q)
        data.qfrc_applied[:] = np.linalg.lstsq(J.T, tau)[0]
        mujoco.mj_forward(model, data)
        M = np.array([column_of_mass_matrix(model, data, column) for column in J.T]) @ J
        assert_close(robot.mass_matrix(q), M, PRECISION)
        for frame in robot.frames:
            there = site_or_body(model, data, frame.name)
            if there is not None:
                assert_close(robot.pose(q, frame.name)[:3, 3], there, PRECISION, 1.0)
        if not robot.couplings:
            a = np.linalg.solve(J, data.qacc)
            for joint, s in zip(robot.joints, robot.v_slices):
                if joint.kind == "free":  # their linear velocity is in world axes
                    a[s][3:] -= np.cross(v[s][:3], v[s][3:])
            assert_close(robot.inverse_dynamics(q, v, a), tau, 1e-11, np.abs(M).max() * max(1.0, np.abs(a).max()))
        data.qvel[:] = 0.0
        mujoco.mj_forward(model, data)
        assert_close(robot.gravity_force(q), J.T @ data.qfrc_bias, PRECISION, np.abs(M).max())


def column_of_mass_matrix(model, data, u):
    p = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, p, u)
    return p


def site_or_body(model, data, name):
    for kind, poses in ((mujoco.mjtObj.mjOBJ_SITE, data.site_xpos), (mujoco.mjtObj.mjOBJ_BODY, data.xpos)):
        if name != "world" and (k := mujoco.mj_name2id(model, kind, name)) >= 0:
            return poses[k]
    return None


def assert_same_robot(back, robot, keys):
    for key in ("name", "body_names", "joint_names", "dof_names", "parents"):
        assert getattr(back, key) == getattr(robot, key), key
    assert set(back.frame_names) == set(robot.frame_names)
    np.testing.assert_array_equal(back.gravity, robot.gravity)
    assert_close(back.parameters, robot.parameters, PRECISION)
    assert_close(back.placements, robot.placements, PRECISION, 1.0)
    for key in keys:
        np.testing.assert_allclose(getattr(back, key), getattr(robot, key), rtol=1e-15, err_msg=key)


PINOCCHIO_KEEPS = ("limits", "damping", "friction", "armature", "gear_ratio")
MUJOCO_KEEPS = ("damping", "friction", "armature", "springs")


@pytest.mark.parametrize("name", models.names())
def test_bundled_robots_in_pinocchio(name):
    robot = models.load(name)
    model = interop.to_pinocchio_model(robot)
    assert_pinocchio(robot, model)
    back = gc.Robot.from_pinocchio(model)
    assert_pinocchio(back, model, 1)
    assert_same_robot(back, robot, PINOCCHIO_KEEPS)


@pytest.mark.parametrize("name", models.names())
def test_bundled_robots_in_mujoco(name):
    robot = models.load(name)
    model = interop.to_mujoco_model(robot)
    assert_mujoco(robot, model)
    back = gc.Robot.from_mujoco(model)
    assert_mujoco(back, model, 1)
    assert_same_robot(back, robot, MUJOCO_KEEPS)
    for key in ("lower", "upper"):
        np.testing.assert_array_equal(getattr(back.limits, key), getattr(robot.limits, key))


def test_random_trees_in_pinocchio():
    for seed in range(TREES):
        rng = np.random.default_rng(seed)
        kinds = rng.choice(["revolute", "prismatic", "helical", "planar", "spherical", "free"], size=rng.integers(1, 8))
        robot = testing.random_robot(rng, [str(k) for k in kinds], driven=True)
        model = interop.to_pinocchio_model(robot)
        assert_pinocchio(robot, model, seed, 1)
        assert_pinocchio(gc.Robot.from_pinocchio(model), model, seed, 1)


def test_random_trees_in_mujoco():
    for seed in range(TREES):
        rng = np.random.default_rng(seed)
        parents = [int(rng.integers(-1, i)) if i else -1 for i in range(rng.integers(1, 8))]
        single = ["revolute", "prismatic", "spherical"]
        kinds = [str(rng.choice([*single, "free"] if p < 0 else single)) for p in parents]
        robot = testing.random_robot(rng, kinds, parents, driven=True)
        model = interop.to_mujoco_model(robot)
        assert_mujoco(robot, model, seed, 1)
        assert_mujoco(gc.Robot.from_mujoco(model), model, seed, 1)


# --- Pinocchio -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [pin.buildSampleModelHumanoid, pin.buildSampleModelManipulator])
def test_sample_models(build):
    model = build()
    robot = Robot.from_pinocchio(model)
    assert_pinocchio(robot, model)
    again = interop.to_pinocchio_model(robot)
    assert_pinocchio(robot, again)
    assert [*again.names] == [*model.names]
    assert [j.shortname() for j in again.joints] == [j.shortname() for j in model.joints]
    assert {f.name for f in again.frames} == {f.name for f in model.frames}
    base = 7 * ("root_joint" in [*model.names])  # Pinocchio bounds the numbers of its quaternion
    for key in ("lowerPositionLimit", "upperPositionLimit"):
        np.testing.assert_array_equal(getattr(again, key)[base:], getattr(model, key)[base:])
    for key in ("velocityLimit", "effortLimit", "damping", "friction", "armature", "rotorGearRatio"):
        base = 6 * ("root_joint" in [*model.names] and key.endswith("Limit"))
        np.testing.assert_array_equal(getattr(again, key)[base:], getattr(model, key)[base:])


def chain(*joints):
    """A chain with random placements and physical inertias."""
    model, rng, parent = pin.Model(), np.random.default_rng(0), 0
    for k, joint in enumerate(joints):
        M = pin.SE3(se3.exp(rng.normal(size=6)))
        parent = model.addJoint(parent, joint, M, f"j{k}")
        model.addJointFrame(parent)
        model.appendBodyToJoint(parent, pin.Inertia(1.0 + k, rng.normal(size=3), np.diag([0.1, 0.2, 0.25])), M)
    return model


def composite():
    rng = np.random.default_rng(1)
    joint = pin.JointModelComposite(pin.JointModelRX(), pin.SE3(se3.exp(rng.normal(size=6))))
    joint.addJoint(pin.JointModelPZ(), pin.SE3(se3.exp(rng.normal(size=6))))
    joint.addJoint(pin.JointModelSpherical(), pin.SE3(se3.exp(rng.normal(size=6))))
    return joint


AXIS = np.array([0.0, 0.6, 0.8])
JOINTS = {
    "composite": composite,
    "universal": lambda: pin.JointModelUniversal(np.array([1.0, 0, 0]), AXIS),
    "ZYX": pin.JointModelSphericalZYX,
    "translation": pin.JointModelTranslation,
    "helical": lambda: pin.JointModelHelicalUnaligned(AXIS, 0.2),
    "HY": lambda: pin.JointModelHY(-0.3),
    "PY": pin.JointModelPY,
    "prismatic": lambda: pin.JointModelPrismaticUnaligned(AXIS),
    "revolute": lambda: pin.JointModelRevoluteUnaligned(AXIS),
    "continuous": pin.JointModelRUBY,
    "planar": pin.JointModelPlanar,
    "spherical": pin.JointModelSpherical,
    "free": pin.JointModelFreeFlyer,
}


@pytest.mark.parametrize("name", JOINTS)
def test_every_joint_of_pinocchio(name):
    model = chain(pin.JointModelRZ(), JOINTS[name](), pin.JointModelPX())
    if name not in ("planar", "spherical", "free", "composite"):
        model.armature = np.linspace(0.1, 0.5, model.nv)
    robot = gc.Robot.from_pinocchio(model)
    assert robot.nv == model.nv
    assert_pinocchio(robot, model, states=3)
    assert_pinocchio(robot, interop.to_pinocchio_model(robot), states=3)


def test_chains_name_their_parts():
    robot = gc.Robot.from_pinocchio(chain(pin.JointModelRZ(), composite()))
    assert robot.joint_names == ("j0", "j1/1", "j1/2", "j1/3")
    assert robot.body_names == ("j0", "j1/1", "j1/2", "j1")


def continuous(axis):
    text = """<robot name="a"><link name="b"/><link name="c"><inertial><origin xyz=".1 .2 .3"/><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="continuous"><parent link="b"/><child link="c"/><axis xyz="{}"/></joint></robot>"""
    return pin.buildModelFromXML(text.format(axis))


@pytest.mark.parametrize("axis", ["1 0 0", "0 0 1", "0 .6 .8", "0 0 -1"])
def test_continuous_joints_stay_continuous(axis):
    model = continuous(axis)
    robot = gc.Robot.from_pinocchio(model)
    again = interop.to_pinocchio_model(robot)
    assert (again.nq, again.nv) == (model.nq, model.nv) == (2, 1)
    assert_pinocchio(robot, model)
    assert_pinocchio(robot, again)
    assert_pinocchio(gc.Robot.from_pinocchio(again), again)


def gripper(**options):
    """Two fingers and a slide; the ratio and the offset are not those of anything else here."""
    turn, slide = (
        Joint.revolute((0, 0.6, 0.8), (0.1, 0, 0), name="a", armature=0.2, damping=0.3, lower=-1, upper=1),
        (Joint.prismatic((0, 1, 0), name="b", armature=0.5, friction=0.2)),
    )
    bodies = [Body("A", None, turn, None, LINK), Body("B", "A", slide, None, LINK)]
    bodies += [Body("C", None, Joint.revolute((1, 0, 0), name="c"), se3.exp(np.arange(6) / 5), LINK)]
    return Robot.build(bodies, gravity=(1.0, -2.0, 3.0), **options)


def test_mimic_joints():
    robot = gripper(couplings=[Coupling("b", {"a": -0.7}, 0.2), Coupling("c", {"b": 2.0}, 0.1)])
    model = interop.to_pinocchio_model(robot)
    assert (model.nq, model.nv, model.njoints) == (1, 1, 4)
    assert_pinocchio(robot, model)
    back = gc.Robot.from_pinocchio(model)
    assert_pinocchio(back, model)
    assert {c.joint: (dict(c.follows), c.offset) for c in back.couplings} == {
        "b": ({"a": -0.7}, 0.2),
        "c": ({"a": pytest.approx(-1.4)}, pytest.approx(0.5)),
    }
    for key in ("damping", "friction", "armature"):
        np.testing.assert_allclose(getattr(back, key), getattr(robot, key), rtol=1e-15)


def test_limits_losses_and_motors_are_pinocchios():
    model = chain(pin.JointModelRX(), pin.JointModelUniversal(np.array([1.0, 0, 0]), AXIS), pin.JointModelFreeFlyer())
    for k, key in enumerate(("damping", "friction", "velocityLimit", "effortLimit", "rotorGearRatio")):
        setattr(model, key, np.r_[np.arange(1.0, 4.0), np.full(6, 4.0)] + k)
    model.armature = np.r_[0.1, 0.2, 0.3, np.zeros(6)]
    model.lowerPositionLimit = -np.arange(1.0, model.nq + 1.0)
    robot = gc.Robot.from_pinocchio(model)
    assert robot.dof_names[:3] == ("j0", "j1/1", "j1/2")
    for k, own in enumerate((robot.damping, robot.friction, robot.limits.velocity, robot.limits.effort)):
        np.testing.assert_array_equal(own, np.r_[np.arange(1.0, 4.0), np.full(6, 4.0)] + k)
    np.testing.assert_array_equal(robot.gear_ratio[:3], [5.0, 6.0, 7.0])
    np.testing.assert_array_equal(robot.armature[:3], [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(robot.limits.lower[:3], [-1.0, -2.0, -3.0])
    assert np.isinf(robot.limits.upper[:3]).all()
    back = gc.Robot.from_pinocchio(interop.to_pinocchio_model(robot))
    assert_same_robot(back, robot, PINOCCHIO_KEEPS)


def test_a_coriolis_matrix_for_pinocchios_model():
    """Mdot - 2C is skew, C v is Pinocchio's bias less gravity, Mdot is the difference quotient of its crba."""
    model = pin.buildSampleModelManipulator()
    robot, data, rng = gc.Robot.from_pinocchio(model), model.createData(), np.random.default_rng(0)
    q, v = rng.normal(size=(2, 6))

    def crba(t):
        M = np.triu(pin.crba(model, data, q + t * v))
        return M + np.triu(M, 1).T

    C, Mdot = robot.coriolis_matrix(q, v), robot.mass_matrix_rate(q, v)
    assert_close(C @ v + robot.gravity_force(q), pin.nonLinearEffects(model, data, q, v), PRECISION)
    assert_close(Mdot, (crba(1e-5) - crba(-1e-5)) / 2e-5, 1e-8)
    N = Mdot - 2.0 * C
    assert np.abs(N + N.T).max() < 1e-13 * np.abs(N).max()


def with_frame(name, kind, parent=1):
    model = chain(pin.JointModelRX())
    model.addFrame(pin.Frame("hand", 1, 1, pin.SE3.Identity(), pin.FrameType.BODY))
    model.addFrame(pin.Frame(name, parent, 0, pin.SE3(se3.exp(np.arange(6) / 3)), kind))
    return gc.Robot.from_pinocchio(model)


def test_names_of_frames():
    assert with_frame("tip", pin.FrameType.OP_FRAME).frame_names[:2] == ("hand", "tip")
    assert "hand_joint" in with_frame("hand", pin.FrameType.FIXED_JOINT).frame_names
    base = with_frame("world", pin.FrameType.BODY, 0)
    np.testing.assert_allclose(base.pose([0.3], "world_body"), se3.exp(np.arange(6) / 3), atol=1e-15)
    np.testing.assert_array_equal(base.pose([0.3], "world"), np.eye(4))


def test_what_pinocchio_has_and_we_have_not():
    for joint in (pin.JointModelSpherical(), pin.JointModelPlanar(), pin.JointModelFreeFlyer()):
        model = chain(pin.JointModelRX(), joint)
        model.armature = np.r_[0.1, np.full(joint.nv, 0.2)]
        with pytest.raises(ModelError, match=r"model: joint 'j1': armature: expected none .*ignore='armature'"):
            gc.Robot.from_pinocchio(model)
        robot = gc.Robot.from_pinocchio(model, ignore="armature")
        model.armature = np.zeros(model.nv)
        assert_pinocchio(robot, model)
    model = chain(pin.JointModelRX())
    model.gravity.angular = np.array([0.0, 0.0, 1.0])
    with pytest.raises(ModelError, match="model: gravity: expected a linear acceleration, got angular"):
        gc.Robot.from_pinocchio(model)
    if hasattr(pin, "JointModelEllipsoid"):
        with pytest.raises(ModelError, match="joint 'j0': a JointModelEllipsoid is not represented"):
            gc.Robot.from_pinocchio(chain(pin.JointModelEllipsoid(1.0, 2.0, 3.0)))
    model = chain(pin.JointModelFreeFlyer())
    model.damping = np.arange(6.0)
    with pytest.warns(UserWarning, match="model: not read, because they differ within a joint: damping of joint 'j0'"):
        robot = gc.Robot.from_pinocchio(model)
    np.testing.assert_array_equal(robot.damping, np.zeros(6))


def test_impossible_inertias_are_reported():
    model = chain(pin.JointModelRX())
    model.inertias[1] = pin.Inertia(1.0, np.zeros(3), np.diag([0.1, 0.1, 0.3]))
    with pytest.warns(UserWarning, match="model: physically impossible inertias: link 'j0': triangle inequality fails"):
        gc.Robot.from_pinocchio(model)
    with pytest.raises(InertiaError, match="model: link 'j0': triangle inequality fails"):
        gc.Robot.from_pinocchio(model, physical="required")
    model.inertias[1] = pin.Inertia(-1.0, np.zeros(3), np.eye(3))
    with pytest.raises(InertiaError, match=r"model: body 'j0': mass -1\.0 is negative"):
        gc.Robot.from_pinocchio(model)


def test_what_we_have_and_pinocchio_has_not():
    def one(joint, **options):
        return Robot.build([Body("b", None, joint, None, LINK)], **options)

    refused = {
        "joint 'x': Pinocchio has no cylindrical joint": one(Joint.cylindrical((0, 0, 1), name="x")),
        "joint 'x': Pinocchio has no springs": one(Joint.prismatic((0, 0, 1), name="x", stiffness=1.0)),
        "joint 'a': it follows 'b', which Pinocchio numbers after it": gripper(couplings=[Coupling("a", {"b": 1.0})]),
        "joint 'c': in Pinocchio a joint follows one other, not 2": gripper(
            couplings=[Coupling("c", {"a": 1.0, "b": 2.0})]
        ),
        "joint 'c': in Pinocchio a joint follows one other, not 0": gripper(couplings=[Coupling("c", {})]),
    }
    for message, robot in refused.items():
        with pytest.raises(ModelError, match=message):
            interop.to_pinocchio_model(robot)


def test_arguments_for_pinocchio(monkeypatch):
    with pytest.raises(ArgumentError, match=r"model: expected a pinocchio\.Model, got 3"):
        gc.Robot.from_pinocchio(3)
    with pytest.raises(ArgumentError, match="ignore: expected some of armature, got \\['friction'\\]"):
        gc.Robot.from_pinocchio(pin.Model(), ignore="friction")
    with pytest.raises(ArgumentError, match="robot: expected a Robot, got 3"):
        interop.to_pinocchio_model(3)
    with pytest.raises(ModelError, match="bodies: expected at least one, got none"):
        gc.Robot.from_pinocchio(pin.Model())
    monkeypatch.setattr(pin, "__version__", "2.7.0")
    with pytest.raises(
        GeomctrlError, match=r"to_pinocchio_model needs pinocchio 3\.3 or newer, got 2\.7\.0: pip install"
    ):
        interop.to_pinocchio_model(models.two_link())


# --- MuJoCo --------------------------------------------------------------------------------------------------------


def test_a_compiled_model_is_what_its_file_is():
    model = mujoco.MjModel.from_xml_string(EVERY_JOINT)
    robot, loaded = Robot.from_mujoco(model), models.load_mjcf(EVERY_JOINT)
    assert repr(robot) == repr(loaded)
    np.testing.assert_array_equal(robot.parameters, loaded.parameters)
    np.testing.assert_array_equal(robot.placements, loaded.placements)
    assert_mujoco(robot, model)


def test_there_and_back_with_several_joints_in_a_body():
    robot = models.load_mjcf(EVERY_JOINT)
    again = interop.to_mujoco_model(robot)
    original = mujoco.MjModel.from_xml_string(EVERY_JOINT)
    merged = 1  # body "plate" has no joint
    assert [again.nbody, again.njnt, again.nv] == [original.nbody - merged, original.njnt, original.nv]
    assert_mujoco(robot, again)
    for key in ("jnt_type", "jnt_limited", "jnt_range", "jnt_actfrclimited", "dof_damping", "dof_frictionloss"):
        ours, theirs = getattr(again, key), getattr(original, key)
        if key == "jnt_range":
            np.testing.assert_allclose(ours, theirs, rtol=1e-15)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=key)


def test_an_edited_model():
    model = interop.to_mujoco_model(models.panda())
    model.body_mass[3], model.body_ipos[4, 0], model.opt.gravity[:] = 7.0, 0.123, (1.0, 2.0, 3.0)
    model.dof_armature[:] = 0.3
    robot = gc.Robot.from_mujoco(model)
    assert_mujoco(robot, model)
    assert robot.parameters[2, 0] == 7.0
    np.testing.assert_array_equal(robot.gravity, [1.0, 2.0, 3.0])


def test_a_free_body_keeps_its_placement():
    robot = Robot.build([Body("b", None, Joint.free(name="f", damping=0.4), se3.exp(np.arange(6) / 4), LINK)])
    model = interop.to_mujoco_model(robot)
    assert_mujoco(robot, model)
    np.testing.assert_array_equal(model.dof_damping, np.full(6, 0.4))
    data = mujoco.MjData(model)
    data.qpos[:] = interop.to_mujoco(robot, model, robot.neutral(), np.zeros(6))[0]
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.xpos[1], robot.pose(robot.neutral(), "b")[:3, 3], atol=1e-15)


@pytest.mark.parametrize("follows", [{"a": -0.7}, {"a": -0.7, "b": 0.4}, {}], ids=["one", "two", "none"])
def test_couplings_are_constraints_of_mujoco(follows):
    robot = gripper(couplings=[Coupling("c", follows, 0.2)])
    model = interop.to_mujoco_model(robot)
    assert_mujoco(robot, model)
    back = gc.Robot.from_mujoco(model)
    assert {c.joint: (dict(c.follows), c.offset) for c in back.couplings} == {"c": (follows, 0.2)}
    q, v = np.array([0.3, -0.1]), np.array([1.0, 2.0])
    qpos, qvel = interop.to_mujoco(robot, model, q, v)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.efc_pos[: data.ne], 0.0, atol=1e-15)
    np.testing.assert_allclose(data.efc_vel[: data.ne], 0.0, atol=1e-15)


def test_a_limit_on_one_side():
    robot = Robot.build([Body("b", None, Joint.revolute((0, 0, 1), lower=-0.5, effort=3.0), None, LINK)])
    back = gc.Robot.from_mujoco(interop.to_mujoco_model(robot))
    assert [float(x[0]) for x in back.limits] == [-0.5, np.inf, np.inf, 3.0]


def test_what_a_model_of_mujoco_has_beyond_a_tree():
    text = """<mujoco><worldbody><body name="b" gravcomp="1"><joint name="ball" type="ball" armature="0.1"/>
    <geom size="1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    with pytest.raises(ModelError, match=r"model: can not be represented: armature of 'ball'; gravcomp of 'b'\. Load"):
        gc.Robot.from_mujoco(model)
    assert gc.Robot.from_mujoco(model, ignore=("armature", "gravcomp")).nv == 3
    model.dof_armature[:] = 0.0
    model.body_gravcomp[:] = 0.0
    model.dof_damping[:] = (1.0, 2.0, 3.0)
    with pytest.raises(ModelError, match="model: can not be represented: damping of 'ball'"):
        gc.Robot.from_mujoco(model)
    plant = interop.mujoco_plant(model)
    assert plant.beyond == ("damping of 'ball'",)
    assert plant.model is not model
    assert not model.opt.disableflags


def test_what_we_have_and_mujoco_has_not():
    child = Body("c", "b", Joint.free(name="f"), None, LINK)
    root = Body("b", None, Joint.revolute((0, 0, 1)), None, LINK)
    thin = Body("t", "b", Joint.revolute((0, 1, 0)), None, None)
    held = Body("u", "t", Joint.revolute((1, 0, 0)), None, LINK)
    refused = {
        "joint 'f': a free joint on a body that moves": Robot.build([root, child]),
        "frame 'x': its body 't' has no mass": Robot.build([root, thin, held], frames=[("x", "t", np.eye(4))]),
        "joint 'p': a planar joint": Robot.build([Body("b", None, Joint.planar((0, 0, 1), name="p"), None, LINK)]),
    }
    for message, robot in refused.items():
        with pytest.raises(ModelError, match=message):
            interop.to_mujoco_model(robot)
    robot = Robot.build([root, thin, held])
    assert_mujoco(robot, interop.to_mujoco_model(robot))


def test_arguments_for_mujoco(monkeypatch):
    with pytest.raises(ArgumentError, match=r"model: expected a mujoco\.MjModel, got 'arm\.xml': use load_mjcf"):
        gc.Robot.from_mujoco("arm.xml")
    with pytest.raises(ArgumentError, match=r"model: expected a mujoco\.MjModel, got a mujoco\.MjSpec"):
        gc.Robot.from_mujoco(mujoco.MjSpec())
    with pytest.raises(ArgumentError, match=r"ignore: expected some of armature, .*got \['mass'\]"):
        gc.Robot.from_mujoco(interop.to_mujoco_model(models.two_link()), ignore="mass")
    with pytest.raises(ArgumentError, match="robot: expected a Robot, got 3"):
        interop.to_mujoco_model(3)
    monkeypatch.setattr(mujoco, "__version__", "2.3.7")
    with pytest.raises(GeomctrlError, match=r"to_mujoco_model needs mujoco 3\.3 or newer, got 2\.3\.7: pip install"):
        interop.to_mujoco_model(models.two_link())


def test_a_controller_runs_on_both():
    """A law for a robot from Pinocchio tracks in MuJoCo's equations of motion, by way of both."""
    robot = gc.Robot.from_pinocchio(pin.buildSampleModelManipulator())
    plant = interop.mujoco_plant(interop.to_mujoco_model(robot))
    q_d = np.full(6, 0.3)
    law = gc.controllers.PDGravity(robot, q_d)
    start = q_d + 0.1, np.zeros(6)
    run = gc.simulate(plant, law, *start, t_end=0.1, dt=1e-3, monitors=None)  # the sample's motors have 10 N m only
    ours = gc.simulate(gc.Plant(robot), law, *start, t_end=0.1, dt=1e-3, monitors=None)
    assert_close(run.q, ours.q, 1e-9)
