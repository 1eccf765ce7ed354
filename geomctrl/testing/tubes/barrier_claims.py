"""Claims about a barrier h on boxes: decisions for branch and bound, and the S-procedure for limits of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.testing.certificates.quadratic import Boxes

from .held import PILOT
from .steps import ALL, ERR, Layout, bounds

MIN_SIDE_RATIO = 2.0**-14  # of a part of the box that is divided further
MAX_FACTOR = 1e9  # of a limit


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
                rows = () if h is None or rate is None else (rate,) if self.problem.is_program else (h, rate)
                sides[k] = _side(lo, hi, MIN_SIDE_RATIO * (upper - lower)[0], layout, rows)
        return done, sides, None


def without_limits(layout: Layout, h: Any, rate: Any, *limits: Any) -> Any:
    """h' + nu h less limits that are not negative, with factors for the largest lower bound (the S-procedure).

    The linear program for the factors takes the quadratic parts by their sizes. Any factors are valid where h = 0.
    """
    if rate is None or not limits:
        return rate
    from scipy.optimize import linprog

    rows = np.array([h, -h, *(-x for x in limits)])[:, :ERR], np.array([h, h, *limits])
    linear = rows[0][:, 1 : 1 + layout.symbols]
    rest = rows[1][:, ALL] - np.abs(linear).sum(1)  # of quadratic parts and errors
    slope, k = rate[1 : 1 + layout.symbols], layout.symbols
    if not (np.isfinite(rows[1]).all() and np.isfinite(rate).all()):
        return rate
    costs = np.append(rest - rows[0][:, 0], np.ones(k))
    sides = np.block([[linear.T, -np.eye(k)], [-linear.T, -np.eye(k)]])
    found = linprog(costs, sides, np.append(-slope, slope), bounds=(0.0, MAX_FACTOR))
    for factor, sign, row in zip(found.x if found.x is not None else (), (1.0, -1.0, *[-1.0] * len(limits)), rows[1]):
        if factor > 0.0:
            constant = layout.forms(np.array([[sign * factor, *np.zeros(layout.coefficients - 1)]]))[0]
            rate = layout.plus(rate[None], layout.times(constant, row[None]))[0]
    return rate


def _side(lo: np.ndarray, hi: np.ndarray, least: np.ndarray, layout: Layout, rows: Sequence[np.ndarray]) -> int:
    """The side along which the rows vary most, without any the longest one; -1 if no side may be divided."""
    sides = np.flatnonzero(hi > lo)
    if not rows:
        score = (hi - lo)[sides] / np.maximum(least, 1e-300)[sides]
    else:
        score = np.zeros(len(sides))
        for row in rows:
            b, A = layout.polynomial(row)
            linear = np.abs(b) if len(rows) > 1 else 0.01 * np.abs(b)
            score += (linear + 2.0 * np.abs(A).sum(1)) / max(float(bounds(row)[1] - bounds(row)[0]), 1e-300)
    score = np.where((hi - lo)[sides] > least[sides], score, -1.0)
    return int(sides[np.argmax(score)]) if len(sides) and score.max() >= 0.0 else -1
