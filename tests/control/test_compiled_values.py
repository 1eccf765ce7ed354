"""A compiled law is immutable, can be copied and pickled, and raises the same exceptions as Python."""

import copy
import math
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from simulation_options import COMPILED, IN_PYTHON, both_ways, flat_simulate

import geomctrl as gc
from geomctrl import actuators, controllers, models
from geomctrl.tracing.symbols import UntraceableError


class Gained:
    """A law with a number and an array as attributes."""

    def __init__(self, robot=None):
        self.robot, self.k, self.goal = models.two_link() if robot is None else robot, 3.0, np.array([0.2, -0.1])

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(-self.k * (q - self.goal) - v, None, {"error": q - self.goal})


Q, V = np.array([0.3, 0.4]), np.array([-0.2, 0.1])


def torque(law):
    return law(0.5, Q, V, None).tau


def test_attributes_can_not_be_set():
    law = gc.compile(Gained())
    for change in (lambda: setattr(law, "k", 5.0), lambda: setattr(law, "new", 1), lambda: delattr(law, "operations")):
        with pytest.raises(gc.ArgumentError, match="set it on the controller, and compile that again"):
            change()
    with pytest.raises(ValueError, match="read-only"):
        law.goal[0] = 1.0
    assert law.k == 3.0


def test_later_changes_of_the_controller_do_not_reach_it():
    """Refuse states that are not finite, whether the loop is compiled or not."""
    controller = Gained()
    law, before = gc.compile(controller), torque(controller)
    controller.k, controller.goal[:] = 50.0, 9.0
    np.testing.assert_array_equal(torque(law), before)
    np.testing.assert_array_equal(law(0.5, Q, np.array([0.1, 0.1]), None).signals["error"], Q - [0.2, -0.1])
    runs = both_ways(models.two_link(), law, Q, V, 0.05, 1e-3)
    plain = gc.simulate(models.two_link(), Gained(), Q, V, 0.05, 1e-3, options=IN_PYTHON)
    for run in runs:
        np.testing.assert_allclose(run.q, plain.q, rtol=0.0, atol=1e-13)


def test_copies_and_pickles():
    law = gc.compile(Gained())
    for other in (copy.copy(law), copy.deepcopy(law), pickle.loads(pickle.dumps(law)), gc.compile(law)):
        np.testing.assert_array_equal(torque(other), torque(law))
        assert other.outputs == law.outputs
        assert other.operations == law.operations


def test_a_law_compiled_for_another_robot_is_pickled_with_it():
    robot = models.two_link().with_payload(1.0, (0.1, 0.0, 0.0), 0.01 * np.eye(3))
    law = pickle.loads(pickle.dumps(gc.compile(controllers.PDGravity(models.two_link(), [0.1, 0.2]), robot)))
    np.testing.assert_array_equal(law._robot.parameters, robot.parameters)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_pool_of_processes(start):
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {start} on this system")
    law = gc.compile(controllers.PDGravity(models.two_link(), [0.1, 0.2]))
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(start)) as pool:
        np.testing.assert_array_equal(pool.submit(torque, law).result(), torque(law))


def test_inputs_and_outputs_have_names_and_shapes():
    law = gc.compile(controllers.SlotineLi(models.two_link(), gc.references.Quintic(models.two_link(), Q, Q, 1.0)))
    assert dict(law.inputs) == {"t": (), "q": (2,), "v": (2,), "z": (20,)}
    command = law(0.5, Q, V, law.start())
    outcome = {"tau": command.tau, "z_rate": command.z_rate, **command.signals}
    assert {name: np.shape(x) for name, x in outcome.items()} == dict(law.outputs)
    with pytest.raises(TypeError):
        law.outputs["tau"] = (3,)


class OfSomeStates(Gained):
    def __call__(self, t, q, v, z):
        return gc.Command(-math.acos(q[0]) * v)


class NeverDefined(Gained):
    def __call__(self, t, q, v, z):
        return gc.Command(-math.acos(2.0 + q[0] * q[0]) * v)


class OverTime(Gained):
    def __call__(self, t, q, v, z):
        return gc.Command(-v * (1.0 / (t - 1.0)) + q * (2.0 / t))


def test_states_outside_a_functions_domain_raise_pythons_exception():
    law, plain = gc.compile(OfSomeStates()), OfSomeStates()
    np.testing.assert_allclose(law(0.0, Q, V, None).tau, plain(0.0, Q, V, None).tau, rtol=1e-15)
    errors = []
    for one in (plain, law):
        with pytest.raises(ValueError, match="domain") as caught:
            one(0.0, np.array([1.5, 0.0]), V, None)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]
    with pytest.raises(
        UntraceableError, match="it can not be compared with Python, where it raises at all 64 states tried, ValueError"
    ):
        gc.compile(NeverDefined())


class FromText(Gained):
    """Computes by way of a text, which can not be traced, where q[0] is less than `limit`."""

    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def __call__(self, t, q, v, z):
        return gc.Command(-v * float(f"{q[0]}") if q[0] < self.limit else q - v)


def test_states_at_which_only_python_has_a_result_are_not_compared():
    law, plain = gc.compile(FromText(0.0)), FromText(0.0)
    for q in (Q, -Q):
        np.testing.assert_allclose(law(0.0, q, V, None).tau, plain(0.0, q, V, None).tau, rtol=1e-15)
    with pytest.raises(
        UntraceableError, match="FromText: compiled, it returns no result at any of 64 states, and Python"
    ):
        gc.compile(FromText(1e9))


@pytest.mark.parametrize("t", [0.0, 1.0])
def test_a_division_by_a_time_that_is_zero_raises(t):
    law = gc.compile(OverTime())
    np.testing.assert_allclose(law(0.5, Q, V, None).tau, OverTime()(0.5, Q, V, None).tau, rtol=1e-14)
    for one in (OverTime(), law):
        with pytest.raises(ZeroDivisionError):
            one(t, Q, V, None)


def test_a_run_ends_as_in_python_where_the_law_raises():
    ends = []
    for law, compiled in (
        (OfSomeStates(), False),
        (gc.compile(OfSomeStates()), False),
        (gc.compile(OfSomeStates()), True),
    ):
        with pytest.raises(gc.SimulationError) as caught:
            flat_simulate(models.two_link(), law, [0.9, 0.0], [3.0, 0.0], 1.0, 1e-3, monitors=None, compiled=compiled)
        ends.append(caught.value.run.t[-1])
    assert ends[0] == ends[1] == ends[2] < 1.0


class StopsUnseen(Gained):
    """A safety stop: a branch that tracing never takes."""

    def __call__(self, t, q, v, z):
        if getattr(q[0], "graph", None) is None and q[0] > 1.0:
            raise RuntimeError("joint limit")
        return gc.Command(-q - v)


def test_a_stop_that_the_trace_does_not_have_is_refused():
    with pytest.raises(
        UntraceableError, match=r"it returns a result at t = .*, where Python raises RuntimeError: joint limit"
    ):
        gc.compile(StopsUnseen())


class Uncopied(Gained):
    def __deepcopy__(self, memo):
        raise RuntimeError("no copies of me")


def test_what_can_not_be_copied_is_refused():
    with pytest.raises(UntraceableError, match=r"Uncopied: .* can not be copied \(RuntimeError: no copies of me\)"):
        gc.compile(Uncopied())


class Large:
    def __init__(self, numbers):
        self.robot, self.numbers = models.two_link(), numbers

    def start(self):
        return np.ones(self.numbers)

    def __call__(self, t, q, v, z):
        return gc.Command(-q - v + z[-2:], np.zeros(self.numbers))


def test_large_states_lie_on_no_stack_and_larger_ones_are_refused():
    import threading

    law, outcome = gc.compile(Large(40_000)), []
    before = threading.stack_size(131_072)  # shorter than the state
    try:
        thread = threading.Thread(target=lambda: outcome.append(law(0.1, Q, V, np.ones(40_000)).tau))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    np.testing.assert_array_equal(outcome[0], -Q - V + 1.0)
    with pytest.raises(UntraceableError, match=r"Large: a state of 1000000 numbers \(8 MB\), at most"):
        gc.compile(Large(1_000_000))
    with pytest.raises(UntraceableError, match="a state of 1000005 numbers"):
        gc.simulate(models.two_link(), Large(1_000_000), Q, V, 2e-3, 1e-3, options=COMPILED)


def test_a_delay_of_months_is_refused_with_its_memory():
    plant = gc.Plant(models.two_link(), actuators=[actuators.TransportDelay(1e7)])
    with pytest.raises(gc.ArgumentError, match=r"TransportDelay with a delay of 1e\+07 s .* 160 GB"):
        gc.simulate(plant, Gained(), Q, V, 0.01, 1e-3, control_dt=1e-3)
