"""Code that creates objects: its constructors are followed, those of other classes may do what they like."""

import copy
import dataclasses
import enum
import functools
import re

import numpy as np
import pytest
from simulation_options import flat_simulate

from geomctrl import Command, models
from geomctrl.tracing.untraceable import UntraceableError

ARM = models.two_link()
COUNT = [0]


class Counted:
    """An object whose constructor changes what the next one reads."""

    def __init__(self):
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]

    @classmethod
    def made(cls):
        return cls()


class Derived(Counted):
    def __init__(self):
        super().__init__()


@dataclasses.dataclass
class Data:
    value: float = 1.0

    def __post_init__(self):
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]


class New:
    def __new__(cls):
        COUNT[0] += 1
        new = object.__new__(cls)
        new.value = 0.01 * COUNT[0]
        return new


class Meta(type):
    def __call__(cls):
        COUNT[0] += 1
        new = super().__call__()
        new.value = 0.01 * COUNT[0]
        return new


class OfMeta(metaclass=Meta):
    pass


WAYS = {
    "by name": lambda law: Counted(),
    "a subclass": lambda law: Derived(),
    "a class like that of another": lambda law: type(law.one)(),
    "__class__ of another": lambda law: law.one.__class__(),
    "a class method": lambda law: law.one.made(),
    "dataclasses.replace": lambda law: dataclasses.replace(law.data),
    "an attribute": lambda law: law.factory(),
    "a partial function": lambda law: law.partial(),
    "a dict": lambda law: law.factories["a"](),
    "a post-initialisation": lambda law: Data(),
    "__new__": lambda law: New(),
    "__new__ of another": lambda law: type(law.new)(),
    "a metaclass": lambda law: OfMeta(),
    "__init__ by its name": lambda law: (law.one.__init__(), law.one)[1],
}


class Maker:
    robot = ARM

    def __init__(self, way):
        self.way, self.one, self.data, self.new = WAYS[way], Counted(), Data(), New()
        self.factory, self.partial, self.factories = Counted, functools.partial(Counted), {"a": Counted}

    def __call__(self, t, q, v, z):
        return Command(-20.0 * q - 5.0 * v + self.way(self).value)


@pytest.mark.parametrize("way", WAYS)
def test_constructors_that_change_what_others_read_are_refused(way):
    law = Maker(way)
    before = COUNT[0]
    with pytest.raises(UntraceableError, match=r"COUNT changes during a call, in .*test_constructors\.py, line \d+"):
        flat_simulate(ARM, law, [0.3, -0.2], [0.0, 0.0], 0.05, 0.005, control_dt=0.01, monitors=None, compiled=True)
    assert COUNT[0] == before


class Mode(enum.Enum):
    FAR = 20.0
    NEAR = 10.0


@dataclasses.dataclass
class Error:
    q: np.ndarray
    v: np.ndarray


FORGOTTEN = object()
REGISTRY = {}


class FromFile:
    """A law that reads a file when it is created, and registers its subclasses."""

    robot = ARM

    def __init_subclass__(cls):
        REGISTRY[cls.__name__] = cls

    def __init__(self):
        with open(__file__, encoding="utf-8") as text:
            self.gain, self.mode, self.last = float(len(text.read(5))), Mode.FAR, FORGOTTEN
        print("created")

    @staticmethod
    def by_name(name):
        return REGISTRY[name]()

    def __call__(self, t, q, v, z):
        return Command(-20.0 * q - self.gain * v)


class Switched(FromFile):
    """Its modes are compared by identity in code that also calls float()."""

    def __call__(self, t, q, v, z):
        e, first = Error(q, v), float(q[0])
        if self.mode is Mode.FAR and first < 0.29:
            self.mode = Mode.NEAR
        gain = 20.0 if self.mode is Mode.FAR else 10.0
        return Command(-gain * e.q - self.gain * e.v - (0.1 if self.last is FORGOTTEN else 0.0))


class Chooser(FromFile):
    def __init__(self):
        super().__init__()
        self.laws = {name: kind() for name, kind in REGISTRY.items() if kind is not Chooser}

    def __call__(self, t, q, v, z):
        return self.laws["Switched" if t > 0.1 else "Plain"](t, q, v, z)


class Plain(FromFile):
    pass


@pytest.mark.parametrize("law", [Plain, Switched, Chooser])
def test_constructors_that_no_call_reaches_may_read_files(law):
    runs = [
        flat_simulate(
            ARM, law(), [0.3, -0.2], [0.0, 0.0], 0.2, 0.005, control_dt=0.01, monitors=None, compiled=compiled
        )
        for compiled in (True, False)
    ]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-12)
    np.testing.assert_allclose(runs[0].tau, runs[1].tau, atol=1e-10)


def test_constructors_that_a_call_reaches_may_not():
    class Creates(FromFile):
        def __call__(self, t, q, v, z):
            return self.by_name("Plain")(t, q, v, z)

    line = FromFile.__init__.__code__.co_firstlineno + 1
    with pytest.raises(UntraceableError, match=rf"__init__ calls open, in {re.escape(__file__)}, line {line}"):
        flat_simulate(ARM, Creates(), [0.3, -0.2], [0.0, 0.0], 0.05, 0.005, control_dt=0.01, compiled=True)


def test_copies_are_no_creations():
    class Copies(FromFile):
        def __call__(self, t, q, v, z):
            return Command(-copy.copy(self).gain * q - 5.0 * v)

    run = flat_simulate(
        ARM, Copies(), [0.3, -0.2], [0.0, 0.0], 0.05, 0.005, control_dt=0.01, monitors=None, compiled="auto"
    )
    assert len(run.t)
