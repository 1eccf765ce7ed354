"""Objects that are in two simultaneous calls: an error if calls change them, and none otherwise."""

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import geomctrl as gc
from geomctrl.control.compiled import law_use
from geomctrl.tracing.constant_arrays import ConstantArray
from geomctrl.tracing.patched_numpy import numpy_on_symbols

ROBOT = gc.models.two_link()
REST = np.zeros(2)
KP = np.diag((20.0, 10.0))


class Integrator:
    def __init__(self):
        self.i = np.zeros(2)

    def __call__(self, t, q, v, z):
        self.i += 0.01 * (0.3 - q)
        return gc.Command(KP @ (0.3 - q) - 5.0 * v + self.i)


class Latch:
    """A law whose memory is a constant of its class most of the time."""

    def __init__(self):
        self.modes = {"mode": "up"}

    def __call__(self, t, q, v, z):
        self.modes["mode"] = "down" if t > 0.1 else "up"
        return gc.Command((3.0 if self.modes["mode"] == "up" else -3.0) * np.ones(2) - 5.0 * v)


def counting_law():
    count = 0

    def law(t, q, v, z):
        nonlocal count
        count += 1
        return gc.Command(np.array([0.001 * count, 0.0]) - v)

    return law


class Without:
    def __init__(self):
        self.gains = {"kp": (KP, 3.0), "target": np.full(2, 0.3)}

    def __call__(self, t, q, v, z):
        return gc.Command(self.gains["kp"][0] @ (self.gains["target"] - q) - 5.0 * v)


def closure():
    K, target = KP.copy(), (np.full(2, 0.3), 1.0)
    return lambda t, q, v, z: gc.Command(K @ (target[0] - q) - 5.0 * v)


@pytest.fixture
def quick_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def run(law, compiled=False, progress=False, plant=ROBOT, **more):
    options = gc.SimulationOptions(compiled=compiled)
    arguments = {"t_end": 0.3, "dt": 1e-3, "control_dt": 1e-2, "monitors": None} | more
    return gc.simulate(plant, law, REST, REST, options=options, progress=progress, **arguments)


def together(laws, compiled=False, **more):
    """The results or errors of simultaneous runs: each waits in its middle until all have begun."""
    barrier = threading.Barrier(len(laws), timeout=60.0)

    def one(law):
        met = []

        def wait(fraction):
            if not met and fraction > 0.0:
                met.append(barrier.wait())

        try:
            return run(law, compiled, wait, **more)
        except gc.GeomctrlError as error:
            return error

    with ThreadPoolExecutor(len(laws)) as pool:
        return list(pool.map(one, laws))


@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
@pytest.mark.parametrize("make", [Integrator, Latch, counting_law])
def test_memory_in_two_runs_is_an_error_in_both(make, compiled):
    law = make()
    for error in together([law, law], compiled):
        assert isinstance(error, gc.ArgumentError)
        assert type(law).__name__ in str(error)
        assert "copy" in str(error)


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("compiled", [False, True], ids=["python", "compiled"])
@pytest.mark.parametrize("make", [Without, closure, lambda: gc.controllers.PDGravity(ROBOT, [0.3, 0.3], 20.0, 5.0)])
def test_laws_without_memory_may_be_shared(make, compiled):
    law = make()
    expected = run(copy.deepcopy(law)).q
    for result in together([law, law, law], compiled):
        np.testing.assert_allclose(result.q, expected, rtol=0.0, atol=1e-12)


def test_copies_and_one_after_the_other_are_no_conflict():
    law = Integrator()
    first = run(copy.deepcopy(law))
    for result in together([law, copy.deepcopy(law)]):
        np.testing.assert_array_equal(result.q, first.q)
    assert run(law).success  # with the memory that the run in a thread left
    np.testing.assert_array_equal(run(pickle.loads(pickle.dumps(law))).q, run(law).q)


def test_runs_within_a_run_and_failures_leave_nothing_behind():
    law, inner = Integrator(), []

    def nested(fraction):
        if fraction == 1.0:
            inner.append(run(law))

    def failing(fraction):
        raise ValueError("stopped")

    assert run(law, progress=nested).success
    assert inner[0].success
    with pytest.raises(gc.SimulationError, match="stopped"):
        run(law, progress=failing)
    with ThreadPoolExecutor(1) as pool:  # no use of the first thread is left
        assert pool.submit(run, law).result().success


def test_parallel_runs_count_as_one_use():
    law, started, finished = Integrator(), threading.Event(), threading.Event()

    def wait(fraction):
        if fraction > 0.0 and not started.is_set():
            started.set()
            finished.wait(60.0)

    with ThreadPoolExecutor(1) as pool:
        single = pool.submit(run, law, progress=wait)
        started.wait(60.0)
        with pytest.raises(gc.ArgumentError, match="two threads"):
            gc.simulate_many(ROBOT, [law], REST[None], REST[None], 0.3, 1e-3, 1e-2)
        finished.set()
        with pytest.raises(gc.ArgumentError, match="two threads"):
            single.result()
    laws = [Integrator() for _ in range(5)]
    runs = gc.simulate_many(ROBOT, laws, np.zeros((5, 2)), np.zeros((5, 2)), 0.3, 1e-3, 1e-2, threads=2)
    assert all(x.success for x in runs)


class Disturbance:
    def __init__(self):
        self.n = 0

    def __call__(self, t, q, v):
        self.n += 1
        return np.full((2, 6), 1e-3 * self.n)


class Cached:
    """A reference that stores its last result."""

    def __init__(self):
        self.last = None

    def __call__(self, t):
        self.last = np.full(2, 0.1 * t)
        return gc.Desired(self.last, np.full(2, 0.1), np.zeros(2))


class Tracking:
    def __init__(self, reference):
        self.reference = reference

    def __call__(self, t, q, v, z):
        return gc.Command(5.0 * (self.reference(t).q - q) - 3.0 * v)


class Largest(gc.monitors.Monitor):
    name, description, limit = "largest", "largest |v|", 100.0

    def start(self, plant, controller):
        self.largest = 0.0
        return True

    def measure(self, sample):
        self.largest = max(self.largest, abs(sample.v[0]))
        return self.largest


COUNTS = {"calls": 0}
CALLS = 0


def count_in_a_dict(t, q, v, z):
    COUNTS["calls"] += 1
    return gc.Command(1e-3 * COUNTS["calls"] - q - v)


def count(t, q, v, z):
    global CALLS
    CALLS += 1
    return gc.Command(1e-3 * CALLS - q - v)


class InClass:
    calls = 0

    def __call__(self, t, q, v, z):
        InClass.calls += 1
        return gc.Command(1e-3 * self.calls - q - v)


def damping(t, q, v, z):
    return gc.Command(KP @ (0.3 - q) - 3.0 * v)


def laws_around(law):
    """Two laws that call another one."""
    return [lambda t, q, v, z: gc.Command(2.0 * law(t, q, v, z).tau) for _ in range(2)]


PLANT, REFERENCE, MONITOR = gc.Plant(ROBOT, f_ext=Disturbance()), Cached(), Largest()


@pytest.mark.parametrize(
    ("laws", "more", "name"),
    [
        ([damping, Without()], {"plant": PLANT}, "Disturbance"),
        ([Tracking(REFERENCE), Tracking(REFERENCE)], {}, "Cached"),
        ([damping, Without()], {"monitors": [MONITOR]}, "Largest"),
        (laws_around(count_in_a_dict), {}, "dict"),
        (laws_around(count), {}, "CALLS"),
        ([InClass(), InClass()], {}, "calls"),
    ],
    ids=["disturbance", "reference", "monitor", "global dict", "global number", "class"],
)
def test_memory_outside_of_the_laws_is_an_error_in_both(laws, more, name):
    for error in together(laws, **more):
        assert isinstance(error, gc.ArgumentError)
        assert f"{name} changes during calls, and two threads used it" in str(error)


def test_environments_without_memory_may_be_shared():
    plant, reference = gc.Plant(ROBOT, friction=gc.Friction(viscous=0.1)), gc.references.hold(ROBOT, [0.3, 0.1])
    laws = [Tracking(reference), Tracking(reference), Integrator(), Integrator(), damping]
    assert all(x.success for x in together(laws, plant=plant, monitors="default"))


def test_a_run_that_ends_while_a_thread_traces_waits():
    law, ended = closure(), threading.Event()

    def end():
        other.__exit__(None, None, None)
        ended.set()

    with ThreadPoolExecutor(1) as pool, law_use.used_by_this_thread([law]):
        other = law_use.used_by_this_thread([law])
        pool.submit(other.__enter__).result()
        with numpy_on_symbols(roots=[law]):
            assert isinstance(law.__closure__[0].cell_contents, ConstantArray)
            end_of_run = pool.submit(end)
            assert not ended.wait(0.05)
        end_of_run.result()
