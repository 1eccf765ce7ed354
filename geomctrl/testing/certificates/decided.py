"""Removal of branches of a traced loop that are decided on a whole box."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from geomctrl.control.compiled.proving import NUMBERS, TracedClosedLoop
from geomctrl.tracing.derivatives import loads
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.substitution import applied
from geomctrl.tracing.symbols import Condition, Symbol, is_symbol, operands


def decided(loop: TracedClosedLoop, within: Mapping[str, Any]) -> TracedClosedLoop:
    """The loop in which every branch whose condition is decided on the box is replaced by its side."""
    graph, (q, v, z) = loop.graph, loop.split(loop.y)
    intervals: dict[int, Any] = {graph.load(NUMBERS, k).index: (x, x) for k, x in enumerate(loop.numbers.tolist())}
    places = {
        "q": q.tolist(),
        "v": v.tolist(),
        "z": [] if z is None else z.tolist(),
        "p": [*loop.extra["parameters"], *loop.extra["others"]],
        "t": [loop.t],
    }
    for name, (lo, hi) in within.items():
        intervals |= dict(zip(loads(places[name]), zip(lo, hi, strict=True)))
    ends = _ends(loop)
    branches = [k for k in graph.needed(loads(ends)) if graph.nodes[k][0] == "where"]
    bounded = [k for k in branches if all(graph.nodes[x][0] != "load" or x in intervals for x in graph.needed([k]))]
    conditions = [Condition(graph, graph.nodes[k][1]) for k in bounded]
    low, high = Program(graph, conditions, branches=True).enclosed(intervals, 1)
    holds, fails = low[0] == 1.0, high[0] == 1.0
    sides = {
        k: Symbol(graph, graph.nodes[k][2 if yes else 3]) for k, yes, no in zip(bounded, holds, fails) if yes or no
    }
    if not sides:
        return loop
    return _with_ends(loop, ends, _resolved(graph, ends, sides))


def replaced(loop: TracedClosedLoop, new: Mapping[int, Any]) -> TracedClosedLoop:
    """The loop with those nodes replaced by symbols.

    Nothing is folded: an operation such as 0 / x, which folds to 0, has to have a value on the whole box.
    """
    graph, ends = loop.graph, _ends(loop)
    indices = {k: x.index for k, x in new.items()}
    for k in graph.needed(loads(ends)):
        if k not in indices:
            op, *rest = graph.nodes[k]
            indices[k] = graph.node(op, *(indices[x] for x in rest)) if operands(graph.nodes[k]) else k
    graph.exact.update(indices[k] for k in graph.exact & indices.keys())
    return _with_ends(loop, ends, [type(x)(graph, indices[x.index]) for x in ends])


def _ends(loop: TracedClosedLoop) -> list[Any]:
    ends: list[Any] = []
    with_symbols([loop.value, loop.rate, loop.field, loop.extra, loop.good], ends.append)
    return ends


def _with_ends(loop: TracedClosedLoop, ends: list[Any], values: list[Any]) -> TracedClosedLoop:
    """The loop with other values of its expressions `ends`."""
    new = dict(zip(loads(ends), values))
    parts: list[Any] = [loop.value, loop.rate, loop.field, loop.extra, loop.good]
    value, rate, field, extra, good = with_symbols(parts, lambda x: new[x.index])
    return replace(loop, value=value, rate=rate, field=field, extra=extra, good=good)


def _resolved(graph: Any, ends: list[Any], sides: dict[int, Any]) -> list[Any]:
    """`ends` with those branches replaced, also if one is the side of another."""
    values: dict[int, Any] = {}
    for k in graph.needed(loads(ends)):
        op, *rest = graph.nodes[k]
        values[k] = (
            values[sides[k].index] if k in sides
            else Symbol(graph, k) if op == "load" or (op == "const" and rest[0] == "nan")
            else rest[0] if op == "const" else applied(op, [values[x] for x in rest])
        )  # fmt: skip
    return [values[k] for k in loads(ends)]


def with_symbols(x: Any, new: Callable[[Any], Any]) -> Any:
    """Nested dicts, lists and tuples in which each symbol is replaced by new(symbol)."""
    if isinstance(x, dict):
        return {k: with_symbols(y, new) for k, y in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(with_symbols(y, new) for y in x)
    return new(x) if is_symbol(x) or isinstance(x, Condition) else x
