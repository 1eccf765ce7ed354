"""Online identification next to a law finds the load, does not affect the motion, and reports physical bodies."""

import numpy as np
import pytest
from oracles import assert_close
from simulation_options import grouped

import geomctrl as gc
from geomctrl import controllers, inertia, models
from geomctrl.control.references import Sinusoids
from geomctrl.controllers._pseudo_inertias import NearestBodies, least_eigenvalue
from geomctrl.errors import ArgumentError

ARM = models.two_link()
MOTION = Sinusoids(ARM, ARM.neutral(), [[0.6, 0.5], [0.3, 0.4]], [[0.5, 0.8], [1.2, 1.0]], start_at_rest=0.2)
LOADED = ARM.with_payload(0.4, (1.0, 0.0, 0.0))
FRICTION = gc.Friction([0.5, 0.3], [0.2, 0.1], 0.1)
PERIOD = 2e-3


def law(base=None, **options):
    base = controllers.SlotineLi(ARM, MOTION, minimum_mass=0.2) if base is None else base
    return controllers.OnlineIdentification(base, period=PERIOD, noise=0.05, **options)


def run_of(controller, plant, seconds=0.6, **options):
    begin = MOTION(0.0)
    return gc.simulate(plant, controller, begin.q, begin.v, seconds, PERIOD, **grouped(control_dt=PERIOD, **options))


@pytest.mark.slow
def test_the_load_and_friction_are_found_and_the_law_does_not_notice():
    plant = gc.Plant(LOADED, FRICTION)
    own = law(friction=gc.Friction(0.1, 0.05, 0.1), memory=2.0)
    run, alone = run_of(own, plant, 1.5, compiled=True), run_of(own.law, plant, 1.5, compiled=True)
    assert_close(run.q, alone.q, 1e-9)
    assert_close(run.tau, alone.tau, 1e-9)
    assert {name: m.ok for name, m in run.monitors.items()} == {name: m.ok for name, m in alone.monitors.items()}
    truth = np.concatenate((LOADED.parameters[1], plant.friction_parameters))
    printed = [0, 1, 6, 10, 11, 12, 13]  # mass, centre and inertia in the plane; the other parameters have no effect
    off = np.abs(run.signals["parameters"][:, printed] - truth[printed]).max(1)
    assert off[0] > 0.3
    assert off[-1] < 0.01
    assert (off[-1:] < 0.1 * off[0]).all()
    inside = np.abs(run.signals["parameters"][-1] - truth)[printed] < 4.0 * run.signals["deviations"][-1][printed]
    assert inside.all()


@pytest.mark.slow
def test_compiled_it_is_what_it_is_in_python():
    plant, own = gc.Plant(LOADED, FRICTION), law(friction=FRICTION, memory=0.5)
    python, compiled = (run_of(own, plant, 0.2, compiled=c) for c in (False, True))
    for name in ("parameters", "deviations", "bodies"):
        assert_close(compiled.signals[name], python.signals[name], 1e-7)
    assert_close(compiled.q, python.q, 1e-12)


@pytest.mark.slow
def test_bodies_can_always_be_while_estimates_need_not():
    """A point mass at the tip: the inertia that motion in a plane does not determine must grow with the mass."""
    run = run_of(law(), gc.Plant(LOADED), 0.6, compiled=True)
    bodies, raw = run.signals["bodies"], run.signals["parameters"]
    assert inertia.is_physical(bodies, strict=True).all()
    assert not inertia.is_physical(raw[-1])
    assert_close(bodies[-1][[0, 1, 6]], LOADED.parameters[1][[0, 1, 6]], 1e-2)
    assert run.signals["moved"][-1] > 0.0
    assert run.signals["moved"][0] == 0.0


@pytest.mark.slow
def test_forgetting_follows_a_load_that_is_dropped():
    plant = gc.Plant(LOADED, changes=[(0.8, ARM)])
    own = law(memory=0.15)
    run = run_of(own, plant, 2.0, compiled=True, monitors=None)
    mass = run.signals["parameters"][:, 0]
    assert mass[399] == pytest.approx(1.4, abs=0.02)
    assert mass[-1] == pytest.approx(1.0, abs=0.05)
    kept = run_of(law(memory=1e3), plant, 2.0, compiled=True, monitors=None).signals["parameters"][-1, 0]
    assert abs(kept - 1.0) > 0.05, "without forgetting it is somewhere between"


def test_lyapunov_is_that_of_the_law():
    own, plant = law(), gc.Plant(LOADED)
    q, v, rng = np.array([0.3, -0.4]), np.array([0.5, 0.2]), np.random.default_rng(0)
    z = own.start(q, v)
    z[own.size :] = rng.normal(size=len(z) - own.size)  # memory is ignored
    found, of_law = own.lyapunov(0.3, q, v, z, plant), own.law.lyapunov(0.3, q, v, z[: own.size], plant)
    assert (found.value, found.rate) == (of_law.value, of_law.rate)
    assert own.sample_state(rng, plant).shape == own.true_parameters(plant).shape == z.shape


def test_a_robot_that_starts_in_motion_is_no_surprise():
    own = law(controllers.Passivity(ARM, MOTION))
    begin = MOTION(0.7)
    z = own.start(begin.q, begin.v)
    after = own(0.7, begin.q, begin.v, z)
    assert np.abs(after.signals["parameters"] - own.p0).max() < 1e-9


def test_the_least_eigenvalue_is_never_passed():
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3):
        for _ in range(20):
            B = rng.normal(size=(4, 4)) * scale
            B = B + B.T
            w, U = np.linalg.eigh(B)
            x, N = least_eigenvalue(B)
            assert x <= w[0] + 1e-9 * np.abs(w).max()
            assert x == pytest.approx(w[0], abs=1e-6 * np.abs(w).max())
            assert_close(N, np.outer(U[:, 0], U[:, 0]), 1e-4)


def test_nearest_bodies_leave_what_is_known_and_what_is_possible():
    robot = models.panda()
    unit, rng = np.ones(10), np.random.default_rng(0)
    near = NearestBodies(robot, [6], unit, 1e-3)
    p0 = robot.parameters[6]
    assert_close(near.nearest(np.eye(10), np.zeros(10)), np.zeros(10), 1e-15)
    for _ in range(10):
        R = np.triu(rng.normal(size=(10, 10))) + 3.0 * np.eye(10)
        R[0] *= 1e4  # the mass is given
        x = 0.3 * rng.normal(size=10)
        x[0] = 0.5
        moved = near.nearest(R, x)
        assert inertia.is_physical(p0 + moved, strict=True)


def test_bad_input_is_named():
    base = controllers.Passivity(ARM, MOTION)
    with pytest.raises(ArgumentError, match="period"):
        controllers.OnlineIdentification(base, period=0.0)
    with pytest.raises(gc.NameNotFoundError, match="adapt"):
        law(base, adapt=["hand"])
    with pytest.raises(ArgumentError, match="noise"):
        controllers.OnlineIdentification(base, period=PERIOD, noise=[1.0, 2.0, 3.0])
    with pytest.raises(ArgumentError, match="margin"):
        law(base, margin=2.0)
    with pytest.raises(ArgumentError, match="memory"):
        law(base, memory=-1.0)
