"""Proofs that V falls from each sample to the next while commands are held."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import geomctrl as gc
from geomctrl import models, references, testing
from geomctrl.control.contracts import Command
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.testing.tubes.held import _SampledLoop
from geomctrl.tracing.untraceable import UntraceableError

MASS = gc.Body(
    "mass", None, gc.Joint.prismatic([1.0, 0.0, 0.0]), np.eye(4), inertia.from_com(1.0, np.zeros(3), np.eye(3))
)
SLIDER = gc.Robot.build([MASS], gravity=(0.0, 0.0, 0.0))
A, B, K = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]]), np.array([[4.0, 4.0]])
P = np.array([[5.0, 1.0], [1.0, 1.0]])  # of V = x . P x


class Linear:
    q_d = np.zeros(1)

    def __call__(self, t, q, v, z):
        return Command(-4.0 * q - 4.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        a = -4.0 * q - 4.0 * v
        value = 5.0 * q.dot(q) + 2.0 * q.dot(v) + v.dot(v)
        return gc.Lyapunov(value, 10.0 * q.dot(v) + 2.0 * v.dot(v) + 2.0 * q.dot(a) + 2.0 * v.dot(a))


def sampled_rate(dt):
    """The largest eigenvalue of E^T P E - P for the exactly sampled loop x -> E x."""
    M = expm(np.block([[A, B], [np.zeros((1, 3))]]) * dt)
    E = M[:2, :2] - M[:2, 2:] @ K
    return float(np.linalg.eigvalsh(E.T @ P @ E - P)[-1])


def largest_exact_dt():
    low, high = 1e-3, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sampled_rate(middle) < 0.0 else (low, middle)
    return low


@pytest.fixture(scope="module")
def arm():
    return models.two_link()


@pytest.fixture(scope="module")
def law(arm):
    return gc.controllers.Passivity(arm, references.hold(arm, [0.5, 1.0]), Lambda=5.0, K=20.0, strict=True)


def test_a_linear_loop_has_the_largest_period_of_its_matrix():
    exact = largest_exact_dt()
    options = {"outside": (0.3, 0.3), "budget": 600}
    assert testing.certify_sampled(Linear(), SLIDER, (1.0, 1.0), 0.8 * exact, **options)
    false = testing.certify_sampled(Linear(), SLIDER, (1.0, 1.0), 1.3 * exact, **options)
    assert false.status == "refuted"
    E = expm(np.block([[A, B], [np.zeros((1, 3))]]) * 1.3 * exact)
    x = false.counterexample
    later = (E[:2, :2] - E[:2, 2:] @ K) @ x
    assert later @ P @ later >= x @ P @ x
    result = testing.largest_certified_control_dt(Linear(), SLIDER, (1.0, 1.0), shortest=0.01, longest=2.0, **options)
    assert 0.7 * exact < result < exact


def test_the_bound_outside_the_ball_holds_at_random_points(arm, law):
    """c + b.e + e.A e is below the bound at each point of the box outside the ball, and the bound is nearly reached."""
    problem, rng, ratios = _SampledLoop(law, arm, (0.4, 0.8), 0.1, 1e-3), np.random.default_rng(0), []
    for _ in range(20):
        root, b = rng.normal(size=(4, 4)), rng.normal(size=4) * rng.choice([0.0, 1.0])
        A, c, centre = -root @ root.T, rng.normal(), rng.uniform(-0.1, 0.1, 4)
        half = rng.uniform(0.05, 0.2, 4)
        bound = problem._upper(c, b, A, centre, half)
        e = rng.uniform(-1.0, 1.0, (20_000, 4))
        values = c + e @ b + np.einsum("ni,ij,nj->n", e, A, e)
        outside = (((centre + half * e) / problem.ball) ** 2).sum(1) >= 1.0
        if outside.any():
            assert values[outside].max() <= bound
            ratios.append((bound - values[outside].max()) / np.abs(A).sum())
    assert len(ratios) > 10
    assert np.median(ratios) < 0.1


def test_the_change_of_v_is_that_of_motions(arm, law):
    problem = _SampledLoop(law, arm, (0.4, 0.8), 0.01, 1e-3)
    rng = np.random.default_rng(0)
    for dt in (1e-3, 2e-2):
        for _ in range(6):
            centre, half = rng.uniform(-0.3, 0.3, 4), 0.02 * rng.uniform(size=4)
            (low, high), _ = problem._change(centre - half, centre + half, dt)
            for _ in range(4):
                x = problem.centre + centre + half * rng.choice([-1.0, 1.0], 4)
                tau = law(0.0, x[:2], x[2:], None).tau
                y = solve_ivp(
                    lambda t, y, tau=tau: np.concatenate([y[2:], arm.forward_dynamics(y[:2], y[2:], tau)]),
                    (0.0, dt), x, "DOP853", rtol=1e-12, atol=1e-13,
                ).y[:, -1]  # fmt: skip
                before, after = (law.lyapunov(0.0, s[:2], s[2:], None, gc.Plant(arm))[0] for s in (x, y))
                assert low - 1e-12 <= after - before <= high + 1e-12
            assert high - low < (0.25 if dt == 1e-3 else 10.0)


def test_the_two_link_falls_at_a_kilohertz(arm, law):
    certificate = testing.certify_sampled(law, arm, (0.1, 0.5), 1e-3, outside=(0.08, 0.4))
    assert certificate
    assert "proved" in str(certificate)
    assert certificate.share_left == 0.0


def test_a_side_of_which_the_change_of_v_is_a_square_is_divided(arm):
    """Linear coefficients of q[1] vanish in boxes that are symmetric about 0."""
    law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)
    assert testing.certify_sampled(law, arm, (0.05, 0.2), 0.001, outside=(0.04, 0.16), budget=1000)


def test_a_budget_that_ends_leaves_the_claim_undecided(arm, law):
    certificate = testing.certify_sampled(law, arm, (0.5, 1.0), 1e-3, outside=(0.01, 0.05), budget=5)
    assert certificate.status == "undecided"
    assert 0.0 < certificate.share_left <= 1.0
    assert "estimated" in str(certificate)


def test_a_law_that_feeds_energy_is_refuted(arm):
    class Wrong(Linear):
        def __call__(self, t, q, v, z):
            return Command(-4.0 * q + 4.0 * v)

    false = testing.certify_sampled(Wrong(), SLIDER, (1.0, 1.0), 0.01, outside=(0.1, 0.1))
    assert false.status == "refuted"


def test_bad_arguments_are_named(arm, law):
    references.Sinusoids(arm, [0.5, 1.0], 0.1, 1.0)
    good = {"controller": law, "plant": arm, "box": (0.1, 0.5), "control_dt": 1e-3, "outside": (0.05, 0.25)}
    for change, match in (
        ({"control_dt": 0.0}, "control_dt"),
        ({"outside": 10.0}, "outside"),
        ({"box": 3}, "box"),
        ({"box": testing.Box(0.1, 0.5, times=(0.0, 1.0))}, "times"),
        ({"controller": lambda t, q, v, z: Command(np.zeros(2))}, "controller"),
        (
            {
                "controller": gc.controllers.Passivity(
                    arm, references.Sinusoids(arm, [0.5, 1.0], 0.1, 1.0), Lambda=5.0, K=20.0
                )
            },
            "reference",
        ),
    ):
        with pytest.raises((ArgumentError, UntraceableError), match=match):
            testing.certify_sampled(**good | change)
    with pytest.raises(ArgumentError, match="shortest"):
        testing.largest_certified_control_dt(law, arm, (0.1, 0.5), outside=(0.05, 0.25), shortest=1.0, longest=0.1)
