"""An enclosure holds every value that its function takes on a box."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proofs.exact_values import TOO_MUCH, exact_values

from geomctrl.compiler import host
from geomctrl.compiler.symbols import Graph, add, binary, both, compare, div, invert, mul, neg, power, sub, unary, where
from geomctrl.compiler.tracing import Trace
from geomctrl.errors import ArgumentError
from geomctrl.proofs.enclosure import Enclosure
from geomctrl.proofs.functions import traced

UNARY = ("neg", "sqrt", "sin", "cos", "tan", "asin", "acos", "exp", "log", "tanh", "abs", "square", "cube", "fifth")
BINARY = ("add", "sub", "mul", "div", "atan2", "min", "max", "where")
SPECIAL = [
    *(0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-3, math.pi, -math.pi / 2, math.pi / 4, 2 * math.pi, 7.0, -25.0, 1e3, 1e6),
    *(1e-160, -1e-200, 5e-324, -5e-324, 2.0**-1022, 1e150, -1e200, 1e308, -1.7e308, 1.0 + 2.0**-52, 1.0 - 2.0**-53),
]
ARITHMETIC = ("neg", "sqrt", "abs", "square", "cube", "fifth", "add", "sub", "mul", "div", "min", "max", "where")
INPUTS = 3
numbers = st.one_of(st.sampled_from(SPECIAL), st.floats(-4.0, 4.0), st.floats(allow_nan=False, allow_infinity=False))
at = st.integers(0, 99)


def made(op, a, b, c):
    if op == "where":
        condition = both(compare("lt", a, b), invert(compare("le", c, 0.5)))
        return where(condition, b, c)
    if op in ("add", "sub", "mul", "div"):
        return {"add": add, "sub": sub, "mul": mul, "div": div}[op](a, b)
    if op in BINARY:
        return binary(op, a, b)
    powers = {"square": 2, "cube": 3, "fifth": 5}
    return power(a, powers[op]) if op in powers else neg(a) if op == "neg" else unary(op, a)


def function_of(program, constants):
    """A trace whose outputs are all that the program computes."""
    graph = Graph()
    known = [graph.load(1, k) for k in range(INPUTS)]
    for op, *at in program:
        i, j, k = (n % len(known) for n in at)
        second = constants[at[1] % len(constants)] if at[2] % 3 == 0 and op in BINARY and op != "where" else known[j]
        try:
            y = made(op, known[i], second, known[k])
        except ZeroDivisionError:
            continue
        if not isinstance(y, float):
            known.append(y)
    outputs = tuple(y.at for y in known)
    return Trace(graph, (INPUTS,), outputs, (len(outputs),), None)


def boxes(draw, count):
    ends = np.array(draw(st.lists(numbers, min_size=2 * INPUTS * count, max_size=2 * INPUTS * count)))
    ends = np.sort(ends.reshape(count, INPUTS, 2), axis=2)
    for k in range(0, count, 3):  # points
        ends[k, :, 1] = ends[k, :, 0]
    for k in range(1, count, 3):  # small boxes
        ends[k, :, 1] = ends[k, :, 0] + np.abs(ends[k, :, 0]) * 1e-3
    return np.clip(ends, -1.7e308, 1.7e308)


@st.composite
def cases(draw, operations=UNARY + BINARY):
    program = draw(st.lists(st.tuples(st.sampled_from(operations), at, at, at), min_size=4, max_size=14))
    constants = draw(st.lists(numbers, min_size=2, max_size=4))
    weights = np.array(draw(st.lists(st.floats(0.0, 1.0), min_size=INPUTS, max_size=INPUTS)))
    return function_of(program, constants), boxes(draw, 9), weights


def points_in(lo, hi, weights):
    inner = np.clip(lo + weights * (hi / 2 - lo / 2) * 2, lo, hi)
    return np.array([lo, hi, lo / 2 + hi / 2, inner, np.where(weights < 0.5, lo, hi)])


def assert_holds(trace, lo, hi, points):
    """lo, hi: the outputs' bounds on one box."""
    assert not np.isnan(lo).any()
    assert not np.isnan(hi).any()
    for x in points:
        for k, y in enumerate(exact_values(trace, x)):
            node = trace.graph.nodes[trace.outputs[k]]
            if y == TOO_MUCH:
                continue
            if y is None:
                assert (lo[k], hi[k]) == (-math.inf, math.inf), (node, x)
            else:
                assert mpmath.mpf(lo[k]) <= y <= mpmath.mpf(hi[k]), (node, x, y, lo[k], hi[k])


@settings(max_examples=150, deadline=None)
@given(cases())
def test_enclosures_hold_exact_values(case):
    trace, ends, weights = case
    lo, hi = Enclosure(trace)(ends[..., 0], ends[..., 1])
    for k in range(len(ends)):
        a, b = ends[k].T
        with np.errstate(over="ignore"):
            assert_holds(trace, lo[k], hi[k], np.clip(points_in(a, b, weights), a, b))


@settings(max_examples=60, deadline=None)
@given(cases(ARITHMETIC))
def test_a_box_within_a_box_is_enclosed_more_closely(case):
    trace, ends, weights = case
    lo, hi = np.clip(ends[..., 0], -30.0, 30.0), np.clip(ends[..., 1], -30.0, 30.0)
    inner_lo = np.clip(lo + 0.25 * weights * (hi - lo), lo, hi)
    inner_hi = np.clip(hi - 0.25 * weights * (hi - lo), inner_lo, hi)
    (a, b), (c, d) = Enclosure(trace)(lo, hi), Enclosure(trace)(inner_lo, inner_hi)
    finite = np.isfinite([a, b, c, d]).all(axis=(0, 2))
    assert (c >= a - 1e-300)[finite].all()
    assert (d <= b + 1e-300)[finite].all()


def test_rounding_is_outward_and_exact_zeros_stay():
    trace = traced(lambda x: [x[0] + x[1], x[0] * x[1], x[0] / x[1], x[0] ** 2, np.sin(x[0])], 2)
    enclosure, rng = Enclosure(trace), np.random.default_rng(0)
    x = rng.normal(size=(500, 2)) * 10.0 ** rng.integers(-5, 6, (500, 2))
    lo, hi = enclosure(x, x)
    exact = np.array([exact_values(trace, row) for row in x])
    assert (lo <= exact).all()
    assert (exact <= hi).all()
    assert (hi - lo <= 2.0**-50 * np.abs(lo))[:, :4].all()
    zero = np.array([[0.0, 1.0]])
    assert np.array(enclosure(zero, zero))[:, 0, 1:].tolist() == [[0.0] * 4] * 2


def test_inputs_are_coordinates_or_numbers():
    graph = Graph()
    y = add(mul(graph.load(0, 0), graph.load(1, 1)), graph.load(0, 1))
    trace = Trace(graph, (2,), (y.at,), (1,), None)
    thin = Enclosure(trace, [(1, 1)], numbers=[3.0, 5.0])
    assert np.allclose(np.ravel(thin([[1.0]], [[2.0]])), [8.0, 11.0], rtol=1e-15)
    wide = Enclosure(trace, [(0, 0), (1, 1), (0, 1)])
    assert np.allclose(np.ravel(wide([[-1.0, 2.0, 0.0]], [[1.0, 3.0, 1.0]])), [-3.0, 4.0], rtol=1e-15)
    with pytest.raises(ArgumentError, match=r"coordinates: expected number 0 of input array 0"):
        Enclosure(trace, [(1, 1)])
    with pytest.raises(ArgumentError, match=r"lo, hi: expected boxes of shape \(boxes, 1\)"):
        thin([1.0], [2.0])


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_every_processor_finds_the_same(lanes, monkeypatch):
    """Processors differ in how many boxes they do side by side, not in a bit of what they find."""
    if lanes > host.lanes():
        pytest.skip("this processor has fewer lanes")

    def f(x):
        y = np.sin(x[0]) * np.cos(x[1] * x[2]) - np.exp(x[2]) / (3.0 + x[0]) + np.where(x[0] < x[1], x[0] ** 3, x[1])
        return [y, np.tanh(y) * np.sqrt(4.0 + x[2]), np.arctan2(y, 1.0 + x[2] ** 2), np.minimum(y, abs(x[1]))]

    rng, trace = np.random.default_rng(6), traced(f, 3)
    lo = rng.uniform(-2.0, 2.0, (203, 3))
    hi = lo + rng.exponential(0.3, (203, 3))
    expected = Enclosure(trace)(lo, hi)
    monkeypatch.setattr(host, "lanes", lambda: lanes)
    found = Enclosure(trace)(lo, hi)
    assert np.array_equal(found, expected)
