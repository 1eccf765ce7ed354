"""Runs the proofs of a certificate: with an interrupt, from boxes of an earlier attempt, and in other processes.

Other processes derive the inequality from the law, the plant and the claim, as this one does; only boxes are exchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from geomctrl.control.sweeping.executors import spread
from geomctrl.control.sweeping.job import pickled, unpickled
from geomctrl.errors import ArgumentError
from geomctrl.testing.settings import Budget

from .branching import Divisible, Outcome, Progress, Spread, estimated, no_progress, prove
from .certificate import UNDECIDED, Claim
from .quadratic import Boxes
from .resuming import earlier_boxes


class ProofRunner:
    """Decides tasks as a budget has it. After an interrupt all further ones are undecided.

    request: `CertificateRequest` and its arguments, from which other processes derive the tasks. statements: returns
    tasks by statement, for a level of V or None.
    """

    def __init__(self, budget: Budget, request: tuple, statements: Callable[[float | None], Mapping[str, Any]]):
        self.budget, self.request, self.statements, self.interrupted = budget, request, statements, False

    def __call__(
        self, statement: str, task: Divisible, max_boxes: int | None = None, progress: Progress = no_progress,
        level: float | None = None,
    ) -> Outcome:  # fmt: skip
        """The outcome of a task."""
        if self.interrupted:
            return Outcome(left=[task.box], interrupted=True)
        budget, spread = self.budget, None
        boxes = earlier_boxes(budget.resume, statement, task)
        if budget.executor is not None and statement in self.statements(level):
            spread = spreading(budget.executor, pickled_request(self.request), statement, level)
        limit = budget.boxes if max_boxes is None else max_boxes
        outcome = estimated(task, prove(task, limit, budget.seconds, progress, boxes, spread))
        self.interrupted = outcome.interrupted
        return outcome

    def answer(self, claim: Callable[[], Claim]) -> Claim:
        """A claim, undecided if an interrupt comes while it is not about boxes."""
        try:
            return claim()
        except KeyboardInterrupt:
            self.interrupted = True
            return Claim("a search for a counterexample, which was interrupted", UNDECIDED)


def pickled_request(arguments: tuple) -> bytes:
    """The arguments of a request as bytes, with functions of a script by value."""
    try:
        return pickled(arguments)
    except ArgumentError as error:  # it names the arguments of a sweep
        raise ArgumentError(
            f"controller, plant: expected objects that can be pickled for other processes, got {error.__cause__!r:.200}"
        ) from error


def spreading(executor: Any, request: bytes, statement: str, level: float | None) -> Spread:
    """`prove` for lists of boxes, by an executor."""

    def run(blocks: list[tuple[Boxes, int, float]]) -> Iterator[tuple[int, Outcome]]:
        arguments = ((request, statement, level, *boxes.ends, *limits) for boxes, *limits in blocks)
        for k, (leaves, left, count, violation) in spread(executor, decided_block, arguments):
            n = blocks[k][0].lo.shape[1]
            parts = [[Boxes.of(lo, hi, n)] if len(lo) else [] for lo, hi in (leaves, left)]
            yield k, Outcome(parts[0], parts[1], count, violation=violation)

    return run


def decided_block(
    request: bytes, statement: str, level: float | None, lo: np.ndarray, hi: np.ndarray, boxes: int, seconds: float
) -> tuple[Any, Any, int, Any]:
    """(Ends of decided boxes, ends of open ones, number of evaluated ones, a violation), in another process."""
    task = _task(request, statement, level)
    outcome = prove(task, boxes, seconds, boxes=Boxes.of(lo, hi, len(task.box.lo[0])))
    if outcome.interrupted:
        raise KeyboardInterrupt
    none = [(lo[:0], hi[:0])]
    leaves, left = (
        [np.concatenate(x) for x in zip(*(part.ends for part in parts), *none)]
        for parts in (outcome.leaves, outcome.left)
    )
    return leaves, left, outcome.count, outcome.violation


@functools.lru_cache(maxsize=4)  # all blocks of a proof share the equations
def _task(request: bytes, statement: str, level: float | None) -> Divisible:
    return _request(request).statements(level)[statement]


@functools.lru_cache(maxsize=2)
def _request(request: bytes) -> Any:
    make, arguments = unpickled(request)
    return make(*arguments)
