"""The order test: whether a growth seen in one step stays or vanishes when the step is repeated in finer parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

MAX_PARTS = 64  # of a step
STAYS, VANISHES, UNDECIDED = "stays", "vanishes", "undecided"


class Refinement(NamedTuple):
    """STAYS, VANISHES or UNDECIDED; the growths with 1, 2, 4, ... parts; the observed order."""

    outcome: str
    growths: list[float]
    order: float = np.nan


def extrapolated(growths: list[float], allowed: float, order: int) -> tuple[str, float]:
    """(outcome, observed order) of growths with 1, 2, 4, ... parts by a method of this order.

    Twice the remainder that the last two differences d1, d2 estimate is the error of the last growth: with r = d1 / d2
    it is d2 / (min(r, 2^order) - 1), and three times the larger difference where they do not converge (r <= 2).
    """
    if len(growths) < 3 or not np.isfinite(growths[-3:]).all():
        return UNDECIDED, np.nan
    before, last = abs(growths[-2] - growths[-3]), abs(growths[-1] - growths[-2])
    ratio = before / last if last > 0.0 else 2.0**order
    error = 2.0 * (last / (min(ratio, 2.0**order) - 1.0) if ratio > 2.0 else 3.0 * max(before, last))
    seen = float(np.log2(max(ratio, 0.5)))
    if growths[-1] - error > allowed:
        return STAYS, seen
    return (VANISHES if growths[-1] + error <= allowed else UNDECIDED), seen


def refined(growth: Callable[[int], float], allowed: float, order: int) -> Refinement:
    """The order test of growth(parts), as fine as it takes; STAYS is said by two successive refinements."""
    growths, parts, outcome, previous, seen = [growth(1)], 1, UNDECIDED, UNDECIDED, np.nan
    while parts < MAX_PARTS and (outcome == UNDECIDED or (outcome == STAYS and previous != STAYS)):
        parts, previous = 2 * parts, outcome
        growths.append(growth(parts))
        outcome, seen = extrapolated(growths, allowed, order)
    if outcome == STAYS and previous != STAYS:
        outcome = UNDECIDED
    return Refinement(outcome, growths, seen)
