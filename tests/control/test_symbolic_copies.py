"""Symbolic copies of user objects and code: runs agree with Python, and the objects remain unchanged."""

import collections
import functools
import gc as garbage
import io
import itertools
import logging
import math
import sys
import threading
import time
import types
import warnings

import numpy as np
import pytest
from simulation_options import COMPILED, flat_simulate, grouped

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.closed_loop import Loop
from geomctrl.control.compiled import choice
from geomctrl.control.monitors import Monitor
from geomctrl.integrators.tableaus import Tableau
from geomctrl.tracing.symbols import UntraceableError

GAIN, GAINS, TABLE = 1.0, np.array([1.0, 2.0]), {"gain": 1.0}
HITS, LOGGER = itertools.count(), logging.getLogger(__name__)
SETTINGS = types.ModuleType("settings")
SETTINGS.gain = 1.0


@pytest.fixture(autouse=True)
def compiled_soon(monkeypatch):
    monkeypatch.setattr(choice, "MIN_EVALUATIONS", 1)


class Law:
    """A user's spring law; its attribute `own` is what `make` returns."""

    gain = 1.0
    hits = 0

    def __init__(self, tau, make=lambda: None):
        self.tau, self.own, self.robot = tau, make(), models.two_link()

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(self.robot.gravity_force(q) + self.tau(self, t, v))


class Helper:
    __slots__ = ("gain", "hits")

    def __init__(self):
        self.gain, self.hits = 1.0, 0

    def hit(self):
        self.hits += 1
        return 1.0


HELPER = Helper()


def helper(v, gain=[1.0]):  # noqa: B006
    helper.hits = getattr(helper, "hits", 0)
    return gain[0] * v


def simulate(law, compiled, **options):
    options = {"q0": [0.3, -0.2], "v0": [0.1, 0.4], "t_end": 0.02, "dt": 1e-3} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return gc.simulate(law.robot, law, **grouped(**options, compiled=compiled))
        except gc.SimulationError as error:
            return error.run


def assert_same(python, compiled):
    assert python.reason == compiled.reason
    assert list(python.signals) == list(compiled.signals)
    for name in ("t", "q", "v", "tau"):
        np.testing.assert_allclose(getattr(compiled, name), getattr(python, name), rtol=1e-10, atol=1e-12)
    for name, monitor in python.monitors.items():
        np.testing.assert_allclose(compiled.monitors[name].values, monitor.values, rtol=1e-5, atol=1e-9)


# --- what is changed between two runs ----------------------------------------------------------------------------


def _global(value):
    global GAIN
    GAIN = value


CHANGED = {
    "a global number": (lambda law, t, v: -GAIN * v, _global),
    "a global array": (lambda law, t, v: -GAINS * v, lambda x: GAINS.__setitem__(0, x)),
    "a global dict": (lambda law, t, v: -TABLE["gain"] * v, lambda x: TABLE.update(gain=x)),
    "a module's": (lambda law, t, v: -SETTINGS.gain * v, lambda x: setattr(SETTINGS, "gain", x)),
    "a global object's": (lambda law, t, v: -HELPER.gain * v, lambda x: setattr(HELPER, "gain", x)),
    "a class's": (lambda law, t, v: -law.gain * v, lambda x: setattr(Law, "gain", x)),
    "a default": (lambda law, t, v: -helper(v), lambda x: helper.__defaults__[0].__setitem__(0, x)),
    "a method": (
        lambda law, t, v: -law.start() * v if law.start() else -v,
        lambda x: setattr(Law, "start", (lambda law: None) if x == 1.0 else Law.start),
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_trace_is_not_used_again_for_what_has_changed(case, request):
    tau, change = CHANGED[case]
    change(1.0)
    request.addfinalizer(lambda: change(1.0))
    simulate(Law(tau), True)
    change(5.0)
    assert_same(simulate(Law(tau), False), simulate(Law(tau), True))


@pytest.mark.parametrize(
    "make",
    [
        lambda: types.SimpleNamespace(gain=1.0),
        lambda: collections.OrderedDict(gain=1.0),
        lambda: np.array([1.0, 2.0]).view(np.matrix),
    ],
    ids=["SimpleNamespace", "OrderedDict", "matrix"],
)
def test_attributes_of_library_types_are_not_used_again(make):
    x = make()

    def tau(law, t, v):
        own = law.own
        gain = (
            own.gain if isinstance(own, types.SimpleNamespace) else own["gain"] if hasattr(own, "keys") else own[0, 0]
        )
        return -gain * v

    law = Law(tau, lambda: x)
    simulate(law, "auto")
    if isinstance(x, np.ndarray):
        x[0, 0] = 5.0
    else:
        getattr(x, "update", lambda gain: setattr(x, "gain", gain))(gain=5.0)
    assert_same(simulate(law, False), simulate(law, "auto"))


@pytest.mark.parametrize(
    ("tau", "first", "second"),
    [
        (lambda law, t, v: -v if law.own is True else v, True, 1),
        (lambda law, t, v: -v + np.arctan2(law.own[0], -1.0), np.array([0.0, 1.0]), np.array([-0.0, 1.0])),
    ],
    ids=["True and 1", "0.0 and -0.0"],
)
def test_numbers_that_are_equal_and_not_the_same(tau, first, second):
    for x in (first, second):
        assert_same(simulate(Law(tau, lambda x=x: x), False), simulate(Law(tau, lambda x=x: x), True))


# --- what a law remembers ----------------------------------------------------------------------------------------


def _counts_in_its_class(law, t, v):
    Law.hits += 1
    return -v


def _counts_in_a_function(law, t, v):
    helper.hits += 1
    return -v


REMEMBERED = {
    "iterator": (lambda law, t, v: -v * (1.0 + 1e-3 * next(law.own)), lambda: iter(range(10**6)), next),
    "deque": (lambda law, t, v: (law.own.append(1), -v)[1], collections.deque, len),
    "set": (lambda law, t, v: (law.own.add(len(law.own)), -v)[1], set, len),
    "defaultdict": (lambda law, t, v: (law.own.update(n=law.own["n"] + 1), -v)[1],
                    lambda: collections.defaultdict(int), lambda x: x["n"]),
    "SimpleNamespace": (lambda law, t, v: (setattr(law.own, "n", law.own.n + 1), -v)[1],
                        lambda: types.SimpleNamespace(n=0), lambda x: x.n),
    "RandomState": (lambda law, t, v: -v * (1.0 + law.own.normal()),
                    lambda: np.random.RandomState(0), lambda x: x.normal()),
    "bound method": (lambda law, t, v: (law.own(1), -v)[1], lambda: [].append, lambda x: len(x.__self__)),
    "slots": (lambda law, t, v: -v * HELPER.hit(), lambda: setattr(HELPER, "hits", 0), lambda x: HELPER.hits),
    "class": (_counts_in_its_class, lambda: setattr(Law, "hits", 0), lambda x: Law.hits),
    "function": (_counts_in_a_function, lambda: setattr(helper, "hits", 0), lambda x: helper.hits),
    "count": (lambda law, t, v: (next(HITS), -v)[1], lambda: globals().update(HITS=itertools.count()),
              lambda x: next(HITS)),
}  # fmt: skip


@pytest.mark.quick(6)
@pytest.mark.parametrize("case", REMEMBERED)
def test_a_memory_is_left_alone_and_kept_by_python(case):
    tau, make, content = REMEMBERED[case]
    result = []
    for compiled in (False, "auto"):
        law = Law(tau, make)
        result.append((simulate(law, compiled), content(law.own)))
    assert result[0][1] == result[1][1]
    assert_same(result[0][0], result[1][0])
    with pytest.raises(
        UntraceableError, match=r"may keep data between calls|data outside of the law|how often the integrator calls"
    ):
        gc.simulate(models.two_link(), Law(tau, make), [0.3, -0.2], [0.1, 0.4], 0.02, 1e-3, options=COMPILED)


OUTSIDE = {
    "time.time": lambda law, t, v: -v + 0.0 * time.time(),
    "sys": lambda law, t, v: (sys.stdout.flush(), -v)[1],
    "open": lambda law, t, v: (open, -v)[1],
    "import": lambda law, t, v: (__import__("os"), -v)[1],
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_clocks_and_files_are_pythons(case):
    with pytest.raises(UntraceableError, match="may change or read data outside of the law"):
        gc.simulate(models.two_link(), Law(OUTSIDE[case]), [0.3, -0.2], [0.1, 0.4], 0.02, 1e-3, options=COMPILED)


def test_a_law_that_logs_runs_in_python():
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    LOGGER.addHandler(handler)
    try:
        simulate(Law(lambda law, t, v: (LOGGER.error("here"), -v)[1]), "auto")
    finally:
        LOGGER.removeHandler(handler)
    assert said.getvalue().count("here") > 4 * 20


def test_what_is_not_used_does_not_matter():
    """Code that can not be traced (a clock in a constructor, a file in a plot) is not called; the class's helpers
    trace.
    """

    class Timed(Law):
        def __init__(self):
            super().__init__(lambda law, t, v: -law.scaled(v), io.StringIO)
            self.created = time.time()

        def scaled(self, v, gain=2.0):
            return gain * v

        def save(self):
            LOGGER.info(open)

    assert_same(simulate(Timed(), False), simulate(Timed(), True))


COUNTS = """
class Counts:
    def __init__(self):
        self.n, self.robot = 0, models.two_link()

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        self.n += 1
        return gc.Command(-v)
"""


def test_a_class_that_exec_made():
    space = {"gc": gc, "models": models}
    exec(COUNTS, space)
    laws = space["Counts"](), space["Counts"]()
    assert_same(simulate(laws[0], False), simulate(laws[1], "auto"))
    assert laws[0].n == laws[1].n


def test_closures_that_differ_in_numbers_share_a_trace(monkeypatch):
    made, original = [], choice.trace_loop
    monkeypatch.setattr(choice, "trace_loop", lambda *x, **options: made.append(1) or original(*x, **options))
    lock = threading.Lock()  # an attribute of an object within a closure, which is not used

    def law(gain):
        own = types.SimpleNamespace(gain=gain, lock=lock)
        return Law(lambda law, t, v: -own.gain * v)

    for gain in (1.0, 2.0, 3.0):
        assert_same(simulate(law(gain), False), simulate(law(gain), True))
    assert len(made) == 1


# --- arrays that share their memory ------------------------------------------------------------------------------


def test_views_of_one_array():
    def scratch(law, t, v):
        buffer, view = law.own
        buffer[:] = [3.0, 4.0]
        tau = -view * v
        buffer[:] = 0.0
        return tau

    def make():
        buffer = np.zeros(2)
        return buffer, buffer[:]

    assert_same(simulate(Law(scratch, make), False), simulate(Law(scratch, make), "auto"))
    gains = np.arange(1.0, 5.0)
    law = Law(lambda law, t, v: -law.own[0] * v - law.own[1], lambda: (gains[:2], gains[2:]))
    assert_same(simulate(law, False), simulate(law, True))


class Sums(Monitor):
    name, limit = "sums", np.inf

    def start(self, plant, controller):
        self.sum = np.zeros(2)
        self.same = self.sum
        return True

    def measure(self, sample):
        self.sum += np.abs(sample.v)
        return self.same.sum()


def test_a_monitor_with_two_names_for_one_array():
    law = Law(lambda law, t, v: -v)
    runs = [simulate(law, compiled, monitors=[Sums()]) for compiled in (False, "auto")]
    assert_same(*runs)


class Scaled(Sums):
    factor = 1.0

    def measure(self, sample):
        Law.hits += self.factor == 3.0
        return GAIN * self.factor * sample.t


class Dragged(gc.Plant):
    drag = 0.5

    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau - self.drag * v, x)


def test_what_monitors_and_plants_reach(monkeypatch):
    law = Law(lambda law, t, v: -v)
    plant = Dragged(law.robot)
    for owner, name, value in ((Scaled, "factor", 2.0), (Dragged, "drag", 3.0), (Scaled, "factor", 3.0)):
        result = []
        monkeypatch.setattr(owner, name, value)
        for compiled in (False, "auto"):
            Law.hits = 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                monitors = [Scaled()]
                run = flat_simulate(
                    plant, law, [0.3, -0.2], [0.1, 0.4], 0.02, 1e-3, monitors=monitors, compiled=compiled
                )
            result.append((run, Law.hits))
        assert result[0][1] == result[1][1]
        assert_same(result[0][0], result[1][0])


def test_the_limit_and_the_name_of_a_monitors_class(monkeypatch):
    law = Law(lambda law, t, v: -v)
    assert simulate(law, "auto", monitors=[Sums()], strict=True).success
    monkeypatch.setattr(Sums, "limit", 3.0)
    runs = [simulate(law, compiled, monitors=[Sums()], strict=True) for compiled in (False, "auto")]
    assert len(runs[0].t) == len(runs[1].t) < 21


# --- what raises in Python ---------------------------------------------------------------------------------------


def _swallows(law, t, v):
    gain = 1.0
    try:
        if 5e-3 < t < 15e-3:
            gain = 30.0
    except Exception:
        gain = 1.0
    return -gain * v


def _caches(law, t, v):
    try:
        return law.own[t] * v
    except Exception:
        return -v


RAISED = {
    "swallowed branch": _swallows,
    "root": lambda law, t, v: -v + min(math.sqrt(0.01 - t), 0.0),
    "quotient": lambda law, t, v: -v * np.minimum(1e-3 / (t - 0.01), 1.0),
    "cache": _caches,
    "singular": lambda law, t, v: -v + np.clip(np.linalg.solve([[t - 0.01, 0.0], [0.0, 1.0]], v), -1.0, 1.0),
}


@pytest.mark.parametrize("case", RAISED)
def test_what_raises_in_python_is_not_passed_over(case):
    make = functools.partial(Law, RAISED[case], lambda: {0.005: 2.0})
    assert_same(simulate(make(), False), simulate(make(), "auto"))


# --- objects that are odd ----------------------------------------------------------------------------------------


class Heavier(gc.Robot):
    """A robot with an additional attribute."""


def test_a_robot_of_ones_own_class():
    robot = models.two_link()
    own = object.__new__(Heavier)
    vars(own).update(vars(robot), factor=3.0)
    law = Law(lambda law, t, v: -law.robot.factor * v)
    law.robot = own
    assert_same(simulate(law, False), simulate(law, True))


def test_deep_and_long_attributes():
    deep = None
    for _ in range(3000):
        deep = [deep]
    for x in (deep, [0.5] * 20_000):
        law = Law(lambda law, t, v: -v, lambda x=x: x)
        assert_same(simulate(law, False), simulate(law, "auto"))


@pytest.mark.slow
def test_refused_loops_are_forgotten():
    def alive():
        garbage.collect()
        return sum(type(x) is Loop for x in garbage.get_objects())

    law = Law(lambda law, t, v: -v if t < 0.5 else v)
    simulate(law, "auto")
    before = alive()
    for _ in range(5):
        simulate(law, "auto")
    assert alive() == before


def test_lanes_that_stop_again_and_again_have_the_bits_of_runs_alone():
    """Compiled code has no result for a division by zero; after 20 stops in a row the loop runs in Python."""

    def tau(law, t, v):
        zero = np.where((np.sin(law.own * t) > 0.5) & (t > 0.01) & (t < 0.5), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            return -0.5 * v - 0.1 * np.minimum(1.0 / zero, 5.0)

    laws = [Law(tau, lambda k=k: 3000.0 + 30.0 * k) for k in range(9)]
    robot, q0, v0 = models.two_link(), np.linspace(0.1, 0.9, 18).reshape(9, 2), np.full((9, 2), 0.1)
    runs = gc.simulate_many(robot, laws, q0, v0, 0.3, 1e-3, options=COMPILED)
    for k, run in enumerate(runs):
        alone = gc.simulate(robot, laws[k], q0[k], v0[k], 0.3, 1e-3, options=COMPILED)
        for name in ("t", "q", "v", "tau"):
            np.testing.assert_array_equal(getattr(run, name), getattr(alone, name))


def test_a_method_of_ones_own_is_known_by_itself():
    """Methods are identified by the object, not by their name: two with the same name differ."""
    robot = models.two_link()
    law = controllers.PDGravity(robot, np.zeros(2))
    for weights in ([0.5, 0.5], [0.25, 0.75]):
        own = Tableau("own", 2, [[0.0, 0.0], [0.5 / weights[1], 0.0]], weights)
        run = functools.partial(
            flat_simulate, robot, law, np.ones(2), np.ones(2), 0.05, 1e-2, method=own, monitors=None
        )
        np.testing.assert_allclose(run(compiled=True).q, run(compiled=False).q, rtol=0.0, atol=1e-13)
