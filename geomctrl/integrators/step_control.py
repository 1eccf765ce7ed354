"""Adaptive step size on a Lie group, after Hairer, Norsett and Wanner, Solving ODEs I, section II.4."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, frozen, number, shown
from geomctrl.errors import ArgumentError
from geomctrl.kernels.marches import MIN_ERROR, PI_GAIN, SAFETY

from .tableaus import Tableau, method


@dataclass(frozen=True, eq=False)
class Adaptive:
    """An adaptive method with its tolerances.

    The error of a step, in exponential coordinates at its beginning, is kept below atol + rtol |log y|: the root mean
    square over the components, as in scipy on R^n.

    Parameters
    ----------
    method : str or Tableau
        An embedded pair. Default "MK54".
    rtol : float
        Relative tolerance, not negative.
    atol : float or array (group.dim,)
        Absolute tolerance, not negative, and positive if rtol is zero.

    Raises
    ------
    ArgumentError
        If the method has no embedded error estimate, or a tolerance is invalid.

    Examples
    --------
    >>> import geomctrl as gc
    >>> precise = gc.integrators.Adaptive(rtol=1e-10, atol=1e-12)
    >>> options = gc.SimulationOptions(method=precise)
    """

    method: str | Tableau = "MK54"
    rtol: float = 1e-6
    atol: ArrayLike = 1e-9

    def __post_init__(self):
        if (tableau := method(self.method)).b_hat is None:
            raise ArgumentError(
                f"method: expected an embedded pair, such as MK54, got {tableau.name}, a fixed-step method"
            )
        object.__setattr__(self, "rtol", number("rtol", self.rtol, "a number, not negative", lambda x: x >= 0.0))
        atol = frozen(checked("atol", self.atol, ()))
        if atol.ndim > 1 or not atol.size or (atol < 0.0).any():
            raise ArgumentError(f"atol: expected a number or shape (group.dim,), none negative, got {shown(self.atol)}")
        if self.rtol == 0.0 and not (atol > 0.0).all():
            raise ArgumentError(f"atol: expected positive numbers, as rtol is zero, got {shown(self.atol)}")
        object.__setattr__(self, "atol", atol)

    def __repr__(self):
        name = self.method if isinstance(self.method, str) else self.method.name
        return f"Adaptive({name!r}, rtol={self.rtol!r}, atol={np.asarray(self.atol).tolist()!r})"


class StepControl:
    """Chooses steps so that the error of an embedded pair stays below atol + rtol |log y| (root mean square).

    Errors are in exponential coordinates at the beginning of the step. `stepper` is an `explicit.Explicit`.
    """

    safety = SAFETY

    def __init__(self, stepper: Any, rtol: float, atol: np.ndarray):
        self.stepper, self.rtol, self.atol = stepper, rtol, atol
        self.exponent = 1.0 / stepper.tableau.order

    def __str__(self):
        return f"rtol = {self.rtol:g} and atol = {np.max(self.atol):g}"

    def error(self, taken) -> float:
        """Normalised error estimate of a step; 1 is the largest acceptable error."""
        tableau = self.stepper.tableau
        F, _ = self.stepper.end_slopes(taken)
        defect = taken.h * (tableau.b_hat.dot(F) - tableau.b.dot(taken.K))
        error = self._norm(defect, np.maximum(self._scale(taken.y), self._scale(taken.y_next)))
        return error if math.isfinite(error) else math.inf

    def factor(self, error: float, last_error: float) -> float:
        """Factor for the next h: a proportional-integral controller on the error."""
        return SAFETY * max(error, MIN_ERROR) ** (0.75 * PI_GAIN - self.exponent) * last_error**PI_GAIN

    def first(self, t0: float, y0: np.ndarray, k1: np.ndarray, t_end: float) -> float:
        """A first step size, from the increment in the algebra."""
        scale = self._scale(y0)
        size, speed = self._norm(scale, scale), self._norm(k1, scale)
        usual = min(size, speed) > 1e-5 and max(size, speed) < math.inf
        h = min(0.01 * size / speed if usual else 1e-6, t_end - t0)
        k = self.stepper.slope(t0 + h, self.stepper.group.advance(y0, h * k1))
        sharpest = max(self._norm(k - k1, scale) / h, speed)
        longest = (0.01 / sharpest) ** self.exponent if sharpest > 1e-15 else max(1e-6, 1e-3 * h)
        return min(100.0 * h, longest, t_end - t0)

    def _scale(self, y):
        return np.abs(self.stepper.group.log(y))

    def _norm(self, x, scale):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(x == 0.0, 0.0, x / (self.atol + self.rtol * scale))
            return math.sqrt(ratio.dot(ratio) / max(len(ratio), 1))


def tableau_and_tolerances(chosen: str | Tableau | Adaptive, group: Any) -> tuple[Tableau, float, np.ndarray]:
    """Return (tableau, rtol, atol) of a method on a group; zero tolerances for fixed steps. Raises ArgumentError."""
    tableau = method(chosen.method if isinstance(chosen, Adaptive) else chosen)
    if tableau.b_hat is None:
        return tableau, 0.0, np.zeros(())
    adaptive = chosen if isinstance(chosen, Adaptive) else Adaptive(tableau)
    atol = np.array(adaptive.atol)
    if atol.shape not in ((), (group.dim,)):
        raise ArgumentError(f"atol: expected a number or shape ({group.dim},), got shape {atol.shape}")
    return tableau, adaptive.rtol, atol
