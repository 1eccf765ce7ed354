"""Laws with default gains work on every bundled robot with a torque held for one millisecond."""

import inspect

import numpy as np
import pytest
from simulation_options import IN_PYTHON

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.references import Sinusoids
from geomctrl.control.tuning import design
from geomctrl.controllers._filtered_regression import RememberingAdaptation

OWN = {"qp-inverse-dynamics"}  # limits that keep joints within their ranges, which neutral configurations may violate
LAWS = {
    name: law
    for name, law in controllers.classes(tuned=True).items()
    if "reference" in inspect.signature(law).parameters and name not in OWN
}


def of(law, robot):
    """Return the law with its default gains, and a state with an initial error."""
    motion = Sinusoids(robot, robot.neutral(), 0.3, 0.4)
    q, v, _ = motion(0.0)
    # as their docstrings require
    few = {"adapt": [robot.body_names[-1]]} if issubclass(law, RememberingAdaptation) else {}
    return law(robot, motion, **few), robot.integrate(q, 0.05 * np.random.default_rng(0).normal(size=robot.nv)), v


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("name", models.names())
def test_a_tracking_law_tracks_at_a_kilohertz(name, law):
    robot = models.load(name)
    controller, q0, v0 = of(law, robot)
    run = gc.simulate(robot, controller, q0, v0, 0.5, 1e-3, control_dt=1e-3, monitors=None, options=IN_PYTHON)
    e = np.linalg.norm(run.signals["e"], axis=1)
    assert e.max() < 1.5 * e[0]
    assert e[-1] < 0.3 * e[0]


@pytest.mark.quick(5)
@pytest.mark.parametrize("name", models.names())
def test_a_set_point_is_reached_at_a_kilohertz(name):
    robot = models.load(name)
    law = controllers.PDGravity(robot, robot.neutral())
    q0 = robot.integrate(robot.neutral(), 0.05 * np.random.default_rng(0).normal(size=robot.nv))
    run = gc.simulate(robot, law, q0, np.zeros(robot.nv), 0.5, 1e-3, control_dt=1e-3, monitors=None)
    e = np.linalg.norm(run.signals["e"], axis=1)
    assert e.max() < 1.01 * e[0]
    assert e[-1] < 0.3 * e[0]


def test_defaults_are_the_rules():
    robot = models.panda()
    rule, motion = design(robot, 1e-3), Sinusoids(robot, robot.neutral(), 0.3, 0.4)
    passivity, torque = controllers.Passivity(robot, motion), controllers.ComputedTorque(robot, motion)
    np.testing.assert_array_equal(passivity.Lambda, rule.Lambda * np.eye(7))
    np.testing.assert_array_equal(passivity.K, np.diag(rule.kappa * rule.D))
    np.testing.assert_array_equal(torque.kp, np.diag(rule.kappa * rule.Lambda))
    np.testing.assert_array_equal(torque.kd, np.diag(rule.kappa + rule.Lambda))
    half_given = controllers.Passivity(robot, motion, Lambda=3.0)
    np.testing.assert_array_equal(half_given.Lambda, 3.0 * np.eye(7))
    np.testing.assert_array_equal(half_given.K, passivity.K)
