"""Proofs that a closed loop does not leave a set {h >= 0}: at each state with h = 0, h grows.

The box of states and parameters is divided until in each part h has no zero, or h' > 0 where h = 0. Both are Taylor
models in the state. Where h = 0, h' is equal to h' - mu h for each number mu, and the number that removes most of the
linear part of h' is tried, too (the S-procedure for a part).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import function
from geomctrl.control.plant import Plant
from geomctrl.control.progress import progress_function
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot
from geomctrl.testing.certificates.arguments import parameter_intervals
from geomctrl.testing.certificates.certificate import PROVED, REFUTED, UNDECIDED
from geomctrl.testing.settings import Budget, budget_of
from geomctrl.tracing.proofs.operation_rows import OperationRows
from geomctrl.tracing.symbols import Graph
from geomctrl.tracing.untraceable import UntraceableError

from .equations import LoopEquations, checked_plant
from .steps import Layout, bounds, series
from .tube import pair_of

MIN_SIDE_RATIO = 2.0**-14  # of a part of the box that is divided further
SEGMENTS, BISECTIONS = 4096, 50  # on which zeros of h are sought for a counterexample
NEAR_ZERO = 1e-7  # of h, and of the box around a counterexample
JUMPING = {"where", "sign", "copysign", "floor", "ceil", "rint", "trunc", "fmod", "mod"}  # operations that may jump

Part = tuple[np.ndarray, np.ndarray, float]  # lower, upper, share of the whole


@dataclass(frozen=True, eq=False)
class BarrierCertificate:
    """The result of `certify_barrier`; true if the claim is proved.

    Attributes
    ----------
    status : str
        "proved", "refuted" or "undecided".
    claim : str
    invariant : bool
        Whether also h < 0 on the boundary of the box is proved: then no motion from {h >= 0} leaves this set at all.
        Otherwise a motion may leave the box first, at a state with h > 0.
    boxes, seconds : int, float
        Cost of the proof.
    share_left : float
        Fraction of the box that is not decided.
    counterexample : array (2 nv + nz,) or None
        A state (q, v, z) close to h = 0 with h' < 0; the motion from it leaves the set.
    parameters : array (nbodies, 10) or None
        Inertial parameters of the counterexample.
    """

    status: str
    claim: str
    invariant: bool
    boxes: int
    seconds: float
    share_left: float = 0.0
    counterexample: np.ndarray | None = None
    parameters: np.ndarray | None = None

    def __bool__(self) -> bool:
        return self.status == PROVED

    def __str__(self) -> str:
        out = [f"{self.status}: {self.claim} ({self.boxes} boxes, {self.seconds:.3g} s)"]
        if self.status == PROVED and self.invariant:
            out.append("h < 0 on the boundary of the box: motions from h >= 0 keep h >= 0 as long as they exist")
        elif self.status == PROVED:
            out.append("motions from h >= 0 keep h >= 0 until they leave the box")
        if self.counterexample is not None:
            out.append(f"violated at (q, v, z) = {self.counterexample.tolist()}")
        if self.status == UNDECIDED:
            out.append(
                f"{100.0 * self.share_left:.3g} % of the box is left: try a smaller box or more boxes in `budget`"
            )
        out.append("a proof is about the model in exact arithmetic and in continuous time")
        return "\n".join(out)


@named_arguments()
def certify_barrier(
    barrier: Callable[..., Any],
    controller: Any,
    plant: Plant | Robot,
    box: tuple[ArrayLike, ArrayLike],
    *,
    parameters: float | tuple[ArrayLike, ArrayLike] = 0.0,
    budget: Budget | int = 20_000,
    progress: bool | Callable[[float], Any] = False,
) -> BarrierCertificate:
    """Prove that no motion of a closed loop leaves the set {h >= 0}, for all robots near the model.

    Parameters
    ----------
    barrier : callable
        h(t, q, v, z, plant), a continuous function of the state that returns a number.
    controller : Controller
        A controller that does not depend on time, with its input limits, such as `np.clip`.
    plant : Plant or Robot
        The true robot; see `reach`.
    box : pair of arrays (2 nv,) or (2 nv + nz,)
        Lower and upper bounds of the state (q, v), or (q, v, z), that are examined.
    parameters : float, or a pair of arrays (nbodies, 10)
        Uncertainty of all inertial parameters; see `reach`. The controller and h keep their own model, except that h
        has the true robot as `plant`.
    budget : Budget or int
        Limits of the proof of each inequality, or only the number of boxes.
    progress : bool or function
        True for a bar, or a function that is called with the decided fraction of the box.

    Returns
    -------
    BarrierCertificate
        True if h' > 0 is proved for each state of the box with h = 0. Then a motion from h >= 0 keeps h >= 0 until it
        leaves the box; if `invariant` it does not leave the box. `status` is "proved", "refuted" or "undecided".

    Raises
    ------
    ArgumentError
        For arguments that do not fit, and for a box without interior.
    UntraceableError
        If the loop can not be traced, depends on time, its trace differs from Python, or h may jump.

    Notes
    -----
    This is Nagumo's condition with a margin: where h falls to zero for the first time, h' <= 0 (Ames and others 2019).
    h' is the derivative along the closed loop with all its branches: an undecided one is enclosed by both sides.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.PDGravity(arm, [0.0, 0.0], kp=50.0, kd=20.0, strict=True)
    >>> def barrier(t, q, v, z, plant):
    ...     return 0.5 - law.lyapunov(t, q, v, z, plant)[0]
    >>> half = np.array([0.2, 0.3, 1.6, 4.5])
    >>> certificate = gc.testing.certify_barrier(barrier, law, arm, (-half, half))
    >>> certificate.status, certificate.invariant
    ('proved', True)
    """
    problem = _Barrier(function("barrier", barrier, "a function (t, q, v, z, plant)", 5), controller, plant, parameters)
    lower, upper = problem.box("box", box)
    with progress_function(progress, "certifying") as report:
        return problem.certificate(lower, upper, budget_of(budget), report)


class _Barrier:
    """h and h' as Taylor models of the state and the uncertain parameters."""

    def __init__(self, barrier: Any, controller: Any, plant: Any, parameters: Any):
        plant = checked_plant(plant)
        self.p_lo, self.p_hi = parameter_intervals(parameters, plant.robot)
        nominal = plant.robot.parameters.ravel()
        uncertain = np.flatnonzero((self.p_hi > self.p_lo) | (self.p_lo != nominal))
        self.equations = e = LoopEquations(controller, plant, uncertain, barrier)
        graph, h = e.loop.graph, e.signal
        _require_continuous(graph, h)
        rate = e.loop.along(h, pace=0.0)
        good = [] if e.loop.good is True else [e.loop.good]
        ends = [graph.operand(x) for x in (h, *e.rates[: e.n])]
        if e.loop.t.index in graph.needed(ends):
            raise UntraceableError("barrier, controller, plant: expected no dependence on time")
        self.rate = rate
        self.rows = OperationRows(graph, e.inputs, [], e.constants, [h, rate, *good])

    def box(self, name: str, box: Any) -> tuple[np.ndarray, np.ndarray]:
        e = self.equations
        lower, upper = pair_of(name, box, (e.n,))
        if not (lower < upper).all():
            raise ArgumentError(
                f"{name}: expected lower < upper for each state, got {lower.tolist()}, {upper.tolist()}"
            )
        e.compare_with_python(lower, upper, 1.0)
        return np.append(lower, self.p_lo[e.uncertain]), np.append(upper, self.p_hi[e.uncertain])

    def certificate(
        self, lower: np.ndarray, upper: np.ndarray, budget: Budget, report: Callable[[float], Any]
    ) -> BarrierCertificate:
        started = time.perf_counter()
        claim, n = "h' > 0 at each state of the box with h = 0", self.equations.n
        violation = self._violation(lower, upper, budget.seed)
        if violation is not None:
            parameters = self.equations.plant_with(violation[n:]).robot.parameters
            seconds = time.perf_counter() - started
            return BarrierCertificate(REFUTED, claim, False, 0, seconds, 1.0, violation[:n], parameters)
        count, open_parts, left = self._decided([(lower, upper, 1.0)], self._is_safe, budget, started, report)
        invariant = False
        faces = list(self._faces(lower, upper))
        middles = np.array([0.5 * lo + 0.5 * hi for lo, hi, _ in faces])
        if not open_parts and not (self._numbers(middles)[:, 0] >= 0.0).any():
            more, open_faces, _ = self._decided(faces, self._is_negative, budget, started, lambda fraction: None)
            count, invariant = count + more, open_faces == 0
        status = UNDECIDED if open_parts else PROVED
        return BarrierCertificate(status, claim, invariant, count, time.perf_counter() - started, left)

    def _decided(
        self, waiting: list[Part], decide: Callable[..., Any], budget: Budget, started: float,
        report: Callable[[float], Any],
    ) -> tuple[int, int, float]:  # fmt: skip
        """(Number of boxes, of parts that are not decided, their share)."""
        count, done, stuck = 0, 0.0, []
        least = MIN_SIDE_RATIO * np.max([hi - lo for lo, hi, _ in waiting], 0)
        while waiting and count < budget.boxes and time.perf_counter() - started < budget.seconds:
            lo, hi, share = waiting.pop()
            count += 1
            layout, h, rate = self._values(lo, hi)
            if h is not None and decide(layout, h, rate):
                done += share
                report(min(done, 1.0))
                continue
            side = _side(lo, hi, least, layout, h, rate)
            if side is None:
                stuck.append(share)
                continue
            middle = 0.5 * lo[side] + 0.5 * hi[side]
            low, high = hi.copy(), lo.copy()
            low[side] = high[side] = middle
            waiting += [(lo, low, 0.5 * share), (high, hi, 0.5 * share)]
        stuck += [share for _, _, share in waiting]
        return count, len(stuck), sum(stuck)

    def _values(self, lo: np.ndarray, hi: np.ndarray) -> tuple[Layout, Any, Any]:
        """(Layout, rows of h and h'); None where the loop or h is undefined for some state."""
        layout = Layout(int((hi > lo).sum()), 0, 0)
        _, values = series(self.rows, layout, layout.box(np.append(lo, 0.0), np.append(hi, 0.0)), 1)
        if not np.isfinite(values[:2, 0]).all() or (len(values) > 2 and values[2, 0] != 1.0):
            return layout, None, None
        return layout, values[0], values[1]

    def _is_safe(self, layout: Layout, h: np.ndarray, rate: np.ndarray) -> bool:
        """Whether h has no zero in a box, or h' > 0 at each."""
        low, high = bounds(h)
        if low > 0.0 or high < 0.0 or bounds(rate)[0] > 0.0:
            return True
        b, slope = layout.polynomial(h)[0], layout.polynomial(rate)[0]
        with np.errstate(all="ignore"):  # of tiny and huge numbers
            mu = -(b @ slope) / (b @ b)
            if not np.isfinite(mu):
                return False
            row = np.array([[mu, *np.zeros(layout.coefficients - 1)]])
            product = layout.times(layout.forms(row)[0], h[None])
            return bool(bounds(layout.plus(rate[None], product))[0][0] > 0.0)

    def _is_negative(self, layout: Layout, h: np.ndarray, rate: np.ndarray) -> bool:
        return bool(bounds(h)[1] < 0.0)

    def _violation(self, lower: np.ndarray, upper: np.ndarray, seed: int) -> np.ndarray | None:
        """A zero of h with h' < 0, the worst one of random segments, if enclosures confirm it."""
        e, rng = self.equations, np.random.default_rng(seed)
        corners = rng.random((2, SEGMENTS, len(lower))) < 0.3
        a, b = np.where(corners, rng.choice([lower, upper], (2, SEGMENTS)), rng.uniform(lower, upper, corners.shape))
        crossing = np.sign(self._numbers(a)[:, 0]) * np.sign(self._numbers(b)[:, 0]) < 0.0
        a, b = a[crossing], b[crossing]
        a[:, e.n :] = b[:, e.n :]  # one robot a segment
        is_safe = self._numbers(a)[:, 0] > 0.0
        for _ in range(BISECTIONS):
            middle = 0.5 * a + 0.5 * b
            left = (self._numbers(middle)[:, 0] > 0.0) == is_safe
            a, b = np.where(left[:, None], middle, a), np.where(left[:, None], b, middle)
        h, rate = self._numbers(a).T if len(a) else np.full((2, 1), np.nan)
        rate = np.where(np.abs(h) < NEAR_ZERO * max(1.0, float(np.nanmax(np.abs(h), initial=0.0))), rate, np.nan)
        if not (rate < 0.0).any():
            return None
        x = a[np.nanargmin(rate)]
        half = NEAR_ZERO * (upper - lower)
        lo, hi = np.maximum(x - half, lower), np.minimum(x + half, upper)
        return x if self._is_violated(lo, hi) else None

    def _numbers(self, x: np.ndarray) -> np.ndarray:
        """h and h' at states with parameters, in floating point."""
        x = np.atleast_2d(x)
        with np.errstate(all="ignore"):
            return self.equations.evaluated([self.equations.signal, self.rate], np.column_stack([x, np.zeros(len(x))]))

    def _is_violated(self, lo: np.ndarray, hi: np.ndarray) -> bool:
        """Whether h' < 0 in the whole box, and h has both signs at two of its points: it contains a zero of h."""
        layout, h, rate = self._values(lo, hi)
        if h is None or bounds(rate)[1] >= 0.0:
            return False
        direction = np.zeros(len(lo))
        direction[hi > lo] = np.sign(layout.polynomial(h)[0])
        below, above = (self._values(x, x)[1] for x in np.where(direction < 0.0, [hi, lo], [lo, hi]))
        return below is not None and above is not None and bool(bounds(below)[1] < 0.0 < bounds(above)[0])

    def _faces(self, lower: np.ndarray, upper: np.ndarray) -> Iterator[Part]:
        """The faces of the box of states; parameters do not move."""
        for k in range(self.equations.n):
            for end in (lower[k], upper[k]):
                lo, hi = lower.copy(), upper.copy()
                lo[k] = hi[k] = end
                yield lo, hi, 0.5 / self.equations.n


def _side(lo: np.ndarray, hi: np.ndarray, least: np.ndarray, layout: Layout, h: Any, rate: Any) -> int | None:
    """The side along which h and h' vary most, or the longest one; None if no side may be divided."""
    sides = np.flatnonzero(hi > lo)
    if h is None:
        score = (hi - lo)[sides] / np.maximum(least, 1e-300)[sides]
    else:
        score = np.zeros(len(sides))
        for row in (h, rate):
            b, A = layout.polynomial(row)
            score += (np.abs(b) + 2.0 * np.abs(A).sum(1)) / max(float(bounds(row)[1] - bounds(row)[0]), 1e-300)
    score = np.where((hi - lo)[sides] > least[sides], score, -1.0)
    return int(sides[np.argmax(score)]) if len(sides) and score.max() >= 0.0 else None


def _require_continuous(graph: Graph, h: Any) -> None:
    names = {graph.nodes[k][0] for k in graph.needed([graph.operand(h)])}
    if names & JUMPING:
        raise UntraceableError(f"barrier: expected a continuous function, got one with {sorted(names & JUMPING)}")
