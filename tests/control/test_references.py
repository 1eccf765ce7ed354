"""References: velocity and acceleration are consistent with the configuration, also on Lie groups."""

import numpy as np
import pytest
from simulation_options import both_ways

from geomctrl import controllers, models, testing
from geomctrl.control.references import Quintic, Sinusoids, Spline
from geomctrl.errors import ArgumentError

ARM = models.panda()
TREE = testing.random_robot(
    np.random.default_rng(1),
    ["free", "spherical", "planar", "cylindrical", "helical", "prismatic"],
    [-1, 0, 0, 2, 1, 4],
)
SIXTH = np.array([45.0, -9.0, 1.0]) / 60.0


def references(robot):
    rng = np.random.default_rng(0)
    q = [robot.random_configuration(rng) for _ in range(5)]
    amplitude, frequency = rng.normal(size=(2, robot.nv)), rng.uniform(0.1, 0.6, (2, robot.nv))
    return {
        "quintic": Quintic(robot, q[0], q[1], 2.0, t0=0.1),
        "sinusoids": Sinusoids(robot, q[0], amplitude, frequency, 0.3),
        "ramped": Sinusoids(robot, q[0], amplitude, frequency, 0.3, start_at_rest=1.5),
        "spline": Spline(robot, [0.0, 0.7, 1.1, 2.0, 3.0], q),
    }


@pytest.mark.parametrize("robot", [ARM, TREE], ids=["arm", "tree"])
@pytest.mark.parametrize("name", ["quintic", "sinusoids", "ramped", "spline"])
def test_velocity_and_acceleration_are_derivatives(robot, name):
    """q^-1 q' = v and v' = a, by sixth-order differences in the exponential coordinates at q(t)."""
    reference, h = references(robot)[name], 2e-3
    for t in (-0.4, 0.35, 0.9, 1.4, 1.77):
        q, v, a = reference(t)
        ahead = [reference(t + k * h) for k in (1, 2, 3)]
        behind = [reference(t - k * h) for k in (1, 2, 3)]
        dq = SIXTH @ [robot.difference(q, x.q) - robot.difference(q, y.q) for x, y in zip(ahead, behind)] / h
        dv = SIXTH @ [x.v - y.v for x, y in zip(ahead, behind)] / h
        np.testing.assert_allclose(v, dq, atol=1e-9 * (1 + np.abs(v).max()))
        np.testing.assert_allclose(a, dv, atol=1e-8 * (1 + np.abs(a).max()))


@pytest.mark.parametrize("robot", [ARM, TREE], ids=["arm", "tree"])
def test_end_points_and_rest(robot):
    rng = np.random.default_rng(3)
    q = [robot.random_configuration(rng) for _ in range(4)]
    times = [0.0, 0.5, 1.5, 2.0]
    spline = Spline(robot, times, q)
    for t, x in zip(times, q):
        np.testing.assert_allclose(robot.difference(x, spline(t).q), 0.0, atol=1e-13)
    quintic = Quintic(robot, q[0], q[1], 2.0, t0=1.0)
    for reference, t, x in ((quintic, 0.0, q[0]), (quintic, 4.0, q[1]), (spline, -1.0, q[0]), (spline, 9.0, q[3])):
        desired = reference(t)
        np.testing.assert_allclose(robot.difference(x, desired.q), 0.0, atol=1e-13)
        assert not desired.v.any()
        assert not desired.a.any()
    for t in (0.0, 2.0):  # at rest at the ends, and not only after them
        inside = spline(t + (1e-9 if t == 0.0 else -1e-9))
        assert np.abs(inside.v).max() < 1e-6
        assert np.abs(inside.a).max() < 1e-3
    ramped = Sinusoids(robot, q[0], 0.5, 0.3, 1.0, start_at_rest=1.0)
    np.testing.assert_allclose(robot.difference(q[0], ramped(0.0).q), 0.0, atol=1e-15)
    assert np.abs(ramped(0.0).v).max() == 0.0


def test_spline_is_the_ordinary_spline_on_rn():
    """The reference result is scipy's own quintic interpolant through the waypoints, not a cumulative product."""
    from scipy.interpolate import make_interp_spline

    rng = np.random.default_rng(0)
    t, q = np.array([0.0, 0.4, 1.0, 1.3, 2.0]), rng.normal(size=(5, 7))
    rest = [(1, np.zeros(7)), (2, np.zeros(7))]
    oracle, spline = make_interp_spline(t, q, k=5, bc_type=(rest, rest)), Spline(ARM, t, q)
    for x in (0.1, 0.77, 1.9):
        for k, part in enumerate(spline(x)):
            np.testing.assert_allclose(part, oracle(x, nu=k), atol=1e-10 * 10**k)


def test_quintic_closed_form():
    q0, q1 = np.zeros(7), np.arange(1.0, 8.0)
    quintic = Quintic(ARM, q0, q1, 2.0, t0=1.0)
    for t in (1.5, 2.0, 2.8):
        u = (t - 1.0) / 2.0
        expected = np.polyval([6, -15, 10, 0, 0, 0], u), np.polyval([30, -60, 30, 0, 0], u) / 2.0
        for part, s in zip(quintic(t), (*expected, np.polyval([120, -180, 60, 0], u) / 4.0)):
            np.testing.assert_allclose(part, s * q1, atol=1e-13)
    np.testing.assert_allclose(quintic(2.0).v, 15.0 / 8.0 * q1 / 2.0)  # the time of the peak


def test_sinusoids_closed_form():
    A, f, p = np.array([[0.3] * 7, [0.1] * 7]), np.array([[0.2], [0.5]]), 0.7
    q, v, a = Sinusoids(ARM, np.ones(7), A, f, p)(1.3)
    w, angle = 2 * np.pi * f, 2 * np.pi * f * 1.3 + p
    np.testing.assert_allclose(q, 1 + (A * np.sin(angle)).sum(0), rtol=1e-14)
    np.testing.assert_allclose(v, (A * w * np.cos(angle)).sum(0), rtol=1e-13)
    np.testing.assert_allclose(a, -(A * w**2 * np.sin(angle)).sum(0), rtol=1e-13)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quintic(ARM, np.zeros(7), np.ones(6), 1.0), r"q1: expected shape \(..., 7\), got \(6,\)"),
        (
            lambda: Quintic(ARM, np.zeros(7), np.ones(7), 0.0),
            "duration: expected a positive number of seconds, got 0.0",
        ),
        (lambda: Quintic(ARM, np.zeros(7), np.ones(7), "a"), "duration: expected a positive number of .*, got 'a'"),
        (lambda: Quintic(ARM, np.zeros(7), np.ones(7), 1.0, t0=np.nan), "t0: expected a finite number, got nan"),
        (lambda: Sinusoids(ARM, np.zeros(7), "a", 1.0), "amplitude: expected real numbers of .*, got 'a'"),
        (lambda: Sinusoids(ARM, np.zeros(7), 1.0, 1.0, start_at_rest="a"), "start_at_rest: expected seconds >= 0"),
        (lambda: Spline(ARM, "ab", np.zeros((2, 7))), "times: expected real numbers of .*, got 'ab'"),
        (lambda: Spline(ARM, [0.0, np.nan], np.zeros((2, 7))), "times: expected finite numbers, got nan"),
        (lambda: Spline(ARM, [0.0, 1.0], "a"), "waypoints: expected real numbers of .*, got 'a'"),
        (lambda: Sinusoids(ARM, np.zeros(7), np.ones(5), 1.0), r"amplitude: .*\(7,\) or \(harmonics, 7\), got \(5,\)"),
        (
            lambda: Sinusoids(ARM, np.zeros(7), np.ones((2, 7)), np.ones((3, 7))),
            "expected 3 harmonics like the others, got 2",
        ),
        (lambda: Sinusoids(ARM, np.zeros(7), 1.0, np.nan), "frequency: expected finite numbers"),
        (lambda: Sinusoids(ARM, np.zeros(7), 1.0, 1.0, start_at_rest=-1.0), "start_at_rest: expected seconds >= 0"),
        (lambda: Spline(ARM, [0.0, 1.0], np.zeros((3, 7))), "times: expected 3 increasing times"),
        (lambda: Spline(ARM, [0.0, 1.0, 1.0], np.zeros((3, 7))), "times: expected 3 increasing times"),
        (lambda: Spline(ARM, [0.0], np.zeros((1, 7))), "waypoints: expected shape"),
        (lambda: Quintic(TREE, np.zeros(TREE.nq), TREE.neutral(), 1.0), "hold no rotation"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize("name", ["quintic", "sinusoids", "ramped"])
def test_a_time_that_is_none_is_refused(name):
    with pytest.raises(ArgumentError, match="t: expected a finite time, got nan"):
        references(ARM)[name](np.nan)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["quintic", "sinusoids", "spline"])
def test_motions_on_groups_trace_from_their_first_instant(name):
    """At t = 0 coefficients of the exponential are 0/0; kernels avoid this."""
    robot = models.three_spheres()
    motion = (references(robot) | {"sinusoids": Sinusoids(robot, robot.neutral(), 0.3, 0.4)})[name]
    law = controllers.ComputedTorque(robot, motion, kp=25.0, kd=10.0)
    q0, v0, _ = motion(0.0)
    compiled, python = both_ways(robot, law, q0, v0, 0.02, 1e-3, monitors=None)
    np.testing.assert_allclose(compiled.q, python.q, rtol=0.0, atol=1e-12)
