"""Armature in laws, compiled loops and sweeps."""

import numpy as np
import pytest
from simulation_options import COMPILED, run_both_ways

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.compiled import choice
from geomctrl.control.sweeping.fingerprint import fingerprint

ARM = models.two_link()
MOTORS = np.array([0.2, 0.5])
DRIVEN = ARM.with_armature(MOTORS)
MOTION = gc.references.Quintic(ARM, [0.0, 0.0], [0.6, -0.4], 0.5)


class Feedforward:
    """A user's law that computes with the armature of the joints."""

    def __init__(self, robot):
        self.robot = robot

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        desired = MOTION(t)
        tau = self.robot.gravity_force(q) + self.robot.armature * desired.a - 2.0 * (v - desired.v)
        return gc.Command(tau + self.robot.joints[1].armature * np.array([0.0, 1.0]))


LAWS = {
    "user": Feedforward,
    "slotine_li": lambda robot: controllers.SlotineLi(robot, MOTION),
    "computed_torque": lambda robot: controllers.ComputedTorque(robot, MOTION),
}


@pytest.mark.parametrize("name", LAWS)
def test_compiled_loops_are_what_python_computes(name):
    law = LAWS[name](DRIVEN)
    run_both_ways(gc.Plant(DRIVEN), law, [0.1, 0.2], [0.0, 0.3], 0.1, 1e-3, atol=1e-8)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", LAWS)
def test_one_trace_serves_motors_of_any_size(name, monkeypatch):
    """Armature is an input of compiled code; its absence is part of the structure."""
    created = []
    original = choice.trace_loop
    monkeypatch.setattr(choice, "trace_loop", lambda *args, **options: created.append(1) or original(*args, **options))
    monkeypatch.setattr(choice, "_traces", type(choice._traces)())
    ends = []
    for scale in (1.0, 2.0, 0.5):
        robot = ARM.with_armature(scale * MOTORS)
        run = run_both_ways(gc.Plant(robot), LAWS[name](robot), [0.1, 0.2], [0.0, 0.3], 0.05, 1e-3, atol=1e-8)
        ends.append(run.tau[-1])
    assert len(created) == 1
    assert np.abs(ends[0] - ends[1]).max() > 1e-3
    robot = ARM.with_armature([0.0, 0.5])
    gc.simulate(gc.Plant(robot), LAWS[name](robot), [0.1, 0.2], [0.0, 0.3], 0.05, 1e-3, options=COMPILED)
    assert len(created) == 2


def test_adaptation_compensates_what_motors_take():
    """V' = -s K s if the model contains the armature, so that only the parameters are unknown; otherwise not."""
    loaded = DRIVEN.with_payload(0.5)
    testing.assert_lyapunov(controllers.SlotineLi(DRIVEN, MOTION), loaded, runs=1)
    with pytest.raises(AssertionError):
        testing.assert_lyapunov(controllers.SlotineLi(ARM, MOTION), loaded, runs=1)


def test_sweeps_tell_motors_apart():
    digests = [fingerprint(r)[""] for r in (ARM, DRIVEN, ARM.with_armature(MOTORS), ARM.with_armature(0.1))]
    assert digests[1] == digests[2]
    assert len(set(digests)) == 3


def test_elastic_joints_have_the_motors_inertia_once():
    """The rotor behind the spring is the armature; the links have none."""
    plant = gc.control.elastic_joints.ElasticPlant(DRIVEN, 1e3, MOTORS)
    M = plant.robot.mass_matrix(np.zeros(4))
    np.testing.assert_allclose(M[:2, :2], ARM.mass_matrix(np.zeros(2)), atol=1e-14)
    np.testing.assert_allclose(M[2:, 2:], np.diag(MOTORS), atol=1e-14)
    assert not plant.links.armature.any()
