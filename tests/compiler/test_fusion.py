"""Fused multiply-add operations: the same values, selected by the expression alone."""

import numpy as np
import pytest
from compiler.evaluation import OPERATIONS, evaluate

from geomctrl import models
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.tracing.fusion import FUSED, fused
from geomctrl.tracing.symbols import Graph
from geomctrl.tracing.traces import Trace

MEANING = {
    "product_plus": lambda a, b, c: a * b + c,
    "product_minus": lambda a, b, c: a * b - c,
    "minus_product": lambda a, b, c: c - a * b,
}


@pytest.fixture(autouse=True)
def meanings(monkeypatch):
    assert set(MEANING) == set(FUSED)
    for op, f in MEANING.items():
        monkeypatch.setitem(OPERATIONS, op, f)


@pytest.mark.parametrize("term", ["inverse_dynamics", "forward_dynamics", "terms"])
def test_a_term_has_the_same_values(term):
    robot, rng = models.panda(), np.random.default_rng(0)
    algorithm, options, *_ = CATALOGUE[term]
    created = trace(algorithm, structure(robot._model), options, guarded=True)
    joined = fused(created)
    arrays = [robot._model, *(rng.normal(size=n) for n in created.inputs)]
    found, expected = (evaluate(x.graph, x.ends, arrays) for x in (joined, created))
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert joined.operations < 0.8 * created.operations
    assert joined.sizes == created.sizes


def test_a_product_is_joined_whatever_else_it_is_used_for():
    """A second use of the product would keep a code generator from fusing it, and change the last bit of the sum."""
    shapes = []
    for used_twice in (False, True):
        graph = Graph()
        a, b, c = (graph.load(1, k) for k in range(3))
        product = a * b
        outputs = (product + c).index, *((product.index,) if used_twice else ())
        joined = fused(Trace(graph, (3,), outputs, (len(outputs),), None))
        shapes.append(joined.graph.nodes[joined.outputs[0]][0])
        assert evaluate(joined.graph, joined.outputs, [None, [2.0, 3.0, 4.0]])[0] == 10.0
    assert shapes == ["product_plus", "product_plus"]


def test_the_signs_of_differences():
    graph = Graph()
    a, b, c = (graph.load(1, k) for k in range(3))
    outputs = (a * b - c).index, (c - a * b).index, (a * b - b * c).index
    joined = fused(Trace(graph, (3,), outputs, (3,), None))
    assert [joined.graph.nodes[at][0] for at in joined.outputs] == ["product_minus", "minus_product", "minus_product"]
    assert evaluate(joined.graph, joined.outputs, [None, [2.0, 3.0, 4.0]]) == [2.0, -2.0, -6.0]
