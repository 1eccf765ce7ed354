"""Parallel runs with several threads: while one traces, it must not write into the laws of the others."""

import copy
import sys
import time

import numpy as np
import pytest
from simulation_options import COMPILED, IN_PYTHON

import geomctrl as gc
from geomctrl.tracing.untraceable import UntraceableError

ROBOT, N = gc.models.two_link(), 17
RUN = {"t_end": 0.1, "dt": 1e-3, "control_dt": 0.01}
STARTS = np.random.default_rng(0).uniform(-0.5, 0.5, (N, 2))


class Point:
    def __init__(self, x):
        self.x = x


class Law:
    """A law whose code leads to all others: it creates objects, and constructors refer to `instances`."""

    instances = []  # noqa: RUF012

    def __init__(self, kp):
        self.kp, self.i = kp, np.zeros(2)
        Law.instances.append(self)

    def __call__(self, t, q, v, z):
        self.i = self.i + 0.01 * (0.3 - q)
        return gc.Command(self.kp * (0.3 - q) - 5.0 * v + Point(self.i).x)


@pytest.fixture
def quick_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("quick_switches")
def test_memory_of_other_runs_is_left_alone():
    laws = [Law(10.0 + k) for k in range(N)]
    in_python = IN_PYTHON
    expected = [
        gc.simulate(ROBOT, law, q0, [0.0, 0.0], options=in_python, **RUN)
        for law, q0 in zip(copy.deepcopy(laws), STARTS, strict=True)
    ]
    with pytest.raises(UntraceableError, match="also reaches it"):  # through `instances`
        gc.simulate_many(ROBOT, laws, STARTS, np.zeros((N, 2)), options=COMPILED, threads=2, **RUN)
    assert not any(law.i.any() for law in laws)
    runs = gc.simulate_many(ROBOT, laws, STARTS, np.zeros((N, 2)), options=in_python, threads=2, **RUN)
    for run, other in zip(runs, expected, strict=True):
        np.testing.assert_allclose(run.q, other.q, rtol=0.0, atol=1e-11)
    assert {type(law.i) for law in laws} == {np.ndarray}


def test_threads_take_turns_in_python():
    inside, most = [], []

    def law(t, q, v, z):
        inside.append(1)
        most.append(len(inside))
        time.sleep(1e-4)  # lets other threads run
        inside.pop()
        return gc.Command(-3.0 * v)

    laws = [lambda *x: law(*x) for _ in range(N)]
    gc.simulate_many(ROBOT, laws, STARTS, np.zeros((N, 2)), 0.02, 2e-3, 2e-3, threads=2)
    assert len(most) > N
    assert max(most) == 1
