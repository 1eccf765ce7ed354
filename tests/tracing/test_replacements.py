"""Replaced (monkeypatched) members of packages are detected; members that Python adds to classes are not."""

import copy
import sys
import threading
import types

import pytest

from geomctrl.tracing.replacements import Replacements

SOURCE = """
GAIN, ZERO, FLAG = 2.0, 0.0, True

class Law:
    PAIR = 0.0, 1.0

    def torque(self):
        return 1.0

class Base:
    pass

class Other(Base):
    def rate(self):
        return 2.0

def helper(x=1.0, *, scale=1.0):
    return scale * x

def plain(x, *, scale):
    return scale * x
"""


@pytest.fixture
def module(monkeypatch):
    lab = types.ModuleType("replaceable_lab")
    exec(SOURCE, vars(lab))
    for kind in (lab.Law, lab.Other, lab.Base, lab.helper, lab.plain):
        kind.__module__ = lab.__name__
    monkeypatch.setitem(sys.modules, lab.__name__, lab)
    return lab


def places(replacements: Replacements) -> list[str]:
    return [place for place, _ in replacements.now()]


def test_copying_an_object_and_reading_annotations_replace_nothing(module):
    replacements = Replacements("replaceable_lab")
    assert replacements.now() == []
    copy.copy(module.Law())
    assert module.Other.__annotations__ == {}
    assert "__slotnames__" in vars(module.Law)
    assert "__annotations__" in vars(module.Other)
    assert replacements.now() == []
    module.Law.torque = lambda self: 3.0
    assert places(replacements) == ["replaceable_lab.Law"]


def doubled(x=1.0):
    return 2.0 * x


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda lab: setattr(lab.Law, "torque", lambda self: 3.0), "replaceable_lab.Law"),
        (lambda lab: setattr(lab.Law, "added", lambda self: 3.0), "replaceable_lab.Law"),
        (lambda lab: delattr(lab.Other, "rate"), "replaceable_lab.Other"),
        (lambda lab: setattr(lab.Other, "__bases__", (type("Changed", (), {}),)), "bases"),
        (lambda lab: setattr(lab, "GAIN", 3.0), "replaceable_lab"),
        (lambda lab: setattr(lab, "helper", lambda x=1.0: x), "replaceable_lab"),
        (lambda lab: setattr(lab.helper, "__code__", doubled.__code__), "code"),
        (lambda lab: setattr(lab.helper, "__defaults__", (2.0,)), "defaults"),
        (lambda lab: setattr(lab.helper, "__defaults__", (1,)), "defaults"),
        (lambda lab: setattr(lab.helper, "__kwdefaults__", {"scale": 2.0}), "kwdefaults"),
        (lambda lab: lab.helper.__kwdefaults__.update(scale=2.0), "replaceable_lab.helper"),
        (lambda lab: setattr(lab.plain, "__defaults__", (2.0,)), "defaults"),
        (lambda lab: setattr(lab.plain, "__kwdefaults__", {"scale": 2.0}), "kwdefaults"),
        (lambda lab: setattr(lab, "ZERO", -0.0), "replaceable_lab"),
        (lambda lab: setattr(lab, "FLAG", 1), "replaceable_lab"),
        (lambda lab: setattr(lab.Law, "PAIR", (0, 1.0)), "replaceable_lab.Law"),
    ],
)
def test_each_replacement_is_seen_and_stays_seen(module, change, place):
    replacements = Replacements("replaceable_lab")
    assert replacements.now() == []
    change(module)
    assert places(replacements) == [place]
    copy.copy(module.Law())
    assert places(replacements) == [place]


def test_imported_parts_of_a_package_replace_nothing(module, monkeypatch):
    package = types.ModuleType("replaceable_package")
    monkeypatch.setitem(sys.modules, package.__name__, package)
    replacements = Replacements("replaceable_package")
    assert replacements.now() == []
    package.part = types.ModuleType("replaceable_package.part")
    assert replacements.now() == []


def test_two_threads_ask_for_the_first_time(monkeypatch):
    replacements, answers, started = Replacements("geomctrl.lie"), [], []
    read = replacements._read

    def read_beside_another_thread():
        if not started:
            started.append(threading.Thread(target=lambda: answers.append(replacements.now())))
            started[0].start()
            started[0].join(0.2)
        return read()

    monkeypatch.setattr(replacements, "_read", read_beside_another_thread)
    assert replacements.now() == []
    started[0].join()
    assert answers == [[]]
