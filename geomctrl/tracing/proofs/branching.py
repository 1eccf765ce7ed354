"""Branch and bound: boxes are halved until each is settled, a counterexample is found, or the budget is spent.

Boxes wait on a stack, so that memory grows with the depth and not with their number. They are evaluated in chunks, in
SIMD lanes and several threads. The size of a chunk depends on the claim alone, so that every machine evaluates the same
boxes. A box is halved in the coordinate along which f varies most, |slope| times width.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .claims import Claim
from .forms import Bounds, Forms

CHUNK = 32_768  # largest number of boxes per evaluation; the stack contains up to as many per level
CHUNK_NUMBERS = 2**20
CHUNK_OPERATIONS = 2**26  # per chunk, about 0.1 s, for progress and interrupts
MAX_SAVED_BYTES = 2**30  # bytes of settled boxes that are kept for saving the proof
EXCLUDED = 9  # kind of settled box, in addition to the forms: a constraint can not hold in it


BLOCK, MIN_BLOCKS = 4096, 16  # boxes that a process receives, number of blocks

Boxes = tuple[np.ndarray, np.ndarray]  # lo and hi, (k, n) each


@dataclass
class SettledPart:
    """What another process has settled of a block of boxes; left: the others."""

    settled: tuple[np.ndarray, np.ndarray, np.ndarray]
    left: Boxes
    bound: float
    count: int
    counterexample: np.ndarray | None


Spread = Callable[[Claim, list[tuple[np.ndarray, np.ndarray, float, float]]], Iterator[tuple[int, SettledPart]]]


def settled_part(claim: Claim, lo: np.ndarray, hi: np.ndarray, boxes: float, seconds: float) -> SettledPart:
    """Settle a block of boxes."""
    branching = Branching(claim, boxes=(lo, hi))
    branching.run(boxes, seconds)
    none = np.empty((0, claim.n))
    settled = branching.settled
    parts = [*branching.pending, *branching.stuck]
    lo, hi = (np.concatenate(x) for x in zip(*parts)) if parts else (none, none)
    kept = settled.boxes() if settled.lo else (none, none, np.empty(0, np.uint8))
    return SettledPart(kept, (lo, hi), branching.bound, branching.count, branching.counterexample)


@dataclass
class UnsettledBoxes:
    """Unsettled boxes. share: of the domain's volume; worst: an upper bound of f on them."""

    lo: np.ndarray
    hi: np.ndarray
    volume: float
    share: float
    worst: float

    def __str__(self) -> str:
        boxes = f"{self.volume:.3g} in {len(self.lo)} boxes"
        return f"{self.share:.3g} of the volume is left, {boxes}, where f <= {self.worst:.6g}"


@dataclass
class SettledBoxes:
    """Settled boxes, and how; `complete` while all of them are kept."""

    lo: list[np.ndarray] = field(default_factory=list)
    hi: list[np.ndarray] = field(default_factory=list)
    how: list[np.ndarray] = field(default_factory=list)
    complete: bool = True
    bytes: int = 0

    def add(self, lo: np.ndarray, hi: np.ndarray, how: np.ndarray) -> None:
        self.bytes += lo.nbytes + hi.nbytes + how.nbytes
        if self.complete and self.bytes > MAX_SAVED_BYTES:
            self.complete = False
            self.lo, self.hi, self.how = [], [], []
        if self.complete and len(lo):
            self.lo.append(lo)
            self.hi.append(hi)
            self.how.append(how)

    def boxes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.concatenate(self.lo), np.concatenate(self.hi), np.concatenate(self.how)


class Branching:
    """The search for a proof or a counterexample of a claim; `run` continues where it has stopped.

    level: the claim is f <= level, normally 0. Progress: `count` of boxes, `bound`, the largest upper bound of f on
    settled boxes, `counterexample` (n,) or None, `done`, the settled fraction of the domain's volume, and `left()`.
    """

    def __init__(
        self, claim: Claim, forms: Forms | None = None, *, threads: int = 1, level: float = 0.0,
        boxes: Boxes | None = None,
    ):  # fmt: skip
        self.claim, self.forms, self.threads, self.level = claim, forms or Forms(claim), threads, level
        self.pending: list[Boxes] = [(claim.lo[None], claim.hi[None]) if boxes is None else boxes]
        self.stuck: list[Boxes] = []
        self.settled = SettledBoxes()
        largest = min(CHUNK, CHUNK_NUMBERS // (2 * claim.n), CHUNK_OPERATIONS // max(self.forms.trace.operations, 1))
        self.largest_chunk = max(largest, 64)
        self.count, self.chunk, self.done, self.bound = 0, min(256, self.largest_chunk), 0.0, -np.inf
        self.out_of_time = False
        self.counterexample: np.ndarray | None = None
        self._widths = np.where(claim.hi > claim.lo, claim.hi - claim.lo, 1.0)

    @property
    def proved(self) -> bool:
        return not self.pending and not self.stuck and self.counterexample is None

    def run(self, boxes: float, seconds: float, progress: Callable[[float], Any] = lambda fraction: None) -> None:
        """Continue until the claim is settled or the budget is spent; `out_of_time`: whether time ended it."""
        end = time.perf_counter() + seconds
        while self.pending and self.counterexample is None and self.count < boxes:
            self.out_of_time = time.perf_counter() >= end
            if self.out_of_time:
                break
            self.step(boxes - self.count)
            progress(min(self.done, 1.0))

    def spread(self, spread: Spread, boxes: float, seconds: float, progress: Callable[[float], Any]) -> None:
        """Let other processes settle all pending boxes, as far as the budget allows."""
        lo, hi = (np.concatenate(x) for x in zip(*self.pending))
        cuts = range(0, len(lo), max(1, min(BLOCK, len(lo) // MIN_BLOCKS)))
        blocks = list(zip(cuts, [*cuts[1:], len(lo)]))
        waiting = dict(enumerate((lo[a:b], hi[a:b]) for a, b in blocks))
        limits = max((boxes - self.count) / len(blocks), 1.0), seconds
        try:
            for k, part in spread(self.claim, [(*block, *limits) for block in waiting.values()]):
                self.settled.add(*part.settled)
                self.bound = max(self.bound, part.bound)
                self.count += part.count
                self.done += self._volume(*part.settled[:2]).sum()
                waiting[k] = part.left
                progress(min(self.done, 1.0))
                if part.counterexample is not None:
                    self.counterexample = part.counterexample
                    break
        finally:
            self.pending = [block for block in waiting.values() if len(block[0])]

    def step(self, boxes: float = CHUNK) -> None:
        """Evaluate one chunk of boxes; an interrupt loses no box."""
        rest, lo, hi = self._next(int(min(self.chunk, max(boxes, 1))))
        bounds = self.forms(lo, hi, self.threads)
        excluded = bounds.excluded > 0.0
        proved = self.claim.decided(bounds.upper, self.level) & ~excluded
        decided, refuting = excluded | proved, self.refuting(bounds)
        how = np.where(excluded, EXCLUDED, bounds.how)[decided].astype(np.uint8)
        left = lo[~decided], hi[~decided]
        children, stuck = halves(*left, bounds.split[~decided], self._widths)

        self.settled.add(lo[decided], hi[decided], how)
        self.bound = max(self.bound, bounds.upper[proved].max(initial=-np.inf))
        self.done += self._volume(lo[decided], hi[decided]).sum()
        if refuting.any():
            self.counterexample = bounds.point[np.argmax(np.where(refuting, bounds.value, -np.inf))]
        if stuck.any():
            self.stuck.append((left[0][stuck], left[1][stuck]))
        self.pending = [*rest, children] if len(children[0]) else rest  # last, so that an interrupt loses nothing

        self.count += len(lo)
        if len(lo) == self.chunk:
            self.chunk = min(2 * self.chunk, self.largest_chunk)

    def _next(self, boxes: int) -> tuple[list[Boxes], np.ndarray, np.ndarray]:
        """(The remaining stack, the next boxes)."""
        rest, taken, count = self.pending[:], [], 0
        while rest and count < boxes:
            lo, hi = rest.pop()
            cut = max(len(lo) - (boxes - count), 0)
            if cut:
                rest.append((lo[:cut], hi[:cut]))
            taken.append((lo[cut:], hi[cut:]))
            count += len(lo) - cut
        los, his = zip(*taken)
        return rest, np.concatenate(los), np.concatenate(his)

    def refuting(self, bounds: Bounds) -> np.ndarray:
        """Whether the claim is certainly violated at the boxes' points."""
        wrong = bounds.value >= 0.0 if self.claim.strict else bounds.value > 0.0
        return wrong & (bounds.admitted <= 0.0) & (self.level == 0.0)

    def _volume(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """Volumes relative to the domain's; sides of length zero count as one."""
        flat = self.claim.hi == self.claim.lo
        return np.where(flat, 1.0, (hi - lo) / self._widths).prod(axis=1)

    def left(self) -> UnsettledBoxes:
        """The unsettled boxes, evaluated again for their worst bound."""
        parts = [*self.pending, *self.stuck]
        if not parts:
            none = np.empty((0, self.claim.n))
            return UnsettledBoxes(none, none, 0.0, 0.0, -np.inf)
        lo, hi = (np.concatenate(x) for x in zip(*parts))
        share = float(self._volume(lo, hi).sum())
        worst = max(
            self.forms(lo[k : k + CHUNK], hi[k : k + CHUNK], self.threads).upper.max() for k in range(0, len(lo), CHUNK)
        )
        return UnsettledBoxes(lo, hi, share * float(self._widths.prod()), share, float(worst))


def halves(
    lo: np.ndarray, hi: np.ndarray, coordinate: np.ndarray, widths: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """(The halves of the boxes, the boxes that can not be halved: no number lies between their ends).

    Along `coordinate`; if that is too narrow for its magnitude, along the widest in units of `widths`.
    """
    rows = np.arange(len(lo))
    a, b = lo[rows, coordinate], hi[rows, coordinate]
    narrow = b - a <= 4.0 * np.spacing(np.maximum(np.abs(a), np.abs(b)))
    if narrow.any():
        coordinate = np.where(narrow, ((hi - lo) / widths).argmax(axis=1), coordinate)
        a, b = lo[rows, coordinate], hi[rows, coordinate]
    middle = 0.5 * a + 0.5 * b
    stuck = ~((a < middle) & (middle < b))
    good = rows[~stuck]
    upper_lo, lower_hi = lo[good].copy(), hi[good].copy()
    cut = np.arange(len(good)), coordinate[good]
    upper_lo[cut] = lower_hi[cut] = middle[good]
    return (np.concatenate([lo[good], upper_lo]), np.concatenate([lower_hi, hi[good]])), stuck


def estimate(branching: Branching, rng: np.random.Generator, probes: int = 512, depth: int = 60) -> float:
    """Approximate lower bound of the number of boxes of a proof (Knuth, Mathematics of Computation 29 (1975)).

    It follows random halves from the domain down: at depth d, the open fraction of 2^d boxes is halved again. Depths at
    which less than one path in a hundred is open do not count, because few samples are unreliable.
    """
    claim = branching.claim
    lo, hi = np.tile(claim.lo, (probes, 1)), np.tile(claim.hi, (probes, 1))
    total = 0.0
    for d in range(depth):
        if len(lo) < 0.01 * probes:
            break
        total += 2.0**d * len(lo) / probes
        bounds = branching.forms(lo, hi, branching.threads)
        undecided = ~((bounds.excluded > 0.0) | claim.decided(bounds.upper, branching.level))
        (lo, hi), _ = halves(lo[undecided], hi[undecided], bounds.split[undecided], branching._widths)
        cut = len(lo) // 2
        side = np.where(rng.random(cut) < 0.5, 0, cut) + np.arange(cut)
        lo, hi = lo[side], hi[side]
    return total
