"""Level sets of V, which bound a region of attraction.

Three levels are computed: the largest one inside a box, the one in which all solutions end, and the largest one on
which the claim about V' holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geomctrl.tracing.branch_and_bound import BranchAndBound, Decision, Divisible
from geomctrl.tracing.proofs.interpreted import valued

from .deciding import largest
from .equations import Equations
from .quadratic import Bounds, Boxes
from .searching import at_random
from .task import Task, prove

TOLERANCE, BOUNDARY_BOXES = 0.02, 41_000


def least_on_boundary(below: Bounds, box: Boxes, faces: Boxes | None = None) -> float:
    """A lower bound of V on the boundary of the box, or on some of its faces, for all parameters; `below` bounds -V.

    Within `TOLERANCE` of the smallest value seen there, if `BOUNDARY_BOXES` suffice; if V depends on time, one of
    `SHARES` of it.
    """
    work = _faces(box) if faces is None else faces
    if below.equations.depends_on_time(below.F):
        return _least_at_all_times(below, work)
    search = BranchAndBound(_Least(below, work, box))
    search.run(BOUNDARY_BOXES, np.inf)
    return max(-search.largest_bound, 0.0)


class _Least(Divisible):
    """The claim that V is nearly as large as the smallest value seen; `below` bounds -V."""

    chunk, best_first = 1024, True

    def __init__(self, below: Bounds, faces: Boxes, box: Boxes):
        self.below, self.width, self.starts, self.seen = below, box.hi - box.lo, faces.ends, np.inf

    def split(self, lo: np.ndarray, hi: np.ndarray, count: int) -> Decision:
        boxes = Boxes.of(lo, hi, self.width.shape[1])
        low, value = _bounds_of_least(self.below, boxes)
        self.seen = min(self.seen, value)
        sides = np.argmax((boxes.hi - boxes.lo) / self.width, axis=1)
        return Decision(low >= (1.0 - TOLERANCE) * self.seen, sides, bound=-low)


def least_by_energy(e: Equations, box: Boxes, scale: np.ndarray, inverses: np.ndarray) -> float:
    """A lower bound of V = 1/2 w . M w + U(q) on the boundary of the box; inverses (nv,): bounds of (M^-1)_ii.

    On the faces of joint i, 1/2 w . M w >= w_i^2 / (2 (M^-1)_ii).
    """
    faces, least = _faces(box), np.inf
    for i, inverse in enumerate(inverses.tolist()):
        kinetic = e.w[i] * e.w[i] * (0.5 / inverse * (1.0 - 1e-12))
        rows = [2 * i, 2 * i + 1, 2 * (e.n + i), 2 * (e.n + i) + 1]
        least = min(least, least_on_boundary(Bounds(e, -(kinetic + e.potential), scale), box, faces[rows]))
    return least


def _least_at_all_times(below: Bounds, faces: Boxes) -> float:
    """A lower bound of V on faces of the box, if V may depend on time."""
    e, rng = below.equations, np.random.default_rng(0)
    rows = rng.integers(len(faces), size=SAMPLES)
    x = rng.uniform(faces.lo[rows], faces.hi[rows])
    p = at_random(e, faces.p_lo[0], faces.p_hi[0], SAMPLES, rng)
    seen = float(-below.values(Boxes(x, x, p, p))[0].max())
    order = list(range(len(faces)))
    for fraction in SHARES if seen > 0.0 else ():
        tasks = ((k, Task(below, faces[k : k + 1], None, -fraction * seen)) for k in order)
        missing = next((k for k, task in tasks if not prove(task, LEVEL_BOXES, np.inf).proved), None)
        if missing is None:
            return fraction * seen
        order.sort(key=lambda k: k != missing)  # the next level is tested there first
    return 0.0


def _faces(box: Boxes) -> Boxes:
    n = box.lo.shape[1]
    lo, hi = np.repeat(box.lo, 2 * n, 0), np.repeat(box.hi, 2 * n, 0)
    for i in range(n):
        hi[2 * i, i], lo[2 * i + 1, i] = box.lo[0, i], box.hi[0, i]
    return Boxes(lo, hi, np.repeat(box.p_lo, 2 * n, 0), np.repeat(box.p_hi, 2 * n, 0))


def _bounds_of_least(below: Bounds, boxes: Boxes) -> tuple[np.ndarray, float]:
    """Lower bounds (boxes,) of V, and the smallest V over all parameters where a quadratic form has its minimum."""
    form = below.form(boxes)
    x = form.lifted(boxes)[0].least(boxes)
    return -largest(form, boxes), float(-below.values(Boxes(x, x, boxes.p_lo, boxes.p_hi))[1].max())


def max_in_ball(above: Bounds, box: Boxes, ball: np.ndarray) -> float:
    """An upper bound of V on the part of the box in the ball sum (x / ball)^2 <= 1; `above` bounds V."""
    lo, hi = np.maximum(box.lo, -ball), np.minimum(box.hi, ball)
    form = above.form(Boxes(lo, hi, box.p_lo, box.p_hi))
    N = -form.N[0] * ball[:, None] * ball
    peak = max(float(np.linalg.eigvalsh(N)[-1]), 0.0) * (1.0 + 1e-12)
    return float(form.top[0] + np.linalg.norm(form.slope[0] * ball) + peak)


PRECISION = 1.02  # of an ultimate bound
LEVEL_BOXES = 20_000  # budget for each inequality of V alone


def largest_errors(e: Equations, scale: np.ndarray, box: Boxes, level: float) -> np.ndarray:
    """Upper bounds (nv,) of |q - q_d| where V <= level, for all parameters; infinite where none is found.

    If V = 1/2 w . M w + U(q), then U <= V, because M is positive definite.
    """
    below = Bounds(e, -(e.value if e.potential is None else e.potential), scale)

    def excludes(i: int, r: float) -> bool:
        """Whether V > level is proved where |x_i| >= r."""
        for sign in (1.0, -1.0):
            lo, hi = box.lo.copy(), box.hi.copy()
            (lo if sign > 0.0 else hi)[0, i] = sign * r
            part = Boxes(lo, hi, box.p_lo, box.p_hi)
            if _bounds_of_least(below, part)[1] <= level:
                return False
            if not prove(Task(below, part, None, -level), LEVEL_BOXES, np.inf).proved:
                return False
        return True

    errors = np.full(e.n, np.inf)
    for i in range(e.n):
        low, high = 0.0, float(box.hi[0, i])
        if not excludes(i, high):
            continue
        while high > PRECISION * low and high > MIN_ERROR_RATIO * box.hi[0, i]:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if excludes(i, middle) else (middle, high)
        errors[i] = high
    return errors


MIN_ERROR_RATIO = 1e-3  # of the half width of the box: smaller errors are not distinguished
SAMPLES = 40_000
SHARES = (0.99, 0.97, 0.95, 0.92, 0.88, 0.8, 0.65, 0.5, 0.3, 0.1)


def lowest_violation(
    e: Equations, box: Boxes, ball: np.ndarray | None, rate: float, offset: float, seed: int = 0
) -> float:
    """The smallest V among random states of the box, outside the ball, that violate V' < - rate V + offset."""
    rng = np.random.default_rng(seed)
    lo, hi, p_lo, p_hi = box.lo[0], box.hi[0], box.p_lo[0], box.p_hi[0]
    least = np.inf
    for k in range(4):  # concentrates on states with low V
        x = rng.uniform(lo, hi, (SAMPLES // 4, len(lo))) * (0.7**k)
        p = at_random(e, p_lo, p_hi, len(x), rng)
        V, F = valued(e.graph, [e.loop.value, e.along_vector_field(rate)], e.at(x, p), len(x)).T
        bad = ~(offset > F)
        if ball is not None:
            bad &= ((x / ball) ** 2).sum(1) >= 1.0
        least = min(least, float(V[bad].min(initial=np.inf)))
    return least


def largest_level(bound: float, attempt: Callable[[float], BranchAndBound]) -> tuple[float, list[BranchAndBound]]:
    """(level, outcomes of all tried levels) for the first fraction of `bound` that is proved, or for the last one."""
    level, outcomes = 0.0, []
    for fraction in SHARES:
        level = fraction * bound
        outcomes.append(attempt(level))
        if outcomes[-1].proved or outcomes[-1].interrupted:
            break
    return level, outcomes
