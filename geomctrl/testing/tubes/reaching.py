"""`reach`: enclose all motions of a closed loop from a box of initial states."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance, number, shown
from geomctrl.control.plant import Plant
from geomctrl.control.progress import progress_function
from geomctrl.control.sweeping.executors import spread
from geomctrl.control.sweeping.job import unpickled
from geomctrl.errors import ArgumentError
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot
from geomctrl.testing.certificates.arguments import parameter_intervals
from geomctrl.testing.certificates.resuming import earlier_boxes
from geomctrl.testing.certificates.running import pickled_request
from geomctrl.testing.settings import Budget, budget_of

from .equations import LoopEquations, checked_plant
from .steps import ALL, ERR, MIN_STEP_RATIO, Dynamics, Enclosure
from .tube import STATEMENT, Piece, Tube, pair_of

MAX_TIME = 1e4  # s
FIRST_STEP = 2.0**-4  # s, at most
MAX_SAMPLE_COUNT = 1e6
ORDER = 8  # of the Taylor series in time
LARGEST_REST = 2.0  # of a part that may be divided: half width that is no polynomial, relative to the polynomial
NARROWING_SHARE = 0.5  # of the budget within which such parts are divided, even if they can be enclosed

Part = tuple[np.ndarray, np.ndarray]  # lower and upper bounds


@named_arguments()
def reach(
    plant: Plant | Robot,
    controller: Any,
    initial_box: tuple[ArrayLike, ArrayLike],
    t_end: float,
    *,
    parameters: float | tuple[ArrayLike, ArrayLike] = 0.0,
    control_dt: float | None = None,
    budget: Budget | int = 64,
    progress: bool | Callable[[float], Any] = False,
) -> Tube:
    """Enclose all motions of a closed loop from a box of initial states, rigorously.

    Parameters
    ----------
    plant : Plant or Robot
        The true robot, with joints whose configurations are vectors, without sensors, changes and states of its own.
        A small `smoothing` of Coulomb friction needs short steps.
    controller : Controller
        A controller in continuous time.
    initial_box : pair of arrays (2 nv,) or (2 nv + nz,)
        Lower and upper bounds of the state (q, v), or (q, v, z), at t = 0 [rad or m, rad/s or m/s]. Without z, a
        controller with a state starts at its own initial state.
    t_end : float
        Duration [s].
    parameters : float, or a pair of arrays (nbodies, 10)
        Uncertainty of all inertial parameters relative to the plant's (0.1 for 10 %), or lower and upper bounds, which
        need not contain the plant's.
    control_dt : float or None
        Hold time [s] of a command: the law, without a state z, is evaluated at 0, control_dt, 2 control_dt and so on.
        None for a law that acts at every instant.
    budget : Budget or int
        Limits of the computation, or only the number of boxes: parts into which the initial box is divided where the
        enclosure of the whole box blows up. A small number gives an estimate of a long computation, `more_pieces`.
        `resume` is an incomplete tube of this loop from the same box, whose parts that are enclosed until `t_end` are
        kept, or a file of `Tube.save`, of which only the parts of the box are used.
    progress : bool or function
        True for a bar, or a function that is called with the fraction done.

    Returns
    -------
    Tube
        The enclosure, true if it holds until `t_end`. An interrupt (Ctrl-C) and the end of the time of the budget
        return what is enclosed by then.

    Raises
    ------
    ArgumentError
        For arguments that do not fit, and for a plant whose motions can not be enclosed.
    UntraceableError
        If the law can not be traced, has an operation without Taylor series, or its trace differs from Python.

    Notes
    -----
    The result is a statement about real numbers: every solution of the differential equation of the closed loop, with
    the law acting at every instant or at the samples, and the floating-point numbers of law and plant as exact
    constants, is in the tube.
    All rounding errors are enclosed. Solutions are enclosed by Taylor models of order 2 in the initial state (Makino
    and Berz 2003) in a frame against wrapping (Lohner 1987). A branch that is not decided on a part of the tube is
    enclosed by the hull of both sides. The traced loop is compared with Python before. See docs/how-to/tubes.md.

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.Passivity(arm, gc.references.hold(arm, [0.5, 1.0]), Lambda=5.0, K=20.0)
    >>> x0 = np.array([0.4, 1.1, 0.0, 0.0])
    >>> tube = gc.testing.reach(arm, law, (x0 - 0.01, x0 + 0.01), 0.5)
    >>> bool(tube), bool(tube.stays("q[0]", upper=0.6))
    (True, True)
    """
    plant = checked_plant(plant)
    t_end = number("t_end", t_end, f"seconds > 0, at most {MAX_TIME:g}", lambda t: 0.0 < t <= MAX_TIME)
    budget = budget_of(budget)
    resume = budget.resume
    if control_dt is not None:
        control_dt = number("control_dt", control_dt, "seconds > 0", lambda t: t_end / MAX_SAMPLE_COUNT <= t < np.inf)
    p_lo, p_hi = parameter_intervals(parameters, plant.robot)
    uncertain = np.flatnonzero((p_hi > p_lo) | (p_lo != plant.robot.parameters.ravel()))
    equations = LoopEquations(controller, plant, uncertain, control_dt=control_dt)
    lower, upper = _initial(equations, initial_box)
    equations.compare_with_python(lower, upper, t_end)
    lower, upper = np.append(lower, p_lo[uncertain]), np.append(upper, p_hi[uncertain])
    started, done, waiting = time.perf_counter(), [], [(lower, upper)]
    if isinstance(resume, (str, Path)):
        box: Any = SimpleNamespace(starts=(lower[None], upper[None]))
        boxes = earlier_boxes(resume, STATEMENT, box)
        if boxes is None:
            raise ArgumentError(f"resume: expected a file of `Tube.save`, got {shown(resume)}")
        waiting = list(zip(*boxes))
    elif resume is not None:
        done, waiting = _earlier(instance("resume", resume, Tube, "a Tube"), equations, lower, upper, t_end)
    with progress_function(progress, "enclosing") as report:
        search = _Pieces(equations, (lower, upper), t_end, budget, report)
        parts = search.divided(done, waiting)
    seconds = time.perf_counter() - started
    return Tube(equations, lower, upper, t_end, parts, seconds, search.interrupted, search.out_of_time)


def _initial(equations: LoopEquations, initial_box: Any) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of (q, v, z)."""
    n, start = equations.n, equations.start()
    pair = initial_box if isinstance(initial_box, (tuple, list)) else [initial_box]
    if len(start) and len(pair) == 2 and all(np.shape(x) == (n - len(start),) for x in pair):
        lower, upper = pair_of("initial_box", initial_box, (n - len(start),))
        return np.append(lower, start), np.append(upper, start)
    return pair_of("initial_box", initial_box, (n,))


def _earlier(
    tube: Tube, equations: LoopEquations, lower: np.ndarray, upper: np.ndarray, t_end: float
) -> tuple[list[Piece], list[Part]]:
    """(The complete pieces of an earlier tube, the other parts of the box)."""
    is_same = np.array_equal([tube.lower, tube.upper], [lower, upper]) and tube.t_end == t_end
    if not (is_same and tube.equations.identity() == equations.identity()):
        raise ArgumentError("resume: expected a tube of this loop, from this box until this time, got another one")
    done = [piece for piece in tube.pieces if piece.until >= t_end]
    return done, [(piece.lower, piece.upper) for piece in tube.pieces if piece.until < t_end]


class _Pieces:
    """The division of a box into parts whose motions can be enclosed.

    `interrupted`, `out_of_time`: whether an interrupt or the time limit ended it.
    """

    def __init__(
        self, equations: LoopEquations, box: Part, t_end: float, budget: Budget, report: Callable[[float], Any]
    ):
        self.equations, self.budget, self.report = equations, budget, report
        self.dynamics, self.t_end, self.end = equations.dynamics(), t_end, time.perf_counter() + budget.seconds
        self.interrupted = self.out_of_time = False
        self.shown = 0.0
        self.width, self.share_done = np.where(box[1] > box[0], box[1] - box[0], 1.0), 0.0

    def share(self, part: Part) -> float:
        """The fraction of the volume of the box."""
        size = (part[1] - part[0]) / self.width
        return float(size[size > 0.0].prod())

    def show(self, fraction: float) -> None:
        """Report progress, which does not fall where a part that was nearly enclosed has to be divided."""
        self.shown = max(self.shown, min(fraction, 1.0))
        self.report(self.shown)

    def divided(self, done: list[Piece], waiting: list[Part]) -> list[Piece]:
        """Pieces with their enclosures."""
        self.share_done = sum(self.share((piece.lower, piece.upper)) for piece in done)
        try:
            while waiting:
                parts = waiting[-1:] if self.budget.executor is None else waiting[:]
                is_narrowed = len(done) + len(waiting) <= NARROWING_SHARE * self.budget.boxes
                for k, answer in self._enclosed(parts, LARGEST_REST if is_narrowed else np.inf):
                    if answer is None:
                        self.out_of_time = True
                        break
                    piece, side = answer
                    place = next(j for j, part in enumerate(waiting) if part is parts[k])
                    if side is None or len(done) + len(waiting) >= self.budget.boxes:
                        done.append(piece)
                        waiting[place : place + 1] = []  # after it is done: an interrupt must not lose a piece
                        self.share_done += self.share(parts[k])
                        self.show(self.share_done)
                    else:
                        waiting[place : place + 1] = _halves(*parts[k], side)
                if self.out_of_time:
                    break
        except KeyboardInterrupt:
            self.interrupted = True
        return [*done, *(Piece(lo, hi, _enclosure(self.dynamics, lo, hi).layout) for lo, hi in waiting)]

    def _enclosed(
        self, parts: list[Part], largest_rest: float
    ) -> Iterable[tuple[int, tuple[Piece, int | None] | None]]:
        left = self.end - time.perf_counter()
        if self.budget.executor is not None:
            e = self.equations
            request = pickled_request((e.controller, e.plant, e.uncertain, None, False, e.control_dt))
            arguments = [(request, *part, self.t_end, largest_rest, left) for part in parts]
            return spread(self.budget.executor, enclosed_there, arguments)
        share, first = self.share(parts[0]), self.share_done

        def report(fraction: float) -> None:
            self.show(first + share * fraction)

        return [(0, _enclosed_piece(self.dynamics, *parts[0], self.t_end, largest_rest, left, report))]


def enclosed_there(
    request: bytes, lo: np.ndarray, hi: np.ndarray, t_end: float, largest_rest: float, seconds: float
) -> tuple[Piece, int | None] | None:
    """`_enclosed_piece` in another process."""
    return _enclosed_piece(_dynamics(request), lo, hi, t_end, largest_rest, seconds, lambda fraction: None)


class _OutOfTime(Exception):
    """The time limit is reached."""


@functools.lru_cache(maxsize=2)  # all parts share the equations
def _dynamics(request: bytes) -> Dynamics:
    return LoopEquations(*unpickled(request)).dynamics()


@np.errstate(all="ignore")  # steps with infinite bounds are not taken
def _enclosed_piece(
    dynamics: Dynamics, lo: np.ndarray, hi: np.ndarray, t_end: float, largest_rest: float, seconds: float,
    report: Callable[[float], Any],
) -> tuple[Piece, int | None] | None:  # fmt: skip
    """(The enclosure from a part of the box; if it does not reach the end, the side along which to divide the part).

    None if that takes longer than so many seconds. largest_rest: see `Enclosure`.
    """
    end = time.perf_counter() + seconds

    def step(fraction: float) -> None:
        if time.perf_counter() > end:
            raise _OutOfTime
        report(fraction)

    enclosure = _enclosure(dynamics, lo, hi)
    enclosure.largest_rest = largest_rest if (hi > lo).any() else np.inf
    dt = dynamics.control_dt
    if dt is None:
        first = min(FIRST_STEP, 2.0 ** math.floor(math.log2(t_end)))
    else:
        first = dt / 2.0 ** max(0, math.ceil(math.log2(dt / FIRST_STEP)))  # samples are at the ends of steps
    try:
        step(0.0)
        segments = enclosure.until(t_end, first, min(t_end, dt or t_end) * MIN_STEP_RATIO, step)
    except _OutOfTime:
        return None
    return Piece(lo, hi, enclosure.layout, segments), _side(enclosure, hi - lo) if enclosure.t < t_end else None


def _enclosure(dynamics: Dynamics, lo: np.ndarray, hi: np.ndarray) -> Enclosure:
    return Enclosure(dynamics, dynamics.start(lo), dynamics.start(hi), ORDER)


def _halves(lo: np.ndarray, hi: np.ndarray, side: int) -> list[Part]:
    middle = 0.5 * lo[side] + 0.5 * hi[side]
    low, high = hi.copy(), lo.copy()
    low[side] = high[side] = middle
    return [(lo, low), (high, hi)]


def _side(enclosure: Enclosure, width: np.ndarray) -> int | None:
    """The side of the box whose halving reduces the nonlinear part of the enclosure most; None for a point.

    What is not a polynomial of the initial state counts in proportion to the linear effects.
    """
    layout, wide = enclosure.layout, np.flatnonzero(width > 0.0)
    if not len(wide):
        return None
    X = enclosure.X[: layout.moving]
    i, j = np.triu_indices(layout.quadratic)
    whole = np.maximum(np.abs(X[:, [ALL]]), 1e-300)
    size, slopes = np.abs(X[:, 1 + layout.symbols : ERR]) / whole, np.abs(X[:, 1 : 1 + layout.initial])
    rest = (np.abs(X[:, layout.remnants]).sum(1, keepdims=True) + X[:, [ERR]]) / whole
    shares = (rest * slopes / np.maximum(slopes.sum(1, keepdims=True), 1e-300)).sum(0)
    score = [size[:, (i == k) | (j == k)].sum() + shares[k] for k in range(len(wide))]
    return int(wide[int(np.argmax(score))])
