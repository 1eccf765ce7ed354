"""External wrenches at frames, and switches on which integrators step exactly."""

import copy
import pickle

import numpy as np
import pytest
from oracles import assert_close, random_motion
from simulation_options import both_ways, grouped

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.wrenches import ExternalWrenches

MASS, FORCE = 2.0, 3.0  # kg, N
ARM = models.two_link()


def cart():
    """A mass on a rail along x."""
    body = gc.inertia.from_com(MASS, (0.0, 0.0, 0.0), np.eye(3))
    return gc.Robot.build([gc.Body("cart", None, gc.Joint.prismatic((1, 0, 0), name="x"), None, body)], name="cart")


CART = cart()
PUSH = (0.0, 0.0, 0.0, FORCE, 0.0, 0.0)
RATIO = FORCE / MASS


class Idle:
    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(0.0 * v)


def run(plant, q0=0.0, v0=0.0, t_end=0.3, dt=0.01, law=None, **options):
    options = {"compiled": False} | options
    n = plant.robot.nv
    return gc.simulate(plant, law or Idle(), np.full(n, q0), np.full(n, v0), t_end, dt, **grouped(**options))


# --- closed forms ------------------------------------------------------------------------------------------------

PULSES = {
    "between samples": (0.0537, 0.1234),
    "within one step": (0.0512, 0.0571),
    "at samples": (0.05, 0.12),
    "almost at samples": (0.05 + 5e-12, 0.12 - 5e-12),
    "from the first": (0.0, 0.1234),
    "not yet over": (0.2999, 7.0),
}


@pytest.mark.parametrize(("method", "compiled"), [("MK2", False), ("MK54", False), ("MK4", True), ("MK54", True)])
@pytest.mark.parametrize("when", PULSES)
def test_a_pulse_moves_a_mass_as_far_as_newton_says(when, method, compiled):
    start, end = PULSES[when]
    result = run(gc.Plant(CART, f_ext=gc.Wrench("cart", PUSH, start, end)), method=method, compiled=compiled)
    lasts, after = min(end, 0.3) - start, max(0.3 - end, 0.0)
    assert result.q[-1, 0] == pytest.approx(RATIO * lasts * (0.5 * lasts + after), rel=1e-12)
    assert result.v[-1, 0] == pytest.approx(RATIO * lasts, rel=1e-12)
    assert result.monitors["energy"].worst < 1e-14


def test_without_switches_a_switched_function_breaks_the_energy_balance():
    """Why steps end at switches: without this the order is lost."""

    def pushed(t, q, v):
        return np.array([PUSH]) if 0.0537 <= t < 0.1234 else np.zeros((1, 6))

    assert run(gc.Plant(CART, f_ext=pushed)).ok is None  # truncation error of the step that contains the jump
    pushed.switches = (0.0537, 0.1234)
    assert run(gc.Plant(CART, f_ext=pushed), strict=True).ok


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
def test_a_function_of_ones_own_says_when_it_switches(compiled):
    def pushed(t, q, v):
        return np.where((t >= 0.0537) & (t < 0.1234), 1.0, 0.0) * np.array([PUSH])

    pushed.switches = (0.0537, 0.1234)
    result = run(gc.Plant(CART, f_ext=pushed), compiled=compiled)
    lasts = 0.1234 - 0.0537
    assert result.q[-1, 0] == pytest.approx(RATIO * lasts * (0.5 * lasts + 0.3 - 0.1234), rel=1e-12)


def test_a_value_switches_within_its_time():
    def value(t):
        return np.where(t < 0.1111, 1.0, -1.0) * np.array(PUSH)

    value.switches = (0.1111,)
    for compiled in (False, True):
        result = run(gc.Plant(CART, f_ext=gc.Wrench("cart", value, 0.0333, 0.1889)), compiled=compiled)
        assert result.v[-1, 0] == pytest.approx(0.0, abs=1e-15)
        assert result.q[-1, 0] == pytest.approx(RATIO * 0.0778**2, rel=1e-12)


def test_wrenches_and_functions_add_up():
    parts = [gc.Wrench("cart", PUSH, 0.0537), lambda t, q, v: 2.0 * np.array([PUSH]), gc.Wrench("cart", PUSH, end=0.1)]
    result = run(gc.Plant(CART, f_ext=parts))
    assert result.v[-1, 0] == pytest.approx(RATIO * (0.3 - 0.0537 + 2.0 * 0.3 + 0.1), rel=1e-12)


def test_a_load_is_gripped_when_the_push_ends():
    """Two kinds of switches at the same time, and one switch of both kinds."""
    heavy = CART.with_parameters(2.0 * CART.parameters)
    result = run(gc.Plant(CART, f_ext=gc.Wrench("cart", PUSH, 0.1, 0.25), changes=[(0.1777, heavy)]), strict=True)
    assert result.v[-1, 0] == pytest.approx(RATIO * (0.0777 + 0.5 * 0.0723), rel=1e-12)


# --- order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "order"), [("MK2", 2), ("CG3", 3), ("MK4", 4)])
def test_integrators_keep_their_order_across_switches(method, order):
    def swaying(t):
        return np.array([0.0, 0.0, 0.0, 4.0 * np.cos(3.0 * t), 0.0, 5.0])

    plant = gc.Plant(ARM, f_ext=gc.Wrench("tip", swaying, 0.0837, 0.2921, "hybrid"))
    best = run(plant, 0.3, 0.2, 0.4, 0.005, method="MK8").q[-1]
    errors = [np.abs(run(plant, 0.3, 0.2, 0.4, dt, method=method).q[-1] - best).max() for dt in (0.04, 0.02, 0.01)]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert slopes.min() > order - 0.35, (errors, slopes)


# --- the same everywhere -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("representation", ["body", "hybrid", "spatial", "mixed"])
def test_a_plant_feels_the_wrench_of_a_frame(representation):
    robot = models.panda()
    q, v, tau, _ = random_motion(robot)
    F = np.arange(1.0, 7.0)
    plant = gc.Plant(robot, f_ext=gc.Wrench("panda_hand_tcp", F, representation=representation))
    push = robot.jacobian(q, "panda_hand_tcp", representation).T @ F
    assert_close(plant.acceleration(0.0, q, v, tau), robot.forward_dynamics(q, v, tau + push), 1e-10)
    assert plant.power(0.0, q, v, tau) == pytest.approx(v @ (tau + push), rel=1e-10)


@pytest.mark.quick(1)
@pytest.mark.parametrize("control_dt", [None, 0.002])
def test_compiled_loops_are_those_of_python(control_dt):
    law = controllers.PDGravity(ARM, [0.5, -0.3], kp=40.0, kd=8.0)
    plant = gc.Plant(
        ARM,
        gc.Friction(0.2),
        [
            gc.Wrench("tip", (0, 0, 0, 0, 8.0, 3.0), 0.0507, 0.1, "hybrid"),
            gc.Wrench("link1", (0.0, 2, 0, 0, 0, 0), 0.07),
        ],
    )
    ways = both_ways(plant, law, [0.1, 0.2], [0.0, 0.3], 0.2, 1e-3, control_dt=control_dt)
    np.testing.assert_allclose(ways[0].q, ways[1].q, atol=1e-12)
    np.testing.assert_allclose(*(way.monitors["energy"].values for way in ways), atol=1e-11)


def test_sweeps_and_many_loops_switch_too():
    def make(force):
        plant = gc.Plant(CART, f_ext=gc.Wrench("cart", np.multiply(force, PUSH), 0.0537, 0.1234))
        return plant, Idle(), [0.0], [0.0]

    lasts = 0.1234 - 0.0537
    expected = RATIO * lasts * (0.5 * lasts + 0.3 - 0.1234)
    plants = [make(force)[0] for force in (1.0, 2.0, -1.0)]
    runs = gc.simulate_many(plants, Idle(), [0.0], [0.0], 0.3, 1e-3)
    np.testing.assert_allclose([r.q[-1, 0] for r in runs], expected * np.array([1.0, 2.0, -1.0]), rtol=1e-12)
    table = gc.sweep(
        lambda point: make(point["force"]), {"force": [1.0, 2.0]}, {"x": lambda run: run.q[-1, 0]}, t_end=0.3, dt=1e-3
    )
    np.testing.assert_allclose(np.ravel(table["x"]), expected * np.array([1.0, 2.0]), rtol=1e-12)


def test_a_plant_is_what_it_is_until_the_next_switch():
    plant = gc.Plant(CART, f_ext=gc.Wrench("cart", PUSH, 1.0, 2.0))
    assert plant.switches == (1.0, 2.0)
    q = v = tau = np.zeros(1)
    now = [plant.at(t).acceleration(t, q, v, tau)[0] for t in (0.0, 1.0, 1.5, 2.0)]
    assert now == [0.0, RATIO, RATIO, 0.0]
    assert [plant.acceleration(t, q, v, tau)[0] for t in (0.0, 1.0, 1.5, 2.0)] == now
    assert plant.at(1.0).acceleration(2.0, q, v, tau) == [RATIO], "a step that ends at 2 s sees what acts up to there"
    for twin in (copy.deepcopy(plant), pickle.loads(pickle.dumps(plant)), gc.Plant(CART, f_ext=plant.f_ext)):
        assert isinstance(twin.f_ext, ExternalWrenches)
        assert [twin.acceleration(t, q, v, tau)[0] for t in (0.0, 1.0, 1.5, 2.0)] == now


# --- bad input ---------------------------------------------------------------------------------------------------


def with_switches(*times):
    def f(t, q, v):
        return np.zeros((1, 6))

    f.switches = times
    return f


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gc.Wrench("cart", PUSH, 1.0, 1.0), "end: expected a time after start = 1 s, got 1.0"),
        (lambda: gc.Wrench("cart", PUSH, 2.0, 1.0), "end: expected a time after start = 2 s"),
        (lambda: gc.Wrench("cart", PUSH, np.nan), "start: expected a finite number, got nan"),
        (lambda: gc.Wrench("cart", PUSH[:3]), r"value: expected shape \(..., 6\), got \(3,\)"),
        (lambda: gc.Wrench("cart", PUSH, representation="world"), "representation: expected one of"),
        (lambda: gc.Wrench(3, PUSH), "frame: expected the name of a frame, got 3"),
        (lambda: gc.Plant(CART, f_ext=3.0), "f_ext: expected a function of .t, q, v., a Wrench, a Contact"),
        (
            lambda: gc.Plant(CART, f_ext=[3.0]),
            "f_ext: expected a function of .t, q, v., a Wrench or a Contact, got 3.0",
        ),
        (lambda: gc.Plant(CART, f_ext=gc.Wrench("world", PUSH)), "frame: expected one on a body of 'cart'"),
        (lambda: gc.Plant(CART, f_ext=with_switches(np.inf)), "f_ext.switches: expected finite times, got inf"),
        (lambda: gc.Plant(CART, f_ext=with_switches("soon")), "f_ext.switches: expected finite times, got 'soon'"),
    ],
)
def test_what_is_no_wrench_is_refused(make, said):
    with pytest.raises(gc.ArgumentError, match=said):
        make()


def test_unknown_frames_are_named_when_the_plant_is_made():
    with pytest.raises(gc.NameNotFoundError, match="no frame named 'card'; did you mean 'cart'"):
        gc.Plant(CART, f_ext=gc.Wrench("card", PUSH))


@pytest.mark.parametrize("value", [lambda t: np.zeros(3), lambda t: np.full(6, np.nan)])
def test_a_value_that_is_no_wrench_ends_the_run_with_words(value):
    with pytest.raises(gc.SimulationError, match="wrench: expected"):
        run(gc.Plant(CART, f_ext=gc.Wrench("cart", value)))


def test_what_is_summed_is_not_broadcast():
    with pytest.raises(gc.SimulationError, match="f_ext: expected shape"):
        run(gc.Plant(CART, f_ext=[lambda t, q, v: np.array(PUSH), gc.Wrench("cart", PUSH)]))
