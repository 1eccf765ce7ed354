"""The largest level of V below which V' is as claimed: a sample of where it is not, then proofs from there down."""

from __future__ import annotations

import numpy as np

from geomctrl.testing.settings import Budget
from geomctrl.tracing.proofs.interpreted import valued
from geomctrl.tracing.symbols import neg

from .branching import Outcome, Task, prove
from .equations import Equations
from .quadratic import Bounds, Boxes
from .searching import at_random

SAMPLES = 40_000
SHARES = (0.99, 0.97, 0.95, 0.92, 0.88, 0.8, 0.65, 0.5, 0.3, 0.1)


def lowest_bad(e: Equations, box: Boxes, ball: np.ndarray | None, rate: float, offset: float, seed: int = 0) -> float:
    """The least V among random states of the box, outside the ball, where V' is not below - rate V + offset."""
    rng = np.random.default_rng(seed)
    lo, hi, p_lo, p_hi = box.lo[0], box.hi[0], box.p_lo[0], box.p_hi[0]
    least = np.inf
    for k in range(4):  # ever nearer to where V is low
        x = rng.uniform(lo, hi, (SAMPLES // 4, len(lo))) * (0.7**k)
        p = at_random(e, p_lo, p_hi, len(x), rng)
        V, F = valued(e.graph, [e.loop.value, e.as_it_comes(rate)], e.at(x, p), len(x)).T
        bad = ~(offset > F)
        if ball is not None:
            bad &= ((x / ball) ** 2).sum(1) >= 1.0
        least = min(least, float(V[bad].min(initial=np.inf)))
    return least


def largest_level(
    e: Equations, task: Task, scale: np.ndarray, bound: float, budget: Budget
) -> tuple[float, Task, Outcome] | None:
    """(level, what was proved of V <= level, how) for the first share of `bound` for which a proof is found."""
    above = Bounds(e, neg(e.value), scale)
    for share in SHARES:
        level = share * bound
        now = Task(task.bounds, task.box, task.ball, task.allowed, above, level)
        outcome = prove(now, budget.boxes, budget.seconds)
        if outcome.proved:
            return level, now, outcome
    return None
