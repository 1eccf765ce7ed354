"""Closed-loop output error: the parameters with which the simulated loop reproduces the measurements, by Gauss-Newton
steps with exact derivatives (Gautier, Janot and Vandanjon 2013 section II; Landau, Anderson and De Bruyne 2001).

Torques and positions of all joints are channels with unknown noise. The most likely parameters minimise
sum_c N_c log rms(error_c); weights 1 / rms(error_c), updated at every step, achieve this.

Unknowns are scaled to natural units (`units`), derivatives to the noise. A singular value s is then a direction with a
standard deviation of 1 / s units; a direction with more than MAX_DEVIATION units is undetermined. Steps do not change
it; the others are damped as in Levenberg-Marquardt's method if they do not reduce the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import choice, count, flag, listed, number, shown
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.identification.estimators.estimate import Uncertainty
from geomctrl.identification.estimators.least_squares import finish
from geomctrl.terms.base_parameters import combinations

from .experiment import experiment, motion, start_of
from .result import Iteration, OutputErrorFit
from .unknowns import State, Unknowns, rms

MIN_CORRELATION = 0.98  # correlation from which two parameters are reported
MIN_UNIT_SHARE = 0.1  # of the largest of its kind: natural unit of small or zero parameters
DEFAULT_UNIT = 1.0  # N m, kg m^2, ...: natural unit if all of a kind are zero
MIN_NAMED_SHARE = 0.02  # share of a direction from which a parameter is named


def units(unknown: Unknowns, theta: np.ndarray) -> np.ndarray:
    """(size,): a natural unit of each unknown, relative to which a step is negligible: its present or first value, at
    least MIN_UNIT_SHARE of the largest of its kind; a sampling interval for the delay; 1 for initial states of
    parts."""
    model, n, first = unknown.setup.model, unknown.n, np.maximum(np.abs(unknown.first()), np.abs(theta))
    inertial = [f"inertial {0 if k % 10 == 0 else 1 if k % 10 < 4 else 2}" for k in range(model.inertial)]
    own = [*inertial, *model.kinds[model.inertial :]]
    kinds = [own[k] for k in model.base.columns] + [g for g in unknown.gains for _ in range(n)]
    out = np.ones(unknown.size)
    for kind in set(kinds):
        position = np.array([k for k, x in enumerate(kinds) if x == kind])
        out[position] = (
            np.maximum(first[position], MIN_UNIT_SHARE * first[position].max())
            if first[position].any()
            else DEFAULT_UNIT
        )
    if unknown.delay:
        out[unknown.shared - 1] = unknown.setup.loop.period
    return out


def undetermined_directions(unknown: Unknowns, lost: np.ndarray, scale: np.ndarray) -> tuple[str, ...]:
    """Describe the undetermined directions (k, size), in units `scale`, with as few parameters each as possible."""
    from scipy.linalg import qr  # slow to import

    shared = unknown.shared
    lost = lost[:, :shared]
    _, s, Vt = np.linalg.svd(lost, full_matrices=False)
    lost = Vt[s > MIN_NAMED_SHARE]  # without initial states of parts
    if not len(lost):
        return ()
    names = [name if " " not in name else f"({name})" for name in unknown.names[:shared]]
    pivoted: Any = qr(lost, mode="r", pivoting=True)
    leads = pivoted[1][: len(lost)]
    changes = []
    for lead, v in sorted(zip(leads, np.linalg.solve(lost[:, leads], lost)), key=lambda x: x[0]):
        used = np.abs(v) > MIN_NAMED_SHARE
        direction = np.where(used, v * scale[:shared], 0.0) / scale[lead]
        text = combinations(direction[None], [int(lead)], names)[0]
        together = ", changed so together" if used.sum() > 1 else ""
        changes.append(f"{text}{together}: nothing measured depends on it")
    return tuple(changes)


def close(names: Sequence[str], covariance: np.ndarray) -> tuple[str, ...]:
    """Strongly correlated pairs, with their correlation."""
    d = np.sqrt(np.diag(covariance).clip(0.0))
    with np.errstate(all="ignore"):
        r = covariance / np.outer(d, d)
    pairs = np.argwhere(np.triu(np.abs(np.nan_to_num(r)), 1) > MIN_CORRELATION)
    return tuple(f"{names[i]} and {names[j]}: correlation {r[i, j]:.4f}" for i, j in pairs)


# --- the search ------------------------------------------------------------------------------------------------------


MIN_NOISE = 1e-9  # noise relative to the measurements, below which it is rounding
MAX_DEVIATION = 1.0  # natural units
MAX_TRIES = 12
MAX_LIKELIHOOD_LOSS = 3.0  # log likelihood: parameters with a smaller loss count as equally good


class Linear(NamedTuple):
    """The weighted derivatives, unknowns in units `scale`: determined directions U s Vt, `lost` ones (k, size), the
    error."""

    U: np.ndarray
    s: np.ndarray
    Vt: np.ndarray
    lost: np.ndarray
    scale: np.ndarray
    error: np.ndarray


class Search:
    """The search, which starts from `unknown.first()`."""

    def __init__(self, unknown: Unknowns):
        self.unknown, self.damping = unknown, 1e-2
        self.counts, n = unknown.used(), unknown.n
        sizes = [np.full(n, max(x.max(), 1e-12)) for x in (unknown.sizes()[:n], unknown.sizes()[n:]) if len(x)]
        self.floor = MIN_NOISE * np.concatenate(sizes)  # for torques, then positions: a joint may not move
        self.first = unknown.first()
        self.state = unknown.at(self.first)
        self.cost = self._cost(self.state)
        self._known: tuple[State, Linear] | None = None

    def noise(self, state: State) -> np.ndarray:
        """Noise of each channel (channels,), at least its rounding error."""
        return np.maximum(rms(state.errors, self.counts), self.floor)

    def _cost(self, state: State) -> float:
        return float(self.counts @ np.log(self.noise(state)))

    def linear(self) -> Linear:
        """The derivatives at the current state."""
        if self._known is not None and self._known[0] is self.state:
            return self._known[1]
        weights = 1.0 / self.noise(self.state)
        stack = np.vstack([w * R for w, R in zip(weights, self.unknown.factors(self.state))])
        scale = units(self.unknown, self.state.theta)
        U, s, Vt = np.linalg.svd(stack[:, :-1] * scale, full_matrices=False)
        determined = s > max(1.0 / MAX_DEVIATION, 1e-14 * s[0])
        linear = Linear(U[:, determined], s[determined], Vt[determined], Vt[~determined], scale, stack[:, -1])
        self._known = self.state, linear
        return linear

    def step(self) -> Iteration:
        """Make a step, if one reduces the cost."""
        linear = self.linear()
        along, size = linear.U.T @ linear.error, np.linalg.norm(linear.error)
        tau = [part.tau * part.mask for part in self.unknown.setup.parts]
        wrong = np.linalg.norm(np.concatenate([e[:, : self.unknown.n] for e in self.state.errors]))
        begun = float(wrong / np.linalg.norm(np.concatenate(tau)))
        for _ in range(MAX_TRIES):
            part = linear.s / (linear.s**2 + self.damping)
            theta = self.state.theta + linear.scale * (linear.Vt.T @ (part * along))
            change, used = float(np.linalg.norm(linear.s * part * along) / size), self.damping
            if self._moved(theta, 1e-9 * self.counts.sum()):
                self.damping = max(1e-2 * self.damping, 1e-6)
                return Iteration(begun, change, used)
            self.damping = max(100.0 * self.damping, 1.0)
        return Iteration(begun, 0.0, self.damping)  # no step reduces the cost: converged to rounding

    def settle(self, tolerance: float) -> None:
        """Reset undetermined directions to their first values, which earlier steps may have changed, and optimise the
        rest again, if the result is as likely."""
        before = self.state, self.cost
        linear = self.linear()
        lost, scale = linear.lost, linear.scale
        away = lost @ ((self.state.theta - self.first) / scale)
        shared = np.arange(len(self.first)) < self.unknown.shared
        if not np.linalg.norm(lost[:, shared].T @ away) > 1e-9:
            return
        if self._moved(self.state.theta - np.where(shared, scale * (lost.T @ away), 0.0), np.inf):
            for _ in range(MAX_TRIES):
                if self.step().change <= tolerance:
                    break
        if self.cost > before[1] + MAX_LIKELIHOOD_LOSS:
            self.state, self.cost = before

    def _moved(self, theta: np.ndarray, worse: float) -> bool:
        """Whether theta can be simulated, and its cost increases by at most `worse`."""
        if self.unknown.delay:
            delay_index = self.unknown.shared - 1
            theta[delay_index] = max(theta[delay_index], 0.0)
        try:
            state = self.unknown.at(theta)
        except (GeomctrlError, np.linalg.LinAlgError):
            return False
        cost = self._cost(state)
        if not cost <= self.cost + worse:
            return False
        self.state, self.cost = state, cost
        return True


# --- the fit ---------------------------------------------------------------------------------------------------------


MIN_LOST_SHARE = 0.1  # share of an undetermined direction from which a parameter counts as undetermined
COSINE_FACTOR = 0.4


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
    """The method "cloe" of `closed_loop_fit`."""
    model, x0 = start_of(start)
    setup = experiment(model, logs, loop)
    wanted = tuple(choice("gains", name, setup.loop.gains or ("none of this loop",)) for name in listed("gains", gains))
    if len(set(wanted)) < len(wanted):
        raise ArgumentError(f"gains: expected each once, got {shown(gains)}")
    iterations = count("iterations", iterations, 1)
    tolerance = number("tolerance", tolerance, "a number > 0", lambda x: x > 0.0)
    unknown = Unknowns(setup, x0, wanted, flag("delay", delay), flag("positions", positions))
    search = Search(unknown)
    history, done = [], False
    while not done and len(history) < iterations:
        history.append(search.step())
        done = history[-1].change <= tolerance
    search.settle(tolerance)
    return _result(search, tuple(history), done)


def _result(search: Search, history: tuple[Iteration, ...], done: bool) -> OutputErrorFit:
    unknown, state, linear = search.unknown, search.state, search.linear()
    shared, half = unknown.shared, linear.scale[:, None] * linear.Vt.T / linear.s
    covariance = (half @ (half.T @ _long_run(search) @ half) @ half.T)[:shared, :shared]
    lost = np.abs(linear.lost).max(axis=0, initial=0.0)[:shared] > MIN_LOST_SHARE
    covariance[lost, :] = covariance[:, lost] = 0.0
    covariance[lost, lost] = np.inf
    names, model = tuple(unknown.names[:shared]), unknown.setup.model
    data = motion(state.experiment, state.dynamics, state.plan, state.runs)
    x, nb = unknown.parameters(state.theta), model.base.size
    noise = search.noise(state)[: unknown.n]
    estimate = finish(
        model, model.compress(data), x, 1.0 / noise, "cloe", uncertainty=Uncertainty(covariance[:nb, :nb])
    )
    loop = unknown.setup.loop._changed(**unknown.changes(state.theta))
    return OutputErrorFit(
        "cloe", estimate, loop, names, state.theta[:shared].copy(), covariance, history, done, data,
        undetermined_directions(unknown, linear.lost, linear.scale), close(names, covariance),
    )  # fmt: skip


def _long_run(search: Search) -> np.ndarray:
    """The covariance of the gradient, including its correlation in time of either sign, from its lowest frequencies:
    the mean square of its 0.4 N^(2/3) first cosines (Lazarus, Lewis, Stock and Watson 2018). Differences of encoder
    counts are negatively correlated, which kernels over some lags hardly capture.
    """
    from scipy.fft import dct  # slow to import

    unknown, state = search.unknown, search.state
    total = np.zeros((unknown.size, unknown.size))
    for g in unknown.scores(state, 1.0 / search.noise(state)):
        cosines = min(max(round(COSINE_FACTOR * len(g) ** (2.0 / 3.0)), 1), len(g) - 1)
        cosine_sums = np.asarray(dct(g, norm="ortho", axis=0))[1 : cosines + 1]
        total += len(g) / cosines * (cosine_sums.T @ cosine_sums)
    freedom = search.counts.sum() / max(search.counts.sum() - unknown.size, 1)
    return total * freedom
