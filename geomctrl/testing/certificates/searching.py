"""The search for a state that refutes a claim: ascent from many starts, before and beside any proof."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from geomctrl.compiler.derivatives import pullback
from geomctrl.proofs.interpreted import valued

from .quadratic import Bounds, Boxes, inputs, settled

STARTS, STEPS = 96, 60


class Found(NamedTuple):
    """The largest F that was found less what was allowed, and where: x (2n,), parameters."""

    excess: float
    x: np.ndarray
    p: np.ndarray


class Search:
    """F, and its slopes in the state and in the parameters, by numbers."""

    def __init__(self, bounds: Bounds):
        e = bounds.equations
        self.bounds, self.e = bounds, e
        angles = [k for k in e.angles if k is not None]
        slopes = pullback(e.graph, [bounds.F], [1.0], [*e.x, *angles, *e.parameters, *e.errors])
        self.outputs = settled(e.graph, [bounds.F, *slopes])
        self.with_angle = [i for i, k in enumerate(e.angles) if k is not None]

    def __call__(self, x: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(F, dF/dx, dF/dp) at states (m, 2n) with parameters (m, k)."""
        e, boxes = self.e, Boxes(x, x, p, p)
        given: dict[int, Any] = {k: lo for k, (lo, _) in inputs(e, boxes, x, x).items()}
        rows = valued(e.graph, self.outputs, given, len(x))
        n, m, k = len(e.x), len(self.with_angle), len(e.parameters)
        slope = rows[:, 1 : 1 + n].copy()
        slope[:, self.with_angle] += rows[:, 1 + n : 1 + n + m]
        of_p = rows[:, 1 + n + m : 1 + n + m + k] + rows[:, 1 + n + m + k :]
        return rows[:, 0], slope, of_p


def search(
    bounds: Bounds, box: Boxes, ball: np.ndarray | None, allowed: float, seed: int = 0, shell: np.ndarray | None = None
) -> Found:
    """The largest F on the box outside the ball, over all parameters, that ascent finds.

    shell: half axes of which an ellipsoid a tenth as large is left out where there is no ball, F being zero inside it.
    """
    find, rng = Search(bounds), np.random.default_rng(seed)
    ball = 0.1 * shell if ball is None and shell is not None else ball
    lo, hi, p_lo, p_hi = box.lo[0], box.hi[0], box.p_lo[0], box.p_hi[0]
    half = 0.5 * (hi - lo)
    x = rng.uniform(lo, hi, (STARTS, len(lo))) * rng.uniform(0.0, 1.0, (STARTS, 1)) ** 2
    x[: STARTS // 4] = np.where(rng.random((STARTS // 4, len(lo))) < 0.5, lo, hi)
    p = np.where(rng.random((STARTS, len(p_lo))) < 0.5, p_lo, p_hi)
    x = _outside(x, ball, lo, hi)
    best, best_x, best_p = np.full(STARTS, -np.inf), x, p
    for step in range(STEPS):
        F, slope, of_p = find(x, p)
        better = F > best
        best = np.where(better, F, best)
        best_x, best_p = np.where(better[:, None], x, best_x), np.where(better[:, None], p, best_p)
        p = np.where(of_p > 0.0, p_hi, np.where(of_p < 0.0, p_lo, p))
        direction = np.nan_to_num(slope) * half
        size = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        reach = 0.4 * 0.9**step * np.maximum(np.abs(best_x / half).max(1, keepdims=True), 1e-3)
        x = _outside(np.clip(best_x + reach * half * direction / size, lo, hi), ball, lo, hi)
        if step % 12 == 11:  # from where the best is
            x[STARTS // 2 :] = best_x[np.argmax(best)] + reach[STARTS // 2 :] * half * rng.normal(
                size=(STARTS - STARTS // 2, len(lo))
            )
            x = _outside(np.clip(x, lo, hi), ball, lo, hi)
    k = int(np.argmax(best))
    return Found(float(best[k]) - allowed, best_x[k], best_p[k])


def _outside(x: np.ndarray, ball: np.ndarray | None, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """x, moved out of the ball."""
    if ball is None:
        return x
    size = np.sqrt(((x / ball) ** 2).sum(1, keepdims=True))
    return np.clip(np.where(size < 1.0, x / np.maximum(size, 1e-12) * (1.0 + 1e-9), x), lo, hi)
