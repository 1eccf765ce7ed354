"""The loop of all integrations in Python, with fixed or adaptive steps, and the storage of samples.

A `Stepper` makes steps on explicit state, a `March` iterates over them, `collect` stores the samples. Steppers are the
explicit methods on a group (`explicit`), projection onto constraints and generalized-alpha (`constrained`), and the
midpoint methods under a torque function (`motion`).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from geomctrl.arguments import count, exactly, function, listed, number, shown
from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.kernels.marches import END_STRETCH, GROW, MIN_LAST_ERROR, MIN_STEP_ULPS, SHRINK

from .solution import DenseOutput, Solution, Watch
from .step_control import StepControl

OFF_GROUP = 1e-6  # residual of y0 above which it is refused as a group element


@dataclass(slots=True)
class Step:
    """A step from y at t to y_next at t_next = t + h. memory: data besides y_next that the next step may reuse."""

    t: float
    y: np.ndarray
    h: float
    t_next: float
    y_next: np.ndarray
    K: Any = None  # the slopes of an explicit method's stages
    memory: Any = None  # of an explicit method: the field at the end, once it has been evaluated


class Stepper(Protocol):
    """Protocol of a class that makes integration steps.

    Notes
    -----
    Rules for implementations:

    1. `step(t, y, h, t_next, memory)` depends only on its arguments: the state y at t, an element of `group`, and the
       `memory` of the previous step, None at first. It modifies neither; t_next is t + h up to rounding.
    2. It raises IntegrationError, with a reason and the time, if the step can not be made.
    3. `nfev` counts evaluations.
    4. Events and dense output call `interpolant(taken)`, C (degree, group.dim) with y(t + theta h) = y exp(sum_j C[j]
       theta^(j+1)). It is optional if neither is used. Under a `StepControl` the stepper is an `Explicit`.
    """

    nfev: int

    @property
    def group(self) -> Any: ...
    def step(self, t: float, y: np.ndarray, h: float, t_next: float, memory: Any, /) -> Step: ...


class March:
    """Iterates over the accepted steps of a stepper from t0 to t_end and counts them.

    Fixed steps of h end exactly at t0 + k h; the last one is shortened to end at t_end. With a `StepControl`, h is the
    first step to try, or None. `failure` is the reason if a march ended before t_end. Raises ArgumentError for invalid
    arguments.
    """

    def __init__(self, stepper: Any, y0, t_span, h, control: StepControl | None = None):
        self.stepper, self.control = stepper, control
        self.t0, self.t_end = _checked_span(t_span)
        self.h: Any = _checked_h(h, self.t0, self.t_end, control is not None)
        self.y0 = _checked_y0(y0, stepper.group)
        self.n_steps = self.n_rejected = 0
        self.failure: str | None = None

    def __iter__(self) -> Iterator[Step]:
        return self._fixed() if self.control is None else self._adaptive(self.control)

    def _fixed(self):
        n = step_count(self.t_end - self.t0, self.h)
        t, y, memory = self.t0, self.y0, None
        for k in range(1, n + 1):
            t_next, h = (self.t0 + k * self.h, self.h) if k < n else (self.t_end, self.t_end - t)
            taken = self.stepper.step(t, y, h, t_next, memory)
            self.n_steps += 1
            yield taken
            t, y, memory = t_next, taken.y_next, taken.memory

    def _adaptive(self, control: StepControl):
        t, y, h, last_error = self.t0, self.y0, self.h, MIN_LAST_ERROR
        memory = self.stepper.slope(t, y)
        h = control.first(t, y, memory, self.t_end) if h is None else h
        grow = GROW
        while t < self.t_end:
            smallest, remaining = MIN_STEP_ULPS * math.ulp(max(abs(t), abs(self.t_end))), self.t_end - t
            if h < min(smallest, remaining):
                self.failure = f"{control} can not be met at t = {t:.9g}: steps of h = {h:.1e} would be needed"
                return
            h = remaining if END_STRETCH * h >= remaining else h
            t_next = self.t_end if h == remaining else t + h
            try:
                taken = self.stepper.step(t, y, h, t_next, memory)
                error = control.error(taken)
                factor = control.factor(error, last_error)
            except IntegrationError:
                if 0.25 * h < smallest:
                    raise
                error, factor = math.inf, 0.25
            if error <= 1.0:
                self.n_steps += 1
                yield taken
                t, y, memory, last_error = t_next, taken.y_next, taken.memory, max(error, MIN_LAST_ERROR)
                h, grow = h * min(max(factor, SHRINK), grow), GROW
            else:
                self.n_rejected += 1
                h, grow = h * min(max(factor, SHRINK), control.safety), 1.0


def collect(
    march: March, *, every: int = 1, progress: Callable | None = None, events=(), dense: bool = False
) -> Solution:
    """Return the Solution of a march; arguments as for `integrate`.

    Raises IntegrationError, whose `solution` holds the samples so far, if a step can not be made.
    """
    check_storing(every, progress)
    group = march.stepper.group
    watch = Watch(events, march.stepper)
    samples = [(march.t0, march.y0, 0.0)]
    pieces, last, reported = [], None, 0.0

    def solution(success, reason):
        if last is not None and last.t_next != samples[-1][0]:
            samples.append((last.t_next, last.y_next, last.h))
        t, y, lengths = (np.array(column) for column in zip(*samples))
        sol = DenseOutput(group, pieces, t[-1]) if pieces else None
        counts = march.stepper.nfev, march.n_steps, march.n_rejected
        return Solution(t, y, lengths, *counts, success, reason, watch.crossings(group), sol)

    try:
        for taken in march:
            last = taken
            if dense:
                pieces.append((taken.t, taken.h, taken.y, march.stepper.interpolant(taken)))
            if (crossing := watch.look(taken)) is not None:
                t_hit, y_hit, name = crossing
                last = replace(taken, t_next=t_hit, y_next=y_hit, h=t_hit - taken.t)
                return solution(True, f"terminal event {name} at t = {t_hit:.9g}")
            if march.n_steps % every == 0:
                samples.append((taken.t_next, taken.y_next, taken.h))
            fraction = (taken.t_next - march.t0) / (march.t_end - march.t0)
            if progress is not None and (fraction >= reported + 0.01 or fraction == 1.0):
                reported = fraction
                progress(fraction)
    except IntegrationError as error:
        raise IntegrationError(str(error), solution(False, str(error))) from None
    if march.failure is not None:
        return solution(False, march.failure)
    return solution(True, f"reached t_end = {march.t_end:.9g}")


# --- arguments ---------------------------------------------------------------------------------------------------


def step_count(span: float, h: float) -> int:
    """Number of steps of h that fill the span; the last one may be shorter."""
    whole = span / h
    return round(whole) if abs(whole - round(whole)) < 1e-9 * max(whole, 1.0) else math.ceil(whole)


def check_storing(every, progress) -> None:
    """Raise ArgumentError unless `every` is a valid count and `progress` is callable or None."""
    count("every", every, 1, expected="a positive integer")
    if progress is not None:
        function("progress", progress, "progress(fraction) or None", 1)


def element(name: str, value, group) -> np.ndarray:
    """Return value as a new array of the group's shape; raises ArgumentError for anything but finite numbers."""
    return exactly(name, value, tuple(group.shape))


def _checked_span(t_span):
    try:
        t0, t_end = listed("t_span", t_span, "a pair (t0, t_end)")
    except (TypeError, ValueError):
        raise ArgumentError(f"t_span: expected a pair (t0, t_end), got {shown(t_span)}") from None
    t0, t_end = number("t_span[0]", t0), number("t_span[1]", t_end)
    if not t0 < t_end:
        raise ArgumentError(f"t_span: expected t0 < t_end, got ({t0:g}, {t_end:g})")
    return t0, t_end


def _checked_h(h, t0, t_end, adaptive):
    if h is None and adaptive:
        return None
    h = number("h", h)
    if not 0.0 < h <= (t_end - t0) * (1.0 + 1e-9):
        raise ArgumentError(f"h: expected a positive step, at most the span t_end - t0 = {t_end - t0:g}, got {h:g}")
    if h < MIN_STEP_ULPS * math.ulp(max(abs(t0), abs(t_end))):
        latest = max(t0, t_end, key=abs)
        raise ArgumentError(f"h: expected a step that is not lost in rounding at t = {latest:g}, got {h:g}")
    return h


def _checked_y0(y0, group):
    y = element("y0", y0, group)
    if (residual := float(np.max(group.residual(y), initial=0.0))) > OFF_GROUP:
        raise ArgumentError(f"y0: expected an element of {group}, residual below {OFF_GROUP:g}, got {residual:.3g}")
    return y
