"""Second-order bounds of saved code by python-flint, against values at random points and exact claims by hand."""

import json
import math

import numpy as np
import pytest

from geomctrl import testing
from geomctrl.tracing.function import traced
from geomctrl.tracing.proofs.certificates import saved_claim
from geomctrl.tracing.proofs.claims import Claim
from geomctrl.tracing.proofs.saved_code import Code
from geomctrl.tracing.proofs.second_order import Expansions

pytest.importorskip("flint")

FUNCTIONS = {
    "polynomial": lambda x: 3.0 * x[0] * x[0] * x[1] - x[1] * x[1] + 0.5 * x[0],
    "trigonometric": lambda x: np.sin(x[0] * x[1]) - x[0] * np.cos(x[1] + 0.2),
    "quotient": lambda x: (x[0] - x[1]) / (2.5 + np.sin(x[0])),
    "exponential": lambda x: np.exp(-x[0] * x[1]) + np.tanh(x[1] - x[0]),
    "roots": lambda x: np.sqrt(4.0 + x[0] * x[1]) * np.log(3.0 + x[0]),
    "kinks that are decided": lambda x: np.abs(x[0] + 3.0) * np.maximum(x[1], x[0] - 4.0) - np.minimum(x[0], 5.0),
}


def code_of(f, lo, hi):
    trace = traced(f, (len(lo),)).trace
    saved = saved_claim(Claim(trace, lo, hi, tuple((1, k) for k in range(len(lo))), np.zeros(0), True))
    return Code(json.loads(saved["claim"]), np.zeros(0))


def expansions(f, lo, hi):
    code = code_of(f, lo, hi)
    with code.arithmetic.precision():
        values, _ = code.forward([code.arithmetic.interval(a, b) for a, b in zip(lo.tolist(), hi.tolist())])
        return Expansions(code, values, lo, hi), code


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bounds_contain_all_values_and_approach_them_quadratically(name):
    f, rng = FUNCTIONS[name], np.random.default_rng(0)
    for _ in range(5):
        middle, excess = rng.uniform(-0.8, 0.8, 2), []
        for half in (0.2, 0.1, 0.05):
            lo, hi = middle - half, middle + half
            bounds, code = expansions(f, lo, hi)
            with code.arithmetic.precision():
                upper, _ = bounds.upper([(code.outputs[0], 1.0)])
                lower = -bounds.upper([(code.outputs[0], -1.0)])[0]
            x = np.vstack([rng.uniform(lo, hi, (400, 2)), [[a, b] for a in (lo[0], hi[0]) for b in (lo[1], hi[1])]])
            values = np.array([float(f(y)) for y in x])
            assert float(lower) <= values.min() + 1e-12  # rounding of the values
            assert values.max() <= float(upper) + 1e-12
            excess.append(float(upper) - values.max())
        assert excess[2] < 0.2 * excess[0] + 1e-3


def test_a_root_at_zero_has_no_second_order_bound():
    """Its second derivative is unbounded there, though value and gradient at the centre are finite."""
    lo, hi = np.array([0.0]), np.array([2.0])
    bounds, code = expansions(lambda x: np.sqrt(x[0]), lo, hi)
    with code.arithmetic.precision():
        assert bounds.upper([(code.outputs[0], 1.0)]) is None


def test_undecided_branches_have_no_second_order_bound():
    lo, hi = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    for f in (lambda x: np.abs(x[0]), lambda x: np.where(x[0] > 0.5, x[1], x[0]), lambda x: np.maximum(x[0], x[1])):
        bounds, code = expansions(f, lo, hi)
        with code.arithmetic.precision():
            assert bounds.upper([(code.outputs[0], 1.0)]) is None


@pytest.mark.parametrize(("lift", "confirmed"), [(-1e-3, True), (1e-3, False)])
def test_a_claim_that_holds_on_a_curve_only_is_confirmed_or_refused(lift, confirmed):
    """f = (1 - r^2) x + lift - 1/2 is at most lift - 1/2 where r = 1, and larger elsewhere."""
    lo, hi = np.array([-1.3, -1.2]), np.array([1.2, 1.3])
    r2 = lambda x: x[0] * x[0] + x[1] * x[1]  # noqa: E731
    trace = traced(lambda x: np.stack([(1.0 - r2(x)) * 3.0 + lift, r2(x) - 1.0, 1.0 - r2(x)]), (2,)).trace
    saved = saved_claim(Claim(trace, lo, hi, ((1, 0), (1, 1)), np.zeros(0), True))
    result = testing.recheck(Saved({**saved, "lo": lo[None], "hi": hi[None]}))
    assert bool(result) is confirmed, result
    assert math.isfinite(result.seconds)


class Saved:
    def __init__(self, arrays):
        self.arrays = arrays

    def _arrays(self):
        return {"claims": 1, **self.arrays}
