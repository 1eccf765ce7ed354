"""`expanded`: random polynomials in sines and cosines, against exact fractions and narrow intervals."""

import random
from fractions import Fraction

import numpy as np
import pytest

from geomctrl.tracing.proofs.identities import identical
from geomctrl.tracing.proofs.interpreted import Program, valued
from geomctrl.tracing.proofs.polynomials import expanded
from geomctrl.tracing.symbols import Graph, add, mul, sub, unary

X, ANGLE, NUMBER = 1, 2, 3


class Written:
    """A graph with inputs x, angles and numbers, and the expansion of an expression."""

    def __init__(self, origins=(0.0, 0.3)):
        self.graph = Graph()
        self.x = [self.graph.load(X, k) for k in range(2)]
        self.a = [self.graph.load(ANGLE, k) for k in range(2)]
        self.origins = dict(zip([x.index for x in self.x], origins))
        self.values = {}

    def constant(self, value):
        symbol = self.graph.load(NUMBER, len(self.values))
        self.values[symbol.index] = value
        return symbol

    def expanded(self, end):
        return expanded(self.graph, end, self.origins, [a.index for a in self.a], self.values, self.constant)

    def inputs(self, x, a):
        return {**self.values, **dict(zip([s.index for s in (*self.x, *self.a)], [*x.T, *a.T]))}


def random_polynomial(w, rng, depth):
    if depth == 0:
        angle = rng.choice(w.a)
        return rng.choice([*w.x, unary("sin", angle), unary("cos", angle), w.constant(rng.uniform(-2.0, 2.0)), 0.7])
    a, b = random_polynomial(w, rng, depth - 1), random_polynomial(w, rng, depth - 1)
    return rng.choice([add, sub, mul])(a, b)


@pytest.mark.parametrize("seed", range(30))
def test_random_polynomials_keep_their_values(seed):
    w, rng = Written(), random.Random(seed)
    end = random_polynomial(w, rng, 4)
    new = w.expanded(end)
    keys = {w.graph.nodes[k][1:]: x for k, x in w.values.items()}
    assert new is not None
    assert identical(w.graph, [(end, new)], keys)
    x, a = np.random.default_rng(seed).uniform(-1.0, 1.0, (2, 50, 2))
    both = valued(w.graph, [end, new], w.inputs(x, a), 50)
    np.testing.assert_allclose(both[:, 0], both[:, 1], rtol=1e-9, atol=1e-9)


def test_sin_squared_plus_cos_squared_is_one_and_terms_cancel():
    w = Written()
    s, c = (unary(op, w.a[0]) for op in ("sin", "cos"))
    square = add(mul(s, s), mul(c, c))
    left = sub(mul(add(w.x[0], s), add(w.x[0], s)), mul(mul(w.x[0], s), 2.0))  # x^2 + s^2
    end = add(mul(square, w.x[0]), add(left, mul(c, c)))  # x + x^2 + 1
    new = w.expanded(end)
    assert {"sin", "cos"}.isdisjoint(w.graph.nodes[k][0] for k in w.graph.needed([new.index]))
    bounds = {**{k: (x, x) for k, x in w.values.items()}, w.x[0].index: (0.5, 0.5)}
    low, high = Program(w.graph, [new]).enclosed(bounds, 1)
    assert low[0, 0] <= 1.75 <= high[0, 0]
    assert high[0, 0] - low[0, 0] < 1e-14


def test_a_coefficient_is_the_exact_product_of_floats():
    w = Written(origins=(0.0, 0.0))
    factors = [0.1, 1.0 / 3.0, np.pi]
    end = w.x[0]
    for x in factors:
        end = mul(end, w.constant(x))
    known = len(w.values)
    w.expanded(end)
    exact = Fraction(factors[0]) * Fraction(factors[1]) * Fraction(factors[2])
    assert sum(map(Fraction, list(w.values.values())[known:])) == exact


@pytest.mark.parametrize("op", ["exp", "tanh", "sqrt", "sin"])
def test_other_functions_are_not_expanded(op):
    w = Written()
    assert w.expanded(add(unary(op, w.x[0]), w.x[1])) is None


def test_a_long_polynomial_is_not_expanded():
    w, end = Written(), 1.0
    for _ in range(60):
        terms = [*w.x, unary("sin", w.a[0]), unary("cos", w.a[1]), 1.0]
        total = terms[0]
        for x in terms[1:]:
            total = add(total, x)
        end = mul(total, end)
    assert w.expanded(end) is None
