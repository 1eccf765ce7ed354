"""Order test: whether growth observed in one step remains or vanishes when the step is refined."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

MAX_PARTS = 64  # of a step
AGREEMENT = 0.05, 0.25  # tolerance between growths with other numbers of parts: always allowed, and the maximum
STAYS, VANISHES, UNDECIDED = "stays", "vanishes", "undecided"


class Refinement(NamedTuple):
    """STAYS, VANISHES or UNDECIDED; growths with 1, 2, 4, ... parts; observed order."""

    outcome: str
    growths: list[float]
    order: float = np.nan


class OrderTest(NamedTuple):
    """STAYS, VANISHES or UNDECIDED; observed order; error of the last growth."""

    outcome: str
    order: float = np.nan
    error: float = np.inf


def extrapolated(growths: list[float], allowed: float, order: int) -> OrderTest:
    """Classify growths with 1, 2, 4, ... parts of a method of the given order.

    The error of the last growth is twice the remainder estimated from the last two differences d1, d2: with r = d1 / d2
    the remainder is d2 / (min(r, 2^order) - 1). Without convergence (r <= 2) it is three times the larger difference.
    """
    if len(growths) < 3 or not np.isfinite(growths[-3:]).all():
        return OrderTest(UNDECIDED)
    before, last = abs(growths[-2] - growths[-3]), abs(growths[-1] - growths[-2])
    ratio = before / last if last > 0.0 else 2.0**order
    error = 2.0 * (last / (min(ratio, 2.0**order) - 1.0) if ratio > 2.0 else 3.0 * max(before, last))
    outcome = STAYS if growths[-1] - error > allowed else VANISHES if growths[-1] + error <= allowed else UNDECIDED
    return OrderTest(outcome, float(np.log2(max(ratio, 0.5))), error)


def refined(growth: Callable[[int], float], allowed: float, order: int) -> Refinement:
    """Order test of growth(parts), refined as far as necessary.

    STAYS requires two successive refinements and agreement with numbers of parts other than powers of two, because
    irregular growth, as of a chattering loop, sometimes looks converged by chance.
    """
    growths, parts, extrapolation, previous = [growth(1)], 1, OrderTest(UNDECIDED), UNDECIDED
    while parts < MAX_PARTS:
        parts, previous = 2 * parts, extrapolation.outcome
        growths.append(growth(parts))
        extrapolation = extrapolated(growths, allowed, order)
        stays = extrapolation.outcome == previous == STAYS and _agree(
            growth, growths[-1], parts, extrapolation.error, order
        )
        if stays or extrapolation.outcome == VANISHES:
            return Refinement(extrapolation.outcome, growths, extrapolation.order)
    return Refinement(UNDECIDED, growths, extrapolation.order)


def _agree(growth: Callable[[int], float], last: float, parts: int, error: float, order: int) -> bool:
    """Whether growths with slightly fewer parts agree with the last one within their larger errors."""
    for n in range(parts - 1, parts - 6, -1):
        low, high = AGREEMENT
        if not abs(growth(n) - last) <= min(max(error * (parts / n) ** order, low * abs(last)), high * abs(last)):
            return False
    return True
