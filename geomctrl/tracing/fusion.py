"""Fused multiply-add operations, chosen here and not by the code generator.

A code generator fuses only products that have no other use. Unrelated code could then change the last bit of a result.
Here the expression alone decides, which gives the same bits in any context and any lane.

Sums and products of user code are not fused: as in Python, x * x - y * y is 0 for x = y, and its root is not nan.
A fused trace may be part of another one; to fuse that changes nothing in it.
"""

from __future__ import annotations

from dataclasses import replace

from .symbols import Graph
from .traces import Trace

FUSED = ("product_plus", "product_minus", "minus_product")  # (a, b, c): a b + c, a b - c, c - a b


def fused(trace: Trace) -> Trace:
    """The trace with sums and differences of a product and a number as single operations."""
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
        if op in ("add", "sub"):
            graph.exact.add(new[index])
    outputs = tuple(new[x] for x in trace.outputs)
    return replace(trace, graph=graph, outputs=outputs, flag=None if trace.flag is None else new[trace.flag])
