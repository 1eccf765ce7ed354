"""The result of an identification by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import shown
from geomctrl.errors import NameNotFoundError
from geomctrl.identification.estimators import Estimate
from geomctrl.identification.estimators.estimate import intervals
from geomctrl.identification.logs import Dataset


class Iteration(NamedTuple):
    """One iteration of a fit.

    error: |measured - simulated| / |measured| of the torques at its beginning; change: change of the torques by the
    step, relative to that residual; damping: of Levenberg-Marquardt, 0 without damping.
    """

    error: float
    change: float
    damping: float = 0.0


@dataclass(frozen=True, eq=False)
class OutputErrorFit:
    """A robot and a loop whose simulation agrees with the log.

    Attributes
    ----------
    estimate : Estimate
        The robot's parameters on the simulated motion; `robot` is the identified robot.
    loop : ServoLoop or ControllerLoop
        With the estimated gains and delay.
    names, values, covariance : sequences
        All estimated quantities: base parameters, then gains ("kp1", ...) and "delay".
    simulated : Dataset
        t, q, v, a of the last simulation and the measured torques.
    undetermined : list of str
        Changes that the log determines no better than their own size (near zero: a tenth of the largest of their kind).
        They keep their initial values, and their standard deviation is infinite.
    correlated : list
        Strongly correlated pairs, with their correlation.
    history : list of Iteration
        One entry for each iteration.
    converged : bool
        Whether the last change was within the tolerance.
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
        """Standard deviations of `values`; infinite for undetermined ones."""
        return np.sqrt(np.diag(self.covariance).clip(0.0))

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Confidence intervals (n, 2) of `values` for Gaussian noise."""
        return intervals(self.values, self.std, level)

    def value(self, name: str) -> float:
        """The value with this name."""
        return float(self.values[self._at(name)])

    def deviation(self, name: str) -> float:
        """The standard deviation of the value with this name."""
        return float(self.std[self._at(name)])

    def _at(self, name: str) -> int:
        if not isinstance(name, str) or name not in self.names:
            raise NameNotFoundError(f"name: {shown(name)} was not estimated; known: {', '.join(self.names)}")
        return self.names.index(name)
