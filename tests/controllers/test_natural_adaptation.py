"""Adaptation in the metric of pseudo-inertias: V' as an identity, and estimates that remain physical in any frame."""

import numpy as np
import pytest
from simulation_options import run_both_ways

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids
from geomctrl.controllers import _pseudo_inertias as cones
from geomctrl.errors import ArgumentError, InertiaError
from geomctrl.mechanism import inertia

ARM = models.two_link()
PANDA = models.panda()
MOTION = Sinusoids(ARM, np.array([0.3, 0.5]), [0.5, 0.7], [0.7, 1.1], start_at_rest=0.5)


LOADED = ARM.with_payload(0.4, (0.05, 0, 0), 1e-3 * np.eye(3))
RNG = np.random.default_rng(8)


def test_the_cone_s_functions_are_those_of_inertia():
    p, g = PANDA.parameters.ravel(), RNG.normal(size=70)
    P, L = cones.pseudo(p), cones.dual(g)
    np.testing.assert_allclose(P, inertia.pseudo(PANDA.parameters), atol=1e-15)
    np.testing.assert_allclose(cones.ten(P), p, atol=1e-14)
    dp = RNG.normal(size=70)
    assert np.einsum("kij,kji->", L, cones.pseudo(dp)) == pytest.approx(g @ dp, rel=1e-12)
    np.testing.assert_array_equal(L, L.swapaxes(1, 2))
    np.testing.assert_allclose(cones.metric_inverse(p) @ g, cones.natural_gradient(p, g), rtol=1e-10, atol=1e-12)
    other = cones.random_bodies(RNG, p)
    assert inertia.is_physical(other.reshape(-1, 10), strict=True).all()
    # tr(P0^-1 P) - log det(P0^-1 P), with the true P
    expected = inertia.divergence(PANDA.parameters, other.reshape(-1, 10)).sum()
    assert cones.divergence(p, other) == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow
def test_the_promise_holds():
    testing.assert_lyapunov(controllers.NaturalAdaptation(ARM, MOTION), LOADED, states=8, search=800, runs=1)


def test_the_promise_holds_with_friction():
    plant = gc.Plant(LOADED, gc.Friction(0.2, 0.3, 0.1))
    law = controllers.NaturalAdaptation(ARM, MOTION, friction=gc.Friction(0.1, 0.1, 0.1))
    testing.assert_lyapunov(law, plant, states=5, search=300, runs=1)


@pytest.mark.slow
def test_the_promise_holds_on_an_arm():
    motion = Sinusoids(PANDA, np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]), 0.2, 0.3)
    loaded = PANDA.with_payload(2.0, (0, 0, 0.1), 0.004 * np.eye(3))
    law = controllers.NaturalAdaptation(PANDA, motion, adapt=["panda_link7"])
    testing.assert_lyapunov(law, loaded, states=5, search=0, runs=1)


def test_a_body_s_frame_changes_nothing():
    """P' = -gamma P L P describes the same motion of the body in another frame: P -> T P T^T, g -> its dual."""
    p, g = PANDA.parameters[3], RNG.normal(size=10)
    T = gc.se3.exp(RNG.normal(size=6))
    change = np.array([inertia.transform(T, e) for e in np.eye(10)]).T
    there = cones.natural_gradient(change @ p, np.linalg.solve(change.T, g))
    np.testing.assert_allclose(there, change @ cones.natural_gradient(p, g), rtol=1e-9, atol=1e-12)


def test_estimates_stay_bodies_where_a_constant_metric_leaves_them():
    """A light true robot, a heavy model and fast adaptation."""
    light = LOADED.with_parameters(0.2 * ARM.parameters)
    q0, v0, _ = MOTION(0.0)
    laws = controllers.NaturalAdaptation(ARM, MOTION, rate=2.0), controllers.SlotineLi(ARM, MOTION, rate=2.0)
    natural, constant = (gc.simulate(light, law, q0 + 0.3, v0, 1.5, 1e-3) for law in laws)
    assert natural.monitors["lyapunov"].ok, natural.summary()
    assert inertia.is_physical(natural.z.reshape(-1, 2, 10), strict=True).all()
    assert not inertia.is_physical(constant.z.reshape(-1, 2, 10)).all()


def test_it_runs_compiled_as_in_python():
    q0, v0, _ = MOTION(0.0)
    run_both_ways(LOADED, controllers.NaturalAdaptation(ARM, MOTION), q0 + 0.2, v0, 0.1, 1e-3)


def test_bodies_without_extent_and_base_parameters_are_refused():
    flat = ARM.parameters.copy()
    flat[1, 4:] = [0.0, 0.0, 1e-3, 0.0, 0.0, 1e-3]  # a rod
    flat[1, 1:4] = 0.0
    rod = ARM.with_parameters(flat)
    with pytest.raises(InertiaError, match=r"robot: body 'link2': expected extent in all directions"):
        controllers.NaturalAdaptation(rod, MOTION)
    controllers.NaturalAdaptation(rod, MOTION, adapt=["link1"])
    with pytest.raises(ArgumentError, match="adapt: expected 'links' or a list of body names"):
        controllers.NaturalAdaptation(ARM, MOTION, adapt="base")
    law, z = controllers.NaturalAdaptation(ARM, MOTION), -ARM.parameters.ravel()
    assert law.lyapunov(0.0, *MOTION(0.0)[:2], z, gc.Plant(ARM)).value == np.inf
