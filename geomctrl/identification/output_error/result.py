"""What a fit by simulation returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import number
from geomctrl.errors import NameNotFoundError
from geomctrl.identification.estimators import Estimate
from geomctrl.identification.logs import Dataset


class Iteration(NamedTuple):
    """error: |measured - simulated| / |measured| of the torques, when the step began; change: what the step then
    changed of them, as a part of that residual; damping: Levenberg and Marquardt's, 0 where there is none."""

    error: float
    change: float
    damping: float = 0.0


@dataclass(frozen=True, eq=False)
class OutputErrorFit:
    """A robot and a loop that, simulated, do what the log says.

    estimate: the robot's parameters, as other estimators give them, on the simulated motion; `robot` is its robot.
    loop: with the gains and the delay found. names, values, covariance: of all that was estimated, base parameters
    first, then gains ("kp1", ...) and "delay". simulated: t, q, v, a of the last simulation and the torques measured.
    undetermined: changes of them, in words, that the log tells no better than to their own size (where a value is near
    zero, a tenth of the largest of its kind): they keep their first values where these are as likely, and what is in
    them has an infinite deviation. correlated: pairs it hardly tells apart, with their correlation. history: an
    `Iteration` each; converged: whether the last changed no more than the tolerance.
    """

    method: str
    estimate: Estimate
    loop: Any
    names: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    history: tuple[Iteration, ...]
    converged: bool
    simulated: Dataset
    undetermined: tuple[str, ...] = ()
    correlated: tuple[str, ...] = ()

    def __repr__(self) -> str:
        ended = "converged" if self.converged else "not converged"
        return (
            f"<OutputErrorFit by {self.method}: {len(self.names)} parameters, {ended} in {len(self.history)} steps,"
            f" torque error {100.0 * self.history[-1].error:.3g} %>"
        )

    @property
    def robot(self) -> Any:
        return self.estimate.robot

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of `values`, infinite for what the log does not tell."""
        return np.sqrt(np.diag(self.covariance).clip(0.0))

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """(n, 2) confidence intervals of `values` under Gaussian noise."""
        from scipy.stats import norm

        level = number("level", level, "a probability between 0 and 1", lambda x: 0.0 < x < 1.0)
        half = norm.ppf(0.5 + 0.5 * level) * self.std
        return np.stack((self.values - half, self.values + half), -1)

    def value(self, name: str) -> float:
        """Of what is called `name`."""
        return float(self.values[self._at(name)])

    def deviation(self, name: str) -> float:
        """The standard deviation of what is called `name`."""
        return float(self.std[self._at(name)])

    def _at(self, name: str) -> int:
        if not isinstance(name, str) or name not in self.names:
            raise NameNotFoundError(f"name: {name!r:.60} was not estimated; known: {', '.join(self.names)}")
        return self.names.index(name)
