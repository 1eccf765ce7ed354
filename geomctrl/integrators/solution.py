"""What an integration returns, and its solution between the steps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError


@dataclass(frozen=True)
class Solution:
    """What `integrate` returns; the first axis is the stored sample.

    t (n,); y (n, *group.shape); h (n,): length of the step that ended there, 0 for the first.
    t_events, y_events: one array per event. sol: t -> y, with dense=True.
    """

    t: np.ndarray
    y: np.ndarray
    h: np.ndarray
    nfev: int
    n_steps: int
    n_rejected: int
    success: bool
    reason: str
    t_events: list
    y_events: list
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
