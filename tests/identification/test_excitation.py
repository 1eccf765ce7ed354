"""Exciting trajectories: exact gradients, limits, rest at both ends, and that they are worth it; a truth test."""

import numpy as np
import pytest
from demos import identify_synthetic_panda

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.identification import ExcitationError, RegressorModel
from geomctrl.identification.trajectories import optimize
from geomctrl.identification.trajectories.problem import SHIFTS, WEIGHTS, Problem, limits_of


def problem(robot, kind, objective, **model):
    limits = limits_of(robot, velocity=2.0)
    return Problem(RegressorModel(robot, **model), limits, 6.0, kind, 4, objective, 40)


def test_shift_rule_is_exact_up_to_the_second_harmonic():
    c = np.random.default_rng(0).normal(size=5)
    f = lambda x: c @ [1, np.cos(x), np.sin(x), np.cos(2 * x), np.sin(2 * x)]  # noqa: E731
    slope = lambda x: c @ [0, -np.sin(x), np.cos(x), -2 * np.sin(2 * x), 2 * np.cos(2 * x)]  # noqa: E731
    for x in (0.0, 0.7, 2.5):
        assert sum(w * f(x + s) for w, s in zip(WEIGHTS, SHIFTS)) == pytest.approx(slope(x), abs=1e-14)


@pytest.mark.parametrize("objective", ["condition", "log_det"])
@pytest.mark.parametrize(("make", "kind"), [(models.panda, "fourier"), (models.scara, "spline")])
def test_gradients_are_exact(make, kind, objective):
    """Against central differences of fourth order; scara has a prismatic joint, and two joints' armature is known."""
    options = {"rotor": range(2, 4), "springs": [1], "smoothing": 0.3}
    p = problem(make().with_armature(0.3), kind, objective, **options)
    z = p.start(np.random.default_rng(1), None)
    for seed in range(3):
        d = np.random.default_rng(seed).normal(size=z.size)
        h = 1e-4
        f = [p.cost(z + k * h * d, 0.05)[0] for k in (-2, -1, 1, 2)]
        numeric = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
        assert p.cost(z, 0.05)[1] @ d == pytest.approx(numeric, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("kind", ["fourier", "spline"])
def test_optimised_motions_are_better_and_keep_every_limit(kind):
    robot = models.panda()
    e = optimize(robot, 8.0, kind=kind, terms=4, iterations=30, samples=60, acceleration=8.0, seed=2)
    assert e.condition < 0.6 * e.random_condition
    t = np.linspace(0, 8, 4001)
    q, v, a = e.trajectory.at(t)
    lim = robot.limits
    assert (q >= lim.lower).all()
    assert (q <= lim.upper).all()
    assert (np.abs(v) <= lim.velocity).all()
    assert (np.abs(a) <= 8.0).all()
    assert (np.abs(robot.inverse_dynamics(q, v, a)) <= lim.effort).all()
    for x in (v, a):
        np.testing.assert_allclose(x[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(np.gradient(q, t, axis=0, edge_order=2), v, atol=1e-4)  # v, a are q's derivatives
    np.testing.assert_allclose(np.gradient(v, t, axis=0, edge_order=2), a, atol=1e-3)
    again = optimize(robot, 8.0, kind=kind, terms=4, iterations=30, samples=60, acceleration=8.0, seed=2)
    # to rounding: what runs in loops at first may be compiled the second time
    np.testing.assert_allclose(again.trajectory.coefficients, e.trajectory.coefficients, atol=1e-6)
    assert "random" in e.text()
    desired = e.trajectory(9.0)
    np.testing.assert_array_equal(desired.v, 0.0)


def test_log_det_objective_raises_the_determinant():
    e = optimize(models.ur10(), 8.0, terms=3, iterations=20, samples=50, objective="log_det")
    assert e.log_det > e.random_log_det + 0.3


def test_bad_requests_are_named():
    with pytest.raises(ArgumentError, match="kind: expected"):
        optimize(models.panda(), kind="sine")
    with pytest.raises(ArgumentError, match=r"velocity: joint .* has no limit"):
        optimize(models.two_link())
    with pytest.raises(ArgumentError, match="revolute and prismatic"):
        optimize(models.quadruped())
    with pytest.raises(ArgumentError, match="q0"):
        optimize(models.panda(), q0=np.full(7, 9.0))
    with pytest.raises(ArgumentError, match="lower, upper: expected finite positions"):
        optimize(models.panda(), lower=-np.inf)
    with pytest.raises(ArgumentError, match="terms: expected a whole number"):
        optimize(models.panda(), terms=2.5)  # type: ignore[arg-type]
    with pytest.raises(ExcitationError, match="no motion within the limits"):
        optimize(models.panda(), effort=np.full(7, 0.5))


def test_a_simulated_panda_is_recovered_within_its_confidence_intervals():
    results = [identify_synthetic_panda.recover(seed, iterations=9) for seed in (1, 2)]
    z = np.concatenate([r[2] for r in results])
    assert len(z) == 2 * (43 + 3 * 7)
    assert np.mean(np.abs(z) < 1.96) > 0.9
    assert np.abs(z).max() < 5.0
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.35  # intervals neither too narrow nor too wide
