"""Memory of sampled laws that compiled code follows, refuses or leaves to Python, also in rare states."""

import functools
import threading
import warnings
from collections import deque
from typing import NamedTuple

import numpy as np
import pytest
from simulation_options import flat_simulate, grouped

import geomctrl as gc
from geomctrl import models, testing
from geomctrl.control.many import Case, outcomes
from geomctrl.tracing.untraceable import UntraceableError

ARM = models.two_link()
Q0, V0, DT = [0.4, -0.7], [0.3, -0.2], 1e-3
RARE = 0.302, 0.306  # [s]; no compared sample is in this interval, but one of the law's samples is


class State(NamedTuple):
    n: float
    mode: str


class Mode:
    def __init__(self, number):
        self.number = number


def with_attribute():
    def counter():
        return counter.n

    counter.n = 0.0
    return counter


def counted(function):
    function.n += 1.0
    return function


CHANGES = {
    "a NamedTuple": (State(0.0, "x"), lambda m: m._replace(n=m.n + 1.0), lambda m: m.n),
    "a NamedTuple's text": (State(2.0, "x"), lambda m: m._replace(mode="y"), lambda m: 3.0 * (m.mode == "y")),
    "a tuple": ((0.0, "x"), lambda m: (m[0] + 1.0, "x"), lambda m: m[0]),
    "a tuple that becomes a list": ((0.0, "x"), lambda m: [m[0] + 1.0, "x"], lambda m: m[0]),
    "None that becomes a list": (None, lambda m: [(m or [0.0])[0] + 1.0], lambda m: 0.0 if m is None else m[0]),
    "an object": (Mode(0), lambda m: Mode(m.number + 1), lambda m: 2.0 * m.number),
    "a function's attribute": (with_attribute(), counted, lambda m: m.n),
    "a set": (frozenset({1}), lambda m: m | {2, 3}, len),
}


class Remembering:
    """PD control and gravity compensation, with a memory that changes in a rare state."""

    def __init__(self, before, change, value):
        self.robot, self.memory, self.change, self.value = ARM, before, change, value

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        if RARE[0] <= t < RARE[1]:
            self.memory = self.change(self.memory)
        return gc.Command(ARM.gravity_force(q) - 30.0 * q - 6.0 * v + self.value(self.memory))


def torques(law, compiled):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gc.simulate(
            ARM, law, Q0, V0, 0.6, DT, control_dt=4e-3, monitors=None, options=gc.SimulationOptions(compiled=compiled)
        ).tau


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_in_a_rare_state_is_followed_or_refused(name):
    before, change, value = CHANGES[name]

    def law():
        return Remembering(with_attribute() if callable(before) else before, change, value)

    expected = torques(law(), False)
    assert np.abs(np.diff(expected[295:315], axis=0)).max() > 0.5, "the memory matters"
    np.testing.assert_allclose(torques(law(), "auto"), expected, rtol=0.0, atol=1e-9)
    try:
        compiled = torques(law(), True)
    except UntraceableError:
        return
    np.testing.assert_allclose(compiled, expected, rtol=0.0, atol=1e-9)


class Flagged(Remembering):
    """The torque depends on the class of the flag: ~ and + differ for bools of Python and of numpy."""

    def __call__(self, t, q, v, z):
        u = 0.5 * (self.memory + self.memory) + 0.1 * isinstance(self.memory, bool)
        u += 0.2 if isinstance(self.memory, np.bool_) and ~self.memory else 0.0
        self.memory = self.change(self.memory, q, v)
        return gc.Command(ARM.gravity_force(q) - 30.0 * q - 6.0 * v + u)


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (False, lambda m, q, v: q[0] > 0.2),
        (np.False_, lambda m, q, v: bool(q[0] > 0.2)),
        (False, lambda m, q, v: m or q[0] < 0.2),
        (False, lambda m, q, v: bool(q[0] > 0.2) if v[0] < 0.0 else v[1] > 0.0),
        (np.True_, lambda m, q, v: ~m),
    ],
    ids=["numpy's", "Python's", "or", "by paths", "not"],
)
def test_flags_keep_their_class(before, change):
    python, compiled = (Flagged(before, change, None) for _ in range(2))
    np.testing.assert_allclose(torques(compiled, True), torques(python, False), rtol=0.0, atol=1e-9)
    assert type(compiled.memory) is type(python.memory)
    assert compiled.memory == python.memory


def test_equal_tuples_in_a_memory_are_apart():
    def law():
        history = deque([(0.0, 0.0)] * 3, maxlen=3)
        return Remembering(
            history, lambda h: (h.append((h[-1][0] + 1.0, 2.0)), h)[1], lambda h: 0.1 * h[0][0] + h[1][1]
        )

    expected = torques(law(), False)
    np.testing.assert_allclose(torques(law(), True), expected, rtol=0.0, atol=1e-9)


ONE = np.array([0.1, -0.2])  # in several histories at once; nothing may write into it


class Law:
    def __init__(self, past, call):
        self.past, self.call = past, call

    def __call__(self, t, q, v, z):
        return gc.Command(-30.0 * q - 6.0 * v + self.call(self, q, v))


def appended(law, q, v):
    law.past.append(v.copy())
    return np.median(np.array(law.past), axis=0) + ONE


def shifted(law, q, v):
    law.past = [*law.past[1:], v + q]
    return law.past[0] - 0.5 * law.past[1] + ONE


def set_by_index(law, q, v):
    law.past[1], law.past[0] = law.past[0], 2.0 * v
    return law.past[2] - law.past[1]


HISTORIES = {
    "deque": (lambda: deque([ONE] * 4, maxlen=4), appended),
    "list": (lambda: [ONE] * 3, shifted),
    "list with another": (lambda: [np.zeros(2), ONE, np.ones(2)], shifted),
    "entries": (lambda: [ONE] * 3, set_by_index),
}


@pytest.mark.parametrize("t_end", [4e-3, 0.6])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_may_begin_with_one_array_in_all_places(name, t_end):
    past, call = HISTORIES[name]
    before, ends = ONE.copy(), []
    for compiled in (False, True):
        law = Law(past(), call)
        options = gc.SimulationOptions(compiled=compiled)
        run = gc.simulate(ARM, law, Q0, V0, t_end, DT, control_dt=2e-3, monitors=None, options=options)
        ends.append((run.tau, np.array(law.past)))
        np.testing.assert_array_equal(ONE, before)
    for python, compiled in zip(*ends):
        np.testing.assert_allclose(compiled, python, rtol=0.0, atol=1e-9)


def written(law, q, v):
    law.past[0] += 0.1 * v
    return sum(law.past)


def asks(law, q, v):
    return 5.0 if law.past[0] is law.past[1] else 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [(written, "arrays that share memory, can not be written: copy them"), (asks, "compares objects by `is`")],
)
def test_a_history_of_one_array_that_is_written_is_refused(call, message):
    with pytest.raises(UntraceableError, match=message):
        torques(Law([ONE.copy()] * 2, call), True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(
            torques(Law([ONE.copy()] * 2, call), "auto"), torques(Law([ONE.copy()] * 2, call), False)
        )


class Buffered:
    """A law that returns the array in which it computes."""

    def __init__(self):
        self.u = np.zeros(2)

    def __call__(self, t, q, v, z):
        self.u += np.clip(-30.0 * q - 6.0 * v - self.u, -0.5, 0.5)
        self.u[self.u > 4.0] = 4.0
        if q[0] > 0.3:
            self.u *= 0.9
        return gc.Command(self.u, signals={"u": self.u})


def test_a_law_may_return_its_own_array():
    python, compiled = Buffered(), Buffered()
    np.testing.assert_allclose(torques(compiled, True), torques(python, False), rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(compiled.u, python.u, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("f", [np.clip, functools.partial(np.clip)], ids=["function", "partial"])
def test_functions_of_numpy_as_attributes(f):
    class Limited(Remembering):
        def __call__(self, t, q, v, z):
            return gc.Command(self.memory(ARM.gravity_force(q) - 30.0 * q - 6.0 * v, -5.0, 5.0))

    expected = torques(Limited(f, None, None), False)
    np.testing.assert_allclose(torques(Limited(f, None, None), True), expected, rtol=0.0, atol=1e-9)


def test_a_list_among_the_defaults_of_a_function_is_a_memory():
    class Counting(Remembering):
        def __call__(self, t, q, v, z):
            return gc.Command(ARM.gravity_force(q) - 30.0 * q - 6.0 * v + self.value())

    def law():
        return Counting(None, None, lambda h=[0.0]: h.__setitem__(0, h[0] + 0.01) or h[0])

    np.testing.assert_allclose(torques(law(), "auto"), torques(law(), False), rtol=0.0, atol=1e-9)


def test_a_refused_run_leaves_no_memory_for_the_run_in_python():
    """Only stored samples show the difference, because the law counts its samples."""

    class Counting(Remembering):
        def __call__(self, t, q, v, z):
            self.memory += 1.0
            kick = 5.0 if self.memory > 50.0 and getattr(t, "graph", None) is None else 0.0  # in Python only
            return gc.Command(ARM.gravity_force(q) - 30.0 * q - 6.0 * v + kick)

    law = Counting(0.0, None, None)
    np.testing.assert_allclose(torques(law, "auto"), torques(Counting(0.0, None, None), False), rtol=0.0, atol=1e-9)


def test_python_begins_anew_where_a_finished_compiled_run_is_refused():
    """The law is compared after the run; its memory is reset before Python runs."""

    class Switching(Remembering):
        def __call__(self, t, q, v, z):
            if t >= 0.2:
                self.memory = Mode(1)
            return gc.Command(ARM.gravity_force(q) - 30.0 * q - 6.0 * v + 20.0 * self.memory.number)

    expected = torques(Switching(Mode(0), None, None), False)
    for _ in range(3):
        np.testing.assert_allclose(torques(Switching(Mode(0), None, None), "auto"), expected, rtol=0.0, atol=1e-9)
    law = Switching(Mode(0), None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = gc.simulate_many([ARM, ARM], law, Q0, V0, t_end=0.6, dt=DT, control_dt=4e-3, monitors=None)
    for run in runs:
        np.testing.assert_allclose(run.tau, expected, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, "auto"])
def test_a_law_that_is_given_once_remembers_for_each_loop(compiled):
    class Integral:
        def __init__(self):
            self.robot, self.sum = ARM, np.zeros(2)

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            self.sum = self.sum + 4e-3 * q
            return gc.Command(ARM.gravity_force(q) - 30.0 * q - 6.0 * v - 40.0 * self.sum)

    alone = flat_simulate(ARM, Integral(), Q0, V0, 0.6, DT, control_dt=4e-3, monitors=None, compiled=compiled).q
    law = Integral()
    runs = gc.simulate_many(
        [ARM] * 3,
        law,
        Q0,
        V0,
        t_end=0.6,
        dt=DT,
        control_dt=4e-3,
        monitors=None,
        options=gc.SimulationOptions(compiled=compiled),
    )
    for run in runs:
        np.testing.assert_allclose(run.q, alone, rtol=0.0, atol=1e-12)
    assert (law.sum == 0.0).all()


class Locked:
    """A law that can not be copied."""

    def __init__(self):
        self.robot, self.lock = ARM, threading.Lock()

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(ARM.gravity_force(q) - 30.0 * q - 6.0 * v)


def test_laws_that_can_not_be_copied_run_alone_and_are_refused_for_several_loops():
    options = {"t_end": 0.02, "dt": DT, "control_dt": 4e-3, "monitors": None}
    (case,) = outcomes([Case(ARM, Locked(), Q0, V0)], {"rms": lambda run: run.t[-1]}, **options)
    assert case.success
    with pytest.raises(gc.ArgumentError, match="controllers: expected one for each loop"):
        gc.simulate_many([ARM, ARM], Locked(), Q0, V0, **grouped(**options))


def test_a_certificate_is_not_about_code_that_asks_for_types():
    """In a small part of the box without a sample, Python takes the branch with negative damping."""

    class Wrong:
        robot, q_d = ARM, np.zeros(2)

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            hidden = 0.6 < q[0] < 0.62 and -0.38 < q[1] < -0.36 and q.dtype == float
            return gc.Command(ARM.gravity_force(q) - 30.0 * q - (-6.0 if hidden else 6.0) * v)

        def lyapunov(self, t, q, v, z, plant):
            return gc.Lyapunov(plant.robot.kinetic_energy(q, v) + 15.0 * q @ q, -6.0 * v @ v)

    assert testing.lyapunov_at(Wrong(), ARM, 0.0, [0.61, -0.37], [0.5, -0.4]).actual > 0.0
    try:
        result = testing.certify_lyapunov(
            Wrong(), ARM, (1.0, 4.0), offset=1e-3, levels=False, budget=testing.Budget(seconds=5.0)
        )
    except gc.GeomctrlError:
        return
    assert not result.proved


def test_a_right_law_that_is_too_stiff_for_dt_is_unresolved_not_accused():
    robot, q_d = models.ur10(), np.array([0.1, -1.0, 1.0, -0.5, 0.3, 0.2])

    class Stiff:
        def __init__(self, kd=60.0):
            self.robot, self.q_d, self.kd = robot, q_d, kd

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(robot.gravity_force(q) - 300.0 * (q - q_d) - self.kd * v)

        def lyapunov(self, t, q, v, z, plant):
            e = q - q_d
            return plant.robot.kinetic_energy(q, v) + 150.0 * e @ e, -60.0 * v @ v

    with pytest.raises(gc.SimulationError, match="unstable, or dt"):
        gc.simulate(robot, Stiff(), q_d + 0.3, np.zeros(6), 0.3, 1e-3)
    testing.assert_lyapunov(Stiff(), robot, search=50)
    with pytest.raises(AssertionError):
        testing.assert_lyapunov(Stiff(-60.0), robot, search=50)
