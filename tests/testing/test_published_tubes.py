"""Published problems of reachability analysis (ARCH-COMP, category NLN), with their specifications.

Equations and specifications: Geretti et al., ARCH-COMP 2020 category report: continuous and hybrid systems with
nonlinear dynamics, EPiC Series in Computing 74, as in JuliaReach's models of the same year; robot arm: Angeli, Sontag
and Wang, IEEE TAC 45 (2000).
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from studies import arch_comp, neural_loops
from testing import tube_battery

from geomctrl import testing
from geomctrl.testing.tubes import reaching, steps
from geomctrl.testing.tubes.equations import LoopEquations
from geomctrl.tracing.symbols import unary


def quadrotor(t, y):
    """Twelve states under a PD law of height, roll and pitch."""
    x = [None, *y]
    gravity, radius, arm, rotor, body = 9.81, 0.1, 0.5, 0.1, 1.0
    m = body + 4.0 * rotor
    Jx = Jy = 0.4 * body * radius**2 + 2.0 * arm**2 * rotor
    Jz = 0.4 * body * radius**2 + 4.0 * arm**2 * rotor
    F = m * gravity - 10.0 * (x[3] - 1.0) + 3.0 * x[6]
    s7, c7, s8, c8, s9, c9 = (unary(f, x[k]) for k in (7, 8, 9) for f in ("sin", "cos"))
    yaw = s7 / c8 * x[11] + c7 / c8 * x[12]
    return [
        c9 * c8 * x[4] + (s7 * c9 * s8 - c7 * s9) * x[5] + (c7 * c9 * s8 + s7 * s9) * x[6],
        s9 * c8 * x[4] + (s7 * s9 * s8 + c7 * c9) * x[5] + (c7 * s9 * s8 - s7 * c9) * x[6],
        s8 * x[4] - s7 * c8 * x[5] - c7 * c8 * x[6],
        x[12] * x[5] - x[11] * x[6] - gravity * s8,
        x[10] * x[6] - x[12] * x[4] + gravity * s7 * c8,
        x[11] * x[4] - x[10] * x[5] + gravity * c7 * c8 - F / m,
        x[10] + s8 * yaw,
        c7 * x[11] - s7 * x[12],
        yaw,
        (Jy - Jz) / Jx * (x[11] * x[12]) + (-x[7] - x[10]) / Jx,
        (Jz - Jx) / Jy * (x[10] * x[12]) + (-x[8] - x[11]) / Jy,
        0.0 * x[12],
    ]


def laub_loomis(t, x):
    return [
        1.4 * x[2] - 0.9 * x[0],
        2.5 * x[4] - 1.5 * x[1],
        0.6 * x[6] - 0.8 * (x[1] * x[2]),
        2.0 - 1.3 * (x[2] * x[3]),
        0.7 * x[0] - x[3] * x[4],
        0.3 * x[0] - 3.1 * x[5],
        1.8 * x[5] - 1.6 * (x[1] * x[6]),
    ]


@pytest.mark.parametrize("radius", [0.1, 0.4])
def test_the_quadrotor_meets_its_specification(radius):
    """The height is below 1.4 until 5 s, above 0.9 after 1 s, and between 0.98 and 1.02 at 5 s."""
    box = np.r_[np.full(6, radius), np.zeros(6)]
    segments = tube_battery.tube(steps, quadrotor, -box, box, 5.0, order=5, step=2.0**-5)
    assert segments[-1].end == 5.0
    assert max(s.hull[1][2] for s in segments) < 1.4
    assert min(s.hull[0][2] for s in segments if s.end >= 1.0) > 0.9
    assert segments[-1].lo[2] > 0.98
    assert segments[-1].hi[2] < 1.02


def test_the_laub_loomis_network_meets_its_specification():
    """x_4 is below 4.5 until 20 s."""
    radius, limit = 0.01, 4.5
    centre = np.array([1.2, 1.05, 1.5, 2.4, 1.0, 0.1, 0.45])
    segments = tube_battery.tube(steps, laub_loomis, centre - radius, centre + radius, 20.0)
    assert segments[-1].end == 20.0
    assert max(s.hull[1][3] for s in segments) < limit


def test_the_robot_arm_is_that_of_its_equations():
    robot, law, f = arch_comp.robot_arm()
    for y in np.random.default_rng(0).uniform(-1.0, 1.0, (20, 4)) + arch_comp.START[0]:
        rates = np.append(y[2:], robot.forward_dynamics(y[:2], y[2:], law(0.0, y[:2], y[2:], None).tau))
        assert np.abs(rates - f(0.0, y)).max() < 1e-8


@pytest.mark.parametrize("share", [0.25, pytest.param(1.0, marks=pytest.mark.slow)])
def test_all_motions_of_the_robot_arm_are_enclosed_until_10_s(share):
    """No motion of the equations by hand leaves the tube, at its edges too."""
    robot, law, f = arch_comp.robot_arm()
    centre, half = arch_comp.START
    tube = testing.reach(robot, law, (centre - share * half, centre + share * half), 10.0, budget=1024)
    assert tube
    rng, times = np.random.default_rng(0), np.linspace(0.5, 10.0, 20)
    boxes = [tube.box(t) for t in times]
    for _ in range(12):
        start = centre + share * half * rng.choice([-1.0, 1.0, 0.3], 4)
        states = solve_ivp(f, (0.0, 10.0), start, "DOP853", times, rtol=1e-11, atol=1e-12).y.T
        for x, (lo, hi) in zip(states, boxes):
            assert (lo - 1e-9 <= x).all()
            assert (x <= hi + 1e-9).all()
    assert (boxes[-1][1] - boxes[-1][0]).max() < 0.3


def pendulum_rates(x, u):
    """Rates (m, 4) of the double pendulum by hand, with the inverse of [2 c; c 1]."""
    c, s = np.cos(x[:, 1] - x[:, 0]), np.sin(x[:, 1] - x[:, 0])
    first = s * x[:, 3] ** 2 + 4.0 * np.sin(x[:, 0]) + 8.0 * u[:, 0]
    second = -s * x[:, 2] ** 2 + 2.0 * np.sin(x[:, 1]) + 8.0 * u[:, 1]
    rates = np.stack([first - c * second, 2.0 * second - c * first]) / (2.0 - c * c)
    return np.column_stack([x[:, 2], x[:, 3], *rates])


def pendulum_motions(problem, x, steps_per_sample=20):
    """States (samples + 1, m, 4) of the loop with held commands, by the method of Runge and Kutta."""
    states, h = [x], problem.control_dt / steps_per_sample
    for _ in range(round(problem.t_end / problem.control_dt)):
        u = np.array([problem.network_command(y) for y in x])
        for _ in range(steps_per_sample):
            k1 = pendulum_rates(x, u)
            k2 = pendulum_rates(x + 0.5 * h * k1, u)
            k3 = pendulum_rates(x + 0.5 * h * k2, u)
            x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + pendulum_rates(x + h * k3, u))
        states.append(x)
    return np.array(states)


@pytest.mark.slow
def test_motions_of_the_double_pendulum_are_in_a_tube_that_is_not_much_wider():
    problem = neural_loops.double_pendulum()
    loop = problem.plant, problem.law, (problem.lower, problem.upper), 1.0
    tube = testing.reach(*loop, control_dt=problem.control_dt, budget=1024)
    assert tube
    rng = np.random.default_rng(0)
    starts = np.vstack([rng.uniform(problem.lower, problem.upper, (1000, 4)), rng.choice([1.0, 1.3], (200, 4))])
    motions = pendulum_motions(problem, starts)
    for x, t in zip(motions, np.linspace(0.0, 1.0, 21)):
        lo, hi = tube.box(t)
        assert (lo - 1e-8 <= x).all()
        assert (x <= hi + 1e-8).all()
    lower, upper = tube.box(1.0)
    assert (upper - lower < 2.5 * np.ptp(motions[-1], 0)).all()


@pytest.mark.parametrize("largest_rest", [1e-3, 0.01, 0.1, 0.5])
def test_an_enclosure_that_ends_early_leaves_no_time_out(largest_rest):
    """Also where it ends in the last step of a sample: the next sample then must not begin."""
    problem = neural_loops.double_pendulum()
    dynamics = LoopEquations(problem.law, problem.plant, np.zeros(0, int), control_dt=problem.control_dt).dynamics()
    ends = []
    for share in (0.1, 0.3, 1.0):
        centre, half = 0.5 * (problem.lower + problem.upper), 0.5 * share * (problem.upper - problem.lower)
        enclosure = reaching._enclosure(dynamics, centre - half, centre + half)
        enclosure.largest_rest = largest_rest
        segments = enclosure.until(1.0, problem.control_dt, 1e-5)
        edges = [(s.start, s.end) for s in segments]
        assert [a for a, _ in edges[1:]] == [b for _, b in edges[:-1]]
        assert enclosure.t == (edges[-1][1] if edges else 0.0)
        ends.append(enclosure.t)
    assert min(ends) < 1.0
