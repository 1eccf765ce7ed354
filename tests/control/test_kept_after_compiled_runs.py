"""What a compiled run leaves behind is what Python leaves: signals that come and go, flags of arrays, attributes."""

import numpy as np
import pytest
from simulation_options import COMPILED, IN_PYTHON

import geomctrl as gc
from geomctrl import models
from geomctrl.tracing.untraceable import UntraceableError

ROBOT = models.two_link()
Q0 = np.full(2, 0.1)


class Law:
    robot = ROBOT

    def __init__(self):
        self.setup()

    def setup(self):
        pass

    def start(self):
        return None


def simulated(law, control_dt, options):
    return gc.simulate(ROBOT, law, Q0, np.zeros(2), 0.3, 1e-3, control_dt, monitors=None, options=options)


def both(kind, control_dt):
    laws = kind(), kind()
    runs = [simulated(law, control_dt, x) for law, x in zip(laws, (COMPILED, IN_PYTHON))]
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-12)
    return laws, runs


# signals while Python is needed (the law prints), and otherwise
SIGNALS = {
    "one vanishes": ({}, {"a": 1.0}),
    "one appears": ({"a": 1.0}, {}),
    "another one": ({"b": 2.0}, {"a": 1.0}),
    "one more": ({"a": 3.0, "b": 2.0}, {"a": 1.0}),
}


@pytest.mark.parametrize("control_dt", [None, 0.01])
@pytest.mark.parametrize("first", [0.0, 0.1])
@pytest.mark.parametrize("case", SIGNALS)
def test_signals_that_change_have_the_columns_of_python(case, first, control_dt):
    class Changing(Law):
        def __call__(self, t, q, v, z):
            if first <= t < first + 0.005:
                print(end="")
                return gc.Command(-q, signals=SIGNALS[case][0])
            return gc.Command(-q, signals=SIGNALS[case][1])

    if control_dt and not first:  # compiled code would begin with a held command that it does not know
        with pytest.raises(gc.tracing.UntraceableError, match=r"signals .*return the same signals"):
            both(Changing, control_dt)
        return
    _, (compiled, python) = both(Changing, control_dt)
    assert compiled.signals.keys() == python.signals.keys()
    for name, x in python.signals.items():
        np.testing.assert_array_equal(compiled.signals[name], x)


def test_a_signal_of_a_filling_buffer_has_the_columns_of_python():
    class Filling(Law):
        def setup(self):
            self.past = []

        def __call__(self, t, q, v, z):
            if len(self.past) < 5:
                self.past.append(q[0])
                return gc.Command(-q, signals={"filling": 1.0})
            self.past.pop(0)
            self.past.append(q[0])
            return gc.Command(-q, signals={"oldest": self.past[0]})

    _, (compiled, python) = both(Filling, 0.01)
    assert np.isnan(python.signals["filling"][-1])
    for name, x in python.signals.items():
        np.testing.assert_allclose(compiled.signals[name], x, rtol=0, atol=1e-12)


def frozen(law, q):
    law.x = 0.9 * law.x
    law.x.flags.writeable = False


def frozen_in_place(law, q):
    law.x.flags.writeable = True
    law.x *= 0.9
    law.x.setflags(write=False)


def argument(law, q):
    law.x = q


def in_a_list(law, q):
    law.past.pop(0)
    law.past.append(q.copy())
    law.past[-1].flags.writeable = False


def later(law, q):
    if q[0] < 0.05:
        law.x.flags.writeable = False


def free(law, q):
    law.x = q + law.x


@pytest.mark.parametrize("change", [frozen, frozen_in_place, argument, in_a_list, later, free])
def test_arrays_are_as_read_only_as_in_python(change):
    class Flagged(Law):
        def setup(self):
            self.x, self.past = np.ones(2), [np.ones(2), np.ones(2)]

        def __call__(self, t, q, v, z):
            change(self, q)
            return gc.Command(-q * self.past[0] - 0.1 * self.x)

    laws, _ = both(Flagged, 0.01)
    flags = [[x.flags.writeable for x in (law.x, *law.past)] for law in laws]
    assert flags[0] == flags[1]


def sometimes_held(law, q):
    if q[0] < law.level:
        law.x = q


def integrated_after_a_copy(law, q):
    law.n += 1
    if law.n == 3:
        law.x = q
    elif law.n == 4:
        law.x = law.x.copy()
    else:
        law.x += 0.1 * q


def asked(law, q):
    law.past[0][0] = 1.0 if law.x.flags.writeable else 2.0
    sometimes_held(law, q)


def tried(law, q):
    try:
        law.x[0] += q[0]
    except ValueError:
        law.x = 0.5 * law.x
    sometimes_held(law, q)


@pytest.mark.parametrize("level", [-9.0, 0.28, 9.0])
@pytest.mark.parametrize("change", [sometimes_held, integrated_after_a_copy, asked, tried])
def test_arrays_that_are_sometimes_read_only_are_as_in_python(change, level):
    class Mixed(Law):
        def setup(self):
            self.x, self.past, self.n, self.level = np.ones(2), [np.ones(2)], 0, level

        def __call__(self, t, q, v, z):
            change(self, q)
            return gc.Command(-q * self.past[0] - 0.1 * self.x, signals={"x": self.x})

    laws, runs = both(Mixed, 0.01)
    assert laws[0].x.flags.writeable is laws[1].x.flags.writeable
    np.testing.assert_allclose(laws[0].x, laws[1].x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(runs[0].signals["x"], runs[1].signals["x"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("written", [False, True])
def test_writing_to_an_array_that_a_call_made_read_only_raises_as_in_python(written):
    class Writing(Law):
        def setup(self):
            self.x, self.n = np.zeros(2), 0

        def __call__(self, t, q, v, z):
            self.n += 1
            if written and self.n == 20:
                self.x[0] = 2.0
            self.x = q
            return gc.Command(-q - self.x)

    if not written:
        both(Writing, 0.01)
        return
    for options in (COMPILED, IN_PYTHON):
        with pytest.raises(gc.SimulationError, match=r"t = 0\.19 s: ValueError .* read-only"):
            simulated(Writing(), 0.01, options)


@pytest.mark.parametrize("other", [lambda q: q, lambda q: None], ids=["read-only", "None"])
def test_a_view_of_an_array_that_is_sometimes_another_value_is_refused(other):
    class Shared(Law):
        def setup(self):
            self.x = np.ones(2)
            self.view = self.x[:1]

        def __call__(self, t, q, v, z):
            if q[0] < -0.5:
                self.x = other(q)
            elif self.x is not None:
                self.x[0] += q[0]
            return gc.Command(-q - self.view[0])

    with pytest.raises(UntraceableError, match=r"controller\.x is an array that a call changes under another name too"):
        simulated(Shared(), 0.01, COMPILED)


@pytest.mark.parametrize("control_dt", [None, 0.01])
@pytest.mark.parametrize("base", [dict, list, set, tuple, np.ndarray])
def test_attributes_of_containers_are_as_before_a_refusal(base, control_dt):
    class Own(base):
        pass

    class Remembering(Law):
        def setup(self):
            self.x = np.ones(2).view(Own) if base is np.ndarray else Own()
            self.x.calls = 0

        def __call__(self, t, q, v, z):
            self.x.calls += 1
            return gc.Command(-q * self.x.calls)

    law = Remembering()
    with pytest.raises(gc.tracing.UntraceableError, match="Own"):
        simulated(law, control_dt, COMPILED)
    assert law.x.calls == 0
