"""Linear equalities of MJCF as joints that follow others, against MuJoCo's constraints made stiff."""

import numpy as np
import pytest

from geomctrl import models
from geomctrl.errors import ModelError

mujoco = pytest.importorskip("mujoco")

ARM = """<mujoco><option timestep="1e-5"/><worldbody>
<body name="a" pos="0 0 1"><joint name="j1" axis="0 1 0" ref="0.2" armature="0.1"/><geom size=".1" pos=".2 0 0"/>
<body name="b" pos=".4 0 0"><joint name="j2" axis="0 1 0"/><geom size=".1 .1 .2" type="box" pos=".2 0 0"/>
<body name="c" pos=".4 0 0"><joint name="j3" axis="0 1 0"/>
<geom size=".1 .1 .2" type="box" pos=".2 0 0"/></body></body></body></worldbody>
<tendon><fixed name="t"><joint joint="j3" coef="2"/><joint joint="j1" coef="1"/></fixed>
<fixed name="u"><joint joint="j2" coef="0.5"/></fixed></tendon>
<equality>{}</equality></mujoco>"""
STIFF = 'solref="2e-5 1" solimp="0.999999 0.999999 0.001"'


@pytest.mark.parametrize(
    ("equality", "following"),
    [
        (f'<joint joint1="j2" joint2="j1" polycoef="0.1 -0.5 0 0 0" {STIFF}/>', "j2"),
        (f'<joint joint1="j3" polycoef="0.1 0 0 0 0" {STIFF}/>', "j3"),
        (f'<tendon tendon1="t" polycoef="0.1 0 0 0 0" {STIFF}/>', "j3"),
        (f'<tendon tendon1="t" tendon2="u" polycoef="-0.1 2 0 0 0" {STIFF}/>', "j3"),
    ],
    ids=["joints", "one joint", "one tendon", "two tendons"],
)
def test_constrained_motion_is_mujocos(equality, following):
    text, rng = ARM.format(equality), np.random.default_rng(0)
    robot, m = models.load_mjcf(text), mujoco.MjModel.from_xml_string(text)
    assert [c.joint for c in robot.couplings] == [following]
    d, A = mujoco.MjData(m), robot.coupling.matrix
    x, v = rng.normal(size=(2, robot.nv))
    d.qpos[:], d.qvel[:] = robot.coupling.tree_configuration(x), A @ v
    mujoco.mj_forward(m, d)
    np.testing.assert_allclose(d.efc_pos, 0.0, atol=1e-12)  # the offset
    expected = A @ robot.forward_dynamics(x, v, np.zeros(robot.nv))
    np.testing.assert_allclose(d.qacc, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize(
    "equality", ['<joint joint1="j2" joint2="j1" polycoef="0 1 2 0 0"/>', '<connect body1="c" anchor="0 0 0"/>']
)
def test_what_is_not_linear_is_refused(equality):
    with pytest.raises(ModelError, match="can not be represented: equality of '#0'"):
        models.load_mjcf(ARM.format(equality))
    assert models.load_mjcf(ARM.format(equality), ignore="equality").nv == 3


def test_what_is_switched_off_or_ignored_does_not_couple():
    equality = '<joint joint1="j2" joint2="j1" {}/>'
    assert models.load_mjcf(ARM.format(equality.format('active="false"'))).nv == 3
    assert models.load_mjcf(ARM.format(equality.format("")), ignore="equality").nv == 3
