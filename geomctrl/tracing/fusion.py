"""Products and sums in one rounding, chosen here and not by the code generator.

A code generator that may contract does so where a product has no other use: what else is computed beside it then
changes its last bit. Chosen by the expression alone, a result has the same bits in whatever company, and in any lane.

A user's own sums and products stay apart, as in Python: x * x - y * y is 0 where x = y, and its root is no nan.
"""

from __future__ import annotations

from dataclasses import replace

from .symbols import Graph
from .traces import Trace

FUSED = ("product_plus", "product_minus", "minus_product")  # (a, b, c): a b + c, a b - c, c - a b


def fused(trace: Trace) -> Trace:
    """The trace with sums of a product, or differences, as one operation."""
    nodes, exact, graph, new = trace.graph.nodes, trace.graph.exact, Graph(), {}
    for index in trace.graph.needed(trace.ends):
        op, *rest = nodes[index]
        if op in ("const", "load"):
            new[index] = graph.node(op, *rest)
            continue
        if op in ("add", "sub") and index not in exact:
            a, b = rest
            if nodes[b][0] == "mul":
                op, rest = "product_plus" if op == "add" else "minus_product", [*nodes[b][1:], a]
            elif nodes[a][0] == "mul":
                op, rest = "product_plus" if op == "add" else "product_minus", [*nodes[a][1:], b]
        new[index] = graph.node(op, *(new[x] for x in rest))
    outputs = tuple(new[x] for x in trace.outputs)
    return replace(trace, graph=graph, outputs=outputs, flag=None if trace.flag is None else new[trace.flag])
