"""`Task`: the claim F < allowed on boxes, for branch and bound, decided by quadratic forms."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from geomctrl.tracing.branch_and_bound import (
    BranchAndBound,
    Decision,
    Divisible,
    Ends,
    Progress,
    Spread,
    no_progress,
)
from geomctrl.tracing.proofs.identities import degree_in

from .deciding import about_zero, largest
from .quadratic import Bounds, Boxes

MIN_SIDE_RATIO = 1e-4  # relative to the widest side: thinner sides (as at a branch) are divided last
SAMPLE = 3  # undecided boxes with which the effect of dividing each side is estimated


@dataclass(frozen=True)
class Task(Divisible):
    """The claim F < allowed on the box, outside the ball sum (x / ball)^2 < 1 (None: for x != 0), where V <= level."""

    bounds: Bounds
    box: Boxes
    ball: np.ndarray | None
    allowed: float = 0.0
    above: Bounds | None = None  # bounds of -V
    level: float = np.inf

    @cached_property
    def starts(self) -> Ends:  # pyright: ignore[reportIncompatibleVariableOverride]
        return at_ends(self).ends

    @cached_property
    def _choice(self) -> _Choice:
        return _Choice(self)

    def split(self, lo: np.ndarray, hi: np.ndarray, count: int) -> Decision:
        boxes = Boxes.of(lo, hi, self.box.lo.shape[1])
        merit = merits(self, boxes)
        done, sides = merit > 0.0, np.full(len(boxes), -1)
        if not done.all():
            sides[~done] = self._choice.sides_of(boxes[~done], merit[~done], count + len(boxes))
        return Decision(done, sides)

    def trial(self) -> Task:
        return replace(self)


class _Choice:
    """The side of each box along which it is halved: where the benefit, estimated for some boxes, is largest."""

    def __init__(self, task: Task):
        self.task, (lo, hi) = task, task.starts
        self.width = np.concatenate([task.box.hi[0] - task.box.lo[0], task.box.p_hi[0] - task.box.p_lo[0]])
        self.sides = np.flatnonzero((self.width > 0.0) & _helpful_sides(task) & (lo[0] < hi[0]))
        self.gains, self.tried = np.ones(len(self.sides)), 0

    def sides_of(self, boxes: Boxes, merit: np.ndarray, count: int) -> np.ndarray:
        if count >= self.tried:  # at increasing intervals
            sample = boxes[np.argsort(merit)[:: -max(1, len(boxes) // SAMPLE)][:SAMPLE]]
            self.gains = _gains(self.task, sample, self.sides, self.width)
            self.tried = int(1.5 * count)
        lo, hi = boxes.ends
        shares = (hi - lo)[:, self.sides] / self.width[self.sides]
        thin = shares < MIN_SIDE_RATIO * shares.max(1, keepdims=True)
        return self.sides[np.argmax(np.where(thin, 0.0, self.gains * shares), axis=1)]


def prove(
    task: Divisible, max_boxes: float, seconds: float, progress: Progress = no_progress, boxes: Ends | None = None,
    spread: Spread | None = None,
) -> BranchAndBound:  # fmt: skip
    """Decide all boxes, or `boxes`, as far as the budget allows; an interrupt ends the search, too."""
    search = BranchAndBound(task, boxes)
    try:
        search.run(max_boxes, seconds, progress, spread)
    except KeyboardInterrupt:
        search.interrupted = True
    return search


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
