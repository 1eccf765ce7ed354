"""While one thread traces, names of its modules are replaced; code of other threads computes as always."""

import functools
import math
import statistics
import threading

import numpy as np
from scipy.interpolate import CubicSpline

from geomctrl.tracing import trace
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
    expected, outcomes = results(), []

    def f(x):
        outcomes.append(in_a_thread(results))
        return max(x[0], math.sin(x[1])) * np.zeros(2) + clip(x, -1.0, 1.0)

    trace(f, 2)
    assert outcomes
    for values in outcomes:
        assert values == expected
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
