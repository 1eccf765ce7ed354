"""Derivatives of traced expressions, as further symbols of the same graph.

`tangents` (forward mode) computes the rates of all outputs along one direction of the inputs. `pullback` (reverse mode)
computes the derivatives of one sum of outputs with respect to all inputs, at a small multiple of the cost of the sum.
`pushforward` and `transposed` return these as traces of their own. All apply the chain rule to the nodes of a graph:
they are exact and can be repeated.

At a kink the derivative is that of the branch which `where`, min, max or abs select.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from .operators import power, raised
from .symbols import (
    Condition,
    Graph,
    Symbol,
    UntraceableError,
    add,
    binary,
    compare,
    div,
    is_symbol,
    mul,
    neg,
    operands,
    relation,
    sub,
    unary,
    where,
)
from .traces import Trace

CONDITIONS = {"lt", "le", "eq", "and", "or", "not"}


def tangents(graph: Graph, ends: Sequence[Any], seeds: Mapping[int, Any]) -> list[Any]:
    """The rates of `ends` (symbols or numbers) if the nodes of `seeds` move at the given rates."""
    with graph.of_finite_numbers():
        return _tangents(graph, ends, seeds)


def _tangents(graph: Graph, ends: Sequence[Any], seeds: Mapping[int, Any]) -> list[Any]:
    indices = [graph.operand(x) for x in ends]
    rate: dict[int, Any] = dict(seeds)
    for k in graph.needed(indices):
        if k in rate:
            continue
        op, *rest = graph.nodes[k]
        total: Any = 0.0
        if op == "where":  # the inactive branch may have no finite rate
            total = where(Condition(graph, rest[0]), *(rate.get(x, 0.0) for x in rest[1:]))
        else:
            for x, slope in _slopes(graph, k, lambda x: x in rate and not _is_zero(rate[x])):
                total = add(total, mul(slope, rate[x]))
        if not _is_zero(total):
            rate[k] = total
    return [rate.get(k, 0.0) for k in indices]


def pullback(graph: Graph, outputs: Sequence[Any], weights: Sequence[Any], inputs: Sequence[int]) -> list[Any]:
    """d(sum weights[k] outputs[k]) / d(input) for every node of `inputs`."""
    with graph.of_finite_numbers():
        return _pullback(graph, outputs, weights, inputs)


def _pullback(graph: Graph, outputs: Sequence[Any], weights: Sequence[Any], inputs: Sequence[int]) -> list[Any]:
    indices = [graph.operand(x) for x in outputs]
    order = graph.needed(indices)
    moving = _dependent(graph, order, inputs)
    weight: dict[int, Any] = {}
    for k, w in zip(indices, weights, strict=True):
        weight[k] = add(weight.get(k, 0.0), w)
    stop, unconditional = set(inputs), set(indices)  # unconditional: needed for any choice of branches
    for k in reversed(order):
        op, ends = graph.nodes[k][0], operands(graph.nodes[k])
        if k in unconditional and op != "where":
            unconditional.update(ends)
        if k in stop or k not in moving or _is_zero(weight.get(k, 0.0)):
            continue
        w = weight[k]
        for x, slope in _slopes(graph, k, moving.__contains__):
            share = mul(slope, w)
            if k not in unconditional and is_symbol(w):  # on an inactive branch w is 0 and the slope may be infinite
                share = where(compare("eq", w, 0.0), 0.0, share)
            weight[x] = add(weight.get(x, 0.0), share)
    return [weight.get(k, 0.0) for k in inputs]


def pushforward(
    trace: Trace,
    moving: Sequence[Sequence[tuple[int, int]]],
    allowed: Mapping[int, Callable[[list[Any], list[Any]], Iterable[Any]]] | None = None,
) -> Trace:
    """The rates of a trace's outputs, each group of `moving` inputs (array, index) having its rates as a further input.

    The further inputs follow those of the trace, and the outputs are linear in them. `allowed` has for some groups a
    function (inputs, rates) -> the part of the rates that is possible; the outputs have the rates along that part.
    """
    graph, first, seeds = trace.graph, len(trace.inputs) + 1, {}
    for g, places in enumerate(moving):
        rates = [graph.load(first + g, k) for k in range(len(places))]
        if allowed and g in allowed:
            with graph.of_finite_numbers():
                rates = allowed[g]([graph.load(*place) for place in places], rates)
        seeds.update(zip((graph.node("load", *place) for place in places), rates))
    rates = tangents(graph, trace.symbols, seeds)
    arrays = range(first + len(moving))
    return _extracted(trace, rates, (*trace.inputs, *map(len, moving)), trace.sizes, dict(zip(arrays, arrays)))


def transposed(trace: Trace, linear: Sequence[int], outputs: Sequence[int]) -> Trace:
    """The transpose of the map from the arrays `linear`, in which the trace is linear, to the arrays `outputs`.

    Its inputs are the other arrays, followed by a vector for each of `outputs`; its outputs have the sizes of `linear`.
    Raises UntraceableError if the trace is not linear in these arrays.
    """
    graph, starts = trace.graph, [0, *accumulate(trace.sizes)]
    ends = [Symbol(graph, index) for j in outputs for index in trace.outputs[starts[j] : starts[j + 1]]]
    new = range(len(trace.inputs) + 1, len(trace.inputs) + 1 + len(outputs))
    weights = [graph.load(array, k) for array, j in zip(new, outputs) for k in range(trace.sizes[j])]
    sizes = tuple(trace.inputs[a - 1] for a in linear)
    nodes = [graph.node("load", a, k) for a, size in zip(linear, sizes) for k in range(size)]
    kept = [a for a in range(1, len(trace.inputs) + 1) if a not in linear]
    arrays = {0: 0, **{a: k for k, a in enumerate([*kept, *new], 1)}}
    inputs = (*(trace.inputs[a - 1] for a in kept), *(trace.sizes[j] for j in outputs))
    return _extracted(trace, pullback(graph, ends, weights, nodes), inputs, sizes, arrays)


def _extracted(
    trace: Trace, ends: Sequence[Any], inputs: tuple[int, ...], sizes: tuple[int, ...], arrays: Mapping[int, int]
) -> Trace:
    """A trace of `ends` in a graph of their own, with the flag of `trace`; arrays: new numbers of the inputs."""
    old, graph, new = trace.graph, Graph(), {}
    outputs = [old.operand(x) for x in ends]
    flag = [] if trace.flag is None else [trace.flag]
    for index in old.needed([*outputs, *flag]):
        op, *rest = old.nodes[index]
        if op == "load":
            if rest[0] not in arrays:
                raise UntraceableError("the trace is not linear in these inputs")
            rest[0] = arrays[rest[0]]
        elif op != "const":
            rest = [new[x] for x in rest]
        new[index] = graph.node(op, *rest)
    return Trace(graph, inputs, tuple(new[x] for x in outputs), sizes, new[flag[0]] if flag else None)


def loads(xs: Iterable[Any]) -> list[int]:
    """The nodes of symbols that are inputs."""
    return [x.index for x in xs]


def _dependent(graph: Graph, order: Sequence[int], inputs: Iterable[int]) -> set[int]:
    """The nodes that depend on the inputs."""
    moving = set(inputs)
    for k in order:
        if not moving.isdisjoint(operands(graph.nodes[k])):
            moving.add(k)
    return moving


def _is_zero(x: Any) -> bool:
    return not is_symbol(x) and x == 0.0


def _slopes(graph: Graph, index: int, wanted: Any) -> list[tuple[int, Any]]:
    """(Operand, derivative with respect to it) of a node, for the operands in question."""
    node = graph.nodes[index]
    op, ends = node[0], operands(node)
    if op in CONDITIONS or not any(map(wanted, ends)):
        return []
    if op == "where":
        condition = Condition(graph, ends[0])
        slopes = [None, lambda: where(condition, 1.0, 0.0), lambda: where(condition, 0.0, 1.0)]
        return [(x, slope()) for x, slope in zip(ends, slopes) if slope is not None and wanted(x)]
    rules = RULES[op]
    args = [_value(graph, x) for x in ends]
    result = Symbol(graph, index)
    return [(x, rule(result, *args)) for x, rule in zip(ends, rules, strict=True) if wanted(x)]


def _value(graph: Graph, index: int) -> Any:
    """A node as an operand for `symbols`: numbers become Python numbers, which fold."""
    node = graph.nodes[index]
    if node[0] != "const" or isinstance(node[1], (bool, str)):
        return Symbol(graph, index)
    return node[1]


RULES: dict[str, tuple[Any, ...]] = {  # the derivatives of y = op(a, b) with respect to a and b
    "add": (lambda y, a, b: 1.0, lambda y, a, b: 1.0),
    "sub": (lambda y, a, b: 1.0, lambda y, a, b: -1.0),
    "mul": (lambda y, a, b: b, lambda y, a, b: a),
    "div": (lambda y, a, b: div(1.0, b), lambda y, a, b: neg(div(y, b))),
    "neg": (lambda y, a: -1.0,),
    "sqrt": (lambda y, a: div(0.5, y),),
    "sin": (lambda y, a: unary("cos", a),),
    "cos": (lambda y, a: neg(unary("sin", a)),),
    "tan": (lambda y, a: add(1.0, mul(y, y)),),
    "asin": (lambda y, a: div(1.0, unary("sqrt", sub(1.0, mul(a, a)))),),
    "acos": (lambda y, a: div(-1.0, unary("sqrt", sub(1.0, mul(a, a)))),),
    "exp": (lambda y, a: y,),
    "log": (lambda y, a: div(1.0, a),),
    "tanh": (lambda y, a: sub(1.0, mul(y, y)),),
    "abs": (lambda y, a: where(compare("lt", a, 0.0), -1.0, 1.0),),
    "floor": (lambda y, a: 0.0,),
    "rint": (lambda y, a: 0.0,),
    "sinh": (lambda y, a: unary("cosh", a),),
    "cosh": (lambda y, a: unary("sinh", a),),
    "asinh": (lambda y, a: div(1.0, binary("hypot", 1.0, a)),),
    "acosh": (lambda y, a: div(1.0, mul(unary("sqrt", sub(a, 1.0)), unary("sqrt", add(a, 1.0)))),),
    "atanh": (lambda y, a: div(1.0, mul(sub(1.0, a), add(1.0, a))),),
    "expm1": (lambda y, a: add(y, 1.0),),
    "log1p": (lambda y, a: div(1.0, add(1.0, a)),),
    "exp2": (lambda y, a: mul(y, math.log(2.0)),),
    "log2": (lambda y, a: div(1.0 / math.log(2.0), a),),
    "log10": (lambda y, a: div(1.0 / math.log(10.0), a),),
    "cbrt": (lambda y, a: div(1.0 / 3.0, mul(y, y)),),
    "hypot": (lambda y, a, b: div(a, y), lambda y, a, b: div(b, y)),
    "pow": (  # at a kink of the power of 0 the derivative is that of the power: infinite or nan
        lambda y, a, b: mul(b, raised(a, sub(b, 1.0))),
        lambda y, a, b: where(relation("eq", y, 0.0), 0.0, mul(y, unary("log", a))),
    ),
    "copysign": (lambda y, a, b: mul(binary("copysign", 1.0, a), binary("copysign", 1.0, b)), lambda y, a, b: 0.0),
    "fmod": (lambda y, a, b: 1.0, lambda y, a, b: div(sub(y, a), b)),
    "remainder": (lambda y, a, b: 1.0, lambda y, a, b: div(sub(y, a), b)),
    "atan2": (
        lambda y, a, b: div(b, add(power(a, 2), power(b, 2))),
        lambda y, a, b: neg(div(a, add(power(a, 2), power(b, 2)))),
    ),
    "min": (  # the second operand if it is smaller, else the first
        lambda y, a, b: where(compare("lt", b, a), 0.0, 1.0),
        lambda y, a, b: where(compare("lt", b, a), 1.0, 0.0),
    ),
    "max": (
        lambda y, a, b: where(compare("lt", a, b), 0.0, 1.0),
        lambda y, a, b: where(compare("lt", a, b), 1.0, 0.0),
    ),
}
