"""Substitution of nodes in expressions of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from geomctrl.tracing import symbols
from geomctrl.tracing.operations import BINARY
from geomctrl.tracing.symbols import Condition, Graph, Symbol

COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
}


def substituted(graph: Graph, ends: Sequence[Any], new: Mapping[int, Any]) -> list[Any]:
    """`ends` with those nodes replaced by the symbols or numbers `new`, folded again."""
    values: dict[int, Any] = dict(new)
    indices = [graph.operand(x) for x in ends]
    for k in graph.needed(indices):
        if k not in values:
            op, *rest = graph.nodes[k]
            values[k] = _leaf(graph, k) if op in ("const", "load") else applied(op, [values[x] for x in rest])
    return [values[k] for k in indices]


def _leaf(graph: Graph, index: int) -> Any:
    node = graph.nodes[index]
    if node[0] == "load" or node[1] == "nan":
        return Symbol(graph, index)
    return node[1]


def applied(op: str, a: list[Any]) -> Any:
    """The operation `op` of a graph on symbols and numbers."""
    if op in COMPARED:
        numeric = not any(isinstance(x, Symbol) for x in a)
        return COMPARED[op](*a) if numeric else symbols.compare(op, *a)
    if op == "and":
        return symbols.both(*a) if any(isinstance(x, Condition) for x in a) else a[0] and a[1]
    if op == "or":
        return symbols.invert(applied("and", [symbols.invert(x) for x in a]))
    if op == "not":
        return symbols.invert(a[0])
    if op == "where":
        return symbols.where(*a)
    if op in BINARY:
        return symbols.binary(op, *a)
    if op in ("add", "sub", "mul", "div", "neg"):
        return getattr(symbols, op)(*a)
    return symbols.unary(op, *a)
