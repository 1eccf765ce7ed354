"""Memory of sampled laws in functions, partial functions, read-only views and bound methods: a run is as in Python.

The states of the run, and all that the law holds at the end, are compared with a run in Python.
"""

import enum
import functools
import types
import warnings
from collections import OrderedDict, deque
from typing import NamedTuple

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import Command
from geomctrl.tracing.untraceable import UntraceableError

ARM = gc.models.two_link()


class Law:
    """Gives its memory m to a step, which changes it and returns a torque."""

    def __init__(self, m, step):
        self.m, self.step = m, step

    def __call__(self, t, q, v, z):
        return gc.Command(self.step(self.m, t, q) - 4.0 * v - 6.0 * q)


def run(law, compiled, t_end=0.3):
    options = gc.SimulationOptions(compiled=compiled)
    return gc.simulate(ARM, law, [0.3, -0.2], [0.0, 0.1], t_end, 1e-3, 1e-2, monitors=None, options=options).q


class Filter:
    def __init__(self):
        self.y = 0.0

    def step(self, x):
        self.y += 0.2 * (x - self.y)
        return self.y


class Mode(NamedTuple):
    name: str
    count: float


def counting():
    def f(x):
        f.count += 1
        f.sums += x
        return 0.02 * f.count + 0.1 * f.sums

    f.count, f.sums = 0, np.zeros(2)
    return f


def scaled(g, x, *, k):
    g[0] += 0.1
    return g[0] * k * x


def partial():
    f = functools.partial(scaled, [1.0], k=1.0)
    f.last = 0.0
    return f, f


def of_partial(m, t, q):
    m[0].keywords["k"] += 0.01
    m[0].last = t
    return m[1](q) + m[1].last


def view():
    d = {"n": 0.0}
    return types.MappingProxyType(d), d


def of_view(m, t, q):
    m[1]["n"] += 0.1
    return m[0]["n"] * np.ones(2)


def later_key(m, t, q):
    if q[0] < 0.25:  # in Python from here on
        m["late"] = t
    return len(m) * np.ones(2)


def of_mode(m, t, q):
    m[0] = Mode("slow" if q[0] < 0.25 else "fast", m[0].count + 0.1)
    return (1.0 if m[0].name == "slow" else 2.0) * m[0].count * np.ones(2)


def averaged(m, t, q):
    window, times, all_of_it = m
    window.append(q.copy())
    times.append(t)
    if len(window) < 2:
        return np.zeros(2)
    all_of_it[:] = [*all_of_it, q[0]][-12:]
    return (window[-1] - window[0]) / (times[-1] - times[0]) + sum(all_of_it) / len(all_of_it)


def grown(m, t, q):
    m[0] = np.vstack([m[0], q])[-5:]
    return m[0].mean(axis=0)


def in_a_set(m, t, q):
    m[1] = (m[1] + 1) % 4
    return (1.0 if m[1] in m[0] else -1.0) * np.ones(2)


FOLLOWED = {
    "buffers that fill": (lambda: (deque(maxlen=6), deque(maxlen=4), []), averaged),
    "an array that grows": (lambda: [np.zeros((0, 2))], grown),
    "a constant set": (lambda: [frozenset({1.0, 3.0}), 0], in_a_set),
    "attributes of a function": (counting, lambda m, t, q: m(q)),
    "a partial function in two places": (partial, of_partial),
    "a read-only view of a dict": (view, of_view),
    "bound methods": (lambda: [Filter().step, (Filter().step,)], lambda m, t, q: m[0](q) - m[1][0](t)),
    "a text and a number in one tuple": (lambda: [Mode("fast", 0.0)], of_mode),
    "a key that a branch creates": (lambda: {"first": 1.0}, later_key),
}


class Gait(enum.Enum):
    STANCE = 1
    SWING = 2


KEYS = {
    "enums": (Gait.STANCE, Gait.SWING),
    "enums in tuples": ((Gait.SWING, 1), (Gait.SWING, "]")),
    "brackets and dots": ("a]", "['a'].b[0]"),
    "quotes and new lines": ("'\"\\", "a\nb"),
    "of several types": (None, True, b"[]", "None", -1),
    "numbers of numpy": (np.int64(3), np.float64(0.5), np.str_("s]")),
    "numbers that are not finite": (float("nan"), float("inf")),
}


def by_key(m, t, q):
    first, *_, last = m
    m[first] = 0.9 * m[first] + q[0]
    m[last][1][last] += q[1]
    return 0.1 * m[first] * np.ones(2) + m[last][1][last]


@pytest.mark.parametrize("name", KEYS)
def test_the_keys_of_a_memory_may_be_any_constants(name):
    *others, last = KEYS[name]
    laws = [Law(dict.fromkeys(others, 0.1) | {last: [0.0, {last: 0.2}]}, by_key) for _ in range(2)]
    for _ in range(2):  # the second run begins with the memory of the first
        np.testing.assert_allclose(run(laws[1], True), run(laws[0], False), rtol=0.0, atol=1e-12)
        assert [held(x) for x in laws[1].m.values()] == [held(x) for x in laws[0].m.values()]


def test_different_keys_with_one_text_are_refused():
    keys = [enum.Enum("Gait", ["STANCE"]).STANCE for _ in range(2)]
    law = Law({keys[0]: 0.1, keys[1]: [0.0, {keys[1]: 0.2}]}, by_key)
    with pytest.raises(UntraceableError, match=r"2 keys .* have the text \[<Gait.STANCE: 1>\]"):
        run(law, True)
    assert list(law.m.values()) == [0.1, [0.0, {keys[1]: 0.2}]]


def test_names_of_attributes_may_be_any_texts():
    def law():
        law = Law(None, lambda m, t, q: np.zeros(2))
        vars(law).update({"gain[0].x": 0.1, "a b": np.zeros(2)})
        law.step = lambda m, t, q: changed(law, q)
        return law

    def changed(law, q):
        setattr(law, "gain[0].x", getattr(law, "gain[0].x") + q[0])
        setattr(law, "a b", 0.5 * getattr(law, "a b") + q)
        return getattr(law, "a b") + 0.1 * getattr(law, "gain[0].x")

    np.testing.assert_allclose(run(law(), True), run(law(), False), rtol=0.0, atol=1e-12)


def held(m):
    """What a memory consists of, without the identity of its objects."""
    if isinstance(m, types.FunctionType):
        return "function", held(m.__dict__)
    if isinstance(m, functools.partial):
        return "partial", held(m.args), held(m.keywords), held(m.__dict__)
    if isinstance(m, types.MethodType):
        return "method", held(m.__self__.__dict__)
    if isinstance(m, (dict, types.MappingProxyType)):
        return type(m), [(key, held(x)) for key, x in m.items()]
    if isinstance(m, (list, tuple, deque)):
        return type(m), [held(x) for x in m]
    return type(m), np.round(m, 9).tolist() if isinstance(m, (float, np.ndarray)) else m


@pytest.mark.parametrize("compiled", [True, "auto"])
@pytest.mark.parametrize("name", FOLLOWED)
def test_memory_is_followed(name, compiled):
    make, step = FOLLOWED[name]
    laws = [Law(make(), step) for _ in range(2)]
    expected, q = run(laws[0], False), run(laws[1], compiled)
    np.testing.assert_allclose(q, expected, rtol=0.0, atol=1e-12)
    assert held(laws[1].m) == held(laws[0].m)
    np.testing.assert_allclose(run(laws[1], compiled), run(laws[0], False), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("samples", [1, 3, 9, 200])
def test_a_buffer_that_fills_is_as_in_python_however_long_the_run(samples):
    """Up to the end of the run, and in runs side by side; what grows for ever is refused."""
    options = {"dt": 1e-3, "control_dt": 1e-2, "monitors": None}

    def all_runs(compiled):
        laws = [Law((deque(maxlen=8), deque(maxlen=k), []), averaged) for k in (2, 3, 4)]
        chosen = gc.SimulationOptions(compiled=compiled)
        runs = gc.simulate_many(ARM, laws, [0.3, -0.2], [0.0, 0.1], 1e-2 * samples, **options, options=chosen)
        return [x.q for x in runs], [held(law.m) for law in laws]

    (expected, memory), (q, found) = all_runs(False), all_runs("auto")
    np.testing.assert_allclose(q, expected, rtol=0.0, atol=1e-12)
    assert found == memory
    log = Law([], lambda m, t, q: m.append(t) or np.zeros(2))
    with pytest.raises(UntraceableError, match="changes its length"):
        gc.simulate(
            ARM, log, [0.3, -0.2], [0, 0], 1e-2 * samples, **options, options=gc.SimulationOptions(compiled=True)
        )
    assert log.m == []


def moved(m, t, q):
    m["a"] = m.pop("a") if next(iter(m)) == "a" else m["a"]
    m["b"] = m.pop("b") if t > 0.1 and next(iter(m)) == "b" else m["b"]
    return next(iter(m.values())) * np.ones(2)


def rotated(m, t, q):
    m.move_to_end(next(iter(m)))
    return next(iter(m.values())) * np.ones(2)


@pytest.mark.parametrize(("kind", "step"), [(dict, moved), (OrderedDict, rotated)])
def test_the_order_of_keys_is_followed_or_refused(kind, step):
    def law():
        return Law(kind(a=1.0, b=2.0, c=4.0), step)

    python, other = law(), law()
    expected = run(python, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        np.testing.assert_allclose(run(other, "auto"), expected, rtol=0.0, atol=1e-12)
    assert list(other.m) == list(python.m)
    if kind is OrderedDict:  # moved in every call
        with pytest.raises(UntraceableError, match="order of its keys"):
            run(law(), True)


def test_a_refused_law_is_as_before():
    numbers, seen, count = [0], {1}, 0

    def law(t, q, v, z):
        nonlocal count
        count += 1
        numbers[0] += 1
        seen.add(count)
        law.calls += 1
        print(end="")
        return gc.Command(-q - v)

    law.calls = 0
    with pytest.raises(UntraceableError, match="can not be traced"):
        run(law, True)
    assert (numbers, seen, count, law.calls) == ([0], {1}, 0, 0)


def with_defaults():
    def law(t, q, v, z, mem=[0.0], *, other={"n": 0.0}):  # noqa: B006
        mem[0] += 0.1
        other["n"] += 0.1
        print(end="")
        return gc.Command(-q - v)

    return law, lambda: (law.__defaults__, law.__kwdefaults__)


def of_a_bound_function():
    def f(self, t, q, v, z):
        f.n += 1.0
        print(end="")
        return gc.Command(-q - v)

    f.n = 0.0
    return types.MethodType(f, Filter()), lambda: f.n


class Counted:
    n = 0.0

    def __call__(self, t, q, v, z, mem=[0.0]):  # noqa: B006
        Counted.n += 1.0
        mem[0] += 1.0
        return gc.Command(-q - v)


TOTAL, SUMS = 0, [0.0]


def counted_in_globals(t, q, v, z):
    global TOTAL
    TOTAL += 1
    SUMS[0] += 1.0
    open  # noqa: B018  (refused when its code is read)
    return gc.Command(-q - v)


ELSEWHERE = {
    "defaults": with_defaults,
    "function of a bound method": of_a_bound_function,
    "class": lambda: (Counted(), lambda: (Counted.n, Counted.__call__.__defaults__)),
    "globals": lambda: (counted_in_globals, lambda: (TOTAL, SUMS)),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_refused_law_leaves_no_change_outside_of_its_attributes(name):
    law, memory = ELSEWHERE[name]()
    before = repr(memory())
    with pytest.raises(UntraceableError):
        run(law, True)
    assert repr(memory()) == before
    options, states = gc.SimulationOptions(compiled=True), ([[0.3, -0.2]] * 2, np.zeros((2, 2)))
    with pytest.raises(UntraceableError):
        gc.simulate_many(ARM, [law, ELSEWHERE[name]()[0]], *states, 0.1, 1e-3, 1e-2, options=options)
    assert repr(memory()) == before
    run(law, False)
    assert repr(memory()) != before


def reads_its_count_elsewhere():
    """A law that changes defaults, and a function of what it counts, which compiled code takes for constant."""
    n = 0.0

    def law(t, q, v, z, mem=[0.0], *, more={"n": 0.0}):  # noqa: B006
        nonlocal n
        n += 0.01
        mem[0] += 0.1
        more["n"] += 0.1
        return gc.Command(COUNT() - q - v + mem[0] + more["n"])

    return law, lambda: n


def test_python_repeats_a_run_with_the_defaults_that_it_began_with():
    def q_of(compiled):
        global COUNT
        law, COUNT = reads_its_count_elsewhere()
        return run(law, compiled, 5.0), law.__defaults__, law.__kwdefaults__

    expected = q_of(False)
    with pytest.warns(RuntimeWarning, match="in Python"):
        q = q_of("auto")
    np.testing.assert_array_equal(q[0], expected[0])
    assert q[1:] == expected[1:]


SHARED = {"n": 0}
SHOWN = types.MappingProxyType(SHARED)


def shown(t, q, v, z):
    n = SHOWN["n"]
    SHARED["n"] += 1
    return gc.Command(0.01 * n - q - v)


def test_a_view_of_a_changing_global_is_refused():
    with pytest.raises(UntraceableError, match="changes during a call"):
        run(shown, True)


COUNTER, CELLS = {"n": 0.0}, np.zeros((2, 2))


class TwoWays(Law):
    def __call__(self, t, q, v, z):
        super().__call__(t, q, v, z)
        return gc.Command(5.0 * COUNTER["n"] + CELLS[0] - 4.0 * v)


def in_a_rare_state(m, t, q):
    m["n"] = 1.0 if 0.202 <= t < 0.212 else 0.0
    return np.zeros(2)


def always(m, t, q):
    m[:] = 0.5 * m + q
    return np.zeros(2)


def test_memory_that_is_also_reached_by_a_name_is_refused():
    with pytest.raises(UntraceableError, match=r"controller.m changes during a call.* as a global"):
        run(TwoWays(CELLS[0], always), True)
    COUNTER["n"] = 0.0
    expected = run(TwoWays(COUNTER, in_a_rare_state), False)
    np.testing.assert_allclose(run(TwoWays(COUNTER, in_a_rare_state), True), expected, rtol=0.0, atol=1e-12)
    assert np.abs(expected - run(TwoWays({"n": 0.0}, in_a_rare_state), False)).max() > 1e-3


def counter(initial=0.0):
    n = initial

    def up(x=0.1):
        nonlocal n
        n = n + x

    return up, lambda: n


def helper():
    n = 0.0

    def up():
        nonlocal n
        n += 0.1

    def law(t, q, v, z):
        up()
        return gc.Command(n - q - v)

    return law


def as_default():
    n = 0.0

    def get():
        return n

    def law(t, q, v, z, *measured, g=get):
        nonlocal n
        n += 0.1
        return gc.Command(g() - q - v)

    return law


def as_attribute():
    n = 0.0

    def get():
        return n

    def law(t, q, v, z):
        nonlocal n
        n += 0.1
        return gc.Command(law.get() - q - v)

    law.get = get
    return law


def three_deep():
    n = np.zeros(2)

    def outer():
        def middle():
            def inner(q):
                nonlocal n
                n = 0.9 * n + q

            return inner

        return middle

    add = outer()()
    return lambda t, q, v, z: add(q) or gc.Command(0.1 * n - q - v)


def decorated():
    def smooth(f):
        last = None

        @functools.wraps(f)
        def g(x):
            nonlocal last
            last = f(x) if last is None else 0.5 * (f(x) + last)
            return last

        g.last = lambda: last
        return g

    torque = smooth(lambda q: -q)
    return lambda t, q, v, z: gc.Command(torque(q) + 0.5 * torque.last() - v)


def partials():
    up, get = counter()
    add = functools.partial(up, 0.1)
    return lambda t, q, v, z: add() or up(0.01) or gc.Command(get() - q - v)


def written_array():
    total = np.zeros(2)

    def add(q):
        total[:] = 0.9 * total + q

    return lambda t, q, v, z: add(q) or gc.Command(0.1 * total - q - v)


def not_filled_yet():
    def store(q):
        nonlocal last
        last = q.copy()

    def law(t, q, v, z):
        store(q)
        return gc.Command(0.1 * last - q - v)

    if law is None:
        last = np.zeros(2)
    return law


class Resets:
    def __init__(self):
        n = 0.0

        def step(x):
            nonlocal n
            n = 0.9 * n + x
            return n

        def reset():
            nonlocal n
            n = 0.0

        self.step, self.reset = step, reset

    def __call__(self, t, q, v, z):
        if t > 0.15:
            self.reset()
        return gc.Command(self.step(q[0]) - q - v)


class InAList:
    def __init__(self):
        self.both = [*counter()]

    def __call__(self, t, q, v, z):
        self.both[0](0.1)
        return gc.Command(self.both[1]() - q - v)


class Tracking:
    """The law writes what its reference reads."""

    def __init__(self):
        self.up, get = counter()
        self.reference = lambda t: (np.array([0.1 * get(), 0.0]), np.zeros(2), np.zeros(2))

    def __call__(self, t, q, v, z):
        self.up()
        return gc.Command(self.reference(t)[0] - q - v)


ONE_CELL = (helper, as_default, as_attribute, three_deep, decorated, partials, written_array, not_filled_yet)


@pytest.mark.parametrize("make", [*ONE_CELL, Resets, InAList, Tracking])
def test_functions_that_share_a_variable_see_each_others_changes(make):
    laws = make(), make()
    for _ in range(2):  # the second run starts with the memory of the first
        np.testing.assert_allclose(run(laws[1], True), run(laws[0], False), rtol=0.0, atol=1e-12)


class Recounted(gc.monitors.Monitor):
    name, description, limit = "count", "what the law has counted", np.inf

    def __init__(self, get):
        self.get = get

    def start(self, plant, controller):
        return True

    def measure(self, sample):
        return self.get()


def test_a_monitor_reads_a_variable_that_the_law_changes():
    def values(compiled):
        up, get = counter()
        options = gc.SimulationOptions(compiled=compiled)
        law = lambda t, q, v, z: up() or gc.Command(-q - v)  # noqa: E731
        return gc.simulate(ARM, law, [0.3, -0.2], [0, 0], 0.3, 1e-3, 1e-2, monitors=[Recounted(get)], options=options)

    found, expected = (values(compiled).monitors["count"].values for compiled in (True, False))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)
    assert expected[-1] > 3.0


GET = SET = None


def by_a_global():
    global GET
    n = 0.0

    def get():
        return n

    def law(t, q, v, z):
        nonlocal n
        n = 1.0 if 0.1 <= t < 0.2 else 0.0  # as at first in the end
        return gc.Command(5.0 * GET() - q - v)

    GET = get
    return law


def set_by_a_global():
    global SET
    SET, get = counter()
    return lambda t, q, v, z: SET() or gc.Command(get() - q - v)


def by_a_class():
    up, get = counter()

    class Reading:
        def __init__(self):
            self.up = up

        def __call__(self, t, q, v, z):
            self.up()
            return gc.Command(get() - q - v)

    return Reading()


@pytest.mark.parametrize("make", [by_a_global, set_by_a_global, by_a_class])
def test_a_variable_that_is_also_reached_by_a_name_is_refused_or_followed(make):
    """Refused with the line of the change; "auto" takes Python then. Samples that do not change it are compiled."""
    expected = run(make(), False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        np.testing.assert_allclose(run(make(), "auto"), expected, rtol=0.0, atol=1e-12)
    if make is by_a_global:
        np.testing.assert_allclose(run(make(), True), expected, rtol=0.0, atol=1e-12)
    else:
        with pytest.raises(UntraceableError, match=r"n changes during a call, in .*test_where_memory_is.py, line \d+"):
            run(make(), True)


def test_an_array_under_two_names_is_reported_as_such():
    """The error about it is a ValueError, as that of an empty variable."""
    total = np.zeros(2)

    def add(q):
        total[:] = 0.9 * total + q

    law = Law(total, lambda m, t, q: add(q) or 0.1 * m)
    with pytest.raises(UntraceableError, match=r"changes under another name too, in .*, line \d+: copy it"):
        run(law, True)


def laws_with_one_variable(count):
    n = 0.0

    def law_of(gain):
        def law(t, q, v, z):
            nonlocal n
            n = 0.9 * n + q[0]
            return gc.Command(n - gain * q - v)

        return law

    return [law_of(1.0 + k) for k in range(count)]


def laws_with_one_array(count):
    total = np.zeros(2)

    def step(m, t, q):
        m["array"][:] = 0.9 * m["array"] + q
        return m["gain"] * m["array"]

    return [Law({"array": total, "gain": 0.1 * k}, step) for k in range(count)]


def laws_with_one_list(count):
    numbers = [0.0]

    def step(m, t, q):
        m[0][0] += 0.1
        return m[1] * m[0][0] * q

    return [Law((numbers, 0.1 * k), step) for k in range(count)]


@pytest.mark.parametrize("make", [laws_with_one_variable, laws_with_one_array, laws_with_one_list])
def test_laws_that_share_their_memory_run_one_after_the_other(make):
    def runs(compiled):
        options = gc.SimulationOptions(compiled=compiled)
        several = gc.simulate_many(ARM, make(5), [0.3, -0.2], [0, 0.1], 0.3, 1e-3, 1e-2, monitors=None, options=options)
        return [x.q for x in several]

    np.testing.assert_allclose(runs(True), expected := runs(False), rtol=0.0, atol=1e-12)
    alone = [run(make(k + 1)[-1], False) for k in range(5)]
    assert np.abs(np.array(expected) - alone).max() > 1e-3


class Speed(gc.monitors.Monitor):
    name, description, limit = "speed", "the speed of the first joint", 100.0

    def __init__(self, gain):
        self.gain = gain

    def measure(self, x):
        return self.gain * abs(x.v[0])


class OwnController(gc.controllers.PDGravity):
    def __init__(self, gain):
        super().__init__(ARM, [0.2, 0.1], gain, 5.0)

    def __call__(self, t, q, v, z):
        return Command(2.0 * super().__call__(t, q, v, z).tau)


def test_constructors_of_users_subclasses_are_no_memory():
    """geomctrl records the arguments of constructors in attributes of the function."""
    options = [gc.SimulationOptions(compiled=x) for x in (True, False)]
    runs = [
        gc.simulate(ARM, OwnController(20.0), [0.3, -0.2], [0.0, 0.1], 0.1, 1e-3, control_dt, [Speed(2.0)], options=x)
        for x in options
        for control_dt in (None, 1e-2)
    ]
    for compiled, python in zip(runs[:2], runs[2:], strict=True):
        np.testing.assert_allclose(compiled.q, python.q, rtol=0.0, atol=1e-12)


class Reckless(OwnController):
    def __init__(self, gain):
        super().__init__(gain)
        print(gain)


class Repeating(OwnController):
    def __call__(self, t, q, v, z):
        return Command(Reckless(20.0)(t, q, v, z).tau)


def test_constructors_that_print_are_refused_in_a_call(capsys):
    with pytest.raises(UntraceableError, match="print"):
        run(Repeating(20.0), True)
    assert capsys.readouterr().out == "20.0\n"  # of the first sample, in Python
