"""A call with a wrong keyword raises TypeError on symbols as on numbers, and nothing else."""

import collections
import dataclasses
import functools
import types
import typing

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models
from geomctrl.tracing import trace

ROBOT = models.two_link()


@dataclasses.dataclass
class Data:
    a: float = 0.0


class Pair(typing.NamedTuple):
    a: float
    b: float = 0.0


class Plain:
    def __init__(self, a=0.0):
        self.a = a


Point = collections.namedtuple("Point", "a b")
CALLS = {
    "Command": lambda x: gc.Command(x, J=x @ x),
    "Command, state": lambda x: gc.Command(x, z_rate=x, J=x @ x),
    "Command, too many": lambda x: gc.Command(x, None, {}, None, x @ x),
    "dataclass": lambda x: Data(a=x[0], J=x @ x),
    "replaced dataclass": lambda x: dataclasses.replace(Data(), J=x @ x),
    "NamedTuple": lambda x: Pair(x[0], J=x @ x),
    "namedtuple": lambda x: Point(x[0], x[1], J=x @ x),
    "class": lambda x: Plain(a=x[0], J=x @ x),
    "object": lambda x: object(x @ x),
    "method": lambda x: x.sum(J=x @ x),
    "array": lambda x: np.array(x, J=x @ x),
    "zeros": lambda x: np.zeros(2, J=x @ x),
    "function": lambda x: np.sum(x, J=x @ x),
    "ufunc": lambda x: np.sin(x, J=x @ x),
    "lambda": lambda x: (lambda a: a)(x, J=x @ x),
    "partial": lambda x: functools.partial(Plain, J=x @ x)(),
    "max": lambda x: max(x[0], x[1], J=x @ x),
    "min of a list": lambda x: min([x[0], x[1]], J=x @ x),
    "max, default": lambda x: max(x[0], x[1], default=x @ x),
    "float": lambda x: float(x[0], J=x @ x),
    "abs": lambda x: abs(x[0], J=x @ x),
    "sum": lambda x: sum([x[0]], J=x @ x),
    "range": lambda x: range(2, J=x @ x),
    "namespace": lambda x: types.SimpleNamespace(x, x @ x),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_keyword_raises_a_type_error(name):
    def f(x):
        try:
            CALLS[name](x)
        except TypeError:
            return 2.0 * x
        except Exception as error:
            raise AssertionError(type(error).__name__) from error
        return x

    x = np.array([0.3, -0.2])
    np.testing.assert_array_equal(f(x), 2.0 * x)
    np.testing.assert_array_equal(trace(f, 2).to_llvm()(x), 2.0 * x)


@pytest.mark.parametrize("control_dt", [None, 0.01])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_loop_stops_with_the_same_error(compiled, control_dt):
    class Wrong:
        robot = ROBOT

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(tau=-q, J=q @ q) if t > 0.05 else gc.Command(-q)

    options = gc.SimulationOptions(compiled=compiled)
    with pytest.raises(gc.SimulationError, match=r"TypeError .*unexpected keyword argument 'J'"):
        gc.simulate(ROBOT, Wrong(), np.ones(2), np.zeros(2), 0.1, 1e-3, control_dt, monitors=None, options=options)
