"""Compiled closed loops: the same runs as in Python in any lane, and loops that remain in Python."""

import warnings
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from simulation_options import COMPILED, IN_PYTHON, flat, flat_simulate, grouped

import geomctrl as gc
from geomctrl import controllers, integrators, models, testing
from geomctrl.control import closed_loop, loop_runner
from geomctrl.control.closed_loop import Loop
from geomctrl.control.compiled import choice, trace
from geomctrl.control.compiled.machine import Machine
from geomctrl.control.elastic_joints import ElasticPlant, with_rotors
from geomctrl.control.monitors import Monitor, default_monitors
from geomctrl.control.references import Harmonic, Quintic, Sinusoids, Spline
from geomctrl.integrators.step_control import StepControl
from geomctrl.tracing.symbols import UntraceableError

ROBOTS = {
    name: getattr(models, name)
    for name in ("panda", "puma560", "quadruped", "scara", "three_spheres", "two_link", "ur10")
}
TOLERANCES = [{}, {"rtol": 1e-8, "atol": 1e-10}, {"rtol": 1e-11, "atol": 1e-12}]
LOG = []


def reference(robot):
    return Sinusoids(robot, robot.neutral(), 0.2, 0.7, 0.3)


def loaded(robot):
    """The robot with its last body heavier by half, which no law knows."""
    mass = 0.5 * robot.parameters[-1, 0]
    return robot.with_payload(mass, (0.01, 0.02, 0.05), 1e-3 * mass * np.eye(3))


def law(name, robot):
    """A bundled controller with gains proportional to the least inertia about each coordinate."""
    motion, friction = reference(robot), gc.Friction(0.02, 0.01, 0.5)
    M = 1.0 / np.diag(np.linalg.inv(robot.mass_matrix(robot.neutral())))
    adaptive = partial(controllers.SlotineLi, robot, motion, 2.0, 10.0 * M, rate=1e-3)
    return {
        "pd": lambda: controllers.PDGravity(robot, robot.neutral(), 25.0 * M, 10.0 * M),
        "computed torque": lambda: controllers.ComputedTorque(robot, motion, friction=friction),
        "passivity": lambda: controllers.Passivity(robot, motion, 2.0, 10.0 * M, form="christoffel"),
        "slotine-li": adaptive,
        "slotine-li, a load": lambda: adaptive(
            adapt=[robot.body_names[-1]], friction=friction, minimum_mass=1e-3 * robot.parameters[-1, 0]
        ),
        "slotine-li, base": lambda: adaptive(adapt="base"),
    }[name]()


def both_ways(plant, controller, q0=None, v0=None, t_end=0.03, dt=1e-3, ways=(False, True), **options):
    robot = plant.robot if isinstance(plant, gc.Plant) else plant
    if q0 is None:
        q0 = robot.integrate(robot.neutral(), 0.1 * np.ones(robot.nv))
    v0 = 0.1 * np.ones(robot.nv) if v0 is None else v0
    run = partial(flat_simulate, plant, controller, q0, v0, t_end, dt, **options)
    return [run(compiled=way) for way in ways]


def assert_same(python, compiled, tolerance=1e-11):
    def close(x, y, scale=1.0):
        np.testing.assert_allclose(x, y, rtol=0.0, atol=tolerance * (scale + np.nanmax(np.abs(y), initial=0.0)))

    assert python.reason == compiled.reason
    assert python.steps == compiled.steps
    np.testing.assert_array_equal(python.t, compiled.t)
    for name in ("q", "v", "tau", "z"):
        x, y = getattr(python, name), getattr(compiled, name)
        assert (x is None) == (y is None)
        if x is not None:
            close(y, x)
    assert list(python.signals) == list(compiled.signals)
    for name, x in python.signals.items():
        close(compiled.signals[name], x)
    assert (python.desired is None) == (compiled.desired is None)
    for x, y in zip(python.desired or (), compiled.desired or ()):
        close(y, x)
    assert list(python.monitors) == list(compiled.monitors)
    for name, m in python.monitors.items():
        other = compiled.monitors[name]
        assert other.ok == m.ok
        np.testing.assert_allclose(other.values, m.values, rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(other.worst, m.worst, rtol=1e-5, atol=1e-12)
        at = np.flatnonzero(np.isclose(compiled.t, other.t_worst, atol=1e-12))
        if len(at):  # the value at the reported time equals the worst value; other times may be as bad
            np.testing.assert_allclose(other.values[at[0]], m.worst, rtol=1e-5, atol=1e-12)


# --- the same runs -----------------------------------------------------------------------------------------------


LAWS = ("pd", "computed torque", "passivity", "slotine-li", "slotine-li, a load", "slotine-li, base")
PAIRS = [(robot, name) for robot in ("panda", "three_spheres", "two_link") for name in LAWS]  # an arm, a tree, a plane
PAIRS += [(r, name) for r in ROBOTS for name in ("passivity", "slotine-li, a load") if (r, name) not in PAIRS]


@pytest.mark.quick(2)
@pytest.mark.parametrize(("robot", "name"), PAIRS)
def test_bundled_controllers_on_bundled_robots(robot, name):
    robot = ROBOTS[robot]()
    plant = gc.Plant(loaded(robot), gc.Friction(0.02, 0.01, 0.5))
    assert_same(*both_ways(plant, law(name, robot)))


@pytest.mark.quick(1)
@pytest.mark.parametrize("robot", ["two_link", "panda", "puma560", "scara", "ur10"])
def test_elastic_joints(robot):
    robot = ROBOTS[robot]()
    motion = Harmonic(robot.neutral(), 0.2, 0.5)
    controller = controllers.ElasticJoint(robot, motion, 800.0, 0.1)
    plant = ElasticPlant(robot, 800.0, 0.1)
    assert_same(*both_ways(plant, controller, q0=np.zeros(2 * robot.nv), dt=2e-4, t_end=0.006))


@pytest.mark.quick(2)
@pytest.mark.parametrize("method", integrators.methods())
@pytest.mark.parametrize(("robot", "control_dt"), [("three_spheres", None), ("two_link", 2e-3)])
def test_methods(robot, method, control_dt):
    """At every stage and held; 30.5 steps, so the last step is a short one."""
    robot = ROBOTS[robot]()
    options = {"t_end": 0.0305, "method": method, "control_dt": control_dt, "every": 4}
    assert_same(*both_ways(loaded(robot), law("computed torque", robot), **options))


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["quintic", "spline"])
def test_references(name):
    robot = models.two_link()
    a, b = robot.neutral(), robot.neutral() + 0.3
    motion = Quintic(robot, a, b, 0.02, 5e-3) if name == "quintic" else Spline(robot, [0.0, 0.01, 0.025], [a, b, a])
    assert_same(*both_ways(robot, controllers.ComputedTorque(robot, motion)))


@pytest.mark.quick(1)
@pytest.mark.parametrize("control_dt", [None, 3e-3])
def test_a_held_adaptive_law(control_dt):
    robot = models.two_link()
    assert_same(*both_ways(loaded(robot), law("slotine-li", robot), control_dt=control_dt))


@pytest.mark.quick(1)
@pytest.mark.parametrize("method", ["MK4", "MK54"])
def test_changes_of_the_plant_at_their_time(method):
    """The run ends at a sample, or within a step."""
    robot = models.two_link()
    plant = gc.Plant(robot, changes=[(0.01, loaded(robot)), (0.0155, robot), (0.0157, loaded(robot))])
    assert_same(*both_ways(plant, law("slotine-li", robot), method=method))


def test_external_wrenches():
    robot = models.two_link()

    def push(t, q, v):
        wrenches = np.zeros((robot.nbodies, 6))
        wrenches[-1, 3:] = 5.0 * np.sin(30.0 * t), -v[0], min(q[1], 0.5)
        return wrenches

    assert_same(*both_ways(gc.Plant(robot, f_ext=push), law("computed torque", robot)))


def test_springs_of_the_model():
    """On joints next to one that stores its pose."""
    bodies = ["free", "spherical", "revolute", "prismatic"]
    robot = testing.random_robot(np.random.default_rng(2), bodies, [-1, 0, 1, 0])
    joints = tuple(replace(j, stiffness=20.0 * j.dof, rest=0.2) if j.dof == 1 else j for j in robot.joints)
    plant, controller = gc.Plant(replace(robot, joints=joints), gc.Friction(0.1)), law("pd", robot)
    python, compiled = both_ways(plant, controller)
    assert_same(python, compiled)
    without = gc.simulate(gc.Plant(robot, gc.Friction(0.1)), controller, python.q[0], python.v[0], 0.03, 1e-3)
    assert np.abs(python.q[-1] - without.q[-1]).max() > 1e-4


class Torques(Monitor):
    """A user's own monitor, with memory and a signal."""

    name, what, limit = "torques", "largest torque so far", 50.0

    def start(self, plant, controller):
        self.largest, self.each, self.signals = 0.0, np.zeros(plant.robot.nv), {"effort": np.nan}
        return True

    def measure(self, sample):
        self.each[:] = np.maximum(self.each, np.abs(sample.tau))  # written in place, not replaced
        self.largest = max(self.largest, self.each.max())
        self.signals = {"effort": sample.tau.dot(sample.tau)}
        return self.largest


def test_monitors_of_ones_own():
    robot = models.two_link()
    monitors = [*default_monitors(), Torques()]
    python, compiled = both_ways(loaded(robot), law("computed torque", robot), monitors=monitors)
    assert_same(python, compiled)
    assert compiled.monitors["torques"].worst == pytest.approx(np.abs(python.tau).max())
    assert "effort" in compiled.signals


class Observed(gc.monitors.EnergyBalance):
    """Its value always counts as a violation."""

    confirm = gc.monitors.Monitor.confirm


@pytest.mark.parametrize("limit", [1e-12, 1.3e-8, 1.0])
def test_strict_goes_on_where_python_does_not_confirm_what_compiled_code_accuses(limit):
    """The drift comes from the integrator: both loops reach the end, with the same verdict."""
    robot, ends = models.panda(), []
    for compiled in (False, True):
        options = {"monitors": [gc.monitors.EnergyBalance(limit)], "strict": True, "compiled": compiled}
        run = gc.simulate(
            robot, law("slotine-li", robot), robot.neutral() + 0.3, np.ones(7), 0.2, 5e-3, **grouped(**options)
        )
        energy = run.monitors["energy"]
        ends.append((run.reason, len(run.t), run.ok, energy.verdict, f"{energy.worst:.5e}"))
    assert ends[0] == ends[1]
    assert ends[0][1:4] == ((41, True, "held") if limit == 1.0 else (41, None, "UNRESOLVED"))


@pytest.mark.parametrize("limit", [1e-12, 1.3e-8, 1.0])
def test_strict_ends_at_the_same_step(limit):
    """The adaptive law with a coarse step loses more and more energy."""
    robot, ends = models.panda(), []
    for compiled in (False, True):
        monitors = [Observed(limit)]
        q0 = robot.neutral() + 0.3
        try:
            options = {"monitors": monitors, "strict": True, "compiled": compiled}
            run = gc.simulate(robot, law("slotine-li", robot), q0, np.ones(7), 0.2, 5e-3, **grouped(**options))
            ends.append((run.reason, len(run.t), run.ok))
        except gc.SimulationError as error:
            ends.append((str(error), len(error.run.t), error.run.ok))
    assert ends[0] == ends[1]
    assert ends[0][2] == (limit == 1.0)


@pytest.mark.quick(1)
@pytest.mark.parametrize("control_dt", [None, 2e-3])
def test_an_unstable_loop_ends_with_its_reason(control_dt):
    robot, ends = models.two_link(), []
    controller = controllers.ComputedTorque(robot, reference(robot), kp=1e7, kd=1.0)
    for compiled in (False, True):
        with pytest.raises(gc.SimulationError) as caught:
            flat_simulate(
                robot,
                controller,
                robot.neutral() + 0.1,
                np.zeros(2),
                0.1,
                1e-3,
                control_dt=control_dt,
                compiled=compiled,
            )
        run = caught.value.run
        assert "the closed loop is unstable" in str(caught.value)
        assert f"t = {run.t[-1]:.6g} s" in str(caught.value) or "state is not finite" in str(caught.value)
        assert run.steps == len(run.t) - 1  # a step whose sample failed is not counted
        ends.append((len(run.t), run.steps, run.t[-1], run.success))
    # differences of numbers of 1e200 exceed the tolerance by rounding
    np.testing.assert_allclose(ends[0], ends[1], atol=1)
    assert ends[0][0] > 3


def test_a_law_without_a_result_for_a_while_goes_on_in_python():
    """An angle too large for fast sines, and a pole: compiled code has no result there, but Python has."""
    robot = models.two_link()

    class Rooted:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(robot.gravity_force(q) - v + np.where(t > 0.5, np.sqrt(np.abs(q)), 0.0) * 1e-3)

    q0 = np.array([2e5, -3e5])
    assert_same(*both_ways(robot, Rooted(), q0=q0, v0=np.zeros(2), t_end=0.1))


# --- a pair that chooses its steps -------------------------------------------------------------------------------


@pytest.fixture
def spied(monkeypatch):
    """Errors are raised in Python at the sample where compiled code stopped."""
    seen = SimpleNamespace(paces=[], errors=[], stops=[])
    advance, factor, run = Loop.advance, StepControl.factor, Machine.run

    def spied_advance(self, *args):
        advance(self, *args)
        seen.paces.append(self.h)

    def spied_factor(self, error, before):
        seen.errors.append(error)
        return factor(self, error, before)

    def spied_run(self, *args):
        result = run(self, *args)
        seen.stops.append(result[2])
        seen.paces.extend(self.pace[:, 0])
        return result

    monkeypatch.setattr(Loop, "advance", spied_advance)
    monkeypatch.setattr(StepControl, "factor", spied_factor)
    monkeypatch.setattr(Machine, "run", spied_run)
    return seen


@pytest.mark.quick(1)
@pytest.mark.parametrize("tolerances", TOLERANCES)
@pytest.mark.parametrize("control_dt", [None, 0.1])
@pytest.mark.parametrize("robot", ["two_link", "three_spheres"])
def test_a_pair_takes_the_same_steps(robot, control_dt, tolerances, spied, monkeypatch):
    """Equal numbers of steps between samples, with a short last interval; and in one call or many."""
    robot = ROBOTS[robot]()
    options = {"method": "MK54", "control_dt": control_dt, "every": 4, **tolerances}
    run = partial(both_ways, loaded(robot), law("slotine-li", robot), dt=0.05, t_end=1.02, **options)
    (at_once,) = run(ways=[True])
    monkeypatch.setattr(loop_runner, "CHUNK_STEPS", 1)
    monkeypatch.setattr("geomctrl.control.loop.LONGER_CHUNKS", 1)
    spied.paces.clear()
    python, compiled = run()
    assert_same(python, compiled)
    assert same_bits(compiled, at_once)
    assert not any(spied.stops)
    assert len(spied.paces) == 2 * 21
    np.testing.assert_allclose(spied.paces[21:], spied.paces[:21], rtol=1e-9)
    assert min(spied.paces) < 0.5 * 0.05


def test_steps_are_rejected(spied):
    """At a jump of the torque. Whether a step ends just before or after it has a large effect: Python's own runs
    differ, too.
    """
    robot = models.two_link()
    push = Pushed(robot, lambda t, v: np.where(t > 0.333, 5.0, 0.0) * np.ones(2))
    python, compiled = both_ways(robot, push, t_end=1.0, dt=0.05, method="MK54")
    assert max(spied.errors) > 10.0
    assert spied.stops == [0]
    for name in ("q", "v", "tau"):
        np.testing.assert_allclose(getattr(compiled, name), getattr(python, name), atol=1e-4)


def test_an_interval_that_turns_too_far_is_pythons(spied):
    """A step that turns by more than 2 pi is rejected in compiled code; it continues from the next sample on."""
    robot = models.three_spheres()
    push = Pushed(robot, lambda t, v: np.where(t > 0.333, 6e4, 0.0) * np.where(t < 0.36, 1.0, 0.0) * np.ones(len(v)))
    python, compiled = both_ways(robot, push, t_end=1.0, dt=0.05, method="MK54", rtol=0.1, atol=10.0)
    assert_same(python, compiled, 1e-9)
    assert spied.stops == [1, 0]


class Pushed:
    """A law of gravity, damping, and a push(t, v)."""

    def __init__(self, robot, push):
        self.robot, self.push = robot, push

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.robot.gravity_force(q) - v + self.push(t, v))


WRONG = {
    "no torque": (
        {},
        lambda t, v: np.sqrt(0.333 - t) * np.ones(len(v)),
        "too stiff: controller: expected tau, an array of",
    ),
    "too many steps": (
        {"rtol": 1e-9, "atol": 1e-11},
        lambda t, v: np.where(t > 0.333, 100.0, 0.0) * np.sin(1e4 * t) * np.ones(len(v)),
        "more than 60 steps from t = 0.3 s to reach",
    ),
    "no step": (
        {"rtol": 1e-9, "atol": 1e-11},
        lambda t, v: np.where(t > 0.333, 1e9, 0.0) * np.sin(1e16 * t) * np.ones(len(v)),
        "can not be met at t = 0.33",
    ),
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("robot", ["two_link", "three_spheres"])
def test_what_a_pair_can_not_do_ends_with_its_reason(robot, case, spied, monkeypatch):
    for module in (closed_loop, trace):
        monkeypatch.setattr(module, "MAX_STEPS", 60)
    monkeypatch.setattr(choice, "_traces", type(choice._traces)())
    robot, ends = ROBOTS[robot](), []
    options, push, words = WRONG[case]
    for compiled in (False, True):
        q0 = robot.integrate(robot.neutral(), 0.1 * np.ones(robot.nv))
        with pytest.raises(gc.SimulationError, match=words) as caught:
            gc.simulate(
                robot,
                Pushed(robot, push),
                q0,
                0.1 * np.ones(robot.nv),
                1.0,
                0.05,
                **grouped(method="MK54", compiled=compiled, **options),
            )
        ends.append(caught.value.run)
    assert len(ends[0].t) == len(ends[1].t) == 7
    np.testing.assert_allclose(ends[0].q, ends[1].q, atol=1e-12)
    assert spied.stops == [1]


# --- in lanes ----------------------------------------------------------------------------------------------------


def cases(n, robot, rng):
    for _ in range(n):
        motion = Sinusoids(robot, robot.neutral(), rng.uniform(0.1, 0.3), 0.7, 0.3)
        controller = controllers.SlotineLi(robot, motion, rng.uniform(1.0, 3.0), rng.uniform(3.0, 6.0), rate=1e-3)
        plant = gc.Plant(robot.with_payload(rng.uniform(0.1, 2.0)), gc.Friction(rng.uniform(0.0, 0.2)))
        yield plant, controller, robot.random_configuration(rng), 0.1 * rng.normal(size=robot.nv)


def same_bits(a, b, names=("t", "q", "v", "z", "tau")):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("robot", "method", "dt"),
    [
        ("two_link", "MK4", 1e-3),
        ("panda", "MK4", 1e-3),
        ("quadruped", "MK4", 1e-3),
        ("panda", "MK54", 1e-2),
        ("three_spheres", "MK54", 1e-2),
    ],
)
def test_a_run_has_the_same_bits_in_any_lane_and_thread(robot, method, dt):
    """11 loops that differ in payload, friction, gains, motion and start: a group of eight lanes and three more."""
    inputs = list(cases(11, ROBOTS[robot](), np.random.default_rng(0)))
    columns = list(zip(*inputs))
    arguments = 300 * dt, dt
    run = partial(flat(gc.simulate_many), *columns, *arguments, method=method, every=100, compiled=True)
    one, two = run(), run(threads=2)
    assert all(same_bits(a, b) for a, b in zip(one, two))
    for k in (0, 7, 10):
        alone = gc.simulate(*inputs[k], *arguments, options=gc.SimulationOptions(method, 100, compiled=True))
        assert same_bits(alone, one[k])
        assert {n: (m.worst, m.t_worst) for n, m in alone.monitors.items()} == {
            n: (m.worst, m.t_worst) for n, m in one[k].monitors.items()
        }
    assert_same(
        gc.simulate(*inputs[3], *arguments, options=gc.SimulationOptions(method, 100, compiled=False)), one[3], 1e-9
    )


def test_a_run_has_the_same_bits_watched_or_not_and_whatever_is_stored():
    plant, controller, q0, v0 = next(cases(1, models.two_link(), np.random.default_rng(1)))
    run = partial(flat_simulate, plant, controller, q0, v0, 0.1, 1e-3, compiled=True)
    watched, alone, thinned = run(), run(monitors=None), run(every=7)
    assert same_bits(watched, alone)
    np.testing.assert_array_equal(watched.z[::7], thinned.z[:15])


def test_a_lane_that_fails_ends_alone():
    robot, rng = models.panda(), np.random.default_rng(2)
    inputs = list(cases(9, robot, rng))
    wild = controllers.SlotineLi(robot, reference(robot), 2.0, 5e5, rate=1e-3)
    inputs[4] = (inputs[4][0], wild, *inputs[4][2:])
    runs = gc.simulate_many(*zip(*inputs), 0.3, 1e-3, options=COMPILED)
    assert [run.success for run in runs] == [k != 4 for k in range(9)]
    assert runs[4].reason.startswith(("stopped at t =", "the closed loop is unstable"))
    assert 0 < len(runs[4].t) < 300
    with pytest.raises(gc.SimulationError) as caught:
        gc.simulate(*inputs[4], 0.3, 1e-3, options=IN_PYTHON)
    assert abs(caught.value.run.steps - runs[4].steps) <= 1
    for k in (0, 3, 5, 8):
        assert same_bits(runs[k], gc.simulate(*inputs[k], 0.3, 1e-3, options=COMPILED))


def test_a_lane_of_a_pair_that_fails_ends_alone():
    """An interval in which other lanes have already taken some steps: they repeat them."""
    robot, rng = models.two_link(), np.random.default_rng(4)
    starts = [0.1, 0.2, 0.3, 0.4, 1.0, 0.4, 0.3, 0.2, 0.1]
    inputs = [(robot, Fading(robot, a), 0.3 * rng.normal(size=2), np.zeros(2)) for a in starts]
    runs = gc.simulate_many(*zip(*inputs), 30.0, 0.1, options=gc.SimulationOptions(method="MK54", compiled=True))
    assert [run.success for run in runs] == [k != 4 for k in range(9)]
    for k in (0, 3, 5, 8):
        assert same_bits(
            runs[k], gc.simulate(*inputs[k], 30.0, 0.1, options=gc.SimulationOptions(method="MK54", compiled=True))
        )
    with pytest.raises(
        gc.SimulationError, match=r"stopped at t = 15 s: .*: expected tau, an array of 2 finite"
    ) as caught:
        gc.simulate(*inputs[4], 30.0, 0.1, options=gc.SimulationOptions(method="MK54", compiled=False))
    assert (str(caught.value), caught.value.run.steps) == (runs[4].reason, runs[4].steps)
    np.testing.assert_allclose(runs[4].q, caught.value.run.q, atol=1e-9)


class Doubling:
    """A sampled law with an integer that doubles in each call; compiled code has no result from 2^53 on."""

    def __init__(self, number):
        self.number = number

    def __call__(self, t, q, v, z):
        self.number *= 2
        return gc.Command(-2.0 * q - v + 1e-3 * (self.number % 7))


@pytest.mark.parametrize("choice", [True, "auto"])
@pytest.mark.parametrize("number", [2**22, 2**30], ids=["at the last sample", "before"])
def test_python_completes_a_lane_that_has_no_result_any_more(number, choice):
    robot, q0 = models.two_link(), np.full((4, 2), 0.1)
    laws, expected = ([Doubling(x) for x in (0, number, 0, 0)] for _ in range(2))
    loops = [
        gc.simulate_many(robot, x, q0, np.zeros(2), 0.3, 1e-3, 1e-2, options=options)
        for x, options in ((laws, gc.SimulationOptions(compiled=choice)), (expected, IN_PYTHON))
    ]
    for a, b in zip(*loops):
        assert (a.success, a.reason, a.steps) == (b.success, b.reason, b.steps)
        np.testing.assert_allclose(a.q, b.q, rtol=1e-12)
        assert a.compared
    assert [law.number for law in laws] == [law.number for law in expected]


class Fading:
    """A torque that is zero from t = 15.09 / a on."""

    def __init__(self, robot, a):
        self.robot, self.a = robot, a

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.robot.gravity_force(q) - v + np.sqrt(15.09 - self.a * t) * np.sin(20.0 * t))


def test_loops_of_several_kinds_at_once():
    """Two robots, a law that can not be traced, and a plant that changes: each run equals a single one."""
    panda, arm = models.panda(), models.two_link()
    inputs = [
        (panda, law("pd", panda), panda.neutral(), np.ones(7)),
        (arm, law("pd", arm), arm.neutral(), np.ones(2)),
        (gc.Plant(panda, changes=[(0.1, loaded(panda))]), law("pd", panda), panda.neutral(), np.ones(7)),
        (panda, law("slotine-li", panda), panda.neutral(), np.ones(7)),
    ]
    for k, run in enumerate(gc.simulate_many(*zip(*inputs), 0.3, 1e-3)):
        assert_same(gc.simulate(*inputs[k], 0.3, 1e-3, options=IN_PYTHON), run, 1e-9)


def test_what_is_given_once_is_the_same_for_all():
    robot = models.two_link()
    starts = np.random.default_rng(0).normal(size=(3, 2))
    runs = gc.simulate_many(robot, law("pd", robot), starts, np.zeros(2), 0.01, 1e-3)
    assert [run.q[0].tolist() for run in runs] == starts.tolist()
    options = {"method": "MK54", "rtol": 1e-9, "atol": 1e-10, "compiled": True}
    pair = gc.simulate_many(robot, law("pd", robot), starts, np.zeros(2), 0.5, 1e-2, **grouped(**options))[1]
    assert same_bits(
        pair, gc.simulate(robot, law("pd", robot), starts[1], np.zeros(2), 0.5, 1e-2, **grouped(**options)), "tqv"
    )
    with pytest.raises(gc.ArgumentError, match="plants, q0: expected as many of each, got 2, 3"):
        gc.simulate_many([robot, robot], law("pd", robot), starts, np.zeros(2), 0.01, 1e-3)
    with pytest.raises(gc.ArgumentError, match="threads: expected a whole number"):
        gc.simulate_many(robot, law("pd", robot), starts, np.zeros(2), 0.01, 1e-3, threads=0)


# --- what stays in Python ----------------------------------------------------------------------------------------


class Law:
    """A user's own law; `body` is called first."""

    def __init__(self, robot, body):
        self.robot, self.body, self.count, self.log = robot, body, 0, []

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        self.body(self, t, q)
        return gc.Command(self.robot.gravity_force(q) - v)


def counts(self, t, q):
    self.count += 1


def logs(self, t, q):
    self.log.append(t)


def logs_outside(self, t, q):
    LOG.append(t)


def branches(self, t, q):
    if q[0] > 0.0:
        self.log = []


def draws(self, t, q):
    np.random.normal()  # noqa: NPY002


REFUSED = [
    (counts, "controller.count changes during a call"),
    (logs, "log changes during a call"),
    (logs_outside, "LOG changes during a call"),
    (branches, "log changes during a call"),
    (draws, "the state of random numbers changes during a call"),
]


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_what_does_not_trace_runs_in_python_and_is_left_alone(body, message, monkeypatch):
    monkeypatch.setattr(choice, "MIN_EVALUATIONS", 10)
    monkeypatch.setattr(choice, "_warned", set())
    robot = models.two_link()
    run = partial(flat_simulate, robot, q0=np.ones(2), v0=np.zeros(2), t_end=0.02, dt=1e-3)
    LOG.clear()
    state = np.random.get_state()  # noqa: NPY002
    expected = Law(robot, body)
    python = run(controller=expected, compiled=False)
    logged = list(LOG)
    LOG.clear()
    np.random.set_state(state)  # noqa: NPY002
    controller = Law(robot, body)
    with pytest.warns(RuntimeWarning, match=f"this loop runs in Python: .*{message}"):
        auto = run(controller=controller, compiled="auto")
    assert same_bits(python, auto, ("t", "q", "v", "tau"))
    assert (controller.count, controller.log, logged) == (expected.count, expected.log, LOG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(controller=Law(robot, body), compiled="auto")  # one warning only
    with pytest.raises(UntraceableError, match=message):
        run(controller=Law(robot, body), compiled=True)


class Hidden:
    """A law that depends on data outside its arguments and attributes."""

    def __init__(self, robot):
        self.robot = robot

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.robot.gravity_force(q) - (1.0 + np.random.default_rng().random()) * v)


def test_a_hidden_memory_is_found_by_comparison():
    robot = models.two_link()
    with pytest.raises(UntraceableError, match="differs from its value in Python"):
        gc.simulate(robot, Hidden(robot), np.ones(2), np.ones(2), 0.01, 1e-3, options=COMPILED)


def test_short_runs_are_pythons():
    robot = models.two_link()
    gc.simulate(robot, Law(robot, counts), np.ones(2), np.zeros(2), 0.02, 1e-3)  # no reason for a warning
    with pytest.raises(gc.ArgumentError, match='compiled: expected "auto", True or False'):
        gc.simulate(
            robot, law("pd", robot), np.ones(2), np.zeros(2), 0.02, 1e-3, options=gc.SimulationOptions(compiled="yes")
        )


def test_progress_and_an_error_of_its_callers():
    robot, seen = models.two_link(), []
    gc.simulate(robot, law("pd", robot), np.ones(2), np.zeros(2), 10.0, 1e-3, progress=seen.append, options=COMPILED)
    assert seen[-1] == 1.0
    assert len(seen) >= 3
    assert sorted(seen) == seen

    def fails(fraction):
        if fraction > 0.5:
            raise RuntimeError("enough")

    with pytest.raises(
        gc.SimulationError,
        match=r"RuntimeError in the closed loop \(test_compiled_loop.py, line \d+, in fails\): enough",
    ) as caught:
        gc.simulate(robot, law("pd", robot), np.ones(2), np.zeros(2), 10.0, 1e-3, progress=fails, options=COMPILED)
    assert len(caught.value.run.t) > 5000


def test_one_trace_serves_loops_that_differ_in_numbers(monkeypatch):
    created = []
    original = choice.trace_loop
    monkeypatch.setattr(choice, "trace_loop", lambda *args, **options: created.append(1) or original(*args, **options))
    monkeypatch.setattr(choice, "_traces", type(choice._traces)())
    for plant, controller, q0, v0 in cases(4, models.two_link(), np.random.default_rng(3)):
        gc.simulate(plant, controller, q0, v0, 0.01, 1e-3, options=COMPILED)
    assert len(created) == 1


def test_rotors_make_a_robot_of_their_own():
    """A structure with bodies that are moved by motors only."""
    robot = with_rotors(models.two_link(), 0.1)
    assert_same(*both_ways(robot, law("pd", robot)))
