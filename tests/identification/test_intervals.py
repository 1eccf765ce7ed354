"""Intervals are right if residuals are correlated, uneven, or systematic."""

import numpy as np
import pytest
from identification.simulated import simulated
from lib import logs
from lib.logs import between
from scipy.signal import lfilter

from geomctrl import models
from geomctrl.identification import Dataset, RegressorModel, fit, fit_curves
from geomctrl.identification.estimators import folds
from geomctrl.identification.estimators.folds import moderated


def apart(model, data, method="ols", white=False):
    """rms of z between estimates from the two halves of a log, 0.2 s apart; white: by the formula for white noise."""
    middle = 0.5 * (data.t[-1] - data.t[0])
    parts = between(data, 0.0, middle - 0.1), between(data, middle + 0.1, np.inf)
    a, b = (fit(model, model.compress(part) if white else part, method) for part in parts)
    return np.sqrt(np.mean((a.values - b.values) ** 2 / (a.std**2 + b.std**2)))


def coloured(seed, loud=0.0, size=0.1, r=0.9):
    """Return (model, its true parameters, log) of a two-link arm. The noise is a first-order process, correlated by
    r over 10 ms. With `loud` it grows with speed by (v / fastest)^loud, where parameters of speeds have most
    leverage.
    """
    model, x, data = simulated(models.two_link(), seconds=20.0, noise=0.0, seed=seed)
    white = np.random.default_rng(1000 + seed).normal(size=(4000, 2))
    noise = lfilter([np.sqrt(1.0 - r**2)], [1.0, -r], white, axis=0)[2000:]
    noise = noise * (np.abs(data.v) / np.abs(data.v).max(axis=0)) ** loud
    tau = data.tau + size * np.sqrt(np.mean(data.tau**2, axis=0)) * noise
    return model, x, Dataset(data.t, data.q, tau, v=data.v, a=data.a)


def rms_z(method, made, **options):
    """Differences to the true parameters in standard deviations."""
    out = []
    for model, x, data in made:
        e = fit(model, data, method, **options)
        out.append((e.values - model.base.projection @ x) / e.std)
    return np.sqrt(np.mean(np.square(out)))


@pytest.mark.quick(2)
@pytest.mark.parametrize(("method", "options"), [("ols", {}), ("wls", {}), ("ridge", {"strength": 1e-8})])
def test_standard_deviations_are_those_of_the_errors(method, options):
    """For 16 logs with nine parameters each."""
    assert 0.8 <= rms_z(method, map(coloured, range(16)), **options) <= 1.3


@pytest.mark.parametrize(("method", "options"), [("ols", {}), ("ridge", {"strength": 1e-8})])
def test_noise_that_is_loud_where_it_matters_widens_intervals(method, options, monkeypatch):
    """Formulas with the residuals' autocorrelation alone do not see this."""
    items = [coloured(seed, 6.0, 0.5, 0.97) for seed in range(16)]
    assert 0.8 <= rms_z(method, items, **options) <= 1.3
    monkeypatch.setattr(folds, "jackknife", lambda whole, rests, e: (np.ones(len(e.solve(whole)[0])), np.inf))
    assert rms_z(method, items, **options) > 1.35


def test_friction_that_the_model_lacks_widens_intervals():
    """Friction that depends on the position, and hardly any noise: the formula for white noise counts it as noise."""
    robot = models.two_link()
    model, _, data = simulated(robot, seconds=30.0, noise=0.01, seed=3)
    ripple = Dataset(data.t, data.q, data.tau + 0.3 * np.sin(3.0 * data.q), v=data.v, a=data.a)
    assert apart(model, ripple) <= 1.3
    assert apart(model, ripple, white=True) > 2.5


def test_moderated_ratios_keep_a_common_one_and_shrink_the_rest():
    rng = np.random.default_rng(0)
    even = 4.0 * rng.chisquare(9.0, 2000) / 9.0
    factor, dof = moderated(even, np.ones(2000), 9.0)  # equal variances: their scatter is chance
    assert dof > 50.0
    np.testing.assert_allclose(factor, 2.0, rtol=0.1)
    variance = 8.0 / rng.chisquare(8.0, 4000)  # s0^2 d0 / chi^2_d0 of d0 = 8, s0 = 1
    _, dof = moderated(variance * rng.chisquare(9.0, 4000) / 9.0, np.ones(4000), 9.0)
    assert dof == pytest.approx(17.0, rel=0.1)
    assert moderated(np.full(5, 0.1), np.ones(5), 9.0)[0] == pytest.approx(1.0)  # luck


def test_a_log_of_which_nothing_can_be_left_out_has_the_formulas_intervals():
    """Joint 2 moves backwards in one part only: without this part its Coulomb friction and offset are not separate."""
    model, _, data = simulated(models.two_link(), seconds=20.0, seed=1)
    backwards = data.v[:, 1] < -0.1
    first = np.flatnonzero(backwards)[0]
    mask = np.ones(data.tau.shape, bool)
    mask[:, 1] = (data.v[:, 1] > 0.1) | (backwards & (np.arange(len(data)) < first + 40))
    one_way = Dataset(data.t, data.q, data.tau, v=data.v, a=data.a, mask=mask)
    smooth = model._with_options(smoothing=0.0)
    e = fit(smooth, one_way, "ols")
    assert e.dof == np.inf
    assert np.isfinite(e.std).all()
    assert np.isfinite(fit(smooth, data, "ols").std).all()


def needs(name):
    why = logs.missing(name)
    return pytest.mark.skipif(why is not None, reason=str(why))


@needs("ur10_petrone_first70.npz")
@pytest.mark.parametrize("method", ["ols", "wls"])
def test_halves_of_the_ur10_log_agree(method):
    assert apart(RegressorModel(logs.ur10(), smoothing=0.05), logs.ur10_log().filtered(6.0, decimate=2), method) <= 1.3


@needs("kr300_weigand_AB.npz")
@pytest.mark.parametrize("method", ["ols", "wls"])
def test_halves_of_the_kr300_log_agree(method):
    model = RegressorModel(
        logs.kr300(), rotor=True, offset=False, columns=[logs.kr300_counterbalance()], smoothing=1e-3
    )
    assert apart(model, logs.kr300_log("A").filtered(8.0, decimate=2).without(standstill=0.01), method) <= 1.3


@needs("tx40_figaroh.npz")
@pytest.mark.slow
def test_halves_of_the_tx40_log_agree():
    data = between(logs.tx40_log(), 0, 7.5).filtered(40.0, torque_cutoff=10.0, alike=True, decimate=50)
    model = RegressorModel(
        logs.tx40(), rotor=True, offset=range(6), transmission=logs.TX40_TRANSMISSION, smoothing=0.03, springs=[1]
    )
    model = fit_curves(model, data, "sigmoid", (0, 1, 2, 3, 4, 6)).model
    assert apart(model, data, "ols") <= 1.3
    assert apart(model, data, "wls") <= 1.3
