"""Idioms of Python and numpy in control laws: a compiled run is Python's run, to the types of what the law remembers.

Each function is a law's torque on the two-link arm; its attributes are made anew for each run. `REFUSED` says what the
message has to name, and `ADVICE` follows it: what the message tells to write instead compiles.
"""

import bisect
import enum
import functools
import logging
import math
import statistics
import threading
import warnings
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import geomctrl as gc
from geomctrl import models
from geomctrl.control.monitors import Monitor
from geomctrl.tracing.untraceable import UntraceableError

ROBOT, GOAL = models.two_link(), np.array([0.4, -0.3])
LAWS, DT = {}, 0.01


class Law:
    def __init__(self):
        self.robot = ROBOT
        self.setup()

    def setup(self):
        pass

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(np.array(self.tau(t, q, v)))


def run(controller, compiled, control_dt=None):
    options = gc.SimulationOptions(compiled=compiled)
    return gc.simulate(ROBOT, controller, [0.0, 0.1], [0.3, -0.2], 0.6, 5e-3, control_dt, [], options)


def law(control_dt=None, **attributes):
    """Create a class of laws from its torque; `attributes` are functions that create them."""

    def make(tau):
        def setup(self):
            vars(self).update({name: made() for name, made in attributes.items()})

        space = {"tau": tau, "setup": setup, "control_dt": control_dt}
        return LAWS.setdefault(tau.__name__, type(tau.__name__, (Law,), space))

    return make


def pd(q, v, gain=10.0, goal=GOAL):
    return gain * (goal - q) - 2.0 * v


def limited(x, limit):
    return max(-limit, min(limit, x))


@functools.lru_cache
def low_pass(cutoff, dt):
    pole = math.exp(-2.0 * math.pi * cutoff * dt)
    return 1.0 - pole, pole


@law(f=lambda: math.sin, g=lambda: np.tanh, h=lambda: limited)
def functions_as_attributes(self, t, q, v):
    return [self.h(10.0 * self.f(GOAL[i] - q[i]) - self.g(v[i]), 4.0) for i in range(2)]


@law()
def conditions_as_numbers(self, t, q, v):
    steps = (t > 0.1) + (t > 0.2) + sum(t > x for x in (0.3, 0.4))
    friction = 0.2 * (v > 0).astype(float) - 0.2 * (v < 0).astype(int)
    return pd(q, v, 5.0 + 2 * steps) + friction + 0.1 * (int(v[0] > 0) - float(v[1] < 0))


MODULE_GAINS = np.array([[-5.0, -0.5], [-8.0, -1.0]])
MODES = {"soft": MODULE_GAINS, "offsets": [np.array([0.2, -0.1])]}


@law(weights=lambda: np.array([1, 2]))
def arrays_of_the_module_beside_lists(self, t, q, v):
    tau = [row @ (a, b) for row, a, b in zip(MODULE_GAINS, q, v)]
    return tau + MODES["soft"] @ [q[1], v[1]] + MODES["offsets"][0] * [t, 1.0] - self.weights * [t, 0.0]


@law(gains=lambda: np.array([5.0, 8.0, 12.0, 20.0]))
def tables(self, t, q, v):
    error, times = abs(q[0] - GOAL[0]), np.array([0.1, 0.2, 0.9])
    i, j = np.digitize(error, [0.1, 0.2, 0.3]), np.searchsorted(times, t)
    return pd(q, v, self.gains[i] + self.gains[j] + self.gains[bisect.bisect([0.1, 0.4, 0.9], t)])


@law()
def largest_and_nearest(self, t, q, v):
    points = np.array([[0.0, 0.0], [0.2, -0.1], [0.4, -0.3]])
    u = pd(q, v, goal=points[min(np.argmin(np.linalg.norm(points - q, axis=1)) + 1, 2)])
    u[np.argmax(np.abs(GOAL - q))] *= 1.2
    return u


@law()
def whole_numbers(self, t, q, v):
    points, (n, rest) = [0.1 * GOAL, 0.5 * GOAL, GOAL], divmod(t, 0.5)
    target = points[min(int(t // 0.4), 2)] if int(t / 0.05) % 3 else GOAL * rest
    return pd(q, v, 8.0 + n, target) + 0.01 * np.floor(q * 100.0).astype(int) // 2


@law()
def floats_of_entries(self, t, q, v):
    x, y = float(q[0]), float(q[1])
    gain = 1.0 / x if abs(x) > 0.1 else 10.0
    return [
        gain * (GOAL[0] - x) - 2.0 * float(v[0]),
        10.0 * (GOAL[1] - y) - (2.0 if isinstance(y, float) else 9.0) * v[1],
    ]


@law()
def choices(self, t, q, v):
    e = GOAL - q
    pieces = np.piecewise(
        e, [e < -0.2, e > 0.2], [lambda x: 5.0 * x - 1.0, lambda x: 5.0 * x + 1.0, lambda x: 10.0 * x]
    )
    moving = np.logical_and(np.where(np.abs(v) > 0.05, True, False), q > 0.1)
    return pieces * np.select([np.abs(e) < 0.1, np.abs(e) < 0.3], [0.5, 1.0], 1.5) - np.where(moving, 3.0, 2.0) * v


@law()
def means_and_distances(self, t, q, v):
    gain = 5.0 + 4.0 * math.dist(q, GOAL) + math.prod([1.0 + x * x for x in q]) + np.count_nonzero(np.abs(q) > 0.1)
    return pd(q, v, gain) - 0.1 * math.fsum(v) - 0.5 * statistics.mean(v) - 0.1 * statistics.fmean(q)


@law()
def matches(self, t, q, v):
    match (q[0] > 0.2, v[0] > 0.0):
        case (True, True):
            gain = 5.0
        case (True, False):
            gain = 7.0
        case _:
            gain = 9.0
    if (size := np.linalg.norm(e := GOAL - q)) > 0.3:
        return gain * e / size - 2.0 * v
    return gain * e - 2.0 * v


@law(work=lambda: np.zeros(2), rest=lambda: np.ones((2, 2)))
def work_buffers(self, t, q, v):
    self.work[:] = GOAL - q
    self.work *= 10.0
    np.multiply(self.work[:, None], np.eye(2), out=self.rest)
    return self.rest.sum(axis=0) - 2.0 * v


@law(DT, x=lambda: np.zeros(2))
def cached_coefficients(self, t, q, v):
    b, a = low_pass(10.0, DT)
    self.x = a * self.x + b * v
    return pd(q, self.x)


@law(DT, u=lambda: np.zeros(2))
def clips_in_place(self, t, q, v):
    self.u = np.clip(pd(q, v, 20.0), -3.0, 3.0, out=np.zeros(2))
    return self.u


@law(DT, count=lambda: np.zeros(2, int), near=lambda: np.zeros(2, bool), last=lambda: np.zeros(2, int))
def arrays_of_ints_and_bools(self, t, q, v):
    self.near |= np.abs(q - GOAL) < 0.1
    for i in range(2):
        if v[i] > 0.0:
            self.count[i] += 1
    counts = np.floor(q * 651.9).astype(int)
    change, self.last = counts - self.last, counts
    return pd(q, v, np.where(self.near, 4.0, 10.0) + 0.1 * self.count) - 0.01 * change


@law(DT, level=lambda: np.array(0.5), sign=lambda: np.array(1.0))
def arrays_without_dimensions(self, t, q, v):
    """One array is changed in place, the other attribute is replaced by another array."""
    self.level += 0.01 * q[0]
    self.sign = np.where(v[0] > 0.0, 1.0, -1.0)
    return pd(q, v) * self.level + 0.1 * self.sign


@law(DT, i=lambda: np.zeros(2))
def masks(self, t, q, v):
    e = GOAL - q
    u = 20.0 * e - 2.0 * v + self.i
    free = np.abs(u) < 4.0
    self.i[free] += 0.04 * e[free]
    self.i[~free] *= 0.9
    return np.clip(u, -4.0, 4.0)


@law(DT, k=lambda: 0, n=lambda: 0, far=lambda: 0)
def counters(self, t, q, v):
    self.k = (self.k + 1) % 10
    self.n = self.n - 1 if q[0] > 0.3 else self.n + 2
    self.far = max(self.far, abs(self.n)) // 2 + divmod(self.n, 3)[1]
    return pd(q, v) + (0.3 if self.k < 5 else -0.3) + 0.01 * self.n + 0.1 * self.far


@law(DT, i=lambda: 0, j=lambda: 0, level=lambda: 0, a=lambda: [0.0] * 3, b=lambda: [0.0] * 2)
def indices_and_keys(self, t, q, v):
    self.a[self.i], self.b[self.j] = q[0], v[1]
    self.i, self.j = (self.i + 1) % 3, 1 - self.j
    self.level = min(self.level + (v[0] > 0.2), 2)
    gain = {0: 8.0, 1: 10.0, 2: 12.0}[self.level] + {"b0": 0.0, "b1": 0.5}[f"b{self.j}"]
    return pd(q, v, gain) + 0.1 * self.a[self.i] - 0.2 * self.b[self.j]


@law(DT, h=lambda: deque([0.0] * 4, maxlen=4))
def arrays_from_numbers(self, t, q, v):
    self.h.append(v[0])
    x = np.hstack([0, q, t]) + np.r_[q[0], v, 1]
    return pd(q, v) + 0.1 * np.c_[x[:2], [np.median(self.h), np.mean(self.h)]] @ np.r_[q[0], 0.5]


class Mode(enum.IntEnum):
    IDLE = 0
    MOVE = 1
    HOLD = 2


@law(DT, mode=lambda: Mode.IDLE, name=lambda: "a", state=lambda: {"mode": "idle", "since": 0.0, "count": 0})
def modes(self, t, q, v):
    if self.mode == Mode.IDLE and t > 0.1:
        self.mode, self.name = Mode.MOVE, "b"
    elif self.mode == Mode.MOVE and np.linalg.norm(q - GOAL) < 0.15:
        self.mode = Mode.HOLD
    if self.state["mode"] == "idle" and t > 0.3:
        self.state.update(mode="run", since=t, count=self.state["count"] + 1)
    gain = {"idle": 5.0, "run": 8.0}[self.state["mode"]] + (1.0 if self.name in ("b", "c") else 0.0)
    return pd(q, v, [0.0, 8.0, 20.0][self.mode] + gain) + 0.1 * (t - self.state["since"])


@law(DT, h=lambda: deque([0.0] * 3, maxlen=3), u=lambda: deque([np.zeros(2) for _ in range(3)], maxlen=3))
def histories(self, t, q, v):
    self.h.appendleft(v[0])
    delayed = self.u.popleft()
    self.u.append(pd(q, v))
    return delayed - 0.5 * sorted(self.h)[1] - 0.1 * statistics.mean(self.h)


@law(s=lambda: CubicSpline(np.linspace(0.0, 1.0, 6), np.outer(np.sin(np.linspace(0.0, 1.0, 6)), GOAL)))
def splines(self, t, q, v):
    return 20.0 * (self.s(min(t, 1.0)) - q) - 3.0 * v


SPLINE = CubicSpline([0.0, 0.2, 0.6], [[0.0, 0.0], [0.1, -0.1], [0.4, -0.3]])


@law()
def a_spline_of_the_module(self, t, q, v):
    return 20.0 * (SPLINE(t) - q) - SPLINE(q[0], 1) - 3.0 * v


@law()
def match_of_patterns(self, t, q, v):
    match [*q]:
        case [a, b] if a > b:
            u = [a, -b]
        case [a, b]:
            u = [b, 0.5 * a]
    match (v[0] > 0.0, v[1] > 0.0):
        case (True, _):
            return [-5.0 * x for x in u]
        case (_, True):
            return [-3.0 * x for x in u]
        case _:
            return -v


@law(DT, phase=lambda: "up")
def phases_in_a_dict(self, t, q, v):
    self.phase = {"up": "hold", "hold": "down", "down": "up"}[self.phase] if abs(v[0]) < 0.1 else self.phase
    return {"up": 3.0, "hold": 0.0, "down": -3.0}[self.phase] * np.ones(2) - v


@law(DT, x=lambda: 1.0, y=lambda: 0, numpy=lambda: 0)
def kinds_of_numbers(self, t, q, v):
    """In Python x is first a float and then numpy's; y is first an int and then a float."""
    if t > 0.15:
        self.x = self.x + 0.0 * q[0]
    self.y = self.y + 1 if t < 0.25 else self.y * 1.0
    self.numpy += isinstance(self.x, np.floating) + 10 * isinstance(self.y, int)
    return pd(q, v) + 0.001 * self.numpy


@dataclass(slots=True)
class Slots:
    robot: gc.Robot = field(default_factory=lambda: ROBOT)
    integral: np.ndarray = field(default_factory=lambda: np.zeros(2))
    n: int = 0
    control_dt = DT

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        self.n += 1
        self.integral += DT * (GOAL - q)
        return gc.Command(pd(q, v) + 3.0 * self.integral + 0.01 * self.n)


LAWS["Slots"] = Slots


def remembered(x):
    """Return what a law remembers, with the types of numbers."""
    if isinstance(x, (list, tuple, deque, dict)):
        return type(x), [remembered(y) for y in (x.items() if isinstance(x, dict) else x)]
    if isinstance(x, np.ndarray):
        return x.dtype, np.round(x.astype(float), 7).tolist()
    return type(x), round(float(x), 7) if isinstance(x, (float, np.floating)) else repr(x)


def attributes(controller):
    names = [*getattr(controller, "__dict__", {}), *getattr(type(controller), "__slots__", ())]
    values = {name: getattr(controller, name) for name in names if name not in ("robot", "s")}
    return {name: remembered(x) for name, x in values.items() if not callable(x)}


@pytest.mark.parametrize("name", LAWS)
def test_an_idiom_means_the_same(name):
    laws = [LAWS[name](), LAWS[name]()]
    python, compiled = (run(x, c, x.control_dt) for x, c in zip(laws, (False, True)))
    for part in ("q", "v", "tau"):
        np.testing.assert_allclose(getattr(compiled, part), getattr(python, part), rtol=1e-7, atol=1e-9, err_msg=part)
    assert attributes(laws[0]) == attributes(laws[1])


class Seen(Law):
    """A law with work buffers; `Writes` overwrites one of them after each of its calls."""

    def setup(self):
        self.torque, self.state, self.one_row = np.zeros(2), np.zeros(2), np.zeros((2, 2))

    def tau(self, t, q, v):
        self.torque[:] = pd(q, v)
        self.state[:] = self.one_row[1] = v + t
        return self.torque


class Writes(Monitor):
    name, description, limit = "writes", "sum of the buffer", 1e3

    def start(self, plant, controller):
        self.controller, self.rows = controller, [np.zeros(2)]
        return True

    def measure(self, sample):
        self.controller.state[:] = self.rows[0][:] = 2.0 * sample.q
        return self.controller.state.sum()


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("method", ["MK4", "MK54"])
def test_work_buffers_end_as_in_python(method, watched):
    ends = []
    for compiled in (False, True):
        laws, monitors = [Seen(), Seen(), Seen()], [Writes()] * watched
        options, start = gc.SimulationOptions(method, compiled=compiled), np.array([[0.0, 0.1], [0.2, -0.3]])
        gc.simulate(ROBOT, laws[0], start[0], start[0], 0.3, 7e-3, None, monitors, options)
        gc.simulate_many(ROBOT, laws[1:], start, start[::-1], 0.3, 7e-3, None, monitors, options)
        ends.append([attributes(x) for x in laws] + [remembered(m.rows) for m in monitors])
    assert ends[0] == ends[1]
    assert len({str(end["one_row"]) for end in ends[0][:3]}) == 3  # three loops, three ends


# --- what is refused, and that its advice works ------------------------------------------------------------------


class Integral(Law):
    def setup(self):
        self.i = np.zeros(2)

    def tau(self, t, q, v):
        self.i = self.i + DT * (GOAL - q)
        return pd(q, v) + self.i


class IntegralInTheState(Law):
    """The law as the message suggests: with its memory in the state z."""

    def __init__(self, sampled):
        super().__init__()
        self.sampled = sampled

    def start(self):
        return np.zeros(2)

    def __call__(self, t, q, v, z):
        e = GOAL - q
        rate = {"z_next": z + DT * e} if self.sampled else {"z_rate": e}
        return gc.Command(pd(q, v) + z, **rate)


def test_a_memory_of_a_law_that_acts_all_the_time_is_refused_with_advice_that_works():
    place = r"controller\.i changes during a call, in .*test_idioms\.py, line \d+"
    with pytest.raises(UntraceableError, match=place + r".*state z.*control_dt"):
        run(Integral(), True, control_dt=None)
    run(Integral(), True, control_dt=DT)
    run(IntegralInTheState(False), True, control_dt=None)


def test_gc_compile_refuses_a_memory_with_advice_that_works():
    with pytest.raises(UntraceableError, match=r"gc\.compile makes functions of t, q, v and z.*gc\.simulate"):
        gc.compile(Integral())
    expected = IntegralInTheState(False)(0.1, GOAL, -GOAL, GOAL)
    for part, value in zip(gc.compile(IntegralInTheState(False))(0.1, GOAL, -GOAL, GOAL)[:2], expected):
        np.testing.assert_allclose(part, value)
    gc.compile(LAWS["work_buffers"]())


COUNT = 0


class CountsOutside(Law):
    def tau(self, t, q, v):
        global COUNT
        COUNT += 1
        return pd(q, v)


class ReadsItsBuffer(Law):
    def setup(self):
        self.last = np.zeros(2)

    def tau(self, t, q, v):
        u = pd(q, v) + 0.1 * self.last
        self.last[:] = q
        return u


class IndexWithoutLimit(Law):
    def tau(self, t, q, v):
        return pd(q, v, [5.0, 10.0, 15.0][int(t / 0.3)])


class ImportsWithin(Law):
    def tau(self, t, q, v):
        import math as m

        return pd(q, v) + m.sin(t)


class Warns(Law):
    def tau(self, t, q, v):
        if t > 100.0:
            warnings.warn("late", stacklevel=1)
        return pd(q, v)


LOGGER = logging.getLogger("law")


class Logs(Law):
    def tau(self, t, q, v):
        LOGGER.info("q = %s", q)
        return pd(q, v)


class Draws(Law):
    def setup(self):
        self.rng = np.random.default_rng(0)

    def tau(self, t, q, v):
        return pd(q, v) + 0.01 * self.rng.normal(size=2)


class AddsToAnArray(Law):
    """The commands do not depend on the sum, but its value after the run depends on the number of calls."""

    def setup(self):
        self.used = np.zeros(2)

    def tau(self, t, q, v):
        self.used += np.abs(v)
        return -v


REFUSED = {
    Warns: (None, r"warnings is used, in .*test_idioms.py, line \d+: it may change .* return the value as a signal"),
    Logs: (None, r"LOGGER \(Logger\) writes messages, in .*test_idioms.py, line \d+: return the value as a signal"),
    Draws: (DT, r"rng draws random numbers during a call, in .*test_idioms.py, line \d+: draw them in __init__"),
    ImportsWithin: (None, r"imports math, in .*test_idioms.py, line \d+: import it at the top of the module"),
    CountsOutside: (
        DT,
        r"COUNT changes during a call, in .*test_idioms.py, line \d+: a sampled law may change its own attributes only",
    ),
    ReadsItsBuffer: (None, r"last changes during a call, in .*test_idioms.py, line \d+, and the next call reads it"),
    AddsToAnArray: (None, r"used changes during a call, in .*test_idioms.py, line \d+, and the next call reads it"),
    IndexWithoutLimit: (None, r"used as an integer, in .*test_idioms.py, line \d+.*min\(max\(i, 0\), n - 1\)"),
}


@pytest.mark.parametrize("kind", REFUSED, ids=lambda kind: kind.__name__)
def test_what_is_refused_names_the_line_and_what_to_write(kind):
    control_dt, message = REFUSED[kind]
    with pytest.raises(UntraceableError, match=message):
        run(kind(), True, control_dt=control_dt)


# --- threads -----------------------------------------------------------------------------------------------------


def asks_for_types(x):
    kinds = isinstance(x, float), isinstance(int(x), int), {float: 1}[float]
    return kinds, np.zeros(1, float).dtype.name, max(x, 1.0), float(x)


class AsksForTypes(Law):
    def tau(self, t, q, v):
        for _ in range(200):
            u = pd(q, v) + 0.0 * sum(map(limited, q, v)) * math.sin(t) * asks_for_types(t)[2]
        return u


def test_another_thread_runs_the_same_code_in_python_while_it_is_traced():
    expected, results, done = asks_for_types(0.5), [], threading.Event()

    def works():
        while not done.is_set():
            try:
                results.append(asks_for_types(0.5) == expected)
            except Exception as error:
                results.append(error)

    thread = threading.Thread(target=works)
    thread.start()
    before = len(results)
    try:
        gc.compile(AsksForTypes())
    finally:
        done.set()
        thread.join()
    assert len(results) > before
    assert {*map(repr, results)} == {"True"}
    assert "float" not in globals()
