"""Closed-loop output error: the parameters with which the simulated loop does what was measured, by Gauss and Newton's
steps with exact derivatives (Gautier, Janot and Vandanjon 2013 section II; Landau, Anderson and De Bruyne 2001).

Torques and positions of all joints are channels of unknown noise; the most likely parameters minimise
sum_c N_c log rms(error_c), which weights 1 / rms(error_c), renewed at every step, do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomctrl.arguments import choice, count, flag, listed, number
from geomctrl.errors import ArgumentError
from geomctrl.identification.estimators.least_squares import finish

from .experiment import experiment, motion, start_of
from .result import Iteration, OutputErrorFit
from .search import Search
from .sensitivity_report import close, untold
from .unknowns import Unknowns

LOST = 0.1  # share of a direction that is not told from which a parameter is not
COSINES = 0.4


def cloe(
    start: Any,
    logs: Any,
    loop: Any,
    *,
    gains: Sequence[str] = (),
    delay: bool = False,
    positions: bool = True,
    iterations: int = 30,
    tolerance: float = 1e-3,
) -> OutputErrorFit:
    """The robot's parameters, and gains and the delay of the loop where asked for, by simulating the loop.

    start: an `Estimate`, such as that of `didim` or of the inverse dynamics, a `RegressorModel` (its prior) or a robot.
    logs, loop: as `didim` takes them; the loop's gains and delay are the first guess. gains: which of "kp", "kd", "ki"
    are estimated, delay: whether it is. positions: whether measured positions count besides torques; without them gains
    are hardly told. Where the robot and the loop begin in each part of a log is estimated with them.
    Converged: the last step changed what was simulated by less than `tolerance` of the residual.

    Deviations hold for noise of any correlation that is short beside the log. Raises
    SimulationError where the first loop is not stable, UntraceableError for laws without derivatives, ArgumentError.
    """
    model, x0 = start_of(start)
    made = experiment(model, logs, loop)
    wanted = tuple(choice("gains", name, made.loop.gains or ("none of this loop",)) for name in listed("gains", gains))
    if len(set(wanted)) < len(wanted):
        raise ArgumentError(f"gains: expected each once, got {gains!r:.60}")
    iterations = count("iterations", iterations, 1)
    tolerance = number("tolerance", tolerance, "a number > 0", lambda x: x > 0.0)
    unknown = Unknowns(made, x0, wanted, flag("delay", delay), flag("positions", positions))
    search = Search(unknown)
    history, done = [], False
    while not done and len(history) < iterations:
        history.append(search.step())
        done = history[-1].change <= tolerance
    search.settle(tolerance)
    return _result(search, tuple(history), done)


def _result(search: Search, history: tuple[Iteration, ...], done: bool) -> OutputErrorFit:
    unknown, state, at = search.unknown, search.state, search.linear()
    shared, half = unknown.shared, at.scale[:, None] * at.Vt.T / at.s
    covariance = (half @ (half.T @ _long_run(search) @ half) @ half.T)[:shared, :shared]
    lost = np.abs(at.lost).max(axis=0, initial=0.0)[:shared] > LOST
    covariance[lost, :] = covariance[:, lost] = 0.0
    covariance[lost, lost] = np.inf
    names, model = tuple(unknown.names[:shared]), unknown.made.model
    data = motion(state.experiment, state.dynamics, state.plan, state.runs)
    x, nb = unknown.parameters(state.theta), model.base.size
    noise = search.noise(state)[: unknown.n]
    estimate = finish(model, model.compress(data), x, 1.0 / noise, "cloe", covariance=covariance[:nb, :nb])
    return OutputErrorFit(
        "cloe", estimate, unknown.made.loop.changed(**unknown.changes(state.theta)), names, state.theta[:shared].copy(),
        covariance, history, done, data, untold(unknown, at.lost, at.scale), close(names, covariance),
    )  # fmt: skip


def _long_run(search: Search) -> np.ndarray:
    """The covariance of the gradient, with its correlation in time of either sign, from its lowest frequencies: the
    mean square of its 0.4 N^(2/3) first cosines (Lazarus, Lewis, Stock and Watson 2018). Differences of counts hang
    together negatively, which kernels that reach over some lags hardly see.
    """
    from scipy.fft import dct  # slow to import

    unknown, state = search.unknown, search.state
    total = np.zeros((unknown.size, unknown.size))
    for g in unknown.scores(state, 1.0 / search.noise(state)):
        cosines = min(max(round(COSINES * len(g) ** (2.0 / 3.0)), 1), len(g) - 1)
        found = np.asarray(dct(g, norm="ortho", axis=0))[1 : cosines + 1]
        total += len(g) / cosines * (found.T @ found)
    freedom = search.counts.sum() / max(search.counts.sum() - unknown.size, 1)
    return total * freedom
