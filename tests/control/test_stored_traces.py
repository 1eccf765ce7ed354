"""Traces on disk: a new process uses them for the same code, and for no other."""

import functools
import linecache
import marshal
import os
import subprocess
import sys
import types

import numpy as np
import pytest

import geomctrl as gc
from geomctrl.compiler import loops
from geomctrl.compiler.loop_memory import Numbers, used_numbers
from geomctrl.control.compiled import choice, stable_keys, stored_traces
from geomctrl.control.compiled.trace import LoopTrace
from geomctrl.tracing.backends import cache, host
from geomctrl.tracing.symbols import UntraceableError

ROBOT = gc.models.two_link()

LAW = """
import enum, functools, math
import numpy as np
from geomctrl import Command

OFFSET = 0.3
TABLE = np.array([0.2, 0.4])
SETTINGS = {"limit": 90.0}

class Mode(enum.Enum):
    SLOW = 1.5

def target(t, scale=1.0):
    return scale * np.array([0.3 * np.sin(t), 0.4 * np.cos(0.7 * t)])

def shaped(power):
    def apply(e):
        return e * abs(e[0]) ** power
    return apply

SHAPED = shaped(2)

class Base:
    weight = 1.0
    def extra(self, v):
        return 0.1 * v

class Law(Base):
    def __init__(self, robot, kp=40.0):
        self.robot, self.kp, self.flag = robot, kp, False
    def __call__(self, t, q, v, z):
        e = q - target(t) - OFFSET * TABLE
        tau = -self.kp * e - 8.0 * v - self.extra(v) - self.weight * SHAPED(e)
        if abs(e[0]) > 0.5:
            tau = Mode.SLOW.value * tau
        return Command(np.clip(tau, -SETTINGS["limit"], SETTINGS["limit"]), signals={"e": e})
"""

CHANGES = {
    "global number": ("OFFSET = 0.3", "OFFSET = 0.4"),
    "its type": ("OFFSET = 0.3", "OFFSET = np.float64(0.3)"),
    "global array": ("[0.2, 0.4]", "[0.2, 0.5]"),
    "entry of a dict": ('"limit": 90.0', '"limit": 5.0'),
    "value of an enum": ("SLOW = 1.5", "SLOW = 1.25"),
    "default": ("scale=1.0", "scale=0.9"),
    "constant in a function": ("0.3 * np.sin", "0.35 * np.sin"),
    "type of a constant": ("8.0 * v", "8 * v"),
    "another function of numpy": ("np.sin(t)", "np.tan(t)"),
    "closure": ("shaped(2)", "shaped(3)"),
    "class attribute": ("weight = 1.0", "weight = 2.0"),
    "inherited method": ("return 0.1 * v", "return 0.2 * v"),
    "base class": ("class Law(Base)", "class Law(type('Base', (Base,), {'weight': 0.5}))"),
    "condition": ("> 0.5", ">= 0.5"),
    "order of operations": ("- 8.0 * v - self.extra(v)", "- self.extra(v) - 8.0 * v"),
    "name of a signal": ('{"e": e}', '{"error": e}'),
    "attribute that is no number": ("kp, False", "kp, True"),
    "library function by attribute": ("np.clip(tau, ", "np.minimum(np.maximum(tau, -5.0), 5.0) + 0 * np.clip(tau, "),
}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty folder of traces, and the number of traces that were made."""
    monkeypatch.setattr(stored_traces, "enabled", True)
    monkeypatch.setattr(stored_traces, "_folders", lambda: (tmp_path,))
    monkeypatch.setattr(stable_keys, "_package", lambda modules: "geomctrl")  # in tests some of it is replaced
    kept = cache.kept
    monkeypatch.setattr(cache, "kept", lambda key, make: make() if ".trace" in key else kept(key, make))
    made, original = [], LoopTrace.traced
    monkeypatch.setattr(LoopTrace, "traced", lambda self: made.append(1) or original(self))
    yield types.SimpleNamespace(folder=tmp_path, made=made)
    choice._traces.clear()
    sys.modules.pop("stored_law", None)


def law_of(source, **options):
    """The law of a module that has just been imported, as in a new process."""
    module = sys.modules["stored_law"] = types.ModuleType("stored_law")
    linecache.cache.pop("stored_law.py", None)
    exec(compile(source, "stored_law.py", "exec"), vars(module))
    return module.Law(ROBOT, **options)


def simulated(law, compiled=True, method=None, control_dt=None, monitors=()):
    choice._traces.clear()
    settings = gc.SimulationOptions(compiled=compiled, **{} if method is None else {"method": method})
    return gc.simulate(gc.Plant(ROBOT), law, [0.9, -0.2], [0.1, 0.2], 0.2, 2e-3, control_dt, monitors, settings)


def test_another_process_uses_the_trace(store):
    first = simulated(law_of(LAW), monitors="default")
    second = simulated(law_of(LAW), monitors="default")
    assert len(store.made) == 1
    np.testing.assert_array_equal(first.q, second.q)
    other = simulated(law_of(LAW, kp=55.0), monitors="default")  # numbers of objects are inputs
    assert len(store.made) == 1
    np.testing.assert_allclose(other.q, simulated(law_of(LAW, kp=55.0), compiled=False).q, rtol=0, atol=1e-12)
    simulated(law_of("# a comment\n\n" + LAW), monitors="default")
    assert len(store.made) == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_code_is_traced_again(store, change):
    simulated(law_of(LAW))
    assert LAW.count(change[0]) == 1
    changed = LAW.replace(*change)
    run = simulated(law_of(changed))
    assert len(store.made) == 2
    python = simulated(law_of(changed), compiled=False)
    np.testing.assert_allclose(run.q, python.q, rtol=0, atol=1e-12)
    assert list(run.signals) == list(python.signals)


@pytest.mark.parametrize("options", [{"control_dt": 4e-3}, {"monitors": "default"}, {"method": "MK3"}])
def test_another_loop_is_traced_again(store, options):
    simulated(law_of(LAW))
    simulated(law_of(LAW), **options)
    assert len(store.made) == 2


def test_another_version_of_a_library_is_traced_again(store, monkeypatch):
    simulated(law_of(LAW))
    monkeypatch.setattr(np, "__version__", "2.99.0")
    simulated(law_of(LAW))
    assert len(store.made) == 2


def test_another_state_of_geomctrl_is_traced_again(store, monkeypatch):
    simulated(law_of(LAW))
    monkeypatch.setattr(stable_keys, "_package", lambda modules: "another state")
    simulated(law_of(LAW))
    assert len(store.made) == 2


OWN = """
import functools
constant, truth, pair = 0.0, 1, (1.0, True)
def f(x=1.0):
    return 2.0 * x
class C:
    gain = 1.0
    def method(self):
        return 1.0
    @property
    def rate(self):
        return 3.0
"""


def replaced_method(self):
    return 2.0


@pytest.mark.parametrize(
    "change",
    [
        lambda x: setattr(x, "constant", -0.0),
        lambda x: setattr(x, "truth", True),
        lambda x: setattr(x, "pair", (1.0, 1)),
        lambda x: setattr(x, "added", 1.0),
        lambda x: setattr(x.f, "__code__", x.f.__code__.replace(co_consts=(None, 3.0))),
        lambda x: setattr(x.f, "__defaults__", (2.0,)),
        lambda x: setattr(x.C, "gain", 2.0),
        lambda x: setattr(x.C, "rate", 3.0),
        lambda x: setattr(x.C, "method", replaced_method),
        lambda x: setattr(x.C, "rate", property(replaced_method)),
        lambda x: setattr(x, "f", functools.wraps(x.f)(lambda y: replaced_method(y))),
    ],
)
def test_members_of_geomctrl_belong_to_the_key(monkeypatch, change):
    """As of members that were replaced before the first run of a process, when nothing was watched yet."""
    monkeypatch.setitem(sys.modules, "geomctrl.made_up", module := types.ModuleType("geomctrl.made_up"))
    exec(OWN, vars(module))

    def contents():
        try:
            return marshal.dumps([*stable_keys._contents(vars(module), module.__name__)], stable_keys.NO_REFERENCES)
        except stable_keys.UndescribedError:
            return None

    before = contents()
    assert before == contents() is not None
    change(module)
    assert contents() != before


@pytest.mark.parametrize(
    "code",
    ["sum(x for x in {'a': 1.0}.values() if x in set((1.0,)))", "float(len({t for t in 'ab'}))", "hash('a') % 7"],
)
def test_code_that_depends_on_the_process_is_not_stored(store, code):
    source = LAW.replace("0.4 * np.cos", f"({code}) * np.cos")
    for _ in range(2):
        simulated(law_of(source), compiled="auto")
    assert not list(store.folder.iterdir())


def test_laws_with_memory_are_not_stored(store):
    source = LAW.replace("        e = q", "        self.flag = not self.flag\n        e = q")
    simulated(law_of(source), control_dt=4e-3)
    assert not list(store.folder.iterdir())


def test_the_stored_trace_has_the_same_code(store, monkeypatch):
    texts = []

    def text(traced):
        e = traced.equations
        return loops.module(e, 1, Numbers(used_numbers(e), 1), host.lanes())[0]

    original = choice.known_trace
    monkeypatch.setattr(choice, "known_trace", lambda *x: (fit := original(*x), texts.append(text(fit.traced)))[0])
    for _ in range(2):
        simulated(law_of(LAW), monitors="default")
    assert len(store.made) == 1
    assert texts[0] == texts[1]


def test_a_wrong_stored_trace_is_noticed(store, monkeypatch):
    content = stored_traces._content

    def wrong(traced):
        graph = traced.equations.field.graph
        k = graph.nodes.index(("const", 8.0, 1.0))
        graph.nodes[k] = ("const", 8.001, 1.0)
        return content(traced)

    for stored in (wrong, content):
        monkeypatch.setattr(stored_traces, "_content", stored)
        with pytest.raises(UntraceableError, match="tau differs from its value in Python"):
            simulated(law_of(LAW))
    assert len(store.made) == 1


PARTS = """
import dataclasses
from collections import namedtuple
from scipy.interpolate import CubicSpline

Gains = namedtuple("Gains", "kp kd")
SPLINE = CubicSpline([0.0, 1.0, 2.0], [0.0, 0.1, 0.3])

@dataclasses.dataclass
class Settings:
    table: dict = dataclasses.field(default_factory=lambda: {Mode.SLOW: 2.0, "x": 1.0})

@functools.lru_cache
def cached(x):
    return 2.0 * x

def product(a, e, *, b=1.0):
    return a * b * e

class Rich(Law):
    def __init__(self, robot):
        super().__init__(robot)
        self.gains, self.settings, self.part = Gains(20.0, 4.0), Settings(), functools.partial(product, 2.0, b=0.5)
    def extra(self, v):
        scale = self.settings.table[Mode.SLOW] * cached(0.1) + SPLINE(0.5)
        return self.gains.kd * v + scale * self.part(v)
"""


@pytest.mark.parametrize(
    "change",
    [("2.0 * x", "2.5 * x"), ("0.1, 0.3]", "0.1, 0.4]"), ("a * b * e", "a * e * b"), ("SLOW: 2.0", "SLOW: 0.0")],
)
def test_objects_of_libraries_are_described(store, change):
    source, made = LAW + PARTS + "Law = Rich\n", []
    assert source.count(change[0]) == 1
    for text in (source, source, source.replace(*change)):
        run = simulated(law_of(text))
        made.append(len(store.made))
    assert made[0] == made[1] < made[2]
    np.testing.assert_allclose(run.q, simulated(law_of(text), compiled=False).q, rtol=0, atol=1e-12)


def test_the_newest_files_are_kept(store, monkeypatch):
    monkeypatch.setattr(stored_traces, "MAX_FILES", 2)
    for offset in ("0.1", "0.2", "0.4"):
        simulated(law_of(LAW.replace("OFFSET = 0.3", f"OFFSET = {offset}")))
    assert len([*store.folder.iterdir()]) == 2


def test_a_damaged_file_is_replaced(store):
    simulated(law_of(LAW))
    (path,) = store.folder.iterdir()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(RuntimeWarning, match="damaged"):
        simulated(law_of(LAW))
    simulated(law_of(LAW))
    assert len(store.made) == 2


PROCESS = """
import geomctrl as gc
import law
options = gc.SimulationOptions(compiled=True)
robot = gc.models.two_link()
run = gc.simulate(gc.Plant(robot), law.Law(robot), [0.9, -0.2], [0.1, 0.2], 0.2, 2e-3, options=options)
print(run.q.tobytes().hex())
"""


def test_processes_share_traces_whatever_their_hash_seed(tmp_path):
    (tmp_path / "law.py").write_text(LAW)
    (tmp_path / "run.py").write_text(PROCESS)
    results = []
    for seed in ("1", "2"):
        variables = {**os.environ, "GEOMCTRL_CACHE": str(tmp_path / "cache"), "PYTHONHASHSEED": seed}
        command = [sys.executable, "run.py"]
        printed = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
        files = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("cache/*.trace")}
        results.append((printed.stdout, files))
    assert len(results[0][1]) == 1
    assert results[0] == results[1]


def test_public_names_of_modules_give_the_same_key(tmp_path):
    code = "import geomctrl.control.references as x; from geomctrl.control.compiled.stable_keys import _package; {}"
    code += "print(_package(0))"
    first, second = (
        subprocess.run([sys.executable, "-c", code.format(alias)], capture_output=True, text=True, check=True).stdout
        for alias in ("", "from geomctrl.references import Spline; ")
    )
    assert len(first) > 100
    assert first == second
