"""The bounds of branch and bound hold at every point of a box for any function."""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tracing.proofs.exact_values import TOO_MUCH, exact_values
from tracing.proofs.random_programs import INPUTS, cases, points_in

from geomctrl.testing import certify
from geomctrl.tracing.branch_and_bound import BranchAndBound, halves
from geomctrl.tracing.proofs.claims import Claim, claim_of
from geomctrl.tracing.proofs.forms import MEAN_VALUE, BoundedClaim, Forms, _excess
from geomctrl.tracing.proofs.intervals import Interval


def claim_of_case(trace, ends, level=0.0):
    """The last number that a random program computes, with the constraint that the one before is not positive."""
    f, g = trace.outputs[-1], trace.outputs[-2]
    lo, hi = np.clip(ends[:, 0], -50.0, 50.0), np.clip(ends[:, 1], -50.0, 50.0)
    graph = trace.graph
    if level:
        f = graph.node("sub", f, graph.constant(level))
    trace = replace(trace, outputs=(f, g), sizes=(2,))
    return Claim(trace, lo, hi, tuple((1, k) for k in range(INPUTS)), np.empty(0))


@settings(max_examples=60, deadline=None)
@given(cases())
def test_bounds_hold_at_every_point(case):
    trace, ends, weights = case
    claim = claim_of_case(trace, ends[2])
    forms = Forms(claim)
    lo, hi = np.clip(ends[..., 0], -50.0, 50.0), np.clip(ends[..., 1], -50.0, 50.0)
    result = forms(lo, hi)
    assert not np.isnan(result.upper).any()
    for k in range(len(lo)):
        assert (lo[k] <= result.point[k]).all()
        assert (result.point[k] <= hi[k]).all()
        for x in (*points_in(lo[k], hi[k], weights), result.point[k]):
            x = np.clip(x, lo[k], hi[k])
            f, g = exact_values(claim.trace, x)
            if f is None:
                assert result.upper[k] == math.inf, x
            elif f != TOO_MUCH:
                assert f <= mpmath.mpf(result.upper[k]), (x, f, result.upper[k], result.how[k])
            if g is None:
                assert not result.excluded[k] > 0.0
            elif g != TOO_MUCH and result.excluded[k] > 0.0:
                assert g > 0.0
        f, g = exact_values(claim.trace, result.point[k])
        if f is not None and TOO_MUCH not in (f, g):
            assert mpmath.mpf(result.value[k]) <= f
            assert g is None or g <= mpmath.mpf(result.admitted[k])


@pytest.mark.parametrize("f", [lambda x: x[0] / 0.0, lambda x: x[0] * (1.0 - x[1] / 0.0)], ids=["simple", "within"])
def test_a_division_by_zero_bounds_nothing(f):
    result = Forms(claim_of(f, [(0.0, 3.0)] * 2))(np.zeros((1, 2)), np.ones((1, 2)))
    assert result.upper[0] == math.inf


@settings(max_examples=40, deadline=None)
@given(cases())
def test_what_a_sample_contradicts_is_never_proved(case):
    trace, ends, _ = case
    claim = claim_of_case(trace, ends[2])
    rng = np.random.default_rng(0)
    for x in claim.lo + rng.random((20, INPUTS)) * (claim.hi - claim.lo):
        f, g = exact_values(claim.trace, np.clip(x, claim.lo, claim.hi))
        if f not in (None, TOO_MUCH) and g not in (None, TOO_MUCH) and g <= 0.0 and abs(f) < 1e6:
            break
    else:
        assume(False)
    level = float(f) - 1e-9 * max(abs(float(f)), 1e-6)
    branching = BranchAndBound(BoundedClaim(claim_of_case(trace, ends[2], level or 1e-9)))
    branching.run(3000, 5.0)
    assert not branching.proved


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=5))
def test_what_a_slope_adds_on_both_sides_of_any_centre(numbers):
    """The largest slope (x - c) over slopes and x, in fractions: at a corner."""
    lo, c, hi = sorted(numbers[:3])
    slope = sorted(numbers[3:])
    corners = [Fraction(s) * (Fraction(x) - Fraction(c)) for s in slope for x in (lo, hi)]
    bound = _excess(lo, hi, c, Interval(*slope))
    assert Fraction(bound) >= max(corners)
    assert bound <= float(max(corners)) * (1.0 + 1e-14) + 1e-300


def test_the_mean_value_form_is_of_second_order():
    """Near a maximum its excess shrinks as the square of the box's width, that of the enclosure as the width."""
    claim = claim_of(lambda x: 2.0 * x[0] - x[0] ** 2 + 2.0 * x[1] - x[1] ** 2, [(0.0, 3.0)] * 2)
    forms, excess = Forms(claim), []
    for width in (0.1, 0.01, 0.001):
        result = forms(np.full((1, 2), 1.0 - width), np.full((1, 2), 1.0 + 2.0 * width))
        assert result.how[0] == MEAN_VALUE
        excess.append(result.upper[0] - 2.0)
    assert np.allclose(-np.diff(np.log10(excess)), 2.0, atol=0.05), excess


def test_halves_share_a_side_and_nothing_else():
    rng = np.random.default_rng(5)
    lo = rng.normal(size=(50, 3))
    hi = lo + rng.random((50, 3))
    lo[7] = hi[7] = 1.0
    coordinate = rng.integers(0, 3, 50)
    hi[3, coordinate[3]] = np.nextafter(lo[3, coordinate[3]], 9.0)
    coordinate[9], coordinate[11], hi[11, 2] = -1, -1, lo[11, 2]
    (a, b), stuck = halves(lo, hi, coordinate, np.ones(3))
    assert stuck.tolist() == [k in (7, 9, 11) for k in range(50)]
    n = len(a) // 2
    good = ~stuck
    volume = (b - a).prod(axis=1)
    assert np.allclose(volume[:n] + volume[n:], (hi - lo).prod(axis=1)[good], rtol=1e-12)
    assert (a[:n] == lo[good]).all()
    assert (b[n:] == hi[good]).all()
    cut = b[:n] != b[n:]
    assert (cut.sum(axis=1) == 1).all()
    assert (b[:n][cut] == a[n:][cut]).all()


def test_a_domain_of_points_and_sides_of_no_width():
    assert certify(lambda x: x[0] + x[1] - 2.1, [(1.0, 1.0), (0.0, 1.0)])
    assert certify(lambda x: x[0] + x[1] - 1.9, [(1.0, 1.0), (0.0, 1.0)]).status == "refuted"


@pytest.mark.parametrize("margin", [1e-1, 1e-2, 1e-3])
def test_the_number_of_boxes_is_estimated_from_below(margin):
    def f(x):
        return 2.0 * x[0] * x[1] - x[0] ** 2 - x[1] ** 2 + 0.1 * np.sin(x[2]) * x[0] - 0.1 * abs(x[0]) - margin

    branching = BranchAndBound(BoundedClaim(claim_of(f, [(-2.0, 2.0)] * 3)))
    expected = branching.estimate(np.random.default_rng(0))
    branching.run(1e6, 60.0)
    assert branching.proved
    assert 0.02 * branching.count < expected < 2.0 * branching.count


def test_a_box_too_small_to_be_cut_is_left():
    """x + y <= 2 up to x = y = 1: true, but not in rounded arithmetic; a corner of the last few digits is left."""
    for box in ([(1.0, 1.0), (1.0, 1.0)], [(1.0, 1.0), (0.0, 1.0)], [(0.0, 1.0)] * 2):
        result = certify(lambda x: x[0] + x[1] - 2.0, box, budget=100_000)
        assert result.status == "undecided", result
        assert 0 < len(result.left.lo) < 100
        assert (result.left.hi == 1.0).any()
        assert 0.0 < result.left.worst < 1e-14
