"""What an integration returns, and its solution between the steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError


class Crossings(NamedTuple):
    """Where one event crossed zero: times t (k,) and states y (k, *group.shape)."""

    t: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Solution:
    """What `integrate` returns; the first axis of arrays is the stored sample.

    Attributes
    ----------
    t, y, h : arrays (n,), (n, *group.shape), (n,)
        Times, states, and the length of the step that ended there, 0 for the first.
    nfev, n_steps, n_rejected : int
        Evaluations of the field, steps, and steps that an adaptive method took back.
    success, reason : bool, str
        Whether the end was reached, and why the solution ends.
    events : list of Crossings
        One an event, with its times `t` and states `y`.
    sol : DenseOutput or None
        t -> y between the samples, with dense=True.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.integrators import integrate
    >>> from geomctrl import groups
    >>> solution = integrate(lambda t, y: -y, np.ones(1), (0.0, 1.0), 0.25, "MK4", groups.Rn(1))
    >>> solution.n_steps, solution.nfev, solution.reason
    (4, 16, 'reached t_end = 1')
    """

    t: np.ndarray
    y: np.ndarray
    h: np.ndarray
    nfev: int
    n_steps: int
    n_rejected: int
    success: bool
    reason: str
    events: list[Crossings]
    sol: Callable | None = None


def evaluate(group, y, C, theta):
    """y exp(sum_j C[j] theta^(j+1))."""
    u = C[-1]
    for c in C[-2::-1]:
        u = c + theta * u
    return group.advance(y, theta * u)


class DenseOutput:
    """t -> y between the steps: y_k exp(u(theta)), t (), or (n,) for y (n, *group.shape)."""

    def __init__(self, group, pieces, t_end):
        self._group, self._pieces = group, pieces
        self._starts = np.array([piece[0] for piece in pieces])
        self.t_min, self.t_max = float(self._starts[0]), float(t_end)

    def __call__(self, t):
        times = checked("t", t, (), finite=False)
        if times.ndim > 1 or not np.all((self.t_min <= times) & (times <= self.t_max)):
            within = f"a number or a 1-D array in [{self.t_min:g}, {self.t_max:g}]"
            raise ArgumentError(f"t: expected {within}, got {t!r:.80}")
        if times.ndim:
            return np.array([self(time) for time in times]).reshape(-1, *self._group.shape)
        start, h, y, C = self._pieces[np.searchsorted(self._starts, times, side="right") - 1]
        return evaluate(self._group, y, C, (float(times) - start) / h)
