"""`testing.certify_barrier` against matrices, a closed form of braking, and motions in Python."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import solve_continuous_lyapunov
from testing.linear_loops import SLIDER, largest_value

import geomctrl as gc
from geomctrl import models, testing
from geomctrl.errors import ArgumentError
from geomctrl.testing.tubes.barriers import BarrierProblem
from geomctrl.tracing.untraceable import UntraceableError

MASS = float(SLIDER.mass_matrix(np.zeros(1))[0, 0])


def linear_law(t, q, v, z):
    return gc.control.Command(MASS * (-4.0 * q - 2.0 * v))


A = np.array([[0.0, 1.0], [-4.0, -2.0]])


def ellipse(P):
    def h(t, q, v, z, plant):
        return 1.0 - (P[0, 0] * q[0] ** 2 + 2.0 * P[0, 1] * q[0] * v[0] + P[1, 1] * v[0] ** 2)

    return h


def test_ellipses_of_a_linear_loop_are_invariant_where_a_matrix_is_negative():
    """h = 1 - x.P x has h' > 0 on h = 0 if and only if A'P + P A < 0."""
    rng, answers = np.random.default_rng(0), []
    box = (np.full(2, -3.0), np.full(2, 3.0))
    for trial in range(20):
        root = rng.normal(size=(2, 2)) + np.diag([2.0, 1.0])
        P = root @ root.T + 0.2 * np.eye(2)
        if trial % 2:
            P = solve_continuous_lyapunov(A.T, -P)
        largest = np.linalg.eigvalsh(A.T @ P + P @ A)[-1]
        result = testing.certify_barrier(ellipse(P), linear_law, SLIDER, box, budget=2000)
        answers.append(result.status)
        assert result.status != ("proved" if largest >= 0.0 else "refuted")
        if result.status == "proved":
            widths = np.sqrt(np.diag(np.linalg.inv(P)))
            assert result.invariant == (widths < 3.0).all()
        if result.status == "refuted":
            x = result.counterexample
            assert abs(x @ P @ x - 1.0) < 1e-6
            assert x @ (A.T @ P + P @ A) @ x > 0.0
    assert answers.count("proved") >= 8
    assert answers.count("refuted") >= 6
    assert answers.count("undecided") <= 3


def test_a_part_with_a_falling_zero_of_h_is_not_safe():
    rng, safe = np.random.default_rng(1), 0
    for _ in range(6):
        root = rng.normal(size=(2, 2)) + np.diag([2.0, 1.0])
        P = root @ root.T + 0.2 * np.eye(2)
        problem = BarrierProblem(ellipse(P), linear_law, SLIDER, (np.full(2, -3.0), np.full(2, 3.0)), 0.0)
        angles = rng.uniform(0.0, 2.0 * np.pi, 200)
        zeros = np.linalg.solve(np.linalg.cholesky(P).T, [np.cos(angles), np.sin(angles)]).T  # x.P x = 1
        for x in zeros:
            half = 0.05 * rng.uniform(0.2, 1.0, 2)
            lower = x - 2.0 * half * rng.uniform(size=2)
            layout, h, rate = problem.values(lower, lower + 2.0 * half)
            if problem._is_safe(layout, h, rate):
                safe += 1
                assert x @ (A.T @ P + P @ A) @ x < 0.0
    assert safe > 300


def test_a_violation_is_a_zero_of_h_with_a_falling_h():
    for P, violated in ((np.eye(2), True), (solve_continuous_lyapunov(A.T, -np.eye(2)), False)):
        x = np.array([0.8, -0.6])
        x = x / np.sqrt(x @ P @ x)
        assert (x @ (A.T @ P + P @ A) @ x > 0.0) == violated
        problem = BarrierProblem(ellipse(P), linear_law, SLIDER, (np.full(2, -3.0), np.full(2, 3.0)), 0.0)
        assert problem._is_violated(x - 1e-6, x + 1e-6) == violated
        assert not problem._is_violated(0.9 * x - 1e-6, 0.9 * x + 1e-6)


def braking(force, deceleration):
    """(Law that brakes with at most `force` near h = 0, h): h = 1 - q - v^2 / (2 a) is the distance to a wall left."""

    def law(t, q, v, z):
        h = 1.0 - q[0] - v[0] ** 2 / (2.0 * deceleration)
        return gc.control.Command(np.array([np.clip(20.0 * h - force, -force, force)]))

    def h(t, q, v, z, plant):
        return 1.0 - q[0] - v[0] ** 2 / (2.0 * deceleration)

    return law, h


BRAKING_BOX = (np.array([-1.0, 0.1]), np.array([1.0, 2.0]))


@pytest.mark.parametrize(("ratio", "status"), [(1.05, "proved"), (0.95, "refuted")])
def test_a_brake_with_a_limited_force_holds_the_distance_that_it_can(ratio, status):
    """On h = 0: h' = v (F / (m a) - 1)."""
    law, h = braking(ratio * 3.0 * MASS, 3.0)
    result = testing.certify_barrier(h, law, SLIDER, BRAKING_BOX)
    assert result.status == status
    assert not result.invariant
    if status == "refuted":
        q, v = result.counterexample
        assert abs(1.0 - q - v**2 / 6.0) < 1e-6


@pytest.mark.parametrize(("error", "status"), [(0.15, "proved"), (0.25, "refuted")])
def test_a_heavier_body_brakes_less(error, status):
    """With F = 1.2 m a, a mass of 1.2 m is the limit."""
    law, h = braking(1.2 * 3.0 * MASS, 3.0)
    result = testing.certify_barrier(h, law, SLIDER, BRAKING_BOX, parameters=error)
    assert result.status == status
    if status == "refuted":
        assert result.parameters[0, 0] > 1.2 * MASS


@pytest.mark.slow
def test_motions_from_the_boundary_stay_in_a_proved_set():
    arm = models.two_link()
    law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)

    def h(t, q, v, z, plant):
        return 0.5 - law.lyapunov(t, q, v, z, plant)[0]

    half = np.array([0.2, 0.3, 1.6, 4.5])
    result = testing.certify_barrier(h, law, arm, (-half, half))
    assert result
    assert result.invariant
    assert "as long as they exist" in str(result)

    def rates(t, x):
        return np.concatenate([x[2:], arm.forward_dynamics(x[:2], x[2:], law(t, x[:2], x[2:], None).tau)])

    for x in np.random.default_rng(0).normal(size=(3, 4)) * half:
        low, high = 0.0, 10.0  # the boundary lies on the ray
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if h(0.0, *np.split(middle * x, 2), None, gc.Plant(arm)) > 0.0 else (low, middle)
        y = solve_ivp(rates, (0.0, 0.5), low * x, "DOP853", np.linspace(0.0, 0.5, 11), rtol=1e-9, atol=1e-11).y.T
        assert min(h(0.0, s[:2], s[2:], None, gc.Plant(arm)) for s in y) > -1e-9
        assert (np.abs(y) < half).all()


def test_a_budget_that_ends_and_an_undefined_barrier_are_undecided():
    law, h = braking(1.05 * 3.0 * MASS, 3.0)
    assert testing.certify_barrier(h, law, SLIDER, BRAKING_BOX, budget=3).status == "undecided"

    def undefined(t, q, v, z, plant):
        return np.sqrt(q[0] + 0.5)

    result = testing.certify_barrier(undefined, law, SLIDER, BRAKING_BOX, budget=500)
    assert result.status == "undecided"
    assert 0.0 < result.share_left <= 1.0
    assert "estimated" in str(result)


def test_what_no_barrier_can_be_is_named():
    def jumping(t, q, v, z, plant):
        return np.where(q[0] > 0.0, 1.0, -1.0)

    def timed(t, q, v, z, plant):
        return 1.0 + t - q[0]

    box = (np.full(2, -1.0), np.full(2, 1.0))
    with pytest.raises(UntraceableError, match="continuous"):
        testing.certify_barrier(jumping, linear_law, SLIDER, box)
    with pytest.raises(UntraceableError, match="time"):
        testing.certify_barrier(timed, linear_law, SLIDER, box)
    for bad in ((np.zeros(2), np.zeros(2)), np.zeros(2), (np.zeros(3), np.ones(3))):
        with pytest.raises(ArgumentError, match="box"):
            testing.certify_barrier(ellipse(np.eye(2)), linear_law, SLIDER, bad)
    with pytest.raises(ArgumentError, match="barrier"):
        testing.certify_barrier("V", linear_law, SLIDER, box)


def test_the_scale_of_h_does_not_matter():
    P = solve_continuous_lyapunov(A.T, -np.eye(2))
    h, box = ellipse(P), (np.full(2, -3.0), np.full(2, 3.0))
    for scale in (1e-300, 1e300):
        assert testing.certify_barrier(lambda t, q, v, z, p, k=scale: k * h(t, q, v, z, p), linear_law, SLIDER, box)


@pytest.mark.parametrize("value", ["far", None, np.ones(2)])
def test_a_barrier_that_is_no_number_is_refused(value):
    with pytest.raises(ArgumentError, match=r"barrier: .*number"):
        testing.certify_barrier(lambda t, q, v, z, plant: value, linear_law, SLIDER, (-np.ones(2), np.ones(2)))


@pytest.mark.slow
def test_held_commands_keep_an_ellipse_only_where_the_exact_motion_does():
    """The motion during a sample is a parabola. Long samples leave the ellipse, and are never proved."""
    P = solve_continuous_lyapunov(A.T, -np.eye(2))
    P, box = P / np.linalg.eigvalsh(P)[-1], (np.full(2, -3.0), np.full(2, 3.0))
    statuses = {}
    for dt in (0.02, 0.1, 0.4, 0.6, 0.8, 1.0):
        result = testing.certify_barrier(ellipse(P), linear_law, SLIDER, box, control_dt=dt, budget=1500)
        statuses[dt] = result.status
        assert result.status != ("proved" if largest_value(P, dt) > 1.0 + 1e-9 else "refuted"), dt
    assert statuses[0.02] == statuses[0.1] == "proved"
    assert largest_value(P, 1.0) > 1.0
    assert statuses[1.0] != "proved"


def test_an_input_that_jumps_is_covered_for_all_its_values_only():
    """h = 1 - q^2 - (v / 2)^2 under tau = m (-4 q - 4 v + z): z pushes the state out if it is large."""

    class Pushed:
        def start(self):
            return np.zeros(1)

        def __call__(self, t, q, v, z):
            return gc.control.Command(MASS * (-4.0 * q - 4.0 * v + z), np.zeros(1))

    P = solve_continuous_lyapunov(np.array([[0.0, 1.0], [-4.0, -4.0]]).T, -np.eye(2))
    smallest = 0.5 / np.linalg.norm(np.linalg.cholesky(P).T[:, 1] @ np.linalg.inv(np.linalg.cholesky(P).T))
    for size, status in ((0.1, "proved"), (20.0 * smallest, "refuted")):
        box = np.array([3.0, 3.0, size])
        result = testing.certify_barrier(ellipse(P), Pushed(), SLIDER, (-box, box), control_dt=0.01, budget=10_000)
        assert result.status == status
        assert result.invariant == (status == "proved" and bool((np.sqrt(np.diag(np.linalg.inv(P))) < 3.0).all()))


def test_a_law_whose_state_moves_is_refused_with_held_commands():
    class Integral:
        def start(self):
            return np.zeros(1)

        def __call__(self, t, q, v, z):
            return gc.control.Command(MASS * (-4.0 * q - 2.0 * v - z), q)

    box = np.full(3, 1.0)
    with pytest.raises(ArgumentError, match="rate zero"):
        testing.certify_barrier(ellipse(np.eye(2)), Integral(), SLIDER, (-box, box), control_dt=0.01)


def test_a_state_inside_the_set_that_leaves_it_within_one_sample_is_not_missed():
    """Near h = 0 the input is small, so that h' > 0 there; after 0.1 s a state with h = 1 is outside."""
    P = solve_continuous_lyapunov(A.T, -np.eye(2))
    inside = ellipse(P / np.linalg.eigvalsh(P)[-1])

    class Pushed:
        def start(self):
            return np.zeros(1)

        def __call__(self, t, q, v, z):
            return gc.control.Command(MASS * (-4.0 * q - 2.0 * v + 30.0 * inside(t, q, v, z, None) * z), np.zeros(1))

    box = np.array([1.1, 2.4, 1.0])
    held = testing.certify_barrier(inside, Pushed(), SLIDER, (-box, box), control_dt=0.005)
    assert held
    assert held.invariant
    moved = inside(0.0, np.array([0.5 * 0.1**2 * 30.0]), np.array([0.1 * 30.0]), None, None)  # from rest at 0, z = 1
    assert moved < 0.0
    assert not testing.certify_barrier(inside, Pushed(), SLIDER, (-box, box), control_dt=0.1, budget=1000)


def test_a_face_that_the_set_crosses_beside_its_middle_is_not_a_boundary(tmp_path):
    """A tilted ellipse, in a box of 0.9 of its half widths: the middles of all faces are outside of it.

    The proof that h grows is saved and confirmed without the undecided claim about the boundary.
    """
    P = np.array([[1.25, 0.25], [0.25, 0.25]])
    widths = np.sqrt(np.diag(np.linalg.inv(P)))
    assert (np.diag(P) * (0.9 * widths) ** 2 > 1.0).all()

    def law(t, q, v, z):
        return gc.control.Command(MASS * (-2.0 * q - 3.0 * v))

    for factor, invariant in ((0.9, False), (1.05, True)):
        box = -factor * widths, factor * widths
        result = testing.certify_barrier(ellipse(P), law, SLIDER, box, budget=1000)
        assert result
        assert result.invariant == invariant
        assert [claim.status for claim in result.claims] == ["proved", "proved" if invariant else "undecided"]
        path = result.save(tmp_path / "ellipse.npz")
        with np.load(path) as file:
            assert file["claims"] == (5 if invariant else 1)  # four faces
        assert testing.recheck(path)


def test_parts_that_are_too_small_to_divide_are_left(monkeypatch):
    """Without damping h' = 0 for h = 1 - 4 q^2 - v^2, so that no part of the ellipse is ever decided."""
    monkeypatch.setattr("geomctrl.testing.tubes.barrier_claims.MIN_SIDE_RATIO", 0.2)

    def law(t, q, v, z):
        return gc.control.Command(-4.0 * MASS * q)

    box = (np.full(2, -1.3), np.full(2, 1.3))
    result = testing.certify_barrier(ellipse(np.diag([4.0, 1.0])), law, SLIDER, box)
    assert result.status == "undecided"
    assert result.boxes < 1000
    assert 0.0 < result.share_left < 1.0
