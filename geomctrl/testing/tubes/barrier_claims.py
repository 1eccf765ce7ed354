"""Claims about a barrier h on boxes: decisions for branch and bound, and the S-procedure for limits of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.testing.certificates.quadratic import Boxes

from .held import PILOT
from .steps import Layout, bounds

MIN_SIDE_RATIO = 2.0**-14  # of a part of the box that is divided further


@dataclass(frozen=True, eq=False)
class BarrierClaim:
    """A claim about h and h' on boxes, for branch and bound."""

    problem: Any
    is_decided: Callable[[Layout, Any, Any], bool]
    box: Boxes
    starts: Boxes
    values: Callable[..., tuple[Layout, Any, Any]] | None = None
    chunk: int = 1

    @property
    def pilot(self) -> int:
        return PILOT

    def split(self, boxes: Boxes, count: int) -> tuple[np.ndarray, np.ndarray, None]:
        done, sides = np.zeros(len(boxes), bool), np.full(len(boxes), -1)
        lower, upper = self.box.ends
        for k, (lo, hi) in enumerate(zip(*boxes.ends)):
            layout, h, rate = (self.values or self.problem.values)(lo, hi)
            done[k] = h is not None and rate is not None and self.is_decided(layout, h, rate)
            if not done[k]:
                sides[k] = _side(lo, hi, MIN_SIDE_RATIO * (upper - lower)[0], layout, h, rate)
        return done, sides, None


def without_limits(layout: Layout, h: Any, rate: Any, *limits: Any) -> Any:
    """h' less limits that are not negative, by factors that remove most of its linear part (the S-procedure)."""
    if rate is None or not limits:
        return rate
    from scipy.optimize import nnls

    along_h, slope, *slopes = (layout.polynomial(row)[0] for row in (h, rate, *limits))
    columns = np.array([*slopes, along_h, -along_h]).T
    if not (np.isfinite(columns).all() and np.isfinite(slope).all() and columns.size):
        return rate
    for factor, row in zip(nnls(columns, slope)[0], limits):
        constant = layout.forms(np.array([[-factor, *np.zeros(layout.coefficients - 1)]]))[0]
        rate = layout.plus(rate[None], layout.times(constant, row[None]))[0]
    return rate


def _side(lo: np.ndarray, hi: np.ndarray, least: np.ndarray, layout: Layout, h: Any, rate: Any) -> int:
    """The side along which h and h' vary most, or the longest one; -1 if no side may be divided."""
    sides = np.flatnonzero(hi > lo)
    if h is None or rate is None:
        score = (hi - lo)[sides] / np.maximum(least, 1e-300)[sides]
    else:
        score = np.zeros(len(sides))
        for row in (h, rate):
            b, A = layout.polynomial(row)
            score += (np.abs(b) + 2.0 * np.abs(A).sum(1)) / max(float(bounds(row)[1] - bounds(row)[0]), 1e-300)
    score = np.where((hi - lo)[sides] > least[sides], score, -1.0)
    return int(sides[np.argmax(score)]) if len(sides) and score.max() >= 0.0 else -1
