"""An enclosure contains every value of its function on a box."""

import itertools
import math
import operator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from tracing.proofs.exact_values import TOO_MUCH, exact_values
from tracing.proofs.random_programs import ARITHMETIC, cases, points_in

from geomctrl.errors import ArgumentError
from geomctrl.tracing.backends import host
from geomctrl.tracing.proofs.claims import claim_of
from geomctrl.tracing.proofs.enclosure import TOTAL, Enclosure, Evaluation
from geomctrl.tracing.proofs.intervals import Interval
from geomctrl.tracing.proofs.points import exact_values as exact_values_at
from geomctrl.tracing.symbols import Graph, add, mul
from geomctrl.tracing.tracer import traced
from geomctrl.tracing.traces import Trace


def assert_holds(trace, lo, hi, points):
    """Return lo, hi: the bounds of the outputs on one box."""
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
    trace = traced(lambda x: [x[0] + x[1], x[0] * x[1], x[0] / x[1], x[0] ** 2, np.sin(x[0])], (2,)).trace
    enclosure, rng = Enclosure(trace), np.random.default_rng(0)
    x = rng.normal(size=(500, 2)) * 10.0 ** rng.integers(-5, 6, (500, 2))
    lo, hi = enclosure(x, x)
    exact = np.array([exact_values(trace, row) for row in x])
    assert (lo <= exact).all()
    assert (exact <= hi).all()
    assert (hi - lo <= 2.0**-50 * np.abs(lo))[:, :4].all()
    zero = np.array([[0.0, 1.0]])
    assert np.array(enclosure(zero, zero))[:, 0, 1:].tolist() == [[0.0] * 4] * 2


@pytest.mark.parametrize(("op", "compared"), [("lt", operator.lt), ("le", operator.le), ("eq", operator.eq)])
def test_comparisons_are_certain_where_all_numbers_or_none_compare(op, compared):
    """All intervals between integers, also those that touch, in steps of a half."""
    ends = [(a, b) for a in range(4) for b in range(a, 4)]
    for x, y in itertools.product(ends, ends):
        halves = [[0.5 * k for k in range(2 * a, 2 * b + 1)] for a, b in (x, y)]
        result = [compared(u, v) for u, v in itertools.product(*halves)]
        truth = TOTAL[op](Interval(*map(float, x)), Interval(*map(float, y)))
        assert (truth.yes, truth.no) == (all(result), not any(result)), (x, y)


def test_whole_numbers_jump():
    """The floor of an interval; a function that jumps on a box is enclosed, with no slope to be trusted."""
    trace = traced(lambda x: [np.floor(x[0]), x[0] - np.floor(x[0])], (1,)).trace
    lo, hi = Enclosure(trace)(np.array([[-1.5], [0.25], [2.0]]), np.array([[1.5], [0.75], [2.0]]))
    assert lo[:, 0].tolist() == [-2.0, 0.0, 2.0]
    assert hi[:, 0].tolist() == [1.0, 0.0, 2.0]
    assert 0.25 - 1e-15 < lo[1, 1] <= 0.25
    assert 0.75 <= hi[1, 1] < 0.75 + 1e-15
    evaluation = Evaluation(trace.graph, lambda array, k: Interval(-1.5, 1.5))
    assert [x.defined is True and x.smooth is False for x in evaluation.of(trace.outputs)] == [True, True]


def test_inputs_are_coordinates_or_numbers():
    graph = Graph()
    y = add(mul(graph.load(0, 0), graph.load(1, 1)), graph.load(0, 1))
    trace = Trace(graph, (2,), (y.index,), (1,), None)
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
    """Processors differ in how many boxes they compute side by side, but not in a bit of the results."""
    if lanes > host.lanes():
        pytest.skip("this processor has fewer lanes")

    def f(x):
        y = np.sin(x[0]) * np.cos(x[1] * x[2]) - np.exp(x[2]) / (3.0 + x[0]) + np.where(x[0] < x[1], x[0] ** 3, x[1])
        return [y, np.tanh(y) * np.sqrt(4.0 + x[2]), np.arctan2(y, 1.0 + x[2] ** 2), np.minimum(y, abs(x[1]))]

    rng, trace = np.random.default_rng(6), traced(f, (3,)).trace
    lo = rng.uniform(-2.0, 2.0, (203, 3))
    hi = lo + rng.exponential(0.3, (203, 3))
    expected = Enclosure(trace)(lo, hi)
    monkeypatch.setattr(host, "lanes", lambda: lanes)
    result = Enclosure(trace)(lo, hi)
    assert np.array_equal(result, expected)


def test_remainders_of_unknown_quotients_reach_half_of_the_divisor():
    """math.remainder(x, 3) is 1.5 at x = 1.5 and -1.5 at x = 4.5; fmod(x, 3) comes close to 3."""
    remainder = traced(lambda x: [math.remainder(x[0], 3.0), math.fmod(x[0], 3.0)], (1,)).trace
    (lo,), (hi,) = Enclosure(remainder)(np.array([[0.25]]), np.array([[9.75]]))
    points = np.linspace(0.25, 9.75, 400)
    assert lo[0] <= min(math.remainder(x, 3.0) for x in points) < -1.48
    assert hi[0] >= max(math.remainder(x, 3.0) for x in points) > 1.48
    assert lo[1] <= 0.0
    assert hi[1] >= max(math.fmod(x, 3.0) for x in points) > 2.9


def test_there_is_no_exact_value_where_the_function_raises():
    def stopping(x):
        if x[0] > 0.5:
            raise ValueError("beyond 0.5")
        return x[0] - 0.75

    claim = claim_of(stopping, [(0.0, 1.0)])
    assert exact_values_at(claim, np.array([0.25])) == [Fraction(-1, 2)]
    assert exact_values_at(claim, np.array([0.875])) is None
