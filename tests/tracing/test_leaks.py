"""A symbol is only used as a number of its own trace: every other use raises with file and line."""

import copy
import io
import json
import logging
import operator
import pickle

import numpy as np
import pytest

from geomctrl.tracing.arrays import symbol_array
from geomctrl.tracing.symbols import FLOAT, NUMPY, Condition, Graph, Symbol
from geomctrl.tracing.untraceable import UntraceableError

GAINS = {"1.0": 3.0, 1.0: 2.0}
LEAKS = {
    "str": str,
    "repr": repr,
    "format": lambda x: f"{x}",
    "format with digits": lambda x: f"{x:.3f}",
    "percent": lambda x: "%s" % x,  # noqa: UP031
    "hash": hash,
    "bytes": bytes,
    "int": int,
    "index": operator.index,
    "complex": complex,
    "pickle": pickle.dumps,
    "of an array": lambda x: np.array([x], float),
    "as an index": lambda x: [1.0, 2.0][x],
    "as a key": lambda x: GAINS.get(x),
    "in a set": lambda x: {x},
    "in a set of numbers": lambda x: x in {1.0, 2.0},
    "formatted key": lambda x: GAINS[f"{x}"],
    "range": lambda x: list(range(x)),
    "truth": lambda x: 1.0 if x else 2.0,
    "print": lambda x: print(x, file=io.StringIO()),
    "text of a list": lambda x: str([x]),
    "log": lambda x: logging.LogRecord("a", 10, "f", 1, "%s", (x,), None).getMessage(),
    "tobytes": lambda x: x.tobytes(),
}
OF_SYMBOLS = {
    "float": float,
    "whole": lambda x: x.is_integer(),
    "hex": lambda x: x.hex(),
    "ratio": lambda x: x.as_integer_ratio(),
    "json": lambda x: json.dumps({"x": x}, default=float),
}
OF_ARRAYS = {
    "str": str,
    "repr": repr,
    "format": lambda x: f"{x}",
    "tobytes": lambda x: x.tobytes(),
    "bytes": bytes,
    "pickle": pickle.dumps,
    "dumps": lambda x: x.dumps(),
    "int": lambda x: int(x[:1]),
    "index": lambda x: operator.index(x[:1].reshape(())),
    "complex": lambda x: complex(x[:1]),
    "single precision": lambda x: x.astype(np.float32),
    "float array": lambda x: np.array(x, float),
    "contained": lambda x: 1.0 in x,
    "partition": lambda x: x.partition(0),
    "nonzero": lambda x: x.nonzero(),
    "text of numpy": np.array2string,
    "saved": lambda x: np.save("/dev/null", x),
    "truth": lambda x: bool(x[:1]),
    "fill": lambda x: np.zeros(2).fill(x[0]),
    "set": lambda x: np.zeros(2).__setitem__(0, x[0]),
    "whole array": lambda x: np.zeros(2).__setitem__(slice(None), x),
}


def kinds():
    graph = Graph(finite=False)
    x = graph.load(1, 0)
    return {"symbol": x, "numpy's symbol": symbol_array([x], (1,))[0], "condition": x < 1.0}


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("kind", kinds())
def test_a_symbol_stays_inside(name, kind):
    with pytest.raises(UntraceableError, match=r"in .*test_leaks.py, line \d+|in .*/logging/|in .*/json/"):
        LEAKS[name](kinds()[kind])


@pytest.mark.parametrize("name", OF_SYMBOLS)
def test_a_number_stays_inside(name):
    with pytest.raises(UntraceableError, match=r"in .*test_leaks.py, line \d+|in .*/json/"):
        OF_SYMBOLS[name](kinds()["symbol"])


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_an_array_stays_inside(name):
    graph = Graph(finite=False)
    x = symbol_array([graph.load(1, k) for k in range(2)], (2,))
    with pytest.raises(UntraceableError, match=r"test_leaks.py, line \d+"):
        OF_ARRAYS[name](x)


def test_copies_and_lists_hold_the_same_symbols():
    graph = Graph(finite=False)
    x = symbol_array([graph.load(1, k) for k in range(2)], (2,))
    assert [type(y) for y in x.tolist()] == [Symbol, Symbol]
    assert copy.deepcopy(x[0]).index == copy.copy(x[0]).index == x[0].index
    assert all(y.kind is FLOAT for y in x.tolist())
    assert all(y.kind is NUMPY for y in x)
    assert isinstance(copy.deepcopy(x[0] < 1.0), Condition)


def test_conditions_compare_as_truths():
    graph = Graph(finite=False)
    x = graph.load(1, 0)
    a, b = x < 1.0, x < 2.0
    assert isinstance(a == b, Condition)
    assert isinstance(operator.ne(a, True), Condition)
    with pytest.raises(UntraceableError, match="a condition is compared with something else"):
        operator.eq(a, "yes")
    with pytest.raises(UntraceableError, match="~ of a Python bool"):
        operator.invert(a)
