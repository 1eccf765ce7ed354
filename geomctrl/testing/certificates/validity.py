"""Conditions for proofs about a traced loop, which are tested first.

The trace agrees with Python, V is zero at the equilibrium, the loop is defined on the whole box (including terms that
the equations omit, such as 0 log(x)), and V is continuous.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError
from geomctrl.tracing.branch_and_bound import BranchAndBound, Decision, Divisible
from geomctrl.tracing.derivatives import loads
from geomctrl.tracing.proofs.enclosure import PARTIAL
from geomctrl.tracing.proofs.identities import degree_in, identical
from geomctrl.tracing.proofs.interpreted import Program, valued
from geomctrl.tracing.proofs.substitution import COMPARED, substituted
from geomctrl.tracing.symbols import (
    Condition,
    Symbol,
    add,
    binary,
    both,
    compare,
    div,
    invert,
    is_symbol,
    mul,
    neg,
    operands,
    sub,
    unary,
    where,
)
from geomctrl.tracing.untraceable import UntraceableError

from .quadratic import Boxes, inputs

STATES, UNDEFINED_STATES = 64, 512  # states of the comparison with Python; states of the search for undefined values
ROUNDING_TOLERANCE = 1e-7  # relative difference (absolute below 1) that rounding of M^-1 may cause


def compare_with_python(
    controller: Any, plant: Plant, equations: Any, box: Any, seed: int, desired: Any = None, true: Any = None
) -> None:
    """Raise UntraceableError if V, the promised rate, the accelerations or z_rate of the loop differ from Python.

    Compared at the corners, the equilibrium and random states of the box, each at its own time. Where Python raises,
    the traced loop must have no value, which refutes claims about that state.
    """
    e, rng, lo, hi = equations, np.random.default_rng(seed), box.lo[0], box.hi[0]
    x = rng.uniform(lo, hi, (STATES, len(lo))) * rng.choice([1.0, 1.0, 0.1, 1e-3], (STATES, 1))
    x[0], x[1 : 1 + STATES // 4] = 0.0, np.where(rng.random((STATES // 4, len(lo))) < 0.5, lo, hi)
    t = np.concatenate(([0.0], rng.exponential(3.0, STATES - 1)))
    if e.timed:
        t = rng.uniform(box.p_lo[0, -1], box.p_hi[0, -1], STATES)
    q, v, a = e.q_d + x[:, : e.n], e.velocities(x), np.zeros((STATES, e.n))
    if desired is not None:  # x is the error
        try:
            moving = [np.asarray(xs) for xs in zip(*(desired(float(now)) for now in t))]
        except Exception as error:  # the reference may raise anything outside its domain
            raise ArgumentError(
                f"reference: expected q_d, v_d and a_d at all times, but it raises {error!r:.200}"
            ) from error
        q, v, a = q + moving[0], v + moving[1], moving[2]
    torques = 0.5 * (box.p_lo[0] + box.p_hi[0])[e.robots.stop : len(e.parameters) - e.timed]
    p = np.tile(np.append(plant.robot.parameters.ravel(), torques), (STATES, 1))
    values = {**e.at(x, np.column_stack([p, t]) if e.timed else p), e.loop.t.index: t}
    exists = 1.0 if e.loop.good is True else where(e.loop.good, 1.0, math.nan)
    traced = valued(e.graph, [exists, e.loop.value, e.loop.rate, *e.loop.field[e.n : len(e.x)]], values, STATES)
    names = ["V", "the promised rate", *(f"vdot[{i}]" for i in range(e.n))]
    names += [f"z_rate[{i}]" for i in range(len(e.x) - 2 * e.n)]
    traced = traced[:, 1:] * traced[:, :1]
    traced[:, 2 : 2 + e.n] += a
    z = [None] * STATES if true is None else true + x[:, 2 * e.n :]
    rows = [_called(controller, plant, *state) for state in zip(t, q, v, z)]
    called = np.array([[np.nan] * len(names) if isinstance(row, Exception) else row for row in rows])
    size = np.maximum(np.abs(called).max(0, initial=0.0, where=np.isfinite(called)), 1.0)
    good = (np.abs(traced - called) <= ROUNDING_TOLERANCE * size) | (np.isnan(traced) & np.isnan(called))
    if not good.all():
        k, i = (int(a[0]) for a in np.nonzero(~good))
        python = f"raises {rows[k]!r}" if isinstance(rows[k], Exception) else f"has {called[k, i]:.9g}"
        raise UntraceableError(
            f"the traced loop differs from the law in Python: {names[i]} is {traced[k, i]:.9g} in the trace,"
            f" where Python {python}, at t = {t[k]:.6g}, q = {q[k].tolist()}, v = {v[k].tolist()}"
        )


def _called(controller: Any, plant: Plant, t: float, q: np.ndarray, v: np.ndarray, z: Any) -> list[float] | Exception:
    """(V, promised rate, vdot, z_rate), or what Python raises."""
    t = float(t)
    try:
        with np.errstate(all="ignore"):
            V, rate = controller.lyapunov(t, q, v, z, plant)
            tau, z_rate, *_ = controller(t, q, v, z)
            vdot = plant.acceleration(t, q, v, tau)
    except Exception as error:  # the law may raise anything outside its domain
        return error
    rates = np.zeros(0) if z is None else np.asarray(z_rate, float).ravel()
    return [float(V), float(rate), *np.asarray(vdot, float).tolist(), *rates.tolist()]


def vanishes(e: Any, V: Any, p_lo: np.ndarray, p_hi: np.ndarray) -> bool:
    """Whether V is shown to be zero at the equilibrium for all parameters: an identity, or by intervals."""
    rest = dict(zip(e.x, [*e.q_d.tolist(), *[0.0] * (len(e.x) - e.n)]))
    fixed = {k: x for k, x, y in zip(e.parameters, p_lo[0].tolist(), p_hi[0].tolist()) if x == y}
    numbers = {tuple(e.graph.nodes[k][1:]): x for k, x in {**e.numbers, **rest, **fixed}.items()}
    if identical(e.graph, [(V, 0.0)], numbers):
        return True
    low, high = at_rest(e, [V], p_lo, p_hi)
    return bool((low == 0.0).all() and (high == 0.0).all())


def at_rest(e: Any, ends: list[Any], p_lo: np.ndarray, p_hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of expressions of the unchanged loop, at the equilibrium."""
    zero = np.zeros((1, len(e.x)))
    low, high = (e.at(zero, p) for p in (p_lo, p_hi))
    later = {e.loop.t.index: (0.0, np.inf)} if e.phases else {}
    return Program(e.graph, ends, branches=True).enclosed({k: (low[k], high[k]) for k in low} | later, 1)


MAX_DEFINED_BOXES = 8_000
NEIGHBOUR_OFFSET = 1e-9  # relative to the box: a state counts as undefined only if its neighbours are undefined too


def requirements_of(e: Any) -> Any:
    """The condition (or True) under which the loop is defined, apart from positive definite mass matrices.

    The claim is about robots whose mass matrices are positive definite."""
    good = e.evaluated.good
    return True if good is True else _without(e.graph, _pivots(e), good.index)


def _without(graph: Any, implied: Container[int], node: int) -> Any:
    """A condition without those that are implied; not simplified again, which would drop more."""
    op, *rest = graph.nodes[node]
    if op == "and":
        return both(*(_without(graph, implied, x) for x in rest))
    if op == "not":
        return invert(_without(graph, implied, rest[0]))
    return True if node in implied else Condition(graph, node)


def _pivots(e: Any) -> dict[int, int]:
    """The pivots of the true mass matrix by the conditions that they are positive."""
    waiting, pivots = [x.index for x in e.evaluated.extra["pivots"]], {}
    while waiting:
        op, *rest = e.graph.nodes[k := waiting.pop()]
        waiting += rest if op == "and" else []
        if op == "lt" and e.graph.nodes[rest[0]][:2] == ("const", 0.0):
            pivots[k] = rest[1]
    return pivots


def _evaluated(e: Any) -> list[Any] | None:
    """Numbers that are finite where all of the loop is: operands where M^-1 enters; None if that is not shown."""
    graph, pivots, after, before = e.graph, set(_pivots(e).values()), set(), set()  # nodes that contain M^-1, operands
    ends = [*e.evaluated.extra["tau"], *e.evaluated.field[e.n : len(e.x)], e.evaluated.value]
    for k in graph.needed(loads(x for x in ends if is_symbol(x))):
        op, *rest = graph.nodes[k][0], *operands(graph.nodes[k])
        divided = op == "div" and rest[1] in pivots
        if divided or not after.isdisjoint(rest):
            if op in PARTIAL and not divided:
                return None
            after.add(k)
            before.update(rest)
    before.update(graph.operand(x) for x in ends)
    return [Symbol(graph, k) for k in before - after]


def exists(e: Any, box: Boxes) -> bool:
    """Whether everything that Python evaluates for the loop is proved to be defined on the whole box."""
    condition, numbers = requirements_of(e), _evaluated(e)
    if condition is False or numbers is None:
        return False
    search = BranchAndBound(_Defined(e, box, numbers, condition))
    search.run(MAX_DEFINED_BOXES, np.inf)
    return search.proved


class _Defined(Divisible):
    """The claim that the numbers (k,) are finite and the condition holds on the whole box."""

    def __init__(self, e: Any, box: Boxes, numbers: list[Any], condition: Any):
        self.e, self.starts, self.width, self.numbers = e, box.ends, box.hi - box.lo, len(numbers)
        self.program = Program(e.graph, [*numbers, *([] if condition is True else [condition])], branches=True)

    def split(self, lo: np.ndarray, hi: np.ndarray, count: int) -> Decision:
        boxes, k = Boxes.of(lo, hi, self.width.shape[1]), self.numbers
        low, high = self.program.enclosed(inputs(self.e, boxes, boxes.lo, boxes.hi), len(boxes))
        holds = np.isfinite(low[:, :k]).all(1) & np.isfinite(high[:, :k]).all(1) & (low[:, k:] == 1.0).all(1)
        return Decision(holds, np.argmax((boxes.hi - boxes.lo) / self.width, axis=1))


def undefined_at(e: Any, box: Boxes, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """A state of the box, and parameters, near which the loop is undefined; None if none is found."""
    condition, rng = requirements_of(e), np.random.default_rng(seed)
    half = box.hi[0]
    if isinstance(condition, bool):
        return None if condition else (half, e.model)
    x = rng.uniform(-half, half, (UNDEFINED_STATES, len(half)))
    x[: UNDEFINED_STATES // 4] = np.where(rng.random((UNDEFINED_STATES // 4, len(half))) < 0.5, -half, half) * (
        1.0 - 2.0 * NEIGHBOUR_OFFSET
    )
    p = rng.uniform(box.p_lo[0], box.p_hi[0], (UNDEFINED_STATES, len(box.p_lo[0])))
    program, missing = Program(e.graph, [condition]), np.ones(UNDEFINED_STATES, bool)
    for off in (0.0, NEIGHBOUR_OFFSET, -NEIGHBOUR_OFFSET):
        missing &= program.values(e.at(x + off * half, p), UNDEFINED_STATES)[:, 0] == 0.0
    k = int(np.argmax(missing))
    return (x[k], p[k]) if missing[k] else None


JUMPING = ("where", "floor", "rint", "atan2", "copysign", "fmod", "remainder")
EVERYWHERE = {  # operations that are defined for all numbers and continuous
    *("load", "const", "add", "sub", "mul", "neg", "sin", "cos", "abs", "min", "max", "and", "not", *COMPARED),
    *("exp", "expm1", "exp2", "sinh", "cosh", "tanh", "asinh", "cbrt", "hypot"),
}
# lines through the box on which a jump is sought, and their subdivision
JUMP_LINES, LINE_PARTS, BISECTIONS = 200, 32, 30
MARGIN = 1e-9  # relative to the values on both sides: smaller differences are no jump

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
    """Whether V of a traced loop is proved to be continuous for all states and times."""
    graph, numbers = loop.graph, dict(enumerate(loop.numbers.tolist()))
    moving = {loop.t.index, *(y.index for y in loop.y.tolist())}
    nodes = graph.needed([graph.operand(loop.value)])
    intervals: dict[int, tuple[Any, Any]] = {}
    for k in nodes:
        if graph.nodes[k][0] == "load":
            x = numbers.get(graph.nodes[k][2]) if k not in moving else None
            intervals[k] = (-np.inf, np.inf) if x is None else (x, x)
    divisors = [graph.nodes[k][2] for k in nodes if graph.nodes[k][0] == "div"]
    low, high = Program(graph, [Symbol(graph, k) for k in divisors]).enclosed(intervals, 1)
    if not ((low > 0.0) | (high < 0.0)).all():
        return False
    fixed = {k: x for k, (x, _) in intervals.items() if k not in moving}
    rest = {graph.nodes[k][0] for k in nodes} - EVERYWHERE - {"div", "where"}
    return not rest and all(_meets(graph, k, fixed) for k in _discontinuous_nodes(graph, loop.value, moving))


def jump_of(equations: Any, box: Boxes, seed: int) -> Jump | None:
    """A state of the box, with the model's parameters, at which V jumps for certain; None if none is found."""
    e, rng = equations, np.random.default_rng(seed)
    p = e.model[None].repeat(LINE_PARTS + 1, 0)
    for _ in range(JUMP_LINES if (nodes := _open(e, box)) else 0):
        a, b = rng.uniform(box.lo[0], box.hi[0], (2, len(e.x)))
        if e.timed:
            p[:, -1] = rng.uniform(box.p_lo[0, -1], box.p_hi[0, -1], 1 if rng.random() < 0.5 else len(p))
        x = a + np.linspace(0.0, 1.0, LINE_PARTS + 1)[:, None] * (b - a)
        for k in nodes:
            switch, side = _switch(e.graph, k)
            switched = Program(e.graph, [switch]).values(e.at(x, p), len(x))[:, 0]
            for i in np.flatnonzero(np.diff(switched) != 0.0)[:1]:
                jump = _confirmed(e, k, switch, side, np.hstack([x, p])[i : i + 2])
                if jump is not None:
                    return jump
    return None


def _open(e: Any, box: Boxes) -> list[int]:
    """The nodes of V that may jump inside the box."""
    graph, intervals = e.graph, inputs(e, box, box.lo, box.hi)
    moving = {*e.x, e.loop.t.index}
    return [
        k for k in _discontinuous_nodes(graph, e.loop.value, moving)
        if not _settled(graph, k, intervals) and not _meets(graph, k, e.numbers)
    ]  # fmt: skip


def _discontinuous_nodes(graph: Any, F: Any, moving: set[int]) -> Iterator[int]:
    for k in graph.needed([graph.operand(F)]):
        op, *rest = graph.nodes[k]
        if op in JUMPING and degree_in(graph, Symbol(graph, rest[0] if op == "where" else k), moving):
            yield k


def _settled(graph: Any, k: int, intervals: Intervals) -> bool:
    """Whether the node does not jump inside one box."""
    op, *rest = graph.nodes[k]
    low, high = Program(graph, [Symbol(graph, rest[0] if op == "where" else k)], branches=True).enclosed(intervals, 1)
    if op == "where":  # encloses 1 if the condition certainly holds, 0 if it certainly does not
        return bool(low[0, 0] == 1.0 or high[0, 0] == 1.0)
    return bool(np.isfinite(low[0, 0]) and np.isfinite(high[0, 0]))


def _meets(graph: Any, node: int, numbers: Mapping[int, float]) -> bool:
    """Whether both sides of a branch agree wherever a comparison in its condition changes."""
    values = {tuple(graph.nodes[k][1:]): x for k, x in numbers.items()}
    op, condition, *sides = graph.nodes[node]
    if op != "where":
        return False
    for u, v in _comparisons(graph, condition):
        ways = [[{u: Symbol(graph, v)}], [{v: Symbol(graph, u)}]]
        for inner, other in ((u, v), (v, u)):
            if graph.nodes[inner][0] == "abs":
                y, edge = graph.nodes[inner][1], Symbol(graph, other)
                ways.append([{y: edge}, {y: neg(edge)}])
        if not any(all(_agree(graph, sides, new, values) for new in replaced) for replaced in ways):
            return False
    return True


def _agree(graph: Any, sides: list[int], new: dict[int, Any], values: dict[tuple[int, int], float]) -> bool:
    a, b = substituted(graph, [Symbol(graph, x) for x in sides], new)
    return identical(graph, [(a, b)], values)


def _comparisons(graph: Any, node: int) -> Iterator[tuple[int, int]]:
    op, *rest = graph.nodes[node]
    if op in COMPARED:
        yield rest[0], rest[1]
    for x in rest if op in ("and", "or", "not") else ():
        yield from _comparisons(graph, x)


def _switch(graph: Any, k: int) -> tuple[Any, Callable[[float], Any]]:
    """(a number whose zero is the jump of the node, a function of it that continues the node across the jump)."""
    op, *rest = graph.nodes[k]
    if op == "where":
        condition, a, b = rest
        return where(Condition(graph, condition), 1.0, 0.0), lambda s: Symbol(graph, a if s else b)
    a, *b = (Symbol(graph, x) for x in rest)
    if op in ("floor", "rint"):
        return Symbol(graph, k), lambda s: s
    if op == "atan2":  # crossing from y < 0 to y >= 0 with x < 0
        sign = where(compare("lt", a, 0.0), -1.0, 1.0)
        return sign, lambda s: add(binary("atan2", neg(a), neg(b[0])), s * math.pi)
    if op == "copysign":
        return where(compare("lt", b[0], 0.0), -1.0, 1.0), lambda s: mul(unary("abs", a), s)
    whole = unary("rint", div(sub(a, Symbol(graph, k)), b[0]))
    return whole, lambda s: sub(a, mul(b[0], s))


def _confirmed(e: Any, k: int, switch: Any, side: Callable[[float], Any], ends: np.ndarray) -> Jump | None:
    """Bisect between two states (with parameters) to the jump, and enclose V on both sides."""
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
    intervals = inputs(e, box, box.lo, box.hi)
    if e.graph.nodes[k][0] == "atan2" and not _enclosed(e, e.graph.nodes[k][2], intervals)[1][2] < 0.0:
        return None
    lo, hi = _enclosed(e, switch, intervals)
    if not (lo[0] == hi[0] == first and lo[1] == hi[1] == last):
        return None
    sides = [_enclosed(e, substituted(e.graph, [e.loop.value], {k: side(s)})[0], intervals) for s in (first, last)]
    (a, b), (c, d) = ((lo[2], hi[2]) for lo, hi in sides)
    margin = MARGIN * max(map(abs, (a, b, c, d)))
    return Jump(low[:n], low[n:], (0.5 * (a + b), 0.5 * (c + d))) if b + margin < c or d + margin < a else None


def _enclosed(e: Any, F: Any, intervals: Intervals) -> tuple[np.ndarray, np.ndarray]:
    lo, hi = Program(e.graph, [Symbol(e.graph, F) if isinstance(F, int) else F], branches=True).enclosed(intervals, 3)
    return lo[:, 0], hi[:, 0]


def vacuous(half: np.ndarray, ball: np.ndarray) -> bool:
    """Whether a box with these half widths is inside the ellipsoid with these half axes."""
    return float(((half / ball) ** 2).sum()) <= 1.0
