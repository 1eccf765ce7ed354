"""Whether a traced function is continuous: its branches meet where they switch, and nothing else of it jumps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from geomctrl.tracing.proofs.identities import degree_in, identical
from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.proofs.substitution import COMPARED, substituted
from geomctrl.tracing.symbols import Condition, Symbol, add, binary, compare, div, mul, neg, sub, unary, where

from .quadratic import Boxes, inputs

JUMPING = ("where", "floor", "rint", "atan2", "copysign", "fmod", "remainder")
EVERYWHERE = {  # operations that are defined for all numbers and continuous
    *("load", "const", "add", "sub", "mul", "neg", "sin", "cos", "abs", "min", "max", "and", "not", *COMPARED),
    *("exp", "expm1", "exp2", "sinh", "cosh", "tanh", "asinh", "cbrt", "hypot"),
}
LINES, CUTS, BISECTIONS = 200, 32, 30  # of the box, where a jump is looked for
MARGIN = 1e-9  # of the values on both sides of a jump: less is none

Intervals = Mapping[int, tuple[Any, Any]]


class Jump(NamedTuple):
    """A jump of V: the state x (2n,), parameters, and V on this side and on the other."""

    x: np.ndarray
    p: np.ndarray
    values: tuple[float, float]


def is_continuous(equations: Any, box: Boxes) -> bool:
    """Whether V is proved to be continuous on the box."""
    return not _open(equations, box)


def is_continuous_everywhere(loop: Any) -> bool:
    """Whether V of a traced loop is proved to be continuous in all states and times."""
    graph, numbers = loop.graph, dict(enumerate(loop.numbers.tolist()))
    moving = {loop.t.index, *(y.index for y in loop.y.tolist())}
    nodes = graph.needed([graph.operand(loop.value)])
    given: dict[int, tuple[Any, Any]] = {}
    for k in nodes:
        if graph.nodes[k][0] == "load":
            x = numbers.get(graph.nodes[k][2]) if k not in moving else None
            given[k] = (-np.inf, np.inf) if x is None else (x, x)
    divisors = [graph.nodes[k][2] for k in nodes if graph.nodes[k][0] == "div"]
    low, high = Program(graph, [Symbol(graph, k) for k in divisors]).enclosed(given, 1)
    if not ((low > 0.0) | (high < 0.0)).all():
        return False
    fixed = {k: x for k, (x, _) in given.items() if k not in moving}
    rest = {graph.nodes[k][0] for k in nodes} - EVERYWHERE - {"div", "where"}
    return not rest and all(_meets(graph, k, fixed) for k in _jumping(graph, loop.value, moving))


def jump_of(equations: Any, box: Boxes, seed: int) -> Jump | None:
    """A state of the box, with the model's parameters, at which V certainly jumps; None where none is found."""
    e, rng = equations, np.random.default_rng(seed)
    p = e.model[None].repeat(CUTS + 1, 0)
    for _ in range(LINES if (nodes := _open(e, box)) else 0):
        a, b = rng.uniform(box.lo[0], box.hi[0], (2, len(e.x)))
        if e.timed:
            p[:, -1] = rng.uniform(box.p_lo[0, -1], box.p_hi[0, -1], 1 if rng.random() < 0.5 else len(p))
        x = a + np.linspace(0.0, 1.0, CUTS + 1)[:, None] * (b - a)
        for k in nodes:
            switch, side = _switch(e.graph, k)
            found = Program(e.graph, [switch]).values(e.at(x, p), len(x))[:, 0]
            for i in np.flatnonzero(np.diff(found) != 0.0)[:1]:
                jump = _confirmed(e, k, switch, side, np.hstack([x, p])[i : i + 2])
                if jump is not None:
                    return jump
    return None


def _open(e: Any, box: Boxes) -> list[int]:
    """The nodes of V that may jump in the box."""
    graph, given = e.graph, inputs(e, box, box.lo, box.hi)
    moving = {*e.x, e.loop.t.index}
    return [
        k for k in _jumping(graph, e.loop.value, moving)
        if not _settled(graph, k, given) and not _meets(graph, k, e.numbers)
    ]  # fmt: skip


def _jumping(graph: Any, F: Any, moving: set[int]) -> Iterator[int]:
    for k in graph.needed([graph.operand(F)]):
        op, *rest = graph.nodes[k]
        if op in JUMPING and degree_in(graph, Symbol(graph, rest[0] if op == "where" else k), moving):
            yield k


def _settled(graph: Any, k: int, given: Intervals) -> bool:
    """Whether the node does not jump on one box."""
    op, *rest = graph.nodes[k]
    low, high = Program(graph, [Symbol(graph, rest[0] if op == "where" else k)], branches=True).enclosed(given, 1)
    if op == "where":  # 1 where the condition certainly holds, where it certainly does not
        return bool(low[0, 0] == 1.0 or high[0, 0] == 1.0)
    return bool(np.isfinite(low[0, 0]) and np.isfinite(high[0, 0]))


def _meets(graph: Any, at: int, numbers: Mapping[int, float]) -> bool:
    """Whether the two sides of a branch agree where any comparison of its condition changes."""
    known = {tuple(graph.nodes[k][1:]): x for k, x in numbers.items()}
    op, condition, *sides = graph.nodes[at]
    if op != "where":
        return False
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


def _switch(graph: Any, k: int) -> tuple[Any, Callable[[float], Any]]:
    """(a number that changes where the node jumps, that number -> the node, continued across the jump)."""
    op, *rest = graph.nodes[k]
    if op == "where":
        condition, a, b = rest
        return where(Condition(graph, condition), 1.0, 0.0), lambda s: Symbol(graph, a if s else b)
    a, *b = (Symbol(graph, x) for x in rest)
    if op in ("floor", "rint"):
        return Symbol(graph, k), lambda s: s
    if op == "atan2":  # from y < 0 to y >= 0 where x < 0
        sign = where(compare("lt", a, 0.0), -1.0, 1.0)
        return sign, lambda s: add(binary("atan2", neg(a), neg(b[0])), s * math.pi)
    if op == "copysign":
        return where(compare("lt", b[0], 0.0), -1.0, 1.0), lambda s: mul(unary("abs", a), s)
    whole = unary("rint", div(sub(a, Symbol(graph, k)), b[0]))
    return whole, lambda s: sub(a, mul(b[0], s))


def _confirmed(e: Any, k: int, switch: Any, side: Callable[[float], Any], ends: np.ndarray) -> Jump | None:
    """Bisect between two states (with their parameters) to the jump, and enclose V on both sides of it."""
    n, program = len(e.x), Program(e.graph, [switch])
    low, high = ends
    first = program.values(e.at(low[None, :n], low[None, n:]), 1)[0, 0]
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        same = program.values(e.at(middle[None, :n], middle[None, n:]), 1)[0, 0] == first
        low, high = (middle, high) if same else (low, middle)
    last = program.values(e.at(high[None, :n], high[None, n:]), 1)[0, 0]
    boxes = np.array([[low, low], [high, high], [np.minimum(low, high), np.maximum(low, high)]])
    box = Boxes(*(boxes[:, i, s] for s in (slice(0, n), slice(n, None)) for i in (0, 1)))
    given = inputs(e, box, box.lo, box.hi)
    if e.graph.nodes[k][0] == "atan2" and not _enclosed(e, e.graph.nodes[k][2], given)[1][2] < 0.0:
        return None
    lo, hi = _enclosed(e, switch, given)
    if not (lo[0] == hi[0] == first and lo[1] == hi[1] == last):
        return None
    sides = [_enclosed(e, substituted(e.graph, [e.loop.value], {k: side(s)})[0], given) for s in (first, last)]
    (a, b), (c, d) = ((lo[2], hi[2]) for lo, hi in sides)
    margin = MARGIN * max(map(abs, (a, b, c, d)))
    return Jump(low[:n], low[n:], (0.5 * (a + b), 0.5 * (c + d))) if b + margin < c or d + margin < a else None


def _enclosed(e: Any, F: Any, given: Intervals) -> tuple[np.ndarray, np.ndarray]:
    lo, hi = Program(e.graph, [Symbol(e.graph, F) if isinstance(F, int) else F], branches=True).enclosed(given, 3)
    return lo[:, 0], hi[:, 0]


def vacuous(half: np.ndarray, ball: np.ndarray) -> bool:
    """Whether a box of those half widths lies in the ellipsoid of those half axes."""
    return float(((half / ball) ** 2).sum()) <= 1.0
