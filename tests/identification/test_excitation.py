"""Exciting trajectories: exact gradients, limits, rest at both ends, better estimates, and predicted intervals."""

import numpy as np
import pytest
from studies import identify_synthetic_panda

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.identification import Dataset, ExcitationError, RegressorModel, fit
from geomctrl.identification.excitation import MotionLimits, MotionSearch, Surroundings, optimize, search
from geomctrl.identification.excitation.clearance import clearances_of
from geomctrl.identification.excitation.problem import FELT_CLEARANCE, SHIFTS, WEIGHTS, Problem
from geomctrl.identification.excitation.search import postures, random_motion


def problem(robot, objective, surroundings=None, **model):
    limits = MotionLimits(velocity=2.0, jerk=60.0, torque_margin=0.0).of(robot)
    clear = None if surroundings is None else clearances_of(robot, surroundings, limits.lower, limits.upper)
    options = {"clearances": clear, "noise": np.linspace(0.5, 2.0, robot.nv)}
    return Problem(RegressorModel(robot, **model), limits, 6.0, 4, objective, 40, **options)


def test_shift_rule_is_exact_up_to_the_second_harmonic():
    c = np.random.default_rng(0).normal(size=5)
    f = lambda x: c @ [1, np.cos(x), np.sin(x), np.cos(2 * x), np.sin(2 * x)]  # noqa: E731
    slope = lambda x: c @ [0, -np.sin(x), np.cos(x), -2 * np.sin(2 * x), 2 * np.cos(2 * x)]  # noqa: E731
    for x in (0.0, 0.7, 2.5):
        assert sum(w * f(x + s) for w, s in zip(WEIGHTS, SHIFTS)) == pytest.approx(slope(x), abs=1e-14)


CROWDED = Surroundings(floor=0.2, keep_out=[(0.3, -0.5, 0.0, 0.8, 0.5, 0.6)], clearance=0.01)


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("make", "objective", "surroundings"),
    [
        (models.panda, "condition", CROWDED),
        (models.panda, "log_det", CROWDED),
        (models.ur10, "log_det", CROWDED),
        (models.scara, "condition", None),
        (models.scara, "log_det", None),
    ],
)
def test_gradients_are_exact(make, objective, surroundings):
    """Against central differences of fourth order; scara has a prismatic joint, and the armature of two joints is
    known.
    """
    options = {"rotor": range(2, 4), "springs": [1], "smoothing": 0.3}
    p = problem(make().with_armature(0.3), objective, surroundings, **options)
    centres, rng = postures(p, None), np.random.default_rng(1)
    z = min((random_motion(p, centre, rng) for centre in centres[:6]), key=p.value)  # rounding grows with condition^2
    if surroundings is not None:
        assert p._clear(p.states(z)[0])[0].min() < FELT_CLEARANCE, "the barrier is not felt: nothing is tested"
    for seed in range(3):
        d = np.random.default_rng(seed).normal(size=z.size)
        h = 1e-4 if surroundings is None else 2e-6  # second derivatives of distances jump
        f = [p.cost(z + k * h * d, 0.05).total for k in (-2, -1, 1, 2)]
        numeric = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
        assert p.cost(z, 0.05).gradient @ d == pytest.approx(numeric, rel=1e-6, abs=1e-7)


@pytest.mark.quick(1)
def test_optimised_motions_are_better_and_keep_every_limit():
    robot = models.panda()
    limits = MotionLimits(acceleration=8.0, jerk=40.0)
    work = MotionSearch(iterations=30, samples=60, seed=2, compare=6)
    e = optimize(robot, 8.0, terms=4, limits=limits, search=work)
    assert e.condition < 0.75 * e.random_conditions.min()
    assert e.random_condition == e.random_conditions.min()
    t = np.linspace(0, 8, 4001)
    q, v, a = e.trajectory.at(t)
    lim = robot.limits
    assert (q >= lim.lower).all()
    assert (q <= lim.upper).all()
    assert (np.abs(v) <= lim.velocity).all()
    assert (np.abs(a) <= 8.0).all()
    assert (np.abs(np.diff(a, axis=0) / t[1]) <= 40.0).all()
    assert (np.abs(robot.inverse_dynamics(q, v, a)) <= 0.8 * lim.effort).all()
    for x in (v, a):
        np.testing.assert_allclose(x[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(q[0], q[-1], atol=1e-9)  # it can be repeated without a pause
    np.testing.assert_allclose(np.gradient(q, t, axis=0, edge_order=2), v, atol=1e-4)  # v and a are derivatives of q
    np.testing.assert_allclose(np.gradient(v, t, axis=0, edge_order=2), a, atol=1e-3)
    again = optimize(robot, 8.0, terms=4, limits=limits, search=work)
    # to rounding: the first call may run in loops, and the second one compiled
    np.testing.assert_allclose(again.trajectory.coefficients, e.trajectory.coefficients, atol=1e-6)
    assert "random" in e.text()
    desired = e.trajectory(9.0)
    np.testing.assert_array_equal(desired.v, 0.0)


@pytest.mark.slow
def test_log_det_objective_raises_the_determinant():
    work = MotionSearch(iterations=20, samples=50, compare=3)
    e = optimize(models.ur10(), 8.0, terms=3, objective="log_det", search=work)
    assert e.log_det > e.random_log_det + 0.3


def test_bad_requests_are_named():
    panda = models.panda()
    for match, robot, options in [
        ("objective: expected", panda, {"objective": "trace"}),
        (r"velocity: joint .* has no limit", models.two_link(), {}),
        ("revolute and prismatic", models.quadruped(), {}),
        ("q0", panda, {"q0": np.full(7, 9.0)}),
        ("lower, upper: expected finite positions", panda, {"limits": MotionLimits(lower=-np.inf)}),
        ("terms: expected a whole number", panda, {"terms": 2.5}),
        ("torque_margin: expected a part", panda, {"limits": MotionLimits(torque_margin=1.0)}),
        ("jerk: expected a limit for every joint", panda, {"limits": MotionLimits(jerk=[9.0] * 6 + [np.inf])}),
        ("noise: expected a number > 0", panda, {"noise": 0.0}),
        ("noise: expected a number > 0", panda, {"noise": 5e-324}),
        ("duration: expected seconds", panda, {"duration": 5e-324}),
        ("terms: expected a whole number", panda, {"terms": 10**6}),
        ("surroundings: expected Surroundings", panda, {"surroundings": 0.0}),
        ("limits: expected MotionLimits", panda, {"limits": 2.0}),
        ("search: expected a MotionSearch", panda, {"search": 2}),
    ]:
        with pytest.raises(ArgumentError, match=match):
            optimize(robot, **options)


@pytest.mark.parametrize("name", ["lower", "upper", "velocity", "acceleration", "effort", "jerk"])
def test_limits_that_are_no_numbers_of_the_robot_are_named(name):
    masked = np.ma.masked_array([1.0, 1.0], [True, False])
    fine = {"velocity": 1.0, name: [0.5, 0.5]}
    assert MotionLimits(**fine).of(models.two_link()) is not None
    for bad in (np.nan, [0.5, np.nan], [0.5] * 3, "x", {}, 1j, [[0.5, 0.5]], masked, np.empty(0), [None, 0.5], True):
        with pytest.raises(ArgumentError, match=f"^{name}: expected"):
            MotionLimits(**(fine | {name: bad})).of(models.two_link())


@pytest.mark.slow
def test_what_can_not_be_met_is_said_and_by_how_much():
    panda = models.panda()
    few = {"search": MotionSearch(compare=1, samples=30)}
    with pytest.raises(ExcitationError, match=r"'panda_joint2' takes [\d.]+ N m to hold still, allowed are 4\b"):
        optimize(panda, q0=(0, 1.2, 0, -0.5, 0, 1.5, 0), limits=MotionLimits(effort=5.0), **few)
    with pytest.raises(ExcitationError, match=r"'panda_link\d' over the floor: -[\d.]+ cm, asked for 2.0 cm"):
        optimize(panda, surroundings=Surroundings(floor=1.6), **few)
    box = Surroundings(keep_out=[(-2, -2, 0.3, 2, 2, 2)])
    with pytest.raises(ExcitationError, match=r"off keep-out box 1: -[\d.]+ cm"):
        optimize(panda, surroundings=box, **few)
    with pytest.raises(ExcitationError, match=r"no motion within the limits: even at 2 % .* 'panda_joint1' takes"):
        optimize(panda, limits=MotionLimits(effort=np.array([1e-3, 90, 90, 90, 90, 90, 90])), **few)


@pytest.mark.slow
def test_a_simulated_panda_is_recovered_within_its_confidence_intervals():
    results = [identify_synthetic_panda.recover(seed, iterations=9) for seed in (1, 2)]
    z = np.concatenate([r[2] for r in results])
    assert len(z) == 2 * (43 + 3 * 7)
    assert np.mean(np.abs(z) < 1.96) > 0.9
    assert np.abs(z).max() < 5.0
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.35  # intervals are neither too narrow nor too wide


@pytest.mark.slow
def test_better_than_the_best_of_two_hundred_random_motions():
    for objective, better in (("log_det", "random_log_dets"), ("condition", "random_conditions")):
        work = MotionSearch(compare=200, iterations=45, samples=60)
        e = optimize(models.panda(), 10.0, objective=objective, search=work)
        assert len(getattr(e, better)) == 200
        if objective == "log_det":
            assert e.log_det > e.random_log_dets.max() + 0.2
        else:
            assert e.condition < 0.7 * e.random_conditions.min()


@pytest.mark.slow
def test_intervals_are_what_was_predicted():
    """Sixteen logs of the designed motion with known parameters and noise, identified by least squares."""
    robot = models.panda()
    model = RegressorModel(robot, smoothing=0.05)
    noise = np.array([0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1])
    work = MotionSearch(compare=4, iterations=15, samples=50)
    e = optimize(model, 8.0, objective="log_det", noise=noise, rate=50.0, search=work)
    t = np.arange(400) / 50.0  # 8 s at 50 Hz
    q, v, a = e.trajectory.at(t)
    x = model.prior
    x[model.by_kind["viscous"]], x[model.by_kind["coulomb"]] = 2.0, 1.0
    truth, clean, z, std = model.base.projection @ x, model.torque(x, q, v, a), [], []
    rng = np.random.default_rng(0)
    for _ in range(16):
        tau = clean + noise * rng.normal(size=clean.shape)
        estimate = fit(model, Dataset(t, q, tau, v=v, a=a), "wls")
        z.append((estimate.values - truth) / e.deviations)
        std.append(estimate.std / e.deviations)
    assert (np.abs(np.log(np.mean(std, axis=0))) < np.log(1.5)).all()
    assert 1 / 1.2 < np.sqrt(np.mean(np.square(z))) < 1.2
    assert 0.92 < np.mean(np.abs(z) < 1.96) < 0.98


@pytest.mark.slow
def test_processes_find_what_one_process_finds(tmp_path, monkeypatch):
    work = MotionSearch(iterations=3, samples=20, compare=4, starts=2)
    options = {"terms": 2, "limits": MotionLimits(velocity=2.0), "surroundings": None, "search": work}
    apart = optimize(models.scara(), 5.0, **options)
    monkeypatch.setattr(search, "cores", lambda: 1)
    here = optimize(models.scara(), 5.0, **options)
    np.testing.assert_allclose(apart.trajectory.coefficients, here.trajectory.coefficients, atol=1e-6)
    assert here.clearances == {}  # without surroundings the robot is drawn, too
    assert here.plot(tmp_path / "free.png").read_bytes().startswith(b"\x89PNG")
