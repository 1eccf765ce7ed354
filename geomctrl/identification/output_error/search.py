"""The search of closed-loop output error: Gauss and Newton's steps along what the log tells.

Unknowns are counted in natural units (`told.units`), derivatives in the noise's: a singular value s is then a direction
with a standard deviation of 1 / s units, and one of more than OPEN units is not told. Steps leave it alone; the others
are damped as Levenberg and Marquardt's are where they do not help.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geomctrl.errors import GeomctrlError

from .result import Iteration
from .sensitivity_report import units
from .unknowns import State, Unknowns, rms

FLOOR = 1e-9  # noise, of what was measured, below which it is rounding
OPEN = 1.0  # natural units
TRIES = 12
LIKELY = 3.0  # of the log-likelihood: parameters that are as good


class Linear(NamedTuple):
    """The weighted derivatives, unknowns in units `scale`: told directions U s Vt, `lost` ones (k, size), the error."""

    U: np.ndarray
    s: np.ndarray
    Vt: np.ndarray
    lost: np.ndarray
    scale: np.ndarray
    error: np.ndarray


class Search:
    """From `unknown.first()` on."""

    def __init__(self, unknown: Unknowns):
        self.unknown, self.damping = unknown, 1e-2
        self.counts, n = unknown.used(), unknown.n
        sizes = [np.full(n, max(x.max(), 1e-12)) for x in (unknown.sizes()[:n], unknown.sizes()[n:]) if len(x)]
        self.floor = FLOOR * np.concatenate(sizes)  # torques', then positions': a joint may stand still
        self.first = unknown.first()
        self.state = unknown.at(self.first)
        self.cost = self._cost(self.state)
        self._known: tuple[State, Linear] | None = None

    def noise(self, state: State) -> np.ndarray:
        """A channel each (channels,), rounding at least."""
        return np.maximum(rms(state.errors, self.counts), self.floor)

    def _cost(self, state: State) -> float:
        return float(self.counts @ np.log(self.noise(state)))

    def linear(self) -> Linear:
        """At the state at hand."""
        if self._known is not None and self._known[0] is self.state:
            return self._known[1]
        weights = 1.0 / self.noise(self.state)
        stack = np.vstack([w * R for w, R in zip(weights, self.unknown.factors(self.state))])
        scale = units(self.unknown, self.state.theta)
        U, s, Vt = np.linalg.svd(stack[:, :-1] * scale, full_matrices=False)
        told = s > max(1.0 / OPEN, 1e-14 * s[0])
        found = Linear(U[:, told], s[told], Vt[told], Vt[~told], scale, stack[:, -1])
        self._known = self.state, found
        return found

    def step(self) -> Iteration:
        """One step, where one helps."""
        at = self.linear()
        along, size = at.U.T @ at.error, np.linalg.norm(at.error)
        tau = [part.tau * part.mask for part in self.unknown.made.parts]
        wrong = np.linalg.norm(np.concatenate([e[:, : self.unknown.n] for e in self.state.errors]))
        begun = float(wrong / np.linalg.norm(np.concatenate(tau)))
        for _ in range(TRIES):
            part = at.s / (at.s**2 + self.damping)
            theta = self.state.theta + at.scale * (at.Vt.T @ (part * along))
            change, used = float(np.linalg.norm(at.s * part * along) / size), self.damping
            if self._moved(theta, 1e-9 * self.counts.sum()):
                self.damping = max(1e-2 * self.damping, 1e-6)
                return Iteration(begun, change, used)
            self.damping = max(100.0 * self.damping, 1.0)
        return Iteration(begun, 0.0, self.damping)  # no step is better: this is the best there is, to rounding

    def settle(self, tolerance: float) -> None:
        """What is not told goes back to its first values, from where steps on the way took it; and the rest after it,
        if the result is as likely."""
        found = self.state, self.cost
        at = self.linear()
        lost, scale = at.lost, at.scale
        away = lost @ ((self.state.theta - self.first) / scale)
        shared = np.arange(len(self.first)) < self.unknown.shared
        if not np.linalg.norm(lost[:, shared].T @ away) > 1e-9:
            return
        if self._moved(self.state.theta - np.where(shared, scale * (lost.T @ away), 0.0), np.inf):
            for _ in range(TRIES):
                if self.step().change <= tolerance:
                    break
        if self.cost > found[1] + LIKELY:
            self.state, self.cost = found

    def _moved(self, theta: np.ndarray, worse: float) -> bool:
        """Whether theta can be simulated, and costs no more than that more."""
        if self.unknown.delay:
            at = self.unknown.shared - 1
            theta[at] = max(theta[at], 0.0)
        try:
            state = self.unknown.at(theta)
        except (GeomctrlError, np.linalg.LinAlgError):
            return False
        cost = self._cost(state)
        if not cost <= self.cost + worse:
            return False
        self.state, self.cost = state, cost
        return True
