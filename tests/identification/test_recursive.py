"""Recursive least squares against batches, forgetting and jumps of the load, projection, filtered momenta."""

import numpy as np
import pytest
from oracles import assert_close
from servo_logs import ARM, COULOMB, SMOOTHING, VISCOUS, servo_log

from geomctrl.errors import ArgumentError
from geomctrl.identification import Dataset, RecursiveLeastSquares, RegressorModel, fit
from geomctrl.identification.online.square_root import deviations, forgotten_along, solved, taken_in

MODEL = RegressorModel(ARM, rotor=[1], smoothing=SMOOTHING)
X = MODEL.prior
X[MODEL.by_kind["viscous"]], X[MODEL.by_kind["coulomb"]] = VISCOUS, COULOMB
BASE = MODEL.base.projection @ X
T = np.arange(0.0, 5.0, 5e-3)


def motion(t=T):
    w = np.array([1.3, 2.1])
    one, two = np.outer(t, w), np.outer(t, 2.0 * w)
    q, v = np.sin(one) + 0.3 * np.cos(two), np.cos(one) * w - 0.6 * w * np.sin(two)
    return q, v, -np.sin(one) * w**2 - 1.2 * w**2 * np.cos(two)


def torque(x, noise=0.05, seed=0):
    tau = MODEL.torque(x, *motion())
    return tau + noise * np.random.default_rng(seed).standard_normal(tau.shape)


Q, V, A = motion()
TAU = torque(X)


@pytest.mark.parametrize("together", [True, False])
def test_without_forgetting_it_is_least_squares_over_all_samples(together):
    rls = RecursiveLeastSquares(MODEL)
    if together:
        rls.update(Q, V, A, TAU)
    else:
        for k in range(len(T)):
            rls.update(Q[k], V[k], A[k], TAU[k])
    batch = fit(MODEL, Dataset(T, Q, TAU, v=V, a=A), "ols")
    assert_close(rls.values, batch.values, 1e-11)
    rows = MODEL.regressor(Q, V, A)[..., MODEL.base.columns].reshape(-1, MODEL.base.size)
    assert_close(rls.covariance, np.linalg.inv(rows.T @ rows), 1e-9)
    left = np.linalg.norm(TAU - MODEL.torque(batch.x, Q, V, A)) ** 2
    assert rls.variance == pytest.approx(left / (rows.shape[0] - rows.shape[1]), rel=1e-9)


def test_exponential_forgetting_is_least_squares_with_weights_that_fade():
    n, keep = 300, 0.98
    rls = RecursiveLeastSquares(MODEL, forgetting=keep)
    rls.update(Q[:n], V[:n], A[:n], TAU[:n])
    share = keep ** np.arange(n - 1.0, -1.0, -1.0)
    rows = MODEL.regressor(Q[:n], V[:n], A[:n])[..., MODEL.base.columns] * np.sqrt(share)[:, None, None]
    W = rows.reshape(-1, MODEL.base.size)
    y = ((TAU - A * MODEL.known_armature)[:n] * np.sqrt(share)[:, None]).ravel()
    x = np.linalg.lstsq(W, y)[0]
    assert_close(rls.values, x, 1e-7)
    freedom = 2.0 * share.sum() - MODEL.base.size
    assert rls.variance == pytest.approx(np.sum((W @ x - y) ** 2) / freedom, rel=1e-6)


def test_weights_and_a_prior_are_those_of_the_normal_equations():
    noise, deviation, x0 = np.array([0.1, 0.5]), 0.3, 0.9 * X
    rls = RecursiveLeastSquares(MODEL, prior=x0, deviation=deviation, noise=noise)
    rls.update(Q, V, A, TAU)
    W = MODEL.regressor(Q, V, A)[..., MODEL.base.columns] / noise[:, None]
    y = (TAU - A * MODEL.known_armature) / noise
    information = np.einsum("nki,nkj->ij", W, W) + np.eye(MODEL.base.size) / deviation**2
    right = np.einsum("nki,nk->i", W, y) + MODEL.base.projection @ x0 / deviation**2
    assert_close(rls.values, np.linalg.solve(information, right), 1e-9)
    assert_close(rls.covariance, np.linalg.inv(information), 1e-9)


def test_what_was_not_seen_keeps_the_prior_and_has_no_deviation():
    rls = RecursiveLeastSquares(MODEL)
    assert_close(rls.values, MODEL.base.projection @ MODEL.prior, 1e-12)
    assert np.isinf(rls.std).all()
    still = np.zeros((5, 2))
    rls.update(Q[:5], still, still, MODEL.torque(X, Q[:5], still, still))
    assert np.isinf(rls.std[[MODEL.base_names.index("fv1"), MODEL.base_names.index("Ir2")]]).all()


def test_forgetting_tracks_a_mass_that_jumps():
    """The last link becomes heavier half way: with forgetting the estimate follows within five time constants."""
    heavy = X.copy()
    heavy[10] += 0.5
    heavy[11] += 0.4
    half = len(T) // 2
    tau = np.vstack((torque(X, 0.01)[:half], torque(heavy, 0.01)[half:]))
    truth, at = MODEL.base.projection @ heavy, list(MODEL.base_names).index("m2 c2x")
    off = {}
    for keep in (1.0, 0.98):
        rls = RecursiveLeastSquares(MODEL, forgetting=keep, noise=0.01, deviation=5.0)
        rls.update(Q, V, A, tau)
        off[keep] = abs(rls.values[at] - truth[at])
        assert keep == 1.0 or off[keep] < 4.0 * rls.std[at]
    assert off[0.98] < 0.02 < 0.1 < off[1.0]


@pytest.mark.parametrize("rule", ["exponential", "directional"])
def test_a_robot_at_rest_keeps_a_bounded_covariance(rule):
    options = {"deviation": 1.0} if rule == "exponential" else {}
    rls = RecursiveLeastSquares(MODEL, forgetting=0.98, rule=rule, noise=0.05, **options)
    rls.update(Q, V, A, TAU)
    moving, known = rls.std, rls.values
    still = np.zeros((800, 2))
    place = np.tile(Q[-1], (800, 1))
    rls.update(place, still, still, MODEL.torque(X, place, still, still))
    assert (rls.std <= (1.0 + 1e-6 if rule == "exponential" else 1.2 * moving)).all()
    assert_close(rls.values, known, 0.5)
    unbounded = RecursiveLeastSquares(MODEL, forgetting=0.98, noise=0.05)
    unbounded.update(Q, V, A, TAU)
    unbounded.update(place, still, still, MODEL.torque(X, place, still, still))
    assert unbounded.std.max() > 1e3 * moving.max(), "exponential forgetting without a prior winds up"


def test_directional_forgetting_is_the_formula_of_information():
    rng = np.random.default_rng(0)
    R, d = np.triu(rng.normal(size=(6, 6))), rng.normal(size=6)
    rows, share = rng.normal(size=(2, 6)), 0.7
    Lambda, Phi = R.T @ R, rows.T
    expected = Lambda - (1 - share) * Lambda @ Phi @ np.linalg.solve(Phi.T @ Lambda @ Phi, Phi.T @ Lambda)
    less, e = forgotten_along(R, d, rows, share)
    assert_close(less.T @ less, expected, 1e-10)
    assert_close(np.linalg.solve(less, e), np.linalg.solve(R, d), 1e-9)


def test_square_roots_take_in_rows_as_normal_equations_do():
    rng = np.random.default_rng(1)
    R, d = np.triu(rng.normal(size=(5, 5))) + 3.0 * np.eye(5), rng.normal(size=5)
    rows, y = rng.normal(size=(3, 5)), rng.normal(size=3)
    after, e, left = taken_in(R, d, rows, y)
    assert_close(after.T @ after, R.T @ R + rows.T @ rows, 1e-12)
    x = solved(after, e)
    assert_close(x, np.linalg.solve(R.T @ R + rows.T @ rows, R.T @ d + rows.T @ y), 1e-11)
    assert left == pytest.approx(np.sum((R @ x - d) ** 2) + np.sum((rows @ x - y) ** 2))
    assert_close(deviations(after), np.sqrt(np.diag(np.linalg.inv(after.T @ after))), 1e-11)


def test_projection_gives_bodies_and_is_the_nearest_in_the_metric_of_the_covariance():
    """Against batch estimates with the same constraints, which use the log itself."""
    few = slice(0, None, 15)
    rls = RecursiveLeastSquares(MODEL)
    rls.update(Q[few], V[few], A[few], torque(X, 2.0)[few])
    result = fit(MODEL, rls.remembered, "consistent")
    batch = fit(MODEL, Dataset(T[few], Q[few], torque(X, 2.0)[few], v=V[few], a=A[few]), "consistent")
    assert result.is_physical
    assert_close(result.values, batch.values, 1e-3)
    free = fit(MODEL, Dataset(T[few], Q[few], torque(X, 2.0)[few], v=V[few], a=A[few]))
    assert not free.is_physical
    assert np.sum(result.training.residuals(result.x) ** 2) >= np.sum(free.training.residuals(free.x) ** 2)
    assert_close(
        result.training.rms(result.x),
        np.full(2, np.linalg.norm(batch.training.residuals(result.x)) / np.sqrt(2 * len(T[few]))),
        1e-6,
    )


def test_filtered_momenta_need_no_acceleration():
    """On a log of the simulated arm with commands held between samples: the true parameters, and noise at its level."""
    data, run = servo_log(2e-3, 3.0)
    rls = RecursiveLeastSquares(MODEL, bandwidth=30.0, period=2e-3)
    rls.update(run.q, run.v, None, data.tau)
    assert_close(rls.values[:6], BASE[:6], 2e-3)
    assert_close(rls.values, BASE, 2e-2)
    twice = RecursiveLeastSquares(MODEL, bandwidth=30.0, period=2e-3)
    few = RecursiveLeastSquares(MODEL, bandwidth=30.0, period=2e-3)
    few.update(run.q[:200], run.v[:200], None, data.tau[:200])
    for k in range(200):
        twice.update(run.q[k], run.v[k], None, data.tau[k])
    assert_close(twice.values, few.values, 1e-9)


def test_bad_input_is_named():
    with pytest.raises(ArgumentError, match="forgetting"):
        RecursiveLeastSquares(MODEL, forgetting=1.2)
    with pytest.raises(ArgumentError, match="bandwidth, period"):
        RecursiveLeastSquares(MODEL, bandwidth=20.0)
    with pytest.raises(ArgumentError, match="noise"):
        RecursiveLeastSquares(MODEL, noise=[1.0, -1.0])
    with pytest.raises(ArgumentError, match="deviation"):
        RecursiveLeastSquares(MODEL, deviation=[1.0, 2.0])
    rls = RecursiveLeastSquares(MODEL)
    with pytest.raises(ArgumentError, match="a: expected accelerations"):
        rls.update(Q, V, None, TAU)
    with pytest.raises(ArgumentError, match="tau: expected 1000 samples"):
        rls.update(Q, V, A, TAU[:3])
    with pytest.raises(ArgumentError, match="q"):
        rls.update(Q[:, :1], V, A, TAU)
    rls.update(Q, V, A, TAU)
    with pytest.raises(ArgumentError, match="weights"):
        fit(MODEL, rls.remembered, "wls")


@pytest.mark.parametrize("name", ["a", "tau"])
def test_samples_whose_squares_overflow_are_refused_and_change_nothing(name):
    rls = RecursiveLeastSquares(MODEL)
    before = rls.update(Q, V, A, TAU)
    with pytest.raises(ArgumentError, match="q, v, a, tau: expected regressors and torques below"):
        rls.update(Q[0], V[0], *(np.full(2, 1e160) if x == name else np.ones(2) for x in ("a", "tau")))
    np.testing.assert_array_equal(rls.update(Q[:0], V[:0], A[:0], TAU[:0]), before)
