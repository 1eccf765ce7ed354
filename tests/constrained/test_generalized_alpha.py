"""Generalized-alpha on constrained bodies: order, constraints to round-off, damping, redundancy."""

import numpy as np
import pytest
from lib import mueller_terze as cases
from mechanisms import four_bar, swinging
from papers import bruels_cardona_arnold_2012 as top

from geomctrl import inertia
from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.lie import se3
from geomctrl.lie.groups import SE3, SO3xR3
from geomctrl.papers.constrained import integration as generalized_alpha
from geomctrl.papers.constrained.equations import Baumgarte
from geomctrl.papers.constrained.integration import integrate_index1
from geomctrl.papers.constrained.joints import ConstrainedBody
from geomctrl.papers.constrained.maximal import ConstrainedSystem


@pytest.mark.parametrize("group", cases.GROUPS)
def test_second_order_and_constraints_to_round_off(group):
    case = cases.three_bar(cases.GROUPS[group])

    def quantities(y):
        reactions = np.concatenate([*case.system.reactions(0.2, y).values()])
        return case.system.poses(y), case.system.twists(y), reactions

    exact = quantities(integrate_index1(case.system, case.y0, (0.0, 0.2), 1e-3, "MK4", every=10**6).y[-1])
    errors = []
    for h in (4e-3, 2e-3):
        y = generalized_alpha.integrate_index3(case.system, case.y0, (0.0, 0.2), h, every=10).y
        assert case.system.violation(y).max() < 1e-12
        errors.append([np.abs(a - b).max() for a, b in zip(quantities(y[-1]), exact)])
    np.testing.assert_allclose(np.diff(np.log(errors), axis=0) / np.log(0.5), 2.0, atol=0.1)


def test_a_fast_top_has_the_digits_of_the_published_method():
    """Error of the mass centre in exudyn 1.13.6 (lieGroupSimplifiedKinematicRelations, rho = 0.6, 1600 steps)."""
    system, y0 = top.top(top.GROUPS["SO(3)xR3"])
    solution = generalized_alpha.integrate_index3(system, y0, (0.0, 0.8), 0.8 / 1600, rho=0.6, every=10**6)
    y = solution.y[-1]
    assert solution.nfev < 11.0 * 1600
    assert np.abs(system.poses(y)[0, :3, 3] - top.REFERENCE).max() == pytest.approx(1.36259e-3, rel=1e-5)


@pytest.mark.parametrize("group", top.GROUPS)
def test_the_benchmark_of_its_authors(group):
    system, y0 = top.top(top.GROUPS[group])
    errors = []
    for h in (1e-3, 5e-4):
        y = generalized_alpha.integrate_index3(system, y0, (0.0, 0.2), h, every=10**6).y[-1]
        exact = integrate_index1(system, y0, (0.0, 0.2), 5e-4, "MK8", every=10**6).y[-1]
        assert system.violation(y).max() < 1e-11
        errors.append(np.abs(system.poses(y) - system.poses(exact))[0, :3, 3].max())
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize("group", top.GROUPS)
def test_iterations_go_on_to_round_off(group, monkeypatch):
    """More iterations would change nothing, for a top that spins fast: twists of 150 rad/s are right to their last
    digits.
    """
    system, y0 = top.top(top.GROUPS[group])

    def end():
        return generalized_alpha.integrate_index3(system, y0, (0.0, 0.1), 1e-3, every=10**6)

    ours = end()
    monkeypatch.setattr(generalized_alpha, "EPS", 0.0)  # until corrections grow again because of rounding
    more = end()
    assert more.nfev > ours.nfev
    np.testing.assert_allclose(system.poses(ours.y[-1]), system.poses(more.y[-1]), rtol=0, atol=2e-12)
    np.testing.assert_allclose(system.twists(ours.y[-1]), system.twists(more.y[-1]), rtol=0, atol=2e-11)


@pytest.mark.parametrize("rho", [0.6, 0.9])
def test_spatial_twists(rho):
    """Second order, constraints to round-off, and the step's own equations with Mueller 2018 (38), (88)."""
    case = cases.three_bar(SE3())
    exact = integrate_index1(case.system, case.y0, (0.0, 0.2), 1e-3, "MK4", every=10**6).y[-1]
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        run = generalized_alpha.integrate_index3(
            case.system, case.y0, (0.0, 0.2), h, rho=rho, every=10**6, representation="spatial"
        )
        y = run.y[-1]
        assert case.system.violation(y).max() < 1e-12
        errors.append([np.abs(f(y) - f(exact)).max() for f in (case.system.poses, case.system.twists)])
    np.testing.assert_allclose(np.diff(np.log(errors), axis=0) / np.log(0.5), 2.0, atol=0.1)


def test_a_step_with_spatial_twists_is_that_of_its_equations():
    """q1 = exp(h V + h^2 ((1/2 - beta) a + beta a1)) q, V1 = V + h ((1 - gamma) a + gamma a1), in inertial axes."""
    system, y0 = top.top(SE3())
    h, c = 5e-4, generalized_alpha.coefficients(0.9)

    def spatial(y):
        T = system.poses(y)
        W, A = system.twists(y), system.accelerations(0.0, y)
        return T, *((se3.Ad(T) @ X[..., None])[..., 0] for X in (W, A))

    y1 = generalized_alpha.integrate_index3(system, y0, (0.0, h), h, representation="spatial").y[-1]
    T, V, a = spatial(y0)
    T1, V1, _ = spatial(y1)
    a1 = ((V1 - V) / h - (1.0 - c.gamma) * a) / c.gamma
    move = h * V + h * h * ((0.5 - c.beta) * a + c.beta * a1)
    np.testing.assert_allclose(T1, se3.exp(move) @ T, rtol=0, atol=1e-14)
    other = generalized_alpha.integrate_index3(system, y0, (0.0, h), h).y[-1]
    assert np.abs(other - y1).max() > 1e-7  # with body-fixed twists it is another method


def test_spatial_twists_hold_a_floating_pairs_momentum_better():
    case = cases.floating_pair(SE3())
    lost = {}
    for representation in ("body", "spatial"):
        y = generalized_alpha.integrate_index3(
            case.system, case.y0, (0.0, 1.0), 5e-3, every=10**6, representation=representation
        ).y[-1]
        lost[representation] = np.abs(case.system.momentum(y) - case.system.momentum(case.y0)).max()
    assert lost["spatial"] < 0.4 * lost["body"]


def test_a_body_on_a_screw_motion_is_carried_exactly():
    """Its spatial twist is constant if it rotates about a principal axis and moves along it."""
    body = ConstrainedBody("b", inertia.from_com(2.0, (0.0, 0.0, 0.0), np.diag([1.0, 2.0, 2.5])))
    system = ConstrainedSystem([body], [], group=SE3(), gravity=(0.0, 0.0, 0.0))
    V = np.array([0.0, 0.0, 7.0, 0.0, 0.0, 1.5])
    y = generalized_alpha.integrate_index3(
        system, system.state(None, V[None]), (0.0, 1.0), 0.1, representation="spatial"
    ).y[-1]
    np.testing.assert_allclose(system.poses(y)[0], se3.exp(V), rtol=0, atol=1e-14)


def test_redundant_constraints():
    system = four_bar()
    y0 = swinging(system)
    y = generalized_alpha.integrate_index3(system, y0, (0.0, 0.2), 2e-3, every=10**6).y[-1]
    exact = integrate_index1(system, y0, (0.0, 0.2), 1e-3, "MK4", every=10**6).y[-1]
    assert system.violation(y).max() < 1e-11
    np.testing.assert_allclose(system.poses(y), system.poses(exact), rtol=0, atol=1e-4)


def test_rho_one_conserves_energy_better_than_rho_zero():
    case = cases.floating_pair(SE3())
    drift = []
    for rho in (1.0, 0.0):
        y = generalized_alpha.integrate_index3(case.system, case.y0, (0.0, 1.0), 5e-3, rho=rho, every=10**6).y[-1]
        drift.append(abs(case.system.energy(y) - case.system.energy(case.y0)))
    assert drift[0] < 0.5 * drift[1]


def test_rho_one_on_curved_constraints_says_what_to_do():
    system, y0 = top.top(top.GROUPS["SO(3)xR3"])
    with pytest.raises(IntegrationError, match=r"no convergence .*: halve h, or take rho < 1") as caught:
        generalized_alpha.integrate_index3(system, y0, (0.0, 0.8), 1e-3, rho=1.0, every=10**6)
    assert caught.value.solution.t[-1] > 0.1


def test_a_wrench_that_fails_says_when_and_keeps_the_run_so_far():
    def wrench(t, T, V):
        return np.full((1, 6), np.nan if t > 0.45 else 0.0)

    system = ConstrainedSystem([ConstrainedBody("a", inertia.from_com(1.0, (0, 0, 0), np.eye(3)))], [], wrench=wrench)
    with pytest.raises(IntegrationError, match=r"wrench\(t, poses, twists\): expected finite .* at t = 0\.5") as caught:
        generalized_alpha.integrate_index3(system, system.state(), (0.0, 1.0), 0.1)
    np.testing.assert_allclose(caught.value.solution.t, [0.0, 0.1, 0.2, 0.3, 0.4])
    assert caught.value.solution.n_steps == 4


def test_bad_input():
    case = cases.heavy_top(SE3())
    with pytest.raises(ArgumentError, match="system: expected a ConstrainedSystem, got 3"):
        generalized_alpha.integrate_index3(3, case.y0, (0.0, 1.0), 0.1)  # pyright: ignore[reportArgumentType]
    off = case.y0.copy()
    off[3] += 0.1
    with pytest.raises(ArgumentError, match=f"y0: violates constraint '{case.system.names[0]}' by 0.1 "):
        generalized_alpha.integrate_index3(case.system, off, (0.0, 1.0), 0.1)
    with pytest.raises(ArgumentError, match="rho: expected a number in"):
        generalized_alpha.integrate_index3(case.system, case.y0, (0.0, 1.0), 0.1, rho=2.0)
    with pytest.raises(ArgumentError, match="representation: expected 'body' or 'spatial', got 'hybrid'"):
        generalized_alpha.integrate_index3(
            case.system,
            case.y0,
            (0.0, 1.0),
            0.1,
            representation="hybrid",  # pyright: ignore[reportArgumentType]
        )
    mixed = cases.heavy_top(SO3xR3())
    with pytest.raises(
        ArgumentError, match=r"representation: 'spatial' expects bodies on SE\(3\), got '.*' on SO\(3\)"
    ):
        generalized_alpha.integrate_index3(mixed.system, mixed.y0, (0.0, 1.0), 0.1, representation="spatial")
    with pytest.raises(ArgumentError, match="h: expected a positive step"):
        generalized_alpha.integrate_index3(case.system, case.y0, (0.0, 1.0), -0.1)
    with pytest.raises(ArgumentError, match="every: expected"):
        generalized_alpha.integrate_index3(case.system, case.y0, (0.0, 1.0), 0.1, every=0)
    stabilised = cases.heavy_top(SE3(), stabilisation=Baumgarte(1.0, 1.0))
    with pytest.raises(ArgumentError, match="stabilisation=None"):
        generalized_alpha.integrate_index3(stabilised.system, case.y0, (0.0, 1.0), 0.1)
    with pytest.raises(IntegrationError, match=r"no convergence .* at t = 0: halve h") as caught:
        generalized_alpha.integrate_index3(case.system, case.y0, (0.0, 1.0), 0.2)
    assert len(caught.value.solution.t) == 1
