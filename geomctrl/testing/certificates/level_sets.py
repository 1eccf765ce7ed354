"""Level sets of V, which bound a region of attraction.

Three levels are computed: the largest one inside a box, the one in which all solutions end, and the largest one on
which the claim about V' holds.
"""

from __future__ import annotations

import numpy as np

from geomctrl.testing.settings import Budget
from geomctrl.tracing.proofs.interpreted import valued
from geomctrl.tracing.symbols import neg

from .branching import Outcome, Task, prove
from .deciding import largest
from .equations import Equations
from .quadratic import Bounds, Boxes, joined
from .searching import at_random

CHUNK = 512


def least_on_boundary(below: Bounds, box: Boxes, tolerance: float = 0.02, max_boxes: int = 20_000) -> float:
    """A lower bound of V on the boundary of the box, for all parameters; `below` bounds -V.

    Within `tolerance` of the smallest value seen there, if `max_boxes` boxes suffice.
    """
    work, count, lowest = _faces(box), 0, np.inf
    low, seen = -largest(below.form(work), work), _seen(below, work)
    while True:
        settled_ = low >= (1.0 - tolerance) * seen
        lowest = min(lowest, low[settled_].min(initial=np.inf))
        work, low = work[~settled_], low[~settled_]
        if not len(work) or count > max_boxes:
            return max(float(min(lowest, low.min(initial=np.inf))), 0.0)
        order = np.argsort(low)
        work, low = work[order], low[order]
        now, work, later = work[:CHUNK], work[CHUNK:], low[CHUNK:]
        count += len(now)
        halves = now.halved(np.argmax((now.hi - now.lo) / (box.hi - box.lo), axis=1))
        fresh = np.maximum(-largest(below.form(halves), halves), np.tile(low[: len(now)], 2))
        seen = min(seen, _seen(below, halves))
        work, low = joined(work, halves), np.concatenate([later, fresh])


def _faces(box: Boxes) -> Boxes:
    n = box.lo.shape[1]
    lo, hi = np.repeat(box.lo, 2 * n, 0), np.repeat(box.hi, 2 * n, 0)
    for i in range(n):
        hi[2 * i, i], lo[2 * i + 1, i] = box.lo[0, i], box.hi[0, i]
    return Boxes(lo, hi, np.repeat(box.p_lo, 2 * n, 0), np.repeat(box.p_hi, 2 * n, 0))


def _seen(below: Bounds, boxes: Boxes) -> float:
    """The smallest V over all parameters at the centres of the boxes."""
    e = below.equations
    x = 0.5 * (boxes.lo + boxes.hi)
    high = below.values(Boxes(x, x, boxes.p_lo, boxes.p_hi))[1]
    return float((-high).min()) if len(e.x) else np.inf


def max_in_ball(above: Bounds, box: Boxes, ball: np.ndarray) -> float:
    """An upper bound of V on the part of the box in the ball sum (x / ball)^2 <= 1; `above` bounds V."""
    lo, hi = np.maximum(box.lo, -ball), np.minimum(box.hi, ball)
    form = above.form(Boxes(lo, hi, box.p_lo, box.p_hi))
    N = -form.N[0] * ball[:, None] * ball
    peak = max(float(np.linalg.eigvalsh(N)[-1]), 0.0) * (1.0 + 1e-12)
    return float(form.top[0] + np.linalg.norm(form.slope[0] * ball) + peak)


SAMPLES = 40_000
SHARES = (0.99, 0.97, 0.95, 0.92, 0.88, 0.8, 0.65, 0.5, 0.3, 0.1)


def lowest_violation(
    e: Equations, box: Boxes, ball: np.ndarray | None, rate: float, offset: float, seed: int = 0
) -> float:
    """The smallest V among random states of the box, outside the ball, that violate V' < - rate V + offset."""
    rng = np.random.default_rng(seed)
    lo, hi, p_lo, p_hi = box.lo[0], box.hi[0], box.p_lo[0], box.p_hi[0]
    least = np.inf
    for k in range(4):  # concentrates on states with low V
        x = rng.uniform(lo, hi, (SAMPLES // 4, len(lo))) * (0.7**k)
        p = at_random(e, p_lo, p_hi, len(x), rng)
        V, F = valued(e.graph, [e.loop.value, e.along_vector_field(rate)], e.at(x, p), len(x)).T
        bad = ~(offset > F)
        if ball is not None:
            bad &= ((x / ball) ** 2).sum(1) >= 1.0
        least = min(least, float(V[bad].min(initial=np.inf)))
    return least


def largest_level(
    e: Equations, task: Task, scale: np.ndarray, bound: float, budget: Budget
) -> tuple[float, Task, Outcome] | None:
    """(level, proof of the claim on V <= level, method) for the first fraction of `bound` that can be proved."""
    above = Bounds(e, neg(e.value), scale)
    for share in SHARES:
        level = share * bound
        now = Task(task.bounds, task.box, task.ball, task.allowed, above, level)
        outcome = prove(now, budget.boxes, budget.seconds)
        if outcome.proved:
            return level, now, outcome
    return None
