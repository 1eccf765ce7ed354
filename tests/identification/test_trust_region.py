"""Newton's method in a trust region, and the derivatives it is given."""

import numpy as np
import pytest
from identification.verdict_logs import simulated
from lib import logs

from geomctrl import inertia, models
from geomctrl.identification import Filtering, RegressorModel, fit
from geomctrl.identification.estimators.log_cholesky import _Problem, curved, from_log_cholesky, log_cholesky
from geomctrl.identification.estimators.physical import Penalties, in_natural_units
from geomctrl.identification.estimators.trust_region import minimise


def rosenbrock(x):
    a, b = x
    g = np.array([-400.0 * a * (b - a * a) - 2.0 * (1.0 - a), 200.0 * (b - a * a)])
    H = np.array([[1200.0 * a * a - 400.0 * b + 2.0, -400.0 * a], [-400.0 * a, 200.0]])
    return 100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2, g, H


def test_rosenbrocks_valley():
    found = minimise(lambda x: rosenbrock(x)[0], rosenbrock, np.array([-1.2, 1.0]), 100, 1e-12)
    assert found.converged
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
    few = minimise(lambda x: rosenbrock(x)[0], rosenbrock, np.array([-1.2, 1.0]), 5, 1e-12)
    assert (few.converged, few.evaluations) == (False, 5)


def test_saddles_are_left():
    """x^4 / 4 - x^2 / 2 + y^2 / 2 from (0, 1), whose gradient points to the saddle at 0 only: the hard case."""

    def second(z):
        x, y = z
        return x**4 / 4 - x**2 / 2 + y**2 / 2 + 1.0, np.array([x**3 - x, y]), np.diag([3 * x * x - 1.0, 1.0])

    found = minimise(lambda z: second(z)[0], second, np.array([0.0, 1.0]), 100, 1e-14)
    assert found.converged
    np.testing.assert_allclose(np.abs(found.x), [1.0, 0.0], atol=1e-6)


def test_second_derivatives_of_the_parameters():
    theta = log_cholesky(models.panda().parameters[3])
    g, h = np.random.default_rng(0).normal(size=10), 1e-6
    for k, e in enumerate(np.eye(10) * h):
        slope = [g @ from_log_cholesky(theta + s * e)[1] for s in (1, -1)]
        np.testing.assert_allclose(curved(theta, g)[k], (slope[0] - slope[1]) / (2 * h), atol=1e-7)


@pytest.mark.parametrize("entropic", [0.0, 1e-2])
def test_gradient_and_hessian_of_the_objective(entropic):
    log, model = simulated("two_link", seconds=4.0)
    c = model.compress(log.filtered(5.0))
    problem = _Problem(in_natural_units(model, c, None, None), Penalties(1e-3, entropic, 1e-6, True))
    theta = problem.first(None) + 0.1 * np.random.default_rng(0).normal(size=model.size)
    f, g, H = problem.second(theta)
    assert f == problem.value(theta)
    for k, e in enumerate(1e-6 * np.eye(model.size)):
        (fp, gp, _), (fm, gm, _) = problem.second(theta + e), problem.second(theta - e)
        assert g[k] == pytest.approx((fp - fm) / 2e-6, rel=1e-5, abs=1e-7 * np.abs(g).max())
        np.testing.assert_allclose(H[k], (gp - gm) / 2e-6, rtol=1e-5, atol=1e-7 * np.abs(H).max())


def objective(model, c, x, weights):
    p = in_natural_units(model, c, weights, None)
    y = x / p.scale
    return np.sum((p.A @ y - p.b) ** 2) + 1e-6 * np.sum((y - p.prior / p.scale) ** 2)


def factors(which):
    """(model, factors) of logs at whose fit bodies end on the edge of the cone."""
    if which == "panda":
        log, model = simulated("panda", noise=0.05)
        return model, model.compress(log.filtered(3.0, alike=True, decimate=20))
    if which == "ur10":
        model = RegressorModel(logs.ur10(), smoothing=0.05)
        return model, model.compress(logs.ur10_log().filtered(6.0, alike=True, decimate=2))
    columns = [logs.kr300_counterbalance()]
    model = RegressorModel(logs.kr300(), rotor=True, offset=False, columns=columns, smoothing=1e-3)
    settings = Filtering(8.0, decimate=2).for_log(logs.kr300_log("A"))
    return model, model.compress(settings.filtered(logs.kr300_log("A")).without_standstill(0.01))


FILES = {"ur10": "ur10_petrone_first70.npz", "kr300": "kr300_weigand_AB.npz"}
WHY = {which: logs.missing(name) for which, name in FILES.items()}
REAL = [pytest.param(which, marks=pytest.mark.skipif(why is not None, reason=str(why))) for which, why in WHY.items()]


@pytest.mark.parametrize("which", ["panda", *REAL])
@pytest.mark.parametrize("weights", [None, "noise"])
def test_manifold_converges_to_the_cones_minimum_where_bodies_end_at_the_edge(which, weights):
    """Gauss-Newton stopped after a thousand evaluations on each of these logs but the first."""
    model, c = factors(which)
    e, cone = (fit(model, c, method, weights=weights) for method in ("manifold", "consistent"))
    assert e.converged
    assert e.notes["evaluations"] < 500
    best = objective(model, c, cone.x, weights)
    assert e.notes["objective"] == pytest.approx(objective(model, c, e.x, weights), rel=1e-6)
    assert e.notes["objective"] <= best * (1.0 + 5e-4)
    assert np.linalg.eigvalsh(inertia.pseudo(e.x[: model.inertial].reshape(-1, 10))).min() > 0.0
