"""Armature that the model contains, and armature that is estimated: never both at a joint."""

import numpy as np
import pytest

from geomctrl import models
from geomctrl.identification import Dataset, RegressorModel, fit, identify
from geomctrl.identification.settings import Filtering, Validation
from geomctrl.models.io.model_file import load_model, save_model

TRUE = np.array([0.3, 0.7])
ARM = models.two_link().with_armature(TRUE)


def motion(seconds):
    """Return (t, q, v, a) of three sines for each joint."""
    t = np.arange(int(100 * seconds)) / 100.0
    w = 2.0 * np.pi * np.array([[0.23, 0.31], [0.77, 0.59], [1.1, 1.4]])
    x, A = t[:, None, None] * w + [[0, 1], [2, 3], [4, 5]], np.array([[0.8, 0.7], [0.4, 0.5], [0.2, 0.2]])
    return t, (A * np.sin(x)).sum(1), (A * w * np.cos(x)).sum(1), -(A * w**2 * np.sin(x)).sum(1)


def log(seconds=12.0):
    """A log of the arm with its motors, without friction and noise."""
    t, q, v, a = motion(seconds)
    return Dataset(t, q, ARM.inverse_dynamics(q, v, a), v=v, a=a)


def friction_free(robot, **options):
    return RegressorModel(robot, viscous=False, coulomb=False, offset=False, **options)


def test_predicted_torques_are_inverse_dynamics():
    """Torques of the robot with its armature, from the model or from a column."""
    _, q, v, a = motion(1.0)
    expected = ARM.inverse_dynamics(q, v, a)
    for rotor in (False, True, [1]):
        model = friction_free(ARM, rotor=rotor)
        np.testing.assert_allclose(model.torque(model.prior, q, v, a), expected, atol=1e-12)
        result = model.regressor(q, v, a) @ model.prior + model.known_armature * a
        np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.parametrize("method", ["ols", "wls", "ridge", "consistent"])
def test_what_is_known_is_not_taken_for_a_links_inertia(method):
    """Known rotors leave the links' parameters unchanged; if they are missing, Iyy is off by them."""
    model = friction_free(ARM)
    data = log(6.0)
    options = {"ridge": {"strength": 1e-12}, "consistent": {"regularization": 1e-10, "margin": 1e-9}}.get(method, {})
    e = fit(model, data, method, **options)
    np.testing.assert_allclose(e.values, model.base.projection @ ARM.parameters.ravel(), atol=1e-3)
    np.testing.assert_array_equal(e.robot.armature, TRUE)
    assert e.relative_error() < 1e-4
    ignorant = fit(friction_free(ARM.with_armature(0.0)), data, "ols")
    assert ignorant.relative_error() > 0.01


def test_a_column_is_the_whole_armature_and_the_robot_gets_it(tmp_path):
    """For any armature of the model."""
    wrong = ARM.with_armature([TRUE[0], 0.2])
    model = friction_free(wrong, rotor=[1])
    np.testing.assert_array_equal(model.known_armature, [TRUE[0], 0.0])
    assert model.prior[model.by_kind["rotor"]] == [0.2]
    data = log()
    e = fit(model, data, "ols")
    np.testing.assert_allclose(e.x[model.by_kind["rotor"]], TRUE[1], atol=1e-8)
    np.testing.assert_allclose(e.robot.armature, TRUE, atol=1e-8)
    np.testing.assert_allclose(e.robot.inverse_dynamics(data.q, data.v, data.a), data.tau, atol=1e-7)
    back = load_model(save_model(e.robot, tmp_path / "robot.json"))
    np.testing.assert_array_equal(back.armature, e.robot.armature)


def test_logs_are_predicted_as_they_were_measured():
    """Known armature is filtered with the torques and added again."""
    t, q, v, a = motion(10.0)
    data = Dataset(t, q, ARM.inverse_dynamics(q, v, a)).filtered(cutoff=12.0)
    model = friction_free(ARM)
    _, tau, predicted, mask = model._predict(model.prior, data)
    inside = mask.all(1)
    inside[:100] = inside[-100:] = False  # ends of the filters
    np.testing.assert_allclose(predicted[inside], tau[inside], atol=0.02 * np.abs(tau).max())
    power = np.abs(tau[inside]).max()
    bare = friction_free(ARM.with_armature(0.0))
    assert np.abs(bare._predict(model.prior, data)[2] - tau)[inside].max() > 0.1 * power


def test_coupled_rotors_leave_the_robot_without_armature():
    """They are no joint's property: the robot contains a joint's own properties, once."""
    model = friction_free(ARM, rotor=[1], transmission=[[1, 0], [1, -1]])
    np.testing.assert_array_equal(model.known_armature, [0.0, 0.0])
    t, q, v, a = motion(12.0)
    T = model.transmission[1]
    tau = ARM.with_armature(0.0).inverse_dynamics(q, v, a) + 0.4 * np.outer(a @ T, T)
    e = fit(model, Dataset(t, q, tau, v=v, a=a), "ols")
    np.testing.assert_allclose(e.x[model.by_kind["rotor"]], 0.4, atol=1e-8)
    assert e.held_by_robot == {}
    np.testing.assert_array_equal(e.robot.armature, [0.0, 0.0])


def test_reports_say_where_rotors_are():
    t, q, v, a = motion(20.0)
    model = RegressorModel(ARM, rotor=[1], smoothing=0.05)
    report = identify(
        ARM, Dataset(t, q, ARM.inverse_dynamics(q, v, a)), model=model, filtering=Filtering(12.0),
        validation=Validation(None), method="ols",
    )  # fmt: skip
    (line,) = (line for line in report.text(parameters=False).splitlines() if line.startswith("Ir2 "))
    assert all(text in line for text in ("rotor inertia", "joint2", "yes, as armature"))
    assert report.robot.armature[0] == TRUE[0]
    assert report.robot.armature[1] == pytest.approx(TRUE[1], rel=0.1)
