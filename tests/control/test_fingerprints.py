"""Fingerprints of sweeps: a store matches only if all code that its law uses is unchanged."""

import importlib
import sys

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models
from geomctrl.control.sweeping.fingerprint import fingerprint
from geomctrl.tracing import code_identity

ROBOT = models.two_link()
MADE = """
import collections, dataclasses, enum, functools
import numpy as np
import geomctrl as gc
from lab import laws
K = [1.0]
def helper(v):
    return v
helper.gain = 1.0
class Base:
    k = 1.0
class Slots:
    __slots__ = ("__k",)
    def __init__(self):
        self.__k = 1.0
class Mode(enum.Enum):
    A = 1
class Table(dict):
    pass
class Array(np.ndarray):
    pass
class Law(Base):
    def __init__(self):
        self.slots, self.mode, self.table = Slots(), Mode.A, Table(a=1.0)
        self.array = np.ones(2).view(Array)
        self.rows, self.part = collections.defaultdict(float, a=1.0), functools.partial(helper, 1.0)
    m = functools.partialmethod(helper, 1.0)
    def __call__(self, t, q, v, z):
        return gc.Command(-K[0] * helper(v) - laws.torque(v) + cached(2) + np.sign(v))
@functools.lru_cache
def cached(x):
    return x
law = Law()
def make(point):
    return law
"""
TORQUE = "from .gains import GAIN\ndef torque(v):\n    return GAIN * v\n"
CHANGES = {
    "global": "K[0] = 2.0",
    "function attribute": "helper.gain = 2.0",
    "code": "helper.__code__ = (lambda v: 2.0 * v).__code__",
    "defaults": "helper.__defaults__ = (2.0,)",
    "class attribute": "Base.k = 2.0",
    "inheritance": "Law.__bases__ = (type('Other', (), {}),)",
    "mangled slots": "law.slots._Slots__k = 2.0",
    "enum": "Mode.A.k = 2.0",
    "dict subclass": "law.table['a'] = 2.0",
    "attribute of a dict subclass": "law.table.k = 2.0",
    "array in place": "law.array[0] = 2.0",
    "attribute of an array subclass": "law.array.k = 2.0",
    "default_factory": "law.rows.default_factory = int",
    "partial": "law.part = functools.partial(helper, 2.0)",
    "partialmethod": "Law.m = functools.partialmethod(helper, 2.0)",
    "cached function": "cached = functools.lru_cache(lambda x: 2 * x)",
    "installed function": "laws.torque = lambda v: 2.0 * v",
    "installed number": "laws.GAIN = 2.0",
    "method of geomctrl": "patch(gc.Robot, 'gravity_force', lambda self, q: 0.0 * q)",
    "code of geomctrl": "patch(gc.Robot.gravity_force.__wrapped__, '__code__', (lambda self, q: q).__code__)",
    "function of numpy": "patch(np, 'sign', lambda v: 2.0 * v)",
}


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """Install a package `lab` with a function and a number, repeatedly."""
    monkeypatch.setattr(code_identity, "PACKAGES", (*code_identity.PACKAGES, str(tmp_path)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "lab").mkdir()

    def install(gain="1.0", torque=TORQUE, note=""):
        files = {"__init__": "", "laws": note + torque, "gains": f"GAIN = {gain}\n"}
        for name, text in files.items():
            (tmp_path / "lab" / f"{name}.py").write_text(text)
        for name in ("lab", "lab.laws", "lab.gains"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return importlib.import_module("lab.laws")

    return install


def made(monkeypatch, change=""):
    space = {"__name__": "study", "patch": monkeypatch.setattr}
    exec(MADE, space)
    exec(change, space)
    return fingerprint(space["make"])


def test_an_installed_package_is_known_by_its_code(monkeypatch, lab):
    lab()
    assert code_identity.origin("lab.laws") == "installed"
    first = made(monkeypatch)
    lab(note="# a comment\n\n")
    assert made(monkeypatch) == first
    lab(gain="2.0")
    assert made(monkeypatch) != first
    lab(torque=TORQUE.replace("GAIN * v", "GAIN * v * v"))
    assert made(monkeypatch) != first


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_makes_another_sweep(case, monkeypatch, lab):
    lab()
    first = made(monkeypatch)
    assert made(monkeypatch) == first
    assert made(monkeypatch, CHANGES[case]) != first


@pytest.mark.parametrize("question", ["Law.__annotations__", "cached(3)", "gc.Robot.__annotations__"])
def test_a_question_makes_no_other_sweep(question, monkeypatch, lab):
    lab()
    assert made(monkeypatch, question) == made(monkeypatch)


def test_a_compiled_package_is_known_by_its_release(monkeypatch, tmp_path):
    file = tmp_path / "fast.so"
    module = type(sys)("fast")
    module.__file__, module.__version__ = str(file), "1.0"
    monkeypatch.setitem(sys.modules, "fast", module)
    result = set()
    for version, data in (("1.0", b"a"), ("1.0", b"b"), ("1.1", b"b")):
        module.__version__ = version
        file.write_bytes(data)
        code_identity.release.cache_clear()
        result.add(code_identity.release("fast"))
    assert len(result) == 3


def test_the_fingerprint_names_what_was_replaced(monkeypatch):
    def make(point):
        return gc.Plant(ROBOT), None, np.zeros(2), np.zeros(2)

    assert list(fingerprint(make)) == ["", make.__qualname__.replace("<locals>.", "")]
    monkeypatch.setattr(gc.Robot, "gravity_force", lambda self, q: 0.0 * q)
    assert "geomctrl.robot.Robot.gravity_force" in fingerprint(make)
    code, created = compile("def gravity_force(self, q): return 0.0 * q", "elsewhere.py", "exec"), {}
    exec(code, vars(sys.modules["geomctrl.robot"]), created)  # a function in the library's own module, by its globals
    monkeypatch.setattr(gc.Robot, "gravity_force", created["gravity_force"])
    assert "geomctrl.robot.Robot.gravity_force" in fingerprint(make)
