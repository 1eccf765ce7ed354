"""Branch and bound: decides a claim on boxes, and divides those that are not decided.

`Task` is the claim F < allowed, decided by quadratic forms. Other claims (see testing.tubes) have the same attributes.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np

from geomctrl.tracing.proofs.identities import degree_in

from .deciding import about_zero, largest
from .quadratic import Bounds, Boxes, joined

CHUNK = 512  # boxes per evaluation
MIN_SIDE_RATIO = 1e-4  # relative to the widest side: thinner sides (as at a branch) are divided last
SAMPLE = 3  # undecided boxes with which the effect of dividing each side is estimated

PILOT = 2_000  # boxes that are evaluated here before the rest is spread over processes
BLOCK, BLOCK_BUDGET = 64, 4_096  # boxes that a process receives, and how many it evaluates before it returns the rest
PROBES, MAX_DEPTH = 256, 50  # of the estimate of further boxes

Progress = Callable[[float], Any]  # receives the decided fraction of the box
Spread = Callable[[list[tuple["Boxes", int, float]]], Iterator[tuple[int, "Outcome"]]]  # `prove` in other processes


def no_progress(share: float) -> None:
    """Show no progress."""


class Divisible(Protocol):
    """A claim about all points of boxes.

    box: one box. starts: the boxes that must be decided; all of them have sides of the box, or of length zero. chunk:
    number of boxes per evaluation. pilot: boxes that are evaluated here before the rest is spread over processes.
    """

    @property
    def box(self) -> Boxes: ...
    @property
    def starts(self) -> Boxes: ...
    @property
    def chunk(self) -> int: ...
    @property
    def pilot(self) -> int: ...

    def split(self, boxes: Boxes, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """(Decided boxes, side to halve of each other box or -1 for none, a point that violates the claim or None).

        count: number of boxes that were evaluated before.
        """
        ...


@dataclass(frozen=True)
class Task:
    """The claim F < allowed on the box, outside the ball sum (x / ball)^2 < 1 (None: for x != 0), where V <= level."""

    bounds: Bounds
    box: Boxes
    ball: np.ndarray | None
    allowed: float = 0.0
    above: Bounds | None = None  # bounds of -V
    level: float = np.inf

    @property
    def chunk(self) -> int:
        return CHUNK

    @property
    def pilot(self) -> int:
        return PILOT

    @property
    def starts(self) -> Boxes:  # pyright takes no cached property for one of `Divisible`
        return self._starts

    @cached_property
    def _starts(self) -> Boxes:
        return at_ends(self)

    @cached_property
    def _choice(self) -> _Choice:
        return _Choice(self)

    def split(self, boxes: Boxes, count: int) -> tuple[np.ndarray, np.ndarray, None]:
        merit = merits(self, boxes)
        done, sides = merit > 0.0, np.full(len(boxes), -1)
        if not done.all():
            sides[~done] = self._choice.sides_of(boxes[~done], merit[~done], count + len(boxes))
        return done, sides, None


class _Choice:
    """The side of each box along which it is halved: where the benefit, estimated for some boxes, is largest."""

    def __init__(self, task: Task):
        self.task, (lo, hi) = task, task.starts.ends
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


@dataclass
class Outcome:
    """leaves: decided boxes that cover the domain. left: undecided ones, and their fraction of the volume.

    out_of_time, interrupted: whether the time limit, or an interrupt, ended the search before the budget of boxes was
    used. more: an estimate of the number of further boxes that the undecided ones need; unreliable beyond a hundred
    times `count`.
    """

    leaves: list[Boxes] = field(default_factory=list)
    left: list[Boxes] = field(default_factory=list)
    count: int = 0
    share_left: float = 1.0
    seconds: float = 0.0
    out_of_time: bool = False
    interrupted: bool = False
    more: float = 0.0
    violation: np.ndarray | None = None

    @property
    def proved(self) -> bool:
        return not self.left

    @property
    def status(self) -> str:
        return "refuted" if self.violation is not None else "proved" if self.proved else "undecided"


def prove(
    task: Divisible, max_boxes: int, seconds: float, progress: Progress = no_progress, boxes: Boxes | None = None,
    spread: Spread | None = None,
) -> Outcome:  # fmt: skip
    """Divide boxes until all are decided, `max_boxes` were evaluated, `seconds` have passed, or an interrupt comes.

    A point that violates the claim ends it, too. boxes: those to decide, instead of the whole box. spread: decides
    lists of boxes in other processes.
    """
    search = _Search(task, boxes)
    out, end = search.out, search.started + seconds
    try:
        while len(search.work) and out.count < max_boxes and out.violation is None:
            out.out_of_time = time.perf_counter() >= end
            if out.out_of_time:
                break
            if spread is None or out.count < task.pilot:
                search.step()
            else:
                search.spread(spread, max_boxes, end)
            progress(min(1.0 - search.volume.sum() - search.stuck_share, 1.0))
    except KeyboardInterrupt:
        out.interrupted = True
    return search.outcome()


class _Search:
    """Open boxes (`work`), their fractions of the volume, and decided boxes; no interrupt loses a box."""

    def __init__(self, task: Divisible, boxes: Boxes | None):
        self.task, self.started, self.out = task, time.perf_counter(), Outcome()
        self.work = task.starts if boxes is None else boxes
        self.volume = shares(task, self.work)
        self.stuck, self.stuck_share = self.work[:0], 0.0  # boxes that can not be divided

    def step(self) -> None:
        """Evaluate the last boxes, and halve those that are not decided."""
        first = max(0, len(self.work) - self.task.chunk)
        boxes, share = self.work[first:], self.volume[first:]
        done, sides, violation = self.task.split(boxes, self.out.count)
        divided, stuck = ~done & (sides >= 0), ~done & (sides < 0)
        halves = boxes[divided].halved(sides[divided])
        work = joined(self.work[:first], halves)
        volume = np.concatenate([self.volume[:first], 0.5 * share[divided], 0.5 * share[divided]])
        if stuck.any():
            self.stuck = joined(self.stuck, boxes[stuck])
            self.stuck_share += share[stuck].sum()
        if done.any():
            self.out.leaves.append(boxes[done])
        self.work, self.volume, self.out.violation = work, volume, violation
        self.out.count += len(boxes)

    def spread(self, spread: Spread, max_boxes: int, end: float) -> None:
        """Let other processes decide all open boxes, as far as the budget allows."""
        blocks = [self.work[k : k + BLOCK] for k in range(0, len(self.work), BLOCK)]
        each = max(1, min(BLOCK_BUDGET, (max_boxes - self.out.count) // len(blocks)))
        seconds = max(end - time.perf_counter(), 0.0)
        left = {k: [block] for k, block in enumerate(blocks)}
        try:
            for k, part in spread([(block, each, seconds) for block in blocks]):
                self.out.leaves += part.leaves
                self.out.count += part.count
                left[k] = part.left
                if part.violation is not None:
                    self.out.violation = part.violation
                    break
        finally:
            work = [boxes for parts in left.values() for boxes in parts]
            self.work = reduce(joined, work, self.work[:0])
            self.volume = shares(self.task, self.work)

    def outcome(self) -> Outcome:
        out = self.out
        left = joined(self.work, self.stuck)
        out.left, out.share_left = ([left], float(self.volume.sum() + self.stuck_share)) if len(left) else ([], 0.0)
        out.seconds = time.perf_counter() - self.started
        return out


def estimated(task: Divisible, outcome: Outcome) -> Outcome:
    """The outcome with an estimate of the boxes that the open ones need, from random halves of a few (Knuth 1975)."""
    if not outcome.left or outcome.violation is not None:
        return outcome
    rng, work = np.random.default_rng(0), reduce(joined, outcome.left)
    boxes = work[rng.integers(len(work), size=min(PROBES, max(outcome.count, task.chunk)))]
    weight = np.full(len(boxes), len(work) / max(len(boxes), 1))
    for _ in range(MAX_DEPTH):
        if not len(boxes):
            break
        outcome.more += float(weight.sum())
        done, sides, _ = task.split(boxes, outcome.count)
        is_open = ~done & (sides >= 0)
        halves, weight = boxes[is_open].halved(sides[is_open]), 2.0 * weight[is_open]
        boxes = halves[np.arange(len(weight)) + len(weight) * rng.integers(2, size=len(weight))]
    return outcome


def shares(task: Divisible, boxes: Boxes) -> np.ndarray:
    """The fraction of the volume of `starts`, which are equally large, of each box."""
    (lo, hi), (a, b) = task.box.ends, boxes.ends
    with np.errstate(invalid="ignore"):  # sides of length zero count as one
        return np.where(b > a, (b - a) / (hi - lo), 1.0).prod(1) / len(task.starts)


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
