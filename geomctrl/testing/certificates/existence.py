"""Whether a closed loop has a value in all of a box, also what is left out of its equations, as 0 log(x)."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.tracing.proofs.interpreted import Program
from geomctrl.tracing.symbols import Condition, both, invert

from .quadratic import Boxes, inputs

MOST_BOXES = 4_000
STATES = 512
NEAR = 1e-9  # of the box: a state has no value only if its neighbours have none


def requirements_of(e: Any) -> Any:
    """What has to hold for the loop to have a value, True or a condition, but that mass matrices are positive definite:
    that is so for the robots that the claim is of."""
    good = e.loop.good
    return True if good is True else _without_pivots(e.graph, good.index)


def _without_pivots(graph: Any, at: int) -> Any:
    """A condition without those that something is positive, as the pivots of M; not folded anew, which drops more."""
    op, *rest = graph.nodes[at]
    if op == "and":
        return both(*(_without_pivots(graph, x) for x in rest))
    if op == "not":
        return invert(_without_pivots(graph, rest[0]))
    pivot = op == "lt" and graph.nodes[rest[0]][:2] == ("const", 0.0)
    return True if pivot else Condition(graph, at)


def exists(e: Any, box: Boxes) -> bool:
    """Whether the loop is proved to have a value in all of the box."""
    condition = requirements_of(e)
    if isinstance(condition, bool):
        return condition
    program, width = Program(e.graph, [condition], branches=True), box.hi[0] - box.lo[0]
    lo, hi, count = box.lo, box.hi, 0
    while len(lo) and count < MOST_BOXES:
        count += len(lo)
        p_lo, p_hi = (np.repeat(p, len(lo), 0) for p in (box.p_lo, box.p_hi))
        boxes = Boxes(lo, hi, p_lo, p_hi)
        left = program.enclosed(inputs(e, boxes, lo, hi), len(lo))[0][:, 0] != 1.0
        lo, hi = lo[left], hi[left]
        rows, at = np.arange(len(lo)), np.argmax((hi - lo) / width, axis=1)
        upper, lower = hi.copy(), lo.copy()
        upper[rows, at] = lower[rows, at] = 0.5 * (lo[rows, at] + hi[rows, at])
        lo, hi = np.concatenate([lo, lower]), np.concatenate([upper, hi])
    return not len(lo)


def undefined_at(e: Any, box: Boxes, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """A state of the box, and parameters, at which the loop has no value, nor beside it; None if none is found."""
    condition, rng = requirements_of(e), np.random.default_rng(seed)
    half = box.hi[0]
    if isinstance(condition, bool):
        return None if condition else (half, e.model)
    x = rng.uniform(-half, half, (STATES, len(half)))
    x[: STATES // 4] = np.where(rng.random((STATES // 4, len(half))) < 0.5, -half, half) * (1.0 - 2.0 * NEAR)
    p = rng.uniform(box.p_lo[0], box.p_hi[0], (STATES, len(box.p_lo[0])))
    program, missing = Program(e.graph, [condition]), np.ones(STATES, bool)
    for off in (0.0, NEAR, -NEAR):
        missing &= program.values(e.at(x + off * half, p), STATES)[:, 0] == 0.0
    k = int(np.argmax(missing))
    return (x[k], p[k]) if missing[k] else None
