"""Robots written as MJCF, against MuJoCo's own inverse dynamics."""

import numpy as np
import pytest

from geomctrl import Body, Joint, Robot, inertia, models
from geomctrl.errors import ModelError
from geomctrl.models.io.writing import gravity_elsewhere, save_mjcf

mujoco = pytest.importorskip("mujoco")
LINK = inertia.from_com(1.3, (0.1, -0.2, 0.05), np.diag([0.03, 0.04, 0.05]))


def tilted():
    """Axes away from the bodies' origins, a prismatic joint, an armature, and gravity in a general direction."""
    turn = Joint.revolute((0.0, 0.6, 0.8), (0.1, 0.2, -0.1), name="turn", lower=-1.0, upper=2.0, armature=0.3)
    slide = Joint.prismatic((1.0, 0.0, 0.0), name="slide")
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]], (0.3, 0.1, 0.2)
    bodies = [Body("a", None, turn, T, LINK), Body("b", "a", slide, T, 0.5 * LINK)]
    return Robot.build(bodies, name="tilted", gravity=(1.0, -2.0, 9.0))


@pytest.mark.parametrize("robot", [tilted(), models.two_link(), models.ur10(), models.puma560()], ids=lambda r: r.name)
def test_mujoco_has_the_same_inverse_dynamics_and_gravity(robot, tmp_path):
    path = save_mjcf(robot, tmp_path / "robot.xml")
    model = mujoco.MjModel.from_xml_path(str(path))
    np.testing.assert_allclose(model.opt.gravity, robot.gravity)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    for _ in range(5):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a = rng.normal(size=(3, robot.nv))
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(data.qfrc_inverse, robot.inverse_dynamics(q, v, a), atol=1e-9)
    back = models.load_mjcf(path)
    np.testing.assert_allclose(back.mass_matrix(q), robot.mass_matrix(q), atol=1e-9)


def test_what_mjcf_does_not_hold_is_refused(tmp_path):
    screw = Robot.build([Body("a", None, Joint.helical((0, 0, 1), pitch=0.1, name="s"), None, LINK)])
    with pytest.raises(ModelError, match="joint 's': a helical joint is not written as MJCF"):
        save_mjcf(screw, tmp_path / "robot.xml")
    thin = inertia.from_com(1.0, (0.0, 0.0, 0.0), np.diag([0.1, 0.1, 0.3]))
    light = models.two_link().with_parameters(np.stack((thin, thin)), physical=False)
    with pytest.raises(ModelError, match="body 'link1': MuJoCo needs a physical inertia"):
        save_mjcf(light, tmp_path / "robot.xml")
    assert list(tmp_path.iterdir()) == []


def test_a_urdf_says_that_it_can_not_hold_gravity(tmp_path):
    from geomctrl.models.io.writing import save_urdf

    assert gravity_elsewhere(models.two_link().with_gravity((0.0, 0.0, -9.81))) is None
    text = save_urdf(tilted().with_armature(0.0), tmp_path / "robot.urdf").read_text()
    assert "<!-- gravity is (1, -2, 9) m/s^2 in the base's frame, but URDF can not store it" in text
