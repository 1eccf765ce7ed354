"""Laws that learn from filtered torques: their regression and their proofs."""

import numpy as np
import pytest
from simulation_options import run_both_ways

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids, hold
from geomctrl.errors import ArgumentError

ARM = models.two_link()
MOTION = Sinusoids(ARM, np.array([0.3, 0.5]), [0.5, 0.7], [0.7, 1.1], start_at_rest=0.5)
REST = hold(ARM, np.array([0.3, 0.5]))
LOADED = ARM.with_payload(0.4, (0.05, 0, 0), 1e-3 * np.eye(3))
LAWS = {
    "composite": (controllers.Composite, {}),
    "concurrent learning": (controllers.ConcurrentLearning, {"adapt": "base"}),
    "drem": (controllers.DREM, {}),
}


def driven(robot):
    return robot.with_armature([0.05, 0.02])


@pytest.mark.parametrize(
    ("plant", "options"),
    [
        (gc.Plant(driven(LOADED)), {}),
        pytest.param(gc.Plant(driven(LOADED)), {"adapt": "base"}, marks=pytest.mark.slow),
        (gc.Plant(driven(LOADED)), {"adapt": ["link2"]}),
        (gc.Plant(LOADED, gc.Friction(0.2, 0.3, 0.1)), {"friction": gc.Friction(0.0, 0.0, 0.1)}),
    ],
    ids=["links", "base", "a load", "friction"],
)
def test_filtered_torques_are_linear_in_the_true_parameters(plant, options):
    """W p_true = y along a run from rest, to the integrator's accuracy; if it does not start at rest the difference
    decays.
    """
    model = driven(ARM) if "friction" not in options else ARM
    law = controllers.Composite(model, MOTION, **options)
    run = gc.simulate(plant, law, *MOTION(0.0)[:2], 0.3, 1e-3, monitors=None)
    for k in (100, 200, 300):
        W, delta = law._unknown(run.q[k], run.v[k], run.z[k], plant)
        assert np.abs(delta).max() < 1e-7 * np.abs(run.tau).max()
        assert np.abs(W).max() > 0.1
    run = gc.simulate(plant, law, MOTION(0.0).q, np.ones(2), 0.2, 1e-3, monitors=None)
    first, last = (law._unknown(run.q[k], run.v[k], run.z[k], plant)[1] for k in (0, 200))
    np.testing.assert_allclose(first, law.bandwidth * plant.robot.mass_matrix(run.q[0]) @ np.ones(2), rtol=1e-10)
    np.testing.assert_allclose(last, first * np.exp(-law.bandwidth * 0.2), rtol=1e-6)


@pytest.mark.quick(2)
@pytest.mark.parametrize(("kind", "options"), LAWS.values(), ids=LAWS)
def test_the_promise_holds(kind, options):
    law = kind(ARM, MOTION, **options)
    testing.assert_lyapunov(
        law, LOADED, states=8, search=600, runs=1, region=testing.Region(equilibrium=settled(law, LOADED))
    )


def settled(law, robot):
    """The state in which V vanishes: on the motion, with filters in their steady state for a rest there."""
    plant = gc.Plant(robot)
    return lambda t: (*MOTION(t)[:2], law.settled(t, plant))


@pytest.mark.parametrize(("kind", "options"), LAWS.values(), ids=LAWS)
def test_it_rests_where_v_vanishes(kind, options):
    """At a set point the settled state, with the true parameters, is an equilibrium of the whole loop."""
    law, plant = kind(ARM, REST, **options), gc.Plant(LOADED)
    z = law.true_parameters(plant)
    q = REST(0.0).q
    command = law(0.0, q, np.zeros(2), z)
    assert np.abs(plant.acceleration(0.0, q, np.zeros(2), command.tau)).max() < 1e-9
    assert np.abs(command.z_rate).max() < 1e-6 * np.abs(z).max()
    assert law.lyapunov(0.0, q, np.zeros(2), z, plant).value < 1e-15


@pytest.mark.quick(1)
@pytest.mark.parametrize(("kind", "options"), LAWS.values(), ids=LAWS)
def test_estimates_converge_before_slotine_li_s(kind, options):
    """Errors of the estimates in the norm of V after two seconds of an exciting motion; base parameters are all
    observable.
    """
    law = kind(ARM, MOTION, **{**options, "adapt": "base"})
    plain = controllers.SlotineLi(ARM, MOTION, adapt="base")
    q0, v0, _ = MOTION(0.0)
    left = []
    for c in (law, plain):
        run = gc.simulate(LOADED, c, q0, v0, 2.0, 2e-3)
        assert run.ok, run.summary()
        left.append(c._squared(run.z[-1], gc.Plant(LOADED)) / c._squared(run.z[0], gc.Plant(LOADED)))
    assert left[0] < 0.35 * left[1], left


@pytest.mark.quick(1)
@pytest.mark.parametrize(("kind", "options"), LAWS.values(), ids=LAWS)
def test_they_run_compiled_as_in_python(kind, options):
    law = kind(ARM, MOTION, **{**options, "adapt": "base"})
    q0, v0, _ = MOTION(0.0)
    run_both_ways(LOADED, law, q0 + 0.2, v0, 0.05, 1e-3, rtol=1e-7, atol=1e-8)


def test_bad_options_are_named():
    with pytest.raises(ArgumentError, match="weight: expected a positive number, got 0"):
        controllers.Composite(ARM, MOTION, weight=0.0)
    with pytest.raises(ArgumentError, match=r"bandwidth: expected a positive number \[1/s\], got -1"):
        controllers.Composite(ARM, MOTION, bandwidth=-1.0)
    law = controllers.Composite(ARM, MOTION)
    with pytest.raises(ArgumentError, match="z: expected"):
        law(0.0, np.zeros(2), np.zeros(2), np.zeros(3))


def test_a_wrong_regression_is_caught():
    """With armature that is missing in the law's model, y is not W p_true, and V' differs from the claim."""
    law = controllers.Composite(ARM, MOTION)
    with pytest.raises(AssertionError):
        testing.assert_lyapunov(
            law,
            driven(LOADED),
            states=5,
            search=0,
            runs=0,
            region=testing.Region(equilibrium=settled(law, driven(LOADED))),
        )


def test_the_adjugate_is_the_one():
    from geomctrl.controllers.drem import adjugate

    for n in (1, 2, 3, 6):
        A = np.random.default_rng(n).normal(size=(n, n))
        adj, det = adjugate(A)
        assert det == pytest.approx(np.linalg.det(A), rel=1e-9)
        np.testing.assert_allclose(adj, det * np.linalg.inv(A), rtol=1e-8, atol=1e-10)
    adj, det = adjugate(np.outer([1.0, 2.0], [3.0, 4.0]))
    assert det == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(adj, [[8.0, -4.0], [-6.0, 3.0]], rtol=1e-12)


def test_each_parameter_learns_by_itself():
    """With s = 0 and an exact record x_i' = - weight mu_i x_i, mu_i = 1 / (1 + (Phi^-1)_ii), without any other x_j."""
    law, plant = controllers.DREM(ARM, MOTION), gc.Plant(LOADED)
    true = law._true(plant)
    n, rng = len(true), np.random.default_rng(2)
    W = rng.normal(size=(2 * n, n))
    Phi, p = W.T @ W, true + rng.normal(size=n)
    scaled = law.unit[:, None] * Phi * law.unit
    mu = 1.0 / (1.0 + np.diag(np.linalg.inv(scaled)))
    np.testing.assert_allclose(law._pull(p, Phi, Phi @ true), law.weight * mu * (p - true), rtol=1e-5)


@pytest.mark.parametrize("kind", [controllers.ConcurrentLearning, controllers.DREM], ids=["concurrent", "drem"])
def test_the_rate_is_below_its_bound(kind):
    """Also with an inexact record, for any record that a motion can produce."""
    law, plant, rng = kind(ARM, MOTION, adapt="base"), gc.Plant(LOADED), np.random.default_rng(4)
    q, v, _ = MOTION(0.4)
    for _ in range(50):
        z = law.sample_state(rng, plant)
        s = law.sliding(0.4, q, v + 0.1).s
        _, _, _, more = law._split(z)
        Phi, eta, omega = law._memory(more)
        true = law._true(plant)
        D = true @ Phi @ true - 2.0 * true @ eta + omega
        rate = law.lyapunov(0.4, q, v + 0.1, z, plant).rate
        assert D > 0.0
        assert rate <= -s @ law.K @ s - 0.5 * law._bound() * D + 1e-9


def test_too_many_parameters_for_a_determinant_are_refused():
    arm = models.panda()
    with pytest.raises(ArgumentError, match="adapt: expected at most 12 parameters, got 70"):
        controllers.DREM(arm, hold(arm, arm.neutral()), adapt="links")
    n = len(controllers.DREM(ARM, MOTION).p0)
    with pytest.raises(ArgumentError, match="Gamma: expected a number or one per parameter"):
        controllers.DREM(ARM, MOTION, Gamma=np.eye(n) + 0.1)
