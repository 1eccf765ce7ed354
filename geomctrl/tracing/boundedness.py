"""Which nodes of a graph are finite on every bounded set of inputs, whatever they are."""

from __future__ import annotations

BOUNDED = {"load", "const", "add", "sub", "mul", "neg", "abs", "min", "max", "sin", "cos", "tanh", "floor", "rint"}


def is_bounded(nodes: list[tuple], at: int, known: dict[int, bool]) -> bool:
    """Whether that node is; `known` keeps the answers."""
    waiting = [at]
    while waiting:
        k = waiting[-1]
        op, *rest = nodes[k]
        operands = [] if op in ("const", "load") else rest
        unknown = [x for x in operands if x not in known]
        if unknown:
            waiting += unknown
        else:
            waiting.pop()
            known[k] = op in BOUNDED and not (op == "const" and rest[0] == "nan") and all(known[x] for x in operands)
    return known[at]
