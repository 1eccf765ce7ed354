"""Claims about a barrier h on boxes: decisions for branch and bound, and the S-procedure for limits of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.tracing.branch_and_bound import Decision, Divisible, Ends

from .held import PILOT
from .steps import ALL, ERR, Layout, bounds

MIN_SIDE_RATIO = 2.0**-14  # of a part of the box that is divided further
MAX_FACTOR = 1e9  # of a limit


@dataclass(frozen=True, eq=False)
class BarrierClaim(Divisible):
    """A claim about h and h' on boxes, for branch and bound."""

    problem: Any
    is_decided: Callable[[Layout, Any, Any], bool]
    starts: Ends
    values: Callable[..., tuple[Layout, Any, Any]] | None = None
    chunk, pilot = 1, PILOT

    @np.errstate(all="ignore")  # infinite bounds decide nothing
    def split(self, lo: np.ndarray, hi: np.ndarray, count: int) -> Decision:
        done, sides = np.zeros(len(lo), bool), np.full(len(lo), -1)
        least = MIN_SIDE_RATIO * (self.starts[1].max(0) - self.starts[0].min(0))
        for k, (a, b) in enumerate(zip(lo, hi)):
            layout, h, rate = (self.values or self.problem.values)(a, b)
            done[k] = h is not None and rate is not None and self.is_decided(layout, h, rate)
            if not done[k]:
                rows = () if h is None or rate is None else (rate,) if self.problem.is_program else (h, rate)
                sides[k] = _side(a, b, least, layout, rows)
        return Decision(done, sides)


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
    program = linprog(costs, sides, np.append(-slope, slope), bounds=(0.0, MAX_FACTOR))
    for factor, sign, row in zip(
        program.x if program.x is not None else (), (1.0, -1.0, *[-1.0] * len(limits)), rows[1]
    ):
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
