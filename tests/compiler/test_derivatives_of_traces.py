"""Derivatives of traces against differences by mpmath, and forward against reverse mode."""

import operator

import mpmath
import numpy as np
import pytest
from compiler.evaluation import evaluate
from hypothesis import given, settings
from hypothesis import strategies as st

from geomctrl import models
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.tracing.derivatives import RULES, loads, pullback, tangents
from geomctrl.tracing.operations import BINARY, UNARY
from geomctrl.tracing.symbols import COMMUTATIVE, Graph, binary, compare, unary, where

ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
POINTS = {"asin": 0.3, "acos": 0.3, "log": 1.7, "sqrt": 1.7, "abs": -0.8, "acosh": 1.7, "fmod": 1.7, "remainder": 1.7}
EXACT = {
    "neg": operator.neg,
    "abs": abs,
    "min": min,
    "max": max,
    "floor": mpmath.floor,
    "rint": mpmath.nint,
    "pow": mpmath.power,
    "exp2": lambda a: 2**a,
    "log2": lambda a: mpmath.log(a, 2),
    "copysign": lambda a, b: abs(a) if b >= 0 else -abs(a),
    "fmod": lambda a, b: a - b * (mpmath.floor(abs(a / b)) * mpmath.sign(a / b)),
    "remainder": lambda a, b: a - b * mpmath.nint(a / b),
}


def applied(op, *args):
    if op in ARITHMETIC:
        return ARITHMETIC[op](*args)
    return -args[0] if op == "neg" else unary(op, *args) if len(args) == 1 else binary(op, *args)


def exact(op, *args):
    if op in ARITHMETIC:
        return ARITHMETIC[op](*args)
    return (EXACT.get(op) or getattr(mpmath, op))(*args)


@pytest.mark.parametrize("op", [*RULES, "smaller"])
def test_every_operation_s_derivative(op):
    """First and second derivatives with respect to every argument agree with mpmath's differences with 40 digits."""
    x = [POINTS.get(op, 0.7), -0.45][: len(RULES.get(op, "ab"))]

    def f(*args):
        if op == "smaller":
            a, b = args
            return where(compare("lt", a, b), a * a, a * b) if hasattr(a, "graph") else a * a if a < b else a * b
        return applied(op, *args) if hasattr(args[0], "graph") else exact(op, *args)

    graph = Graph()
    symbols = [graph.load(1, k) for k in range(len(x))]
    y = f(*symbols)
    first = pullback(graph, [y], [1.0], loads(symbols))
    second = [pullback(graph, [d], [1.0], loads(symbols)) for d in first]
    for j in range(len(x)):
        order = [int(j == k) for k in range(len(x))]
        with mpmath.workdps(40):
            expected = float(mpmath.diff(f, tuple(map(mpmath.mpf, x)), tuple(order)))
        assert value(graph, first[j], x) == pytest.approx(expected, rel=1e-13, abs=1e-13)
        for k in range(len(x)):
            twice = list(order)
            twice[k] += 1
            with mpmath.workdps(40):
                expected = float(mpmath.diff(f, tuple(map(mpmath.mpf, x)), tuple(twice)))
            assert value(graph, second[j][k], x) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def value(graph, x, at):
    return evaluate(graph, [graph.operand(x)], [None, at])[0]


def test_no_operation_is_forgotten():
    assert set(RULES) == {*ARITHMETIC, "neg", *UNARY, *BINARY}
    assert set(RULES) >= COMMUTATIVE - {"eq", "and", "or"}


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_forward_and_reverse_agree_on_a_robot_s_terms(seed):
    """w . (J u) = (J^T w) . u for the Jacobian J of inverse dynamics, and J u agrees with a complex step."""
    rng, robot = np.random.default_rng(seed), models.two_link()
    algorithm, options, *_ = CATALOGUE["inverse_dynamics"]
    created = trace(algorithm, structure(robot._model), options)
    graph, sizes = created.graph, created.inputs
    inputs = [graph.load(1 + a, k) for a, n in enumerate(sizes) for k in range(n)]
    x, u, w = rng.normal(size=len(inputs)), rng.normal(size=len(inputs)), rng.normal(size=2)
    ends = [graph_symbol(graph, at) for at in created.outputs]
    forward = tangents(graph, ends, dict(zip(loads(inputs), u.tolist())))
    reverse = pullback(graph, ends, w.tolist(), loads(inputs))
    arrays = [robot._model, *np.split(x, np.cumsum(sizes)[:-1])]
    Ju = np.array(evaluate(graph, [graph.operand(y) for y in forward], arrays))
    JTw = np.array(evaluate(graph, [graph.operand(y) for y in reverse], arrays))
    assert w @ Ju == pytest.approx(JTw @ u, rel=1e-11, abs=1e-11)
    q, v, a = np.split(x, 3)
    dq, dv, da = np.split(u, 3)
    h = 1e-5
    plus, minus = (robot.inverse_dynamics(q + s * dq, v + s * dv, a + s * da) for s in (h, -h))
    np.testing.assert_allclose(Ju, (plus - minus) / (2.0 * h), atol=1e-7 * (1.0 + np.abs(Ju).max()))


def graph_symbol(graph, at):
    from geomctrl.tracing.symbols import Symbol

    return Symbol(graph, at)


def test_what_does_not_move_has_no_rate():
    graph = Graph()
    a, b = graph.load(1, 0), graph.load(1, 1)
    assert tangents(graph, [a * 2.0, 3.0, b], {b.index: 0.0}) == [0.0, 0.0, 0.0]
    assert pullback(graph, [a * 2.0, 3.0], [1.0, 1.0], loads([b])) == [0.0]


def test_weights_are_constants():
    """d(w y)/dx with w = x is x y', not y + x y'."""
    graph = Graph()
    x = graph.load(1, 0)
    result = pullback(graph, [x * x * x], [x], loads([x]))[0]
    assert value(graph, result, [2.0]) == pytest.approx(2.0 * 3.0 * 4.0)


def test_an_end_may_come_twice_and_be_an_input():
    graph = Graph()
    x = graph.load(1, 0)
    assert pullback(graph, [x, x, x * x], [1.0, 2.0, 0.0], loads([x])) == [3.0]
    assert tangents(graph, [x, x], {x.index: 2.0}) == [2.0, 2.0]


def test_branches_not_taken_do_not_spoil_the_derivative():
    """sqrt(x) has no derivative at 0; this does not matter where that derivative is not needed."""
    graph = Graph()
    x = graph.load(1, 0)
    y = where(compare("lt", x, 1e-3), x * x, unary("sqrt", x))
    for slope in (*pullback(graph, [y], [1.0], loads([x])), *tangents(graph, [y], {x.index: 1.0})):
        assert value(graph, slope, [4.0]) == pytest.approx(0.25)
        assert value(graph, slope, [0.0]) == 0.0
