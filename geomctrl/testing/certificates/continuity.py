"""Whether a traced function is continuous: its branches meet where they switch, and nothing else of it jumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from geomctrl.tracing.proofs.identities import identical
from geomctrl.tracing.proofs.substitution import COMPARED, substituted
from geomctrl.tracing.symbols import Symbol, neg

from .quadratic import Boxes, Switches, inputs

JUMPING = ("where", "floor", "atan2")


def is_continuous(equations: Any, F: Any, box: Boxes) -> bool:
    """Whether F is proved to be continuous on the box: every node that may jump is settled all over it, or is a branch
    whose two sides are identical where its comparisons change."""
    graph, switches = equations.graph, Switches(equations.graph, F, set(equations.x), JUMPING)
    given = inputs(equations, box, box.lo, box.hi)
    for k, (op, _) in enumerate(switches.nodes):
        if switches.settled(given, 1, [k])[0]:
            continue
        if op != "where" or not _meets(graph, switches.places[k], equations.numbers):
            return False
    return True


def _meets(graph: Any, at: int, numbers: dict[int, float]) -> bool:
    """Whether the two sides of a branch agree where any comparison of its condition changes."""
    known = {tuple(graph.nodes[k][1:]): x for k, x in numbers.items()}
    _, condition, *sides = graph.nodes[at]
    for u, v in _comparisons(graph, condition):
        ways = [[{u: Symbol(graph, v)}], [{v: Symbol(graph, u)}]]
        for inner, other in ((u, v), (v, u)):
            if graph.nodes[inner][0] == "abs":
                y, edge = graph.nodes[inner][1], Symbol(graph, other)
                ways.append([{y: edge}, {y: neg(edge)}])
        if not any(all(_agree(graph, sides, new, known) for new in way) for way in ways):
            return False
    return True


def _agree(graph: Any, sides: list[int], new: dict[int, Any], known: dict[tuple[int, int], float]) -> bool:
    a, b = substituted(graph, [Symbol(graph, x) for x in sides], new)
    return identical(graph, [(a, b)], known)


def _comparisons(graph: Any, at: int) -> Iterator[tuple[int, int]]:
    op, *rest = graph.nodes[at]
    if op in COMPARED:
        yield rest[0], rest[1]
    for x in rest if op in ("and", "or", "not") else ():
        yield from _comparisons(graph, x)


def vacuous(half: np.ndarray, ball: np.ndarray) -> bool:
    """Whether a box of those half widths lies in the ellipsoid of those half axes."""
    return float(((half / ball) ** 2).sum()) <= 1.0
