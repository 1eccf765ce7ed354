"""Trial runs have no side effects: after tracing or refusal all reachable state is unchanged."""

import collections
import copy
import functools
import random
import sys
import types
import warnings
import weakref

import numpy as np
import pytest
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl import models
from geomctrl.control import loop_runner
from geomctrl.tracing.code_identity import attributes_of

ROBOT = models.two_link()
trial = loop_runner.machine_for
TEMPLATE = """
{before}
class Law:
    robot = ROBOT
    hits = 0
    def start(self):
        return None
    def __call__(self, t, q, v, z):
        {call}
        return gc.Command(-1.0 * v)
law = Law()
law.x = {x}
"""
# code of the call that uses X, a global, or self.x: the same object
TOUCHED = {
    "list": ("[1.0]", "X.append(t)"),
    "list in a list": ("[[1.0]]", "X[0][0] = v[0]"),
    "list, sorted": ("[2.0, 1.0]", "X.sort()"),
    "dict": ("{'a': 1.0}", "X['a'] = v[0]"),
    "dict, order": ("{'a': 1.0, 'b': 2.0}", "X['a'] = X.pop('a')"),
    "OrderedDict": ("collections.OrderedDict(a=1.0, b=2.0)", "X.move_to_end('a')"),
    "defaultdict": ("collections.defaultdict(list)", "X['a']"),
    "Counter": ("collections.Counter(a=1)", "X['a'] += 1"),
    "set": ("{1}", "X.add(2)"),
    "bytearray": ("bytearray(b'a')", "X[0] = 1"),
    "deque": ("collections.deque([1.0, 2.0], maxlen=2)", "X.append(v[0])"),
    "array": ("np.ones(2)", "X[:] = 2.0"),
    "view": ("np.ones((2, 2))[0]", "X[...] = 2.0 * X"),
    "resized array": ("np.ones(4)", "X.shape = (2, 2)"),
    "table of objects": ("np.array([1.0, None], object)", "X[0] = v[0]"),
    "generator of random numbers": ("np.random.default_rng(1)", "X.random()"),
    "random": ("random.Random(1)", "X.random()"),
    "RandomState": ("np.random.RandomState(1)", "X.rand()"),
    "iterator": ("iter([1.0, 2.0, 3.0, 4.0] * 20)", "next(X)"),
    "half consumed generator": ("half()", "next(X)"),
    "zip": ("zip(range(99), range(99))", "next(X)"),
    "object": ("Thing()", "X.k = v[0]"),
    "object, new attribute": ("Thing()", "X.j = 1.0"),
    "object, deleted attribute": ("Thing(2.0)", "vars(X).pop('k', None)"),
    "slots": ("Slots()", "X.k = v[0]"),
    "mangled slots": ("Slots()", "X.hide(v[0])"),
    "object with __setattr__": ("Strict()", "object.__setattr__(X, 'k', v[0])"),
    "dict subclass": ("Table(a=1.0)", "X['a'] = v[0]"),
    "attribute of a dict subclass": ("Table(a=1.0)", "X.k = v[0]"),
    "weak reference": ("weakref.ref(Thing)", "X()"),
    "weak set": ("weakref.WeakSet()", "X.add(Thing)"),
    "lock": ("threading.Lock()", "X.acquire()"),
    "context variable": ("contextvars.ContextVar('x')", "X.set(1)"),
    "cached function": ("cached", "X(2)"),
    "cached with the state": ("cached", "X(t)"),
    "open file": ("io.StringIO()", "X.write('a')"),
    "print by another name": ("print", "X('here')"),
    "open by another name": ("open", "X('FILE', 'w').close()"),
    "module": ("types.ModuleType('M')", "X.k = 1.0"),
    "enum": ("Mode.A", "X.k = v[0]"),
    "function attribute": ("helper", "X.k = v[0]"),
    "closure": ("counted()", "X()"),
    "partial": ("functools.partial(list.append, [1.0])", "X(2.0)"),
    "bound method": ("[1.0].append", "X(2.0)"),
    "object that says when it goes": ("Gone()", "X.k"),
}
# code of the call besides
DONE = {
    "class attribute": "Law.hits += 1",
    "new class attribute": "Law.seen = 1",
    "class attribute by its class": "type(self).hits = v[0]",
    "global": "global COUNT; COUNT += 1",
    "new global": "global NEW; NEW = 1",
    "deleted global": "global COUNT; del COUNT",
    "annotations": "Law.__annotations__",
    "random": "random.random()",
    "numpy's random": "np.random.rand()",
    "seed": "np.random.seed(1)",
    "file of numpy": "np.savetxt('FILE', np.ones(2))",
    "file of numpy's arrays": "np.ones(2).tofile('FILE')",
    "file": "open('FILE', 'w').close()",
    "import of a module": "import this",
    "numpy's options": "np.set_printoptions(precision=3)",
    "numpy's errors": "np.seterr(all='raise')",
    "exec": "exec('COUNT = 2', globals())",
    "globals()": "globals()['COUNT'] = 7",
    "an attribute": "self.hits = self.hits + 1",
    "a warning": "np.float64(1.0) / 0 if t > 0 else None",
    "a failure": "Law.hits += 1; 1 / 0 if t > 0 else 0",
    "a question": "Law.hits += 1; float(str(v[0]) == 'a')",
}
BEFORE = """
COUNT = 1
def half():
    def made():
        for k in range(1000):
            yield float(k)
    g = made()
    next(g)
    return g
class Thing:
    def __init__(self, k=1.0):
        self.k = k
class Slots:
    __slots__ = ("k", "__hidden", "__weakref__")
    def __init__(self):
        self.k, self.__hidden = 1.0, 2.0
    def hide(self, x):
        self.__hidden = x
class Strict:
    def __init__(self):
        object.__setattr__(self, "k", 1.0)
    def __setattr__(self, name, value):
        raise AttributeError(name)
    def __getattribute__(self, name):
        ASKED.append(name)
        return object.__getattribute__(self, name)
ASKED = []
class Table(dict):
    k = 1.0
    def __setitem__(self, key, value):
        ASKED.append(key)
        dict.__setitem__(self, key, value)
class Mode(enum.Enum):
    A = 1
class Gone:
    k = 1.0
    def __del__(self):
        ASKED.append("gone")
@functools.lru_cache
def cached(x):
    return x
def helper():
    return 1.0
def counted():
    n = 0
    def count():
        nonlocal n
        n += 1
        return n
    return count
"""


class Tried(Exception):
    """Tracing of the law has been tried; its run has ended."""


def state(x, known):
    """All comparable parts of an object, recursively: identities of simple values, contents of containers."""
    if issubclass(type(x), (bool, int, float, str, bytes, type(None))):
        return type(x), x
    if id(x) in known:
        return "again", known[id(x)]
    known[id(x)] = len(known)
    if type(x) is gc.Robot:  # which keeps compiled code
        return id(x), x.parameters.tobytes()
    if issubclass(type(x), np.ndarray):
        return id(x), x.shape, x.dtype.str, x.tobytes(), x.flags.writeable
    if issubclass(type(x), np.random.Generator):
        return repr(x.bit_generator.state)
    if issubclass(type(x), (random.Random, np.random.RandomState)):
        return repr(x.getstate() if issubclass(type(x), random.Random) else x.get_state()[1].tolist())
    if type(x).__name__ in ("lock", "StringIO"):
        return x.locked() if type(x).__name__ == "lock" else x.getvalue()
    if issubclass(type(x), functools._lru_cache_wrapper):
        return x.cache_parameters()  # comparisons call cached functions, which are pure
    if issubclass(type(x), weakref.WeakSet):
        return len(x)
    if issubclass(type(x), types.GeneratorType):
        return x.gi_frame.f_lasti, repr(x.gi_frame.f_locals)
    if type(x).__name__ in ("list_iterator", "zip"):
        return repr(copy.copy(x).__reduce__()[1:])
    if issubclass(type(x), types.FunctionType):
        cells = [state(cell.cell_contents, known) for cell in x.__closure__ or () if cell != type(cell)()]
        return id(x), id(x.__code__), state(x.__dict__, known), cells
    if issubclass(type(x), dict):
        own = attributes_of(x) if type(x).__module__ == "touched" else {}
        return id(x), [(state(k, known), state(y, known)) for k, y in [*x.items(), *own.items()]]
    if issubclass(type(x), (list, tuple, set, collections.deque, bytearray)):
        return id(x), [state(y, known) for y in x]
    if issubclass(type(x), type):
        return id(x), [(k, id(y), state(y, known)) for k, y in vars(x).items() if x.__module__ == "touched"]
    if issubclass(type(x), types.ModuleType):
        return id(x), sorted(vars(x)) if x.__name__ == "M" else None
    if issubclass(type(x), functools.partial):
        return id(x), *(state(y, known) for y in (x.func, x.args, x.keywords))
    if issubclass(type(x), types.BuiltinFunctionType) and not isinstance(x.__self__, types.ModuleType):
        return state(x.__self__, known)
    return id(x), [(k, state(y, known)) for k, y in attributes_of(x).items()]


def world(space):
    """The module's globals and everything reachable from them, and the state of the process."""
    return {
        **{name: state(x, {}) for name, x in space.items() if name != "__builtins__"},
        "names": [*space],
        "random": (random.getstate(), repr(np.random.get_state()[1].tolist())),  # noqa: NPY002
        "numpy": (np.geterr(), np.get_printoptions()),
    }


def changed(before, after):
    return [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]


@pytest.fixture
def tried(monkeypatch, tmp_path, capsys):
    """Run a law's source, take the first sample of its loop and try to compile it; return the state before and
    after.
    """

    def tried(call, x):
        module = types.ModuleType("touched")
        monkeypatch.setitem(sys.modules, "touched", module)
        monkeypatch.chdir(tmp_path)
        space = vars(module)
        space |= {"gc": gc, "np": np, "random": random, "ROBOT": ROBOT, "collections": collections}
        exec("import contextvars, enum, functools, io, threading, types, weakref", space)
        source = TEMPLATE.format(
            before=BEFORE + ("" if x == "None" else f"X = {x}"), call=call, x="None" if x == "None" else "X"
        )
        exec(source, space)
        seen = []

        def machine_for(*args):
            for file in tmp_path.iterdir():  # for the first sample, in Python
                file.unlink()
            capsys.readouterr()
            seen.append(world(space))
            loaded = set(sys.modules)
            try:
                return trial(*args)
            finally:
                seen.append(world(space))
                new = {name.partition(".")[0] for name in set(sys.modules) - loaded}
                assert new <= {"scipy", "numpy", "geomctrl", "llvmlite"}
                assert capsys.readouterr().out == ""
                raise Tried

        monkeypatch.setattr(loop_runner, "machine_for", machine_for)
        with pytest.raises(Tried):
            gc.simulate(ROBOT, space["law"], [0.3, -0.2], [0.1, 0.4], 0.01, 1e-3, monitors=None, options=COMPILED)
        before, after = seen
        assert list(tmp_path.iterdir()) == []
        return before, after

    generator = random.getstate(), np.random.get_state()  # noqa: NPY002
    with np.errstate(), np.printoptions():
        yield tried
    random.setstate(generator[0])
    np.random.set_state(generator[1])  # noqa: NPY002


@pytest.mark.parametrize("case", TOUCHED)
def test_a_global_is_as_it_was(case, tried):
    x, call = TOUCHED[case]
    before, after = tried(call, x)
    assert changed(before, after) == []


@pytest.mark.quick(15)
@pytest.mark.parametrize("case", TOUCHED)
def test_an_attribute_is_as_it_was(case, tried):
    x, call = TOUCHED[case]
    before, after = tried(f"X = self.x; {call}", x)
    assert changed(before, after) == []


@pytest.mark.parametrize("case", DONE)
def test_everything_else_is_as_it_was(case, tried):
    before, after = tried(DONE[case], "None")
    assert changed(before, after) == []


def counter():
    count = 0

    def next_number():
        nonlocal count
        count += 1
        return count

    return next_number


COUNT = counter()


class CountsByAGlobalThatItHolds:
    robot = ROBOT

    def __init__(self):
        self.counted = COUNT

    def __call__(self, t, q, v, z):
        return gc.Command(np.array([0.01 * COUNT(), 0.0]) - v)


@pytest.mark.parametrize("control_dt", [None, 1e-2])
def test_a_function_that_is_reached_by_name_too_is_not_called_in_trials(control_dt):
    results = []
    for compiled in (False, "auto"):
        COUNT.__closure__[0].cell_contents = 0
        options = gc.SimulationOptions(compiled=compiled, every=5000)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "this loop runs in Python: count changes during a call")
            law = CountsByAGlobalThatItHolds()
            run = gc.simulate(ROBOT, law, [0, 0], [0, 0], 5.0, 1e-3, control_dt, monitors=None, options=options)
        results.append((run.q[-1].tolist(), COUNT()))
    assert results[0] == results[1]
