"""One controller object in two simultaneous calls: an error if calls change it, and none otherwise."""

import copy
import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import geomctrl as gc
from geomctrl.control.compiled import law_use
from geomctrl.tracing.constant_arrays import visible_arrays

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


class Largest(gc.monitors.Monitor):
    name, description, limit = "largest", "largest |v|", 100.0

    def start(self, plant, controller):
        self.largest = 0.0
        return True

    def measure(self, sample):
        self.largest = max(self.largest, abs(sample.v[0]))
        return self.largest


class Numbered(Integrator):
    """Numbers its objects, which other objects' runs do not see."""

    count = 0

    def __init__(self):
        super().__init__()
        Numbered.count += 1
        TEAM.append(self)


TEAM = []


@pytest.mark.parametrize("more", [{"plant": gc.Plant(ROBOT, f_ext=Disturbance())}, {"monitors": [Largest()]}])
def test_a_plant_or_monitor_that_calls_change_is_an_error_in_both(more):
    for error in together([Integrator(), Integrator()], **more):
        assert isinstance(error, gc.ArgumentError)
        assert "two threads used the same object" in str(error)


def test_plants_without_memory_and_laws_in_one_list_may_be_shared():
    plant = gc.Plant(ROBOT, friction=gc.Friction(viscous=0.1))
    laws = [Numbered() for _ in range(3)]
    assert all(x.success for x in together(laws, plant=plant, monitors="default"))


def test_a_comparison_that_fails_leaves_no_mark(monkeypatch):
    law = closure()
    with ThreadPoolExecutor(1) as pool, law_use.used_by_this_thread([law]):
        other = law_use.used_by_this_thread([law])
        pool.submit(other.__enter__).result()
        with monkeypatch.context() as patched:
            patched.setattr(law_use, "_changed", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                pool.submit(other.__exit__, None, None, None).result()
    assert not law_use._running


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_inherit_the_runs_of_other_threads():
    law = closure()
    with ThreadPoolExecutor(1) as pool:
        other = law_use.used_by_this_thread([law])
        pool.submit(other.__enter__).result()
        child = os.fork()
        if not child:
            os._exit(len(law_use._running))
        assert os.waitpid(child, 0)[1] == 0
        pool.submit(other.__exit__, None, None, None).result()


def test_a_thread_that_traces_is_no_conflict():
    law = closure()
    with ThreadPoolExecutor(1) as pool, law_use.used_by_this_thread([law]):
        other = law_use.used_by_this_thread([law])
        pool.submit(other.__enter__).result()
        with visible_arrays([law]):
            assert type(law.__closure__[0].cell_contents) is not np.ndarray
            pool.submit(other.__exit__, None, None, None).result()
