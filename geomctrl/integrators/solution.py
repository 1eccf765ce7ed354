"""The result of an integration: samples, interpolation between the steps, and zero crossings of events."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from geomctrl.arguments import checked, flag, listed, number, shown
from geomctrl.errors import ArgumentError, IntegrationError


class Crossings(NamedTuple):
    """Zero crossings of one event: times t (k,) and states y (k, `*group.shape`)."""

    t: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Solution:
    """The result of `integrate`; the first axis of arrays is the number of the sample.

    Attributes
    ----------
    t, y, h : arrays `(n,)`, `(n, *group.shape)`, `(n,)`
        Times, states, and the length of the step that ended there, 0 for the first.
    nfev, n_steps, n_rejected : int
        Evaluations of the field, accepted steps, and rejected steps of an adaptive method.
    success, reason : bool, str
        Whether the end was reached, and the reason why the solution ends.
    events : list of Crossings
        One for each event, with its times `t` and states `y`.
    sol : DenseOutput or None
        Interpolation t -> y, with dense=True.

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
    """Return y exp(sum_j C[j] theta^(j+1))."""
    u = C[-1]
    for c in C[-2::-1]:
        u = c + theta * u
    return group.advance(y, theta * u)


class DenseOutput:
    """Interpolates between the steps: t -> y_k exp(u(theta)) for t (), or (n,) which returns y (n, `*group.shape`)."""

    def __init__(self, group, pieces, t_end):
        self._group, self._pieces = group, pieces
        self._starts = np.array([piece[0] for piece in pieces])
        self.t_min, self.t_max = float(self._starts[0]), float(t_end)

    def __call__(self, t):
        times = checked("t", t, (), finite=False)
        if times.ndim > 1 or not np.all((self.t_min <= times) & (times <= self.t_max)):
            within = f"a number or a 1-D array in [{self.t_min:g}, {self.t_max:g}]"
            raise ArgumentError(f"t: expected {within}, got {shown(t)}")
        if times.ndim:
            return np.array([self(time) for time in times]).reshape(-1, *self._group.shape)
        start, h, y, C = self._pieces[np.searchsorted(self._starts, times, side="right") - 1]
        return evaluate(self._group, y, C, (float(times) - start) / h)


@dataclass(frozen=True)
class Event:
    """A scalar function g(t, y) whose sign changes are located.

    Any callable with attributes `terminal` and `direction` also works, as in scipy.

    Parameters
    ----------
    function : callable
        g(t, y) returns a float.
    terminal : bool
        Whether the first crossing ends the integration.
    direction : int
        +1 for rising crossings only, -1 for falling only, 0 for both.
    name : str
        Name for messages.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl import groups, integrators
    >>> event = integrators.Event(lambda t, y: y[0] - 0.5, terminal=True, direction=1)
    >>> grow = lambda t, y: np.array([1.0])
    >>> solution = integrators.integrate(grow, np.zeros(1), (0.0, 1.0), 0.1, "MK4", groups.Rn(1), events=[event])
    >>> round(float(solution.t[-1]), 9)
    0.5
    """

    function: Callable
    terminal: bool = False
    direction: int = 0
    name: str = "event"

    def __post_init__(self):
        if not callable(self.function):
            raise ArgumentError(f"function: expected a function g(t, y), got {shown(self.function)}")
        flag("terminal", self.terminal)
        if not isinstance(self.name, str):
            raise ArgumentError(f"name: expected a name, got {shown(self.name)}")
        _direction_of(self, repr(self.name))

    def __call__(self, t, y):
        return self.function(t, y)


def _direction_of(event, name):
    return number(
        f"event {name}: direction", getattr(event, "direction", 0), "+1, -1 or 0", lambda x: x in (-1.0, 0.0, 1.0)
    )


class Watch:
    """Detects sign changes of the events in each step."""

    def __init__(self, events, stepper):
        expected = "functions g(t, y)"
        self.events = [events] if callable(events) else listed("events", events, expected, ordered=False)
        self.stepper = stepper
        for event in self.events:
            if not callable(event):
                raise ArgumentError(f"events: expected functions g(t, y), got {shown(event)}")
        self.directions = [_direction_of(event, self._name(k)) for k, event in enumerate(self.events)]
        self.values = None
        self.hits = [[] for _ in self.events]

    def _name(self, k):
        return repr(getattr(self.events[k], "name", None) or getattr(self.events[k], "__name__", f"number {k}"))

    def _value(self, k, t, y):
        value = np.asarray(self.events[k](t, y.copy()))
        if value.shape not in ((), (1,)) or value.dtype.kind not in "fiub" or not np.isfinite(value).all():
            raise IntegrationError(f"event {self._name(k)} must return one finite number, got {value} at t = {t:.9g}")
        return float(value.reshape(()))

    def look(self, taken):
        """Record the crossings within the step; return (t, y, name) of the first terminal one, otherwise None."""
        if not self.events:
            return None
        indices = range(len(self.events))
        before = self.values or [self._value(k, taken.t, taken.y) for k in indices]
        self.values = [self._value(k, taken.t_next, taken.y_next) for k in indices]
        crossed = [k for k in range(len(before)) if self._crosses(k, before[k], self.values[k])]
        if not crossed:
            return None
        C = self.stepper.interpolant(taken)
        for theta, k in sorted((self._locate(k, taken, C, before[k]), k) for k in crossed):
            t = taken.t_next if theta == 1.0 else taken.t + theta * taken.h
            y = taken.y_next if theta == 1.0 else evaluate(self.stepper.group, taken.y, C, theta)
            self.hits[k].append((t, y))
            if getattr(self.events[k], "terminal", False):
                return t, y, self._name(k)
        return None

    def _crosses(self, k, before, after):
        direction = self.directions[k]
        return (before < 0.0 <= after and direction >= 0) or (before > 0.0 >= after and direction <= 0)

    def _locate(self, k, taken, C, before):
        """Locate a crossing by bisection to the last bit of t; return the state just past the crossing."""
        low, high = 0.0, 1.0
        while (high - low) * taken.h > math.ulp(max(abs(taken.t), abs(taken.t_next), 1e-300)):
            theta = 0.5 * (low + high)
            if theta in (low, high):
                break
            value = self._value(k, taken.t + theta * taken.h, evaluate(self.stepper.group, taken.y, C, theta))
            low, high = (theta, high) if value * before > 0.0 else (low, theta)
        return high

    def crossings(self, group) -> list[Crossings]:
        return [
            Crossings(np.array([t for t, _ in hits]), np.array([y for _, y in hits]).reshape(-1, *group.shape))
            for hits in self.hits
        ]
