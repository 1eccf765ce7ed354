"""Adaptation of second order: V' as an identity and below its bound, in both potentials."""

import numpy as np
import pytest
from simulation_options import run_both_ways

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia

ARM = models.two_link()
MOTION = Sinusoids(ARM, np.array([0.3, 0.5]), [0.5, 0.7], [0.7, 1.1], start_at_rest=0.5)
LOADED = ARM.with_payload(0.4, (0.05, 0, 0), 1e-3 * np.eye(3))
POTENTIALS = ["quadratic", "log-det"]


def law(potential, **options):
    return controllers.MomentumAdaptation(ARM, MOTION, **{"potential": potential, "adapt": ["link2"], **options})


@pytest.mark.quick(1)
@pytest.mark.parametrize("potential", POTENTIALS)
def test_the_promise_holds(potential):
    testing.assert_lyapunov(law(potential), LOADED, states=8, search=400, runs=1)


@pytest.mark.parametrize("potential", POTENTIALS)
def test_the_rate_is_below_its_bound(potential):
    """V' <= - 1/2 s . K s - follow |p - m|^2, with an active coupling, which N compensates."""
    c, plant, rng = law(potential, follow=2.0), gc.Plant(LOADED), np.random.default_rng(5)
    coupled = []
    for _ in range(50):
        q, v, _ = MOTION(0.4)
        q, v = q + 0.5 * rng.normal(size=2), v + 3.0 * rng.normal(size=2)
        z = controllers.MomentumAdaptation.sample_state(law("log-det"), rng, plant)
        z[:10] = z[10:] + rng.choice([0.01, 1.0]) * (z[:10] - z[10:])  # for a small s the coupling is visible
        s, off = c.sliding(0.4, q, v).s, z[:10] - z[10:]
        apart, rate = off @ c.Gamma_inverse @ off, c.lyapunov(0.4, q, v, z, plant).rate
        assert rate <= -0.5 * s @ c.K @ s - c.follow * apart + 1e-9
        coupled.append(rate + s @ c.K @ s + c.follow * apart)
    assert min(coupled) < -1.0 < 1e-3 < max(coupled)


def test_a_fast_follower_is_slotine_li():
    """With p = m always, the quadratic potential gives the first-order law."""
    fast = law("quadratic", follow=2000.0, rate=1.0)
    plain = controllers.SlotineLi(ARM, MOTION, adapt=["link2"], rate=1.0)
    q0, v0, _ = MOTION(0.0)
    runs = [gc.simulate(LOADED, c, q0 + 0.2, v0, 0.5, 5e-4, monitors=None) for c in (fast, plain)]
    moved = np.abs(runs[1].z[-1] - runs[1].z[0]).max()
    assert moved > 0.05
    np.testing.assert_allclose(runs[0].z[-1, :10], runs[1].z[-1], atol=0.05 * moved)


def test_leading_estimates_stay_bodies_and_so_do_those_that_follow():
    light = LOADED.with_parameters(np.vstack((ARM.parameters[0], 0.2 * ARM.parameters[1])))
    q0, v0, _ = MOTION(0.0)
    run = gc.simulate(light, law("log-det", rate=1.0), q0 + 0.3, v0, 1.0, 1e-3)
    assert run.monitors["lyapunov"].ok, run.summary()
    assert inertia.is_physical(run.z.reshape(-1, 2, 10), strict=True).all()
    assert np.abs(run.z[-1] - run.z[0]).max() > 0.1


@pytest.mark.quick(1)
@pytest.mark.parametrize("potential", POTENTIALS)
def test_it_runs_compiled_as_in_python(potential):
    q0, v0, _ = MOTION(0.0)
    run_both_ways(LOADED, law(potential), q0 + 0.2, v0, 0.05, 1e-3)


def test_bad_options_are_named():
    with pytest.raises(ArgumentError, match=r"potential: expected .*'quadratic'.*'log-det', got 'entropy'"):
        law("entropy")
    with pytest.raises(ArgumentError, match="follow: expected a positive number"):
        law("quadratic", follow=0.0)
    with pytest.raises(ArgumentError, match="potential: 'log-det' is defined for bodies only"):
        controllers.MomentumAdaptation(ARM, MOTION, potential="log-det", adapt="base")
