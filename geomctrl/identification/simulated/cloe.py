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
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.identification.base_parameters import combinations
from geomctrl.identification.estimators.least_squares import finish

from .experiment import experiment, motion, start_of
from .result import Iteration, OutputErrorFit
from .unknowns import State, Unknowns, rms

FLOOR = 1e-9  # noise, of what was measured, below which it is rounding
POOR = 1e-8  # relative singular value of the scaled derivatives up to which a direction is not told
TRIES = 10
COSINES = 0.4
CLOSE = 0.98  # correlation from which two parameters are hardly told apart


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
    search = _Search(unknown)
    history, done = [], False
    while not done and len(history) < iterations:
        history.append(search.step())
        done = history[-1].change <= tolerance
    return _result(search, tuple(history), done)


class _Search:
    """Levenberg and Marquardt's steps, columns scaled to unit length."""

    def __init__(self, unknown: Unknowns):
        self.unknown, self.damping = unknown, 1e-4
        self.counts, self.floor = unknown.used(), FLOOR * np.maximum(unknown.sizes(), 1e-12)
        self.state = unknown.at(unknown.first())
        self.cost = self._cost(self.state)

    def noise(self, state: State) -> np.ndarray:
        return np.maximum(rms(state.errors, self.counts), self.floor)

    def _cost(self, state: State) -> float:
        return float(self.counts @ np.log(self.noise(state)))

    def linear(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(U, s, Vt, column lengths, error) of the weighted derivatives at hand."""
        weights = 1.0 / self.noise(self.state)
        stack = np.vstack([w * R for w, R in zip(weights, self.unknown.factors(self.state))])
        length = np.linalg.norm(stack[:, :-1], axis=0)
        length = np.where(length > 1e-12 * length.max(), length, np.inf)  # what nothing depends on stays
        U, s, Vt = np.linalg.svd(stack[:, :-1] / length, full_matrices=False)
        return U, s, Vt, length, stack[:, -1]

    def step(self) -> Iteration:
        U, s, Vt, length, error = self.linear()
        told = s > POOR * s[0]
        along, size = U[:, told].T @ error, np.linalg.norm(error)
        tau = [part.tau * part.mask for part in self.unknown.made.parts]
        n = self.unknown.n
        wrong = np.linalg.norm(np.concatenate([e[:, :n] for e in self.state.errors]))
        begun = float(wrong / np.linalg.norm(np.concatenate(tau)))
        for _ in range(TRIES):
            part = s[told] / (s[told] ** 2 + self.damping)
            theta = self.state.theta + Vt[told].T @ (part * along) / length
            if self.unknown.delay:
                at = self.unknown.shared - 1
                theta[at] = max(theta[at], 0.0)
            change, used = float(np.linalg.norm(s[told] * part * along) / size), self.damping
            try:
                state = self.unknown.at(theta)
                cost = self._cost(state)
            except (GeomctrlError, np.linalg.LinAlgError):
                cost = np.inf
            if cost <= self.cost + 1e-9 * self.counts.sum():
                self.state, self.cost, self.damping = state, cost, max(0.1 * self.damping, 1e-12)
                return Iteration(begun, change, used)
            self.damping = max(10.0 * self.damping, 1e-6)
        return Iteration(begun, 0.0, self.damping)  # no step is better: this is the best there is, to rounding


def _result(search: _Search, history: tuple[Iteration, ...], done: bool) -> OutputErrorFit:
    unknown, state = search.unknown, search.state
    _, s, Vt, length, _ = search.linear()
    told, shared = s > POOR * s[0], unknown.shared
    half = Vt[told].T / s[told] / length[:, None]
    covariance = (half @ (half.T @ _long_run(search) @ half) @ half.T)[:shared, :shared]
    lost = np.abs(Vt[~told]).max(axis=0, initial=0.0)[:shared] > 0.01
    lost |= np.isinf(length[:shared])
    covariance[lost, :] = covariance[:, lost] = 0.0
    covariance[lost, lost] = np.inf
    names, model = tuple(unknown.names[:shared]), unknown.made.model
    data = motion(state.experiment, state.dynamics, state.plan, state.runs)
    x, nb = unknown.parameters(state.theta), model.base.size
    noise = search.noise(state)[: unknown.n]
    estimate = finish(model, model.compress(data), x, 1.0 / noise, "cloe", covariance=covariance[:nb, :nb])
    return OutputErrorFit(
        "cloe", estimate, unknown.made.loop.changed(**unknown.changes(state.theta)), names, state.theta[:shared].copy(),
        covariance, history, done, data, _untold(unknown, Vt[~told], length), _close(names, covariance),
    )  # fmt: skip


def _long_run(search: _Search) -> np.ndarray:
    """The covariance of the gradient, with its correlation in time of either sign, from its lowest frequencies: the
    mean square of its 0.4 N^(2/3) first cosines (Lazarus, Lewis, Stock and Watson 2018). Differences of counts hang
    together negatively, which kernels that reach over some lags hardly see.
    """
    from scipy.fft import dct  # slow to import

    unknown, state = search.unknown, search.state
    total = np.zeros((unknown.size, unknown.size))
    for g in unknown.scores(state, 1.0 / search.noise(state)):
        cosines = min(max(round(COSINES * len(g) ** (2.0 / 3.0)), 1), len(g) - 1)
        found: np.ndarray = dct(g, norm="ortho", axis=0)[1 : cosines + 1]
        total += len(g) / cosines * (found.T @ found)
    freedom = search.counts.sum() / max(search.counts.sum() - unknown.size, 1)
    return total * freedom


def _untold(unknown: Unknowns, directions: np.ndarray, length: np.ndarray) -> tuple[str, ...]:
    """In words."""
    names = [name if " " not in name else f"({name})" for name in unknown.names]
    words = [f"{names[k]}: nothing measured depends on it" for k in np.flatnonzero(np.isinf(length[: unknown.shared]))]
    for v in directions:
        used = np.where(np.abs(v) > 0.02, v / length, 0.0)
        if not used[: unknown.shared].any():
            continue
        lead = int(np.argmax(np.abs(v) * (np.arange(len(v)) < unknown.shared)))
        words.append(combinations((used / used[lead])[None], [lead], names)[0])
    return tuple(words)


def _close(names: Sequence[str], covariance: np.ndarray) -> tuple[str, ...]:
    d = np.sqrt(np.diag(covariance))
    with np.errstate(all="ignore"):
        r = covariance / np.outer(d, d)
    pairs = np.argwhere(np.triu(np.abs(np.nan_to_num(r)), 1) > CLOSE)
    return tuple(f"{names[i]} and {names[j]}: correlation {r[i, j]:.4f}" for i, j in pairs)
