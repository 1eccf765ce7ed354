"""Gears and motors of a URDF's transmissions."""

import numpy as np
import pytest

from geomctrl import models

LINK = """<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
</inertial></link>"""
JOINT = """<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>"""
ROBOT = (
    '<robot name="r" xmlns:drake="http://drake.mit.edu"><link name="base"/>'
    + "".join(map(LINK.format, "abc"))
    + JOINT.format("j", "revolute", "base", "a")
    + JOINT.format("k", "prismatic", "a", "b")
    + JOINT.format("weld", "fixed", "b", "c")
    + "{}</robot>"
)


def transmission(joints="j", inside="", outside="", actuators=1):
    held = "".join(f'<joint name="{name}"><hardwareInterface>x</hardwareInterface></joint>' for name in joints.split())
    motors = "".join(f'<actuator name="m{k}">{inside}</actuator>' for k in range(actuators))
    return f'<transmission name="t"><type>x/SimpleTransmission</type>{held}{motors}{outside}</transmission>'


def reduction(x):
    return f"<mechanicalReduction>{x}</mechanicalReduction>"


def drake(**numbers):
    return "".join(f'<drake:{key} value="{x}"/>' for key, x in numbers.items())


@pytest.mark.parametrize(
    ("text", "ratio", "armature"),
    [
        (transmission(inside=reduction(" -50 ")), (-50.0, 1.0), (0.0, 0.0)),
        (transmission(outside=reduction(3)), (3.0, 1.0), (0.0, 0.0)),  # as PR2's drives have it
        (transmission("k", reduction(400)) + transmission("j"), (1.0, 400.0), (0.0, 0.0)),
        (transmission(inside=drake(rotor_inertia=0.001, gear_ratio=20)), (20.0, 1.0), (0.4, 0.0)),
        (transmission(inside=drake(rotor_inertia=0.001) + reduction(-10)), (-10.0, 1.0), (0.1, 0.0)),
        (transmission(inside=drake(rotor_inertia=0.5)), (1.0, 1.0), (0.5, 0.0)),
        (transmission(inside=reduction(7) + drake(rotor_inertia=1, gear_ratio=2)), (2.0, 1.0), (4.0, 0.0)),
        (transmission("j k", reduction(5), actuators=2), (1.0, 1.0), (0.0, 0.0)),  # a differential
        (transmission("nobody", reduction(5)), (1.0, 1.0), (0.0, 0.0)),
    ],
)
def test_gears_and_rotors(text, ratio, armature):
    robot = models.load_urdf(ROBOT.format(text))
    np.testing.assert_array_equal(robot.gear_ratio, ratio)
    np.testing.assert_allclose(robot.armature, armature, rtol=1e-15)


def test_the_mass_matrix_feels_them():
    q = np.array([0.3, 0.4])
    driven = models.load_urdf(ROBOT.format(transmission("k", drake(rotor_inertia=2e-5, gear_ratio=300))))
    M = driven.mass_matrix(q) - models.load_urdf(ROBOT.format("")).mass_matrix(q)
    np.testing.assert_allclose(M, np.diag([0.0, 1.8]), atol=1e-14)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (transmission(inside=reduction("fifty")), "line 7: mechanicalReduction 'fifty' of transmission 't'"),
        (transmission(inside=reduction(0)), "line 7: mechanicalReduction '0' of transmission 't'"),
        (transmission(inside=reduction("")), "line 7: mechanicalReduction None of transmission 't'"),
        (transmission(inside=drake(rotor_inertia=-1)), "line 7: rotor_inertia '-1' of transmission 't'"),
        (transmission(inside=drake(gear_ratio="inf")), "line 7: gear_ratio 'inf' of transmission 't'"),
        (transmission("j k", drake(rotor_inertia=1)), "line 7: transmission 't': rotor_inertia at 'j', 'k'; expected"),
        (transmission("weld", drake(rotor_inertia=1)), "rotor_inertia at 'weld'; expected a transmission"),
        (transmission("nobody", drake(rotor_inertia=1)), "rotor_inertia at 'nobody'; expected"),
        (transmission("", drake(rotor_inertia=1)), "rotor_inertia at no joint; expected"),
        (
            transmission(inside=drake(rotor_inertia=1)) + transmission(inside=drake(rotor_inertia=2)),
            "rotor_inertia at 'j'; expected a transmission with one actuator",
        ),
    ],
)
def test_what_is_not_read_is_said(text, message):
    with pytest.warns(UserWarning, match=f"URDF text: not read: .*{message}"):
        robot = models.load_urdf(ROBOT.format(text))
    assert robot.armature[1] == 0.0


def test_a_locked_follower_needs_no_motor():
    text = ROBOT.format(transmission("k", drake(rotor_inertia=1)))
    text = text.replace('<limit lower="-1"', '<mimic joint="j"/><limit lower="-1"').replace("<mimic", "<x", 1)
    text = text.replace('<x joint="j"/>', "")
    assert not models.load_urdf(text, mimic="fixed").armature.any()
