"""Type tests on a symbol give the type of the number that it represents, or are refused."""

import enum
import math
import types

import numpy as np
import pytest

from geomctrl.tracing import trace
from geomctrl.tracing.tracer import traced
from geomctrl.tracing.type_tests import compares_types, identity_with_truth
from geomctrl.tracing.untraceable import UntraceableError

RARE = 17.0, 17.5  # no point of a trace's comparison with Python lies between these


def one(flag):
    return 1.0 if flag else 0.0


ASKED = {  # of t, a float, and x, an array
    "isinstance float": lambda t, x: one(isinstance(t, float)),
    "isinstance of an entry": lambda t, x: one(isinstance(x[0], np.floating)) + 2.0 * one(isinstance(t, np.floating)),
    "isinstance int": lambda t, x: one(isinstance(t, int)) + 2.0 * one(isinstance(math.floor(t), int)),
    "isinstance array": lambda t, x: one(isinstance(x, np.ndarray)) + 2.0 * one(isinstance(t, np.ndarray)),
    "isinstance of a comparison": lambda t, x: one(isinstance(t > 1.0, bool)) + 2.0 * one(isinstance(x[0] > 1.0, bool)),
    "numpy's bool": lambda t, x: one(isinstance(t > 1.0, np.bool_)) + 2.0 * one(isinstance(x[0] > 1.0, np.bool_)),
    "type": lambda t, x: (
        one(type(t) is float) + 2.0 * one(type(x[0]) is np.float64) + 4.0 * one(type(t * x[0]) is float)
    ),
    "type of a product": lambda t, x: one(type(2.0 * t) is float) + 2.0 * one(type(math.sin(x[0])) is float),
    "type of a type": lambda t, x: one(isinstance(float, type)) + 2.0 * one(issubclass(float, type)),
    "class": lambda t, x: one(t.__class__ is float) + 2.0 * one(x[0].__class__ is float),
    "isscalar": lambda t, x: one(np.isscalar(t)) + 2.0 * one(np.isscalar(x[0])) + 4.0 * one(np.isscalar(x)),
    "dtype": lambda t, x: one(x.dtype == float) + 2.0 * one((x > 0.0).dtype == bool) + 4.0 * one(x.dtype == object),
    "dtype of a number": lambda t, x: one(hasattr(t, "dtype")) + 2.0 * one(x[0].dtype == np.float64),
    "shape of a number": lambda t, x: one(hasattr(t, "shape")) + 2.0 * one(x[0].shape == ()) + 4.0 * np.ndim(t),
    "truths of math": lambda t, x: (
        one(type(math.isnan(x[0])) is bool) + 2.0 * one(type(0.0 + math.isinf(x[0])) is float)
    ),
    "truths of numpy": lambda t, x: one(type(np.isnan(t)) is bool) + 2.0 * one(type(0.0 + np.isfinite(t)) is float),
    "truths of arrays": lambda t, x: (
        one(type(0.0 + np.any(x > t)) is float) + 2.0 * one(type(0.0 + np.isclose(t, x[0])) is float)
    ),
    "array of its dtype": lambda t, x: np.zeros(2, x.dtype)[0] + x[1],
}


@pytest.mark.parametrize("name", ASKED)
def test_types_are_those_of_python_where_no_comparison_looks(name):
    asked = ASKED[name]

    def f(t, x):
        return asked(t, x) + 1.0 if RARE[0] < t < RARE[1] else 0.0 * x[0]

    run = trace(f, (), (2,)).to_llvm()
    t, x = 17.25, np.array([0.3, 1.5])
    assert run(t, x) == pytest.approx(f(t, x))


@pytest.mark.parametrize("x", [-2.0, 0.5, 3.0])
def test_a_type_that_depends_on_the_state_is_a_branch(x):
    def f(t, x):
        larger = max(t, x[0])
        return one(type(larger) is float) + 2.0 * one(isinstance(2.0 * larger, np.floating)) + 4.0 * one(larger > 1.0)

    assert trace(f, (), (1,)).to_llvm()(0.5, np.array([x])) == f(0.5, np.array([x]))


@pytest.mark.parametrize("narrow", [np.float32(0.1), np.array([0.1, 0.2], np.float32), np.float16(0.1)])
@pytest.mark.parametrize("operation", [lambda t, c: t * c, lambda t, c: c - t, lambda t, c: 1.0 * (t < c)])
def test_numbers_that_are_no_doubles_beside_a_float_are_refused(narrow, operation):
    with pytest.raises(UntraceableError, match=r"float(16|32)"):
        trace(lambda t: np.sum(operation(t, narrow)), ())


def test_numbers_that_are_no_doubles_are_made_doubles_beside_arrays():
    gain = np.array([0.1, 0.2], np.float32)
    run = trace(lambda x: gain * x, (2,)).to_llvm()
    x = np.array([3.0, 7.0])
    assert (run(x) == gain * x).all()


def test_identity_with_true_is_seen_in_what_is_computed_only():
    flag = True

    class Law:
        strict = True

    assert "is True" in identity_with_truth((lambda t: (t > 1.0) is True).__code__)
    assert "is False" in identity_with_truth((lambda t: [y for y in [t] if (y < 1.0) is False]).__code__)
    assert not identity_with_truth((lambda t: flag is True and Law.strict is True and t is not None).__code__)


class Kind(enum.Enum):
    FIRST = 1


UNSET = object()
IDENTITIES = {
    "float": (lambda x: type(x) is float, True),
    "a name of float": (lambda x, kind=float: (type(x) is kind, float(x), kind is float), True),
    "float as a value": (lambda x: (np.zeros(2, dtype=float), x is Kind.FIRST), True),
    "two results": (lambda x: float(x) is float(x), True),
    "a result and a name": (lambda x, y: (y := float(x)) is y, True),
    "a list's entry": (lambda x: float(x) is [x][0], True),
    "None": (lambda x: x is None or float(x), False),
    "two types": (lambda x, y: type(x) is type(y) or float(x), False),
    "a member of an enum": (lambda x: x is Kind.FIRST or float(x), False),
    "a member of a module's enum": (lambda x: x is np.testing.suppress_warnings or int(x), False),
    "a mark": (lambda x: x is not UNSET and float(x), False),
    "no float": (lambda x: x is not [1][0], False),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_float_is_replaced_unless_identity_may_depend_on_it(name):
    f, asks = IDENTITIES[name]
    space = {"__name__": "a_module"}
    space["f"] = types.FunctionType(f.__code__, space)
    assert compares_types(space) is asks


OF_TYPES = {
    "array": lambda q: np.result_type(q),
    "number": lambda q: np.result_type(q[0]),
    "Python's float beside float32": lambda q: np.result_type(np.zeros(2, "f4"), q[0].item()),
    "numpy's float beside float32": lambda q: np.result_type(np.zeros(2, "f4"), q[:1]),
    "integers beside a float": lambda q: np.result_type(q.astype(int), q[0].item()),
    "truths": lambda q: np.result_type(q > 0.0),
    "shape": lambda q: type(np.shape(q)[0]),
    "size": lambda q: type(np.size(q)),
    "ndim": lambda q: type(np.ndim(q)),
    "isrealobj": lambda q: type(np.isrealobj(q)),
}


@pytest.mark.parametrize("name", OF_TYPES)
def test_types_that_numpy_answers_are_those_in_python(name):
    seen = []
    traced(lambda q: (seen.append(OF_TYPES[name](q)), q)[1], (2,))
    assert {*map(str, seen)} == {str(OF_TYPES[name](np.array([0.3, -0.2])))}


def caught(read):
    def f(x):
        try:
            return 0.0 * read(x)
        except Exception:
            return x[0]

    return f


def with_dtype(x):
    y = np.array([x[0]])
    y.dtype = np.int64
    return y[0]


TOLD = {
    "True_": lambda x: one((x[0] > 0.5) is np.True_),
    "not False_": lambda x: one(np.False_ is not (x[0] > 0.5)),
    "True": lambda x: one((x[0].item() > 0.5) is True),
    "view": caught(lambda x: np.array([x[0]]).view(np.int64)[0]),
    "dtype": caught(with_dtype),
    "memoryview": caught(lambda x: memoryview(x)[0]),
    "bytearray": caught(lambda x: bytearray(x)[0]),
    "frombuffer": caught(lambda x: np.frombuffer(x)[0]),
    "data": caught(lambda x: x.data[0]),
    "itemsize": lambda x: float((x > 0.5).itemsize),
    "getattr": lambda x: float(getattr(x[0], "nbytes", 0)),
    "index": lambda x: one(getattr(x[0], "__index__", None) is None),
    "objects": lambda x: one(x.astype(object).dtype == x.dtype),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_tells_a_symbol_from_a_number_is_refused(name):
    with pytest.raises(UntraceableError, match=r"test_type_tests.py, line \d+"):
        trace(TOLD[name], (2,))


SAME = {
    "hasattr": lambda x: [one(hasattr(x[0], name)) for name in ("__index__", "graph", "nbytes", "clip", "nothing")],
    "hasattr of a float": lambda x: [one(hasattr(x[0].item(), name)) for name in ("__index__", "nbytes", "hex")],
    "hasattr of a truth": lambda x: [one(hasattr(x[0] > 0.5, name)) for name in ("__index__", "graph", "nbytes")],
    "asarray": lambda x: [
        one(np.asarray(x) is x),
        one(np.asarray(x, float) is x),
        one(np.asarray(x > 0.5, float) is x),
    ],
    "ufunc": lambda x: [one(isinstance(np.sin, np.ufunc)), one(isinstance(np.dot, np.ufunc))],
    "view": lambda x: [x.view()[0], x.view(float)[1], x.view(np.ndarray)[0]],
}


@pytest.mark.parametrize("name", SAME)
def test_questions_about_symbols_are_answered_as_for_numbers(name):
    x = np.array([0.3, 1.5])
    f = trace(lambda x: np.array(SAME[name](x)) + 0.0 * x[0], (2,)).to_llvm()
    assert (f(x) == np.array(SAME[name](x))).all()
