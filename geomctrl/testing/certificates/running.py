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
from geomctrl.tracing.branch_and_bound import (
    BranchAndBound,
    Divisible,
    Ends,
    Part,
    Progress,
    Spread,
    no_progress,
    part_of,
)

from .certificate import UNDECIDED, Claim
from .resuming import earlier_boxes
from .task import prove


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
    ) -> BranchAndBound:  # fmt: skip
        """The outcome of a task."""
        if self.interrupted:
            outcome = BranchAndBound(task)
            outcome.interrupted = True
            return outcome
        budget, spread = self.budget, None
        boxes = earlier_boxes(budget.resume, statement, task)
        if budget.executor is not None and statement in self.statements(level):
            spread = spreading(budget.executor, self.request, statement, level)
        limit = budget.boxes if max_boxes is None else max_boxes
        outcome = prove(task, limit, budget.seconds, progress, boxes, spread)
        outcome.estimate(np.random.default_rng(0))
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


def spreading(executor: Any, request: tuple, statement: str, level: float | None = None) -> Spread:
    """`part_of` for lists of boxes, by an executor. request: a class and its arguments, which returns `statements`."""
    shared = pickled_request(request)

    def run(blocks: list[tuple[Ends, float, float]]) -> Iterator[tuple[int, Part]]:
        return spread(executor, part_there, [(shared, statement, level, *ends, *limits) for ends, *limits in blocks])

    return run


def part_there(
    request: bytes, statement: str, level: float | None, lo: np.ndarray, hi: np.ndarray, boxes: float, seconds: float
) -> Part:
    """`part_of` in another process."""
    return part_of(_task(request, statement, level), lo, hi, boxes, seconds)


@functools.lru_cache(maxsize=4)  # all blocks of a proof share the equations
def _task(request: bytes, statement: str, level: float | None) -> Divisible:
    return _request(request).statements(level)[statement]


@functools.lru_cache(maxsize=2)
def _request(request: bytes) -> Any:
    make, arguments = unpickled(request)
    return make(*arguments)
