"""Code that creates objects runs constructors as Python does, or is refused; other constructors may do anything."""

import builtins
import collections
import collections.abc
import copy
import dataclasses
import enum
import functools
import operator
import re
import types

import numpy as np
import pytest
from simulation_options import flat_simulate

import geomctrl as gc
from geomctrl import models
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


class OfFloat(float):
    def __init__(self, x):
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]


class OfDict(dict):
    def __init__(self, *items):
        super().__init__(*items)
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]


class OfList(collections.UserList):
    def __init__(self, items):
        super().__init__(items)
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]


class OfDeque(collections.deque):
    def __init__(self, *items):
        super().__init__(*items)
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]


class Items(collections.abc.Set):
    def __init__(self, items):
        self.items = list(items)
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]

    def __contains__(self, x):
        return x in self.items

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)


class Equal:
    def __init__(self):
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]

    def __eq__(self, other):
        return type(self)().value == other

    __hash__ = object.__hash__


class Getter:
    def __get__(self, instance, kind=None):
        return kind()


class Registered:
    made = Getter()
    value = 0.0

    def __init_subclass__(cls):
        COUNT[0] += 1
        cls.value = 0.01 * COUNT[0]

    def __init__(self):
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]


class Named:
    def __set_name__(self, owner, name):
        COUNT[0] += 1
        self.value = 0.01 * COUNT[0]


def subclass(law):
    class Other(Registered):
        pass

    return Other


def named(law):
    class Other:
        x = Named()

    return Other.x


kind_of = type

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
    "another name of type": lambda law: kind_of(law.one)(),
    "type as an attribute": lambda law: law.kind_of(law.one)(),
    "builtins.type": lambda law: builtins.type(law.one)(),
    "type in map": lambda law: next(map(type, [law.one]))(),
    "a class in a variable": lambda law: next(kind() for kind in [type(law.one)]),
    "__class__ by getattr": lambda law: getattr(law.one, "__class__")(),  # noqa: B009
    "__class__ by a getter": lambda law: operator.attrgetter("__class__")(law.one)(),
    "__getattribute__": lambda law: object.__getattribute__(law.one, "__class__")(),
    "__reduce_ex__": lambda law: law.new.__reduce_ex__(2)[0](*law.new.__reduce_ex__(2)[1]),
    "the object of a bound method": lambda law: law.one.made.__self__(),
    "a frozenset": lambda law: next(kind() for kind in law.kinds),
    "__eq__": lambda law: types.SimpleNamespace(value=float(law.equal == 0.02)),
    "a descriptor": lambda law: law.registered.made,
    "a class statement with a base": subclass,
    "a class statement with a named member": named,
    "copy.copy": lambda law: copy.copy(law.new),
    "copy.deepcopy": lambda law: copy.deepcopy(law.new),
    "a copy of a deque": lambda law: law.deque.copy(),
    "a sum of deques": lambda law: law.deque + law.deque,
    "copy.copy of a deque": lambda law: copy.copy(law.deque),
    "a slice of a list": lambda law: law.list[:1],
    "a sum of lists": lambda law: law.list + law.list,
    "an intersection of sets": lambda law: law.set & law.set,
    "dict.fromkeys": lambda law: law.dict.fromkeys([1]),
    "float.fromhex": lambda law: law.float.fromhex("0x1p0"),
}


class Maker:
    """A law whose own code names no class."""

    robot = ARM

    def __init__(self, way, names):
        self.way = way
        values = {
            "one": Counted,
            "data": Data,
            "new": New,
            "factory": lambda: Counted,
            "partial": lambda: functools.partial(Counted),
            "factories": lambda: {"a": Counted},
            "kinds": lambda: frozenset([Counted]),
            "kind_of": lambda: type,
            "equal": Equal,
            "registered": Registered,
            "deque": lambda: OfDeque([1.0]),
            "list": lambda: OfList([1.0]),
            "set": lambda: Items([1.0]),
            "dict": lambda: OfDict({"a": 1.0}),
            "float": lambda: OfFloat(1.0),
        }
        for name in values.keys() & {*names}:
            setattr(self, name, values[name]())

    def __call__(self, t, q, v, z):
        return gc.Command(-20.0 * q - 5.0 * v + self.way(self).value)


def simulated(law, compiled):
    return flat_simulate(
        ARM, law, [0.3, -0.2], [0.0, 0.0], 0.05, 0.005, control_dt=0.01, monitors=None, compiled=compiled
    )


def maker(way):
    code = WAYS[way].__code__
    law, COUNT[0] = (
        Maker(WAYS[way], {*code.co_names}.union(*(x.co_names for x in code.co_consts if hasattr(x, "co_names")))),
        0,
    )
    return law


def created(way):
    """The torques and the number of created objects in Python."""
    return simulated(maker(way), False).tau, COUNT[0]


@pytest.mark.parametrize("way", WAYS)
def test_created_objects_equal_those_of_python_or_are_refused(way):
    expected, law = created(way), maker(way)
    try:
        run = simulated(law, True)
    except UntraceableError:
        assert COUNT[0] == 0
    else:
        assert COUNT[0] == expected[1]
        np.testing.assert_allclose(run.tau, expected[0], atol=1e-10)


class FromFile:
    """A law that reads a file and prints when it is created, and whose calls create no objects of users' classes."""

    robot = ARM
    GAIN = 20.0

    def __init__(self):
        with open(__file__, encoding="utf-8") as text:
            self.gain = float(len(text.read(5)))
        print("created")

    @classmethod
    def load(cls):
        return cls()

    def __call__(self, t, q, v, z):
        return gc.Command(-20.0 * q - self.gain * v)


class OfType(FromFile):
    def __call__(self, t, q, v, z):
        return gc.Command(-type(self).GAIN * q - self.gain * v)


class OfClass(FromFile):
    def __call__(self, t, q, v, z):
        return gc.Command(-self.__class__.GAIN * q - self.gain * v)


class Compared(FromFile):
    def __call__(self, t, q, v, z):
        return gc.Command(-(20.0 if type(q) is np.ndarray else 10.0) * q - self.gain * v)


class Limited(FromFile):
    @classmethod
    def limit(cls, x):
        return np.clip(x, -cls.GAIN, cls.GAIN)

    def __call__(self, t, q, v, z):
        return gc.Command(self.limit(-20.0 * q - self.gain * v))


@dataclasses.dataclass
class Gains:
    q: float = 20.0


class WithData(FromFile):
    def __init__(self):
        super().__init__()
        self.gains = Gains()

    def __call__(self, t, q, v, z):
        return gc.Command(-self.gains.q * q - self.gain * v)


@pytest.mark.parametrize("kind", [FromFile, OfType, OfClass, Compared, Limited, WithData])
def test_constructors_that_no_call_reaches_may_read_files(kind):
    compiled, python = simulated(kind(), True), simulated(kind(), False)
    np.testing.assert_allclose(compiled.q, python.q, atol=1e-12)
    np.testing.assert_allclose(compiled.tau, python.tau, atol=1e-10)


def test_constructors_that_a_call_reaches_may_not():
    class Creates(FromFile):
        def __call__(self, t, q, v, z):
            return gc.Command(-20.0 * q - self.load().gain * v)

    line = FromFile.__init__.__code__.co_firstlineno + 1
    with pytest.raises(UntraceableError, match=rf"__init__ calls open, in {re.escape(__file__)}, line {line}"):
        simulated(Creates(), True)


class Mode(enum.Enum):
    FAR = 20.0
    NEAR = 10.0


FORGOTTEN = object()


class Switched:
    """Its modes are compared by identity in code that also calls float()."""

    robot = ARM

    def __init__(self):
        self.mode, self.last = Mode.FAR, FORGOTTEN

    def __call__(self, t, q, v, z):
        first = float(q[0])
        if self.mode is Mode.FAR and first < 0.29:
            self.mode = Mode.NEAR
        gain = 20.0 if self.mode is Mode.FAR else 10.0
        return gc.Command(-gain * q - 5.0 * v - (0.1 if self.last is FORGOTTEN else 0.0))


def test_modes_are_compared_beside_float_and_marks_by_identity():
    compiled, python = simulated(Switched(), True), simulated(Switched(), False)
    np.testing.assert_allclose(compiled.q, python.q, atol=1e-12)
    np.testing.assert_allclose(compiled.tau, python.tau, atol=1e-10)
