"""A function `progress` that changes the law, its globals or the plant during a run, which compiled code takes over.

The function acts at step 2048, of which Python and compiled code both report. Runs in Python are the expected results.
"""

import warnings

import numpy as np
import pytest

import geomctrl as gc
from geomctrl.tracing.untraceable import UntraceableError

ARM, STEPS = gc.models.two_link(), 5000
GAINS = [1.0]


class Law:
    """PI control with a gain in each kind of place."""

    scale = 1.0

    def __init__(self):
        self.K, self.i, self.extra, self.seen = np.array([5.0, 4.0]), np.zeros(2), None, 0.0
        self.mode = "slow"

    def __call__(self, t, q, v, z, gain=[1.0]):  # noqa: B006
        self.i = self.i + 0.01 * q
        tau = -self.K * q - v - 0.1 * self.i
        tau = tau if self.extra is None else tau + self.extra(q)
        return gc.Command(tau * GAINS[0] * gain[0] * self.scale * (1.0 if self.mode == "slow" else 2.0))


def printed(q):
    print(end="")
    return 0.5 * q


def default(law, x):
    Law.__call__.__defaults__[0][0] = x


def of_class(law, x):
    Law.scale = x


def of_globals(law, x):
    GAINS[0] = x


CHANGES = {
    "array in place": lambda law: law.K.fill(0.0),
    "array": lambda law: setattr(law, "K", np.array([2.0, 0.0])),
    "memory": lambda law: setattr(law, "i", np.array([20.0, 0.0])),
    "another function": lambda law: setattr(law, "extra", lambda q: 3.0 * q),
    "text": lambda law: setattr(law, "mode", "fast"),
    "default argument": lambda law: default(law, 2.0),
    "class": lambda law: of_class(law, 2.0),
    "global": lambda law: of_globals(law, 2.0),
}


def run(change, compiled, control_dt=1e-2, law=None, plant=ARM):
    law, called, told = law or Law(), [], []

    def progress(fraction):
        told.append(law.i.copy())
        if round(fraction * STEPS) == 2048:
            called.append(fraction)
            change(law)

    try:
        options = gc.SimulationOptions(compiled=compiled)
        t_end = STEPS * 1e-3
        out = gc.simulate(plant, law, [0.3, -0.2], [0, 0.1], t_end, 1e-3, control_dt, None, options, progress)
    finally:
        for undo in (default, of_class, of_globals):
            undo(law, 1.0)
    assert called
    return out, law, told


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_during_a_run_is_as_in_python(name):
    (expected, old, _), (found, new, told) = (run(CHANGES[name], c) for c in (False, True))
    np.testing.assert_allclose(found.q, expected.q, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(new.i, old.i, rtol=0.0, atol=1e-12)
    assert len(told) == 6  # the rest of the run is compiled, too: reports of every 1024 steps
    assert len(set(map(bytes, told))) == 6  # each sees the law's memory at that time
    assert np.abs(found.q - run(lambda law: None, True)[0].q).max() > 1e-3


@pytest.mark.parametrize("choice", [True, "auto"])
def test_a_change_that_is_not_compiled(choice):
    def change(law):
        law.extra = printed

    expected, law = run(change, False)[0].q, Law()
    if choice is True:
        with pytest.raises(UntraceableError, match="print"):
            run(change, True, law=law)
        assert (law.extra, law.i.tolist()) == (None, [0.0, 0.0])
    else:
        with pytest.warns(RuntimeWarning, match="runs in Python"):
            actual = run(change, "auto", law=law)[0].q
        np.testing.assert_allclose(actual, expected, rtol=0.0, atol=1e-12)


def test_a_change_in_continuous_time():
    class Gain:
        def __init__(self):
            self.K, self.i, self.work = 5.0, np.zeros(2), np.zeros(2)

        def __call__(self, t, q, v, z):
            self.work[:] = -self.K * q
            return gc.Command(self.work - v)

    def change(law):
        law.K = 1.0

    expected, found = (run(change, c, None, Gain())[0].q for c in (False, True))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)


class Push:
    size = 0.1

    def __call__(self, t, q, v):
        return self.size * np.ones((2, 6))


def test_a_change_of_the_plant():
    def q_of(compiled, size):
        push = Push()
        plant = gc.Plant(ARM, f_ext=push)
        return run(lambda law: setattr(push, "size", size), compiled, plant=plant)[0].q

    expected, found = (q_of(c, 0.4) for c in (False, True))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)
    assert np.abs(found - q_of(True, 0.1)).max() > 1e-3


def test_a_progress_that_changes_nothing_leaves_all_bits():
    laws = [Law(), Law()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runs = [
            gc.simulate(ARM, law, [0.3, -0.2], [0, 0.1], 3.0, 1e-3, 1e-2, progress=progress)
            for law, progress in zip(laws, (False, lambda fraction: None))
        ]
    np.testing.assert_array_equal(runs[0].q, runs[1].q)
    np.testing.assert_array_equal(laws[0].i, laws[1].i)
    assert str(runs[0].compared) == str(runs[1].compared)
