"""The independent check of proofs encloses exact values and confirms no false claim."""

import itertools
import json
import operator

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from tracing.proofs.exact_values import TOO_MUCH, exact_values
from tracing.proofs.random_programs import INPUTS, cases, points_in

from geomctrl import testing
from geomctrl.errors import ArgumentError
from geomctrl.tracing.proofs.ball_arithmetic import Arithmetic
from geomctrl.tracing.proofs.certificates import saved_claim
from geomctrl.tracing.proofs.claims import Claim, claim_of
from geomctrl.tracing.proofs.saved_code import UNKNOWN, Code, _compared
from geomctrl.tracing.symbols import Graph, compare, sub
from geomctrl.tracing.traces import Trace


@settings(max_examples=40, deadline=None)
@given(cases())
def test_saved_code_encloses_exact_values(case):
    trace, ends, weights = case
    coordinates = tuple((1, k) for k in range(INPUTS))
    code = Code(json.loads(saved_claim(Claim(trace, *ends[0].T, coordinates, np.empty(0)))["claim"]), np.empty(0))
    for lo, hi in np.clip(ends[:4], -50.0, 50.0).transpose(0, 2, 1):
        with code.arithmetic.precision():
            values = code.forward([code.arithmetic.interval(a, b) for a, b in zip(lo.tolist(), hi.tolist())])[0]
            result = [None if values[k] is None else bounds(values[k]) for k in code.outputs]
        for x in points_in(lo, hi, weights):
            for value, y in zip(result, exact_values(trace, np.clip(x, lo, hi))):
                if y is None:
                    assert value is None
                elif value is not None and y != TOO_MUCH:
                    assert value[0] <= y <= value[1], (x, y, value)


def bounds(interval):
    """The exact ends, outward in 60 digits."""
    with mpmath.workdps(60):
        return tuple(mpmath.mpf(int(m)) * mpmath.mpf(2) ** int(e) for m, e in (end.mid().man_exp() for end in interval))


def test_products_enclose_the_products_of_their_ends():
    """All signs, and infinitely thin intervals; whole numbers, which are exact."""
    arithmetic, ends = Arithmetic(), range(-2, 3)
    intervals = [(a, b) for a in ends for b in ends if a <= b]
    with arithmetic.precision():
        for a, b in itertools.product(intervals, intervals):
            low, high = bounds(arithmetic.product(*(tuple(map(arithmetic.arb, x)) for x in (a, b))))
            corners = [x * y for x in a for y in b]
            assert low <= min(corners), (a, b)
            assert high >= max(corners), (a, b)
            assert high - low < max(corners) - min(corners) + 1e-9, (a, b)


WRONG = {
    "beyond a pole": (lambda x: np.tan(x[0]), [(1.5, 2.0)]),
    "beyond a step": (lambda x: np.where(x[0] < 0.75, 1.0, -1.0), [(0.5, 1.0)]),
    "across the cut": (lambda x: np.arctan2(x[1], -1.0 - x[0]) - 3.0, [(0.0, 1.0), (-1.0, 1.0)]),
    "where it is none": (lambda x: np.minimum(np.sqrt(x[0]), -1.0), [(-1.0, 1.0)]),
    "a top in between": (lambda x: np.cos(x[0]) - 0.9, [(-1.0, 1.0)]),
    "a step of whole numbers": (lambda x: np.floor(x[0]) - 0.5, [(0.5, 1.5)]),
    "a saw": (lambda x: x[0] - np.floor(x[0]) - 0.75, [(0.25, 1.25)]),
    "slopes that differ": (lambda x: abs(x[0]) - 0.9, [(-0.5, 1.0)]),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_box_is_no_proof_of_what_is_wrong(name):
    class Claimed:
        @staticmethod
        def _arrays():
            claim = claim_of(*WRONG[name])
            return {"claims": 1, **saved_claim(claim), "lo": claim.lo[None], "hi": claim.hi[None]}

    assert not testing.recheck(Claimed)


@pytest.mark.parametrize(("edge", "stands"), [(0.25, False), (-0.5, False), (-0.75, True), (-1.5, True)])
def test_a_constraint_excuses_where_it_fails_and_nowhere_else(edge, stands):
    """x + 1/2 <= 0 where x <= edge: one box is the whole domain."""

    class Claimed:
        @staticmethod
        def _arrays():
            claim = claim_of(lambda x: x[0] + 0.5, [(-1.0, 1.0)], where=lambda x: x[0] - edge - 0.125)
            return {"claims": 1, **saved_claim(claim), "lo": claim.lo[None], "hi": claim.hi[None]}

    assert bool(testing.recheck(Claimed)) == stands


@pytest.mark.parametrize(("op", "compared"), [("lt", operator.lt), ("le", operator.le), ("eq", operator.eq)])
def test_comparisons_are_known_where_all_numbers_or_none_compare(op, compared):
    """Of all intervals between whole numbers, also those that touch: by halves of them."""
    arithmetic, ends = Arithmetic(), [(a, b) for a in range(4) for b in range(a, 4)]
    for x, y in itertools.product(ends, ends):
        halves = [[0.5 * k for k in range(2 * a, 2 * b + 1)] for a, b in (x, y)]
        result = [compared(u, v) for u, v in itertools.product(*halves)]
        expected = True if all(result) else UNKNOWN if any(result) else False
        assert _compared(op, arithmetic.interval(*map(float, x)), arithmetic.interval(*map(float, y))) == expected


def test_code_that_has_no_result_somewhere_proves_nothing():
    """A trace's flag, x < 0.75 here, is part of every claim."""
    graph = Graph()
    x = graph.load(1, 0)
    trace = Trace(graph, (1,), (sub(x, 2.0).index,), (1,), compare("lt", x, 0.75).index)

    class Claimed:
        def __init__(self, *box):
            self.claim = claim_of(trace, [box])

        def _arrays(self):
            return {"claims": 1, **saved_claim(self.claim), "lo": self.claim.lo[None], "hi": self.claim.hi[None]}

    assert testing.recheck(Claimed(0.0, 0.5))
    assert not testing.recheck(Claimed(0.0, 1.0))
    assert testing.certify(trace, [(0.0, 0.5)])
    with pytest.raises(ArgumentError, match="f: expected a number everywhere"):
        testing.certify(trace, [(0.0, 1.0)])


def test_whole_numbers_are_checked_again():
    saw = testing.certify(lambda x: x[0] - np.floor(x[0]) - 1.0625, [(-1.5, 2.5)])
    assert saw
    again = testing.recheck(saw)
    assert again, again
    flat = testing.certify(lambda x: np.floor(x[0]) * x[0] - 2.0 * x[0] - 1e-9, [(2.0, 2.875)])  # by slopes
    assert flat
    assert testing.recheck(flat)
