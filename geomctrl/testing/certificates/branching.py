"""Branch and bound with quadratic forms: proves F < allowed on a box and divides boxes that are not decided."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomctrl.tracing.proofs.identities import degree_in

from .deciding import about_zero, largest
from .quadratic import Bounds, Boxes, joined

CHUNK = 512  # boxes per evaluation
MIN_SIDE_RATIO = 1e-4  # relative to the widest side: thinner sides (as at a branch) are divided last
SAMPLE = 3  # undecided boxes with which the effect of dividing each side is estimated

Progress = Callable[[float], Any]  # receives the decided fraction of the box


def no_progress(share: float) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Task:
    """The claim F < allowed on the box, outside the ball sum (x / ball)^2 < 1 (None: for x != 0), where V <= level."""

    bounds: Bounds
    box: Boxes
    ball: np.ndarray | None
    allowed: float = 0.0
    above: Bounds | None = None  # bounds of -V
    level: float = np.inf


@dataclass
class Outcome:
    """leaves: decided boxes that cover the domain. left: undecided ones, and their fraction of the volume.

    out_of_time: whether the time limit ended the search before the budget of boxes was used.
    """

    leaves: list[Boxes] = field(default_factory=list)
    left: list[Boxes] = field(default_factory=list)
    count: int = 0
    share_left: float = 1.0
    seconds: float = 0.0
    out_of_time: bool = False

    @property
    def proved(self) -> bool:
        return not self.left


def prove(task: Task, max_boxes: int, seconds: float, progress: Progress = no_progress) -> Outcome:
    """Divide boxes until all are decided, `max_boxes` were evaluated, or `seconds` have passed."""
    start, out = time.perf_counter(), Outcome()
    width = np.concatenate([task.box.hi[0] - task.box.lo[0], task.box.p_hi[0] - task.box.p_lo[0]])
    work = at_ends(task)
    sides = np.flatnonzero((width > 0.0) & _helpful_sides(task) & (work.ends[0][0] < work.ends[1][0]))
    volume, gains, tried, remaining = np.full(len(work), 1.0 / len(work)), np.zeros(0), 0, 1.0
    while len(work) and out.count < max_boxes:
        out.out_of_time = time.perf_counter() - start >= seconds
        if out.out_of_time:
            break
        now, later = slice(max(0, len(work) - CHUNK), None), slice(0, max(0, len(work) - CHUNK))
        boxes, share, work, volume = work[now], volume[now], work[later], volume[later]
        out.count += len(boxes)
        merit = merits(task, boxes)
        done = merit > 0.0
        if done.any():
            out.leaves.append(boxes[done])
        remaining -= share[done].sum()
        progress(min(1.0 - remaining, 1.0))
        if done.all():
            continue
        rest = boxes[~done]
        if out.count >= tried:  # at increasing intervals
            sample = rest[np.argsort(merit[~done])[:: -max(1, len(rest) // SAMPLE)][:SAMPLE]]
            gains, tried = _gains(task, sample, sides, width), int(1.5 * out.count)
        work = joined(work, _halved(rest, sides, gains, width))
        volume = np.concatenate([volume, 0.5 * share[~done], 0.5 * share[~done]])
    out.left, out.share_left = ([work], max(remaining, 0.0)) if len(work) else ([], 0.0)
    out.seconds = time.perf_counter() - start
    return out


MAX_ENDS = 8  # largest number of parameters replaced by their ends: 2^8 boxes


def at_ends(task: Task) -> Boxes:
    """The box; if F is monotone in parameters, one box for every choice of their ends."""
    e, box = task.bounds.equations, task.box
    p, errors = e.parameters, e.errors
    felt = [
        k for k in e.monotone
        if box.p_lo[0, k] < box.p_hi[0, k] and degree_in(e.graph, task.bounds.F, {p[k], errors[k]})
    ]  # fmt: skip
    mass = [k for k in e.monotone if k not in felt and any(degree_in(e.graph, x, {p[k], errors[k]}) for x in e.mass)]
    felt = [*felt, *(k for k in mass if box.p_lo[0, k] < box.p_hi[0, k])]
    if not felt or len(felt) > MAX_ENDS:
        return box
    choices = np.array(list(itertools.product((False, True), repeat=len(felt))))
    lo, hi = (np.repeat(x, len(choices), 0) for x in (box.p_lo, box.p_hi))
    ends = np.where(choices, hi[:, felt], lo[:, felt])
    lo[:, felt] = hi[:, felt] = ends
    x_lo, x_hi = (np.repeat(x, len(choices), 0) for x in (box.lo, box.hi))
    return Boxes(x_lo, x_hi, lo, hi)


def merits(task: Task, boxes: Boxes) -> np.ndarray:
    """(boxes,): positive for decided boxes."""
    form = task.bounds.form(boxes)
    above = largest(form, boxes, task.ball, task.allowed)
    margin = np.maximum(about_zero(form, task.bounds.scale, task.ball, task.allowed), task.allowed - above)
    if task.ball is not None:
        margin = np.where(((boxes.far / task.ball) ** 2).sum(1) < 1.0 - 1e-12, np.inf, margin)
    if task.above is not None:
        margin = np.maximum(margin, -task.level - largest(task.above.form(boxes), boxes, None, -task.level))
    return margin


def _helpful_sides(task: Task) -> np.ndarray:
    """The sides whose division may help: not those of parameters in which F is affine and bounded exactly."""
    e, F = task.bounds.equations, task.bounds.F
    mass = e.mass if degree_in(e.graph, F, set(e.inverse)) > 0 else []
    angles = {k for k in e.angles if k is not None and degree_in(e.graph, F, {k})}
    places = [x for k, x in zip(e.angles, e.places) if k in angles]
    felt = [
        any(degree_in(e.graph, x, {p}) > 0 for x in (F, *places))
        or any(degree_in(e.graph, x, {p, error}) for x in mass)
        for p, error in zip(e.parameters, e.errors)
    ]
    return np.concatenate([np.ones(len(e.x), bool), felt])


def _gains(task: Task, sample: Boxes, sides: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Benefit for a box of halving each side, per fraction of the side that remains."""
    n, (lo, hi) = sample.lo.shape[1], sample.ends
    lows, highs = [], []
    for i in sides:
        middle = 0.5 * (lo[:, i] + hi[:, i])
        for a, b in ((lo[:, i], middle), (middle, hi[:, i])):
            low, high = lo.copy(), hi.copy()
            low[:, i], high[:, i] = a, b
            lows.append(low)
            highs.append(high)
    lacks = _distance_from_decision(merits(task, Boxes.of(np.concatenate(lows), np.concatenate(highs), n))).reshape(
        len(sides), 2, len(lo)
    )
    gain = (_distance_from_decision(merits(task, sample)) - 0.75 * lacks.max(1) - 0.25 * lacks.min(1)).mean(1)
    share = ((hi - lo) / np.where(width > 0.0, width, 1.0)).mean(0)[sides]
    gain = np.maximum(gain, 0.0) / np.maximum(share, 1e-12)
    return gain + (1e-3 * gain.max() or 1.0)  # without any benefit the widest side is divided


def _distance_from_decision(merit: np.ndarray) -> np.ndarray:
    """Distance of a box from being decided, as an exponent; bounds that are still infinite count little."""
    return np.log(np.clip(-merit, 1e-9, 1e9))


def _halved(boxes: Boxes, sides: np.ndarray, gains: np.ndarray, width: np.ndarray) -> Boxes:
    """Both halves of every box, divided where the benefit is largest."""
    lo, hi = boxes.ends
    shares = (hi - lo)[:, sides] / width[sides]
    thin = shares < MIN_SIDE_RATIO * shares.max(1, keepdims=True)
    return boxes.halved(sides[np.argmax(np.where(thin, 0.0, gains * shares), axis=1)])
