"""`reach`: enclose all motions of a closed loop from a box of initial states."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count, number
from geomctrl.control.plant import Plant
from geomctrl.control.progress import progress_function
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot
from geomctrl.testing.certificates.arguments import parameter_intervals

from .equations import LoopEquations, checked_plant
from .steps import ERR, MIN_STEP_RATIO, Dynamics, Enclosure
from .tube import Piece, Tube, pair_of

MAX_TIME = 1e4  # s
FIRST_STEP = 2.0**-4  # s, at most


@named_arguments()
def reach(
    plant: Plant | Robot,
    controller: Any,
    initial_box: tuple[ArrayLike, ArrayLike],
    t_end: float,
    *,
    parameters: float | tuple[ArrayLike, ArrayLike] = 0.0,
    order: int = 8,
    pieces: int = 64,
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
    order : int
        Order of the Taylor series in time.
    pieces : int
        Largest number of parts into which the box is divided where the enclosure of the whole box blows up.
    progress : bool or function
        True for a bar, or a function that is called with the fraction done.

    Returns
    -------
    Tube
        The enclosure, true if it holds until `t_end`. An interrupt (Ctrl-C) returns what is enclosed by then.

    Raises
    ------
    ArgumentError
        For arguments that do not fit, and for a plant whose motions can not be enclosed.
    UntraceableError
        If the law can not be traced, has an operation without Taylor series, or its trace differs from Python.

    Notes
    -----
    The result is a statement about real numbers: every solution of the differential equation of the closed loop, with
    the law acting at every instant and the floating-point numbers of law and plant as exact constants, is in the tube.
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
    order = count("order", order, 2, 30)
    pieces = count("pieces", pieces, 1)
    p_lo, p_hi = parameter_intervals(parameters, plant.robot)
    uncertain = np.flatnonzero((p_hi > p_lo) | (p_lo != plant.robot.parameters.ravel()))
    equations = LoopEquations(controller, plant, uncertain)
    lower, upper = _initial(equations, initial_box)
    equations.compare_with_python(lower, upper, t_end)
    lower, upper = np.append(lower, p_lo[uncertain]), np.append(upper, p_hi[uncertain])
    started = time.perf_counter()
    with progress_function(progress, "enclosing") as report:
        parts, interrupted = _divided(equations.dynamics(), lower, upper, t_end, order, pieces, report)
    return Tube(equations, lower, upper, t_end, parts, time.perf_counter() - started, interrupted)


def _initial(equations: LoopEquations, initial_box: Any) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of (q, v, z)."""
    n, start = equations.n, equations.start()
    pair = initial_box if isinstance(initial_box, (tuple, list)) else [initial_box]
    if len(start) and len(pair) == 2 and all(np.shape(x) == (n - len(start),) for x in pair):
        lower, upper = pair_of("initial_box", initial_box, (n - len(start),))
        return np.append(lower, start), np.append(upper, start)
    return pair_of("initial_box", initial_box, (n,))


def _divided(
    dynamics: Dynamics, lower: np.ndarray, upper: np.ndarray, t_end: float, order: int, max_pieces: int,
    report: Callable[[float], Any],
) -> tuple[list[Piece], bool]:  # fmt: skip
    """(Pieces with their enclosures, whether an interrupt ended the computation)."""
    done: list[Piece] = []
    waiting = [(lower, upper, 1.0)]
    total, share_done, step = 1, 0.0, min(FIRST_STEP, 2.0 ** np.floor(np.log2(t_end)))
    shortest = t_end * MIN_STEP_RATIO
    enclosure = None
    try:
        while waiting:
            lo, hi, share = waiting[-1]
            enclosure = Enclosure(dynamics, np.append(lo, 0.0), np.append(hi, 0.0), order)
            segments, _ = enclosure.advance(t_end, step, shortest, partial(_scaled, report, share_done, share))
            side = _side(enclosure, hi - lo) if enclosure.t < t_end and total < max_pieces else None
            if side is None:
                done.append(Piece(lo, hi, enclosure.layout, segments))
                waiting.pop()  # after it is done: an interrupt must not lose a piece
                share_done += share
                continue
            total += 1
            middle = 0.5 * lo[side] + 0.5 * hi[side]
            low, high = hi.copy(), lo.copy()
            low[side] = high[side] = middle
            waiting[-1:] = [(lo, low, 0.5 * share), (high, hi, 0.5 * share)]
    except KeyboardInterrupt:
        layout = Enclosure(dynamics, np.append(lower, 0.0), np.append(upper, 0.0), order).layout
        return [*done, *(Piece(lo, hi, layout) for lo, hi, _ in waiting)], True
    return done, False


def _scaled(report: Callable[[float], Any], first: float, share: float, fraction: float) -> None:
    report(min(first + share * fraction, 1.0))


def _side(enclosure: Enclosure, width: np.ndarray) -> int | None:
    """The side of the box whose halving reduces the nonlinear part of the enclosure most; None for a point."""
    layout, wide = enclosure.layout, np.flatnonzero(width > 0.0)
    if not len(wide):
        return None
    X = enclosure.X[: layout.moving]
    i, j = np.triu_indices(layout.quadratic)
    size = np.abs(X[:, 1 + layout.symbols : ERR]) / np.maximum(np.abs(X[:, [-3]]), 1e-300)
    score = [size[:, (i == k) | (j == k)].sum() for k in range(len(wide))]
    return int(wide[int(np.argmax(score))])
