"""Branch and bound: boxes are halved until all are decided, a violation is found, or the budget is spent.

A `Divisible` decides boxes and names the side along which each of the others is halved. Boxes wait on a stack, so that
memory grows with the depth and not with their number; with `best_first` those with the largest bound come first. They
are evaluated in chunks, whose size depends on the claim alone, so that every machine evaluates the same boxes.

A search that is not done after the claim's pilot continues for a while with few boxes at a time, chosen at random,
until it has seen boxes of all lengths, unless other processes take part. The shares of boxes that are halved, by
length, give the expected number of boxes.

`testing.reach` divides its box itself, because the pieces are its result: the budget limits their number, and a piece
that can not be enclosed until the end is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

MIN_CHUNK = 512  # number of boxes in the first evaluation, unless the claim's chunk is smaller
BLOCK, MIN_BLOCKS, BLOCK_BUDGET = 4096, 16, 4096  # boxes per block for a process, blocks, boxes evaluated in a block
PROBES, MAX_DEPTH, MIN_OPEN = 256, 50, 0.01  # of the estimate of further boxes; share of the paths that must be open
PROBED, MAX_LEVELS = 64, 512  # boxes per evaluation until the expected number is known; counted halvings of a start
MAX_SAVED_BYTES = 2**30  # bytes of decided boxes that are kept for saving a proof

Ends = tuple[np.ndarray, np.ndarray]  # lo and hi, (boxes, sides) each
Block = tuple[np.ndarray, np.ndarray, np.ndarray]  # lo, hi, and a number for each box
Progress = Callable[[float, str], Any]  # receives the decided fraction of the volume, and the expected cost as text
Spread = Callable[[list[tuple[Ends, float, float]]], Iterator[tuple[int, "Part"]]]  # `part_of` in other processes


def no_progress(share: float, cost: str) -> None:
    """Show no progress."""


class Decision(NamedTuple):
    """What is known of boxes.

    decided (boxes,). side (boxes,): the side to halve, -1 where none may be halved. violation: a point that violates
    the claim. bound (boxes,): upper bounds of the claim's function. how (boxes,): a number, kept with decided boxes.
    """

    decided: np.ndarray
    side: np.ndarray
    violation: np.ndarray | None = None
    bound: Any = np.inf
    how: Any = 0


class Divisible:
    """A claim about all points of boxes.

    starts: the boxes that must be decided, equally large; their sides are those of their hull, or have length zero.
    chunk: largest number of boxes per evaluation. pilot: number of boxes after which the expected number of boxes is
    found, and the rest is spread over processes.
    """

    starts: Ends
    chunk: int = MIN_CHUNK
    pilot: int = 2_000
    best_first: bool = False

    def split(self, lo: np.ndarray, hi: np.ndarray, count: int) -> Decision:
        """Decide boxes; count: number of boxes that were evaluated before."""
        raise NotImplementedError

    def trial(self) -> Divisible:
        """The same claim; boxes that it decides have no effect on how this one divides others."""
        return self


class Part(NamedTuple):
    """What another process has decided of a block of boxes; leaves: None if there were too many to keep.

    left: open boxes. stuck: those that can not be halved.
    """

    leaves: Block | None
    left: Ends
    stuck: Ends
    bound: float
    count: int
    violation: np.ndarray | None


def part_of(claim: Divisible, lo: np.ndarray, hi: np.ndarray, boxes: float, seconds: float) -> Part:
    """Decide a block of boxes."""
    search = BranchAndBound(claim, (lo, hi))
    search.run(boxes, seconds)
    open_boxes, stuck = search.ends(search._pending), search.ends(search._stuck)
    return Part(search.leaves, open_boxes, stuck, search.bound, search.count, search.violation)


class BranchAndBound:
    """The search for a proof or a violation of a claim; `run` continues where it has stopped. No interrupt loses a box.

    boxes: those to decide, instead of the claim's `starts`. Results: `count` of evaluated boxes, `bound` in decided
    boxes, `violation` (sides,) or None, `done`, the decided fraction of the volume, `leaves` (lo, hi, how), the decided
    boxes, and `left`, the others. `out_of_time`, `interrupted`: whether the time limit or an interrupt ended it before
    the budget of boxes was used. `expected`: an estimate of the number of boxes of the whole search, or None as long as
    there is none. `more`: an estimate of the number of further boxes, at the end.
    """

    def __init__(self, claim: Divisible, boxes: Ends | None = None):
        self.claim = claim
        lo, hi = claim.starts
        self._widths, self._starts = hi.max(0) - lo.min(0), len(lo)
        self._widths[self._widths == 0.0] = 1.0
        lo, hi = claim.starts if boxes is None else boxes
        self._none = lo[:0], hi[:0]
        self._pending = [(lo, hi, np.full(len(lo), np.inf))]
        self._stuck: list[Block] = []
        self._leaves: list[Block] | None = []
        self._bytes, self.count, self.done, self.bound, self.more, self.seconds = 0, 0, 0.0, -np.inf, 0.0, 0.0
        self.out_of_time = self.interrupted = False
        self.violation: np.ndarray | None = None
        self.expected: float | None = None
        self._probes_left, self._rng = 0 if claim.best_first else MAX_DEPTH, np.random.default_rng(0)
        self._levels = np.zeros((3, MAX_LEVELS), np.int64)  # number of first, evaluated, and halved boxes by depth
        self._levels[0] = self._by_depth(lo, hi)

    @property
    def proved(self) -> bool:
        return not self._pending and not self._stuck and self.violation is None

    @property
    def status(self) -> str:
        return "refuted" if self.violation is not None else "proved" if self.proved else "undecided"

    @property
    def leaves(self) -> Block | None:
        """(lo, hi, how) of the decided boxes; None if there were too many to keep."""
        if self._leaves is None:
            return None
        lo, hi, how = (np.concatenate(x) for x in zip((*self._none, np.empty(0, np.uint8)), *self._leaves))
        return lo, hi, how

    @property
    def left(self) -> Ends:
        """The boxes that are not decided."""
        return self.ends([*self._pending, *self._stuck])

    def ends(self, blocks: list[Block]) -> Ends:
        lo, hi = (np.concatenate(x) for x in zip(self._none, *(x[:2] for x in blocks)))
        return lo, hi

    @property
    def largest_bound(self) -> float:
        """Upper bound of the claim's function in all boxes, decided or not."""
        return max([self.bound, *(float(bound.max()) for *_, bound in (*self._pending, *self._stuck))])

    @property
    def share_left(self) -> float:
        """Fraction of the volume that is not decided."""
        return float(self.shares(*self.left).sum())

    def shares(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """The fraction of the volume of `starts` of each box; sides of length zero count as one."""
        return np.where(hi > lo, (hi - lo) / self._widths, 1.0).prod(1) / self._starts

    def run(self, boxes: float, seconds: float, progress: Progress = no_progress, spread: Spread | None = None) -> None:
        """Continue until all boxes are decided or the budget is spent; spread: decides blocks in other processes."""
        started = time.perf_counter()
        try:
            while self._pending and self.count < boxes and self.violation is None:
                left = seconds - (time.perf_counter() - started)
                self.out_of_time = left <= 0.0
                if self.out_of_time:
                    break
                probing = spread is None and self.expected is None and self._probes_left > 0
                if self.count >= self.claim.pilot and probing:
                    self._probe(boxes - self.count)
                elif spread is None or self.count < self.claim.pilot:
                    self.step(boxes - self.count)
                    if self.expected is not None:
                        self._expect()
                else:
                    self._spread(spread, boxes - self.count, left, progress)
                progress(min(self.done, 1.0), self.cost(self.seconds + time.perf_counter() - started))
        finally:
            self.seconds += time.perf_counter() - started

    def cost(self, seconds: float) -> str:
        """The expected number of boxes and time as text, after so many seconds; empty if it is not known."""
        if self.expected is None or not self.count:
            return ""
        expected = max(self.expected, self.count + sum(len(lo) for lo, *_ in self._pending))
        return f"about {_rounded(expected)} boxes, {_rounded(expected * seconds / self.count)} s"

    def _probe(self, boxes: float) -> None:
        """Evaluate a few of the open boxes, those of most halvings first, to find the expected number of boxes."""
        if self._probes_left == MAX_DEPTH:
            lo, hi, bound = (np.concatenate(x) for x in zip(*self._pending))
            order = self._rng.permutation(len(lo))
            self._pending = [(lo[order], hi[order], bound[order])]
        self._probes_left -= 1
        self._evaluate(min(boxes, PROBED))
        if len(self._pending) and len(self._pending[-1][0]) > 1:
            lo, hi, bound = self._pending[-1]
            order = self._rng.permutation(len(lo))
            self._pending = [*self._pending[:-1], (lo[order], hi[order], bound[order])]
        self._expect()

    def _expect(self) -> None:
        """Set `expected` from the shares of boxes that are halved, if some boxes of each depth have been evaluated."""
        total, boxes = 0.0, 0.0
        for first, evaluated, halved in self._levels[:, : 2 + int(np.flatnonzero(self._levels.sum(0))[-1])].T.tolist():
            boxes += first
            if boxes and not evaluated:
                return
            total += boxes
            boxes = 2.0 * boxes * halved / evaluated if evaluated else 0.0
        self.expected = total

    def _by_depth(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """(MAX_LEVELS,): how many of the boxes are the result of so many halvings."""
        depth = np.rint(-np.log2(self.shares(lo, hi) * self._starts))
        return np.bincount(np.clip(depth, 0, MAX_LEVELS - 1).astype(np.intp), minlength=MAX_LEVELS)

    def step(self, boxes: float) -> None:
        """Evaluate the next chunk, of at most so many boxes, and halve those that are not decided."""
        chunk = self.claim.chunk
        if self.count < self.claim.pilot and self._probes_left:
            chunk = max(chunk, PROBED)  # boxes of all regions are seen first
        self._evaluate(min(chunk, max(MIN_CHUNK, self.count), boxes))

    def _evaluate(self, boxes: float) -> None:
        rest, lo, hi, before = self._next(int(max(boxes, 1)))
        answer = self.claim.split(lo, hi, self.count)
        bound, decided = np.minimum(answer.bound, before), answer.decided
        left = lo[~decided], hi[~decided], bound[~decided]
        children, stuck = halves(*left[:2], answer.side[~decided], self._widths)
        self._levels[1] += self._by_depth(lo, hi)
        self._levels[2] += self._by_depth(left[0][~stuck], left[1][~stuck])
        self._keep(lo[decided], hi[decided], np.broadcast_to(answer.how, len(lo))[decided].astype(np.uint8))
        self.bound = max(self.bound, float(bound[decided].max(initial=-np.inf)))
        self.violation = answer.violation
        if stuck.any():
            self._stuck.append((left[0][stuck], left[1][stuck], left[2][stuck]))
        if not stuck.all():
            bound = np.tile(left[2][~stuck], 2)
            order = np.argsort(bound) if self.claim.best_first else slice(None)
            rest.append((children[0][order], children[1][order], bound[order]))
        self.count += len(lo)
        self._pending = rest  # last, so that an interrupt loses nothing

    def _keep(self, lo: np.ndarray, hi: np.ndarray, how: np.ndarray) -> None:
        self.done += float(self.shares(lo, hi).sum())
        self._bytes += lo.nbytes + hi.nbytes + how.nbytes
        if self._bytes > MAX_SAVED_BYTES:
            self._leaves = None
        if self._leaves is not None and len(lo):
            self._leaves.append((lo, hi, how))

    def _next(self, count: int) -> tuple[list[Block], Any, Any, Any]:
        """(The remaining stack, the next boxes, their bounds); with `best_first` blocks are in the order of bounds."""
        rest, taken, least = [], [], -np.inf
        if self.claim.best_first:
            bounds = np.concatenate([bound for *_, bound in self._pending])
            least = np.partition(bounds, -min(count, len(bounds)))[-min(count, len(bounds))]
        for block in reversed(self._pending):
            first = np.searchsorted(block[2], least) if self.claim.best_first else 0
            cut = max(int(first), len(block[0]) - count)
            count -= len(block[0]) - cut
            rest += [(block[0][:cut], block[1][:cut], block[2][:cut])] if cut else []
            taken += [[x[cut:] for x in block]] if cut < len(block[0]) else []
        lo, hi, bound = (np.concatenate(x) for x in zip(*taken))
        return rest[::-1], lo, hi, bound

    def _spread(self, spread: Spread, boxes: float, seconds: float, progress: Progress) -> None:
        """Let other processes decide all open boxes, as far as the budget allows."""
        started = time.perf_counter()
        lo, hi, bound = (np.concatenate(x) for x in zip(*self._pending))
        size = max(1, min(BLOCK, len(lo) // MIN_BLOCKS))
        waiting = {k: (lo[a : a + size], hi[a : a + size]) for k, a in enumerate(range(0, len(lo), size))}
        each = max(1.0, min(max(BLOCK_BUDGET, 8 * self.claim.chunk), boxes / len(waiting)))
        try:
            for k, part in spread([(block, each, seconds) for block in waiting.values()]):
                if part.leaves is None:
                    left = sum(float(self.shares(*ends).sum()) for ends in (part.left, part.stuck))
                    self.done, self._leaves = self.done + float(self.shares(*waiting[k]).sum()) - left, None
                else:
                    self._keep(*part.leaves)
                self.bound = max(self.bound, part.bound)
                self.count += part.count
                if len(part.stuck[0]):
                    self._stuck.append((*part.stuck, np.full(len(part.stuck[0]), bound.max())))
                waiting[k] = part.left
                progress(min(self.done, 1.0), self.cost(self.seconds + time.perf_counter() - started))
                if part.violation is not None:
                    self.violation = part.violation
                    break
        finally:
            self._pending = [
                (*block, np.full(len(block[0]), bound.max())) for block in waiting.values() if len(block[0])
            ]

    def estimate(self, rng: np.random.Generator) -> float:
        """The number of boxes that the open ones are expected to need; if it is not known, from random halves of a few.

        A path of halves stands for 2^d boxes at its depth d (Knuth, Mathematics of Computation 29, 1975). Depths at
        which less than one path in a hundred is open do not count, because few samples are unreliable.
        """
        (lo, hi), trial = self.left, self.claim.trial()
        if self.expected is not None and not self._stuck:
            self.more = max(self.expected - self.count, float(len(lo)))
            return self.more
        probes = min(PROBES, max(self.count, self.claim.chunk))
        self.more, weight = 0.0, len(lo) / probes
        rows = rng.integers(max(len(lo), 1), size=probes if len(lo) and self.violation is None else 0)
        lo, hi = lo[rows], hi[rows]
        for _ in range(MAX_DEPTH):
            if len(lo) < MIN_OPEN * probes or not len(lo):
                break
            self.more += weight * len(lo)
            answer = trial.split(lo, hi, self.count)
            left = ~answer.decided
            (lo, hi), _ = halves(lo[left], hi[left], answer.side[left], self._widths)
            cut = len(lo) // 2
            rows = np.arange(cut) + cut * rng.integers(2, size=cut)
            lo, hi, weight = lo[rows], hi[rows], 2.0 * weight
        return self.more


def _rounded(x: float) -> str:
    """A positive number with two digits, without an exponent from 1 on."""
    return f"{x:.2g}" if x < 1.0 else f"{float(f'{x:.2g}'):.15g}"


def halves(lo: np.ndarray, hi: np.ndarray, side: np.ndarray, widths: np.ndarray) -> tuple[Ends, np.ndarray]:
    """(The halves of the boxes, the boxes that can not be halved: side -1, or no number lies between their ends).

    Along `side`; if that is too narrow for its magnitude, along the widest in units of `widths`.
    """
    rows = np.arange(len(lo))
    a, b = lo[rows, side], hi[rows, side]
    narrow = (b - a <= 4.0 * np.spacing(np.maximum(np.abs(a), np.abs(b)))) & (side >= 0)
    if narrow.any():
        side = np.where(narrow, ((hi - lo) / widths).argmax(axis=1), side)
        a, b = lo[rows, side], hi[rows, side]
    middle = 0.5 * a + 0.5 * b
    stuck = ~((a < middle) & (middle < b)) | (side < 0)
    good = rows[~stuck]
    upper_lo, lower_hi = lo[good].copy(), hi[good].copy()
    cut = np.arange(len(good)), side[good]
    upper_lo[cut] = lower_hi[cut] = middle[good]
    return (np.concatenate([lo[good], upper_lo]), np.concatenate([lower_hi, hi[good]])), stuck
