"""Inverse dynamics is linear in the inertial parameters: tau = Y pi + armature a. (Pinocchio's: test_dynamics.)"""

import numpy as np
import pytest
from hypothesis import given
from oracles import assert_close, cases, force_scale, properties

from geomctrl import models, testing

FORMS = ("ploen", "christoffel", "adjoint")


@properties
@given(cases(floating_base=None))
def test_regressor_times_parameters_is_inverse_dynamics_with_a_reference_velocity(case):
    robot, q, v, a, v_ref = case
    scale = force_scale(robot, q, v, a, v_ref)
    for form in FORMS:
        Y, tau = robot.regressor(q, v, a, v_ref, form), robot.inverse_dynamics(q, v, a, v_ref, form=form)
        assert_close(Y @ robot.parameters.ravel() + robot.armature * a, tau, 1e-11, scale)


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", models.names())
def test_regressor_of_bundled_robots(name):
    robot, rng = models.load(name), np.random.default_rng(0)
    q, (v, a, v_ref) = robot.random_configuration(rng), rng.normal(size=(3, robot.nv))
    for form in FORMS:
        tau = robot.inverse_dynamics(q, v, a, v_ref, form=form)
        scale = force_scale(robot, q, v, a, v_ref)
        Y = robot.regressor(q, v, a, v_ref, form)
        assert_close(Y @ robot.parameters.ravel() + robot.armature * a, tau, 1e-11, scale)


@properties
@given(cases(floating_base=None))
def test_forms_agree_where_the_reference_is_the_velocity(case):
    robot, q, v, a, _ = case
    Y = robot.regressor(q, v, a)
    assert_close(robot.regressor(q, v, a, v), Y, 1e-15)
    assert_close(robot.regressor(q, v, a, v, "christoffel"), Y, 1e-12, np.abs(a).max() + np.abs(v).max() ** 2)


@properties
@given(cases(floating_base=None, max_bodies=4))
def test_regressor_does_not_depend_on_the_parameters(case):
    """Columns are the inverse dynamics of unit parameters, which need not be physical."""
    robot, q, v, a, v_ref = case
    Y = robot.regressor(q, v, a, v_ref)
    rng = np.random.default_rng(0)
    other = robot.with_armature(0.0).with_parameters(rng.normal(size=(robot.nbodies, 10)), physical=False)
    assert_close(other.regressor(q, v, a, v_ref), Y, 1e-15)
    tau = other.inverse_dynamics(q, v, a, v_ref)
    assert_close(Y @ other.parameters.ravel(), tau, 1e-11, np.abs(Y).max() * np.abs(other.parameters).sum())


def test_columns_of_bodies_off_the_path_are_zero():
    robot = testing.random_robot(np.random.default_rng(0), ["revolute", "revolute", "revolute"], [-1, 0, 0])
    Y = robot.regressor(*np.random.default_rng(1).normal(size=(3, 3)))
    assert not Y[1, 20:].any()
    assert not Y[2, 10:20].any()
    assert not Y[1:, :10].any()
    assert Y[0].reshape(3, 10).any(axis=1).all()
