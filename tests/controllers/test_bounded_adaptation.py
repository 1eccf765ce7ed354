"""Robust variants of Slotine and Li's law: leakage, dead zone and projection with the bounds of their proofs."""

import numpy as np
import pytest
from simulation_options import IN_PYTHON, run_both_ways

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError

ARM = models.two_link()
MOTION = Sinusoids(ARM, ARM.neutral(), 0.3, 0.4)
LOADED = ARM.with_payload(0.4, (0.05, 0, 0), 1e-3 * np.eye(3))
LEAKY = {
    "sigma": controllers.SigmaModification(ARM, MOTION, sigma=0.7),
    "e": controllers.EModification(ARM, MOTION, nu=0.4),
}


def states(law, n=20, size=0.5):
    rng = np.random.default_rng(3)
    for _ in range(n):
        t = rng.uniform(0.1, 2.0)
        q, v, _ = law.reference(t)
        z = law.start()
        yield (
            t,
            q + size * rng.normal(size=2),
            v + size * rng.normal(size=2),
            z + size * np.abs(z) * rng.normal(size=z.shape),
        )


def rate_of_v(law, plant, t, q, v, z):
    """V' from M, Mdot, the plant's acceleration and the rate of the estimate."""
    command, x, robot = law(t, q, v, z), law.sliding(t, q, v), plant.robot
    a = plant.acceleration(t, q, v, command.tau)
    kinetic = x.s @ robot.mass_matrix(q) @ (a - x.a_ref) + 0.5 * x.s @ robot.mass_matrix_rate(q, v) @ x.s
    return kinetic + (z - law.true_parameters(plant)) @ np.linalg.solve(law.Gamma, command.z_rate)


@pytest.mark.quick(1)
@pytest.mark.parametrize("law", LEAKY.values(), ids=LEAKY)
def test_leakage_ends_in_a_ball(law):
    """V' <= W + c + s . d, and s . d <= s . K s / 4 + d . K^-1 d, so half of W remains."""
    c = law.allowance(gc.Plant(LOADED))
    assert c > 0.0
    weakest = float(np.linalg.eigvalsh(law.K)[0])
    testing.assert_input_to_state_stable(
        law, LOADED, lambda d: c + d**2 / weakest, share=0.5, search=1500, runs=testing.Runs(1, duration=0.3), seed=1
    )


@pytest.mark.parametrize("law", LEAKY.values(), ids=LEAKY)
def test_the_allowance_is_no_larger_than_it_must_be(law):
    """For p half way between the nominal and the true parameters and the worst s, V' = W + c."""
    plant = gc.Plant(LOADED)
    z, c = 0.5 * (law.start() + law.true_parameters(plant)), law.allowance(plant)
    t, (q, v, _) = 0.3, law.reference(0.3)
    sizes = np.linspace(0.0, 3.0, 3001)
    s = (sizes[:, None] * np.array([1.0, -0.5])) * np.sqrt(np.sqrt(8.0 * c) / np.trace(law.K))
    gap = max(rate_of_v(law, plant, t, q, v + x, z) - law.lyapunov(t, q, v + x, z, plant).rate for x in s[::30])
    assert gap <= c * (1.0 + 1e-9)
    assert gap > 0.5 * c


@pytest.mark.parametrize("law", LEAKY.values(), ids=LEAKY)
def test_the_bound_is_one_for_estimates_on_either_side(law):
    """V' - W on the line through the nominal and the true parameters, where it is largest, is nowhere above c."""
    plant = gc.Plant(LOADED)
    true, c, t = law.true_parameters(plant), law.allowance(plant), 0.3
    q, v, _ = law.reference(t)
    size = np.sqrt(np.sqrt(8.0 * c) / np.trace(law.K))
    for s in (np.zeros(2), size * np.array([1.0, -0.5]), 10.0 * size * np.array([0.3, 1.0])):
        for share in np.linspace(-6.0, 6.0, 49):
            z = true + share * (law.p0 - true)
            gap = rate_of_v(law, plant, t, q, v + s, z) - law.lyapunov(t, q, v + s, z, plant).rate
            assert gap <= c * (1.0 + 1e-9), share


@pytest.mark.quick(1)
@pytest.mark.parametrize("law", LEAKY.values(), ids=LEAKY)
def test_leakage_costs_nothing_where_the_model_is_right(law):
    assert law.allowance(gc.Plant(ARM)) == 0.0
    testing.assert_lyapunov(law, ARM, states=5, search=1000, runs=1, bound=True)


def test_leakage_has_its_closed_form_in_v():
    """V' of the sigma-modification is - s . K s - sigma (p - p_true) . Gamma^-1 (p - p_0), an identity."""
    law, plant = LEAKY["sigma"], gc.Plant(LOADED)
    for t, q, v, z in states(law):
        s = law.sliding(t, q, v).s
        off, gone = z - law.true_parameters(plant), z - law.p0
        expected = -s @ law.K @ s - law.sigma * off @ np.linalg.solve(law.Gamma, gone)
        assert rate_of_v(law, plant, t, q, v, z) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_runs_may_grow_by_the_allowance_and_no_more():
    """A monitor allows growth by c times the time; for a law without c it allows none."""
    law = controllers.SigmaModification(ARM, MOTION, sigma=20.0)
    q0, v0, _ = MOTION(0.0)
    run = gc.simulate(LOADED, law, q0, v0, 0.3, 1e-3)
    V = run.signals["lyapunov"]
    law.start = lambda: law.true_parameters(gc.Plant(LOADED))
    rising = gc.simulate(LOADED, law, q0, v0, 0.3, 1e-3, options=IN_PYTHON)
    assert run.ok, run.summary()
    assert rising.ok, rising.summary()
    assert rising.signals["lyapunov"][-1] > 1e-4 > rising.signals["lyapunov"][0]
    law.allowance = lambda plant: 0.0
    assert gc.simulate(LOADED, law, q0, v0, 0.3, 1e-3, options=IN_PYTHON).monitors["lyapunov"].ok is False
    assert np.isfinite(V).all()


@pytest.mark.slow
def test_leakage_on_an_arm():
    arm = models.panda()
    motion = Sinusoids(arm, np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]), 0.2, 0.3)
    loaded = arm.with_payload(2.0, (0, 0, 0.1), 0.004 * np.eye(3))
    for kind in (controllers.SigmaModification, controllers.EModification):
        law = kind(arm, motion, adapt=["panda_link7"])
        c, weakest = law.allowance(gc.Plant(loaded)), float(np.linalg.eigvalsh(law.K)[0])
        testing.assert_input_to_state_stable(law, loaded, lambda d: c + d**2 / weakest, search=300, runs=0)  # noqa: B023


# --- dead zone -----------------------------------------------------------------------------------------------------


def test_a_dead_zone_is_slotine_li_outside_and_at_rest_inside():
    law, full = controllers.DeadZone(ARM, MOTION, width=0.2), controllers.SlotineLi(ARM, MOTION)
    inside = outside = 0
    for t, q, v, z in states(law, 200, 0.05):
        s, command = law.sliding(t, q, v).s, law(t, q, v, z)
        whole = full(t, q, v, z)
        np.testing.assert_array_equal(command.tau, whole.tau)
        if s @ law.K @ s >= law.boundary:
            outside += 1
            np.testing.assert_allclose(command.z_rate, whole.z_rate, rtol=1e-12)
        elif s @ law.K @ s <= 0.25 * law.boundary:
            inside += 1
            np.testing.assert_array_equal(command.z_rate, 0.0)
    assert min(inside, outside) > 10


class Pushed(gc.Plant):
    """A torque that no model contains."""

    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau, x) + 0.05 * np.array([np.sin(9.0 * t), np.cos(7.0 * t)])


def test_estimates_rest_where_the_error_is_what_disturbances_explain():
    """s stays where s . K s <= d . K^-1 d; with a wider dead zone the estimates stop, without one they drift."""
    q0, v0, _ = MOTION(0.0)
    laws = controllers.DeadZone(ARM, MOTION, rate=5.0, width=0.2), controllers.SlotineLi(ARM, MOTION, rate=5.0)
    still, drifting = (
        gc.simulate(Pushed(ARM), law, q0, v0, 2.0, 2e-3, monitors=None, options=IN_PYTHON) for law in laws
    )
    assert np.abs(np.diff(still.z, axis=0)).max() == 0.0
    assert np.abs(drifting.z[-1] - drifting.z[0]).max() > 1e-4
    push = np.full(2, 0.05)
    power = np.einsum("ki,ij,kj->k", still.signals["s"], laws[0].K, still.signals["s"])
    assert power.max() <= 2.0 * push @ np.linalg.solve(laws[0].K, push)


# --- projection ----------------------------------------------------------------------------------------------------


def test_projection_keeps_the_promise_in_the_whole_ball():
    law = controllers.SmoothProjection(ARM, MOTION, radius=1.0)
    assert law._distance(law.true_parameters(gc.Plant(LOADED))) < 1.0
    testing.assert_lyapunov(law, LOADED, states=10, search=1000, runs=1, bound=True)


def test_projection_is_the_free_law_inside_and_tangent_at_the_edge():
    law, free = controllers.SmoothProjection(ARM, MOTION, radius=0.5), controllers.SlotineLi(ARM, MOTION)
    held = 0
    for t, q, v, _ in states(law, 40):
        for size in (0.9, np.sqrt(1.1)):
            x = np.random.default_rng(held).normal(size=20)
            z = law.p0 + size * law.radius * np.sqrt(law.units) * x / np.linalg.norm(x)
            rate, unheld = law(t, q, v, z).z_rate, free(t, q, v, z).z_rate
            outward = (z - law.p0) / law.units
            if size < 1.0 or outward @ unheld <= 0.0:
                np.testing.assert_allclose(rate, unheld, rtol=1e-9, atol=1e-12)
            else:
                held += 1
                assert abs(outward @ rate) <= 1e-9 * abs(outward) @ abs(unheld)
    assert held > 5


def test_projection_has_its_closed_form_in_v():
    """V' = - s . K s - taken (h . x)+ (p - p_true) . h / (h . Gamma h) for any Gamma: an identity, and the rate
    improves.
    """
    rng = np.random.default_rng(5)
    law = controllers.SmoothProjection(ARM, MOTION, Gamma=rng.uniform(0.01, 1.0, 20), radius=0.5)
    plant, held = gc.Plant(LOADED), 0
    true = law.true_parameters(plant)
    assert law._distance(true) < 1.0
    for t, q, v, _ in states(law, 40):
        z = law.sample_state(rng, plant)
        s, x = law.sliding(t, q, v).s, controllers.SlotineLi(ARM, MOTION, Gamma=law.Gamma)(t, q, v, z).z_rate
        h = (z - law.p0) / law.units
        taken = np.clip((h @ (z - law.p0) / 0.25 - 1.0) / 0.1, 0.0, 1.0)
        gained = taken * max(h @ x, 0.0) * (z - true) @ h / (h @ law.Gamma @ h)
        held += gained > 0.0
        assert gained >= 0.0
        assert rate_of_v(law, plant, t, q, v, z) == pytest.approx(-s @ law.K @ s - gained, rel=1e-9, abs=1e-9)
    assert held > 5


def test_estimates_do_not_leave_the_ball():
    """The true robot is far outside: the estimates stop at the boundary, those of the law without projection do not."""
    heavy = ARM.with_payload(3.0, (0.05, 0, 0), 1e-3 * np.eye(3))
    law = controllers.SmoothProjection(ARM, MOTION, rate=5.0, radius=0.5)
    q0, v0, _ = MOTION(0.0)
    run, free = (
        gc.simulate(heavy, c, q0, v0, 3.0, 2e-3, monitors=None)
        for c in (law, controllers.SlotineLi(ARM, MOTION, rate=5.0))
    )
    assert max(law._distance(z) for z in free.z) > 1.2
    # steps are tangents of the boundary
    assert 1.0 < max(law._distance(z) for z in run.z) <= np.sqrt(1.1) * (1.0 + 1e-4)


@pytest.mark.parametrize(
    ("kind", "option", "message"),
    [
        (controllers.SigmaModification, {"sigma": 0.0}, r"sigma: expected a positive number \[1/s\], got 0"),
        (controllers.EModification, {"nu": -1.0}, "nu: expected a positive number"),
        (controllers.DeadZone, {"width": np.nan}, "width: expected a positive speed"),
        (controllers.SmoothProjection, {"radius": "wide"}, "radius: expected a positive number"),
    ],
    ids=["sigma", "nu", "width", "radius"],
)
def test_bad_options_are_named(kind, option, message):
    with pytest.raises(ArgumentError, match=message):
        kind(ARM, MOTION, **option)


@pytest.mark.parametrize("kind", ["SigmaModification", "EModification", "DeadZone", "SmoothProjection"])
def test_they_run_compiled_as_in_python(kind):
    law = getattr(controllers, kind)(ARM, MOTION, rate=5.0)
    q0, v0, _ = MOTION(0.0)
    run = run_both_ways(LOADED, law, q0 + 0.2, v0, 0.1, 1e-3)
    assert run.ok, run.summary()
