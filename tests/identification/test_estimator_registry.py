"""The properties that estimators declare are true, and a new estimator is available everywhere."""

from dataclasses import replace
from inspect import Parameter

import numpy as np
import pytest
from cli.command_line import invoke

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.identification import (
    ESTIMATORS,
    Dataset,
    ExcitationError,
    RegressorModel,
    Validation,
    fit,
    identify,
)
from geomctrl.identification.estimators.estimate import Estimator, Uncertainty
from geomctrl.identification.estimators.least_squares import ols

RATE, PERIOD = 100.0, 5.0
each = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)


def periodic_log(model, still=False, noise=0.2):
    """Two harmonics for each joint, two periods, with derivatives in closed form; the last joint may stand still."""
    t = np.arange(int(2 * PERIOD * RATE)) / RATE
    w = 2.0 * np.pi / PERIOD * np.array([[1, 2], [4, 3]])
    angle = t[:, None, None] * w + np.array([0.3, 1.0])
    q, v, a = np.sin(angle).sum(1), (w * np.cos(angle)).sum(1), -(w**2 * np.sin(angle)).sum(1)
    if still:
        q[:, 1], v[:, 1], a[:, 1] = 0.3, 0.0, 0.0
    x = model.prior
    x[model.positive] = 0.5
    tau = model.torque(x, q, v, a) + noise * np.random.default_rng(0).normal(size=q.shape)
    return Dataset(t, q, tau, v=v, a=a)


@pytest.fixture(scope="module")
def model():
    return RegressorModel(models.two_link(), smoothing=0.1)


@each
def test_an_estimate_bears_its_estimators_name_and_options_have_defaults(estimator, model):
    data = periodic_log(model)
    assert fit(model, data, estimator.name).method == estimator.name
    assert estimator.summary
    assert Parameter.empty not in estimator.options.values()


@each
def test_what_needs_no_samples_makes_the_same_of_a_logs_factors(estimator, model):
    data = periodic_log(model)
    whole = fit(model, data, estimator.name)
    if estimator.needs_samples:
        assert whole.correlation is not None
        return
    factors = fit(model, model.compress(data), estimator.name)
    np.testing.assert_array_equal(whole.x, factors.x)
    assert whole.correlation is None
    assert whole.covariance is None


@each
def test_who_has_a_prior_answers_where_others_lack_excitation(estimator, model):
    data = periodic_log(model, still=True)
    if estimator.has_prior:
        assert estimator.prior_weight in estimator.options
        e = fit(model, data, estimator.name, **{estimator.prior_weight: 1e9})
        np.testing.assert_allclose(e.x, model.prior, atol=1e-4)
    else:
        with pytest.raises(ExcitationError, match="the log does not determine"):
            fit(model, data, estimator.name)


@each
def test_physical_ones_find_bodies_that_can_exist_in_noise(estimator, model):
    noisy = periodic_log(model, noise=50.0)
    assert fit(model, noisy, estimator.name).is_physical == estimator.physical


@pytest.mark.quick(2)
@each
def test_who_has_no_standard_deviations_says_why(estimator, model):
    data = periodic_log(model)
    e = fit(model, data, estimator.name)
    assert e.std is not None or estimator.uncertainty
    text = identify(model.robot, data, method=estimator.name, model=model, validation=Validation(None, PERIOD)).text()
    assert estimator.uncertainty in text


def halved(model, data, factor=0.5):
    """A test estimator: half of the least squares estimate."""
    return replace(ols(model, data), x=factor * ols(model, data).x, method="halved", uncertainty=Uncertainty())


def test_an_estimator_that_is_added_is_known_to_fit_identify_report_and_command_line(model, monkeypatch, tmp_path):
    added = Estimator("halved", halved, "half of least squares", prior_weight="factor", uncertainty="nobody knows it")
    monkeypatch.setitem(ESTIMATORS, added.name, added)
    data = periodic_log(model)
    assert fit(model, data, "halved", factor=0.25).method == "halved"
    with pytest.raises(ArgumentError, match="options: halved has no option 'strength'; known: factor"):
        fit(model, data, "halved", strength=1.0)
    report = identify(model.robot, data, method="halved", model=model, validation=Validation(None))
    assert report.unconstrained is not None
    assert report.estimate.correlation is None  # the estimator received the triangular factors
    assert "(halved has no covariance: nobody knows it; std and intervals are least squares')" in report.text()
    data.save(tmp_path / "log.npz")
    arguments = ["identify", str(tmp_path / "log.npz"), "--robot", "two_link", "--out", str(tmp_path / "out")]
    result = invoke(*arguments, "--method", "halved", "--prior-weight", "1.0", "--test", "0")
    assert result.exit_code == 0, result.output
    assert "method 'halved'" in result.output
    result = invoke(*arguments, "--method", "doubled")
    assert result.exit_code == 2
    assert "method: expected one of ols" in result.output
