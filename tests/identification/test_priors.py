"""Priors by cross-validation: the choice, physically plausible bodies, and the cost."""

from dataclasses import replace

import numpy as np
import pytest
from identification.simulated import off, simulated
from lib import logs

from geomctrl import inertia, models
from geomctrl.errors import ArgumentError
from geomctrl.identification import Dataset, Filtering, RegressorModel, choose_prior, fit, identify
from geomctrl.identification.estimators import ESTIMATORS, prior_problem
from geomctrl.identification.estimators.conditioning import natural_scale
from geomctrl.identification.estimators.folds import folds_of
from geomctrl.identification.estimators.prior_problem import FoldProblem, Prior, at_the_edge

ALL = {"regularization": "auto", "entropic": "auto", "weights": "auto"}


def least_ratio(estimate):
    """The smallest ratio of least to next principal moment, and of least to next eigenvalue of the pseudo-inertia."""
    bodies = estimate.x[: estimate.model.inertial].reshape(-1, 10)
    values = (np.linalg.eigvalsh(f(bodies)) for f in (inertia.com_tensor, inertia.pseudo))
    return min(float((v[:, 0] / v[:, 1]).min()) for v in values)


def without_bodies(robot, how):
    bodies = {"zero": np.zeros(10), "one": inertia.from_com(1.0, np.zeros(3), np.eye(3))}[how]
    return robot.with_parameters(np.tile(bodies, (robot.nbodies, 1)), physical=False)


# --- pieces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [(1e-3, 0.0), (1e-8, 1e-3)])
@pytest.mark.parametrize("bounds", [{}, {"mass_max": [3.0, 0.6], "total_mass": 2.5, "com_box": "given"}])
def test_the_interior_point_method_and_the_semidefinite_program_find_the_same_bodies(weights, bounds):
    robot = models.two_link()
    model, _, data = simulated(robot, noise=0.1)
    model = RegressorModel(off(robot), smoothing=0.05)
    if bounds:
        com = inertia.com(model.robot.parameters)
        bounds = {**bounds, "com_box": np.stack((com - 0.05, com + np.array([0.02, 0.1, 0.1])), axis=1)}
    folds, w = folds_of(model, data), np.array([1.0, 2.0])
    problem = FoldProblem(model, folds, Prior(model.prior), w, bounds, ESTIMATORS["consistent"])
    regularization, entropic = weights
    x = problem.estimate(regularization, entropic)
    e = fit(model, data, "consistent", regularization=regularization, entropic=entropic, weights=w, **bounds)
    A, b = model.compress(data).system(w)
    scale, x0 = natural_scale(model, A, b), model.prior

    P0 = inertia.pseudo(x0[: model.inertial].reshape(-1, 10))

    def objective(x):
        value = ((A @ x - b) ** 2).sum() / (b**2).sum() + regularization * (((x - x0) / scale) ** 2).sum()
        relative = np.linalg.solve(P0, inertia.pseudo(x[: model.inertial].reshape(-1, 10)))
        distance = np.trace(relative, axis1=1, axis2=2) - np.linalg.slogdet(relative)[1] - 4.0
        return value + entropic / robot.nbodies * distance.sum()

    assert objective(x) == pytest.approx(objective(e.x), rel=1e-4)
    np.testing.assert_allclose(x / scale, e.x / scale, atol=2e-3)


def test_folds_hold_every_sample_once_but_for_guards():
    model, x, data = simulated(models.two_link(), seconds=10.0)
    folds = folds_of(model, data, 4, guard=0.5)
    y = 1.1 * x
    error = np.abs(model.torque(y, data.q.copy(), data.v.copy(), data.a.copy()) - data.tau) ** 2
    edges = np.quantile(data.t, [0.25, 0.5, 0.75])
    near = (np.abs(data.t[:, None] - edges) < 0.25).any(1)
    fold = np.searchsorted(edges, data.t)
    np.testing.assert_allclose(folds.whole.residuals(y) ** 2, error.sum(0), rtol=1e-9)
    for k in range(4):
        inside = (fold == k) & ~near
        np.testing.assert_allclose(folds.held[k].residuals(y) ** 2, error[inside].sum(0), rtol=1e-9)
        apart = ~(fold == k) & ~(np.abs(data.t[:, None] - edges[max(k - 1, 0) : k + 1]) < 0.25).any(1)
        np.testing.assert_allclose(folds.rest[k].residuals(y) ** 2, error[apart].sum(0), rtol=1e-9)


def test_folds_of_a_motion_that_repeats_are_of_its_phase():
    model, x, once = simulated(models.two_link(), seconds=4.0)
    t = np.arange(3 * len(once)) / 100.0
    q, v, a, tau = (np.tile(z, (3, 1)) for z in (once.q, once.v, once.a, once.tau))
    folds, y = folds_of(model, Dataset(t, q, tau, v=v, a=a), 4, guard=0.205, period=4.0), 1.1 * x
    error = (model.torque(y, q, v, a) - tau) ** 2
    phase = t % 4.0
    edges = np.array([0.0, *np.quantile(phase, [0.25, 0.5, 0.75]), 4.0])
    distance = np.abs(phase[:, None] - edges) < 0.1025
    fold = np.searchsorted(edges[1:-1], phase, side="right")
    for k in range(4):
        inside = (fold == k) & ~distance.any(1)
        assert folds.held[k].counts[0] == inside.sum()
        np.testing.assert_allclose(folds.held[k].residuals(y) ** 2, error[inside].sum(0), rtol=1e-9)
        extra = [k, k + 1, *([4] if k == 0 else []), *([0] if k == 3 else [])]  # the first fit continues from the last
        apart = (fold != k) & ~distance[:, extra].any(1)
        np.testing.assert_allclose(folds.rest[k].residuals(y) ** 2, error[apart].sum(0), rtol=1e-9)


def test_a_capsule_has_the_moments_of_its_points():
    end, radius = np.array([0.3, -0.2, 0.1]), 0.08
    length, rng = np.linalg.norm(end), np.random.default_rng(0)
    axis = end / length
    along = rng.uniform(-radius, length + radius, 400_000)
    across = rng.uniform(-radius, radius, (2, 400_000))
    beyond = along - np.clip(along, 0.0, length)
    inside = (across**2).sum(0) + beyond**2 <= radius**2
    u = np.linalg.svd(axis[None])[2]
    points = np.outer(along[inside], axis) + across[:, inside].T @ u[1:]
    homogeneous = np.column_stack((points, np.ones(len(points))))
    P = homogeneous.T @ homogeneous * (4.0 * radius**2 * (length + 2.0 * radius) / 400_000)
    np.testing.assert_allclose(inertia.pseudo(prior_problem._capsule(end, radius)), P, rtol=0.02, atol=2e-6)


def test_bodies_that_are_none_or_copies_are_no_prior():
    panda = models.panda()
    assert prior_problem.usable(panda.parameters).all()
    assert not prior_problem.usable(without_bodies(panda, "one").parameters).any()
    massless = np.array(panda.parameters)
    massless[3] = 0.0
    np.testing.assert_array_equal(prior_problem.usable(massless), np.arange(7) != 3)


def test_the_log_sets_the_mass_of_geometric_bodies():
    robot = models.ur10()
    depth = 0.7 ** np.arange(6)
    true = 4.0 * depth[:, None] * prior_problem.shapes(robot)
    _, _, data = simulated(robot.with_parameters(true), noise=1e-4)
    blank = RegressorModel(without_bodies(robot, "zero"), smoothing=0.05)
    choice = choose_prior(blank, data, entropic="auto")
    np.testing.assert_allclose(choice.options["prior"][:60].reshape(-1, 10), true, rtol=0.01, atol=1e-5)
    assert f"{true[:, 0].sum():.3g} kg" in choice.notes["prior bodies"]
    assert all(name in choice.notes["prior bodies"] for name in robot.body_names)


# --- what is chosen ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "prior", "noise"),
    [("panda", "drawing", 0.05), ("panda", "zero", 0.005), ("ur10", "drawing", 0.005), ("ur10", "one", 0.05)],
)
def test_bodies_that_nobody_doubts_at_no_cost(name, prior, noise):
    robot = getattr(models, name)()
    _, x, data = simulated(robot, noise=noise, seed=1)
    arguments = off(robot) if prior == "drawing" else without_bodies(robot, prior)
    model = RegressorModel(arguments, smoothing=0.05)
    train, test = data.split(0.7)
    choice = choose_prior(model, train)
    e = fit(model, train, "consistent", **choice.options)
    free = fit(model, train, "ols")
    assert e.relative_error(test) <= 1.05 * free.relative_error(test)
    truth = Dataset(test.t, test.q, model.torque(x, *(z.copy() for z in (test.q, test.v, test.a))), v=test.v, a=test.a)
    assert e.relative_error(truth) <= 1.05 * free.relative_error(truth)
    bodies = robot.parameters
    real = min(
        float((v[:, 0] / v[:, 1]).min())
        for v in map(np.linalg.eigvalsh, (inertia.com_tensor(bodies), inertia.pseudo(bodies)))
    )
    assert least_ratio(e) >= min(1e-3, 0.5 * real)
    assert e.x[: model.inertial : 10].max() <= 1.5 * robot.parameters[:, 0].max()
    assert 0.5 <= e.x[: model.inertial : 10].sum() / robot.parameters[:, 0].sum() <= 1.5
    assert not choice.findings
    assert (choice.kind == "entropic") or choice.kind.endswith("and entropic")


@pytest.mark.slow
def test_weights_at_the_default_put_bodies_at_the_edge_where_chosen_ones_do_not():
    robot = models.ur10()
    _, _, data = simulated(robot, noise=0.05, seed=1)
    model = RegressorModel(off(robot), smoothing=0.05)
    assert at_the_edge(fit(model, data, "consistent").robot.parameters, 1e-3).any()
    assert not at_the_edge(fit(model, data, "consistent", **ALL).robot.parameters, 1e-3).any()


def test_joints_are_weighted_by_their_noise_where_that_predicts_better():
    robot = models.two_link()
    model, _, data = simulated(robot, noise=0.0, seconds=8.0)
    noise = np.random.default_rng(0).normal(size=data.tau.shape) * [1.0, 0.01]
    noisy = replace(data, tau=data.tau + noise)
    choice = choose_prior(model, noisy, prior=off(robot).parameters, **ALL)
    w = choice.options["weights"]
    assert w[1] / w[0] == pytest.approx(100.0, rel=0.2)
    assert "weighted by one over their noise" in choice.notes["weights"]


@pytest.mark.slow
def test_torques_that_have_nothing_to_do_with_the_motion_raise_a_doubt():
    robot = models.two_link()
    model, _, data = simulated(robot, seconds=10.0)
    noise = np.random.default_rng(0).normal(size=data.tau.shape)
    light = RegressorModel(robot.with_parameters(1e-3 * robot.parameters), smoothing=0.05)
    (finding,) = choose_prior(light, replace(data, tau=noise)).findings
    assert finding.kind == "prior"
    assert not finding.fatal
    assert not choose_prior(model, data).findings  # the prior is the truth, so the strongest weight is right


def test_a_prior_that_the_log_contradicts_raises_a_doubt():
    robot = models.two_link()
    _, _, data = simulated(robot, seconds=20.0, noise=0.05, correlation=0.0)
    wrong = robot.with_parameters(1e-8 * robot.parameters)
    (finding,) = choose_prior(RegressorModel(wrong, smoothing=0.05), data, entropic="auto").findings
    assert "bound of the search" in finding.seen


@pytest.mark.slow
def test_auto_in_fit_is_what_choose_prior_says():
    robot = models.two_link()
    _, _, data = simulated(robot, noise=0.05)
    model = RegressorModel(off(robot), smoothing=0.05)
    choice = choose_prior(model, data, **ALL)
    a, b = fit(model, data, "consistent", **ALL), fit(model, data, "consistent", **choice.options)
    np.testing.assert_array_equal(a.x, b.x)
    assert a.notes["prior"] == choice.notes["prior"]
    strength = choose_prior(model, data, "ridge").options["strength"]
    assert strength > 0.0
    np.testing.assert_array_equal(
        fit(model, data, "ridge", strength="auto").x, fit(model, data, "ridge", strength=strength).x
    )
    kept = choose_prior(model, data, entropic="auto", regularization=1e-4, mass_max=50.0).options
    assert kept["regularization"] == 1e-4
    assert kept["mass_max"] == 50.0
    assert "weights" not in kept


def test_identify_chooses_what_it_is_not_told():
    robot = models.two_link()
    _, _, data = simulated(robot, noise=0.05, seconds=12.0)
    raw = Dataset(data.t, data.q, data.tau)
    report = identify(off(robot), raw, filtering=Filtering(cutoff=5.0))
    assert "samples left out of the fit" in report.notes["prior"]
    assert report.notes["prior"] in report.text()
    assert report._tables()["notes"]["weights"] == report.notes["weights"]
    assert report.estimate.notes["entropic"] > 0.0
    printed = identify(
        off(robot), raw, filtering=Filtering(cutoff=5.0), options={"regularization": 1e-4, "weights": None}
    )
    assert "prior" not in printed.notes
    assert printed.estimate.notes["regularization"] == 1e-4


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("ols", {}, "method: expected one with a prior"),
        ("consistent", {"margin": "auto"}, "margin: expected a value, got 'auto'"),
        ("consistent", {"strength": "auto"}, "consistent has no option 'strength'"),
        ("consistent", {"entropic": "auto", "folds": 3}, "consistent has no option 'folds'"),
    ],
)
def test_what_can_not_be_chosen_is_said(method, options, message):
    model, _, data = simulated(models.two_link(), seconds=2.0)
    with pytest.raises(ArgumentError, match=message):
        choose_prior(model, data, method, **options)


def test_factors_can_not_be_cut_into_folds():
    model, _, data = simulated(models.two_link(), seconds=2.0)
    with pytest.raises(ArgumentError, match="the choice needs samples"):
        fit(model, model.compress(data), "consistent", entropic="auto")


# --- published logs ------------------------------------------------------------------------------------------------


def needs(name):
    why = logs.missing(name)
    return pytest.mark.skipif(why is not None, reason=str(why))


@needs("ur10_petrone_first70.npz")
@pytest.mark.slow
def test_ur10_without_any_number_given():
    robot, raw = logs.ur10(), logs.ur10_log()
    report = identify(robot, raw, model=RegressorModel(robot, smoothing=0.05), filtering=Filtering(cutoff=6.0))
    e, free = report.estimate, report.unconstrained
    assert e.relative_error(report.test_factors) <= min(0.05, free.relative_error(report.test_factors))
    assert least_ratio(e) > 1e-2
    assert 15.0 < e.x[:60:10].sum() < 30.0  # the manufacturer's 28.9 kg, including the base
    assert "uniform density" in report.notes["prior bodies"]


@needs("kr300_weigand_AB.npz")
@pytest.mark.slow
def test_kr300_with_masses_only():
    model = RegressorModel(
        logs.kr300(), rotor=True, offset=False, columns=[logs.kr300_counterbalance()], smoothing=1e-3
    )
    a, b = (logs.kr300_log(part).filtered(8.0, decimate=2) for part in "AB")
    a = a.without(standstill=0.01)
    e = fit(model, a, "consistent", **ALL)
    assert e.relative_error(b) <= 0.145
    assert e.relative_error(b) <= fit(model, a, "ols").relative_error(b)
    assert least_ratio(e) > 1e-3
