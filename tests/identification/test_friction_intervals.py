"""Intervals contain the true value if friction has another shape than the model's, and encoders have noise."""

import os

import numpy as np
import pytest
from studies import friction_intervals

from geomctrl.identification import Reading, Validation, identify, pipeline
from geomctrl.identification.estimators.cutoffs import white_noise

LOGS = (0, 6, 7, 9, 12, 15)  # two links each


def coverage(friction, numbers=LOGS):
    without, curves, chosen = friction_intervals.FRICTION[friction]
    held = []
    for number in numbers:
        log, model, x = friction_intervals.simulated(number)
        report = identify(
            model.robot, log, method="wls", model=model._with_options(**without), friction_curves=curves,
            choose_smoothing=chosen, reading=Reading(check_units=False), validation=Validation(0.3),
        )  # fmt: skip
        held.append(friction_intervals.held(report, x))
    return np.concatenate(held).mean()


QUICK_LOGS = LOGS[:3]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in friction_intervals.FRICTION if "coulomb" not in name]


@pytest.mark.quick(1)
@pytest.mark.parametrize("friction", ["viscous, coulomb", "viscous, coulomb, stribeck", *SLOW])
def test_intervals_hold_the_truth_with_each_friction_model(friction):
    assert coverage(friction, QUICK_LOGS if "GEOMCTRL_QUICK_TESTS" in os.environ else LOGS) >= 0.9


@pytest.mark.slow
def test_noise_of_encoders_would_be_missed_by_residuals(monkeypatch):
    monkeypatch.setattr(pipeline, "with_bias_of_noise", lambda estimate, *_: (estimate, None))
    assert coverage("viscous, coulomb, stribeck") < 0.8


def test_noise_that_moves_parameters_is_said():
    log, model, _ = friction_intervals.simulated(0)
    report = identify(model.robot, log, model=model, friction_curves="stribeck", reading=Reading(check_units=False))
    assert report.notes["noise of the motion"].startswith("noise of positions moves base parameters by up to")
    assert report.unconstrained is not None


def test_white_noise_is_measured_beside_a_motion():
    t, rng = np.arange(5000) / 250.0, np.random.default_rng(0)
    x = np.stack((np.sin(3.0 * t) + 0.2 * t, np.cos(t)), -1) + np.array([1e-3, 2e-5]) * rng.normal(size=(5000, 2))
    np.testing.assert_allclose(white_noise(x, 250.0, 20.0), [1e-3, 2e-5], rtol=0.1)
    assert white_noise(x, 250.0, 124.9) is None
