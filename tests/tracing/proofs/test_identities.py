"""Identities modulo a prime, and enclosures without compilation."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from geomctrl.tracing.derivatives import tangents
from geomctrl.tracing.duals import Dual
from geomctrl.tracing.proofs.identities import chance, degree_in, identical
from geomctrl.tracing.proofs.interpreted import enclosed, valued
from geomctrl.tracing.proofs.substitution import applied, substituted
from geomctrl.tracing.symbols import Graph, Symbol, add, binary, compare, div, mul, neg, sub, unary, where


def inputs(n):
    graph = Graph()
    return graph, [graph.load(1, k) for k in range(n)]


def test_true_identities():
    graph, (x, y) = inputs(2)
    s, c = unary("sin", x), unary("cos", x)
    pairs = [
        (add(mul(s, s), mul(c, c)), 1.0),
        (mul(add(x, y), sub(x, y)), sub(mul(x, x), mul(y, y))),
        (div(mul(x, y), y), x),
        (tangents(graph, [div(s, c)], {x.index: 1.0})[0], div(1.0, mul(c, c))),
        (unary("sin", sub(y, x)), mul(unary("sin", sub(x, y)), -1.0)),
        (unary("tanh", mul(x, -1.0)), mul(unary("tanh", x), -1.0)),
    ]
    assert identical(graph, pairs, {})
    assert chance(graph, pairs) < -200.0


@pytest.mark.parametrize("false", [0, 1, 2])
def test_one_false_pair_among_true_ones_is_enough(false):
    graph, (x, y) = inputs(2)
    pairs = [(add(x, y), add(y, x)), (mul(x, y), mul(y, x)), (sub(x, x), 0.0)]
    pairs[false] = (x, y)
    assert not identical(graph, pairs, {})


def test_the_degree_is_infinite_where_one_operand_of_a_function_is_an_input():
    graph, (x, y) = inputs(2)
    for f in (binary("min", x, y), binary("atan2", 1.0, x), div(y, x), unary("sin", x)):
        assert degree_in(graph, f, {x.index}) == math.inf
    assert degree_in(graph, binary("min", y, 1.0), {x.index}) == 0
    assert degree_in(graph, add(mul(x, mul(x, y)), div(x, y)), {x.index}) == 2


@pytest.mark.parametrize("off", [1e-3, 1e-12, 2.0**-1000])
def test_false_ones_however_near(off):
    graph, (x,) = inputs(1)
    assert not identical(graph, [(mul(x, x), add(mul(x, x), mul(x, off)))], {})


def test_rounded_constants_are_the_fractions_they_are():
    graph, (x, y) = inputs(2)
    third = add(mul(x, 0.1), mul(x, 0.2))
    assert not identical(graph, [(third, mul(x, 0.3))], {})
    tenth = Fraction(0.1)
    assert identical(graph, [(mul(mul(x, 0.1), float(tenth.denominator)), mul(x, float(tenth.numerator)))], {})
    assert identical(graph, [(mul(y, x), mul(x, 0.25))], {(1, 1): 0.25})
    assert not identical(graph, [(mul(y, x), mul(x, 0.25))], {(1, 1): 0.5})


def test_branches_on_known_numbers_are_taken_and_others_left_open():
    graph, (x, t) = inputs(2)
    chosen = where(compare("lt", t, 1.0), x, mul(x, x))
    assert identical(graph, [(chosen, x)], {(1, 1): 0.5})
    assert identical(graph, [(chosen, mul(x, x))], {(1, 1): 2.0})
    assert not identical(graph, [(chosen, x)], {})
    assert identical(graph, [(binary("min", t, 1.0), t)], {(1, 1): 0.5})
    assert not identical(graph, [(binary("min", x, 1.0), x)], {})


def test_degrees():
    graph, (x, y) = inputs(2)
    assert degree_in(graph, add(mul(mul(x, x), y), unary("sin", y)), {x.index}) == 2
    assert degree_in(graph, unary("sin", x), {x.index}) == math.inf
    assert degree_in(graph, div(x, y), {x.index}) == 1
    assert degree_in(graph, div(x, y), {y.index}) == math.inf
    assert degree_in(graph, 3.0, {x.index}) == 0


def test_substitution_folds():
    graph, (x, y) = inputs(2)
    result = substituted(graph, [add(mul(x, y), unary("cos", x))], {x.index: 0.0})
    assert result == [1.0]
    assert isinstance(substituted(graph, [mul(x, y)], {x.index: y})[0], Symbol)


def test_enclosures_hold_all_values():
    graph, (x, y) = inputs(2)
    s = unary("sin", mul(x, 2.0))
    ends = [
        add(mul(s, y), unary("cos", y)), div(x, add(mul(y, y), 1.0)), unary("sqrt", add(mul(x, x), 0.5)),
        binary("max", x, y), unary("tanh", y), unary("exp", s), unary("abs", sub(x, y)), mul(mul(x, x), y),
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    lo = rng.uniform(-4.0, 4.0, (300, 2))
    hi = lo + 10.0 ** rng.uniform(-6.0, 0.8, (300, 2))
    low, high = enclosed(graph, ends, {x.index: (lo[:, 0], hi[:, 0]), y.index: (lo[:, 1], hi[:, 1])}, 300)
    for _ in range(40):
        at = rng.uniform(lo, hi)
        values = valued(graph, ends, {x.index: at[:, 0], y.index: at[:, 1]}, 300)
        assert (low <= values + 1e-15 * np.abs(values)).all()
        assert (high >= values - 1e-15 * np.abs(values)).all()
    narrow = (hi - lo).max(1) < 1e-4
    assert narrow.any()
    assert (high - low)[narrow].max() < 1.0


def test_enclosures_of_what_is_not_defined_or_not_decided_are_unbounded():
    graph, (x,) = inputs(1)
    ends = [div(1.0, x), unary("sqrt", x), where(compare("lt", x, 0.0), -1.0, 1.0), mul(x, 0.0)]
    low, high = enclosed(graph, ends, {x.index: (np.array([-1.0]), np.array([1.0]))}, 1)
    assert np.isinf(low[0, :3]).all()
    assert np.isinf(high[0, :3]).all()
    assert low[0, 3] == high[0, 3] == 0.0
    low, high = enclosed(graph, ends, {x.index: (np.array([-2.0]), np.array([-1.0]))}, 1)
    assert low[0, 2] == high[0, 2] == -1.0
    low, high = enclosed(graph, [unary("tanh", div(1.0, x))], {x.index: (np.array([-1.0]), np.array([1.0]))}, 1)
    assert np.isinf(low[0, 0])
    assert np.isinf(high[0, 0])


def test_what_underflows_is_enclosed():
    graph, (x,) = inputs(1)
    at = np.array([-745.0, -744.5, -720.0])  # exp between the least numbers, and of ends far apart
    low, high = enclosed(graph, [unary("exp", x), mul(unary("exp", x), 1e-3)], {x.index: (at, at)}, 3)
    for k, y in enumerate(at.tolist()):
        exact = mpmath.exp(mpmath.mpf(y))
        assert mpmath.mpf(low[k, 0]) < exact < mpmath.mpf(high[k, 0])
        assert mpmath.mpf(low[k, 1]) < exact * 1e-3 < mpmath.mpf(high[k, 1])


@pytest.mark.parametrize("op", ["tan", "tanh", "asinh"])
def test_odd_functions_change_their_sign_with_their_argument(op):
    graph = Graph()
    x, y = graph.load(1, 0), graph.load(1, 1)
    there, back = unary(op, sub(x, y)), unary(op, sub(y, x))
    for seed in range(6):
        assert identical(graph, [(there, neg(back))], {}, seed)
        assert not identical(graph, [(there, back)], {}, seed)


def test_duals_carry_the_derivative_of_what_is_computed():
    """Of (a t + b)(c t + d) / (e t + f) at t = 2, by the rules of fractions."""
    a, b, c, d, e, f, t = map(Fraction, (3, -1, 5, 2, 7, 4, 2))
    moving = Dual(t, Fraction(1))
    result = (moving * a + b) * (c * moving + d) / (e * moving + f)
    top, below = (a * t + b) * (c * t + d), e * t + f
    slope = ((a * (c * t + d) + c * (a * t + b)) * below - top * e) / below**2
    assert result.real == top / below
    assert float(result.imag) == pytest.approx(float(slope), rel=1e-14)


@pytest.mark.parametrize(("op", "truth"), [("and", lambda a, b: a and b), ("or", lambda a, b: a or b)])
@pytest.mark.parametrize("a", [-1.0, 1.0])
@pytest.mark.parametrize("b", [-1.0, 1.0])
def test_conditions_are_joined_as_in_logic(op, truth, a, b):
    """Conditions whose numbers are substituted afterwards, and one that is constant."""
    graph, (x, y) = inputs(2)
    expected = truth(a < 0.0, b < 0.0)
    for first in (compare("lt", x, 0.0), a < 0.0):
        joined = where(applied(op, [first, compare("lt", y, 0.0)]), 2.0, 3.0)
        value = substituted(graph, [joined], {x.index: a, y.index: b})[0]
        assert value == (2.0 if expected else 3.0)
