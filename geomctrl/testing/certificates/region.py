"""Level sets of V: the largest one inside a box, and the one that everything ends in."""

from __future__ import annotations

import numpy as np

from .deciding import largest
from .quadratic import Bounds, Boxes, joined

CHUNK = 512


def least_on_boundary(below: Bounds, box: Boxes, tolerance: float = 0.02, most: int = 20_000) -> float:
    """A lower bound of V on the boundary of the box, for all parameters; `below` bounds -V.

    Within `tolerance` of the least value seen there, if `most` boxes suffice for that.
    """
    work, count, found = _faces(box), 0, np.inf
    low, seen = -largest(below.form(work), work), _seen(below, work)
    while True:
        settled_ = low >= (1.0 - tolerance) * seen
        found = min(found, low[settled_].min(initial=np.inf))
        work, low = work[~settled_], low[~settled_]
        if not len(work) or count > most:
            return max(float(min(found, low.min(initial=np.inf))), 0.0)
        order = np.argsort(low)
        work, low = work[order], low[order]
        now, work, later = work[:CHUNK], work[CHUNK:], low[CHUNK:]
        count += len(now)
        halves = _halves(now, box)
        fresh = np.maximum(-largest(below.form(halves), halves), np.tile(low[: len(now)], 2))
        seen = min(seen, _seen(below, halves))
        work, low = joined(work, halves), np.concatenate([later, fresh])


def _faces(box: Boxes) -> Boxes:
    n = box.lo.shape[1]
    lo, hi = np.repeat(box.lo, 2 * n, 0), np.repeat(box.hi, 2 * n, 0)
    for i in range(n):
        hi[2 * i, i], lo[2 * i + 1, i] = box.lo[0, i], box.hi[0, i]
    return Boxes(lo, hi, np.repeat(box.p_lo, 2 * n, 0), np.repeat(box.p_hi, 2 * n, 0))


def _halves(boxes: Boxes, box: Boxes) -> Boxes:
    rows = np.arange(len(boxes))
    at = np.argmax((boxes.hi - boxes.lo) / (box.hi - box.lo), axis=1)
    middle = 0.5 * (boxes.lo[rows, at] + boxes.hi[rows, at])
    upper, lower = boxes.hi.copy(), boxes.lo.copy()
    upper[rows, at], lower[rows, at] = middle, middle
    p = np.concatenate([boxes.p_lo, boxes.p_lo]), np.concatenate([boxes.p_hi, boxes.p_hi])
    return Boxes(np.concatenate([boxes.lo, lower]), np.concatenate([upper, boxes.hi]), *p)


def _seen(below: Bounds, boxes: Boxes) -> float:
    """The least V, over all parameters, in the middle of the boxes."""
    e = below.equations
    x = 0.5 * (boxes.lo + boxes.hi)
    high = below.values(Boxes(x, x, boxes.p_lo, boxes.p_hi))[1]
    return float((-high).min()) if len(e.x) else np.inf


def most_in_ball(above: Bounds, box: Boxes, ball: np.ndarray) -> float:
    """An upper bound of V on the part of the box in the ball sum (x / ball)^2 <= 1; `above` bounds V."""
    lo, hi = np.maximum(box.lo, -ball), np.minimum(box.hi, ball)
    form = above.form(Boxes(lo, hi, box.p_lo, box.p_hi))
    N = -form.N[0] * ball[:, None] * ball
    most = max(float(np.linalg.eigvalsh(N)[-1]), 0.0) * (1.0 + 1e-12)
    return float(form.top[0] + np.linalg.norm(form.slope[0] * ball) + most)
