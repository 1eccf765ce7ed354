"""The graph of symbols: folding, sharing, refusals, and agreement of traced expressions with Python."""

import math

import numpy as np
import pytest
from evaluation import evaluate
from hypothesis import given
from hypothesis import strategies as st

from geomctrl.compiler.kernel_traces import symbolic
from geomctrl.tracing.symbols import (
    Condition,
    Graph,
    Symbol,
    UntraceableError,
    binary,
    both,
    invert,
    neg,
    unary,
    where,
)


def symbols(n=3):
    graph = Graph()
    return [graph.load(0, k) for k in range(n)]


def operations(*outputs):
    graph = outputs[0].graph
    return sum(graph.nodes[at][0] not in ("const", "load") for at in graph.needed([x.index for x in outputs]))


def test_neutral_elements_and_zeros_leave_nothing_behind():
    x, y, _ = symbols()
    for same in (x + 0.0, 0.0 + x, x - 0.0, x * 1.0, 1.0 * x, x / 1.0, neg(neg(x)), x + 0, 1 * x, x**1, +x):
        assert same.index == x.index
    for zero in (x * 0.0, 0.0 * x, 0.0 / x, x - x):
        assert zero == 0.0
        assert isinstance(zero, float)
    assert (-1.0 * x).index == (-x).index == (0.0 - x).index
    assert (x - (-y)).index == (x + y).index
    assert (-x + y).index == (y - x).index
    assert (-(x - y)).index == (y - x).index
    assert ((-x) * (-y)).index == (x * y).index
    assert (x**0) == 1.0


def test_equal_expressions_are_one_node():
    x, y, z = symbols()
    assert (x * y + z).index == (z + y * x).index
    assert operations(x * y + z, (y * x) * z) == 3
    assert operations((-x) * y, x * (-y), -(x * y)) == 2


def test_signs_move_outward():
    x, y, z = symbols()
    assert operations((-x) * (-y) * (-z)) == 3  # two products and one sign
    assert operations(x + (-2.0) * y) == 2
    assert operations(unary("cos", -x)) == 1
    assert unary("sin", -x).index == neg(unary("sin", x)).index


def test_only_what_the_outputs_need_counts():
    x, y, _ = symbols()
    unused = unary("sin", x) * y
    assert operations(x + y) == 1
    assert unused.index not in unused.graph.needed([(x + y).index])


def test_numpys_numbers_and_arrays_compute_with_symbols():
    x, y, _ = symbols()
    assert isinstance(np.float64(2.0) * x, Symbol)
    assert isinstance(np.float64(2.0) + x, Symbol)
    vector = np.array([x, y], object)
    assert (np.array([[1.0, 0.0], [0.0, 1.0]]).astype(object) @ vector)[0].index == x.index
    assert (vector * 2.0)[1].index == (2.0 * y).index


def test_a_branch_is_refused_with_file_and_line():
    x, y, _ = symbols()
    with pytest.raises(
        UntraceableError, match=r"a branch depends on a symbol, in .*test_symbols.py, line \d+: choose with np.where"
    ):
        print(1.0 if x < y else 2.0)
    with pytest.raises(UntraceableError, match=r"a branch depends on a symbol.*test_symbols.py"):
        bool(x)
    with pytest.raises(UntraceableError, match=r"used as a number.*test_symbols.py"):
        float(x)
    with pytest.raises(UntraceableError, match="used as a number"):
        math.sin(x)
    with pytest.raises(UntraceableError, match="symbols of two calls"):
        x + symbols()[0]


def test_where_on_numbers_and_tuples():
    x, y, _ = symbols()
    assert where(True, 1.0, 2.0) == 1.0
    condition = x < y
    assert isinstance(condition, Condition)
    a, b = where(condition, (x, 1.0), (y, 1.0))
    assert b == 1.0
    assert where(condition, x, x).index == x.index
    assert where(invert(condition), x, y).index != a.index
    assert both(True, condition) is condition
    assert both(False, condition) is False


NUMBERS = st.floats(-3.0, 3.0)


STEPS = [
    lambda f, a, b, c: a + b,
    lambda f, a, b, c: a - b,
    lambda f, a, b, c: a * b,
    lambda f, a, b, c: -a,
    lambda f, a, b, c: a + c,
    lambda f, a, b, c: c * a,
    lambda f, a, b, c: a / (2.0 + b * b),
    lambda f, a, b, c: f.unary("sin", a),
    lambda f, a, b, c: f.unary("cos", a),
    lambda f, a, b, c: f.unary("abs", a),
    lambda f, a, b, c: f.binary("min", a, b),
    lambda f, a, b, c: f.where(a < b, a, c * b),
]


@st.composite
def expressions(draw):
    """A random expression as a function of three numbers, built from what kernels use."""
    step = st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 99), st.integers(0, 99), NUMBERS)
    steps = draw(st.lists(step, min_size=1, max_size=25))

    def expression(x, f):
        values = [*x, 1.0, 0.0, -1.0]
        for op, i, j, c in steps:
            values.append(STEPS[op](f, values[i % len(values)], values[j % len(values)], c))
        return values[-1]

    return expression


class Symbolic:
    unary, binary, where = staticmethod(unary), staticmethod(binary), staticmethod(where)


class Plain:
    unary = staticmethod(lambda name, a: abs(a) if name == "abs" else getattr(math, name)(a))
    binary = staticmethod(lambda name, a, b: min(a, b))
    where = staticmethod(lambda condition, a, b: a if condition else b)


@given(expressions(), st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_a_traced_expression_is_what_python_computes(expression, x):
    inputs = symbols()
    traced, plain = expression(inputs, Symbolic), expression(x, Plain)
    graph = inputs[0].graph
    (result,) = evaluate(graph, [graph.operand(traced)], [x])
    assert result == pytest.approx(plain, rel=1e-9, abs=1e-9)


def test_the_sign_of_zero_is_kept():
    graph = Graph()
    x = graph.load(0, 0)
    assert graph.constant(0.0) != graph.constant(-0.0)
    chosen = where(x < 0.0, -0.0, 0.0)
    for number, sign in ((-1.0, -1.0), (1.0, 1.0)):
        assert math.copysign(1.0, evaluate(graph, [graph.operand(chosen)], [[number]])[0]) == sign


def test_operands_and_alternatives_keep_their_order():
    graph = Graph()
    x, y = (graph.load(0, k) for k in range(2))
    either, angle, largest = (x < 0.0) | (y < 0.0), binary("atan2", y, x), symbolic().maximum(x, y, 0.5)
    for a in ((1.0, 2.0), (-1.0, 2.0), (1.0, -2.0), (-1.0, -2.0)):
        result = evaluate(graph, [either.index, angle.index, largest.index], [a])
        assert result == [a[0] < 0.0 or a[1] < 0.0, math.atan2(a[1], a[0]), max(*a, 0.5)]


def test_truths_are_no_numbers():
    """Python's dicts take False for 0.0 and True for 1.0."""
    graph = Graph()
    numbers = [graph.operand(x) for x in (0.0, 1.0)]
    truths = [graph.operand(x) for x in (False, True)]
    assert len({*numbers, *truths}) == 4
    assert [type(graph.nodes[k][1]) for k in (*numbers, *truths)] == [float, float, bool, bool]
