"""`trace` calls functions without effect: what they change is as before, and named with its line in the refusal."""

import collections
import functools
import io
import itertools
import pickle
import random
import threading
import types

import numpy as np
import pytest

from geomctrl.tracing import trace, tracer
from geomctrl.tracing.function import TracedFunction
from geomctrl.tracing.untraceable import UntraceableError

TEMPLATE = """
class Own(dict):
    pass
class Thing:
    kept = 1.0
    def __init__(self):
        self.k, self.past = 1.0, [1.0]
class Other(Thing):
    pass
class Dice(random.Random):
    pass
class Count(itertools.count):
    pass
class Stop(Exception):
    pass
def by_name(*, k=1.0):
    return k
class Slots:
    __slots__ = ("k",)
    def __init__(self):
        self.k = 1.0
X = {x}
def reached(x):
    global X
    {call}
    return 2.0 * x
class Regulator:
    def __init__(self):
        self.x = {x}
    def __call__(self, x):
        {called}
        return 2.0 * x
    def method(self, x):
        return self(x)
"""
# what X is, and a statement that changes it
CHANGED = {
    "list": ("[1.0]", "X.append(x[0])"),
    "list, entry": ("[1.0]", "X[0] = x[0]"),
    "list in a dict": ("{'a': [1.0]}", "X['a'][0] = x[0]"),
    "dict": ("{'a': 1.0}", "X['a'] = x[0]"),
    "dict, new key": ("{}", "X['last'] = x"),
    "dict, order": ("{'a': 1.0, 'b': 2.0}", "X['a'] = X.pop('a')"),
    "defaultdict": ("collections.defaultdict(list)", "X['a']"),
    "Counter": ("collections.Counter(a=1)", "X['a'] += 1"),
    "deque": ("collections.deque([1.0, 2.0], maxlen=2)", "X.append(x[0])"),
    "set": ("{1}", "X.add(2)"),
    "bytearray": ("bytearray(b'a')", "X[0] = 1"),
    "array": ("np.ones(2)", "X[:] = 2.0"),
    "array, flags": ("np.ones(2)", "X.flags.writeable = False"),
    "array, shape": ("np.ones(4)", "X.shape = (2, 2)"),
    "object": ("Thing()", "X.k = x[0]"),
    "object, list": ("Thing()", "X.past.append(x[0])"),
    "object, new attribute": ("Thing()", "X.last = x"),
    "object, deleted attribute": ("Thing()", "vars(X).pop('k', None)"),
    "slots": ("Slots()", "X.k = x[0]"),
    "class": ("Thing", "X.kept = x[0]"),
    "dict subclass": ("Own(a=1.0)", "X['a'] = x[0]"),
    "attribute of a dict subclass": ("Own(a=1.0)", "X.last = x[0]"),
    "function attribute": ("lambda: 1.0", "X.last = x[0]"),
    "partial": ("functools.partial(max, [1.0])", "X.args[0].append(x[0])"),
    "random numbers": ("np.random.default_rng(1)", "X.normal()"),
    "module's random numbers": ("random", "X.random()"),
    "defaults": ("lambda k=1.0: k", "X.__defaults__ = (x[0],)"),
    "defaults by name": ("by_name", "setattr(X, '__kwdefaults__', {'k': x[0]})"),
    "class of an object": ("Thing()", "X.__class__ = Other"),
    "global that is deleted": ("[1.0]", "del X"),
    "function of np.vectorize": ("np.vectorize(lambda y: y)", "X.pyfunc = abs"),
    "excluded arguments of np.vectorize": ("np.vectorize(by_name)", "X.excluded.add('k')"),
    "only on one path": ("[1.0]", "X.append(1.0) if x[0] > 2.0 else None"),
}
UNKNOWN = {
    "a subclass of random.Random": ("Dice()", "X.random()"),
    "a subclass of count": ("Count()", "next(X)"),
    "a subclass of an exception": ("Stop(1.0)", "X.args = (2.0,)"),
    "iterator": ("iter([1.0] * 500)", "next(X)"),
    "generator": ("(float(k) for k in range(500))", "next(X)"),
    "count": ("itertools.count()", "next(X)"),
    "file": ("io.StringIO()", "X.write('a')"),
    "lock": ("threading.Lock()", "X.acquire()"),
    "open": ("open", "X('FILE', 'w').close()"),
}
NAMES = {"np": np, "collections": collections, "functools": functools, "random": random}
NAMES |= {"itertools": itertools, "io": io, "threading": threading}


def made(case):
    x, call = case
    space = {**NAMES, "__name__": "of_a_user"}
    source = TEMPLATE.format(x=x, call=call, called=call.replace("X", "self.x"))
    exec(compile(source, "of_a_user.py", "exec"), space)
    return space


def contents(x):
    """All that x contains, with types, as text: 1.0 and a symbol differ, and so do two arrays of other flags."""
    if isinstance(x, np.ndarray):
        return f"{x.shape} {x.strides} {x.flags.writeable} {x.tolist()}"
    if isinstance(x, np.random.Generator):
        return str(x.bit_generator.state)
    if x is random:
        return str(random.getstate())
    if isinstance(x, functools.partial):
        return contents([*x.args])
    if isinstance(x, types.FunctionType):
        return contents([x.__code__, x.__defaults__, x.__kwdefaults__, vars(x)])
    parts = [f"{type(x)}"]
    if isinstance(x, dict):
        parts += [f"{k}: {contents(v)}" for k, v in x.items()]
    elif isinstance(x, (list, set, collections.deque, bytearray)):
        parts += [contents(v) for v in x]
    elif isinstance(x, type):
        parts.append(contents(x.kept))
    else:
        parts.append(f"{x!r}")
    slots = {name: getattr(x, name) for name in getattr(type(x), "__slots__", ()) if hasattr(x, name)}
    attributes = {} if isinstance(x, type) else {**getattr(x, "__dict__", {}), **slots}
    return " ".join([*parts, *(f"{k}= {contents(v)}" for k, v in attributes.items())])


def functions(space):
    """The function that reaches X by name, an object with it, its method, and one under functools."""
    yield space["reached"], space["X"], "X"
    for form in (lambda y: y, lambda y: y.method, lambda y: functools.partial(y.method)):
        regulator = space["Regulator"]()
        yield form(regulator), regulator.x, r"f\.x"


@pytest.mark.parametrize("name", CHANGED)
def test_all_that_a_function_changes_is_as_before_and_named(name):
    for f, x, place in functions(made(CHANGED[name])):
        before = contents(x)
        where = {"module's random numbers": "random numbers", "array, shape": "shape", "class": "kept"}.get(name, place)
        with pytest.raises(UntraceableError, match=where) as error:
            trace(f, 2)
        assert contents(x) == before
        assert "symbol" not in before
        if "changes during a call" in str(error.value):
            assert "of_a_user.py, line" in str(error.value)
            assert "pass the value as an argument" in str(error.value)


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_function_that_may_change_what_can_not_be_restored_is_not_called(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = made(UNKNOWN[name])
    calls = []
    space["print"] = lambda *_: calls.append(1)
    with pytest.raises(UntraceableError, match=r"may keep data|outside of the law"):
        trace(space["reached"], 2)
    assert not calls
    assert not [*tmp_path.iterdir()]
    if name in ("iterator", "count"):
        assert next(space["X"]) in (0, 1.0)
        assert pickle.dumps(1)


@pytest.mark.filterwarnings("ignore:Setting the strides:DeprecationWarning")
def test_strides_are_as_before():
    for f, x, _ in functions(made(("np.array([[1.0, 2.0], [3.0, 4.0]])", "X.strides = X.strides[::-1]"))):
        with pytest.raises(UntraceableError, match=r"strides|shape"):
            trace(f, 2)
        np.testing.assert_array_equal(x, [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("call", ["np.own = x[0]", "np.linalg.own = x[0]", "del np.pi"])
def test_a_function_that_sets_an_attribute_of_a_library_is_not_called(call):
    with pytest.raises(UntraceableError, match=r"np\..* is set, in of_a_user.py, line \d+: do that at the top"):
        trace(made(("1.0", call))["reached"], 2)
    assert not hasattr(np, "own")
    assert not hasattr(np.linalg, "own")
    assert np.pi > 3.0


def test_closures_defaults_and_globals_are_as_before():
    count = 0

    def counted(x):
        nonlocal count
        count = count + 1
        return x * 2.0

    def remembering(x, past=[]):  # noqa: B006
        past.append(x[0])
        return x * 2.0

    for f, place in ((counted, "count"), (remembering, "f")):
        with pytest.raises(UntraceableError, match=f"{place}.*changes during a call"):
            trace(f, 2)
    assert count == 0
    assert remembering.__defaults__ == ([],)


def test_functions_that_read_traced_objects_leave_them():
    space = made(("{'a': [1.0], 'k': np.ones(2)}", "x = x * X['a'][0] + X['k']"))
    before = contents(space["X"])
    f = trace(space["reached"], 2)
    np.testing.assert_allclose(f.to_llvm()(np.array([1.0, 2.0])), [4.0, 6.0])
    f.enclose([[0.0, 0.0], [1.0, 1.0]])
    assert contents(space["X"]) == before


def test_a_function_with_a_vectorized_one_has_its_values():
    space = made(("np.vectorize(lambda y: max(y, 0.5), otypes=[float])", "x = x + X(x)"))
    for f, _, _ in functions(space):
        np.testing.assert_allclose(trace(f, 2).to_llvm()(np.array([1.0, 0.2])), [4.0, 1.4])


def test_a_local_list_may_grow():
    def f(x):
        rows = []
        for k in range(4):
            rows.append(k * x[0])
        return np.array(rows)

    np.testing.assert_allclose(trace(f, 2).to_llvm()(np.array([0.5, 2.0])), [0.0, 0.5, 1.0, 1.5])


def test_a_function_that_remembers_where_compiled_code_has_no_result_is_refused():
    seen = []

    def f(x):
        if x[0] > 1.0:
            seen.append(1.0)
            raise ValueError
        return 2.0 * x

    traced = TracedFunction(tracer.traced(f, (2,)), ((2,),), ["x"], f)  # without the checks of `trace`
    seen.clear()
    box = [[1.5, 0.0], [2.0, 1.0]]
    for use in (traced.to_llvm, lambda: traced.enclose(box), lambda: traced.to_c("unused", "f")):
        with pytest.raises(UntraceableError, match=r"seen changes during a call, in .*test_functions_with_memory"):
            use()
        assert not seen
    with pytest.raises(UntraceableError, match="seen changes"):
        trace(f, 2)
    assert not seen


def test_an_interrupt_is_not_lost():
    seen = []

    def f(x):
        seen.append(1.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace(f, 2)
    assert not seen
