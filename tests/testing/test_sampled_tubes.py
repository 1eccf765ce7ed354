"""Tubes of sampled laws: exact linear loops, published neural networks, claims about held commands."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from studies import neural_loops

import geomctrl as gc
from geomctrl import testing
from geomctrl.errors import ArgumentError


def slider(mass=1.0):
    body = gc.inertia.from_com(mass, (0.0, 0.0, 0.0), np.eye(3))
    return gc.Robot.build([gc.Body("mass", None, gc.Joint.prismatic((1, 0, 0)), np.eye(4), body)], gravity=(0, 0, 0))


def spring(t, q, v, z):
    return gc.Command(-4.0 * q - 3.0 * v + np.cos(3.0 * t))


def exact_slider(x, mass, dt, samples):
    """States at samples of masses under `spring`, by the matrix exponential."""
    A = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0 / mass], [0.0, 0.0, 0.0]])
    out = [x]
    for k in range(samples):
        u = -4.0 * x[:, 0] - 3.0 * x[:, 1] + np.cos(3.0 * k * dt)
        x = (np.column_stack([x, u]) @ expm(A * dt).T)[:, :2]
        out.append(x)
    return np.array(out)


CORNERS = np.array([[0.2, -0.1], [0.2, 0.1], [0.5, -0.1], [0.5, 0.1]])
BOX = CORNERS[0], CORNERS[-1]


def test_a_linear_sampled_loop_has_the_exact_box_at_each_sample():
    tube, dt = testing.reach(slider(), spring, BOX, 2.0, control_dt=0.2), 0.2
    exact = exact_slider(CORNERS, 1.0, dt, 10)
    for k in range(1, 11):
        lo, hi = tube.box(k * dt if k < 10 else 2.0)
        np.testing.assert_allclose(lo, exact[k].min(0), atol=1e-12)
        np.testing.assert_allclose(hi, exact[k].max(0), atol=1e-12)
    assert "held for 0.2 s" in tube.summary()


def test_motions_between_samples_are_in_the_tube():
    tube = testing.reach(slider(), spring, BOX, 1.0, control_dt=0.25)
    t, x = tube._motions(32)
    for segment in tube.pieces[0].segments:
        inside = x[:, (t >= segment.start) & (t <= segment.end)]
        lo, hi = segment.hull
        assert (inside >= lo[:2] - 1e-8).all()
        assert (inside <= hi[:2] + 1e-8).all()
    ends = exact_slider(x[:, 0], 1.0, 0.25, 4)
    np.testing.assert_allclose(x[:, [50, 100, 150, 200]].transpose(1, 0, 2), ends[1:], atol=1e-7)


def test_uncertain_masses_of_sampled_loops_are_covered():
    tube = testing.reach(slider(), spring, BOX, 1.0, parameters=0.05, control_dt=0.25)
    assert tube
    lo, hi = tube.box(1.0)
    for mass in (0.95, 1.0, 1.05):
        x = exact_slider(CORNERS, mass, 0.25, 4)[-1]
        assert (lo <= x + 1e-12).all()
        assert (x <= hi + 1e-12).all()
    assert (hi - lo < 3.0 * np.ptp(exact_slider(CORNERS, 1.0, 0.25, 4)[-1], 0)).all()


def test_claims_about_a_held_command_are_about_its_values_between_samples():
    tube, dt = testing.reach(slider(), spring, BOX, 1.0, control_dt=0.25), 0.25
    x = exact_slider(CORNERS, 1.0, dt, 4)
    u = [-4.0 * x[k, :, 0] - 3.0 * x[k, :, 1] + np.cos(3.0 * k * dt) for k in range(5)]
    for k in range(4):
        low, high = u[k].min(), u[k].max()
        assert tube.stays("tau[0]", lower=low - 1e-9, upper=high + 1e-9, start=k * dt, end=(k + 1) * dt)
        false = tube.stays("tau[0]", lower=low + 1e-3, start=k * dt, end=(k + 1) * dt)
        assert false.status == "refuted"
        motion = false.counterexample
        assert k * dt <= motion.time <= (k + 1) * dt
        assert motion.x[-1, 2] < low + 1e-3
    before, after = tube.stays("tau[0]", lower=-9.0, start=dt, end=dt), np.append(u[0], u[1])
    assert before.lowest == pytest.approx(after.min())
    assert before.highest == pytest.approx(after.max())


def test_a_sampled_tube_is_continued_in_the_same_loop_only():
    tube = testing.reach(slider(), spring, BOX, 0.5, control_dt=0.25)
    again = testing.reach(slider(), spring, BOX, 0.5, control_dt=0.25, budget=testing.Budget(resume=tube))
    assert again.pieces == tube.pieces
    with pytest.raises(ArgumentError, match="resume: expected a tube of this loop"):
        testing.reach(slider(), spring, BOX, 0.5, control_dt=0.125, budget=testing.Budget(resume=tube))


@pytest.mark.parametrize("control_dt", [0.0, -0.1, np.nan, "0.1", 1e-9])
def test_periods_that_are_none_are_refused(control_dt):
    with pytest.raises(ArgumentError, match="control_dt: expected seconds > 0"):
        testing.reach(slider(), spring, BOX, 0.5, control_dt=control_dt)


class Integrating:
    def start(self):
        return np.zeros(1)

    def __call__(self, t, q, v, z):
        return gc.Command(-q - z, z_rate=q)


def test_a_sampled_law_with_a_state_is_refused():
    with pytest.raises(ArgumentError, match="control_dt: expected None for a controller with a state z"):
        testing.reach(slider(), Integrating(), BOX, 0.5, control_dt=0.1)


def test_a_tube_ends_where_the_law_is_undefined_at_a_sample():
    """At the second sample some masses are at q < 0, where the law has no value."""

    def law(t, q, v, z):
        return gc.Command(-np.sqrt(q) - 1.0)

    tube = testing.reach(slider(), law, (np.array([0.1, -1.0]), np.array([0.2, 0.0])), 1.0, control_dt=0.25, budget=1)
    assert tube.until == 0.25
    assert tube.stays("tau[0]", upper=0.0).status == "undecided"
    assert np.isnan(tube._motions(32)[1][:, -1]).all()


def sampled_motion(f, law, x, control_dt, samples):
    """(times, states) of equations by hand under a held law, 5 in each period."""
    times, states = [0.0], [x]
    for k in range(samples):
        u = law(x)
        t = k * control_dt + control_dt * np.linspace(0.0, 1.0, 6)
        y = solve_ivp(lambda t, x, u=u: f(x, u), t[[0, -1]], x, "DOP853", t, rtol=1e-11, atol=1e-12).y.T
        x = y[-1]
        times, states = [*times, *t[1:]], [*states, *y[1:]]
    return np.array(times), np.array(states)


def require_inside(tube, problem, starts):
    samples = round(problem.t_end / problem.control_dt)
    for x in starts:
        for t, y in zip(*sampled_motion(problem.rates, problem.network_command, x, problem.control_dt, samples)):
            lo, hi = tube.box(min(t, problem.t_end))
            assert (lo - 1e-8 <= y).all()
            assert (y <= hi + 1e-8).all()


@pytest.mark.parametrize("name", neural_loops.PROBLEMS)
def test_the_loop_of_a_published_problem_is_that_of_its_equations(name):
    problem = neural_loops.PROBLEMS[name]()
    n, rng = len(problem.lower) // 2, np.random.default_rng(0)
    for x in rng.uniform(-1.0, 1.0, (20, 2 * n)):
        tau = problem.law(0.0, x[:n], x[n:], None).tau
        rates = np.append(x[n:], problem.plant.acceleration(0.0, x[:n], x[n:], tau))
        np.testing.assert_allclose(rates, problem.rates(x, problem.network_command(x)), atol=1e-9)


def test_the_network_of_the_pendulum_meets_its_specification():
    """All motions stay between 0 and 1 rad from 0.5 to 1 s; the box has one piece."""
    problem = neural_loops.single_pendulum()
    tube = testing.reach(
        problem.plant, problem.law, (problem.lower, problem.upper), problem.t_end, control_dt=problem.control_dt
    )
    assert len(tube.pieces) == 1
    assert tube.stays("q[0]", lower=0.0, upper=1.0, start=0.5)
    corners = np.array(np.meshgrid(*zip(problem.lower, problem.upper))).reshape(2, -1).T
    require_inside(tube, problem, corners)
    lo, hi = tube.box(problem.t_end)
    assert (hi - lo < 1.1 * np.ptp(tube._motions(256)[1][:, -1], 0)).all()


def test_the_network_of_the_pendulum_violates_its_specification_from_a_larger_box():
    problem = neural_loops.single_pendulum()
    upper = np.array([1.2, 0.2])
    tube = testing.reach(problem.plant, problem.law, (problem.lower, upper), 1.0, control_dt=problem.control_dt)
    check = tube.stays("q[0]", lower=0.0, upper=1.0, start=0.5)
    assert check.status == "refuted"
    start = check.counterexample.x[0, :2]
    assert (problem.lower <= start).all()
    assert (start <= upper).all()
    t, x = sampled_motion(problem.rates, problem.network_command, start, problem.control_dt, 20)
    assert x[t >= 0.5, 0].max() > 1.0


def test_the_network_of_the_double_pendulum_violates_its_specification():
    problem = neural_loops.double_pendulum()
    tube = testing.reach(
        problem.plant, problem.law, (problem.lower, problem.upper), 1.0, control_dt=problem.control_dt, budget=1
    )
    check = tube.stays("v[1]", lower=-1.0, upper=1.7)
    assert check.status == "refuted"
    start = check.counterexample.x[0, :4]
    x = sampled_motion(problem.rates, problem.network_command, start, problem.control_dt, 20)[1]
    assert x[:, 3].min() < -1.0


def test_motions_of_the_double_pendulum_under_its_network_are_in_the_tube():
    problem, half = neural_loops.double_pendulum(), 0.01
    box = 1.15 - half * np.ones(4), 1.15 + half * np.ones(4)
    tube = testing.reach(problem.plant, problem.law, box, 1.0, control_dt=problem.control_dt, budget=1)
    assert tube
    require_inside(tube, problem, 1.15 + half * np.random.default_rng(0).choice([-1.0, 1.0], (4, 4)))
    lo, hi = tube.box(1.0)
    assert (hi - lo < 1.5 * np.ptp(tube._motions(64)[1][:, -1], 0)).all()


@pytest.mark.parametrize("name", ["oscillator, sigmoid", "oscillator, tanh"])
def test_networks_of_the_oscillator_meet_their_specification(name):
    problem = neural_loops.PROBLEMS[name]()
    tube = testing.reach(
        problem.plant, problem.law, (problem.lower, problem.upper), problem.t_end, control_dt=problem.control_dt
    )
    goal = np.array([-0.1, -np.inf, -0.9, -np.inf]), np.array([0.2, np.inf, -0.6, np.inf])
    assert len(tube.pieces) == 1
    assert tube.inside(goal, time=problem.t_end)
    require_inside(tube, problem, np.random.default_rng(0).uniform(problem.lower, problem.upper, (4, 4)))
    lo, hi = tube.box(problem.t_end)
    assert (hi - lo < 1.1 * np.ptp(tube._motions(256)[1][:, -1], 0)).all()


def test_motions_of_the_cart_pole_under_a_network_are_in_the_tube():
    problem = dataclasses.replace(neural_loops.cart_pole(), t_end=0.1)
    tube = testing.reach(
        problem.plant, problem.law, (problem.lower, problem.upper), problem.t_end, control_dt=problem.control_dt
    )
    assert tube
    require_inside(tube, problem, np.random.default_rng(0).choice([-1.0, 1.0], (4, 4)) * problem.upper)
    lo, hi = tube.box(problem.t_end)
    assert (hi - lo < 1.5 * np.ptp(tube._motions(64)[1][:, -1], 0)).all()
