"""While one thread traces, names of its modules are replaced; code of other threads computes as always."""

import builtins
import functools
import math
import os
import signal
import statistics
import threading
import time

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import geomctrl as gc
from geomctrl.control.compiled import choice
from geomctrl.tracing import constant_arrays, locks, trace
from geomctrl.tracing.patched_numpy import numpy_on_symbols

TABLE = CubicSpline([0.0, 1.0, 2.0], [0.0, 3.0, 1.0])
clip, BY_TYPE = np.clip, {float: 1.0, int: 2}


@functools.lru_cache
def cached(x):
    return [x]


def results():
    """Results of functions that a trace replaces, with their types."""
    x, y = 1.5, 2
    values = [max(y, x), min([3, 1], default=0), math.sin(x), math.floor(x), statistics.mean([x, y]), float("1.5")]
    values += [int(x), type(x) is float, isinstance(y, int), BY_TYPE[type(x)], {float: 1}[type(x)], type(x).__name__]
    values += [cached(x), np.zeros(2), np.array([1, 2]), np.eye(2)]
    values += [clip([3.0, -3.0], -1, 1), np.maximum(0.0, [1.0, np.nan]), np.max([1, 2]), TABLE(0.5), TABLE([0.5, 1.5])]
    return [(type(x), repr(x)) for x in values]


def in_a_thread(work):
    outcomes = []
    worker = threading.Thread(target=lambda: outcomes.append(work()))
    worker.start()
    worker.join()
    return outcomes[0]


def test_functions_of_other_threads_are_the_originals():
    expected, outcomes, tracing = results(), [], threading.Event()

    def work():
        while tracing.is_set():
            outcomes.append(results())

    def f(x):
        for _ in range(200):
            x = max(x[0], math.sin(x[1])) * np.ones(2) + clip(x, -1.0, 1.0)
        return x

    tracing.set()
    worker = threading.Thread(target=work)
    worker.start()
    try:
        trace(f, 2)
    finally:
        tracing.clear()
        worker.join()
    assert len(outcomes) > 10  # Python changes between the threads every 5 ms
    assert all(values == expected for values in outcomes)
    assert results() == expected


def test_what_another_thread_puts_into_a_module_stays(monkeypatch):
    monkeypatch.setitem(globals(), "clip", np.clip)  # puts both names back after the test
    monkeypatch.setitem(globals(), "max", max)

    def other(*args):
        return args

    del globals()["max"]
    original = clip
    with numpy_on_symbols(globals()):
        assert clip is not original
        in_a_thread(lambda: globals().update(clip=other, max=other))
    assert clip is other
    assert max is other


NAMED = np.ones(2)


class Filter:
    def __init__(self):
        self.n, self.x, self.past = 0, np.zeros(2), [np.zeros(2), np.zeros(2)]

    def step(self):
        self.n, self.x = self.n + 1, NAMED * self.n + NAMED
        self.past[:] = self.past[1], self.x

    def is_right(self):
        """Whether each attribute has its value after n steps, and is a plain array."""
        arrays = [self.x, *self.past]
        expected = np.maximum([self.n, self.n - 1, self.n], 0)
        return [x.tolist() for x in arrays] == [[n, n] for n in expected] and {*map(builtins.type, arrays)} == {
            np.ndarray
        }


class Product:
    filters, gain = [Filter()], np.full(2, 3.0)

    def __init__(self):  # code that created the object, and is not called again
        self.number = len(Product.filters)

    def __call__(self, x):
        return self.gain @ [x[0], x[1]] + NAMED @ [x[1], 1.0]


FILTERS = [Filter()]


@pytest.mark.parametrize("filters", [FILTERS, Product.filters])
def test_objects_that_the_code_does_not_name_belong_to_other_threads(monkeypatch, filters):
    found, product = constant_arrays._Search.__init__, Product()

    def found_and_stepped(self, *args):
        found(self, *args)
        in_a_thread(filters[0].step)  # at the worst time: between the search and the replacement

    monkeypatch.setattr(constant_arrays._Search, "__init__", found_and_stepped)
    with numpy_on_symbols(roots=[product]):
        assert filters[0].is_right()
        in_a_thread(filters[0].step)
        assert filters[0].is_right()
        assert builtins.type(NAMED) is builtins.type(product.gain) is constant_arrays.ConstantArray
    assert filters[0].is_right()
    assert filters[0].n >= 2
    assert builtins.type(NAMED) is builtins.type(product.gain) is np.ndarray


def in_a_child(work):
    """The exit status of a forked process: 0 if `work` returns True, the number of a signal after ten seconds."""
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        status = 2
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


class Counting:
    def __init__(self):
        self.n = 0

    def __call__(self, t, q, v, z):
        self.n += 1
        return gc.Command(max(0.01 * self.n, 0.05) - q - v)


def simulated(compiled):
    options = gc.SimulationOptions(compiled=compiled)
    arm = gc.models.two_link()
    return gc.simulate(arm, Counting(), [0.3, -0.2], [0.0, 0.1], 0.05, 1e-3, 1e-2, monitors=None, options=options)


def tracing():
    return numpy_on_symbols(globals())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("holding", [tracing, lambda: locks.llvm_at_work, lambda: choice._lock])
def test_a_child_is_forked_between_traces(holding):
    """It has no lock that another thread holds, and modules without replacements."""
    expected, started = results(), threading.Event()

    def other():
        with holding():
            started.set()
            time.sleep(0.3)

    python = simulated(False).q
    worker = threading.Thread(target=other)
    worker.start()
    started.wait()
    status = in_a_child(
        lambda: (
            "max" not in globals()
            and results() == expected
            and all(np.allclose(simulated(x).q, python, rtol=0.0, atol=1e-12) for x in (False, True))
        )
    )
    worker.join()
    assert status == 0
    assert results() == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_thread_may_fork_within_its_own_trace():
    with numpy_on_symbols(globals()):
        assert in_a_child(lambda: max(1.0, 2.0) == 2.0) == 0
    assert in_a_child(lambda: simulated(True).success) == 0
