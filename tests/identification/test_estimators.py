"""Estimators against known truths: recovery, statistics, constraints, and what they refuse."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from lib.logs import between

from geomctrl import Body, Joint, Robot, inertia, models
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.identification import (
    Column,
    Curve,
    DataError,
    Dataset,
    ExcitationError,
    RegressorModel,
    SolverError,
    fit,
    fit_curves,
)
from geomctrl.identification.estimators import semidefinite
from geomctrl.identification.estimators.barrier import Bounds, Interior, Quadratic
from geomctrl.identification.estimators.conditioning import natural_scale, regressor_condition
from geomctrl.identification.estimators.model_choice import predicted
from geomctrl.identification.estimators.semidefinite import _run

RATE = 100.0


def motion(nv, seconds=12.0, seed=0, rate=RATE):
    """Return (t, q, v, a) of five random sines for each joint, in closed form."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    w = 2 * np.pi * rng.uniform(0.1, 0.9, size=(5, nv))
    A, phase = rng.uniform(0.1, 0.5, size=(5, nv)), rng.uniform(0, 6.28, size=(5, nv))
    x = t[:, None, None] * w + phase
    return t, (A * np.sin(x)).sum(1), (A * w * np.cos(x)).sum(1), -(A * w**2 * np.sin(x)).sum(1)


def synthetic(model, x, noise=0.0, seed=0, seconds=12.0):
    t, q, v, a = motion(model.robot.nv, seconds, seed)
    tau = model.torque(x, q, v, a)
    tau = tau + noise * np.random.default_rng(seed + 1).normal(size=tau.shape)
    return Dataset(t, q, tau, v=v, a=a)


def truth_of(model):
    x = model.prior
    x[model.positive] = np.linspace(0.2, 0.8, len(model.positive))
    x[model.by_kind["offset"]] = 0.1
    return x


@pytest.fixture(scope="module")
def panda():
    model = RegressorModel(models.panda(), rotor=range(2, 7), smoothing=0.05)
    x = truth_of(model)
    return model, x, synthetic(model, x)


# --- the stacked system ------------------------------------------------------------------------------------------


def test_triangular_factors_hold_what_the_stacked_regressor_does(panda):
    model, x, data = panda
    rng = np.random.default_rng(0)
    mask = rng.uniform(size=data.tau.shape) > 0.3
    mask[:, 2] = True
    masked = Dataset(data.t, data.q, data.tau, v=data.v, a=data.a, mask=mask)
    c = model.compress(masked)
    Y = model.regressor(data.q.copy(), data.v.copy(), data.a.copy())
    y = x * rng.uniform(0.9, 1.1, size=x.size)
    residual = np.where(mask, Y @ y - data.tau, 0.0)
    np.testing.assert_allclose(c.residuals(y), np.linalg.norm(residual, axis=0), rtol=1e-9)
    w = rng.uniform(0.5, 2.0, 7)
    A, b = c.system(w)
    assert A.shape[0] <= model.size + 1
    assert np.linalg.norm(A @ y - b) == pytest.approx(np.linalg.norm(w * residual), rel=1e-9)
    assert c.relative_error(y) == pytest.approx(
        np.linalg.norm(residual) / np.linalg.norm(np.where(mask, data.tau, 0.0))
    )


def test_factors_of_two_logs_add(panda):
    model, x, data = panda
    half = len(data) // 2
    parts = [
        Dataset(data.t[s], data.q[s], data.tau[s], v=data.v[s], a=data.a[s])
        for s in (slice(0, half), slice(half, None))
    ]
    joint = model.compress(parts[0]) + model.compress(parts[1])
    y = 1.1 * x
    np.testing.assert_allclose(joint.residuals(y), model.compress(data).residuals(y), rtol=1e-9)


def test_every_column_is_where_it_says():
    robot = models.two_link()
    weight = Column("wind", lambda q, v, a: np.stack((v[:, 0] ** 2, 0 * v[:, 0]), -1))
    model = RegressorModel(
        robot,
        rotor=True,
        springs=[1],
        columns=[weight],
        transmission=[[1, 0], [0, 1], [1, 1]],
        offset=[0],
        smoothing=0.0,
    )
    _, q, v, a = motion(2, 1.0)
    Y = model.regressor(q, v, a)
    by = dict(zip(model.names, np.moveaxis(Y, -1, 0)))
    s = v.sum(1)
    zero = np.zeros_like(s)
    expected = {
        "fv1": (v[:, 0], zero), "fv3": (s, s), "fc2": (zero, np.sign(v[:, 1])), "fc3": (np.sign(s), np.sign(s)),
        "fo1": (zero + 1, zero), "Ir3": (a.sum(1), a.sum(1)), "ks2": (zero, q[:, 1]), "k02": (zero, zero + 1),
        "wind": (v[:, 0] ** 2, zero),
    }  # fmt: skip
    for name, columns in expected.items():
        np.testing.assert_array_equal(by[name], np.stack(columns, -1))
    for k, active in enumerate(model.active):  # and the factors contain all rows
        assert not np.abs(np.delete(Y[:, k], active, axis=1)).any()


def test_curves_act_through_the_transmission():
    model = RegressorModel(
        models.two_link(), coulomb=False, transmission=[[2, 0], [1, -3]], curves=[Curve(1, "sigmoid", 0.5)]
    )
    _, q, v, a = motion(2, 1.0)
    f = np.tanh((v[:, 0] - 3.0 * v[:, 1]) / 0.5)
    np.testing.assert_allclose(model.regressor(q, v, a)[..., -1], np.stack((f, -3.0 * f), -1), atol=1e-12)


def test_a_rotor_on_the_first_joint_joins_its_inertia():
    model = RegressorModel(models.two_link(), rotor=True)
    # the first link's inertia appears only in a sum with Iyy1
    assert model.base.size == RegressorModel(models.two_link()).base.size + 1
    assert any("Iyy1" in name and "Ir1" in name for name in model.base_names)


# --- recovery ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ols", "wls", "ridge", "consistent"])
def test_every_method_recovers_the_truth_without_noise(panda, method):
    model, x, data = panda
    weak = {"regularization": 1e-10, "margin": 1e-9}
    options = {"ridge": {"strength": 1e-12}, "consistent": weak}.get(method, {})
    result = fit(model, data, method, **options)
    tolerance = {"consistent": 2e-4}.get(method, 1e-7)
    assert result.relative_error() < tolerance
    true = model.base.projection @ x
    np.testing.assert_allclose(result.values, true, atol=50 * tolerance * np.abs(true).max())
    robot = result.robot
    q, v, a = data.q[7].copy(), data.v[7].copy(), data.a[7].copy()
    driven = model.robot.with_armature(np.append([0.0, 0.0], x[model.by_kind["rotor"]]))
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), driven.inverse_dynamics(q, v, a), atol=100 * tolerance)
    np.testing.assert_allclose(robot.damping, x[model.by_kind["viscous"]], atol=100 * tolerance)


@pytest.mark.slow
def test_confidence_intervals_have_the_spread_of_repeated_experiments():
    """Monte Carlo on a pendulum: the mean square of error / std is 1 over 300 noisy logs."""
    robot = Robot.build(
        [Body("rod", None, Joint.revolute((0, 1, 0)), None, inertia.from_com(2.0, (0.3, 0, 0), 0.05 * np.eye(3)))]
    )
    model = RegressorModel(robot, smoothing=0.1)
    x = truth_of(model)
    t, q, v, a = motion(1, 4.0)
    tau = model.torque(x, q, v, a)
    z = []
    for seed in range(300):
        noisy = tau + 0.2 * np.random.default_rng(seed).normal(size=tau.shape)
        result = fit(model, Dataset(t, q, noisy, v=v, a=a), "ols")
        z.append((result.values - model.base.projection @ x) / result.std)
    ratio = np.mean(np.square(z), axis=0)
    assert (
        ratio > 0.55
    ).all()  # at least as wide as by the formula for noise; in a log as short as this wider by chance
    assert (ratio < 1.3).all()
    assert 0.93 <= np.mean(np.abs(z) < 1.96) <= 0.985


def test_correlated_noise_widens_intervals():
    model = RegressorModel(models.two_link(), smoothing=0.1)
    x = truth_of(model)
    data = synthetic(model, x, seconds=40.0)
    rng, r = np.random.default_rng(0), np.zeros(data.tau.shape)
    for k in range(1, len(r)):
        r[k] = 0.9 * r[k - 1] + 0.1 * rng.normal(size=2)
    result = fit(model, Dataset(data.t, data.q, data.tau + r, v=data.v, a=data.a), "ols")
    # a first-order process has 1 + 2 sum 0.9^k = 19
    assert (result.correlation > 10).all()
    assert (result.correlation < 30).all()


def test_weighted_least_squares_weighs_joints_by_their_noise():
    model = RegressorModel(models.two_link(), smoothing=0.1)
    x = truth_of(model)
    data = synthetic(model, x)
    noise = np.random.default_rng(0).normal(size=data.tau.shape) * [5.0, 0.01]
    noisy = Dataset(data.t, data.q, data.tau + noise, v=data.v, a=data.a)
    w = fit(model, noisy, "wls")
    np.testing.assert_allclose(w.noise, [5.0, 0.01], rtol=0.1)
    true = model.base.projection @ x
    at = [
        k
        for k, c in enumerate(model.base.columns)
        if model.names[c].endswith("2") and not model.names[c].startswith("f")
    ]
    error = [np.linalg.norm((fit(model, noisy, m).values - true)[at]) for m in ("wls", "ols")]
    assert error[0] < 0.05 * error[1]


def test_a_joint_without_torque_does_not_stop_weighted_least_squares(panda):
    """Its residual is zero, and an infinite weight would leave the others' parameters undetermined."""
    model, x, _ = panda
    data = synthetic(model, x, 0.1)
    tau = np.where(np.arange(7) == 6, 0.0, data.tau)
    weights = fit(model, Dataset(data.t, data.q, tau, v=data.v, a=data.a), "wls").weights
    assert np.ptp(weights[:6]) < 0.5 * weights[:6].max()  # equal noise
    assert weights[6] < 1e7 * weights[:6].max()


@pytest.mark.slow
def test_noise_counts_degrees_of_freedom():
    """Few rows for many parameters: the residual alone would underestimate the noise by far."""
    model = RegressorModel(models.two_link(), smoothing=0.2)
    t, q, v, a = motion(2, 0.6)
    tau = model.torque(truth_of(model), q, v, a)
    results = []
    for seed in range(200):
        noisy = tau + 0.1 * np.random.default_rng(seed).normal(size=tau.shape)
        results.append(np.sum(fit(model, Dataset(t, q, noisy, v=v, a=a), "ols").noise ** 2))
    assert np.mean(results) == pytest.approx(2 * 0.1**2, rel=0.03)


def test_ridge_goes_from_the_prior_to_least_squares(panda):
    model, x, data = panda
    prior = 1.2 * x
    strong, weak = (fit(model, data, "ridge", prior=prior, strength=s) for s in (1e12, 1e-12))
    np.testing.assert_allclose(strong.x, prior, rtol=1e-6)
    assert weak.relative_error() < 1e-7


def test_ridge_minimises_what_it_says_and_its_covariance_is_of_noise_and_prior(poor):
    """x is linear in torques and prior, x = X (tau - Y x0) + x0, so both parts of its covariance are known."""
    model, data, c = poor
    w, strength, x0 = np.linspace(0.5, 2.0, 7), 3e-3, truth_of(model)
    Y = model.regressor(data.q.copy(), data.v.copy(), data.a.copy())
    A, b = (Y * w[:, None]).reshape(-1, model.size), (data.tau * w).ravel()
    S = natural_scale(model, A, b)
    size = np.linalg.norm(b)
    H = S[:, None] * (A.T @ A) * S / size**2 + strength * np.eye(model.size)
    X = S[:, None] * np.linalg.solve(H, (S[:, None] * A.T) / size**2)  # estimate by weighted torques
    e = fit(model, c, "ridge", prior=x0, strength=strength, weights=w)
    np.testing.assert_allclose(e.x, x0 + X @ (b - A @ x0), atol=1e-8 * np.abs(e.x).max())
    np.testing.assert_array_equal(e.weights, w)
    of_noise = X * np.tile(w * e.noise, len(data.t))
    of_prior = (np.eye(model.size) - X @ A) * S
    P = model.base.projection
    expected = P @ (of_noise @ of_noise.T + of_prior @ of_prior.T) @ P.T
    np.testing.assert_allclose(e.covariance, expected, atol=1e-7 * np.abs(expected).max())
    correlated = fit(model, data, "ridge", prior=x0, strength=strength, weights=w)
    assert (correlated.correlation >= 1.0).all()


# --- physical consistency --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def poor():
    """A short noisy log, for which least squares give impossible bodies."""
    model = RegressorModel(models.panda(), smoothing=0.05)
    data = synthetic(model, truth_of(model), noise=1.0, seconds=4.0)
    return model, data, model.compress(data)


def test_consistent_estimates_are_bodies_where_least_squares_are_not(poor):
    model, _, c = poor
    free, physical = fit(model, c, "ols"), fit(model, c, "consistent", mass_max=20.0)
    assert not free.is_physical
    assert any("negative" in (why or "") or "triangle" in (why or "") for why in free.verdicts.values())
    assert physical.is_physical
    P = inertia.pseudo(physical.robot.parameters)
    assert np.linalg.eigvalsh(P).min() > 0.0
    assert free.relative_error() <= physical.relative_error() < 1.1 * free.relative_error()
    physical.model.robot.with_parameters(physical.robot.parameters)  # accepted with all checks
    assert (physical.x[model.positive] >= 0.0).all()
    assert physical.covariance is None


def test_interior_points_and_cone_program_agree_on_the_minimum(poor):
    """Two solvers of one problem: the objective, written out here, agrees to 2e-3 although the minimum is on the
    boundary.
    """
    model, _, c = poor
    A, b = c.system()
    scale, x0 = natural_scale(model, A, b), model.prior
    prior = x0[: model.inertial].reshape(-1, 10)

    def objective(x, regularization, entropic):
        P = x[: model.inertial].reshape(-1, 10)
        return (
            np.sum((A @ x - b) ** 2) / np.sum(b**2)
            + regularization * np.sum(((x - x0) / scale) ** 2)
            + entropic * np.mean(inertia.divergence(P, prior))
        )

    signs = -np.eye(model.size)[model.positive]
    bounds = Bounds(signs, np.zeros(len(signs)), np.ones(model.robot.nbodies, bool), np.ones(model.size, bool))
    interior, size = Interior(x0 / scale, model.robot.nbodies, bounds, 1e-6), np.linalg.norm(b)
    start = x0 / scale
    start[model.positive] = 1e-3
    for regularization, entropic in ((1e-4, 1e-4), (1e-4, 0.0)):
        cone = fit(model, c, "consistent", regularization=regularization, entropic=entropic)
        y, _ = interior.solve(Quadratic.of(A * scale / size, b / size), regularization, entropic, start)
        assert inertia.is_physical((scale * y)[: model.inertial].reshape(-1, 10), strict=True).all()
        best = objective(cone.x, regularization, entropic)
        assert objective(scale * y, regularization, entropic) == pytest.approx(best, rel=2e-3)
        assert objective(x0, regularization, entropic) > 1.2 * best


def test_entropic_prior_pulls_to_the_model(poor):
    model, _, c = poor
    prior = model.robot.parameters
    near, far = (fit(model, c, "consistent", entropic=s, regularization=0.0, margin=1e-10) for s in (1e2, 1e-4))
    distance = [float(inertia.divergence(e.robot.parameters, prior).sum()) for e in (near, far)]
    assert distance[0] < 1e-3 < distance[1]


def test_bounds_are_kept(poor):
    model, _, c = poor
    n = model.robot.nbodies
    box = np.tile([[-0.05, -0.04, -0.1], [0.05, 0.04, 0.1]], (n, 1, 1))
    e = fit(model, c, "consistent", mass_min=0.5, mass_max=[4.0] * n, total_mass=15.0, com_box=box)
    m, com = e.robot.parameters[:, 0], inertia.com(e.robot.parameters)
    assert (m > 0.5 - 1e-6).all()
    assert (m < 4.0 + 1e-6).all()
    assert m.sum() == pytest.approx(15.0, abs=1e-6)
    assert (com >= box[:, 0] - 1e-6).all()
    assert (com <= box[:, 1] + 1e-6).all()


def test_bounds_that_bite_are_met_in_kilograms_and_metres(poor):
    """The estimate without the bounds violates each of them, so the estimate with bounds meets some with equality."""
    model, _, c = poor
    n = model.robot.nbodies
    free = fit(model, c, "consistent").robot.parameters
    high, low = 0.6 * free[:, 0].max(), 2.0 * free[:, 0].min()
    below = fit(model, c, "consistent", mass_max=high).robot.parameters[:, 0]
    assert below.max() == pytest.approx(high, rel=1e-4)
    above = fit(model, c, "consistent", mass_min=low).robot.parameters[:, 0]
    assert above.min() == pytest.approx(low, rel=1e-4)
    centre, radii = np.array([0.02, -0.03, 0.01]), np.full(3, 0.002)
    assert np.abs(inertia.com(free) - centre).max() > 0.01
    box = np.stack((np.tile(centre - radii, (n, 1)), np.tile(centre + radii, (n, 1))), 1)
    e = fit(model, c, "consistent", com_box=box)
    assert (np.abs(inertia.com(e.robot.parameters) - centre) <= radii * (1.0 + 1e-4)).all()


@pytest.mark.parametrize("method", ["consistent", "ridge"])
def test_a_joint_that_stands_still_to_rounding_keeps_its_prior(method):
    model = RegressorModel(models.two_link(), smoothing=0.1)
    t, q, v, a = motion(2)
    for x, still in ((q, 0.3), (v, 0.0), (a, 0.0)):
        x[:, 1] = still + 1e-15 * np.sin(1.0 + 99.0 * t)  # what filtering leaves of a constant
    data = Dataset(t, q, model.torque(truth_of(model), q, v, a), v=v, a=a)
    e = fit(model, data, method)
    assert np.abs(e.x[model.inertial :]).max() < 10.0
    assert e.relative_error() < 1e-2
    assert repr(e).startswith(f"<Estimate of 'two_link' by {method}: {e.base.size} base parameters, ")


def test_what_the_log_does_not_determine_stays_the_priors(poor):
    model, _, _ = poor
    data = synthetic(model, truth_of(model))
    e = fit(model, data, "consistent", prior=truth_of(model), regularization=1e-2)
    np.testing.assert_allclose(e.x, truth_of(model), atol=1e-3)


def test_known_bodies_stay_as_they_are(poor):
    model, _, c = poor
    e = fit(model, c, "consistent", fixed=model.robot.body_names[:-1])
    np.testing.assert_array_equal(e.robot.parameters[:-1], model.robot.parameters[:-1])
    assert np.abs(e.robot.parameters[-1] - model.robot.parameters[-1]).max() > 1e-4
    with pytest.raises(NameNotFoundError, match="panda_link9"):
        fit(model, c, "consistent", fixed=["panda_link9"])


def test_masses_that_can_not_add_up_are_refused_before_weights_are_tried(monkeypatch):
    model = RegressorModel(models.two_link())
    data = synthetic(model, model.prior, seconds=3.0)
    monkeypatch.setattr(Interior, "solve", None)
    for bounds in ({"mass_max": 1.0, "total_mass": 9.0}, {"mass_min": [1.0, 2.0], "total_mass": 2.9}):
        with pytest.raises(SolverError, match=r"no physical robot satisfies the bounds together.*infeasible"):
            fit(model, data, "consistent", regularization="auto", **bounds)


def test_impossible_bounds_say_so(poor):
    model, _, c = poor
    with pytest.raises(SolverError, match=r"mass_min 5 kg is above mass_max 2 kg"):
        fit(model, c, "consistent", mass_min=5.0, mass_max=2.0)
    with pytest.raises(SolverError, match=r"no physical robot satisfies the bounds.*infeasible.*total mass 100"):
        fit(model, c, "consistent", mass_max=2.0, total_mass=100.0)
    bad = model.robot.parameters.copy()
    bad[2, 4] = -1.0
    with pytest.raises(SolverError, match=r"prior.*strictly physical.*panda_link3"):
        fit(model, c, "consistent", prior=bad, entropic=1e-3)
    with pytest.raises(ArgumentError, match="mass_max"):
        fit(model, c, "consistent", mass_max=[1.0, 2.0])


@pytest.fixture(scope="module")
def light():
    model = RegressorModel(models.two_link())
    return model, model.compress(synthetic(model, truth_of(model), noise=0.01))


class PanicException(BaseException):  # the name that PyO3 gives to a panic of a solver written in Rust
    pass


class Throwing:
    """A program whose solver raises an exception."""

    status = "user_limit"

    def __init__(self, thrown: BaseException | type[BaseException]):
        self.thrown = thrown

    def solve(self, solver: str, **options: object) -> None:
        raise self.thrown


@pytest.mark.parametrize("thrown", [PanicException("Eigval"), ArithmeticError("Eigval"), MemoryError("Eigval")])
def test_whatever_a_solver_throws_is_an_error_of_ours(thrown):
    with pytest.raises(
        SolverError,
        match=rf"^CLARABEL failed \(status user_limit\): {type(thrown).__name__}: Eigval; try joints weighted",
    ) as e:
        _run(Throwing(thrown))
    assert e.value.status == "user_limit"
    assert e.value.__cause__ is thrown


@pytest.mark.parametrize("thrown", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_end_of_a_process_is_not_the_solvers(thrown):
    with pytest.raises(thrown):
        _run(Throwing(thrown))


def test_numbers_that_solvers_choke_on(light, monkeypatch):
    """Clarabel 0.11 panics if eigenvalues overflow."""
    model, c = light
    for name in ("margin", "entropic", "regularization"):
        with pytest.raises(ArgumentError, match=f"{name}: expected at most 1e"):
            fit(model, c, "consistent", **{name: 1e300})
    with pytest.raises(SolverError) as e:
        fit(model, c, "consistent", mass_min=1e300)
    assert e.value.status in ("failed", "infeasible", "infeasible_inaccurate")
    for weights in (1e300, 1e-300):
        with pytest.raises(DataError, match=r"weighted torques.*weights"):
            fit(model, c, "consistent", weights=weights)
    for options, message in (({"max_iter": 1}, "user_limit"), ({"nonsense": 3}, r"CLARABEL failed \(status failed\)")):
        monkeypatch.setattr(semidefinite, "SOLVER_OPTIONS", options)
        with pytest.raises(SolverError, match=message) as e:
            fit(model, c, "consistent")
        assert e.value.status in ("user_limit", "failed")


def test_bounds_far_away_are_none(light):
    model, c = light
    box = np.tile([[[-1e300], [1e300]]], (2, 1, 3))
    free = fit(model, c, "consistent")
    for limits in (box, np.inf * box):
        far = fit(model, c, "consistent", mass_max=1e300, com_box=limits)
        np.testing.assert_allclose(far.x, free.x, atol=1e-9)
    box[1, 0, 2] = np.nan
    with pytest.raises(ArgumentError, match="com_box: expected numbers, infinite where there is no bound, got nan"):
        fit(model, c, "consistent", com_box=box)


# --- excitation of the log, friction curves, model selection ---------------------------------------------------------


def test_parameters_a_log_does_not_tell_apart_are_named():
    model = RegressorModel(models.panda(), smoothing=0.05)
    t, q, v, a = motion(7)
    still = [6]  # the last joint does not move
    for x in (v, a):
        x[:, still] = 0.0
    q[:, still] = 0.3
    data = Dataset(t, q, model.torque(truth_of(model), q, v, a), v=v, a=a)
    condition, notes = regressor_condition(model, data)
    assert condition == np.inf
    assert any(w.startswith("fv7") for w in notes)
    with pytest.raises(ExcitationError, match=r"does not determine .* base parameters: .*fv7"):
        fit(model, data, "ols")
    assert fit(model, data, "consistent").is_physical  # a prior determines them
    assert regressor_condition(model, synthetic(model, truth_of(model)))[1] == []


def test_fewer_rows_than_parameters_are_too_little_excitation():
    model = RegressorModel(models.two_link())
    t, q, v, a = motion(2)
    few = Dataset(t[:3], q[:3], q[:3], v=v[:3], a=a[:3])
    assert len(regressor_condition(model, few)[1]) >= model.base.size - 6
    with pytest.raises(ExcitationError, match="the log does not determine"):
        fit(model, few, "ols")


def test_torques_of_zero_are_refused():
    model = RegressorModel(models.two_link())
    t, q, v, a = motion(2)
    for method in ("ols", "wls", "ridge", "consistent"):
        with pytest.raises(DataError, match="tau: every usable torque is zero"):
            fit(model, Dataset(t, q, np.zeros_like(q), v=v, a=a), method)


def test_a_free_base_has_no_friction_and_joints_keep_theirs():
    robot = models.quadruped()
    model = RegressorModel(robot, smoothing=0.05)
    assert model.names[model.inertial] == "fv7"
    t, v, a = (x for i, x in enumerate(motion(robot.nv)) if i != 1)
    q = [robot.neutral()]
    for before, after in pairwise(v):
        q.append(robot.integrate(q[-1], 0.5 * (before + after) / RATE))
    x = truth_of(model)
    data = Dataset(t, np.array(q), model.torque(x, np.array(q), v, a), v=v, a=a)
    e = fit(model, data, "ols")
    np.testing.assert_allclose(e.values, model.base.projection @ x, atol=1e-9)
    np.testing.assert_allclose(e.robot.damping, [0.0] * 6 + x[model.by_kind["viscous"]].tolist(), atol=1e-9)


def test_a_log_that_mixes_inertias_up_says_which():
    model = RegressorModel(models.two_link(), coulomb=False, offset=False, viscous=False)
    t = np.arange(500) / RATE
    q = np.stack((0.5 * np.sin(t), 0.2 + 0.0 * t), -1)  # the second joint is locked, and its torque is not measured
    v, a = (np.stack((x, 0.0 * t), -1) for x in (0.5 * np.cos(t), -0.5 * np.sin(t)))
    mask = np.tile([True, False], (500, 1))
    data = Dataset(t, q, model.torque(model.prior, q, v, a), v=v, a=a, mask=mask)
    with pytest.raises(ExcitationError, match=r"does not determine 3 of 6 base parameters: .*Iyy1.*Iyy2|Iyy2.*Iyy1"):
        fit(model, data, "ols")


def test_sigmoid_speeds_are_found_by_nonlinear_least_squares():
    robot = models.two_link()
    curves = [Curve(0, "sigmoid", 0.8), Curve(1, "sigmoid", 1.5)]
    true = RegressorModel(robot, curves=curves, smoothing=0.02)
    x = truth_of(true)
    x[true.by_kind["curve"]] = [6.0, 3.0]
    data = synthetic(true, x, noise=0.02)
    outcome = fit_curves(RegressorModel(robot, smoothing=0.02), data)
    np.testing.assert_allclose(outcome.speeds, [0.8, 1.5], rtol=0.05)
    assert (np.abs(outcome.speeds - [0.8, 1.5]) < 4 * outcome.std).all()
    assert outcome.errors[1] < 0.2 * outcome.errors[0]
    e = fit(outcome.model, data, "ols")
    np.testing.assert_allclose(e.x[outcome.model.by_kind["curve"]], [6.0, 3.0], rtol=0.05)
    assert not outcome.at_bound.any()
    for bounds, at in (((1.0, 2.0), [True, False]), ((0.5, 1.2), [False, True])):
        np.testing.assert_array_equal(fit_curves(RegressorModel(robot), data, bounds=bounds).at_bound, at)


def test_speeds_of_curves_have_the_spread_of_repeated_experiments():
    robot = models.two_link()
    model = RegressorModel(robot, smoothing=0.02)
    true = model._with_options(curves=[Curve(0, "sigmoid", 0.8)])
    x = truth_of(true)
    x[true.by_kind["curve"]] = 6.0
    t, q, v, a = motion(2, 4.0)
    tau, z = true.torque(x, q, v, a), []
    for seed in range(30):
        noisy = tau + 0.1 * np.random.default_rng(seed).normal(size=tau.shape)
        outcome = fit_curves(model, Dataset(t, q, noisy, v=v, a=a), actuators=[0])
        z.append((outcome.speeds[0] - 0.8) / outcome.std[0])
    assert 0.6 < np.mean(np.square(z)) < 1.6


def test_stribeck_friction_is_found():
    robot = models.two_link()
    true = RegressorModel(robot, curves=[Curve(0, "stribeck", 0.25)], smoothing=0.01)
    x = truth_of(true)
    x[true.by_kind["curve"]] = 2.0
    outcome = fit_curves(RegressorModel(robot, smoothing=0.01), synthetic(true, x, noise=0.02), "stribeck", [0])
    assert outcome.speeds[0] == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize("shape", ["sigmoid", "stribeck"])
def test_derivative_of_friction_curves_by_speed(shape):
    v = np.linspace(-2, 2, 41)
    h = 1e-6
    up, down = (Curve(0, shape, 0.7 * np.exp(s))._torque(v, 0.05) for s in (h, -h))
    np.testing.assert_allclose(Curve(0, shape, 0.7)._torque_by_log_speed(v, 0.05), (up - down) / (2 * h), atol=1e-8)


def test_cross_validation_prefers_the_model_that_made_the_data():
    robot = models.two_link()
    true = RegressorModel(robot, smoothing=0.05)
    data = synthetic(true, truth_of(true), noise=0.05)
    third = [between(data, 4.0 * k, 4.0 * k + 4.0) for k in range(3)]
    errors = [predicted(m, [m.compress(x) for x in third]).error for m in (true, true._with_options(coulomb=False))]
    assert errors[0] < 0.5 * errors[1]


def test_bad_arguments_are_named():
    robot = models.two_link()
    model = RegressorModel(robot)
    data = synthetic(model, truth_of(model))
    odd = Column("odd", lambda q, v, a: v[:, 0])
    for message, call in (
        ("method: expected one of ols", lambda: fit(model, data, "lsq")),
        ("data: was compressed for another model", lambda: fit(RegressorModel(robot), model.compress(data))),
        ("options: ols has no option 'mass_max'", lambda: fit(model, data, "ols", mass_max=2.0)),
        ("options: consistent has no option 'massmax'", lambda: fit(model, data, "consistent", massmax=2.0)),
        ("total_mass: expected a number >= 0, got nan", lambda: fit(model, data, "consistent", total_mass=np.nan)),
        ("regularization: expected a number >= 0, got 'a'", lambda: fit(model, data, "consistent", regularization="a")),
        ("mass_min: expected a mass", lambda: fit(model, data, "consistent", mass_min=np.inf)),
        ("iterations: expected a whole number from 1", lambda: fit(model, data, "wls", iterations=0)),
        ("weights: expected None, 'noise' or", lambda: fit(model, data, "ridge", weights=[-1.0, 1.0])),
        ("springs: expected joints' names or numbers", lambda: RegressorModel(robot, springs=[7])),
        ("x: expected shape", lambda: model.torque(np.ones(3), data.q, data.v, data.a)),
        ("start: expected a speed > 0", lambda: fit_curves(model, data, start=np.nan)),
        ("strength: expected a positive", lambda: fit(model, data, "ridge", strength=-1.0)),
        ("prior: expected 26 finite", lambda: fit(model, data, "ridge", prior=np.zeros(7))),
        ("viscous: expected actuator numbers", lambda: RegressorModel(robot, viscous=[2])),
        ("the name 'm1' is used twice", lambda: RegressorModel(robot, columns=[Column("m1", lambda q, v, a: v)])),
        ("column 'odd': expected finite torques of shape", lambda: fit(RegressorModel(robot, columns=[odd]), data)),
        ("transmission", lambda: RegressorModel(robot, transmission=[[1, 2, 3]])),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=message):
            call()
    with pytest.raises(DataError, match="all are masked"):
        model.compress(Dataset(data.t, data.q, data.tau, v=data.v, a=data.a, mask=np.zeros(data.tau.shape, bool)))


def test_importing_geomctrl_does_not_import_solvers_or_plots():
    heavy = "cvxpy matplotlib clarabel scipy.signal scipy.stats scipy.interpolate scipy.optimize scipy.linalg"
    code = (
        "import sys, geomctrl.identification, geomctrl.identification.excitation\n"
        f"print(*(m for m in {heavy.split()} if m in sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == ""
