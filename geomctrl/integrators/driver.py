"""Explicit integration on a Lie group G: dy/dt = y field(t, y), y in G, field(t, y) in the Lie algebra as a vector.

Crouch-Grossman, commutator-free and Munthe-Kaas methods are the `Tableau`s of tableaus.py; one step of any of them
is `rk_step`. Two drivers loop over it: `steps` stores nothing and `integrate` returns a `Solution`. Equation numbers
are those of Park and Chung 2005; being left-trivialised, the increment stands on the right and dexp^-1 is taken at
-Theta (41). The embedded pair and its step control follow Hairer, Norsett and Wanner, Solving ODEs I, sections II.4-5.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomctrl.arguments import number
from geomctrl.errors import ArgumentError, IntegrationError

from . import tableaus
from .events import _Watch
from .explicit import (
    _check_field_and_group,
    _element,
    _finite,
    _group_step,
    _is_vector_space,
    _pull_back,
    _slope,
    _vector_step,
)
from .solution import DenseOutput, Solution
from .tableaus import Tableau

OFF_GROUP = 1e-6  # residual of y0 above which it is not taken for a group element
SAFETY, SHRINK, GROW, PI_GAIN = 0.9, 0.2, 5.0, 0.04  # step control


# --- the loop --------------------------------------------------------------------------------------------------


def steps(field: Callable, y0, t_span, h, method: str | Tableau, group, *, rtol=None, atol=None):
    """Generator of (t, y), the initial one included, that stores nothing. Arguments and errors as for `integrate`.

    Tolerances that can not be met raise IntegrationError.
    """
    march = _March(field, y0, t_span, h, method, group, rtol, atol)  # now, not at the first next()

    def walk():
        yield march.t0, march.y0.copy()
        for taken in march:
            yield taken.t_next, taken.y_next.copy()  # the caller's to write on
        if march.failure is not None:
            raise IntegrationError(march.failure)

    return walk()


@dataclass(slots=True)
class _Step:
    """An accepted step; `end` is the field at its end once somebody has asked for it."""

    t: float
    y: np.ndarray
    h: float
    t_next: float
    y_next: np.ndarray
    K: np.ndarray
    end: np.ndarray | None = None


class _March:
    """Validates, then iterates over accepted steps and counts. `failure` says why it ended before t_end."""

    def __init__(self, field, y0, t_span, h, method, group, rtol, atol):
        _check_field_and_group(field, group)
        self.field, self.group, self.tableau = field, group, tableaus.method(method)
        self.adaptive = self.tableau.b_hat is not None
        self.t0, self.t_end = _checked_span(t_span)
        self.h: Any = _checked_h(h, self.t0, self.t_end, self.adaptive)
        self.y0 = _checked_y0(y0, group)
        self.rtol, self.atol = checked_tolerances(rtol, atol, self.tableau, group)
        self.rk_step = _vector_step if _is_vector_space(group) else _group_step
        self.nfev = self.n_steps = self.n_rejected = 0
        self.failure = None

    def __iter__(self):
        return self._adaptive() if self.adaptive else self._fixed()

    def _fixed(self):
        whole = (self.t_end - self.t0) / self.h
        n = round(whole) if abs(whole - round(whole)) < 1e-9 else math.ceil(whole)
        t, y, k1 = self.t0, self.y0, None
        for k in range(1, n + 1):
            t_next, h = (self.t0 + k * self.h, self.h) if k < n else (self.t_end, self.t_end - t)
            taken = self._try(t, y, h, t_next, k1)
            self.n_steps += 1
            yield taken
            t, y, k1 = t_next, taken.y_next, taken.end

    def _adaptive(self):
        t, y, h, last_error = self.t0, self.y0, self.h, 1e-4
        k1 = self.slope(t, y)
        h = self._first_step(k1) if h is None else h
        exponent, grow = 1.0 / self.tableau.order, GROW
        while t < self.t_end:
            smallest, remaining = 10.0 * math.ulp(max(abs(t), abs(self.t_end))), self.t_end - t
            if h < min(smallest, remaining):
                wanted = f"rtol = {self.rtol:g} and atol = {np.max(self.atol):g}"
                self.failure = f"{wanted} can not be met at t = {t:.9g}: that would take steps of h = {h:.1e}"
                return
            h = remaining if 1.01 * h >= remaining else h
            t_next = self.t_end if h == remaining else t + h
            try:
                taken = self._try(t, y, h, t_next, k1)
                error = self._error(taken)
                factor = SAFETY * max(error, 1e-10) ** (0.75 * PI_GAIN - exponent) * last_error**PI_GAIN
            except IntegrationError:
                if 0.25 * h < smallest:
                    raise
                error, factor = math.inf, 0.25
            if error <= 1.0:
                self.n_steps += 1
                yield taken
                t, y, k1, last_error = t_next, taken.y_next, taken.end, max(error, 1e-4)
                h, grow = h * min(max(factor, SHRINK), grow), GROW
            else:
                self.n_rejected += 1
                h, grow = h * min(max(factor, SHRINK), SAFETY), 1.0

    def _try(self, t, y, h, t_next, k1):
        self.nfev += len(self.tableau.c) - (k1 is not None)
        y_next, K = self.rk_step(self.field, t, y, h, self.tableau, self.group, k1)
        if not _finite(y_next):
            raise IntegrationError(f"the solution overflows between t = {t:.9g} and {t_next:.9g}")
        return _Step(t, y, h, t_next, y_next, K)

    def slope(self, t, y):
        self.nfev += 1
        k = _slope(self.field, t, y.copy(), self.group.dim, 0, len(self.tableau.c))
        return np.array(k, dtype=float)  # a copy: the field may reuse its buffer

    def end_slopes(self, taken):
        """K and, below it, the slope at the end of the step pulled back to its beginning; and the increment u."""
        if taken.end is None:
            taken.end = self.slope(taken.t_next, taken.y_next)
        group = self.group
        if self.tableau.family == "MK":
            u = taken.h * self.tableau.b.dot(taken.K)
        else:
            u = group.log(group.compose(group.inverse(taken.y), taken.y_next))
        if _is_vector_space(group):
            return np.vstack((taken.K, taken.end)), u
        return np.vstack((taken.K, _pull_back(group, u, taken.end, taken.t, taken.h))), u

    def interpolant(self, taken):
        """C (degree, dim) with y(t + theta h) = y exp(sum_j C[j] theta^(j+1))."""
        F, u = self.end_slopes(taken)
        if self.tableau.interpolant is not None:
            return taken.h * self.tableau.interpolant.T.dot(F)
        d0, d1 = taken.h * F[0], taken.h * F[-1]
        return np.array([d0, 3.0 * u - 2.0 * d0 - d1, d0 + d1 - 2.0 * u])

    def _scale(self, y):
        return np.abs(self.group.log(y))

    def _error(self, taken):
        F, _ = self.end_slopes(taken)
        defect = taken.h * (self.tableau.b_hat.dot(F) - self.tableau.b.dot(taken.K))
        error = self._norm(defect, np.maximum(self._scale(taken.y), self._scale(taken.y_next)))
        return error if math.isfinite(error) else math.inf

    def _norm(self, x, scale):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(x == 0.0, 0.0, x / (self.atol + self.rtol * scale))
            return math.sqrt(ratio.dot(ratio) / max(len(ratio), 1))

    def _first_step(self, k1):
        """Hairer, Norsett and Wanner, section II.4, with the increment in the algebra."""
        scale = self._scale(self.y0)
        size, speed = self._norm(scale, scale), self._norm(k1, scale)
        usual = min(size, speed) > 1e-5 and max(size, speed) < math.inf
        h = min(0.01 * size / speed if usual else 1e-6, self.t_end - self.t0)
        k = self.slope(self.t0 + h, self.group.advance(self.y0, h * k1))
        sharpest = max(self._norm(k - k1, scale) / h, speed)
        longest = (0.01 / sharpest) ** (1.0 / self.tableau.order) if sharpest > 1e-15 else max(1e-6, 1e-3 * h)
        return min(100.0 * h, longest, self.t_end - self.t0)


# --- integrate -------------------------------------------------------------------------------------------------


def integrate(
    field: Callable,
    y0,
    t_span,
    h,
    method: str | Tableau,
    group,
    *,
    every: int = 1,
    events=(),
    rtol=None,
    atol=None,
    dense: bool = False,
    progress: Callable | None = None,
) -> Solution:
    """Integrate dy/dt = y field(t, y) from y0 (group.shape) over t_span = (t0, t_end).

    field(t, y) returns (group.dim,). Samples are at t0 + k h exactly; the last step is shortened to end at t_end.
    With an embedded pair ("MK54"), h is the first step to try, or None, and each step's error, in exponential
    coordinates at its beginning, is kept below atol + rtol |log y| component by component in the root mean square
    (on R^n: scipy's rule); atol may be (group.dim,). Defaults 1e-9 and 1e-6.
    every: store each every-th sample, and the last. dense: also keep what `Solution.sol` needs, every step. Dense
    output and event times err by O(h^5) for MK5 and MK54, by O(h^4) for the others of order three and more.
    events: `Event`s; a terminal one ends the solution just past its crossing, so that a restart does not meet it
    again, and an event that is zero at t0 has not crossed; an even number of crossings within one step goes unseen.
    The y that field and events get is theirs to write on. progress: called with the fraction done.

    Raises ArgumentError or NameNotFoundError for arguments, and IntegrationError, whose `solution` holds the samples
    so far, when the field fails or a Munthe-Kaas step turns by 2 pi. Tolerances that can not be met end the solution
    with success=False.
    """
    march = _March(field, y0, t_span, h, method, group, rtol, atol)
    if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or every < 1:
        raise ArgumentError(f"every must be a positive integer, got {every!r}")
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress must be a callable progress(fraction) or None, got {progress!r}")
    watch = _Watch(events, march)
    samples = [(march.t0, march.y0, 0.0)]
    pieces, last, shown = [], None, 0.0

    def solution(success, reason):
        if last is not None and last.t_next != samples[-1][0]:
            samples.append((last.t_next, last.y_next, last.h))
        t, y, lengths = (np.array(column) for column in zip(*samples))
        sol = DenseOutput(group, pieces, t[-1]) if pieces else None
        counts = march.nfev, march.n_steps, march.n_rejected
        return Solution(t, y, lengths, *counts, success, reason, *watch.found(group), sol)

    try:
        for taken in march:
            last = taken
            if dense:
                pieces.append((taken.t, taken.h, taken.y, march.interpolant(taken)))
            if (crossing := watch.look(taken)) is not None:
                t_hit, y_hit, name = crossing
                last = replace(taken, t_next=t_hit, y_next=y_hit, h=t_hit - taken.t)
                return solution(True, f"terminal event {name} at t = {t_hit:.9g}")
            if march.n_steps % every == 0:
                samples.append((taken.t_next, taken.y_next, taken.h))
            fraction = (taken.t_next - march.t0) / (march.t_end - march.t0)
            if progress is not None and (fraction >= shown + 0.01 or fraction == 1.0):
                shown = fraction
                progress(fraction)
    except IntegrationError as error:
        raise IntegrationError(str(error), solution(False, str(error))) from None
    if march.failure is not None:
        return solution(False, march.failure)
    return solution(True, f"reached t_end = {march.t_end:.9g}")


def _checked_span(t_span):
    try:
        t0, t_end = t_span
    except (TypeError, ValueError):
        raise ArgumentError(f"t_span must be a pair (t0, t_end), got {t_span!r}") from None
    t0, t_end = number("t_span[0]", t0), number("t_span[1]", t_end)
    if not t0 < t_end:
        raise ArgumentError(f"t_span must run forward, t0 < t_end; got ({t0:g}, {t_end:g})")
    return t0, t_end


def _checked_h(h, t0, t_end, adaptive):
    if h is None and adaptive:
        return None
    h = number("h", h)
    if not 0.0 < h <= (t_end - t0) * (1.0 + 1e-9):
        raise ArgumentError(f"h must be positive and at most the span t_end - t0 = {t_end - t0:g}, got {h:g}")
    if h < 10.0 * math.ulp(max(abs(t0), abs(t_end))):
        raise ArgumentError(f"h must be resolvable beside t = {max(t0, t_end, key=abs):g}, got {h:g}")
    return h


def _checked_y0(y0, group):
    y = _element("y0", y0, group)
    if (residual := float(np.max(group.residual(y), initial=0.0))) > OFF_GROUP:
        raise ArgumentError(f"y0 must be an element of {group}, residual below {OFF_GROUP:g}; got {residual:.3g}")
    return y


def checked_tolerances(rtol, atol, tableau, group):
    if tableau.b_hat is None:
        if rtol is not None or atol is not None:
            raise ArgumentError(f"rtol and atol need an embedded pair such as MK54; {tableau.name} steps by h")
        return 0.0, np.zeros(())
    rtol = 1e-6 if rtol is None else number("rtol", rtol)
    try:
        atol = np.array(1e-9 if atol is None else atol, dtype=float)
    except (TypeError, ValueError):
        atol = np.array(math.nan)
    if atol.shape not in ((), (group.dim,)) or not (np.isfinite(atol).all() and (atol >= 0.0).all()) or rtol < 0.0:
        raise ArgumentError(
            f"rtol must be a number and atol a number or shape ({group.dim},), none negative; got {rtol} and {atol}"
        )
    if rtol == 0.0 and not (atol > 0.0).all():
        raise ArgumentError(f"atol must be positive where rtol is zero, got {atol}")
    return rtol, atol
